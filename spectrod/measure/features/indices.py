"""Acoustic indices of soundscapes: ACI, NDSI, ADI, with their parameters in the name."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import Float64Array
from spectrod.lib.errors import ConfigError, InputError
from spectrod.lib.signatures import naming_arrays
from spectrod.measure.features.selected_rows import SelectedRows
from spectrod.measure.tones.channel_power import channel_power

BANDS_MAX = 1024
"""Maximum number of bands of an acoustic diversity index."""


@dataclass(frozen=True, slots=True, eq=False)
class AcousticIndex:
    """Values of an index.

    Attributes
    ----------
    name : str
        Published name with all parameters: values are comparable only if it is the same.
    values : (signals,) or (blocks, signals) float64
        The index of all rows, or of each block; NaN without any power.
    """

    name: str
    values: Float64Array


@naming_arrays
def acoustic_complexity(
    values: ArrayLike,
    spec: SpectrumSpec,
    *,
    block_s: float = 5.0,
    band_hz: tuple[float, float] | None = None,
) -> AcousticIndex:
    """Compute the acoustic complexity index of blocks of rows.

    Parameters
    ----------
    values : (rows, bins) or (rows, signals, bins) array-like
        Rows in ``spec.scale.unit``, of any scaling.
    spec : SpectrumSpec
        Definition of the rows.
    block_s : float
        Length of a block, of at least two rows [s]; rows after the last whole block are left out.
    band_hz : tuple of float, optional
        Lowest and highest frequency that counts [Hz]; by default all but 0 Hz.

    Returns
    -------
    index : AcousticIndex
        ``ACI_5s_...``, (blocks, signals): the sum over bins of the sum of |I(t+1) - I(t)| over the
        sum of I(t), with amplitudes I. The index of a recording is the sum over its blocks, which
        grows with their number: recordings of different lengths are compared by the mean.

    Raises
    ------
    ConfigError, InputError
        If a parameter, the spec or the shape breaks a rule, or there is no whole block.

    References
    ----------
    .. [1] N. Pieretti, A. Farina and D. Morri, "A new methodology to infer the singing activity of
       an avian community: the Acoustic Complexity Index (ACI)", Ecological Indicators 11, 2011.
    """
    n_block = round(block_s / spec.row_s) if 0.0 < block_s < np.inf else 0
    if n_block < 2:
        raise ConfigError(
            f"block_s={block_s:g}: must be at least two rows of {spec.row_s:g} s each"
        )
    selected = SelectedRows(values, spec, band_hz, "indices")
    n_blocks = selected.shape[0] // n_block
    if n_blocks == 0:
        raise InputError(
            f"{selected.shape[0]} rows: must be at least {n_block}, block_s={block_s:g}"
        )
    found = np.empty((n_blocks, selected.shape[1]))
    for first, power in selected.blocks(n_block):
        amplitude = np.sqrt(power)
        for n in range(len(power) // n_block):
            block = amplitude[n * n_block : (n + 1) * n_block]
            change = np.abs(np.diff(block, axis=0)).sum(axis=0)
            found[first // n_block + n] = ratios(change, block.sum(axis=0)).sum(axis=-1)
    return AcousticIndex(f"ACI_{block_s:g}s_{_band(selected.frequencies)}", found)


@naming_arrays
def soundscape_index(
    values: ArrayLike,
    spec: SpectrumSpec,
    *,
    anthrophony_hz: tuple[float, float] = (1000.0, 2000.0),
    biophony_hz: tuple[float, float] = (2000.0, 8000.0),
) -> AcousticIndex:
    """Compute the normalised difference soundscape index of all rows.

    Parameters
    ----------
    values : (rows, bins) or (rows, signals, bins) array-like
        Rows in ``spec.scale.unit``, of any scaling.
    spec : SpectrumSpec
        Definition of the rows.
    anthrophony_hz, biophony_hz : tuple of float
        Bands of machines and of animals, within the frequencies of the rows [Hz].

    Returns
    -------
    index : AcousticIndex
        ``NDSI_1000-2000Hz_2000-8000Hz``, (signals,): (b - a) / (b + a), from -1 to 1, of the powers
        a and b of the bands.

    Raises
    ------
    ConfigError, InputError
        If a band, the spec or the shape breaks a rule.

    References
    ----------
    .. [1] E. P. Kasten et al., "The remote environmental assessment laboratory's acoustic library",
       Ecological Informatics 12, 2012.
    """
    a, b = (
        channel_power(values, spec, *band).sum(axis=0) for band in (anthrophony_hz, biophony_hz)
    )
    name = "_".join(f"{low:g}-{high:g}Hz" for low, high in (anthrophony_hz, biophony_hz))
    with np.errstate(invalid="ignore"):
        return AcousticIndex(f"NDSI_{name}", (b - a) / (b + a))


@naming_arrays
def acoustic_diversity(
    values: ArrayLike,
    spec: SpectrumSpec,
    *,
    top_hz: float = 10000.0,
    width_hz: float = 1000.0,
    threshold_db: float = -50.0,
) -> AcousticIndex:
    """Compute the acoustic diversity index of all rows.

    Parameters
    ----------
    values : (rows, bins) or (rows, signals, bins) array-like
        Rows in ``spec.scale.unit``, of any scaling.
    spec : SpectrumSpec
        Definition of the rows; one-sided.
    top_hz, width_hz : float
        Upper end of the bands and the width of each, a whole number of them up to ``BANDS_MAX`` and
        up to fs / 2 [Hz].
    threshold_db : float
        Level re the maximum of all rows above which a cell counts, below 0 [dB].

    Returns
    -------
    index : AcousticIndex
        ``ADI_0-10000Hz_1000Hz_-50dB``, (signals,): Shannon entropy, in nats, of the shares of cells
        above the threshold in each band, scaled to a sum of 1; at most the logarithm of the number
        of bands, 2.303 of ten.

    Raises
    ------
    ConfigError, InputError
        If a parameter, the spec or the shape breaks a rule.

    References
    ----------
    .. [1] L. J. Villanueva-Rivera et al., "A primer of acoustic analysis for landscape ecologists",
       Landscape Ecology 26, 2011.
    """
    n_bands = diversity_bands(spec, top_hz, width_hz)
    if not -np.inf < threshold_db < 0.0:
        raise ConfigError(f"threshold_db={threshold_db:g}: must be a level below 0 dB")
    selected = SelectedRows(values, spec, (0.0, np.nextafter(top_hz, 0.0)), "indices")
    first, counts = band_starts(selected.frequencies, n_bands, width_hz)
    largest = np.zeros(selected.shape[1])
    for _, power in selected.blocks():
        largest = np.maximum(largest, power.max(axis=(0, 2)))
    least = largest * 10.0 ** (threshold_db / 10.0)
    above = np.zeros((selected.shape[1], n_bands))
    for _, power in selected.blocks():
        cells = (power > least[:, np.newaxis]).sum(axis=0)
        above += np.add.reduceat(cells, first, axis=-1) / counts
    entropy = diversity_of(above)
    return AcousticIndex(f"ADI_0-{top_hz:g}Hz_{width_hz:g}Hz_{threshold_db:g}dB", entropy)


def diversity_bands(spec: SpectrumSpec, top_hz: float, width_hz: float) -> int:
    """Return the number of bands of an acoustic diversity index.

    Parameters
    ----------
    spec : SpectrumSpec
        Definition of the rows.
    top_hz, width_hz : float
        See ``acoustic_diversity``.

    Raises
    ------
    ConfigError
        If the rows are two-sided, or have no bin in a band, or the bands break a rule.
    """
    if spec.iq:
        raise ConfigError("iq=True: acoustic diversity is of real signals")
    if not (0.0 < width_hz <= top_hz <= spec.fs / 2.0):
        raise ConfigError(
            f"top_hz={top_hz:g}, width_hz={width_hz:g}: bands must lie within 0 Hz and "
            f"fs/2={spec.fs / 2:g} Hz"
        )
    n_bands = round(top_hz / width_hz)
    if not np.isclose(n_bands * width_hz, top_hz) or n_bands > BANDS_MAX:
        raise ConfigError(
            f"top_hz={top_hz:g}, width_hz={width_hz:g}: must be a whole number of bands, at most "
            f"{BANDS_MAX}"
        )
    frequencies = spec.bin_frequencies
    _, counts = band_starts(frequencies[frequencies < top_hz], n_bands, width_hz)
    if not counts.all():
        raise ConfigError(f"width_hz={width_hz:g}: bands without a bin of {spec.delta_f:g} Hz")
    return n_bands


def band_starts(
    frequencies: Float64Array, n_bands: int, width_hz: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first bin of each band of equal width from 0 Hz on, and its number of bins."""
    number = np.minimum((frequencies / width_hz).astype(np.int64), n_bands - 1)
    first = np.searchsorted(number, np.arange(n_bands))
    return first, np.diff(np.append(first, len(number)))


def diversity_of(above: Float64Array) -> Float64Array:
    """Return the Shannon entropy of shares, (signals, bands), of any sum [nat]; NaN without any."""
    shares = ratios(above, above.sum(axis=-1, keepdims=True))
    terms = np.where(shares > 0.0, -shares * np.log(np.maximum(shares, 1e-300)), 0.0)
    return np.where(above.any(axis=-1), terms.sum(axis=-1), np.nan)


def ratios(numerator: Float64Array, denominator: Float64Array) -> Float64Array:
    """Divide; 0 / 0 is 0."""
    return np.divide(
        numerator, denominator, out=np.zeros(numerator.shape), where=np.asarray(denominator) > 0.0
    )


def _band(frequencies: Float64Array) -> str:
    return f"{frequencies[0]:.6g}-{frequencies[-1]:.6g}Hz"
