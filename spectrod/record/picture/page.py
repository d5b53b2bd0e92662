"""A picture's page: what stands on it, chosen and placed before anything is drawn."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from spectrod.errors import ConfigError
from spectrod.record.picture.axes import Axis, FrequencyAxis, Tick, linear_ticks, nice_step
from spectrod.record.picture.clock import elapsed_axis, utc_axis
from spectrod.record.picture.colormaps import Uint8Array
from spectrod.record.picture.layout import (
    LABEL_PX,
    STRIP_HEIGHT,
    Layout,
    Margins,
    arrange,
    bare,
    fitting,
)
from spectrod.record.picture.lettering import text_width
from spectrod.record.picture.options import PictureOptions, Strip
from spectrod.record.picture.pixelmap import PixelMap, Recording
from spectrod.record.picture.strips import Envelope
from spectrod.record.picture.surface import Box
from spectrod.record.picture.theme import N_LEVELS
from spectrod.units import FLOOR_DBFS, Float32Array

_UNITS = {"spectrum": "dBFS", "dbfs": "dBFS", "density": "dB re FS^2/Hz"}
_LINE_SPACING, _STRIP_SPACING = 6.0, 2.0
"""Least room between labels above each other, of a plot and of a strip [px]."""

_FRAMES_TOLD = 1.05
"""Frames a column from which on the footer says how many."""

_STRIP_STEP_DB = 10.0
_STRIP_MIN_DB, _STRIP_MAX_DB = 20.0, 90.0
_STRIP_SILENT_DB = (-60.0, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Plots:
    """The data of a picture, as they come from pooling and colouring.

    Attributes
    ----------
    entries : (plots, rows, columns) uint8
        Palette entries, highest frequency first; see ``spectrod.record.picture.theme``.
    levels : (plots, rows, columns) float32
        The levels that they stand for, NaN where there are no samples; for formats that keep them.
    limits : (float, float)
        Levels of the colour map's ends.
    n_samples : int
        From the first column's beginning to the last one's end.
    frames_per_pixel : float
        In each column.
    begin_s : float
        Time from the recording's first sample to the first column's beginning [s].
    envelope : Envelope or None
        For the strips that were asked for; one row a plot.
    """

    entries: Uint8Array
    levels: Float32Array
    limits: tuple[float, float]
    n_samples: int
    frames_per_pixel: float
    begin_s: float = 0.0
    envelope: Envelope | None = None

    def only(self, channel: int) -> "Plots":
        """One of the plots, with the others' limits."""
        part = slice(channel, channel + 1)
        envelope = self.envelope
        if envelope is not None:
            low, high = (
                None if table is None else table[part] for table in (envelope.low, envelope.high)
            )
            envelope = Envelope(low, high, envelope.mean_square[part])
        return replace(
            self, entries=self.entries[part], levels=self.levels[part], envelope=envelope
        )


@dataclass(frozen=True, slots=True, eq=False)
class StripView:
    """A strip along every plot; one scale for all, so that channels can be compared."""

    heading: tuple[str, ...]
    limits: tuple[float, float]
    labels: Axis
    bands: tuple[tuple[Float32Array, Float32Array], ...]
    """Between which curves ink goes, shape (plots, columns) each, the darkest last."""


@dataclass(frozen=True, slots=True, eq=False)
class Page:
    """All that is drawn, and where."""

    layout: Layout
    entries: Uint8Array
    raw_levels: Float32Array
    title: str
    names: tuple[str, ...]
    """Heading of each plot; none where there is one."""
    f_axis: FrequencyAxis
    f_labels: Axis
    t_labels: Axis
    duration_s: float
    level_labels: Axis
    levels: tuple[float, float]
    strips: tuple[StripView, ...]
    colormap: str
    theme: str
    pixels: PixelMap

    @property
    def is_bare(self) -> bool:
        """Whether there is nothing but the plots."""
        return not self.layout.bars


