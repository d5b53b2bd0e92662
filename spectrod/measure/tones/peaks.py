"""Tones in rows of power: interpolated peaks above the noise floor and other tones' leakage."""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import Float64Array
from spectrod.lib.errors import ConfigError
from spectrod.lib.signatures import naming_arrays
from spectrod.measure.noise_floor import (
    block_bins,
    block_medians,
    floor_at,
    floor_beside,
    mean_over_median,
)
from spectrod.measure.rows import as_rows, level_spec, require_bins, to_spectrum, tone_level
from spectrod.measure.tones.kernel import WindowKernel, leakage_envelope, window_kernel
from spectrod.measure.tones.leakage import RowLeakage
from spectrod.measure.tones.plotted_tones import PlottedTones
from spectrod.measure.tones.row_factors import Factors, row_factors, without_factors

PEAKS_MAX = 1024
"""Maximum number of peaks of a row."""

THRESHOLD_DB = 13.0
"""Default height above the noise floor [dB]: a bin of white noise exceeds it with a probability of
2e-9."""

_CANDIDATES = 8
"""Local maxima that are examined, the strongest first, for each peak that may be returned."""

_LEAKAGE_AMPLITUDE = 1.5
"""Factor by which a peak must exceed the leakage of all stronger ones [1]."""

