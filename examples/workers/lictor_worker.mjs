// Jobs of lictor in a Node process that stays (see the manual's page "workers"). Copy this file.
//
//   import { serve } from "./lictor_worker.mjs";
//
//   serve({
//     async Invoice(run) {                   // a taskType; "*": every other
//       run.put("invoices/last", run.task.taskPara.order);
//       return { pages: 3 };                 // the result: anything that JSON can hold
//     },
//   });
//
// A job that throws has failed; what it prints is its output. Jobs of one process run at the same time,
// as many as tasks_per_process says.
//
// What lictor would refuse is not sent: half a surrogate pair becomes U+FFFD, and a result that does not
// fit is left out.

import { writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { inspect } from "node:util";

/** Trying again cannot help: the task becomes a dead letter at once. */
export class Permanent extends Error {}

const seconds = { ms: 0.001, s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 };

/** Try again, not before `after`: seconds, or a duration such as "10s". At most 24 h of it count. */
export class Retry extends Error {
  constructor(message, after) {
    super(message);
    if (after === undefined) return;
    if (typeof after !== "number") {
      if (!/^(\d+(\.\d+)?(ms|[smhdw]))+$/.test(after)) {
        throw new RangeError(`Retry: expected seconds or a duration such as "10s", got ${after}`);
      }
      const parts = [...after.matchAll(/([\d.]+)([a-z]+)/g)];
      after = parts.reduce((sum, [, count, unit]) => sum + count * seconds[unit], 0);
    }
    this.after = `${Math.min(Math.max(Math.round(after * 1000), 0), 86_400_000)}ms`;
  }
}

/** An attempt: task (the record), id, key, type, queue, number, fencingToken, deadline (or undefined). */
class Run {
  #stop = new AbortController();
  commit = [];
  answered = false;

  constructor(message) {
    Object.assign(this, message);
    this.signal = this.#stop.signal; // aborted when the attempt should end: hand it to fetch() and the like
  }
  cancel(reason) {
    this.#stop.abort(new Error(reason));
  }
  progress({ done, total, text } = {}) {
    if (this.answered) return;
    const number = (value) => (Number.isFinite(value) ? value : undefined);
    const shown = text === undefined ? undefined : String(text).slice(0, mostText);
    send("progress", { attempt: this.attempt, done: number(done), total: number(total), text: shown });
  }
  /** A write to Consul KV that is made if the attempt succeeds, with its finish, or not at all. */
  put(key, value, cas) {
    this.commit.push({ key, value, cas });
  }
  delete(key, cas) {
    this.commit.push({ key, delete: true, cas });
  }
}

const replies = Number(process.env.LICTOR_WORKER_FD);
const mostBytes = 1 << 20; // of a line
const mostText = 1000; // of an error; lictor keeps no more

class TooLong extends Error {}

function send(kind, members) {
  // JSON.stringify() escapes half a pair, and nothing else so.
  const text = JSON.stringify({ [kind]: members }).replace(/\\(?:(ud[89a-f]..)|.)/g, (all, half) => (half ? "\ufffd" : all));
  let line = Buffer.from(text + "\n");
  if (line.length > mostBytes) {
    throw new TooLong(`a reply has at most ${mostBytes} bytes, this one has ${line.length}`);
  }
  while (line.length) line = line.subarray(writeSync(replies, line));
}

function done({ attempt, id, commit }, result) {
  const writes = commit.length ? commit : undefined;
  try {
    try {
      send("done", { attempt, result: result ?? null, commit: writes });
    } catch (error) {
      if (!(error instanceof TooLong)) throw new Error(`the result is no JSON: ${error.message}`);
      console.error(`lictor_worker: task ${id}: the result is left out: ${error.message}`);
      send("done", { attempt, commit: writes });
    }
  } catch (error) {
    throw error instanceof TooLong ? new Error(`its KV writes cannot be made: ${error.message}`) : error;
  }
}

async function answer(run, jobs) {
  try {
    const job = Object.hasOwn(jobs, run.type) ? jobs[run.type] : jobs["*"];
    if (!job) throw new Permanent(`this worker has no job for the type ${run.type}`);
    done(run, await job(run));
  } catch (error) {
    const known = error instanceof Permanent || error instanceof Retry;
    const text = known ? error.message : error instanceof Error ? String(error) : inspect(error);
    const permanent = error instanceof Permanent || undefined;
    send("failed", { attempt: run.attempt, error: text.slice(0, mostText), permanent, retryIn: known ? error.after : undefined });
  } finally {
    run.answered = true;
  }
}

function read(line) {
  try {
    return JSON.parse(line);
  } catch (error) {
    // lictor names the attempt before the task.
    const [, attempt] = /^\s*{\s*"run"\s*:\s*{[^{}[\]]*?"attempt"\s*:\s*"(\w+)"/.exec(line) ?? [];
    if (!attempt) throw error;
    send("failed", { attempt, error: `the worker cannot parse the task: ${error}`.slice(0, mostText), permanent: true });
    return {};
  }
}

/** Runs jobs, an object of functions by taskType, until lictor has no more. */
export async function serve(jobs) {
  const running = new Map();
  send("ready", { protocol: 1 });
  for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    const message = read(line);
    if (message.run) {
      const run = new Run(message.run);
      running.set(run.attempt, run);
      answer(run, jobs).then(() => running.delete(run.attempt));
    } else if (message.cancel) {
      running.get(message.cancel.attempt)?.cancel(message.cancel.reason);
    }
  }
}
