// What a test starts: programs whose end is seen at once, and a Consul on free ports of the loopback.

import { execFileSync, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const kPatience = 60_000;

/** A program ended that has to live: no wait goes on after this. */
export class Ended extends Error {}

/** Waits until `condition` returns something true, and returns it. */
export async function eventually(condition, what = String(condition), patience = kPatience) {
  const end = Date.now() + patience;
  let last;
  for (;;) {
    try {
      const value = await condition();
      if (value) return value;
      last = value;
    } catch (error) {
      if (error instanceof Ended) throw error;
      last = error;
    }
    if (Date.now() > end) throw new Error(`not within ${patience} ms: ${what} (${last?.message ?? last})`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

export class Program {
  constructor(command, log, environment = {}) {
    this.log = log;
    this.command = command[0];
    const out = openSync(log, "a");
    // It ends with this test, also when a time limit kills that.
    this.process = spawn("setpriv", ["--pdeathsig", "KILL", ...command], { stdio: ["ignore", out, out], env: { ...process.env, ...environment } });
    closeSync(out);
    this.ended = new Promise((resolve) => this.process.once("exit", resolve));
  }
  text() {
    return readFileSync(this.log, "utf8");
  }
  get alive() {
    return this.process.exitCode === null && this.process.signalCode === null;
  }
  /** For a condition that is waited for: the wait ends with the program, and shows its last lines. */
  mustLive() {
    if (!this.alive) throw new Ended(`${this.command} ended:\n${this.text().trimEnd().split("\n").slice(-8).join("\n")}`);
  }
  async stop(signal = "SIGTERM") {
    if (!this.alive) return;
    this.process.kill(signal);
    const timer = setTimeout(() => this.process.kill("SIGKILL"), 30_000);
    await this.ended;
    clearTimeout(timer);
  }
}

async function freePorts(count) {
  const servers = await Promise.all(
    Array.from({ length: count }, () => new Promise((resolve, reject) => {
      const server = createServer().once("error", reject).listen(0, "127.0.0.1", () => resolve(server));
    })),
  );
  const ports = servers.map((server) => server.address().port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

/** A Consul that has a leader: its program, and its URL. Its log goes to `folder`. */
export async function startConsul(binary, folder) {
  const script = fileURLToPath(new URL("../../consul/agent-ports.sh", import.meta.url));
  const closedPorts = execFileSync(script, [binary], { encoding: "utf8" }).trimEnd().split("\n");
  // A port may be taken between its choice and its use: then others are chosen.
  for (let tries = 1; ; ++tries) {
    const [http, server, lan] = await freePorts(3);
    const url = `http://127.0.0.1:${http}`;
    const program = new Program(
      [binary, "agent", "-dev", "-bind=127.0.0.1", `-http-port=${http}`, `-server-port=${server}`, `-serf-lan-port=${lan}`, ...closedPorts, "-log-level=warn"],
      join(folder, "consul.log"),
    );
    try {
      await eventually(async () => {
        program.mustLive();
        // No session can be created before the server that leads has registered its node with this
        // check ("Missing node registration").
        const answer = await fetch(`${url}/v1/health/state/passing`);
        return answer.ok && (await answer.text()).includes("serfHealth");
      }, "Consul has a leader and knows its node");
      return { program, url };
    } catch (error) {
      await program.stop("SIGKILL");
      if (!(error instanceof Ended) || tries === 5) throw error;
    }
  }
}
