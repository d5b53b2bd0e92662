"""Conversion of statistics to pixels: classes of each row, values of each column."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import Float32Array, Float64Array, Int64Array
from spectrod.formats.longterm.statistics import LevelStatistics
from spectrod.formats.picture.axes import FrequencyAxis
from spectrod.formats.picture.colormaps import Uint8Array
from spectrod.formats.picture.theme import GAP, N_LEVELS

_PAPER, _INK = N_LEVELS, GAP - 1
"""Palette entries of paper and ink."""

SAMPLE_PX = 24
"""Length of the sample of a curve before its name [px]."""
_HALO_PX = 3
_CLASSES_AT_ONCE, _COLUMNS_AT_ONCE = 16, 256
_CLIP_PERCENT = 99.8
"""Percentile of the densities above 0 from which on the last colour is used."""


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A line across the plot.

    Attributes
    ----------
    name : str
        Name at the right end.
    level : (columns,) float64
        Level in each column [dB].
    drawn_px, left_out_px : int
        Lengths of its dashes and of the gaps between them; 0: a solid line [px].
    is_main : bool
        Whether the line is thicker, in the palette's own colour, which gaps of pictures have.
    """

    name: str
    level: Float64Array
    drawn_px: int = 0
    left_out_px: int = 0
    is_main: bool = False

    @property
    def width_px(self) -> int:
        """Width of the line [px]."""
        return 2 if self.is_main else 1

    @property
    def entry(self) -> int:
        """Palette entry of the line."""
        return GAP if self.is_main else _INK

    def dashes(self, length_px: int) -> Iterator[slice]:
        """Yield the columns of each dash of a line, of a solid one all."""
        period_px = self.drawn_px + self.left_out_px or length_px
        for begin in range(0, length_px, period_px):
            yield slice(begin, begin + (self.drawn_px or length_px))


def value_limits(spec: SpectrumSpec) -> tuple[Float64Array, Float64Array]:
    """Return lower and upper limits of each value's bin or band, shape (n_values,) each [Hz]."""
    bands = spec.band_table
    if bands is not None:
        return bands.lower, bands.upper
    half = spec.delta_f / 2.0
    return spec.bin_frequencies - half, spec.bin_frequencies + half


def column_values(axis: FrequencyAxis, width: int, spec: SpectrumSpec) -> tuple[Int64Array, ...]:
    """Return the first value of each column, and the one after its last; at least one value.

    A column has the values whose centres lie in it, or else the value at its own centre.
    """
    edges, middles = axis.edges(width), axis.centres(width)
    lower, upper = value_limits(spec)
    centres = spec.frequencies
    first = np.searchsorted(centres, edges[:-1], side="left")
    stop = np.searchsorted(centres, edges[1:], side="left")
    nearest = np.clip(np.searchsorted(upper, middles, side="right"), 0, len(lower) - 1)
    is_narrow = stop <= first
    return np.where(is_narrow, nearest, first), np.where(is_narrow, nearest + 1, stop)


def mean_of_columns(
    values: Float64Array | Int64Array, columns: tuple[Int64Array, ...]
) -> Float64Array:
    """Return the mean over each column's values, along the last axis."""
    first, stop = columns
    sums = np.zeros((*values.shape[:-1], values.shape[-1] + 1), values.dtype)
    np.cumsum(values, axis=-1, out=sums[..., 1:])
    return np.asarray((sums[..., stop] - sums[..., first]) / (stop - first), np.float64)


def greatest_of_columns(values: Float64Array, columns: tuple[Int64Array, ...]) -> Float64Array:
    """Return the largest of each column's values, along the last axis.

    So a tone keeps its level if several bins share a column; a mean of their levels or powers would
    decrease with the number of bins.
    """
    spans = np.stack(columns, axis=-1).reshape(-1)
    # A column may end after the last value, an index that reduceat does not accept.
    padded = np.concatenate([values, values[..., -1:]], axis=-1)
    return np.asarray(np.maximum.reduceat(padded, spans, axis=-1)[..., ::2], np.float64)


