"""Values of a transfer function by their names: one of a band, or one of each bin."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spectrod.dsp.units import Float64Array
from spectrod.lib.errors import ConfigError
from spectrod.lib.suggestions import did_you_mean
from spectrod.measure.measurement import check_distinct, check_row

if TYPE_CHECKING:
    from spectrod.measure.transfer.transfer_function import TransferFunction

UNITS = {
    "delay": "s",
    "delay_peak": "1",
    "level_difference": "dB",
    "mean_coherence": "1",
    "significant_coherence": "1",
    "averages": "1",
}
"""Units of the values of a band."""

SPECTRA_UNITS = {
    "coherence": "1",
    "h1": "dB",
    "h1_phase": "deg",
    "h2": "dB",
    "h2_phase": "deg",
    "relative_sd": "1",
}
"""Units of the values of each bin."""


@dataclass(frozen=True, slots=True)
class TransferQuantity:
    """One named value of a pair of channels.

    Attributes
    ----------
    name, unit : str
    """

    name: str
    unit: str

    @property
    def is_of_all_channels(self) -> bool:
        """Whether its value is one of all channels together."""
        return False


def parse_transfer(names: Sequence[str], interval_s: float) -> tuple[TransferQuantity, ...]:
    """Return the quantities of names; raises ConfigError for unknown or repeated ones."""
    check_row(names, interval_s)
    _check_known("quantity", names, UNITS)
    found = tuple(TransferQuantity(name, UNITS[name]) for name in names)
    check_distinct(found)
    return found


def check_transfer_spectra(names: Sequence[str]) -> None:
    """Check names of values of each bin; raises ConfigError for unknown or repeated ones."""
    _check_known("spectra", names, SPECTRA_UNITS)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ConfigError(f"{twice} is given twice", spectra=...)


def spectrum_of(found: "TransferFunction", name: str) -> Float64Array:
    """Return the values of each bin of a name of ``SPECTRA_UNITS``, (bins,), in its unit."""
    return _SPECTRA[name](found)


def _decibels(values: Float64Array) -> Float64Array:
    with np.errstate(divide="ignore"):
        return np.asarray(20.0 * np.log10(values))


_SPECTRA: dict[str, "Callable[[TransferFunction], Float64Array]"] = {
    "coherence": lambda found: found.coherence,
    "h1": lambda found: _decibels(np.abs(found.h1)),
    "h1_phase": lambda found: np.degrees(np.angle(found.h1)),
    "h2": lambda found: _decibels(np.abs(found.h2)),
    "h2_phase": lambda found: np.degrees(np.angle(found.h2)),
    "relative_sd": lambda found: found.relative_sd,
}


def _check_known(key: str, names: Sequence[str], known: dict[str, str]) -> None:
    for name in names:
        if name not in known:
            rule = f"must be one of {', '.join(known)}{did_you_mean(name, known)}"
            raise ConfigError(f"{key}={name!r}: {rule}", key)
