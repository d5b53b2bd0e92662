"""Local times of recorders: converted to UTC, and told apart where they come twice.

When summer time ends, local times of an hour come twice, and a name does not say which of the two
it is. Both passes are kept: a file that would overlap the one before it in the first pass is of the
second. Where no files overlap, the hour was recorded once, and is taken for the pass in which it
joins the files around it.
"""

import datetime as dt
from bisect import bisect_right
from collections.abc import Hashable, Iterator, Sequence
from itertools import pairwise
from typing import Generic, NamedTuple, Protocol, Self, TypeVar

from spectrod.dsp.units import NS_PER_S
from spectrod.lib.time_zones import find_zone
from spectrod.source.files.instants import EPOCH
from spectrod.source.files.placing import TOLERANCE_S

_TOLERANCE_NS = round(TOLERANCE_S * NS_PER_S)
_APART_NS = 86400 * NS_PER_S
"""Distance of the files of two changes of the clock, at least [ns]."""
_JOINED_PERIODS = 1.5
"""Longest time between the starts of files of one run [usual times between starts]."""
_FILES_BEFORE = 9
"""Files before the change from which the usual time between starts is taken, too."""


class LocalTime(NamedTuple):
    """The UTC of a local time.

    Attributes
    ----------
    utc_ns : int
        The first of two, if a change of the clock repeats it; if the change leaves it out, by the
        offset before the change [ns].
    repeat_ns : int
        After what time it comes again [ns]; 0: it comes once; negative: not at all.
    """

    utc_ns: int
    repeat_ns: int


class LocalFile(Protocol):
    """A file whose start is a local time."""

    @property
    def path(self) -> object:
        """Its path."""

    @property
    def begin_utc_ns(self) -> int:
        """UTC of its first sample, of the first pass if its local time comes twice [ns]."""

    @property
    def end_utc_ns(self) -> int:
        """UTC after its last sample [ns]."""

    @property
    def repeat_ns(self) -> int:
        """See ``LocalTime``; 0 if the file states its time zone."""

    @property
    def content(self) -> Hashable:
        """What copies have in common."""

    @property
    def mtime_ns(self) -> int:
        """When it was changed last [ns]."""

    def repeated(self) -> Self:
        """Return the file as one of the second pass."""


F = TypeVar("F", bound=LocalFile)


class Passes(NamedTuple, Generic[F]):
    """The files that begin in an hour that comes twice.

    Attributes
    ----------
    first, second : list of LocalFile
        Files of each pass, by time.
    """

    first: list[F]
    second: list[F]


def from_zone(local_ns: int, time_zone: str) -> LocalTime:
    """Return the UTC of a local time [ns since 1970 by the local clock].

    A recorder's clock is set once and does not follow summer time, but its settings may be changed
    at each service; so the zone's rules at that date count.
    """
    seconds = local_ns // NS_PER_S
    local = (EPOCH + dt.timedelta(seconds=seconds)).replace(tzinfo=find_zone(time_zone))
    offsets = [_offset_ns(local.replace(fold=fold)) for fold in (0, 1)]
    return LocalTime(local_ns - offsets[0], offsets[0] - offsets[1])


def _offset_ns(local: dt.datetime) -> int:
    return round(local.utcoffset().total_seconds()) * NS_PER_S  # type: ignore[union-attr]


def tell_passes_apart(files: Sequence[F]) -> tuple[list[F], list[Passes[F]]]:
    """Find the pass of each file whose local time comes twice.

    Parameters
    ----------
    files : sequence of LocalFile
        Sorted by time; all are in the first pass.

    Returns
    -------
    files : list of LocalFile
        Sorted by time; those of second passes later.
    passes : list of Passes
        One for each change of the clock with files.
    """
    once = [file for file in files if file.repeat_ns <= 0]
    found = [_passes(once, group) for group in _by_change(files)]
    told = [file for one in found for file in (*one.first, *one.second)]
    return sorted([*once, *told], key=lambda file: (file.begin_utc_ns, str(file.path))), found


