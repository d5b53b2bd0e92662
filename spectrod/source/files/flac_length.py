"""Lengths of FLAC files whose header does not state them, or states that of other files as well.

FFmpeg's segments and what programs write to pipes have a header of unknown length. The frames of a
segment count from the beginning of the first one, and the header of the last one states the length
of all.

References
----------
.. [1] RFC 9639, section 8: metadata blocks; 8.2: STREAMINFO.
"""

from dataclasses import dataclass
from typing import BinaryIO

from spectrod.formats.sound.flac_frames import HEAD_BYTES_MAX, FrameForm, last_whole, read_head
from spectrod.source.files.mpeg import after_tags

TAIL_BYTES_MAX = 1 << 24
"""The last whole frame is searched in this number of bytes, by windows of up to 1 MiB."""
_WINDOW_FRAMES, _WINDOW_BYTES_MAX = 8, 1 << 20
_METADATA_MAX = 128
"""Maximum of metadata blocks, of up to 16 MiB each."""
_FRAME_BYTES_MIN = 10
"""Length of a frame header, a constant subframe, and the checksum."""
_TOTAL_MAX = (1 << 36) - 1
_SUMS_AT, _HEAD_BYTES = 18, 42
"""Position of rate, channels, bits and length in the header, and the end of STREAMINFO."""


@dataclass(frozen=True, slots=True)
class FlacStream:
    """Frames of a FLAC file, and a header that states their number.

    Attributes
    ----------
    head : bytes
        The header up to ``begin``, corrected.
    begin, end : int
        What follows it: metadata and whole frames [bytes].
    first_sample : int
        Number of the first sample, by the first frame's header.
    n_samples : int
        Samples per channel.
    damage : str
        What is wrong with what follows ``end``; "" if nothing.
    """

    head: bytes
    begin: int
    end: int
    first_sample: int
    n_samples: int
    damage: str


def find_flac(file: BinaryIO, end: int) -> FlacStream | None:
    """Count the samples of a FLAC file whose header does not state their number.

    Parameters
    ----------
    file : BinaryIO
        An open file.
    end : int
        Its length [bytes].

    Returns
    -------
    stream : FlacStream or None
        None for other files, and if no whole frame is found.

    Raises
    ------
    OSError
        If the file cannot be read.
    """
    begin = after_tags(file, 0, end)
    file.seek(begin)
    head = file.read(_HEAD_BYTES)
    frames_at = _frames_at(file, begin)
    if len(head) < _HEAD_BYTES or head[:4] != b"fLaC" or head[4] & 0x7F or not frames_at:
        return None
    sums = int.from_bytes(head[_SUMS_AT : _SUMS_AT + 8], "big")
    file.seek(frames_at)
    first_head = file.read(HEAD_BYTES_MAX + 1)
    form = _form(head, sums, first_head)
    first = read_head(first_head, 0, form) if form.fs and form.block_samples else None
    if first is None or (sums & _TOTAL_MAX and not first[0]):
        return None
    is_tagged = _is_tag(file, end)
    frames_end, last_sample = _last_frame(file, frames_at, end - 128 * is_tagged, form)
    n_samples = last_sample - first[0]
    n_frames_max = (frames_end - frames_at) // _FRAME_BYTES_MIN
    if not 0 < n_samples <= min(_TOTAL_MAX, n_frames_max * form.block_samples):
        return None
    n_left = end - 128 * is_tagged - frames_end
    damage = f"truncated: its last {n_left} bytes are no whole frame" if n_left else ""
    sums = sums & ~_TOTAL_MAX | n_samples
    head = head[:_SUMS_AT] + sums.to_bytes(8, "big") + bytes(16)
    return FlacStream(head, begin + _HEAD_BYTES, frames_end, first[0], n_samples, damage)


def _frames_at(file: BinaryIO, begin: int) -> int:
    """Return where the metadata end; 0 if they do not."""
    at = begin + 4
    for _ in range(_METADATA_MAX):
        file.seek(at)
        head = file.read(4)
        if len(head) < 4:
            return 0
        at += 4 + int.from_bytes(head[1:], "big")
        if head[0] & 0x80:
            return at
    return 0


def _form(head: bytes, sums: int, first_head: bytes) -> FrameForm:
    is_variable = first_head[1:2] == b"\xf9"
    shortest, longest = (int.from_bytes(head[at : at + 2], "big") for at in (8, 10))
    return FrameForm(
        block_samples=longest if is_variable else shortest,
        fs=sums >> 44,
        channels=(sums >> 41 & 7) + 1,
        bits=(sums >> 36 & 31) + 1,
        is_variable=is_variable,
    )


def _is_tag(file: BinaryIO, end: int) -> bool:
    """Return whether a file ends with a tag of ID3v1."""
    file.seek(max(0, end - 128))
    return file.read(3) == b"TAG"


def _last_frame(file: BinaryIO, begin: int, end: int, form: FrameForm) -> tuple[int, int]:
    """Return the end of the last whole frame, and its last sample's number plus 1; 0, 0 if none."""
    window = min(_WINDOW_FRAMES * form.block_bytes_max, _WINDOW_BYTES_MAX)
    stop = max(begin, end - TAIL_BYTES_MAX)
    at = end
    while at > stop:
        # A frame that the border of two windows cuts is whole in the earlier one.
        after = min(end, at + form.block_bytes_max)
        at = max(stop, at - window)
        file.seek(at)
        found, last_sample = last_whole(file.read(after - at), form)
        if found:
            return at + found, last_sample
    return 0, 0
