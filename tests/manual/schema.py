#!/usr/bin/env python3
"""src/manual/task.schema.json and lictor agree on what a record is.

    schema.py BUILD

Each value of a pool is put into each field of a record, and the record into the store of "lictor dev".
What the schema refuses must be unreadable to "lictor list", and nothing else.
"""
import json
import os
import pathlib
import subprocess
import sys
import urllib.request

from dev_store import dev_store
from json_schema import fits

SOURCE = pathlib.Path(__file__).resolve().parents[2]
LICTOR = str(pathlib.Path(sys.argv[1]).resolve() / "src/lictor")

POOL = [
    None, True, False, 0, 1, -1, 5, 1000, 4294967295, 4294967296, 1.5, 1e3, -0.5, 1795512600,
    1795512600.25, 1795512600250, 253402300799999, 253402300800000, "", "x", "true", "false", "TRUE",
    "5", "1795512600", "1795512600.25", "-5", "2026-11-25T09:30:00Z", "2026-11-25T09:30:00.123+01:00",
    "2026-11-25 09:30:00z", "2026-11-25T09:30:00", "2026-11-25", "soon", "90s", "1.5s", "1h30m", "0s",
    "1d", "2w", "150ms", "7us", "5", "5x", "s", "-1s", "1 s", [], [1], {}, {"initial": "1s"},
    {"initial": "1s", "max": "5m", "factor": 2, "jitter": 0.2}, {"factor": 0.5}, {"factor": 100},
    {"factor": 101}, {"jitter": 1.1}, {"jitter": -0.1}, {"max": 5}, {"maximum": "5m"}, {"factor": "2"},
]


def main():
    schema = json.loads((SOURCE / "src/manual/task.schema.json").read_text())
    records = [{"taskType": "T"}, {}]
    for field in schema["properties"]:
        for value in POOL:
            records.append({"taskType": "T", field: value})
    with dev_store(LICTOR):
        for number, record in enumerate(records):
            urllib.request.urlopen(urllib.request.Request(
                f"{os.environ['CONSUL_HTTP_ADDR']}/v1/kv/lictor/default/tasks/{number}",
                data=json.dumps(record).encode(), method="PUT"), timeout=60).close()
        done = subprocess.run([LICTOR, "list", "--json"], text=True, capture_output=True, timeout=120)
    tasks = json.loads(done.stdout)["tasks"]
    refused = {each["id"]: each["error"] for each in tasks if each["state"] == "unreadable"}
    bad = [] if len(tasks) == len(records) else [f"{len(tasks)} of {len(records)} tasks are listed"]
    for number, record in enumerate(records):
        error = refused.get(str(number))
        if fits(schema, record, schema) == (error is not None):
            bad.append(f"{json.dumps(record)}: the schema {'takes' if error else 'refuses'} it; "
                       f"lictor: {error or 'takes it'}")
    if not 50 < len(refused) < len(records) - 50:
        bad.append(f"{len(refused)} of {len(records)} records are unreadable")
    print("\n".join(bad), file=sys.stderr)
    return 1 if bad else 0


sys.exit(main())
