"""Ranges of a recording without a gap between its files."""

from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import accumulate

from spectrod.source.base import SelectableSource
from spectrod.source.open_source import Source


@dataclass(frozen=True, slots=True)
class ContinuousRanges:
    """Samples without a gap between files.

    Attributes
    ----------
    begins, ends : list of int
        Index of the first sample of each, and after the last one; at least one.
    """

    begins: list[int]
    ends: list[int]
    _before: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, source: Source, first: int, n_samples: int) -> "ContinuousRanges":
        """Return those of a range of a source's samples."""
        stop = first + n_samples
        files = source.files if isinstance(source, SelectableSource) else ()
        begins, ends = [first], [stop]
        for one in files:
            begin, end = max(first, one.first), min(stop, one.first + one.n_samples)
            if begin >= end:
                continue
            if begins == [first] and ends == [stop]:
                begins, ends = [begin], [end]
            elif begin > ends[-1]:
                begins.append(begin)
                ends.append(end)
            else:
                ends[-1] = max(ends[-1], end)
        lengths = (end - begin for begin, end in zip(begins, ends, strict=True))
        return cls(begins, ends, [0, *accumulate(lengths)])

    @property
    def n_samples(self) -> int:
        """Number of all samples."""
        return self._before[-1]

    def after(self, index: int, n: int) -> int | None:
        """Return the index of the sample that ``n`` samples follow from an index on."""
        k = max(0, bisect_left(self.begins, index + 1) - 1)
        inside = min(max(0, index - self.begins[k]), self.ends[k] - self.begins[k])
        place = self._before[k] + inside + n
        if place >= self.n_samples:
            return None
        k = bisect_left(self._before, place + 1) - 1
        return self.begins[k] + place - self._before[k]
