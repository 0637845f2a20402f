// Elements, times and sizes. Text from the daemon becomes text nodes only, never markup.

/** An element: h("a", { href: "#/", class: "x", onclick: f }, "text", child, null, [more]). */
export function h(tag, attributes, ...children) {
  const svg = tag === "svg" || attributes?.svg;
  const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false || name === "svg") continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "disabled" || name === "selected") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Replaces the children of `parent`. Focus stays on the element of the same data-key, and long texts
 *  stay scrolled as they were: those that were at their end, at their end. */
export function fill(parent, ...children) {
  const key = parent.contains(document.activeElement) ? document.activeElement?.dataset?.key : undefined;
  const tops = [...parent.querySelectorAll("pre")].map((pre) => (atEnd(pre) ? Infinity : pre.scrollTop));
  parent.replaceChildren(...children.flat(Infinity).filter(Boolean));
  if (key) parent.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
  parent.querySelectorAll("pre").forEach((pre, i) => {
    if (tops[i] === Infinity && pre.classList.contains("output")) pre.scrollTop = pre.scrollHeight;
    else if (tops[i] > 0 && tops[i] !== Infinity) pre.scrollTop = tops[i];
  });
}

/** Whether the last line is shown. */
export function atEnd(pre) {
  return pre.scrollTop + pre.clientHeight >= pre.scrollHeight - 4;
}

const kUnits = [
  [86400, "d"],
  [3600, "h"],
  [60, "min"],
  [1, "s"],
];

/** 95 000 ms is "1 min 35 s". */
export function duration(ms) {
  if (ms === null || ms === undefined) return "";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  let seconds = Math.round(ms / 1000);
  const parts = [];
  for (const [size, unit] of kUnits) {
    if (seconds < size && parts.length === 0) continue;
    const count = Math.floor(seconds / size);
    seconds -= count * size;
    if (count > 0) parts.push(`${count} ${unit}`);
    if (parts.length === 2) break;
  }
  return parts.join(" ");
}

/** How far the daemon's clock is ahead of this one, in ms. */
export const clock = { ahead: 0 };
const daemonNow = () => Date.now() + clock.ahead;

/** "3 min ago", "in 2 h", "now". */
export function relative(time, now = daemonNow()) {
  const ms = new Date(time).getTime() - now;
  if (Number.isNaN(ms)) return "";
  if (Math.abs(ms) < 1500) return "now";
  const seconds = Math.abs(ms) / 1000;
  const [size, unit] = kUnits.find(([each]) => seconds >= each) ?? [1, "s"];
  const text = `${Math.floor(seconds / size)} ${unit}`;
  return ms < 0 ? `${text} ago` : `in ${text}`;
}

/** A time that keeps its distance up to date, with the whole time as its title. */
export function ago(time) {
  if (!time) return "";
  return h("time", { datetime: time, title: new Date(time).toLocaleString(), "data-ago": "" }, relative(time));
}
setInterval(() => {
  for (const element of document.querySelectorAll("time[data-ago]")) {
    const text = relative(element.getAttribute("datetime"));
    if (element.textContent !== text) element.textContent = text;
  }
}, 1000);

export function count(number) {
  return (number ?? 0).toLocaleString("en-US").replaceAll(",", "\u202f");
}

export function plural(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** [0, 1, 2, 7] is "0-2, 7". */
export function ranges(numbers) {
  const parts = [];
  for (const number of numbers) {
    const last = parts.at(-1);
    if (last && last[1] === number - 1) last[1] = number;
    else parts.push([number, number]);
  }
  return parts.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(", ");
}

/** A table whose rows are cards on a narrow screen. A column that is null is left out. */
export function table(kind, columns, rows) {
  return h(
    "table",
    { class: kind },
    h("thead", {}, h("tr", {}, columns.filter(Boolean).map((each) => h("th", { scope: "col" }, each)))),
    h("tbody", {}, rows),
  );
}

/** Names with their values; those without a value are left out. */
export function facts(rows) {
  return h("dl", { class: "facts" }, rows.filter(([, value]) => value).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

export function card(title, ...children) {
  return h("section", { class: "card" }, h("h2", {}, title), children);
}

/** A button. What it says is its data-key. */
export function button(text, onclick, more = {}) {
  return h("button", { type: "button", "data-key": text.toLowerCase().replaceAll(" ", "-"), onclick, ...more }, text);
}

export function chip(state, text = state) {
  return h("span", { class: "chip", "data-state": state }, text.replaceAll("_", " "));
}

/** A message at the edge of the screen, with at most one action. */
export function toast(text, { kind = "info", action, run } = {}) {
  const box = document.getElementById("toasts");
  const element = h("div", { class: "toast", "data-kind": kind }, h("span", {}, text));
  const close = () => element.remove();
  if (action) element.append(h("button", { type: "button", class: "link", onclick: () => (close(), run()) }, action));
  element.append(h("button", { type: "button", class: "ghost", "aria-label": "Close", onclick: close }, "×"));
  box.append(element);
  setTimeout(close, kind === "error" ? 15000 : 8000);
}

/** Makes a change by `send()` and says what came of it. `done`: { text, action, run, leave }, or what
 *  makes it of the answer; `leave` is where the page goes then. */
export async function act(send, done, refresh) {
  try {
    const answer = await send();
    const { leave, ...options } = typeof done === "function" ? done(answer) : done;
    toast(answer.changed === false ? "It was so already." : options.text, options);
    if (leave) location.hash = leave;
  } catch (error) {
    toast(error.message, { kind: "error" });
  }
  refresh();
}

/** Asks in a dialog. Resolves to null when it is closed, else to the values of its fields. */
export function ask({ title, text, fields = [], confirm = "OK", danger = false }) {
  return new Promise((resolve) => {
    const inputs = fields.map((field) =>
      h("label", { class: "field" }, h("span", {}, field.label), h("input", { name: field.name, type: field.type ?? "text", value: field.value ?? "", autocomplete: "off" })),
    );
    const form = h(
      "form",
      { method: "dialog" },
      h("h2", { id: "ask-title" }, title),
      text ? h("p", {}, text) : null,
      inputs,
      h(
        "div",
        { class: "row end" },
        h("button", { type: "submit", value: "", formnovalidate: true, class: "ghost" }, "Cancel"),
        h("button", { type: "submit", value: "yes", class: danger ? "danger" : "primary", autofocus: fields.length === 0 }, confirm),
      ),
    );
    const dialog = h("dialog", { "aria-labelledby": "ask-title" }, form);
    // Enter in a field means yes, not the first button.
    form.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && event.target.tagName === "INPUT") {
        event.preventDefault();
        dialog.close("yes");
      }
    });
    dialog.addEventListener("close", () => {
      dialog.remove();
      const values = Object.fromEntries(new FormData(form));
      resolve(dialog.returnValue === "yes" ? values : null);
    });
    document.body.append(dialog);
    dialog.showModal();
    inputs[0]?.querySelector("input").focus();
  });
}