def compose(plots: Plots, about: Recording, options: PictureOptions) -> Page:
    """Choose all texts and place them.

    Parameters
    ----------
    plots : Plots
        Of all of the recording's channels, or of one.
    about : Recording
        What they mean.
    options : PictureOptions
        Already checked against the spec.

    Returns
    -------
    page : Page
        To be drawn or encoded.
    """
    n_plots, height, width = plots.entries.shape
    f_axis = options.frequency_axis(about.spec)
    duration_s = plots.n_samples / about.spec.fs
    unit = _UNITS[about.spec.scaling]
    nothing = Axis((), "")
    strips: tuple[StripView, ...] = ()
    if options.raw:
        f_labels = t_labels = nothing
        level_labels = Axis((), unit)
        layout = bare((width, height), n_plots)
    else:
        strips = tuple(_strip_view(strip, plots.envelope) for strip in options.strips)
        f_labels = _frequency_labels(f_axis, height)
        n_along = 1 if strips else n_plots
        level_labels = _level_labels(*plots.limits, height * n_along, unit)
        begins = about.begin_utc_ns, plots.begin_s
        t_labels = _time_labels(options, width, begins, duration_s)
        margins = Margins(
            left=(
                f_labels.title,
                *_texts(f_labels),
                *(t for s in strips for t in _texts(s.labels)),
            ),
            bar=_texts(level_labels),
            right=(unit, *(line for strip in strips for line in strip.heading)),
            overhang=_overhang(t_labels, width, duration_s),
            footer=tuple(_footer(plots.frames_per_pixel, options.pool, about)),
            has_title=bool(options.title),
        )
        layout = arrange((width, height), n_plots, options.strips, margins)
    return Page(
        layout=layout,
        entries=plots.entries,
        raw_levels=plots.levels,
        title=options.title,
        names=options.names(n_plots) if n_plots > 1 else (),
        f_axis=f_axis,
        f_labels=f_labels,
        t_labels=t_labels,
        duration_s=duration_s,
        level_labels=level_labels,
        levels=plots.limits,
        strips=strips,
        colormap=options.colormap,
        theme=options.theme,
        pixels=_pixel_map(layout.plots, f_axis, duration_s, plots.limits, about, options),
    )


def _pixel_map(
    boxes: Sequence[Box],
    f_axis: FrequencyAxis,
    duration_s: float,
    limits: tuple[float, float],
    about: Recording,
    options: PictureOptions,
) -> PixelMap:
    return PixelMap(
        plots=tuple((box.left, box.top, box.width, box.height) for box in boxes),
        f_scale=f_axis.scale,
        f_min_hz=f_axis.lo_hz,
        f_max_hz=f_axis.hi_hz,
        duration_s=duration_s,
        level_min=limits[0],
        level_max=limits[1],
        level_unit=_UNITS[about.spec.scaling],
        n_levels=N_LEVELS,
        options=options.chosen(),
        **about.facts(),
    )


def _texts(axis: Axis) -> tuple[str, ...]:
    return tuple(tick.label for tick in axis.ticks)


