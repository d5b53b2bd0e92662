"""What the values of a spectrum mean: unit, reference, and the way between power and levels."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.calibration import ChannelCalibration, Response, common_text
from spectrod.dsp.level_reference import squared
from spectrod.dsp.units import (
    FLOOR_DBFS,
    FULL_SCALE_SINE_FS2,
    REFERENCES,
    UNITS,
    Float,
    Float64Array,
    Scaling,
    level_to_power,
    power_to_level,
)

ZERO_DB = "0 dB"
"""Begins the reference of calibrated values: ``0 dB = 20 uPa``."""


@dataclass(frozen=True, slots=True)
class ValueScale:
    """What the values of a spectrum mean.

    Attributes
    ----------
    scaling, output, iq, calibration
        As of ``SpectrumSpec``.
    of_bands : bool
        Whether values are of bands, not of bins.
    n_signals : int
        Channels of the result.
    """

    scaling: Scaling
    output: str
    iq: bool
    of_bands: bool
    n_signals: int
    calibration: tuple[ChannelCalibration | None, ...] = ()

    @property
    def units(self) -> tuple[str, ...]:
        """Unit of the values of each signal, shape (n_signals,)."""
        return self._of_signals(self._unit_in)

    @property
    def unit(self) -> str:
        """Unit of the values; those of different signals are joined by commas."""
        return common_text(self.units)

    def _unit_in(self, calibration: ChannelCalibration | None) -> str:
        if self.output == "power" and self.scaling == "dbfs":
            return calibration.unit if calibration else UNITS["dbfs"]
        base = calibration.linear_unit if calibration else "FS"
        if self.output == "complex":
            return f"{base}/Hz^0.5" if self.scaling == "density" else base
        return f"{squared(base)}/Hz" if self.scaling == "density" else squared(base)

    @property
    def broadband_unit(self) -> str:
        """Unit of the broadband values: a level or a mean square, even beside densities."""
        if self.scaling == "dbfs":
            return self.unit
        return common_text(self._of_signals(lambda one: squared(one.linear_unit if one else "FS")))

    @property
    def level_unit(self) -> str:
        """Unit of ``to_level``."""
        if self.calibrated is None:
            return "dB re FS^2/Hz" if self.scaling == "density" else UNITS["dbfs"]
        reference = self.calibrated.reference
        return reference.density_level_unit if self.scaling == "density" else reference.level_unit

    @property
    def calibrated(self) -> ChannelCalibration | None:
        """Calibration of the first signal; it has the unit of all if there is one unit."""
        return self.calibration[0] if self.calibration else None

    @property
    def cal_ids(self) -> tuple[str, ...]:
        """Identity of the calibration of each signal, empty without one, shape (n_signals,)."""
        return self._of_signals(lambda one: one.cal_id if one else "")

    @property
    def cal_id(self) -> str:
        """Identity of the calibration; those of different signals are joined by commas."""
        return common_text(filter(None, self.cal_ids))

    @property
    def common_response(self) -> Response | None:
        """Frequency response that power of all signals is corrected for; None if they differ."""
        if self.output == "complex" or not self.calibration:
            return None
        responses = self.responses
        return responses[0] if len(responses) == 1 else None

    @property
    def responses(self) -> tuple[Response | None, ...]:
        """The different frequency responses of the signals, in their order."""
        found = [one.response if one else None for one in self.calibration]
        # Many signals share one, whose rows are hashed once.
        return tuple(dict.fromkeys({id(response): response for response in found}.values()))

    @property
    def signal_factors(self) -> Float64Array:
        """Factor from power [FS^2] to that of the results, shape (n_signals,).

        Of levels it is the factor to the power relative to 0 dB.
        """
        is_level = self.scaling == "dbfs"
        uncalibrated = 1.0 / self.uncalibrated_reference_power if is_level else 1.0
        factors = [
            uncalibrated
            if one is None
            else 10.0 ** (one.full_scale_db / 10.0)
            if is_level
            else one.full_scale**2
            for one in self.calibration or (None,) * self.n_signals
        ]
        return np.array(factors)

    def _of_signals(self, text: Callable[[ChannelCalibration | None], str]) -> tuple[str, ...]:
        if not self.calibration:
            return (text(None),) * self.n_signals
        return tuple(text(one) for one in self.calibration)

    @property
    def reference_power(self) -> float:
        """Power of 0 dB [FS^2; for a density FS^2/Hz; or in the unit of the calibration].

        It is that of a full-scale sine, for I/Q of a complex tone of amplitude 1, for a density 1;
        with a calibration the square of its reference.
        """
        if self.calibrated is not None:
            return self.calibrated.reference.value**2
        return self.uncalibrated_reference_power

    @property
    def uncalibrated_reference_power(self) -> float:
        """Power of 0 dB of signals without a calibration [FS^2; for a density FS^2/Hz]."""
        return 1.0 if self.iq or self.scaling == "density" else FULL_SCALE_SINE_FS2

    def to_power(self, values: NDArray[Float]) -> NDArray[Float]:
        """Convert values to linear power [FS^2, for a density FS^2/Hz], of the same dtype.

        With a calibration it is in the square of its linear unit.
        """
        return level_to_power(values, self.reference_power) if self.scaling == "dbfs" else values

    def to_level(self, values: NDArray[Float]) -> NDArray[Float]:
        """Convert values to levels re ``reference_power`` [``level_unit``], of the same dtype.

        Levels in dBFS are at least ``FLOOR_DBFS``; a density of 0 is minus infinity.
        """
        if self.scaling == "dbfs":
            return values
        floor_db = -np.inf if self.scaling == "density" else FLOOR_DBFS
        return power_to_level(values, self.reference_power, floor_db)

    @property
    def references(self) -> tuple[str, ...]:
        """Reference of the unit of each signal, shape (n_signals,)."""
        return self._of_signals(self._reference_in)

    @property
    def reference(self) -> str:
        """Reference of the unit; those of different signals are joined by commas."""
        return common_text(self.references)

    def _reference_in(self, calibration: ChannelCalibration | None) -> str:
        if calibration is not None:
            zero = f"{ZERO_DB} = {calibration.reference.name}"
            return zero if self.scaling == "dbfs" else f"{zero}, {self._meaning}"
        if self.output == "power" and not self.iq and not self.of_bands:
            return REFERENCES[self.scaling]
        if self.scaling == "dbfs":
            return "0 dBFS = complex tone of amplitude 1" if self.iq else REFERENCES["dbfs"]
        return f"FS = digital full scale (1.0), {self._meaning}"

    @property
    def _meaning(self) -> str:
        if self.of_bands:
            return "a band's mean density" if self.scaling == "density" else "a band's mean square"
        if self.output == "complex":
            return "of each side"
        if not self.iq:
            return "one-sided" if self.scaling == "density" else "a sine's mean square at its bin"
        return "two-sided" if self.scaling == "density" else "a complex tone's mean square"
