"""A daemon of synthetic sources and its page's server, as processes, for tests in browsers."""

import contextlib
import os
import secrets
import subprocess
import sys

SOURCES = """
[sources.mic]
uri = "signal:sine,1000,-20"
[analysis]
win_length = 4800
nfft = 4800
hop = 1200
[publish]
endpoints = ["{endpoint}"]
[engine]
engine = "numpy"
"""
"""A tone of 1 kHz and -20 dBFS in bins of 10 Hz, so that it lies on one."""


@contextlib.contextmanager
def running(*arguments, **settings):
    """Run spectrod; yield the process, and kill it in the end."""
    process = subprocess.Popen([sys.executable, "-m", "spectrod", *arguments], **settings)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextlib.contextmanager
def running_daemon(folder, config=SOURCES):
    """Run a daemon with files and sockets of its own; yield where it publishes."""
    # Root's control sockets lie in one folder and are named after this file, in 107 bytes.
    endpoint = f"ipc://{folder}/{secrets.token_hex(6)}.ipc"
    path = folder / "spectrod.toml"
    path.write_text(config.format(endpoint=endpoint))
    environment = os.environ | {"XDG_RUNTIME_DIR": str(folder), "STATE_DIRECTORY": str(folder)}
    arguments = ("run", "--config", path, "--show", "none", "--log-level", "error")
    with running(*arguments, env=environment):
        yield endpoint


@contextlib.contextmanager
def running_web(*arguments):
    """Run ``spectrod web`` at a free port; yield the page's link and the process."""
    listen = ("--listen", "127.0.0.1:0")
    with running("web", *arguments, *listen, stdout=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline()
        assert line.startswith("the page is at "), line
        yield line.split()[-1], process
