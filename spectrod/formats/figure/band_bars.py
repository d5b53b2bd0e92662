"""Levels in fractional octaves as bars."""

from typing import Any

import numpy as np

from spectrod.formats.figure.drawing import add_legend, line_style
from spectrod.formats.values.measurement_description import MeasurementDescription
from spectrod.measure.levels import LevelRow

_BAR_COLOUR = "#80b9d9"
_LABELS_MAX = 2
"""Most labels of an inch."""
_STEP_DB = 10.0
_BELOW_DB = 3.0
"""Least height of a bar [dB]."""


def draw_bands(panel: Any, about: MeasurementDescription, row: LevelRow, channel: int) -> None:
    """Draw the levels of a channel: bars of the first quantity in bands, marks of the others.

    Parameters
    ----------
    panel : matplotlib.axes.Axes
    about : MeasurementDescription
        Names the bands and their quantities.
    row : LevelRow
        Its ``band_values`` are drawn.
    channel : int
        Index of the channel.
    """
    levels = row.band_values[:, :, channel]
    finite = levels[np.isfinite(levels)]
    lowest = float(finite.min()) if finite.size else 0.0
    bottom = _STEP_DB * np.floor((lowest - _BELOW_DB) / _STEP_DB)
    x = np.arange(levels.shape[1])
    drawn = []
    for number, (quantity, values) in enumerate(zip(about.bands.quantities, levels, strict=True)):
        style, name = line_style(number), quantity.name
        shown = np.where(np.isfinite(values), values, np.nan)
        if number == 0:
            bars = panel.bar(x, shown - bottom, 0.8, bottom, color=_BAR_COLOUR, label=name)
            drawn.append(bars)
        else:
            colour, dashes = style["color"], style["linestyle"]
            ends = (x - 0.4, x + 0.4)
            marks = panel.hlines(
                shown, *ends, colors=colour, linestyles=dashes, label=name, linewidths=1.6
            )
            drawn.append(marks)
    panel.set_ylim(bottom=bottom)
    panel.set_xlim(-0.7, len(x) - 0.3)
    panel.grid(visible=False, axis="x")
    _label_bands(panel, [one.name for one in about.bands.filters])
    panel.set_ylabel(f"level [{about.units[channel]}]")
    several = f", channel {about.channels[channel]}" if len(about.channels) > 1 else ""
    panel.set_title(f"all intervals{several}")
    add_legend(panel, drawn)


def _label_bands(panel: Any, names: list[str]) -> None:
    """Label every band, or every third, and so on: octaves stay."""
    n = len(names)
    room = _LABELS_MAX * panel.figure.get_figwidth()
    step = next(one for one in (1, 2, 3, 6, 12, 24, n) if n <= room * one)
    # An octave band of 1 kHz is labelled if any is.
    kilohertz = names.index("1 kHz") if "1 kHz" in names else 0
    ticks = list(range(kilohertz % step, n, step))
    panel.set_xticks(ticks, [_short(names[k]) for k in ticks])
    panel.set_xlabel("nominal mid-band frequency [Hz]")


def _short(name: str) -> str:
    """Return a frequency without its unit, as 31.5 or 1k."""
    return name.removesuffix("Hz").replace(" k", "k").strip()
