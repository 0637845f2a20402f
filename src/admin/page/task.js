// One task: its state, why it does not run, its output, its record, what happened to it.

import { get, getText, idPath, post } from "./api.js";
import { act, ago, ask, atEnd, button, card, chip, count, duration, facts, fill, h, toast } from "./dom.js";

const kMostOutput = 200_000; // characters kept on the page
const kEnded = ["dead", "done", "cancelled"];
export const kUnreadable = "unreadable"; // reasons of dead letters
export const kExpired = "expired";
const kSince = { dead: "Given up", done: "Done", cancelled: "Cancelled" };

/** The state in the words of "lictor list". */
export function stateChip(task) {
  return task.orphan ? h("span", { title: "Its owner died or lost leadership; the next leader runs it again." }, chip("orphan")) : chip(task.state);
}

function factsOf(task) {
  return facts([
    ["Key", h("code", {}, task.key)],
    ["Type", task.type],
    ["Order", task.time && ago(task.time)],
    ["Due", task.state === "scheduled" && ago(task.due)],
    ["Started", task.started && ago(task.started)],
    [kSince[task.state] ?? "Claimed", task.since && ago(task.since)],
    ["Took", task.took_ms !== null && duration(task.took_ms)],
    [task.state === "cancelled" ? "By" : "Node", task.node],
    ["Attempts", task.attempt ? `${task.attempt}${task.lost ? `, of which ${task.lost} lost their host` : ""}` : null],
    ["Serial key", task.serial_key],
    ["Reason", task.reason && h("span", { class: "bad" }, task.reason)],
    ["Error", task.error && h("span", { class: "bad pre" }, task.error)],
    ["Record", `${count(task.bytes)} bytes, created at index ${task.create_index}, modified at ${task.modify_index}`],
  ]);
}

/** JSON of an ended task holds the record of its producer as "record"; one that nobody could read it
 *  holds as text. */
export function recordText(task) {
  if (task.value !== undefined) {
    const ended = kEnded.includes(task.state) ? (task.value ?? {}) : {};
    if (ended.record === undefined && typeof ended.raw === "string") return ended.raw;
    if (ended.record === undefined && typeof ended.raw_base64 === "string") return `base64: ${ended.raw_base64}`;
    return JSON.stringify(ended.record ?? task.value, null, 2);
  }
  return task.raw ?? `base64: ${task.raw_base64}`;
}

function reasonText(reason) {
  const rest = Object.entries(reason).filter(([name, value]) => name !== "reason" && name !== "text" && name !== "message" && value !== null);
  const text = reason.text ?? reason.message ?? reason.reason;
  return [text, rest.length && !reason.text && !reason.message ? ` (${rest.map(([name, value]) => `${name}: ${typeof value === "object" ? JSON.stringify(value) : value}`).join(", ")})` : ""].join("");
}

