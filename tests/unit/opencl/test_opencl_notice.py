"""The notice about kernel compilation, which appears once and only if it takes long."""

import logging
import os
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

from spectrod.opencl import notice, program
from spectrod.opencl.notice import TEXT, CompileNotice
from spectrod.opencl.program import Programs
from spectrod.opencl.program_cache import BinaryCache

DEVICE = SimpleNamespace(
    platform="Portable", name="EPYC", label="Portable/EPYC", driver="3.0", handle=None
)
DEADLINE_S = 30.0


class Notices:
    """Collects notices and sets an event for each."""

    def __init__(self):
        self.texts, self.event = [], threading.Event()

    def __call__(self, text):
        self.texts.append(text)
        self.event.set()


@pytest.fixture
def notices(monkeypatch):
    """Report at once and record it."""
    notices = Notices()
    monkeypatch.setattr(program, "NOTICE", CompileNotice(notices, after_s=0.0))
    return notices


def test_the_notice_appears_once_while_it_lasts():
    """The notice appears once, while the compiler still runs."""
    notices = Notices()
    compiling = CompileNotice(notices, after_s=0.0)
    for _ in range(2):
        with compiling.during():
            assert notices.event.wait(DEADLINE_S)
    assert notices.texts == [TEXT]


def test_a_quick_compilation_gives_no_notice():
    """A compilation below the limit gives no notice and leaves no timer."""
    notices = Notices()
    compiling = CompileNotice(notices, after_s=3600.0)
    before = threading.active_count()
    with compiling.during():
        pass
    assert notices.texts == []
    timers = [one for one in threading.enumerate() if isinstance(one, threading.Timer)]
    for timer in timers:
        timer.join(DEADLINE_S)
    assert threading.active_count() <= before


def test_many_short_ones_add_up(monkeypatch):
    """Three compilations of half a second each count as one of a second and a half."""
    notices = Notices()
    compiling = CompileNotice(notices, after_s=1.0)
    now_s = 0.0
    monkeypatch.setattr(notice, "time", SimpleNamespace(monotonic=lambda: now_s))
    for _ in range(2):
        with compiling.during():
            now_s += 0.6
        assert notices.texts == []
    with compiling.during():
        assert notices.event.wait(DEADLINE_S)
    assert notices.texts == [TEXT]


def test_a_build_and_its_first_use_give_a_notice(notices, tmp_path):
    """Build and first launch count, as drivers compile in both; later waits do not."""

    def compiler(*_):
        return notices.event.wait(DEADLINE_S) and object()

    programs = Programs(None, DEVICE, BinaryCache(tmp_path, max_bytes=0), compiler=compiler)
    assert programs.first_use() is program._NOTHING
    programs.get("transpose.cl", (("TILE", 16),))
    assert notices.texts == [TEXT]
    for is_last in (False, True):
        assert programs.first_use(is_last=is_last) is not program._NOTHING
    assert programs.first_use() is program._NOTHING


def test_a_cached_program_gives_no_notice(notices, tmp_path, monkeypatch):
    """A program from the cache is loaded without a notice."""
    monkeypatch.setattr(program, "load_binary", lambda *_: object())
    cache = BinaryCache(tmp_path)
    monkeypatch.setattr(cache, "load", lambda _: b"binary")
    programs = Programs(None, DEVICE, cache)
    programs.get("transpose.cl", (("TILE", 16),))
    assert programs.first_use() is program._NOTHING
    assert notices.texts == []


def test_it_is_a_warning(caplog):
    """The notice is a warning, which commands show on standard error, also without a terminal."""
    compiling = CompileNotice(after_s=0.0)
    with caplog.at_level(logging.WARNING, "spectrod.opencl.notice"), compiling.during():
        # The timer's own thread logs.
        for timer in [one for one in threading.enumerate() if isinstance(one, threading.Timer)]:
            timer.join(DEADLINE_S)
    assert TEXT in caplog.messages


@pytest.mark.slow
def test_the_command_line_prints_the_notice_on_standard_error(opencl_device, tmp_path):
    """With empty caches the notice is the only line on standard error, and no output changes."""
    code = (
        "import sys; from spectrod.opencl.notice import NOTICE; NOTICE.after_s = 0.0\n"
        "from spectrod.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    small = ["--win-length", "64", "--hop", "64", "--scaling", "density"]
    arguments = ["signal:sine,1000,-20", "--duration", "0.1", "-o", "a.csv", *small, "--device"]
    done = subprocess.run(
        [sys.executable, "-c", code, "record", *arguments, opencl_device.label],
        cwd=tmp_path,
        env=os.environ
        | {"XDG_CACHE_HOME": str(tmp_path), "POCL_CACHE_DIR": str(tmp_path / "pocl")},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.endswith(TEXT)
