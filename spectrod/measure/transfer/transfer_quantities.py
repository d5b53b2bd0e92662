"""Values of a transfer function by their names: one of a band, or one of each bin."""

from typing import TYPE_CHECKING

import numpy as np

from spectrod.dsp.units import Float64Array

if TYPE_CHECKING:
    from collections.abc import Callable

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
