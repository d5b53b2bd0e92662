"""One spec's frames in a stream: which come next, which are being computed."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from spectrod.analysis.cursor import Cursor, Timing
from spectrod.analysis.engine import Engine, FramePlan, Rows
from spectrod.analysis.numpy_engine import Computed
from spectrod.analysis.window import SampleWindow
from spectrod.grid import row_period_s
from spectrod.types import Block, SpectrumBatch, SpectrumSpec, without_broadband
from spectrod.units import NS_PER_S


@dataclass(slots=True, eq=False)
class Submitted:
    """Frames on their way.

    Attributes
    ----------
    first, place : int
        Position in the window of the first frame's first sample, and its index in the data. The
        samples stay at that place also when the window is moved, until ``Track.settle``.
    index : int
        Absolute index of that sample.
    n_frames : int
        How many.
    clock : Block
        The newest block: says when a sample was taken.
    gap : int, optional
        Samples missing directly before; None if nothing is.
    skipped_rows : int
        Rows directly before that nobody wanted.
    restart : bool
        Whether averages begin anew.
    is_cut : bool
        Whether these frames finish a row that has fewer than others.
    phase : int
        Of the row that the first of them is of, see ``RowGrid``.
    instant : int, optional
        UTC of the begin of that row, see ``Cursor``.
    moves, done, primed, engine, rows
        How often the window was moved, where averages stood, what computes, and the rows: all as of
        the launch.
    is_settled : bool
        Whether the rows are there, and the samples perhaps not any more.
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
    rows: Rows
    moves: int = 0
    done: int = 0
    primed: bool = False
    engine: str = ""
    is_settled: bool = False


_NO_ROWS = Computed(np.empty((0, 0, 0), np.float32))
"""Of frames that are not launched yet."""


