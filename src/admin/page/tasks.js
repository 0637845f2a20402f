// Tasks by state, searched and paged; and the dead letters, by what they failed of.

import { get, idPath, post, query } from "./api.js";
import { act, ago, ask, button, chip, count, h, plural, table } from "./dom.js";
import { draw, filters, hidden, kPage, kShortestInRecord, lastCursor, pager, tabs } from "./list.js";
import { kExpired, kUnreadable, stateChip } from "./task.js";

const kSearch = "Search in id, type, serial key and error";

/** What to ask for: the text is looked for in what lists show, or in the whole records. */
function searchOf(parameters) {
  const text = parameters.get("text") ?? "";
  return parameters.get("in") === "record" ? { record: text.length < kShortestInRecord ? "" : text } : { text };
}

/** Tasks that are chosen by their boxes. They are forgotten where others are listed. */
const chosen = { place: "", ids: new Set() };

function choose(place, tasks) {
  if (chosen.place !== place) Object.assign(chosen, { place, ids: new Set() });
  const shown = new Set(tasks.map((task) => task.id));
  for (const id of chosen.ids) if (!shown.has(id)) chosen.ids.delete(id);
}

function box(label, key, checked, onchange) {
  return h("input", { type: "checkbox", "aria-label": label, "data-key": key, checked, onchange });
}

function when(task) {
  if (task.state === "scheduled") return ["due ", ago(task.due)];
  if (["running", "dead", "done", "cancelled"].includes(task.state)) return task.since ? ago(task.since) : "";
  return task.time ? ago(task.time) : "";
}

/** `changed`: a box was; null: nothing can be done to these. */
function tableOf(tasks, base, changed) {
  const pick = (ids, on) => {
    for (const id of ids) chosen.ids[on ? "add" : "delete"](id);
    changed();
  };
  const all = tasks.map((task) => task.id);
  const rows = tasks.map((task) =>
    h(
      "tr",
      {},
      changed ? h("td", { class: "pick" }, box(`Choose ${task.id}`, `pick-${task.id}`, chosen.ids.has(task.id), (event) => pick([task.id], event.target.checked))) : null,
      h("th", { scope: "row" }, h("a", { href: `${base}/task/${idPath(task.task_id ?? task.id)}`, "data-key": task.key }, task.id)),
      h("td", { "data-label": "Type" }, task.type ?? ""),
      h("td", { "data-label": "State" }, stateChip(task)),
      h("td", { "data-label": "Time" }, when(task)),
      h("td", { "data-label": "Attempt", class: "number" }, task.attempt || ""),
      h("td", { "data-label": "Node" }, task.node ?? ""),
      h("td", { "data-label": "Error", class: "error" }, task.reason && task.error && task.reason !== task.error ? `${task.reason}: ${task.error}` : (task.error ?? task.reason ?? "")),
    ),
  );
  const pickAll = changed ? h("label", { class: "pick-all" }, box("Choose all of this page", "pick-all", all.length > 0 && all.every((id) => chosen.ids.has(id)), (event) => pick(all, event.target.checked)), h("span", {}, "all of this page")) : null;
  return table(changed ? "stack tasks picked" : "stack tasks", [pickAll, "Task", "Type", "State", "Time", "Attempt", "Node", "Error"], rows);
}

/** What came of a change to many. */
const bulkText = (done, what) => ({ changed, refused, refusals }) => ({
  text: `${plural(changed, what)} ${done}${refused ? `, ${count(refused)} refused: ${refusals[0]?.error}` : ""}.`,
  kind: refused ? "error" : "info",
});

/** The row of what can be done to the chosen; it stays while none is, so that nothing jumps. */
function chosenRow(actions, redraw) {
  const number = chosen.ids.size;
  const clear = () => {
    chosen.ids.clear();
    redraw();
  };
  return h(
    "div",
    { class: "row chosen", role: "group", "aria-label": "Chosen tasks" },
    h("span", { class: number ? null : "quiet" }, number ? `${count(number)} chosen` : "None chosen"),
    actions.map(([text, run, more]) => button(text, run, { disabled: number === 0, ...more })),
    number ? button("Clear", clear, { class: "ghost" }) : null,
  );
}

/** Posts the ids of the chosen. `question`: see ask(). */
async function changeChosen(path, queue, what, done, question, refresh, more = {}) {
  const ids = [...chosen.ids];
  if (!(await ask(question))) return;
  await act(() => post(path, { queue }, { ids, ...more }), bulkText(done, what), refresh);
  chosen.ids.clear();
  refresh();
}

