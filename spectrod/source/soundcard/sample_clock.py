"""Times of samples: a clock fitted to the arrivals of callbacks, and UTC from it."""

import itertools
import statistics
import time
from collections import deque
from collections.abc import Callable, Sequence

from spectrod.source.soundcard.clock_rate import RateFit
from spectrod.source.soundcard.clock_steps import BUCKET_NS, Bucket, StepFinder
from spectrod.source.soundcard.clock_times import Line, Timeline

RATE_OFF_PPM = 200.0
"""Limit of the rate error [1e-6]; crystals are within 100."""

_DELAYS = 256


class SampleClock:
    """Maps sample indices to monotonic time; measures the rate error and finds unflagged losses.

    A callback arrives when its last sample is captured or later, hardly ever earlier: t = T(index)
    + delay, delay >= 0. The *soonest* arrivals therefore trace T, up to a constant latency that
    arrivals cannot reveal. The clock keeps the soonest arrival of each 0.25 s; ``RateFit`` fits the
    line through them, ``StepFinder`` finds lasting steps: up (samples were lost, so all later ones
    seem late for their index) or down (the latency fell: times follow, nothing is lost).
    ``Timeline`` keeps times continuous in every case.

    One thread calls ``place``, ``add``, ``mono_ns`` and ``index_at``; the figures may be read by
    any. Memory is constant.

    Parameters
    ----------
    fs : float
        Nominal sample rate [Hz].
    block_samples : int
        Samples of a callback: the largest usual number.

    Notes
    -----
    False alarms: none as long as in each window (1 s, or the longest recent pause between callbacks
    and 0.25 s, whichever is longer) one callback comes within 1.2 blocks of the soonest possible;
    see ``StepFinder`` for the proof. If delays are independent with P(delay > limit) = q, a window
    of m callbacks alarms with probability q^m at most. Measured: none in 1.05e7 quarters of a
    second (30 days) of simulated arrivals of eight laws, ``benchmarks/clock_accuracy.py --buckets
    1300000``; so at most one in ten days, with a confidence of 95 % (the rule of three).

    Not found: losses of up to 1.5 blocks or 5 ms, losses in the first 2 s of a stream or of the
    next one, and losses so frequent that no second is free of them: they appear as a rate error.
    """

    def __init__(self, fs: float, block_samples: int) -> None:
        self.rate_error_ppm: float | None = None
        """Measured over nominal rate, minus one [1e-6]; None during the first 8 s."""
        self.rate_uncertainty_ppm: float | None = None
        """Half width of its 95 % interval [1e-6]."""
        self.jitter_s: float | None = None
        """Median delay of the last 256 callbacks behind the soonest ones [s]."""
        self._block_ns = block_samples * 1e9 / fs
        self._bucket_ns = max(BUCKET_NS, round(2 * self._block_ns))
        self._steps = StepFinder(self._block_ns)
        self._fit = RateFit(fs)
        self._line = Line(0, 0, 1e9 / fs)
        self._timeline: Timeline | None = None
        self._delays: deque[float] = deque(maxlen=_DELAYS)
        self._index = 0
        self._soonest: tuple[int, int] | None = None
        self._soonest_delay = 0.0
        self._bucket_start = self._last_t = 0
        self._pause = 0

    @property
    def is_rate_off(self) -> bool:
        """True if the rate differs from nominal by over 200 ppm plus its uncertainty."""
        error, uncertainty = self.rate_error_ppm, self.rate_uncertainty_ppm
        if error is None or uncertainty is None:
            return False
        return abs(error) - uncertainty > RATE_OFF_PPM

    def place(self, arrivals: Sequence[tuple[int, int]]) -> int:
        """Find the index of the first sample of a stream that has just started or restarted.

        Call it before the first ``add`` of each stream.

        Parameters
        ----------
        arrivals : sequence of (int, int)
            The stream's first callbacks, at least one: samples delivered up to and including it
            since the stream started, and monotonic time [ns]. The soonest counts, so more are
            better; they may be passed to ``add`` as well.

        Returns
        -------
        index : int
            0 for the first stream; otherwise the index by elapsed time, at least the index after
            the last sample of the previous stream.
        """
        period_ns = self._line.period_ns
        start = min(t_ns - round(delivered * period_ns) for delivered, t_ns in arrivals)
        self._soonest = None
        if self._timeline is None:
            self._line = self._line._replace(t_ns=start)
            self._timeline = Timeline(self._line)
            return 0
        self._steps.clear()
        self._fit.break_run()
        self._index = max(self._index, self._timeline.index_at(start))
        return self._index

    def add(self, index_end: int, t_mono_ns: int) -> int:
        """Add the arrival of a callback.

        Parameters
        ----------
        index_end : int
            Absolute index after the callback's last sample.
        t_mono_ns : int
            Monotonic time of its arrival [ns].

        Returns
        -------
        lost : int
            Samples lost without a flag within the last second or two, nearly always 0. The indices
            of this callback's samples, and of all that follow, increase by this number.
        """
        line = self._line
        delay = (t_mono_ns - line.t_ns) - (index_end - line.sample) * line.period_ns
        pause = t_mono_ns - self._last_t
        self._last_t = t_mono_ns
        self._index = index_end
        self._delays.append(delay)
        if self._soonest is None:
            self._open_bucket(index_end, t_mono_ns, delay)
            return 0
        self._pause = max(self._pause, pause)
        if t_mono_ns - self._bucket_start >= self._bucket_ns:
            return self._turn(self._soonest, index_end, t_mono_ns, pause)
        if delay < self._soonest_delay:
            self._soonest, self._soonest_delay = (index_end, t_mono_ns), delay
        return 0

    def mono_ns(self, sample_index: int) -> int:
        """Monotonic time of a sample [ns]; increases with the index over all calls.

        For indices not yet added it is a forecast and may change. It includes the constant latency
        from the microphone to the soonest callback.
        """
        return self._placed().mono_ns(sample_index)

    def index_at(self, t_mono_ns: int) -> int:
        """Index of the sample nearest to a monotonic time."""
        return self._placed().index_at(t_mono_ns)

    def _placed(self) -> Timeline:
        assert self._timeline is not None, "place comes first"
        return self._timeline

    def _open_bucket(self, index: int, t_ns: int, delay: float) -> None:
        self._soonest, self._soonest_delay = (index, t_ns), delay
        self._bucket_start, self._pause = t_ns, 0

    def _turn(self, soonest: tuple[int, int], index: int, t_ns: int, pause: int) -> int:
        """Close a bucket and open the next with this callback."""
        # Count the pause that just ended: it may hide a level that still holds.
        end = t_ns - pause
        bucket = Bucket(*soonest, self._bucket_start, end, self._pause)
        step_ns = self._steps.add(bucket, self._line.period_ns)
        lost = self._take_step(step_ns) if step_ns else 0
        self._index = index + lost
        if settled := self._steps.settled(self._line.period_ns):
            self._take_line(self._fit.add(settled.sample, settled.t_ns, self._unseen_ns()))
        self._open_bucket(self._index, t_ns, self._line.delay_ns(self._index, t_ns))
        return lost

    def _take_step(self, step_ns: float) -> int:
        if abs(step_ns) <= self._steps.limit_ns:
            self._steps.restart(0, self._line.period_ns)
            self._fit.shift()
            return 0
        lost = max(0, round(step_ns / self._line.period_ns))
        self._steps.restart(lost, self._line.period_ns)
        self._fit.break_run()
        return lost

    def _take_line(self, line: Line) -> None:
        self._line = line
        self._placed().follow(line, self._index)
        self.jitter_s = max(0.0, statistics.median(self._delays) * 1e-9)
        if self._fit.rate:
            self.rate_error_ppm = self._fit.rate.error_ppm
            self.rate_uncertainty_ppm = self._fit.rate.uncertainty_ppm

    def _unseen_ns(self) -> float:
        """Largest delay that all soonest arrivals may share behind the soonest possible ones [ns].

        Blocks delivered as soon as they are ready have delays of any phase within a block. Where a
        timer fetches them, all have the same delay, which drifts unseen. The result is therefore
        the widest range of phases that does not occur.
        """
        phases = sorted(delay % self._block_ns for delay in self._delays)
        phases.append(phases[0] + self._block_ns)
        return max(later - sooner for sooner, later in itertools.pairwise(phases))


