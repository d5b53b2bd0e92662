"""Sound files: everything that libsndfile reads."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
import soundfile

from spectrod.config import Pace
from spectrod.errors import InputError
from spectrod.source.base import PulledSource
from spectrod.source.naming import topic_name
from spectrod.source.recorded_at import find_start
from spectrod.source.riff import samples_bytes
from spectrod.text import printable
from spectrod.units import Float32Array

# Sizes near 2^31 and 2^32 are what programs write that stream to a pipe: length unknown.
_UNKNOWN_SIZE = 0x7FFF0000

_LENGTH_UNKNOWN = 2**63 - 1
"""What libsndfile says of a FLAC file whose header leaves it open."""

# Where libsndfile works out by itself where they end; what it leaves unread it does not tell.
_CODED_STREAMS = ("MP3", "OGG")
_MP3_LENGTH = re.compile(rb"Xing|Info|VBRI")
_MP3_FRAME_MAX = 2881
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
        Samples a channel that its header announces, at least 1; of an MP3 file whose header does
        not, libsndfile's estimate.
    format : str
        For a person.
    comment : str
        From its header.

    Raises
    ------
    InputError
        If the file is missing, empty, truncated, of unknown length, or not a sound file.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._file, self._stream = _open(path)
        self.fs = float(self._file.samplerate)
        self.channels = int(self._file.channels)
        self.n_samples = int(self._file.frames)
        self.format = f"{self._file.format}, {self._file.subtype}"
        self.comment = str(self._file.comment)
        self._n_read = 0
        self._is_estimate = self._stream is not None and not _states_length(self._stream)
        if self.n_samples == 0:
            raise InputError(f"{path}: holds no samples")
        if self.n_samples == _LENGTH_UNKNOWN:
            raise InputError(
                f"{path}: its header leaves its length open, as what was written to a pipe does; "
                "decode it to a WAV file first"
            )
        _refuse_truncated(path, self._file.extra_info)
        if self._file.format == "RF64":
            _refuse_truncated_rf64(path)

    def read(self, out: Float32Array) -> int:
        """Read the next samples into (n, channels) float32 [FS]; return how many, fewer at the end.

        Raises
        ------
        InputError
            If the file is damaged, ends before it should, or goes on after its end.
        """
        try:
            n = len(self._file.read(out=out))
        except soundfile.LibsndfileError as error:
            raise InputError(f"{self._path}: damaged: {error.error_string}") from error
        self._n_read += n
        if n < len(out):
            self._check_end()
        return n

    def _check_end(self) -> None:
        if self._n_read < self.n_samples and not self._is_estimate:
            raise InputError(
                f"{self._path}: truncated: {self.n_samples} samples announced, {self._n_read} found"
            )
        if self._stream and (n_bytes := _unread_bytes(self._stream)) > _MP3_FRAME_MAX:
            raise InputError(
                f"{self._path}: {self._n_read} samples announced, but {n_bytes} bytes follow them, "
                "as where files were joined or the bit rate varies; decode it to a WAV file first"
            )

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

    def rewind(self) -> None:
        """Go back to the first sample."""
        self.seek(0)

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

    Raises
    ------
    InputError
        As ``SoundFile``.
    """

    def __init__(self, path: str, pace: Pace, *, loop: bool = False) -> None:
        super().__init__(pace)
        self._file = SoundFile(path)
        self._loop = loop
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
        """Yield the file's samples; raises InputError if there are fewer than its header says."""
        interleaved = np.empty((n_max, self._file.channels), np.float32)
        try:
            if self._begin:
                self._file.seek(self._begin)
            while n := self._read_into(interleaved):
                yield interleaved[:n].T
        finally:
            self._file.close()

    def _read_into(self, interleaved: Float32Array) -> int:
        n = self._file.read(interleaved)
        while self._loop and n < len(interleaved):
            self._file.rewind()
            n += self._file.read(interleaved[n:])
        return n


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
    if path.suffix.lower() == ".raw":  # soundfile would ask for what the name cannot say
        raise InputError(f"{path}: has no header; raw samples are read with pcm:{path}")
    with path.open("rb") as file:
        if not file.read(1):
            raise InputError(f"{path}: empty file")


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


def _refuse_truncated_rf64(path: str) -> None:
    """Compare the 64-bit size of the samples with the file: libsndfile's log does not."""
    try:
        announced, found = samples_bytes(path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    if found < announced:
        raise InputError(f"{path}: truncated: {announced} bytes announced, {found} found")


def _refuse_truncated(path: str, log: str) -> None:
    """Find in libsndfile's log of the header that the file is shorter than it says.

    libsndfile itself reads what is there and calls it success.
    """
    for claimed, actual in _SHORT_CHUNK.findall(log):
        if int(actual) < int(claimed) < _UNKNOWN_SIZE:
            raise InputError(f"{path}: truncated: {claimed} bytes announced, {actual} found")
