"""Chunks of a stream: blocks of samples, and how to split them at an index, a time, a gap."""

from abc import ABC, abstractmethod
from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

from numpy.typing import NDArray

from spectrod.lib.errors import InternalError

SampleFormat = Literal["int16", "int24", "int32", "float32"]
"""Little-endian integers of full scale 2^15, 2^23 (three bytes each) and 2^31; float32 [FS]."""


def duration_ns(n_samples: int, fs: float) -> int:
    """Return the duration of n_samples at a rate [Hz], rounded to a whole number [ns]."""
    return round(n_samples * 1e9 / fs)


class Chunk(ABC):
    """Consecutive items of a stream: samples of ``Block``, rows of ``SpectrumBatch``.

    Splitting copies no data. The parts in order hold all items; samples missing before the chunk
    are missing only before the part with the first item. A split that leaves the chunk whole
    returns it unchanged.
    """

    __slots__ = ()

    unit: ClassVar[str]
    """Name of the items."""

    @property
    @abstractmethod
    def length(self) -> int:
        """Number of items: samples per channel, or rows."""

    @property
    @abstractmethod
    def begin_utc_ns(self) -> int:
        """UTC of the first item [ns since 1970]."""

    @property
    @abstractmethod
    def last_utc_ns(self) -> int:
        """UTC of the last item [ns since 1970]."""

    @property
    @abstractmethod
    def n_bytes(self) -> int:
        """Memory of the items [bytes]."""

    @property
    @abstractmethod
    def delay_s(self) -> float:
        """Shortest time from the first sample of an item to its arrival [s]."""

    @property
    @abstractmethod
    def span_samples(self) -> int:
        """Samples per channel that the chunk covers, including those missing before it."""

    @abstractmethod
    def between(self, first: int, stop: int) -> Self:
        """Return the items in [first, stop), 0 <= first <= stop <= length."""

    @abstractmethod
    def index_at(self, t_utc_ns: int) -> int:
        """Return the index of the first item at or after a UTC [ns], or ``length``."""

    @abstractmethod
    def after_gap(self, missing_samples: int) -> Self:
        """Return the chunk with this number of additional samples missing directly before it."""

    def head(self, n: int) -> Self:
        """Return the first n items, or all if there are fewer; n >= 0."""
        return self.between(0, min(n, self.length))

    def split_at(self, t_utc_ns: int) -> tuple[Self | None, Self | None]:
        """Split into the items before a UTC [ns] and those at or after it.

        None replaces a part without items; an empty chunk is the second part.
        """
        k = self.index_at(t_utc_ns)
        if k == 0:
            return None, self
        if k == self.length:
            return self, None
        return self.between(0, k), self.between(k, self.length)


@dataclass(frozen=True, slots=True, eq=False)
class Block(Chunk):
    """Consecutive samples passed from a source to the analysis.

    Attributes
    ----------
    samples : (channels, n) float32
        n >= 1 samples in [-1, 1] [FS]. Before decoding, integers of a ``SampleFormat``; int24 as
        (channels, n, 3) uint8.
    sample_index : int
        Absolute index of the first sample since the source started; lost samples count.
    t_mono_ns, t_utc_ns : int
        Monotonic clock and UTC at the first sample [ns].
    discontinuity : bool
        True if this block does not follow the preceding one directly.
    lost_samples : int
        Samples missing directly before this block, as far as known.
    fs : float
        Sample rate [Hz]; 0 if unknown: such a block has a time for its first sample only, and
        cannot be split.
    """

    unit: ClassVar[str] = "samples"

    samples: NDArray[Any]
    sample_index: int
    t_mono_ns: int
    t_utc_ns: int
    discontinuity: bool = False
    lost_samples: int = 0
    fs: float = 0.0

    @property
    def n_samples(self) -> int:
        """Samples in each channel."""
        return int(self.samples.shape[1])

    @property
    def missing_samples(self) -> int | None:
        """Samples missing directly before it; None if some are, and nobody knows how many."""
        return None if self.discontinuity and not self.lost_samples else self.lost_samples

    @property
    def length(self) -> int:
        """See ``Chunk``."""
        return self.n_samples

    @property
    def begin_utc_ns(self) -> int:
        """See ``Chunk``."""
        return self.t_utc_ns

    @property
    def last_utc_ns(self) -> int:
        """See ``Chunk``."""
        return self.t_utc_ns + self._offset_ns(self.n_samples - 1)

    @property
    def n_bytes(self) -> int:
        """See ``Chunk``."""
        return int(self.samples.nbytes)

    @property
    def delay_s(self) -> float:
        """See ``Chunk``; a sample arrives with the others of its block."""
        return self._offset_ns(self.n_samples) / 1e9

    @property
    def span_samples(self) -> int:
        """See ``Chunk``."""
        return self.lost_samples + self.n_samples

    def between(self, first: int, stop: int) -> Self:
        """See ``Chunk``."""
        if (first, stop) == (0, self.n_samples):
            return self
        samples = self.samples[:, first:stop]
        if first == 0:
            return replace(self, samples=samples)
        since_ns = self._offset_ns(first)
        return replace(
            self,
            samples=samples,
            sample_index=self.sample_index + first,
            t_mono_ns=self.t_mono_ns + since_ns,
            t_utc_ns=self.t_utc_ns + since_ns,
            discontinuity=False,
            lost_samples=0,
        )

    def index_at(self, t_utc_ns: int) -> int:
        """See ``Chunk``."""
        indices = range(self.n_samples)
        return bisect_left(indices, t_utc_ns - self.t_utc_ns, key=self._offset_ns)

    def after_gap(self, missing_samples: int) -> Self:
        """See ``Chunk``."""
        lost = self.lost_samples + missing_samples
        return replace(self, lost_samples=lost, discontinuity=True)

    def drop_before(self, sample_index: int) -> Self | None:
        """Drop the samples before an absolute index, missing ones included; None if none remain.

        Missing samples count only from that index on.
        """
        n_before = sample_index - self.sample_index
        if n_before <= 0:
            return replace(self, lost_samples=min(self.lost_samples, -n_before))
        return self.between(n_before, self.n_samples) if n_before < self.n_samples else None

    def _offset_ns(self, k: int) -> int:
        """Return the time from the first sample to sample k [ns]."""
        if k and not self.fs:
            raise InternalError("block without a sample rate: its samples have no times")
        return duration_ns(k, self.fs) if k else 0


class RangeTrimmer:
    """Trims the blocks of a stream to a range of its samples, and counts them.

    Parameters
    ----------
    first : int
        Index of the first sample of the range.
    n_samples : int, optional
        Samples of the range per channel, missing ones included; None without an end.

    Attributes
    ----------
    left : int, optional
        Samples of the range that are still to come; None without an end.
    read_samples, missing_samples : int
        Samples of the range so far that blocks had, and that were missing before them.
    """

    def __init__(self, first: int = 0, n_samples: int | None = None) -> None:
        self._first, self.left = first, n_samples
        self.read_samples = self.missing_samples = 0

    def trim(self, block: Block) -> Block | None:
        """Return the part of the next block that is in the range; None if there is none."""
        kept: Block | None = block
        if block.sample_index - block.lost_samples < self._first:
            kept = block.drop_before(self._first)
        if kept is None:
            return None
        if self.left is not None:
            if self.left <= kept.lost_samples:
                self.missing_samples += self.left
                self.left = 0
                return None
            kept = kept.head(self.left - kept.lost_samples)
            self.left -= kept.span_samples
        self.missing_samples += kept.lost_samples
        self.read_samples += kept.n_samples
        return kept