/** The output of attempts, followed while the newest runs. Lives as long as the view shows the task. */
class Output {
  constructor(queue, id, signal) {
    Object.assign(this, { queue, id, signal, shown: null, offset: 0 });
    this.pre = h("pre", { class: "output", tabindex: "0", role: "log", "aria-label": "Output" });
    this.picker = h("select", { "aria-label": "Attempt", "data-key": "attempt", onchange: () => this.choose(this.picker.value) });
    this.note = h("span", { class: "quiet" });
    this.element = h("section", { class: "card" }, h("div", { class: "head" }, h("h2", {}, "Output"), this.picker, this.note), this.pre);
    this.element.hidden = true;
    this.run();
  }
  choose(token) {
    this.chosen = true;
    this.show(this.logs.find((each) => `${each.attempt}-${each.token}` === token));
    this.read().catch(() => {});
  }
  show(log) {
    this.shown = log;
    this.offset = 0;
    this.pre.textContent = "";
  }
  async run() {
    while (!this.signal.aborted) {
      try {
        await this.look();
      } catch (error) {
        if (this.signal.aborted) return;
        this.note.textContent = error.message;
      }
      await new Promise((resolve) => setTimeout(resolve, document.hidden ? 5000 : 1000));
    }
  }
  async look() {
    const parameters = { queue: this.queue, id: this.id, node: this.node };
    const { logs } = await get("/v1/logs", parameters, { signal: this.signal, quiet: true });
    this.logs = logs;
    this.element.hidden = logs.length === 0;
    if (logs.length === 0) return;
    const names = logs.map((each) => `${each.attempt}-${each.token}`);
    if (names.join() !== this.names) {
      this.names = names.join();
      this.picker.replaceChildren(...logs.map((each, i) => h("option", { value: names[i] }, `attempt ${each.attempt}`)));
      if (!this.chosen || !this.shown) this.show(logs.at(-1));
      this.picker.value = `${this.shown.attempt}-${this.shown.token}`;
    }
    const now = logs.find((each) => each.attempt === this.shown.attempt && each.token === this.shown.token);
    if (now) this.shown = now;
    this.note.textContent = this.shown.error ? `not all of it could be kept: ${this.shown.error}` : this.shown.running ? "running" : `${count(this.shown.size)} bytes`;
    if (this.shown.size > this.offset) await this.read();
  }
  async read() {
    const response = await getText(
      "/v1/logs",
      { queue: this.queue, id: this.id, node: this.node, attempt: this.shown.attempt, token: this.shown.token, offset: this.offset },
      { signal: this.signal, quiet: true },
    );
    if (!response) return;
    const end = atEnd(this.pre);
    this.offset += new TextEncoder().encode(response).length;
    const text = this.pre.textContent + response;
    this.pre.textContent = text.length > kMostOutput ? text.slice(-kMostOutput) : text;
    if (end) this.pre.scrollTop = this.pre.scrollHeight;
  }
}

let output = null;

/** Puts a cancelled task back: its record to the byte, with the id that it had. */
async function undoCancel(queue, task) {
  const begin = task.text.indexOf("{") + 1;
  const named = task.value.taskId !== undefined;
  const comma = Object.keys(task.value).length ? "," : "";
  const text = named ? task.text : `{"taskId":${JSON.stringify(task.id)}${comma}${task.text.slice(begin)}`;
  try {
    await post("/v1/tasks", { queue }, text);
    toast(`Task ${task.id} is back.`);
  } catch (error) {
    toast(error.message, { kind: "error" });
  }
}

/** What helps a dead letter; null: another try cannot. */
function retryButton(task, retry, retryWithout) {
  if (task.reason === kUnreadable) return null;
  if (task.reason === kExpired) return button("Retry without expiry", retryWithout, { class: "primary" });
  return button("Retry", retry, { class: "primary" });
}

function actions(task, { queue, base, refresh }) {
  const { id, state } = task;
  const change = (path, done) => act(() => post(path, { queue }, {}), done, refresh);
  const retry = () => change(`/v1/dead/${idPath(id)}/retry`, { text: `Task ${task.task_id ?? id} waits again.` });
  const retryWithout = async () => {
    const sure = await ask({ title: `Retry ${id} without its expireAt?`, text: "It becomes a waiting task again, as its producer wrote it, but for expireAt, which has passed.", confirm: "Retry" });
    if (sure) act(() => post(`/v1/dead/${idPath(id)}/retry`, { queue }, { drop_expiry: true }), { text: `Task ${task.task_id ?? id} waits again, without expireAt.` }, refresh);
  };
  const purge = async () => {
    const sure = await ask({ title: `Delete the dead letter ${id} for good?`, text: "This cannot be undone.", confirm: "Delete", danger: true });
    if (sure) change(`/v1/dead/${idPath(id)}/purge`, { text: "Deleted.", leave: `${base}/dead` });
  };
  const cancel = async () => {
    const running = state === "running";
    const sure = await ask({
      title: `Cancel task ${id}?`,
      text: running ? "Its job is stopped: SIGTERM, then SIGKILL after kill_grace." : "It is deleted and never runs.",
      confirm: "Cancel the task",
      danger: true,
    });
    const undo = !running && task.text && typeof task.value === "object" ? { action: "Undo", run: () => undoCancel(queue, task) } : {};
    if (sure) change(`/v1/tasks/${idPath(id)}/cancel`, { text: `Task ${id} is cancelled.`, ...undo });
  };
  if (state === "done" || state === "cancelled") return null;
  return h(
    "div",
    { class: "row" },
    state === "dead" ? [retryButton(task, retry, retryWithout), button("Purge", purge, { class: "danger" })] : button("Cancel", cancel, { class: "danger" }),
  );
}

