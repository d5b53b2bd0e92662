"""The picture of level statistics: frequency across, level up, how often in colour."""

import dataclasses
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from PIL import Image, PngImagePlugin

from spectrod.record.longterm.data import Span
from spectrod.record.longterm.statistics import LevelStatistics, level_unit
from spectrod.record.longterm.view import (
    Curve,
    column_values,
    density_limit,
    draw_curves,
    mean_of_columns,
    pixel_density,
    to_entries,
)
from spectrod.record.picture.axes import Axis, FrequencyAxis, linear_ticks
from spectrod.record.picture.colormaps import Uint8Array
from spectrod.record.picture.layout import (
    BAR_WIDTH,
    FOOTER_LINE,
    LABEL_GAP,
    LABEL_PX,
    MINOR_TICK,
    PAD,
    SMALL_PX,
    TICK,
    TITLE_PX,
    fitting,
)
from spectrod.record.picture.lettering import shorten, text_width, wrap
from spectrod.record.picture.options import PictureOptions
from spectrod.record.picture.sheet import Sheet
from spectrod.record.picture.surface import SOFT_INK, Box, Surface
from spectrod.record.picture.theme import N_LEVELS, THEMES, palette
from spectrod.record.picture.vector import VectorSheet
from spectrod.record.recording import Description

METADATA_KEY = "spectrod-levels"
"""Name of the PNG text entry that says what the pixels mean."""

_SHOWN = (99, 95, 50, 5, 1)
_MAIN = 50
_MARGIN_DB, _STEP_DB, _SPAN_MIN_DB = 3.0, 10.0, 20.0
_HEADING, _X_LABELS, _TITLE_LINE = 28, 44, 26
_LABEL_SPACING = 15
"""Between the middles of the curves' names [px]."""
_BAR_LABELS = "1/dB"


@dataclass(frozen=True, slots=True, eq=False)
class _Page:
    """All that is drawn, and where."""

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


def draw_spd(
    statistics: LevelStatistics,
    about: Description,
    options: PictureOptions,
    span: Span,
    *,
    suffix: str,
) -> bytes:
    """Draw the spectral probability density with exceedance levels and the mean.

    Parameters
    ----------
    statistics : LevelStatistics
        Of at least one row.
    about : Description
        What they mean.
    options : PictureOptions
        See ``SpdSink``.
    span : Span
        When the rows were recorded.
    suffix : str
        .png, .jpg, .jpeg, .webp or .svg.

    Returns
    -------
    content : bytes
        Of the file.
    """
    page = _compose(statistics, about, options, span)
    theme = THEMES[options.theme]
    colours = palette(options.colormap, theme)
    meaning = _meaning(page, statistics, about, span)
    if suffix == ".svg":
        sheet = VectorSheet(page.width, page.height, theme, colours)
        _draw(page, sheet)
        return sheet.svg(page.title, meaning)
    pixels = Sheet(page.width, page.height)
    _draw(page, pixels)
    image = Image.fromarray(pixels.entries())
    image.putpalette(colours)
    return _encoded(image, suffix, page.title, meaning)


def _compose(
    statistics: LevelStatistics, about: Description, options: PictureOptions, span: Span
) -> _Page:
    spec = about.spec
    f_axis = options.frequency_axis(spec)
    width, height = options.width, options.height_for(spec.n_signals)
    columns = column_values(f_axis, width, spec)
    curves = tuple(_curves(statistics, columns, signal) for signal in range(spec.n_signals))
    limits = options.levels or _limits(curves)
    density = pixel_density(statistics, columns, limits, height)
    top = density_limit(density)
    entries = np.stack(
        [
            draw_curves(to_entries(one, top), several, limits)
            for one, several in zip(density, curves, strict=True)
        ]
    )
    level_labels = _upwards(limits, height, level_unit(spec))
    names_width = max(text_width(curve.name, SMALL_PX) for curve in curves[0])
    left = PAD + TICK + LABEL_GAP + _widest([tick.label for tick in level_labels.ticks])
    # The unit above the level axis begins at the page's edge where it is longer than the labels.
    left = max(left, PAD + round(text_width(level_labels.title, LABEL_PX) / 2.0))
    first = PAD + _HEADING + (_TITLE_LINE if options.title else 0)
    plots = tuple(
        Box(left, first + n * (height + _HEADING + 4), width, height) for n in range(spec.n_signals)
    )
    bar = Box(
        plots[0].right + LABEL_GAP + round(names_width) + 24,
        first,
        BAR_WIDTH,
        plots[-1].bottom - first,
    )
    bar_labels = _upwards((0.0, top), bar.height, _BAR_LABELS)
    labels_end = bar.right + TICK + LABEL_GAP + _widest([tick.label for tick in bar_labels.ticks])
    page_width = labels_end + PAD
    footer = tuple(wrap(_footer(statistics, about, span), SMALL_PX, page_width - PAD - left))
    names = about.signals
    if options.signals:
        names = options.names(spec.n_signals)
    return _Page(
        plots=plots,
        bar=bar,
        width=page_width,
        height=plots[-1].bottom + _X_LABELS + len(footer) * FOOTER_LINE + PAD,
        title=options.title,
        names=names if spec.n_signals > 1 else (),
        entries=entries,
        curves=curves,
        f_axis=f_axis,
        f_labels=_across(f_axis, width),
        level_labels=level_labels,
        limits=limits,
        bar_labels=bar_labels,
        bar_limit=top,
        footer=footer,
    )


