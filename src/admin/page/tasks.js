// Tasks by state, searched and paged; and the dead letters, by what they failed of.

import { get, idPath, post, query } from "./api.js";
import { act, ago, ask, button, chip, count, h, plural, table } from "./dom.js";
import { draw, filters, hidden, kPage, lastCursor, pager, tabs } from "./list.js";

const kSearch = "Search in id, type, serial key and error";

function when(task) {
  if (task.state === "scheduled") return ["due ", ago(task.due)];
  if (["running", "dead", "done", "cancelled"].includes(task.state)) return task.since ? ago(task.since) : "";
  return task.time ? ago(task.time) : "";
}

function tableOf(tasks, base) {
  const rows = tasks.map((task) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, h("a", { href: `${base}/task/${idPath(task.task_id ?? task.id)}`, "data-key": task.key }, task.id)),
      h("td", { "data-label": "Type" }, task.type ?? ""),
      h("td", { "data-label": "State" }, chip(task.state, task.orphan ? "running, owner lost" : task.state)),
      h("td", { "data-label": "Time" }, when(task)),
      h("td", { "data-label": "Attempt", class: "number" }, task.attempt || ""),
      h("td", { "data-label": "Node" }, task.node ?? ""),
      h("td", { "data-label": "Error", class: "error" }, task.reason && task.error && task.reason !== task.error ? `${task.reason}: ${task.error}` : (task.error ?? task.reason ?? "")),
    ),
  );
  return table("stack tasks", ["Task", "Type", "State", "Time", "Attempt", "Node", "Error"], rows);
}

export const tasks = {
  title: "Tasks",
  async render(view, { queue, base, parameters, signal, newerThan }) {
    const path = `${base}/tasks`;
    const state = parameters.get("state") ?? "";
    const answer = await get(
      "/v1/tasks",
      { queue, state, type: parameters.get("type"), text: parameters.get("text"), limit: kPage, cursor: lastCursor(parameters), newer_than: newerThan },
      { signal },
    );
    const states = ["running", "waiting", "scheduled", ...["unreadable", "too_large", "unnameable"].filter((each) => answer.counts[each]), "done"];
    const empty = state === "done" && !answer.found ? "No finished tasks are kept. \"history\" in the queue's configuration keeps them." : "No such tasks.";
    draw(
      view,
      [h("div", { class: "head" }, h("h1", {}, "Tasks"), h("a", { class: "button primary", href: `${base}/submit`, "data-key": "submit" }, "Submit a task")), tabs(states, answer.counts, parameters, path)],
      filters(kSearch, parameters, path, answer.types),
      [hidden(answer), answer.tasks.length ? tableOf(answer.tasks, base) : h("p", { class: "quiet empty" }, empty), pager(answer, answer.tasks.length, parameters, path)],
    );
    return answer.as_of;
  },
};

function bulk(group, queue, refresh) {
  const what = { type: group.type ?? undefined, reason: group.reason ?? undefined, error: group.error ?? undefined };
  const body = Object.values(what).some(Boolean) ? what : { all: true };
  const told = (done) => ({ changed, refused, refusals }) => ({
    text: `${plural(changed, "dead letter")} ${done}${refused ? `, ${count(refused)} refused: ${refusals[0]?.error}` : ""}.`,
    kind: refused ? "error" : "info",
  });
  const run = async (path, done, question) => {
    if (await ask(question)) act(() => post(path, { queue }, body), told(done), refresh);
  };
  const retry = () => run("/v1/dead/retry", "retried", { title: `Retry ${plural(group.count, "dead letter")}?`, text: "Each becomes a waiting task again, as its producer wrote it.", confirm: "Retry" });
  const purge = () => run("/v1/dead/purge", "deleted", { title: `Delete ${plural(group.count, "dead letter")} for good?`, text: "This cannot be undone.", confirm: "Delete", danger: true });
  const of = `${group.type}-${group.error}`;
  return [button("Retry all", retry, { "data-key": `retry-${of}` }), button("Purge all", purge, { class: "danger", "data-key": `purge-${of}` })];
}

export const dead = {
  title: "Dead letters",
  async render(view, { queue, base, parameters, signal, refresh, newerThan }) {
    const path = `${base}/dead`;
    const answer = await get(
      "/v1/dead",
      {
        queue,
        type: parameters.get("type"),
        reason: parameters.get("reason"),
        error: parameters.get("error"),
        text: parameters.get("text"),
        limit: kPage,
        cursor: lastCursor(parameters),
        newer_than: newerThan,
      },
      { signal },
    );
    const groups = answer.groups.map((group) =>
      h(
        "li",
        {},
        h(
          "div",
          { class: "grow" },
          h("strong", {}, plural(group.count, "dead letter")),
          group.type ? [" of type ", h("code", {}, group.type)] : " that no task could be read from",
          h("p", { class: "error" }, [group.reason, group.error].filter((each, i, all) => each && all.indexOf(each) === i).join(": ")),
          h("p", { class: "quiet" }, "newest ", ago(group.newest), group.count > 1 ? [", oldest ", ago(group.oldest)] : null),
        ),
        h(
          "div",
          { class: "row" },
          h("a", { class: "button", href: `${path}${query({ type: group.type, reason: group.reason, error: group.error })}` }, "Show"),
          bulk(group, queue, refresh),
        ),
      ),
    );
    const narrowed = ["type", "reason", "error", "text"].some((name) => parameters.get(name));
    draw(
      view,
      [
        h("div", { class: "head" }, h("h1", {}, "Dead letters"), narrowed ? h("a", { class: "button", href: path }, "Show all") : null),
        answer.groups.length && !narrowed ? h("ul", { class: "groups card" }, groups) : null,
      ],
      filters(kSearch, parameters, path, answer.types),
      [hidden(answer), answer.tasks.length ? tableOf(answer.tasks, base) : h("p", { class: "quiet empty" }, narrowed ? "No such dead letters." : "No dead letters: no task was given up."), pager(answer, answer.tasks.length, parameters, path)],
    );
    return answer.as_of;
  },
};
