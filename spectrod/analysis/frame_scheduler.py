"""Frames of one spec in a stream: the next ones, and those in flight."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from spectrod.analysis.calibrated_rows import CalibratedRows
from spectrod.analysis.cursor import Cursor, Timing
from spectrod.analysis.engine import Engine, FramePlan, PendingRows
from spectrod.analysis.finite_rows import are_finite, is_finite_around, shows_finite
from spectrod.analysis.numpy_engine import Computed, NumpyEngine, NumpyPlan
from spectrod.analysis.percentile_plan import PercentilePlan, make_plan
from spectrod.analysis.response_plan import ResponsePlan
from spectrod.analysis.sample_buffer import SampleBuffer
from spectrod.dsp.bands import is_host_only
from spectrod.dsp.blocks import Block
from spectrod.dsp.row_grid import row_period_s
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch, without_broadband
from spectrod.dsp.units import NS_PER_S


@dataclass(slots=True, eq=False)
class Submitted:
    """Frames in flight.

    Attributes
    ----------
    first, place : int
        Position in the buffer of the first frame's first sample, and its index in the data. The
        samples stay at that index even if the buffer is moved, until
        ``FrameScheduler.wait_in_flight``.
    index : int
        Absolute index of that sample.
    n_frames : int
        Number of frames.
    clock : Block
        The newest block, which gives the times of samples.
    gap : int, optional
        Samples missing directly before; None without a gap.
    skipped_rows : int
        Unwanted rows directly before.
    restart : bool
        Whether averages restart.
    is_cut : bool
        Whether these frames finish a shorter row.
    phase : int
        Phase of the first frame's row, see ``RowGrid``.
    instant : int, optional
        UTC of the start of that row, see ``Cursor``.
    source : SampleBuffer
        Buffer with the samples.
    moves, done, primed, engine, rows
        Number of moves of that buffer, state of the averages, name of the engine, and the rows, all
        at the time of the launch.
    is_collected : bool
        Whether the rows are complete; the samples may be overwritten then.
    """

    first: int
    place: int
    index: int
    n_frames: int
    clock: Block
    gap: int | None
    skipped_rows: int
    restart: bool
    is_cut: bool
    phase: int
    instant: int | None
    source: SampleBuffer
    rows: PendingRows
    moves: int = 0
    done: int = 0
    primed: bool = False
    engine: str = ""
    is_collected: bool = False


def _name_of(spec: SpectrumSpec, engine: Engine) -> str:
    """Name what computes a spec: NumPy, whatever the engine, what has no kernels."""
    return NumpyEngine.name if is_host_only(spec.bands) else engine.name


@dataclass(frozen=True, slots=True, eq=False)
class AheadRows:
    """Rows of frames that are not submitted yet.

    Attributes
    ----------
    source : SampleBuffer
        Buffer with the samples.
    place, n_frames : int
        Index of the first frame in its data, and the number of frames.
    rows : PendingRows
        The rows.
    """

    source: SampleBuffer
    place: int
    n_frames: int
    rows: PendingRows

    def are_of(self, batch: Submitted) -> bool:
        """Return whether a batch has exactly these frames."""
        return batch.source is self.source and (batch.place, batch.n_frames) == (
            self.place,
            self.n_frames,
        )


_NO_ROWS = Computed(np.empty((0, 0, 0), np.float32))
"""Rows of frames that are not launched yet."""


class FrameScheduler:
    """Schedules the frames of one spec in a buffer, with up to two batches in flight.

    Unwanted frames are skipped: a row that was not wanted at its first frame is not computed.
    Skipping does not move the other rows.

    Parameters
    ----------
    spec : SpectrumSpec
        Spec of the rows.
    engine : Engine
        Engine that computes them.
    buffer : SampleBuffer
        Window with the samples.
    batch_frames : int
        Frames of a full batch.
    max_frames : int
        Maximum number of frames of a batch; those of long blocks have more frames.

    Attributes
    ----------
    spec, batch_frames
        As given.
    gap, unreported : int, optional
        Samples missing before the next frame, and before the next delivered row.
    skipped_rows, unreported_skipped_rows : int
        Skipped rows before the next frame, and before the next delivered row.
    is_wanted : bool
        Whether frames are computed; ``want`` changes it.
    in_flight : deque of Submitted
        Uncollected batches, the oldest first.
    """

    def __init__(
        self,
        spec: SpectrumSpec,
        engine: Engine,
        buffer: SampleBuffer,
        batch_frames: int,
        max_frames: int,
    ) -> None:
        self.spec = spec
        self._calibrated = CalibratedRows(spec)
        self.batch_frames = batch_frames
        self._max_frames = max_frames
        self._cursor = Cursor(spec)
        self._period_ns = row_period_s(spec.rate_hz) * NS_PER_S if spec.align == "utc" else None
        self.gap: int | None = None
        self.unreported: int | None = None
        self.skipped_rows = 0
        self.is_wanted = True
        self.in_flight: deque[Submitted] = deque()
        self.unreported_skipped_rows = 0
        self._passed = 0  # frames of a skipped row
        self._left_out = self._covered = 0
        # Whether the samples between _covered and the next frame count as left out: before the
        # first row, and where UTC was stepped.
        self._averages = spec.averaging != "none"
        self._counts_skipped = self._averages
        self._buffer = buffer
        self._restart = False
        self._shows_finite = shows_finite(spec) and not self._averages
        self._ahead: list[AheadRows] = []
        self._plan: FramePlan
        self._engine_name: str
        self._use(engine)

    @property
    def next(self) -> int:
        """Position of the next frame to submit."""
        return self._cursor.next

    def shift(self, n_samples: int) -> None:
        """Move the origin of all positions forward by a number of samples."""
        self._cursor.shift(n_samples)
        self._covered -= n_samples

    def read_from(self, buffer: SampleBuffer, batch_frames: int) -> None:
        """Read the next frames, at the same positions, from another buffer in other batches."""
        self._buffer, self.batch_frames = buffer, batch_frames

    def align(self, timing: Timing) -> None:
        """Move the next row to its UTC instant, if rows are aligned."""
        before = self._cursor.next
        if self._cursor.align(timing):
            self.gap = self.gap or 0
            # Samples at the end of a row, where no frame fits, are no loss.
            self._covered = before
            self._counts_skipped = True

    @property
    def needs(self) -> int:
        """Position of the oldest sample that is needed, even after a failure of the engine."""
        return self.in_flight[0].first if self.in_flight else self.next

    @property
    def gap_pending(self) -> int | None:
        """Samples of gaps that no batch has reported yet; None without a gap."""
        gaps = [self.unreported, self.gap, *(batch.gap for batch in self.in_flight)]
        known = [gap for gap in gaps if gap is not None]
        return sum(known) if known else None

    @property
    def skipped_pending(self) -> int:
        """Skipped rows that no batch has reported yet."""
        in_flight = sum(batch.skipped_rows for batch in self.in_flight)
        return self.unreported_skipped_rows + in_flight + self.skipped_rows

    def want(self, *, is_wanted: bool) -> int:
        """Start or stop computing frames; all complete ones must be submitted or skipped.

        Returns the number of frames of a dropped average.
        """
        self.is_wanted = is_wanted
        if is_wanted:
            return 0
        cut_frames = self._cut()
        if self._cursor.lead:
            self._cursor.drop_lead()
        else:
            self._passed = (self._passed + cut_frames) % self._plan.count.frames
        return cut_frames

    def skip_unwanted(self) -> None:
        """Skip complete frames that are unwanted or belong to a skipped row."""
        if not self.is_wanted and self._cursor.lead:
            self._cursor.drop_lead()
        n_frames = self.n_complete()
        per_row = self._plan.count.frames
        if self.is_wanted:
            n_frames = min(n_frames, -self._passed % per_row)
        if n_frames:
            n_rows, self._passed = divmod(self._passed + n_frames, per_row)
            self.skipped_rows += n_rows
            self._cursor.advance(n_frames)
            self._counts_skipped = False
            # An exponential average would otherwise continue from the last row.
            self._restart = True

    def reset(self) -> int:
        """Restart averages with the next frame; return the number of dropped frames.

        The next batch is a discontinuity if an average was unfinished.
        """
        n_waiting = self.n_complete()  # started before the reset
        if self._plan.count.primed or self._passed or n_waiting:
            self.gap = self.gap or 0
        self._passed = 0
        self._cursor.restart(self._cursor.place(n_waiting))
        return self._cut() + n_waiting

    def inherit_counts(self, earlier: "FrameScheduler") -> None:
        """Inherit the unreported gap of another scheduler, and its skipped rows.

        Spectra and bands are numbered apart: skipped rows of the one are none of the other.
        """
        self.unreported = earlier.gap_pending
        if bool(earlier.spec.bands) == bool(self.spec.bands):
            self.unreported_skipped_rows = earlier.skipped_pending

    def n_complete(self) -> int:
        """Count the complete frames that were not submitted yet."""
        return self._cursor.count(self._buffer.end)

    def n_due(self) -> int:
        """Count the complete frames that may be submitted before later samples are known.

        The newest frame waits for the next one unless it finishes a row: if the signal ends here,
        this frame finishes the shorter row, which a launch without frames could not do.
        """
        n_frames, count = self.n_complete(), self._plan.count
        if self._cursor.lead:
            return n_frames - (0 < n_frames < self._cursor.lead)
        return n_frames - ((count.done + n_frames) % count.frames > 0)

    def finishes_lead(self, n_frames: int) -> bool:
        """Return whether n_frames more frames finish the lead."""
        return 0 < self._cursor.lead == n_frames

    def remainder(self) -> tuple[int, int]:
        """Count the samples from the next frame on, and the frames of the unfinished average.

        The frame that waits to finish a shorter row counts as a frame of the average.
        """
        n_waiting = self.n_complete() - self.n_due()
        n_samples = self._buffer.end - self._cursor.place(n_waiting)
        return max(0, n_samples), self._plan.count.done + n_waiting

    def split_tail(self) -> Iterator[tuple[int, bool]]:
        """Split all complete frames at the end of a stretch; the caller submits each part.

        Yields
        ------
        n_frames : int
            Frames of a submission.
        is_cut : bool
            Whether they finish a shorter row.
        """
        if self._cursor.lead:
            if n_lead := self.n_complete():
                yield n_lead, True
            if self._cursor.lead:
                return
        n_frames, count = self.n_complete(), self._plan.count
        n_cut = min(n_frames, (count.done + n_frames) % count.frames)
        if n_frames - n_cut:
            yield n_frames - n_cut, False
        if n_cut:
            yield n_cut, True

    def end(self) -> None:
        """Start a row with the next frame, after the end of a stretch."""
        self._cursor.restart(self.next)

    def waited(self, first: int) -> int:
        """Count the samples after the end of a frame."""
        return self._buffer.end - first - self.spec.win_length

    def interrupt(self, lost_samples: int) -> int:
        """Continue after a gap; return the number of frames of a dropped average."""
        cut_frames = self._cut()
        self._left_out += self._tail()
        # The skipped part of a row would have been a shorter row.
        self.skipped_rows += self._passed > 0
        self._passed = 0
        self._covered, self._counts_skipped = self._buffer.end, self._averages
        self._cursor.restart(self._buffer.end)
        self.gap = (self.gap or 0) + lost_samples
        return cut_frames

    @property
    def left_out_samples(self) -> int:
        """Samples before gaps and, so far, at the end that did not fill a frame."""
        return self._left_out + self._tail()

    def _tail(self) -> int:
        """Count the samples from the start of the next frame on that the last one does not have."""
        if not self.is_wanted or self._passed:
            return 0
        begin = self._covered if self._counts_skipped else max(self.next, self._covered)
        return max(0, self._buffer.end - begin)

    def _cut(self) -> int:
        """Drop an unfinished average; return its number of frames."""
        cut_frames = self._plan.count.done
        self._plan.restart()
        self._restart = True
        return cut_frames

    def submit(self, n_frames: int, index: int, clock: Block, *, is_cut: bool = False) -> None:
        """Launch the next frames; index is that of the first.

        They are in flight even if this raises DeviceError.
        """
        place = self._buffer.place(self.next)
        batch = Submitted(
            self.next,
            place,
            index,
            n_frames,
            clock,
            self.gap,
            self.skipped_rows,
            self._restart,
            is_cut,
            self._cursor.phase,
            self._cursor.instant,
            self._buffer,
            _NO_ROWS,
        )
        was_lead = self._cursor.lead > 0
        if self._counts_skipped:
            self._left_out += max(0, self.next - self._covered)
        self._covered = self._cursor.place(n_frames - 1) + self.spec.win_length
        self._cursor.advance(n_frames)
        self._counts_skipped = self._averages and was_lead and not self._cursor.lead
        self.gap, self.skipped_rows, self._restart = None, 0, False
        self.in_flight.append(batch)
        self._launch(batch)

    def launch_ahead(self, block: SampleBuffer, n_first: int, n_max: int) -> bool:
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
        n_max : int
            Maximum number of frames of a batch of the block.
        """
        buffer = self._buffer
        n_before = self._cursor.count(buffer.end + n_first)
        first = self._cursor.place(n_before) - buffer.end
        n_frames = self._cursor.grid.count(block.fill - first)
        if not (self._shows_finite and self.is_wanted and 0 < n_frames <= n_max):
            return False
        self._ahead = [self._launched_ahead(block, first, n_frames)]
        if 0 < n_before <= n_max:
            self._ahead.append(self._launched_ahead(buffer, buffer.place(self.next), n_before))
        return True

    def shows_finite_ahead(self) -> bool:
        """Return whether the rows launched ahead show that all samples of the block are finite."""
        ahead = self._ahead[0]
        end = ahead.place + self._cursor.grid.row_span(ahead.n_frames)
        return is_finite_around(ahead.source.data, ahead.place, end) and are_finite(
            ahead.rows.collect()
        )

    def _launched_ahead(self, source: SampleBuffer, place: int, n_frames: int) -> AheadRows:
        rows = self._plan.submit(place, n_frames, source=source)
        return AheadRows(source, place, n_frames, rows)

    def forget_ahead(self) -> None:
        """Drop rows that were launched ahead, when they are complete, and their block."""
        self._ahead = []

    def wait_in_flight(self) -> None:
        """Wait for batches launched before the buffer was moved, or from another one.

        They remain in flight.
        """
        for batch in self.in_flight:
            if batch.source is not self._buffer or batch.moves < batch.source.moves:
                batch.rows = Computed(batch.rows.collect())
                batch.is_collected = True

    def deliver(self) -> SpectrumBatch | None:
        """Wait for the oldest batch and return it; None if it finished no row.

        It remains in flight if this raises DeviceError.
        """
        rows = self._calibrated.apply(self.in_flight[0].rows.collect())
        values, broadband = without_broadband(rows, self.spec)
        batch = self.in_flight.popleft()
        if batch.gap is not None:
            self.unreported = (self.unreported or 0) + batch.gap
        self.unreported_skipped_rows += batch.skipped_rows
        if len(values) == 0:
            return None
        gap, self.unreported = self.unreported, None
        skipped_rows, self.unreported_skipped_rows = self.unreported_skipped_rows, 0
        begin = batch.index - batch.done * self.spec.hop
        index = begin + self._cursor.grid.begins(len(values), batch.phase)
        clock = batch.clock
        since = (index - clock.sample_index) * (1e9 / self.spec.fs)
        since_ns = np.rint(since).astype(np.int64)
        t_utc_ns = clock.t_utc_ns + since_ns
        if batch.instant is not None and self._period_ns is not None:
            instants = range(batch.instant, batch.instant + len(values))
            t_utc_ns = np.array([round(one * self._period_ns) for one in instants], np.int64)
        return SpectrumBatch(
            values,
            index,
            clock.t_mono_ns + since_ns,
            t_utc_ns,
            self.spec,
            batch.engine,
            gap_samples=gap or 0,
            discontinuity=gap is not None,
            skipped_rows=skipped_rows,
            cut_frames=batch.done + batch.n_frames if batch.is_cut else 0,
            broadband=broadband,
        )

    def move_to(
        self,
        engine: Engine,
        plan: FramePlan,
        buffer: SampleBuffer,
        batch_frames: int,
        max_frames: int,
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
        batch_frames, max_frames : int
            Frames of a full batch, and the maximum of all batches.
        """
        assert not self.in_flight
        assert isinstance(self._plan, NumpyPlan | PercentilePlan | ResponsePlan)
        plan.resume(self._plan.count, self._plan.average_power)
        self._plan, self._buffer = plan, buffer
        self._engine_name = _name_of(self.spec, engine)
        self.batch_frames, self._max_frames = batch_frames, max_frames

    def replay(self, engine: Engine) -> int:
        """Recompute the uncollected frames in flight on another engine.

        Averages restart, and the next batch is a discontinuity. Returns the number of frames of a
        dropped average.
        """
        count = self._plan.count
        cut_frames, primed = count.done, count.primed
        self._use(engine)
        pending = [batch for batch in self.in_flight if not batch.is_collected]
        if pending:
            oldest = pending[0]
            cut_frames, primed = oldest.done, oldest.primed
            if primed:
                oldest.gap = oldest.gap or 0
        elif primed:
            self.gap = self.gap or 0
        if not self._cursor.grid.is_even:
            cut_frames += self._drop_broken_row(pending, cut_frames)
        for batch in pending:
            if batch.n_frames:
                self._launch(batch)
        return cut_frames

    def _drop_broken_row(self, pending: list[Submitted], done: int) -> int:
        """Drop the rest of a row whose first frames are lost: rows keep their positions.

        Returns the number of its frames that were already submitted.
        """
        if not done:
            return 0
        grid, dropped = self._cursor.grid, 0
        left = grid.frames - done
        for batch in pending:
            if not left:
                return dropped
            n = batch.n_frames if batch.is_cut else min(left, batch.n_frames)
            away = grid.begin(1, batch.phase) - (done + dropped) * grid.hop
            dropped, left = dropped + n, left - n
            batch.n_frames -= n
            if batch.n_frames:
                batch.first, batch.place = batch.first + away, batch.place + away
                batch.index += away
                batch.phase = grid.phase_of(1, batch.phase)
                batch.instant = None if batch.instant is None else batch.instant + 1
                return dropped
            self._carry_over(batch)
            if batch.is_cut:
                return dropped
        if self._cursor.lead:
            self._cursor.drop_lead()
        elif left:
            self._passed = grid.frames - left
        return dropped

    def _carry_over(self, batch: Submitted) -> None:
        """Move the gap and skipped rows of a dropped batch to the next one."""
        at = self.in_flight.index(batch)
        after: Submitted | FrameScheduler = (
            self.in_flight[at + 1] if at + 1 < len(self.in_flight) else self
        )
        if batch.gap is not None:
            after.gap = (after.gap or 0) + batch.gap
        after.skipped_rows += batch.skipped_rows
        self.in_flight.remove(batch)

    def _use(self, engine: Engine) -> None:
        self._ahead = []
        self._plan = make_plan(engine, self.spec, self._buffer, self._max_frames)
        self._engine_name = _name_of(self.spec, engine)

    def _launch(self, batch: Submitted) -> None:
        if batch.restart:
            self._plan.restart()
        count = self._plan.count
        batch.done, batch.primed = count.done, count.primed
        batch.moves = batch.source.moves
        batch.engine = self._engine_name
        if batch.is_cut:
            count.cut(batch.n_frames)
        for ahead in self._ahead:
            if ahead.are_of(batch):
                batch.rows = ahead.rows
                return
        batch.rows = self._plan.submit(
            batch.place, batch.n_frames, phase=batch.phase, source=batch.source
        )
