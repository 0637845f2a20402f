"""Jobs of lictor in a Python process that stays (see the manual's page "workers"). Copy this file.

    import lictor_worker

    @lictor_worker.job("Invoice")          # a taskType; without one: every type
    def invoice(run):
        run.put("invoices/last", run.task["taskPara"]["order"])
        return {"pages": 3}                # the result: anything that JSON can hold

    lictor_worker.serve()

A job that raises has failed; what it prints is its output. `async def` jobs of one process run at the
same time, as many as tasks_per_process says; others run one after the other, in the main thread.

What lictor would refuse is not sent: text that is no UTF-8 has "?" there, a result that does not fit is
left out, and numbers that a double cannot hold fail the attempt.
"""

import asyncio, inspect, json, math, os, queue, re, sys, threading

_jobs = {}
_MOST_BYTES = 1 << 20  # of a line
_MOST_TEXT = 1000  # characters of an error; lictor keeps no more


class Permanent(Exception):
    """Trying again cannot help: the task becomes a dead letter at once."""


_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


class Retry(Exception):
    """Try again, not before `after`: seconds, or a duration such as "10s". At most 24 h of it count."""

    def __init__(self, error, after=None):
        super().__init__(error)
        if isinstance(after, str):
            if not re.fullmatch(r"([0-9]+(\.[0-9]+)?(ms|[smhdw]))+", after):
                raise ValueError(f"Retry: expected seconds or a duration such as \"10s\", got {after!r}")
            after = sum(float(count) * _SECONDS[unit] for count, unit in re.findall(r"([0-9.]+)([a-z]+)", after))
        self.after = None if after is None else f"{round(min(max(after * 1000, 0), 86_400_000))}ms"


class Run:
    """An attempt: task (the record), id, key, type, queue, number, token, deadline (text or None)."""

    def __init__(self, message):
        self.attempt, self.task = message["attempt"], message["task"]
        self.id, self.key, self.type = message["id"], message["key"], message["type"]
        self.queue, self.number = message["queue"], message["number"]
        self.token, self.deadline = message["fencingToken"], message.get("deadline")
        self.cancelled = threading.Event()  # set when the attempt should end; may be looked at often
        self.commit = []
        self.answered = False

    def progress(self, done=None, total=None, text=None):
        members = {} if text is None else {"text": str(text)[:_MOST_TEXT]}
        members.update({name: float(value) for name, value in (("done", done), ("total", total)) if value is not None})
        _reply("progress", self, **members)

    def put(self, key, value, cas=None):
        """A write to Consul KV that is made if the attempt succeeds, with its finish, or not at all."""
        self._write({"key": key, "value": value}, cas)

    def delete(self, key, cas=None):
        self._write({"key": key, "delete": True}, cas)

    def _write(self, write, cas):
        self.commit.append(write if cas is None else {**write, "cas": cas})


def job(name="*"):
    def add(function):
        _jobs[name] = function
        return function

    return add


def serve():
    """Runs jobs until lictor has no more."""
    global _out
    number = int(os.environ["LICTOR_WORKER_FD"])
    os.set_inheritable(number, False)
    _out = os.fdopen(number, "wb", buffering=0)
    requests = os.fdopen(os.dup(0), "rb")  # what jobs start must not read them
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    if any(inspect.iscoroutinefunction(function) for function in _jobs.values()):
        asyncio.run(_serve_async(requests))
    else:
        runs = queue.SimpleQueue()
        threading.Thread(target=_read, args=(requests, runs.put, _cancel), daemon=True).start()
        _put(_line("ready", protocol=1))
        for run in iter(runs.get, None):
            with _Answer(run) as answer:
                answer.result = _function_of(run)(run)


async def _serve_async(requests):
    loop, runs, tasks, ended = asyncio.get_running_loop(), asyncio.Queue(), {}, object()

    def cancel(run):
        run.cancelled.set()
        if run.attempt in tasks:
            tasks[run.attempt].cancel()

    async def work(run):
        with _Answer(run) as answer:
            result = _function_of(run)(run)
            answer.result = await result if inspect.isawaitable(result) else result

    def finish(run):
        tasks.pop(run.attempt)
        _reply("failed", run, error="cancelled")  # before its first step; else it is answered

    post = lambda call, run: loop.call_soon_threadsafe(call, ended if run is None else run)
    threading.Thread(target=_read, daemon=True, args=(requests, lambda run: post(runs.put_nowait, run),
                                                      lambda run: post(cancel, run))).start()
    _put(_line("ready", protocol=1))
    while (run := await runs.get()) is not ended:
        tasks[run.attempt] = task = asyncio.create_task(work(run))
        task.add_done_callback(lambda _, run=run: finish(run))
        if run.cancelled.is_set():
            task.cancel()
    await asyncio.gather(*tasks.values())