def _curves(
    statistics: LevelStatistics, columns: tuple[np.ndarray, ...], signal: int
) -> list[Curve]:
    """Exceedance levels from the lowest up, then the mean; of several bins their mean level."""
    found = [
        Curve(f"L{percent}", mean_of_columns(statistics.exceeded(percent)[signal], columns))
        for percent in _SHOWN
    ]
    mean = mean_of_columns(statistics.mean[signal], columns)
    return [*found, Curve("mean", mean, is_main=True)]


def _limits(curves: Sequence[list[Curve]]) -> tuple[float, float]:
    """Choose the level axis: what the curves reach, to multiples of 10 dB."""
    levels = np.concatenate([curve.level for several in curves for curve in several])
    lo = _STEP_DB * np.floor((float(levels.min()) - _MARGIN_DB) / _STEP_DB)
    hi = _STEP_DB * np.ceil((float(levels.max()) + _MARGIN_DB) / _STEP_DB)
    return float(min(lo, hi - _SPAN_MIN_DB)), float(hi)


def _widest(labels: Sequence[str]) -> int:
    return max((round(text_width(label, LABEL_PX)) for label in labels), default=0)


def _upwards(limits: tuple[float, float], height: int, unit: str) -> Axis:
    lo, hi = limits
    counts = range(max(5, height // 40), 0, -1)
    return fitting(
        (Axis(linear_ticks(lo, hi, count), unit) for count in counts),
        lambda value: (value - lo) / (hi - lo) * height,
        lambda _: LABEL_PX,
        spacing=6.0,
    )


def _across(axis: FrequencyAxis, width: int) -> Axis:
    return fitting(
        axis.candidates(max(5, width // 80)),
        lambda f_hz: axis.fraction(f_hz) * width,
        lambda label: text_width(label, LABEL_PX),
        spacing=16.0,
    )


def _footer(statistics: LevelStatistics, about: Description, span: Span) -> list[str]:
    spec = about.spec
    row_s = spec.hop * spec.averaging_frames / spec.fs
    kind = {"none": "spectra", "mean": "means"}.get(spec.averaging, spec.averaging)
    pieces = [
        f"{statistics.n_rows} {kind}, {row_s:.4g} s apart",
        f"{_time(span.begin_utc_ns)} to {_time(span.end_utc_ns)} UTC",
        f"classes of {statistics.step_db:g} dB",
        f"{spec.window} window, N = {spec.win_length}",
        f"bin width {spec.delta_f:.4g} Hz",
        f"ENBW {spec.enbw_hz:.4g} Hz",
    ]
    if spec.weighting != "Z":
        pieces.append(f"{spec.weighting}-weighted")
    if span.gaps:
        pieces.append(f"gaps: {span.gaps}, {span.gap_samples / spec.fs:.4g} s missing")
    if about.cal_id:
        pieces.append(f"calibration {about.cal_id}")
    return [*pieces, about.software]


def _time(utc_ns: int) -> str:
    return f"{datetime.fromtimestamp(utc_ns // 10**9, UTC):%Y-%m-%d %H:%M:%S}"


# ---- to the surface


def _draw(page: _Page, sheet: Surface) -> None:
    left = page.plots[0].left
    if page.title:
        room = page.width - PAD - left
        sheet.text((left, PAD + LABEL_GAP), shorten(page.title, TITLE_PX, room), TITLE_PX)
    for number, box in enumerate(page.plots):
        sheet.picture(box, page.entries[number])
        sheet.frame(box)
        _draw_left(page, sheet, box)
        _draw_bottom(page, sheet, box)
        _draw_names(page.curves[number], page.limits, sheet, box)
        if page.names:
            name = shorten(page.names[number], LABEL_PX, box.width // 2)
            sheet.text((box.left + box.width // 2, box.top - 17), name, LABEL_PX, align=0.5)
    _draw_bar(page, sheet)
    y = page.plots[-1].bottom + _X_LABELS + FOOTER_LINE
    for number, line in enumerate(page.footer):
        sheet.text((left, y + number * FOOTER_LINE), line, SMALL_PX, ink=SOFT_INK)


def _draw_left(page: _Page, sheet: Surface, box: Box) -> None:
    lo, hi = page.limits
    edge = box.left - 2
    for tick in page.level_labels.ticks:
        y = box.y((tick.value - lo) / (hi - lo))
        sheet.line((edge - TICK + 1, y), (edge, y), SOFT_INK)
        sheet.text((edge - TICK - LABEL_GAP + 1, y), tick.label, LABEL_PX, align=1.0)
    sheet.text((PAD, box.top - 17), page.level_labels.title, LABEL_PX, ink=SOFT_INK)


def _draw_bottom(page: _Page, sheet: Surface, box: Box) -> None:
    for tick in page.f_axis.minor():
        x = box.x(page.f_axis.fraction(tick.value))
        sheet.line((x, box.bottom + 1), (x, box.bottom + MINOR_TICK), SOFT_INK)
    is_last = box is page.plots[-1]
    y = box.bottom + TICK + LABEL_GAP + LABEL_PX // 2
    for tick in page.f_labels.ticks:
        x = box.x(page.f_axis.fraction(tick.value))
        sheet.line((x, box.bottom + 1), (x, box.bottom + TICK), SOFT_INK)
        if is_last:
            sheet.text((x, y), tick.label, LABEL_PX, align=0.5)
    if is_last:
        middle = (box.left + box.width / 2.0, y + LABEL_PX + 6)
        sheet.text(middle, page.f_labels.title, LABEL_PX, align=0.5, ink=SOFT_INK)


def _draw_names(curves: list[Curve], limits: tuple[float, float], sheet: Surface, box: Box) -> None:
    """Write the curves' names at their right ends, moved apart where they would touch."""
    lo, hi = limits
    ends = sorted(
        (float(np.clip((hi - c.level[-1]) / (hi - lo), 0.0, 1.0)), c.name) for c in curves
    )
    places = _apart([fraction * box.height for fraction, _ in ends], float(box.height))
    for y, (_, name) in zip(places, ends, strict=True):
        sheet.text((box.right + LABEL_GAP + 1, box.top + y), name, SMALL_PX)


def _apart(wanted: list[float], height: float) -> list[float]:
    """Move places apart, ascending ones, about where they were and within the height."""
    places = list(wanted)
    for n in range(1, len(places)):
        places[n] = max(places[n], places[n - 1] + _LABEL_SPACING)
    shift = float(np.mean(np.subtract(places, wanted)))
    places = [place - shift for place in places]
    for n in range(len(places)):
        least = places[n - 1] + _LABEL_SPACING if n else 0.0
        places[n] = max(places[n], least)
    most = height
    for n in reversed(range(len(places))):
        places[n] = min(places[n], most)
        most = places[n] - _LABEL_SPACING
    return places


def _draw_bar(page: _Page, sheet: Surface) -> None:
    bar = page.bar
    ramp = np.linspace(N_LEVELS - 1, 0, bar.height).round().astype(np.uint8)
    sheet.picture(bar, ramp[:, np.newaxis])
    sheet.frame(bar)
    sheet.text((bar.left, bar.top - 17), page.bar_labels.title, LABEL_PX, ink=SOFT_INK)
    for tick in page.bar_labels.ticks:
        y = bar.y(tick.value / page.bar_limit)
        sheet.line((bar.right + 1, y), (bar.right + TICK, y), SOFT_INK)
        sheet.text((bar.right + TICK + LABEL_GAP, y), tick.label, LABEL_PX)


# ---- to the file


def _meaning(page: _Page, statistics: LevelStatistics, about: Description, span: Span) -> str:
    """Say what pixels mean: column x of a plot is at the fraction (x + 0.5) / width of the axis."""
    spec = about.spec
    return json.dumps(
        {
            "v": 1,
            "plots": [[box.left, box.top, box.width, box.height] for box in page.plots],
            "f_scale": page.f_axis.scale,
            "f_min_hz": page.f_axis.lo_hz,
            "f_max_hz": page.f_axis.hi_hz,
            "level_min": page.limits[0],
            "level_max": page.limits[1],
            "level_unit": page.level_labels.title,
            "density_max": page.bar_limit,
            "n_levels": N_LEVELS,
            "n_rows": statistics.n_rows,
            "step_db": statistics.step_db,
            **dataclasses.asdict(span),
            "source": about.source,
            "software": about.software,
            "cal_id": about.cal_id,
            "spec": {
                one.name: getattr(spec, one.name) for one in dataclasses.fields(spec) if one.init
            },
        }
    )


def _encoded(image: Image.Image, suffix: str, title: str, meaning: str) -> bytes:
    out = io.BytesIO()
    if suffix == ".png":
        info = PngImagePlugin.PngInfo()
        if title:
            # A file name that is not UTF-8 comes with lone surrogates, which no encoding takes.
            info.add_text("Title", title.encode("utf-8", "replace").decode())
        info.add_text(METADATA_KEY, meaning)
        image.save(out, format="PNG", pnginfo=info)
        return out.getvalue()
    exif = Image.Exif()
    exif[0x010E] = meaning  # ImageDescription
    rgb = image.convert("RGB")
    if suffix == ".webp":
        rgb.save(out, format="WEBP", lossless=True, exif=exif)
    else:
        # Letters and single lines would smear with colours at half the resolution.
        rgb.save(out, format="JPEG", quality=92, subsampling=0, exif=exif)
    return out.getvalue()
