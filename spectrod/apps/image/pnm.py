"""PGM and PPM, plain and raw, 8 and 16 bits.

The format is that of the netpbm manual pages pgm(5) and ppm(5).
"""

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from spectrod.apps.image.image_picture import Picture, Pixels, check_size, narrowed
from spectrod.lib.errors import InputError

# A header may have a comment at every space, also at the last one before the raster.
_SPACE = rb"(?:\s|#[^\n\r]*[\n\r])"
_HEADER = re.compile(rb"P([2356])" + 3 * (_SPACE + rb"++(\d{1,9})") + _SPACE)
_COMMENT = re.compile(rb"#[^\n\r]*")
_ANY_SPACE = re.compile(rb"\s")
_PIECE_BYTES = 1 << 16
_PLAIN = (2, 3)
_COLOUR = (3, 6)


def is_pnm(content: bytes) -> bool:
    """Return whether a file's content starts like a PNM."""
    return re.match(rb"P\d\s", content) is not None


def decode(content: bytes) -> Picture:
    """Decode the first picture of a file's content.

    Raises
    ------
    InputError
        With the reason.
    """
    header = _HEADER.match(content)
    if header is None:
        raise InputError("must be P2, P3, P5 or P6 with width, height and maxval")
    kind, columns, rows, maxval = map(int, header.groups())
    if columns == 0 or rows == 0 or not 1 <= maxval <= 65535:
        raise InputError(
            f"width={columns}, height={rows}, maxval={maxval}: must be from 1 on, maxval to 65535"
        )
    check_size(columns, rows)
    channels = 3 if kind in _COLOUR else 1
    read = _plain_values if kind in _PLAIN else _raw_values
    values = read(content[header.end() :], rows * columns * channels, maxval)
    if values.max() > maxval:
        raise InputError(f"a value of {values.max()}: must be at most the maxval {maxval}")
    planes = np.moveaxis(values.reshape(rows, columns, channels), 2, 0)
    return Picture(narrowed(planes, maxval), maxval)


def encode(picture: Picture) -> bytes:
    """Encode a grey picture as raw PGM, a colour picture as raw PPM, with its own maxval."""
    rows, columns = picture.shape
    header = f"P{6 if picture.is_colour else 5}\n{columns} {rows}\n{picture.maxval}\n"
    values = np.moveaxis(picture.planes, 0, 2)
    return header.encode() + values.astype(_raw_type(picture.maxval)).tobytes()


def _raw_type(maxval: int) -> np.dtype[np.unsignedinteger]:
    return np.dtype(np.uint8) if maxval <= 255 else np.dtype(">u2")


def _raw_values(body: bytes, count: int, maxval: int) -> Pixels:
    dtype = _raw_type(maxval)
    _require(len(body) // dtype.itemsize, count)
    values: Pixels = np.frombuffer(body, dtype, count)
    return values


def _plain_values(body: bytes, count: int, maxval: int) -> NDArray[np.int32]:  # noqa: ARG001
    _require((len(body) + 1) // 2, count)  # each value has a digit, and all but one a space
    values = np.empty(count, np.int32)
    n_read = 0
    for piece in _pieces(_COMMENT.sub(b"", body)):
        words = piece.split(maxsplit=count - n_read)[: count - n_read]
        if bad := next((word for word in words if not word.isdigit() or len(word) > 9), None):
            raise InputError(
                f"{bad.decode(errors='replace')[:20]!r}: must be a number of 1 to 9 digits"
            )
        values[n_read : n_read + len(words)] = [int(word) for word in words]
        n_read += len(words)
        if n_read == count:
            return values
    _require(n_read, count)
    return values


def _pieces(body: bytes) -> Iterator[bytes]:
    """Split a text between words; objects for all words at once would take 20 times its memory."""
    begin = 0
    while begin < len(body):
        space = _ANY_SPACE.search(body, begin + _PIECE_BYTES)
        end = space.start() if space else len(body)
        yield body[begin:end]
        begin = end


def _require(found: int, count: int) -> None:
    if found < count:
        raise InputError(f"truncated: {found} of {count} values")
