"""The JSON text in a picture that describes how it was made, and its place in each format."""

import html
import os
import re
from pathlib import Path

from PIL import Image

from spectrod.formats.picture.pillow import reading
from spectrod.lib.errors import InputError
from spectrod.lib.regular_files import open_regular

METADATA_KEY = "spectrod"
"""Name of the text entry in PNG, SVG and PGM."""

PDF_ELEMENT = "spectrod:picture"
"""XML element in a PDF's XMP metadata, whose stream is not compressed (ISO 16684-1)."""

EXIF_DESCRIPTION = 0x010E
"""Tag ImageDescription of JPEG and WebP."""

_SVG_BEGIN, _SVG_END = b'<metadata id="spectrod">', b"</metadata>"
_PDF = b"%PDF"
_PDF_BEGIN, _PDF_END = f"<{PDF_ELEMENT}>".encode(), f"</{PDF_ELEMENT}>".encode()
_PGM = re.compile(rb"^# spectrod: (.*)$", re.MULTILINE)
_FORMATS = ("PNG", "JPEG", "WEBP")
"""Formats that Pillow reads; others never have the text."""

_END_BYTES = 1 << 20
"""Size of the searched part: the beginning of an SVG or PGM, the end of a PDF."""


def embedded_text(path: Path, png_key: str = METADATA_KEY) -> str:
    """Read the JSON text in a picture of spectrod, in any format.

    Parameters
    ----------
    path : Path
    png_key : str
        Name of the text entry in PNG; other formats have one name for all kinds of pictures.

    Raises
    ------
    InputError
        If the file cannot be read, or has no such text.
    """
    try:
        with open_regular(path) as file:
            head = file.read(_END_BYTES)
            if head.startswith(_PDF):
                file.seek(max(0, file.seek(0, os.SEEK_END) - _END_BYTES))
                head = _PDF + file.read(_END_BYTES)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    text = _text(path, head, png_key)
    if text is None:
        raise InputError(f"{path}: not a spectrogram of spectrod")
    return text


def _between(content: bytes, begin: bytes, end: bytes) -> str | None:
    """Return the text of an XML element, if both of its tags are there."""
    _, found, rest = content.partition(begin)
    text, found_end, _ = rest.partition(end)
    return html.unescape(text.decode(errors="replace")) if found and found_end else None


def _text(path: Path, content: bytes, png_key: str) -> str | None:
    """Return the JSON; None if the picture has none."""
    if content.startswith(b"<?xml"):
        return _between(content, _SVG_BEGIN, _SVG_END)
    if content.startswith(_PDF):
        return _between(content, _PDF_BEGIN, _PDF_END)
    if content.startswith(b"P5"):
        comment = _PGM.search(content)
        return comment[1].decode(errors="replace") if comment else None
    unidentified = f"{path}: not a readable picture"
    # Pillow decodes no pixels here.
    with reading(unidentified, f"{path}: "), Image.open(path, formats=_FORMATS) as image:
        found = image.info.get(png_key) or image.getexif().get(EXIF_DESCRIPTION)
    # Pillow returns its own subclass of str for text that is not Latin-1.
    return str(found) if isinstance(found, str) and found.startswith("{") else None
