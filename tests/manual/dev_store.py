"""A "lictor dev" of its own for a test of the manual."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile


@contextlib.contextmanager
def dev_store(lictor, config=None):
    """Points the environment to the store and gives a folder that goes with it. Without a
    configuration the store has no worker."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="lictor-manual."))
    os.environ.update(TMPDIR=str(folder), LICTOR_STATE_DIR=str(folder / "state"))
    for name in ("CONSUL_HTTP_TOKEN", "CONSUL_HTTP_TOKEN_FILE", "CONSUL_HTTP_SSL", "LICTOR_CONFIG"):
        os.environ.pop(name, None)
    worker = ["--no-worker"]
    if config is not None:
        (folder / "lictor.json").write_text(json.dumps(config))
        worker = ["--config", str(folder / "lictor.json")]
    # It ends with this test, also when a time limit kills that.
    command = ["setpriv", "--pdeathsig", "KILL", lictor, "dev", "--listen", "127.0.0.1:0", *worker]
    store = subprocess.Popen(command, text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        for line in store.stdout:
            if line.startswith("  store   "):
                os.environ["CONSUL_HTTP_ADDR"] = line.split()[1]
                break
        yield folder
    finally:
        os.killpg(store.pid, signal.SIGTERM)
        store.wait()
        shutil.rmtree(folder, ignore_errors=True)
