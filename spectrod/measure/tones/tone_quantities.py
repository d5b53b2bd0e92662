"""Names of the values of tones in an interval, and the columns of its tracks."""

from typing import TYPE_CHECKING

from spectrod.measure.quantity_names import ChannelQuantity

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

UNITS = {
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
"""Units of the quantities."""

FORMS = ", ".join(UNITS)
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

TRACK_QUANTITIES = tuple(ChannelQuantity(*both) for both in TRACK_COLUMNS.items())
"""The columns of tracks as quantities."""
