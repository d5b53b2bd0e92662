"""Rows of levels over time, for the waterfall."""

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from spectrod.apps.view.axes import ColumnAxis
from spectrod.dsp.units import Float32Array, Float64Array

PERIODS_S = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
"""Times that a row may cover [s]."""
ROWS_MAX = 1024
BYTES_MAX = 64 << 20
"""Bounds on the rows that are kept, and on their memory."""

_ROWS_MIN = 2


@dataclass(slots=True, eq=False)
class HistoryRow:
    """One row of the waterfall."""

    t_s: float
    """Time of its end, by the clock of ``Scene.now_s`` [s]."""
    levels: Float32Array | Float64Array
    """Highest level of each bin in its time, shape (n_bins,) [dB]."""
    _axis: ColumnAxis | None = field(default=None, repr=False)
    _columns: Float64Array = field(default_factory=lambda: np.zeros(0), repr=False)

    def columns(self, axis: ColumnAxis) -> Float64Array:
        """Return the highest level in each column, which is kept for the next picture."""
        if self._axis is not axis:
            self._axis, self._columns = axis, axis.reduce(self.levels)
        return self._columns


class RowHistory:
    """Collects rows of a fixed time from rows of any rate."""

    def __init__(self) -> None:
        self.rows: deque[HistoryRow] = deque(maxlen=ROWS_MAX)
        """The newest first."""
        self.n_rows = 0
        """Number of rows since the start, those that are forgotten included."""
        self.generation = 0
        """Number of times that all rows were forgotten."""
        self._pending: Float32Array | None = None
        self._due_s = 0.0

    def push(self, levels: Float64Array, now_s: float, period_s: float) -> None:
        """Add a row of levels, (n_bins,) [dB]; rows within a period become their maximum."""
        row = levels.astype(np.float32)
        if self._pending is not None and self._pending.shape == row.shape:
            row = np.maximum(row, self._pending)
        self._pending = row
        if now_s < self._due_s:
            return
        # Keep the rhythm, but not after a pause or for a shorter period.
        is_late = now_s - self._due_s > period_s
        self._due_s = (now_s if is_late else self._due_s) + period_s
        self._pending = None
        self.rows.appendleft(HistoryRow(now_s, row))
        self.n_rows += 1
        while len(self.rows) > max(_ROWS_MIN, BYTES_MAX // row.nbytes):
            self.rows.pop()

    def hurry(self) -> None:
        """Let the next row be the last of its period: the period has changed."""
        self._due_s = 0.0

    def clear(self) -> None:
        """Forget all rows."""
        self.rows.clear()
        self.generation += 1
        self._pending = None
        self.hurry()
