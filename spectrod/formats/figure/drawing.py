"""What all figures have in common: size, typeface, lines, and files that are the same each time."""

import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from spectrod.formats.figure.figure_look import FigureLook
from spectrod.formats.whole_files import whole_file
from spectrod.lib.optional_packages import need
from spectrod.lib.text import printable

_MARGINS_IN: Final = 0.9
_TITLE_CHARS, _TITLE_LINES, _TITLE_LINE_IN = 12.0, 3, 0.17
"""Characters of an inch, most lines, and height of a line [inch]."""

# The colours of Okabe and Ito (2008) that are dark enough for lines on white.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9")
_DASHES = ("-", (0, (5, 1.2)), (0, (2, 1)), (0, (7, 1.2, 1.5, 1.2)), (0, (1, 1)))
LINES_MAX: Final = len(_COLOURS) * 2
"""Most lines of a panel."""
PANELS_MAX: Final = 24
"""Most panels of a figure."""
GREY: Final = "#808080"
_DASHED_MAX = 1000
_LEGEND_CHARS = 13.75
"""Characters that fit above an inch of a panel, with 6 for each line's sample."""
_STEPS = (1, 2, 5, 10)
"""Distances of ticks, and their multiples by powers of ten."""

_STYLE = {
    "axes.axisbelow": True,
    "axes.formatter.useoffset": False,
    "axes.grid": True,
    "axes.titlelocation": "left",
    "axes.titlesize": "medium",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.family": "DejaVu Sans",  # matplotlib brings it
    "font.size": 9.0,
    "grid.color": "#d8d8d8",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.1,
    # So that an interval between two gaps is a dot at least.
    "lines.solid_capstyle": "round",
    "pdf.fonttype": 42,  # letters that can be searched and edited
    "svg.fonttype": "none",
    "svg.hashsalt": "spectrod",
    "text.parse_math": False,
}
_METADATA: dict[str, dict[str, str | None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": "spectrod"},
    "pdf": {"CreationDate": None, "Creator": "spectrod", "Producer": None},
}
"""Neither the time nor matplotlib's version, which differ between equal figures."""


def need_matplotlib() -> None:
    """Check that matplotlib is installed; raises UnavailableError."""
    need("matplotlib", "plot")


@contextmanager
def figure_style() -> Iterator[None]:
    """Draw and save in our style in the block, whatever a user's ``matplotlibrc`` says."""
    matplotlib = need("matplotlib", "plot")
    with matplotlib.rc_context(), warnings.catch_warnings():
        # A character of a name that no font has is drawn as a box.
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


def new_figure(
    title: str, heights_in: Sequence[float], look: FigureLook, *, shares_x: bool = False
) -> tuple[Any, list[Any]]:
    """Make a figure with panels below each other.

    Parameters
    ----------
    title : str
        Heading where ``look`` has none; a long one has up to three lines.
    heights_in : sequence of float
        Height of each panel where ``look`` has none [inch].
    look : FigureLook
    shares_x : bool
        Whether all have the horizontal axis of the last.

    Returns
    -------
    figure : matplotlib.figure.Figure
    panels : list of matplotlib.axes.Axes
        From top to bottom.
    """
    need_matplotlib()
    heading = textwrap.wrap(
        printable(title if look.title is None else look.title),
        int(_TITLE_CHARS * look.width_in),
        max_lines=_TITLE_LINES,
        placeholder=" ...",
    )
    needed_in = _MARGINS_IN + _TITLE_LINE_IN * max(0, len(heading) - 1) + sum(heights_in)
    figure = need("matplotlib.figure", "plot").Figure(
        figsize=look.size_in(needed_in), dpi=look.dpi, layout="constrained"
    )
    figure.suptitle("\n".join(heading), x=0.01, ha="left", fontsize=10)
    panels = figure.subplots(
        len(heights_in), 1, sharex=shares_x, squeeze=False, height_ratios=heights_in
    )
    ticker = need("matplotlib.ticker", "plot")
    for panel in panels[:, 0]:
        panel.yaxis.set_major_locator(ticker.MaxNLocator("auto", steps=_STEPS))
    return figure, list(panels[:, 0])


def line_style(number: int, n_points: int = 0) -> dict[str, Any]:
    """Return colour and dashes of a line, which differ both from those of its neighbours.

    Parameters
    ----------
    number : int
        Number of the line in its panel.
    n_points : int
        Its points; of more than ``_DASHED_MAX`` it is thin and solid, since dashes would be torn
        into dots.
    """
    colour = _COLOURS[number % len(_COLOURS)]
    if n_points > _DASHED_MAX:
        return {"color": colour, "linestyle": "-", "linewidth": 0.7}
    return {"color": colour, "linestyle": _DASHES[number % len(_DASHES)]}


def put_lowest_in_front(lines: Sequence[Any]) -> None:
    """Order lines by their means: dense ones cover what is behind them, but their peaks differ."""

    def mean(line: Any) -> float:
        values = line.get_ydata()
        finite = values[np.isfinite(values)]
        return float(finite.mean()) if finite.size else -np.inf

    for depth, line in enumerate(sorted(lines, key=mean, reverse=True)):
        line.set_zorder(2.0 + depth / LINES_MAX)


def widen(panel: Any, range_min: float) -> None:
    """Give a panel's vertical axis at least this range."""
    low, high = panel.get_ylim()
    if high - low < range_min:
        middle = 0.5 * (low + high)
        panel.set_ylim(middle - 0.5 * range_min, middle + 0.5 * range_min)


def add_legend(panel: Any, lines: Sequence[Any]) -> None:
    """Name lines above a panel, where the names cover no data."""
    names = [one.get_label() for one in lines]
    room = int(_LEGEND_CHARS * panel.figure.get_figwidth())
    n_columns = max(1, min(len(names), room // (6 + max(map(len, names)))))
    n_rows = -(-len(names) // n_columns)
    panel.legend(
        lines,
        names,
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=-(-len(names) // n_rows),
        borderaxespad=0.2,
        handlelength=2.6,
        fontsize="small",
    )


def write_figure(path: Path, draw: Callable[[], Any]) -> None:
    """Draw a figure in our style, and write it as a whole or not at all.

    Parameters
    ----------
    path : Path
        With one of the suffixes of ``save``.
    draw : callable
        Returns a ``matplotlib.figure.Figure``.

    Raises
    ------
    StorageError
        If the file cannot be written.
    UnavailableError
        If matplotlib is not installed.
    """
    with figure_style(), whole_file(path) as part, part.open("xb") as file:
        save(draw(), file, path.suffix)


def save(figure: Any, file: IO[bytes], suffix: str) -> None:
    """Write a figure as ``.png``, ``.svg`` or ``.pdf``; equal figures are equal bytes."""
    kind = suffix.lower().lstrip(".")
    figure.savefig(file, format=kind, dpi=figure.dpi, metadata=_METADATA[kind])
