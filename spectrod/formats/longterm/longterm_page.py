"""Layout of the page of level statistics: all content, chosen and placed before drawing."""

from dataclasses import dataclass
from datetime import tzinfo

import numpy as np

from spectrod.dsp.units import Int64Array
from spectrod.formats.description import Description
from spectrod.formats.longterm.data import Span
from spectrod.formats.longterm.longterm_view import (
    SAMPLE_PX,
    Curve,
    column_values,
    density_limit,
    draw_curves,
    greatest_of_columns,
    pixel_density,
    to_entries,
)
from spectrod.formats.longterm.statistics import LevelStatistics, level_unit
from spectrod.formats.picture.axes import Axis, FrequencyAxis
from spectrod.formats.picture.colormaps import Uint8Array
from spectrod.formats.picture.labels import gap_texts, level_labels
from spectrod.formats.picture.lettering import text_width, wrap
from spectrod.formats.picture.page_layout import (
    BAR_WIDTH,
    FOOTER_LINE,
    HEADING_LINE,
    LABEL_GAP,
    LABEL_PX,
    PAD,
    SMALL_PX,
    TICK,
    TITLE_LINE,
    X_LABELS,
    fitting,
    widest,
)
from spectrod.formats.picture.picture_settings import PictureOptions
from spectrod.formats.picture.surface import Box
from spectrod.formats.picture.time_ticks import zone_title
from spectrod.lib.time_zones import local_time

_SHOWN = ((99, 2, 3), (95, 7, 3), (50, 0, 0), (5, 7, 3), (1, 2, 3))
"""Levels exceeded in so many percent of the time, with the dashes of their lines [px]."""
_MARGIN_DB, _STEP_DB, _SPAN_MIN_DB, _SPAN_MAX_DB = 3.0, 10.0, 20.0, 150.0
_OUTSIDE_PERCENT = 0.1
"""Rows of a bin that may lie beyond each end of an axis that is chosen automatically [%]."""
_BAR_LABELS = "share of rows per dB"


@dataclass(frozen=True, slots=True, eq=False)
class LongTermPage:
    """All drawn content, with its positions."""

    plots: tuple[Box, ...]
    bar: Box
    width: int
    height: int
    title: str
    names: tuple[str, ...]
    entries: Uint8Array
    curves: tuple[list[Curve], ...]
    f_axis: FrequencyAxis
    f_labels: Axis
    level_labels: Axis
    limits: tuple[float, float]
    bar_labels: Axis
    bar_limit: float
    footer: tuple[str, ...]


def compose(
    statistics: LevelStatistics, about: Description, options: PictureOptions, span: Span
) -> LongTermPage:
    """Choose and place all content; see ``draw_spd``."""
    spec = about.spec
    f_axis = options.frequency_axis(spec)
    width, height = options.width, options.height_for(spec.n_signals)
    columns = column_values(f_axis, width, spec)
    curves = tuple(_curves(statistics, columns, signal) for signal in range(spec.n_signals))
    limits = options.levels or _limits(statistics, columns)
    density = pixel_density(statistics, columns, limits, height)
    top = density_limit(density)
    entries = np.stack(
        [
            draw_curves(to_entries(one, top), several, limits)
            for one, several in zip(density, curves, strict=True)
        ]
    )
    levels = level_labels(*limits, height, level_unit(spec))
    names_width = max(text_width(curve.name, SMALL_PX) for curve in curves[0])
    left = PAD + TICK + LABEL_GAP + widest([tick.label for tick in levels.ticks])
    # The unit above the level axis is centred; a long one starts at the page's edge.
    left = max(left, PAD + round(text_width(levels.title, LABEL_PX) / 2.0))
    first = PAD + HEADING_LINE + (TITLE_LINE if options.title else 0)
    plots = tuple(
        Box(left, first + n * (height + HEADING_LINE + 4), width, height)
        for n in range(spec.n_signals)
    )
    bar = Box(
        plots[0].right + SAMPLE_PX + 2 * LABEL_GAP + round(names_width) + 24,
        first,
        BAR_WIDTH,
        plots[-1].bottom - first,
    )
    bar_labels = level_labels(0.0, top, bar.height, _BAR_LABELS)
    labels_end = bar.right + TICK + LABEL_GAP + widest([tick.label for tick in bar_labels.ticks])
    page_width = PAD + max(labels_end, bar.left + round(text_width(_BAR_LABELS, LABEL_PX)))
    footer_text = _footer(statistics, about, span, zone=options.zone if options.has_clock else None)
    footer = tuple(wrap(footer_text, SMALL_PX, page_width - PAD - left))
    names = about.signals
    if options.signals:
        names = options.names(spec.n_signals)
    return LongTermPage(
        plots=plots,
        bar=bar,
        width=page_width,
        height=plots[-1].bottom + X_LABELS + len(footer) * FOOTER_LINE + PAD,
        title=options.title,
        names=names if spec.n_signals > 1 else (),
        entries=entries,
        curves=curves,
        f_axis=f_axis,
        f_labels=_across(f_axis, width),
        level_labels=levels,
        limits=limits,
        bar_labels=bar_labels,
        bar_limit=top,
        footer=footer,
    )


