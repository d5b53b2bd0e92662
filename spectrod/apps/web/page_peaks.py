"""The strongest peaks of a spectrum, as pages list them."""

from typing import TypedDict

import numpy as np

from spectrod.apps.web.page_topics import RowFacts
from spectrod.dsp.peak import interpolate_peak
from spectrod.dsp.peak_search import find_peak_bins
from spectrod.dsp.units import FLOOR_DBFS, Float32Array, Float64Array
from spectrod.wire.headers import SpectrumHeader

_MAX_DB = 1000.0


class PeakFields(TypedDict):
    """A peak in a ``measured`` text."""

    hz: float
    level: float
    hz_error: float | None


def find_peaks_of(levels: Float32Array, facts: RowFacts, count: int) -> list[PeakFields]:
    """Return the strongest peaks, the strongest first.

    Parameters
    ----------
    levels : (n,) float32
        Levels of all bins or bands; NaN: no data [dB].
    facts : RowFacts
        Axis, window and lengths.
    count : int
        How many at most.

    Returns
    -------
    peaks : list of PeakFields
        ``hz_error`` is half the width of the bin or band where nothing tells where in it the peak
        is; None of interpolated ones, which for a steady tone are exact but for noise.
    """
    finite = np.nan_to_num(levels.astype(np.float64), nan=FLOOR_DBFS).clip(FLOOR_DBFS, _MAX_DB)
    bins = find_peak_bins(finite, count)
    if isinstance(facts.header, SpectrumHeader):
        return [_of_bin(finite, k, facts.header) for k in bins]
    return [_of_band(finite, k, facts) for k in bins]


def _of_bin(levels: Float64Array, k: int, header: SpectrumHeader) -> PeakFields:
    peak = interpolate_peak(levels, k, header)
    error = None if peak.is_interpolated else header.fs / header.nfft / 2.0
    return {"hz": peak.frequency_hz, "level": peak.level_db, "hz_error": error}


def _of_band(levels: Float64Array, k: int, facts: RowFacts) -> PeakFields:
    assert facts.axis.edges_hz is not None
    lower, upper = facts.axis.edges_hz[:, k].tolist()
    return {
        "hz": facts.axis.centre_hz(k),
        "level": float(levels[k]),
        "hz_error": (upper - lower) / 2.0,
    }
