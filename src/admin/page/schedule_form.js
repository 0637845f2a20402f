// A new schedule, and changes to one. What the form has no field for stays as it was written.

import { get, idPath, put } from "./api.js";
import { fill, h, toast } from "./dom.js";
import { join, split, withMember } from "./json.js";
import { field } from "./submit.js";

const kRules = [
  ["cron", "Cron expression", "30 2 * * *"],
  ["every", "Every", "10m"],
  ["at", "At these times, JSON", '["2026-12-24T18:00:00+01:00"]'],
];
const kOfLeader = ["lastTick", "lastTask", "fromConfig"]; // the leader alone writes these
// Fields that hold text: name, label, note.
const kTexts = [
  ["timezone", "Time zone", "Of a cron expression, as Europe/Rome. Empty: UTC."],
  ["start", "No tick before", "As 2026-12-01T00:00:00+01:00. Empty: from now on."],
  ["end", "No tick after", null],
  ["jitter", "Jitter", "Tasks become due up to this later, as 30s."],
];
const kChoices = [
  ["missed", "Missed ticks", [["skip", "make no task"], ["once", "make one task, of the newest"], ["all", "make a task of each"]]],
  ["overlap", "While the last task waits or runs", [["skip", "a tick makes no task"], ["queue", "its task starts after the last one"], ["allow", "its task may run beside it"]]],
];

const find = (members, name) => members.find(([each]) => each === name)?.[1];

/** What an input shows of a member. */
function shownOf(members, name) {
  const text = find(members, name);
  if (text === undefined || text === "null") return "";
  return text.startsWith('"') ? JSON.parse(text) : text;
}

function input(name, value, more = {}) {
  return h("input", { name, value, autocomplete: "off", spellcheck: "false", ...more });
}

function select(name, choices, value) {
  const known = choices.some(([each]) => each === value) || !value;
  return h("select", { name }, (known ? choices : [...choices, [value, value]]).map(([each, text]) => h("option", { value: each, selected: each === (value || choices[0][0]) }, `${each}: ${text}`)));
}

/** Reads the form into the members of the record. Throws with what is wrong, and with the field. */
function recordOf(form, old) {
  const wrong = (name, text) => Object.assign(new Error(text), { field: name });
  const value = (name) => form.elements[name].value.trim();
  const rule = value("rule");
  let members = old.filter(([name]) => !kOfLeader.includes(name));
  const set = (name, text) => {
    if (shownOf(old, name) !== text) members = withMember(members, name, text ? JSON.stringify(text) : null);
  };
  const when = value("when");
  if (!when) throw wrong("when", "When: expected an expression, a duration or times.");
  for (const [name] of kRules) {
    if (name !== rule) members = members.filter(([each]) => each !== name);
  }
  if (rule !== "at") set(rule, when);
  else {
    try {
      JSON.parse(when);
    } catch (error) {
      throw wrong("when", `When: expected a JSON list of times: ${error.message}`);
    }
    members = withMember(members, "at", when);
  }
  for (const [name] of kTexts) set(name, value(name));
  for (const [name, , choices] of kChoices) {
    if (value(name) !== (shownOf(old, name) || choices[0][0])) set(name, value(name));
  }
  if (!value("type")) throw wrong("type", "Type: expected the name of an executor.");
  try {
    JSON.parse(value("para"));
  } catch (error) {
    throw wrong("para", `Parameters: expected JSON: ${error.message}`);
  }
  let task = split(find(old, "task") ?? "{}");
  if (shownOf(task, "taskType") !== value("type")) task = withMember(task, "taskType", JSON.stringify(value("type")));
  if ((find(task, "taskPara") ?? "{}") !== value("para")) task = withMember(task, "taskPara", value("para"));
  return join(withMember(members, "task", join(task)));
}

/** `name`: of the schedule that is changed; null: a new one. `text`: its record. */
function formOf(name, text, types, save) {
  const old = split(text);
  const task = split(find(old, "task") ?? "{}");
  const rule = kRules.find(([each]) => find(old, each) !== undefined)?.[0] ?? "cron";
  const bad = h("p", { class: "bad", role: "alert" });
  const when = input("when", shownOf(old, rule), { placeholder: kRules.find(([each]) => each === rule)[2] });
  const ruleChanged = (event) => (when.placeholder = kRules.find(([each]) => each === event.target.value)[2]);
  const rules = h("select", { name: "rule", "aria-label": "Kind of rule", onchange: ruleChanged }, kRules.map(([each, label]) => h("option", { value: each, selected: each === rule }, label)));
  const form = h(
    "form",
    { class: "card form", novalidate: true },
    name === null ? field("Name", input("name", ""), "It may hold slashes: db/nightly. The tasks are called after it.") : null,
    h("div", { class: "row rule" }, field("Rule", rules), h("div", { class: "grow" }, field("When", when))),
    kTexts.map(([each, label, note]) => field(label, input(each, shownOf(old, each)), note)),
    kChoices.map(([each, label, choices]) => field(label, select(each, choices, shownOf(old, each)))),
    field("Type", input("type", shownOf(task, "taskType"), { list: "types" }), types.length ? `One of: ${types.join(", ")}` : null),
    h("datalist", { id: "types" }, types.map((type) => h("option", { value: type }))),
    field("Parameters, JSON", h("textarea", { name: "para", rows: 6, spellcheck: "false" }, find(task, "taskPara") ?? "{}"), "{tick} in a string stands for the tick."),
    bad,
    h("div", { class: "row end" }, h("button", { type: "submit", class: "primary" }, name === null ? "Add the schedule" : "Save")),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    bad.textContent = "";
    try {
      const to = name ?? form.elements.name.value.trim();
      if (!to) throw Object.assign(new Error("Name: expected one."), { field: "name" });
      await save(to, recordOf(form, old));
    } catch (error) {
      bad.textContent = error.message;
      form.elements[error.field]?.focus();
    }
  });
  return form;
}

async function typesOf(queue, signal) {
  const overview = await get("/v1/queues", { queue }, { signal });
  return (overview.queues[0]?.types ?? []).filter((type) => type !== "*");
}

export const newSchedule = {
  title: "New schedule",
  still: true, // what is typed stays
  async render(view, { queue, base, signal }) {
    const save = async (name, record) => {
      await put(`/v1/schedules/${idPath(name)}`, { queue, create: 1 }, record);
      toast(`Schedule ${name} is added.`);
      location.hash = `${base}/schedule/${idPath(name)}`;
    };
    const form = formOf(null, "{}", await typesOf(queue, signal), save);
    fill(view, h("div", { class: "head" }, h("h1", {}, "New schedule")), form);
    form.elements.name.focus();
  },
};

export const editSchedule = {
  title: "Edit schedule",
  list: "schedules",
  still: true,
  async render(view, { queue, base, id, signal }) {
    const { schedule } = await get(`/v1/schedules/${idPath(id)}`, { queue }, { signal });
    const save = async (name, record) => {
      await put(`/v1/schedules/${idPath(name)}`, { queue }, record);
      toast(`Schedule ${name} is changed.`);
      location.hash = `${base}/schedule/${idPath(name)}`;
    };
    const head = h("div", { class: "head" }, h("h1", {}, `Edit ${id}`));
    if (schedule.value === undefined || schedule.text === undefined) {
      return void fill(view, head, h("p", { class: "notice fault" }, "Its record is not JSON. Remove it and add it again."));
    }
    fill(view, head, formOf(id, schedule.text, await typesOf(queue, signal), save));
  },
};
