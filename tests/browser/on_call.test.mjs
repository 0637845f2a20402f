// What somebody on call does with the page.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";

import { browser, button, lacks, looksGood, open, shows, startBrowser, stopBrowser, text, tile } from "./steps.mjs";
import { eventually, kPatience, World } from "./world.mjs";

before(startBrowser);
after(stopBrowser);

const kFar = "2999-01-01T00:00:00Z";

describe("what is old", () => {
  let world;
  let a;
  let b;
  before(async () => {
    world = await World.create();
    a = await world.daemon("host-a");
    await eventually(async () => (await world.leader()) === "host-a");
    b = await world.daemon("host-b");
  });
  after(async () => world?.end());

  it("is grey while Consul is frozen, with since when, on every view", async () => {
    await world.put("tasks/later", { taskType: "Quick", executeAt: kFar });
    const page = await open(b);
    const list = await open(b, "#/default/tasks");
    await shows(list, "later");
    await eventually(async () => (await tile(page, "Scheduled")) === "1");
    assert.equal(await page.locator("main[data-old]").count(), 0);
    world.consul.process.kill("SIGSTOP");
    try {
      await shows(page, "no Consul", "#live");
      await shows(page, "Consul does not answer", "#stale");
      assert.match(await text(page, "#stale"), /\(since .*\d.* ago\)/);
      await page.waitForSelector("main[data-old]");
      await eventually(async () => (await tile(page, "Scheduled")) === "unknown");
      assert.match(await text(page, ".tiles"), /1, \d+ \S+ ago/, "what it was last");
      await shows(list, "Consul does not answer", "#stale");
      await list.waitForSelector("main[data-old]");
      await shows(list, "later");
      await shows(list, "no Consul", "#live");
      await looksGood(page, "frozen-overview");
      await looksGood(list, "frozen-tasks");
    } finally {
      world.consul.process.kill("SIGCONT");
    }
    for (const each of [page, list]) {
      await eventually(async () => (await text(each, "#live")) === "live", "Consul is back", 2 * kPatience);
      await eventually(async () => (await each.locator("main[data-old]").count()) === 0, "the page is new", 2 * kPatience);
      assert.deepEqual(each.errors, []);
      await each.context().close();
    }
    await world.remove("tasks/later");
  });

  it("is grey when the daemon is dead, and leads to the pages of the others", async () => {
    const name = await eventually(() => world.leader(), "somebody leads", 2 * kPatience);
    const leader = name === "host-a" ? a : b;
    const other = leader === a ? b : a;
    await world.put("tasks/long", { taskType: "Slow" });
    const page = await open(leader);
    await shows(page, other.node);
    await eventually(async () => (await tile(page, "Running")) === "1");
    leader.process.kill("SIGKILL");
    await leader.ended;
    await shows(page, "the daemon does not answer", "#stale");
    await page.waitForSelector("main[data-old]");
    await shows(page, `Other hosts: ${other.node}.`, "#stale");
    await looksGood(page, "dead-daemon");
    await page.locator("#stale").getByRole("link", { name: other.node }).click();
    await page.waitForURL(`${other.url}/**`);
    await page.waitForSelector("main[data-ready=overview]");
    await eventually(async () => (await tile(page, "Leader")) === other.node, "the other leads", 2 * kPatience);
    await eventually(async () => (await page.locator("main[data-old]").count()) === 0);
    await page.context().close();
  });
});

describe("a task whose owner is lost", () => {
  let world;
  after(async () => world?.end());

  it("is called an orphan, as by the list command, and does not count as running", async () => {
    world = await World.create();
    const consul = async (path, body) => (await fetch(`${world.consulUrl}/v1/${path}`, { method: "PUT", body: JSON.stringify(body) })).json();
    const { ID: session } = await consul("session/create", {}); // leads, so that nobody runs it again
    assert.ok(await consul(`kv/lictor/default/leader?acquire=${session}`, { node: "host-x", instance: "i" }));
    const daemon = await world.daemon("host-a");
    await world.put("tasks/lost", { taskType: "Quick", taskTaken: true, taskAttempt: 1, taskClaim: { node: "host-y", session: "gone", nonce: "n", since: "2026-01-01T00:00:00Z" } });
    const page = await open(daemon);
    await shows(page, "1 task lost its owner while running");
    assert.equal(await tile(page, "Running"), "0");
    assert.equal(await tile(page, "Orphans"), "1");
    await looksGood(page, "orphan");
    await page.locator("a.tile", { hasText: "Orphans" }).click();
    await page.waitForURL(/state=orphan/);
    await shows(page, "orphan", "tbody");
    assert.deepEqual(page.errors, []);
    await page.context().close();
  });
});

