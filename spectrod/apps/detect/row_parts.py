"""Parts of a recording whose rows can be measured one by one, as the rows of the whole."""

from dataclasses import dataclass, replace
from itertools import pairwise

from spectrod.cli.sample_range import SampleRange
from spectrod.dsp.bands import is_host_only
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.source.continuous_ranges import ContinuousRanges
from spectrod.source.open_source import Source

_PARTS_A_PROCESS = 4
"""Parts for each process, so that all of them end at about the same time."""
_PROCESS_POINTS_MIN = 1 << 27
"""Points of frames that take about as long as the start of a process, 12 minutes at 48 kHz."""
_PART_BYTES_MAX = 1 << 26
"""Most memory of the rows of a part, which wait until those before it were read [bytes]."""


@dataclass(frozen=True, slots=True)
class RowPart:
    """Samples of a source that one process analyses.

    Attributes
    ----------
    first, stop : int
        Index of the first one, and after the last one.
    is_after_gap : bool
        Whether samples are missing before the first one.
    """

    first: int
    stop: int
    is_after_gap: bool


def useful_jobs(source: Source, span: SampleRange, spec: SpectrumSpec, jobs: int) -> int:
    """Return how many processes take longer to analyse their share than to start, at least 1.

    Parameters
    ----------
    source : Source
        A recording of known length.
    span : SampleRange
        What is analysed of it.
    spec : SpectrumSpec
        Definition of the rows.
    jobs : int
        The most.
    """
    assert span.n_samples is not None
    n_samples = ContinuousRanges.of(source, span.first, span.n_samples).n_samples
    n_points = n_samples // spec.hop * spec.nfft * spec.n_signals
    return max(1, min(jobs, n_points // _PROCESS_POINTS_MIN))


def cut_rows(source: Source, span: SampleRange, spec: SpectrumSpec, jobs: int) -> list[RowPart]:
    """Cut a recording where rows do not depend on the samples before.

    That is after each gap between files, and, without averages, at each frame: parts then share the
    samples of frames that overlap.

    Parameters
    ----------
    source : Source
        A recording of known length.
    span : SampleRange
        What is analysed of it.
    spec : SpectrumSpec
        Definition of the rows.
    jobs : int
        Number of processes.

    Returns
    -------
    parts : list of RowPart
        In order; at least one.
    """
    assert span.n_samples is not None
    ranges = ContinuousRanges.of(source, span.first, span.n_samples)
    row_bytes = 4 * spec.n_signals * len(spec.frequencies)
    n_most = max(1, _PART_BYTES_MAX // row_bytes) * spec.hop
    n_part = max(1, min(ranges.n_samples // (_PARTS_A_PROCESS * jobs), n_most))
    # Averages restart with a part, and rows on the host may be of more than a frame.
    can_split = spec.averaging == "none" and not is_host_only(spec.bands)
    parts: list[RowPart] = []
    n_last = 0
    for begin, end in zip(ranges.begins, ranges.ends, strict=True):
        n = end - begin
        if parts and n_last + n <= n_part:
            parts[-1], n_last = replace(parts[-1], stop=end), n_last + n
        elif can_split:
            parts += _split(begin, end, n_part, spec, is_after_gap=bool(parts))
            n_last = end - parts[-1].first
        else:
            parts.append(RowPart(begin, end, bool(parts)))
            n_last = n
    return parts


def _split(
    begin: int, end: int, n_part: int, spec: SpectrumSpec, *, is_after_gap: bool
) -> list[RowPart]:
    """Split samples without a gap into parts of whole frames."""
    n_rows = max(1, n_part // spec.hop)
    n_all = max(1, (end - begin - spec.win_length) // spec.hop + 1)
    rows = [*range(0, n_all, n_rows), n_all]
    return [
        RowPart(
            begin + first * spec.hop,
            end if stop == n_all else begin + (stop - 1) * spec.hop + spec.win_length,
            is_after_gap and not first,
        )
        for first, stop in pairwise(rows)
    ]
