"""Figures of measurements: each quantity over time, and levels in bands."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from spectrod.dsp.units import NS_PER_S
from spectrod.formats.figure.band_bars import draw_bands
from spectrod.formats.figure.drawing import (
    LINES_MAX,
    PANELS_MAX,
    add_legend,
    figure_style,
    line_style,
    need_matplotlib,
    new_figure,
    put_lowest_in_front,
    save,
    widen,
)
from spectrod.formats.figure.figure_look import FigureLook
from spectrod.formats.figure.interval_cells import IntervalCells, dots, only_within
from spectrod.formats.figure.time_axis import TimeAxis
from spectrod.formats.values.measurement_description import MeasurementDescription
from spectrod.formats.values.measurement_table import begin_ns
from spectrod.formats.values.value_writer import ValueWriter
from spectrod.lib.errors import ConfigError
from spectrod.lib.time_zones import find_zone
from spectrod.measure.levels import LevelRow
from spectrod.measure.levels.level_quantities import PERIODS
from spectrod.measure.measurement import Measurement, Quantity

_PARTS = {f"L{part}": part for part in PERIODS}
"""Quantities of a part of the day, which are drawn there."""
_OF_DAYS = (*_PARTS, "Lden")
_SHARED_UNITS = ("level", "LUFS")
"""Units whose quantities are lines of one panel; each other quantity has one of its own."""
_LEVEL_UNITS = ("level", "exposure", "LUFS", "LU", "dB", "dBFS", "dBTP", "dBc")
_LEVELS_MIN_DB = 1.0
"""Least range of an axis of levels; smaller changes are none that anybody looks for [dB]."""
_RANGE_MIN = 1e-6
"""Least range of an axis of other values, as a share of them: less is rounding, as a rule."""
_SHARED_IN, _OWN_IN, _BANDS_IN = 2.6, 1.5, 2.8
_GAP_MIN = 0.01
"""Time without samples that counts as a gap [intervals]."""


@dataclass(frozen=True, slots=True)
class HistoryLine:
    """A line of a panel.

    Attributes
    ----------
    quantity : int
        Index of its quantity.
    channel : int
        Index of its channel.
    name : str
        Its name in the panel; empty if it needs none.
    """

    quantity: int
    channel: int
    name: str


@dataclass(frozen=True, slots=True)
class HistoryPanel:
    """Values over time that have one vertical axis.

    Attributes
    ----------
    title : str
        What its lines have in common.
    axis : str
        Label of the vertical axis, with the unit.
    lines : tuple of HistoryLine
    height_in : float
        Height [inch].
    """

    title: str
    axis: str
    lines: tuple[HistoryLine, ...]
    height_in: float


def panels_of(about: MeasurementDescription) -> list[HistoryPanel]:
    """Return the panels of a history.

    Levels of a channel share one, and so do loudnesses; each other quantity has one of its own,
    with a line for each channel.

    Raises
    ------
    ConfigError
        If there are no quantities, more than ``PANELS_MAX`` panels, or more than ``LINES_MAX``
        lines in one.
    """
    if not about.quantities:
        raise ConfigError("a figure needs a quantity, and there are values of bins alone")
    panels = [*_level_panels(about), *_quantity_panels(about)]
    n_panels = len(panels) + (len(about.channels) if about.bands.filters else 0)
    n_lines = max(len(one.lines) for one in panels)
    for n, what, most in ((n_panels, "panels", PANELS_MAX), (n_lines, "lines", LINES_MAX)):
        if n > most:
            rule = f"a figure has at most {most}; choose fewer quantities or channels"
            raise ConfigError(f"{n} {what}: {rule}")
    return panels


def _level_panels(about: MeasurementDescription) -> Iterator[HistoryPanel]:
    shared = [k for k, one in enumerate(about.quantities) if one.unit == "level"]
    for channel, name in enumerate(about.channels if shared else ()):
        lines = tuple(HistoryLine(k, channel, about.quantities[k].name) for k in shared)
        title = f"channel {name}" if len(about.channels) > 1 else ""
        yield HistoryPanel(title, f"level [{about.units[channel]}]", lines, _SHARED_IN)


def _quantity_panels(about: MeasurementDescription) -> Iterator[HistoryPanel]:
    loudnesses = [k for k, one in enumerate(about.quantities) if one.unit == "LUFS"]
    for k, one in enumerate(about.quantities):
        unit = about.unit(one)
        if one.unit not in _SHARED_UNITS:
            yield HistoryPanel(one.name, f"[{unit}]", tuple(_channel_lines(about, k, one)), _OWN_IN)
        elif loudnesses[:1] == [k]:
            lines = tuple(HistoryLine(j, 0, about.quantities[j].name) for j in loudnesses)
            yield HistoryPanel("", f"loudness [{unit}]", lines, _SHARED_IN)


def _channel_lines(
    about: MeasurementDescription, k: int, quantity: Quantity
) -> Iterator[HistoryLine]:
    several = len(about.channels) > 1 and not quantity.is_of_all_channels
    for channel, name in enumerate(about.channels if several else about.channels[:1]):
        yield HistoryLine(k, channel, f"channel {name}" if several else "")


class MeasurementFigure:
    """Takes measurements, and draws them.

    Memory is bounded: of more intervals than a figure can show, neighbours are joined, and their
    extremes are drawn. Time without samples stays empty, but for that within an interval and, with
    the pauses of a schedule, for as much between two.

    Parameters
    ----------
    description : MeasurementDescription
        Description of all rows.

    Attributes
    ----------
    total : Measurement or None
        The row of all intervals together, whose values are shown beside levels.

    Raises
    ------
    ConfigError
        As ``panels_of``.
    """

    def __init__(self, description: MeasurementDescription) -> None:
        self.description = description
        self.total: Measurement | None = None
        self._panels = panels_of(description)
        n_values = len(description.quantities) * len(description.channels)
        gap_min_ns = _GAP_MIN * description.interval_s * NS_PER_S
        self._history = IntervalCells(n_values, gap_min_ns)
        self._days = IntervalCells(n_values, gap_min_ns)
        self._n_rows = 0

    def add(self, row: Measurement) -> None:
        """Add the next interval, or the day of the intervals before."""
        is_day = self.description.has_days and isinstance(row, LevelRow) and row.is_day
        cells = self._days if is_day else self._history
        begin = begin_ns(self.description, row)
        measured_ns = round(row.duration_s * NS_PER_S)
        missing = max(0, row.span_samples - row.n_samples)
        missing_ns = round(missing * NS_PER_S / self.description.fs)
        cells.add(begin, begin + measured_ns + missing_ns, row.values.ravel(), missing_ns)
        if not is_day:
            self._last = row
            self._n_rows += 1

    def draw(self, look: FigureLook) -> Any:
        """Return the ``matplotlib.figure.Figure`` of the rows so far, at least one."""
        about, total = self.description, self.total or self._last
        band_row = total if isinstance(total, LevelRow) and about.bands.filters else None
        panels = [] if band_row and self._n_rows == 1 else self._panels
        channels = range(len(about.channels)) if band_row else range(0)
        heights = [*(one.height_in for one in panels), *(_BANDS_IN for _ in channels)]
        title = f"{about.title} of {about.source}"
        figure, axes = new_figure(title, heights, look)
        self._draw_history(panels, axes[: len(panels)])
        for channel, one in zip(channels, axes[len(panels) :], strict=True):
            assert band_row is not None
            draw_bands(one, about, band_row, channel)
        return figure

    def _draw_history(self, panels: list[HistoryPanel], axes: list[Any]) -> None:
        about, cells = self.description, self._history.cells()
        begin, end = int(cells.begin_ns[0]), int(cells.end_ns[-1])
        time = TimeAxis(begin, end, about.time_zone, has_utc=about.has_utc)
        for panel, one in zip(panels, axes, strict=True):
            one.set_ylabel(panel.axis)
            one.set_title(panel.title)
            lines = [self._draw(one, line, k, time) for k, line in enumerate(panel.lines)]
            put_lowest_in_front(lines)
            if about.quantities[panel.lines[0].quantity].unit in _LEVEL_UNITS:
                widen(one, _LEVELS_MIN_DB)
            else:
                widen(one, _RANGE_MIN * max(map(abs, one.get_ylim())))
            if any(line.name for line in panel.lines):
                add_legend(one, lines)
            time.label(one, has_labels=one is axes[-1])

    def _draw(self, panel: Any, line: HistoryLine, number: int, time: TimeAxis) -> Any:
        k = line.quantity * len(self.description.channels) + line.channel
        name = self.description.quantities[line.quantity].name
        has_days = self.description.has_days and name in _OF_DAYS
        times_ns, values = (self._days if has_days else self._history).line(k)
        if name in _PARTS and self.description.has_utc:
            zone = find_zone(self.description.time_zone)
            times_ns, values = only_within(times_ns, values, _PARTS[name], zone)
        style = line_style(number, len(values))
        if marked := dots(times_ns, values):
            style |= {"marker": ".", "markersize": 2.5, "markevery": marked}
        (drawn,) = panel.plot(time.positions(times_ns), values, label=self._label(line), **style)
        return drawn

    def _label(self, line: HistoryLine) -> str:
        """Return the name of a line, of levels with the value of all intervals together."""
        is_of_day = self.description.quantities[line.quantity].name in _OF_DAYS
        if self.total is None or (self._n_rows == 1 and not is_of_day):
            return line.name
        value = float(self.total.values[line.quantity, line.channel])
        is_level = self.description.quantities[line.quantity].unit in _SHARED_UNITS
        return f"{line.name} ({value:.1f})" if is_level and isfinite(value) else line.name


class MeasurementFigureWriter(ValueWriter):
    """Draws measurements to a ``.png``, ``.svg`` or ``.pdf``; see ``ValueWriter`` for parameters.

    Attributes
    ----------
    look : FigureLook
        Title, size and resolution; set it before ``finish``.

    Raises
    ------
    ConfigError
        As ``panels_of``.
    """

    look = FigureLook()

    def _open(self, part: Path) -> None:
        need_matplotlib()
        self._figure = MeasurementFigure(self.description)
        self._part = part

    def _write(self, row: Measurement) -> None:
        self._figure.add(row)

    def write_total(self, row: Measurement) -> None:
        """See ``ValueWriter``."""
        self._figure.total = row

    def _close(self) -> None:
        with figure_style(), self._part.open("xb") as file:
            save(self.figure(), file, self.path.suffix)

    def figure(self) -> Any:
        """Return the ``matplotlib.figure.Figure`` of the rows so far."""
        return self._figure.draw(self.look)