export const task = {
  title: "Task",
  list: "tasks",
  async render(view, context) {
    const { queue, id, signal } = context;
    if (output?.id !== id || output.queue !== queue || output.signal.aborted) {
      output = new Output(queue, id, context.viewSignal);
    }
    let found = [];
    let error = null;
    try {
      found = (await get(`/v1/tasks/${idPath(id)}`, { queue }, { signal })).tasks;
    } catch (caught) {
      if (signal.aborted || caught.status !== 404) throw caught;
      error = caught;
    }
    const now = found[0];
    output.node = now?.node;
    const [why, history] = await Promise.all([
      now && !kEnded.includes(now.state)
        ? get(`/v1/tasks/${idPath(id)}/why`, { queue }, { signal }).catch((caught) => {
            if (signal.aborted) throw caught;
            return [{ text: `not known: ${caught.message}` }];
          })
        : [],
      get("/v1/events", { queue, format: "json" }, { signal }).catch((caught) => {
        if (signal.aborted) throw caught;
        return { events: [] };
      }),
    ]);
    const reasons = (Array.isArray(why) ? why : [why]).filter((each) => each.reason !== "running");
    const own = history.events.filter((event) => event.task && (event.task === now?.key || event.task.endsWith(`/${id}`)));
    if (found.length === 0) {
      fill(
        view,
        h("div", { class: "head" }, h("h1", {}, id)),
        h("p", { class: "notice" }, own.some((event) => event.event === "done") ? "This task is done, and the queue keeps no history of it." : error.message),
        output.element,
        events(own),
      );
      return undefined;
    }
    fill(
      view,
      found.map((each, i) => [
        h("div", { class: "head" }, h(i === 0 ? "h1" : "h2", {}, each.id), stateChip(each), actions(each, context)),
        each.state === "dead" && each.reason === kExpired ? h("p", { class: "notice" }, "It had not started when its expireAt passed. “Retry without expiry” leaves expireAt out, as does ", h("code", {}, `lictor retry ${each.id} --drop-expiry`), ".") : null,
        each.state === "dead" && each.reason === kUnreadable ? h("p", { class: "notice fault" }, "No task could be read from its record, so it cannot be retried. Its producer has to write it again; then purge this one.") : null,
        i === 0 && reasons.length
          ? h("section", { class: "card why" }, h("h2", {}, "Why it is not running"), h("ul", {}, reasons.map((reason) => h("li", {}, reasonText(reason)))))
          : null,
        h("section", { class: "card" }, factsOf(each)),
        i === 0 ? output.element : null,
        each.output_tail && (i > 0 || output.element.hidden || output.shown?.error) ? card("The end of its output", h("pre", { class: "output", tabindex: "0" }, each.output_tail)) : null,
        each.state === "done" && each.result !== null ? card("Result", h("pre", { tabindex: "0" }, JSON.stringify(each.result, null, 2))) : null,
        card(each.reason === kUnreadable ? "Record, as it was written" : "Record", h("pre", { tabindex: "0" }, recordText(each))),
      ]),
      events(own),
    );
    return undefined;
  },
};

/** "took 2 s", "again in 5 s" */
function howLong(event) {
  for (const name of ["took", "again_in", "claimed_for", "left"]) {
    if (event[`${name}_ms`]) return `${name.replaceAll("_", " ")} ${duration(event[`${name}_ms`])}`;
  }
  return null;
}

function events(list) {
  if (list.length === 0) return null;
  return card(
    "What happened",
    h(
      "ol",
      { class: "history" },
      list.reverse().map((event) =>
        h(
          "li",
          {},
          ago(event.at),
          h("strong", {}, event.event.replaceAll("_", " ")),
          h("span", {}, [event.attempt ? `attempt ${event.attempt}` : null, howLong(event), event.text].filter(Boolean).join(", ")),
        ),
      ),
    ),
  );
}
