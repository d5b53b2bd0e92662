"""What may be asked for when a recording is exported."""

from dataclasses import dataclass, field

from spectrod.errors import ConfigError

PROFILES = ("", "millidecade")
COMPRESSION_MAX = 9
_HDF5_NAMES = ("CLASS", "DIMENSION_LIST", "NAME", "REFERENCE_LIST")
"""Attributes with which HDF5 marks dimensions."""


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """How an exported file is made; validated when it is made.

    Attributes
    ----------
    compression : int
        Of the values, 0 (none) to 9 (smallest, slowest); without loss. Formats that have none, .npy
        and .csv, ignore it.
    profile : {"", "millidecade"}
        Of NetCDF files alone: all rows as they are, or daily files of hybrid-millidecade spectra.
    attributes : dict of str
        What the operator says of the recording, beside the description's own attributes and before
        them; names of the Attribute Convention for Data Discovery, ``creator_name`` for example.

    Raises
    ------
    ConfigError
        With the name, the value and the rule, if one is broken.
    """

    compression: int = 1
    profile: str = ""
    attributes: dict[str, str] = field(default_factory=dict)

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
    """Tell whether all formats take an attribute of this name."""
    is_plain = name.isidentifier() and name.isascii() and not name.startswith("_")
    return is_plain and name not in _HDF5_NAMES
