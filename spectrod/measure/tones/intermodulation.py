"""Intermodulation of two tones: SMPTE (low and high) and CCIF (two close ones)."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.errors import ConfigError, InputError
from spectrod.lib.signatures import naming_arrays
from spectrod.measure.rows import level_spec, tone_level
from spectrod.measure.tones.meter import MISSED_MAX, ToneMeter, without_noise
from spectrod.measure.tones.peaks import find_peaks

IntermodulationKind = Literal["smpte", "ccif"]

_SMPTE_RATIO_MIN = 5.0
"""Lowest ratio of the frequencies of SMPTE's tones [1]; lower ones are harmonics of one tone."""
_SMPTE_DIFFERENCE_MAX_DB = 20.0
"""Largest difference of the levels of SMPTE's tones, 12 dB by its definition [dB]."""
_CCIF_RATIO_MAX = 1.5
"""Ratio of the frequencies of CCIF's tones at which f2-f1 and 2f1-f2 coincide [1]."""
_CCIF_DIFFERENCE_MAX_DB = 6.0
"""Largest difference of the levels of CCIF's tones, 0 dB by its definition [dB]."""


@dataclass(frozen=True, slots=True)
class IntermodulationProduct:
    """A product of intermodulation.

    Attributes
    ----------
    name : str
        Frequency in terms of the tones, as ``f2-f1``.
    order : int
        Order of the non-linearity, 2 or 3.
    frequency_hz : float
        Frequency [Hz].
    level_db : float
        Level; minus infinity if it is not above the noise.
    """

    name: str
    order: int
    frequency_hz: float
    level_db: float


@dataclass(frozen=True, slots=True)
class Intermodulation:
    """Intermodulation distortion, by both usual conventions.

    Attributes
    ----------
    kind : {"smpte", "ccif"}
        SMPTE RP 120: amplitudes re that of the high tone. CCIF, IEC 60268-3: re the sum of the
        amplitudes of both tones, which is twice one of equal tones.
    frequencies_hz, levels_db : tuple of float
        Lower and higher tone [Hz], in ``unit``.
    rss : float
        Root of the sum of the squares of all products, over the reference [1].
    pairs : float
        The same, with the amplitudes of the products of one order added first [1]: what a
        demodulator shows when both sidebands are in phase.
    products : tuple of IntermodulationProduct
        Second and third order.
    unit : str
        Unit of the levels.
    """

    kind: IntermodulationKind
    frequencies_hz: tuple[float, float]
    levels_db: tuple[float, float]
    rss: float
    pairs: float
    products: tuple[IntermodulationProduct, ...]
    unit: str


@naming_arrays
def measure_intermodulation(
    values: ArrayLike, spec: SpectrumSpec, kind: IntermodulationKind
) -> Intermodulation:
    """Measure the intermodulation of the two strongest tones of a row.

    Parameters
    ----------
    values : (bins,) array-like
        One row in ``spec.scale.unit``: a frame, or a mean over frames.
    spec : SpectrumSpec
        Definition of the row: one-sided, unweighted, without bands.
    kind : {"smpte", "ccif"}
        Products and reference: with ``smpte`` (60 Hz and 7 kHz, 4:1) f2 -+ f1 and f2 -+ 2 f1; with
        ``ccif`` (19 and 20 kHz, 1:1) f2 - f1, 2 f1 - f2 and 2 f2 - f1.

    Returns
    -------
    intermodulation : Intermodulation

    Raises
    ------
    ConfigError, InputError
        If kind is another, the two strongest tones of the row are not those of the kind, a product
        is outside 0 Hz to fs / 2, or the products are closer together than the window resolves.
    """
    if kind not in get_args(IntermodulationKind):
        raise ConfigError(
            f"kind={kind!r}: must be one of {', '.join(get_args(IntermodulationKind))}"
        )
    meter = ToneMeter(values, spec, "intermodulations")
    low, high = _two_tones(values, spec, kind)
    places = _places(kind, low, high)
    for name, _, frequency in places:
        if not 0.0 < frequency < spec.fs / 2.0:
            raise InputError(f"{name} of {low:.6g} and {high:.6g} Hz: must lie below fs/2")
    spacing = low if kind == "smpte" else high - low
    room = meter.require_room(spacing, "spacing of the products")
    meter.remove_offset(room)
    widths, powers, leaking = [], [], 0.0
    for frequency in (low, high, *(frequency for _, _, frequency in places)):
        width, missed = meter.half_width(frequency, MISSED_MAX, room)
        widths.append(width)
        powers.append(meter.measure(frequency, width))
        leaking = max(leaking, missed)
    if np.isnan(powers).any():
        raise InputError(f"tones of {low:.6g} and {high:.6g} Hz: products coincide with them")
    floor = meter.floor_per_bin()
    meter.require_little_leakage(leaking, max(powers), floor * spec.n_bins + sum(powers[2:]))
    frequencies = (low, high, *(frequency for _, _, frequency in places))
    clean = [
        meter.corrected(without_noise(power, width, floor), frequency)
        for power, width, frequency in zip(powers, widths, frequencies, strict=True)
    ]
    amplitudes = np.sqrt(clean)
    reference = amplitudes[1] if kind == "smpte" else amplitudes[0] + amplitudes[1]
    by_order: dict[int, float] = {}
    for (_, order, _), amplitude in zip(places, amplitudes[2:].tolist(), strict=True):
        by_order[order] = by_order.get(order, 0.0) + amplitude
    level = tone_level(clean, spec)
    return Intermodulation(
        kind,
        (low, high),
        (float(level[0]), float(level[1])),
        float(np.sqrt(np.sum(amplitudes[2:] ** 2)) / reference),
        float(np.sqrt(sum(one**2 for one in by_order.values())) / reference),
        tuple(
            IntermodulationProduct(*place, float(one))
            for place, one in zip(places, level[2:], strict=True)
        ),
        level_spec(spec).scale.unit,
    )


def _two_tones(
    values: ArrayLike, spec: SpectrumSpec, kind: IntermodulationKind
) -> tuple[float, float]:
    peaks = find_peaks(values, spec, max_peaks=2)
    if len(peaks) < 2:
        raise InputError(f"{len(peaks)} tones found: intermodulation needs two, 13 dB above noise")
    low, high = peaks.frequency_hz.tolist()
    difference_db = abs(float(np.diff(peaks.level_db)[0]))
    if kind == "smpte":
        limit_db, needs = _SMPTE_DIFFERENCE_MAX_DB, f"{_SMPTE_RATIO_MIN:g} times f1 or more"
        is_kind = high >= _SMPTE_RATIO_MIN * low
    else:
        limit_db, needs = _CCIF_DIFFERENCE_MAX_DB, f"less than {_CCIF_RATIO_MAX:g} times f1"
        is_kind = high < _CCIF_RATIO_MAX * low
    if not is_kind or difference_db > limit_db:
        raise InputError(
            f"the strongest tones, {low:.6g} and {high:.6g} Hz with {difference_db:.1f} dB between "
            f"them, are not those of {kind}: f2 must be {needs}, within {limit_db:g} dB"
        )
    return low, high


def _places(kind: IntermodulationKind, low: float, high: float) -> list[tuple[str, int, float]]:
    if kind == "smpte":
        return [
            ("f2-f1", 2, high - low),
            ("f2+f1", 2, high + low),
            ("f2-2f1", 3, high - 2.0 * low),
            ("f2+2f1", 3, high + 2.0 * low),
        ]
    return [
        ("f2-f1", 2, high - low),
        ("2f1-f2", 3, 2.0 * low - high),
        ("2f2-f1", 3, 2.0 * high - low),
    ]
