"""Features of an interval from its frames, some at a time, in bounded memory."""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.row_grid import frames_within
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import Float64Array
from spectrod.lib.errors import ConfigError
from spectrod.measure.features.feature_quantities import SPECTRA, FeatureQuantity
from spectrod.measure.features.indices import band_starts, diversity_bands, diversity_of, ratios
from spectrod.measure.features.kurtosis import KurtosisSums
from spectrod.measure.features.selected_rows import SelectedRows
from spectrod.measure.features.shape import SpectralShape, spectral_shape
from spectrod.measure.measurement import check_frame_size
from spectrod.measure.quantity_names import check_spectra
from spectrod.measure.tones.channel_power import channel_power

DIVERSITY_BYTES_MAX = 1 << 28
"""Largest memory of the histograms of all acoustic diversity indices of a product [bytes]."""

_CLASS_BITS = 14
"""Bits of a float32 below those that number its class: a class is 1/512 of a power wide, at most
0.009 dB."""
_CLASSES = 1 << (31 - _CLASS_BITS)
"""Classes of all positive float32."""

_ONE = np.uint32(1)

_SHAPE_FIELDS = [one.name for one in fields(SpectralShape) if one.name != "rolloff_share"]
_SHAPE_NAMES = [name.removesuffix("_hz") for name in _SHAPE_FIELDS]

Rows = NDArray[Any]
"""(frames, signals, bins) densities."""


class _Part(Protocol):
    """Computes the values of one or more quantities."""

    def clear(self) -> None:
        """Begin a new interval."""

    def interrupt(self) -> None:
        """Let the next frame be one that does not follow the last."""

    def add(self, rows: Rows) -> None:
        """Add frames."""

    def value(self, quantity: FeatureQuantity) -> Float64Array:
        """Return the value of the interval so far, (signals,); NaN if there is none."""


