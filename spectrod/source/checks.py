"""Checks for silence, stuck values, clipping and offset, and levels; reports only."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.units import (
    FLOOR_DBFS,
    FULL_SCALE,
    FULL_SCALE_SINE_FS2,
    Float32Array,
    Float64Array,
    power_to_level,
)

_HOLD_S = 1.0
_CLIP_RUN = 3
_CLIP_REPORT_S = 60.0
_DC_S = 10.0
_DC_ON_DBFS = -40.0
_DC_OFF_DBFS = -43.0
_DC_PARTS = 10
_DC_SPREADS = 8.0
"""Least mean of an offset, in standard deviations of the means of its parts. For 1/f noise it is
0.2 to 5 of them at 192 to 8 kHz."""

BoolArray = NDArray[np.bool_]


class ContentChecks:
    """Checks all samples of a live source, block by block, and reports anomalies.

    Conditions per channel: *silent* (exact zeros), *missing* (silent while another channel is not)
    and *stuck* (one constant value other than zero) start after more than 1 s and end after 1 s
    without; *dc* (a steady mean of over -40 dBFS for 10 s) ends below -43 dBFS; *clipping* (three
    or more consecutive samples at full scale) ends after a minute without. Durations are counted in
    whole blocks, so a block should be well below a second. Used by one thread.

    Parameters
    ----------
    channels : int
        Number of channels of every block.
    fs : float
        Sample rate [Hz].

    Attributes
    ----------
    level : _Level
        Level and peak of each channel in the last second.
    """

    def __init__(self, channels: int, fs: float) -> None:
        self.active: tuple[str, ...] = ()
        """Active conditions, such as ``silent: 0``, ``stuck: 1``, ``dc: 0 (-23.1 dBFS)``."""
        self.level = _Level(channels, fs)
        self._silent = _Held(channels, fs)
        self._stuck = _Held(channels, fs)
        self._offset = _Offset(channels, fs)
        self._clipping = _Clipping(channels, fs)
        self._value = np.full(channels, np.nan, np.float32)

    @property
    def clipped_samples(self) -> int:
        """Samples at full scale in runs of three or more, over all channels, since the start."""
        return int(self._clipping.totals.sum())

    @property
    def clipped_by_channel(self) -> NDArray[np.int64]:
        """Samples at full scale in runs of three or more, since the start, shape (channels,)."""
        return self._clipping.totals.copy()

    def look(self, samples: Float32Array) -> list[str]:
        """Check the next samples.

        Parameters
        ----------
        samples : (channels, n) float32
            n >= 1 [FS].

        Returns
        -------
        lines : list of str
            Log lines: started and ended conditions, and once a minute the number of clipped
            samples.
        """
        n = samples.shape[1]
        low, high = samples.min(axis=1), samples.max(axis=1)
        with np.errstate(invalid="ignore"):  # non-finite samples are reported elsewhere
            same = (low == high) & ((low == self._value) | np.isnan(self._value))
            self._value = samples[:, -1].copy()
            zero = (low == 0.0) & (high == 0.0)
            peak = np.maximum(high, -low)
            self.level.update(samples, peak)
            changed = self._silent.update(zero, n) | self._stuck.update(same & ~zero, n)
            changed |= self._offset.update(samples, ~self._stuck.on)
        clipped = self._clipping.update(samples, peak >= FULL_SCALE)
        if not changed and clipped is None:
            return []
        return [*(clipped or ()), *self._compare()]

    def _compare(self) -> list[str]:
        before, self.active = self.active, self._active()
        now, then = {_what(text) for text in self.active}, {_what(text) for text in before}
        quiet = {channel for kind, channel in now if kind in _QUIET}
        started = [_STARTED[kind].format(channel) for kind, channel in sorted(now - then)]
        return started + [
            _ENDED[kind].format(channel)
            for kind, channel in sorted(then - now)
            if not (kind in _QUIET and channel in quiet)  # the condition only changes its name
        ]

    def _active(self) -> tuple[str, ...]:
        silent = self._silent.on
        kind = "silent" if silent.all() else "missing"
        return (
            *(f"{kind}: {channel}" for channel in np.flatnonzero(silent)),
            *(f"stuck: {channel}" for channel in np.flatnonzero(self._stuck.on)),
            *(
                f"dc: {channel} ({self._offset.level_dbfs[channel]:.1f} dBFS)"
                for channel in np.flatnonzero(self._offset.on)
            ),
            *(f"clipping: {channel}" for channel in np.flatnonzero(self._clipping.on)),
        )


_QUIET = ("silent", "missing")
_STARTED = {
    "silent": "channel {}: digital silence for over a second",
    "missing": "channel {}: missing: digital silence while other channels have a signal",
    "stuck": "channel {}: stuck at one value for over a second",
    "dc": "channel {}: DC offset of over -40 dBFS",
    "clipping": "channel {}: clips",
}
_ENDED = {
    "silent": "channel {}: no longer silent",
    "missing": "channel {}: no longer missing",
    "stuck": "channel {}: no longer stuck",
    "dc": "channel {}: DC offset gone",
    "clipping": "channel {}: no longer clips, for a minute",
}


def _what(text: str) -> tuple[str, int]:
    """Parse kind and channel of an active text; ignore a value after them."""
    kind, _, rest = text.partition(": ")
    return kind, int(rest.split()[0])


class _Level:
    """Level and peak of each channel over successive whole blocks of at least a second."""

    def __init__(self, channels: int, fs: float) -> None:
        self.rms_dbfs: tuple[float, ...] = ()
        """Level of the last second [dBFS]: 0 is a full-scale sine. Empty before the first."""
        self.peak_dbfs: tuple[float, ...] = ()
        """Highest magnitude of the last second [dBFS]: 0 is full scale, as of a sine's peak."""
        self._least = _HOLD_S * fs
        self._sum: Float64Array = np.zeros(channels)
        self._peak: Float64Array = np.zeros(channels)
        self._n = 0

    def update(self, samples: Float32Array, peak: Float32Array) -> None:
        """Add samples, and their highest magnitude per channel."""
        self._sum += np.einsum("cn,cn->c", samples, samples, dtype=np.float64)
        self._peak = np.maximum(self._peak, peak)
        self._n += samples.shape[1]
        if self._n < self._least:
            return
        power = self._sum / self._n
        self.rms_dbfs = tuple(power_to_level(power, FULL_SCALE_SINE_FS2, FLOOR_DBFS).tolist())
        self.peak_dbfs = tuple(power_to_level(self._peak**2, 1.0, FLOOR_DBFS).tolist())
        self._sum, self._peak = np.zeros_like(self._sum), np.zeros_like(self._peak)
        self._n = 0