_BLOCK_VALUES = 1 << 21
"""Values that are converted to float64 at a time."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Peaks(PlottedTones):
    """Tones of one or more rows, by row, then signal, then frequency.

    Attributes
    ----------
    row, signal : (n,) int64
        Row and signal of each peak.
    frequency_hz : (n,) float64
        Interpolated frequency [Hz].
    level_db : (n,) float64
        Interpolated level, in ``unit``.
    floor_db : (n,) float64
        Level of the noise in a bin there, in ``unit``; minus infinity without noise.
    frequency_sd_hz : (n,) float64
        Standard deviation of the frequency of one frame in that noise [Hz]; a mean of K independent
        frames has ``1 / sqrt(K)`` of it.
    level_sd_db : (n,) float64
        Standard deviation of the level, likewise [dB].
    unit : str
        Unit of the levels, as of rows with ``scaling="dbfs"``.
    """

    row: NDArray[np.int64]
    signal: NDArray[np.int64]
    frequency_hz: Float64Array
    level_db: Float64Array
    floor_db: Float64Array
    frequency_sd_hz: Float64Array
    level_sd_db: Float64Array
    unit: str

    def __len__(self) -> int:
        return len(self.row)

    def __repr__(self) -> str:
        """Return one line: how many, of how many rows, and the strongest."""
        if not len(self):
            return "<Peaks: none>"
        top, n_rows = int(np.argmax(self.level_db)), len(np.unique(self.row))
        return (
            f"<Peaks: {len(self)} in {n_rows} row{'' if n_rows == 1 else 's'}, strongest "
            f"{self.frequency_hz[top]:.6g} Hz at {self.level_db[top]:.4g} {self.unit}>"
        )

    def where(self, chosen: NDArray[np.bool_] | NDArray[np.int64]) -> "Peaks":
        """Return the peaks that a mask or indices choose."""
        arrays = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "unit"}
        return Peaks(**{name: values[chosen] for name, values in arrays.items()}, unit=self.unit)

    def of(self, row: int, signal: int = 0) -> "Peaks":
        """Return the peaks of one row of a signal."""
        return self.where((self.row == row) & (self.signal == signal))


@naming_arrays
def find_peaks(
    values: ArrayLike,
    spec: SpectrumSpec,
    *,
    max_peaks: int = 64,
    threshold_db: float = THRESHOLD_DB,
    distance_hz: float = 0.0,
) -> Peaks:
    """Find the tones of rows.

    A tone is a local maximum that exceeds the noise floor by ``threshold_db``, and the leakage of
    0 Hz and of all stronger tones through the window's side lobes by 3.5 dB. The noise floor is the
    median of at least 64 neighbouring bins, over the ratio of median to mean of noise.

    Parameters
    ----------
    values : (bins,), (rows, bins) or (rows, signals, bins) array-like
        Rows in ``spec.scale.unit``, of any scaling.
    spec : SpectrumSpec
        Definition of the rows; one-sided, or two-sided of I/Q. A weighting applies to the levels.
    max_peaks : int
        Maximum of peaks of each row, 1 to ``PEAKS_MAX``; the strongest.
    threshold_db : float
        Height above the noise floor, at least 0 [dB].
    distance_hz : float
        Minimum distance from all stronger peaks, at least 0 [Hz]; the half width of the window's
        main lobe is enforced in any case.

    Returns
    -------
    peaks : Peaks

    Raises
    ------
    ConfigError, InputError
        If a parameter, the spec or the shape breaks a rule.

    Notes
    -----
    The interpolation inverts the window's kernel: of one complex tone without noise it errs by less
    than 1e-6 bins and 1e-4 dB with each named window. A real tone has an image at minus its
    frequency, whose leakage is an error: 1e-6 bins with a Hann window from bin 100 on. Rows in
    float32 add their rounding. NaN is no peak.

    The correction of a frequency response, and a weighting, are taken out of the bins first. Levels
    and floors have that at the tone's frequency.
    """
    require_bins(spec, "tones")
    rows = as_rows(values, spec)
    _check(max_peaks, threshold_db, distance_hz)
    kernel = window_kernel(spec.taper, spec.nfft)
    limits = max_peaks, threshold_db, distance_hz
    search = _PeakSearch(spec, kernel, rows.shape[1], limits)
    n_block = max(1, _BLOCK_VALUES // max(1, rows[:1].size))
    found = [search.block(rows[n : n + n_block], n) for n in range(0, len(rows), n_block)]
    found = found or [search.block(rows, 0)]
    arrays = [np.concatenate(parts) for parts in zip(*found, strict=True)]
    return search.peaks(*arrays)


def _check(max_peaks: int, threshold_db: float, distance_hz: float) -> None:
    if not 1 <= max_peaks <= PEAKS_MAX:
        raise ConfigError(f"max_peaks={max_peaks}: must be 1 to {PEAKS_MAX}")
    if not 0.0 <= threshold_db < np.inf:
        raise ConfigError(f"threshold_db={threshold_db:g}: must be a level of at least 0 dB")
    if not 0.0 <= distance_hz < np.inf:
        raise ConfigError(f"distance_hz={distance_hz:g}: must be a frequency of at least 0 Hz")


class _PeakSearch:
    """Finds the bins of peaks in blocks of rows."""

    def __init__(
        self,
        spec: SpectrumSpec,
        kernel: WindowKernel,
        n_signals: int,
        limits: tuple[int, float, float],
    ) -> None:
        max_peaks, threshold_db, distance_hz = limits
        self._spec, self._kernel, self._max_peaks = spec, kernel, max_peaks
        self._threshold = 10.0 ** (threshold_db / 10.0)
        self._distance = max(kernel.lobe_bins, distance_hz / spec.delta_f)
        self._amplitude = np.sqrt(leakage_envelope(spec.taper, spec.nfft))
        self._n_block = block_bins(kernel.lobe_bins, spec.n_bins)
        self._leakage = RowLeakage(spec, self._n_block)
        self._to_mean = mean_over_median(spec)
        self.factors = [row_factors(spec, signal) for signal in range(n_signals)]

    def block(self, rows: NDArray[np.floating], first: int) -> tuple[NDArray[np.floating], ...]:
        """Return row, signal, bin, floor, leakage of others, and the powers around each peak."""
        power = to_spectrum(rows, self._spec)
        for signal, factors in enumerate(self.factors):
            power[:, signal] = without_factors(power[:, signal], self._spec, factors)
        if not self._spec.iq:
            # A tone at 0 Hz or at Nyquist shows half of its mean square.
            power[..., 0] *= 2.0
            if self._spec.nfft % 2 == 0:
                power[..., -1] *= 2.0
        medians = block_medians(power, self._n_block) * self._to_mean
        is_peak = self._local_maxima(power)
        found = []
        for row, signal in np.ndindex(power.shape[:2]):
            bins, floor = self._row(
                power[row, signal],
                np.flatnonzero(is_peak[row, signal]),
                medians[row, signal],
                self.factors[signal],
            )
            near = self._around(power[row, signal], bins)
            beside = self._beside(power[row, signal], bins, floor, near)
            found.append(
                (np.full(len(bins), first + row), np.full(len(bins), signal), bins, *beside, *near)
            )
        if not found:
            return tuple(np.empty(0, kind) for kind in "qqqddddd")
        return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))

    def _beside(
        self,
        power: Float64Array,
        bins: NDArray[np.int64],
        floor: Float64Array,
        near: tuple[Float64Array, ...],
    ) -> tuple[Float64Array, Float64Array]:
        """Return the noise in a bin at each peak without tones, and what other tones leak there."""
        if not len(bins):
            return floor, floor
        step, reach = self._kernel.step, self._kernel.lobe_bins
        offset, tone_power = self._kernel.interpolate(*near)
        leakage, leaked = self._leakage.of_tones(power, bins, offset, tone_power, floor, step)
        is_free = np.ones(len(power), np.bool_)
        within = np.arange(-reach, reach + 1)
        # Lower maxima may be those of noise, without which the rest would be too low.
        is_tall = power[bins] > 10.0 ** (THRESHOLD_DB / 10.0) * floor
        lobes = bins[is_tall, np.newaxis] + within
        if self._spec.iq:
            is_free[lobes % len(power)] = False
        else:
            is_free[np.clip(lobes, 0, len(power) - 1)] = False
            is_free[: reach + 1] = False
        beside = floor_beside(power - leakage, is_free, bins, self._n_block, self._to_mean)
        return floor if beside is None else beside, leaked

    def _local_maxima(self, power: Float64Array) -> NDArray[np.bool_]:
        above = power > np.roll(power, 1, axis=-1)
        above &= power >= np.roll(power, -1, axis=-1)
        if not self._spec.iq:
            above[..., : self._kernel.step] = False
            above[..., -self._kernel.step :] = False
        return above

    def _around(self, power: Float64Array, bins: NDArray[np.int64]) -> tuple[Float64Array, ...]:
        step = self._kernel.step
        return tuple(power[(bins + by) % len(power)] for by in (-step, 0, step))

    def _row(
        self,
        power: Float64Array,
        bins: NDArray[np.int64],
        medians: Float64Array,
        factors: Factors | None,
    ) -> tuple[NDArray[np.int64], Float64Array]:
        """Return the bins of the peaks of a row among its local maxima, and the floor there."""
        floor = floor_at(medians, self._n_block, len(power), bins)
        is_high = power[bins] > self._threshold * floor
        bins, floor = bins[is_high], floor[is_high]
        strongest = np.argsort(-power[bins], kind="stable")[: _CANDIDATES * self._max_peaks]
        bins, floor = bins[strongest], floor[strongest]
        # The strongest with the factors need not be those without.
        kept = self._separate(power, bins, self._max_peaks if factors is None else len(bins))
        if factors is not None:
            levels = power[bins[kept]] * factors(self._spec.bin_frequencies[bins[kept]])
            kept = kept[np.argsort(-levels, kind="stable")[: self._max_peaks]]
        return bins[kept], floor[kept]

    def _separate(
        self, power: Float64Array, bins: NDArray[np.int64], max_peaks: int
    ) -> NDArray[np.int64]:
        """Return the indices of peaks that neither a stronger one nor its leakage explains."""
        amplitude = np.sqrt(power[bins])
        is_left = np.ones(len(bins), np.bool_)
        leakage = np.zeros(len(bins))
        if not self._spec.iq:
            leakage += np.sqrt(power[0]) * self._reaching(bins)
        kept: list[int] = []
        for n, k in enumerate(bins.tolist()):
            if not is_left[n] or amplitude[n] <= _LEAKAGE_AMPLITUDE * leakage[n]:
                continue
            kept.append(n)
            if len(kept) == max_peaks:
                break
            distance = np.abs(bins - k)
            if self._spec.iq:
                distance = np.minimum(distance, len(power) - distance)
            else:
                leakage += amplitude[n] * self._reaching(bins + k)  # its image
            leakage += amplitude[n] * self._reaching(distance)
            is_left &= distance >= self._distance
        return np.array(kept, np.int64)

    def _reaching(self, distance: NDArray[np.int64]) -> Float64Array:
        """Return the amplitude at a distance from a tone within half a bin of its bin [1]."""
        nfft = self._spec.nfft
        wrapped = np.minimum(distance, nfft - distance)
        return np.asarray(self._amplitude[np.clip(2 * wrapped - 1, 0, nfft)])

    def peaks(
        self,
        row: NDArray[np.int64],
        signal: NDArray[np.int64],
        bins: NDArray[np.int64],
        floor: Float64Array,
        leaked: Float64Array,
        *powers: Float64Array,
    ) -> Peaks:
        """Interpolate peaks at bins, from the powers below, at and above each."""
        spec, kernel = self._spec, self._kernel
        offset, power = kernel.interpolate(*powers)
        sides = (np.sqrt(powers[2]) - np.sqrt(powers[0])) / np.sqrt(power)
        offset_sd, level_sd = kernel.deviation(offset, floor / power, leaked / power, sides)
        frequency = (bins - (spec.nfft // 2 if spec.iq else 0) + offset) * spec.delta_f
        if spec.iq:
            frequency = (frequency + spec.fs / 2.0) % spec.fs - spec.fs / 2.0
        frequency = frequency + spec.center_frequency_hz
        of_tone = np.ones(len(frequency))
        for number, of_signal in enumerate(self.factors):
            if of_signal is not None:
                of_tone[signal == number] = of_signal(frequency[signal == number])
        peaks = Peaks(
            row.astype(np.int64),
            signal.astype(np.int64),
            frequency,
            tone_level(power * of_tone, spec),
            tone_level(floor * of_tone, spec),
            offset_sd * spec.delta_f,
            level_sd,
            level_spec(spec).scale.unit,
        )
        return peaks.where(np.lexsort((frequency, signal, row)))
