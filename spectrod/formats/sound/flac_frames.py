"""Frames of a FLAC stream, which its decoder finds in order: here they are found from its end.

References
----------
.. [1] RFC 9639, section 9.1: the frame header; section 9.3: the frame's checksum.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_HEADS_MAX = 1 << 15
"""Limit of candidates for a frame header; a tail of silence has at most 26 000."""
_SYNC = b"\xff\xf8"
"""Start of blocks of equal length, as libFLAC and FFmpeg write them; else the last bit is set."""
HEAD_BYTES_MAX = 16
"""Longest frame header."""
_CRC8, _CRC16 = 0x07, 0x8005
_BITS_CODES = {8: 1, 12: 2, 16: 4, 20: 5, 24: 6, 32: 7}
_RATE_CODES = (88200, 176400, 192000, 8000, 16000, 22050, 24000, 32000, 44100, 48000, 96000)
"""Sample rates of the codes 1 to 11 [Hz]."""


@dataclass(frozen=True, slots=True)
class FrameForm:
    """Parameters of all blocks, from the metadata block STREAMINFO.

    Attributes
    ----------
    block_samples : int
        Samples per channel of each block except the last; if they vary, of the longest one.
    fs, channels, bits : int
        Sample rate [Hz], number of channels, and bits per sample.
    is_variable : bool
        Whether the lengths of blocks vary; headers then have the number of the first sample instead
        of the block's.
    """

    block_samples: int
    fs: int
    channels: int
    bits: int
    is_variable: bool = False

    @property
    def block_bytes_max(self) -> int:
        """Limit of a block's length: incompressible samples are stored verbatim."""
        return self.block_samples * self.channels * (self.bits + 1) // 8 + 64

    def has_form(self, code: int) -> bool:
        """Return whether the fourth byte of a frame header has these channels and bits."""
        assignment, bits_code = code >> 4, code >> 1 & 7
        is_stereo = self.channels == 2 and assignment in (8, 9, 10)
        return (assignment == self.channels - 1 or is_stereo) and bits_code in (
            0,
            _BITS_CODES.get(self.bits),
        )

    def has_rate(self, code: int, stated: int) -> bool:
        """Return whether a frame header's rate code, and the number after it, give this rate."""
        if code == 0:
            return True
        if code <= len(_RATE_CODES):
            return self.fs == _RATE_CODES[code - 1]
        return self.fs == stated * {12: 1000, 13: 1, 14: 10}[code]


def last_whole(tail: bytes, stream: FrameForm) -> tuple[int, int]:
    """Return the end of the last complete block and the number of samples up to it.

    Returns 0, 0 if there is none. A block is complete if its own checksum and that of its header
    are correct. Time and memory are proportional to the tail's length, for any content.
    """
    heads = _heads(tail, stream)
    sums = _aligned_crc16(tail)
    newest_start: dict[int, int] = {}
    begin = end = 0
    for at in (*heads, *_other_ends(tail, max(heads, default=0), stream)):
        candidate = newest_start.get(int(sums[at]), at)
        # Zeros after a whole block change no checksum: its first end counts.
        if 0 < at - candidate <= stream.block_bytes_max and (candidate > begin or not end):
            begin, end = candidate, at
        if at in heads:
            newest_start[int(sums[at])] = at
    if not end:
        return 0, 0
    return end, sum(heads[begin])


def _other_ends(tail: bytes, last_head: int, stream: FrameForm) -> list[int]:
    """Return where the last block may end: at the end, at a header that it cuts, before zeros."""
    start = bytes((_SYNC[0], _SYNC[1] | stream.is_variable))
    near_end = range(max(0, len(tail) - HEAD_BYTES_MAX), len(tail))
    ends = {at for at in near_end if tail[at : at + 2] == start[: len(tail) - at]}
    n_before_zeros = len(tail.rstrip(b"\0"))
    ends |= {n_before_zeros + n for n in range(3)}  # the checksum may end with zeros
    ends.add(len(tail))
    return sorted(at for at in ends if last_head < at <= len(tail))


