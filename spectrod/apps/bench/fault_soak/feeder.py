"""A program that writes numbered samples into a FIFO, and stalls, ends and changes on demand."""

import os
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from spectrod.apps.bench.sequence_signal import numbered_frames

FS = 4000
"""ResourceSample rate [Hz]: low, so that hours of sound are small."""

_PERIOD_S = 0.05
_PER_PERIOD = round(FS * _PERIOD_S)
_FRAME_BYTES = 4
_TORN_BYTES = 3


class Feeder(threading.Thread):
    """Writes the numbered signal of ``sequence_signal`` in real time, 16 bits, two channels.

    A number counts as written once the FIFO has all of its bytes. While the FIFO is full or has no
    reader, the writer waits, and continues with the next number.

    Parameters
    ----------
    path : Path
        The FIFO, which is made.

    Attributes
    ----------
    next_number : int
        Number after the last one that was written.
    torn : set of int
        Numbers of which a writer left some bytes alone when it ended: they reach no recording.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(name="feeder", daemon=True)
        os.mkfifo(path)
        self.next_number = 1
        self.torn: set[int] = set()
        self._path = path
        self._fd = -1
        self._rest = memoryview(b"")
        self._lock = threading.Lock()
        self._over, self._stalled, self._absent = (threading.Event() for _ in range(3))

    def stall(self) -> None:
        """Write nothing until ``go_on``; the FIFO stays open."""
        self._stalled.set()

    def go_on(self) -> None:
        """Write again, through a new descriptor if the old one was closed."""
        self._stalled.clear()
        self._absent.clear()

    def leave(self, *, is_torn: bool) -> None:
        """Close the FIFO until ``go_on``, within a sample or after it."""
        with self._lock:
            self._absent.set()
            if self._fd < 0:
                return
            self._write_rest()
            if is_torn and not self._rest:
                torn = numbered_frames(self.next_number, 1).tobytes()[:_TORN_BYTES]
                if self._write(torn):
                    self.torn.add(self.next_number)
                    self.next_number += 1
            self._close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self.join()
        with self._lock:
            self._close()

    def run(self) -> None:
        """See the class."""
        while not self._over.wait(_PERIOD_S):
            if self._stalled.is_set():
                continue
            with self._lock:
                if not self._absent.is_set() and self._is_open():
                    self._advance()

    def _is_open(self) -> bool:
        if self._fd < 0:
            try:
                self._fd = os.open(self._path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError:  # no reader yet, or it has been removed
                return False
        return True

    def _advance(self) -> None:
        self._write_rest()
        if not self._rest and self._fd >= 0:
            self._rest = memoryview(numbered_frames(self.next_number, _PER_PERIOD).tobytes())
            self._write_rest()

    def _write_rest(self) -> None:
        """Write what is left of the last piece; what has no room waits."""
        n_before = len(self._rest)
        while self._rest and (n_bytes := self._write(self._rest)):
            self._rest = self._rest[n_bytes:]
        whole = -(-n_before // _FRAME_BYTES) - -(-len(self._rest) // _FRAME_BYTES)
        self.next_number += whole

    def _write(self, data: bytes | memoryview) -> int:
        """Return how many bytes the FIFO took; 0 without room or reader."""
        try:
            return os.write(self._fd, data)
        except BlockingIOError:
            return 0
        except BrokenPipeError:
            self._close()
            return 0

    def _close(self) -> None:
        """Close; numbers of which a part was written are torn."""
        if self._fd < 0:
            return
        os.close(self._fd)
        self._fd = -1
        if len(self._rest) % _FRAME_BYTES:
            self.torn.add(self.next_number)
            self.next_number += 1
        self._rest = memoryview(b"")
