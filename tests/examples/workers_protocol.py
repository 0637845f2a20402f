"""The helpers of examples/workers keep the protocol of the manual's page "workers": one table of cases,
run against each of them, with this program in the place of lictor.

   workers_protocol.py SOURCE   the source tree; needs node and go, and fails without them
"""

import json, os, pathlib, selectors, shutil, subprocess, sys, tempfile, time

SOURCE = pathlib.Path(sys.argv[1])
PATIENCE = 60  # s; a machine may be slow
DEPTH = 190_000  # a task of 390,000 bytes, the most that lictor runs, holds no deeper one
# What a helper cannot do: bash runs one job at a time and reads nothing meanwhile.
LACKS = {"bash": {"cancel", "two at a time", "text of an error", "the delay", "a delay in seconds", "odd text in an error",
                  "a job that exits", "a delay beyond a day"},
         "python": {"two at a time", "a folder as result"}, "async python": {"a folder as result"},
         "node": {"a job that exits", "a folder as result"}, "go": {"a job that exits", "a folder as result"}}
failures = []


class Worker:
    def __init__(self, argv, folder):
        replies, theirs = os.pipe()
        self.output = tempfile.TemporaryFile(dir=folder)
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=self.output, stderr=self.output,
                                        pass_fds=[theirs], env={**os.environ, "LICTOR_WORKER_FD": str(theirs)})
        os.close(theirs)
        self.replies, self.rest, self.attempts = replies, b"", 0

    def send(self, message):
        self.send_text(json.dumps(message))

    def send_text(self, text):
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()

    def run(self, kind, id="42", para=None, put=lambda text: text, **more):
        self.attempts += 1
        self.send_text(put(json.dumps({"run": {"protocol": 1, "attempt": str(self.attempts), "id": id, "key": "lictor/q/tasks/" + id,
                           "type": kind, "queue": "q", "number": 3, "fencingToken": 4711,
                           "task": {"taskType": kind, "taskTaken": False, "taskPara": para or {}}, **more}})))
        return str(self.attempts)

    def line(self):
        """The next reply; None: the descriptor is closed."""
        end = time.monotonic() + PATIENCE
        with selectors.DefaultSelector() as selector:
            selector.register(self.replies, selectors.EVENT_READ)
            while b"\n" not in self.rest:
                assert selector.select(end - time.monotonic()), "no reply in time: " + self.said()
                read = os.read(self.replies, 65536)
                if not read:
                    return None
                self.rest += read
        line, self.rest = self.rest.split(b"\n", 1)
        assert len(line) < 1 << 20, f"a reply of {len(line)} bytes"
        reply = json.loads(line.decode(), parse_constant=refuse, parse_int=finite, parse_float=finite)
        json.dumps(reply, ensure_ascii=False).encode()  # fails for half a surrogate pair
        return reply

    def said(self):
        return os.pread(self.output.fileno(), 1 << 20, 0).decode()

    def end(self):
        self.process.stdin.close()
        code = self.process.wait(PATIENCE)
        os.close(self.replies)
        return code


def refuse(text):
    raise AssertionError(f"not a number of JSON: {text}")


def finite(text):
    assert abs(float(text)) < float("inf"), f"no double can hold a number of {len(text)} digits"
    return float(text) if set(text) & set(".eE") else int(text)


def done(worker, attempt):
    reply = worker.line()
    assert reply and reply.keys() == {"done"} and reply["done"]["attempt"] == attempt, f"{reply}: {worker.said()}"
    return reply["done"]


def failed(worker, attempt):
    reply = worker.line()
    assert reply and reply.keys() == {"failed"} and reply["failed"]["attempt"] == attempt, f"{reply}: {worker.said()}"
    return reply["failed"]


def result_and_output(worker):
    text = "line\nnext \"quoted\" \\ tab\t ä € 𝄞 'single' $HOME `x` " + "y" * 100_000
    told = done(worker, worker.run("Echo", id="é/1", para={"text": text, "deep": {"a": [1, {"b": "}"}]}}))
    assert told["result"] == {"text": text, "number": 3, "token": 4711}, str(told)[:300]
    assert "commit" not in told
    assert "said é/1\n" in worker.said()  # before the reply


