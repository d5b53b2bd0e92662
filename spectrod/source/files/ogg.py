"""The pages of an Ogg file: where its streams begin and end, and the first one that is damaged.

References
----------
.. [1] RFC 3533, section 6: the page header; its checksum is a CRC-32 of the polynomial 0x04C11DB7,
   not reflected, from 0 on.
"""

import struct
import zlib
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

LINKS_MAX = 1024
"""Maximum of streams that follow each other in a file: a radio's are songs."""
_STREAMS_MAX = 64
"""Maximum of streams of a link whose page numbers are checked."""
_PAGE_BYTES_MAX = 27 + 255 + 255 * 255
_READ_BYTES = 1 << 20
_HEAD_BYTES_MAX = 27 + 255
_CRC_AT = 22
_BEGINS = 2
"""Flag of the first page of a stream."""
_TAGS_AT_END = (b"TAG", b"ID3", b"APETAGEX")
_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


class _Page(NamedTuple):
    """A page header.

    Attributes
    ----------
    flags : int
        Among them ``_BEGINS``.
    position : int
        Samples up to the end of the page, 0 for headers, -1 where no packet ends.
    stream, number : int
        The stream and the page's number in it.
    n_bytes : int
        Length of the page, header included; more than the data if they end before.
    """

    flags: int
    position: int
    stream: int
    number: int
    n_bytes: int


@dataclass(frozen=True, slots=True)
class OggFile:
    """The streams of an Ogg file.

    Attributes
    ----------
    links : tuple of (int, int)
        Where each one begins and ends [bytes]. Streams that begin together are one link.
    damage : str
        What is wrong with what follows the last one; "" if nothing.
    """

    links: tuple[tuple[int, int], ...]
    damage: str


def find_ogg(file: BinaryIO, end: int) -> OggFile:
    """Check all pages of an Ogg file, up to the first one that is damaged.

    Parameters
    ----------
    file : BinaryIO
        An open file.
    end : int
        Its length [bytes].

    Raises
    ------
    OSError
        If the file cannot be read.
    """
    walk = _Walk(file, end)
    while walk.at < end and not walk.damage:
        walk.take_page()
    is_tag = walk.damage and _is_tag(walk.bytes_at(walk.at, _PAGE_BYTES_MAX))
    ends = [*walk.begins[1:], walk.at]
    links = tuple((b, e) for b, e in zip(walk.begins, ends, strict=True) if b < e)
    return OggFile(links, "" if is_tag else walk.damage)


def ends_whole(file: BinaryIO, end: int) -> bool:
    """Return whether an Ogg file ends with a whole page of its first stream.

    Parameters and errors are those of ``find_ogg``, but only both ends of the file are read.
    """
    file.seek(0)
    first = _read_page(memoryview(file.read(_HEAD_BYTES_MAX)))
    file.seek(max(0, end - _PAGE_BYTES_MAX))
    tail = memoryview(file.read(_PAGE_BYTES_MAX))
    last = tail[bytes(tail).rfind(b"OggS\0") :]
    page = _read_page(last)
    return (
        first is not None
        and page is not None
        and page.stream == first.stream
        and page.n_bytes == len(last)
        and _is_intact(last)
    )


class _Walk:
    """Goes from page to page.

    Attributes
    ----------
    at : int
        End of the last page that is whole [bytes].
    begins : list of int
        Where the links begin [bytes].
    damage : str
        What is wrong with the next page.
    """

    def __init__(self, file: BinaryIO, end: int) -> None:
        self._file, self._end = file, end
        self._base, self._data = 0, b""
        self._next_numbers: dict[int, int] = {}
        self._follows_begin = True
        self.at, self.begins, self.damage = 0, [0], ""

    def bytes_at(self, at: int, n: int) -> memoryview:
        """Return bytes of the file, fewer at its end."""
        if at + n > self._base + len(self._data) < self._end:
            self._file.seek(at)
            self._base, self._data = at, self._file.read(_READ_BYTES)
        return memoryview(self._data)[at - self._base : at - self._base + n]

    def take_page(self) -> None:
        """Check the next page, and go to its end; or set ``damage``."""
        data = self.bytes_at(self.at, _PAGE_BYTES_MAX)
        page = _read_page(data)
        if page is None or page.n_bytes > len(data):
            self.damage = self._reason(page, len(data))
            return
        if not _is_intact(data[: page.n_bytes]):
            self.damage = f"damaged: the page at byte {self.at} has a wrong checksum"
            return
        self._follow(page)
        if not self.damage:
            self.at += page.n_bytes

    def _reason(self, page: _Page | None, n_left: int) -> str:
        if page is not None:
            return f"truncated: its last page has {n_left} of {page.n_bytes} bytes"
        if n_left < _HEAD_BYTES_MAX:
            return f"truncated: its last {n_left} bytes are no whole page"
        return f"damaged: no page begins at byte {self.at}"

    def _follow(self, page: _Page) -> None:
        is_begin = bool(page.flags & _BEGINS)
        if is_begin and not self._follows_begin:
            self._next_numbers.clear()
            self.begins.append(self.at)
        self._follows_begin = is_begin
        expected = self._next_numbers.get(page.stream, page.number)
        if page.number != expected:
            self.damage = f"damaged: pages are missing before byte {self.at}"
        elif len(self.begins) > LINKS_MAX:
            self.damage = f"more than {LINKS_MAX} streams follow each other"
        # A stream may be joined late: pages are missing between its headers and first samples.
        has_room = len(self._next_numbers) < _STREAMS_MAX
        if (page.position > 0 and has_room) or page.stream in self._next_numbers:
            self._next_numbers[page.stream] = page.number + 1 & 0xFFFFFFFF


def _read_page(data: memoryview) -> _Page | None:
    """Read a page header; None if there is none."""
    if bytes(data[:5]) != b"OggS\0" or len(data) < 27 or len(data) < 27 + data[26]:
        return None
    flags, position, stream, number = struct.unpack_from("<BqII", data, 5)
    head_bytes = 27 + data[26]
    return _Page(flags, position, stream, number, head_bytes + sum(data[27:head_bytes]))


def _is_intact(page: memoryview) -> bool:
    """Return whether the checksum of a page is right.

    The CRC of zlib is that of reversed bits, begins with ones and inverts the result.
    """
    checked = bytes(page[:_CRC_AT]) + bytes(4) + bytes(page[_CRC_AT + 4 :])
    crc = zlib.crc32(checked.translate(_REVERSED), 0xFFFFFFFF) ^ 0xFFFFFFFF
    stated = bytes(page[_CRC_AT : _CRC_AT + 4]).translate(_REVERSED)
    return int.from_bytes(stated, "big") == crc


def _is_tag(rest: memoryview) -> bool:
    """Return whether the bytes after the last page are a tag, or the zeros of a last block."""
    return bytes(rest[:8]).startswith(_TAGS_AT_END) or not any(rest)
