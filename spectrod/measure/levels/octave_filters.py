"""Fractional-octave filters of IEC 61260-1 as biquads, and the rates at which they run."""

from dataclasses import dataclass
from math import pi, tan

import numpy as np

from spectrod.dsp.bands import fractional_octaves, nominal_ratio
from spectrod.lib.errors import ConfigError
from spectrod.measure.levels.recursive import Section, response

FRACTIONS = (1, 3, 6, 12, 24)
"""Bands in an octave for which the filters are checked against class 1."""
ORDER = 6
"""Order of the Butterworth prototype; the band-pass has twice as many poles."""
STAGES_MAX = 12
"""Largest number of decimations by 2."""
EDGE_MAX = 0.94
"""Largest upper edge of a band, as a share of fs / 2."""

_EDGE_OF_STAGE = 0.40
"""Largest upper edge of a band, as a share of the rate to which the signal is decimated."""
_SETTLE_BANDWIDTHS = 6.0
"""Time in which a sine settles within 0.1 dB, times the bandwidth; an octave takes longest."""
_SETTLE_SAMPLES = 60.0
"""Further time for the decimators, and for bands near fs / 2 [samples of the filter]."""

# Elliptic low-pass of order 8, 0.002 dB ripple to 0.225 of the rate, 76 dB from 0.299 on: b1 of
# (1 + b1/z + 1/z^2) and a1, a2 of each section.
_DECIMATOR_GAIN = 0.014947894622679734
_DECIMATOR = (
    (1.9016680809889145, -0.4770455127123313, 0.09449830404061525),
    (1.3578175569166275, -0.34285441689487933, 0.3108741458977621),
    (0.8747282451919599, -0.18679542336407245, 0.5961489591916506),
    (0.644991058067609, -0.09587207583519658, 0.8639452717811628),
)


@dataclass(frozen=True, slots=True)
class OctaveFilter:
    """A fractional-octave filter.

    Attributes
    ----------
    name : str
        Nominal mid-band frequency, or the exact one to six digits: ``63 Hz``.
    lower_hz, centre_hz, upper_hz : float
        Band-edge and mid-band frequencies [Hz].
    stage : int
        Number of decimations by 2 before the filter.
    fs : float
        Sample rate of the filter, that of the signal / 2**stage [Hz].
    settle_s : float
        Time from the start of a sine in the band until its level is within 0.1 dB [s].
    cascade : tuple of Section
        Its biquads; the gain is 1 at the mid-band frequency.
    """

    name: str
    lower_hz: float
    centre_hz: float
    upper_hz: float
    stage: int
    fs: float
    settle_s: float
    cascade: tuple[Section, ...]


def octave_filters(
    fs: float, fraction: int, f_min_hz: float, f_max_hz: float
) -> tuple[OctaveFilter, ...]:
    """Design the filters of a bank.

    Each is a Butterworth band-pass by the bilinear transform, whose band-edge frequencies are
    exact. Filters of ``ORDER`` are wider than the ideal band by 0.05 dB of white noise; with
    gain 1 at the mid-band frequency, the sum of the bands is that much above the whole.

    Parameters
    ----------
    fs : float
        Sample rate [Hz].
    fraction : int
        Bands in an octave, one of ``FRACTIONS``.
    f_min_hz, f_max_hz : float
        Range of the nominal mid-band frequencies, > 0 [Hz]. Bands that reach above ``EDGE_MAX``
        of fs / 2 are left out.

    Returns
    -------
    filters : tuple of OctaveFilter
        One or more, ascending.

    Raises
    ------
    ConfigError
        If the fraction is unknown, or the range has no band.
    """
    if fraction not in FRACTIONS:
        one_of = ", ".join(map(str, FRACTIONS))
        raise ConfigError(f"fraction={fraction}: must be one of {one_of} bands in an octave")
    if not 0.0 < f_min_hz <= f_max_hz < float("inf"):
        raise ConfigError(
            f"must be above 0 and at most f_max_hz={f_max_hz:g}", "f_max_hz", f_min_hz=f_min_hz
        )
    lowest_hz, highest_hz = f_min_hz / nominal_ratio(fraction), f_max_hz * nominal_ratio(fraction)
    highest_hz = min(highest_hz, fs / 2.0)
    if lowest_hz < fs * 2.0 ** -(STAGES_MAX + 6):
        raise ConfigError(
            f"must be at least fs/{1 << STAGES_MAX + 6}, "
            f"{fs * 2.0 ** -(STAGES_MAX + 6) * nominal_ratio(fraction):.3g} Hz",
            f_min_hz=f_min_hz,
        )
    (lower, centre, upper), names = fractional_octaves(fraction, lowest_hz, highest_hz)
    kept = (centre >= lowest_hz) & (centre <= highest_hz) & (upper <= EDGE_MAX * fs / 2.0)
    if not kept.any():
        raise ConfigError(
            f"no band of 1/{fraction} octave lies there and below {EDGE_MAX * fs / 2.0:g} Hz",
            f_min_hz=f_min_hz,
            f_max_hz=f_max_hz,
        )
    return tuple(
        _filter(names[k], (float(lower[k]), float(centre[k]), float(upper[k])), fs)
        for k in np.flatnonzero(kept)
    )


def decimator() -> tuple[Section, ...]:
    """Return the low-pass before each decimation by 2; its gain at 0 Hz is within 0.002 dB of 1."""
    gains = (_DECIMATOR_GAIN, 1.0, 1.0, 1.0)
    return tuple(
        Section((gain, gain * b1, gain), (1.0, a1, a2))
        for gain, (b1, a1, a2) in zip(gains, _DECIMATOR, strict=True)
    )


def _filter(name: str, limits: tuple[float, float, float], fs: float) -> OctaveFilter:
    lower, centre, upper = limits
    stage = 0
    while stage < STAGES_MAX and upper <= _EDGE_OF_STAGE * fs / 2.0 ** (stage + 1):
        stage += 1
    rate = fs / 2.0**stage
    settle_s = _SETTLE_BANDWIDTHS / (upper - lower) + _SETTLE_SAMPLES / rate
    return OctaveFilter(name, lower, centre, upper, stage, rate, settle_s, _band_pass(limits, rate))


def _band_pass(limits: tuple[float, float, float], fs: float) -> tuple[Section, ...]:
    """Return a Butterworth band-pass by the bilinear transform, edges prewarped."""
    lower, centre, upper = limits
    low, high = (tan(pi * f / fs) for f in (lower, upper))
    angles = pi * (2.0 * np.arange(ORDER) + ORDER + 1.0) / (2.0 * ORDER)
    prototype = 0.5 * (high - low) * np.exp(1j * angles)
    spread = np.sqrt(prototype**2 - low * high)
    poles = np.concatenate([prototype + spread, prototype - spread])
    poles = (1.0 + poles) / (1.0 - poles)
    sections = []
    for pole in poles[poles.imag > 0.0]:
        a = (1.0, -2.0 * float(pole.real), float(abs(pole)) ** 2)
        raw = Section((1.0, 0.0, -1.0), a)
        gain = float(response([raw], np.array([centre]), fs)[0]) ** -0.5
        sections.append(Section((gain, 0.0, -gain), a))
    return tuple(sections)
