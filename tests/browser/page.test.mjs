import assert from "node:assert/strict";
import { chmodSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";

import { browser, button, lacks, open, post, shows, startBrowser, stopBrowser, text, tile } from "./steps.mjs";
import { eventually, kExecutors, kPatience, seriousFindings, World } from "./world.mjs";

before(startBrowser);
after(stopBrowser);

describe("one daemon", () => {
  let world;
  let daemon;
  before(async () => {
    world = await World.create();
    daemon = await world.daemon("host-a");
    await eventually(async () => (await world.leader()) === "host-a", "host-a leads");
  });
  after(async () => world?.end());

  it("shows who leads and that all is well, and tasks as they come", async () => {
    const page = await open(daemon);
    await eventually(async () => (await tile(page, "Leader")) === "host-a");
    await shows(page, "All is well");
    await shows(page, "live", "#live");
    await world.put("tasks/later", { taskType: "Quick", executeAt: "2999-01-01T00:00:00Z" });
    await eventually(async () => (await tile(page, "Scheduled")) === "1", "a scheduled task is counted");
    await world.put("tasks/odd", { taskType: "NoSuchType" });
    await shows(page, "1 task of a type that host-a has no executor for: NoSuchType (1)");
    assert.deepEqual(page.errors, []);
    await page.context().close();
  });

  it("submits a task, follows its output while it runs, and cancels it", async () => {
    const page = await open(daemon, "#/default/submit");
    await page.getByLabel("Type").fill("Slow");
    await page.getByLabel("Parameters, JSON").fill("{no json");
    await button(page, "Submit").click();
    await shows(page, "Parameters: expected JSON");
    await page.getByLabel("Parameters, JSON").fill('{"n": 12345678901234567890}');
    await page.getByLabel("Id").fill("slow/1");
    await button(page, "Submit").click();
    await page.waitForURL(/task\/slow/);
    await shows(page, "running");
    await shows(page, "line 3", ".output");
    const before = (await text(page, ".output")).length;
    await eventually(async () => (await text(page, ".output")).length > before, "the output goes on");
    await shows(page, "line 40", ".output");
    await eventually(() => page.locator(".output").evaluate((pre) => pre.scrollTop > 0 && pre.scrollTop + pre.clientHeight >= pre.scrollHeight - 4), "the newest line is in sight");
    await button(page, "Cancel").click();
    await button(page, "Cancel the task").click();
    await shows(page, "is cancelled", "#toasts");
    await eventually(async () => !(await world.exists("tasks/slow/1")), "the task is gone");
    assert.deepEqual(page.errors, []);
    await page.context().close();
  });

  it("undoes the cancelling of a task that waits", async () => {
    await world.put("tasks/undo", '{"taskType": "Quick", "executeAt": "2999-01-01T00:00:00Z", "taskPara": {"keep": "me", "long": 12345678901234567890123}}');
    const page = await open(daemon, "#/default/task/undo");
    await shows(page, "it is not due until");
    await button(page, "Cancel").click();
    await button(page, "Cancel the task").click();
    await eventually(async () => !(await world.exists("tasks/undo")));
    await button(page, "Undo").click();
    await eventually(() => world.exists("tasks/undo"), "the task is back");
    await shows(page, '"keep": "me"');
    const answer = await fetch(`${world.consulUrl}/v1/kv/lictor/default/tasks/undo?raw`);
    assert.match(await answer.text(), /12345678901234567890123/, "a number that no double holds is kept");
    await page.context().close();
  });

  it("pauses with a reason, says by whom, and resumes", async () => {
    const page = await open(daemon);
    await button(page, "Pause").click();
    await page.getByLabel("Reason, for others to read").fill("upgrade of the database");
    await page.keyboard.press("Enter");
    await shows(page, "upgrade of the database");
    await button(page, "Resume").click();
    await lacks(page, "upgrade of the database");
    assert.match(daemon.text(), /changed by the admin API change=pause/);
    await page.context().close();
  });

  it("shows why tasks died, and retries and purges one or all of a group", async () => {
    for (let i = 0; i < 4; ++i) await world.put(`tasks/bad-${i}`, { taskType: "Bad" });
    const page = await open(daemon, "#/default/dead");
    await shows(page, "4 dead letters");
    await shows(page, "failed: exit status 3");
    await page.getByRole("link", { name: "bad-0", exact: true }).click();
    await shows(page, "trying"); // its output
    await button(page, "Purge").click();
    await button(page, "Delete").click();
    await page.waitForURL(/#\/default\/dead/);
    await shows(page, "3 dead letters");
    await button(page, "Retry all").click();
    await button(page, "Retry").click();
    await shows(page, "3 dead letters retried", "#toasts");
    await eventually(() => world.exists("dead/bad-1"), "it fails again");
    await shows(page, "3 dead letters");
    await page.getByRole("link", { name: "bad-1", exact: true }).click();
    await button(page, "Retry").click();
    await shows(page, "waits again", "#toasts");
    await page.goto(`${daemon.url}/#/default/dead`);
    await button(page, "Purge all").first().click();
    await button(page, "Delete").click();
    await shows(page, "deleted", "#toasts");
    await eventually(async () => !(await world.exists("dead/")), "all are gone");
    assert.deepEqual(page.errors, []);
    await page.context().close();
  });

  it("lists schedules, shows one with its next ticks, pauses, resumes, runs and removes it", async () => {
    const page = await open(daemon, "#/default/schedules");
    await shows(page, "No recurring tasks");
    await world.put("schedules/db/nightly", { cron: "30 2 * * *", timezone: "Europe/Rome", start: "2998-01-01T00:00:00Z", task: { taskType: "Quick" } });
    await world.put("schedules/odd", { cron: "61 * * * *", task: { taskType: "Quick" } });
    await shows(page, "30 2 * * * Europe/Rome");
    await shows(page, "minute: expected"); // why the other one is bad
    await page.locator(".tabs").getByRole("link", { name: /bad/ }).click();
    await lacks(page, "nightly", "tbody");
    await page.locator(".tabs").getByRole("link", { name: /all/ }).click();
    await page.getByRole("link", { name: "db/nightly", exact: true }).click();
    await shows(page, "Mon 2998-01-01 02:30:00 +01:00");
    assert.equal(await page.locator(".ticks tbody tr").count(), 10);
    await button(page, "Pause").click();
    await shows(page, "which make no tasks while it is paused");
    await button(page, "Undo").click();
    await lacks(page, "which make no tasks while it is paused");
    await button(page, "Pause").click();
    await button(page, "Run now").click();
    await button(page, "Make a task").click();
    await shows(page, "is made", "#toasts");
    await shows(page, "db/nightly/2", ".facts"); // its last task
    await button(page, "Resume").click();
    await shows(page, "Resumed", "#toasts");
    await shows(page, "active");
    await button(page, "Remove").click();
    await button(page, "Remove it").click();
    await page.waitForURL(/#\/default\/schedules/);
    await lacks(page, "nightly");
    assert.ok(!(await world.exists("schedules/db/nightly")));
    assert.match(daemon.text(), /changed by the admin API change="remove schedule" queue=default schedule=db\/nightly/);
    await page.getByRole("link", { name: "odd", exact: true }).click();
    await shows(page, "It makes no tasks: cron");
    assert.equal(await button(page, "Run now").count(), 0);
    assert.deepEqual(page.errors, []);
    await page.context().close();
  });

  it("shows hostile contents as text and runs none of them", async () => {
    const evil = '"><img src=x onerror="document.title=1"><script>window.pwned=1</script>\u202e\u001b[2J';
    const id = "evil<b>id</b>";
    await world.put(`tasks/${encodeURIComponent(id)}`, { taskType: evil, taskPara: { [evil]: evil }, serialKey: evil, executeAt: "2999-01-01T00:00:00Z" });
    await world.put("dead/evil", { record: { taskType: evil }, reason: evil, error: evil, output_tail: evil, node: evil, at: "2026-01-01T00:00:00Z" });
    await world.put("control", { paused: { by: evil, reason: evil } });
    await world.put("schedules/evil", { cron: evil, timezone: evil, task: { taskType: evil } });
    const page = await open(daemon);
    for (const view of ["overview", "tasks", "dead", `task/${encodeURIComponent(id)}`, "task/evil", "schedules", "schedule/evil"]) {
      await page.goto(`${daemon.url}/#/default/${view}`);
      await page.waitForSelector(`main[data-ready=${view.split("/")[0]}]`);
      await shows(page, "<script>window.pwned=1</script>");
      assert.equal(await page.locator("main img, main script, main b").count(), 0);
    }
    assert.equal(await page.evaluate(() => window.pwned), undefined);
    assert.deepEqual(page.errors, []);
    await world.put("control", "{}");
    await world.put("dead/evil", { record: { taskType: "Quick" } });
    await world.put("schedules/evil", { cron: "30 2 * * *", timezone: "Europe/Rome", task: { taskType: "Quick" } });
    const headers = (await page.request.get(`${daemon.url}/`)).headers();
    assert.match(headers["content-security-policy"], /default-src 'none'; script-src 'self'/);
    await page.context().close();
  });

  it("is used by keyboard alone", async () => {
    await world.put("tasks/later", { taskType: "Quick", executeAt: "2999-01-01T00:00:00Z" });
    const page = await open(daemon);
    await page.keyboard.press("g");
    await page.keyboard.press("t");
    await page.waitForSelector("main[data-ready=tasks]");
    await page.keyboard.press("/");
    await page.keyboard.type("later");
    await shows(page, "1 to 1 of 1");
    assert.equal(await page.evaluate(() => document.activeElement.type), "search", "typing goes on");
    await page.keyboard.press("Escape");
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.waitForURL(/task\/later/);
    await page.waitForSelector("main[data-ready=task]");
    await page.keyboard.press("?");
    await shows(page, "Keyboard", "dialog");
    await page.keyboard.press("Escape");
    await page.keyboard.press("n");
    await page.waitForSelector("main[data-ready=submit]");
    await page.context().close();
  });

  it("has nothing that axe finds serious, fits a phone, in both themes", async () => {
    await world.put("tasks/later", { taskType: "Quick", executeAt: "2999-01-01T00:00:00Z" });
    await world.put("tasks/" + "a-very-long-id-without-a-break-".repeat(6), { taskType: "Quick", executeAt: "2999-01-01T00:00:00Z" });
    for (const [width, colorScheme] of [[380, "light"], [380, "dark"], [1600, "light"], [1600, "dark"]]) {
      const page = await open(daemon, "", { viewport: { width, height: 800 }, colorScheme });
      for (const view of ["overview", "tasks", "dead", "schedules", "task/later", "schedule/evil", "submit"]) {
        await page.goto(`${daemon.url}/#/default/${view}`);
        await page.waitForSelector(`main[data-ready=${view.split("/")[0]}]`);
        assert.deepEqual(await seriousFindings(page), [], `${view} at ${width}, ${colorScheme}`);
        const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(over <= 0, `${view} at ${width} is ${over} px too wide`);
      }
      for (const topic of ["", "concepts", "configuration", "performance"]) {
        await page.goto(`${daemon.url}/manual/${topic}`);
        assert.deepEqual(await seriousFindings(page), [], `manual/${topic} at ${width}, ${colorScheme}`);
        const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(over <= 0, `manual/${topic} at ${width} is ${over} px too wide`);
      }
      await page.context().close();
    }
  });

  it("pages through 10,000 tasks and searches them", async () => {
    const records = {};
    for (let i = 0; i < 10_000; ++i) records[`tasks/many/${String(i).padStart(5, "0")}`] = { taskType: i % 10 ? "Quick" : "Slow", executeAt: new Date(Date.UTC(2998, 0, 1) + i * 1000).toISOString() };
    await world.putMany(records);
    const page = await open(daemon, "#/default/tasks?state=scheduled");
    await eventually(async () => /1 to 50 of 10\s00\d/.test(await text(page)), "all are counted");
    await shows(page, "many/00010");
    await page.getByRole("link", { name: "Next" }).click();
    await eventually(async () => /51 to 100 of/.test(await text(page)));
    await page.getByRole("link", { name: "Next" }).click();
    await eventually(async () => /101 to 150 of/.test(await text(page)));
    await page.getByRole("link", { name: "Previous" }).click();
    await eventually(async () => /51 to 100 of/.test(await text(page)));
    await page.getByPlaceholder(/Search/).fill("many/09");
    await eventually(async () => /1 to 50 of 1\s000/.test(await text(page)));
    await page.locator(".filters select").selectOption("Slow");
    await eventually(async () => /1 to 50 of 100\b/.test(await text(page)));
    await page.getByPlaceholder(/Search/).fill("many/09990");
    await shows(page, "1 to 1 of 1");
    assert.deepEqual(page.errors, []);
    await page.context().close();
  });
});

describe("several queues", () => {
  let world;
  let daemon;
  before(async () => {
    world = await World.create();
    const queue = (name) => ({ name, tasks_prefix: `lictor/default/${name}/tasks/`, leader_key: `lictor/default/${name}/leader`, dead_prefix: `lictor/default/${name}/dead/`, executors: { Quick: { noop: {} } } });
    daemon = await world.daemon("host-a", { more: ["fine", "halted", "odd"].map(queue) });
  });
  after(async () => world?.end());

  it("shows all on one screen first, each marked where something is wrong", async () => {
    const page = await open(daemon);
    await page.waitForSelector("main[data-ready=queues]");
    await shows(page, "All is well");
    const row = (name) => page.locator("tbody tr", { has: page.getByRole("link", { name, exact: true }) });
    assert.equal(await page.locator("tbody tr").count(), 4);
    await post(daemon, "/v1/pause?queue=halted");
    await world.put("odd/tasks/1", { taskType: "NoSuchType" });
    await world.put("odd/dead/2", { record: { taskType: "Quick" }, reason: "failed", error: "exit status 3" });
    await shows(page, "2 of 4 queues need you.");
    await eventually(async () => /1 error.*no executor/s.test(await row("odd").innerText()), "the error of odd is told");
    await eventually(async () => /dead letter: .*exit status 3/.test(await row("odd").innerText()), "the dead letter of odd is told");
    assert.match(await row("halted").innerText(), /1 warning\s+paused/);
    assert.match(await row("fine").innerText(), /well/);
    assert.match(await page.locator("tbody tr").first().innerText(), /odd/, "the worst comes first");
    assert.equal(await page.title(), "All queues · lictor");
    for (const width of [380, 1200]) {
      await page.setViewportSize({ width, height: 800 });
      assert.deepEqual(await seriousFindings(page), [], `at ${width}`);
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(over <= 0, `at ${width} ${over} px too wide`);
    }
    await row("odd").getByRole("link", { name: "odd", exact: true }).click();
    await page.waitForSelector("main[data-ready=overview]");
    await shows(page, "odd", "h1");
    await page.locator("#queue").selectOption({ label: "All queues" });
    await page.waitForSelector("main[data-ready=queues]");
    await post(daemon, "/v1/resume?queue=halted");
    await shows(page, "1 of 4 queues needs you.");
    assert.deepEqual(page.errors, []);
    await page.context().close();
  });
});

describe("two daemons", () => {
  let world;
  before(async () => {
    world = await World.create();
  });
  after(async () => world?.end());

  it("shows a step-down and the death of the leader while one looks, from a follower too", async () => {
    const a = await world.daemon("host-a");
    await eventually(async () => (await world.leader()) === "host-a");
    const b = await world.daemon("host-b");
    const page = await open(b);
    await eventually(async () => (await tile(page, "Leader")) === "host-a");
    await shows(page, "host-b");
    await shows(page, "Lease left"); // the follower asks the leader
    await button(page, "Step down").click();
    await page.locator("dialog").getByRole("button", { name: "Step down" }).click();
    await eventually(async () => (await tile(page, "Leader")) === "host-b", "host-b leads");
    const other = await open(a);
    await eventually(async () => (await tile(other, "Leader")) === "host-b");
    b.process.kill("SIGKILL");
    await b.ended;
    await eventually(async () => (await tile(other, "Leader")) === "host-a", "host-a leads again");
    await shows(page, "does not answer", "#stale");
    await shows(page, "reconnecting", "#live");
    assert.deepEqual(other.errors, []);
    // What one sees stays while the daemon is away, and is alive again when it is back.
    assert.equal(await tile(page, "Leader"), "host-b");
    const again = await world.restart(b);
    await shows(page, "live", "#live");
    await eventually(async () => (await tile(page, "Leader")) === "host-a");
    await eventually(async () => page.locator("#stale").isHidden());
    await again.stop();
    await page.context().close();
    await other.context().close();
  });

  it("asks again soon after an answer that took long", async () => {
    const page = await open(world.daemons[0]);
    await shows(page, "live", "#live");
    const answered = page.waitForResponse(/\/v1\/queues/);
    await page.route(
      "**/v1/queues*",
      async (route) => {
        await new Promise((resolve) => setTimeout(resolve, 8000));
        await route.continue();
      },
      { times: 1 },
    );
    await (await answered).finished();
    await post(world.daemons[0], "/v1/pause");
    await shows(page, "paused");
    await post(world.daemons[0], "/v1/resume");
    await page.context().close();
  });

  it("says that it does not know what Consul does not tell", async () => {
    const page = await open(world.daemons[0]);
    await eventually(async () => (await tile(page, "Leader")).startsWith("host-"));
    world.consul.process.kill("SIGSTOP");
    try {
      await shows(page, "Consul does not answer");
      assert.equal(await tile(page, "Leader"), "unknown");
      await lacks(page, "No daemon has registered");
      await eventually(async () => (await tile(page, "Waiting")) === "unknown");
    } finally {
      world.consul.process.kill("SIGCONT");
    }
    await eventually(async () => (await tile(page, "Leader")).startsWith("host-"), "a leader is shown again", 2 * kPatience);
    await page.context().close();
  });

  it("names the host that cannot keep the output of jobs, and what failed there", async () => {
    const logs = join(world.folder, `state-${await world.leader()}`, "logs");
    rmSync(logs, { recursive: true, force: true });
    writeFileSync(logs, ""); // as a full disk would, it takes no file
    try {
      await world.put("tasks/lost", { taskType: "Bad" });
      const page = await open(world.daemons[0]);
      await shows(page, `${await world.leader()} cannot keep the output of jobs: cannot open ${logs}`);
      await shows(page, "1 dead letter: 1 of Bad: exit status 3");
      await page.goto(`${world.daemons[0].url}/#/default/task/lost`);
      await shows(page, "not all of it could be kept");
      await shows(page, "trying"); // the end of the output is in the dead letter
      await page.context().close();
    } finally {
      rmSync(logs);
    }
    await world.put("tasks/kept", { taskType: "Quick" });
    const page = await open(world.daemons[0]);
    await lacks(page, "cannot keep the output");
    await page.context().close();
  });

  it("shows the processes of workers", async () => {
    const program = join(world.folder, "worker.sh");
    writeFileSync(program, `#!/bin/sh
echo '{"ready":{"protocol":1}}' >&3
read -r line
case $line in *'"die"'*) exit 3 ;; esac
read -r line
`);
    chmodSync(program, 0o755);
    const executors = { Invoice: { worker: [program], max_attempts: 1 }, Archive: { worker: [program] } };
    const other = await world.daemon("host-w", { executors, queue: { name: "workers" } });
    const page = await open(other, "#/workers");
    const row = async (type) => (await text(page, `section[aria-label="Workers"] tr:has(th:text-is("${type}"))`)).split(/\s+/).slice(1).join(" ");
    const put = (id, para) => fetch(`${world.consulUrl}/v1/kv/lictor/workers/tasks/${id}`, { method: "PUT", body: JSON.stringify({ taskType: "Invoice", taskPara: para }) });
    await eventually(async () => (await row("Archive")) === "0 0 0 0 0", "one that has run nothing");
    await put("first", { how: "die" });
    await eventually(async () => (await row("Invoice")) === "0 0 0 0 1", "its process has ended");
    await put("second", {});
    await eventually(async () => (await row("Invoice")) === "1 0 0 0 1", "another one is busy");
    assert.deepEqual(page.errors, []);
    await page.context().close();
    await other.stop();
  });

  it("tells of different configurations", async () => {
    await world.daemon("host-c", { executors: { ...kExecutors, Extra: kExecutors.Quick } });
    const page = await open(world.daemons[0]);
    await shows(page, "host-c has another configuration than");
    await page.context().close();
  });

  it("says that Consul is gone", async () => {
    const page = await open(world.daemons[0]);
    await world.consul.stop("SIGKILL");
    await shows(page, "no task is claimed or finished until Consul answers again");
    await eventually(async () => (await tile(page, "Waiting")) === "unknown");
    await page.context().close();
  });
});

describe("a queue of three partitions", () => {
  const kCount = 3;
  let world;
  let a;
  let b;
  before(async () => {
    world = await World.create();
    a = await world.daemon("host-a", { queue: { partitions: kCount } });
    b = await world.daemon("host-b", { queue: { partitions: kCount } });
    await eventually(async () => {
      const leaders = await world.leaders(kCount);
      return leaders.includes("host-a") && leaders.includes("host-b") && !leaders.includes("");
    }, "both hosts lead");
  });
  after(async () => world?.end());

  const row = (page, node) => page.locator("section[aria-label=Members] tbody tr", { has: page.locator("th", { hasText: node }) });
  const partitionsOf = async (page, node) => (await row(page, node).locator("td[data-label=Partitions]").innerText()).trim();
  const note = async (page, label) => (await page.locator(".tile", { has: page.locator(".label", { hasText: new RegExp(`^${label}$`) }) }).locator(".note").innerText()).trim();

  it("shows who leads which, and counts the tasks of all", async () => {
    for (let i = 0; i < 12; ++i) await world.put(`tasks/quick-${i}`, { taskType: "Quick" });
    for (const daemon of [a, b]) {
      const page = await open(daemon);
      await eventually(async () => (await tile(page, "Partitions")) === "3" && (await note(page, "Partitions")) === "led by 2 daemons");
      await shows(page, "All is well");
      const shares = [await partitionsOf(page, "host-a"), await partitionsOf(page, "host-b")];
      assert.match(shares.join(" "), /\((1|2)\).*\((1|2)\)/);
      await eventually(async () => (await tile(page, "Done, last minute")) === "12", "what both hosts did is counted");
      assert.equal(await page.locator(".tile .label", { hasText: /^Leader$/ }).count(), 0);
      assert.deepEqual(page.errors, []);
      await page.context().close();
    }
  });

  it("says of any task why it does not run, whichever host leads it", async () => {
    const ids = Array.from({ length: 8 }, (_, i) => `later-${i}`);
    for (const id of ids) await world.put(`tasks/${id}`, { taskType: "Quick", executeAt: "2999-01-01T00:00:00Z" });
    for (const daemon of [a, b]) {
      const page = await open(daemon);
      for (const id of ids) {
        await page.goto(`${daemon.url}/#/default/task/${id}`);
        await page.waitForSelector("main[data-ready=task]");
        await shows(page, id, "h1");
        await shows(page, "it is not due until");
      }
      assert.deepEqual(page.errors, []);
      await page.context().close();
    }
    for (const id of ids) await world.remove(`tasks/${id}`);
  });

  it("shows a host that drains, and the partitions that nobody leads", async () => {
    const page = await open(b);
    await world.put("members/host-b/drain", "{}");
    await eventually(async () => (await row(page, "host-b").innerText()).includes("draining"));
    await eventually(async () => (await partitionsOf(page, "host-a")) === "0-2 (3)", "host-a takes all");
    assert.equal(await partitionsOf(page, "host-b"), "none");
    await eventually(async () => (await note(page, "Partitions")) === "led by 1 daemon");
    await a.stop();
    await shows(page, "nobody leads this queue");
    await shows(page, "let a draining one take partitions again");
    await eventually(async () => (await partitionsOf(page, "nobody")) === "0-2");
    assert.equal(await note(page, "Partitions"), "nobody leads 0-2");
    assert.ok(await button(page, "Step down").isDisabled());
    for (const [width, colorScheme] of [[380, "light"], [1200, "dark"]]) {
      const other = await open(b, "", { viewport: { width, height: 800 }, colorScheme });
      assert.deepEqual(await seriousFindings(other), [], `at ${width}, ${colorScheme}`);
      const over = await other.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(over <= 0, `at ${width} it is ${over} px too wide`);
      await other.context().close();
    }
    await world.remove("members/host-b/drain");
    await eventually(async () => (await partitionsOf(page, "host-b")) === "0-2 (3)", "host-b takes all");
    await shows(page, "All is well");
    assert.deepEqual(page.errors, []);
    await page.context().close();
  });

  it("asks all leaders to step down", async () => {
    const page = await open(b);
    await button(page, "Step down").click();
    await shows(page, "Ask all leaders to step down?", "dialog");
    await page.locator("dialog").getByRole("button", { name: "Step down" }).click();
    await shows(page, "All leaders are asked to step down", "#toasts");
    await eventually(() => /stepped down.*partition=/.test(b.text()), "host-b steps down");
    await page.context().close();
  });
});

describe("a schedule of the configuration", () => {
  let world;
  after(async () => world?.end());

  it("says that the leader undoes a change by hand", async () => {
    world = await World.create();
    const ours = { every: "1h", start: "2998-01-01T00:00:00Z", task: { taskType: "Quick" } };
    const daemon = await world.daemon("host-a", { queue: { schedules: { ours } } });
    await eventually(() => world.exists("schedules/ours"), "the leader writes it");
    const page = await open(daemon, "#/default/schedule/ours");
    await shows(page, "the leader, as its configuration says", ".facts");
    await button(page, "Pause").click();
    await shows(page, "the leader undoes this within seconds", "#toasts");
    await button(page, "Remove").click();
    await shows(page, "The leader writes it again", "dialog");
    await button(page, "Remove it").click();
    await page.waitForURL(/#\/default\/schedules/);
    await eventually(() => world.exists("schedules/ours"), "the leader writes it again");
    assert.deepEqual(page.errors, []);
    await page.context().close();
  });
});

describe("a token", () => {
  let world;
  before(async () => {
    world = await World.create();
  });
  after(async () => world?.end());

  it("is asked for, refused when it is wrong, and asked for again when it has changed", async () => {
    const file = join(world.folder, "admin.token");
    const give = (token) => {
      writeFileSync(`${file}.new`, `${token}\n`);
      chmodSync(`${file}.new`, 0o600);
      renameSync(`${file}.new`, file);
    };
    give("first-token");
    const daemon = await world.daemon("host-a", { admin: { token_file: file } });
    await world.put("tasks/secret", { taskType: "Quick", executeAt: "2999-01-01T00:00:00Z" });
    const context = await browser.newContext();
    context.setDefaultTimeout(kPatience);
    const page = await context.newPage();
    await page.goto(`${daemon.url}/#/default/tasks`);
    const use = async (token) => {
      await page.getByRole("textbox", { name: "Token" }).fill(token);
      await button(page, "Use token").click();
    };
    await use("wrong");
    await shows(page, "no longer valid", "dialog");
    await use("first-token");
    await shows(page, "secret");
    give("second-token");
    await shows(page, "no longer valid", "dialog");
    await use("second-token");
    await shows(page, "secret");
    await context.close();
  });
});
