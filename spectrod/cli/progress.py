"""A progress bar on standard error, where that is a terminal."""

import sys
import time
from types import TracebackType
from typing import Self

_WIDTH = 30
_PERIOD_S = 0.1


class ProgressBar:
    """Says how far, how fast and how long still; erases itself at the end.

    Parameters
    ----------
    fs : float
        Sample rate [Hz].
    n_samples : int or None
        How many there will be, if that is known.
    """

    def __init__(self, fs: float, n_samples: int | None) -> None:
        self._fs, self._n_samples = fs, n_samples
        self._is_shown = sys.stderr.isatty()
        self._began_s = time.monotonic()
        self._due_s = self._began_s

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _value: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        if self._is_shown:
            self._write("")

    def update(self, n_done: int) -> None:
        """Show that so many samples a channel are done; at most ten times a second."""
        now_s = time.monotonic()
        if self._is_shown and now_s >= self._due_s:
            self._due_s = now_s + _PERIOD_S
            self._write(render(n_done, self._n_samples, self._fs, now_s - self._began_s))

    def _write(self, text: str) -> None:
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


def render(n_done: int, n_samples: int | None, fs: float, elapsed_s: float) -> str:
    """Write the line: share, bar, time done, multiple of real time, time left."""
    speed = n_done / fs / elapsed_s if elapsed_s > 0.0 else 0.0
    if n_samples is None:
        return f"{_clock(n_done / fs)} analysed, {speed:.1f} x real time"
    share = min(1.0, n_done / n_samples)
    bar = "#" * round(share * _WIDTH)
    left_s = (n_samples - n_done) / fs / speed if speed > 0.0 else 0.0
    return (
        f"{share:4.0%} [{bar:<{_WIDTH}}] {_clock(n_done / fs)} of {_clock(n_samples / fs)}, "
        f"{speed:.0f} x real time, {_clock(max(0.0, left_s))} left"
    )


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
