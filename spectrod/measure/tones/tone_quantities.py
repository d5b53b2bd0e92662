"""Names of the values of tones in an interval, and the columns of its tracks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spectrod.lib.errors import ConfigError
from spectrod.lib.suggestions import did_you_mean
from spectrod.measure.measurement import check_distinct, check_row

if TYPE_CHECKING:
    from spectrod.measure.tones.intermodulation import IntermodulationKind

DISTORTIONS = {
    "fundamental": "frequency_hz",
    "level": "level_db",
    "THD": "thd_db",
    "THD_N": "thd_n_db",
    "SINAD": "sinad_db",
    "SNR": "snr_db",
    "SFDR": "sfdr_db",
    "spur": "spur_hz",
    "ENOB": "enob_bits",
}
"""Quantities of the strongest tone, and the fields of ``Distortion`` that they are."""

INTERMODULATIONS: "dict[str, IntermodulationKind]" = {"IMD_smpte": "smpte", "IMD_ccif": "ccif"}
"""Quantities of the two strongest tones: root-sum-square of their products over the reference."""

_UNITS = {
    **dict.fromkeys(DISTORTIONS, "dB"),
    "fundamental": "Hz",
    "level": "level",
    "SFDR": "dBc",
    "spur": "Hz",
    "ENOB": "bit",
    **dict.fromkeys(INTERMODULATIONS, "dB"),
    "OBW": "Hz",
    "tracks": "1",
}

FORMS = ", ".join(_UNITS)
"""The names, for help texts."""

TRACK_COLUMNS = {
    "id": "1",
    "frequency": "Hz",
    "frequency_sd": "Hz",
    "level": "level",
    "level_sd": "dB",
    "age": "s",
}
"""Columns of tracks, and their units."""


@dataclass(frozen=True, slots=True)
class ToneQuantity:
    """One named value of the tones of an interval.

    Attributes
    ----------
    name : str
        Its name, such as ``SINAD``.
    unit : str
        Its unit; ``level`` follows from the channel's calibration.
    """

    name: str
    unit: str

    @property
    def is_of_all_channels(self) -> bool:
        """Whether its value is one of all channels together."""
        return False


TRACK_QUANTITIES = tuple(ToneQuantity(*both) for both in TRACK_COLUMNS.items())
"""The columns of tracks as quantities."""


def parse_tones(names: Sequence[str], interval_s: float) -> tuple[ToneQuantity, ...]:
    """Return the quantities of an interval, in the given order.

    Parameters
    ----------
    names : sequence of str
        1 to ``QUANTITIES_MAX`` different names.
    interval_s : float
        Length of the interval [s].

    Raises
    ------
    ConfigError
        If a name is unknown or given twice.
    """
    check_row(names, interval_s)
    for name in names:
        if name not in _UNITS:
            known = ", ".join(_UNITS)
            rule = f"must be one of {known}{did_you_mean(name, _UNITS)}"
            raise ConfigError(f"quantity={name!r}: {rule}")
    quantities = tuple(ToneQuantity(name, _UNITS[name]) for name in names)
    check_distinct(quantities)
    return quantities
