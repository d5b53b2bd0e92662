"""Percentiles over the frames of rows: a plan computes the frames, the host ranks them."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.analysis import response_plan
from spectrod.analysis.engine import Engine, FramePlan, PendingRows
from spectrod.analysis.frame_launch import FrameLaunch
from spectrod.analysis.numpy_engine import Computed
from spectrod.analysis.percentile import Percentile
from spectrod.analysis.sample_buffer import SampleBuffer
from spectrod.dsp.averaging import exceeded_percent
from spectrod.dsp.spectrum import SpectrumSpec

_LAUNCH_BYTES = 1 << 21
"""Size of the frames of one launch [bytes]; they are ranked before the next but one is launched."""


def make_plan(
    engine: Engine, spec: SpectrumSpec, buffer: SampleBuffer, max_frames: int
) -> FramePlan:
    """Make a plan of rows, see ``Engine.plan``; percentiles are the host's."""
    if exceeded_percent(spec.averaging) is None:
        return response_plan.make_plan(engine, spec, buffer, max_frames)
    frames = replace(spec, averaging="none", averaging_frames=1, rate_hz=0.0, align="start")
    frame_bytes = 4 * spec.n_signals * spec.n_computed
    n_launch = max(1, min(max_frames, _LAUNCH_BYTES // frame_bytes))
    return PercentilePlan(spec, response_plan.make_plan(engine, frames, buffer, n_launch), n_launch)


class PercentilePlan:
    """Ranks the frames of another plan; implements ``FramePlan``.

    Rows are complete when ``submit`` returns.

    Parameters
    ----------
    spec : SpectrumSpec
        Spec of the rows.
    frames : FramePlan
        Plan of the frames, without an average.
    n_launch : int
        Maximum number of frames of one launch, >= 1.
    """

    def __init__(self, spec: SpectrumSpec, frames: FramePlan, n_launch: int) -> None:
        self._grid = spec.grid
        self._row_shape = spec.n_signals, spec.n_computed
        self._frames, self._n_launch = frames, n_launch
        self._percentile = Percentile(spec)

    def resume(self, power: Percentile | None) -> None:
        """Continue the row of another plan, which is not used again; see ``FramePlan``."""
        if power is not None:
            self._percentile = power

    @property
    def average_power(self) -> Percentile:
        """The unfinished row, see ``FramePlan.resume``."""
        return self._percentile

    def submit(self, launch: FrameLaunch, out: NDArray[Any] | None = None) -> Computed:
        """Compute frames and finish their rows; see ``FramePlan``."""
        if not launch.primed:
            self._percentile.clear()
        rows = np.empty((launch.n_rows, *self._row_shape), np.float32) if out is None else out
        n_finished = 0
        for frames in self._computed(launch):
            n_finished += self._rank(frames, launch.row_frames, rows[n_finished:])
        return Computed(rows)

    def _computed(self, launch: FrameLaunch) -> Iterator[NDArray[Any]]:
        """Yield the frames of one launch after the other, while the next one is computed."""
        before: PendingRows | None = None
        for begin, n_stretch in self._stretches(launch):
            for first in range(0, n_stretch, self._n_launch):
                n = min(self._n_launch, n_stretch - first)
                place = begin + first * self._grid.hop
                launched = self._frames.submit(FrameLaunch(place, n, source=launch.source))
                if before is not None:
                    yield before.collect()
                before = launched
        if before is not None:
            yield before.collect()

    def _stretches(self, launch: FrameLaunch) -> Iterator[tuple[int, int]]:
        """Yield the places and numbers of frames that are a hop apart."""
        if self._grid.is_even:
            yield launch.place, launch.n_frames
            return
        done, hop = launch.done, self._grid.hop
        origin = launch.place - done * hop
        row, left = 0, launch.n_frames
        while left:
            n = min(left, launch.row_frames - done)
            yield origin + self._grid.begin(row, launch.phase) + done * hop, n
            row, left, done = row + 1, left - n, 0

    def _rank(self, frames: NDArray[Any], row_frames: int, rows: NDArray[Any]) -> int:
        """Add frames, and write the rows that they finish; return the number of rows."""
        n_rows = 0
        while len(frames):
            left = row_frames - self._percentile.done
            self._percentile.add(frames[:left])
            frames = frames[left:]
            if self._percentile.done == row_frames:
                rows[n_rows] = self._percentile.finish()
                n_rows += 1
        return n_rows
