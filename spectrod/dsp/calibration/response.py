"""Frequency responses: tables of levels over frequency, interpolated."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spectrod.dsp.units import Float64Array
from spectrod.lib.errors import ConfigError

ROWS_MIN, ROWS_MAX = 2, 20_000
"""Bounds on the rows of a table."""

FREQUENCY_MAX_HZ = 1e10
RESPONSE_MAX_DB = 200.0
"""Bounds on a row: above 0 to this frequency [Hz], levels within +- this [dB]."""


@dataclass(frozen=True, slots=True)
class Response:
    """Sensitivity over frequency, relative to the stated one.

    Attributes
    ----------
    frequencies_hz : tuple of float
        Ascending frequencies [Hz].
    levels_db : tuple of float
        Levels of the response: positive where the channel reads too high [dB].
    """

    frequencies_hz: tuple[float, ...]
    levels_db: tuple[float, ...]

    @property
    def range_hz(self) -> tuple[float, float]:
        """Lowest and highest frequency at which the response is known [Hz]."""
        return self.frequencies_hz[0], self.frequencies_hz[-1]

    def at(self, frequencies: Float64Array) -> Float64Array:
        """Interpolate levels over the logarithm of frequency.

        Parameters
        ----------
        frequencies : (...) float64
            Frequencies of any sign [Hz].

        Returns
        -------
        levels : (...) float64
            Levels [dB]; NaN outside the table.
        """
        low, high = self.range_hz
        size = np.abs(frequencies)
        known = (size >= low) & (size <= high)
        levels = np.full(size.shape, np.nan)
        levels[known] = np.interp(
            np.log(size[known]), np.log(self.frequencies_hz), np.array(self.levels_db)
        )
        return levels

    def power_factors(self, frequencies: Float64Array) -> Float64Array:
        """Return the factors of power that remove the response, 1 where it is not known.

        The table is not extrapolated: outside it a value has the stated sensitivity alone.
        """
        levels = np.nan_to_num(self.at(frequencies), nan=0.0)
        factors: Float64Array = 10.0 ** (-levels / 10.0)
        return factors


def make_response(rows: Sequence[Sequence[float]], *, at_hz: float, sign: float) -> Response:
    """Make a response of the rows of a table.

    Parameters
    ----------
    rows : sequence of (frequency [Hz], level [dB])
        ``ROWS_MIN`` to ``ROWS_MAX`` rows of strictly ascending frequency.
    at_hz : float
        Frequency of the stated sensitivity: the response is 0 dB there [Hz]. 0: the levels are
        relative to the stated sensitivity as they are.
    sign : float
        1 for a response, -1 for corrections, which are added to readings.

    Raises
    ------
    ConfigError
        If a rule is violated.
    """
    if not ROWS_MIN <= len(rows) <= ROWS_MAX:
        raise ConfigError(f"response: {len(rows)} rows: must be {ROWS_MIN} to {ROWS_MAX}")
    previous = 0.0
    for number, row in enumerate(rows, start=1):
        previous = _checked_row(number, row, previous)
    frequencies = tuple(float(row[0]) for row in rows)
    response = Response(frequencies, tuple(sign * float(row[1]) for row in rows))
    if at_hz == 0.0:
        return response
    low, high = response.range_hz
    if not low <= at_hz <= high:
        raise ConfigError(
            f"response: at_hz={at_hz:g}: must be within the table, {low:g} to {high:g} Hz, or 0 "
            "for levels relative to the sensitivity as they are"
        )
    shift_db = float(response.at(np.array([at_hz]))[0])
    return Response(frequencies, tuple(level - shift_db for level in response.levels_db))


def _checked_row(number: int, row: Sequence[float], previous_hz: float) -> float:
    if len(row) != 2 or not all(math.isfinite(value) for value in row):
        raise ConfigError(f"response: row {number}: must be two finite numbers, Hz and dB")
    frequency_hz, level_db = row
    if not 0.0 < frequency_hz <= FREQUENCY_MAX_HZ:
        raise ConfigError(
            f"response: row {number}: {frequency_hz:g} Hz: must be above 0 to "
            f"{FREQUENCY_MAX_HZ:g} Hz"
        )
    if frequency_hz <= previous_hz:
        raise ConfigError(
            f"response: row {number}: {frequency_hz:g} Hz after {previous_hz:g} Hz: "
            "frequencies must ascend"
        )
    if abs(level_db) > RESPONSE_MAX_DB:
        raise ConfigError(
            f"response: row {number}: {level_db:g} dB: must be within +-{RESPONSE_MAX_DB:g} dB"
        )
    return frequency_hz
