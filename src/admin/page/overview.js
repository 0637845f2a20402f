// The queue at a glance: what is wrong, how much waits, who leads.

import { get, post } from "./api.js";
import { bars, delays } from "./charts.js";
import { act, ago, ask, button, card, chip, count, duration, fill, h, plural, ranges, relative, table } from "./dom.js";
import { remember } from "./hosts.js";

export const title = "Overview";

function findings(list) {
  if (list.length === 0) {
    return h("section", { class: "findings ok", "aria-label": "Findings" }, h("p", {}, h("strong", {}, "All is well."), " Nothing here needs you."));
  }
  return h(
    "section",
    { class: "findings", "aria-label": "Findings" },
    h("h2", {}, list.length === 1 ? "One thing needs you" : `${list.length} things need you`),
    h(
      "ul",
      {},
      list.map((each) => h("li", { "data-severity": each.severity }, h("strong", {}, each.what), h("span", { class: "remedy" }, each.remedy))),
    ),
  );
}

/** The finding with a link to what it is about, where a page shows that. */
function withLink(finding, base) {
  const place = { schedule_fault: "schedules", schedule_note: "schedules", dead_letters: "dead", orphans: "tasks?state=orphan", failing: "tasks?state=scheduled" }[finding.kind];
  if (!place) return finding;
  return { ...finding, remedy: [h("a", { href: `${base}/${place}` }, "See them"), ": ", finding.remedy] };
}

/** Names the types that no executor runs. They are contents of tasks, so the finding lacks them. */
function withTypes(finding, queue, tasks) {
  if (finding.kind !== "no_executor" || !tasks || queue.types.includes("*")) return finding;
  const idle = Object.entries(tasks.types).filter(([type]) => type && !queue.types.includes(type)); // unreadable tasks have none
  if (idle.length === 0) return finding;
  return { ...finding, what: `${finding.what}: ${idle.slice(0, 3).map(([type, tasks]) => `${type} (${count(tasks)})`).join(", ")}${idle.length > 3 ? ", …" : ""}` };
}

function tile(label, value, { href, note, kind } = {}) {
  const content = [h("span", { class: "label" }, label), h("span", { class: "value" }, value), note ? h("span", { class: "note" }, note) : null];
  return href ? h("a", { class: "tile", href, "data-kind": kind, "data-key": label }, content) : h("div", { class: "tile", "data-kind": kind }, content);
}

function schedules(counts, base) {
  const all = Object.values(counts).reduce((sum, each) => sum + each, 0);
  if (all === 0) return null;
  const note = ["paused", "bad"].filter((state) => counts[state]).map((state) => `${count(counts[state])} ${state}`);
  return tile("Schedules", count(all), { href: `${base}/schedules`, note: note.join(", "), kind: counts.bad ? "bad" : null });
}

const isDivided = (queue) => queue.partitions > 1;
const freeOf = (queue) => queue.leaders.filter((each) => each.node === null).map((each) => each.partition);

/** Who leads, in few words. */
export function leaderText(queue) {
  if (!isDivided(queue)) return queue.leader ?? (queue.fleet_error ? "unknown" : "nobody");
  const leaders = new Set(queue.leaders.map((each) => each.node).filter((each) => each !== null));
  return queue.fleet_error ? "unknown" : `${plural(leaders.size, "daemon")}, ${plural(queue.partitions, "partition")}`;
}

/** Who leads. Of several partitions: how many there are, and which have no leader. */
function leadTile(queue) {
  if (isDivided(queue)) {
    const free = freeOf(queue);
    const leaders = new Set(queue.leaders.map((each) => each.node).filter((each) => each !== null));
    const note = queue.fleet_error ? "who leads them is unknown" : free.length ? `nobody leads ${ranges(free)}` : `led by ${plural(leaders.size, "daemon")}`;
    return tile("Partitions", count(queue.partitions), { note, kind: free.length ? "bad" : null });
  }
  return tile("Leader", leaderText(queue), { note: queue.leads_since ? ["took leadership ", ago(queue.leads_since)] : null, kind: queue.leader ? null : "bad" });
}

const lastCounts = new Map(); // queue -> { counts, at }, for when they cannot be read

