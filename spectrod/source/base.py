"""The source interface, and the thread that pulls samples from sources that can wait."""

import select
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, Self

from numpy.typing import NDArray

from spectrod.config.config import Pace
from spectrod.dsp.blocks import Block, SampleFormat, duration_ns
from spectrod.dsp.sample_layout import SampleLayout
from spectrod.lib.errors import SpectrodError
from spectrod.lib.job_pool import JobPool, PoolJob, Steps, Wait
from spectrod.lib.stats import CaptureStats
from spectrod.lib.worker import Worker
from spectrod.source.direct import DirectReader, PacedReader
from spectrod.source.files.instants import RecordedAt
from spectrod.source.files.speakers import find_speakers
from spectrod.source.left_out import LeftOut
from spectrod.source.ring import SampleRing

YEAR_S = 365.25 * 86400.0
SPAN_MAX_S = 60 * YEAR_S
"""Longest file or folder [s]: times from 2199, the latest accepted year, must fit 64 bits [ns]."""

_PACED_BLOCK_S = 0.5
"""Samples that are made at once in real time, though they are read as they are due [s]."""
_ROOM_S = 0.1
_FULL_SPEED_BLOCK = 1 << 15
_DIRECT_BLOCK = 1 << 18
_DIRECT_BLOCK_BYTES = 1 << 22


class Source(Protocol):
    """A source of samples: its format is known once created, it delivers once started."""

    name: str
    """Name used in topics: letters, digits and ``. _ -``."""
    description: str
    """Human-readable description."""
    fs: float
    """Sample rate [Hz]."""
    channels: int
    is_iq: bool
    """True if each pair of channels is the I and the Q of one signal."""
    center_frequency_hz: float
    """Frequency that 0 Hz of the I/Q samples represents [Hz]; 0 if unknown."""
    n_samples: int | None
    """Total samples per channel; None if the source does not end or the end is unknown."""
    is_live: bool
    """True if the source cannot wait: a full ring is overwritten."""
    is_stored: bool
    """True if the samples can be read again: they come from files or are computed."""
    start_utc_ns: int | None
    """UTC of sample 0 [ns]; None if only the clock at the start gives it."""
    failure: SpectrodError | None
    """Error that ended the source early."""
    left_out: LeftOut
    """Files that are skipped or only partly read."""

    @property
    def speakers(self) -> tuple[str, ...]:
        """Speaker of each channel, as ``FL``, see ``find_speakers``; empty if unknown."""

    @property
    def layout(self) -> SampleLayout:
        """Layout of the samples that the reader returns."""

    def open_reader(self) -> "SampleReader":
        """Create what the analysis reads the samples from: a ring, or a file. Call it once."""

    def start(self, reader: Any, on_change: Callable[[], None] = lambda: None) -> None:
        """Start to fill the ring; the source closes it when it ends.

        Parameters
        ----------
        reader : SampleReader
            From ``open_reader``.
        on_change : callable
            Called by a thread of the source when ``capture`` changes; must not block.
        """

    def stop(self) -> None:
        """Stop; returns once nothing writes to the ring any more. May be called twice."""

    def capture(self) -> CaptureStats:
        """Return a snapshot of the capture statistics; any thread may call it."""


class SampleReader(Protocol):
    """The consumer's side of a source: a ``SampleRing``, or a file.

    Counts are in samples per channel; a reader of a file loses nothing. The attributes are those of
    ``SampleRing``.
    """

    overflows: int
    suspected: int
    overruns: int
    peak_fill: float

    @property
    def span_s(self) -> float: ...  # noqa: D102 - above

    @property
    def layout(self) -> SampleLayout: ...  # noqa: D102 - above

    @property
    def taken(self) -> int: ...  # noqa: D102 - above

    @property
    def written(self) -> int: ...  # noqa: D102 - above

    @property
    def exhausted(self) -> bool: ...  # noqa: D102 - above

    def read(self, max_samples: int, into: NDArray[Any] | None = None) -> Block | None:
        """Read up to max_samples, into the given array if it fits; None if there are none now.

        An array fits if its shape is (channels, n); at most n samples are read then.
        """

    def relax(self, least_s: float) -> None:
        """Allow samples to come late, this much at a time [s]; 0: as soon as they are there."""

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for samples or the end; return False after the timeout [s]."""

    def awaited(self) -> Wait:
        """Return what ``wait`` waits for, for a job of a pool."""

    def close(self) -> None:
        """Signal that no more samples come; any thread may call it."""

    def release(self) -> None:
        """Release open resources."""


class Discontinuity(NamedTuple):
    """Discontinuity between the preceding block and the next one."""

    lost_samples: int = 0
    """Samples per channel that are missing between the two blocks."""
    t_mono_ns: int | None = None
    """Monotonic clock at the next block's first sample [ns], the new time reference; None: times
    keep following from the sample index."""


class StreamFile(NamedTuple):
    """A file of a source, and where its samples are in the stream."""

    path: str
    first: int
    """Index in the stream of the file's sample 0, which may overlap the file before."""
    n_samples: int
    """Samples per channel of the file."""


