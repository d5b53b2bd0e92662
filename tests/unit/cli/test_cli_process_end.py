"""The end of a process without the clean-up of its libraries."""

import subprocess
import sys

import pytest

from spectrod import cli
from spectrod.cli import process_end

_PROGRAM = """
import atexit, logging, sys, threading
from spectrod.cli.process_end import end_process
logging.basicConfig(format="%(message)s")
atexit.register(print, "cleaned up")
threading.Thread(target=threading.Event().wait, name="spectrod-compile").start()
logging.warning("logged")
sys.stdout.write("written")
end_process(3)
"""


def test_what_was_written_stays_and_nothing_is_waited_for():
    """A thread that does not end does not hold the process; buffers are flushed."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, "written", "logged\n")


@pytest.mark.parametrize(
    ("arguments", "compiles", "ends_at_once"),
    [
        (["run", "--source", "x"], False, True),
        (["--unknown", "run"], False, True),
        (["record", "run"], False, False),
        (["record"], True, True),
    ],
)
def test_the_daemon_and_abandoned_compilers_end_at_once(
    monkeypatch, arguments, compiles, ends_at_once
):
    """Other commands end as Python programs do."""
    ended = []
    monkeypatch.setattr(process_end, "end_process", ended.append)
    monkeypatch.setattr(process_end, "is_compiling", lambda: compiles)
    monkeypatch.setattr(cli.gc, "freeze", lambda: None)
    monkeypatch.setattr(cli.gc, "set_threshold", lambda _: None)
    monkeypatch.setattr(cli, "main", lambda _: 7)
    monkeypatch.setattr(sys, "argv", ["spectrod", *arguments])
    assert cli.command() == 7
    assert ended == [7] * ends_at_once
