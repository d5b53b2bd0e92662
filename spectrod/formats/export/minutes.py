"""One-minute mean densities in hybrid millidecades, from rows of bins or of bands."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.conditions import UInt8Array, combined
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.units import NS_PER_S, Float64Array, Int64Array
from spectrod.formats.export.layout import row_effort_s, row_span_s
from spectrod.formats.export.minute_bands import minute_bands, to_bands
from spectrod.lib.errors import ConfigError

MINUTE_S = 60
MINUTE_NS = MINUTE_S * NS_PER_S

_BANDS = "millidecade"


@dataclass(frozen=True, slots=True, eq=False)
class Minute:
    """The mean of the rows of a minute.

    Attributes
    ----------
    begin_utc_ns : int
        Begin of the minute, UTC [ns].
    density : (signals, bands) float64
        One-sided power spectral density [FS^2/Hz].
    effort_s : float
        Duration of the data in the mean, above 0 to 60 [s].
    conditions : (signals,) uint8
        Of the samples of all rows in it, see ``Condition``; 0 where nobody checked them.
    """

    begin_utc_ns: int
    density: Float64Array
    effort_s: float
    conditions: UInt8Array


def minute_frames(fs: float) -> dict[str, Any]:
    """Return the recommended rows for minutes, by the names of ``AnalysisConfig``.

    A row is the mean over a minute of UTC of Hann windows of one second that overlap by half and
    lie within the minute, 119 where the rate is even: bins are 1 Hz wide, as in Martin et al.
    (https://doi.org/10.1121/10.0003324), and frames are those of MBARI's pbp and of PyPAM.
    """
    n = math.ceil(fs)
    return {
        "window": "hann",
        "win_length": n,
        "hop": n - n // 2,
        "nfft": n,
        "scaling": "density",
        "weighting": "Z",
        "bands": "",
        "averaging": "mean",
        "rate_hz": 1.0 / 60.0,
        "align": "utc",
    }


class MinuteMeans:
    """Averages power over minutes of UTC, equally weighted by frame; a row's centre decides.

    Parameters
    ----------
    spec : SpectrumSpec
        Spec of the rows: one-sided unweighted power, of millidecades or of bins at most 1 Hz wide,
        averaged by mean or not at all.

    Raises
    ------
    ConfigError
        If the spec is anything else, or its rows or windows are longer than a minute.
    """

    def __init__(self, spec: SpectrumSpec) -> None:
        _check(spec)
        self.bands = minute_bands(spec.fs, spec.nfft, spec.n_values if spec.bands else None)
        self._spec = spec
        self._to_density = _to_density(spec)
        self._minute = -1
        self._begin()

    def add(self, batch: SpectrumBatch) -> Iterator[Minute]:
        """Add rows; yield the minutes that end with them.

        A minute ends with the first row of another minute. That one may be earlier: after UTC was
        set back, minutes repeat.
        """
        frames = np.array(batch.cut_frames or self._spec.averaging_frames)
        span_s = float(row_span_s(self._spec, frames))
        share = float(row_effort_s(self._spec, frames)) / span_s
        span_ns = round(span_s * NS_PER_S)
        minutes = (batch.t_utc_ns + span_ns // 2) // MINUTE_NS
        starts = np.flatnonzero(np.diff(minutes, prepend=self._minute))
        limits = [0, *starts.tolist(), batch.n_frames]
        for first, past in pairwise(limits):
            if first == past:
                continue
            if minutes[first] != self._minute:
                yield from self.flush()
                self._minute = int(minutes[first])
            self._sum += self._to_density(batch.values[first:past]).sum(axis=0) * frames
            self._n_frames += (past - first) * int(frames)
            self._conditions.append(_conditions(batch, first, past))
            self._effort_s += self._cover(batch.t_utc_ns[first:past], span_ns) * share

    def flush(self) -> Iterator[Minute]:
        """Yield the present minute, if there is one."""
        if self._n_frames:
            density = self._in_bands(self._sum / self._n_frames)
            found = combined(np.array(self._conditions))
            yield Minute(self._minute * MINUTE_NS, density, self._effort_s, found)
        self._begin()

    def _in_bands(self, mean: Float64Array) -> Float64Array:
        if self._spec.band_table is None:
            return to_bands(mean, self.bands, self._spec.delta_f)
        return mean * (self._spec.band_table.width / self.bands.width)

    def _begin(self) -> None:
        self._sum = np.zeros((self._spec.n_signals, self._spec.n_values))
        self._n_frames = 0
        self._effort_s = 0.0
        self._conditions: list[UInt8Array] = []
        self._covered_until_ns = 0

    def _cover(self, t_utc_ns: Int64Array, span_ns: int) -> float:
        """Return the part of the minute that these rows cover and earlier ones do not [s]."""
        minute_ns = self._minute * MINUTE_NS
        ends = np.minimum(t_utc_ns + span_ns, minute_ns + MINUTE_NS)
        before = np.concatenate([[max(self._covered_until_ns, minute_ns)], ends[:-1]])
        before = np.maximum.accumulate(before)
        new = np.maximum(0, ends - np.maximum(t_utc_ns, before))
        self._covered_until_ns = max(self._covered_until_ns, int(ends.max()))
        return int(new.sum()) / NS_PER_S


def _conditions(batch: SpectrumBatch, first: int, past: int) -> UInt8Array:
    if batch.conditions is None:
        return np.zeros(batch.spec.n_signals, np.uint8)
    return combined(batch.conditions[first:past])


def _check(spec: SpectrumSpec) -> None:
    rules = (
        ("output", spec.output, ("power",)),
        ("iq", spec.iq, (False,)),
        ("weighting", spec.weighting, ("Z",)),
        ("averaging", spec.averaging, ("none", "mean")),
        ("bands", spec.bands, ("", _BANDS)),
    )
    for name, value, allowed in rules:
        if value not in allowed:
            must = " or ".join(map(repr, allowed))
            raise ConfigError(f"{name}={value!r}: must be {must} for the millidecade profile")
    # Of overlapping frames, the last one of a row may reach into the next row.
    for name, length_s in (("rows", spec.row_s), ("windows", spec.win_length / spec.fs)):
        if length_s > MINUTE_S:
            raise ConfigError(
                f"{name} of {length_s:g} s: must be a minute or less for the millidecade profile"
            )


def _to_density(spec: SpectrumSpec) -> Callable[[NDArray[Any]], Float64Array]:
    """Return a function that converts the spec's values to densities [FS^2/Hz]."""
    width: Float64Array | float = spec.enbw_hz
    if spec.band_table is not None:
        width = spec.band_table.width

    def convert(values: NDArray[Any]) -> Float64Array:
        power: Float64Array = spec.scale.to_power(values.astype(np.float64))
        return power if spec.scaling == "density" else power / width

    return convert
