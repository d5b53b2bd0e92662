"""A progress bar on standard error, if that is a terminal."""

import os
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Self

_BAR_MAX = 30
_PERIOD_S = 0.1


class _Line:
    """One line on standard error, written at most ten times per second; erased at the end."""

    def __init__(self) -> None:
        # Standard error is None if it was closed before the program started.
        self._is_shown = sys.stderr is not None and sys.stderr.isatty()
        self._start_s = time.monotonic()
        self._due_s = self._start_s

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        if self._is_shown:
            self._write("")

    def _show(self, make: Callable[[float, int], str]) -> None:
        """Write a line if one is due, made from the elapsed time [s] and the terminal's width."""
        now_s = time.monotonic()
        if self._is_shown and now_s >= self._due_s:
            self._due_s = now_s + _PERIOD_S
            columns = _columns()
            self._write(make(now_s - self._start_s, columns)[: columns - 1])

    def _write(self, text: str) -> None:
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


class ProgressBar(_Line):
    """Shows progress, speed and time left; erases itself at the end.

    Parameters
    ----------
    fs : float
        Sample rate [Hz].
    n_samples : int or None
        Total samples per channel, if known.
    is_hidden : bool
        Show nothing: of a process whose progress another one shows.
    """

    def __init__(self, fs: float, n_samples: int | None, *, is_hidden: bool = False) -> None:
        super().__init__()
        self._is_shown = self._is_shown and not is_hidden
        self._fs, self._n_samples = fs, n_samples

    def update(self, n_done: int, waiting_for: str = "") -> None:
        """Show the progress; at most ten times per second.

        Parameters
        ----------
        n_done : int
            Samples per channel so far.
        waiting_for : str
            Reason why no samples arrive; empty while they do.
        """
        if waiting_for:
            waiting = f"{_clock(n_done / self._fs)} analysed, waiting: {waiting_for}"
            self._show(lambda _elapsed_s, _columns: waiting)
        else:
            self._show(partial(render, n_done, self._n_samples, self._fs))


class _LoggedLine(_Line):
    """A line that lines of a log may come before."""

    def print(self, text: str) -> None:
        """Write lines of a log; the next update shows the progress below them."""
        if text and sys.stderr is not None:
            self.__exit__()
            sys.stderr.write(text)
            self._due_s = self._start_s


class FileProgress(_LoggedLine):
    """Shows how many of n_files files are done, and the time left."""

    def __init__(self, n_files: int) -> None:
        super().__init__()
        self._n_files = n_files

    def update(self, n_done: int, n_failed: int = 0) -> None:
        """Show the progress; at most ten times per second."""

        def line(elapsed_s: float, columns: int) -> str:
            share = n_done / self._n_files
            failed = f", {n_failed} failed" if n_failed else ""
            left_s = elapsed_s / n_done * (self._n_files - n_done) if n_done else 0.0
            left = f", {_clock(left_s)} left" if n_done else ""
            text = f"{n_done} of {self._n_files} files{failed}{left}"
            return f"{share:4.0%} {_bar(share, columns - len(text) - 9)}{text}"

        self._show(line)


class UnitProgress(_LoggedLine):
    """Shows how many units are done, how fast, and the time left, by the sound in them.

    Parameters
    ----------
    n_units : int
        Number of units.
    sound_s : float
        Duration of their sound [s].
    """

    def __init__(self, n_units: int, sound_s: float) -> None:
        super().__init__()
        self._n_units, self._sound_s = n_units, sound_s

    def update(self, n_done: int, done_s: float, n_failed: int = 0) -> None:
        """Show the progress, by the units that are done and their sound [s]."""

        def line(elapsed_s: float, columns: int) -> str:
            share = done_s / self._sound_s if self._sound_s else 1.0
            speed = done_s / elapsed_s if elapsed_s > 0.0 else 0.0
            failed = f", {n_failed} failed" if n_failed else ""
            left = f", {_clock((self._sound_s - done_s) / speed)} left" if speed else ""
            text = f"{n_done} of {self._n_units} units{failed}, {speed:.0f} x real time{left}"
            return f"{share:4.0%} {_bar(share, columns - len(text) - 9)}{text}"

        self._show(line)


class UploadProgress(_LoggedLine):
    """Shows how many files and bytes are sent, and how fast."""

    def update(self, n_sent: int, n_waiting: int, sent_bytes: int) -> None:
        """Show the progress; at most ten times per second."""

        def line(elapsed_s: float, columns: int) -> str:
            n_files = n_sent + n_waiting
            share = n_sent / n_files if n_files else 1.0
            speed = sent_bytes / 1e6 / elapsed_s if elapsed_s > 0.0 else 0.0
            text = f"{n_sent} of {n_files} files, {sent_bytes / 1e6:.0f} MB, {speed:.1f} MB/s"
            return f"{share:4.0%} {_bar(share, columns - len(text) - 9)}{text}"

        self._show(line)


def render(n_done: int, n_samples: int | None, fs: float, elapsed_s: float, columns: int) -> str:
    """Format the line: percentage, bar, time done, multiple of real time, time left.

    Parameters
    ----------
    n_done : int
        Samples per channel so far.
    n_samples : int or None
        Total samples per channel, if known; a larger n_done is shown as this number.
    fs : float
        Sample rate [Hz].
    elapsed_s : float
        Time since the start [s].
    columns : int
        Width of the terminal; the line is shorter, because one that wraps cannot be erased. The bar
        shrinks first.

    Returns
    -------
    line : str
    """
    if n_samples is not None:
        n_done = min(n_done, n_samples)
    speed = n_done / fs / elapsed_s if elapsed_s > 0.0 else 0.0
    done = _clock(n_done / fs)
    if n_samples is None:
        return f"{done} analysed, {speed:.1f} x real time"[: columns - 1]
    left = f", {_clock((n_samples - n_done) / fs / speed)} left" if speed > 0.0 else ""
    share = n_done / n_samples
    text = f"{done} of {_clock(n_samples / fs)}, {speed:.0f} x real time{left}"
    line = f"{share:4.0%} {_bar(share, columns - len(text) - 9)}{text}"
    return line[: columns - 1]


def _bar(share: float, room: int) -> str:
    width = min(_BAR_MAX, room)
    return f"[{'#' * round(share * width):<{width}}] " if width > 0 else ""


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except OSError:
        return 80


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