def unknown_members(worker):
    worker.send({"hello": {"from": "a later lictor"}})
    attempt = worker.run("Echo", para={"text": ""}, later={"run": [{"attempt": "9"}]}, deadline="2026-11-28T09:30:30.000Z")
    assert done(worker, attempt)["result"]["text"] == ""


def failure(worker):
    told = failed(worker, worker.run("Fail"))
    assert told["error"] and not told.get("permanent"), told
    assert "not reached" not in worker.said()


def text_of_an_error(worker):
    assert 'it failed: ä\n"quoted"' in failed(worker, worker.run("Fail"))["error"]


def permanent(worker):
    told = failed(worker, worker.run("Permanent"))
    assert told["permanent"] is True, told


def retry(worker):
    assert not failed(worker, worker.run("Retry")).get("permanent")


def the_delay(worker):
    assert failed(worker, worker.run("Retry"))["retryIn"] in ("10s", "10000ms")


def commit(worker):
    writes = done(worker, worker.run("Commit"))["commit"]
    assert writes == [{"key": "a", "value": "text"}, {"key": "b", "value": "new", "cas": 0},
                      {"key": "c", "delete": True}], writes
    assert not done(worker, worker.run("Echo", para={"text": "x"})).get("commit")  # not of the one before


def progress(worker):
    attempt = worker.run("Progress")
    assert worker.line() == {"progress": {"attempt": attempt, "done": 1, "total": 2, "text": 'half\n"way"'}}
    done(worker, attempt)


def an_unknown_type(worker):
    assert failed(worker, worker.run("Nope"))["permanent"] is True


def cancel(worker):
    attempt = worker.run("Wait")
    worker.send({"cancel": {"attempt": attempt, "reason": "timed out"}})
    failed(worker, attempt)
    done(worker, worker.run("Echo", para={"text": "after"}))


def a_late_cancel(worker):
    attempt = worker.run("Echo", para={"text": "x"})
    done(worker, attempt)
    worker.send({"cancel": {"attempt": attempt, "reason": "stopped"}})
    worker.send({"cancel": {"attempt": "999", "reason": "stopped"}})
    done(worker, worker.run("Echo", para={"text": "after"}))


def fails_or_has_none(worker, kind):
    """What has no result to send fails, or is done without one, as a program is."""
    attempt = worker.run(kind)
    reply = worker.line()
    assert reply and reply.keys() <= {"done", "failed"}, f"{reply}: {worker.said()}"
    (members,) = reply.values()
    assert members["attempt"] == attempt and members.get("result") is None, str(reply)[:300]
    assert "failed" in reply or "left out" in worker.said() or kind == "Huge"  # null in JavaScript


def a_result_that_is_no_json(worker):
    fails_or_has_none(worker, "Odd")


def a_number_beyond_all(worker):
    fails_or_has_none(worker, "Huge")


def a_result_that_does_not_fit(worker):
    assert done(worker, worker.run("Large")).get("result") is None
    assert "left out" in worker.said()


def odd_text_in_a_result(worker):
    fits = done(worker, worker.run("Broken")).get("result")
    if isinstance(fits, list):  # raw JSON
        fits, number = fits
        assert number == 2**53 + 1
    assert fits is None or fits.startswith("x"), fits


def odd_text_in_an_error(worker):
    assert "y" in failed(worker, worker.run("BrokenError"))["error"]


def odd_text_in_progress(worker):
    attempt = worker.run("BrokenProgress")
    assert worker.line()["progress"]["text"].startswith("z")
    done(worker, attempt)


def a_delay_in_seconds(worker):
    assert failed(worker, worker.run("RetrySeconds"))["retryIn"] in ("1500ms", "1.5s")


def a_delay_beyond_a_day(worker):
    assert failed(worker, worker.run("RetryLong"))["retryIn"] == "86400000ms"


def a_folder_as_result(worker):
    fails_or_has_none(worker, "Folder")
    assert done(worker, worker.run("Echo", para={"text": "after"}))["result"]["text"] == "after"


def a_task_as_deep_as_lictor_takes(worker):
    deep = "[" * DEPTH + "]" * DEPTH
    attempt = worker.run("Echo", para={"text": "x", "y": 0}, put=lambda text: text.replace('"y": 0', '"y": ' + deep))
    reply = worker.line()
    assert reply and reply.keys() <= {"done", "failed"}, f"{reply}: {worker.said()}"
    assert [members["attempt"] for members in reply.values()] == [attempt], str(reply)[:300]
    done(worker, worker.run("Echo", para={"text": "after"}))


