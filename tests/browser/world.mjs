// Consul, daemons and pages for one test. Everything listens on free loopback ports, and is stopped
// by its process id.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { eventually, kPatience, Program, startConsul } from "./programs.mjs";

export { eventually, kPatience };

const { LICTOR_PACKAGES, LICTOR_BROWSER, LICTOR_COMMAND, CONSUL_BIN } = process.env;
const require = createRequire(join(LICTOR_PACKAGES, "from-here.js"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

export class World {
  static async create() {
    const world = new World();
    world.folder = mkdtempSync(join(tmpdir(), "lictor-browser."));
    world.daemons = [];
    try {
      ({ program: world.consul, url: world.consulUrl } = await startConsul(CONSUL_BIN, world.folder));
    } catch (error) {
      await world.end();
      throw error;
    }
    return world;
  }

  async put(key, value) {
    const answer = await fetch(`${this.consulUrl}/v1/kv/lictor/default/${key}`, { method: "PUT", body: typeof value === "string" ? value : JSON.stringify(value) });
    if (!answer.ok) throw new Error(`PUT ${key}: ${answer.status}`);
  }
  async remove(key) {
    const answer = await fetch(`${this.consulUrl}/v1/kv/lictor/default/${key}`, { method: "DELETE" });
    if (!answer.ok) throw new Error(`DELETE ${key}: ${answer.status}`);
  }
  async exists(key) {
    return (await fetch(`${this.consulUrl}/v1/kv/lictor/default/${key}?keys`)).ok;
  }
  /** Many records, 60 in a transaction. */
  async putMany(records) {
    const entries = Object.entries(records);
    for (let i = 0; i < entries.length; i += 60) {
      const body = entries.slice(i, i + 60).map(([key, value]) => ({ KV: { Verb: "set", Key: `lictor/default/${key}`, Value: Buffer.from(JSON.stringify(value)).toString("base64") } }));
      const answer = await fetch(`${this.consulUrl}/v1/txn`, { method: "PUT", body: JSON.stringify(body) });
      if (!answer.ok) throw new Error(`txn: ${answer.status} ${await answer.text()}`);
    }
  }
  async leader() {
    const answer = await fetch(`${this.consulUrl}/v1/kv/lictor/default/leader`);
    if (!answer.ok) return "";
    const [entry] = await answer.json();
    return entry.Session ? JSON.parse(Buffer.from(entry.Value, "base64")).node : "";
  }

  /** The leader of each partition of a queue with partitions; "" if nobody leads. */
  async leaders(count) {
    const answer = await fetch(`${this.consulUrl}/v1/kv/lictor/default/leader/${count}/?recurse`);
    const leaders = Array(count).fill("");
    for (const entry of answer.ok ? await answer.json() : []) {
      if (entry.Session) leaders[entry.Key.split("/").at(-1)] = JSON.parse(Buffer.from(entry.Value, "base64")).node;
    }
    return leaders;
  }

  async daemon(node, { admin = {}, queue = {}, executors, more = [] } = {}) {
    const config = join(this.folder, `${node}.json`);
    writeFileSync(
      config,
      JSON.stringify({
        node,
        state_dir: join(this.folder, `state-${node}`),
        consul: { addresses: [this.consulUrl], register: false },
        admin: { listen: ["127.0.0.1:0"], ...admin },
        queues: [{ name: "default", concurrency: 4, history: { keep: 100 }, executors: executors ?? kExecutors, ...queue }, ...more],
      }),
    );
    const daemon = new Program([LICTOR_COMMAND, "run", "--config", config], join(this.folder, `${node}.log`));
    daemon.node = node;
    daemon.config = config;
    this.daemons.push(daemon);
    daemon.url = await eventually(() => {
      daemon.mustLive();
      return daemon.text().match(/admin API listens address=(http\S+)/)?.[1];
    }, `${node} listens`);
    return daemon;
  }
  /** The same daemon again, on the same address. */
  async restart(daemon) {
    const config = JSON.parse(readFileSync(daemon.config, "utf8"));
    config.admin.listen = [daemon.url.replace("http://", "")];
    writeFileSync(daemon.config, JSON.stringify(config));
    const again = new Program([LICTOR_COMMAND, "run", "--config", daemon.config], daemon.log);
    again.node = daemon.node;
    again.url = daemon.url;
    this.daemons.push(again);
    return again;
  }

  async end() {
    await Promise.all(this.daemons.map((daemon) => daemon.stop()));
    await this.consul?.stop("SIGKILL");
    rmSync(this.folder, { recursive: true, force: true });
  }
}

const shell = (script) => ({ exec: ["/bin/sh", "-c", script], max_attempts: 1 });
export const kExecutors = {
  Quick: shell("echo quick"),
  Slow: shell("i=0; while [ $i -lt 600 ]; do echo line $i; i=$((i+1)); sleep 0.1; done"),
  Bad: shell("echo trying; exit 3"),
};

export async function launch() {
  return chromium.launch({ executablePath: LICTOR_BROWSER, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
}

/** Errors of the page's scripts, and what the security policy refused. */
export function watchErrors(page) {
  const errors = [];
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => {
    // The browser tells each failed request; the tests make some fail.
    if (message.type() === "error" && !/Failed to load resource|net::ERR_/.test(message.text())) errors.push(message.text());
  });
  return errors;
}

/** What axe finds that is serious. The policy allows no script of ours in the page, so by CDP. */
export async function seriousFindings(page) {
  const session = await page.context().newCDPSession(page);
  const run = async (expression) => {
    const { result, exceptionDetails } = await session.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  };
  await run(`${axe}; true`);
  const found = await run(`axe.run(document, { resultTypes: ["violations"] }).then((r) => r.violations.filter((v) => ["serious", "critical"].includes(v.impact)).map((v) => v.id + ": " + v.nodes.map((n) => n.target + " " + n.failureSummary).join("; ")))`);
  await session.detach();
  return found;
}
