"""Finds the coded streams in a file whose headers do not tell decoders all that they need."""

from dataclasses import dataclass
from typing import BinaryIO, cast

from spectrod.source.mpeg import find_mpeg
from spectrod.source.opening import length_of
from spectrod.source.spliced import Spliced

_MPEG_NAMES = (".mp3", ".mp2", ".mpa")


@dataclass(frozen=True, slots=True)
class CodedStream:
    """What a decoder reads in place of a file.

    Attributes
    ----------
    bytes : BinaryIO
        A file of its own.
    n_samples : int
        Samples per channel that it has; 0 if the decoder knows.
    damage : str
        What is wrong with what follows; "" if nothing.
    """

    bytes: BinaryIO
    n_samples: int
    damage: str


def find_coded(path: str, file: BinaryIO) -> CodedStream | None:
    """Find a coded stream that decoders must be helped with.

    Parameters
    ----------
    path : str
        Its name: that of a capture of MP3 tells what it is where it begins within a frame.
    file : BinaryIO
        The open file, which must stay open while the stream is read.

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
    is_mpeg = head[:3] == b"ID3" or (head[:1] == b"\xff" and head[1:2] >= b"\xe0")
    if is_mpeg or path.lower().endswith(_MPEG_NAMES):
        return _find_mpeg(file)
    return None


def _find_mpeg(file: BinaryIO) -> CodedStream | None:
    stream = find_mpeg(file, 0, length_of(file))
    if stream is None:
        return None
    # Decoders estimate the length by the first frame, and stop there.
    padding = max(0, stream.longest_bytes - (stream.end - stream.begin))
    frames = Spliced(file, stream.begin, stream.end, padding=padding)
    return CodedStream(cast("BinaryIO", frames), stream.n_samples, stream.damage)
