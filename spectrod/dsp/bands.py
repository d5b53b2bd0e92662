"""Bands over the bins of one-sided power spectra: fractional octaves, ear scales, millidecades.

A band's value is a sum over neighbouring bins, each weighted by its share in the band. Bin k
covers half a bin width on either side of its frequency, within 0 Hz to the Nyquist frequency: the
first and, for an even transform length, the last are half as wide.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.units import Float64Array
from spectrod.lib.errors import ConfigError

FRACTION_MAX = 96
MEL_BANDS_MAX = 1024

_RULE = (
    "must be octave, third-octave, octave/B, mel:N, bark, erb, millidecade, cqt:B, "
    "vqt:B or reassigned"
)

REASSIGNED = "reassigned"
CONSTANT_Q_PREFIXES = ("cqt:", "vqt:")
"""Starts of the names of bands that ``dsp.constant_q`` makes: they are no sums over bins."""
_OCTAVE = 10.0**0.3  # base-ten octave of IEC 61260-1
_OCTAVE_REFERENCE_HZ = 1000.0
_NOMINAL = (1.0, 1.25, 1.6, 2.0, 2.5, 3.15, 4.0, 5.0, 6.3, 8.0)
"""Nominal frequencies of third octaves in a decade; octaves have every third of them."""

AUDIBLE_MIN_HZ = 20.0
"""Nominal frequency of the lowest band that is reported if a window does not resolve it."""

_MEL_HZ = 200.0 / 3.0  # Hz per mel, up to 1 kHz
_MEL_LOG_FROM = 15.0
_MEL_LOG_STEP = np.log(6.4) / 27.0

_BARK_EDGES_HZ = (
    *(0.0, 100.0, 200.0, 300.0, 400.0, 510.0, 630.0, 770.0, 920.0, 1080.0, 1270.0, 1480.0),
    *(1720.0, 2000.0, 2320.0, 2700.0, 3150.0, 3700.0, 4400.0, 5300.0, 6400.0, 7700.0, 9500.0),
    *(12000.0, 15500.0),
)
_BARK_CENTRES_HZ = (
    *(50.0, 150.0, 250.0, 350.0, 450.0, 570.0, 700.0, 840.0, 1000.0, 1170.0, 1370.0, 1600.0),
    *(1850.0, 2150.0, 2500.0, 2900.0, 3400.0, 4000.0, 4800.0, 5800.0, 7000.0, 8500.0, 10500.0),
    13500.0,
)
_BARK_TOP, _BARK_HZ, _BARK_OFFSET = 26.81, 1960.0, 0.53
_ERB_RATE = 21.4  # ERB-rate for each decade of 1 + f / _ERB_HZ
_ERB_HZ = 1000.0 / 4.37

_LINEAR_BANDS = 435  # 1 Hz wide; millidecade 2638 is the first of at least that width


@dataclass(frozen=True, slots=True, eq=False)
class Bands:
    """Bands in ascending order, each with at least one bin. Arrays are read-only.

    Attributes
    ----------
    lower, centre, upper : (n,) float64
        Edges, and the frequency that names the band [Hz].
    width : (n,) float64
        Divisor from a band's mean square to its mean density: upper - lower, or half of it for
        triangles [Hz].
    first, count : (n,) int64
        First bin of a band, and its number of bins, >= 1.
    shares : (count.sum(),) float64
        Share of each bin in the band, above 0 to 1, band after band [1].
    names : tuple of str
        Names of fractional octaves: ``63 Hz``, ``1.25 kHz``. Octaves and third octaves have nominal
        mid-band frequencies [1]_, other fractions exact ones to six digits. Names of critical
        bands: ``Bark 1`` to ``Bark 24``; of ERB bands: ``ERB 1``, ``ERB 2``. Empty for other bands.
    unresolved : tuple of str
        Names of bands, of fractional octaves those from ``AUDIBLE_MIN_HZ`` on, that are dropped
        because they are narrower than a bin.
    resolving_hz : float
        Bin width that resolves them all [Hz]; 0 if there are none.

    References
    ----------
    .. [1] IEC 61260-1:2014, annex E; the same frequencies as in ISO 266:1997.
    """

    lower: Float64Array
    centre: Float64Array
    upper: Float64Array
    width: Float64Array
    first: NDArray[np.int64]
    count: NDArray[np.int64]
    shares: Float64Array
    names: tuple[str, ...] = ()
    unresolved: tuple[str, ...] = ()
    resolving_hz: float = 0.0

    def __len__(self) -> int:
        return len(self.centre)


@lru_cache(maxsize=16)
def get_bands(name: str, fs: float, nfft: int) -> Bands:
    """Return the named bands over the bins of a transform.

    Bands that extend beyond fs / 2 are dropped, because their level would be that of a part of
    them. Fractional octaves, critical bands and ERB bands narrower than a bin are dropped too,
    because their bins would not separate them; ``Bands.unresolved`` names them.
    A bin that contains an edge belongs to both bands, in proportion.

    Parameters
    ----------
    name : str
        ``"octave"``, ``"third-octave"`` or ``"octave/B"``: B bands per octave, 1 to
        ``FRACTION_MAX``, base ten, exact frequencies [1]_. ``"mel:N"``: N triangles between 0 Hz
        and fs / 2, evenly spaced in Slaney's mel [2]_, 1 at their centre, evaluated at the bins;
        for densities their area is 1, like that of Slaney's filters. ``"bark"``: the 24 critical
        bands from 0 to 15.5 kHz by Zwicker's table [4]_. ``"erb"``: band n from n - 1 to n on the
        ERB-rate scale [5]_, from 0 Hz; its centre is at n - 1/2. ``"millidecade"``: 1 Hz wide
        around 0, 1, ... 434 Hz, then a thousand per decade, from ``10**(i / 1000)`` to
        ``10**((i + 1) / 1000)`` Hz, from i = 2638 on [3]_. This is the table that its authors
        published as code, and that Triton and PyPAM use. The band around 434 Hz extends by 0.01 Hz
        to the start of the first of those. ``"reassigned"``: one for each bin, of the power that
        lies there by reassignment (``spectrod.analysis.reassigned_rows``), instead of the bin's.
    fs : float
        Sample rate [Hz].
    nfft : int
        Transform length.

    Returns
    -------
    bands : Bands
        One or more bands; shared between callers.

    Raises
    ------
    ConfigError
        If the name is unknown, no band is left, bins are wider than 1 Hz for millidecades, or a mel
        band has no bin.

    References
    ----------
    .. [1] IEC 61260-1:2014, 5.2 to 5.5.
    .. [2] M. Slaney, "Auditory Toolbox, version 2", Interval Research, 1998.
    .. [3] S. B. Martin et al., "Hybrid millidecade spectra: A practical format for exchange of
       long-term ambient sound data", JASA Express Letters 1(1), 011203, 2021.
    .. [4] E. Zwicker, "Subdivision of the audible frequency range into critical bands", J. Acoust.
       Soc. Am. 33, 1961.
    .. [5] B. R. Glasberg, B. C. J. Moore, "Derivation of auditory filter shapes from notched-noise
       data", Hearing Research 47, 1990, eq. 3 and 4.
    """
    make, number = _parse(name)
    bands = make(number, fs, nfft)
    if len(bands) == 0:
        raise ConfigError(
            f"none lies below fs/2={fs / 2:g} Hz and is as wide as a bin, {fs / nfft:g} Hz",
            bands=name,
        )
    for values in (bands.lower, bands.centre, bands.upper, bands.width):
        values.setflags(write=False)
    for table in (bands.first, bands.count, bands.shares):
        table.setflags(write=False)
    return bands


def is_host_only(name: str) -> bool:
    """Return whether only NumPy computes bands: there are no kernels for them."""
    return name == REASSIGNED or name.startswith(CONSTANT_Q_PREFIXES)


def check_name(name: str) -> None:
    """Check the name of bands, independent of the bins; raises ConfigError."""
    if name.startswith(CONSTANT_Q_PREFIXES):
        number_in_name(name, name.partition(":")[2], FRACTION_MAX)
    else:
        _parse(name)


def _parse(name: str) -> tuple[Callable[[int, float, int], Bands], int]:
    if name in _WITHOUT_NUMBER:
        return _WITHOUT_NUMBER[name], 0
    if name in ("octave", "third-octave"):
        return _octaves, 1 if name == "octave" else 3
    if name.startswith("octave/"):
        return _octaves, number_in_name(name, name.removeprefix("octave/"), FRACTION_MAX)
    if name.startswith("mel:"):
        return _mel, number_in_name(name, name.removeprefix("mel:"), MEL_BANDS_MAX)
    raise ConfigError(_RULE, bands=name)


def number_in_name(name: str, text: str, largest: int) -> int:
    """Return the number in a name of bands, 1 to ``largest``; raises ConfigError."""
    number = int(text) if text.isascii() and text.isdecimal() else 0
    if not 1 <= number <= largest:
        raise ConfigError(f"{text!r} must be a whole number, 1 to {largest}", bands=name)
    return number


def _octaves(fraction: int, fs: float, nfft: int) -> Bands:
    # No band is wider than its centre frequency.
    limits, names = fractional_octaves(fraction, min(fs / nfft, AUDIBLE_MIN_HZ / 2.0), fs / 2.0)
    audible = AUDIBLE_MIN_HZ / nominal_ratio(fraction)
    return _resolved(limits, names, fs, nfft, reported_from_hz=audible)


def fractional_octaves(
    fraction: int, lowest_hz: float, highest_hz: float
) -> tuple[tuple[Float64Array, Float64Array, Float64Array], list[str]]:
    """Return fractional octaves around 1 kHz; an even fraction is offset by half a band [1]_.

    Parameters
    ----------
    fraction : int
        Bands in an octave, 1 to ``FRACTION_MAX``.
    lowest_hz, highest_hz : float
        Range of the mid-band frequencies, > 0, extended by up to a band at both ends [Hz].

    Returns
    -------
    limits : tuple of three (n,) float64
        Lower edges, mid-band frequencies, upper edges [Hz].
    names : list of str
        See ``Bands``.

    References
    ----------
    .. [1] IEC 61260-1:2014, 5.2 to 5.5.
    """
    offset = 0.0 if fraction % 2 else 0.5
    ends_hz = np.array([lowest_hz, highest_hz])
    below, above = fraction * np.log(ends_hz / _OCTAVE_REFERENCE_HZ) / np.log(_OCTAVE)
    steps = np.arange(np.floor(below), np.ceil(above) + 1) + offset
    centre = _OCTAVE_REFERENCE_HZ * _OCTAVE ** (steps / fraction)
    half = _OCTAVE ** (0.5 / fraction)
    return (centre / half, centre, centre * half), [_octave_name(f, fraction) for f in centre]


def nominal_ratio(fraction: int) -> float:
    """Return the largest ratio by which a nominal mid-band frequency may miss the exact one."""
    return float(_OCTAVE ** (0.25 / max(fraction, 3)))


def _octave_name(centre: float, fraction: int) -> str:
    """Name a band by its nominal mid-band frequency, or by its exact one."""
    if fraction in (1, 3):
        decade, number = divmod(round(10.0 * np.log10(centre)), 10)
        centre = float(f"{_NOMINAL[number]}e{decade}")
    return exact_name(centre)


def exact_name(centre: float) -> str:
    """Name a band by six digits of its mid-band frequency [Hz]."""
    for unit_hz, unit in ((1e6, "MHz"), (1e3, "kHz")):
        if centre >= unit_hz:
            return f"{centre / unit_hz:.6g} {unit}"
    return f"{centre:.6g} Hz"


def _bins(_: int, fs: float, nfft: int) -> Bands:
    """Return a band for each bin, as wide as its cell."""
    centre = np.arange(nfft // 2 + 1) * fs / nfft
    half = 0.5 * fs / nfft
    lower, upper = np.maximum(0.0, centre - half), np.minimum(fs / 2.0, centre + half)
    return _rectangles(lower, centre, upper, fs, nfft)


def _critical_bands(_: int, fs: float, nfft: int) -> Bands:
    """Return Zwicker's critical bands; a name is a band's number."""
    edges = np.array(_BARK_EDGES_HZ)
    names = [f"Bark {n + 1}" for n in range(len(_BARK_CENTRES_HZ))]
    return _resolved((edges[:-1], np.array(_BARK_CENTRES_HZ), edges[1:]), names, fs, nfft)


def _erb_bands(_: int, fs: float, nfft: int) -> Bands:
    """Return bands of 1 on the ERB-rate scale."""
    rates = np.arange(float(hz_to_erb_rate(np.array(fs / 2.0))) // 1.0 + 1.0)
    edges, centres = erb_rate_to_hz(rates), erb_rate_to_hz(rates[1:] - 0.5)
    names = [f"ERB {n + 1}" for n in range(len(centres))]
    return _resolved((edges[:-1], centres, edges[1:]), names, fs, nfft)


def _resolved(
    limits: tuple[Float64Array, Float64Array, Float64Array],
    names: Sequence[str],
    fs: float,
    nfft: int,
    *,
    reported_from_hz: float = 0.0,
) -> Bands:
    """Return the bands at least as wide as a bin; name the others, from a centre on.

    The limits are lower, centre and upper frequencies; widths ascend [Hz].
    """
    lower, centre, upper = limits
    is_wide, is_below = upper - lower >= fs / nfft, upper <= fs / 2.0
    is_missed = ~is_wide & is_below & (centre >= reported_from_hz)
    kept = is_wide & is_below
    return replace(
        _rectangles(lower[kept], centre[kept], upper[kept], fs, nfft),
        names=tuple(compress(names, kept)),
        unresolved=tuple(compress(names, is_missed)),
        resolving_hz=float((upper - lower)[is_missed].min()) if is_missed.any() else 0.0,
    )


def _millidecades(_: int, fs: float, nfft: int) -> Bands:
    if fs > nfft:
        raise ConfigError(
            f"bands='millidecade': bins are {fs / nfft:g} Hz wide, must be 1 Hz or less: "
            f"nfft={nfft} must be at least fs={fs:g}",
            "bands",
            "nfft",
        )
    lower, centre, upper = millidecade_limits(fs / 2.0)
    lower[0] = 0.0
    return _rectangles(lower, centre, upper, fs, nfft)


def millidecade_limits(highest_hz: float) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return the lower edges, centres and upper edges of hybrid millidecades [Hz] [1]_.

    They reach from -0.5 Hz to the first edge at or above ``highest_hz``, at least to 434.5 Hz.

    References
    ----------
    .. [1] S. B. Martin et al., JASA Express Letters 1(1), 011203, 2021, and its published code.
    """
    linear = np.arange(float(_LINEAR_BANDS))
    first = int(np.floor(1000.0 * np.log10(_LINEAR_BANDS)))
    steps = np.arange(first, max(first, np.ceil(1000.0 * np.log10(highest_hz))) + 1.0)
    centre = np.concatenate([linear, 10.0 ** ((steps[:-1] + 0.5) / 1000.0)])
    edges = np.concatenate([linear - 0.5, 10.0 ** (steps / 1000.0)])
    return edges[:-1].copy(), centre, edges[1:]


