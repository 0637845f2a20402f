#!/usr/bin/env python3
"""Each metric of /metrics has a place in the table of src/manual/operating.md, and each field of a
queue's status one in openapi.json; and the other way round.
"""
import json
import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]


def read(name):
    return (SOURCE / name).read_text()


def main():
    gauges = read("src/admin/gauges.cpp")
    made = set(re.findall(r'"(lictor_[a-z_]+)"', read("src/admin/metrics.cpp") + gauges))
    page = read("src/manual/operating.md")
    section = page[page.index("## Metrics\n"):]
    section = section[:section.index("\n## ", 3)]
    table = "".join(re.findall(r"^\|[^|]*\|", section, re.M))
    told = set(re.findall(r"`(lictor_[a-z_]+)", table))
    bad = [f"operating.md: no row for {name}" for name in sorted(made - told)]
    bad += [f"operating.md: there is no metric {name}" for name in sorted(told - made)]

    kinds = "kCount|kFlag|kSeconds|kCounter|kByState"
    rows = re.findall(r'\{"(\w+)", (?:nullptr|"lictor_\w+"),'
                      r'.*?\b(kCount|kFlag|kSeconds|kCounter|kByState),', gauges, re.S)
    fields = {name + ("_ms" if kind == "kSeconds" else "")
              for name, kind in rows if kind != "kCounter"}
    api = json.loads(read("src/admin/page/openapi.json"))
    known = api["components"]["schemas"]["QueueStatus"]["properties"]
    bad += [f"openapi.json: QueueStatus has no {name}" for name in sorted(fields - set(known))]
    assert len(made) > 20 and len(fields) > 9, (made, fields)
    for line in bad:
        print(line, file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
