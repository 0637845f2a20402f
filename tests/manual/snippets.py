#!/usr/bin/env python3
"""Each snippet of README.md and of the manual is what it says it is.

    snippets.py BUILD

C++ compiles as it stands. JSON parses. A configuration is taken by "lictor run --dry-run", with
programs that are there in place of those of /opt/jobs, and so is each "Example:" of the page on the
configuration. A record is taken by "lictor submit". Python, shell, Go and JavaScript parse, where
there is something that parses them. Each "lictor ..." in a shell snippet or in the text names a
command and options that there are; those that end by themselves are run against "lictor dev" without a
worker, and must not end by 2, bad usage. Those that only look, or that wait for a task, are run again
with a worker, and must succeed. A schedule is taken by "lictor schedule add". Each link to a file leads
to one. README.md keeps to 150 lines.
"""
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import time

from dev_store import dev_store

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv[1]).resolve()
LICTOR = str(BUILD / "src/lictor")
# Commands that end by themselves and do no harm to a store of their own.
RUN = {"submit", "list", "show", "why", "cancel", "retry", "dead", "pause", "resume", "members",
       "schedule", "version", "help", "leader", "stats", "logs", "events", "check"}
# Those that need no task, and succeed while a worker leads.
LOOK = {"list", "members", "version", "help", "leader", "stats", "events", "check"}

bad = []
seen = {}
waits = {}  # commands to be run with a worker, and where they are
runs = 0


def tell(where, text):
    bad.append(f"{where}: {text}")


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=300, **options)


def snippets(path):
    """(line, language, text) of each fenced block."""
    lines, block, language, begin = path.read_text().split("\n"), None, "", 0
    for number, line in enumerate(lines, 1):
        if block is None and line.startswith("```"):
            block, language, begin = [], line[3:], number
        elif line == "```":
            yield begin, language, "\n".join(block) + "\n"
            block = None
        elif block is not None:
            block.append(line)


def without_comments(text):
    """JSON without the comments of lictor's configuration, which stand on lines of their own."""
    return re.sub(r"^\s*//.*$", "", text, flags=re.M)


def check_json(where, text, folder):
    try:
        value = json.loads(without_comments(text))
    except ValueError as error:
        return tell(where, f"no JSON: {error}")
    sections = {"log", "consul", "admin", "logs", "queues"}
    if isinstance(value, dict) and sections & value.keys():
        if "queues" not in value:
            value["queues"] = [{"executors": {"*": {"exec": ["/bin/true"]}}}]
        file = folder / "lictor.json"
        file.write_text(with_files(json.dumps(value), folder))
        done = run(LICTOR, "run", "--dry-run", "--config", str(file))
        if done.returncode != 0:
            tell(where, done.stderr.strip())
    elif isinstance(value, dict) and "taskType" in value:
        done = run(LICTOR, "submit", "--ndjson", "-", input=json.dumps(value) + "\n")
        if done.returncode != 0:
            tell(where, done.stderr.strip())
    elif isinstance(value, dict) and isinstance(value.get("task"), dict):
        done = run(LICTOR, "schedule", "add", "snippet", "--replace", "-f", "-",
                   input=json.dumps(value))
        if done.returncode != 0:
            tell(where, done.stderr.strip())


def with_files(text, folder):
    """The configuration with files that are there in place of /opt/jobs/... and /etc/lictor/..."""
    token, pem = folder / "file.token", folder / "file.pem"
    if not pem.exists():
        token.write_text("5ec3e700-0000-0000-0000-000000000000")
        token.chmod(0o600)
        run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=lictor",
            "-keyout", str(folder / "file.key"), "-out", str(pem))
        pem.write_text(pem.read_text() + (folder / "file.key").read_text())
    text = re.sub(r'"/opt/jobs/[^"]*"', '"/bin/true"', text)
    text = re.sub(r'"/etc/lictor/[^"]*[.]token"', json.dumps(str(token)), text)
    return re.sub(r'"/etc/lictor/[^"]*[.](pem|key)"', json.dumps(str(pem)), text)


def check_example(where, section, text, folder):
    """One "Example:" of the configuration's page, members of an object of its section."""
    try:
        members = json.loads("{" + text + "}")
    except ValueError as error:
        return tell(where, f"no JSON: {error}")
    value = {"queues": [{"executors": {"*": {"noop": {}}}}]}
    if section == "Queues":
        value["queues"][0] |= members
    elif section == "Executors":
        value["queues"][0]["executors"]["*"] = members
    else:
        value |= members
    if members.keys() & {"plugin", "user", "cpp"}:
        return None  # takes a plug-in, a user or a program of its own
    file = folder / "example.json"
    file.write_text(with_files(json.dumps(value), folder))
    done = run(LICTOR, "run", "--dry-run", "--config", str(file))
    if done.returncode != 0:
        tell(where, done.stderr.strip())


def check_cpp(where, text, folder):
    file = folder / "snippet.cpp"
    file.write_text(text)
    done = run("g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
               f"-I{SOURCE}/include", str(file))
    if done.returncode != 0:
        tell(where, done.stderr)


def check_by(where, command, text, folder, name):
    if shutil.which(command[0]) is None:
        return
    (folder / name).write_text(text)
    done = run(*command, str(folder / name))
    if done.returncode != 0:
        tell(where, done.stderr or done.stdout)


def help_of(path):
    if path not in seen:
        done = run(LICTOR, *path, "--help")
        seen[path] = done.stdout if done.returncode == 0 else None
    return seen[path]


