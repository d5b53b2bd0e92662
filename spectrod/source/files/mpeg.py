"""Lengths of MPEG audio streams (MP3, MP2, MP1), whose headers need not state them.

References
----------
.. [1] ISO/IEC 11172-3 and 13818-3, section 2.4.1.3: the frame header.
"""

from array import array
from dataclasses import dataclass
from functools import lru_cache
from typing import BinaryIO, NamedTuple

FRAMES_MAX = 1 << 24
"""Maximum of frames that are counted: 121 h at 44.1 kHz, 4 s of processor time."""
FRAME_BYTES_MAX = 2881
"""Longest frame: layer II, 384 kbit/s at 32 kHz in MPEG-1 has 1728; layer III of MPEG-2.5, 2880."""
_SEARCH_BYTES = 1 << 16
"""The first frame is searched in this number of bytes."""
_TAG_BYTES_MAX = 1 << 28
"""Length of all tags in front: ID3v2 has at most this."""
_READ_BYTES = 1 << 20
_PADDING_MAX_BYTES = 16 << 20
"""Zeros after the last frame that are padding; more are not looked through [bytes]."""
_TAGS_AT_END = (b"TAG", b"APETAGEX", b"LYRICSBEGIN", b"ID3", b"3DI")

_RATES_HZ = (44100, 48000, 32000)
_KBITS = {
    (1, 1): (32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448),
    (1, 2): (32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    (1, 3): (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    (2, 1): (32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256),
    (2, 2): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
    (2, 3): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
"""Bit rates [kbit/s] of the codes 1 to 14, by version (2: also 2.5) and layer."""


class MpegHeader(NamedTuple):
    """The parts of a frame header that give its length."""

    version: int
    """1, or 2 for MPEG-2 and 2.5."""
    layer: int
    fs: int
    is_mono: bool
    n_bytes: int
    """Length of the frame, header included."""

    @property
    def n_samples(self) -> int:
        """Samples per channel of a frame."""
        if self.layer == 1:
            return 384
        return 576 if self.layer == 3 and self.version == 2 else 1152


def read_header(data: bytes, at: int = 0) -> MpegHeader | None:
    """Read a frame header; None if there is none, or its bit rate is free."""
    if len(data) < at + 4 or data[at] != 0xFF or data[at + 1] < 0xE0:
        return None
    version_code, layer = data[at + 1] >> 3 & 3, 4 - (data[at + 1] >> 1 & 3)
    rate_code, kbit_code = data[at + 2] >> 2 & 3, data[at + 2] >> 4
    if version_code == 1 or layer == 4 or rate_code == 3 or kbit_code in (0, 15):
        return None
    version = 1 if version_code == 3 else 2
    fs = _RATES_HZ[rate_code] // {3: 1, 2: 2, 0: 4}[version_code]
    header = MpegHeader(version, layer, fs, is_mono=data[at + 3] >> 6 == 3, n_bytes=0)
    padding = data[at + 2] >> 1 & 1
    bits = 1000 * _KBITS[version, layer][kbit_code - 1]
    slot_bytes = 4 if layer == 1 else 1
    slots = header.n_samples // 8 * bits // (slot_bytes * fs) + padding
    return header._replace(n_bytes=slots * slot_bytes)


@dataclass(frozen=True, slots=True)
class MpegStream:
    """An MPEG audio stream in a file.

    Attributes
    ----------
    begin, end : int
        Its tags and whole frames in the file [bytes]; only the frames if other bytes precede them.
    n_samples : int
        Samples per channel; 0 if its first frame states their number.
    longest_bytes : int
        What the stream would take if each frame were as long as the first: from this decoders
        estimate its length.
    damage : str
        What is wrong with the bytes after ``end``; "" if they are tags, or nothing.
    """

    begin: int
    end: int
    n_samples: int
    longest_bytes: int
    damage: str


def find_mpeg(file: BinaryIO, begin: int, end: int) -> MpegStream | None:
    """Find the frames of an MPEG audio stream.

    Parameters
    ----------
    file : BinaryIO
        An open file.
    begin, end : int
        The part of it in which the stream is [bytes].

    Returns
    -------
    stream : MpegStream or None
        None if no two frames follow each other, or there are more than ``FRAMES_MAX``.

    Raises
    ------
    OSError
        If the file cannot be read.
    """
    start = after_tags(file, begin, end)
    at, first = _first_frame(file, start, end)
    if first is None:
        return None
    if at != start:
        begin = at
    n_frames, last = _count(file, at, end, first)
    n_samples = n_frames * first.n_samples
    if _states_length(_read_at(file, at, first.n_bytes), first):
        damage = "" if n_frames > FRAMES_MAX else _damage(file, last, end, n_samples)
        return MpegStream(begin, last if damage else end, 0, 0, damage)
    if n_frames > FRAMES_MAX:
        return None
    longest = at - begin + (n_frames + 4) * (first.n_bytes + 4)
    return MpegStream(begin, last, n_samples, longest, _damage(file, last, end, n_samples))


def _read_at(file: BinaryIO, at: int, n: int) -> bytes:
    file.seek(at)
    return file.read(n)


def after_tags(file: BinaryIO, begin: int, end: int) -> int:
    """Return the end of the ID3v2 tags at a place."""
    while len(head := _read_at(file, begin, 10)) == 10 and head[:3] == b"ID3":
        size = 0
        for byte in head[6:]:
            size = size << 7 | byte & 0x7F
        after = begin + 10 + size + (10 if head[5] & 0x10 else 0)
        if after > min(end, _TAG_BYTES_MAX):
            break
        begin = after
    return begin


def _first_frame(file: BinaryIO, begin: int, end: int) -> tuple[int, MpegHeader | None]:
    """Find the first frame that another one, or the end, follows."""
    data = _read_at(file, begin, min(end - begin, _SEARCH_BYTES + FRAME_BYTES_MAX + 4))
    at = -1
    while 0 <= (at := data.find(b"\xff", at + 1)) < _SEARCH_BYTES:
        header = read_header(data, at)
        if header is None:
            continue
        after = at + header.n_bytes
        following = read_header(data, after)
        is_last = begin + after == end and at == 0
        if is_last or (following and following[:4] == header[:4]):
            return begin + at, header
    return begin, None


def _states_length(frame: bytes, header: MpegHeader) -> bool:
    """Return whether the first frame has no sound, but states how many frames follow."""
    if header.layer != 3:
        return False
    long, short = (17, 32) if header.version == 1 else (9, 17)
    at = 4 + (long if header.is_mono else short)
    if frame[at : at + 4] in (b"Xing", b"Info"):
        return (
            bool(frame[at + 7 : at + 8]) and frame[at + 7] & 1 == 1 and any(frame[at + 8 : at + 12])
        )
    return frame[36:40] == b"VBRI"


@lru_cache(maxsize=16)
def _lengths(first: MpegHeader) -> array:  # type: ignore[type-arg]
    """Return the frame length by the second and third byte of a header of the same stream, or 0."""
    lengths = array("H", bytes(2 << 16))
    mode = 0xC0 if first.is_mono else 0
    for code in range(0xE000, 1 << 16):
        header = read_header(bytes((0xFF, code >> 8, code & 0xFF, mode)))
        if header and header[:4] == first[:4]:
            lengths[code] = header.n_bytes
    return lengths


def _count(file: BinaryIO, begin: int, end: int, first: MpegHeader) -> tuple[int, int]:
    """Count the frames that follow each other; return their number and end.

    At most one frame more than ``FRAMES_MAX`` is counted.
    """
    lengths, is_mono = _lengths(first._replace(n_bytes=0)), first.is_mono
    n_frames = 0
    place = begin
    while n_frames <= FRAMES_MAX:
        data = _read_at(file, place, min(_READ_BYTES, end - place))
        at, stop = 0, len(data) - 3
        while at < stop and data[at] == 0xFF:
            n = lengths[data[at + 1] << 8 | data[at + 2]]
            if not n or (data[at + 3] >> 6 == 3) != is_mono or place + at + n > end:
                break
            at += n
            n_frames += 1
        if at == 0 or at < stop:  # neither a frame nor one that goes beyond what was read
            return n_frames, place + at
        place += at
    return n_frames, place


def _damage(file: BinaryIO, last: int, end: int, n_samples: int) -> str:
    """Describe what follows the last whole frame; "" for tags, padding or nothing."""
    at, padding_end = last, min(end, last + _PADDING_MAX_BYTES)
    while (rest := _read_at(file, at, min(padding_end - at, _READ_BYTES))) and not rest.strip(
        b"\0"
    ):
        at += len(rest)
    if padding_end < end and not rest:
        return f"damaged: no frame follows its first {n_samples} samples, but {end - last} bytes do"
    if not rest or rest.lstrip(b"\0").startswith(_TAGS_AT_END):
        return ""
    header = read_header(rest)
    if at == last and header and header.n_bytes > end - last:
        return f"truncated: its last frame has {end - last} of {header.n_bytes} bytes"
    return f"damaged: no frame follows its first {n_samples} samples, but {end - last} bytes do"
