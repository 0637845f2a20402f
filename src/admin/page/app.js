// Which view is shown, and when it is drawn again.
//
//   hash -> view; drawn: at once, after each event (at most once a second), every 5 s
//   a daemon or a Consul that does not answer: what is shown stays, grey, with a note of how old it
//   is, and links to the pages of other hosts

import { follow, get } from "./api.js";
import { clock, facts, fill, h, relative } from "./dom.js";
import * as hosts from "./hosts.js";
import * as overview from "./overview.js";
import * as allQueues from "./queues.js";
import { editSchedule, newSchedule } from "./schedule_form.js";
import { schedule as scheduleView, schedules } from "./schedules.js";
import { submit } from "./submit.js";
import { task } from "./task.js";
import { dead, tasks } from "./tasks.js";

const kViews = { queues: allQueues, overview, tasks, dead, schedules, task, schedule: scheduleView, submit, "new-schedule": newSchedule, "edit-schedule": editSchedule }; // `list`: one of its list
const kInNav = ["overview", "tasks", "dead", "schedules"];
const kPollEvery = 5000;
const kLeastPause = 1000;
const kOld = 15000;
const kOldWhenLost = 3000; // a restart takes less

const main = document.getElementById("main");
const live = document.getElementById("live");
const stale = document.getElementById("stale");
const picker = document.getElementById("queue");

let queues = ["default"];
let where = null; // { view, queue, base, parameters, id }
let viewAbort = new AbortController();
let queueAbort = new AbortController();
let drawing = null;
let again = false;
let drawnAt = 0;
let took = 0; // ms, of the last drawing
let answeredAt = null; // when the daemon last answered
let stream = "wait"; // of events: "live", "lost"
let trouble = null; // why Consul cannot be used: { what, since, at_least }
let newerThan; // a change was made here: show nothing older
let timer;

function parse() {
  const [path, search] = location.hash.replace(/^#\/?/, "").split("?");
  const [queue, view = "overview", ...rest] = path.split("/").filter(Boolean).map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  const name = queue || queues[0];
  const ofAll = !queue && queues.length > 1;
  return {
    view: ofAll ? "queues" : kViews[view] && view !== "queues" ? view : "overview",
    queue: name,
    followed: ofAll ? "" : name, // whose events; all
    base: `#/${encodeURIComponent(name)}`,
    id: rest.join("/"),
    parameters: new URLSearchParams(search ?? ""),
  };
}

function header() {
  fill(
    document.getElementById("nav"),
    where.view === "queues" ? [] : kInNav.map((name) => h("a", { href: `${where.base}/${name}`, "aria-current": where.view === name ? "page" : null, "data-key": `nav-${name}` }, kViews[name].title)),
  );
  const names = queues.includes(where.queue) ? queues : [...queues, where.queue];
  if (picker.dataset.names !== names.join()) {
    picker.dataset.names = names.join();
    const all = queues.length > 1 ? [h("option", { value: "" }, "All queues")] : [];
    picker.replaceChildren(...all, ...names.map((name) => h("option", { value: name }, name)));
  }
  picker.value = where.followed;
  const shown = kViews[where.view].list ? where.id : kViews[where.view].title;
  document.title = [shown, where.followed, "lictor"].filter(Boolean).join(" · ");
}

async function draw() {
  if (drawing) {
    again = true;
    return;
  }
  clearTimeout(timer);
  const selected = getSelection();
  if (main.dataset.ready === where.view && !selected.isCollapsed && main.contains(selected.anchorNode)) {
    return schedule(kLeastPause); // somebody is copying what a new drawing would take away
  }
  const place = where;
  const signal = viewAbort.signal;
  const begun = Date.now();
  drawing = kViews[place.view].render(main, {
    ...place,
    signal,
    viewSignal: signal,
    newerThan,
    refresh: () => {
      newerThan = new Date(Date.now() + clock.ahead).toISOString();
      schedule(0);
    },
  });
  try {
    const asOf = await drawing;
    if (place === where) {
      answeredAt = asOf ? Date.parse(asOf) - clock.ahead : Date.now();
      main.querySelector(":scope > .failed")?.remove();
      main.dataset.ready = place.view;
    }
  } catch (error) {
    if (!signal.aborted && place === where) failed(error);
  }
  drawing = null;
  drawnAt = Date.now();
  took = drawnAt - begun;
  age();
  if (again) {
    again = false;
    schedule(place === where ? pause() : 0);
  } else {
    schedule(kPollEvery);
  }
}

function failed(error) {
  const text = trouble ? `This cannot be read: ${trouble.what}.` : error.message;
  const note = h("p", { class: "notice failed", role: "alert" }, text);
  if (main.dataset.ready === where.view) {
    main.querySelector(":scope > .failed")?.remove();
    main.prepend(note);
  } else {
    fill(main, note);
  }
}

function schedule(delay) {
  clearTimeout(timer);
  if (kViews[where.view].still && main.dataset.ready === where.view) return;
  timer = setTimeout(draw, Math.max(delay, document.hidden ? 30000 : 0));
}

// A daemon that is slow to answer is asked less often, but never forgotten.
const pause = () => Math.min(kPollEvery, Math.max(kLeastPause, 10 * took));

function soon() {
  if (drawing) again = true;
  else schedule(Math.max(0, pause() - (Date.now() - drawnAt)));
}

// What is old, and since when: ["all", text], or what Consul tells. Nothing: ["", ""].
function oldness() {
  if (document.hidden || !where || kViews[where.view].still) return ["", ""];
  const silence = answeredAt === null ? 0 : Date.now() - answeredAt;
  if (silence > kOld || (stream === "lost" && silence > kOldWhenLost)) {
    return ["all", `What you see is from ${relative(answeredAt, Date.now())}: ${stream === "lost" ? "the daemon does not answer" : trouble ? trouble.what : "no newer answer has come"}. Trying on.`];
  }
  if (!trouble) return ["", ""];
  const since = `since ${new Date(trouble.since).toLocaleTimeString()}${trouble.at_least ? " or before" : ""}, ${relative(trouble.since)}`;
  const short = trouble.what.match(/^Consul [^:]*/)?.[0] ?? trouble.what; // the overview has the rest
  return ["consul", `${short} (${since}). What you see of tasks, schedules and members is from before, or unknown. Trying on.`];
}

// Says so when what is shown is old.
function age() {
  const [what, text] = oldness();
  stale.hidden = !text;
  if (what) main.dataset.old = what;
  else delete main.dataset.old;
  const [note, others] = stale.children;
  if (note.textContent !== text) note.textContent = text;
  const state = `${hosts.known()} ${location.hash}`;
  if (others.dataset.state === state) return; // who is about to click keeps the links
  others.dataset.state = state;
  others.replaceChildren(...hosts.links());
}

function showState() {
  const state = stream !== "live" ? stream : trouble ? "trouble" : "live";
  live.dataset.state = state;
  live.textContent = { wait: "connecting", lost: "reconnecting", trouble: "no Consul", live: "live" }[state];
  age();
}

// Of all views: some show what was read long ago, and a list that Consul holds up says nothing.
async function watchConsul() {
  for (;;) {
    if (!document.hidden) {
      try {
        const before = trouble;
        trouble = (await get("/v1/status", {}, { quiet: true })).consul;
        if (before && !trouble) soon();
      } catch {
        // The stream of events tells that the daemon is away.
      }
      showState();
    }
    await new Promise((resolve) => setTimeout(resolve, kPollEvery));
  }
}

function watch() {
  queueAbort.abort();
  queueAbort = new AbortController();
  follow(where.followed, {
    signal: queueAbort.signal,
    onEvent: soon,
    onState: (state) => {
      if (state === "live" && stream === "lost") soon();
      stream = state;
      showState();
    },
  });
}

function go() {
  const before = where;
  where = parse();
  viewAbort.abort();
  viewAbort = new AbortController();
  drawing = null;
  again = false;
  newerThan = undefined;
  if (before?.view !== where.view || before?.id !== where.id || before?.queue !== where.queue) {
    delete main.dataset.ready;
    delete main.dataset.drawn;
    if (before) {
      fill(main, h("p", { class: "quiet" }, "Loading…"));
      main.focus({ preventScroll: true });
      scrollTo(0, 0);
    }
  }
  header();
  if (before?.followed !== where.followed) watch();
  draw();
}

picker.addEventListener("change", () => {
  const view = where.view === "queues" ? "overview" : kViews[where.view].list ?? where.view;
  location.hash = picker.value ? `#/${encodeURIComponent(picker.value)}/${view}` : "#/";
});
addEventListener("hashchange", go);
document.addEventListener("visibilitychange", () => !document.hidden && soon());
setInterval(age, 1000);

document.getElementById("theme").addEventListener("click", () => {
  const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem("lictor.theme", theme);
  } catch {
    // It lasts as long as the page.
  }
});

