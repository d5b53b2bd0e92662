"""Histograms of the level at each frequency, with bounded memory; they can be merged."""

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.units import Float32Array, Float64Array, level_to_power, power_to_level
from spectrod.lib.errors import ConfigError, InputError

STEPS_DB = (0.1, 0.2, 0.5, 1.0)
LEVEL_MIN_DB, LEVEL_MAX_DB = -250.0, 150.0
"""Ends of the histograms, beyond digital silence and the loudest calibrated sound. Levels
outside count in the first or last class, and are exact in ``least`` and ``greatest``."""

EXCEEDED = (1, 5, 10, 50, 90, 95, 99)
"""Percentages of the usual exceedance levels: L5 is the level exceeded 5 % of the time."""

_COUNTS_MAX = 60_000_000
"""Limit for the classes of all values and signals. A class takes four bytes once one near it was
counted; the levels of a recording span about a quarter of the whole range."""

_ROWS_MAX = (1 << 32) - 1
_VALUES_AT_ONCE = 1024

UInt32Array = NDArray[np.uint32]


def finest_step(n_values: int) -> float:
    """Choose the finest class width that fits into memory, for this total number of values.

    Raises
    ------
    ConfigError
        If even the widest classes do not fit.
    """
    for step_db in STEPS_DB:
        if n_values * _n_classes(step_db) <= _COUNTS_MAX:
            return step_db
    most = int(_COUNTS_MAX // _n_classes(STEPS_DB[-1]))
    raise ConfigError(
        f"values={n_values}: histograms are of at most {most} values of all signals together; "
        "take bands or a smaller nfft"
    )


def _n_classes(step_db: float) -> int:
    return round((LEVEL_MAX_DB - LEVEL_MIN_DB) / step_db)


def level_unit(spec: SpectrumSpec) -> str:
    """Return the unit of levels: that of ``spec.scale.to_level``."""
    return spec.scale.level_unit


class LevelStatistics:
    """Histograms of levels, means of power, least and greatest levels of all rows.

    Memory does not grow with the number of rows: a histogram has classes of ``step_db`` from -250
    to 150 dB, and memory pages without any count take no memory. Each row has the same weight, so
    all rows should be means over equal times. Not thread-safe.

    Parameters
    ----------
    spec : SpectrumSpec
        Spec of the rows: power, or levels.
    step_db : float
        Width of the classes, one of 0.1, 0.2, 0.5, 1 dB; 0 for the finest that fits into memory.

    Attributes
    ----------
    n_rows : int
        Number of rows.
    counts : (signals, classes, values) uint32
        Number of rows with a level in each class.

    Raises
    ------
    ConfigError
        If spec or step are not valid.
    """

    def __init__(self, spec: SpectrumSpec, step_db: float = 0.0) -> None:
        if spec.output == "complex":
            raise ConfigError("output='complex': levels are of power")
        if step_db and step_db not in STEPS_DB:
            raise ConfigError(
                f"step_db={step_db:g}: must be one of {', '.join(map(str, STEPS_DB))}"
            )
        finest = finest_step(spec.n_signals * spec.n_values)
        if step_db and step_db < finest:
            raise ConfigError(
                f"step_db={step_db:g}: must be at least {finest:g} for this number of values"
            )
        self.spec = spec
        self.step_db = step_db or finest
        shape = spec.n_signals, spec.n_values
        self.n_rows = 0
        self.counts: UInt32Array = np.zeros((shape[0], _n_classes(self.step_db), shape[1]), "u4")
        self._power = np.zeros(shape)
        self._least = np.full(shape, np.inf, np.float32)
        self._greatest = np.full(shape, -np.inf, np.float32)
        signals, values = np.indices(shape)
        self._at = signals * (self.counts.shape[1] * shape[1]) + values

    @property
    def class_edges(self) -> Float64Array:
        """Limits of the classes, shape (classes + 1,), ascending [dB]."""
        return LEVEL_MIN_DB + self.step_db * np.arange(self.counts.shape[1] + 1)

    @property
    def least(self) -> Float32Array:
        """Lowest level of each value, shape (signals, values) [dB]; inf without rows."""
        return self._least

    @property
    def greatest(self) -> Float32Array:
        """Highest level of each value, shape (signals, values) [dB]; -inf without rows."""
        return self._greatest

    @property
    def mean(self) -> Float64Array:
        """Level of the mean power of each value, shape (signals, values) [dB]; NaN without rows.

        This is the level of the root mean square over all rows, an Leq.
        """
        if not self.n_rows:
            return np.full(self._power.shape, np.nan)
        return power_to_level(self._power / self.n_rows, floor_db=LEVEL_MIN_DB)

    def add(self, batch: SpectrumBatch) -> None:
        """Count rows.

        Raises
        ------
        ConfigError
            If they are of another spec, or the total exceeds 2^32 - 1.
        InputError
            If a power is infinite or NaN.
        """
        if batch.spec != self.spec:
            raise ConfigError("the analysis has changed; statistics are of one kind of spectrum")
        self._check_rows(batch.n_frames)
        levels: Float32Array = self.spec.scale.to_level(batch.values)
        if not (levels < np.inf).all():  # also False for NaN
            raise InputError("a power is beyond all numbers: samples too far beyond full scale")
        # By rounding, a level at an edge may fall to either side of it.
        classes = np.floor((levels.astype(np.float64) - LEVEL_MIN_DB) / self.step_db)
        classes = np.clip(classes, 0.0, self.counts.shape[1] - 1.0).astype(np.int64)
        flat = self.counts.reshape(-1)
        for row in classes:
            flat[self._at + row * self.counts.shape[2]] += 1
        self._power += level_to_power(levels.astype(np.float64)).sum(axis=0)
        if batch.n_frames:
            np.minimum(self._least, levels.min(axis=0), out=self._least)
            np.maximum(self._greatest, levels.max(axis=0), out=self._greatest)
        self.n_rows += batch.n_frames

    def merge(self, other: "LevelStatistics") -> None:
        """Merge other statistics, as if their rows had been added here.

        Raises
        ------
        ConfigError
            If the other has different spectra or classes.
        """
        if not same_kind(self.spec, other.spec):
            raise ConfigError("statistics of different spectra cannot be added")
        if self.step_db != other.step_db:
            raise ConfigError(
                f"step_db={other.step_db:g}: must be {self.step_db:g} to be added to the others"
            )
        self._check_rows(other.n_rows)
        self.counts += other.counts
        self._power += other._power  # noqa: SLF001 - same class
        np.minimum(self._least, other.least, out=self._least)
        np.maximum(self._greatest, other.greatest, out=self._greatest)
        self.n_rows += other.n_rows

    def exceeded(self, percent: float) -> Float64Array:
        """Return the level exceeded in this percentage of rows, shape (signals, values) [dB].

        It is the middle of the class that contains the row of this rank: within half a class of the
        (100 - percent)th percentile of all levels, without interpolation. NaN without rows.

        Raises
        ------
        ConfigError
            If percent is not between 0 and 100.

        References
        ----------
        .. [1] ISO 1996-1:2016, 3.1.3: N percent exceedance level.
        """
        if not 0.0 < percent < 100.0:
            raise ConfigError(f"percent={percent:g}: must be between 0 and 100")
        if not self.n_rows:
            return np.full(self._power.shape, np.nan)
        # NB: the epsilon prevents rounding errors from increasing a whole product by one.
        rank = max(1.0, np.ceil((1.0 - percent / 100.0) * self.n_rows - 1e-6))
        first, last = self.occupied()
        at = np.empty(self._power.shape, np.int64)
        # In blocks of values: the sums of all would take as much memory as the counts.
        for begin in range(0, at.shape[1], _VALUES_AT_ONCE):
            some = slice(begin, begin + _VALUES_AT_ONCE)
            below = np.cumsum(self.counts[:, first:last, some], axis=1, dtype=np.uint32)
            at[:, some] = (below < rank).sum(axis=1) + first
        return np.asarray(LEVEL_MIN_DB + self.step_db * (at + 0.5), np.float64)

    def occupied(self) -> tuple[int, int]:
        """Return the first class with a count, and the one after the last."""
        found = np.flatnonzero(self.counts.any(axis=(0, 2)))
        return (int(found[0]), int(found[-1]) + 1) if found.size else (0, 0)

    def density(self) -> tuple[Float64Array, Float32Array]:
        """Return the spectral probability density: the density of levels at each frequency.

        Returns
        -------
        edges : (classes + 1,) float64
            Limits of the occupied classes, ascending [dB].
        density : (signals, classes, values) float32
            Share of the rows per dB [1/dB]; the sum over classes times ``step_db`` is 1.

        References
        ----------
        .. [1] N. D. Merchant et al., "Spectral probability density as a tool for ambient noise
           analysis", J. Acoust. Soc. Am. 133, EL262 (2013).
        """
        first, last = self.occupied()
        scale = np.float32(1.0 / (max(1, self.n_rows) * self.step_db))
        return self.class_edges[first : last + 1], self.counts[:, first:last] * scale

    def _check_rows(self, n: int) -> None:
        if self.n_rows + n > _ROWS_MAX:
            raise ConfigError(f"rows={self.n_rows + n}: must be at most {_ROWS_MAX}")

    def state(self) -> dict[str, NDArray[np.generic]]:
        """Return all counts as arrays; ``restore`` reads them."""
        first, last = self.occupied()
        return {
            "counts": self.counts[:, first:last],
            "first_class": np.array([first]),
            "mean_power": self._power / max(1, self.n_rows),
            "least": self._least,
            "greatest": self._greatest,
            "rows": np.array([self.n_rows]),
        }

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Load the arrays of ``state`` with the same spec and step, before any row is added.

        Raises
        ------
        ValueError
            If arrays have other shapes, or impossible values.
        """
        first, n_rows = int(state["first_class"][0]), int(state["rows"][0])
        counts, mean_power = state["counts"], state["mean_power"]
        past = first + counts.shape[1]
        if not (0 <= first <= past <= self.counts.shape[1] and 0 <= n_rows <= _ROWS_MAX):
            raise ValueError(f"classes {first} to {past} of {n_rows} rows")
        if not (np.isfinite(mean_power).all() and (mean_power >= 0.0).all()):
            raise ValueError("mean power: must be a number from 0 on")
        self.counts[:, first:past] = counts
        self.n_rows = n_rows
        self._power[:] = mean_power * n_rows
        self._least[:] = state["least"]
        self._greatest[:] = state["greatest"]


def same_kind(one: SpectrumSpec, other: SpectrumSpec) -> bool:
    """Return whether levels of both specs are comparable; product names may differ."""
    return dataclasses.replace(one, product="") == dataclasses.replace(other, product="")