def _intervals(length: int, pixels_each: int) -> int:
    """Most intervals between labels to try; with 5 any linear axis has two labels, if they fit."""
    return max(5, length // pixels_each)


def _stacked(
    candidates: Iterator[Axis], place: Callable[[float], float], spacing: float = _LINE_SPACING
) -> Axis:
    """Choose the first axis whose labels can stand above each other."""
    return fitting(candidates, place, lambda _: LABEL_PX, spacing)


def _frequency_labels(axis: FrequencyAxis, height: int) -> Axis:
    candidates = axis.candidates(_intervals(height, 40))
    return _stacked(candidates, lambda f_hz: axis.fraction(f_hz) * height)


def _level_labels(
    lo: float, hi: float, height: int, unit: str, spacing: float = _LINE_SPACING
) -> Axis:
    counts = range(_intervals(height, 40), 0, -1)
    candidates = (Axis(linear_ticks(lo, hi, count), unit) for count in counts)
    return _stacked(candidates, lambda level: (level - lo) / (hi - lo) * height, spacing)


def _time_candidates(
    options: PictureOptions, width: int, begins: tuple[int, float], duration_s: float
) -> Iterator[Axis]:
    begin_utc_ns, begin_s = begins
    for count in range(_intervals(width, 80), 0, -1):
        if options.time_axis == "utc":
            yield utc_axis(begin_utc_ns, duration_s, count)
        else:
            yield elapsed_axis(duration_s, count, begin_s)


def _time_labels(
    options: PictureOptions, width: int, begins: tuple[int, float], duration_s: float
) -> Axis:
    """Choose the time axis; ``begins`` are UTC [ns] and elapsed time [s] at its low end."""
    return fitting(
        _time_candidates(options, width, begins, duration_s),
        lambda t_s: t_s / duration_s * width,
        lambda label: text_width(label, LABEL_PX),
        spacing=20.0,
    )


def _overhang(t_labels: Axis, width: int, duration_s: float) -> int:
    """How far the labels reach over the plot's left edge [px]."""
    reaches = (
        text_width(tick.label, LABEL_PX) / 2.0 - tick.value / duration_s * width
        for tick in t_labels.ticks
    )
    return max(0, *(round(reach) for reach in reaches)) if t_labels.ticks else 0


def _strip_view(strip: Strip, envelope: Envelope | None) -> StripView:
    assert envelope is not None  # the sink collected one, because strips were asked for
    return _level_strip(envelope) if strip == "level" else _waveform_strip(envelope)


def _waveform_strip(envelope: Envelope) -> StripView:
    if envelope.low is None or envelope.high is None:
        raise ConfigError("strips=waveform: there are no samples, only spectra")
    low, high = _joined(envelope.low, envelope.high)
    heard = np.concatenate([low[np.isfinite(low)], high[np.isfinite(high)]])
    peak = float(np.abs(heard).max(initial=0.0))
    top = nice_step(peak) if peak > 0.0 else 1.0
    labels = tuple(Tick(value, f"{value:g}") for value in (-top, 0.0, top))
    return StripView(("waveform", "FS"), (-top, top), Axis(labels, "FS"), ((low, high),))


def _joined(low: Float32Array, high: Float32Array) -> tuple[Float32Array, Float32Array]:
    """Let neighbours meet half-way, so that few samples make a line and not dots."""
    low, high = low.copy(), high.copy()
    middle = (high[:, :-1] + low[:, 1:]) / np.float32(2.0)
    rises = low[:, 1:] > high[:, :-1]
    low[:, 1:][rises] = high[:, :-1][rises] = middle[rises]
    middle = (low[:, :-1] + high[:, 1:]) / np.float32(2.0)
    falls = high[:, 1:] < low[:, :-1]
    high[:, 1:][falls] = low[:, :-1][falls] = middle[falls]
    return low, high


def _level_strip(envelope: Envelope) -> StripView:
    rms, peak = envelope.rms_dbfs, envelope.peak_dbfs
    shown = rms if peak is None else np.stack([rms, peak])
    heard = shown[shown > FLOOR_DBFS + 1.0]
    lo, hi = _STRIP_SILENT_DB
    if heard.size:
        lo = _STRIP_STEP_DB * float(np.floor(heard.min() / _STRIP_STEP_DB))
        hi = _STRIP_STEP_DB * float(np.ceil(heard.max() / _STRIP_STEP_DB))
        lo = min(max(lo, hi - _STRIP_MAX_DB), hi - _STRIP_MIN_DB)
    floor = np.where(np.isnan(rms), np.float32(np.nan), np.float32(lo))
    bands = ((floor, rms),) if peak is None else ((floor, peak), (floor, rms))
    heading = "RMS" if peak is None else "peak, RMS"
    labels = _level_labels(lo, hi, STRIP_HEIGHT, "dBFS", _STRIP_SPACING)
    return StripView((heading, "dBFS"), (lo, hi), labels, bands)


def _number(value: float) -> str:
    """Four significant digits without an exponent; whole numbers whole."""
    if value >= 1000.0:
        return f"{value:.0f}"
    return np.format_float_positional(value, precision=4, fractional=False, trim="-")


def _footer(frames_per_pixel: float, pool: str, about: Recording) -> list[str]:
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
    if spec.bands:
        pieces.append(f"bands {spec.bands}")
    if spec.weighting != "Z":
        pieces.append(f"{spec.weighting}-weighted")
    if frames_per_pixel >= _FRAMES_TOLD:
        pieces.append(f"column: {pool} of {_number(frames_per_pixel)} frames")
    if about.gaps:
        missing_s = about.gap_samples / spec.fs
        pieces.append(f"gaps: {about.gaps}, {_number(missing_s)} s missing")
    return [*pieces, about.software]
