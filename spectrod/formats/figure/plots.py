"""Figures of measurements in Python, the same as those of the command line."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from spectrod.dsp.calibration import ChannelCalibration
from spectrod.formats.figure.drawing import figure_style
from spectrod.formats.figure.figure_look import FigureLook
from spectrod.formats.figure.measurement_figure import MeasurementFigure
from spectrod.formats.figure.tone_figure import check_panels, draw_marked
from spectrod.formats.figure.transfer_figure import (
    SWEEP_REFERENCE,
    draw_transfer,
    sweep_columns,
    sweep_impulse,
    transfer_columns,
)
from spectrod.formats.values.measurement_description import MeasurementDescription
from spectrod.lib.errors import ConfigError, InputError
from spectrod.lib.names import name_channels
from spectrod.lib.notebook import show_figure
from spectrod.measure.levels import LevelMeter, LevelRow
from spectrod.measure.levels.octave_levels import NO_BANDS
from spectrod.measure.measurement import Measurement
from spectrod.measure.rows import as_rows, to_spectrum
from spectrod.measure.tones.distortion import Distortion
from spectrod.measure.transfer.sweep_response import SweepResponse

if TYPE_CHECKING:
    from spectrod.dsp.spectrum import SpectrumSpec
    from spectrod.dsp.units import Float64Array
    from spectrod.measure.measurement_config import IntervalMeter
    from spectrod.measure.tones.peaks import Peaks
    from spectrod.measure.transfer.transfer_function import TransferFunction


def plot_intervals(  # noqa: PLR0913 - what a figure needs to know
    meter: "IntervalMeter",
    rows: Sequence[Measurement],
    fs: float,
    *,
    channels: Sequence[str] = (),
    calibrations: Sequence[ChannelCalibration | None] = (),
    time_zone: str = "",
    look: FigureLook | None = None,
) -> Any:
    """Draw the intervals that a meter has measured: each value over time, and levels in bands.

    Parameters
    ----------
    meter : LevelMeter, FeatureMeter, ToneMeter or TransferMeter of intervals
        Names the values; of a ``LevelMeter`` the values of all intervals are drawn as well.
    rows : sequence of Measurement
        What its ``push`` and ``finish`` returned, at least one.
    fs : float
        Sample rate [Hz].
    channels : sequence of str
        Name of each channel; by default its number, from 0 on.
    calibrations : sequence of (ChannelCalibration or None)
        That of each channel, for the unit of levels; by default levels are in dBFS.
    time_zone : str
        Zone of times, see ``find_zone``; empty: UTC, or times since the first sample.
    look : FigureLook, optional
        Title, size and resolution.

    Returns
    -------
    figure : matplotlib.figure.Figure
        It has ``savefig``, and ``axes`` from top to bottom. A notebook shows it where a cell ends
        with it; pyplot does not.

    Raises
    ------
    ConfigError
        See ``panels_of``.
    InputError
        If there are no rows.
    UnavailableError
        If matplotlib is not installed.
    """
    if not rows:
        raise InputError("nothing to draw: no intervals")
    n_channels = rows[0].values.shape[1]
    is_levels = isinstance(meter, LevelMeter)
    about = MeasurementDescription(
        "", name_channels(channels, n_channels), tuple(meter.quantities),
        tuple(calibrations) or (None,) * n_channels, fs, meter.interval_s, meter.align, time_zone,
        has_utc=rows[0].begin_utc_ns is not None, software="",
        title="Sound levels" if is_levels else "Measurements",
        bands=meter.bands if isinstance(meter, LevelMeter) else NO_BANDS,
        has_days=len({isinstance(row, LevelRow) and row.is_day for row in rows}) > 1,
    )  # fmt: skip
    with figure_style():
        drawing = MeasurementFigure(about)
        for row in rows:
            drawing.add(row)
        if isinstance(meter, LevelMeter):
            drawing.total = meter.summary()
        figure = drawing.draw(look or FigureLook(about.title))
    return show_figure(figure, figure)


def plot_transfer(
    found: "TransferFunction | SweepResponse", *, look: FigureLook | None = None
) -> Any:
    """Draw a transfer function, or what a sweep says about a system.

    Parameters
    ----------
    found : TransferFunction or SweepResponse
        Magnitude, phase and coherence of the first; of the second magnitude, phase, distortion,
        impulse response and decays.
    look : FigureLook, optional
        Title, size and resolution.

    Returns
    -------
    figure : matplotlib.figure.Figure
        See ``plot_intervals``.

    Raises
    ------
    UnavailableError
        If matplotlib is not installed.
    """
    look = look or FigureLook("Transfer function")
    about: dict[str, Any] = {"source": "", "response": 1, "reference": 0}
    with figure_style():
        if isinstance(found, SweepResponse):
            about |= {"reference": SWEEP_REFERENCE, "sweep": ""}
            impulse = sweep_impulse(found, found.reverberation())
            figure = draw_transfer(about, sweep_columns(found), look, impulse)
        else:
            about["significant_coherence"] = found.significant_coherence
            figure = draw_transfer(about, transfer_columns(found), look)
    return show_figure(figure, figure)


def plot_tones(
    found: "Distortion | Peaks",
    *,
    values: ArrayLike | None = None,
    spec: "SpectrumSpec | None" = None,
    look: FigureLook | None = None,
) -> Any:
    """Draw tones by frequency and level: the orders of a distortion, or the peaks of rows.

    Parameters
    ----------
    found : Distortion or Peaks
        Of the first the fundamental, the harmonics and the figures in the title; of the second a
        panel for each signal, with the peaks of all rows.
    values : (bins,), (rows, bins) or (rows, signals, bins) array-like, optional
        The rows that were measured. The mean of their power is drawn, and of a distortion's
        harmonics those that stand out of it, as ``spectrod tones -o`` draws them. Without rows each
        tone is a line from below.
    spec : SpectrumSpec, optional
        Definition of the rows; must be given with them.
    look : FigureLook, optional
        Title, size and resolution.

    Returns
    -------
    figure : matplotlib.figure.Figure
        See ``plot_intervals``.

    Raises
    ------
    ConfigError
        If one of ``values`` and ``spec`` is missing, or there are too many signals.
    InputError
        If ``values`` have another shape, or no row for each signal.
    UnavailableError
        If matplotlib is not installed.
    """
    if (values is None) != (spec is None):
        raise ConfigError("values, spec: must be given together, or neither")
    means = [] if values is None or spec is None else _mean_spectra(values, spec)
    if isinstance(found, Distortion):
        heading = "Distortion"
        channels = [
            {"channel": 0, "unit": found.unit, "distortion": asdict(found), "peaks": []},
        ]
    else:
        heading, channels = "Tones", list(_channels_of(found, len(means)))
    check_panels(len(channels))
    if means and len(means) != len(channels):
        rule = f"tones are of {len(channels)}"
        raise InputError(f"values of {len(means)} signals: {rule}")
    spectra = [(one, spec) for one in means] if spec is not None else None
    with figure_style():
        figure = draw_marked(heading, channels, spectra, look or FigureLook(heading))
    return show_figure(figure, figure)


def _mean_spectra(values: ArrayLike, spec: "SpectrumSpec") -> "list[Float64Array]":
    """Return the mean of the rows of each signal, mean squares of tones."""
    rows = as_rows(values, spec)
    if not len(rows):
        raise InputError("values: must have a row")
    return list(np.mean(to_spectrum(rows, spec), axis=0))


def _channels_of(found: "Peaks", n_signals: int) -> "Iterator[dict[str, Any]]":
    """Yield the peaks of each signal, as JSON of ``spectrod tones`` has them."""
    n_found = int(found.signal.max(initial=0)) + 1
    for signal in range(max(n_signals, n_found)):
        own = found.where(found.signal == signal)
        pairs = zip(own.frequency_hz.tolist(), own.level_db.tolist(), strict=True)
        peaks = [{"frequency_hz": hz, "level_db": level} for hz, level in pairs]
        yield {"channel": signal, "unit": found.unit, "distortion": None, "peaks": peaks}
