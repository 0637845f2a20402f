#!/usr/bin/env python3
"""Each warning and error that the daemon logs has a row in src/manual/troubleshooting.md.

The lines are taken from the sources: the text literals that log() gets with Level::kWarn or kError,
those of Membership::report_error(), and the table of facts. So do the reasons of "lictor why" and the
kinds of findings. And the other way round: each line, reason, kind and error in the page's tables is
in the sources.

What this cannot see: a text that is put together when the program runs. The places that log such a
text are listed below, so that a new one is noticed; the page describes them by how they begin.
"""
import json
import os
import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]

# Where a text is logged that is no literal.
COMPUTED = {
    "src/app/admin_server.cpp": 1,   # of a listener: its port is taken
    "src/app/daemon.cpp": 6,       # refuse(), the configuration's warnings thrice, state_dir, a log file
    "src/runtime/membership.cpp": 1,  # report_error() itself
}

LITERAL = r'(?:R"\((?:.*?)\)"|"(?:[^"\\]|\\.)*")'
TEXT = rf'{LITERAL}(?:\s*{LITERAL})*'


def text_of(literals):
    parts = []
    for raw, plain in re.findall(r'R"\((.*?)\)"|"((?:[^"\\]|\\.)*)"', literals, re.S):
        parts.append(raw or re.sub(r"\\(.)", r"\1", plain))
    return "".join(parts)


def first_cells(page, heading):
    """What stands in backticks in the first column of the tables below this heading."""
    section = page[page.index(f"## {heading}\n"):]
    section = section[:section.find("\n## ", 3)]
    cells = re.findall(r"^\| (`.+?`) \|", section, re.M)
    return [text for cell in cells for text in re.findall(r"`([^`]+)`", cell)]


def others(page):
    """What is wrong with the tables of reasons, findings and errors."""
    bad = []
    read = lambda name: (SOURCE / name).read_text()
    reasons = set(re.findall(r'return \{\s*"(\w+)"', read("src/wire/reason_text.cpp"))) - {"unknown"}
    reasons |= {"leader_silent", "orphan"}  # src/cli/why.cpp
    api = json.loads(read("src/admin/page/openapi.json"))
    findings = set(api["components"]["schemas"]["Finding"]["properties"]["kind"]["enum"])
    found = "".join(read(f"src/{name}.cpp")
                    for name in ("cluster/diagnosis", "cluster/task_facts", "admin/queues"))
    for kind in findings:
        if f'"{kind}"' not in found:
            bad.append(f"openapi.json: no finding is of the kind {kind}")
    for heading, wanted in (("A task does not start", reasons), ("Findings", findings)):
        told = set(first_cells(page, heading))
        if told != wanted:
            bad.append(f'troubleshooting.md, "{heading}": {sorted(wanted - told)} have no row, '
                       f"{sorted(told - wanted)} are not in the sources")
    sources = " ".join(text_of(literals)
                       for path in sorted((SOURCE / "src").rglob("*.cpp"))
                       for literals in re.findall(TEXT, path.read_text(), re.S))
    sources += " ".join(os.strerror(number) for number in (2, 13, 30))
    for heading in ("Errors of the configuration", "Errors of commands", "Errors of jobs"):
        for text in first_cells(page, heading):
            for part in re.split(r"\.\.\.|\bURL\b|\bN\b", text):
                part = part.strip(" ,:()")
                if part and part not in sources:
                    bad.append(f'troubleshooting.md, "{heading}": nothing says "{part}"')
    return bad


def main():
    wanted, known, computed, bad = {}, set(), {}, []
    for path in sorted((SOURCE / "src").rglob("*.cpp")):
        name = str(path.relative_to(SOURCE))
        source = path.read_text()
        for level, literals in re.findall(rf'Level::k(\w+),\s*({TEXT})', source, re.S):
            text = text_of(literals)
            known.add(text)
            if level in ("Warn", "Error"):
                wanted.setdefault(text, name)
        for literals in re.findall(rf'\breport_error\([^,()]+,\s*({TEXT}),', source, re.S):
            if name.startswith("src/runtime/"):
                wanted.setdefault(text_of(literals), name)
        count = len(re.findall(r'\blog\(\s*(?:runtime::)?Level::k(?:Warn|Error),\s*(?!\s|R?")', source))
        if count:
            computed[name] = count
    if len(wanted) < 30:
        bad.append(f"found {len(wanted)} lines only: has the form of log() changed?")
    if computed != COMPUTED:
        bad.append(f"texts put together at run time are logged in {computed}, expected {COMPUTED}: "
                   "describe the new ones in troubleshooting.md, then correct this list")

    page = (SOURCE / "src/manual/troubleshooting.md").read_text()
    rows = {}
    for section in re.split(r"^## ", page, flags=re.M):
        if section.startswith("Log lines"):
            for table in re.split(r"\n\n", section):
                if table.startswith("| line |"):
                    for line in re.findall(r"^\| `(.+?)` \|(.*)$", table, re.M):
                        rows[line[0]] = line[1]
    for text, name in wanted.items():
        if text not in rows:
            bad.append(f'{name}: troubleshooting.md has no row for "{text}"')
    for text, rest in rows.items():
        if text not in known | set(wanted):
            bad.append(f'troubleshooting.md: nothing logs "{text}"')
        if not all(cell.strip() for cell in rest.strip().strip("|").split("|")):
            bad.append(f'troubleshooting.md: "{text}" lacks its cause or what to do')
    bad += others(page)
    print("\n".join(bad), file=sys.stderr)
    return 1 if bad else 0


sys.exit(main())
