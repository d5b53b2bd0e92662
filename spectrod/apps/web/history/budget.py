"""What one request of history may cost: files, bytes and time."""

import io
import os
import threading
import time
from dataclasses import dataclass, field
from typing import BinaryIO, Final

FILES_MAX: Final = 64
"""Segments that one request opens at most."""
BYTES_MAX: Final = 256 << 20
"""Bytes of segments that one request reads at most."""
CPU_MAX_S: Final = 1.0
"""Processor time that one request takes at most [s]."""
TIME_MAX_S: Final = 5.0
"""Time that one request takes at most, also where the disk or the machine is busy [s]."""
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
    cpu_s, time_s : float
        Processor time of the thread that uses it, and time, from its start on [s].
    cancelled : threading.Event
        Set when nobody waits for the result any more.
    """

    files: int = FILES_MAX
    n_bytes: int = BYTES_MAX
    cpu_s: float = CPU_MAX_S
    time_s: float = TIME_MAX_S
    cancelled: threading.Event = field(default_factory=threading.Event)
    _begin_cpu_s: float = field(init=False)
    _begin_s: float = field(init=False)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Begin to count the times; raise AbandonedError if the request was cancelled.

        Called by the thread that uses it.
        """
        self._begin_cpu_s, self._begin_s = time.thread_time(), time.monotonic()
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
        if time.thread_time() - self._begin_cpu_s > self.cpu_s:
            raise SpentError(f"at most {CPU_MAX_S:g} s of processor time a request")
        if time.monotonic() - self._begin_s > self.time_s:
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
