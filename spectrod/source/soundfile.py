"""Sound files: everything that libsndfile reads."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, get_args

import numpy as np
import soundfile

from spectrod.config import Pace
from spectrod.errors import InputError
from spectrod.settings import IqFormat
from spectrod.source.base import PulledSource
from spectrod.source.left_out import LeftOut
from spectrod.source.naming import topic_name
from spectrod.source.recorded_at import find_start
from spectrod.source.riff import samples_bytes
from spectrod.text import printable
from spectrod.units import Float32Array

# Sizes near 2^31 and 2^32 are what programs write that stream to a pipe: length unknown.
_UNKNOWN_SIZE = 0x7FFF0000

_RAW_SUFFIXES = (".raw", *(f".{name}" for name in get_args(IqFormat)))

_LENGTH_UNKNOWN = 2**63 - 1
"""What libsndfile says of a FLAC file whose header leaves it open."""

# Where libsndfile works out by itself where they end; what it leaves unread it does not tell.
_CODED_STREAMS = ("MP3", "OGG")
_MP3_LENGTH = re.compile(rb"Xing|Info|VBRI")
_MP3_FRAME_MAX = 2881
_SAMPLE_BYTES = {
    "PCM_S8": 1, "PCM_U8": 1, "PCM_16": 2, "PCM_24": 3, "PCM_32": 4,
    "FLOAT": 4, "DOUBLE": 8, "ULAW": 1, "ALAW": 1,
}  # fmt: skip
"""Bytes of a sample, of codings where that is fixed."""
_SKIP_SAMPLES = 1 << 15
_TAGS_BYTES_MAX = 1 << 26
"""Of tags behind the last frame, cover pictures among them; more is not read."""

_TAG_AT_END = re.compile(rb"(APETAGEX.*)?(TAG.{125})?\Z", re.DOTALL)

# The chunk that holds the samples, in libsndfile's words for WAV, AIFF and AU; W64 has only the
# whole file's size to compare; of RF64 see ``samples_bytes``. Not the RIFF size of a WAV: many
# programs get it wrong.
_SHORT_CHUNK = re.compile(
    r"^ *(?:data|SSND|Data Size|riff|Riff size) *: (\d+) \(should be (\d+)\)", re.MULTILINE
)


class SoundFile:
    """An open sound file that is read from its beginning to its end.

    Parameters
    ----------
    path : str
        WAV, RF64, AIFF, AU, CAF, FLAC, Ogg, MP3 and what else libsndfile knows.

    Attributes
    ----------
    fs : float
        Sample rate [Hz].
    channels : int
        Channels.
    n_samples : int
        Samples a channel that there are by its header and its size, at least 1; of an MP3 file
        whose header does not say it, libsndfile's estimate.
    n_announced : int
        Samples a channel that its header announces; more than ``n_samples`` of a truncated file.
    damage : str
        What is wrong with it, as far as is known by now; empty if nothing is. Samples up to the
        damage can be read.
    format : str
        For a person.
    is_float : bool
        Whether it stores floats, which may be infinite or NaN.
    comment : str
        From its header.

    Raises
    ------
    InputError
        If the file is missing, empty, of unknown length, or not a sound file.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._file, self._stream = _open(path)
        self.fs = float(self._file.samplerate)
        self.channels = int(self._file.channels)
        self.n_samples = int(self._file.frames)
        self.format = f"{self._file.format}, {self._file.subtype}"
        self.is_float = self._file.subtype in ("FLOAT", "DOUBLE")
        self.comment = str(self._file.comment)
        self._n_read = 0
        self._is_decoded = self._file.format in (*_CODED_STREAMS, "FLAC")
        self._is_estimate = self._stream is not None and not _states_length(self._stream)
        if self.n_samples == 0:
            raise InputError(f"{path}: holds no samples")
        if self.n_samples == _LENGTH_UNKNOWN:
            raise InputError(
                f"{path}: its header leaves its length open, as what was written to a pipe does; "
                "decode it to a WAV file first"
            )
        announced, found = _bytes_of_samples(path, self._file)
        self.damage = ""
        self.n_announced = self.n_samples
        if found < announced:
            self.damage = f"truncated: {announced} bytes announced, {found} found"
            step_bytes = self.channels * _SAMPLE_BYTES.get(self._file.subtype, 0)
            if step_bytes:
                self.n_announced += (announced - found) // step_bytes

    def read(self, out: Float32Array) -> int:
        """Read the next samples into (n, channels) float32 [FS]; return how many, fewer at the end.

        If the file is damaged, ends before it should, or goes on after its end, ``damage`` says so.
        """
        if self._is_decoded:
            out[:, 0] = np.nan
        try:
            n = len(self._file.read(out=out))
        except soundfile.LibsndfileError as error:
            self._note_damage(f"damaged: {error.error_string}")
            # What was decoded before is in its place; its number is not told.
            n = _n_filled(out) if self._is_decoded else 0
        self._n_read += n
        if n < len(out):
            self._check_end()
        return n

    def _check_end(self) -> None:
        if self._n_read < self.n_samples and not self._is_estimate:
            self._note_damage(
                f"truncated: {self.n_samples} samples announced, {self._n_read} found"
            )
        if self._stream and (n_bytes := _unread_bytes(self._stream)) > _MP3_FRAME_MAX:
            self._note_damage(
                f"{self._n_read} samples announced, but {n_bytes} bytes follow them, "
                "as where files were joined or the bit rate varies; decode it to a WAV file first"
            )

    def _note_damage(self, text: str) -> None:
        self.damage = self.damage or text

    def seek(self, sample_index: int) -> None:
        """Go to a sample that the file has.

        Raises
        ------
        InputError
            If the file is damaged.
        """
        try:
            self._file.seek(sample_index)
        except soundfile.LibsndfileError as error:
            raise InputError(f"{self._path}: damaged: {error.error_string}") from error
        self._n_read = sample_index

    def skip(self, n_samples: int) -> None:
        """Skip the first samples of the file; decode them where seeking is not exact.

        Raises
        ------
        InputError
            If the file is damaged.
        """
        if self.seeks_exactly:
            self.seek(n_samples)
            return
        unused = np.empty((_SKIP_SAMPLES, self.channels), np.float32)
        while (n_left := n_samples - self._n_read) > 0 and self.read(unused[:n_left]):
            pass

    def rewind(self) -> None:
        """Go back to the first sample.

        Raises
        ------
        InputError
            If the file is damaged, or no longer what it was.
        """
        if not self.damage:
            self.seek(0)
            return
        # A decoder that has failed may fail again when it seeks.
        self.close()
        self._file, self._stream = _open(self._path)
        if (self._file.samplerate, self._file.channels) != (self.fs, self.channels):
            raise InputError(f"{self._path}: has changed while it was read")
        self._n_read = 0

    @property
    def seeks_exactly(self) -> bool:
        """Whether ``seek`` gives the same samples as reading up to there does."""
        return self._stream is None

    def close(self) -> None:
        """Close it."""
        self._file.close()
        if self._stream:
            self._stream.close()


