// What lists share: tabs by state, the search row, pages.

import { count, fill, h } from "./dom.js";

export const kPage = 50;
export const kShortestInRecord = 3; // each such search reads all records

/** "all" and a tab for each state, with how many there are of it; of "done" that is not known. */
export function tabs(states, counts, parameters, path) {
  const chosen = parameters.get("state") ?? "";
  return h(
    "nav",
    { class: "tabs", "aria-label": "States" },
    ["", ...states].map((state) => {
      const next = new URLSearchParams(parameters);
      next.delete("cursors");
      if (state) next.set("state", state);
      else next.delete("state");
      const number = state === "" ? "" : (counts[state] ?? (state === "done" ? "" : 0));
      return h(
        "a",
        { href: `${path}?${next}`, "aria-current": state === chosen ? "page" : null, "data-key": `state-${state}` },
        state === "" ? "all" : state.replaceAll("_", " "),
        number === "" ? null : h("span", { class: "badge" }, count(number)),
      );
    }),
  );
}

/** `shown`: how many entries this page has. */
export function pager(answer, shown, parameters, path) {
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
    h("span", { class: "quiet" }, answer.found ? `${count(first + 1)} to ${count(first + shown)} of ${count(answer.found)}` : ""),
    cursors.length ? h("a", { class: "button", href: link(cursors.slice(0, -1)), "data-key": "previous" }, "Previous") : null,
    answer.next ? h("a", { class: "button", href: link([...cursors, answer.next]), "data-key": "next", rel: "next" }, "Next") : null,
  );
}

/** The search row, with a choice of types if there are `types`, and a box for a search in whole
 *  records. It keeps what is being typed while the rest is drawn again. */
export function filters(label, parameters, path, { types, inRecords } = {}) {
  const here = location.hash.split("?")[0];
  const go = (name, value) => {
    if (location.hash.split("?")[0] !== here) return; // the list was left while the search waited
    const next = new URLSearchParams(location.hash.split("?")[1] ?? ""); // as it is now
    if (value) next.set(name, value);
    else next.delete(name);
    next.delete("cursors");
    location.hash = `${path}?${next}`;
  };
  let timer;
  return h(
    "div",
    { class: "row filters" },
    h(
      "label",
      { class: "grow" },
      h("span", { class: "sr" }, label),
      h("input", {
        type: "search",
        placeholder: inRecords && parameters.get("in") === "record" ? `Search in parameters: ${kShortestInRecord} characters or more` : label,
        value: parameters.get("text") ?? "",
        "data-key": "search",
        oninput: (event) => {
          clearTimeout(timer);
          timer = setTimeout(() => go("text", event.target.value), 300);
        },
      }),
    ),
    inRecords
      ? h("label", { class: "check" }, h("input", { type: "checkbox", "data-key": "in-record", checked: parameters.get("in") === "record", onchange: (event) => go("in", event.target.checked ? "record" : "") }), "in parameters")
      : null,
    types ? typePicker(types, parameters.get("type") ?? "", go) : null,
  );
}

function typePicker(types, chosen, go) {
  const names = Object.keys(types).filter(Boolean);
  if (chosen && !names.includes(chosen)) names.push(chosen);
  return h(
    "label",
    {},
    h("span", { class: "sr" }, "Type"),
    h(
      "select",
      { "data-key": "type", onchange: (event) => go("type", event.target.value) },
      h("option", { value: "" }, "all types"),
      names.sort().map((name) => h("option", { value: name, selected: name === chosen }, types[name] === undefined ? name : `${name} (${count(types[name])})`)),
    ),
  );
}

export function lastCursor(parameters) {
  const cursors = parameters.get("cursors");
  return cursors ? decodeURIComponent(cursors.split("|").pop()) : "";
}

export function hidden(answer) {
  return answer.hidden.length ? h("p", { class: "notice" }, `Not everything is shown: the daemon's token may not read all of ${answer.hidden.join(", ")}.`) : null;
}

/** Draws all but the search row again while somebody types there. */
export function draw(view, top, search, rest) {
  const active = document.activeElement;
  const typing = active?.type !== "checkbox" && view.querySelector(".filters")?.contains(active);
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