def pixel_density(
    statistics: LevelStatistics,
    columns: tuple[Int64Array, ...],
    limits: tuple[float, float],
    height: int,
) -> Float32Array:
    """Return the probability density of each pixel, highest level first [1/dB].

    Shape (signals, rows, columns). A pixel has the share of rows in its span of levels, with
    partial classes weighted by overlap, so that a column over all levels sums to 1.
    """
    first, last = statistics.occupied()
    edges = statistics.class_edges[first : last + 1]
    rows = np.linspace(limits[1], limits[0], height + 1)
    at = np.clip((rows - edges[0]) / statistics.step_db, 0.0, len(edges) - 1.0)
    below = np.minimum(at.astype(np.int64), max(0, len(edges) - 2))
    part = (at - below)[:, np.newaxis]
    scale = height / (limits[1] - limits[0]) / max(1, statistics.n_rows)
    pixels = np.empty((statistics.counts.shape[0], height, len(columns[0])), np.float32)
    cumulated = np.zeros((len(edges), len(columns[0])))
    for signal, counts in enumerate(statistics.counts[:, first:last]):
        # Average columns first, a few classes at a time: all bins would take much memory.
        for begin in range(0, len(counts), _CLASSES_AT_ONCE):
            part_of = slice(begin, begin + _CLASSES_AT_ONCE)
            cumulated[1:][part_of] = mean_of_columns(counts[part_of].astype(np.int64), columns)
        np.cumsum(cumulated, axis=0, out=cumulated)
        for begin in range(0, len(columns[0]), _COLUMNS_AT_ONCE):
            some = slice(begin, begin + _COLUMNS_AT_ONCE)
            low, high = cumulated[below, some], cumulated[below + 1, some]
            # Without counts both are equal, and the density is exactly 0.
            pixels[signal, :, some] = -np.diff(low + (high - low) * part, axis=0) * scale
    return pixels


def density_limit(density: Float32Array) -> float:
    """Return the upper end of the colour bar: a round number above nearly all densities [1/dB]."""
    occurring = density[density > 0.0]
    if not occurring.size:
        return 1.0
    top = float(np.percentile(occurring, _CLIP_PERCENT))
    power = 10.0 ** np.floor(np.log10(top))
    return float(next(f * power for f in (1.0, 2.0, 3.0, 5.0, 10.0) if f * power >= top * 0.999))


def to_entries(density: Float32Array, limit: float) -> Uint8Array:
    """Return the palette entries of densities; zero density has the paper's."""
    scaled = np.clip(density * np.float32((N_LEVELS - 1) / limit), 0.0, N_LEVELS - 1.0)
    return np.where(density > 0.0, np.rint(scaled), _PAPER).astype(np.uint8)


def draw_curves(
    entries: Uint8Array, curves: list[Curve], limits: tuple[float, float]
) -> Uint8Array:
    """Draw lines with an edge of paper, so that they are visible on all colours.

    Parameters
    ----------
    entries : (rows, columns) uint8
        Palette entries of one plot.
    curves : list of Curve
        Curves in drawing order; the last is on top.
    limits : (float, float)
        Levels at the bottom and the top [dB].
    """
    image = Image.fromarray(entries)
    pen = ImageDraw.Draw(image)
    height = entries.shape[0]
    for curve in curves:
        y = (limits[1] - curve.level) / (limits[1] - limits[0]) * height - 0.5
        points = [(x, float(v)) for x, v in enumerate(np.clip(y, -9.0, height + 9.0))]
        pen.line(points, fill=_PAPER, width=curve.width_px + _HALO_PX - 1, joint="curve")
        for dash in curve.dashes(len(points)):
            pen.line(points[dash], fill=curve.entry, width=curve.width_px, joint="curve")
    return np.asarray(image)


def curve_sample(curve: Curve) -> Uint8Array:
    """Return the palette entries of a horizontal piece of a curve, (width, ``SAMPLE_PX``)."""
    entries = np.full((curve.width_px, SAMPLE_PX), _PAPER, np.uint8)
    for dash in curve.dashes(SAMPLE_PX):
        entries[:, dash] = curve.entry
    return entries
