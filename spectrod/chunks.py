"""Chunks of a stream, and how they are cut: at an index, at a time, at a gap."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar, Self


def duration_ns(n_samples: int, fs: float) -> int:
    """Return how long so many samples at a rate [Hz] take, to the nearest whole number [ns]."""
    return round(n_samples * 1e9 / fs)


class Chunk(ABC):
    """Consecutive items of a stream: samples of ``Block``, rows of ``SpectrumBatch``.

    Cuts copy no data. All parts in order hold all items; what is missing before the chunk is
    missing before the part with its first item alone. A chunk that is cut to its whole is returned
    as it is.
    """

    __slots__ = ()

    unit: ClassVar[str]
    """What items are called."""

    @property
    @abstractmethod
    def length(self) -> int:
        """Number of items: samples a channel, or rows."""

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
        """Least time from the first sample of an item to its arrival [s]."""

    @property
    @abstractmethod
    def span_samples(self) -> int:
        """Samples a channel that it stands for, those missing before it included."""

    @abstractmethod
    def between(self, first: int, stop: int) -> Self:
        """Return the items from one index on and before another, 0 <= first <= stop <= length."""

    @abstractmethod
    def index_at(self, t_utc_ns: int) -> int:
        """Return the index of the first item at or after a UTC [ns]; ``length`` if none is."""

    @abstractmethod
    def after_gap(self, missing_samples: int) -> Self:
        """Return the chunk with that many more samples missing directly before it."""

    def head(self, n: int) -> Self:
        """Return the first n items, or all if there are fewer; n >= 0."""
        return self.between(0, min(n, self.length))

    def split_at(self, t_utc_ns: int) -> tuple[Self | None, Self | None]:
        """Split into what is before a UTC [ns] and what is at or after it.

        None stands for a part without items; a chunk without any is a part after.
        """
        k = self.index_at(t_utc_ns)
        if k == 0:
            return None, self
        if k == self.length:
            return self, None
        return self.between(0, k), self.between(k, self.length)

    def by_period(self, period_ns: int) -> Iterator[tuple[int, Self]]:
        """Yield the parts that lie in one period each, with the number of the period.

        Period k of the wall clock begins at k * period_ns [ns since 1970].
        """
        rest: Self | None = self
        while rest is not None and rest.length:
            number = rest.begin_utc_ns // period_ns
            part, rest = rest.split_at((number + 1) * period_ns)
            if part is not None:
                yield number, part
