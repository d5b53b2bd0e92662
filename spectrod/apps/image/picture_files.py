"""Picture files: the content determines how to read, the suffix how to write."""

import os
from pathlib import Path

from spectrod.apps.image import png_files, pnm
from spectrod.apps.image.image_picture import Picture
from spectrod.formats.whole_files import check_writable, write_whole
from spectrod.lib.errors import ConfigError, InputError

FILE_BYTES_MAX = 1 << 30
"""Maximum size of a picture's file [bytes]; raw colours of 16 bits take up to 0.4 GB, plain ones
more."""

_PIECE_BYTES = 1 << 20

SUFFIXES = (".pgm", ".ppm", ".pnm", ".png")


def read_picture(path: Path) -> Picture:
    """Read a PGM, PPM or PNG file.

    Raises
    ------
    InputError
        With the path, if the file does not exist, has another format, is damaged, or has more than
        ``FILE_BYTES_MAX`` bytes or ``PIXELS_MAX`` pixels.
    """
    if path.is_char_device():  # /dev/zero has no end
        raise InputError(f"{path}: is a device: must be a file or a pipe")
    try:
        content = _read_bounded(path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    try:
        return _decode(content)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _read_bounded(path: Path) -> bytes:
    """Read a file or a pipe; raises InputError as soon as it is too long."""
    with path.open("rb") as file:
        pieces: list[bytes] = []
        n_bytes = os.fstat(file.fileno()).st_size
        while n_bytes <= FILE_BYTES_MAX:
            piece = file.read(_PIECE_BYTES)
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)
            n_bytes = max(n_bytes, len(pieces) * _PIECE_BYTES)
    raise InputError(f"{path}: more than {FILE_BYTES_MAX} bytes: too long for a picture")


def check_suffix(path: Path) -> None:
    """Raise ConfigError for a name without a known suffix."""
    if path.suffix.lower() not in SUFFIXES:
        raise ConfigError(f"{path}: a picture's suffix must be one of {', '.join(SUFFIXES)}")


def check_output(path: Path, picture: Picture) -> None:
    """Check that a picture can be written to a file.

    Raises
    ------
    ConfigError
        If the file's format cannot hold it.
    StorageError
        If the file cannot be created.
    """
    check_suffix(path)
    suffix = path.suffix.lower()
    if suffix == ".png":
        if picture.is_colour and picture.maxval > 255:
            raise ConfigError(f"{path}: a PNG has at most 8 bits a colour here: write a .ppm")
    elif picture.alpha is not None:
        raise ConfigError(f"{path}: {suffix[1:].upper()} has no alpha: write a .png")
    elif suffix == (".pgm" if picture.is_colour else ".ppm"):
        raise ConfigError(f"{path}: grey is for .pgm, colour for .ppm, both for .pnm and .png")
    check_writable(path)


def write_picture(path: Path, picture: Picture) -> None:
    """Write a picture completely or not at all; the target may be the file that it was read from.

    Raises
    ------
    ConfigError, StorageError
        As ``check_output``.
    """
    check_output(path, picture)
    encode = png_files.encode if path.suffix.lower() == ".png" else pnm.encode
    write_whole(path, encode(picture))


def _decode(content: bytes) -> Picture:
    if content.startswith(png_files.SIGNATURE):
        return png_files.decode(content)
    if pnm.is_pnm(content):
        return pnm.decode(content)
    raise InputError("not a picture: must be a PGM, PPM or PNG file")