class FeatureTally:
    """Accumulates the frames of an interval, and computes its features.

    Shapes are of single frames, and their statistics over frames that hold any power. The first
    frame of an interval, and after a gap, has no flux. An ACI is the mean over whole blocks, of as
    many frames as lie in their length; they begin with the interval and after a gap. An NDSI is of
    the powers of all frames. An ADI counts cells in classes of at most 0.009 dB: cells that are as
    close to the threshold may count or not.

    Parameters
    ----------
    quantities : sequence of FeatureQuantity
        Which features.
    spec : SpectrumSpec
        Definition of the frames: densities of bins, without averaging.
    band_hz : tuple of float, optional
        Lowest and highest frequency of all but the NDSI and ADI [Hz]; by default all but 0 Hz.
    spectra : sequence of str
        Values of each bin of the band that the tables have, ``kurtosis``.

    Attributes
    ----------
    first_bin, n_bins : int
        Bins of the band: bin k is at k fs / nfft, and for I/Q the receiver's frequency is added.
    tables : tuple of (spectra, n_bins) float64
        Values of the bins of each signal, after ``values``; empty without spectra.

    Raises
    ------
    ConfigError
        If a feature or the band does not fit the frames, a frame of all signals has more values
        than ``FRAME_VALUES_MAX``, or the memory would exceed ``DIVERSITY_BYTES_MAX``.
    """

    def __init__(
        self,
        quantities: Sequence[FeatureQuantity],
        spec: SpectrumSpec,
        band_hz: tuple[float, float] | None = None,
        spectra: Sequence[str] = (),
    ) -> None:
        check_frame_size(spec.n_signals, spec.n_bins)
        check_spectra(spectra, SPECTRA)
        check_features(quantities, spec)
        self.quantities = tuple(quantities)
        # Features are ratios: the unit of a calibration cancels, and channels may differ in it.
        plain = replace(spec, calibration=())
        selected = SelectedRows(np.empty((0, spec.n_bins)), plain, band_hz, "features")
        lowest = np.searchsorted(spec.bin_frequencies, selected.frequencies[0])
        self.first_bin = int(lowest) - (spec.nfft // 2 if spec.iq else 0)
        self.n_bins = len(selected.frequencies)
        self._kurtosis = _Kurtosis(plain, band_hz) if spectra else None
        self.tables: tuple[Float64Array, ...] = ()
        self._n_signals = spec.n_signals
        self._parts: dict[str, _Part] = {}
        for one in quantities:
            if _key(one) not in self._parts:
                self._parts[_key(one)] = _make_part(one, plain, band_hz)
        if self._kurtosis is not None:
            self._parts["SK"] = self._kurtosis
        n_bytes = sum(part.n_bytes for part in self._parts.values() if isinstance(part, _Diversity))
        if n_bytes > DIVERSITY_BYTES_MAX:
            raise ConfigError(
                f"channels={spec.n_signals}: acoustic diversity needs {n_bytes >> 20} MiB: must be "
                f"at most {DIVERSITY_BYTES_MAX >> 20} MiB; take fewer channels or bands"
            )

    def clear(self) -> None:
        """Begin a new interval."""
        for part in self._parts.values():
            part.clear()

    def skip(self, n_intervals: int) -> None:
        """Do nothing: intervals do not depend on each other."""

    def interrupt(self) -> None:
        """Let the next frame be one that does not follow the last."""
        for part in self._parts.values():
            part.interrupt()

    def add(self, rows: Rows) -> None:
        """Add frames, (frames, signals, bins)."""
        for part in self._parts.values():
            part.add(rows)

    def values(self) -> Float64Array:
        """Return the features of the frames so far, (quantities, signals), and set ``tables``."""
        found = [self._parts[_key(one)].value(one) for one in self.quantities]
        if self._kurtosis is not None:
            self.tables = tuple(self._kurtosis.bins()[:, np.newaxis])
        return np.array([np.broadcast_to(one, self._n_signals) for one in found])


def _key(quantity: FeatureQuantity) -> str:
    return quantity.kind if quantity.kind in ("shape", "SK") else quantity.name


def _make_part(
    quantity: FeatureQuantity, spec: SpectrumSpec, band_hz: tuple[float, float] | None
) -> _Part:
    match quantity.kind:
        case "shape":
            return _Shapes(spec, band_hz)
        case "SK":
            return _Kurtosis(spec, band_hz)
        case "ACI":
            return _Complexity(spec, band_hz, quantity.parameters[0])
        case "NDSI":
            return _Soundscape(spec, quantity.parameters)
    return _Diversity(spec, *quantity.parameters)


class _Shapes:
    """Moments of the features of single frames."""

    def __init__(self, spec: SpectrumSpec, band_hz: tuple[float, float] | None) -> None:
        self._spec, self._band_hz = spec, band_hz
        self._before: Rows | None = None
        self.clear()

    def clear(self) -> None:
        self._moments = _Moments((len(_SHAPE_NAMES), self._spec.n_signals))
        self.interrupt()

    def interrupt(self) -> None:
        self._before = None

    def add(self, rows: Rows) -> None:
        # The flux of the first frame is the distance from the last one that was added.
        given = rows if self._before is None else np.concatenate([self._before, rows])
        shape = spectral_shape(given, self._spec, band_hz=self._band_hz)
        found = np.stack([getattr(shape, name) for name in _SHAPE_FIELDS], axis=1)
        self._moments.add(found[len(given) - len(rows) :])
        self._before = rows[-1:].copy()

    def value(self, quantity: FeatureQuantity) -> Float64Array:
        found = self._moments.of(quantity.statistic)
        return np.asarray(found[_SHAPE_NAMES.index(quantity.shape)])


class _Moments:
    """Mean, standard deviation, minimum and maximum of values that are finite.

    References
    ----------
    .. [1] T. F. Chan, G. H. Golub and R. J. LeVeque, "Algorithms for computing the sample
       variance", The American Statistician 37(3), 1983: variances of parts are joined.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._n = np.zeros(shape)
        self._mean, self._squares = np.zeros(shape), np.zeros(shape)
        self._least, self._greatest = np.full(shape, np.nan), np.full(shape, np.nan)

    def add(self, values: Float64Array) -> None:
        """Add (n, ...) values."""
        is_finite = np.isfinite(values)
        n = is_finite.sum(axis=0)
        mean = ratios(np.where(is_finite, values, 0.0).sum(axis=0), n)
        squares = np.where(is_finite, (values - mean) ** 2, 0.0).sum(axis=0)
        total, delta = self._n + n, mean - self._mean
        self._squares += squares + delta**2 * ratios(self._n * n, total)
        self._mean += delta * ratios(n, total)
        self._n = total
        finite = np.where(is_finite, values, np.nan)
        self._least = np.fmin(self._least, np.fmin.reduce(finite, axis=0))
        self._greatest = np.fmax(self._greatest, np.fmax.reduce(finite, axis=0))

    def of(self, statistic: str) -> Float64Array:
        """Return a statistic; NaN without values."""
        match statistic:
            case "min":
                return self._least
            case "max":
                return self._greatest
            case "sd":
                found = np.sqrt(ratios(self._squares, self._n))
            case _:
                found = self._mean
        return np.where(self._n > 0, found, np.nan)


class _Kurtosis:
    """The spectral kurtosis over the frames of the interval; see ``kurtosis``."""

    def __init__(self, spec: SpectrumSpec, band_hz: tuple[float, float] | None) -> None:
        self._spec, self._band_hz = spec, band_hz
        empty = np.empty((0, spec.n_bins))
        self._frequencies = SelectedRows(empty, spec, band_hz, "features").frequencies
        self.clear()

    def clear(self) -> None:
        self._sums = KurtosisSums((self._spec.n_signals, len(self._frequencies)))

    def interrupt(self) -> None:
        pass

    def add(self, rows: Rows) -> None:
        ((_, power),) = SelectedRows(rows, self._spec, self._band_hz, "features").blocks(len(rows))
        self._sums.add(power)

    def bins(self) -> Float64Array:
        """Return the kurtosis of each bin, (signals, bins)."""
        return self._sums.values()

    def value(self, quantity: FeatureQuantity) -> Float64Array:
        found = self._sums.values()
        is_known = np.isfinite(found)
        if quantity.name == "SK_mean":
            return np.where(
                is_known.any(axis=-1),
                ratios(np.where(is_known, found, 0.0).sum(axis=-1), is_known.sum(axis=-1)),
                np.nan,
            )
        at = np.argmax(np.where(is_known, found, -np.inf), axis=-1)
        if quantity.name == "SK_frequency":
            return np.where(is_known.any(axis=-1), self._frequencies[at], np.nan)
        return np.take_along_axis(found, at[:, np.newaxis], axis=-1)[:, 0]


class _Complexity:
    """The acoustic complexity index; see ``indices.acoustic_complexity``."""

    def __init__(
        self, spec: SpectrumSpec, band_hz: tuple[float, float] | None, block_s: float
    ) -> None:
        self._spec, self._band_hz = spec, band_hz
        self._n_block = frames_within(round(block_s * spec.fs), spec.win_length, spec.hop)
        self.clear()

    def clear(self) -> None:
        self._sum = np.zeros(self._spec.n_signals)
        self._n_blocks = 0
        self.interrupt()

    def interrupt(self) -> None:
        self._done = 0
        self._change = self._total = self._before = np.zeros(0)

    def add(self, rows: Rows) -> None:
        ((_, power),) = SelectedRows(rows, self._spec, self._band_hz, "indices").blocks(len(rows))
        for amplitude in np.sqrt(power):
            if self._done:
                self._change = self._change + np.abs(amplitude - self._before)
                self._total = self._total + amplitude
            else:
                self._change, self._total = np.zeros(amplitude.shape), amplitude
            self._before = amplitude
            self._done += 1
            if self._done == self._n_block:
                self._sum += ratios(self._change, self._total).sum(axis=-1)
                self._n_blocks += 1
                self._done = 0

    def value(self, _quantity: FeatureQuantity) -> Float64Array:
        return self._sum / self._n_blocks if self._n_blocks else np.full(len(self._sum), np.nan)


class _Soundscape:
    """The normalised difference soundscape index; see ``indices.soundscape_index``."""

    def __init__(self, spec: SpectrumSpec, edges_hz: tuple[float, ...]) -> None:
        self._spec, self._bands = spec, (edges_hz[:2], edges_hz[2:])
        self.clear()

    def clear(self) -> None:
        self._power = np.zeros((2, self._spec.n_signals))

    def interrupt(self) -> None:
        pass

    def add(self, rows: Rows) -> None:
        for n, (low, high) in enumerate(self._bands):
            self._power[n] += channel_power(rows, self._spec, low, high).sum(axis=0)

    def value(self, _quantity: FeatureQuantity) -> Float64Array:
        a, b = self._power
        with np.errstate(invalid="ignore"):
            return np.asarray((b - a) / (b + a))


class _Diversity:
    """The acoustic diversity index; see ``indices.acoustic_diversity``.

    Its threshold is relative to the maximum of the interval, so cells are counted by their power:
    in classes of the leading bits of float32, which ascend with it.
    """

    def __init__(
        self, spec: SpectrumSpec, top_hz: float, width_hz: float, threshold_db: float
    ) -> None:
        n_bands = diversity_bands(spec, top_hz, width_hz)
        frequencies = spec.bin_frequencies
        self._n_bins = int(np.searchsorted(frequencies, top_hz))
        _, self._n_cells = band_starts(frequencies[: self._n_bins], n_bands, width_hz)
        band = np.repeat(np.arange(n_bands), self._n_cells)
        signal = np.arange(spec.n_signals)[:, np.newaxis]
        self._first = (signal * n_bands + band) * _CLASSES
        self._share = 10.0 ** (threshold_db / 10.0)
        self._shape = spec.n_signals, n_bands, _CLASSES
        self.n_bytes = 4 * spec.n_signals * n_bands * _CLASSES
        self._counts: NDArray[np.uint32] | None = None

    def clear(self) -> None:
        if self._counts is not None:
            self._counts[:] = 0
        self._largest = np.zeros(self._shape[0])

    def interrupt(self) -> None:
        pass

    def add(self, rows: Rows) -> None:
        if self._counts is None:
            self._counts = np.zeros(self._shape, np.uint32)
            self.clear()
        power = np.ascontiguousarray(rows[..., : self._n_bins], np.float32)
        self._largest = np.maximum(self._largest, power.max(axis=(0, 2)))
        # NumPy counts fast where one flat index and a number of the counts' type are given.
        places = (_class_of(power) + self._first).reshape(-1)
        np.add.at(self._counts.reshape(-1), places, _ONE)

    def value(self, _quantity: FeatureQuantity) -> Float64Array:
        if self._counts is None:
            return np.full(self._shape[0], np.nan)
        above = np.zeros(self._shape[:2])
        least = _class_of((self._largest * self._share).astype(np.float32))
        for signal, lowest in enumerate(least.tolist()):
            above[signal] = self._counts[signal, :, lowest + 1 :].sum(axis=-1)
        return diversity_of(above / self._n_cells)


def _class_of(power: NDArray[np.float32]) -> NDArray[np.int64]:
    return (power.view(np.uint32) >> _CLASS_BITS).astype(np.int64)


def check_features(quantities: Sequence[FeatureQuantity], spec: SpectrumSpec) -> None:
    """Check features against the frames that they are of.

    Parameters
    ----------
    quantities : sequence of FeatureQuantity
    spec : SpectrumSpec
        Definition of the frames.

    Raises
    ------
    ConfigError
        If a frequency is above that of the frames, or another parameter does not fit them.
    """
    for one in quantities:
        if one.kind == "ACI" and one.parameters[0] * spec.fs < spec.win_length + spec.hop:
            least_s = (spec.win_length + spec.hop) / spec.fs
            raise ConfigError(f"{one.name}: its block must hold two frames, {least_s:g} s")
        if one.kind == "NDSI":
            _check_soundscape(one, spec)
        if one.kind == "ADI":
            _check_diversity(one, spec)


def _check_diversity(one: FeatureQuantity, spec: SpectrumSpec) -> None:
    try:
        diversity_bands(spec, one.parameters[0], one.parameters[1])
    except ConfigError as error:
        raise error.of(one.name) from error


def _check_soundscape(one: FeatureQuantity, spec: SpectrumSpec) -> None:
    if spec.iq:
        raise ConfigError(f"{one.name}: the index is of real signals, not of I/Q")
    for low, high in (one.parameters[:2], one.parameters[2:]):
        if not low < high <= spec.fs / 2.0:
            raise ConfigError(
                f"{one.name}: band of {low:g} to {high:g} Hz: must be ascending and within 0 Hz "
                f"and fs/2={spec.fs / 2:g} Hz"
            )
