#!/usr/bin/env python3
"""A job as a worker, and without LICTOR_WORKER_FD the same as a program: parses its task.

    worker.py JOURNAL    a task that says so notes there when it began, as job_recorder does
"""
import email, json, logging, os, ssl, sys, time, urllib.request


def work(task):
    if task.get("taskPara", {}).get("note"):
        began = time.monotonic_ns()
        with open(sys.argv[1], "a") as journal:
            journal.write(f"{began}\n")


descriptor = os.environ.get("LICTOR_WORKER_FD")
if descriptor is None:
    work(json.load(sys.stdin))
    sys.exit(0)
replies = open(int(descriptor), "w")
print('{"ready": {"protocol": 1}}', file=replies, flush=True)
for line in sys.stdin:
    run = json.loads(line).get("run")
    if run:
        work(run["task"])
        print(json.dumps({"done": {"attempt": run["attempt"]}}), file=replies, flush=True)