def a_long_task(worker):
    done(worker, worker.run("Echo", para={"text": "x", "y": list(range(60_000))}))
    text = "\"\n\\ä" * 40_000
    told = done(worker, worker.run("Echo", para={"text": "x", "y": text, "z": "z" * 100_000}))
    assert told["result"]["text"] == "x"


def null(worker):
    assert done(worker, worker.run("Echo", para={"text": None}))["result"]["text"] in (None, "")


def a_job_that_exits(worker):
    assert "SystemExit: 3" in failed(worker, worker.run("Exit"))["error"]


def two_at_a_time(worker):
    slow, quick = worker.run("Wait"), worker.run("Echo", para={"text": "x"})
    done(worker, quick)
    worker.send({"cancel": {"attempt": slow, "reason": "stopped"}})
    failed(worker, slow)


CASES = [result_and_output, unknown_members, failure, text_of_an_error, permanent, retry, the_delay, commit, progress,
         an_unknown_type, cancel, a_late_cancel, a_result_that_is_no_json, a_number_beyond_all,
         a_result_that_does_not_fit, odd_text_in_a_result, odd_text_in_an_error, odd_text_in_progress, a_delay_in_seconds,
         a_delay_beyond_a_day, a_folder_as_result,
         a_task_as_deep_as_lictor_takes, a_long_task, null, a_job_that_exits, two_at_a_time]


def check(language, argv, folder):
    worker = Worker(argv, folder)
    assert worker.line() == {"ready": {"protocol": 1}}, worker.said()
    for case in CASES:
        name = case.__name__.replace("_", " ").replace("json", "JSON")
        if name in LACKS.get(language, ()):
            continue
        try:
            case(worker)
        except (AssertionError, LookupError, OSError, ValueError) as error:
            failures.append(f"{language}: {name}: {type(error).__name__}: {error}")
            worker.process.kill()
            worker.process.wait()
            worker = Worker(argv, folder)
            assert worker.line() == {"ready": {"protocol": 1}}, worker.said()
    # A line that is no request: whoever reads no more ends, and says why.
    broken = Worker(argv, folder)
    assert broken.line() == {"ready": {"protocol": 1}}, broken.said()
    broken.send_text('{"run": {"task"')
    try:
        if broken.process.wait(PATIENCE) == 0 or not broken.said():
            failures.append(f"{language}: a line that is no request: {broken.process.returncode}: {broken.said()}")
    except subprocess.TimeoutExpired:
        failures.append(f"{language}: hangs after a line that is no request")
        broken.process.kill()
    # The end of standard input: what runs is finished and answered.
    attempt = worker.run("Slow")
    code = worker.end_input_and_wait(attempt)
    if code != 0:
        failures.append(f"{language}: ends with {code}: {worker.said()}")


def end_input_and_wait(self, attempt):
    self.process.stdin.close()
    done(self, attempt)
    assert self.line() is None, "more after the last answer"
    return self.process.wait(PATIENCE)


Worker.end_input_and_wait = end_input_and_wait


def main():
    with tempfile.TemporaryDirectory(prefix="lictor-workers.") as folder:
        place = pathlib.Path(folder)
        for path in [*(SOURCE / "examples/workers").iterdir(), *(SOURCE / "tests/examples/workers").iterdir()]:
            if path.is_file():
                shutil.copy(path, place)
        (place / "create_tablespace.go").unlink(missing_ok=True)  # another main()
        subprocess.run(["go", "build", "-o", "table"], cwd=place, check=True,
                       env={"GOFLAGS": "", "CGO_ENABLED": "0", **os.environ, "GOTOOLCHAIN": "local"})
        for language, argv in {"python": [sys.executable, place / "table.py"],
                               "async python": [sys.executable, place / "table_async.py"],
                               "node": ["node", place / "table.mjs"],
                               "go": [place / "table"],
                               "bash": ["bash", place / "table.sh"]}.items():
            check(language, argv, folder)
    print(*failures, sep="\n", end="\n" if failures else "")
    return 1 if failures else 0


sys.exit(main())
