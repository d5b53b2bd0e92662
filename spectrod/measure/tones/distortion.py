"""Distortion and noise of one tone: THD, THD+N, SINAD, SNR, SFDR, ENOB, and its harmonics."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.errors import ConfigError, InputError
from spectrod.lib.signatures import naming_arrays
from spectrod.measure.rows import full_scale_sine_db, level_spec, tone_level
from spectrod.measure.tones.meter import MISSED_MAX, ToneMeter, without_noise
from spectrod.measure.tones.peaks import find_peaks
from spectrod.measure.tones.plotted_tones import PlottedTones

HARMONICS_MAX = 100
HARMONICS_DEFAULT = 10
"""Highest harmonic by default, as in IEEE 1241."""

_IDEAL_DB = 10.0 * np.log10(1.5)
_DB_PER_BIT = 20.0 * np.log10(2.0)
"""An ideal quantiser of B bits has a SINAD of 6.02 B + 1.76 dB for a full-scale sine [dB]."""


@dataclass(frozen=True, slots=True)
class Harmonic:
    """A harmonic of the fundamental.

    Attributes
    ----------
    order : int
        Multiple of the fundamental, 2 or more.
    frequency_hz : float
        Where it is in the row [Hz].
    level_db : float
        Level; minus infinity if it is not above the noise, NaN if another tone hides it.
    is_folded : bool
        Whether it lies above fs / 2 and is folded to this frequency.
    """

    order: int
    frequency_hz: float
    level_db: float
    is_folded: bool


@dataclass(frozen=True, slots=True, repr=False)
class Distortion(PlottedTones):
    """Figures of one tone in a band.

    S is the mean square of the fundamental, D that of the harmonics, N that of everything else in
    the band; 0 Hz counts as none of them.

    Attributes
    ----------
    frequency_hz, level_db : float
        The fundamental [Hz], in ``unit``.
    thd_db : float
        Total harmonic distortion D / S [dB]; ``ratio`` gives it as a number.
    thd_n_db : float
        THD+N re total, (N + D) / (S + N + D), of AES17 [dB]. Re fundamental it is ``-sinad_db``.
    sinad_db : float
        S / (N + D) [dB].
    snr_db : float
        S / N [dB].
    sfdr_db : float
        S over the strongest tone or bin beside the fundamental [dBc].
    spur_hz : float
        Frequency of that [Hz].
    enob_bits : float
        Effective number of bits, re full scale [bits]; NaN if that differs between channels.
    harmonics : tuple of Harmonic
        From the second on; those outside the band are left out.
    band_hz : tuple of float
        Frequencies of the first and the last bin of the band [Hz].
    leakage_db : float
        Energy of the fundamental outside its bins, re fundamental [dB]. It is subtracted; figures
        below it depend on how well the tone is one.
    unit : str
        Unit of the levels.
    """

    frequency_hz: float
    level_db: float
    thd_db: float
    thd_n_db: float
    sinad_db: float
    snr_db: float
    sfdr_db: float
    spur_hz: float
    enob_bits: float
    harmonics: tuple[Harmonic, ...]
    band_hz: tuple[float, float]
    leakage_db: float
    unit: str

    def __repr__(self) -> str:
        """Return one line: the fundamental, the ratios and the number of harmonics."""
        n = len(self.harmonics)
        return (
            f"<Distortion: {self.frequency_hz:.6g} Hz at {self.level_db:.4g} {self.unit}, THD "
            f"{self.thd_db:.4g} dB, THD+N {self.thd_n_db:.4g} dB, SINAD {self.sinad_db:.4g} dB, "
            f"{n} harmonic{'' if n == 1 else 's'}>"
        )

    @property
    def thd(self) -> float:
        """Total harmonic distortion, ratio of amplitudes [1]."""
        return float(10.0 ** (self.thd_db / 20.0))

    @property
    def thd_n(self) -> float:
        """THD+N re total, ratio of amplitudes [1]."""
        return float(10.0 ** (self.thd_n_db / 20.0))


@naming_arrays
def measure_distortion(
    values: ArrayLike,
    spec: SpectrumSpec,
    *,
    harmonics: int = HARMONICS_DEFAULT,
    folded: bool = False,
    band_hz: tuple[float, float] | None = None,
    fundamental_hz: float | None = None,
) -> Distortion:
    """Measure the distortion and the noise of the strongest tone of a row.

    Parameters
    ----------
    values : (bins,) array-like
        One row in ``spec.scale.unit``: a frame, or a mean over frames.
    spec : SpectrumSpec
        Definition of the row: one-sided, unweighted, without bands.
    harmonics : int
        Highest order, 2 to ``HARMONICS_MAX``.
    folded : bool
        Whether harmonics above fs / 2 count where they are folded to, as in a converter without a
        filter. Otherwise they are left out, and what is there counts as noise.
    band_hz : tuple of float, optional
        Lowest and highest frequency that counts, as (20, 20000) of AES17 [Hz]; by default all.
    fundamental_hz : float, optional
        Expected frequency, to a main lobe of the window [Hz]; by default the strongest tone.

    Returns
    -------
    distortion : Distortion

    Raises
    ------
    ConfigError, InputError
        If a parameter breaks a rule, the row holds no tone, the fundamental is fewer bins from 0 Hz
        than the window needs, or the window leaks too much.

    Notes
    -----
    A tone's power is the sum of +-m bins of the density, less the noise floor of as many bins. m
    is as large as the window needs at the tone's fraction of a bin, for -90 dB re fundamental, but
    less than half of the fundamental. The noise is scaled up by all bins over those left.

    References
    ----------
    .. [1] IEEE Std 1241-2010: SINAD, SNR, THD, SFDR, ENOB of the coherent power of bins.
    .. [2] AES17-2020: THD+N re total, in a stated band.
    """
    if not 2 <= harmonics <= HARMONICS_MAX:
        raise ConfigError(f"harmonics={harmonics}: must be 2 to {HARMONICS_MAX}")
    meter = ToneMeter(values, spec, "distortions")
    in_band = band_mask(spec, band_hz)
    frequency = find_fundamental(values, spec, in_band, fundamental_hz)
    room = meter.require_room(frequency, "fundamental")
    meter.remove_offset(room)
    m, missed = meter.half_width(frequency, MISSED_MAX, room)
    power = meter.measure(frequency, m)
    spur, spur_hz = _spur(meter, spec, in_band)
    found = _harmonics(meter, spec, frequency, power, harmonics, folded=folded, room=room)
    floor = meter.floor_per_bin()
    signal = meter.corrected(without_noise(power, m, floor), frequency)
    clean = [
        meter.corrected(without_noise(one, width, floor), order.frequency_hz)
        for order, one, width in found
    ]
    is_in = [bool(in_band[round(order.frequency_hz / spec.delta_f)]) for order, _, _ in found]
    distortion = sum(one for one, is_one in zip(clean, is_in, strict=True) if one > 0 and is_one)
    total_noise = meter.noise_per_bin(in_band) * np.count_nonzero(in_band)
    meter.require_little_leakage(missed, meter.corrected(power, frequency), total_noise)
    level = tone_level([signal, *clean], spec)
    unit = level_spec(spec).scale.unit
    bins_hz = spec.bin_frequencies[in_band]
    sinad_db = _db(signal, total_noise + distortion)
    below_db = float(level[0]) - full_scale_sine_db(spec)
    return Distortion(
        frequency_hz=frequency,
        level_db=float(level[0]),
        thd_db=-_db(signal, distortion),
        thd_n_db=-_db(signal + total_noise + distortion, total_noise + distortion),
        sinad_db=sinad_db,
        snr_db=_db(signal, total_noise),
        sfdr_db=_db(signal, spur),
        spur_hz=spur_hz,
        enob_bits=float((sinad_db - _IDEAL_DB - below_db) / _DB_PER_BIT),
        harmonics=tuple(
            Harmonic(one.order, one.frequency_hz, float(decibels), one.is_folded)
            for (one, _, _), decibels, is_one in zip(found, level[1:], is_in, strict=True)
            if is_one
        ),
        band_hz=(float(bins_hz[0]), float(bins_hz[-1])),
        leakage_db=_db(missed, 1.0),
        unit=unit,
    )


def band_mask(spec: SpectrumSpec, band_hz: tuple[float, float] | None) -> NDArray[np.bool_]:
    """Return the bins whose middles are in a band, all without one; raises ConfigError if none."""
    if band_hz is None:
        return np.ones(spec.n_bins, np.bool_)
    low, high = band_hz
    if not 0.0 <= low < high < np.inf:
        raise ConfigError(f"band_hz=({low:g}, {high:g}): must be two ascending frequencies")
    bins_hz = spec.bin_frequencies
    found: NDArray[np.bool_] = (bins_hz >= low) & (bins_hz <= high)
    if not found.any():
        raise ConfigError(
            f"band_hz=({low:g}, {high:g}): has no bin: fs/2={spec.fs / 2:g} Hz, bins are "
            f"{spec.delta_f:g} Hz apart"
        )
    return found


def find_fundamental(
    values: ArrayLike,
    spec: SpectrumSpec,
    in_band: NDArray[np.bool_],
    expected_hz: float | None,
) -> float:
    """Return the frequency of the strongest tone in a band, or of that near a frequency [Hz].

    Raises InputError if there is none.
    """
    peaks = find_peaks(values, spec)
    k = np.round(peaks.frequency_hz / spec.delta_f).astype(np.int64)
    peaks = peaks.where(in_band[np.clip(k, 0, spec.n_bins - 1)])
    if expected_hz is not None:
        half_lobe = spec.delta_f * (ToneMeter(values, spec, "tones").kernel.lobe_bins + 1)
        peaks = peaks.where(np.abs(peaks.frequency_hz - expected_hz) <= half_lobe)
    if len(peaks) == 0:
        near = "" if expected_hz is None else f" near {expected_hz:g} Hz"
        raise InputError(f"no tone found{near}: none is 13 dB above the noise floor")
    return float(peaks.frequency_hz[np.argmax(peaks.level_db)])


def _harmonics(  # noqa: PLR0913 - internal
    meter: ToneMeter,
    spec: SpectrumSpec,
    fundamental_hz: float,
    power: float,
    last: int,
    *,
    folded: bool,
    room: int,
) -> list[tuple[Harmonic, float, int]]:
    """Return each harmonic with its power and its half width."""
    found = []
    for order in range(2, last + 1):
        true_hz = order * fundamental_hz
        is_folded = true_hz > spec.fs / 2.0
        if is_folded and not folded:
            break
        frequency = abs(true_hz - spec.fs * round(true_hz / spec.fs))
        k, narrow = round(frequency / spec.delta_f), meter.kernel.lobe_bins
        seen = float(np.sum(meter.energy[max(0, k - narrow) : k + narrow + 1]))
        # A weak harmonic may miss more of itself, for the same error.
        width, _ = meter.half_width(frequency, MISSED_MAX * power / max(seen, 1e-300), room)
        one = meter.measure(frequency, width)
        found.append((Harmonic(order, frequency, 0.0, is_folded), one, width))
    return found


def _spur(meter: ToneMeter, spec: SpectrumSpec, in_band: NDArray[np.bool_]) -> tuple[float, float]:
    """Return the mean square and the frequency of the strongest tone or bin that is left."""
    rest = np.maximum(0.0, meter.energy - meter.leakage)
    corrected = meter.rest()
    chosen = np.flatnonzero(meter.is_free & in_band)
    if len(chosen) == 0:
        raise InputError("no bins of the band are left beside the fundamental")
    k = int(chosen[np.argmax(corrected[chosen])])
    scale = spec.enbw_hz / spec.delta_f
    step = meter.kernel.step
    is_inside = step <= k < spec.n_bins - step and rest[k] > 0.0
    if not is_inside or rest[k] < max(rest[k - 1], rest[k + 1]):
        return float(max(0.0, corrected[k]) * scale), k * spec.delta_f
    near = (rest[k + by : k + by + 1] for by in (-step, 0, step))
    offset, power = meter.kernel.interpolate(*near)
    frequency = float((k + offset[0]) * spec.delta_f)
    return meter.corrected(float(power[0] * scale), frequency), frequency


def _db(power: float, reference: float) -> float:
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(10.0 * np.log10(np.float64(power) / np.float64(reference)))
