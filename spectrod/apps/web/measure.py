"""What pages measure of a row: levels at cursors, power of bands, and peaks; of unpooled values."""

import math
from typing import Any, Final

import numpy as np

from spectrod.apps.web.page_peaks import PeakFields, find_peaks_of
from spectrod.apps.web.page_rows import SpectrumRow
from spectrod.apps.web.page_topics import RowFacts
from spectrod.apps.web.pooling import to_power
from spectrod.apps.web.slicing import TopicAxis
from spectrod.apps.web.streams import RowStream
from spectrod.dsp.units import FULL_SCALE_SINE_FS2, Float32Array, Float64Array

DENSITY: Final = "/Hz"
"""End of the units of densities."""


def measured_fields(stream: RowStream) -> dict[str, Any] | None:
    """Return the fields of a ``measured`` text; None if nothing is asked for, or no row came since.

    Parameters
    ----------
    stream : RowStream
        Has the newest row, and what is asked for.
    """
    wish, row = stream.wish.measure, stream.take_newest()
    if wish is None or row is None:
        return None
    levels, facts = stream.levels(row), row.facts
    return {
        "id": stream.wish.id,
        "seq": row.frame.header.seq & 0xFFFFFFFF,
        "t_ms": row.t_ms,
        "peaks": _peaks(stream, row, wish.peaks),
        "cursors": [cursor_fields(levels, facts.axis, hertz) for hertz in wish.cursors],
        "bands": [band_fields(levels, facts, *band) for band in wish.bands],
    }


def _peaks(stream: RowStream, row: SpectrumRow, count: int) -> list[PeakFields]:
    """Return the peaks; of a row itself once for all pages."""
    if not count:
        return []
    if stream.hold is not None:
        return find_peaks_of(stream.hold.levels(), row.facts, count)
    return row.peaks(count)


def cursor_fields(levels: Float32Array, axis: TopicAxis, hertz: float) -> dict[str, float]:
    """Return the level of the bin, or the band, nearest to a frequency.

    Parameters
    ----------
    levels : (n,) float32
        Levels of all bins [dB].
    axis : TopicAxis
        Their frequencies.
    hertz : float
        The frequency; beyond the ends the nearest bin is the last [Hz].
    """
    if axis.edges_hz is None:
        k = math.floor((hertz - axis.first_hz) / axis.bin_hz + 0.5)
        k = min(max(k, 0), axis.n_bins - 1)
    else:
        k = axis.indices(hertz, hertz)[0]
    return {"hz": hertz, "bin_hz": axis.centre_hz(k), "level": float(levels[k])}


def band_fields(levels: Float32Array, facts: RowFacts, f0: float, f1: float) -> dict[str, Any]:
    """Return the level of the power of all components in a range of frequencies.

    Parameters
    ----------
    levels : (n,) float32
        Levels of all bins; NaN: no data, which adds nothing [dB].
    facts : RowFacts
        Axis, unit and noise bandwidth.
    f0, f1 : float
        Ends of the range [Hz].

    Notes
    -----
    A bin k counts with the share w_k of its width within the range. A window spreads a component
    over as many bins as its noise bandwidth has, so the power is the sum of w_k P_k bin_hz /
    enbw_hz; of bands that of w_k P_k; of densities, also of bands, that of w_k S_k times the width
    [1]_.

    References
    ----------
    .. [1] G. Heinzel et al., "Spectrum and spectral density estimation by the DFT", 2002, sec. 9.
    """
    unit = facts.header.unit
    is_density = unit.endswith(DENSITY)
    axis = facts.axis
    first, shares = _shares(axis, f0, f1)
    counted = slice(first, first + len(shares))
    per_bin: float | Float64Array
    if axis.edges_hz is not None:
        per_bin = np.diff(axis.edges_hz[:, counted], axis=0)[0] if is_density else 1.0
    else:
        per_bin = axis.bin_hz if is_density else axis.bin_hz / facts.header.enbw_hz
    power = to_power(levels[counted])
    with np.errstate(invalid="ignore", over="ignore"):  # no share of an infinite power is NaN
        total = float(np.nansum(power * shares * per_bin))
    name, reference = power_unit(unit)
    level = 10.0 * math.log10(total / reference) if total > 0.0 else -math.inf
    return {"f0": f0, "f1": f1, "level": level, "unit": name}


def _shares(axis: TopicAxis, f0: float, f1: float) -> tuple[int, Float64Array]:
    """Return the first bin that a range touches, and the share of each bin in it."""
    first, end = axis.indices(f0, f1)
    if axis.edges_hz is not None:
        lower, upper = axis.edges_hz[:, first:end]
    else:
        # At 0 Hz and at the Nyquist frequency half a bin has all the power of one.
        centre = axis.first_hz + np.arange(first, end) * axis.bin_hz
        last_hz = axis.first_hz + (axis.n_bins - 1) * axis.bin_hz
        lower = np.maximum(centre - axis.bin_hz / 2.0, axis.first_hz)
        upper = np.minimum(centre + axis.bin_hz / 2.0, last_hz)
    with np.errstate(invalid="ignore", over="ignore"):  # of edges that are not finite
        width, inside = upper - lower, np.minimum(upper, f1) - np.maximum(lower, f0)
        shares = np.divide(inside, width, out=np.zeros(end - first), where=width > 0.0)
    return first, np.clip(np.nan_to_num(shares), 0.0, 1.0)


def power_unit(unit: str) -> tuple[str, float]:
    """Return the unit of the level of a sum, and the power of its 0 dB."""
    power = unit.removesuffix(DENSITY)
    if power == "FS^2":
        return "dBFS", FULL_SCALE_SINE_FS2
    return (power if power.startswith("dB") else f"dB re {power}"), 1.0