def check_command(where, words):
    """`words` begin with "lictor"."""
    words = words[1:]
    if not words or words[0].startswith("-") or words[0] in ("help", "COMMAND"):
        return
    path = (words[0],)
    if words[0] in ("dead", "schedule") and len(words) > 1:
        path = tuple(words[:2])
    text = help_of(path)
    if text is None:
        return tell(where, f"there is no command \"lictor {' '.join(path)}\"")
    common = help_of(("--help",)) or ""
    for word in words:
        if not re.match(r"--?[a-z]", word):
            continue
        option = word.split("=")[0]
        if not re.search(rf"(^|[\s,]){re.escape(option)}([\s,=]|$)", text + common, re.M):
            tell(where, f"lictor {' '.join(path)} has no option {option}")


def words_of(line):
    """Each command in a line of shell that begins with lictor, as words."""
    for piece in re.split(r"\s*(?:\|\|?|&&|;|\s>\s|\s<\s)\s*", line.split(" #")[0]):
        if not piece.startswith("lictor "):
            continue
        try:
            yield shlex.split(piece)
        except ValueError:
            continue


def check_shell(where, text, folder):
    check_by(where, ["bash", "-n"], text, folder, "snippet.sh")
    joined = text.replace("\\\n", " ")
    for line in joined.split("\n"):
        for words in words_of(line.strip()):
            check_command(where, words)
            check_run(where, words, folder)


def check_run(where, words, folder):
    """Runs a command if it ends by itself, without a worker."""
    global runs
    words = [word for word in words[1:] if word not in ("-f", "--follow")]
    if not words or words[0] not in RUN or any("$" in word for word in words):
        return
    if "--wait" in words or (words[0] in LOOK and "--step-down" not in words):
        waits.setdefault(tuple(words), where)
    if "--wait" in words:
        if "--wait-timeout" not in words:
            words += ["--wait-timeout", "10ms"]
        else:
            words[words.index("--wait-timeout") + 1] = "10ms"
    record = json.dumps({"taskType": "Notify"}) + "\n"
    (folder / "tasks.ndjson").write_text(record)
    done = run(LICTOR, *words, cwd=folder, input=record)
    runs += 1
    if done.returncode == 2:
        tell(where, f"lictor {shlex.join(words)}: {done.stderr.strip()}")


def check_inline(where, words, folder):
    """A command in the text. Many lack their arguments there, or have names in their place."""
    check_command(where, words)
    bare = len(words) == 2 and words[1] not in LOOK
    bare = bare or words[1:] in (["dead", "purge"], ["submit", "--ndjson"], ["submit", "--wait"])
    if not bare and not any(re.fullmatch(r"[A-Z]+", word) for word in words):
        check_run(where, words, folder)


def check_with_worker():
    global runs
    config = {"admin": {"listen": ["127.0.0.1:0"]},
              "queues": [{"executors": {"*": {"noop": {}}}}]}
    with dev_store(LICTOR, config) as folder:
        limit = time.monotonic() + 60
        while run(LICTOR, "leader").returncode != 0 and time.monotonic() < limit:
            time.sleep(0.1)
        for words, where in waits.items():
            done = run(LICTOR, *words, cwd=folder)
            runs += 1
            if done.returncode != 0:
                tell(where, f"lictor {shlex.join(words)}: exit code {done.returncode}: "
                            f"{(done.stderr or done.stdout).strip()}")


def main():
    pages = [SOURCE / "README.md", *sorted((SOURCE / "src/manual").glob("*.md"))]
    count = examples = 0
    with dev_store(LICTOR) as folder:
        for page in pages:
            name = page.relative_to(SOURCE)
            for line, language, text in snippets(page):
                where = f"{name}:{line}"
                count += 1
                if language in ("json", "jsonc"):
                    check_json(where, text, folder)
                elif language == "cpp":
                    check_cpp(where, text, folder)
                elif language == "sh":
                    check_shell(where, text, folder)
                elif language == "python":
                    check_by(where, [sys.executable, "-m", "py_compile"], text, folder, "snippet.py")
                elif language == "js":
                    check_by(where, ["node", "--check"], text, folder, "snippet.mjs")
                elif language == "go":
                    check_by(where, ["gofmt", "-e", "-l"], text, folder, "snippet.go")
                elif language != "text":
                    tell(where, f"a snippet of no known language: \"{language}\"")
            section = ""
            for line, text in enumerate(page.read_text().split("\n"), 1):
                if text.startswith("## "):
                    section = text[3:]
                if page.name == "configuration.md" and text.startswith("Example: "):
                    examples += 1
                    check_example(f"{name}:{line}", section, text[len("Example: `"):-1], folder)
                for link in re.findall(r"\]\(([^)#:]+)\)", text):
                    if not (page.parent / link).exists():
                        tell(f"{name}:{line}", f"a link to {link}, which is not there")
                for code in re.findall(r"`(lictor [^`]+)`", text):
                    for words in words_of(code):
                        check_inline(f"{name}:{line}", words, folder)
    check_with_worker()
    if len((SOURCE / "README.md").read_text().splitlines()) > 150:
        bad.append("README.md: expected 150 lines at most; move what is not for newcomers")
    if count < 60 or examples < 50 or runs < 90:
        bad.append(f"found {count} snippets, {examples} examples and {runs} commands to run only")
    print("\n".join(bad), file=sys.stderr)
    return 1 if bad else 0


sys.exit(main())
