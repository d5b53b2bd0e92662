"""The text that says of a picture how it was made: where each format has it."""

import html
import re
import warnings
from pathlib import Path

from PIL import Image, UnidentifiedImageError

from spectrod.errors import InputError

METADATA_KEY = "spectrod"
"""Name of a PNG's text entry; also in an SVG and in a PGM."""

EXIF_DESCRIPTION = 0x010E
"""Tag ImageDescription, of JPEG and WebP."""

_SVG = re.compile(rb'<metadata id="spectrod">(.*?)</metadata>', re.DOTALL)
_PGM = re.compile(rb"^# spectrod: (.*)$", re.MULTILINE)
_PGM_HEAD = 1 << 16
"""Bytes from its beginning in which a PGM's comment ends."""


def embedded_text(path: Path) -> str:
    """Read the JSON that a picture of ours has in it, whatever its format.

    Raises
    ------
    InputError
        If the file cannot be read, or has no such text.
    """
    try:
        with path.open("rb") as file:
            head = file.read(_PGM_HEAD)
            content = head + file.read() if head.startswith(b"<?xml") else head
        text = _text(path, content)
    except UnidentifiedImageError as error:
        raise InputError(f"{path}: not a readable picture") from error
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: {reason}") from error
    if text is None:
        raise InputError(f"{path}: not a spectrogram of spectrod")
    return text


def _text(path: Path, content: bytes) -> str | None:
    """Return the JSON; None of a picture that has none."""
    if content.startswith(b"<?xml"):
        found = _SVG.search(content)
        return html.unescape(found[1].decode(errors="replace")) if found else None
    if content.startswith(b"P5"):
        found = _PGM.search(content)
        return found[1].decode(errors="replace") if found else None
    with warnings.catch_warnings():
        # Of many pixels, and of damaged EXIF: no pixel is read, and EXIF is taken or not.
        warnings.simplefilter("ignore")
        return _text_of_pixels(path)


def _text_of_pixels(path: Path) -> str | None:
    with Image.open(path) as image:
        text = image.info.get(METADATA_KEY) or image.getexif().get(EXIF_DESCRIPTION)
    return text if isinstance(text, str) and text.startswith("{") else None
