"""Child processes: requests, output, termination, and release of all resources."""

import logging
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from spectrod.lib.errors import UnavailableError
from spectrod.lib.wakeup import Wakeup
from spectrod.source.soundcard import childprocess
from spectrod.source.soundcard.childprocess import ChildProcess, count_unreaped

ECHO = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"


def descriptors():
    return sorted(path.name for path in Path("/proc/self/fd").iterdir())


@pytest.fixture
def start():
    """Start Python programs and stop them after the test."""
    before = descriptors()
    children = []

    def start(program, **options):
        command = [sys.executable, "-c", program]
        children.append(ChildProcess(command, "child", os.environ, (), **options))
        return children[-1]

    yield start
    for child in children:
        child.kill()
    assert descriptors() == before
    assert count_unreaped() == 0


def soon():
    return time.monotonic() + 10.0


def test_answers(start):
    """A request is one line, and its answer is one line."""
    child = start(ECHO)
    for text in ("a", "\N{GREEK SMALL LETTER ALPHA}\n" * 100_000):
        assert child.ask({"text": text}, 10.0, None) == {"text": text}


def test_lines_that_come_together_are_taken_one_by_one(start):
    """Two lines in one write, or one line in two writes, are read as separate lines."""
    child = start(
        'import os, time\nos.write(1, b\'{"n":1}\\n{"n":2}\\n{"n"\')\n'
        "time.sleep(0.05)\nos.write(1, b':3}\\n')\nimport signal; signal.pause()"
    )
    assert [child.take_line(soon(), None)["n"] for _ in range(3)] == [1, 2, 3]
    assert child.take_line(time.monotonic() + 0.01, None) is None


def test_a_line_that_came_with_another_is_heard_of(start):
    """A line that was read together with an earlier one is ready, though the pipe is empty."""
    child = start('import os; input(); os.write(1, b\'{"n":1}\\n{"n":2}\\n\'); input()')
    assert child.ask({}, 5.0, None) == {"n": 1}
    assert child.poll(time.monotonic() + 5.0)
    assert child.take_line(0.0, None) == {"n": 2}
    assert not child.poll(0.0)


def test_a_child_that_hangs_is_given_up_in_time(start):
    """A request to a stopped process ends at its timeout."""
    child = start(ECHO)
    os.kill(child.pid, signal.SIGSTOP)
    t = time.monotonic()
    with pytest.raises(UnavailableError, match=r"^child: did not answer within 0\.2 s$"):
        child.ask({}, 0.2, None)
    assert 0.2 <= time.monotonic() - t < 1.0


def test_a_wait_can_be_ended(start):
    """A caller that waits for an answer is woken by its wakeup descriptor."""
    child, stop = start(ECHO), Wakeup()
    os.kill(child.pid, signal.SIGSTOP)
    stop.set()
    with pytest.raises(UnavailableError, match="stopped while waiting for it"):
        child.ask({}, 10.0, stop)
    stop.close()


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("import sys; sys.exit('last words')", r"ended \(exit status 1\): last words"),
        ("import os, signal; os.kill(os.getpid(), 9)", r"ended \(signal 9\)"),
    ],
)
def test_the_error_of_an_ended_child_has_the_reason(start, program, message):
    """The error of a process that ended has its exit status and its last output."""
    with pytest.raises(UnavailableError, match=f"^child: {message}$"):
        start(program).take_line(soon(), None)


def test_asking_a_child_that_is_gone(start):
    """A request to a process that has ended is the same error."""
    child = start("")
    with pytest.raises(UnavailableError, match=r"ended \(exit status 0\)"):
        child.take_line(soon(), None)
    with pytest.raises(UnavailableError, match=r"ended \(exit status 0\)"):
        child.ask({}, 10.0, None)


def test_chatter_is_bounded_and_blocks_nobody(start, caplog):
    """A process that prints without limit still answers, and 50 lines of it are logged."""
    caplog.set_level(logging.DEBUG, childprocess.__name__)
    child = start(
        "import os, sys, json\nfor i in range(100_000):\n"
        " try: os.write(2, b'line %d\\n' % i)\n except BlockingIOError: pass\n"
        "os.write(1, b'{}\\n')\nsys.stdin.read()"
    )
    assert child.take_line(soon(), None) == {}
    child.take_line(time.monotonic() + 0.05, None)
    logged = [record.message for record in caplog.records]
    assert logged == [f"child: line {i}" for i in range(50)]


def test_a_program_that_is_not_there():
    """A program that cannot be started leaves no open descriptor."""
    before = descriptors()
    with pytest.raises(UnavailableError, match=r"^child: cannot be started: No such file"):
        ChildProcess(["/no/such/program"], "child", os.environ, ())
    assert descriptors() == before


def test_a_child_stuck_in_the_kernel_is_reaped_later(start, monkeypatch, caplog):
    """A killed process that is stuck in the kernel blocks nobody and is reaped later."""
    child = start(ECHO, reap_s=0.05)
    kill = child._process.kill
    monkeypatch.setattr(child._process, "kill", lambda: None)
    os.kill(child.pid, signal.SIGSTOP)
    child.kill()
    assert count_unreaped() == 1
    assert "was killed and has not ended" in caplog.text
    kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert count_unreaped() == 0
    monkeypatch.setattr(child, "kill", lambda: None)
