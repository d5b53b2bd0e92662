"""The picture: a pure function of the scene."""

from collections.abc import Sequence
from itertools import zip_longest
from textwrap import wrap

import numpy as np

from spectrod.apps.view.area import Area
from spectrod.apps.view.axes import ColumnAxis, LevelRange, frequency_axis
from spectrod.apps.view.canvas import Canvas
from spectrod.apps.view.colour import REVERSE, Style
from spectrod.apps.view.controls import HELP
from spectrod.apps.view.history import HistoryRow
from spectrod.apps.view.peak_list import LIST_WIDTH, peak_lines
from spectrod.apps.view.pixels import WIDTH_MAX_PX, PixelWaterfall
from spectrod.apps.view.scene import Scene, alarm, first_text, invalid_text
from spectrod.apps.view.status import engine_text, losses_text, peak_text, plain
from spectrod.apps.view.traces import Trace, draw_bars, draw_marks, draw_traces, uses_dots
from spectrod.apps.view.waterfall import WaterfallRows, draw_pixels, draw_waterfall
from spectrod.dsp.peak import find_peak
from spectrod.dsp.units import Float64Array
from spectrod.wire.schema import Frame, SpectrumHeader

__all__ = ["HistoryRow", "Scene", "draw", "render"]

_MARGIN = 7  # characters for the labels on the left and the line beside them
_LABEL_STEPS_DB = (10, 20, 30, 60)
_MIN_WIDTH, _MIN_HEIGHT = 30, 10
_LISTED_MIN_WIDTH = 45  # of the picture beside a list
_HELP_WIDTH = 46
_N_SPECTRUM_MIN = 4


def render(scene: Scene, width: int, height: int, style: Style) -> list[str]:
    """Draw a scene as text.

    Returns
    -------
    lines : list of str
        At most height lines, each at most width characters wide without escape sequences.
    """
    return draw(scene, width, height, style).lines(style)


def draw(scene: Scene, width: int, height: int, style: Style) -> Canvas:
    """Draw a scene.

    Parameters
    ----------
    scene : Scene
        The content of the picture.
    width, height : int
        Size of the picture [characters], each >= 1.
    style : Style
        Colours and characters.
    """
    canvas = Canvas(width, height)
    frame, levels = scene.frame, scene.levels
    if scene.look.is_helping:
        return canvas.texts(_help(width, height))
    if frame is None or levels is None:
        return canvas.texts(wrap(first_text(scene), max(1, width)))
    if width < _MIN_WIDTH or height < _MIN_HEIGHT:
        return canvas.texts(_too_small(scene, frame, levels, width))
    traces = _traces(scene, frame, levels)
    meters = scene.meters[: height - _MIN_HEIGHT]
    n_head = len(canvas_head := [*_head(scene, frame, levels, width), *meters])
    canvas.texts(canvas_head)
    if len(traces) > 1 and height > _MIN_HEIGHT + len(meters):
        _legend(canvas, n_head, traces, style)
        n_head += 1
    _draw_foot(canvas, scene)
    _draw_plots(canvas, scene, frame, traces, Area(n_head, 0, height - n_head - 1, width), style)
    return canvas


