"""Recognises a sound file among bytes that are taken for raw samples."""

import re

from spectrod.lib.errors import InputError
from spectrod.source.files.mpeg import read_header

HEAD_BYTES = 1 << 12
"""Bytes by which a sound file is recognised, if there are so many."""

_ID3 = rb"ID3[\x02-\x04][\x00-\x0f].[\x00-\x7f]{4}"
_FORMS: tuple[tuple[str, bytes], ...] = (
    ("WAV (RIFF, WAVE)", rb"RIF[FX].{4}WAVE"),
    ("RF64", rb"RF64.{4}WAVE"),
    ("BW64", rb"BW64.{4}WAVE"),
    ("W64 (riff)", rb"riff\x2e\x91\xcf\x11\xa5\xd6\x28\xdb"),
    ("AIFF (FORM)", rb"FORM.{4}AIF[FC]"),
    ("AU (.snd)", rb"\.snd\x00\x00..(.{4})\x00\x00\x00[\x01-\x1b]\x00"),
    ("CAF (caff)", rb"caff\x00\x01"),
    ("FLAC (fLaC)", rb"fLaC[\x00\x80]\x00\x00\x22"),
    ("Ogg (OggS)", rb"OggS\x00[\x00-\x07]"),
    ("MP3 (ID3)", _ID3),
    ("MP4 or M4A (ftyp)", rb"\x00\x00..ftyp[ -~]{4}"),
    ("Matroska or WebM", rb"\x1a\x45\xdf\xa3[\x01-\xff]"),
    ("WMA or ASF", rb"\x30\x26\xb2\x75\x8e\x66\xcf\x11"),
)
_PATTERNS = tuple((name, re.compile(form, re.DOTALL)) for name, form in _FORMS)
_MPEG_FRAMES_MIN = 3
"""Frame headers, one where the other's frame ends, that are no chance among samples."""


def recognised(head: bytes) -> str:
    """Return the name of the form of a sound file; "" for raw samples.

    Only what samples have by no chance counts: at least 5 bytes of a header, or three headers of
    MPEG frames that lead to each other.

    Parameters
    ----------
    head : bytes
        The first ``HEAD_BYTES`` bytes, or fewer.
    """
    found = next((name for name, pattern in _PATTERNS if pattern.match(head)), "")
    return found or ("MP3" if _has_frames(head) else "")


def may_become(head: bytes) -> bool:
    """Return whether more bytes may make a few into a container whose header is read here."""
    starts = (b"RIFF", b"RIFX", b"RF64", b"BW64", b"riff", b"FORM", b".snd", b"caff", b"ID3")
    return any(start.startswith(head[: len(start)]) for start in starts)


def refuse_sound_file(name: str, head: bytes, hint: str) -> None:
    """Check that the first bytes of raw samples are not those of a sound file.

    Raises
    ------
    InputError
        If they are.
    """
    form = recognised(head)
    if form:
        raise InputError(f"{name}: begins with the header of a sound file, {form}: {hint}")


def _has_frames(head: bytes) -> bool:
    at = 0
    for _ in range(_MPEG_FRAMES_MIN):
        header = read_header(head, at)
        if header is None or not header.n_bytes:
            return False
        at += header.n_bytes
    return True
