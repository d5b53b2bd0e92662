"""Chunks of a stream, and how to split them: at an index, at a time, at a gap."""

from abc import ABC, abstractmethod
from typing import ClassVar, Self


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