const kKeys = [
  ["g a", "All queues", () => (location.hash = "#/")],
  ["g o", "Overview", () => (location.hash = `${where.base}/overview`)],
  ["g t", "Tasks", () => (location.hash = `${where.base}/tasks`)],
  ["g d", "Dead letters", () => (location.hash = `${where.base}/dead`)],
  ["g s", "Schedules", () => (location.hash = `${where.base}/schedules`)],
  ["n", "Submit a task", () => (location.hash = `${where.base}/submit`)],
  ["/", "Search", () => document.querySelector('[type="search"]')?.focus()],
  ["j", "Next of a list", () => step(1)],
  ["k", "Previous of a list", () => step(-1)],
  ["?", "This list", () => shortcuts()],
];

function step(by) {
  const links = [...main.querySelectorAll("tbody th a")];
  const at = links.indexOf(document.activeElement);
  links[Math.min(Math.max(at + by, 0), links.length - 1)]?.focus();
}

function shortcuts() {
  const dialog = h(
    "dialog",
    { "aria-labelledby": "keys-title" },
    h("h2", { id: "keys-title" }, "Keyboard"),
    facts(kKeys.map(([key, name]) => [key.split(" ").map((each) => h("kbd", {}, each)), name])),
    h("form", { method: "dialog", class: "row end" }, h("button", { class: "primary" }, "Close")),
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
document.getElementById("help").addEventListener("click", shortcuts);

let prefix = "";
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.target.closest("input, textarea, select")) {
    if (event.key === "Escape") {
      event.preventDefault(); // a browser would empty a search field
      event.target.blur();
    }
    return;
  }
  const typed = prefix ? `${prefix} ${event.key}` : event.key;
  prefix = event.key === "g" && !prefix ? "g" : "";
  const found = kKeys.find(([key]) => key === typed);
  if (!found) return;
  event.preventDefault();
  found[2]();
});

try {
  const overview = await get("/v1/queues");
  hosts.remember(overview);
  queues = overview.queues.map((queue) => queue.name);
  document.getElementById("foot").textContent = `${overview.node} · lictor ${overview.version}`;
} catch {
  // The view says why.
}
go();
watchConsul();
