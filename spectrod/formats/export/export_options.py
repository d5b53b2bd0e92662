"""Options of exports."""

from dataclasses import dataclass, field

from spectrod.lib.errors import ConfigError

PROFILES = ("", "millidecade")
COMPRESSION_MAX = 9
_HDF5_NAMES = ("CLASS", "DIMENSION_LIST", "NAME", "REFERENCE_LIST")
"""Attribute names that HDF5 uses to mark dimensions."""


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """Options of an exported file; validated on construction.

    Attributes
    ----------
    compression : int
        Level of lossless compression of the values, 0 (none) to 9 (smallest, slowest). Formats
        without compression, .npy and .csv, ignore it.
    profile : {"", "millidecade"}
        For NetCDF files only: all rows unchanged, or daily files of hybrid-millidecade spectra.
    attributes : dict of str
        The operator's attributes of the recording; they replace attributes of the description.
        Names follow the Attribute Convention for Data Discovery, for example ``creator_name``.
    is_copy : bool
        Whether the rows also exist elsewhere, so that an aborted segment can be deleted.

    Raises
    ------
    ConfigError
        If a rule is broken; the text gives name, value and rule.
    """

    compression: int = 1
    profile: str = ""
    attributes: dict[str, str] = field(default_factory=dict)
    is_copy: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.compression <= COMPRESSION_MAX:
            raise ConfigError(f"compression={self.compression}: must be 0 to {COMPRESSION_MAX}")
        if self.profile not in PROFILES:
            raise ConfigError(f"profile={self.profile!r}: must be millidecade, or '' for all rows")
        for name in self.attributes:
            if not can_name(name):
                raise ConfigError(
                    f"attribute {name!r}: must be ASCII letters, digits and _, a letter first, and "
                    f"none of HDF5's own {', '.join(_HDF5_NAMES)}"
                )


def can_name(name: str) -> bool:
    """Return whether an attribute of this name is valid in all formats."""
    is_plain = name.isidentifier() and name.isascii() and not name.startswith("_")
    return is_plain and name not in _HDF5_NAMES
