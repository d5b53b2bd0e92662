"""PNG, through Pillow: grey of 8 and 16 bits, colour of 8, with or without alpha."""

import io
import warnings

import numpy as np
from PIL import Image, UnidentifiedImageError

from spectrod.errors import InputError
from spectrod.image.picture import Picture

SIGNATURE = b"\x89PNG\r\n\x1a\n"

# Of the header chunk, which comes first.
_DEPTH, _COLOUR_TYPE = 24, 25
_GREY = 0


def decode(content: bytes) -> Picture:
    """Read a file's content; palettes become colours.

    Raises
    ------
    InputError
        If it is damaged, too large for Pillow, or has 16 bits a colour or 16 bits of grey with
        transparency, which Pillow would halve or forget.
    """
    header = content[_DEPTH : _COLOUR_TYPE + 1]
    if header[:1] == b"\x10" and header[1:] != bytes([_GREY]):
        raise InputError("16 bits a colour: only grey may have 16 in a PNG; use a PPM")
    try:
        with warnings.catch_warnings():
            # A warning at half of what is an error.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            image = Image.open(io.BytesIO(content), formats=["PNG"])
            image.load()
    except UnidentifiedImageError:  # its text names an object of ours
        raise InputError("not a PNG that can be read: its header is damaged") from None
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise InputError(f"not a PNG that can be read: {error}") from error
    if image.mode.startswith("I") and "transparency" in image.info:
        raise InputError("16 bits of grey with transparency: write it with 8, or without")
    return _picture(image)


def encode(picture: Picture) -> bytes:
    """Write with 8 bits, or 16 where a grey picture's maxval is above 255.

    A maxval that is not the format's own is stretched to it.
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
    """Pillow's name for what the image has: L or RGB, and A for alpha."""
    has_alpha = "A" in image.mode or "transparency" in image.info
    is_grey = image.mode in ("1", "L", "LA")
    return ("L" if is_grey else "RGB") + ("A" if has_alpha else "")
