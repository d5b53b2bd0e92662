"""Figures of measurements in Python, the same as those of the command line."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from spectrod.dsp.calibration import ChannelCalibration
from spectrod.formats.figure.drawing import figure_style
from spectrod.formats.figure.figure_look import FigureLook
from spectrod.formats.figure.measurement_figure import MeasurementFigure
from spectrod.formats.figure.transfer_figure import (
    SWEEP_REFERENCE,
    draw_transfer,
    sweep_columns,
    sweep_impulse,
    transfer_columns,
)
from spectrod.formats.values.measurement_description import MeasurementDescription
from spectrod.lib.errors import InputError
from spectrod.lib.names import name_channels
from spectrod.lib.notebook import show_figure
from spectrod.measure.levels import LevelMeter, LevelRow
from spectrod.measure.levels.octave_levels import NO_BANDS
from spectrod.measure.measurement import Measurement
from spectrod.measure.transfer.sweep_response import SweepResponse

if TYPE_CHECKING:
    from spectrod.measure.measurement_config import IntervalMeter
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
