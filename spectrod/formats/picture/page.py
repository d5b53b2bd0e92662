"""Layout of a picture's page: all content, chosen and placed before drawing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from spectrod.dsp.constant_q import is_constant_q
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import Float32Array
from spectrod.formats.picture.axes import Axis, FrequencyAxis
from spectrod.formats.picture.colormaps import Uint8Array
from spectrod.formats.picture.labels import (
    frequency_labels,
    gap_texts,
    level_labels,
    overhang,
    short_number,
    time_labels,
)
from spectrod.formats.picture.page_layout import Margins, PageLayout, arrange, bare
from spectrod.formats.picture.peak_entries import PeakLevels
from spectrod.formats.picture.picture_settings import PictureOptions
from spectrod.formats.picture.pixelmap import PixelMap, Recording
from spectrod.formats.picture.strip_view import StripView, strip_view
from spectrod.formats.picture.strips import Envelope
from spectrod.formats.picture.surface import Box
from spectrod.formats.picture.theme import N_LEVELS
from spectrod.lib.durations import format_frequency

_IDS_MAX_CHARS = 60
_FRAMES_STATED = 1.05
"""Frames per column from which on the footer gives their number."""


@dataclass(frozen=True, slots=True, eq=False)
class Plots:
    """The data of a picture after pooling and colouring.

    Attributes
    ----------
    entries : (plots, rows, columns) uint8
        Palette entries, highest frequency first; see ``spectrod.formats.picture.theme``.
    values : (plots, rows, columns) float32
        Levels of the entries, or powers if there is a scale, NaN where samples are missing; for
        formats that store levels.
    limits : (float, float)
        Levels of the colour map's ends.
    n_samples : int
        Samples from the first column's beginning to the last column's end.
    frames_per_pixel : float
        Frames per column.
    begin_s : float
        Time from the recording's first sample to the first column's beginning [s].
    envelope : Envelope or None
        Data of the requested strips; one row per plot.
    scale : PeakLevels or None
        Levels of the values, if these are powers.
    """

    entries: Uint8Array
    values: Float32Array
    limits: tuple[float, float]
    n_samples: int
    frames_per_pixel: float
    begin_s: float = 0.0
    envelope: Envelope | None = None
    scale: PeakLevels | None = None

    def only(self, channel: int) -> "Plots":
        """Return one of the plots, with the limits of all."""
        part = slice(channel, channel + 1)
        envelope = self.envelope
        if envelope is not None:
            low, high = (
                None if table is None else table[part] for table in (envelope.low, envelope.high)
            )
            envelope = replace(envelope, low=low, high=high, mean_square=envelope.mean_square[part])
        return replace(
            self, entries=self.entries[part], values=self.values[part], envelope=envelope
        )


@dataclass(frozen=True, slots=True)
class PageFrame:
    """All drawn content that many pictures share: axes, names, colour bars and footer."""

    layout: PageLayout
    names: tuple[str, ...]
    """Heading of each plot; empty if there is only one plot."""
    f_axis: FrequencyAxis
    f_labels: Axis
    t_labels: Axis
    duration_s: float
    level_labels: Axis
    levels: tuple[float, float]

    @property
    def is_bare(self) -> bool:
        """Whether the page has only plots."""
        return not self.layout.bars


@dataclass(frozen=True, slots=True, eq=False)
class Page:
    """All drawn content, with its positions."""

    frame: PageFrame
    entries: Uint8Array
    values: Float32Array
    """See ``Plots``, as ``scale``."""
    scale: PeakLevels | None
    title: str
    strips: tuple[StripView, ...]
    colormap: str
    theme: str
    pixels: PixelMap

    @property
    def layout(self) -> PageLayout:
        """Positions of all content."""
        return self.frame.layout


def compose(plots: Plots, about: Recording, options: PictureOptions) -> Page:
    """Choose and place all content.

    Parameters
    ----------
    plots : Plots
        Data of all channels of the recording, or of one.
    about : Recording
        Metadata of the recording.
    options : PictureOptions
        Options, already checked against the spec.

    Returns
    -------
    page : Page
        Page for drawing or encoding.
    """
    n_plots, height, width = plots.entries.shape
    f_axis = options.frequency_axis(about.spec)
    duration_s = plots.n_samples / about.spec.fs
    unit = about.spec.scale.level_unit
    nothing = Axis((), "")
    strips: tuple[StripView, ...] = ()
    if options.raw:
        f_labels = t_labels = nothing
        bar_labels = Axis((), unit)
        layout = bare((width, height), n_plots)
    else:
        strips = tuple(strip_view(strip, plots.envelope) for strip in options.strips)
        f_labels = frequency_labels(f_axis, height)
        n_along = 1 if strips else n_plots
        bar_labels = level_labels(*plots.limits, height * n_along, unit)
        begins = about.begin_utc_ns, plots.begin_s
        t_labels = time_labels(options, width, begins, duration_s)
        margins = Margins(
            left=(
                f_labels.title,
                *_texts(f_labels),
                *(t for s in strips for t in _texts(s.labels)),
            ),
            bar=_texts(bar_labels),
            right=(unit, *(line for strip in strips for line in strip.heading)),
            overhang=overhang(t_labels, width, duration_s),
            footer=tuple(_footer(plots.frames_per_pixel, options.pool, about)),
            has_title=bool(options.title),
        )
        layout = arrange((width, height), n_plots, options.strips, margins)
    frame = PageFrame(
        layout=layout,
        names=options.names(n_plots) if n_plots > 1 else (),
        f_axis=f_axis,
        f_labels=f_labels,
        t_labels=t_labels,
        duration_s=duration_s,
        level_labels=bar_labels,
        levels=plots.limits,
    )
    return Page(
        frame=frame,
        entries=plots.entries,
        values=plots.values,
        scale=plots.scale,
        title=options.title,
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
        level_unit=about.spec.scale.level_unit,
        n_levels=N_LEVELS,
        options=options.chosen(),
        **about.facts(),
    )


def _texts(axis: Axis) -> tuple[str, ...]:
    return tuple(tick.label for tick in axis.ticks)


def _footer(frames_per_pixel: float, pool: str, about: Recording) -> list[str]:
    """Return the parameters that a reader needs to interpret the levels."""
    spec = about.spec
    padding = f", zero-padded to {spec.nfft}" if spec.nfft > spec.win_length else ""
    if is_constant_q(spec.bands):
        pieces = [f"{spec.window} filters, at most N = {spec.win_length}", f"hop {spec.hop}"]
    else:
        pieces = [
            f"{spec.window} window, N = {spec.win_length}{padding}",
            f"hop {spec.hop}",
            f"bin width {short_number(spec.delta_f)} Hz",
            f"ENBW {short_number(spec.enbw_hz)} Hz",
        ]
    pieces.append(f"sampled at {spec.fs:.10g} Hz")
    if spec.center_frequency_hz:
        pieces.append(f"centre {format_frequency(spec.center_frequency_hz)}")
    if spec.bands:
        pieces.append(f"bands {spec.bands}")
    if spec.weighting != "Z":
        pieces.append(f"{spec.weighting}-weighted")
    pieces += _calibration(spec)
    pieces += _averages(frames_per_pixel, pool, about)
    pieces += gap_texts(about.gaps, about.gap_samples / spec.fs, about.pauses)
    return [*pieces, about.software]


def _calibration(spec: SpectrumSpec) -> Iterator[str]:
    """Name the calibration, and where its frequency response is known."""
    ids = spec.scale.cal_id
    if not ids:
        return
    yield f"calibration {ids if len(ids) <= _IDS_MAX_CHARS else 'of several channels'}"
    ranges = {one.response_hz for one in spec.calibration if one and one.response_hz}
    for low_hz, high_hz in sorted(ranges)[:1]:
        yield f"response {short_number(low_hz)} to {short_number(high_hz)} Hz"


def _averages(frames_per_pixel: float, pool: str, about: Recording) -> Iterator[str]:
    """Describe the averaging of rows, and of columns that combine several of them."""
    spec = about.spec
    counted, what = frames_per_pixel, "frames"
    # A mean of means is a mean of all frames, but a column shows at least one whole row.
    has_less = frames_per_pixel < spec.averaging_frames
    if spec.averaging != "none" and (spec.averaging != pool or has_less):
        counted, what = frames_per_pixel / spec.averaging_frames, "rows"
    if spec.averaging == "exponential":
        yield f"exponential average of {spec.averaging_s:g} s"
    elif what == "rows":
        is_cut = 0 < about.row_frames < spec.averaging_frames
        n_frames = f"at most {about.row_frames}" if is_cut else spec.averaging_frames
        yield f"row: {spec.averaging} of {n_frames} frames"
    if spec.rate_hz:
        yield f"rows {short_number(spec.row_s)} s apart"
    if about.period_s:
        yield f"column: {pool} of a period, {short_number(about.period_s)} s"
    elif counted >= _FRAMES_STATED:
        yield f"column: {pool} of {short_number(counted)} {what}"