function tiles(queue, tasks, base) {
  const counts = tasks?.counts ?? {};
  if (tasks) lastCounts.set(queue.name, { counts, at: tasks.as_of });
  const last = lastCounts.get(queue.name);
  const known = (value) => (tasks ? count(value) : "unknown");
  const was = (name) => (tasks || !last ? null : `${count(last.counts[name])}, ${relative(last.at)}`);
  const orphans = counts.orphan ?? 0;
  const status = queue.status ?? {};
  const minute = queue.status?.activity?.last_minute;
  const dead = counts.dead ?? 0;
  const unusable = (counts.unreadable ?? 0) + (counts.too_large ?? 0) + (counts.unnameable ?? 0);
  return h(
    "section",
    { class: "tiles", "aria-label": "Counts" },
    leadTile(queue),
    tile("Running", known((counts.running ?? 0) - orphans), { href: `${base}/tasks?state=running`, note: was("running") }),
    orphans ? tile("Orphans", count(orphans), { href: `${base}/tasks?state=orphan`, note: "their owner died or lost leadership", kind: "bad" }) : null,
    tile("Waiting", known(counts.waiting), {
      href: `${base}/tasks?state=waiting`,
      note: was("waiting") ?? (status.oldest_due_ms > 1000 ? `the first for ${duration(status.oldest_due_ms)}` : null),
    }),
    tile("Scheduled", known(counts.scheduled), { href: `${base}/tasks?state=scheduled`, note: was("scheduled") }),
    tile("Dead letters", known(dead), { href: `${base}/dead`, kind: dead ? "bad" : null, note: was("dead") }),
    schedules(status.schedules ?? {}, base),
    unusable ? tile("Cannot run", count(unusable), { href: `${base}/tasks`, kind: "bad" }) : null,
    minute ? tile("Done, last minute", count(minute.done), { note: minute.failed || minute.dead ? `${count(minute.failed + minute.dead)} failed` : null }) : null,
    status.lease_left_ms !== undefined ? tile(isDivided(queue) ? "Shortest lease" : "Lease left", duration(status.lease_left_ms)) : null,
  );
}

function pictures(activity, silent, divided) {
  if (!activity) {
    return card("The last hour", h("p", { class: "quiet" }, silent ?? (divided ? "Only the leaders know." : "Only the leader knows.")));
  }
  const failed = activity.failed.map((value, i) => value + activity.dead[i]);
  return h(
    "section",
    { class: "card pictures", "aria-label": "The last hour" },
    bars("Tasks a minute", [
      { name: "done", values: activity.done, class: "done" },
      { name: "failed", values: failed, class: "failed" },
    ]),
    delays(divided ? "Start after the task was due, slowest host" : "Start after the task was due", [
      { name: "p50", values: activity.delay_p50_ms, class: "p50" },
      { name: "p99", values: activity.delay_p99_ms, class: "p99" },
    ]),
    silent ? h("p", { class: "quiet" }, `This lacks what other leaders know: ${silent}`) : null,
  );
}

const kTypesShown = 20;
const kTypeColumns = ["Type", "A minute", "Done", "Failed", "Dead", "Took", "Longest"];

/** What each type did in the last hour, the busiest first. */
function typesCard(figures, base) {
  const ended = ([, each]) => each.done + each.failed + each.dead;
  const types = Object.entries(figures ?? {}).sort((a, b) => ended(b) - ended(a));
  if (types.length === 0) return null;
  const bad = (number) => (number ? h("span", { class: "bad" }, count(number)) : "0");
  const rows = types.slice(0, kTypesShown).map(([type, each]) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, h("a", { href: `${base}/tasks?${new URLSearchParams({ type })}`, "data-key": `type-${type}` }, type || "no type")),
      h("td", { "data-label": "A minute", class: "number", title: "of the last five minutes" }, (each.recent / 5).toLocaleString("en-US", { maximumFractionDigits: 1 })),
      h("td", { "data-label": "Done", class: "number" }, count(each.done)),
      h("td", { "data-label": "Failed", class: "number" }, bad(each.failed)),
      h("td", { "data-label": "Dead", class: "number" }, bad(each.dead)),
      h("td", { "data-label": "Took", class: "number" }, each.done ? duration(each.took_ms / each.done) : ""),
      h("td", { "data-label": "Longest", class: "number" }, each.done ? duration(each.longest_ms) : ""),
    ),
  );
  return h(
    "section",
    { class: "card", "aria-label": "By type" },
    h("h2", {}, "By type, the last hour"),
    table("stack figures", kTypeColumns, rows),
    h("p", { class: "quiet" }, types.length > kTypesShown ? `${plural(types.length - kTypesShown, "other type")} did less. ` : null, "\u201cA minute\u201d is of the last five; an attempt that failed and is tried again counts as failed, one that was the last as dead; \u201ctook\u201d is the mean of those that ended well. As the leaders have counted since they started."),
  );
}

/** The processes of the workers of the hosts that lead. */
function workersCard(workers) {
  const rows = Object.entries(workers ?? {}).map(([type, each]) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, type),
      ...["busy", "idle", "starting", "ending", "ended"].map((state) =>
        h("td", { "data-label": state[0].toUpperCase() + state.slice(1), class: "number" }, count(each[state])),
      ),
    ),
  );
  if (rows.length === 0) return null;
  return h(
    "section",
    { class: "card", "aria-label": "Workers" },
    h("h2", {}, "Workers"),
    table("stack figures", ["Type", "Busy", "Idle", "Starting", "Ending", "Ended"], rows),
    h("p", { class: "quiet" }, "Processes that stay; \u201cended\u201d counts those that are gone since the leaders started."),
  );
}

