"""Detectors: for each row, how far its highest value lies over a threshold."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import FLOOR_DBFS, Float32Array, Float64Array, power_to_level
from spectrod.lib.errors import ConfigError
from spectrod.measure.noise_floor import (
    block_bins,
    block_medians,
    floor_at,
    independent_frames,
    independent_values,
    mean_over_median,
)
from spectrod.measure.rows import level_spec, require_bins, to_spectrum, tone_level
from spectrod.measure.tones.kernel import window_kernel
from spectrod.measure.triggers.adaptive_floor import NoiseFloor, quantile_over_mean_db
from spectrod.measure.triggers.mask import Mask
from spectrod.measure.triggers.pulses import check_pulses
from spectrod.measure.triggers.trigger_config import TriggerConfig

_OVERLAP = 1e-6
"""Overlap of bands that counts as none, relative to their width."""


@dataclass(frozen=True, slots=True, eq=False)
class Readings:
    """For each row, the value that lies furthest over its threshold.

    Attributes
    ----------
    height_db : (rows,) float
        Level over the threshold; below it for a lower limit [dB]. Minus infinity where nothing is
        known yet.
    signal : (rows,) int64
        Number of the signal.
    f_hz : (rows,) float64
        Frequency of the value; NaN for the level of a whole band [Hz].
    level, threshold, floor : (rows,) float
        In the detector's unit; the floor is NaN where there is none.
    """

    height_db: NDArray[np.floating]
    signal: NDArray[np.int64]
    f_hz: Float64Array
    level: NDArray[np.floating]
    threshold: NDArray[np.floating]
    floor: NDArray[np.floating]


class Detector(Protocol):
    """Reads rows of one spec, in order."""

    @property
    def unit(self) -> str:
        """Unit of the levels."""

    @property
    def range_hz(self) -> tuple[float, float]:
        """Frequencies that are examined [Hz]."""

    @property
    def floor(self) -> NoiseFloor | None:
        """The adaptive floor; None without one."""

    def measure(self, values: NDArray[Any]) -> Float32Array | Readings:
        """Return what rows say alone, of (rows, signals, values) float32 in the spec's unit.

        That is levels, of which the adaptive floor is, (rows, signals, n) float32 [dB], or the
        readings where no row depends on those before.
        """

    def read(self, measured: Float32Array | Readings) -> Readings:
        """Read the next rows, as ``measure`` returned them."""


def open_detector(config: TriggerConfig, spec: SpectrumSpec, mask: Mask | None) -> Detector:
    """Return the detector of a trigger for rows of a spec.

    Parameters
    ----------
    config : TriggerConfig
        A trigger that has passed ``check``.
    spec : SpectrumSpec
        Definition of the rows.
    mask : Mask or None
        The learned mask if the trigger names one; None: not known yet, only rules that hold for
        every mask are checked.

    Raises
    ------
    ConfigError
        If the trigger does not fit the rows.
    """
    if spec.output != "power":
        raise ConfigError(f"output={spec.output!r}: triggers need spectra of power")
    if len(set(spec.scale.units)) > 1:
        raise ConfigError(
            f"calibration: triggers need one unit of all channels, not {spec.scale.unit}"
        )
    check_pulses(config, spec)
    if config.kind == "band":
        return _BandDetector(config, spec)
    if config.kind == "bin":
        return _BinDetector(config, spec)
    if config.kind == "mask":
        return _MaskDetector(config, spec, mask)
    return _ToneDetector(config, spec)


def check_unit(config: TriggerConfig, spec: SpectrumSpec, mask: Mask | None = None) -> None:
    """Check that thresholds have the unit of the levels; raises ConfigError."""
    given = mask.unit if mask else config.unit
    unit = unit_of(config, spec)
    if given and given != unit:
        what = f"mask={config.mask!r}: unit" if mask else "unit"
        cause = "" if spec.calibration else ", of a source without a calibration"
        raise ConfigError(
            f"{what}={given!r}: must be {unit!r}, that of the product {spec.product}{cause}", what
        )


def unit_of(config: TriggerConfig, spec: SpectrumSpec) -> str:
    """Return the unit of a trigger's levels."""
    of_values = config.kind in ("bin", "mask")
    return spec.scale.level_unit if of_values else level_spec(spec).scale.level_unit


def _edges(spec: SpectrumSpec) -> tuple[Float64Array, Float64Array]:
    """Return the lower and the upper edge of each value, (values,) [Hz]."""
    bands = spec.band_table
    if bands is not None:
        return bands.lower, bands.upper
    lower = spec.bin_frequencies - spec.delta_f / 2.0
    upper = spec.bin_frequencies + spec.delta_f / 2.0
    if spec.iq:
        return lower, upper
    return np.maximum(lower, 0.0), np.minimum(upper, spec.fs / 2.0)


