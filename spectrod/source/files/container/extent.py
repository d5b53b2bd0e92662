"""Decides how many bytes of samples a file has: what its header states may be wrong."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from spectrod.source.files.container.container_chunks import (
    KNOWN,
    ChunkStyle,
    FileBytes,
    is_chain,
    walk,
)

_WRAPS_AT = 1 << 32
_WRAPS_MAX = 1024
"""Maximum of times 4 GiB that a size may have wrapped around."""
_PADDING_MAX = 1 << 20
"""Maximum of zeros behind the samples that are taken for padding [bytes]."""
_TAIL_BYTES = 1 << 16
"""Bytes at the end of a file that are searched for chunks behind samples of unknown number."""
_NAMES_MAX = 16
"""Maximum of names of chunks there that are followed."""
_NAMES = re.compile(b"|".join(re.escape(name) for name in sorted(KNOWN)))
_TAGS = (b"TAG", b"APETAGEX", b"LYRICSBEGIN", b"ID3")
"""Begin of tags that players write behind any file."""

_OPEN_SIZES = (0x7F000000, 0x7FFFF000, 0x7FFFFF00, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
"""Sizes of FFmpeg, SoX, arecord and others that write to a pipe: the length is unknown."""
_OPEN_HEADER_MAX = 128
"""Maximum by which the size of the samples is below such a size of the whole file [bytes]."""


class Stated(NamedTuple):
    """What a header states of the extent of its samples.

    Attributes
    ----------
    begin : int
        Offset of the first sample.
    size : int
        Their size [bytes].
    is_open : bool
        The size means that the length is unknown, unless it happens to be right.
    step_bytes : int
        Bytes of a sample of all channels; 1 for codecs.
    style : ChunkStyle or None
        How chunks follow the samples; None if the format has none.
    is_32_bit : bool
        The size may have wrapped around at 4 GiB.
    """

    begin: int
    size: int
    is_open: bool
    step_bytes: int
    style: ChunkStyle | None
    is_32_bit: bool


class SampleExtent(NamedTuple):
    """How many bytes of samples a file has.

    Attributes
    ----------
    size : int
        Bytes of samples that are read.
    announced : int
        Bytes of samples that there should be.
    damage : str
        What of the file is not as it should be; "" if nothing.
    note : str
        How the header was understood, where it is wrong; "" if it is right.
    """

    size: int
    announced: int
    damage: str = ""
    note: str = ""


def is_open(size: int, step_bytes: int, form_size: int) -> bool:
    """Return whether a size of 32 bits says that the length is unknown.

    Parameters
    ----------
    size : int
        Size of the samples that the header states [bytes].
    step_bytes : int
        Bytes of a sample of all channels: writers round down to it.
    form_size : int
        Size of the whole file that the header states [bytes].
    """
    if any(0 <= mark - size < max(1, step_bytes) for mark in _OPEN_SIZES):
        return True
    is_form_open = form_size in _OPEN_SIZES
    return is_form_open and 0 < form_size - size <= _OPEN_HEADER_MAX


def extent_of(source: FileBytes, stated: Stated) -> SampleExtent:
    """Find the samples of a file.

    A size that the header states counts if the end of the file, chunks, tags or at most 1 MiB of
    zeros follow. If something else follows, 4 GiB are added until one of these does: a writer's
    32-bit counter has wrapped around. If the header leaves the size open, the samples end with the
    file, or where chunks that lead to the end of the file begin in its last 64 KiB. The same holds
    for a size of 0 that samples follow: the writer was killed before it completed the header.
    """
    n_rest = max(0, source.n_bytes - stated.begin)
    fitting = list(_candidates(stated, n_rest))
    found = next((size for size in fitting if may_end(source, stated, size)), None)
    if found is not None:
        return SampleExtent(found, found, note=_wrapped(stated.size, found))
    if stated.is_open or stated.size == 0:
        return _to_the_end(source, stated, n_rest)
    if not fitting:
        damage = f"truncated: {stated.size} bytes announced, {n_rest} found"
        return SampleExtent(n_rest, stated.size, damage)
    n_more = n_rest - fitting[-1]
    damage = f"{fitting[-1]} bytes of samples announced, but {n_more} more bytes follow them"
    return SampleExtent(fitting[-1], fitting[-1], damage, _wrapped(stated.size, fitting[-1]))


def _to_the_end(source: FileBytes, stated: Stated, n_rest: int) -> SampleExtent:
    size = n_rest - _appended(source, stated)
    if stated.is_open:
        return SampleExtent(size, size)
    damage = f"its header was never completed: no samples announced, {size} bytes found"
    return SampleExtent(size, size, damage)


def _wrapped(size: int, found: int) -> str:
    if found == size:
        return ""
    return f"its header states {size} bytes of samples, the file has {found}: 4 GiB wrapped around"


def _candidates(stated: Stated, n_rest: int) -> Iterator[int]:
    """Yield the sizes of samples that the stated size may mean and the file has room for."""
    if stated.size > n_rest:
        return
    yield stated.size
    if stated.is_32_bit:
        last = min(n_rest, stated.size + _WRAPS_MAX * _WRAPS_AT)
        yield from range(stated.size + _WRAPS_AT, last + 1, _WRAPS_AT)


def may_end(source: FileBytes, stated: Stated, size: int) -> bool:
    """Return whether what follows so many bytes of samples is something else."""
    end = stated.begin + size
    n_more = source.n_bytes - end
    if n_more < 8:
        return n_more >= 0 and (size > 0 or n_more < stated.step_bytes)
    # Many writers pad a byte whatever the format says, others do not where it says so.
    n_pad = -size % (stated.style.padding if stated.style else 1)
    starts = {end, end + n_pad, end + size % 2}
    if any(source.at(start, 16).startswith(_TAGS) for start in starts):
        return True
    if stated.style is not None:
        for start in starts:
            if is_chain(source, stated.style, start):
                return not _has_samples(source, stated.style, start)
    return size > 0 and n_more <= _PADDING_MAX and not any(source.at(end, n_more))


def _has_samples(source: FileBytes, style: ChunkStyle, at: int) -> bool:
    """Return whether more samples are among the chunks from an offset on."""
    return any(chunk.name[:4] in (b"data", b"SSND") for chunk in walk(source, style, at))


def _appended(source: FileBytes, stated: Stated) -> int:
    """Count the bytes of chunks that lead to the end of the file, behind the samples."""
    if stated.style is None:
        return 0
    first = max(stated.begin, source.n_bytes - _TAIL_BYTES)
    tail = source.at(first, _TAIL_BYTES)
    for match in islice(_NAMES.finditer(tail), _NAMES_MAX):
        at = first + match.start()
        if is_chain(source, stated.style, at, may_be_cut=False):
            return source.n_bytes - at
    return 0
