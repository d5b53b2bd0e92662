"""Steps in the soonest arrivals: distinguishes lost samples from late ones."""

import math
import statistics
from collections import deque
from typing import NamedTuple

BUCKET_NS = 250_000_000
_WINDOW_BUCKETS = (4, 32)
_FLOOR_NS = 5e6
_FLOOR_BLOCKS = 1.5
_SHIFT_NS = 3e5
_SIGMAS = 10.0
_FLAT = 0.25
_LEVELS = 8
_SPREADS = 64
_MAD_TO_SIGMA = 1.4826


class Bucket(NamedTuple):
    """The callback of a short interval that arrived soonest for its index."""

    sample: int
    """Index after the callback's last sample."""
    t_ns: int
    start_ns: int
    """First arrival of the bucket [ns]."""
    end_ns: int
    """Last arrival of the bucket [ns]."""
    pause_ns: int
    """Longest time between two arrivals [ns]."""


class StepFinder:
    """Finds the points where the soonest arrivals step to another level and stay there.

    The buckets' delays are reduced to *levels*, the minima of half windows. A window has at least
    four buckets, so 1 s, and spans the longest recent pause between callbacks plus 0.25 s.
    A step is found where the last two levels agree, two earlier ones agree, and their means differ
    by more than the limit: 1.5 blocks, 5 ms or 10 sigma of the level-to-level difference, whichever
    is largest. Two levels agree if they differ by less than a quarter of the limit.

    No false alarm occurs while one callback in each window comes within 1.2 blocks of the soonest
    possible: one of the last two levels is then that near to it, the other agrees with that one or
    no step is reported, and their mean is at most 0.8 + 0.125 of the limit above. Neither stalls
    after which late samples come at once nor bursts therefore raise an alarm. Nor does a slope: all
    levels of a ramp differ equally, so where two agree the next ones do not exceed the limit; and
    earlier levels are compared only where no slope explains half of the difference.

    Smaller steps, of more than 0.3 ms and 10 sigma, are *shifts*: after a stall the callbacks may
    come at another phase of a block. No shift is a loss.

    One case cannot be distinguished from a loss: a delay that starts, stays flat within 0.5 % for
    the whole window and is made up for later, or never.

    Parameters
    ----------
    block_ns : float
        Duration of a block [ns].
    """

    def __init__(self, block_ns: float) -> None:
        self._floor = max(_FLOOR_BLOCKS * block_ns, _FLOOR_NS)
        self._buckets: deque[Bucket] = deque(maxlen=_LEVELS * _WINDOW_BUCKETS[1] // 2)
        self._spreads: deque[float] = deque(maxlen=_SPREADS)
        self._half = _WINDOW_BUCKETS[0] // 2
        self._unsettled = 0

    @property
    def limit_ns(self) -> float:
        """Smallest step that counts as more than a shift, at present [ns]."""
        return max(self._floor, self._noise_ns())

    def add(self, bucket: Bucket, period_ns: float) -> float:
        """Add the next bucket; returns the step or shift to the present level [ns], 0.0 for none.

        A result above ``limit_ns`` is a step, otherwise a shift.
        """
        self._buckets.append(bucket)
        self._unsettled += 1
        self._half = self._half_window()
        levels = self._levels(period_ns)
        if len(levels) < 4:
            return 0.0
        self._spreads.append(abs(levels[0] - levels[1]))
        return _step(levels, self.limit_ns) or _step(levels, max(_SHIFT_NS, self._noise_ns()))

    def restart(self, shift: int, period_ns: float) -> None:
        """Raise the indices of the present level by ``shift`` and move earlier buckets to it.

        The earlier buckets remain as the level before the next step, which may follow at once and
        need a longer window. None stays above the level: the newest may be of the level above.
        """
        buckets = list(self._buckets)
        present = len(buckets) - 2 * self._half
        recent = [bucket._replace(sample=bucket.sample + shift) for bucket in buckets[present:]]
        level = min(recent, key=lambda bucket: bucket.t_ns - bucket.sample * period_ns)
        self._buckets.clear()
        for bucket in buckets[:present]:
            at_level = round(level.t_ns + (bucket.sample - level.sample) * period_ns)
            self._buckets.append(bucket._replace(t_ns=at_level))
        self._buckets.extend(recent)
        self._unsettled = len(recent)

    def clear(self) -> None:
        """Drop all buckets: another stream has started."""
        self._buckets.clear()
        self._unsettled = 0

    def settled(self, period_ns: float) -> Bucket | None:
        """Return the soonest bucket of the next half window that no later step can precede."""
        if self._unsettled < 3 * self._half:
            return None
        first = len(self._buckets) - self._unsettled
        self._unsettled -= self._half
        return min(
            (self._buckets[first + i] for i in range(self._half)),
            key=lambda bucket: self._delay(bucket, period_ns),
        )

    def _noise_ns(self) -> float:
        """Ten sigma of the level-to-level difference [ns]."""
        if not self._spreads:
            return 0.0
        return _SIGMAS * _MAD_TO_SIGMA * statistics.median(self._spreads) / math.sqrt(2)

    def _half_window(self) -> int:
        """Count the buckets of half a window."""
        needed_ns = BUCKET_NS + max(bucket.pause_ns for bucket in self._buckets)
        least, most = _WINDOW_BUCKETS
        count = 0
        end_ns = self._buckets[-1].end_ns
        for bucket in reversed(self._buckets):
            count += 1
            if count >= most or (count >= least and end_ns - bucket.start_ns >= needed_ns):
                break
        return (max(count, least) + 1) // 2

    def _levels(self, period_ns: float) -> list[float]:
        """Minima of half windows, newest first [ns]."""
        delays = [self._delay(bucket, period_ns) for bucket in self._buckets]
        ends = range(len(delays), self._half - 1, -self._half)
        return [min(delays[end - self._half : end]) for end in ends[:_LEVELS]]

    def _delay(self, bucket: Bucket, period_ns: float) -> float:
        newest = self._buckets[-1]
        return (bucket.t_ns - newest.t_ns) - (bucket.sample - newest.sample) * period_ns


def _step(levels: list[float], limit: float) -> float:
    flat = _FLAT * limit
    if abs(levels[0] - levels[1]) > flat:
        return 0.0
    for i in range(2, len(levels) - 1):
        if abs(levels[i] - levels[i + 1]) <= flat:
            break
    else:
        return 0.0
    step = (levels[0] + levels[1] - levels[i] - levels[i + 1]) / 2
    slope = statistics.median(levels[k] - levels[k + 1] for k in range(i + 1))
    if abs(step) <= limit or abs(slope) * (i + 1) > abs(step) / 2:
        return 0.0
    return step
