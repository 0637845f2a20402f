// All queues on one screen: which need somebody, and how much each has to do.

import { get } from "./api.js";
import { chip, count, fill, h, plural, table } from "./dom.js";
import { remember } from "./hosts.js";
import { leaderText, look } from "./overview.js";

export const title = "All queues";

const kColumns = ["Queue", "State", "What is wrong", "Running", "Waiting", "Scheduled", "Dead", "Leader"];
const kShown = 3; // findings of a queue; its own page has all

const rank = (severity) => (severity === "error" ? 2 : 1);
const worst = (list) => Math.max(0, ...list.map((each) => rank(each.severity)));

function stateChip(list) {
  if (list.length === 0) return chip("done", "well");
  const errors = list.filter((each) => each.severity === "error").length;
  return errors ? chip("bad", plural(errors, "error")) : chip("paused", plural(list.length, "warning"));
}

function findingsCell(list, base) {
  const worstFirst = [...list].sort((a, b) => rank(b.severity) - rank(a.severity));
  const items = worstFirst.slice(0, kShown).map((each) => h("li", { class: each.severity === "error" ? "error" : null }, each.what));
  if (list.length > kShown) items.push(h("li", {}, h("a", { href: `${base}/overview` }, plural(list.length - kShown, "more", "more"))));
  return h("ul", {}, items);
}

function row({ entry, tasks, findings }) {
  const base = `#/${encodeURIComponent(entry.name)}`;
  const counts = { ...tasks?.counts };
  counts.running = (counts.running ?? 0) - (counts.orphan ?? 0); // those are a finding
  const number = (name, path) => h("td", { "data-label": kColumns[{ running: 3, waiting: 4, scheduled: 5, dead: 6 }[name]], class: "number" }, tasks ? h("a", { href: base + path }, count(counts[name])) : "unknown");
  return h(
    "tr",
    { "data-severity": ["", "warning", "error"][worst(findings)] },
    h("th", { scope: "row" }, h("a", { href: `${base}/overview`, "data-key": `queue-${entry.name}` }, entry.name)),
    h("td", { "data-label": "State" }, h("span", {}, stateChip(findings), entry.paused ? [" ", chip("paused")] : null)),
    h("td", { "data-label": "What is wrong" }, findings.length ? findingsCell(findings, base) : null),
    number("running", "/tasks?state=running"),
    number("waiting", "/tasks?state=waiting"),
    number("scheduled", "/tasks?state=scheduled"),
    number("dead", "/dead"),
    h("td", { "data-label": "Leader" }, leaderText(entry)),
  );
}

export async function render(view, { signal }) {
  const overview = await get("/v1/queues", {}, { signal });
  remember(overview);
  const all = await Promise.all(overview.queues.map((entry) => look(entry, signal)));
  const wrong = all.filter((each) => each.findings.length).length;
  all.sort((a, b) => worst(b.findings) - worst(a.findings)); // else as the configuration has them
  fill(
    view,
    h("div", { class: "head" }, h("h1", {}, "All queues")),
    h(
      "section",
      { class: wrong ? "findings" : "findings ok", "data-severity": wrong ? "warning" : null, "aria-label": "Findings" },
      h("p", {}, h("strong", {}, wrong ? `${wrong} of ${plural(all.length, "queue")} ${wrong === 1 ? "needs" : "need"} you.` : "All is well."), wrong ? null : ` None of ${plural(all.length, "queue")} needs you.`),
    ),
    table("stack tasks queues", kColumns, all.map(row)),
  );
  return overview.at;
}
