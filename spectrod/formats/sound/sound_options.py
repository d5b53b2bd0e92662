"""Options of sound files."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

from spectrod.lib.errors import ConfigError
from spectrod.lib.output_formats import format_named, suffixes

Subtype = Literal["", "s16", "s24", "s32", "f32"]


@dataclass(frozen=True, slots=True)
class SoundOptions:
    """Options and metadata of a sound file.

    Attributes
    ----------
    fsync_s : float
        Interval at which data are synchronised to the disk and the header is updated; > 0 [s].
    gap_max_s : float
        Longest gap in a file: after a longer one ``SoundWriter.fits`` is false; >= 0 [s].
    source : str
        Name of the source.
    software : str
        Name and version of the program that writes the file.
    recording : str
        Name of the daemon's recording that writes the file; empty for other writers.
    is_copy : bool
        Whether the samples also exist elsewhere, so that an aborted file can be deleted.
    has_utc : bool
        Whether times of blocks are UTC, so that the file can state its begin.

    Raises
    ------
    ConfigError
        If a rule is broken; the text gives name, value and rule.
    """

    fsync_s: float = 5.0
    gap_max_s: float = 60.0
    source: str = ""
    software: str = "spectrod"
    recording: str = ""
    is_copy: bool = False
    has_utc: bool = True

    def __post_init__(self) -> None:
        if not self.fsync_s > 0.0:
            raise ConfigError(f"fsync_s={self.fsync_s:g}: must be a positive number of seconds")
        if not self.gap_max_s >= 0.0:
            raise ConfigError(f"gap_max_s={self.gap_max_s:g}: must be at least 0 seconds")


def is_sound_file(path: Path) -> bool:
    """Return whether ``SoundWriter`` writes files of this name."""
    found = format_named(path.suffix)
    return found is not None and bool(found.sound_file)


def checked_subtype(suffix: str, subtype: str) -> Subtype:
    """Return the sample format of files with a suffix.

    Parameters
    ----------
    suffix : str
        Suffix in lower case.
    subtype : str
        "" means f32 for WAV, the type of analysed samples, and s24 for FLAC, its widest here.

    Raises
    ------
    ConfigError
        If the suffix is unknown, or its files do not support the format.
    """
    found = format_named(suffix)
    if found is None or not found.subtypes:
        sounds = " or ".join(suffixes(lambda one: one.sound_file))
        raise ConfigError(f"{suffix}: a sound file's suffix must be {sounds}")
    known = found.subtypes
    if subtype in known or not subtype:
        return cast("Subtype", subtype or known[0])
    if subtype in get_args(Subtype):
        raise ConfigError(f"subtype={subtype!r}: a {suffix} file has {', '.join(known)}")
    raise ConfigError(f"subtype={subtype!r}: must be one of {', '.join(known)}")
