"""Figures of transfer functions: Bode plots, with coherence, distortion, impulse response."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spectrod.dsp.units import Float64Array
from spectrod.formats.figure.drawing import GREY, add_legend, line_style, new_figure
from spectrod.formats.figure.figure_look import FigureLook
from spectrod.formats.figure.frequency_axis import SMOOTHING_OCTAVE, SpectrumAxis, smoothed_db
from spectrod.formats.figure.reverberation_text import band_name, times_text
from spectrod.measure.transfer.reverberation import Reverberation
from spectrod.measure.transfer.sweep_response import SweepResponse
from spectrod.measure.transfer.transfer_function import TransferFunction
from spectrod.measure.transfer.transfer_quantities import spectrum_of

_LOG_RANGE = 3000.0
_WRAP_DEG = 180.0
_SHOWN_ENERGY = 0.999
_IMPULSE_MIN_S = 0.005
_DECAY_MIN_DB, _DECAY_POINTS = -65.0, 1000


_LEAD_PERIODS = 1.0
"""Length of an impulse response before time 0, in periods of the lowest frequency."""
_SPECTRA = {
    "h1_db": "h1",
    "h1_phase_deg": "h1_phase",
    "h2_db": "h2",
    "h2_phase_deg": "h2_phase",
    "coherence": "coherence",
    "relative_sd": "relative_sd",
}
"""Columns, and the spectra that they have."""

SWEEP_REFERENCE = "sweep"
"""Reference of a response that is over the sweep itself."""


@dataclass(frozen=True, slots=True)
class SweepImpulse:
    """Impulse response of a sweep.

    Attributes
    ----------
    samples : (n,) float64
    n_lead : int
        Samples before time 0.
    fs : float
        Sample rate [Hz].
    decays : sequence of Reverberation
        That of all frequencies first.
    """

    samples: Float64Array
    n_lead: int
    fs: float
    decays: Sequence[Reverberation] = ()


def sweep_impulse(found: SweepResponse, decays: Sequence[Reverberation]) -> SweepImpulse:
    """Return the impulse response of a sweep, with what a limited band rings before time 0."""
    n_lead = min(round(_LEAD_PERIODS * found.fs / found.band_hz[0]), len(found.frequencies) // 4)
    return SweepImpulse(found.impulse_response(n_lead), n_lead, found.fs, decays)


def transfer_columns(found: TransferFunction) -> dict[str, Float64Array]:
    """Return the columns of a transfer function, (bins,) each, by name."""
    return {
        "frequency_hz": found.frequencies,
        **{column: spectrum_of(found, name) for column, name in _SPECTRA.items()},
        "reference_density": found.gxx,
        "response_density": found.gyy,
    }


def sweep_columns(found: SweepResponse) -> dict[str, Float64Array]:
    """Return the columns of a sweep within its band, (bins,) each, by name."""
    columns = {
        "frequency_hz": found.frequencies,
        "h1_db": _decibels(np.abs(found.h)),
        "h1_phase_deg": np.degrees(np.angle(found.h)),
    }
    if len(found.harmonics):
        columns["thd_db"] = _decibels(found.thd)
    for order, values in enumerate(found.harmonics, 2):
        columns[f"harmonic_{order}_db"] = _decibels(values)
    low, high = found.band_hz
    within = (found.frequencies >= low) & (found.frequencies <= high)
    return {name: column[within] for name, column in columns.items()}


def _decibels(amplitudes: Float64Array) -> Float64Array:
    with np.errstate(divide="ignore"):
        return np.asarray(20.0 * np.log10(amplitudes))


@dataclass(frozen=True, slots=True)
class ResponsePanel:
    """Panel of columns over frequency.

    Attributes
    ----------
    axis : str
        Label of the vertical axis.
    names : sequence of str
        Columns that are lines of it.
    height_in : float
        Height [inch].
    is_smoothed : bool
        Whether lines are means over parts of an octave.
    """

    axis: str
    names: Sequence[str]
    height_in: float
    is_smoothed: bool = False


def draw_transfer(
    about: Mapping[str, Any],
    columns: Mapping[str, Float64Array],
    look: FigureLook,
    impulse: SweepImpulse | None = None,
) -> Any:
    """Draw what the table of a transfer function has.

    Parameters
    ----------
    about : mapping of str to object
        Comments of the table; values with a coherence that is not significant are grey.
    columns : mapping of str to (n,) float64
        Its columns, ``frequency_hz`` among them.
    look : FigureLook
    impulse : SweepImpulse, optional
        Drawn below.

    Returns
    -------
    figure : matplotlib.figure.Figure
    """
    shown = _panels(columns, str(about.get("unit", "")))
    heights = [one.height_in for one in shown] + ([1.8, 2.0] if impulse is not None else [])
    figure, panels = new_figure(_title(about), heights, look)
    frequencies = columns["frequency_hz"]
    axis = _axis(frequencies)
    limit = float(about["significant_coherence"]) if "coherence" in columns else 0.0
    is_clear = columns["coherence"] > limit if "coherence" in columns else None
    last = len(shown) - 1
    for number, (panel, one) in enumerate(zip(panels, shown, strict=False)):
        values = {name: columns[name] for name in one.names}
        if one.is_smoothed:
            _draw_smoothed(panel, axis, frequencies, values)
        else:
            _draw(panel, axis, frequencies, values, is_clear)
        panel.set_ylabel(one.axis)
        axis.label(panel, has_labels=number == last)
    _finish(dict(zip((one.names[0] for one in shown), panels, strict=False)), limit)
    if impulse is not None:
        _draw_impulse(panels[-2], impulse)
        _draw_decays(panels[-1], impulse.decays)
    return figure


def _title(about: Mapping[str, Any]) -> str:
    delay = about.get("removed_delay_samples", about.get("delay_samples"))
    removed = f", delay of {delay} samples removed" if delay else ""
    frames = f", {about['frames']} frames" if "frames" in about else ""
    is_of_sweep = "sweep" in about and about["reference"] == SWEEP_REFERENCE
    reference = "the sweep" if is_of_sweep else f"channel {about['reference']}"
    what = f"channel {about['response']} re {reference}"
    return f"Transfer function of {about['source']}: {what}{frames}{removed}"


def _panels(columns: Mapping[str, Float64Array], unit: str) -> list[ResponsePanel]:
    per_full_scale = f"dB re 1 {unit}" if "/" in unit else "dB"
    found = [
        ResponsePanel(f"magnitude [{per_full_scale}]", ["h1_db"], 2.4),
        ResponsePanel("phase [deg]", ["h1_phase_deg"], 1.6),
    ]
    if "coherence" in columns:
        found.append(ResponsePanel("coherence [1]", ["coherence"], 1.3))
    harmonics = [name for name in columns if name == "thd_db" or name.startswith("harmonic_")]
    if harmonics:
        axis = f"distortion, 1/{SMOOTHING_OCTAVE} octave [dB]"
        found.append(ResponsePanel(axis, harmonics, 2.4, is_smoothed=True))
    return found


def _axis(frequencies: Float64Array) -> SpectrumAxis:
    """Return an axis from the first frequency above 0, or not too far below the last."""
    high = float(frequencies[-1])
    above = frequencies[frequencies > 0.0]
    return SpectrumAxis(max(float(above[0]), high / _LOG_RANGE), high)


def _draw(
    panel: Any,
    axis: SpectrumAxis,
    frequencies: Float64Array,
    values: Mapping[str, Float64Array],
    is_clear: Any,
) -> None:
    lines = []
    for number, (name, column) in enumerate(values.items()):
        y = _broken_at_wraps(column) if name.endswith("_deg") else column
        if is_clear is not None and name != "coherence":
            panel.plot(*axis.line(frequencies, y), color=GREY, linewidth=0.5)
            y = np.where(is_clear, y, np.nan)
        style = line_style(number, len(y) if len(values) == 1 else 0)
        (line,) = panel.plot(*axis.line(frequencies, y), label=_name(name), **style)
        lines.append(line)
    if len(lines) > 1:
        add_legend(panel, lines)


def _draw_smoothed(
    panel: Any,
    axis: SpectrumAxis,
    frequencies: Float64Array,
    values: Mapping[str, Float64Array],
) -> None:
    """Draw ratios, which are as rough as the two spectra together, as means."""
    lines = []
    for number, (name, column) in enumerate(values.items()):
        x, y = axis.line(*smoothed_db(frequencies, column))
        lines += panel.plot(x, y, label=_name(name), **line_style(number))
    if len(lines) > 1:
        add_legend(panel, lines)


def _name(column: str) -> str:
    """Return a column's name for the legend: THD, or harmonic 2."""
    name = column.removesuffix("_db")
    return name.upper() if name == "thd" else name.replace("_", " ")