def _curves(
    statistics: LevelStatistics, columns: tuple[Int64Array, ...], signal: int
) -> list[Curve]:
    """Return exceedance levels from the lowest up, then the mean; largest of several bins."""
    found = [
        Curve(
            f"L{percent}",
            greatest_of_columns(statistics.exceeded(percent)[signal], columns),
            drawn_px,
            left_out_px,
        )
        for percent, drawn_px, left_out_px in _SHOWN
    ]
    mean = greatest_of_columns(statistics.mean[signal], columns)
    return [*found, Curve("mean", mean, is_main=True)]


def _limits(statistics: LevelStatistics, columns: tuple[Int64Array, ...]) -> tuple[float, float]:
    """Choose the level axis, which contains the curves and nearly all rows of each bin.

    Neither a single silent row among many thousands nor silence in some bins may compress all
    others: the axis spans at most 150 dB, about the range of 24 bits.
    """
    shown = slice(int(columns[0].min()), int(columns[1].max()))
    lowest = statistics.exceeded(100.0 - _OUTSIDE_PERCENT)[:, shown].min()
    highest = max(
        statistics.exceeded(_OUTSIDE_PERCENT)[:, shown].max(), statistics.mean[:, shown].max()
    )
    lo = _STEP_DB * np.floor((float(lowest) - _MARGIN_DB) / _STEP_DB)
    hi = _STEP_DB * np.ceil((float(highest) + _MARGIN_DB) / _STEP_DB)
    return float(np.clip(lo, hi - _SPAN_MAX_DB, hi - _SPAN_MIN_DB)), float(hi)


def _across(axis: FrequencyAxis, width: int) -> Axis:
    return fitting(
        axis.candidates(max(5, width // 80)),
        lambda f_hz: axis.fraction(f_hz) * width,
        lambda label: text_width(label, LABEL_PX),
        spacing=16.0,
    )


def _footer(
    statistics: LevelStatistics, about: Description, span: Span, *, zone: tzinfo | None
) -> list[str]:
    spec = about.spec
    row_s = spec.row_s
    kind = {"none": "spectra", "mean": "means"}.get(spec.averaging, spec.averaging)
    pieces = [
        f"{statistics.n_rows} {kind}, {row_s:.4g} s apart",
        *([_times(span, zone)] if zone else []),
        f"classes of {statistics.step_db:g} dB",
        f"{spec.window} window, N = {spec.win_length}",
        f"bin width {spec.delta_f:.4g} Hz",
        f"ENBW {spec.enbw_hz:.4g} Hz",
    ]
    if spec.weighting != "Z":
        pieces.append(f"{spec.weighting}-weighted")
    pieces += gap_texts(span.gaps, span.gap_samples / spec.fs, span.pauses)
    if about.cal_id:
        pieces.append(f"calibration {about.cal_id}")
    return [*pieces, about.software]


def _times(span: Span, zone: tzinfo) -> str:
    ends = span.begin_utc_ns, span.end_utc_ns
    begin, end = (f"{local_time(one, zone):%Y-%m-%d %H:%M:%S}" for one in ends)
    return f"{begin} to {end} {zone_title(ends, zone)}"
