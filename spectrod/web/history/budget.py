"""What one request of history may cost: files, bytes and time."""

import io
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import BinaryIO, Final

FILES_MAX: Final = 64
"""Segments that one request opens at most."""
BYTES_MAX: Final = 256 << 20
"""Bytes of segments that one request reads at most."""
TIME_MAX_S: Final = 1.0
"""Time that one request reads segments for at most [s]."""
_BUFFER_BYTES: Final = 1 << 16


class SpentError(Exception):
    """A request has used what it may read; its text says which limit."""


class AbandonedError(Exception):
    """Nobody waits for the result any more."""


@dataclass(slots=True)
class Budget:
    """Remaining files, bytes and time of one request. One thread uses it; any may cancel it.

    Parameters
    ----------
    files, n_bytes : int
        Remaining files and bytes.
    time_s : float
        Time from now on [s].
    clock : callable
        Monotonic seconds.
    cancelled : threading.Event
        Set when nobody waits for the result any more.
    """

    files: int = FILES_MAX
    n_bytes: int = BYTES_MAX
    time_s: float = TIME_MAX_S
    clock: Callable[[], float] = time.monotonic
    cancelled: threading.Event = field(default_factory=threading.Event)
    _begin_s: float = field(init=False)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Begin to count the time; raise AbandonedError if the request was cancelled."""
        self._begin_s = self.clock()
        self.check()

    def check(self) -> None:
        """Raise AbandonedError if the request was cancelled."""
        if self.cancelled.is_set():
            raise AbandonedError

    def spend_file(self) -> None:
        """Count a file; raise SpentError if that is one too many."""
        self.files -= 1
        if self.files < 0:
            raise SpentError(f"at most {FILES_MAX} files a request")
        self.spend(0)

    def spend(self, n_bytes: int) -> None:
        """Count bytes that were read; raise SpentError if they or the time are too many."""
        self.check()
        self.n_bytes -= n_bytes
        if self.n_bytes < 0:
            raise SpentError(f"at most {BYTES_MAX >> 20} MiB a request")
        if self.clock() - self._begin_s > self.time_s:
            raise SpentError(f"at most {TIME_MAX_S:g} s a request")


class _CountedFile(io.FileIO):
    """A file whose reads are counted."""

    def __init__(self, descriptor: int, budget: Budget) -> None:
        super().__init__(descriptor)
        self._budget = budget

    def readinto(self, buffer: "memoryview | bytearray") -> int | None:  # type: ignore[override]
        """Read into a buffer, and count the bytes."""
        n_bytes = super().readinto(buffer)
        self._budget.spend(n_bytes or 0)
        return n_bytes


def counted_file(descriptor: int, budget: Budget) -> BinaryIO:
    """Return a buffered file whose reads raise SpentError beyond the budget.

    The descriptor is closed with the file, and if this fails.
    """
    try:
        return io.BufferedReader(_CountedFile(descriptor, budget), _BUFFER_BYTES)
    except OSError:
        os.close(descriptor)
        raise
