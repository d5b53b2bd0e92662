"""Positions of one spec's rows in a stream: which frames come next, and what is missing between."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from spectrod.analysis.averaging_state import AveragingState
from spectrod.analysis.cursor import Cursor, Timing
from spectrod.dsp.spectrum import SpectrumSpec


@dataclass(frozen=True, slots=True)
class Missing:
    """What is missing directly before a frame.

    Attributes
    ----------
    gap_samples : int, optional
        Samples of gaps; 0 for a discontinuity without lost samples, None without a gap.
    skipped_rows : int
        Unwanted rows.
    """

    gap_samples: int | None = None
    skipped_rows: int = 0

    def __add__(self, other: "Missing") -> "Missing":
        gaps = [one for one in (self.gap_samples, other.gap_samples) if one is not None]
        return Missing(sum(gaps) if gaps else None, self.skipped_rows + other.skipped_rows)


NOTHING = Missing()
DISCONTINUITY = Missing(gap_samples=0)


@dataclass(slots=True, eq=False)
class FrameRun:
    """Consecutive frames that are computed together.

    Attributes
    ----------
    first : int
        Position of the first frame.
    n_frames : int
        Number of frames.
    phase : int
        Phase of the first frame's row, see ``RowGrid``.
    instant : int, optional
        UTC of the start of that row, see ``Cursor``.
    missing : Missing
        What is missing directly before the first frame.
    is_cut : bool
        Whether these frames finish a shorter row.
    restart : bool
        Whether averages restart.
    done : int
        Frames of the first frame's row in earlier runs.
    primed : bool
        Whether the first row depends on earlier runs.
    """

    first: int
    n_frames: int
    phase: int
    instant: int | None
    missing: Missing
    is_cut: bool
    restart: bool
    done: int = 0
    primed: bool = False


class RowPositions:
    """Decides which frames of a spec come next in a stream, and counts what no row has.

    Knows numbers only: no samples, no device. The owner sets ``end`` when samples arrive; positions
    count stored samples, from an origin that ``shift`` moves.

    Parameters
    ----------
    spec : SpectrumSpec
        Spec of the rows.

    Attributes
    ----------
    end : int
        Position after the newest sample.
    cursor : Cursor
        The next frame.
    average : AveragingState
        State of the averages after all taken frames.
    missing : Missing
        What is missing before the next frame.
    is_wanted : bool
        Whether frames are computed; ``want`` changes it.

    Notes
    -----
    Invariants:

    - Frames are taken and skipped in order, and each frame without a gap in it exactly once.
    - A row is computed as a whole or skipped as a whole: frames of a skipped row are counted only
      while the average is empty, and frames are taken only while no skipped row is unfinished.
      Skipping does not move later rows.
    - Each gap, skipped row and discontinuity is in the ``missing`` of exactly one run.
    - Each sample that ends before a gap, and that no hop longer than the window skips, is in a
      taken or skipped frame, or in ``left_out_samples``.
    """

    def __init__(self, spec: SpectrumSpec) -> None:
        self.cursor = Cursor(spec)
        self.average = AveragingState(spec)
        self.end = 0
        self.missing = NOTHING
        self.is_wanted = True
        self._row_frames = spec.averaging_frames
        self._win_length = spec.win_length
        self._averages = spec.averaging != "none"
        self._passed = 0  # frames of a skipped row
        self._restart = False
        # Samples before _covered are in a row or are counted. Those from there to the next frame
        # count as left out before the first row, and where UTC was stepped.
        self._left_out = self._covered = 0
        self._counts_skipped = self._averages

    @property
    def next(self) -> int:
        """Position of the next frame."""
        return self.cursor.next

    def shift(self, n_samples: int) -> None:
        """Move the origin of all positions but ``end`` forward by a number of samples."""
        self.cursor.shift(n_samples)
        self._covered -= n_samples

    def align(self, timing: Timing) -> None:
        """Move the next row to its UTC instant, if rows are aligned."""
        before = self.next
        if self.cursor.align(timing):
            self.missing += DISCONTINUITY
            # Samples at the end of a row, where no frame fits, are no loss.
            self._covered = before
            self._counts_skipped = True

    # ---- which frames come next

    @property
    def n_complete(self) -> int:
        """Number of complete frames that were neither taken nor skipped."""
        return self.cursor.count(self.end)

    @property
    def n_due(self) -> int:
        """Number of complete frames that may be taken before later samples are known.

        The newest frame waits for the next one unless it finishes a row: if the signal ends here,
        this frame finishes the shorter row, which a launch without frames could not do.
        """
        n_frames = self.n_complete
        if self.cursor.lead:
            waits = n_frames < self.cursor.lead
        else:
            waits = (self.average.done + n_frames) % self._row_frames > 0
        return max(0, n_frames - waits)

    def finishes_lead(self, n_frames: int) -> bool:
        """Return whether n_frames more frames finish the lead."""
        return 0 < self.cursor.lead == n_frames

    def remainder(self) -> tuple[int, int]:
        """Count the samples from the next frame on, and the frames of the unfinished average.

        The frame that waits to finish a shorter row counts as a frame of the average.
        """
        n_waiting = self.n_complete - self.n_due
        n_samples = self.end - self.cursor.place(n_waiting)
        return max(0, n_samples), self.average.done + n_waiting

    def split_tail(self) -> Iterator[tuple[int, bool]]:
        """Split all complete frames at the end of a stretch; the caller takes each part.

        Yields
        ------
        n_frames : int
            Frames of a run.
        is_cut : bool
            Whether they finish a shorter row.
        """
        while n_frames := self.n_complete:
            n_cut = min(n_frames, (self.average.done + n_frames) % self._row_frames)
            is_cut = self.cursor.lead > 0 or n_frames == n_cut
            yield n_frames if is_cut else n_frames - n_cut, is_cut

    def take(self, n_frames: int, *, is_cut: bool = False) -> FrameRun:
        """Take the next complete frames, to compute them; is_cut: they finish a shorter row."""
        cursor = self.cursor
        run = FrameRun(
            cursor.next,
            n_frames,
            cursor.phase,
            cursor.instant,
            self.missing,
            is_cut,
            self._restart,
        )
        self.missing, self._restart = NOTHING, False
        self._average_over(run)
        if self._counts_skipped:
            self._left_out += max(0, cursor.next - self._covered)
        self._covered = cursor.place(n_frames - 1) + self._win_length
        was_lead = cursor.lead > 0
        cursor.advance(n_frames)
        self._counts_skipped = self._averages and was_lead and not cursor.lead
        return run

    def skip_unwanted(self) -> None:
        """Skip complete frames that are unwanted or belong to a skipped row."""
        if self.is_wanted and not self._passed:
            return
        if not self.is_wanted and self.cursor.lead:
            self.cursor.drop_lead()
        n_frames = self.n_complete
        if self.is_wanted:
            n_frames = min(n_frames, -self._passed % self._row_frames)
        if n_frames:
            n_rows, self._passed = divmod(self._passed + n_frames, self._row_frames)
            self.missing += Missing(skipped_rows=n_rows)
            self.cursor.advance(n_frames)
            self._counts_skipped = False
            self._cut()  # an exponential average would otherwise continue from the last row

    # ---- changes between two frames; each returns the number of frames of a dropped average

    def want(self, *, is_wanted: bool) -> int:
        """Start or stop computing frames; all complete ones must be taken or skipped."""
        self.is_wanted = is_wanted
        if is_wanted:
            return 0
        cut_frames = self._cut()
        if self.cursor.lead:
            self.cursor.drop_lead()
        else:
            self._passed = (self._passed + cut_frames) % self._row_frames
        return cut_frames

    def reset(self) -> int:
        """Restart averages with the next frame; drop complete ones, which count as well.

        The next run is a discontinuity if an average was unfinished.
        """
        n_waiting = self.n_complete  # started before the reset
        if self.average.primed or self._passed or n_waiting:
            self.missing += DISCONTINUITY
        self._passed = 0
        self.cursor.restart(self.cursor.place(n_waiting))
        return self._cut() + n_waiting

    def interrupt(self, lost_samples: int) -> int:
        """Continue after a gap at the end of the samples."""
        self._left_out += self._tail()
        # The skipped part of a row would have been a shorter row.
        self.missing += Missing(lost_samples, skipped_rows=self._passed > 0)
        self._passed = 0
        self._covered, self._counts_skipped = self.end, self._averages
        self.cursor.restart(self.end)
        return self._cut()

    def finish(self) -> None:
        """Start a row with the next frame, after the end of a stretch."""
        self.cursor.restart(self.next)

    def _cut(self) -> int:
        """Drop an unfinished average."""
        cut_frames = self.average.done
        self.average.restart()
        self._restart = True
        return cut_frames

    # ---- samples in no row

    @property
    def left_out_samples(self) -> int:
        """Samples before gaps and, so far, at the end that did not fill a frame."""
        return self._left_out + self._tail()

    def _tail(self) -> int:
        """Count the samples from the start of the next frame on that the last one does not have."""
        if not self.is_wanted or self._passed:
            return 0
        begin = self._covered if self._counts_skipped else max(self.next, self._covered)
        return max(0, self.end - begin)

    # ---- after a failure

    def replay(self, runs: Sequence[FrameRun]) -> int:
        """Restart averages with the newest runs, which are computed again.

        The first of them, or else the next one, is a discontinuity if an average was unfinished.
        On an uneven grid rows keep their positions: the rest of a row whose first frames are lost
        is dropped, and a run may be left without frames.

        Parameters
        ----------
        runs : sequence of FrameRun
            The newest taken runs, in order; changed in place.

        Returns
        -------
        cut_frames : int
            Frames of a dropped average.
        """
        before: FrameRun | AveragingState = runs[0] if runs else self.average
        cut_frames = before.done
        if before.primed:
            disrupted = runs[0] if runs else self
            disrupted.missing += DISCONTINUITY
        if cut_frames and not self.cursor.grid.is_even:
            cut_frames += self._drop_broken_row(runs, cut_frames)
        self.average.restart()
        for run in runs:
            if run.n_frames:
                self._average_over(run)
        return cut_frames

    def _drop_broken_row(self, runs: Sequence[FrameRun], done: int) -> int:
        """Drop the rest of a row whose first frames are lost; return how many were taken."""
        grid, dropped = self.cursor.grid, 0
        left = grid.frames - done
        for run in runs:
            if not left:
                return dropped
            n = run.n_frames if run.is_cut else min(left, run.n_frames)
            away = grid.begin(1, run.phase) - (done + dropped) * grid.hop
            dropped, left = dropped + n, left - n
            run.n_frames -= n
            if run.n_frames:
                run.first += away
                run.phase = grid.phase_of(1, run.phase)
                run.instant = None if run.instant is None else run.instant + 1
                return dropped
            if run.is_cut:
                return dropped
        if self.cursor.lead:
            self.cursor.drop_lead()
        elif left:
            self._passed = grid.frames - left
        return dropped

    def _average_over(self, run: FrameRun) -> None:
        if run.restart:
            self.average.restart()
        run.done, run.primed = self.average.done, self.average.primed
        if run.is_cut:
            self.average.cut(run.n_frames)
        self.average.take(run.n_frames)
