"""Jobs of lictor in a Python process that stays (see the manual's page "workers"). Copy this file.

    import lictor_worker

    @lictor_worker.job("Invoice")          # a taskType; without one: every type
    def invoice(run):
        run.put("invoices/last", run.task["taskPara"]["order"])
        return {"pages": 3}                # the result: anything that JSON can hold

    lictor_worker.serve()

A job that raises has failed; what it prints is its output. `async def` jobs of one process run at the
same time, as many as tasks_per_process says; others run one after the other, in the main thread.
"""

import asyncio, inspect, json, os, queue, sys, threading

_jobs = {}


class Permanent(Exception):
    """Trying again cannot help: the task becomes a dead letter at once."""


class Retry(Exception):
    """Try again, not before `after`, a duration such as "10s"."""

    def __init__(self, error, after=None):
        super().__init__(error)
        self.after = after


class Run:
    """An attempt: task (the record), id, key, type, queue, number, token, deadline (text or None)."""

    def __init__(self, message):
        self.attempt, self.task = message["attempt"], message["task"]
        self.id, self.key, self.type = message["id"], message["key"], message["type"]
        self.queue, self.number = message["queue"], message["number"]
        self.token, self.deadline = message["fencingToken"], message.get("deadline")
        self.cancelled = threading.Event()  # set when the attempt should end; may be looked at often
        self.commit = []

    def progress(self, done=None, total=None, text=None):
        members = {"done": done, "total": total, "text": text}
        _reply("progress", self, **{name: value for name, value in members.items() if value is not None})

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
        _send("ready", protocol=1)
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
        if not run.answered:  # cancelled before its first step
            _reply("failed", run, error="cancelled")

    post = lambda call, run: loop.call_soon_threadsafe(call, ended if run is None else run)
    threading.Thread(target=_read, daemon=True, args=(requests, lambda run: post(runs.put_nowait, run),
                                                      lambda run: post(cancel, run))).start()
    _send("ready", protocol=1)
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
    for line in requests:
        message = json.loads(line)
        if "run" in message:
            run = Run(message["run"])
            running = {key: old for key, old in running.items() if not old.answered} | {run.attempt: run}
            start(run)
        elif "cancel" in message and message["cancel"]["attempt"] in running:
            cancel(running[message["cancel"]["attempt"]])
    start(None)


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
        if kind is not None and issubclass(kind, (KeyboardInterrupt, SystemExit)):
            return False  # the process ends, and lictor sees that
        if isinstance(error, asyncio.CancelledError):
            _reply("failed", self.run, error="cancelled")
        elif isinstance(error, Permanent):
            _reply("failed", self.run, error=str(error), permanent=True)
        elif isinstance(error, Retry) and error.after is not None:
            _reply("failed", self.run, error=str(error), retryIn=error.after)
        elif error is not None:
            _reply("failed", self.run, error=f"{kind.__name__}: {error}")
        else:
            try:
                _reply("done", self.run, result=self.result, commit=self.run.commit)
            except (TypeError, ValueError) as odd:
                _reply("failed", self.run, error=f"the result is no JSON: {odd}")
        return True


Run.answered = False


def _reply(message, run, **members):
    _send(message, attempt=run.attempt, **members)
    if message != "progress":
        run.answered = True


_lock = threading.Lock()


def _send(message, **members):
    line = json.dumps({message: members}, allow_nan=False).encode() + b"\n"
    sys.stdout.flush()
    sys.stderr.flush()
    with _lock:
        while line:  # a pipe may take a part of a long line
            line = line[_out.write(line):]
