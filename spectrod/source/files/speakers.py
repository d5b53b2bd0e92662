"""The speakers for which the channels of a sound file are meant, by its header.

References
----------
.. [1] Microsoft, WAVEFORMATEXTENSIBLE: dwChannelMask, channels in the order of its bits.
.. [2] RFC 9639, section 9.1.3: channels of FLAC; 8.6.2: the mask in a comment.
.. [3] Vorbis I specification, section 4.3.9; RFC 7845, section 5.1.1: Vorbis and Opus.
"""

import re
import struct
from contextlib import suppress
from typing import BinaryIO

from spectrod.source.files.mpeg import after_tags
from spectrod.source.files.riff import read_chunks
from spectrod.source.opening import length_of, open_binary

_OF_MASK = (
    "FL", "FR", "FC", "LFE", "BL", "BR", "FLC", "FRC", "BC", "SL", "SR",
    "TC", "TFL", "TFC", "TFR", "TBL", "TBC", "TBR",
)  # fmt: skip
"""Speakers by the bits of a mask: front, low frequencies, back, side, top; left, right, centre."""
_OF_FLAC = ("FC", "FL FR", "FL FR FC", "FL FR BL BR", "FL FR FC BL BR", "FL FR FC LFE BL BR",
            "FL FR FC LFE BC SL SR", "FL FR FC LFE BL BR SL SR")  # fmt: skip
_OF_VORBIS = ("FC", "FL FR", "FL FC FR", "FL FR BL BR", "FL FC FR BL BR", "FL FC FR BL BR LFE",
              "FL FC FR SL SR BC LFE", "FL FC FR SL SR BL BR LFE")  # fmt: skip
"""Speakers of one channel, of two, and so on."""

_EXTENSIBLE = 0xFFFE
_COMMENT_BYTES_MAX = 1 << 20
_METADATA_MAX = 128
_MASK_COMMENT = re.compile(rb"WAVEFORMATEXTENSIBLE_CHANNEL_MASK=0x([0-9a-f]{1,8})\b", re.IGNORECASE)
_COMMENT_BLOCK = 4
_VORBIS_ORDERED = (0, 1)
"""Families of Opus whose channels have the order of Vorbis; others are sound fields, or unknown."""


def find_speakers(path: str) -> tuple[str, ...]:
    """Find the speakers of the channels of a sound file.

    Parameters
    ----------
    path : str
        Any file.

    Returns
    -------
    speakers : tuple of str
        One for each channel, as ``FL`` or ``LFE``; empty if the header does not say.
    """
    with suppress(OSError), open_binary(path) as file:
        begin = after_tags(file, 0, length_of(file))
        file.seek(begin)
        head = file.read(64)
        if head[:4] == b"fLaC":
            return _of_flac(file, begin, head)
        if head[:4] == b"OggS":
            return _of_ogg(head)
        return _of_wave(read_chunks(path, (b"fmt ",)).get(b"fmt ", b""))
    return ()


def _by_number(orders: tuple[str, ...], channels: int) -> tuple[str, ...]:
    return tuple(orders[channels - 1].split()) if 1 <= channels <= len(orders) else ()


def _by_mask(mask: int, channels: int) -> tuple[str, ...]:
    """Return the speakers of the lowest bits of a mask; none if there are too few."""
    found = tuple(name for bit, name in enumerate(_OF_MASK) if mask >> bit & 1)
    return found[:channels] if len(found) >= channels else ()


def _of_wave(fmt: bytes) -> tuple[str, ...]:
    if len(fmt) < 24:
        return ()
    tag, channels = struct.unpack_from("<HH", fmt)
    (mask,) = struct.unpack_from("<I", fmt, 20)
    return _by_mask(mask, channels) if tag == _EXTENSIBLE else ()


def _of_flac(file: BinaryIO, begin: int, head: bytes) -> tuple[str, ...]:
    if len(head) < 42:
        return ()
    channels = (head[20] >> 1 & 7) + 1
    at = begin + 4
    for _ in range(_METADATA_MAX):
        file.seek(at)
        block = file.read(4)
        n_bytes = int.from_bytes(block[1:], "big")
        if len(block) == 4 and block[0] & 0x7F == _COMMENT_BLOCK:
            comments = file.read(min(n_bytes, _COMMENT_BYTES_MAX))
            if found := _MASK_COMMENT.search(comments):
                return _by_mask(int(found[1], 16), channels)
        if len(block) < 4 or block[0] & 0x80:
            break
        at += 4 + n_bytes
    return _by_number(_OF_FLAC, channels)


def _of_ogg(head: bytes) -> tuple[str, ...]:
    packet = head[27 + head[26] :] if len(head) > 26 else b""
    if packet.startswith(b"\x01vorbis") and len(packet) > 11:
        return _by_number(_OF_VORBIS, packet[11])
    if packet.startswith(b"OpusHead") and len(packet) > 18 and packet[18] in _VORBIS_ORDERED:
        return _by_number(_OF_VORBIS, packet[9])
    return ()