describe("one daemon on call", () => {
  let world;
  let daemon;
  before(async () => {
    world = await World.create();
    daemon = await world.daemon("host-a");
    await eventually(async () => (await world.leader()) === "host-a");
  });
  after(async () => world?.end());

  it("shows unreadable dead letters by field and as they were written, and offers no retry", async () => {
    await world.put("tasks/soon", '{"taskType": "Quick", "taskTime": "soon",  "n": 12345678901234567890}');
    await world.put("tasks/later", '{"taskType": "Bad", "taskTime": "later"}');
    await world.put("tasks/broken", "{taskType: Quick");
    const page = await open(daemon, "#/default/dead");
    await shows(page, "2 dead letters that no task could be read from");
    await shows(page, "1 dead letter that no task could be read from");
    await shows(page, "Their producer has to write them again.");
    assert.equal(await button(page, "Retry all").count(), 0);
    await looksGood(page, "unreadable-list");
    await page.getByRole("link", { name: "soon", exact: true }).click();
    await shows(page, "cannot be retried. Its producer has to write it again");
    await shows(page, '{"taskType": "Quick", "taskTime": "soon",  "n": 12345678901234567890}');
    assert.equal(await button(page, "Retry").count(), 0);
    await looksGood(page, "unreadable-task");
    await page.goto(`${daemon.url}/#/default/task/broken`);
    await shows(page, "{taskType: Quick");
    await page.goto(`${daemon.url}/#/default/dead`);
    await page.locator(".groups li", { hasText: "2 dead letters" }).getByRole("button", { name: "Purge all" }).click();
    await button(page, "Delete").click();
    await shows(page, "2 dead letters deleted", "#toasts");
    await eventually(async () => !(await world.exists("dead/soon")) && (await world.exists("dead/broken")));
    await world.remove("dead/broken");
    assert.deepEqual(page.errors, []);
    await page.context().close();
  });

  it("retries expired dead letters without their expiry, one or all", async () => {
    const page = await open(daemon, "#/default/dead");
    for (const id of ["one", "two"]) await world.put(`dead/old-${id}`, { record: { taskType: "Quick", expireAt: "2020-01-01T00:00:00Z" }, reason: "expired", error: "expired", attempts: 0, at: "2026-01-01T00:00:00Z" });
    await shows(page, "2 dead letters");
    await page.goto(`${daemon.url}/#/default/task/old-one`);
    await button(page, "Retry without expiry").click();
    await page.locator("dialog").getByRole("button", { name: "Retry" }).click();
    await shows(page, "waits again, without expireAt", "#toasts");
    await eventually(async () => !(await world.exists("dead/old-one")));
    await page.goto(`${daemon.url}/#/default/dead`);
    await button(page, "Retry all without expiry").click();
    await page.locator("dialog").getByRole("button", { name: "Retry" }).click();
    await shows(page, "1 dead letter retried", "#toasts");
    await eventually(async () => !(await world.exists("dead/")));
    assert.deepEqual(page.errors, []);
    await page.context().close();
  });

  it("shows figures by type", async () => {
    for (let i = 0; i < 3; ++i) await world.put(`tasks/quick-${i}`, { taskType: "Quick" });
    await world.put("tasks/fails", { taskType: "Bad" });
    const page = await open(daemon);
    const row = (type) => page.locator("section[aria-label='By type'] tbody tr", { has: page.getByRole("link", { name: type, exact: true }) });
    await eventually(async () => /Quick.*5.*ms/s.test(await row("Quick").innerText()), "done and how long");
    assert.match(await row("Bad").innerText(), /Bad\s+0\.2\s+0\s+0\s+1/);
    await looksGood(page, "figures");
    await row("Quick").getByRole("link").click();
    await page.waitForURL(/tasks\?type=Quick/);
    assert.deepEqual(page.errors, []);
    await page.context().close();
    await world.remove("dead/fails");
  });

  it("cancels chosen tasks, and retries and purges chosen dead letters", async () => {
    for (let i = 0; i < 4; ++i) await world.put(`tasks/pick-${i}`, { taskType: "Quick", executeAt: kFar });
    const page = await open(daemon, "#/default/tasks");
    await shows(page, "pick-3");
    assert.ok(await button(page, "Cancel chosen").isDisabled());
    await page.getByLabel("Choose pick-1", { exact: true }).check();
    await page.getByLabel("Choose pick-2", { exact: true }).check();
    await shows(page, "2 chosen");
    await looksGood(page, "chosen");
    await world.remove("tasks/pick-2"); // one that is gone is chosen no more
    await shows(page, "1 chosen");
    assert.ok(await page.getByLabel("Choose pick-1", { exact: true }).isChecked(), "a new drawing keeps it");
    await button(page, "Cancel chosen").click();
    await button(page, "Cancel the tasks").click();
    await shows(page, "1 task cancelled", "#toasts");
    await eventually(async () => !(await world.exists("tasks/pick-1")) && (await world.exists("tasks/pick-0")));
    await shows(page, "None chosen");
    await page.getByLabel("Choose all of this page").check();
    await shows(page, "2 chosen");
    await button(page, "Clear").click();
    await shows(page, "None chosen");
    for (const id of ["pick-0", "pick-3"]) await world.remove(`tasks/${id}`);

    for (let i = 0; i < 3; ++i) await world.put(`tasks/bad-${i}`, { taskType: "Bad" });
    await page.goto(`${daemon.url}/#/default/dead`);
    await shows(page, "3 dead letters");
    await page.getByLabel("Choose bad-0", { exact: true }).check();
    await button(page, "Purge chosen").click();
    await button(page, "Delete").click();
    await shows(page, "1 dead letter deleted", "#toasts");
    await eventually(async () => !(await world.exists("dead/bad-0")));
    await shows(page, "2 dead letters");
    await page.getByLabel("Choose bad-1", { exact: true }).check();
    await button(page, "Retry chosen").click();
    await page.locator("dialog").getByRole("button", { name: "Retry" }).click();
    await shows(page, "1 dead letter retried", "#toasts");
    await eventually(() => world.exists("dead/bad-1"), "it fails again");
    for (const id of ["bad-1", "bad-2"]) await world.remove(`dead/${id}`);
    assert.deepEqual(page.errors, []);
    await page.context().close();
  });

  it("searches in parameters", async () => {
    await world.put("tasks/s1", { taskType: "Quick", executeAt: kFar, taskPara: { customer: "Ada Lovelace" } });
    await world.put("tasks/s2", { taskType: "Quick", executeAt: kFar, taskPara: { customer: "Bob" } });
    const page = await open(daemon, "#/default/tasks");
    await shows(page, "s2");
    await page.locator("input[type=search]").fill("lovelace");
    await shows(page, "No such tasks.");
    await page.getByLabel("in parameters").check();
    await shows(page, "s1");
    assert.ok(!(await text(page)).includes("s2"));
    await looksGood(page, "search");
    await page.locator("input[type=search]").fill("lo"); // too short: all
    await shows(page, "s2");
    for (const id of ["s1", "s2"]) await world.remove(`tasks/${id}`);
    assert.deepEqual(page.errors, []);
    await page.context().close();
  });

  it("adds a schedule, shows its runs, and edits it; what has no field stays", async () => {
    const page = await open(daemon, "#/default/schedules");
    await page.getByRole("link", { name: "Add a schedule" }).click();
    await page.waitForSelector("main[data-ready=new-schedule]");
    await page.getByLabel("Name").fill("db/nightly");
    await page.getByLabel("When").fill("61 2 * * *");
    await page.getByLabel("Time zone").fill("Europe/Rome");
    await page.getByRole("textbox", { name: "Type" }).or(page.getByRole("combobox", { name: "Type" })).fill("Quick");
    await page.getByLabel("Parameters, JSON").fill("{no json");
    await button(page, "Add the schedule").click();
    await shows(page, "Parameters: expected JSON");
    await page.getByLabel("Parameters, JSON").fill('{"n": 12345678901234567890, "at": "{tick}"}');
    await button(page, "Add the schedule").click();
    await shows(page, "minute: expected"); // what the daemon says, at the form
    await looksGood(page, "schedule-form");
    await page.getByLabel("When").fill("30 2 * * *");
    await button(page, "Add the schedule").click();
    await page.waitForURL(/schedule\/db/);
    await shows(page, "30 2 * * *");
    await shows(page, "It has made no task yet.");
    const stored = async () => (await fetch(`${world.consulUrl}/v1/kv/lictor/default/schedules/db/nightly?raw`)).text();
    assert.match(await stored(), /12345678901234567890/);
    await button(page, "Run now").click();
    await button(page, "Make a task").click();
    const runs = page.locator("section", { hasText: "Its newest tasks" }).locator("tbody tr");
    await eventually(async () => /done/.test((await runs.allInnerTexts()).join()), "its run is told");
    await looksGood(page, "schedule");

    await world.put("schedules/db/nightly", '{"cron": "30 2 * * *", "mine": 98765432109876543210, "task": {"taskType": "Quick", "maxAttempts": 2, "taskPara": {"n": 12345678901234567890}}}');
    await shows(page, "98765432109876543210".slice(0, 4));
    await page.getByRole("link", { name: "Edit" }).click();
    await page.waitForSelector("main[data-ready=edit-schedule]");
    await page.getByLabel("When").fill("45 3 * * *");
    await page.getByLabel("Missed ticks").selectOption("once");
    await button(page, "Save").click();
    await page.waitForURL(/default\/schedule\/db/);
    await shows(page, "45 3 * * *");
    const record = await stored();
    for (const part of ["98765432109876543210", "12345678901234567890", '"maxAttempts": 2', '"missed": "once"']) assert.ok(record.includes(part), record);
    // A name that exists is not overwritten.
    await page.goto(`${daemon.url}/#/default/new-schedule`);
    await page.waitForSelector("main[data-ready=new-schedule]");
    await page.getByLabel("Name").fill("db/nightly");
    await page.getByLabel("When").fill("0 0 * * *");
    await page.getByRole("combobox", { name: "Type" }).fill("Quick");
    await button(page, "Add the schedule").click();
    await shows(page, "exists already");
    await world.remove("schedules/db/nightly");
    assert.deepEqual(page.errors, []);
    await page.context().close();
  });

  it("finds a schedule with an odd field or a type that nobody runs", async () => {
    await world.put("schedules/odd", { every: "1h", timeZone: "Europe/Rome", task: { taskType: "Quick" } });
    await world.put("schedules/idle", { every: "1h", task: { taskType: "Rare" } });
    const page = await open(daemon);
    await shows(page, 'schedule "odd"');
    await shows(page, 'schedule "idle": its tasks have the type "Rare", which nobody runs');
    await looksGood(page, "schedule-findings");
    for (const name of ["odd", "idle"]) await world.remove(`schedules/${name}`);
    await lacks(page, 'schedule "');
    assert.deepEqual(page.errors, []);
    await page.context().close();
  });

  it("has a manual whose topics are a menu on a phone", async () => {
    const context = await browser.newContext({ viewport: { width: 380, height: 700 } });
    const page = await context.newPage();
    await page.goto(`${daemon.url}/manual/commands`);
    const nav = page.locator("nav.topics");
    assert.ok(!(await nav.isVisible()), "closed");
    const bar = await page.locator("header.bar").boundingBox();
    assert.ok(bar.height < 70, `the bar is ${bar.height} px high`);
    await button(page, "Topics").click();
    assert.ok(await nav.isVisible());
    await looksGood(page, "manual-menu");
    await page.setViewportSize({ width: 380, height: 700 });
    if (!(await nav.isVisible())) await button(page, "Topics").click();
    await nav.getByRole("link", { name: "security" }).click();
    await page.waitForURL(/manual\/security/);
    await page.setViewportSize({ width: 1200, height: 700 });
    assert.ok(await page.locator("nav.topics").isVisible(), "all in sight");
    assert.ok(!(await button(page, "Topics").isVisible()));
    await looksGood(page, "manual");
    await context.close();
  });
});
