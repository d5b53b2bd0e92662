"""Frames of one spec in flight: launched, collected, and computed again where an engine fails."""

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.analysis.batch_sizes import BatchSizes
from spectrod.analysis.calibrated_rows import CalibratedRows
from spectrod.analysis.cursor import Timing
from spectrod.analysis.engine import Engine, FramePlan, PendingRows
from spectrod.analysis.finite_rows import are_finite, is_finite_around, shows_finite
from spectrod.analysis.frame_launch import FrameLaunch
from spectrod.analysis.numpy_engine import Computed, NumpyEngine, NumpyPlan
from spectrod.analysis.percentile_plan import PercentilePlan, make_plan
from spectrod.analysis.response_plan import ResponsePlan
from spectrod.analysis.row_positions import NOTHING, FrameRun, Missing, RowPositions
from spectrod.analysis.sample_buffer import SampleBuffer
from spectrod.dsp.bands import is_host_only
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch, without_broadband
from spectrod.dsp.units import NS_PER_S

_NO_ROWS = Computed(np.empty((0, 0, 0), np.float32))
"""Rows of frames that are not launched yet."""


@dataclass(slots=True, eq=False)
class _InFlight:
    """Frames in flight.

    Attributes
    ----------
    run : FrameRun
        The frames.
    timing : Timing
        Index and time of their samples.
    source : SampleBuffer
        Buffer with the samples.
    origin : int
        Position of the first sample in its data. The samples stay where they are in it even if the
        buffer is moved, until ``FrameLauncher.wait_in_flight``.
    rows : PendingRows
        The rows.
    engine : str
        Name of the engine that computes them.
    is_collected : bool
        Whether the rows are complete; the samples may be overwritten then.
    """

    run: FrameRun
    timing: Timing
    source: SampleBuffer
    origin: int
    rows: PendingRows = _NO_ROWS
    engine: str = ""
    is_collected: bool = False

    @property
    def place(self) -> int:
        """Index of the first frame in the buffer's data."""
        return self.run.first - self.origin


@dataclass(frozen=True, slots=True, eq=False)
class _AheadRows:
    """Rows of frames that are not submitted yet: of which buffer, from which index in its data."""

    source: SampleBuffer
    place: int
    n_frames: int
    rows: PendingRows

    def are_of(self, batch: _InFlight) -> bool:
        """Return whether a batch has exactly these frames."""
        frames = batch.place, batch.run.n_frames
        return batch.source is self.source and frames == (self.place, self.n_frames)