class Track:
    """The frames of one spec in a window: those to come, and up to two batches being computed.

    While nobody wants them, frames are passed over: those of a row that nobody wanted from its
    first frame on are not computed, and rows stay where they would be without that.

    Parameters
    ----------
    spec : SpectrumSpec
        What to compute.
    engine : Engine
        What computes it.
    window : SampleWindow
        Where the samples are.
    batch_frames : int
        Frames of a full batch.

    Attributes
    ----------
    spec, batch_frames
        As given.
    gap, unreported : int, optional
        Samples missing before that frame, and before the first of the rows delivered next.
    skipped_rows, unreported_skipped_rows : int
        The same of rows that were passed over.
    is_wanted : bool
        Whether frames are to be computed; changed by ``want``.
    in_flight : deque of Submitted
        Not collected, the oldest first.
    """

    def __init__(
        self,
        spec: SpectrumSpec,
        engine: Engine,
        window: SampleWindow,
        batch_frames: int,
    ) -> None:
        self.spec = spec
        self.batch_frames = batch_frames
        self._cursor = Cursor(spec)
        self._period_ns = row_period_s(spec.rate_hz) * NS_PER_S if spec.align == "utc" else None
        self.gap: int | None = None
        self.unreported: int | None = None
        self.skipped_rows = 0
        self.is_wanted = True
        self.in_flight: deque[Submitted] = deque()
        self.unreported_skipped_rows = 0
        self._passed = 0  # frames of a row that is not computed
        self._left_out = self._covered = 0
        # Whether the samples between _covered and the next frame are left out: before the first
        # row, and where UTC was stepped.
        self._averages = spec.averaging != "none"
        self._counts_skipped = self._averages
        self._window = window
        self._restart = False
        self._use(engine)

    @property
    def next(self) -> int:
        """Position of the first frame that was not submitted yet."""
        return self._cursor.next

    def shift(self, n_samples: int) -> None:
        """Count positions of frames to come from so many samples further on."""
        self._cursor.shift(n_samples)
        self._covered -= n_samples

    def align(self, timing: Timing) -> None:
        """Place the next row where the clock wants it, if rows are aligned to that."""
        before = self._cursor.next
        if self._cursor.align(timing):
            self.gap = self.gap or 0
            # What a row leaves out at its end, because no frame fits there, is no loss.
            self._covered = before
            self._counts_skipped = True

    @property
    def needs(self) -> int:
        """Position of the oldest sample that is still needed, also where the engine fails."""
        return self.in_flight[0].first if self.in_flight else self.next

    @property
    def gap_pending(self) -> int | None:
        """Samples of gaps that no batch has reported yet; None without a gap."""
        gaps = [self.unreported, self.gap, *(batch.gap for batch in self.in_flight)]
        known = [gap for gap in gaps if gap is not None]
        return sum(known) if known else None

    @property
    def skipped_pending(self) -> int:
        """Rows passed over that no batch has reported yet."""
        in_flight = sum(batch.skipped_rows for batch in self.in_flight)
        return self.unreported_skipped_rows + in_flight + self.skipped_rows

    def want(self, *, is_wanted: bool) -> int:
        """Begin or cease to compute frames; all complete ones are submitted or passed over.

        Returns how many frames of an average were computed for nothing.
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

    def pass_over(self) -> None:
        """Leave out complete frames that nobody wants, and the rest of a row begun like that."""
        if not self.is_wanted and self._cursor.lead:
            self._cursor.drop_lead()
        n_frames = self.n_complete()
        per_row = self._plan.count.frames
        if self.is_wanted:
            n_frames = min(n_frames, -self._passed % per_row)
        if n_frames:
            n_rows, self._passed = divmod(self._passed + n_frames, per_row)
            self.skipped_rows += n_rows
            self._cursor.go(n_frames)
            self._counts_skipped = False
            # An exponential average goes on from row to row.
            self._restart = True

    def reset(self) -> int:
        """Begin averages anew with the next frame; return how many frames that cuts off.

        The next batch says that it does not follow on, if an average was under way.
        """
        n_waiting = self.n_complete()  # began before the reset
        if self._plan.count.primed or self._passed or n_waiting:
            self.gap = self.gap or 0
        self._passed = 0
        self._cursor.restart(self._cursor.place(n_waiting))
        return self._cut() + n_waiting

    def take_over(self, earlier: "Track") -> None:
        """Carry on what another track has not reported: a gap, rows that were passed over."""
        self.unreported = earlier.gap_pending
        self.unreported_skipped_rows = earlier.skipped_pending

    def n_complete(self) -> int:
        """Frames whose samples are all there, not submitted yet."""
        return self._cursor.count(self._window.end)

    def n_due(self) -> int:
        """Count the complete frames that may be submitted before it is known what follows.

        The newest frame waits for the next one unless it finishes a row: if the signal ends here,
        that frame finishes the shorter row, which a launch without frames could not do.
        """
        n_frames, count = self.n_complete(), self._plan.count
        if self._cursor.lead:
            return n_frames - (0 < n_frames < self._cursor.lead)
        return n_frames - ((count.done + n_frames) % count.frames > 0)

    def finishes_lead(self, n_frames: int) -> bool:
        """Whether so many frames more finish the shorter row before rows aligned to the clock."""
        return 0 < self._cursor.lead == n_frames

    def remainder(self) -> tuple[int, int]:
        """Count the samples from the next frame on, and the frames of the unfinished average.

        The frame that waits to finish a shorter row counts as one of the average.
        """
        n_waiting = self.n_complete() - self.n_due()
        n_samples = self._window.end - self._cursor.place(n_waiting)
        return max(0, n_samples), self._plan.count.done + n_waiting

    def rest(self) -> Iterator[tuple[int, bool]]:
        """Divide all complete frames, as nothing follows on them; each part is to be submitted.

        Yields
        ------
        n_frames : int
            Frames of a submission.
        is_cut : bool
            Whether they finish a row that is cut off.
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
        """Begin a row with the next frame, as nothing followed on those before."""
        self._cursor.restart(self.next)

    def waited(self, first: int) -> int:
        """Count the samples that came after a frame was complete."""
        return self._window.end - first - self.spec.win_length

    def interrupt(self, lost_samples: int) -> int:
        """Go on with what follows a gap; return how many frames of an average it cuts off."""
        cut_frames = self._cut()
        self._left_out += self._tail()
        # What was passed over of a row would have been a shorter one.
        self.skipped_rows += self._passed > 0
        self._passed = 0
        self._covered, self._counts_skipped = self._window.end, self._averages
        self._cursor.restart(self._window.end)
        self.gap = (self.gap or 0) + lost_samples
        return cut_frames

    @property
    def left_out_samples(self) -> int:
        """Samples before gaps and, by now, at the end that did not fill a frame."""
        return self._left_out + self._tail()

    def _tail(self) -> int:
        """Count the samples from the begin of the next frame on that the last one does not have."""
        if not self.is_wanted or self._passed:
            return 0
        begin = self._covered if self._counts_skipped else max(self.next, self._covered)
        return max(0, self._window.end - begin)

    def _cut(self) -> int:
        """Drop an unfinished average; return how many frames it has."""
        cut_frames = self._plan.count.done
        self._plan.restart()
        self._restart = True
        return cut_frames

    def submit(self, n_frames: int, index: int, clock: Block, *, is_cut: bool = False) -> None:
        """Launch the next frames; index is the first's.

        They are in flight also where that raises DeviceError.
        """
        place = self._window.place(self.next)
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
            _NO_ROWS,
        )
        was_lead = self._cursor.lead > 0
        if self._counts_skipped:
            self._left_out += max(0, self.next - self._covered)
        self._covered = self._cursor.place(n_frames - 1) + self.spec.win_length
        self._cursor.go(n_frames)
        self._counts_skipped = self._averages and was_lead and not self._cursor.lead
        self.gap, self.skipped_rows, self._restart = None, 0, False
        self.in_flight.append(batch)
        self._launch(batch)

    def settle(self) -> None:
        """Wait for batches launched before the window was moved; they stay to be delivered."""
        for batch in self.in_flight:
            if batch.moves < self._window.moves:
                batch.rows = Computed(batch.rows.collect())
                batch.is_settled = True

    def deliver(self) -> SpectrumBatch | None:
        """Wait for the oldest batch and hand it out; None if it finished no row.

        It stays in flight where that raises DeviceError.
        """
        values, broadband = without_broadband(self.in_flight[0].rows.collect(), self.spec)
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

    def replay(self, engine: Engine) -> int:
        """Compute what is in flight and not settled anew, by another engine.

        Averages begin anew with it, and the next batch says that it does not follow on. Returns
        how many frames of an average are cut off by that.
        """
        count = self._plan.count
        cut_frames, primed = count.done, count.primed
        self._use(engine)
        pending = [batch for batch in self.in_flight if not batch.is_settled]
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
        """Leave out what is left of a row whose first frames are lost: rows keep their places.

        Returns how many frames of it were submitted already.
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
            self._pass_on(batch)
            if batch.is_cut:
                return dropped
        if self._cursor.lead:
            self._cursor.drop_lead()
        elif left:
            self._passed = grid.frames - left
        return dropped

    def _pass_on(self, batch: Submitted) -> None:
        """Let what comes after a batch that is not computed report what was missing before it."""
        at = self.in_flight.index(batch)
        after: Submitted | Track = self.in_flight[at + 1] if at + 1 < len(self.in_flight) else self
        if batch.gap is not None:
            after.gap = (after.gap or 0) + batch.gap
        after.skipped_rows += batch.skipped_rows
        self.in_flight.remove(batch)

    def _use(self, engine: Engine) -> None:
        self._plan: FramePlan = engine.plan(self.spec, self._window, self.batch_frames)
        self._engine_name = engine.name

    def _launch(self, batch: Submitted) -> None:
        if batch.restart:
            self._plan.restart()
        count = self._plan.count
        batch.done, batch.primed = count.done, count.primed
        batch.moves = self._window.moves
        batch.engine = self._engine_name
        if batch.is_cut:
            count.cut(batch.n_frames)
        batch.rows = self._plan.submit(batch.place, batch.n_frames, phase=batch.phase)
