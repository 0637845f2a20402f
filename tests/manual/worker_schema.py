#!/usr/bin/env python3
"""src/manual/worker.schema.json, workers.md and lictor agree on what a worker says and is told.

    worker_schema.py BUILD

A worker gives each reply of a pool to "lictor dev". What the schema refuses must end it, and nothing
else. What lictor says must fit the schema, and so must each line of the page's conversation. The page's
own worker is run.
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
from json_schema import fits

SOURCE = pathlib.Path(__file__).resolve().parents[2]
LICTOR = str(pathlib.Path(sys.argv[1]).resolve() / "src/lictor")
SCHEMA = json.loads((SOURCE / "src/manual/worker.schema.json").read_text())
PAGE = (SOURCE / "src/manual/workers.md").read_text()

# Says for each run what its task asks for, where "@" is the attempt.
WORKER = """#!/usr/bin/env python3
import json, os, sys
replies = os.fdopen(int(os.environ["LICTOR_WORKER_FD"]), "w")
print('{"ready": {"protocol": 1}}', file=replies, flush=True)
for line in sys.stdin:
    with open(sys.argv[1], "a") as heard:
        heard.write(line)
    run = json.loads(line).get("run")
    if run:
        asked = run["task"]["taskPara"]
        for reply in asked["replies"]:
            print(json.dumps(reply).replace('"@"', json.dumps(run["attempt"])), file=replies,
                  flush=True)
"""

POOL = [None, True, False, 0, 1, -1, 1.5, "", "x", "10s", "1m30s", "soon", "1d", "true", [], [1], {},
        {"a": 1}, "a\nb", 1e300]
DONE = {"done": {"attempt": "@"}}


def replies():
    """Each with what it is followed by, so that the attempt ends if it is taken."""
    for kind, members in (("done", ("attempt", "result", "output", "later")),
                          ("failed", ("attempt", "error", "permanent", "retryIn", "output", "later")),
                          ("progress", ("attempt", "done", "total", "text", "later"))):
        for member in members:
            for value in POOL:
                if member == "attempt" and isinstance(value, str) and value:
                    continue  # it fits, and names another attempt
                yield {kind: {"attempt": "@", member: value}}, [DONE] if kind == "progress" else []
        for value in POOL:
            yield {kind: value}, []
    for other in ({"ready": {"protocol": 1}}, {"run": {}}, {}, [], "done", None):
        yield other, []


def is_reply(reply):
    """By the schema; "ready" comes once."""
    return any(fits(SCHEMA["$defs"][kind], reply, SCHEMA) for kind in ("done", "failed", "progress"))


def put(key, value):
    urllib.request.urlopen(urllib.request.Request(
        f"{os.environ['CONSUL_HTTP_ADDR']}/v1/kv/{key}", data=json.dumps(value).encode(),
        method="PUT"), timeout=60).close()


def get(prefix):
    try:
        with urllib.request.urlopen(
                f"{os.environ['CONSUL_HTTP_ADDR']}/v1/kv/{prefix}?keys", timeout=60) as answer:
            return [key for key in json.load(answer) if not key.endswith("/")]
    except urllib.error.HTTPError:
        return []


def error_of(number):
    with urllib.request.urlopen(
            f"{os.environ['CONSUL_HTTP_ADDR']}/v1/kv/lictor/default/dead/{number}?raw",
            timeout=60) as answer:
        return json.load(answer)["error"]


def check_page(bad):
    """The conversation of the page."""
    for side, line in re.findall(r"^([<>]) (.*)$", PAGE, re.M):
        message = json.loads(line)
        kinds = ("run", "cancel") if side == ">" else ("ready", "done", "failed", "progress")
        if not any(fits(SCHEMA["$defs"][kind], message, SCHEMA) for kind in kinds):
            bad.append(f"workers.md: {line}: the schema refuses it")


def main():
    bad = []
    check_page(bad)
    folder = pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / f"lictor-worker-{os.getpid()}"
    folder.mkdir()
    (folder / "worker").write_text(WORKER)
    (folder / "page").write_text(
        "#!/usr/bin/env python3\n" + re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)[-1])
    for name in ("worker", "page"):
        (folder / name).chmod(0o700)
    config = {"admin": {"listen": []}, "log": {"level": "error"}, "queues": [{
        "max_attempts": 1, "concurrency": 4, "executors": {
            "Try": {"worker": [str(folder / "worker"), str(folder / "heard")], "processes": 2},
            "Page": {"worker": [str(folder / "page")]}}}]}
    pool = list(replies())
    with dev_store(LICTOR, config):
        for number, (reply, then) in enumerate(pool):
            put(f"lictor/default/tasks/{number}",
                {"taskType": "Try", "taskPara": {"replies": [reply, *then]}})
        put("lictor/default/tasks/page", {"taskType": "Page", "taskPara": {"to": "somebody"}})
        put("lictor/default/tasks/page-bad", {"taskType": "Page"})
        until = time.monotonic() + 300
        while get("lictor/default/tasks/") and time.monotonic() < until:
            time.sleep(0.1)
        left = get("lictor/default/tasks/")
        dead = {key.rsplit("/", 1)[1]: None for key in get("lictor/default/dead/")}
        for number in dead:
            dead[number] = error_of(number)
    if left:
        bad.append(f"not run: {left}")
    refused = 0
    for number, (reply, _) in enumerate(pool):
        error = dead.get(str(number), "")
        ended = "broke the protocol" in error
        refused += ended
        if is_reply(reply) == ended:
            bad.append(f"{json.dumps(reply)}: the schema {'takes' if ended else 'refuses'} it; "
                       f"lictor: {error or 'takes it'}")
    if not 50 < refused < len(pool) - 50:
        bad.append(f"{refused} of {len(pool)} replies are refused")
    if "page" in dead or "KeyError" not in dead.get("page-bad", ""):
        bad.append(f"the page's worker: {dead.get('page')}, {dead.get('page-bad')}")
    for line in (folder / "heard").read_text().splitlines():
        if not any(fits(SCHEMA["$defs"][kind], json.loads(line), SCHEMA) for kind in ("run", "cancel")):
            bad.append(f"lictor says {line}: the schema refuses it")
    subprocess.run(["rm", "-r", str(folder)], check=True)
    print("\n".join(bad), file=sys.stderr)
    return 1 if bad else 0


sys.exit(main())
