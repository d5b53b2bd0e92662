"""The text that says of a picture how it was made: where each format has it."""

import html
import re
from pathlib import Path

from PIL import Image

from spectrod.errors import InputError
from spectrod.record.picture.pillow import reading

METADATA_KEY = "spectrod"
"""Name of a PNG's text entry; also in an SVG and in a PGM."""

EXIF_DESCRIPTION = 0x010E
"""Tag ImageDescription, of JPEG and WebP."""

_SVG_BEGIN, _SVG_END = b'<metadata id="spectrod">', b"</metadata>"
_PGM = re.compile(rb"^# spectrod: (.*)$", re.MULTILINE)
_FORMATS = ("PNG", "JPEG", "WEBP")
"""Of pictures that Pillow reads; others never have the text."""

_HEAD_BYTES = 1 << 20
"""From the beginning of an SVG or PGM, in which the text ends."""


def embedded_text(path: Path) -> str:
    """Read the JSON that a picture of ours has in it, whatever its format.

    Raises
    ------
    InputError
        If the file cannot be read, or has no such text.
    """
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    text = _text(path, head)
    if text is None:
        raise InputError(f"{path}: not a spectrogram of spectrod")
    return text


def _text(path: Path, content: bytes) -> str | None:
    """Return the JSON; None of a picture that has none."""
    if content.startswith(b"<?xml"):
        _, begin, rest = content.partition(_SVG_BEGIN)
        text, end, _ = rest.partition(_SVG_END)
        return html.unescape(text.decode(errors="replace")) if begin and end else None
    if content.startswith(b"P5"):
        comment = _PGM.search(content)
        return comment[1].decode(errors="replace") if comment else None
    unidentified = f"{path}: not a readable picture"
    # No pixel is decoded.
    with reading(unidentified, f"{path}: "), Image.open(path, formats=_FORMATS) as image:
        found = image.info.get(METADATA_KEY) or image.getexif().get(EXIF_DESCRIPTION)
    # Of a text that is not Latin-1, Pillow makes a str of its own.
    return str(found) if isinstance(found, str) and found.startswith("{") else None
