"""The delay that ``spectrod transfer`` removes: none, a given one, or the measured one."""

import sys
from typing import Any

from spectrod.dsp.units import Float64Array
from spectrod.lib.durations import TIME_RULE, parse_time
from spectrod.lib.errors import ConfigError, InputError
from spectrod.measure.transfer.delay import Delay, measure_delay
from spectrod.measure.transfer.transfer_config import DELAY_MAX_SAMPLES

MEASURED = "measured"
"""Value of ``--delay`` without a time."""
CLEAR_PEAK = 0.5
"""Least height of the correlation's peak of a delay that is removed unasked. Unrelated noise of
10 000 samples reaches 0.4."""


def delay_removal(
    given: str | None, fs: float, win_length: int, band_hz: tuple[float, float] | None
) -> "DelayRemoval":
    """Return what ``--delay`` says.

    Parameters
    ----------
    given : str or None
        A time, ``MEASURED``, or None: the measured one if it is clear.
    fs : float
        Sample rate [Hz].
    win_length : int
        Length of frames, two of which, overlapping by half, must remain [samples].
    band_hz : tuple of float or None
        Lowest and highest frequency that counts [Hz]; None for all but 0 Hz.

    Raises
    ------
    ConfigError
        If it is no time, or a longer one than can be removed.
    """
    removal = DelayRemoval(fs, win_length, band_hz, must_be_clear=given is None)
    if given not in (None, MEASURED):
        removal.samples = delay_in_samples(given, fs)
    return removal


def delay_in_samples(given: str, fs: float) -> int:
    """Return the time of ``--delay`` in samples; raises ConfigError."""
    seconds = parse_time(given)
    if seconds is None:
        raise ConfigError(f"--delay {given}: {TIME_RULE}")
    if not abs(seconds) * fs <= DELAY_MAX_SAMPLES:
        limit_s = DELAY_MAX_SAMPLES / fs
        raise ConfigError(f"--delay {given}: must be within +-{limit_s:.4g} s")
    return round(seconds * fs)


class DelayRemoval:
    """Delay that is removed from the response.

    Attributes
    ----------
    samples : int or None
        The removed delay [samples]; None as long as it is not measured.
    """

    def __init__(
        self,
        fs: float,
        win_length: int,
        band_hz: tuple[float, float] | None,
        *,
        must_be_clear: bool,
    ) -> None:
        self.samples: int | None = None
        self._fs, self._win_length, self._band_hz = fs, win_length, band_hz
        self._must_be_clear = must_be_clear
        self._delay: Delay | None = None

    def measure(self, reference: Float64Array, response: Float64Array) -> int:
        """Measure the delay of a response, (n,) each [FS]; return what is removed [samples].

        Raises
        ------
        ConfigError, InputError
            If it cannot be measured, and need not be clear; see ``measure_delay``.
        """
        try:
            self._delay = measure_delay(reference, response, self._fs, band_hz=self._band_hz)
        except InputError:
            if not self._must_be_clear:
                raise
        is_removed = self._delay is not None and (
            not self._must_be_clear or self._is_clear(self._delay, len(reference))
        )
        self.samples = round(self._delay.samples) if self._delay and is_removed else 0
        return self.samples

    def _is_clear(self, delay: Delay, n_samples: int) -> bool:
        size = abs(delay.samples)
        n_left = n_samples - 1.5 * self._win_length
        return abs(delay.peak) >= CLEAR_PEAK and size <= min(DELAY_MAX_SAMPLES, n_left)

    def about(self) -> dict[str, Any]:
        """Return what files say about it."""
        found: dict[str, Any] = {}
        if self._delay is not None:
            found |= {
                "delay_s": f"{self._delay.seconds:.9g}",
                "delay_samples": f"{self._delay.samples:.4f}",
                "delay_peak": f"{self._delay.peak:.4f}",
            }
        return found | {"removed_delay_samples": self.samples}

    def report(self) -> None:
        """Say on standard error which delay is removed, or why none is, unless --delay says so."""
        if self._must_be_clear and (text := self._text()):
            print(f"delay: {text}", file=sys.stderr)

    def _text(self) -> str:
        if self._delay is None:
            return "not measured, a channel is silent or too short"
        time = f"{1e3 * self._delay.seconds:.4f} ms"
        if self.samples != round(self._delay.samples):
            return (
                f"{time} is unclear (peak {self._delay.peak:.2f}) or too long, not removed; "
                "--delay removes it"
            )
        if not self.samples:
            return ""
        return f"{time} ({self._delay.samples:.2f} samples), removed; --delay 0 keeps it"