class SelectableSource:
    """Base of files and streams: the attributes of ``Source``, and a selection.

    A subclass sets the attributes.
    """

    name: str
    description: str
    fs: float
    channels: int
    is_iq: bool = False
    center_frequency_hz: float = 0.0
    n_samples: int | None = None
    start_utc_ns: int | None = None
    utc_offset_s: int = 0
    """By how much the times of the recording are ahead of UTC, as it says [s]; 0 if it does not."""
    is_live = False
    is_stored = True
    files: tuple[StreamFile, ...] = ()
    """Files of a folder, in the order of the stream; empty for all other sources."""
    _speakers_path = ""
    """File whose header tells the speakers of the channels."""

    def __init__(self) -> None:
        self.failure: SpectrodError | None = None
        self.left_out = LeftOut()
        self._selected: list[int] | None = None
        self._first = 0

    def take_start(self, *recorded: RecordedAt | None) -> None:
        """Take the time of the first of some files, and the offset from UTC that all have."""
        first = recorded[0]
        self.start_utc_ns = first.utc_ns if first else None
        offsets = {one.offset_s for one in recorded if one}
        self.utc_offset_s = offsets.pop() if len(offsets) == 1 else 0

    def select(self, numbers: Sequence[int]) -> None:
        """Deliver only these channels, in this order; see ``select_channels``. Before the start."""
        if list(numbers) != list(range(self.channels)):
            self._selected = list(numbers)
            self.channels = len(numbers)

    @property
    def speakers(self) -> tuple[str, ...]:
        """Speakers of the selected channels; the header is read when they are needed."""
        found = find_speakers(self._speakers_path) if self._speakers_path else ()
        numbers = range(self.channels) if self._selected is None else self._selected
        if max(numbers) >= len(found) or (self._selected is None and self.channels != len(found)):
            return ()
        return tuple(found[number] for number in numbers)

    def start_at(self, sample_index: int) -> None:
        """Skip the samples before an index, without reading them if possible.

        Call before the reader is opened. Indices and times do not change: the first block delivered
        may start at any sample up to this one. A source without random access delivers all samples.
        """

    def again(self) -> Self | None:
        """Return the source as it was before its start, for another reading of the same samples.

        Its files are not listed and their headers not read again. None if the source must be opened
        for that.
        """
        return None

    def capture(self) -> CaptureStats:
        """Count the unusable files; these sources lose nothing else."""
        return CaptureStats(left_out_files=self.left_out.n_files)


