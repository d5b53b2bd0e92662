"""Headers of AU files.

References
----------
.. [1] Sun, ``audio.h``: the size 0xFFFFFFFF stands for an unknown one.
"""

import struct

from spectrod.lib.errors import InputError
from spectrod.source.files.container.container_chunks import Bytes
from spectrod.source.files.container.container_header import SoundHeader, checked, coding_of
from spectrod.source.files.container.extent import Stated, is_open

_ORDERS = {b".snd": ">", b"dns.": "<"}
_HEADER_BYTES = 24
_SUBTYPES = {
    1: "ULAW", 2: "PCM_S8", 3: "PCM_16", 4: "PCM_24", 5: "PCM_32", 6: "FLOAT", 7: "DOUBLE",
    27: "ALAW",
}  # fmt: skip


def is_au(head: bytes) -> bool:
    """Return whether a file with these first bytes is an AU file."""
    return head[:4] in _ORDERS


def read_au(path: str, source: Bytes, at: int) -> SoundHeader:
    """Read the header of an AU file; see ``wave.read_wave``."""
    head = source.at(at, _HEADER_BYTES)
    if len(head) < _HEADER_BYTES:
        raise InputError(f"{path}: has no samples: its header is cut off")
    order = _ORDERS[head[:4]]
    offset, size, encoding, rate, channels = struct.unpack_from(f"{order}5I", head, 4)
    checked(path, float(rate), channels)
    subtype = _SUBTYPES.get(encoding, "")
    coding = coding_of(subtype, is_big=order == ">") if subtype else None
    step_bytes = coding.n_bytes * channels if coding else 1
    begin = at + max(offset, _HEADER_BYTES)
    is_unknown = is_open(size, step_bytes, size)
    stated = Stated(begin, size, is_unknown, step_bytes, None, is_32_bit=True)

    def head_of(n_bytes: int) -> bytes:
        fields = _HEADER_BYTES, min(n_bytes, 0xFFFFFFFF), encoding, rate, channels
        return head[:4] + struct.pack(f"{order}5I", *fields)

    return SoundHeader("AU", subtype, float(rate), channels, coding, stated, head_of)
