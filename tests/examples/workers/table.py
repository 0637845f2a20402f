import os, sys, time

import lictor_worker


@lictor_worker.job("Echo")
def echo(run):
    print("said", run.id)
    return {"text": run.task["taskPara"]["text"], "number": run.number, "token": run.token}


@lictor_worker.job("Fail")
def fail(run):
    raise ValueError("it failed: ä\n\"quoted\"")


@lictor_worker.job("Permanent")
def permanent(run):
    raise lictor_worker.Permanent("for good")


@lictor_worker.job("Retry")
def retry(run):
    raise lictor_worker.Retry("later", after="10s")


@lictor_worker.job("Commit")
def commit(run):
    run.put("a", "text")
    run.put("b", "new", cas=0)
    run.delete("c")


@lictor_worker.job("Progress")
def progress(run):
    run.progress(done=1, total=2, text="half\n\"way\"")


@lictor_worker.job("Wait")
def wait(run):
    while not run.cancelled.wait(0.01):
        pass
    raise RuntimeError("cancelled")


@lictor_worker.job("Odd")
def odd(run):
    return {1, 2}


@lictor_worker.job("Slow")
def slow(run):
    time.sleep(0.5)


@lictor_worker.job("Huge")
def huge(run):
    return 10 ** 400


@lictor_worker.job("Large")
def large(run):
    return "y" * 1_100_000


@lictor_worker.job("Broken")
def broken(run):
    return "x" + os.fsdecode(b"\xff")


@lictor_worker.job("BrokenError")
def broken_error(run):
    raise ValueError("y" + os.fsdecode(b"\xff"))


@lictor_worker.job("BrokenProgress")
def broken_progress(run):
    run.progress(text="z" + os.fsdecode(b"\xff"))


@lictor_worker.job("RetryLong")
def retry_long(run):
    raise lictor_worker.Retry("later", "2w99999999999999999999h")


@lictor_worker.job("RetrySeconds")
def retry_seconds(run):
    raise lictor_worker.Retry("later", 1.5)


@lictor_worker.job("Exit")
def exit_in_a_job(run):
    sys.exit(3)


lictor_worker.serve()
