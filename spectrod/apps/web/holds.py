"""Holds of all bins of a topic, for one client: they outlast its zoom, and begin when it says."""

from typing import Literal

import numpy as np

from spectrod.apps.web.page_rows import SpectrumRow
from spectrod.apps.web.quantize import Codes, code_levels
from spectrod.dsp.ballistics import HOLD_FOREVER, Ballistics, DecayingExtreme, ExponentialMean
from spectrod.dsp.units import Float32Array, Float64Array, power_to_level

HoldKind = Literal["max", "min", "mean"]


class Hold:
    """The maximum, minimum or mean power of each bin.

    It starts again by itself where rows have another axis or unit.

    Parameters
    ----------
    kind : str
        ``max``, ``min`` or ``mean``.
    ballistics : Ballistics
        How the extremes decay, and the time constant of the mean.
    """

    def __init__(self, kind: HoldKind, ballistics: Ballistics = HOLD_FOREVER) -> None:
        self.kind = kind
        self._ballistics = ballistics
        self._following: DecayingExtreme | ExponentialMean | None = None
        self._axis: tuple[object, ...] = ()
        self._codes: Codes = np.zeros(0, np.uint16)
        self._sums: Float64Array = np.zeros(0)
        self._counts = np.zeros(0, np.uint32)

    @property
    def size_bytes(self) -> int:
        """Memory of its bins [bytes]."""
        following = 0 if self._following is None else self._following.size_bytes
        return self._codes.nbytes + self._sums.nbytes + self._counts.nbytes + following

    def reset(self) -> None:
        """Begin again with the next row."""
        self._axis = ()

    def add(self, row: SpectrumRow) -> None:
        """Include a row."""
        axis = row.facts.axis
        now = (axis.n_bins, axis.first_hz, axis.bin_hz, row.facts.header.unit)
        if now != self._axis:
            self._axis = now
            self._begin(axis.n_bins)
        if isinstance(self._following, DecayingExtreme):
            self._following.push(row.levels, row.t_ms / 1e3)
        elif self._following is not None:
            self._following.push(row.power, row.t_ms / 1e3)
        elif self.kind == "mean":
            missing = np.isnan(row.power)
            with np.errstate(over="ignore"):
                self._sums += np.where(missing, 0.0, row.power)
            self._counts += ~missing
        else:
            np.maximum(self._codes, self._ordered(row.codes), out=self._codes)

    def levels(self) -> Float32Array:
        """Return the level of each bin, (n,) float32 [dB]; NaN without data."""
        if isinstance(self._following, DecayingExtreme) and self._following.levels is not None:
            return self._following.levels.astype(np.float32)
        if isinstance(self._following, ExponentialMean) and self._following.power is not None:
            return power_to_level(self._following.power).astype(np.float32)
        if self.kind == "mean":
            with np.errstate(invalid="ignore"):  # 0 of 0 rows is NaN, no data
                return power_to_level(self._sums / self._counts).astype(np.float32)
        return code_levels(self._ordered(self._codes))

    def _begin(self, n_bins: int) -> None:
        self._following = self._follower()
        if self._following is not None:
            return
        if self.kind == "mean":
            self._sums = np.zeros(n_bins)
            self._counts = np.zeros(n_bins, np.uint32)
        else:
            self._codes = np.zeros(n_bins, np.uint16)

    def _follower(self) -> DecayingExtreme | ExponentialMean | None:
        """Return what forgets old rows as the ballistics say; None if nothing does."""
        if self.kind == "mean":
            time_constant_s = self._ballistics.time_constant_s
            return ExponentialMean(time_constant_s) if time_constant_s else None
        return DecayingExtreme(self.kind, self._ballistics) if self._ballistics.decay_db_s else None

    def _ordered(self, codes: Codes) -> Codes:
        """Return codes whose maximum is the hold: of a minimum in descending order.

        Modulo 2^16 the negative of a code is descending, and that of 0, no data, is 0.
        """
        return np.negative(codes) if self.kind == "min" else codes