class SoundFileSource(PulledSource):
    """A sound file, played once or in a loop without a seam.

    It begins when its header or its name says, see ``recorded_at``.

    Parameters
    ----------
    path : str
        See ``SoundFile``.
    pace : {"realtime", "full"}
        How fast.
    loop : bool
        Whether to play it again and again; times are then those of playing.
    strict : bool
        Whether a truncated or damaged file is an error; else it is read up to there.

    Raises
    ------
    InputError
        As ``SoundFile``, and of a truncated file if this is strict.
    """

    def __init__(self, path: str, pace: Pace, *, loop: bool = False, strict: bool = False) -> None:
        super().__init__(pace)
        self._path = path
        self._file = SoundFile(path)
        self._loop = loop
        self.left_out = LeftOut(strict=strict)
        self._note_damage()
        self.name = topic_name(Path(path).stem)
        self.fs, self.channels = self._file.fs, self._file.channels
        self.description = f"{printable(path)} ({self._file.format})"
        if not loop:
            self.n_samples = self._file.n_samples
            self.start_utc_ns = find_start(path, self.fs, self._file.comment)

    def begin_at(self, sample_index: int) -> None:
        """Leave out the samples before one; see ``PulledSource``."""
        if self._file.seeks_exactly and not self._loop:
            self._begin = sample_index

    def blocks(self, n_max: int) -> Iterator[Float32Array]:
        """Yield the file's samples, up to its end or to what is damaged."""
        interleaved = np.empty((n_max, self._file.channels), np.float32)
        try:
            if self._begin:
                self._file.seek(self._begin)
            while n := self._read_into(interleaved):
                yield interleaved[:n].T
                self._note_damage()
            self._note_damage()
        finally:
            self._file.close()

    def _read_into(self, interleaved: Float32Array) -> int:
        n = self._file.read(interleaved)
        while self._loop and n < len(interleaved):
            self._note_damage()
            self._file.rewind()
            n_more = self._file.read(interleaved[n:])
            if not n_more:
                raise InputError(f"{self._path}: {self._file.damage or 'cannot be read again'}")
            n += n_more
        return n

    def _note_damage(self) -> None:
        if self._file.damage:
            problem = f"{self._path}: {self._file.damage}"
            self.left_out.add(Path(self._path), problem, "read up to there")


