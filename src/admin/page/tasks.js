// Tasks by state, searched and paged; and the dead letters, by what they failed of.

import { get, idPath, post, query } from "./api.js";
import { ago, ask, chip, count, fill, h, plural, toast } from "./dom.js";

const kPage = 50;

function when(task) {
  if (task.state === "scheduled") return ["due ", ago(task.due)];
  if (["running", "dead", "done", "cancelled"].includes(task.state)) return task.since ? ago(task.since) : "";
  return task.time ? ago(task.time) : "";
}

function table(tasks, base) {
  const rows = tasks.map((task) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, h("a", { href: `${base}/task/${idPath(task.state === "dead" ? task.id.replace(/~\d+$/, "") : task.id)}`, "data-key": task.key }, task.id)),
      h("td", { "data-label": "Type" }, task.type ?? ""),
      h("td", { "data-label": "State" }, chip(task.state, task.orphan ? "running, owner lost" : task.state)),
      h("td", { "data-label": "Time" }, when(task)),
      h("td", { "data-label": "Attempt", class: "number" }, task.attempt || ""),
      h("td", { "data-label": "Node" }, task.node ?? ""),
      h("td", { "data-label": "Error", class: "error" }, task.reason && task.error && task.reason !== task.error ? `${task.reason}: ${task.error}` : (task.error ?? task.reason ?? "")),
    ),
  );
  return h(
    "table",
    { class: "stack tasks" },
    h("thead", {}, h("tr", {}, ["Task", "Type", "State", "Time", "Attempt", "Node", "Error"].map((each) => h("th", { scope: "col" }, each)))),
    h("tbody", {}, rows),
  );
}

function pager(answer, parameters, path) {
  const cursors = parameters.get("cursors") ? parameters.get("cursors").split("|").map(decodeURIComponent) : [];
  const link = (list) => {
    const next = new URLSearchParams(parameters);
    if (list.length) next.set("cursors", list.map(encodeURIComponent).join("|"));
    else next.delete("cursors");
    return `${path}?${next}`;
  };
  const first = cursors.length * kPage;
  return h(
    "div",
    { class: "row pager" },
    h("span", { class: "quiet" }, answer.found ? `${count(first + 1)} to ${count(first + answer.tasks.length)} of ${count(answer.found)}` : ""),
    cursors.length ? h("a", { class: "button", href: link(cursors.slice(0, -1)), "data-key": "previous" }, "Previous") : null,
    answer.next ? h("a", { class: "button", href: link([...cursors, answer.next]), "data-key": "next", rel: "next" }, "Next") : null,
  );
}

/** The search row. It keeps what is being typed while the rest is drawn anew. */
function filters(types, parameters, path) {
  const go = (name, value) => {
    const next = new URLSearchParams(location.hash.split("?")[1] ?? ""); // as it is now
    if (value) next.set(name, value);
    else next.delete(name);
    next.delete("cursors");
    location.hash = `${path}?${next}`;
  };
  const chosen = parameters.get("type") ?? "";
  const names = Object.keys(types).filter(Boolean);
  if (chosen && !names.includes(chosen)) names.push(chosen);
  let timer;
  return h(
    "div",
    { class: "row filters" },
    h(
      "label",
      { class: "grow" },
      h("span", { class: "sr" }, "Search in id, type, serial key and error"),
      h("input", {
        type: "search",
        placeholder: "Search in id, type, serial key and error",
        value: parameters.get("text") ?? "",
        "data-key": "search",
        oninput: (event) => {
          clearTimeout(timer);
          timer = setTimeout(() => go("text", event.target.value), 300);
        },
      }),
    ),
    h(
      "label",
      {},
      h("span", { class: "sr" }, "Type"),
      h(
        "select",
        { "data-key": "type", onchange: (event) => go("type", event.target.value) },
        h("option", { value: "" }, "all types"),
        names.sort().map((name) => h("option", { value: name, selected: name === chosen }, types[name] === undefined ? name : `${name} (${count(types[name])})`)),
      ),
    ),
  );
}