function members(queue) {
  const divided = isDivided(queue);
  const configs = queue.members.map((member) => member.config).filter(Boolean);
  const usual = configs.sort((a, b) => configs.filter((each) => each === b).length - configs.filter((each) => each === a).length)[0];
  const rows = queue.members.map((member) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, member.node, member.leads && !divided ? [" ", chip("leads")] : null, member.draining && divided ? [" ", chip("draining")] : null),
      divided ? h("td", { "data-label": "Partitions" }, member.partitions.length ? [ranges(member.partitions), h("span", { class: "quiet" }, ` (${member.partitions.length})`)] : h("span", { class: "quiet" }, "none")) : null,
      h("td", { "data-label": "State" }, member.doubt ? h("span", { class: "bad" }, member.doubt) : member.answers ? "answers" : "up"),
      h("td", { "data-label": "Seen" }, ago(member.seen)),
      h("td", { "data-label": "Since" }, ago(member.since)),
      h("td", { "data-label": "Version" }, member.version ?? ""),
      h("td", { "data-label": "Configuration" }, !member.config ? "" : member.config === usual ? "the same" : h("span", { class: "bad" }, "differs")),
    ),
  );
  const free = divided && !queue.fleet_error ? freeOf(queue) : [];
  if (rows.length && free.length) {
    rows.push(h("tr", {}, h("th", { scope: "row" }, h("span", { class: "bad" }, "nobody")), h("td", { "data-label": "Partitions" }, h("span", { class: "bad" }, ranges(free))), h("td", { "data-label": "State", colspan: 5 }, h("span", { class: "bad" }, "free: none of their tasks starts"))));
  }
  const columns = ["Node", divided ? "Partitions" : null, "State", "Seen", "Since", "Version", "Configuration"];
  return h(
    "section",
    { class: "card", "aria-label": "Members" },
    h("h2", {}, "Members"),
    rows.length ? table("stack", columns, rows) : h("p", { class: "quiet" }, queue.fleet_error ? "Not known until Consul answers." : "No daemon has registered for this queue."),
  );
}

function actions(queue, refresh) {
  const divided = isDivided(queue);
  const isLed = divided ? queue.leaders.some((each) => each.node !== null) : queue.leader;
  const change = (path, body, done) => act(() => post(path, { queue: queue.name }, body), done, refresh);
  const resume = () => change("/v1/resume", {}, { text: "Resumed: tasks start again." });
  const pause = async () => {
    const given = await ask({
      title: `Pause queue "${queue.name}"?`,
      text: "Running jobs go on. No new task starts until somebody resumes the queue.",
      fields: [{ name: "reason", label: "Reason, for others to read" }],
      confirm: "Pause",
    });
    if (given) change("/v1/pause", { reason: given.reason }, { text: "Paused.", action: "Undo", run: resume });
  };
  const stepDown = async () => {
    const given = await ask({
      title: divided ? "Ask all leaders to step down?" : `Ask ${queue.leader} to step down?`,
      text: divided
        ? "They start no new tasks, let running jobs finish within drain_timeout, and release their partitions; other daemons then lead them."
        : "It starts no new tasks, lets running jobs finish within drain_timeout, and releases the lock; another daemon then leads.",
      confirm: "Step down",
    });
    if (given) change("/v1/step-down", {}, { text: divided ? "All leaders are asked to step down." : `${queue.leader} is asked to step down.` });
  };
  return h(
    "div",
    { class: "row" },
    queue.paused ? button("Resume", resume, { class: "primary" }) : button("Pause", pause),
    button("Step down", stepDown, { disabled: !isLed }),
  );
}

/** A queue of /v1/queues with its lists, and all that is wrong with it. */
export async function look(entry, signal) {
  // A Consul that hangs would hold up the list, and with it the news that it hangs.
  const tasks = entry.fleet_error
    ? null
    : await get("/v1/tasks", { queue: entry.name, limit: 1 }, { signal }).catch((error) => {
        if (signal.aborted) throw error;
        return null; // Consul may be away: the rest is worth showing
      });
  const base = `#/${encodeURIComponent(entry.name)}`;
  const all = [...entry.findings, ...(tasks?.findings ?? [])].map((each) => withLink(withTypes(each, entry, tasks), base));
  if (!tasks && !entry.fleet_error) all.push({ severity: "error", what: "The tasks cannot be read.", remedy: "Consul does not answer this daemon, or its token may not read them." });
  return { entry, tasks, findings: all };
}

export async function render(view, { queue, base, signal, refresh }) {
  const overview = await get("/v1/queues", { queue }, { signal });
  if (!overview.queues[0]) throw new Error(`this daemon serves no queue "${queue}"`);
  remember(overview);
  const { entry, tasks, findings: found } = await look(overview.queues[0], signal);
  fill(
    view,
    h("div", { class: "head" }, h("h1", {}, entry.name), entry.paused ? chip("paused") : null, actions(entry, refresh)),
    findings(found),
    tiles(entry, tasks, base),
    pictures(entry.status?.activity, entry.leader_silent, isDivided(entry)),
    typesCard(entry.status?.by_type, base),
    workersCard(entry.status?.workers),
    members(entry),
  );
  return overview.at;
}