def _heads(tail: bytes, stream: FrameForm) -> dict[int, tuple[int, int]]:
    """Return the first sample and the number of samples of the intact frames, by ascending offset.

    Only the last ``_HEADS_MAX`` candidates are checked.
    """
    octets = np.frombuffer(tail, np.uint8)
    is_head = (octets[:-3] == _SYNC[0]) & (octets[1:-2] == _SYNC[1] | stream.is_variable)
    # Exclude forbidden or reserved values: block size 0, rate 15, the last bit.
    is_head &= (octets[2:-1] >= 16) & (octets[2:-1] & 15 < 15) & (octets[3:] & 1 == 0)
    places = np.flatnonzero(is_head)[-_HEADS_MAX:].tolist()
    found = ((at, read_head(tail, at, stream)) for at in places)
    return {at: head for at, head in found if head}


def _aligned_crc16(data: bytes) -> NDArray[np.uint16]:
    """Compute the CRC-16 of every prefix, shifted so that equal values enclose complete blocks.

    With R(i) the CRC of the first i bytes, which is a polynomial over GF(2) modulo P, the bytes
    from a to b, including their checksum, are intact if R(b) = R(a) x^(8 (b - a)). P has a constant
    term, so x has an inverse, and the condition is S(a) = S(b) with S(i) = R(i) x^(-8 i). Byte i
    adds its value times x^(16 - 8 (i + 1)) to S.

    Parameters
    ----------
    data : bytes
        Data of length n.

    Returns
    -------
    sums : (n + 1,) uint16
        S of each prefix, starting with the empty one.
    """
    powers, octets = _powers_of_x(), np.frombuffer(data, np.uint8)
    exponents = (8 - 8 * np.arange(len(data), dtype=np.int64)) % len(powers)
    terms = np.zeros(len(data) + 1, np.uint16)
    for bit in range(8):
        is_set = (octets >> bit & 1).astype(bool)
        terms[1:][is_set] ^= powers[(exponents[is_set] + bit) % len(powers)]
    return np.bitwise_xor.accumulate(terms)


@lru_cache
def _powers_of_x() -> NDArray[np.uint16]:
    """Return x^0, x^1, ... modulo the CRC-16's polynomial until they repeat: 32767 powers."""
    powers: list[int] = []
    value = 1
    while value != 1 or not powers:
        powers.append(value)
        value = value << 1 ^ (_CRC16 | 0x10000 if value & 0x8000 else 0)
    return np.array(powers, np.uint16)


def read_head(data: bytes, at: int, stream: FrameForm) -> tuple[int, int] | None:
    """Read a block's first sample and its number of samples; None if there is no header here."""
    if len(data) < at + 5 or not stream.has_form(data[at + 3]):
        return None
    size_code, rate_code = data[at + 2] >> 4, data[at + 2] & 15
    end, number = _read_number(data, at + 4)
    n_samples = stream.block_samples
    if size_code in (6, 7):
        size_end = end + size_code - 5
        n_samples = int.from_bytes(data[end:size_end], "big") + 1
        end = size_end
    rate_end = end + {12: 1, 13: 2, 14: 2}.get(rate_code, 0)
    stated_rate = int.from_bytes(data[end:rate_end], "big")
    if number < 0 or rate_end >= len(data) or not stream.has_rate(rate_code, stated_rate):
        return None
    if _crc8(data[at:rate_end]) != data[rate_end]:
        return None
    return number if stream.is_variable else number * stream.block_samples, n_samples


def _read_number(data: bytes, at: int) -> tuple[int, int]:
    """Read a number in UTF-8 extended to 36 bits; return its end, and -1 if it is not valid."""
    first = data[at]
    n_ones = 8 - (first ^ 0xFF).bit_length()
    if n_ones == 0:
        return at + 1, first
    rest = data[at + 1 : at + n_ones]
    if n_ones == 1 or n_ones > 7 or any(byte >> 6 != 2 for byte in rest):
        return at + 1, -1
    number = first & (0x7F >> n_ones)
    for byte in rest:
        number = number << 6 | byte & 0x3F
    return at + n_ones, number


def _crc8(data: bytes) -> int:
    table, crc = _crc8_table(), 0
    for byte in data:
        crc = table[crc ^ byte]
    return crc


@lru_cache
def _crc8_table() -> bytes:
    def divided(value: int) -> int:
        for _ in range(8):
            value = value << 1 ^ (_CRC8 if value & 0x80 else 0)
        return value & 0xFF

    return bytes(divided(byte) for byte in range(256))
