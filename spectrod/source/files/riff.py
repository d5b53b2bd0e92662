"""Chunks of WAV files that say what was recorded, and when."""

from collections.abc import Container

from spectrod.source.files.container.container_chunks import RIFF, FileBytes, walk
from spectrod.source.opening import open_binary

_CHUNK_BYTES_MAX = 1 << 20
_FORMS = (b"RIFF", b"RF64", b"BW64")


def read_chunks(path: str, wanted: Container[bytes]) -> dict[bytes, bytes]:
    """Read chunks of a WAV, RF64 or BW64 file.

    Parameters
    ----------
    path : str
        Any file; one that is not a WAV file, or ends early, has fewer chunks.
    wanted : container of bytes
        Names of four bytes. A LIST's name includes its kind, as in ``LISTINFO``.

    Returns
    -------
    chunks : dict of name to content
        The first chunk of each name among the first 256 chunks, if it is complete and at most 1 MiB
        long. The chunk of samples is skipped.

    Raises
    ------
    OSError
        If the file cannot be read.
    """
    found: dict[bytes, bytes] = {}
    with open_binary(path) as file:
        source = FileBytes(file)
        head = source.at(0, 12)
        if head[:4] not in _FORMS or head[8:] != b"WAVE":
            return found
        for name, begin, size in walk(source, RIFF, len(head)):
            full_name = name + source.at(begin, 4) if name == b"LIST" else name
            if full_name not in wanted or full_name in found or size > _CHUNK_BYTES_MAX:
                continue
            content = source.at(begin, size)
            if len(content) == size:
                found[full_name] = content
    return found
