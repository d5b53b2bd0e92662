"""Figures of tones: the mean spectrum with its tones, harmonics and figures."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import Float64Array
from spectrod.formats.figure.distortion_text import distortion_lines
from spectrod.formats.figure.drawing import PANELS_MAX, line_style, new_figure
from spectrod.formats.figure.figure_look import FigureLook
from spectrod.formats.figure.frequency_axis import SpectrumAxis, frequency_text
from spectrod.lib.errors import ConfigError
from spectrod.lib.text import printable
from spectrod.measure.rows import to_spectrum, tone_level

_PANEL_IN, _TITLE_LINE_IN = 3.2, 0.15
_TITLE_CHARS = 13.5
"""Characters of an inch."""
_RANGE_MAX_DB = 180.0
_ABOVE_DB, _BELOW_DB = 12.0, 6.0
_LOG_RANGE = 3000.0
"""Ratio of the ends of the axis of frequency, unless a tone is lower."""
_ROOM = 1.25
"""Ratio of an end of an axis without a spectrum to the tone beside it."""
_BESIDE_BINS, _VISIBLE_DB = 50, 3.0
_LETTER_SHARE = 0.010
"""Width of a letter of a mark, as a share of the axis [1]."""


def check_panels(n_channels: int) -> None:
    """Check that a figure can have a panel for each channel; raises ConfigError."""
    if n_channels > PANELS_MAX:
        rule = f"a figure has at most {PANELS_MAX}; choose some by --select"
        raise ConfigError(f"{n_channels} channels: {rule}")


def draw_tones(
    found: dict[str, Any],
    rows: Iterable[Float64Array],
    specs: Sequence[SpectrumSpec],
    look: FigureLook,
) -> Any:
    """Draw the spectrum of each channel.

    Parameters
    ----------
    found : dict
        What was measured, as JSON has it.
    rows : iterable of (bins,) float64
        Mean row of each channel.
    specs : sequence of SpectrumSpec
        Definition of each row.
    look : FigureLook

    Returns
    -------
    figure : matplotlib.figure.Figure
        Levels are those of tones: a sine has its level at its bin.
    """
    heading = (
        f"Tones of {found['source']}: {found['window']}, {found['win_length']} samples, "
        f"mean of {found['frames']} frames"
    )
    spectra = [(to_spectrum(row, spec), spec) for row, spec in zip(rows, specs, strict=True)]
    return draw_marked(heading, found["channels"], spectra, look)


def draw_marked(
    heading: str,
    channels: Sequence[dict[str, Any]],
    spectra: Sequence[tuple[Float64Array, SpectrumSpec]] | None,
    look: FigureLook,
) -> Any:
    """Draw the tones of each channel, and the spectrum where it is known.

    Parameters
    ----------
    heading : str
        Title of the figure where ``look`` has none.
    channels : sequence of dict
        ``channel``, ``unit``, ``distortion`` and ``peaks`` of each, as JSON has them.
    spectra : sequence of (mean squares, SpectrumSpec), or None
        (bins,) float64 of each channel, see ``to_spectrum``; None: they are not known.
    look : FigureLook

    Returns
    -------
    figure : matplotlib.figure.Figure
    """
    room = int(_TITLE_CHARS * look.width_in)
    titles = [_title(one, room, several=len(channels) > 1) for one in channels]
    heights = [_PANEL_IN + _TITLE_LINE_IN * len(one) for one in titles]
    figure, panels = new_figure(heading, heights, look)
    for k, (panel, one, title) in enumerate(zip(panels, channels, titles, strict=True)):
        if spectra is None:
            _draw_alone(panel, one)
        else:
            power, spec = spectra[k]
            _draw(panel, one, tone_level(power, spec), spec)
        panel.set_title("\n".join(title), fontsize="small", linespacing=1.3)
    for panel in panels[:-1]:
        panel.set_xlabel("")
    return figure


def _title(found: dict[str, Any], room: int, *, several: bool) -> list[str]:
    lines = [f"channel {found['channel']}"] if several else []
    if found["distortion"] is None:
        if "not_measured" in found:
            lines.append(f"distortion: not measured: {found['not_measured']}")
    else:
        lines += islice(distortion_lines(found["distortion"]), 3)
    return [part for line in lines for part in textwrap.wrap(printable(line), room)]


def _draw(panel: Any, found: dict[str, Any], levels: Float64Array, spec: SpectrumSpec) -> None:
    marks = [one for one in _marks(found) if _is_visible(one, levels, spec)]
    axis = _axis([hz for hz, _, _ in marks], spec)
    x, y = axis.line(spec.bin_frequencies, levels)
    panel.plot(x, y, **line_style(0, len(y)))
    _mark(panel, found, marks, axis)
    _limit(panel, y, [level for _, level, _ in marks])


def _draw_alone(panel: Any, found: dict[str, Any]) -> None:
    """Draw tones without their spectrum, as lines from below."""
    marks = list(_marks(found))
    hz, levels = [one[0] for one in marks], [one[1] for one in marks]
    axis = SpectrumAxis(*_ends(hz))
    _mark(panel, found, marks, axis)
    if levels:
        bottom = min(levels) - _ABOVE_DB
        panel.vlines(hz, bottom, levels, colors=line_style(0)["color"], linewidths=1.1)
        panel.set_ylim(bottom, max(levels) + _ABOVE_DB)


def _ends(marked_hz: Sequence[float]) -> tuple[float, float]:
    """Return ends of an axis of frequency with room beside all marks [Hz]."""
    low, high = min(marked_hz, default=0.0), max(marked_hz, default=1.0)
    if low > 0.0:
        return low / _ROOM, high * _ROOM
    margin = (_ROOM - 1.0) * max(high - low, abs(low), 1.0)
    return low - margin, high + margin


def _mark(
    panel: Any,
    found: dict[str, Any],
    marks: Sequence[tuple[float, float, str]],
    axis: SpectrumAxis,
) -> None:
    for hz, level, _ in marks:
        panel.plot([hz], [level], "o", color=line_style(1)["color"], mfc="none", ms=5)
    for hz, level, text in _readable(marks, axis):
        panel.annotate(
            text, (hz, level), (0, 5), textcoords="offset points", ha="center", fontsize="small"
        )
    axis.label(panel)
    panel.set_ylabel(f"level [{found['unit']}]")


def _marks(found: dict[str, Any]) -> Iterator[tuple[float, float, str]]:
    """Yield frequency, level and text: the orders of a tone, or without distortion all tones."""
    distortion = found["distortion"]
    if distortion is None:
        for one in found["peaks"]:
            yield one["frequency_hz"], one["level_db"], frequency_text(round(one["frequency_hz"]))
        return
    yield distortion["frequency_hz"], distortion["level_db"], "1"
    for one in distortion["harmonics"]:
        if np.isfinite(one["level_db"]):
            yield one["frequency_hz"], one["level_db"], str(one["order"])


def _is_visible(mark: tuple[float, float, str], levels: Float64Array, spec: SpectrumSpec) -> bool:
    """Return whether a mark stands out of the spectrum, as no harmonic in the noise does."""
    k = int(np.searchsorted(spec.bin_frequencies, mark[0]))
    beside = levels[max(0, k - _BESIDE_BINS) : k + _BESIDE_BINS]
    return mark[1] > float(np.median(beside)) + _VISIBLE_DB


def _readable(
    marks: Sequence[tuple[float, float, str]], axis: SpectrumAxis
) -> Iterator[tuple[float, float, str]]:
    """Yield the marks whose texts do not lie upon each other, the first ones by preference."""
    taken: list[tuple[float, float]] = []
    for hz, level, text in marks:
        middle, half = float(axis.share(np.asarray(hz))), _LETTER_SHARE * (len(text) + 0.5) / 2
        if all(abs(middle - other) >= half + width for other, width in taken):
            taken.append((middle, half))
            yield hz, level, text


def _axis(marked_hz: Sequence[float], spec: SpectrumSpec) -> SpectrumAxis:
    frequencies = spec.bin_frequencies
    high = float(frequencies[-1])
    if spec.iq:
        return SpectrumAxis(float(frequencies[0]), high)
    lowest = min((0.5 * hz for hz in marked_hz), default=high)
    return SpectrumAxis(max(spec.delta_f, min(high / _LOG_RANGE, lowest)), high)


def _limit(panel: Any, levels: Float64Array, marked: Sequence[float]) -> None:
    """Leave room for the marks, and out what is far below them."""
    finite = levels[np.isfinite(levels)]
    if finite.size:
        top = max([float(finite.max()), *marked])
        bottom = max(float(np.quantile(finite, 0.01)) - _BELOW_DB, top - _RANGE_MAX_DB)
        panel.set_ylim(bottom, top + _ABOVE_DB)
