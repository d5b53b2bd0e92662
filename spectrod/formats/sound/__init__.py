"""Sound files of samples: WAV and FLAC, readable at every moment."""

from spectrod.formats.sound.sound_options import SoundOptions, Subtype
from spectrod.formats.sound.sound_recovery import (
    RecoveredSound,
    is_unfinished,
    recover,
    recover_or_remove,
)
from spectrod.formats.sound.sound_writer import SoundWriter

__all__ = [
    "RecoveredSound",
    "SoundOptions",
    "SoundWriter",
    "Subtype",
    "is_unfinished",
    "recover",
    "recover_or_remove",
]