def _draw_plots(
    canvas: Canvas, scene: Scene, frame: Frame, traces: Sequence[Trace], area: Area, style: Style
) -> None:
    """Draw spectrum, frequencies and waterfall, and the list of peaks beside or below."""
    h, look = frame.header, scene.look
    listed = [] if scene.peaks is None else peak_lines(scene.peaks, h)
    is_beside = bool(listed) and area.width >= _LISTED_MIN_WIDTH + LIST_WIDTH
    columns = area.width - _MARGIN - (LIST_WIDTH if is_beside else 0)
    axis = _axis(scene, h, columns)
    shown = look.shown_levels(h.unit)
    rows = area.height - 2  # two lines of frequencies
    n_spectrum = max(_N_SPECTRUM_MIN, rows * 2 // 5)
    spectrum = Area(area.line, _MARGIN, n_spectrum, columns)
    _draw_scale(canvas, spectrum, shown, style)
    _draw_spectrum(canvas, spectrum, scene, traces, style)
    _draw_frequencies(canvas, area.line + n_spectrum, axis, style)
    first = area.line + n_spectrum + 2
    if listed and not is_beside:
        below = first
    else:
        below = area.line
        waterfall = Area(first, _MARGIN, rows - n_spectrum, columns)
        _draw_waterfall(canvas, waterfall, scene, frame, style)
    for line, text in enumerate(listed[: area.line + area.height - below]):
        canvas.text(below + line, area.width - LIST_WIDTH if is_beside else 0, text)


def _draw_waterfall(canvas: Canvas, area: Area, scene: Scene, frame: Frame, style: Style) -> None:
    """Draw the waterfall as pixels where the terminal shows them, else as characters."""
    h, graphics = frame.header, style.graphics
    shown = scene.look.shown_levels(h.unit)
    width_px = area.width * graphics.cell_width_px if graphics else 0
    if graphics and scene.look.is_pixels and style.has_colour and 0 < width_px <= WIDTH_MAX_PX:
        axis = _axis(scene, h, width_px)
        rows = scene.history, scene.n_rows, scene.generation
        picture = PixelWaterfall(area, graphics, axis, shown, *rows)
        draw_pixels(canvas, picture, scene.now_s, style.glyphs)
    else:
        shown_rows = WaterfallRows(scene.history, scene.n_rows, scene.now_s)
        draw_waterfall(canvas, area, shown_rows, _axis(scene, h, area.width), shown, style)


def _axis(scene: Scene, h: SpectrumHeader, columns: int) -> ColumnAxis:
    look = scene.look
    return frequency_axis(
        h.fs, h.nfft, columns, h.first_bin, look.span, h.center_frequency_hz, look.axis
    )


def _traces(scene: Scene, frame: Frame, levels: Float64Array) -> list[Trace]:
    """Return the lines, that of the visible channel first."""
    name = f"{frame.source}/{frame.channel}"
    n = scene.channels.index(name) + 1 if name in scene.channels else 1
    own = Trace(name, levels, 0, str(n % 10) if scene.look.is_overlaid else "*")
    return [own, *(one for one in scene.traces if one.levels.shape == levels.shape)]


def _draw_spectrum(
    canvas: Canvas, area: Area, scene: Scene, traces: Sequence[Trace], style: Style
) -> None:
    h = scene.frame.header if scene.frame else None
    if h is None:
        return
    shown = scene.look.shown_levels(h.unit)
    axis = _axis(scene, h, area.width)
    lines = list(traces)
    if not (scene.look.is_line or scene.look.is_overlaid):
        draw_bars(canvas, area, axis.reduce(traces[0].levels), shown, style)
        del lines[0]
    if uses_dots(traces, style):
        draw_traces(canvas, area, lines[::-1], _axis(scene, h, 2 * area.width), shown)
    else:
        draw_marks(canvas, area, lines[::-1], axis, shown)


def _legend(canvas: Canvas, line: int, traces: Sequence[Trace], style: Style) -> None:
    """Name the lines, each in its colour, or with its character."""
    column = 0
    for trace in traces:
        text = trace.name if uses_dots(traces, style) else f"{trace.mark} {trace.name}"
        canvas.text(line, column, text, trace.pen)
        column += len(text) + 2


def _help(width: int, height: int) -> list[str]:
    """List the keys in one or two columns, as far as there is room."""
    lines = [f"{keys:>11}  {what}" for keys, what in HELP]
    n_rows = max(1, height)
    if len(lines) > n_rows and width >= 2 * _HELP_WIDTH:
        half = -(-len(lines) // 2)
        pairs = zip_longest(lines[:half], lines[half:], fillvalue="")
        lines = [f"{left:<{_HELP_WIDTH}}{right}" for left, right in pairs]
    return lines


def _too_small(scene: Scene, frame: Frame, levels: Float64Array, width: int) -> list[str]:
    """Return the peak or the problem, and the size that is needed, in wrapped lines."""
    peak = peak_text(find_peak(levels, frame.header), frame.header)
    room = f"too small for a picture: needs {_MIN_WIDTH + 1} x {_MIN_HEIGHT} characters"
    texts = (alarm(scene) or peak, room, "q quit")
    return [line for text in texts for line in wrap(text, max(1, width))]


def _head(scene: Scene, frame: Frame, levels: Float64Array, width: int) -> list[str]:
    """Return two lines; of what does not fit, the least is left out."""
    h = frame.header
    peak, losses = peak_text(find_peak(levels, h), h), losses_text(h, scene.missed)
    what = f"{frame.source}/{frame.channel}  {h.fs:.10g} Hz  {plain(h.window)} {h.win_length}"
    what = f"{what}  N {h.nfft}  hop {h.hop}  "
    counts = f"seq {h.seq}  {losses}"
    padded = f"peak {peak:<28}  "
    forms = (padded + counts, padded + losses, f"peak {peak}  {losses}")
    return [
        what + engine_text(h.engine, width - len(what)),
        next((text for text in forms if len(text) <= width), forms[-1]),
    ]


def _draw_foot(canvas: Canvas, scene: Scene) -> None:
    text, pen = alarm(scene), REVERSE
    if not text and scene.n_invalid:
        text = invalid_text(scene)
    if not text:
        text, pen = _keys_text(scene), 0
    canvas.text(canvas.height - 1, 0, text, pen)


def _keys_text(scene: Scene) -> str:
    """Return the first keys to know, and the endpoint."""
    if not scene.has_keys:
        return plain(scene.endpoint)
    channels = f"  1-{min(9, len(scene.channels))} channel" if len(scene.channels) > 1 else ""
    product = scene.frame.product if scene.frame else ""
    products = f"  p product ({product})" if len(scene.products) > 1 else ""
    return f"q quit{channels}{products}  ? help  {plain(scene.endpoint)}"


def _draw_scale(canvas: Canvas, area: Area, shown: LevelRange, style: Style) -> None:
    labels = _level_labels(shown, area.height)
    for row in range(area.height):
        label = f"{labels.get(row, ''):>{_MARGIN - 1}}{style.glyphs.vertical}"
        canvas.text(area.line + row, 0, label)


def _level_labels(shown: LevelRange, rows: int) -> dict[int, str]:
    """Return round levels by the row whose upper edge is nearest to them, not too dense."""
    span = shown.top_db - shown.bottom_db
    step = next((s for s in _LABEL_STEPS_DB if s * rows >= 2 * span), _LABEL_STEPS_DB[-1])
    first = np.floor(shown.top_db / step) * step
    levels = np.arange(first, shown.bottom_db, -step)
    return {int((shown.top_db - level) * rows / span): f"{level:.0f}" for level in levels}


def _draw_frequencies(canvas: Canvas, line: int, axis: ColumnAxis, style: Style) -> None:
    """Draw an axis with ticks, and its labels below."""
    glyphs = style.glyphs
    canvas.text(line, 0, f" dB   {glyphs.corner}{glyphs.horizontal * axis.columns}")
    canvas.text(line + 1, 0, " Hz")
    free_from = 0
    for column, label in axis.ticks():
        start = max(0, min(column - len(label) // 2, axis.columns - len(label)))
        if start >= free_from and len(label) <= axis.columns:
            canvas.text(line, _MARGIN + column, glyphs.tick)
            canvas.text(line + 1, _MARGIN + start, label)
            free_from = start + len(label) + 1
