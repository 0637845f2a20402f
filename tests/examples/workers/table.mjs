import { setTimeout as sleep } from "node:timers/promises";
import { Permanent, Retry, serve } from "./lictor_worker.mjs";

serve({
  Echo(run) {
    console.log("said", run.id);
    return { text: run.task.taskPara.text, number: run.number, token: run.fencingToken };
  },
  async Fail() {
    throw new Error('it failed: ä\n"quoted"');
  },
  Permanent() {
    throw new Permanent("for good");
  },
  Retry() {
    throw new Retry("later", "10s");
  },
  Commit(run) {
    run.put("a", "text");
    run.put("b", "new", 0);
    run.delete("c");
  },
  Progress(run) {
    run.progress({ done: 1, total: 2, text: 'half\n"way"' });
  },
  async Wait(run) {
    await sleep(600_000, null, { signal: run.signal });
  },
  Huge() {
    return 1e400;
  },
  Large() {
    return "y".repeat(1_100_000);
  },
  Broken() {
    return "x😀".slice(0, 2);
  },
  BrokenError() {
    throw new Error("y😀".slice(0, 2));
  },
  BrokenProgress(run) {
    run.progress({ text: "z😀".slice(0, 2) });
  },
  RetryLong() {
    throw new Retry("later", "2w99999999999999999999h");
  },
  RetrySeconds() {
    throw new Retry("later", 1.5);
  },
  Odd() {
    return 1n;
  },
  async Slow() {
    await sleep(500);
  },
});
