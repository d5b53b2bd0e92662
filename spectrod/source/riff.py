"""Chunks of WAV files that libsndfile's Python interface does not show."""

import os
import struct
from collections.abc import Container
from pathlib import Path
from typing import BinaryIO

_CHUNK_MAX = 1 << 20
_CHUNKS_MAX = 256
_SIZE_IN_DS64 = 0xFFFFFFFF


def read_chunks(path: str, wanted: Container[bytes]) -> dict[bytes, bytes]:
    """Read chunks of a WAV or RF64 file.

    Parameters
    ----------
    path : str
        Any file; one that is no WAV, or ends early, just has fewer chunks.
    wanted : container of bytes
        Names of four bytes.

    Returns
    -------
    chunks : dict of name to content
        The first of each name, if it has at most 1 MiB; the samples' chunk is passed over.

    Raises
    ------
    OSError
        If the file cannot be read.

    References
    ----------
    .. [1] EBU Tech 3306, RF64: the 64-bit size of the samples' chunk stands in ``ds64``.
    """
    with Path(path).open("rb") as file:
        form = file.read(12)
        if form[:4] not in (b"RIFF", b"RF64", b"BW64") or form[8:] != b"WAVE":
            return {}
        return _walk(file, wanted)


def _walk(file: BinaryIO, wanted: Container[bytes]) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    data_size = 0
    for _ in range(_CHUNKS_MAX):
        header = file.read(8)
        if len(header) < 8:
            break
        name, size = struct.unpack("<4sI", header)
        if name == b"data" and size == _SIZE_IN_DS64:
            size = data_size
        n_next = file.tell() + size + size % 2
        if (name in wanted and name not in found and size <= _CHUNK_MAX) or name == b"ds64":
            content = file.read(size)
            if name == b"ds64" and size >= 16:
                data_size = struct.unpack_from("<Q", content, 8)[0]
            elif len(content) == size:
                found[name] = content
        file.seek(n_next, os.SEEK_SET)
    return found
