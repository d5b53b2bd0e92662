"""Gaps between the rows of a day, and the minutes that they reach into."""

import numpy as np

from spectrod.dsp.blocks import duration_ns
from spectrod.dsp.duty_cycle import pauses_of_schedule
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.units import NS_PER_S
from spectrod.formats.export.minutes import MINUTE_NS

GAPS_MAX = 1 << 16
"""Gaps of a day among which a schedule is looked for; of later ones all count as losses."""


class DayGaps:
    """Collects the gaps of rows, in bounded memory.

    Parameters
    ----------
    fs : float
        Sample rate [Hz].
    """

    def __init__(self, fs: float) -> None:
        self._fs = fs
        self._begin_ns: int | None = None
        self._end_ns = 0
        self._gaps: list[tuple[int, int]] = []
        self._minutes_of_more: set[int] = set()

    def add(self, batch: SpectrumBatch) -> None:
        """Add the gap before a batch of at least one row, if there is one."""
        begin_ns = batch.begin_utc_ns
        if self._begin_ns is None:
            self._begin_ns = begin_ns
        elif batch.gap_samples:
            self._add(begin_ns - duration_ns(batch.gap_samples, self._fs), begin_ns)
        self._end_ns = batch.last_utc_ns + round(batch.spec.row_s * NS_PER_S)

    def minutes(self) -> set[int]:
        """Return the minutes since 1970 that gaps begin or end in; a schedule's pause is no gap."""
        if not self._gaps or self._begin_ns is None:
            return set(self._minutes_of_more)
        starts, stops = np.array(self._gaps, np.int64).T
        begins_s = np.array([self._begin_ns, *stops]) / NS_PER_S
        ends_s = np.array([*starts, self._end_ns]) / NS_PER_S
        is_loss = ~pauses_of_schedule(begins_s, ends_s)
        edges = np.concatenate([starts[is_loss], stops[is_loss] - 1])
        return self._minutes_of_more.union((edges // MINUTE_NS).tolist())

    def forget_before(self, utc_ns: int) -> None:
        """Forget the gaps that ended before a time; a later one begins what is collected."""
        later = [one for one in self._gaps if one[1] > utc_ns]
        if len(later) < len(self._gaps):
            self._begin_ns = self._gaps[len(self._gaps) - len(later) - 1][1]
        self._gaps = later
        first = utc_ns // MINUTE_NS
        self._minutes_of_more = {one for one in self._minutes_of_more if one >= first}

    def _add(self, start_ns: int, stop_ns: int) -> None:
        if len(self._gaps) < GAPS_MAX:
            self._gaps.append((start_ns, stop_ns))
        else:
            self._minutes_of_more |= {start_ns // MINUTE_NS, (stop_ns - 1) // MINUTE_NS}