class WallClock:
    """UTC as monotonic time plus an offset, which only ``look`` changes.

    The system slews both clocks alike (``clock_gettime(2)``), so their difference changes only when
    the wall clock is stepped or the machine sleeps, which the monotonic clock does not count.
    Neither affects a sample index or a monotonic time.

    Parameters
    ----------
    monotonic_ns, time_ns : callable
        The clocks [ns].
    """

    STEP_NS = 1_000_000
    """Smallest change that counts as a step [ns]."""
    SLEW_PPM = 500.0
    """Largest drift between the clocks without a step, on systems that slew only one [1e-6]."""

    _READS = 5

    def __init__(
        self,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
        time_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._monotonic_ns, self._time_ns = monotonic_ns, time_ns
        self._looked_ns = monotonic_ns()
        self._offset_ns, _ = self._read()

    def utc_ns(self, mono_ns: int) -> int:
        """Convert a monotonic time to UTC [ns]."""
        return mono_ns + self._offset_ns

    def look(self) -> float | None:
        """Read the clocks and follow the wall clock; call it about every second.

        Returns
        -------
        step_s : float or None
            Size of a step since the last call [s], forward is positive; None below 1 ms plus what
            slewing and the uncertainty of the reads explain.
        """
        offset_ns, error_ns = self._read()
        now = self._monotonic_ns()
        allowed = self.STEP_NS + error_ns + (now - self._looked_ns) * self.SLEW_PPM * 1e-6
        change = offset_ns - self._offset_ns
        self._offset_ns, self._looked_ns = offset_ns, now
        return change * 1e-9 if abs(change) > allowed else None

    def _read(self) -> tuple[int, int]:
        """Offset and its largest error, from the quickest of several reads of both clocks [ns].

        The wall clock is read between two reads of the other one; a thread preempted between them
        takes longer, so that read is not used.
        """
        offset_ns, least = 0, -1
        for _ in range(self._READS):
            before = self._monotonic_ns()
            utc = self._time_ns()
            took = self._monotonic_ns() - before
            if least < 0 or took < least:
                offset_ns, least = utc - before - took // 2, took
        return offset_ns, least
