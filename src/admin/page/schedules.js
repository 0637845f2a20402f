// Recurring tasks: a list, and one with its record and its next ticks.

import { del, get, idPath, post } from "./api.js";
import { act, ago, ask, button, card, chip, duration, facts, fill, h, table } from "./dom.js";
import { draw, filters, hidden, kPage, lastCursor, pager, tabs } from "./list.js";
import { recordText, stateChip } from "./task.js";

const kColumns = ["Schedule", "When", "Next", "Last", "State"];
const kDays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/** "Europe/Rome"; the line may break after the slash. */
const zoneName = (zone) => zone.split("/").flatMap((part, i) => (i === 0 ? [part] : ["/", h("wbr"), part]));

/** When it made its last task. `last_tick` is no such time: a leader writes it with its first look. */
const lastMade = (found) => (found.last ? ago(found.last) : found.last_task ?? (found.state === "bad" ? "" : "never"));

function rowsOf(schedules, base) {
  return schedules.map((each) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, h("a", { href: `${base}/schedule/${idPath(each.name)}`, "data-key": each.key }, each.name)),
      h("td", { "data-label": "When" }, h("span", {}, each.rule ? h("code", {}, each.rule) : null, each.timezone ? [" ", h("span", { class: "zone" }, zoneName(each.timezone))] : null)),
      h("td", { "data-label": "Next" }, ago(each.next)),
      h("td", { "data-label": "Last" }, lastMade(each)),
      h("td", { "data-label": "State" }, h("span", {}, chip(each.state), each.error ? h("span", { class: "error reason" }, each.error) : null)),
    ),
  );
}

export const schedules = {
  title: "Schedules",
  async render(view, { queue, base, parameters, signal, newerThan }) {
    const path = `${base}/schedules`;
    const state = parameters.get("state") ?? "";
    const text = parameters.get("text") ?? "";
    const answer = await get("/v1/schedules", { queue, state, text, limit: kPage, cursor: lastCursor(parameters), newer_than: newerThan }, { signal });
    const states = ["active", "paused", ...["ended", "bad"].filter((each) => answer.counts[each] || each === state)];
    const empty = state || text ? "No such schedules." : ["No recurring tasks. \u201cAdd a schedule\u201d makes one; see the ", h("a", { href: "manual/schedules" }, "manual"), "."];
    draw(
      view,
      [h("div", { class: "head" }, h("h1", {}, "Schedules"), h("a", { class: "button primary", href: `${base}/new-schedule`, "data-key": "new" }, "Add a schedule")), tabs(states, answer.counts, parameters, path)],
      filters("Search in name, type and rule", parameters, path),
      [hidden(answer), answer.schedules.length ? table("stack tasks schedules", kColumns, rowsOf(answer.schedules, base)) : h("p", { class: "quiet empty" }, empty), pager(answer, answer.schedules.length, parameters, path)],
    );
    return answer.as_of;
  },
};

function factsOf(found, base) {
  return facts([
    ["Key", h("code", {}, found.key)],
    ["When", found.rule && h("code", {}, found.rule)],
    ["Time zone", found.timezone ?? (found.value?.cron && "UTC")],
    ["Type", found.type],
    ["Next tick", found.next && ago(found.next)],
    ["Last task", found.last_task ? [h("a", { href: `${base}/task/${idPath(found.last_task)}` }, found.last_task), found.last ? [" ", ago(found.last)] : null] : found.state === "bad" ? null : "never"],
    ["Ticks decided to", found.last_tick && [ago(found.last_tick), ` (${found.last_tick})`]],
    ["Written by", found.from_config && "the leader, as its configuration says"],
    ["Record", `created at index ${found.create_index}, modified at ${found.modify_index}`],
  ]);
}

/** "2026-11-24T10:30:00+01:00" is "Tue 2026-11-24 10:30:00 +01:00". */
function localText(text) {
  const [date, time] = [text.slice(0, 10), text.slice(11, 19)];
  const zone = text.slice(19);
  return `${kDays[new Date(`${date}T00:00:00Z`).getUTCDay()]} ${date} ${time}${zone === "Z" ? "" : ` ${zone}`}`;
}

function ticks(list, found) {
  if (found.state === "bad") return null;
  const isUtc = list.every(({ tick, local }) => tick === local);
  return card(
    found.state === "paused" ? "Next ticks, which make no tasks while it is paused" : "Next ticks",
    list.length
      ? h(
          "table",
          { class: "ticks" },
          h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Tick, ", zoneName(isUtc ? "UTC" : found.timezone)), isUtc ? null : h("th", { scope: "col", class: "utc" }, "UTC"), h("th", { scope: "col" }, "Due"))),
          h("tbody", {}, list.map(({ tick, local }) => h("tr", {}, h("td", {}, localText(local)), isUtc ? null : h("td", { class: "utc" }, tick), h("td", {}, ago(tick))))),
        )
      : h("p", { class: "quiet" }, "None: all its ticks have passed."),
  );
}

