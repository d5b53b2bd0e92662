"""The adaptive noise floor: what is exceeded 80 % of the time in the last seconds."""

from collections.abc import Iterator

import numpy as np

from spectrod.dsp.averaging import FLOOR, exceeded_percent
from spectrod.dsp.units import Float32Array, Float64Array
from spectrod.lib.errors import ConfigError

KEPT_ROWS = 128
"""Rows of the window that are kept; of windows with more rows, one in each 128th."""
LEAST_ROWS = 16
"""Least rows of the window, and rows from which a floor is learned."""
_UPDATES = 8
"""Updates in the time of the window."""
MEMORY_MAX_BYTES = 1 << 26
"""Maximum memory for the rows of one trigger [bytes]."""

_PERCENT = exceeded_percent(FLOOR) or 0.0
_DEVIATE = -0.8416212  # of the normal distribution, at 20 %


def quantile_over_mean_db(n_independent: Float64Array | float) -> Float64Array:
    """Return the level exceeded 80 % of the time by noise, over the level of its mean [dB].

    A power of n independent values of Gaussian noise has a gamma distribution of shape n, whose
    quantiles are the mean times about ``(1 - 1 / (9 n) + z / (3 sqrt(n)))**3`` [1]_, here within
    0.04 dB from n = 1 on, and 0.7 dB too low at 1/2.

    References
    ----------
    .. [1] E. B. Wilson and M. M. Hilferty, "The distribution of chi-square", PNAS 17, 1931.
    """
    n = np.asarray(n_independent, np.float64)
    return np.asarray(30.0 * np.log10(1.0 - 1.0 / (9.0 * n) + _DEVIATE / (3.0 * np.sqrt(n))))


class NoiseFloor:
    """The level exceeded 80 % of the time in the last floor_s seconds, without its bias for noise.

    What sounds for less than four fifths of that time hardly moves it; what sounds for longer
    becomes the floor. It is computed eight times in floor_s, at first after a quarter of it.

    Parameters
    ----------
    n_signals, n_values : int
        Values of a row.
    row_s : float
        Time from one row to the next [s].
    floor_s : float
        Length of the window [s].
    bias_db : float or (n_values,) float64
        Of noise, the level exceeded 80 % of the time over that of the mean [dB].

    Raises
    ------
    ConfigError
        If the window has less than 16 rows, or its rows need more than 64 MiB.
    """

    def __init__(
        self,
        n_signals: int,
        n_values: int,
        row_s: float,
        floor_s: float,
        bias_db: Float64Array | float,
    ) -> None:
        n_rows = round(floor_s / row_s)
        if n_rows < LEAST_ROWS:
            raise ConfigError(
                f"must be at least {LEAST_ROWS} rows of the product, {LEAST_ROWS * row_s:.3g} s",
                floor_s=floor_s,
            )
        n_kept = min(n_rows, KEPT_ROWS)
        n_bytes = 4 * n_kept * n_signals * n_values
        if n_bytes > MEMORY_MAX_BYTES:
            raise ConfigError(
                f"the floor of {n_signals * n_values} values needs "
                f"{n_bytes >> 20} MiB: must be at most {MEMORY_MAX_BYTES >> 20} MiB; choose a "
                "narrower range, bands or fewer channels",
                over_floor_db=...,
            )
        self._kept = np.empty((n_kept, n_signals, n_values), np.float32)
        self._every = max(1, round(n_rows / n_kept))
        self._update_every = max(1, n_kept // _UPDATES)
        self._bias_db = np.asarray(bias_db, np.float32)
        self._n_seen = self._n_kept = 0
        self._n_first = len(self._kept) / 4
        self._floor: Float32Array | None = None

    def learn(self, levels: Float32Array) -> None:
        """Forget all rows, and take the floor of others, until a whole window has been added.

        Parameters
        ----------
        levels : (rows, n_signals, n_values) float32
            Rows that are still to be added, evenly in time [dB]. Fewer than 16 have no floor: then
            it is unknown, and stays so until a whole window has been added.
        """
        self._n_seen = self._n_kept = 0
        self._n_first = len(self._kept)
        self._floor = self._of(levels) if len(levels) >= LEAST_ROWS else None

    def over(self, levels: Float32Array) -> Iterator[tuple[slice, Float32Array | None]]:
        """Add rows; yield runs of them, each with the floor before it.

        Parameters
        ----------
        levels : (rows, n_signals, n_values) float32
            The next rows [dB].

        Yields
        ------
        run : slice
            Consecutive rows.
        floor : (n_signals, n_values) float32, or None
            The floor that holds for them [dB]; None until it is known.
        """
        first = 0
        for row in range(-self._n_seen % self._every, len(levels), self._every):
            self._kept[self._n_kept % len(self._kept)] = levels[row]
            self._n_kept += 1
            is_due = self._n_kept % self._update_every == 0
            if is_due and self._n_kept >= self._n_first:
                yield slice(first, row + 1), self._floor
                first = row + 1
                self._floor = self._of(self._kept[: self._n_kept])
        self._n_seen += len(levels)
        if first < len(levels):
            yield slice(first, len(levels)), self._floor

    def _of(self, levels: Float32Array) -> Float32Array:
        rank = max(1, int(np.ceil((100.0 - _PERCENT) / 100.0 * len(levels))))
        found = np.partition(levels, rank - 1, axis=0)[rank - 1]
        return np.asarray(found - self._bias_db, np.float32)
