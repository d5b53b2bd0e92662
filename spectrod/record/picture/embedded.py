"""What pictures of all formats say of themselves, read back."""

import html
import os
import re
import warnings
from pathlib import Path

import msgspec
from PIL import Image, UnidentifiedImageError

from spectrod.errors import InputError
from spectrod.record.picture.options import PictureOptions
from spectrod.record.picture.pixelmap import METADATA_KEY, PixelMap

_EXIF_DESCRIPTION = 0x010E
_SVG = re.compile(rb'<metadata id="spectrod">(.*?)</metadata>', re.DOTALL)
_PGM = re.compile(rb"^# spectrod: (.*)$", re.MULTILINE)
_PGM_HEAD = 1 << 16
"""Bytes from its beginning in which a PGM's comment ends."""


def read_pixel_map(path: str | os.PathLike[str]) -> PixelMap:
    """Read what a picture says of itself, whatever its format.

    Raises
    ------
    InputError
        If the file cannot be read, or is not a spectrogram of ours.
    """
    path = Path(path)
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
    return decode(text, path)


def decode(text: str | bytes, path: Path) -> PixelMap:
    """Decode a description; InputError with the path if it is damaged."""
    try:
        return msgspec.json.decode(text, type=PixelMap)
    except msgspec.DecodeError as error:
        raise InputError(f"{path}: damaged description: {error}") from error


def options_of(pixels: PixelMap, path: Path) -> PictureOptions:
    """Make the options that a picture was asked for with; its title is not among them.

    Raises
    ------
    InputError
        With the path, if they are not such options.
    """
    try:
        return msgspec.convert(pixels.options, PictureOptions)
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: damaged description: {error}") from error


def _text(path: Path, content: bytes) -> str | None:
    """Return the JSON of the description; None of a picture that has none."""
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
        text = image.info.get(METADATA_KEY) or image.getexif().get(_EXIF_DESCRIPTION)
    return text if isinstance(text, str) and text.startswith("{") else None
