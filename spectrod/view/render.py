"""The picture as lines of text: a pure function of the scene."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from textwrap import wrap

import numpy as np
from numpy.typing import NDArray

from spectrod.units import Float64Array
from spectrod.view.axes import ColumnAxis, LevelRange, frequency_axis
from spectrod.view.colour import N_SHADES, Style
from spectrod.view.controls import HELP, Look
from spectrod.view.peak import Peak, find_peak
from spectrod.view.status import losses_text, peak_text, plain
from spectrod.wire.schema import Frame

_BLOCKS = " ▁▂▃▄▅▆▇█"
_SHADE_CHARACTERS = np.array(list(" .:-=+*#%@"))
_MARGIN = 7  # characters for the labels on the left and the line beside them
_LABEL_STEPS_DB = (10, 20, 30, 60)
_ROWS_PER_AGE = 5
_MIN_WIDTH, _MIN_HEIGHT = 30, 10
_HELP_WIDTH = 46


@dataclass(frozen=True, slots=True, eq=False)
class HistoryRow:
    """One row of the waterfall."""

    t_s: float
    """Time of its reception, by the clock of ``Scene.now_s`` [s]."""
    levels: Float64Array
    """Highest level of each bin since the previous row, shape (n_bins,) [dB]."""


@dataclass(slots=True)
class Scene:
    """The content of the picture."""

    endpoint: str
    now_s: float = 0.0
    daemon_state: str | None = None
    """State from the last heartbeat of the visible source."""
    waiting_for: str = ""
    """Why that source delivers no samples."""
    silence_s: float = 0.0
    """Time since the last message [s]."""
    alive: bool = False
    frame: Frame | None = None
    levels: Float64Array | None = None
    """Levels of ``frame``, shape (n_bins,) [dB]."""
    history: Sequence[HistoryRow] = field(default_factory=list)
    """Rows of the waterfall, the newest first."""
    channels: Sequence[str] = field(default_factory=list)
    """All channels to choose from, each SOURCE/CHANNEL."""
    missed: int = 0
    products: Sequence[str] = field(default_factory=list)
    """Products of the visible channel."""
    look: Look = field(default_factory=Look)
    meters: Sequence[str] = field(default_factory=list)
    """Lines of the sound levels of the visible channel."""


def render(scene: Scene, width: int, height: int, style: Style) -> list[str]:
    """Draw a scene.

    Parameters
    ----------
    scene : Scene
        The content of the picture.
    width, height : int
        Size of the picture [characters].
    style : Style
        Colours.

    Returns
    -------
    lines : list of str
        At most height lines, each at most width characters wide without escape sequences.
    """
    frame, levels = scene.frame, scene.levels
    if scene.look.is_helping:
        return _help(width, height)
    if frame is None or levels is None:
        return wrap(_waiting_text(scene), max(1, width))[:height]
    if width < _MIN_WIDTH or height < _MIN_HEIGHT:
        return _too_small(scene, find_peak(levels, frame.header), frame, width)[:height]
    meters = scene.meters[: height - _MIN_HEIGHT]
    head = [line[:width] for line in (*_head(scene, frame, levels), *meters)]
    foot = _foot(scene, width, style)
    h = frame.header
    axis = frequency_axis(
        h.fs, h.nfft, width - _MARGIN, h.first_bin, scene.look.span, h.center_frequency_hz
    )
    shown = scene.look.shown_levels(h.unit)
    rows = height - len(head) - 3  # two lines of frequencies, one foot
    n_spectrum = max(4, rows * 2 // 5)
    return [
        *head,
        *_spectrum(axis.reduce(levels), shown, n_spectrum, style),
        *_frequencies(axis),
        *_waterfall(scene, axis, shown, rows - n_spectrum, style),
        foot,
    ]


def _help(width: int, height: int) -> list[str]:
    """List the keys in one or two columns, as far as there is room."""
    lines = [f"{keys:>11}  {what}" for keys, what in HELP]
    n_rows = max(1, height)
    if len(lines) > n_rows and width >= 2 * _HELP_WIDTH:
        half = -(-len(lines) // 2)
        pairs = zip_longest(lines[:half], lines[half:], fillvalue="")
        lines = [f"{left:<{_HELP_WIDTH}}{right}" for left, right in pairs]
    return [line[:width] for line in lines][:n_rows]


def _too_small(scene: Scene, peak: Peak | None, frame: Frame, width: int) -> list[str]:
    """Return the peak or the problem, and the size that is needed, in wrapped lines."""
    room = f"too small for a picture: needs {_MIN_WIDTH + 1} x {_MIN_HEIGHT} characters"
    texts = (_alarm(scene) or peak_text(peak, frame.header), room, "q quit")
    return [line for text in texts for line in wrap(text, max(1, width))]


def waiting_text(scene: Scene) -> str:
    """Return why the daemon's source delivers no samples."""
    return f"the daemon is waiting: {plain(scene.waiting_for)}"