function lastCursor(parameters) {
  const cursors = parameters.get("cursors");
  return cursors ? decodeURIComponent(cursors.split("|").pop()) : "";
}

function hidden(answer) {
  return answer.hidden.length ? h("p", { class: "notice" }, `Not everything is shown: the daemon's token may not read all of ${answer.hidden.join(", ")}.`) : null;
}

/** Draws all but the search row anew while somebody types there. */
function draw(view, top, search, rest) {
  const typing = view.querySelector(".filters")?.contains(document.activeElement);
  if (typing && view.dataset.drawn === location.hash.split("?")[0]) {
    const kept = view.querySelector(".filters");
    for (const element of [...view.children]) if (element !== kept) element.remove();
    kept.before(...top.filter(Boolean));
    kept.after(...rest.filter(Boolean));
  } else {
    fill(view, top, search, rest);
  }
  view.dataset.drawn = location.hash.split("?")[0];
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
    const states = ["", "running", "waiting", "scheduled", ...["unreadable", "too_large", "unnameable"].filter((each) => answer.counts[each]), "done"];
    const tabs = h(
      "nav",
      { class: "tabs", "aria-label": "States" },
      states.map((each) => {
        const next = new URLSearchParams(parameters);
        next.delete("cursors");
        if (each) next.set("state", each);
        else next.delete("state");
        const number = each === "" ? "" : (answer.counts[each] ?? (each === "done" ? "" : 0));
        return h(
          "a",
          { href: `${path}?${next}`, "aria-current": each === state ? "page" : null, "data-key": `state-${each}` },
          each === "" ? "all" : each.replaceAll("_", " "),
          number === "" ? null : h("span", { class: "badge" }, count(number)),
        );
      }),
    );
    const empty = state === "done" && !answer.found ? "No finished tasks are kept. \"history\" in the queue's configuration keeps them." : "No such tasks.";
    draw(
      view,
      [h("div", { class: "head" }, h("h1", {}, "Tasks"), h("a", { class: "button primary", href: `${base}/submit`, "data-key": "submit" }, "Submit a task")), tabs],
      filters(answer.types, parameters, path),
      [hidden(answer), answer.tasks.length ? table(answer.tasks, base) : h("p", { class: "quiet empty" }, empty), pager(answer, parameters, path)],
    );
    return answer.as_of;
  },
};

function bulk(group, queue, refresh) {
  const what = { type: group.type ?? undefined, reason: group.reason ?? undefined, error: group.error ?? undefined };
  const body = Object.values(what).some(Boolean) ? what : { all: true };
  const run = async (path, done) => {
    try {
      const { changed, refused, refusals } = await post(path, { queue }, body);
      toast(`${plural(changed, "dead letter")} ${done}${refused ? `, ${count(refused)} refused: ${refusals[0]?.error}` : ""}.`, { kind: refused ? "error" : "info" });
    } catch (error) {
      toast(error.message, { kind: "error" });
    }
    refresh();
  };
  return [
    h(
      "button",
      {
        type: "button",
        "data-key": `retry-${group.type}-${group.error}`,
        onclick: async () => {
          const sure = await ask({ title: `Retry ${plural(group.count, "dead letter")}?`, text: "Each becomes a waiting task again, as its producer wrote it.", confirm: "Retry" });
          if (sure) run("/v1/dead/retry", "retried");
        },
      },
      "Retry all",
    ),
    h(
      "button",
      {
        type: "button",
        class: "danger",
        "data-key": `purge-${group.type}-${group.error}`,
        onclick: async () => {
          const sure = await ask({ title: `Delete ${plural(group.count, "dead letter")} for good?`, text: "This cannot be undone.", confirm: "Delete", danger: true });
          if (sure) run("/v1/dead/purge", "deleted");
        },
      },
      "Purge all",
    ),
  ];
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
      filters(answer.types, parameters, path),
      [hidden(answer), answer.tasks.length ? table(answer.tasks, base) : h("p", { class: "quiet empty" }, narrowed ? "No such dead letters." : "No dead letters: no task was given up."), pager(answer, parameters, path)],
    );
    return answer.as_of;
  },
};
