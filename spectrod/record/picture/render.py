"""Pooled columns to a spectrogram PNG: levels, colours, axes, and what maps pixels back to them."""

import io
from collections.abc import Callable, Iterator

import numpy as np
from PIL import Image, PngImagePlugin

from spectrod.record.picture.axes import Axis, FrequencyAxis, linear_ticks
from spectrod.record.picture.clock import elapsed_axis, utc_axis
from spectrod.record.picture.colormaps import Uint8Array
from spectrod.record.picture.colour_range import colour_range
from spectrod.record.picture.drawing import Page, draw
from spectrod.record.picture.layout import LABEL_PX, Box, arrange, fitting
from spectrod.record.picture.lettering import text_width
from spectrod.record.picture.options import PictureOptions
from spectrod.record.picture.pixelmap import METADATA_KEY, PixelMap, Recording
from spectrod.record.picture.pooling import ColumnPool
from spectrod.record.picture.raster import bin_spans, column_spans, max_of_bins, power_to_level
from spectrod.record.picture.theme import GAP, N_LEVELS, THEMES, ink_entries, palette
from spectrod.types import Int64Array, SpectrumSpec
from spectrod.units import Float32Array, Float64Array

__all__ = ["PictureOptions", "Recording", "render"]

Transpose = Callable[[Float32Array], Float32Array]

UNIT_LABELS = {"spectrum": "dBFS", "density": "dB re FS^2/Hz"}

_BINS_AT_ONCE = 1 << 13
_HATCH_PERIOD, _HATCH_WIDTH = 8, 2
_LINE_SPACING = 6.0
"""Least room between labels above each other [px]."""


def _n_samples(pool: ColumnPool, spec: SpectrumSpec) -> int:
    """Count samples from the first frame's first to the last frame's last."""
    return pool.last_sample - pool.first_sample + spec.win_length


def _time_edges(pool: ColumnPool, spec: SpectrumSpec, width: int) -> Float64Array:
    """Slot coordinates of the pixel columns' limits.

    A frame stands for the hop around its window's centre: slot s covers the samples within half a
    hop of ``s * hop + win_length / 2``.
    """
    samples = np.linspace(0.0, _n_samples(pool, spec), width + 1)
    return (samples - spec.win_length / 2.0) / pool.hop + 0.5


def _levels(
    pool: ColumnPool, spec: SpectrumSpec, options: PictureOptions, transpose: Transpose
) -> Float32Array:
    """Level of every data pixel, shape (channels, rows, columns), lowest frequency first."""
    edges = _time_edges(pool, spec, options.width)
    lo, hi = column_spans(edges, pool.n_slots, pool.frames_per_column)
    f_edges = options.frequency_axis(spec).edges(options.height_for(spec.channels))
    spans = bin_spans(f_edges, spec.delta_f, spec.n_bins)

    def rows(channel: int, part: Int64Array) -> Float32Array:
        first, stop = int(part[0, 0]), int(part[1, -1])
        power = transpose(pool.mean(channel, lo, hi, slice(first, stop)))
        return max_of_bins(power, part - first)

    parts = [spans[:, part] for part in _few_bins_each(spans)]
    channels = [
        np.concatenate([rows(channel, part) for part in parts]) for channel in range(spec.channels)
    ]
    return power_to_level(np.stack(channels), spec.scaling)


def _few_bins_each(spans: Int64Array) -> Iterator[slice]:
    """Divide the rows of a picture so that long transforms need no copies of whole spectra."""
    n_rows, begin = spans.shape[1], 0
    for row in range(1, n_rows + 1):
        if row == n_rows or spans[1, row] - spans[0, begin] > _BINS_AT_ONCE:
            yield slice(begin, row)
            begin = row


def _entries(levels: Float32Array, lo: float, hi: float) -> Uint8Array:
    """Palette entries of one channel's levels, hatched where they are NaN."""
    is_gap = np.isnan(levels)
    scaled = np.clip((levels - lo) * ((N_LEVELS - 1) / (hi - lo)), 0.0, N_LEVELS - 1.0)
    entries = np.rint(np.where(is_gap, 0.0, scaled)).astype(np.uint8)
    if is_gap.any():
        diagonal = np.add.outer(*map(np.arange, levels.shape))
        is_line = diagonal % _HATCH_PERIOD < _HATCH_WIDTH
        entries[is_gap & is_line] = GAP
        entries[is_gap & ~is_line] = N_LEVELS
    return entries


