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

import { writeSync } from "node:fs";
import { createInterface } from "node:readline";

/** Trying again cannot help: the task becomes a dead letter at once. */
export class Permanent extends Error {}

/** Try again, not before `after`, a duration such as "10s". */
export class Retry extends Error {
  constructor(message, after) {
    super(message);
    this.after = after;
  }
}

/** An attempt: task (the record), id, key, type, queue, number, fencingToken, deadline (or undefined). */
class Run {
  #stop = new AbortController();
  commit = [];

  constructor(message) {
    Object.assign(this, message);
    this.signal = this.#stop.signal; // aborted when the attempt should end: hand it to fetch() and the like
  }
  cancel(reason) {
    this.#stop.abort(new Error(reason));
  }
  progress(members) {
    send("progress", { ...members, attempt: this.attempt }); // { done, total, text }
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

function send(kind, members) {
  let line = Buffer.from(JSON.stringify({ [kind]: members }) + "\n");
  while (line.length) line = line.subarray(writeSync(replies, line));
}

async function answer(run, jobs) {
  const { attempt } = run;
  try {
    const job = Object.hasOwn(jobs, run.type) ? jobs[run.type] : jobs["*"];
    if (!job) throw new Permanent(`this worker has no job for the type ${run.type}`);
    const result = (await job(run)) ?? null;
    send("done", { attempt, result, commit: run.commit });
  } catch (error) {
    const message = error instanceof Permanent || error instanceof Retry ? error.message : String(error);
    send("failed", { attempt, error: message, permanent: error instanceof Permanent || undefined, retryIn: error?.after });
  }
}

/** Runs jobs, an object of functions by taskType, until lictor has no more. */
export async function serve(jobs) {
  const running = new Map();
  send("ready", { protocol: 1 });
  for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    const message = JSON.parse(line);
    if (message.run) {
      const run = new Run(message.run);
      running.set(run.attempt, run);
      answer(run, jobs).then(() => running.delete(run.attempt));
    } else if (message.cancel) {
      running.get(message.cancel.attempt)?.cancel(message.cancel.reason);
    }
  }
}