def _range(config: TriggerConfig, spec: SpectrumSpec) -> tuple[float, float]:
    """Return the range of frequencies, by default that of the values [Hz]."""
    lower, upper = _edges(spec)
    bottom, top = float(lower[0]), float(upper[-1])
    low = bottom if config.f_min_hz is UNSET else config.f_min_hz
    high = top if config.f_max_hz is UNSET else config.f_max_hz
    slack = 1e-9 * (top - bottom)
    nyquist = "" if spec.iq or spec.bands else ", the Nyquist frequency"
    for key, f_hz in (("f_min_hz", low), ("f_max_hz", high)):
        if not bottom - slack <= f_hz <= top + slack:
            raise ConfigError(
                f"{key}={f_hz:.10g}: must be {bottom:.10g} to {top:.10g} Hz{nyquist}: the range of "
                f"the product {spec.product}",
                key,
            )
    if not low < high:
        raise ConfigError(
            f"f_min_hz={low:.10g}: must be below f_max_hz={high:.10g}", "f_min_hz", "f_max_hz"
        )
    return low, high


def _values_in(low_hz: float, high_hz: float, spec: SpectrumSpec) -> slice:
    """Return the bins or bands whose frequency lies in a range."""
    f_hz = spec.frequencies
    first, stop = np.searchsorted(f_hz, low_hz), np.searchsorted(f_hz, high_hz, side="right")
    if first == stop:
        raise ConfigError(
            f"f_min_hz={low_hz:.10g}, f_max_hz={high_hz:.10g}: hold no bin or band of the product "
            f"{spec.product}; choose a wider range, or a longer window",
            "f_min_hz",
            "f_max_hz",
        )
    return slice(int(first), int(stop))


def _to_levels(values: NDArray[Any], spec: SpectrumSpec) -> Float32Array:
    """Convert values to finite levels in ``spec.scale.level_unit``."""
    levels = spec.scale.to_level(values)
    return levels if spec.scaling == "dbfs" else np.maximum(levels, np.float32(FLOOR_DBFS))


class _BandDetector:
    """The level of a range of frequencies over a threshold, or over its own noise floor."""

    def __init__(self, config: TriggerConfig, spec: SpectrumSpec) -> None:
        self.range_hz = low, high = _range(config, spec)
        self.unit = level_spec(spec).scale.level_unit
        lower, upper = _edges(spec)
        gaps = lower[1:] - upper[:-1]
        if np.any(gaps < -_OVERLAP * (upper[:-1] - lower[:-1])):
            raise ConfigError(
                "overlap, so their sum is no level: kind='band' needs bins, or bands side by side",
                "kind",
                bands=spec.bands,
            )
        share = np.clip(
            (np.minimum(upper, high) - np.maximum(lower, low)) / (upper - lower), 0.0, 1.0
        )
        (held,) = np.nonzero(share)
        self._values = slice(int(held[0]), int(held[-1]) + 1)
        # A bin at 0 Hz or at Nyquist is half as wide, and its density holds half of a tone there.
        width = share * (upper - lower if spec.bands else spec.delta_f)
        self._weights = (width if spec.scaling == "density" else _shares(share, spec))[
            self._values
        ].astype(np.float32)
        self._spec, self._reference = spec, level_spec(spec).scale.reference_power
        n_frames = independent_frames(spec) if _is_mean(spec) else np.inf
        bias_db = quantile_over_mean_db(n_frames * max(1.0, (high - low) / spec.enbw_hz))
        self.floor = _floor_of(config, spec, 1, bias_db)
        self._compare = _comparison(config, self.floor)

    def measure(self, values: NDArray[Any]) -> Float32Array:
        """See ``Detector``."""
        power = self._spec.scale.to_power(values[..., self._values]) @ self._weights
        return power_to_level(power, self._reference, FLOOR_DBFS)[..., np.newaxis]

    def read(self, measured: Float32Array | Readings) -> Readings:
        """See ``Detector``."""
        assert not isinstance(measured, Readings)
        return _highest(measured, *self._compare(measured), np.array([np.nan]))


def _shares(share: Float64Array, spec: SpectrumSpec) -> Float64Array:
    """Return the weight of each value's mean square: that of bins is of a tone, not of noise."""
    return share if spec.bands else share * (spec.delta_f / spec.enbw_hz)