class PulledSource(SelectableSource, ABC):
    """A source that makes samples when it is asked for them.

    A subclass sets the attributes of ``Source`` and implements ``blocks``. At ``realtime`` pace the
    analysis takes samples when the last of them is due; missing samples are not waited for. At full
    speed a thread, or a job of a pool, fills a ring and waits for room in it. No sample is lost.

    At full speed a subclass may be read without a ring: see ``is_direct``.

    Times: sample 0 is at ``start_utc_ns`` or, if that is not set, at the moment of the start;
    all others follow by index / fs, missing samples included.
    """

    is_direct = False
    """True if the analysis makes a block when it needs one. Blocks then have memory of their own,
    in which the samples of all channels alternate."""
    _sample_format: SampleFormat = "float32"

    def __init__(self, pace: Pace) -> None:
        super().__init__()
        self.pace: Pace = pace
        self._on_change: Callable[[], None] = lambda: None
        self._stopping = threading.Event()
        self._filling: Worker | PoolJob | None = None
        self._pool: JobPool | None = None

    def join(self, pool: JobPool) -> bool:  # noqa: ARG002 - a subclass uses it
        """Let a pool serve the source; return whether it can, which a source at full speed cannot.

        Call it before ``start``.
        """
        return self.pace == "realtime"

    @property
    def layout(self) -> SampleLayout:
        """Layout of the samples written to the ring, or of the blocks."""
        is_interleaved = self.is_direct and self._selected is None and self.channels > 1
        return SampleLayout(self._sample_format, self.channels, interleaved=is_interleaved)

    @abstractmethod
    def blocks(self, n_max: int) -> Iterator[NDArray[Any] | Discontinuity | Wait]:
        """Yield (channels, n) arrays of the layout's dtype, 1 <= n <= n_max, until the end [FS].

        Blocks hold all channels, whatever the selection, from sample ``_first`` on; a subclass that
        supports random access sets it in ``start_at``. The arrays are copied at once, unless
        ``is_direct``, so the same memory may be yielded again. A ``Discontinuity`` precedes a block
        that does not follow the one before it. A ``Wait`` tells what the next block waits for; only
        a source with a ring may yield it, and must look again after it.
        """

    def interrupt(self) -> None:
        """End a wait for samples in a thread of the source's own soon; ``stop`` calls it."""

    def open_reader(self) -> SampleRing | DirectReader:
        """Create the ring that ``start`` fills, or what makes the blocks."""
        is_paced = self.pace == "realtime"
        if not (self.is_direct or is_paced):
            return SampleRing(self.fs, self.layout)
        n_max = block_length(self.layout)
        if is_paced:
            n_max = min(n_max, max(1, round(self.fs * _PACED_BLOCK_S)))
        return (PacedReader if is_paced else DirectReader)(
            self.fs,
            self.layout,
            self._indexed(n_max),
            self._first,
            _Times(self.fs, self.start_utc_ns).at,
            self._fail,
        )

    def _fail(self, failure: SpectrodError) -> None:
        self.failure = failure

    def _indexed(self, n_max: int) -> Generator[tuple[int, NDArray[Any]], None, None]:
        """Yield the selected channels of all blocks, with the index of their first sample."""
        index = self._first
        for item in self.blocks(n_max):
            assert not isinstance(item, Wait)
            if isinstance(item, Discontinuity):
                index += item.lost_samples
                continue
            yield index, item if self._selected is None else item[self._selected]
            index += item.shape[1]

    def start(
        self, reader: SampleRing | DirectReader, on_change: Callable[[], None] = lambda: None
    ) -> None:
        """Start to fill the ring; see ``Source``."""
        self._on_change = on_change
        if isinstance(reader, PacedReader):
            reader.begin(_Times(self.fs, self.start_utc_ns).at)
        if isinstance(reader, DirectReader):
            return

        def end(failure: SpectrodError | None) -> None:
            self.failure = failure
            reader.close()

        if self._pool:
            self._filling = self._pool.job("source", self._fill(reader), end)
        else:
            self._filling = Worker("source", partial(self._fill_alone, reader), end)
        self._filling.start()

    def stop(self) -> None:
        """Stop the thread or the job, and wait for it."""
        self._stopping.set()
        self.interrupt()
        if isinstance(self._filling, PoolJob):
            self._filling.wake()
        if self._filling is not None:
            self._filling.wait()

    def _fill_alone(self, ring: SampleRing) -> None:
        for wait in self._fill(ring):
            self._wait(wait)

    def _wait(self, wait: Wait) -> None:
        """Wait in a thread of the source's own; ``interrupt`` ends a wait that may be long."""
        poll = select.poll()
        if wait.fd >= 0:
            poll.register(wait.fd, wait.events)
        poll.poll(max(0.0, wait.until_s - time.monotonic()) * 1e3)

    def _fill(self, ring: SampleRing) -> Steps:
        """Fill the ring; yield what that waits for."""
        times = _Times(self.fs, self.start_utc_ns)
        index = self._first
        for item in self.blocks(min(_FULL_SPEED_BLOCK, ring.capacity // 4)):
            if isinstance(item, Wait):
                yield item
                continue
            if isinstance(item, Discontinuity):
                index += item.lost_samples
                times.follow(index, item.t_mono_ns)
                continue
            samples = item if self._selected is None else item[self._selected]
            n = samples.shape[1]
            while not (self._stopping.is_set() or ring.wait_for_room(n, timeout_s=0.0)):
                yield ring.awaited_room(time.monotonic() + _ROOM_S)
            if self._stopping.is_set():
                return
            ring.write(samples, index, *times.at(index))
            index += n


def block_length(layout: SampleLayout) -> int:
    """Return how many samples per channel are read at a time: up to 2^18, and to 4 MiB."""
    return max(1, min(_DIRECT_BLOCK, _DIRECT_BLOCK_BYTES // layout.step_bytes))


class _Times:
    """Times of samples: a straight line through the times of one sample."""

    def __init__(self, fs: float, start_utc_ns: int | None) -> None:
        self._fs, self._start_utc_ns = fs, start_utc_ns
        self._set(0, time.monotonic_ns())

    def follow(self, index: int, t_mono_ns: int | None) -> None:
        """Move the line through this sample, if a time is given."""
        if t_mono_ns is not None:
            self._set(index, t_mono_ns)

    def _set(self, index: int, t_mono_ns: int) -> None:
        self._index, self._t_mono_ns = index, t_mono_ns
        if self._start_utc_ns is None:
            self._t_utc_ns = t_mono_ns + time.time_ns() - time.monotonic_ns()
        else:  # a known start time needs no wall clock
            self._t_utc_ns = self._start_utc_ns + duration_ns(index, self._fs)

    def at(self, index: int) -> tuple[int, int]:
        """Return the monotonic time and the UTC of a sample [ns]."""
        since_ns = duration_ns(index - self._index, self._fs)
        return self._t_mono_ns + since_ns, self._t_utc_ns + since_ns