const kRuns = 10;

/** When the tick of a task was, by its id. "nightly@..." is of older versions. */
function tickOf(id) {
  const packed = id.match(/\/(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z/);
  return packed ? `${packed[1]}-${packed[2]}-${packed[3]}T${packed[4]}:${packed[5]}:${packed[6]}Z` : (id.match(/@([0-9TZ:-]+)/)?.[1] ?? "");
}

/** Its newest tasks: waiting, running, dead, done. */
async function readRuns(name, queue, signal) {
  const lists = await Promise.all(
    ["/v1/tasks", "/v1/dead", "/v1/done"].map((path) =>
      get(path, { queue, schedule: name, limit: path === "/v1/tasks" ? 500 : kRuns }, { signal }).catch((error) => {
        if (signal.aborted) throw error;
        return { tasks: [] }; // the token may not read it
      }),
    ),
  );
  const runs = lists.flatMap((list) => list.tasks).map((task) => ({ ...task, tick: tickOf(task.task_id ?? task.id) }));
  return runs.sort((a, b) => (a.tick < b.tick ? 1 : a.tick > b.tick ? -1 : 0)).slice(0, kRuns);
}

function runsCard(runs, found, base) {
  const rows = runs.map((task) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, h("a", { href: `${base}/task/${idPath(task.task_id ?? task.id)}`, "data-key": `run-${task.key}` }, task.tick ? ago(task.tick) : task.id)),
      h("td", { "data-label": "State" }, stateChip(task)),
      h("td", { "data-label": "Took" }, task.took_ms === null ? "" : duration(task.took_ms)),
      h("td", { "data-label": "Node" }, task.node ?? ""),
      h("td", { "data-label": "Error", class: "error" }, task.error ?? task.reason ?? ""),
    ),
  );
  const none = found.last_task ? "None is left: they are done, and the queue keeps no history of them." : "It has made no task yet.";
  return card("Its newest tasks", rows.length ? table("stack", ["Tick", "State", "Took", "Node", "Error"], rows) : h("p", { class: "quiet" }, none));
}

function actions(found, { queue, base, refresh }) {
  const { name } = found;
  const path = `/v1/schedules/${idPath(name)}`;
  const undone = found.from_config ? " If the configuration sets \"paused\", the leader undoes this within seconds: change it there." : "";
  const resume = () => act(() => post(`${path}/resume`, { queue }), { text: `Resumed. Its "missed" decides about the ticks since it was paused.${undone}` }, refresh);
  const pause = () => act(() => post(`${path}/pause`, { queue }), { text: `Paused: no tick makes a task.${undone}`, action: "Undo", run: resume }, refresh);
  const run = async () => {
    const sure = await ask({
      title: `Run ${name} now?`,
      text: "This makes a task of it at once, also while it is paused or its last task runs.",
      confirm: "Make a task",
    });
    if (sure) {
      act(
        () => post(`${path}/run`, { queue }),
        ({ id }) => ({ text: `Task ${id} is made.`, action: "Show", run: () => (location.hash = `${base}/task/${idPath(id)}`) }),
        refresh,
      );
    }
  };
  const remove = async () => {
    const sure = await ask({
      title: `Remove schedule ${name}?`,
      text: found.from_config ? "The leader writes it again, as its configuration says: to end it, remove it there and reload each daemon." : "It makes no more tasks. Those that it made stay. This cannot be undone.",
      confirm: "Remove it",
      danger: true,
    });
    if (sure) act(() => del(path, { queue }), { text: `Schedule ${name} is removed.`, leave: `${base}/schedules` }, refresh);
  };
  return h(
    "div",
    { class: "row" },
    found.state === "bad" ? null : button("Run now", run),
    found.from_config ? null : h("a", { class: "button", href: `${base}/edit-schedule/${idPath(name)}`, "data-key": "edit" }, "Edit"),
    found.state === "active" ? button("Pause", pause) : null,
    found.state === "paused" ? button("Resume", resume, { class: "primary" }) : null,
    button("Remove", remove, { class: "danger" }),
  );
}

export const schedule = {
  title: "Schedule",
  list: "schedules",
  async render(view, context) {
    const { queue, base, id, signal } = context;
    const [answer, runs] = await Promise.all([get(`/v1/schedules/${idPath(id)}`, { queue }, { signal }), readRuns(id, queue, signal)]);
    const found = answer.schedule;
    fill(
      view,
      h("div", { class: "head" }, h("h1", {}, found.name), chip(found.state), actions(found, context)),
      found.error ? h("p", { class: "notice fault" }, `It makes no tasks: ${found.error}`) : null,
      found.note ? h("p", { class: "notice" }, found.note) : null,
      h("section", { class: "card" }, factsOf(found, base)),
      runsCard(runs, found, base),
      ticks(answer.ticks, found),
      card("Record", h("pre", { tabindex: "0" }, recordText(found))),
    );
    return undefined;
  },
};
