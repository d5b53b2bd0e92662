"""Conversion of pooled columns to the pixels of a spectrogram: levels and palette entries."""

import numpy as np

from spectrod.dsp.units import Float32Array
from spectrod.formats.picture.colormaps import Uint8Array
from spectrod.formats.picture.colour_range import colour_range
from spectrod.formats.picture.page import Plots
from spectrod.formats.picture.painter import Painter, hatched
from spectrod.formats.picture.peak_entries import PeakLevels, peak_entries
from spectrod.formats.picture.picture_settings import PictureOptions
from spectrod.formats.picture.pixel_levels import pixel_values
from spectrod.formats.picture.pixelmap import Recording
from spectrod.formats.picture.pooling import ColumnPool
from spectrod.formats.picture.raster import PixelTimes
from spectrod.formats.picture.strips import RowStrips, SampleStrips

Strips = SampleStrips | RowStrips

__all__ = ["PictureOptions", "Recording", "render"]


def render(
    pool: ColumnPool,
    about: Recording,
    options: PictureOptions,
    painter: Painter,
    strips: Strips | None = None,
    *,
    times: PixelTimes,
) -> Plots:
    """Make the pixels of a spectrogram.

    See ``pixel_values`` for the meaning of a pixel.

    Parameters
    ----------
    pool : ColumnPool
        Pool with at least one row of linear power.
    about : Recording
        Metadata of the recording.
    options : PictureOptions
        Options, already checked against the spec.
    painter : Painter
        Computes the pixels.
    strips : SampleStrips or RowStrips, optional
        Data of the strips, if requested.
    times : PixelTimes
        Times of the columns.

    Returns
    -------
    plots : Plots
        Data for ``spectrod.formats.picture.page.compose``.
    """
    spec = about.spec
    size = options.width, options.height_for(spec.n_signals)
    f_axis = options.frequency_axis(spec)
    values, scale = pixel_values(pool, spec, f_axis, size, painter, times=times)
    limits = colour_range(values, options, scale)
    values = values[:, ::-1]
    return Plots(
        entries=np.stack([_entries(signal, scale, painter, limits) for signal in values]),
        values=values,
        scale=scale,
        limits=limits,
        n_samples=times.n_samples,
        frames_per_pixel=times.n_samples
        * spec.averaging_frames
        / float(spec.row_step)
        / options.width,
        envelope=strips.over(times, options.width) if strips else None,
    )


def _entries(
    values: Float32Array, scale: PeakLevels | None, painter: Painter, limits: tuple[float, float]
) -> Uint8Array:
    if scale is None:
        return painter.entries(values, *limits)
    return hatched(peak_entries(values, scale, *limits), values)