class _Held:
    """A condition per channel that switches on or off once it has held for a second."""

    def __init__(self, channels: int, fs: float) -> None:
        self.on = np.zeros(channels, bool)
        self._since = np.zeros(channels, np.int64)
        self._hold = _HOLD_S * fs
        self._settled = True

    def update(self, now: BoolArray, n: int) -> bool:
        """Apply the condition of the next n samples; True if ``on`` changed."""
        differs = now != self.on
        if self._settled and not differs.any():
            return False
        self._since = np.where(differs, self._since + n, 0)
        turned = self._since > self._hold
        self.on ^= turned
        self._since[turned] = 0
        self._settled = not self._since.any()
        return bool(turned.any())


class _Offset:
    """Mean of each channel over successive 10 s; its level is that of a sine of equal mean square.

    Noise that is stronger at low frequencies, such as pink noise or wind, has a nonzero mean over
    any duration. The means of its single seconds differ by about as much as they are off zero.
    Those of an offset do not, so a mean counts only where it is a multiple of their spread.
    """

    def __init__(self, channels: int, fs: float) -> None:
        self.on = np.zeros(channels, bool)
        self.level_dbfs: Float64Array = np.full(channels, -np.inf)
        self._sum = np.zeros(channels)
        self._step = max(1, round(_DC_S / _DC_PARTS * fs))
        self._left = self._step
        self._means: list[Float64Array] = []

    def update(self, samples: Float32Array, allowed: BoolArray) -> bool:
        """Add samples; True if ``on`` changed, or the level of a channel that is on."""
        changed, first, n = False, 0, samples.shape[1]
        while first < n:
            stop = min(n, first + self._left)
            # float32 has too little range
            self._sum += samples[:, first:stop].sum(axis=1, dtype=np.float64)
            self._left -= stop - first
            first = stop
            if self._left == 0:
                changed |= self._end_part(allowed)
        return changed

    def _end_part(self, allowed: BoolArray) -> bool:
        self._means.append(self._sum / self._step)
        self._sum = np.zeros_like(self._sum)
        self._left = self._step
        if len(self._means) < _DC_PARTS:
            return False
        means = np.array(self._means)
        self._means = []
        mean, spread = means.mean(axis=0), means.std(axis=0, ddof=1)
        self.level_dbfs = power_to_level(mean**2, FULL_SCALE_SINE_FS2, FLOOR_DBFS)
        is_steady = np.abs(mean) > _DC_SPREADS * spread
        was = self.on
        begins = (self.level_dbfs > _DC_ON_DBFS) & is_steady
        self.on = np.where(was, self.level_dbfs > _DC_OFF_DBFS, begins) & allowed
        return bool((was | self.on).any())