export const tasks = {
  title: "Tasks",
  async render(view, { queue, base, parameters, signal, refresh, newerThan }) {
    const path = `${base}/tasks`;
    const state = parameters.get("state") ?? "";
    const answer = await get(
      "/v1/tasks",
      { queue, state, type: parameters.get("type"), ...searchOf(parameters), limit: kPage, cursor: lastCursor(parameters), newer_than: newerThan },
      { signal },
    );
    const states = ["running", "waiting", "scheduled", ...["orphan", "unreadable", "too_large", "unnameable"].filter((each) => answer.counts[each] || each === state), "done"];
    const empty = state === "done" && !answer.found ? "No finished tasks are kept. \"history\" in the queue's configuration keeps them." : "No such tasks.";
    const number = () => plural(chosen.ids.size, "task");
    const cancel = () =>
      changeChosen("/v1/tasks/cancel", queue, "task", "cancelled", { title: `Cancel ${number()}?`, text: "They are deleted and never run; the jobs of those that run are stopped. This cannot be undone.", confirm: "Cancel the tasks", danger: true }, refresh);
    const list = answer.tasks;
    choose(location.hash, list);
    const redraw = () => show();
    const show = () => draw(
      view,
      [h("div", { class: "head" }, h("h1", {}, "Tasks"), h("a", { class: "button primary", href: `${base}/submit`, "data-key": "submit" }, "Submit a task")), tabs(states, answer.counts, parameters, path)],
      filters(kSearch, parameters, path, { types: answer.types, inRecords: true }),
      [hidden(answer), state !== "done" && list.length ? chosenRow([["Cancel chosen", cancel, { class: "danger" }]], redraw) : null, list.length ? tableOf(list, base, state === "done" ? null : redraw) : h("p", { class: "quiet empty" }, empty), pager(answer, answer.tasks.length, parameters, path)],
    );
    show();
    return answer.as_of;
  },
};

function bulk(group, queue, refresh) {
  const what = { type: group.type ?? undefined, reason: group.reason ?? undefined, error: group.error ?? undefined };
  const body = Object.values(what).some(Boolean) ? what : { all: true };
  const run = async (path, done, question, more = {}) => {
    if (await ask(question)) act(() => post(path, { queue }, { ...body, ...more }), bulkText(done, "dead letter"), refresh);
  };
  const isExpired = group.reason === kExpired;
  const retry = () => run("/v1/dead/retry", "retried", { title: `Retry ${plural(group.count, "dead letter")}?`, text: isExpired ? kRetryExpired : kRetry, confirm: "Retry" }, isExpired ? { drop_expiry: true } : {});
  const purge = () => run("/v1/dead/purge", "deleted", { title: `Delete ${plural(group.count, "dead letter")} for good?`, text: "This cannot be undone.", confirm: "Delete", danger: true });
  const of = `${group.type}-${group.error}`;
  // What cannot be read does not become readable by another try.
  const again = group.reason === kUnreadable || group.reason === null ? null : button(isExpired ? "Retry all without expiry" : "Retry all", retry, { "data-key": `retry-${of}` });
  return [again, button("Purge all", purge, { class: "danger", "data-key": `purge-${of}` })];
}

const kRetry = "Each becomes a waiting task again, as its producer wrote it.";
const kRetryExpired = "Each becomes a waiting task again, without its expireAt, which has passed.";

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
        ...searchOf(parameters),
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
          group.reason === kUnreadable ? " that no task could be read from" : group.type ? [" of type ", h("code", {}, group.type)] : " without a type",
          h("p", { class: "error" }, [group.reason, group.error].filter((each, i, all) => each && all.indexOf(each) === i).join(": ")),
          group.reason === kUnreadable ? h("p", {}, "Their producer has to write them again.") : null,
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
    choose(location.hash, answer.tasks);
    const redraw = () => show();
    const number = () => plural(chosen.ids.size, "dead letter");
    const retry = () => {
      const drops = answer.tasks.some((task) => chosen.ids.has(task.id) && task.reason === kExpired);
      changeChosen("/v1/dead/retry", queue, "dead letter", "retried", { title: `Retry ${number()}?`, text: drops ? `${kRetry} Where expireAt has passed it is left out.` : kRetry, confirm: "Retry" }, refresh, { drop_expiry: drops });
    };
    const purge = () => changeChosen("/v1/dead/purge", queue, "dead letter", "deleted", { title: `Delete ${number()} for good?`, text: "This cannot be undone.", confirm: "Delete", danger: true }, refresh);
    const show = () => draw(
      view,
      [
        h("div", { class: "head" }, h("h1", {}, "Dead letters"), narrowed ? h("a", { class: "button", href: path }, "Show all") : null),
        answer.groups.length && !narrowed ? h("ul", { class: "groups card" }, groups) : null,
      ],
      filters(kSearch, parameters, path, { types: answer.types, inRecords: true }),
      [hidden(answer), answer.tasks.length ? chosenRow([["Retry chosen", retry], ["Purge chosen", purge, { class: "danger" }]], redraw) : null, answer.tasks.length ? tableOf(answer.tasks, base, redraw) : h("p", { class: "quiet empty" }, narrowed ? "No such dead letters." : "No dead letters: no task was given up."), pager(answer, answer.tasks.length, parameters, path)],
    );
    show();
    return answer.as_of;
  },
};
