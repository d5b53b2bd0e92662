"""PNG, through Pillow: grey of 8 and 16 bits, colour of 8, with or without alpha."""

import io
import math
import struct

import numpy as np
from PIL import Image

from spectrod.apps.image.image_picture import Picture, check_size
from spectrod.formats.picture.pillow import reading
from spectrod.lib.errors import InputError

SIGNATURE = b"\x89PNG\r\n\x1a\n"

# Offsets in the header chunk, which comes first.
_TYPE, _SIZE, _DEPTH, _COLOUR_TYPE = 12, 16, 24, 25
_GREY = 0
_CHANNELS = {_GREY: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""Number of channels of each colour type."""

_DEFLATE_RATIO_MAX = 1032
"""Maximum compression: a code of two bits represents at most 258 bytes."""


def decode(content: bytes) -> Picture:
    """Decode a file's content; palettes become colours.

    Raises
    ------
    InputError
        If it is damaged, has more than ``PIXELS_MAX`` pixels, or has 16 bits a colour or 16 bits of
        grey with transparency, which Pillow would halve or forget.
    """
    size = _check_header(content)
    what = "not a PNG that can be read: "
    with reading(f"{what}its header is damaged", what):
        image = Image.open(io.BytesIO(content), formats=["PNG"])
        if image.size != size:  # Pillow would use a second header chunk
            raise ValueError("has two headers")
        image.load()
    if image.mode.startswith("I") and "transparency" in image.info:
        raise InputError("16 bits of grey with transparency: write it with 8, or without")
    with reading(f"{what}its palette is damaged", what):
        return _picture(image)


def _check_header(content: bytes) -> tuple[int, int]:
    """Check, before decoding, that a picture is supported and that its bytes can contain it.

    Returns the columns and rows.
    """
    if content[_TYPE:_SIZE] != b"IHDR" or len(content) <= _COLOUR_TYPE:
        raise InputError("not a PNG that can be read: its header is damaged")
    columns, rows = struct.unpack_from(">II", content, _SIZE)
    depth, colour_type = content[_DEPTH], content[_COLOUR_TYPE]
    if depth == 16 and colour_type != _GREY:
        raise InputError("16 bits a colour: only grey may have 16 in a PNG; use a PPM")
    check_size(columns, rows)
    # Each row has a byte for its filter, and starts at a byte.
    n_bytes = rows * (1 + math.ceil(columns * depth * _CHANNELS.get(colour_type, 0) / 8))
    if n_bytes > _DEFLATE_RATIO_MAX * len(content):
        raise InputError(f"truncated: {columns} x {rows} pixels do not fit {len(content)} bytes")
    return columns, rows


def encode(picture: Picture) -> bytes:
    """Encode with 8 bits, or with 16 if a grey picture's maxval is above 255.

    Values are scaled if maxval is not the format's own.
    """
    top = 255 if picture.maxval <= 255 else 65535
    planes = picture.planes
    if picture.maxval != top:
        planes = np.rint(planes * (top / picture.maxval)).astype(planes.dtype)
    layers = [*planes] if picture.alpha is None else [*planes, picture.alpha]
    pixels = layers[0] if len(layers) == 1 else np.stack(layers, axis=-1)
    buffer = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(buffer, "PNG")
    return buffer.getvalue()


def _picture(image: Image.Image) -> Picture:
    if image.mode.startswith("I"):  # grey of 16 bits; Pillow has called it I;16 and I
        return Picture(np.asarray(image).astype(np.uint16)[None], 65535)
    pixels = np.asarray(image.convert(_mode(image)))
    if pixels.ndim == 2:
        return Picture(pixels[None], 255)
    planes = np.moveaxis(pixels, 2, 0)
    if len(planes) == 3:
        return Picture(planes, 255)
    return Picture(planes[:-1], 255, planes[-1])


def _mode(image: Image.Image) -> str:
    """Return Pillow's mode for an image: L or RGB, and A for alpha."""
    has_alpha = "A" in image.mode or "transparency" in image.info
    is_grey = image.mode in ("1", "L", "LA")
    return ("L" if is_grey else "RGB") + ("A" if has_alpha else "")
