"""One spec's frames in a stream: which come next, which are being computed."""

from collections import deque
from dataclasses import dataclass

import numpy as np

from spectrod.analysis.engine import Engine, FramePlan, Rows
from spectrod.analysis.numpy_engine import Computed
from spectrod.analysis.window import SampleWindow
from spectrod.types import Block, SpectrumBatch, SpectrumSpec


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
    next : int
        Position of the first frame that was not submitted yet.
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
        self.next = 0
        self.gap: int | None = None
        self.unreported: int | None = None
        self.skipped_rows = 0
        self.is_wanted = True
        self.in_flight: deque[Submitted] = deque()
        self.unreported_skipped_rows = 0
        self._passed = 0  # frames of a row that is not computed
        self._left_out = self._covered = 0
        self._window = window
        self._restart = False
        self._use(engine)

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
        self._passed = (self._passed + cut_frames) % self._plan.count.frames
        return cut_frames

    def pass_over(self) -> None:
        """Leave out complete frames that nobody wants, and the rest of a row begun like that."""
        n_frames = self.n_complete()
        per_row = self._plan.count.frames
        if self.is_wanted:
            n_frames = min(n_frames, -self._passed % per_row)
        if n_frames:
            n_rows, self._passed = divmod(self._passed + n_frames, per_row)
            self.skipped_rows += n_rows
            self.next += n_frames * self.spec.hop
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
        self.next += n_waiting * self.spec.hop
        return self._cut() + n_waiting

    def take_over(self, earlier: "Track") -> None:
        """Carry on what another track has not reported: a gap, rows that were passed over."""
        self.unreported = earlier.gap_pending
        self.unreported_skipped_rows = earlier.skipped_pending

    def n_complete(self) -> int:
        """Frames whose samples are all there, not submitted yet."""
        return max(0, (self._window.end - self.next - self.spec.win_length) // self.spec.hop + 1)

    def n_due(self) -> int:
        """Count the complete frames that may be submitted before it is known what follows.

        The newest frame waits for the next one unless it finishes a row: if the signal ends here,
        that frame finishes the shorter row, which a launch without frames could not do.
        """
        n_frames, count = self.n_complete(), self._plan.count
        return n_frames - ((count.done + n_frames) % count.frames > 0)

    def remainder(self) -> tuple[int, int]:
        """Count the samples from the next frame on, and the frames of the unfinished average.

        The frame that waits to finish a shorter row counts as one of the average.
        """
        n_waiting = self.n_complete() - self.n_due()
        n_samples = self._window.end - self.next - n_waiting * self.spec.hop
        return max(0, n_samples), self._plan.count.done + n_waiting

    def rest(self) -> list[tuple[int, bool]]:
        """Divide all complete frames, as nothing follows on them.

        Returns
        -------
        parts : list of (int, bool)
            Frames of each submission, and whether they finish a row that is cut off.
        """
        n_frames, count = self.n_complete(), self._plan.count
        n_cut = min(n_frames, (count.done + n_frames) % count.frames)
        return [(n, is_cut) for n, is_cut in ((n_frames - n_cut, False), (n_cut, True)) if n]

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
        self.next = self._covered = self._window.end
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
        return max(0, self._window.end - max(self.next, self._covered))

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
            _NO_ROWS,
        )
        self.next += n_frames * self.spec.hop
        self._covered = self.next - self.spec.hop + self.spec.win_length
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
        values = self.in_flight[0].rows.collect()
        batch = self.in_flight.popleft()
        if batch.gap is not None:
            self.unreported = (self.unreported or 0) + batch.gap
        self.unreported_skipped_rows += batch.skipped_rows
        if len(values) == 0:
            return None
        gap, self.unreported = self.unreported, None
        skipped_rows, self.unreported_skipped_rows = self.unreported_skipped_rows, 0
        row_samples = self.spec.hop * self.spec.averaging_frames
        begin = batch.index - batch.done * self.spec.hop
        index = begin + row_samples * np.arange(len(values), dtype=np.int64)
        clock = batch.clock
        since = (index - clock.sample_index) * (1e9 / self.spec.fs)
        since_ns = np.rint(since).astype(np.int64)
        return SpectrumBatch(
            values,
            index,
            clock.t_mono_ns + since_ns,
            clock.t_utc_ns + since_ns,
            self.spec,
            batch.engine,
            gap_samples=gap or 0,
            discontinuity=gap is not None,
            skipped_rows=skipped_rows,
            cut_frames=batch.done + batch.n_frames if batch.is_cut else 0,
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
        for batch in pending:
            self._launch(batch)
        return cut_frames

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
        batch.rows = self._plan.submit(batch.place, batch.n_frames)
