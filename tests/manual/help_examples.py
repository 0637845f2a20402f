#!/usr/bin/env python3
"""Each example of a command's help that goes through jq gives what it promises.

    help_examples.py BUILD

Runs them against "lictor dev". jq must find what it looks for in the document, and with -r an example
gives words and no JSON.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import urllib.request

from dev_store import dev_store

FOLDER = pathlib.Path(sys.argv[1]).resolve() / "src"
LICTOR = str(FOLDER / "lictor")
# They follow, measure for a minute, or need several partitions.
LEFT_OUT = re.compile(r"--follow|lictor (bench|drain|undrain)\b")
bad = []


def run(*words):
    return subprocess.run([LICTOR, *words], capture_output=True, text=True, timeout=60)


def put(key, value):
    request = urllib.request.Request(f"http://{os.environ['CONSUL_HTTP_ADDR'].removeprefix('http://')}/v1/kv/{key}",
                                     data=json.dumps(value).encode(), method="PUT")
    urllib.request.urlopen(request).read()


def examples():
    commands = re.findall(r"^  ([a-z]+)  ", run("--help").stdout, re.M)
    texts = [run(command, "--help").stdout for command in commands]
    for command in ("dead", "schedule"):
        inner = re.findall(r"^  ([a-z]+)  ", run(command, "--help").stdout, re.M)
        texts += [run(command, word, "--help").stdout for word in inner]
    for text in texts:
        yield from re.findall(r"^  (lictor .*\| jq .*)$", text, re.M)


with dev_store(LICTOR, {"queues": [{"max_attempts": 1, "executors": {"*": {"exec": ["/bin/true"]}}}]}):
    os.environ["PATH"] = f"{FOLDER}:{os.environ['PATH']}"
    limit = time.monotonic() + 60
    while run("leader").returncode != 0 and time.monotonic() < limit:
        time.sleep(0.2)
    run("submit", "Report", "--id", "42", "--in", "1h")
    run("schedule", "add", "nightly", "--cron", "30 2 * * *", "--type", "Backup")
    letter = {"record": {"taskType": "Report"}, "key": "lictor/default/tasks/42", "reason": "failed",
              "error": "exit status 1", "attempts": 3, "at": "2026-01-01T00:00:00Z", "node": "a"}
    put("lictor/default/dead/42,5710", letter)
    found = list(dict.fromkeys(examples()))
    for example in found:
        if LEFT_OUT.search(example):
            continue
        done = subprocess.run(["bash", "-c", example], capture_output=True, text=True, timeout=60)
        words = "jq -r" not in example or not re.search(r"^[{\[]", done.stdout, re.M)
        null = done.stdout.strip() == "null" and ".error" not in example
        if done.returncode != 0 or "jq: error" in done.stderr or not words or null:
            bad.append(f"{example}\n  exit code {done.returncode}: {done.stdout}{done.stderr}")
if len(found) < 12:
    bad.append(f"only {len(found)} examples were found: {found}")
for line in bad:
    print(line)
print(f"{len(found)} examples, {len(bad)} bad")
sys.exit(1 if bad else 0)