def _waiting_text(scene: Scene) -> str:
    if scene.alive and scene.daemon_state is not None:
        if scene.waiting_for:
            return f"waiting for {scene.endpoint}: {waiting_text(scene)}"
        state = plain(scene.daemon_state)
        return f"waiting for {scene.endpoint}: the daemon is {state}, no spectrum yet"
    return f"waiting for {scene.endpoint}"


def _head(scene: Scene, frame: Frame, levels: Float64Array) -> list[str]:
    h = frame.header
    peak = peak_text(find_peak(levels, h), h)
    what = f"{frame.source}/{frame.channel}  {h.fs:.10g} Hz  {plain(h.window)} {h.win_length}"
    return [
        f"{what}  N {h.nfft}  hop {h.hop}  {plain(h.engine)}",
        f"peak {peak:<28}  seq {h.seq}  {losses_text(h, scene.missed)}",
    ]


def _foot(scene: Scene, width: int, style: Style) -> str:
    if alarm := _alarm(scene):
        text = alarm[:width]
        return f"\x1b[7m{text}{style.reset}" if style.reset else text
    channels = f"  1-{min(9, len(scene.channels))} channel" if len(scene.channels) > 1 else ""
    product = scene.frame.product if scene.frame else ""
    products = f"  p product ({product})" if len(scene.products) > 1 else ""
    return f"q quit{channels}{products}  ? help  {scene.endpoint}"[:width]


def _alarm(scene: Scene) -> str:
    """Return why the picture does not move; empty if it does."""
    if scene.alive:
        if scene.waiting_for:
            return waiting_text(scene)
        return "paused; space resumes" if scene.look.is_paused else ""
    text = f"no signal since {scene.silence_s:.1f} s"
    if scene.daemon_state in ("finished", "failed", "stopped"):
        text += f": the daemon has {scene.daemon_state}"
    return text


def _spectrum(columns: Float64Array, shown: LevelRange, rows: int, style: Style) -> list[str]:
    eighths = np.rint(shown.fraction(columns) * rows * 8).astype(int)
    labels = _level_labels(shown, rows)
    lines = []
    for row in range(rows):
        filled = np.clip(eighths - 8 * (rows - 1 - row), 0, 8)
        bar = "".join([_BLOCKS[k] for k in filled])
        shade = (N_SHADES - 1) - row * (N_SHADES * 3 // 4) // rows
        lines.append(f"{labels.get(row, ''):>6}│{style.foreground[shade]}{bar}{style.reset}")
    return lines


def _level_labels(shown: LevelRange, rows: int) -> dict[int, str]:
    """Return round levels by the row whose upper edge is nearest to them, not too dense."""
    span = shown.top_db - shown.bottom_db
    step = next((s for s in _LABEL_STEPS_DB if s * rows >= 2 * span), _LABEL_STEPS_DB[-1])
    first = np.floor(shown.top_db / step) * step
    levels = np.arange(first, shown.bottom_db, -step)
    return {int((shown.top_db - level) * rows / span): f"{level:.0f}" for level in levels}


def _frequencies(axis: ColumnAxis) -> list[str]:
    line = ["─"] * axis.columns
    labels = [" "] * axis.columns
    free_from = 0
    for column, label in axis.ticks():
        start = max(0, min(column - len(label) // 2, axis.columns - len(label)))
        if start >= free_from:
            line[column] = "┬"
            labels[start : start + len(label)] = label
            free_from = start + len(label) + 1
    return [" dB   └" + "".join(line), " Hz    " + "".join(labels)]


def _waterfall(
    scene: Scene, axis: ColumnAxis, shown: LevelRange, rows: int, style: Style
) -> list[str]:
    per_line = 1 if style.depth == "none" else 2  # in colour, half blocks hold two rows a line
    history = scene.history[: rows * per_line]
    shades = [
        (shown.fraction(axis.reduce(row.levels)) * (N_SHADES - 1)).astype(int) for row in history
    ]
    lines = []
    for line, start in enumerate(range(0, len(history), per_line)):
        is_labelled = line % _ROWS_PER_AGE == 0
        age = f"{scene.now_s - history[start].t_s:.1f}s" if is_labelled else ""
        cells = _cells(shades[start : start + per_line], style)
        lines.append(f"{age:>6}│{cells}{style.reset}")
    return lines + [""] * (rows - len(lines))


def _cells(shades: Sequence[NDArray[np.int64]], style: Style) -> str:
    """Return one line of the waterfall, from one row of shades, or from two in colour."""
    if style.depth == "none":
        steps = shades[0] * len(_SHADE_CHARACTERS) // N_SHADES
        return "".join(_SHADE_CHARACTERS[steps])
    lower = shades[-1] if len(shades) == 2 else np.zeros_like(shades[0])
    cells: list[str] = []
    before = (-1, -1)
    for pair in zip(shades[0].tolist(), lower.tolist(), strict=True):
        if pair != before:
            cells.append(style.foreground[pair[0]] + style.background[pair[1]])
            before = pair
        cells.append("▀")
    return "".join(cells)