def _open(path: str) -> tuple[soundfile.SoundFile, BinaryIO | None]:
    """Open a file; of a coded stream also its bytes, whose position says how far it was read."""
    # libsndfile has one text for all that the system refuses, so the system is asked first.
    try:
        _refuse_unreadable(Path(path))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    try:
        file = soundfile.SoundFile(os.fsencode(path))  # as bytes, a name need not be UTF-8
        if file.format not in _CODED_STREAMS:
            return file, None
        file.close()
        stream = Path(path).open("rb")  # noqa: SIM115 - closed with the file
        return soundfile.SoundFile(stream), stream
    except soundfile.LibsndfileError as error:
        raise InputError(f"{path}: not a sound file: {error.error_string}") from error


def _refuse_unreadable(path: Path) -> None:
    # Before it is opened: opening a pipe waits for who writes to it, and takes their samples.
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: not a regular file; raw samples from a pipe are read with pcm:")
    # Of .raw soundfile would ask for what the name cannot say; the others are a receiver's.
    if path.suffix.lower() in _RAW_SUFFIXES:
        raise InputError(f"{path}: has no header; raw samples are read with pcm:{path}")
    with path.open("rb") as file:
        if not file.read(1):
            raise InputError(f"{path}: empty file")


def _n_filled(out: Float32Array) -> int:
    """Count the samples before the first NaN."""
    unfilled = np.flatnonzero(np.isnan(out[:, 0]))
    return int(unfilled[0]) if len(unfilled) else len(out)


def _states_length(stream: BinaryIO) -> bool:
    """Say whether a coded stream of which the header was read says how long it is."""
    n_read = stream.tell()
    stream.seek(0)
    start = stream.read(n_read)
    return start.startswith(b"OggS") or _MP3_LENGTH.search(start[-_MP3_FRAME_MAX:]) is not None


def _unread_bytes(stream: BinaryIO) -> int:
    """Count the bytes of a coded stream that were not read, but for what names its title."""
    position = stream.tell()
    n_bytes = os.fstat(stream.fileno()).st_size - position
    if n_bytes > _TAGS_BYTES_MAX:
        return n_bytes
    rest = stream.read()
    stream.seek(position)
    return len(_TAG_AT_END.sub(b"", rest))


def _bytes_of_samples(path: str, file: soundfile.SoundFile) -> tuple[int, int]:
    """Find how many bytes of samples a header announces, and how many there are; 0 if all are.

    libsndfile itself reads what is there without an error; its log of the header has both sizes,
    but not those of RF64.
    """
    if file.format == "RF64":
        try:
            return samples_bytes(path)
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from error
    for claimed, actual in _SHORT_CHUNK.findall(file.extra_info):
        if int(actual) < int(claimed) < _UNKNOWN_SIZE:
            return int(claimed), int(actual)
    return 0, 0
