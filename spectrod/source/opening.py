"""Opens the bytes of a sound file, wherever it is."""

import os
from pathlib import Path
from typing import BinaryIO, cast

from spectrod.source.store.urls import is_url


def open_binary(path: str) -> BinaryIO:
    """Open a local file or one of a store, unbuffered; the errors of a store's are its own.

    Raises
    ------
    OSError
        If it cannot be read.
    """
    if is_url(path):
        from spectrod.source.store.remote_file import RemoteFile  # noqa: PLC0415 - optional

        return cast("BinaryIO", RemoteFile(path))
    return cast("BinaryIO", Path(path).open("rb", buffering=0))


def length_of(file: BinaryIO) -> int:
    """Return the length of an open file [bytes]."""
    position = file.tell()
    n_bytes = file.seek(0, os.SEEK_END)
    file.seek(position)
    return n_bytes
