// A new task.

import { get, post } from "./api.js";
import { fill, h, toast } from "./dom.js";

export function field(label, input, note) {
  return h("label", { class: "field" }, h("span", {}, label), input, note ? h("small", { class: "quiet" }, note) : null);
}

export const submit = {
  title: "Submit a task",
  still: true, // what is typed stays
  async render(view, { queue, base, signal }) {
    const overview = await get("/v1/queues", { queue }, { signal });
    const types = (overview.queues[0]?.types ?? []).filter((type) => type !== "*");
    const any = overview.queues[0]?.types.includes("*");
    const bad = h("p", { class: "bad", role: "alert" });
    const para = h("textarea", { name: "para", rows: 8, spellcheck: "false" }, "{}");
    const form = h(
      "form",
      { class: "card form", novalidate: true },
      field("Type", h("input", { name: "type", list: "types", required: true, autocomplete: "off" }), any ? "The executor \"*\" takes types that are not listed." : `One of: ${types.join(", ")}`),
      h("datalist", { id: "types" }, types.map((type) => h("option", { value: type }))),
      field("Parameters, JSON", para),
      field("Id", h("input", { name: "id", autocomplete: "off" }), "Empty: a new one. A task of the same id is not overwritten."),
      field("Not before", h("input", { name: "at", type: "datetime-local", step: 1 })),
      field("Dead letter if not started by", h("input", { name: "expire", type: "datetime-local", step: 1 })),
      field("Serial key", h("input", { name: "serial", autocomplete: "off" }), "Tasks of one key run one after the other."),
      field("Attempts at most", h("input", { name: "attempts", type: "number", min: 1 }), "Empty: as the configuration says."),
      bad,
      h("div", { class: "row end" }, h("button", { type: "submit", class: "primary" }, "Submit")),
    );
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      bad.textContent = "";
      const data = Object.fromEntries(new FormData(form));
      if (!data.type.trim()) {
        bad.textContent = "Type: expected the name of an executor.";
        return form.elements.type.focus();
      }
      try {
        JSON.parse(data.para);
      } catch (error) {
        bad.textContent = `Parameters: expected JSON: ${error.message}`;
        return para.focus();
      }
      // The parameters go as they were typed: parsed and printed, a long number would change.
      const members = [`"taskType": ${JSON.stringify(data.type.trim())}`, `"taskPara": ${data.para}`];
      const add = (name, value) => value && members.push(`"${name}": ${JSON.stringify(value)}`);
      add("taskId", data.id.trim());
      add("serialKey", data.serial.trim());
      add("executeAt", data.at && new Date(data.at).toISOString());
      add("expireAt", data.expire && new Date(data.expire).toISOString());
      if (data.attempts) members.push(`"maxAttempts": ${Number(data.attempts)}`);
      try {
        const { id } = await post("/v1/tasks", { queue }, `{${members.join(", ")}}`);
        toast(`Task ${id} is submitted.`);
        location.hash = `${base}/task/${encodeURIComponent(id)}`;
      } catch (error) {
        bad.textContent = error.message;
      }
    });
    fill(view, h("div", { class: "head" }, h("h1", {}, "Submit a task")), form);
    form.elements.type.focus();
    return undefined;
  },
};
