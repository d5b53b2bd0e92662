"""From what a spectrum means to what a stage computes: the scale, weights and bands in numbers."""

from math import expm1
from typing import TYPE_CHECKING, cast

import numpy as np

from spectrod.analysis.stft.stft_stage import BandRows, RowPlaces, StftSpec, StftTables
from spectrod.dsp.bands import Bands, is_host_only
from spectrod.dsp.blocks import SampleFormat
from spectrod.dsp.row_grid import RowGrid
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import Float64Array
from spectrod.dsp.weighting import power_factors
from spectrod.lib.errors import ConfigError

if TYPE_CHECKING:
    from spectrod.dsp.spectrum_rules import Averaging


def kernel_spec(
    spec: SpectrumSpec, sample_format: SampleFormat = "float32", *, interleaved: bool = False
) -> tuple[StftSpec, StftTables]:
    """Say in the terms of stages what a spectrum is.

    Parameters
    ----------
    spec : SpectrumSpec
        What is wanted.
    sample_format : {"int16", "int24", "int32", "float32"}
        Of the samples.
    interleaved : bool
        Whether the channels' samples alternate.

    Returns
    -------
    shape : StftSpec
        What shapes the code.
    tables : StftTables
        The numbers that go with it. The window holds the square root of the scale of power: 1 /
        (fs S2) for densities and bands, 1 / S1^2 for spectra, twice that one-sided, and over the
        reference of a level. Complex spectra have the root of the first two.
    """
    if np.isnan(spec.taper.samples[0]):
        raise ConfigError(f"window={spec.window!r}: its samples are not known, nothing is computed")
    if not np.isfinite(spec.scale.signal_factors).all():
        raise ConfigError("calibration: its sensitivity is not known, nothing is computed")
    if is_host_only(spec.bands):
        raise ConfigError(f"bands={spec.bands!r}: no stage computes them")
    bands = spec.band_table
    shape = StftSpec(
        spec.nfft,
        spec.win_length,
        sample_format,
        interleaved,
        spec.iq,
        spec.output,
        weighted=spec.weighting != "Z" or spec.scale.common_response is not None,
        n_bands=0 if bands is None else spec.n_computed,
        averaging=cast("Averaging", spec.averaging),  # no percentile: those are the host's
        decibels=spec.scaling == "dbfs",
        placed=not spec.grid.is_even,
    )
    tables = StftTables(
        spec.taper.samples * np.sqrt(_scale(spec)),
        bin_weights(spec, spec.bin_frequencies) if shape.weighted else None,
        None if bands is None else _band_rows(spec, bands),
        smoothing=_smoothing(spec),
    )
    return shape, tables


def row_places(grid: RowGrid, phase: int) -> RowPlaces | None:
    """Say in the terms of stages where rows begin; None where frames are a hop apart."""
    if grid.is_even:
        return None
    return RowPlaces(grid.step.numerator, grid.step.denominator, phase)


def _scale(spec: SpectrumSpec) -> float:
    """Return the scale of power of the most sensitive signal; see ``calibrated_rows``."""
    scale = spec.power_scale
    if spec.output == "power" and not spec.iq:
        scale *= 2.0
    return float(scale * spec.scale.signal_factors.max())


def bin_weights(spec: SpectrumSpec, f_hz: Float64Array) -> Float64Array:
    """Return the factors of power of the weighting and of the correction of the response."""
    factors = power_factors(spec.weighting, f_hz)
    response = spec.scale.common_response
    return factors if response is None else factors * response.power_factors(f_hz)


def _band_rows(spec: SpectrumSpec, bands: Bands) -> BandRows:
    """Bins have densities: times the bin width they are mean squares.

    The broadband row comes last: the sum over all bins, which is a mean square in any scaling.
    """
    weights = bands.shares * spec.delta_f
    if spec.scaling == "density":
        weights = weights / np.repeat(bands.width, bands.count)
    if not spec.broadband:
        return BandRows(bands.first, bands.count, weights)
    return BandRows(
        np.append(bands.first, 0),
        np.append(bands.count, spec.n_bins),
        np.append(weights, np.full(spec.n_bins, spec.delta_f)),
    )


def _smoothing(spec: SpectrumSpec) -> float:
    """Weight of a new frame, for the step response ``1 - exp(-t / averaging_s)``."""
    if spec.averaging != "exponential":
        return 1.0
    hop = float(spec.row_step) / spec.averaging_frames  # at the mean, where rows are at a rate
    return -expm1(-hop / (spec.fs * spec.averaging_s))
