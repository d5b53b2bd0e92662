"""Conversion of pooled columns to the pixels of a spectrogram: levels and palette entries."""

import numpy as np

from spectrod.formats.picture.colour_range import colour_range
from spectrod.formats.picture.levels import pixel_levels
from spectrod.formats.picture.options import PictureOptions
from spectrod.formats.picture.page import Plots
from spectrod.formats.picture.painter import Painter
from spectrod.formats.picture.pixelmap import Recording
from spectrod.formats.picture.pooling import ColumnPool
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
    span: tuple[int, int],
) -> Plots:
    """Make the pixels of a spectrogram.

    See ``pixel_levels`` for the meaning of a pixel.

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
    span : (int, int)
        Absolute index of the first sample of the time axis, and number of samples.

    Returns
    -------
    plots : Plots
        Data for ``spectrod.formats.picture.page.compose``.
    """
    spec = about.spec
    size = options.width, options.height_for(spec.n_signals)
    f_axis, (begin, n_samples) = options.frequency_axis(spec), span
    levels = pixel_levels(pool, spec, f_axis, size, painter, span=span)[:, ::-1]
    limits = colour_range(levels, options)
    return Plots(
        entries=np.stack([painter.entries(signal, *limits) for signal in levels]),
        levels=levels,
        limits=limits,
        n_samples=n_samples,
        frames_per_pixel=n_samples * spec.averaging_frames / float(spec.row_step) / options.width,
        envelope=strips.over(begin, n_samples, options.width) if strips else None,
    )
