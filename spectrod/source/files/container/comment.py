"""The comment that a sound file has in a chunk."""

import struct

from spectrod.source.files.container.container_chunks import CAF, RIFF, RIFX, Bytes, walk

_CONTENT_MAX = 1 << 20
"""Longest chunk of texts that is read [bytes]."""
_CHUNKS_BEGIN = 12
_CAF_CHUNKS_BEGIN = 8
_CAF_KEYS = (b"comment", b"comments")


def comment_of(source: Bytes) -> str:
    """Return the comment of a WAV, RF64, BW64, AIFF or CAF file; "" if it has none.

    Parameters
    ----------
    source : Bytes
        The bytes of any file.

    Returns
    -------
    comment : str
        ``ICMT`` of a WAV file's first list of texts, ``ANNO`` of an AIFF file, ``comment`` or
        ``comments`` of a CAF file. What is not UTF-8 is replaced.
    """
    head = source.at(0, _CHUNKS_BEGIN)
    if head[8:12] == b"WAVE":
        return _text(_in_list(_content(source, b"LIST", is_big=head[:4] == b"RIFX")))
    if head[:4] == b"FORM":
        return _text(_content(source, b"ANNO", is_big=True))
    if head[:4] == b"caff":
        return _text(_in_pairs(_content_of_caf(source)))
    return ""


def _text(content: bytes) -> str:
    return content.partition(b"\0")[0].decode("utf-8", "replace")


def _content(source: Bytes, name: bytes, *, is_big: bool) -> bytes:
    """Return the first chunk of a name that is complete; of lists, the first one of texts."""
    for chunk in walk(source, RIFX if is_big else RIFF, _CHUNKS_BEGIN):
        if chunk.name == name and chunk.size <= _CONTENT_MAX:
            is_other_list = name == b"LIST" and source.at(chunk.begin, 4) != b"INFO"
            content = b"" if is_other_list else source.at(chunk.begin, chunk.size)
            if len(content) == chunk.size and not is_other_list:
                return content
    return b""


def _content_of_caf(source: Bytes) -> bytes:
    for chunk in walk(source, CAF, _CAF_CHUNKS_BEGIN):
        if chunk.name == b"info" and chunk.size <= _CONTENT_MAX:
            return source.at(chunk.begin, chunk.size)
    return b""


def _in_list(content: bytes) -> bytes:
    """Return the comment in a list of texts; each size may be anything."""
    place = 4
    while place + 8 <= len(content):
        name, size = struct.unpack_from("<4sI", content, place)
        if name == b"ICMT":
            return content[place + 8 : place + 8 + size]
        place += 8 + size + size % 2
    return b""


def _in_pairs(content: bytes) -> bytes:
    """Return the comment among the NUL-terminated keys and values behind their number."""
    texts = content[4:].split(b"\0")
    pairs = zip(texts[::2], texts[1::2], strict=False)
    return next((value for key, value in pairs if key in _CAF_KEYS), b"")
