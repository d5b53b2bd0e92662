"""Finds the coded streams in a file whose headers do not tell decoders all that they need."""

from dataclasses import dataclass
from typing import BinaryIO, cast

from spectrod.source.files.flac_length import find_flac
from spectrod.source.files.foreign import HEAD_BYTES
from spectrod.source.files.mpeg import after_tags, find_mpeg
from spectrod.source.files.ogg import ends_whole, find_ogg
from spectrod.source.files.spliced import Spliced
from spectrod.source.opening import length_of
from spectrod.source.store.urls import is_url

_MPEG_NAMES = (".mp3", ".mp2", ".mpa")


@dataclass(frozen=True, slots=True)
class CodedStream:
    """What decoders read in place of a file.

    Attributes
    ----------
    links : tuple of BinaryIO
        Streams that follow each other, each a file of its own.
    ends : tuple of int
        Samples per channel up to the end of each; 0 if the decoder knows.
    damage : str
        What is wrong with what follows; "" if nothing.
    is_sought : bool
        Whether a decoder finds a sample by its number.
    """

    links: tuple[BinaryIO, ...]
    ends: tuple[int, ...]
    damage: str
    is_sought: bool = False


def read_head(file: BinaryIO) -> bytes:
    """Read the first bytes of a file, after tags of ID3v2."""
    file.seek(after_tags(file, 0, length_of(file)))
    return file.read(HEAD_BYTES)


def find_coded(path: str, file: BinaryIO) -> CodedStream | None:
    """Find coded streams that decoders must be helped with.

    Parameters
    ----------
    path : str
        Its name: that of a capture of MP3 tells what it is where it begins within a frame.
    file : BinaryIO
        The open file, which must stay open while the streams are read.

    Returns
    -------
    stream : CodedStream or None
        None for all other files.

    Raises
    ------
    OSError
        If the file cannot be read.
    """
    file.seek(0)
    head = file.read(4)
    if head[:3] == b"ID3":
        return _find_flac(file) or coded_mpeg(file, 0, length_of(file))
    is_mpeg = head[:1] == b"\xff" and head[1:2] >= b"\xe0"
    if is_mpeg or path.lower().endswith(_MPEG_NAMES):
        return coded_mpeg(file, 0, length_of(file))
    # A file of a store would be transferred twice.
    if head == b"fLaC":
        return _find_flac(file)
    if head == b"OggS" and not (is_url(path) and ends_whole(file, length_of(file))):
        return _find_ogg(file)
    return None


def coded_mpeg(file: BinaryIO, begin: int, end: int) -> CodedStream | None:
    """Find a stream of MPEG audio in a part of a file; see ``find_mpeg``."""
    stream = find_mpeg(file, begin, end)
    if stream is None:
        return None
    # Decoders estimate the length by the first frame, and stop there.
    padding = max(0, stream.longest_bytes - (stream.end - stream.begin))
    frames = Spliced(file, stream.begin, stream.end, padding=padding)
    return CodedStream((cast("BinaryIO", frames),), (stream.n_samples,), stream.damage)


def _find_ogg(file: BinaryIO) -> CodedStream | None:
    found = find_ogg(file, length_of(file))
    if not found.links:
        return None
    links = tuple(cast("BinaryIO", Spliced(file, begin, end)) for begin, end in found.links)
    return CodedStream(links, (0,) * len(links), found.damage)


def _find_flac(file: BinaryIO) -> CodedStream | None:
    stream = find_flac(file, length_of(file))
    if stream is None:
        return None
    frames = Spliced(file, stream.begin, stream.end, stream.head)
    is_sought = stream.first_sample == 0
    return CodedStream((cast("BinaryIO", frames),), (stream.n_samples,), stream.damage, is_sought)