def _rectangles(
    lower: Float64Array, centre: Float64Array, upper: Float64Array, fs: float, nfft: int
) -> Bands:
    """Return the bands that end below fs / 2; shares are their overlaps with the bins."""
    lower, centre, upper = (values[upper <= fs / 2.0] for values in (lower, centre, upper))
    bins = np.arange(nfft // 2 + 1)
    starts = np.maximum(0.0, bins - 0.5) * fs / nfft
    ends = np.minimum(nfft / 2.0, bins + 0.5) * fs / nfft
    first = np.searchsorted(ends, lower, side="right")
    past = np.searchsorted(starts, upper, side="left")
    band, k = _members(first, past - first)
    overlap = np.minimum(ends[k], upper[band]) - np.maximum(starts[k], lower[band])
    shares = overlap / (ends[k] - starts[k])
    return Bands(lower, centre, upper, upper - lower, first, past - first, shares)


def _mel(n_bands: int, fs: float, nfft: int) -> Bands:
    top = float(hz_to_mel(np.array(fs / 2.0)))
    points = mel_to_hz(np.linspace(0.0, top, n_bands + 2))
    points[-1] = fs / 2.0  # without rounding errors
    lower, centre, upper = points[:-2], points[1:-1], points[2:]
    frequencies = np.arange(nfft // 2 + 1) * fs / nfft
    first = np.searchsorted(frequencies, lower, side="right")
    count = np.searchsorted(frequencies, upper, side="left") - first
    if (count < 1).any():
        empty = int(np.argmin(count))
        raise ConfigError(
            f"bands='mel:{n_bands}': band {empty}, {lower[empty]:g} to {upper[empty]:g} Hz, has no "
            f"bin: must be fewer bands, or a larger nfft than {nfft}",
            "bands",
        )
    band, k = _members(first, count)
    f = frequencies[k]
    rise = (f - lower[band]) / (centre - lower)[band]
    fall = (upper[band] - f) / (upper - centre)[band]
    shares = np.minimum(rise, fall)
    return Bands(lower, centre, upper, (upper - lower) / 2.0, first, count, shares)


def _members(first: NDArray[np.int64], count: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """Return the band and the bin of every share."""
    band = np.repeat(np.arange(len(first)), count)
    within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    return band, np.repeat(first, count) + within


def hz_to_mel(hz: Float64Array) -> Float64Array:
    """Slaney's mel of frequencies >= 0 [Hz]: linear up to 1 kHz, logarithmic above."""
    linear = np.asarray(hz) / _MEL_HZ
    past = np.maximum(1.0, linear / _MEL_LOG_FROM)
    return np.asarray(np.minimum(linear, _MEL_LOG_FROM) + np.log(past) / _MEL_LOG_STEP)


def mel_to_hz(mel: Float64Array) -> Float64Array:
    """Frequency [Hz] of Slaney's mel: the inverse of ``hz_to_mel``."""
    past = np.maximum(0.0, mel - _MEL_LOG_FROM)
    hz: Float64Array = _MEL_HZ * np.minimum(mel, _MEL_LOG_FROM) * np.exp(past * _MEL_LOG_STEP)
    return hz


def hz_to_erb_rate(hz: Float64Array) -> Float64Array:
    """ERB-rate of frequencies >= 0 [Hz]: 21.4 lg(1 + 4.37 f / kHz) (Glasberg and Moore 1990)."""
    return np.asarray(_ERB_RATE * np.log10(1.0 + np.asarray(hz) / _ERB_HZ))


def erb_rate_to_hz(rate: Float64Array) -> Float64Array:
    """Frequency [Hz] of an ERB-rate: the inverse of ``hz_to_erb_rate``."""
    return np.asarray(_ERB_HZ * (10.0 ** (np.asarray(rate) / _ERB_RATE) - 1.0))


def hz_to_bark(hz: Float64Array) -> Float64Array:
    """Critical-band rate [Bark] of frequencies >= 0 [Hz]: 26.81 f / (1960 Hz + f) - 0.53.

    Source: H. Traunmueller, "Analytical expressions for the tonotopic sensory scale", J. Acoust.
    Soc. Am. 88, 1990. From 0.2 to 6.7 kHz it is within 0.05 Bark of Zwicker's table.
    """
    hz = np.asarray(hz)
    return np.asarray(_BARK_TOP * hz / (_BARK_HZ + hz) - _BARK_OFFSET)


def bark_to_hz(bark: Float64Array) -> Float64Array:
    """Frequency [Hz] of a critical-band rate: the inverse of ``hz_to_bark``."""
    rate = np.asarray(bark) + _BARK_OFFSET
    return np.asarray(_BARK_HZ * rate / (_BARK_TOP - rate))


_WITHOUT_NUMBER: Mapping[str, Callable[[int, float, int], Bands]] = {
    "bark": _critical_bands,
    "erb": _erb_bands,
    "millidecade": _millidecades,
    REASSIGNED: _bins,
}
