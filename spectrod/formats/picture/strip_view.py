"""Presentation of strips along a plot: scale, texts, and inked areas."""

from dataclasses import dataclass

import numpy as np

from spectrod.dsp.units import FLOOR_DBFS, Float32Array
from spectrod.formats.picture.axes import Axis, Tick, nice_step
from spectrod.formats.picture.labels import level_labels
from spectrod.formats.picture.page_layout import STRIP_HEIGHT
from spectrod.formats.picture.picture_settings import Strip
from spectrod.formats.picture.strips import Envelope
from spectrod.lib.errors import ConfigError

_SPACING = 2.0
"""Smallest space between labels above each other [px]: strips are low."""

_STEP_DB = 10.0
_MIN_DB, _MAX_DB = 20.0, 90.0
_SILENT_DB = (-60.0, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class StripView:
    """A strip along every plot, with one scale for all, so that channels can be compared."""

    heading: tuple[str, ...]
    limits: tuple[float, float]
    labels: Axis
    bands: tuple[tuple[Float32Array, Float32Array], ...]
    """Curves between which ink is drawn, shape (plots, columns) each, the darkest last."""


def strip_view(strip: Strip, envelope: Envelope | None) -> StripView:
    """Choose scale and texts of a strip; ConfigError for a waveform without samples."""
    assert envelope is not None  # the sink collects one if strips are requested
    return _level_strip(envelope) if strip == "level" else _waveform_strip(envelope)


def _waveform_strip(envelope: Envelope) -> StripView:
    if envelope.low is None or envelope.high is None:
        raise ConfigError("strips=waveform: there are no samples, only spectra")
    low, high = _joined(envelope.low, envelope.high)
    finite = np.concatenate([low[np.isfinite(low)], high[np.isfinite(high)]])
    peak = float(np.abs(finite).max(initial=0.0))
    top = nice_step(peak) if peak > 0.0 else 1.0
    labels = tuple(Tick(value, f"{value:g}") for value in (-top, 0.0, top))
    return StripView(("waveform", "FS"), (-top, top), Axis(labels, "FS"), ((low, high),))


def _joined(low: Float32Array, high: Float32Array) -> tuple[Float32Array, Float32Array]:
    """Extend neighbouring columns to meet half-way, so that few samples make a line, not dots."""
    low, high = low.copy(), high.copy()
    middle = (high[:, :-1] + low[:, 1:]) / np.float32(2.0)
    rises = low[:, 1:] > high[:, :-1]
    low[:, 1:][rises] = high[:, :-1][rises] = middle[rises]
    middle = (low[:, :-1] + high[:, 1:]) / np.float32(2.0)
    falls = high[:, 1:] < low[:, :-1]
    high[:, 1:][falls] = low[:, :-1][falls] = middle[falls]
    return low, high


def _level_strip(envelope: Envelope) -> StripView:
    rms, peak = envelope.rms_dbfs, envelope.peak_dbfs
    shown = rms if peak is None else np.stack([rms, peak])
    audible = shown[shown > FLOOR_DBFS + 1.0]
    lo, hi = _SILENT_DB
    if audible.size:
        lo = _STEP_DB * float(np.floor(audible.min() / _STEP_DB))
        hi = _STEP_DB * float(np.ceil(audible.max() / _STEP_DB))
        lo = min(max(lo, hi - _MAX_DB), hi - _MIN_DB)
    floor = np.where(np.isnan(rms), np.float32(np.nan), np.float32(lo))
    bands = ((floor, rms),) if peak is None else ((floor, peak), (floor, rms))
    heading = envelope.name if peak is None else f"peak, {envelope.name}"
    labels = level_labels(lo, hi, STRIP_HEIGHT, "dBFS", _SPACING)
    return StripView((heading, "dBFS"), (lo, hi), labels, bands)
