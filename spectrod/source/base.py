"""What every source is, and the thread that pulls samples out of those that can wait."""

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Protocol

from spectrod.config import Pace
from spectrod.errors import InternalError, SpectrodError
from spectrod.ring import SampleRing
from spectrod.stats import CaptureStats
from spectrod.units import Float32Array

_log = logging.getLogger(__name__)

_BLOCK_SECONDS = 0.01
_FULL_SPEED_BLOCK = 1 << 15


class Source(Protocol):
    """Where samples come from: knows its format once made, delivers once started."""

    name: str
    """For topics: letters, digits, ``. _ -``."""
    description: str
    """For a person."""
    fs: float
    """Sample rate [Hz]."""
    channels: int
    n_samples: int | None
    """Samples a channel until it ends; None if it does not, or not foreseeably."""
    is_live: bool
    """True if it cannot wait: a ring that is full is overwritten."""
    start_utc_ns: int | None
    """UTC of sample 0 [ns], where something other than the clock at the start says it."""
    failure: SpectrodError | None
    """Why it ended early."""

    def start(self, ring: SampleRing) -> None:
        """Begin to fill the ring, which is closed when the source ends."""

    def stop(self) -> None:
        """End; returns when nothing writes to the ring any more. May be called twice."""

    def capture(self) -> CaptureStats:
        """Take a snapshot of how samples arrive; any thread may call it."""


class PulledSource(ABC):
    """A source that hands out samples when asked: a thread asks, paces and fills the ring.

    A subclass sets the attributes of ``Source`` and implements ``blocks``. The thread waits for
    room in the ring, so nothing is lost; at ``realtime`` pace a block is written when its last
    sample is due.

    Times: sample 0 is at ``start_utc_ns`` or, where that is not set, at the moment of the start;
    the rest follow by index / fs.
    """

    name: str
    description: str
    fs: float
    channels: int
    n_samples: int | None = None
    start_utc_ns: int | None = None
    is_live = False

    def __init__(self, pace: Pace) -> None:
        self.pace: Pace = pace
        self.failure: SpectrodError | None = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    @abstractmethod
    def blocks(self, n_max: int) -> Iterator[Float32Array]:
        """Yield (channels, n) float32 arrays, 1 <= n <= n_max, until the end [FS].

        The arrays are copied at once, so the same memory may be yielded again.
        """

    def interrupt(self) -> None:  # noqa: B027 - most sources never wait for samples
        """Make a ``blocks`` that waits for samples return soon; called by ``stop``."""

    def start(self, ring: SampleRing) -> None:
        """Begin to fill the ring."""
        self._thread = threading.Thread(
            target=self._run, args=(ring,), name="spectrod-source", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """End the thread and wait for it."""
        self._stopping.set()
        self.interrupt()
        if self._thread is not None:
            self._thread.join()

    def capture(self) -> CaptureStats:
        """Say that nothing is ever lost here."""
        return CaptureStats()

    def _run(self, ring: SampleRing) -> None:
        try:
            self._fill(ring)
        except SpectrodError as error:
            self.failure = error
        except Exception as error:  # noqa: BLE001
            # The top of a thread: a stream that broke off must not pass for one that ended.
            _log.exception("source failed")
            self.failure = InternalError(f"source failed: {error!r}; please report this")
        finally:
            ring.close()

    def _fill(self, ring: SampleRing) -> None:
        t_mono_0 = time.monotonic_ns()
        t_utc_0 = time.time_ns() if self.start_utc_ns is None else self.start_utc_ns
        index = 0
        for samples in self.blocks(self._block_length(ring)):
            n = samples.shape[1]
            if not (self._wait_until_due(t_mono_0, index + n) and self._wait_for_room(ring, n)):
                return
            elapsed_ns = round(index * 1e9 / self.fs)
            ring.write(samples, index, t_mono_0 + elapsed_ns, t_utc_0 + elapsed_ns)
            index += n

    def _block_length(self, ring: SampleRing) -> int:
        if self.pace == "realtime":
            return max(1, round(self.fs * _BLOCK_SECONDS))
        return min(_FULL_SPEED_BLOCK, ring.capacity // 4)

    def _wait_until_due(self, t_mono_0: int, n_samples: int) -> bool:
        """Wait until so many samples have had their time; False if stopped meanwhile."""
        if self.pace == "full":
            return not self._stopping.is_set()
        due_s = t_mono_0 * 1e-9 + n_samples / self.fs
        return not self._stopping.wait(max(0.0, due_s - time.monotonic()))

    def _wait_for_room(self, ring: SampleRing, n: int) -> bool:
        while not ring.wait_for_room(n, timeout_s=0.1):
            if self._stopping.is_set():
                return False
        return True
