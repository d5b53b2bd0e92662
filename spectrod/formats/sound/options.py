"""What a sound file shall be like."""

from dataclasses import dataclass
from typing import Literal, get_args

from spectrod.errors import ConfigError

Subtype = Literal["", "s16", "s24", "s32", "f32"]

SOUND_SUFFIXES = (".wav", ".flac")

_SUBTYPES: dict[str, tuple[Subtype, ...]] = {
    ".wav": ("f32", "s16", "s24", "s32"),
    ".flac": ("s24", "s16"),
    ".sigmf-meta": ("f32", "s16", "s32"),
}
"""Of each suffix, the default first: what loses nothing of the analysis's samples, or least."""


@dataclass(frozen=True, slots=True)
class SoundOptions:
    """How a sound file is written, and what it says of itself.

    Attributes
    ----------
    fsync_s : float
        After so many seconds the file's header takes in what has been written, and both are on the
        disk; > 0.
    gap_max_s : float
        After a longer gap ``SoundWriter.needs_new_file`` is true; >= 0.
    source : str
        Name of where the samples come from.
    software : str
        Name and version of what writes the file.
    recording : str
        Name of the daemon's recording that writes the file; empty for all other writers.
    is_copy : bool
        Whether the samples are elsewhere too, so that a file that is given up need not stay.
    has_utc : bool
        Whether blocks say when they were taken, so that the file can say when it begins.

    Raises
    ------
    ConfigError
        With the name, the value and the rule, if one is broken.
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


def checked_subtype(suffix: str, subtype: str) -> Subtype:
    """Choose how samples are stored in files of a suffix.

    Parameters
    ----------
    suffix : str
        In lower case.
    subtype : str
        "" stands for f32 in WAV, which is what is analysed, and s24 in FLAC, which has no more.

    Raises
    ------
    ConfigError
        If there is no such suffix, or files of it do not store samples so.
    """
    known = _SUBTYPES.get(suffix)
    if known is None:
        raise ConfigError(f"{suffix}: a sound file's suffix must be {' or '.join(SOUND_SUFFIXES)}")
    if not subtype:
        return known[0]
    for one in known:
        if one == subtype:
            return one
    if subtype in get_args(Subtype):
        raise ConfigError(f"subtype={subtype!r}: a {suffix} file has {', '.join(known)}")
    raise ConfigError(f"subtype={subtype!r}: must be one of {', '.join(known)}")
