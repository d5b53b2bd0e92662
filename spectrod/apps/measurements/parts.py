"""Parts of a recording that can be measured one by one, with the rows of the whole."""

import logging
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from spectrod.apps.measurements.bound_source import BoundSource
from spectrod.apps.measurements.measured_source import MeasuredSource
from spectrod.lib.time_zones import find_zone
from spectrod.measure.intervals import DAY_S, IntervalBounds, LevelAlign
from spectrod.measure.measurement_config import Cuts, IntervalMeter
from spectrod.source.continuous_ranges import ContinuousRanges

_PARTS_A_PROCESS = 4
"""Parts for each process, so that all of them end at about the same time."""
_INTERVALS_MAX = 1 << 14
"""Most intervals with samples in a part: their rows wait in memory."""

_REASONS: dict[Cuts, str] = {
    "gaps": "filters go on over all of it, as no gap reaches from one interval to the next",
    "intervals": "it is one interval",
    "nowhere": "tracks go on from interval to interval",
}

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RecordingPart:
    """Samples of a source that one process measures.

    Attributes
    ----------
    first, stop : int
        Index of the first one, and after the last one.
    is_last : bool
        Whether no part follows.
    """

    first: int
    stop: int
    is_last: bool


def cut_parts(bound: BoundSource, meter: IntervalMeter, jobs: int) -> list[RecordingPart]:
    """Cut a recording where rows do not depend on the samples before; see ``Cuts``.

    Parameters
    ----------
    bound : BoundSource
        A recording of known length, and what is measured.
    meter : IntervalMeter
        A meter of this.
    jobs : int
        Number of processes.

    Returns
    -------
    parts : list of RecordingPart
        In order; one, which a line of the log says, if there is no such place.
    """
    source, cuts = bound.measured.source, bound.settings.cuts
    ranges = ranges_of(bound.measured)
    next_cut = _next_cut(bound, meter, ranges)
    n_most = _INTERVALS_MAX * meter.interval_s * source.fs
    n_part = max(1, int(min(ranges.n_samples / (_PARTS_A_PROCESS * jobs), n_most)))
    end, begins = ranges.ends[-1], [bound.measured.span.first]
    while (index := ranges.after(begins[-1], n_part)) is not None:
        cut = next_cut(index)
        if cut is None or cut >= end:
            break
        begins.append(cut)
    if len(begins) == 1:
        _log.warning("--jobs %d: one process measures all: %s", jobs, _REASONS[cuts])
    stops = [*begins[1:], end]
    return [RecordingPart(a, b, b == end) for a, b in zip(begins, stops, strict=True)]


def ranges_of(measured: MeasuredSource) -> ContinuousRanges:
    """Return the ranges without a gap between files of the samples that are measured."""
    assert measured.span.n_samples is not None
    return ContinuousRanges.of(measured.source, measured.span.first, measured.span.n_samples)


def _next_cut(
    bound: BoundSource, meter: IntervalMeter, ranges: ContinuousRanges
) -> Callable[[int], int | None]:
    """Return what finds the first place to cut at or after an index."""
    measured = bound.measured
    first = measured.span.first
    bounds = IntervalBounds(
        measured.source.fs,
        DAY_S if bound.meter.facts.has_days else meter.interval_s,
        cast("LevelAlign", meter.align),
        find_zone(bound.meter.facts.time_zone),
        first_sample=ranges.begins[0] - first,
        utc_ns=measured.utc_ns(ranges.begins[0]),
    )

    def end_of_interval(index: int) -> int:
        return first + bounds.begin_at(index - first)[1]

    if bound.settings.cuts == "intervals":
        return lambda index: end_of_interval(index - 1)
    if bound.settings.cuts == "nowhere":
        return lambda _: None
    gaps = [
        begin
        for end, begin in zip(ranges.ends, ranges.begins[1:], strict=False)
        if end_of_interval(end - 1) <= begin
    ]
    return lambda index: gaps[k] if (k := bisect_left(gaps, index)) < len(gaps) else None