class _BinDetector:
    """Any bin or band in a range of frequencies over a threshold, or over its noise floor."""

    def __init__(self, config: TriggerConfig, spec: SpectrumSpec) -> None:
        self.range_hz = _range(config, spec)
        self.unit = spec.scale.level_unit
        self._spec = spec
        self._values = _values_in(*self.range_hz, spec)
        self._f_hz = spec.frequencies[self._values]
        bands = spec.band_table
        if bands is None:
            n = independent_values(spec)[self._values]
        else:
            n = np.maximum(1.0, bands.width[self._values] / spec.enbw_hz)
        n_frames = independent_frames(spec) if _is_mean(spec) else np.inf
        bias_db = quantile_over_mean_db(n_frames * n)
        self.floor = _floor_of(config, spec, len(self._f_hz), bias_db)
        self._compare = _comparison(config, self.floor)

    def measure(self, values: NDArray[Any]) -> Float32Array:
        """See ``Detector``."""
        return _to_levels(values[..., self._values], self._spec)

    def read(self, measured: Float32Array | Readings) -> Readings:
        """See ``Detector``."""
        assert not isinstance(measured, Readings)
        return _highest(measured, *self._compare(measured), self._f_hz)


class _Floorless:
    """Part of detectors whose thresholds need no floor of the rows before."""

    floor: NoiseFloor | None = None

    def read(self, measured: Float32Array | Readings) -> Readings:
        """See ``Detector``."""
        assert isinstance(measured, Readings)
        return measured


class _MaskDetector(_Floorless):
    """Any bin or band over a mask, or under it."""

    def __init__(self, config: TriggerConfig, spec: SpectrumSpec, mask: Mask | None) -> None:
        low, high = self.range_hz = _range(config, spec)
        self.unit = spec.scale.level_unit
        self._spec = spec
        if spec.iq:
            raise ConfigError(
                "the frequencies of a mask are logarithmic: I/Q signals have none", kind="mask"
            )
        if mask is None:
            mask = Mask(config.points or ((low or high / 2.0, 0.0), (high, 0.0)), self.unit)
        if config.points and config.points[-1][0] > _edges(spec)[1][-1]:
            top = _edges(spec)[1][-1]
            raise ConfigError(
                f"the last one, at {config.points[-1][0]:.10g} Hz: must be at most "
                f"{top:.10g} Hz, the end of the product {spec.product}",
                points=...,
            )
        mask.check_analysis(config.mask, spec)
        f_hz = spec.frequencies
        (held,) = np.nonzero((f_hz > 0.0) & mask.covers(f_hz) & (f_hz >= low) & (f_hz <= high))
        if not len(held):
            raise ConfigError(
                f"no bin or band of the product {spec.product} lies between "
                f"{mask.points[0][0]:g} and {mask.points[-1][0]:g} Hz in the range of the trigger",
                points=...,
            )
        self._values = slice(int(held[0]), int(held[-1]) + 1)
        self._f_hz = f_hz[self._values]
        self._mask = mask.at(self._f_hz).astype(np.float32)
        self._is_below = config.side == "below"

    def measure(self, values: NDArray[Any]) -> Readings:
        """See ``Detector``."""
        level = _to_levels(values[..., self._values], self._spec)
        return _highest(level, self._mask, None, self._f_hz, is_below=self._is_below)


