"""Conditions of the samples of a stream, by their indexes, for the rows that are made of them."""

from collections import deque
from dataclasses import dataclass, replace

import numpy as np

from spectrod.dsp.blocks import Block
from spectrod.dsp.conditions import Condition, UInt8Array
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.units import Int64Array
from spectrod.source.checks import ContentChecks

CHECKED_S = 0.25
"""Length of the parts that are checked at a time [s]: conditions count whole ones."""
_RUNS_MAX = 4096


@dataclass(slots=True)
class _FaultyRun:
    """Consecutive samples with the same conditions, from the first to before the stop."""

    first: int
    stop: int
    conditions: UInt8Array


class ConditionTrack:
    """Says which conditions the samples of rows have.

    Rows are marked after their samples were written. Memory is bounded: of more than 4096 runs of
    faulty samples the oldest two count as one. Used by one thread.

    Parameters
    ----------
    channels : int
        Number of channels of every block.
    fs : float
        Sample rate [Hz].
    checks : ContentChecks, optional
        Checks that have looked at each block before it is written; a block should then be well
        below a second. Without them samples are checked here, in parts of at most 0.25 s, and all
        checks start again after a gap.
    """

    def __init__(self, channels: int, fs: float, checks: ContentChecks | None = None) -> None:
        self._channels, self._fs, self._is_shared = channels, fs, checks is not None
        self._checks = checks or ContentChecks(channels, fs)
        self._step = max(1, round(fs * CHECKED_S))
        self._clipped = np.zeros(channels, np.int64)
        self._runs: deque[_FaultyRun] = deque()

    def write(self, block: Block, *, is_suspected: bool = False) -> None:
        """Add the conditions of a block of float32 samples.

        Parameters
        ----------
        block : Block
            The next samples.
        is_suspected : bool
            Whether samples may be missing in it or before it.
        """
        more = np.uint8(Condition.SUSPECTED if is_suspected else 0)
        if self._is_shared:
            self._add(block.sample_index, block.n_samples, self._found() | more)
            return
        if block.lost_samples:
            self._checks = ContentChecks(self._channels, self._fs)
            self._clipped[:] = 0
        for first in range(0, block.n_samples, self._step):
            part = block.samples[:, first : first + self._step]
            self._checks.look(part)
            self._add(block.sample_index + first, part.shape[1], self._found() | more)

    def mark(self, batch: SpectrumBatch) -> SpectrumBatch:
        """Return a batch with the conditions of the samples that its rows are made of."""
        spec, begins = batch.spec, batch.sample_index
        frames = batch.cut_frames or spec.averaging_frames
        ends = begins + (frames - 1) * spec.hop + spec.win_length
        found = np.full((batch.n_frames, self._channels), Condition.CHECKED, np.uint8)
        for run in reversed(self._runs):
            if not batch.n_frames or run.stop <= begins[0]:
                break
            found[_overlap(begins, ends, run)] |= run.conditions
        if spec.iq:
            found = found[:, 0::2] | found[:, 1::2]
        return replace(batch, conditions=found)

    def _found(self) -> UInt8Array:
        found = conditions_of(self._checks, self._clipped)
        self._clipped = self._checks.clipped_by_channel
        return found

    def _add(self, first: int, n_samples: int, conditions: UInt8Array) -> None:
        if not conditions.any():
            return
        stop, last = first + n_samples, self._runs[-1] if self._runs else None
        if last and last.stop == first and (last.conditions == conditions).all():
            last.stop = stop
            return
        self._runs.append(_FaultyRun(first, stop, conditions))
        if len(self._runs) > _RUNS_MAX:
            one, other = self._runs.popleft(), self._runs.popleft()
            both = one.conditions | other.conditions
            self._runs.appendleft(_FaultyRun(one.first, other.stop, both))


def conditions_of(checks: ContentChecks, clipped_before: Int64Array) -> UInt8Array:
    """Return the conditions of the samples that checks have looked at last.

    Parameters
    ----------
    checks : ContentChecks
        The checks.
    clipped_before : (channels,) int64
        Their ``clipped_by_channel`` before these samples: clipping is a condition of the samples
        that are clipped, and of no later ones.

    Returns
    -------
    conditions : (channels,) uint8
        See ``Condition``, without ``CHECKED``.
    """
    clipped = checks.clipped_by_channel > clipped_before
    found = np.where(clipped, Condition.CLIPPING, 0).astype(np.uint8)
    for text in checks.active:
        kind, _, rest = text.partition(": ")
        if kind in _HELD:
            found[int(rest.split()[0])] |= np.uint8(_HELD[kind])
    return found


_HELD = {
    "silent": Condition.SILENT,
    "missing": Condition.MISSING,
    "stuck": Condition.STUCK,
    "dc": Condition.DC,
}


def _overlap(begins: Int64Array, ends: Int64Array, run: _FaultyRun) -> slice:
    """Return the rows that have samples of a run: begins and ends of rows ascend."""
    first = int(np.searchsorted(ends, run.first, "right"))
    return slice(first, int(np.searchsorted(begins, run.stop)))
