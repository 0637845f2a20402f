#!/usr/bin/env python3
"""src/manual/commands.md names each field that a command prints with --json.

    json_fields.py BUILD

Runs the commands against "lictor dev". Each member of the document is in the command's row of the
table, and those that the row names first, before anything that depends, are in the document.
"""
import json
import pathlib
import re
import subprocess
import sys
import time

from dev_store import dev_store

SOURCE = pathlib.Path(__file__).resolve().parents[2]
LICTOR = str(pathlib.Path(sys.argv[1]).resolve() / "src/lictor")
bad = []


def tell(text):
    bad.append(text)


def run(*words):
    done = subprocess.run([LICTOR, *words, "--json"], capture_output=True, text=True, timeout=60)
    try:
        return json.loads(done.stdout)
    except ValueError:
        tell(f"lictor {' '.join(words)}: no document: {done.stdout}{done.stderr}")
        return {}


def rows(page, head):
    table = page[page.index(head):].split("\n\n")[0]
    return re.findall(r"^\| (.+?) \| (.+) \|$", table, re.M)[1:]


def main():
    page = (SOURCE / "src/manual/commands.md").read_text()
    told = {}
    for names, fields in rows(page, "| command | fields |"):
        for name in re.findall(r"`([^`]+)`", names):
            told[name] = fields
    task_fields = set()
    for names, _ in rows(page, "| field | meaning |"):
        task_fields |= set(re.findall(r"`([^`]+)`", names))

    def hold(name, document):
        fields = told[name]
        named = set(re.findall(r"`([^`]+)`", fields))
        first = set(re.findall(r"`([^`]+)`", re.sub(r"\([^)]*\)", "", re.split("[;:]", fields)[0])))
        for key in document:
            if key not in named:
                tell(f"lictor {name}: commands.md does not name {key}")
        for key in first - document.keys():
            tell(f"lictor {name}: commands.md names {key}, which is not printed")

    config = {"queues": [{
        "history": True, "max_attempts": 1,
        "executors": {"Good": {"exec": ["/bin/echo", "said"]}, "Bad": {"exec": ["/bin/false"]}}}]}
    with dev_store(LICTOR, config):
        limit = time.monotonic() + 60
        while run("leader").get("lock") != "held" and time.monotonic() < limit:
            bad.clear()
            time.sleep(0.2)
        bad.clear()
        hold("submit", run("submit", "Good", "--id", "g", "--wait"))
        hold("submit", run("submit", "Bad", "--id", "b", "--wait"))
        waiting = subprocess.Popen([LICTOR, "submit", "Good", "--id", "c", "--in", "1h", "--wait", "--json"],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        limit = time.monotonic() + 60
        while not run("cancel", "c").get("cancelled") and time.monotonic() < limit:
            bad.clear()
            time.sleep(0.2)
        cancelled = json.loads(waiting.communicate(timeout=60)[0])
        hold("submit", cancelled)
        if (waiting.returncode, cancelled.get("state")) != (6, "cancelled"):
            tell(f"a cancelled task: exit code {waiting.returncode}, {cancelled}")
        later = run("submit", "Good", "--id", "later", "--in", "1h")
        hold("submit", later)
        listed = run("list")
        hold("list", listed)
        shown = run("show", "b")
        hold("show", shown)
        for document, more in ((listed, set()), (shown, {"session", "result", "output_tail", "value"})):
            for task in document.get("tasks", []):
                for key in task.keys() - task_fields - more:
                    tell(f"commands.md does not name the field {key} of a task")
                for key in task_fields - task.keys():
                    tell(f"commands.md names the field {key} of a task, which is not printed")
        hold("why", run("why", "later"))
        hold("logs", run("logs", "g"))
        hold("dead list", run("dead", "list"))
        hold("dead show", run("dead", "show", "b"))
        schedule_fields = set()
        for names, _ in rows(page, "| member | meaning |"):
            schedule_fields |= set(re.findall(r"`([^`]+)`", names))
        hold("schedule add", run("schedule", "add", "s", "--every", "1h", "--type", "Good"))
        hold("schedule next", run("schedule", "next", "s"))
        listed = run("schedule", "list")
        hold("schedule list", listed)
        shown = run("schedule", "show", "s")
        hold("schedule show", shown)
        for one, more in ((listed["schedules"][0], set()), (shown["schedule"], {"value"})):
            if one.keys() != schedule_fields | more:
                tell(f"commands.md and a schedule differ: {one.keys() ^ (schedule_fields | more)}")
        hold("schedule pause", run("schedule", "pause", "s"))
        hold("schedule resume", run("schedule", "resume", "s"))
        hold("schedule run", run("schedule", "run", "s"))
        hold("schedule remove", run("schedule", "remove", "s"))
        hold("pause", run("pause"))
        hold("resume", run("resume"))
        hold("retry", run("retry", "b"))
        run("show", "b")
        hold("cancel", run("cancel", "later"))
        limit = time.monotonic() + 60
        while "tasks" not in run("dead", "show", "b") and time.monotonic() < limit:
            bad.clear()
            time.sleep(0.2)
        hold("dead purge", run("dead", "purge", "b"))
        hold("leader", run("leader"))
        hold("members", run("members"))
        hold("check", run("check"))
        hold("version", run("version"))
    print("\n".join(bad), file=sys.stderr)
    return 1 if bad else 0


sys.exit(main())