def _cancel(run):
    run.cancelled.set()


def _read(requests, start, cancel):
    running = {}
    try:
        for line in requests:
            try:
                message = json.loads(line)
            except Exception as error:  # nested too deep, a number with too many digits, no memory
                _refuse(line, error)
                continue
            if "run" in message:
                run = Run(message["run"])
                running = {key: old for key, old in running.items() if not old.answered}
                running[run.attempt] = run
                start(run)
            elif "cancel" in message and message["cancel"]["attempt"] in running:
                cancel(running[message["cancel"]["attempt"]])
        start(None)
    except BaseException as error:
        # Without this thread no task would ever be answered.
        try:
            print(f"lictor_worker: cannot read on: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        finally:
            os._exit(1)


def _refuse(line, error):
    """Fails the attempt of a line that cannot be parsed, which lictor names before the task."""
    attempt = re.match(rb'\s*{\s*"run"\s*:\s*{[^{}\[\]]*?"attempt"\s*:\s*"(\w+)"', line)
    if not attempt:
        raise error
    text = f"the worker cannot parse the task: {type(error).__name__}: {error}"
    _put(_line("failed", attempt=attempt[1].decode(), error=text, permanent=not isinstance(error, MemoryError)))


def _function_of(run):
    function = _jobs.get(run.type, _jobs.get("*"))
    if function is None:
        raise Permanent(f"this worker has no job for the type {run.type}")
    return function


class _Answer:
    """Sends what became of an attempt when its block ends."""

    def __init__(self, run):
        self.run, self.result = run, None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            return False  # the process ends, and lictor sees that
        if error is None:
            error = self._done()
        if isinstance(error, asyncio.CancelledError):
            _reply("failed", self.run, error="cancelled")
        elif isinstance(error, Permanent):
            _reply("failed", self.run, error=str(error)[:_MOST_TEXT], permanent=True)
        elif isinstance(error, Retry) and error.after is not None:
            _reply("failed", self.run, error=str(error)[:_MOST_TEXT], retryIn=error.after)
        elif error is not None:
            _reply("failed", self.run, error=f"{type(error).__name__}: {error}"[:_MOST_TEXT])
        return True

    def _done(self):
        """Returns why that cannot be sent."""
        commit = {"commit": self.run.commit} if self.run.commit else {}
        try:
            try:
                return _reply("done", self.run, result=self.result, **commit)
            except _TooLong as error:
                print(f"lictor_worker: task {self.run.id}: the result is left out: {error}", file=sys.stderr)
                return _reply("done", self.run, **commit)
        except _TooLong as error:
            return ValueError(f"its KV writes cannot be made: {error}")
        except (TypeError, ValueError, RecursionError) as error:
            return ValueError(f"the result is no JSON: {error}")


class _TooLong(Exception):
    pass


def _reply(message, run, **members):
    _put(_line(message, attempt=run.attempt, **members), run, message != "progress")


def _number(text):
    if math.isinf(float(text)):
        raise ValueError(f"a number of {len(text)} digits")


def _line(message, **members):
    text = json.dumps({message: members}, ensure_ascii=False, allow_nan=False)
    if re.search(r"\d{309}", text):  # in a text or in a number
        json.loads(text, parse_int=_number)
    line = text.encode("utf-8", "replace") + b"\n"
    if len(line) > _MOST_BYTES:
        raise _TooLong(f"a reply has at most {_MOST_BYTES} bytes, this one has {len(line)}")
    return line


_lock = threading.Lock()


def _put(line, run=None, is_last=False):
    sys.stdout.flush()
    sys.stderr.flush()
    with _lock:
        if run is not None and run.answered:
            return
        while line:  # a pipe may take a part of a long line
            line = line[_out.write(line):]
        if is_last:
            run.answered = True