class _ToneDetector(_Floorless):
    """The most prominent peak in a range of frequencies, or that there is none.

    A peak is a local maximum. Its prominence is its interpolated level over the noise in a bin
    around it: the median of at least 64 neighbouring bins, as ``spectrod.measure.tones.peaks`` has
    it.
    """

    def __init__(self, config: TriggerConfig, spec: SpectrumSpec) -> None:
        require_bins(spec, "tones")
        self.range_hz = _range(config, spec)
        self.unit = level_spec(spec).scale.level_unit
        self._spec, self._kernel = spec, window_kernel(spec.taper, spec.nfft)
        self._is_missing = config.kind == "tone-missing"
        assert config.prominence_db is not UNSET
        self._prominence_db = config.prominence_db
        step = self._kernel.step
        held = _values_in(*self.range_hz, spec)
        first, stop = max(held.start, step), min(held.stop, spec.n_bins - step)
        if first >= stop:
            raise ConfigError(
                f"f_min_hz={self.range_hz[0]:.10g}, f_max_hz={self.range_hz[1]:.10g}: a tone needs "
                f"{step} bins of {spec.delta_f:.4g} Hz on either side",
                "f_min_hz",
                "f_max_hz",
            )
        n_block = block_bins(self._kernel.lobe_bins, spec.n_bins)
        around_first, around_stop = _widened(first, stop, n_block, spec.n_bins)
        self._around = slice(around_first, around_stop)
        self._n_block = n_block
        self._bins = np.arange(first - around_first, stop - around_first)
        self._to_mean = mean_over_median(spec)

    def measure(self, values: NDArray[Any]) -> Readings:
        """See ``Detector``."""
        spec, step = self._spec, self._kernel.step
        power = to_spectrum(values[..., self._around], spec)
        middle, below, above = (power[..., self._bins + by] for by in (0, -step, step))
        is_peak = (middle > below) & (middle >= above)
        found = self._bins[np.argmax(np.where(is_peak, middle, 0.0), axis=-1)]
        has_peak = is_peak.any(axis=-1)
        rows = np.indices(found.shape, sparse=True)
        near = (power[*rows, found + by] for by in (-step, 0, step))
        with np.errstate(divide="ignore", invalid="ignore"):
            offset, peak = self._kernel.interpolate(*near)
        medians = block_medians(power, self._n_block) * self._to_mean
        noise = np.empty(found.shape)
        for row in np.ndindex(found.shape):
            place = found[row][np.newaxis]
            noise[row] = floor_at(medians[row], self._n_block, power.shape[-1], place)[0]
        level = _finite(tone_level(np.where(has_peak, peak, 0.0), spec))
        floor = _finite(tone_level(noise, spec))
        f_hz = spec.bin_frequencies[self._around.start + found] + offset * spec.delta_f
        threshold = floor + self._prominence_db
        height = threshold - level if self._is_missing else level - threshold
        return _chosen(height, level, threshold, floor, np.where(has_peak, f_hz, np.nan))


def _widened(first: int, stop: int, n_block: int, n_bins: int) -> tuple[int, int]:
    """Return a range of bins with a block of bins on either side, or all that there are."""
    return max(0, first - n_block), min(n_bins, stop + n_block)


def _finite(level: Float64Array) -> Float64Array:
    return np.maximum(level, FLOOR_DBFS)


def _is_mean(spec: SpectrumSpec) -> bool:
    """Return whether noise in the rows is distributed as means of frames are."""
    return spec.averaging in ("none", "mean", "exponential")


_Compare = Callable[[Float32Array], tuple[Float32Array, Float32Array | None]]


def _floor_of(
    config: TriggerConfig, spec: SpectrumSpec, n_values: int, bias_db: Float64Array
) -> NoiseFloor | None:
    """Return the adaptive floor of a trigger; None for one with a fixed threshold."""
    if config.over_floor_db is UNSET:
        return None
    if not _is_mean(spec):
        bias_db = np.zeros(1)
    return NoiseFloor(spec.n_signals, n_values, spec.row_s, config.floor_s, bias_db)


def _comparison(config: TriggerConfig, floor: NoiseFloor | None) -> _Compare:
    """Return a function from levels, (rows, signals, values), to their thresholds and floors."""
    if floor is None:
        assert config.threshold is not UNSET
        threshold = np.float32(config.threshold) * np.ones(1, np.float32)
        return lambda _: (threshold, None)
    assert config.over_floor_db is not UNSET
    over_db = np.float32(config.over_floor_db)

    def compare(level: Float32Array) -> tuple[Float32Array, Float32Array | None]:
        found = np.full_like(level, np.inf)
        for run, known in floor.over(level):
            if known is not None:
                found[run] = known
        return found + over_db, found

    return compare


def _highest(
    level: Float32Array,
    threshold: Float32Array,
    floor: Float32Array | None,
    f_hz: Float64Array,
    *,
    is_below: bool = False,
) -> Readings:
    """Choose the value of each row that lies furthest over its threshold."""
    height = threshold - level if is_below else level - threshold
    n_rows, n_signals, n_values = level.shape
    best = np.argmax(height.reshape(n_rows, -1), axis=1)
    signal, value = np.divmod(best, n_values)
    at = np.arange(n_rows), signal, value
    shape = n_rows, n_signals, n_values
    return Readings(
        height[at],
        signal,
        f_hz[value],
        level[at],
        np.broadcast_to(threshold, shape)[at],
        np.full(n_rows, np.nan) if floor is None else floor[at],
    )


def _chosen(
    height: Float64Array,
    level: Float64Array,
    threshold: Float64Array,
    floor: Float64Array,
    f_hz: Float64Array,
) -> Readings:
    """Choose the signal of each row, of (rows, signals) arrays."""
    signal = np.argmax(height, axis=1)
    at = np.arange(len(signal)), signal
    return Readings(height[at], signal, f_hz[at], level[at], threshold[at], floor[at])
