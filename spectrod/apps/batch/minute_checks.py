"""What is wrong with the samples of a unit, by minutes of UTC."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from spectrod.apps.batch.plan import Unit
from spectrod.dsp.blocks import Block, duration_ns
from spectrod.dsp.conditions import Condition, UInt8Array
from spectrod.dsp.duty_cycle import pauses_of_schedule
from spectrod.dsp.units import NS_PER_S
from spectrod.source.checks import ContentChecks
from spectrod.source.condition_track import CHECKED_S, conditions_of

_MINUTE_NS = 60 * NS_PER_S


@dataclass(frozen=True, slots=True)
class CheckedMinute:
    """What checks found in a minute.

    Attributes
    ----------
    number : int
        Minutes since 1970.
    effort_s : float
        Duration of its samples [s].
    n_gaps : int
        Times without samples that end in it.
    n_clipped : tuple of int
        Samples of each channel in runs of three or more at full scale.
    conditions : tuple of str
        Conditions that hold in a part of it, as ``silent: 0``.
    """

    number: int
    effort_s: float
    n_gaps: int
    n_clipped: tuple[int, ...]
    conditions: tuple[str, ...]


class MinuteChecks:
    """Checks samples in parts of 0.25 s, which belong to the minute that they begin in.

    Conditions are those of ``ContentChecks``. One that begins or ends in a minute is a condition of
    that minute. After a gap all checks start again.

    Parameters
    ----------
    channels : int
        Number of channels of every block.
    fs : float
        Sample rate [Hz].
    pause_ends : collection of int
        Indexes of samples before which a pause of a schedule ends: it is no loss.

    Attributes
    ----------
    minutes : list of CheckedMinute
        Minutes with samples that are over, in the order of the samples.
    quality : dict of int to (channels,) uint8
        Faults, see ``Condition``, by minutes since 1970; minutes without any are not there.
    """

    def __init__(self, channels: int, fs: float, pause_ends: Collection[int] = ()) -> None:
        self.minutes: list[CheckedMinute] = []
        self.quality: dict[int, UInt8Array] = {}
        self._fs, self._pause_ends = fs, pause_ends
        # Blocks end anywhere: conditions must not depend on where.
        self._part = np.empty((channels, max(1, round(fs * CHECKED_S))), np.float32)
        self._n_part, self._part_utc_ns = 0, 0
        self._checks = ContentChecks(channels, fs)
        self._minute = -1
        self._begin(0)

    def _begin(self, minute: int) -> None:
        self._minute, self._n, self._n_gaps = minute, 0, 0
        self._found: dict[str, None] = {}
        self._clipped_before = self._checks.clipped_by_channel

    def write(self, block: Block) -> None:
        """Check a block of float32 samples."""
        if block.lost_samples:
            self._add_gap(block)
        first = 0
        while first < block.n_samples:
            if not self._n_part:
                self._part_utc_ns = block.t_utc_ns + duration_ns(first, self._fs)
            n = min(self._part.shape[1] - self._n_part, block.n_samples - first)
            self._part[:, self._n_part : self._n_part + n] = block.samples[:, first : first + n]
            self._n_part += n
            first += n
            if self._n_part == self._part.shape[1]:
                self._check_part()

    def finish(self) -> None:
        """Check what is left, and end the last minute. Idempotent."""
        self._check_part()
        self._end_minute()
        self._begin(self._minute)

    def _add_gap(self, block: Block) -> None:
        self._check_part()
        self._end_minute_if_over(block.t_utc_ns)
        self._n_gaps += 1
        clipped = self._checks.clipped_by_channel - self._clipped_before
        self._checks = ContentChecks(len(self._part), self._fs)
        self._clipped_before = -clipped
        if block.sample_index not in self._pause_ends:
            begin_ns = block.t_utc_ns - duration_ns(block.lost_samples, self._fs)
            for t_utc_ns in (begin_ns, block.t_utc_ns - 1):
                self._add_fault(t_utc_ns // _MINUTE_NS, np.uint8(Condition.GAP))

    def _check_part(self) -> None:
        """Check the samples of the present part."""
        if not self._n_part:
            return
        self._end_minute_if_over(self._part_utc_ns)
        before = self._checks.clipped_by_channel
        self._checks.look(self._part[:, : self._n_part])
        self._n += self._n_part
        self._n_part = 0
        conditions = [text.partition(" (")[0] for text in self._checks.active]
        self._found |= dict.fromkeys(conditions)
        faults = conditions_of(self._checks, before)
        if faults.any():
            self._add_fault(self._minute, faults)

    def _add_fault(self, minute: int, faults: UInt8Array | np.uint8) -> None:
        none = np.zeros(len(self._part), np.uint8)
        self.quality[minute] = self.quality.get(minute, none) | faults

    def _end_minute_if_over(self, t_utc_ns: int) -> None:
        minute = t_utc_ns // _MINUTE_NS
        if minute != self._minute:
            self._end_minute()
            self._begin(minute)

    def _end_minute(self) -> None:
        if not self._n:
            return
        clipped = self._checks.clipped_by_channel - self._clipped_before
        self.minutes.append(
            CheckedMinute(
                self._minute,
                self._n / self._fs,
                self._n_gaps,
                tuple(clipped.tolist()),
                tuple(self._found),
            )
        )


def pause_ends(unit: Unit) -> frozenset[int]:
    """Return the samples of a unit before which a pause of its schedule ends.

    Without a schedule there are none, see ``pauses_of_schedule``.
    """
    ends = [one.index + one.end - one.first for one in unit.pieces]
    begins = [one.index for one in unit.pieces]
    after = [k for k in range(1, len(begins)) if begins[k] > ends[k - 1]]
    if not after:
        return frozenset()
    begins_s = np.array([begins[0], *(begins[k] for k in after)]) / unit.fs
    ends_s = np.array([*(ends[k - 1] for k in after), ends[-1]]) / unit.fs
    is_pause = pauses_of_schedule(begins_s, ends_s)
    return frozenset(begins[k] for k, is_one in zip(after, is_pause, strict=True) if is_one)
