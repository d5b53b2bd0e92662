"""Events from pulses: a condition that comes and goes in a pattern of times."""

import math
from typing import Final

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.errors import ConfigError
from spectrod.measure.triggers.hysteresis import NO_EVENT, Change
from spectrod.measure.triggers.trigger_config import PulsePattern, TriggerConfig

_UNKNOWN_DB: Final = -math.inf
"""Height of rows whose threshold is not known yet."""


def check_pulses(config: TriggerConfig, spec: SpectrumSpec) -> None:
    """Check that rows come often enough for the pattern of a trigger; raises ConfigError."""
    pattern = config.pattern
    if pattern is None:
        return
    for key, (low_s, high_s) in (("pulse_s", pattern.pulse_s), ("pause_s", pattern.pause_s)):
        if high_s < spec.row_s:
            raise ConfigError(
                f"{key}=[{low_s:g}, {high_s:g}]: must reach to {spec.row_s:.3g} s or more, the "
                f"time between rows of the product {spec.product}; choose a shorter hop and window",
                key,
            )


class Pulses:
    """The state of one trigger with a pattern: finds where series of pulses begin and end.

    A pulse lasts from the first row whose height is at least 0 to the first one that is below
    ``-release_db``, or ``fall_db`` below the highest of the pulse: in a room a sound decays slowly,
    and would last into the pause. A pause lasts from there to the next pulse, which then begins
    ``fall_db`` above the lowest row of the pause. Both are counted from row to row, in samples,
    which no clock sets back. A pulse whose begin or end was not seen is none: at the
    start, before and after a gap, and where the threshold becomes known. Pulses of the pattern's
    length with pauses of its length between them are a series. Once it has ``pulses_min`` pulses,
    with the end of the last of them, an event begins. It ends with the last pulse of the series.
    For ``hold_off_samples`` after an event no other one begins: a series that lasts longer is then
    an event, from its own first pulse on, and one that does not is left out. Each event that begins
    ends before the next begins.

    Parameters
    ----------
    pattern : PulsePattern
        Lengths and least number of pulses, and their fall.
    fs : float
        Sample rate [Hz].
    release_db : float
        Hysteresis, at least 0 [dB].
    hold_off_samples : int
        Time from an event's last sample to the row with which the next one can begin; 0: the next
        row can.

    Attributes
    ----------
    is_active : bool
        Whether an event is in progress.
    is_held : bool
        Whether a pulse lasts.
    n_pulses : int
        Pulses of the present series, or else of the last one.
    first, stop : int
        First sample of its first pulse, and the one after the last of its last pulse.
    n_left_out : int
        Series of ``pulses_min`` or more that ended within the time after an event.
    """

    def __init__(
        self, pattern: PulsePattern, fs: float, release_db: float, hold_off_samples: int
    ) -> None:
        self._pulse = pattern.pulse_s[0] * fs, pattern.pulse_s[1] * fs
        self._pause = pattern.pause_s[0] * fs, pattern.pause_s[1] * fs
        self._pulses_min = pattern.pulses_min
        self._fall_db, self._release_db = pattern.fall_db, release_db
        self._hold_off = hold_off_samples
        self.is_active = self.is_held = False
        self.n_pulses = self.first = self.stop = self.n_left_out = 0
        self._is_series = self._is_below_known = self._is_begin_seen = False
        self._rise = self._fall = self._pulse_stop = 0
        self._extreme_db = _UNKNOWN_DB
        """Highest height of the pulse that lasts, or else lowest one since the last pulse."""
        self._free_from = NO_EVENT

    @property
    def is_idle(self) -> bool:
        """Whether rows below the threshold change nothing."""
        is_low = self._is_below_known and self._extreme_db < -self._release_db
        return is_low and not self.is_held and not self._is_series

    def push(self, first: int, stop: int, height_db: float) -> Change | None:
        """Take the next row; return what it changes.

        Parameters
        ----------
        first, stop : int
            First sample of the row, and the one after its last.
        height_db : float
            Level over the threshold [dB]; NaN and minus infinity are not known.
        """
        if not height_db > _UNKNOWN_DB:
            return self.end()
        if self.is_held:
            is_over = height_db >= max(-self._release_db, self._extreme_db - self._fall_db)
            self._extreme_db = max(self._extreme_db, height_db) if is_over else height_db
            return self._go_on(first, stop) if is_over else self._end_pulse(first)
        if height_db >= self._next_db:
            self._extreme_db = height_db
            return self._begin_pulse(first, stop)
        self._is_below_known = True
        self._extreme_db = min(self._extreme_db, height_db)
        return self._close() if first - self._fall > self._pause[1] else None

    @property
    def _next_db(self) -> float:
        """Height at which the next pulse begins [dB]."""
        lowest_db = self._extreme_db
        return 0.0 if lowest_db < -self._release_db else max(0.0, lowest_db + self._fall_db)

    def _begin_pulse(self, first: int, stop: int) -> Change | None:
        is_in_series = self._pause[0] <= first - self._fall <= self._pause[1]
        change = None if is_in_series else self._close()
        self._is_begin_seen = self._is_below_known
        self.is_held, self._rise, self._pulse_stop = True, first, stop
        return change

    def _go_on(self, first: int, stop: int) -> Change | None:
        self._pulse_stop = stop
        return self._close() if first - self._rise > self._pulse[1] else None

    def _end_pulse(self, first: int) -> Change | None:
        self.is_held, self._is_below_known, self._fall = False, True, first
        low, high = self._pulse
        if not (self._is_begin_seen and low <= first - self._rise <= high):
            return self._close()
        if not self._is_series:
            self._is_series, self.n_pulses, self.first = True, 0, self._rise
        self.n_pulses, self.stop = self.n_pulses + 1, self._pulse_stop
        if self.is_active or self.n_pulses < self._pulses_min or first < self._free_from:
            return None
        self.is_active = True
        return "begun"

    def end(self) -> Change | None:
        """End the series with its last pulse, as before a gap; return what that changes."""
        self.is_held = self._is_below_known = False
        self._extreme_db = _UNKNOWN_DB
        return self._close()

    def _close(self) -> Change | None:
        was_active, was_series = self.is_active, self._is_series
        self._is_series = self.is_active = False
        if not was_active:
            self.n_left_out += was_series and self.n_pulses >= self._pulses_min
            return None
        if self._hold_off:
            self._free_from = self.stop + self._hold_off
        return "ended"
