"""What every source is, and the thread that pulls samples out of those that can wait."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

from numpy.typing import NDArray

from spectrod.chunks import duration_ns
from spectrod.config import Pace
from spectrod.errors import SpectrodError
from spectrod.ring import SampleRing
from spectrod.sample_layout import SampleLayout
from spectrod.source.left_out import LeftOut
from spectrod.stats import CaptureStats
from spectrod.types import Block
from spectrod.units import Float32Array
from spectrod.wakeup import Wakeup
from spectrod.worker import Worker

YEAR_S = 365.25 * 86400.0
SPAN_MAX_S = 60 * YEAR_S
"""Of a file or a folder: times [ns] from 2199 on, the last that is read, must fit 64 bits."""

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
    is_iq: bool
    """True if each two channels are the I and the Q of one signal."""
    center_frequency_hz: float
    """Frequency that 0 Hz of I/Q samples stands for; 0 if not known [Hz]."""
    n_samples: int | None
    """Samples a channel until it ends; None if it does not, or not foreseeably."""
    is_live: bool
    """True if it cannot wait: a ring that is full is overwritten."""
    is_stored: bool
    """True if its samples can be had again: from files, or because they are computed."""
    start_utc_ns: int | None
    """UTC of sample 0 [ns], where something other than the clock at the start says it."""
    failure: SpectrodError | None
    """Why it ended early."""
    left_out: LeftOut
    """Files that are left out or read in part."""

    @property
    def layout(self) -> SampleLayout:
        """Of the samples that it writes to a ring."""

    def start(self, ring: SampleRing, on_change: Callable[[], None] = lambda: None) -> None:
        """Start to fill the ring, which is closed when the source ends.

        Parameters
        ----------
        ring : SampleRing
            Of the source's rate and layout.
        on_change : callable
            Called by a thread of the source when ``capture`` has changed; must not block.
        """

    def stop(self) -> None:
        """End; returns when nothing writes to the ring any more. May be called twice."""

    def capture(self) -> CaptureStats:
        """Take a snapshot of how samples arrive; any thread may call it."""


class Feed(Protocol):
    """Samples for who takes them: the consumer's side of a ``SampleRing``, without a producer.

    Counts are in samples a channel, as the ring's; nothing is ever lost.
    """

    layout: SampleLayout
    overflows: int
    suspected: int
    overruns: int
    peak_fill: float
    data: Wakeup

    @property
    def taken(self) -> int: ...  # noqa: D102 - above

    @property
    def written(self) -> int: ...  # noqa: D102 - above

    @property
    def exhausted(self) -> bool: ...  # noqa: D102 - above

    def skip(self, n: int) -> None:
        """Leave out the next n samples, or what is left if that is less."""

    def read(self, max_samples: int, into: NDArray[Any] | None = None) -> Block | None:
        """Take the next samples, up to max_samples, into an array if that suits; None at the end.

        An array that suits has room for (channels, n) samples, of which there are n at most then.
        """

    def close(self) -> None:
        """Let what was read so far be all there is; any thread."""

    def release(self) -> None:
        """Give back what is open."""


@runtime_checkable
class Feeding(Protocol):
    """A source that the analysis can read by itself, without a thread and a ring between them."""

    def feed(self) -> Feed:
        """Make what is read, from sample 0; in place of ``Source.start``."""


class Seam(NamedTuple):
    """Says of the block that comes next how it follows on the one before."""

    lost_samples: int = 0
    """Samples a channel that are missing between the two."""
    t_mono_ns: int | None = None
    """Monotonic clock at its first sample [ns], from where times are reckoned anew; None: they
    follow from the sample index as before."""


class PulledSource(ABC):
    """A source that hands out samples when asked: a thread asks, paces and fills the ring.

    A subclass sets the attributes of ``Source`` and implements ``blocks``. The thread waits for
    room in the ring, so nothing is lost; at ``realtime`` pace a block is written when its last
    sample is due. Samples that are missing are not waited for.

    Times: sample 0 is at ``start_utc_ns`` or, where that is not set, at the moment of the start;
    the rest follow by index / fs, missing samples included.
    """

    name: str
    description: str
    fs: float
    channels: int
    is_iq: bool = False
    center_frequency_hz: float = 0.0
    n_samples: int | None = None
    start_utc_ns: int | None = None
    is_live = False
    is_stored = True

    def __init__(self, pace: Pace) -> None:
        self.pace: Pace = pace
        self.failure: SpectrodError | None = None
        self.left_out = LeftOut()
        self._on_change: Callable[[], None] = lambda: None
        self._selected: list[int] | None = None
        self._begin = 0
        self._stopping = threading.Event()
        self._worker: Worker | None = None

    @property
    def layout(self) -> SampleLayout:
        """Of the samples that it writes to a ring."""
        return SampleLayout(channels=self.channels)

    @abstractmethod
    def blocks(self, n_max: int) -> Iterator[Float32Array | Seam]:
        """Yield (channels, n) float32 arrays, 1 <= n <= n_max, until the end [FS].

        Of all channels, whatever was selected, from sample ``_begin`` on, which a subclass that
        can seek sets in ``begin_at``. The arrays are copied at once, so the same memory
        may be yielded again. A ``Seam`` stands before a block that does not simply follow.
        """

    def select(self, numbers: Sequence[int]) -> None:
        """Deliver only these channels, in this order; see ``select_channels``. Before the start."""
        if list(numbers) != list(range(self.channels)):
            self._selected = list(numbers)
            self.channels = len(numbers)

    def begin_at(self, sample_index: int) -> None:  # noqa: B027 - most sources cannot seek
        """Leave out the samples before one, without reading them where that can be.

        Before the start. Indices and times stay as they are: the first block delivered may be
        that of any sample up to this one. A source that cannot seek delivers all.
        """

    def interrupt(self) -> None:  # noqa: B027 - most sources never wait for samples
        """Make a ``blocks`` that waits for samples return soon; called by ``stop``."""

    def start(self, ring: SampleRing, on_change: Callable[[], None] = lambda: None) -> None:
        """Start to fill the ring; see ``Source``."""
        self._on_change = on_change

        def end(failure: SpectrodError | None) -> None:
            self.failure = failure
            ring.close()

        self._worker = Worker("source", partial(self._fill, ring), end)
        self._worker.start()

    def stop(self) -> None:
        """End the thread and wait for it."""
        self._stopping.set()
        self.interrupt()
        if self._worker is not None:
            self._worker.wait()

    def capture(self) -> CaptureStats:
        """Count the files that cannot be used; nothing else is ever lost here."""
        return CaptureStats(left_out_files=self.left_out.n_files)

    def _fill(self, ring: SampleRing) -> None:
        times = _Times(self.fs, self.start_utc_ns)
        pacer = _Pacer(self.fs, self.pace, self._stopping)
        index = self._begin
        for item in self.blocks(self._block_length(ring)):
            if isinstance(item, Seam):
                index += item.lost_samples
                times.follow(index, item.t_mono_ns)
                continue
            samples = item if self._selected is None else item[self._selected]
            n = samples.shape[1]
            if not (pacer.wait_until_due(n) and self._wait_for_room(ring, index + n)):
                return
            ring.write(samples, index, *times.at(index))
            index += n

    def _block_length(self, ring: SampleRing) -> int:
        if self.pace == "realtime":
            return max(1, round(self.fs * _BLOCK_SECONDS))
        return min(_FULL_SPEED_BLOCK, ring.capacity // 4)

    def _wait_for_room(self, ring: SampleRing, index_end: int) -> bool:
        # NB: missing samples take up room too; with as many as it holds, the ring must be empty.
        n = min(index_end - ring.written, ring.capacity)
        while not ring.wait_for_room(n, timeout_s=0.1):
            if self._stopping.is_set():
                return False
        return True


class _Times:
    """When samples were taken: a straight line through one sample's times."""

    def __init__(self, fs: float, start_utc_ns: int | None) -> None:
        self._fs, self._start_utc_ns = fs, start_utc_ns
        self._set(0, time.monotonic_ns())

    def follow(self, index: int, t_mono_ns: int | None) -> None:
        """Let the line go through this sample from now on, if a time is given."""
        if t_mono_ns is not None:
            self._set(index, t_mono_ns)

    def _set(self, index: int, t_mono_ns: int) -> None:
        self._index, self._t_mono_ns = index, t_mono_ns
        if self._start_utc_ns is None:
            self._t_utc_ns = t_mono_ns + time.time_ns() - time.monotonic_ns()
        else:  # what says when it began needs no clock of ours
            self._t_utc_ns = self._start_utc_ns + duration_ns(index, self._fs)

    def at(self, index: int) -> tuple[int, int]:
        """Monotonic clock and UTC of a sample [ns]."""
        since_ns = duration_ns(index - self._index, self._fs)
        return self._t_mono_ns + since_ns, self._t_utc_ns + since_ns


class _Pacer:
    """Waits until samples are due, at real-time pace; counts what was delivered, not indices."""

    def __init__(self, fs: float, pace: Pace, stopping: threading.Event) -> None:
        self._fs, self._pace, self._stopping = fs, pace, stopping
        self._start_s = time.monotonic()
        self._delivered = 0

    def wait_until_due(self, n: int) -> bool:
        """Wait until n more samples have had their time; False if stopped meanwhile."""
        self._delivered += n
        if self._pace == "full":
            return not self._stopping.is_set()
        due_s = self._start_s + self._delivered / self._fs
        return not self._stopping.wait(max(0.0, due_s - time.monotonic()))