def _broken_at_wraps(phase_deg: Float64Array) -> Float64Array:
    """Leave out the value before each jump by a turn, where no line should be."""
    jumps = np.abs(np.diff(phase_deg, append=phase_deg[-1:])) > _WRAP_DEG
    return np.where(jumps, np.nan, phase_deg)


def _finish(panels: Mapping[str, Any], limit: float) -> None:
    phase = panels["h1_phase_deg"]
    phase.set_ylim(-190.0, 190.0)
    phase.set_yticks([-180, -90, 0, 90, 180])
    if "coherence" in panels:
        coherence = panels["coherence"]
        coherence.set_ylim(-0.03, 1.05)
        coherence.axhline(limit, color=GREY, linestyle="--", linewidth=0.8)


def _draw_impulse(panel: Any, impulse: SweepImpulse) -> None:
    """Draw the part that has nearly all the energy."""
    samples = impulse.samples
    energy = np.cumsum(np.square(samples))
    ends = np.searchsorted(energy, energy[-1] * np.array([1.0 - _SHOWN_ENERGY, _SHOWN_ENERGY]))
    n_after = max(int(ends[1]) - impulse.n_lead, round(_IMPULSE_MIN_S * impulse.fs))
    n = min(len(samples), impulse.n_lead + n_after)
    begin = max(0, min(int(ends[0]), impulse.n_lead - n_after // 20))
    times_ms = 1e3 * (np.arange(len(samples)) - impulse.n_lead) / impulse.fs
    panel.plot(times_ms[begin:n], samples[begin:n], **line_style(0, n))
    panel.set_xlim(times_ms[begin], times_ms[n - 1])
    panel.set(xlabel="time [ms]", ylabel="impulse response")


def _draw_decays(panel: Any, decays: Sequence[Reverberation]) -> None:
    """Draw the energy that is still to come, with the noise of each as its end."""
    lines = []
    for number, one in enumerate(decays):
        step = max(1, len(one.t) // _DECAY_POINTS)
        style = line_style(number) | ({"linewidth": 1.8} if one.band_hz is None else {})
        lines += panel.plot(
            one.t[::step], one.decay_db[::step], label=band_name(one.band_hz), **style
        )
    panel.set_ylim(_DECAY_MIN_DB, 2.0)
    panel.set_xlim(left=0.0)
    panel.set(xlabel="time after the begin of the response [s]", ylabel="decay [dB]")
    place = {"transform": panel.transAxes, "ha": "right", "va": "top", "fontsize": "small"}
    panel.text(0.99, 0.95, times_text(decays[0]), **place)
    add_legend(panel, lines)
