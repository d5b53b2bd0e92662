"""Walks through the chunks of sound files: bounded, whatever their sizes claim."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple, Protocol

from spectrod.source.opening import length_of

CHUNKS_MAX = 256
"""Maximum of chunks that are looked at."""

KNOWN = frozenset({
    b"LIST", b"list", b"fact", b"bext", b"guan", b"wamd", b"id3 ", b"ID3 ", b"cue ", b"plst",
    b"smpl", b"inst", b"acid", b"strc", b"PEAK", b"JUNK", b"junk", b"FLLR", b"PAD ", b"Fake",
    b"iXML", b"axml", b"bxml", b"sxml", b"chna", b"ds64", b"link", b"umid", b"cart",
    b"afsp", b"_PMX", b"aXML", b"DISP", b"minf", b"elm1", b"regn", b"DGDA", b"ID3\0", b"MARK",
    b"INST", b"COMT", b"ANNO", b"NAME", b"AUTH", b"(c) ", b"APPL", b"MIDI", b"AESD", b"FVER",
    b"info", b"chan", b"pakt", b"kuki", b"free", b"mark", b"strg", b"peak", b"uuid", b"edct",
    b"ovvw", b"midi", b"umcs", b"SAUR", b"CHAN", b"r64m", b"slnt", b"wavl", b"SNDM", b"LGWV",
    b"bmrk",
})  # fmt: skip
"""Chunks that writers put behind the samples; a file may be cut off within one."""

_SIZE_IN_DS64 = 0xFFFFFFFF
_EXPECTED = KNOWN | {b"data", b"fmt ", b"SSND", b"COMM"}


class Bytes(Protocol):
    """Bytes of a file, or of a stream that only goes forward."""

    @property
    def n_bytes(self) -> int | None:
        """Length; None if only the end of the stream will tell."""

    def at(self, offset: int, n: int) -> bytes:
        """Return n bytes from an offset on, fewer at the end."""


class FileBytes:
    """The bytes of an open file.

    Parameters
    ----------
    file : BinaryIO
        A file that can be read at any place.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.n_bytes = length_of(file)

    def at(self, offset: int, n: int) -> bytes:
        """Return n bytes from an offset on, fewer at the end."""
        if offset >= self.n_bytes or n <= 0:
            return b""
        self._file.seek(offset)
        return read_up_to(self._file, n)


def read_up_to(file: BinaryIO, n: int) -> bytes:
    """Read n bytes, fewer only at the end: an unbuffered file may return fewer."""
    parts = []
    while n > 0 and (part := file.read(n)):
        parts.append(part)
        n -= len(part)
    return b"".join(parts)


@dataclass(frozen=True, slots=True)
class ChunkStyle:
    """How a format writes its chunks.

    Attributes
    ----------
    header : struct.Struct
        Name and size.
    padding : int
        A chunk begins at a multiple of this many bytes after the one before.
    counts_header : bool
        The size includes the header.
    """

    header: struct.Struct
    padding: int = 2
    counts_header: bool = False


RIFF = ChunkStyle(struct.Struct("<4sI"))
RIFX = ChunkStyle(struct.Struct(">4sI"))
CAF = ChunkStyle(struct.Struct(">4sQ"), padding=1)
W64 = ChunkStyle(struct.Struct("<16sQ"), padding=8, counts_header=True)


class ContainerChunk(NamedTuple):
    """A chunk: its name, the offset of its content, and the size that its header states [bytes]."""

    name: bytes
    begin: int
    size: int


def walk(source: Bytes, style: ChunkStyle, at: int) -> Iterator[ContainerChunk]:
    """Yield the chunks from an offset on, as far as each leads to the next.

    At most ``CHUNKS_MAX`` chunks, and none that begins behind the end of the bytes. The size of
    samples that is in ``ds64`` (EBU Tech 3306) is the one of that chunk; a negative size of the
    format CAF is the unsigned number of the same bits.
    """
    size_of_data = _SIZE_IN_DS64
    for _ in range(CHUNKS_MAX):
        header = source.at(at, style.header.size)
        if len(header) < style.header.size:
            return
        name, size = style.header.unpack(header)
        begin = at + len(header)
        if style.counts_header:
            if size < len(header):
                return
            size -= len(header)
        if name == b"ds64":
            size_of_data = int.from_bytes(source.at(begin, 16)[8:], "little")
        elif name == b"data" and size == _SIZE_IN_DS64:
            size = size_of_data
        yield ContainerChunk(name, begin, size)
        if source.n_bytes is not None and begin + size >= source.n_bytes:
            return
        n_pad = -size % style.padding
        if n_pad == 1 and source.at(begin + size, 4) in _EXPECTED:  # the writer left it out
            n_pad = 0
        at = begin + size + n_pad


def is_chain(source: Bytes, style: ChunkStyle, at: int, *, may_be_cut: bool = True) -> bool:
    """Return whether chunks lead from an offset to the end of the file.

    If ``may_be_cut``, the last chunk may be cut off if its name is known. Fewer bytes than a
    header, behind the last chunk, are ignored.
    """
    n_bytes = source.n_bytes
    assert n_bytes is not None
    end = at
    for chunk in walk(source, style, at):
        if not _is_name(chunk.name):
            return False
        end = chunk.begin + chunk.size
        if end > n_bytes:
            return may_be_cut and chunk.name[:4] in KNOWN
    return n_bytes - end < style.header.size + style.padding


def _is_name(name: bytes) -> bool:
    return all(0x20 <= byte < 0x7F for byte in name[:4])