def _intervals(length: int, pixels_each: int) -> int:
    """Most intervals between labels to try; with 5 any linear axis has two labels, if they fit."""
    return max(5, length // pixels_each)


def _frequency_labels(axis: FrequencyAxis, height: int) -> Axis:
    return fitting(
        axis.candidates(_intervals(height, 40)),
        lambda f_hz: axis.fraction(f_hz) * height,
        lambda _: LABEL_PX,
        spacing=_LINE_SPACING,
    )


def _level_labels(lo: float, hi: float, height: int, unit: str) -> Axis:
    counts = range(_intervals(height, 40), 0, -1)
    return fitting(
        (Axis(linear_ticks(lo, hi, count), unit) for count in counts),
        lambda level: (level - lo) / (hi - lo) * height,
        lambda _: LABEL_PX,
        spacing=_LINE_SPACING,
    )


def _time_candidates(
    options: PictureOptions, begin_utc_ns: int, duration_s: float
) -> Iterator[Axis]:
    for count in range(_intervals(options.width, 80), 0, -1):
        if options.time_axis == "utc":
            yield utc_axis(begin_utc_ns, duration_s, count)
        else:
            yield elapsed_axis(duration_s, count)


def _time_labels(options: PictureOptions, begin_utc_ns: int, duration_s: float) -> Axis:
    return fitting(
        _time_candidates(options, begin_utc_ns, duration_s),
        lambda t_s: t_s / duration_s * options.width,
        lambda label: text_width(label, LABEL_PX),
        spacing=20.0,
    )


def _number(value: float) -> str:
    """Four significant digits without an exponent; whole numbers whole."""
    if value >= 1000.0:
        return f"{value:.0f}"
    return np.format_float_positional(value, precision=4, fractional=False, trim="-")


def _footer(pool: ColumnPool, about: Recording, options: PictureOptions) -> list[str]:
    """Say what a reader needs to know to trust the numbers."""
    spec = about.spec
    padding = f", zero-padded to {spec.nfft}" if spec.nfft > spec.win_length else ""
    pieces = [
        f"{spec.window} window, N = {spec.win_length}{padding}",
        f"hop {spec.hop}",
        f"bin width {_number(spec.delta_f)} Hz",
        f"ENBW {_number(spec.enbw_hz)} Hz",
        f"sampled at {spec.fs:g} Hz",
    ]
    frames_per_pixel = pool.n_slots / options.width
    if frames_per_pixel > 1.0:
        pieces.append(f"column: mean of {_number(frames_per_pixel)} frames")
    if about.gaps:
        missing_s = about.gap_samples / spec.fs
        pieces.append(f"gaps: {about.gaps}, {_number(missing_s)} s missing")
    return [*pieces, about.software]


def render(
    pool: ColumnPool, about: Recording, options: PictureOptions, transpose: Transpose
) -> bytes:
    """Draw the spectrogram.

    A pixel is the mean power over time of the frames in its column (the nearest frame where
    columns are narrower than a hop), and of those the largest among the bins in its row. The time
    axis spans the samples that were analysed: the first frame's first to the last one's last.

    Parameters
    ----------
    pool : ColumnPool
        At least one frame of linear power.
    about : Recording
        What they mean.
    options : PictureOptions
        Already checked against the spec.
    transpose : callable
        From a C-contiguous (columns, bins) float32 matrix to (bins, columns).

    Returns
    -------
    png : bytes
        Palette PNG; its text entry "spectrod" holds a ``PixelMap``.
    """
    levels = _levels(pool, about.spec, options, transpose)
    lo, hi = colour_range(levels, options)
    page = _compose(pool, about, options, (lo, hi))
    canvas = ink_entries(draw(page))
    for box, channel in zip(page.layout.plots, levels, strict=True):
        _paste(canvas, box, _entries(channel[::-1], lo, hi))
    bar = np.linspace(N_LEVELS - 1, 0, page.layout.bar.height).round().astype(np.uint8)
    _paste(canvas, page.layout.bar, bar[:, np.newaxis])
    colours = palette(options.colormap, THEMES[options.theme])
    return _encode(canvas, colours, _pixel_map(page, about), options.title)


def _compose(
    pool: ColumnPool, about: Recording, options: PictureOptions, levels: tuple[float, float]
) -> Page:
    """Choose all texts and place them."""
    spec = about.spec
    height = options.height_for(spec.channels)
    f_axis = options.frequency_axis(spec)
    f_labels = _frequency_labels(f_axis, height)
    level_labels = _level_labels(*levels, height * spec.channels, UNIT_LABELS[spec.scaling])
    duration_s = _n_samples(pool, spec) / spec.fs
    return Page(
        layout=arrange(
            (options.width, height),
            spec.channels,
            f_labels,
            level_labels,
            _footer(pool, about, options),
            has_title=bool(options.title),
        ),
        title=options.title,
        f_axis=f_axis,
        f_labels=f_labels,
        t_labels=_time_labels(options, about.begin_utc_ns, duration_s),
        duration_s=duration_s,
        level_labels=level_labels,
        levels=levels,
    )


def _pixel_map(page: Page, about: Recording) -> PixelMap:
    lo, hi = page.levels
    return PixelMap(
        plots=tuple((box.left, box.top, box.width, box.height) for box in page.layout.plots),
        f_scale=page.f_axis.scale,
        f_min_hz=page.f_axis.lo_hz,
        f_max_hz=page.f_axis.hi_hz,
        duration_s=page.duration_s,
        level_min=lo,
        level_max=hi,
        level_unit=page.level_labels.title,
        n_levels=N_LEVELS,
        **about.facts(),
    )


def _paste(canvas: Uint8Array, box: Box, entries: Uint8Array) -> None:
    canvas[box.top : box.bottom, box.left : box.right] = entries


def _encode(canvas: Uint8Array, colours: bytes, pixels: PixelMap, title: str) -> bytes:
    image = Image.fromarray(canvas)
    image.putpalette(colours)
    info = PngImagePlugin.PngInfo()
    if title:
        # A file name that is not UTF-8 comes with lone surrogates, which no encoding takes.
        info.add_text("Title", title.encode("utf-8", "replace").decode())
    info.add_text("Software", pixels.software)
    info.add_text(METADATA_KEY, pixels.to_json())
    out = io.BytesIO()
    image.save(out, format="PNG", pnginfo=info)
    return out.getvalue()
