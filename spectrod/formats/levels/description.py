"""What a file of levels says about all its rows."""

import time
from dataclasses import dataclass
from typing import Any

from spectrod.formats.export.layout import plain
from spectrod.levels import LevelFlag, LevelQuantity

FLAGS = {flag: str(flag.name).lower() for flag in LevelFlag}
"""Names of the flags."""


@dataclass(frozen=True, slots=True)
class LevelDescription:
    """Metadata of a file of levels.

    Attributes
    ----------
    source : str
        Description of the source.
    channels : tuple of str
        Names of the channels.
    quantities : tuple of LevelQuantity
        The values of each row.
    units : tuple of str
        Unit of the levels of each channel, such as ``dB SPL`` or ``dBFS``.
    cal_ids : tuple of str
        Identity of the calibration of each channel; empty without.
    fs : float
        Sample rate [Hz].
    interval_s : float
        Length of an interval [s].
    align : str
        See ``LevelMeter``.
    time_zone : str
        Time zone of the parts of the day; empty without.
    has_utc : bool
        Whether times are UTC; otherwise they count from the first sample.
    software : str
        Name and version of the program.
    notes : tuple of str
        Further statements about all values.
    """

    source: str
    channels: tuple[str, ...]
    quantities: tuple[LevelQuantity, ...]
    units: tuple[str, ...]
    cal_ids: tuple[str, ...]
    fs: float
    interval_s: float
    align: str
    time_zone: str
    has_utc: bool
    software: str
    notes: tuple[str, ...] = ()

    def unit(self, quantity: LevelQuantity) -> str:
        """Return the unit of a quantity; that of every channel where levels have several."""
        if quantity.unit != "level":
            return quantity.unit
        units = self.units if len(set(self.units)) > 1 else self.units[:1]
        suffix = " s" if quantity.kind == "exposure" else ""
        return ", ".join(unit + suffix for unit in units)

    def attributes(self) -> dict[str, Any]:
        """Return the metadata by name, as text and numbers."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        found = {
            "title": f"Sound levels of {self.source}",
            "source": f"sound of {self.source}, measured by {self.software}",
            "history": f"{now} written by {self.software}",
            "date_created": now,
            "software": self.software,
            "calibration": ", ".join(filter(None, self.cal_ids)) or "none: of digital full scale",
            "level_unit": ", ".join(self.units),
            "sample_rate_hz": self.fs,
            "interval_s": self.interval_s,
            "align": self.align,
        }
        if self.time_zone:
            found["time_zone"] = self.time_zone
        if self.notes:
            found["comment"] = "; ".join(self.notes)
        return {name: plain(v) if isinstance(v, str) else v for name, v in found.items()}


def flag_names(flags: int) -> list[str]:
    """Return the names of the flags in a sum of them."""
    return [name for flag, name in FLAGS.items() if flags & flag]