@dataclass(slots=True)
class _ClippingState:
    """The last two samples of a channel: whether at full scale, and whether already counted."""

    full: BoolArray
    counted: bool


class _Clipping:
    """Samples in runs of three or more at full scale, reported at once and then once a minute."""

    def __init__(self, channels: int, fs: float) -> None:
        self.on = np.zeros(channels, bool)
        self.totals = np.zeros(channels, np.int64)
        self._counts = np.zeros(channels, np.int64)
        self._runs = [
            _ClippingState(np.zeros(_CLIP_RUN - 1, bool), counted=False) for _ in range(channels)
        ]
        self._open = np.zeros(channels, bool)
        self._period = _CLIP_REPORT_S * fs
        self._since_report = math.inf

    def update(self, samples: Float32Array, suspects: BoolArray) -> list[str] | None:
        """Add samples, of which only suspect channels reach full scale; None if nothing changed."""
        self._since_report += samples.shape[1]
        looked_at = suspects | self._open
        if looked_at.any():
            for channel in np.flatnonzero(looked_at):
                self._count(int(channel), samples[channel])
        return self._report() if self._since_report >= self._period else None

    def _count(self, channel: int, samples: Float32Array) -> None:
        run = self._runs[channel]
        full = np.concatenate([run.full, np.abs(samples) >= FULL_SCALE])
        whole = full[:-2] & full[1:-1] & full[2:]  # runs of _CLIP_RUN end two samples later
        starts = whole & ~np.concatenate([[run.counted], whole[:-1]])
        n = int(whole.sum()) + (_CLIP_RUN - 1) * int(starts.sum())
        self._runs[channel] = _ClippingState(full[-2:], counted=bool(whole[-1]))
        self._open[channel] = full[-2:].any()
        self._counts[channel] += n
        self.totals[channel] += n

    def _report(self) -> list[str] | None:
        """List the samples clipped since the last report; None if neither report has any."""
        clipped = self._counts > 0
        if not (clipped.any() or self.on.any()):
            return None
        self.on = clipped
        lines = [
            f"channel {channel}: {self._counts[channel]} samples at full scale "
            "since the last such line"
            for channel in np.flatnonzero(clipped)
        ]
        self._counts[:] = 0
        # Clipping that ended and starts again is reported at once.
        self._since_report = 0.0 if lines else math.inf
        return lines
