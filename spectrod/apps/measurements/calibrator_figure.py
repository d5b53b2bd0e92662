"""Figures of ``spectrod calibrate``: the level over time, the spectrum, and the result in words."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spectrod.apps.measurements.calibrator import Tone, tone_spectrum
from spectrod.dsp.units import FULL_SCALE_SINE_FS2, NS_PER_S, Float64Array
from spectrod.formats.figure.drawing import GREY, line_style, new_figure, widen
from spectrod.formats.figure.figure_look import FigureLook
from spectrod.formats.figure.frequency_axis import SpectrumAxis
from spectrod.formats.figure.interval_cells import IntervalCells
from spectrod.formats.figure.time_axis import TimeAxis
from spectrod.lib.text import printable

_INTERVAL_S = 0.125
"""Length of a level over time: the time constant F."""
_LEVEL_IN, _SPECTRUM_IN = 2.0, 3.0
_CHARS_PER_IN = 13.5
_LOWEST_HZ = 10.0
_FLOOR = 1e-20
_RANGE_DB, _RANGE_MIN_DB = 150.0, 1.0
_STRETCH_COLOUR = "#cfe5f2"


class LevelHistory:
    """Levels of samples over time, in bounded memory.

    Parameters
    ----------
    fs : float
        Sample rate [Hz].
    first : int
        Index of the first sample in its recording.
    """

    def __init__(self, fs: float, first: int = 0) -> None:
        self._fs, self._first = fs, first
        self._n = max(1, round(_INTERVAL_S * fs))
        self._rest = np.empty(0)
        self._n_intervals = 0
        self.cells = IntervalCells(1, NS_PER_S)

    def passed(self, blocks: Iterable[Float64Array]) -> Iterator[Float64Array]:
        """Yield blocks of samples, (n,) [FS], after their levels are kept."""
        for block in blocks:
            samples = np.concatenate((self._rest, block))
            n = len(samples) // self._n
            self._rest = samples[n * self._n :]
            squares = np.square(samples[: n * self._n]).reshape(n, self._n).mean(axis=1)
            levels = 10.0 * np.log10(np.maximum(squares, _FLOOR) / FULL_SCALE_SINE_FS2)
            for level in levels:
                begin, end = (self._ns(self._n_intervals + k) for k in (0, 1))
                self.cells.add(begin, end, np.array([level]), 0)
                self._n_intervals += 1
            yield block

    @property
    def is_empty(self) -> bool:
        """Whether no level is kept."""
        return not self._n_intervals

    def _ns(self, interval: int) -> int:
        return round((self._first + interval * self._n) * NS_PER_S / self._fs)


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """The part of a recording that was measured.

    Attributes
    ----------
    fs : float
        Sample rate [Hz].
    first : int
        Index of its first sample in the recording.
    samples : (n,) float64
        [FS].
    tone : Tone
        What was measured.
    history : LevelHistory
        Levels of all samples that were read.
    """

    fs: float
    first: int
    samples: Float64Array
    tone: Tone
    history: LevelHistory

    @property
    def begin_s(self) -> float:
        """Time of its first sample [s]."""
        return self.first / self.fs

    @property
    def end_s(self) -> float:
        """Time after its last sample [s]."""
        return self.begin_s + len(self.samples) / self.fs


def draw_calibration(title: str, words: Sequence[str], stretch: Stretch, look: FigureLook) -> Any:
    """Draw how a calibration was measured.

    Parameters
    ----------
    title : str
    words : sequence of str
        Lines of the result.
    stretch : Stretch
    look : FigureLook

    Returns
    -------
    figure : matplotlib.figure.Figure
    """
    figure, (over_time, spectrum) = new_figure(title, [_LEVEL_IN, _SPECTRUM_IN], look)
    _draw_levels(over_time, stretch)
    tone = stretch.tone
    frequencies, levels = tone_spectrum(stretch.samples, stretch.fs, tone.frequency_hz)
    axis = SpectrumAxis(_LOWEST_HZ, float(frequencies[-1]))
    spectrum.plot(*axis.line(frequencies, levels), **line_style(0, len(levels)))
    circle = {"color": line_style(1)["color"], "mfc": "none", "ms": 6}
    spectrum.plot([tone.frequency_hz], [tone.level_dbfs], "o", **circle)
    axis.label(spectrum)
    bottom, top = spectrum.get_ylim()
    spectrum.set_ylim(max(bottom, top - _RANGE_DB), top)
    spectrum.set_ylabel("level [dBFS]")
    room = int(_CHARS_PER_IN * look.width_in)
    lines = [part for line in words for part in textwrap.wrap(printable(line), room)]
    spectrum.set_title("\n".join(lines), fontsize="small", linespacing=1.3)
    return figure


def _draw_levels(panel: Any, stretch: Stretch) -> None:
    times_ns, levels = stretch.history.cells.line(0)
    time = TimeAxis(int(times_ns[0]), int(times_ns[-1]), "", has_utc=False)
    ends = time.positions(np.array([stretch.begin_s, stretch.end_s]) * NS_PER_S)
    panel.axvspan(*ends, color=_STRETCH_COLOUR, zorder=0)
    for end in ends:
        panel.axvline(end, color=GREY, linewidth=0.8)
    panel.plot(time.positions(times_ns), levels, **line_style(0, len(levels)))
    time.label(panel, has_labels=True)
    widen(panel, _RANGE_MIN_DB)
    panel.set_ylabel("level [dBFS]")
    length_s = stretch.end_s - stretch.begin_s
    panel.set_title(f"measured: {length_s:g} s from {stretch.begin_s:.3f} s on", fontsize="small")
