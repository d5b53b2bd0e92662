"""The progress bar's line; ``test_command_line.py`` shows it on a real terminal."""

import io
import os

import pytest

from spectrod.cli.progress import FileProgress, ProgressBar, UnitProgress, render

FS = 48000
HOUR = 3600 * FS


@pytest.mark.parametrize(
    ("n_done", "n_samples", "elapsed_s", "line"),
    [
        (0, 60 * FS, 0.0, f"  0% [{'':30}] 0:00 of 1:00, 0 x real time"),
        (15 * FS, 60 * FS, 0.5, f" 25% [{'#' * 8:30}] 0:15 of 1:00, 30 x real time, 0:01 left"),
        (61 * FS, 60 * FS, 2.0, f"100% [{'#' * 30}] 1:00 of 1:00, 30 x real time, 0:00 left"),
        (HOUR, 2 * HOUR, 1.0,
         f" 50% [{'#' * 15:30}] 1:00:00 of 2:00:00, 3600 x real time, 0:01 left"),
        (90 * FS, None, 60.0, "1:30 analysed, 1.5 x real time"),
    ],
)  # fmt: skip
def test_the_line(n_done, n_samples, elapsed_s, line):
    """Share, bar, times and speed are right from before the first sample to beyond the last."""
    assert render(n_done, n_samples, FS, elapsed_s, 100) == line


@pytest.mark.parametrize("columns", [1, 2, 20, 60, 80, 81, 100, 1000])
@pytest.mark.parametrize("n_samples", [99 * HOUR, None])
def test_the_line_never_wraps(columns, n_samples):
    """The line stays shorter than the terminal's width, so that it can be erased."""
    line = render(10 * HOUR, n_samples, FS, 3.0, columns)
    assert len(line) < columns
    if columns >= 80 and n_samples:
        assert "[#" in line
        assert line.endswith("0:26 left")


def test_a_source_that_waits(monkeypatch):
    """While a source waits, the line gives the reason, cut to the terminal's width."""
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", terminal)
    terminal.fileno = lambda: 2
    monkeypatch.setattr("os.get_terminal_size", lambda _: os.terminal_size((40, 24)))
    with ProgressBar(FS, None) as bar:
        bar.update(90 * FS, "no program writes to /run/mic.fifo")
    erase, line, end = terminal.getvalue().split("\r\x1b[K")
    assert (erase, end) == ("", "")
    assert line == "1:30 analysed, waiting: no program write"[:39]


def test_without_a_standard_error(monkeypatch):
    """A program whose standard error is closed shows no progress and continues."""
    monkeypatch.setattr("sys.stderr", None)
    with ProgressBar(FS, HOUR) as bar:
        bar.update(FS)


def test_files_are_counted_below_the_lines_of_their_logs(monkeypatch):
    """Lines of a log stay above the count of files, which is erased at the end."""
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    terminal.fileno = lambda: 2
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr("os.get_terminal_size", lambda _: os.terminal_size((80, 24)))
    clock = iter([0.0, 0.0, 30.0])
    monkeypatch.setattr("spectrod.cli.progress.time.monotonic", lambda: next(clock))
    with FileProgress(8) as progress:
        progress.update(0)
        progress.print("a.wav: too short\n")
        progress.update(2, n_failed=1)
    first, log, line, end = terminal.getvalue().split("\r\x1b[K")[1:]
    assert first == f"  0% [{'':30}] 0 of 8 files"
    assert log == "a.wav: too short\n"
    assert line == f" 25% [{'#' * 8:30}] 2 of 8 files, 1 failed, 1:30 left"
    assert end == ""


def test_files_without_a_standard_error(monkeypatch):
    """Neither the count of files nor a log needs a standard error."""
    monkeypatch.setattr("sys.stderr", None)
    with FileProgress(1) as progress:
        progress.print("a.wav: too short\n")
        progress.update(1)


def test_units_are_counted_with_their_speed(monkeypatch):
    """The line has the share of the sound, failures, the speed and the time left."""
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    terminal.fileno = lambda: 2
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr("os.get_terminal_size", lambda _: os.terminal_size((100, 24)))
    clock = iter([0.0, 0.0, 36.0])
    monkeypatch.setattr("spectrod.cli.progress.time.monotonic", lambda: next(clock))
    with UnitProgress(4, 4 * 3600.0) as progress:
        progress.update(0, 0.0)
        progress.update(1, 3600.0, n_failed=1)
    first, line, _ = terminal.getvalue().split("\r\x1b[K")[1:]
    assert first == f"  0% [{'':30}] 0 of 4 units, 0 x real time"
    assert line == f" 25% [{'#' * 8:30}] 1 of 4 units, 1 failed, 100 x real time, 1:48 left"
