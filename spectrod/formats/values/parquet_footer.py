"""The metadata of a Parquet file in an order that does not depend on chance.

References
----------
.. [1] Apache Parquet, "File format": the footer is a ``FileMetaData`` of Thrift's compact protocol,
   its length in 4 bytes, and ``PAR1``; ``key_value_metadata`` is a list of ``KeyValue``.
"""

import os
from collections.abc import Mapping
from typing import IO, Final

_END_BYTES: Final = 8
"""Length of the footer, and the mark of the format."""
_TEXT, _STOP = b"\x18", b"\x00"
"""The next field of a structure of Thrift, a text; and its end."""


def sort_metadata(file: IO[bytes], metadata: Mapping[str, str]) -> None:
    """Sort the metadata of a complete file by their names, in place.

    The library that writes Parquet takes them from a table whose order changes from file to file,
    so the same rows would make other bytes. A file in whose footer they do not stand together stays
    as it is.

    Parameters
    ----------
    file : binary file
        Open for reading and writing; written by the library with these metadata.
    metadata : mapping of str to str
        Its metadata, but for those that the library adds.

    Raises
    ------
    OSError
        If the file cannot be read or written.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _END_BYTES))
    length = int.from_bytes(file.read(_END_BYTES)[:4], "little")
    start = max(0, size - _END_BYTES - length)
    file.seek(start)
    footer = file.read(length)
    pairs = [_pair(name, metadata[name]) for name in sorted(metadata)]
    first = min((footer.rfind(one) for one in pairs), default=-1)
    content = b"".join(pairs)
    found = footer[max(0, first) : first + len(content)]
    if first >= 0 and all(one in found for one in pairs):
        file.seek(start + first)
        file.write(content)


def _pair(name: str, value: str) -> bytes:
    """Return the structure ``KeyValue`` of a name and a value."""
    texts = (one.encode() for one in (name, value))
    return b"".join(_TEXT + _varint(len(one)) + one for one in texts) + _STOP


def _varint(n: int) -> bytes:
    """Return a number in groups of seven bits, the lowest first."""
    groups = bytearray()
    while n > 0x7F:
        groups.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes((*groups, n))