def _by_change(files: Sequence[F]) -> Iterator[list[F]]:
    """Yield the files of each change of the clock."""
    group: list[F] = []
    for file in files:
        if file.repeat_ns <= 0:
            continue
        if group and file.begin_utc_ns - group[-1].begin_utc_ns > _APART_NS:
            yield group
            group = []
        group.append(file)
    if group:
        yield group


def _passes(once: Sequence[F], group: Sequence[F]) -> Passes[F]:
    begin_ns = group[0].begin_utc_ns
    before = [file for file in once if file.begin_utc_ns < begin_ns]
    after = [file for file in once if file.begin_utc_ns >= begin_ns]
    end_ns = max((file.end_utc_ns for file in before), default=begin_ns)
    first: list[F] = []
    second: list[F] = []
    seen: set[tuple[int, Hashable]] = set()
    for file in group:
        key = file.begin_utc_ns, file.content
        if key in seen or file.begin_utc_ns > end_ns - _TOLERANCE_NS:
            seen.add(key)  # copies stay beside each other
            first.append(file)
            end_ns = max(end_ns, file.end_utc_ns)
        else:
            second.append(file)
    if second:
        first, second = _by_time_of_change(first, second)
    else:
        n_first = _n_first(before, first, after)
        first, second = first[:n_first], first[n_first:]
    return Passes(first, [file.repeated() for file in second])


def _by_time_of_change(first: list[F], second: list[F]) -> tuple[list[F], list[F]]:
    """Exchange the files that overlap, if each of the second pass was written an hour earlier."""
    begins_ns = [file.begin_utc_ns for file in first]
    pairs = [
        (one, other)
        for other in second
        for one in first[max(bisect_right(begins_ns, other.begin_utc_ns) - 1, 0) :][:2]
        if one.begin_utc_ns < other.end_utc_ns and other.begin_utc_ns < one.end_utc_ns
    ]
    later_ns = [(one.mtime_ns - other.mtime_ns, one.repeat_ns) for one, other in pairs]
    if not pairs or not all(0.5 * hour < later < 1.5 * hour for later, hour in later_ns):
        return first, second
    exchanged = {one.path for one, _ in pairs}
    kept = [file for file in first if file.path not in exchanged]
    moved = [file for file in first if file.path in exchanged]
    return sorted([*kept, *second], key=lambda file: file.begin_utc_ns), moved


def _n_first(
    before: Sequence[F],
    files: Sequence[F],
    after: Sequence[F],
) -> int:
    """Return how many of the files are of the first pass: with the fewest breaks, the most of them.

    A recording has a break where a file does not follow the one before it as files usually do.
    """
    around = [*before[-1:], *files, *after[:1]]
    pairs = list(pairwise(around))
    begins_ns = [file.begin_utc_ns for file in [*before[-_FILES_BEFORE:], *files]]
    steps_ns = sorted(later - earlier for earlier, later in pairwise(begins_ns))
    usual_ns = steps_ns[(len(steps_ns) - 1) // 2] if steps_ns else 0

    def has_break(pair: tuple[F, F], shift_ns: int = 0) -> bool:
        earlier, later = pair
        step_ns = later.begin_utc_ns - earlier.begin_utc_ns + shift_ns
        gap_ns = later.begin_utc_ns - earlier.end_utc_ns + shift_ns
        return gap_ns > _TOLERANCE_NS and step_ns > _JOINED_PERIODS * usual_ns

    n_before, repeat_ns = len(around) - len(files) - len(after[:1]), files[0].repeat_ns
    breaks = [has_break(pair) for pair in pairs]
    n_saved_after = breaks[-1] - has_break(pairs[-1], -repeat_ns) if after else 0

    def n_breaks(n_first: int) -> int:
        """Count the breaks, less those that do not depend on the pass of any file."""
        if n_first == len(files):
            return 0
        place = n_first + n_before - 1
        n_more = has_break(pairs[place], repeat_ns) - breaks[place] if place >= 0 else 0
        return n_more - n_saved_after

    return max(range(len(files) + 1), key=lambda n_first: (-n_breaks(n_first), n_first))