class FrameLauncher:
    """Launches the frames of one spec in a buffer, with up to two batches in flight.

    Parameters
    ----------
    spec : SpectrumSpec
        Spec of the rows.
    engine : Engine
        Engine that computes them.
    buffer : SampleBuffer
        Buffer with the samples.
    sizes : BatchSizes
        Sizes of its batches.
    out : (rows, signals, values) array, optional
        Memory for all rows, in order, unless they are launched ahead.

    Attributes
    ----------
    spec, sizes
        As given.
    positions : RowPositions
        Where the next frames are.
    unreported : Missing
        What is missing before the next delivered row.
    in_flight : deque
        Uncollected batches, the oldest first.
    """

    def __init__(
        self,
        spec: SpectrumSpec,
        engine: Engine,
        buffer: SampleBuffer,
        sizes: BatchSizes,
        out: NDArray[Any] | None = None,
    ) -> None:
        self.spec = spec
        self.positions = RowPositions(spec)
        self.unreported = NOTHING
        self.in_flight: deque[_InFlight] = deque()
        self._calibrated = CalibratedRows(spec)
        self._out = out
        self._own_buffer, self.sizes = buffer, sizes
        self.read_from(buffer)
        self._shows_finite = shows_finite(spec) and spec.averaging == "none"
        self._ahead: list[_AheadRows] = []
        self._use(engine, make_plan(engine, spec, buffer, sizes.block))

    def read_from(self, buffer: SampleBuffer) -> None:
        """Read the next frames, at the same positions, from the own buffer or a long block."""
        self._buffer = buffer
        self.batch_frames = self.sizes.full if buffer is self._own_buffer else self.sizes.block
        self.positions.end = buffer.end

    @property
    def needs(self) -> int:
        """Position of the oldest sample that is needed, even after a failure of the engine."""
        return self.in_flight[0].run.first if self.in_flight else self.positions.next

    @property
    def pending(self) -> Missing:
        """What is missing that no batch has reported yet."""
        in_flight = (batch.run.missing for batch in self.in_flight)
        return sum(in_flight, self.unreported) + self.positions.missing

    def inherit_counts(self, earlier: "FrameLauncher") -> None:
        """Inherit the unreported gap of another launcher, and its skipped rows.

        Spectra and bands are numbered apart: skipped rows of the one are none of the other.
        """
        same = bool(earlier.spec.bands) == bool(self.spec.bands)
        self.unreported = earlier.pending if same else Missing(earlier.pending.gap_samples)

    def waited(self, first: int) -> int:
        """Count the samples after the end of a frame."""
        return self.positions.end - first - self.spec.win_length

    # ---- batches

    def submit(self, n_frames: int, timing: Timing, *, is_cut: bool = False) -> None:
        """Launch the next frames; is_cut: they finish a shorter row.

        They are in flight even if this raises DeviceError.
        """
        run = self.positions.take(n_frames, is_cut=is_cut)
        batch = _InFlight(run, timing, self._buffer, self._buffer.start)
        self.in_flight.append(batch)
        self._launch(batch)

    def _launch(self, batch: _InFlight) -> None:
        run = batch.run
        batch.engine = self._engine_name
        launch = FrameLaunch(
            batch.place,
            run.n_frames,
            run.done + run.n_frames if run.is_cut else self.spec.averaging_frames,
            run.done,
            run.primed,
            run.phase,
            batch.source,
        )
        out = None
        if self._out is not None:
            out, self._out = self._out[: launch.n_rows], self._out[launch.n_rows :]
        for ahead in self._ahead:
            if ahead.are_of(batch):
                batch.rows = ahead.rows
                return
        batch.rows = self._plan.submit(launch, out)

    def wait_in_flight(self) -> None:
        """Wait for batches launched before the buffer was moved, or from another one.

        They remain in flight.
        """
        for batch in self.in_flight:
            if batch.source is not self._buffer or batch.origin != self._buffer.start:
                batch.rows = Computed(batch.rows.collect())
                batch.is_collected = True

    def deliver(self) -> SpectrumBatch | None:
        """Wait for the oldest batch and return it; None if it finished no row.

        It remains in flight if this raises DeviceError.
        """
        rows = self._calibrated.apply(self.in_flight[0].rows.collect())
        values, broadband = without_broadband(rows, self.spec)
        batch = self.in_flight.popleft()
        run, clock, cursor = batch.run, batch.timing.clock, self.positions.cursor
        missing = self.unreported + run.missing
        self.unreported = NOTHING if len(values) else missing
        if len(values) == 0:
            return None
        begin = batch.timing.offset + run.first - run.done * self.spec.hop
        index = begin + cursor.grid.begins(len(values), run.phase)
        since = (index - clock.sample_index) * (NS_PER_S / self.spec.fs)
        since_ns = np.rint(since).astype(np.int64)
        return SpectrumBatch(
            values,
            index,
            clock.t_mono_ns + since_ns,
            clock.t_utc_ns + since_ns
            if run.instant is None
            else cursor.utc_ns(run.instant, len(values)),
            self.spec,
            batch.engine,
            gap_samples=missing.gap_samples or 0,
            discontinuity=missing.gap_samples is not None,
            skipped_rows=missing.skipped_rows,
            cut_frames=run.done + run.n_frames if run.is_cut else 0,
            broadband=broadband,
        )

    # ---- long blocks

    def launch_ahead(self, block: SampleBuffer, n_first: int) -> bool:
        """Launch the frames in a block that may still be refused; return whether it has.

        The rows are kept for ``submit``, until ``forget_ahead``; nothing else changes. The frames
        that start before the block are launched last: they are few, and the other ones keep the
        device busy meanwhile.

        Parameters
        ----------
        block : SampleBuffer
            Samples that directly follow those of the buffer.
        n_first : int
            Number of its first samples whose frames are the buffer's; they are there already, after
            the buffer's end.
        """
        buffer, cursor, n_max = self._buffer, self.positions.cursor, self.sizes.block
        n_before = cursor.count(buffer.end + n_first)
        first = cursor.place(n_before) - buffer.end
        n_frames = cursor.grid.count(block.fill - first)
        if not (self._shows_finite and self.positions.is_wanted and 0 < n_frames <= n_max):
            return False
        self._ahead = [self._launched_ahead(block, first, n_frames)]
        if 0 < n_before <= n_max:
            self._ahead.append(self._launched_ahead(buffer, buffer.place(cursor.next), n_before))
        return True

    def shows_finite_ahead(self) -> bool:
        """Return whether the rows launched ahead show that all samples of the block are finite."""
        ahead = self._ahead[0]
        end = ahead.place + self.spec.grid.row_span(ahead.n_frames)
        return is_finite_around(ahead.source.data, ahead.place, end) and are_finite(
            ahead.rows.collect()
        )

    def _launched_ahead(self, source: SampleBuffer, place: int, n_frames: int) -> _AheadRows:
        rows = self._plan.submit(FrameLaunch(place, n_frames, source=source))
        return _AheadRows(source, place, n_frames, rows)

    def forget_ahead(self) -> None:
        """Drop rows that were launched ahead, when they are complete, and their block."""
        self._ahead = []

    # ---- changes of the engine

    def move_to(
        self, engine: Engine, plan: FramePlan, buffer: SampleBuffer, sizes: BatchSizes
    ) -> None:
        """Continue with another plan and buffer; nothing is in flight, and averages continue.

        Parameters
        ----------
        engine : Engine
            Engine of the plan.
        plan : FramePlan
            New plan of the same spec; the present one is of NumPy.
        buffer : SampleBuffer
            Buffer of the plan, with the same samples at the same positions.
        sizes : BatchSizes
            Sizes of its batches.
        """
        assert not self.in_flight
        assert isinstance(self._plan, NumpyPlan | PercentilePlan | ResponsePlan)
        plan.resume(self._plan.average_power)
        self._own_buffer, self.sizes = buffer, sizes
        self.read_from(buffer)
        self._use(engine, plan)

    def replay(self, engine: Engine) -> int:
        """Recompute the uncollected frames in flight on another engine.

        Averages restart, and the next batch is a discontinuity. Returns the number of frames of a
        dropped average.
        """
        self._use(engine, make_plan(engine, self.spec, self._buffer, self.sizes.block))
        cut_frames = self.positions.replay([b.run for b in self.in_flight if not b.is_collected])
        self._drop_empty()
        for batch in self.in_flight:
            if not batch.is_collected:
                self._launch(batch)
        return cut_frames

    def _drop_empty(self) -> None:
        """Drop batches without frames; the next frames have what is missing before them."""
        batches, self.in_flight = self.in_flight, deque()
        missing = NOTHING
        for batch in batches:
            missing += batch.run.missing
            if batch.run.n_frames:
                batch.run.missing, missing = missing, NOTHING
                self.in_flight.append(batch)
        self.positions.missing = missing + self.positions.missing

    def _use(self, engine: Engine, plan: FramePlan) -> None:
        self._ahead = []
        self._plan = plan
        # NumPy computes what has no kernels, whatever the engine.
        self._engine_name = NumpyEngine.name if is_host_only(self.spec.bands) else engine.name
