"""A ring that checks all samples written to it against the numbers in the signal."""

import math
import time

import numpy as np

from spectrod.analysis.samples import to_float32
from spectrod.apps.bench.sequence_signal import NumberCheck
from spectrod.dsp.sample_layout import SampleLayout
from spectrod.dsp.units import Float64Array, Int64Array
from spectrod.source.ring import SampleRing
from spectrod.source.shared_samples import SharedSamples

_PARTS = 5
_PASSES = 3
_SHORT = 25
"""With fewer arrivals than this, the soonest blocks may agree by chance, although late."""


class WatchedRing(SampleRing):
    """Checks each block before it is published, and records its delay.

    Attributes
    ----------
    check : NumberCheck
        Result of the checks.
    """

    def __init__(
        self,
        fs: float,
        layout: SampleLayout | int,
        capacity: int | None = None,
        *,
        shared: SharedSamples | None = None,
    ) -> None:
        super().__init__(fs, layout, capacity, shared=shared)
        self.check = NumberCheck()
        # For each second of samples, index and time of the block that arrived soonest.
        self._soonest: list[tuple[int, int]] = []
        self._until = 0.0
        self._least_s = np.inf

    def publish(
        self,
        position: int,
        n: int,
        sample_index: int,
        t_mono_ns: int,
        t_utc_ns: int,
        *,
        overflow: bool = False,
    ) -> None:
        """Check samples, then publish them."""
        self._note(sample_index + n, time.monotonic_ns())
        samples = self._new(n)
        self._copy(position, samples)
        self.check.look(to_float32(samples, self.layout.sample_format), sample_index)
        super().publish(position, n, sample_index, t_mono_ns, t_utc_ns, overflow=overflow)

    def _note(self, index: int, t_ns: int) -> None:
        late_s = t_ns * 1e-9 - index / self.fs
        if index > self._until:
            self._until = math.ceil(index / self.fs) * self.fs
            self._soonest.append((index, t_ns))
            self._least_s = late_s
        elif late_s < self._least_s:
            self._soonest[-1] = (index, t_ns)
            self._least_s = late_s

    @property
    def arrivals(self) -> Int64Array:
        """Index after, and monotonic time of, each second's soonest block, shape (n, 2) [ns]."""
        return np.array(self._soonest, np.int64).reshape(-1, 2)


def rate_error_ppm(arrivals: Int64Array, fs: float) -> tuple[float, float]:
    """Compute the sample rate from the arrivals, without a fit.

    The rate is the slope from the soonest block of the first fifth of the time to that of the last:
    a block can be late but not early.

    Parameters
    ----------
    arrivals : (n, 2) int64
        Rows of ``WatchedRing.arrivals``, n >= 8: fewer do not show how late a block is.
    fs : float
        Nominal sample rate [Hz].

    Returns
    -------
    error, uncertainty : float
        Measured over nominal rate, minus one, by the monotonic clock; and its largest error: the
        difference of the soonest blocks in the parts of each end, over the time between [1e-6].
        For fewer than 25 arrivals: twice the largest difference.
    """
    index, t_ns = arrivals.T
    nominal_s, t_s = (index - index[0]) / fs, (t_ns - t_ns[0]) * 1e-9
    n = max(1, len(arrivals) // _PARTS)
    period = 1.0
    for _ in range(_PASSES):  # the delays depend on the rate
        late_s = t_s - nominal_s * period
        first, last = int(np.argmin(late_s[:n])), len(late_s) - n + int(np.argmin(late_s[-n:]))
        period = (t_s[last] - t_s[first]) / (nominal_s[last] - nominal_s[first])
    if len(arrivals) < _SHORT:
        spread_s = 2.0 * float(np.ptp(late_s))
    else:
        spread_s = _spread(late_s[:n]) + _spread(late_s[-n:])
    span_s = t_s[last] - t_s[first]
    return float(1.0 / period - 1.0) * 1e6, float(spread_s / span_s) * 1e6


def _spread(late_s: Float64Array) -> float:
    soonest = [part.min() for part in np.array_split(late_s, _PARTS) if len(part)]
    return float(max(soonest) - min(soonest))
