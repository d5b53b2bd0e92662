"""Sound files: everything that libsndfile reads."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import soundfile

from spectrod.config import Pace
from spectrod.errors import InputError
from spectrod.source.base import PulledSource
from spectrod.source.naming import topic_name
from spectrod.units import Float32Array

# Sizes near 2^31 and 2^32 are what programs write that stream to a pipe: length unknown.
_UNKNOWN_SIZE = 0x7FFF0000

# The chunk that holds the samples, in libsndfile's words for WAV, AIFF and AU; W64 and RF64 have
# only the whole file's size to compare. Not the RIFF size of a WAV: many programs get it wrong.
_SHORT_CHUNK = re.compile(
    r"^ *(?:data|SSND|Data Size|riff|Riff size) *: (\d+) \(should be (\d+)\)", re.MULTILINE
)


class SoundFileSource(PulledSource):
    """A sound file, played once.

    Parameters
    ----------
    path : str
        WAV, RF64, AIFF, AU, CAF, FLAC, Ogg, MP3 and what else libsndfile knows.
    pace : {"realtime", "full"}
        How fast.

    Raises
    ------
    InputError
        If the file is missing, empty, truncated, or not a sound file.
    """

    def __init__(self, path: str, pace: Pace) -> None:
        super().__init__(pace)
        self._path = path
        self._file = _open(path)
        self.name = topic_name(Path(path).stem)
        self.fs = float(self._file.samplerate)
        self.channels = int(self._file.channels)
        self.n_samples = int(self._file.frames)
        readable = os.fsencode(path).decode("utf-8", "replace")  # messages carry it, in UTF-8
        self.description = f"{readable} ({self._file.format}, {self._file.subtype})"
        if self.n_samples == 0:
            raise InputError(f"{path}: holds no samples")
        _refuse_truncated(path, self._file.extra_info)

    def blocks(self, n_max: int) -> Iterator[Float32Array]:
        """Yield the file's samples; raises InputError if there are fewer than its header says."""
        interleaved = np.empty((n_max, self.channels), np.float32)
        n_read = 0
        with self._file:
            while n := self._read_into(interleaved):
                n_read += n
                yield interleaved[:n].T
        if n_read < (self.n_samples or 0):
            raise InputError(
                f"{self._path}: truncated: {self.n_samples} samples announced, {n_read} found"
            )

    def _read_into(self, interleaved: Float32Array) -> int:
        try:
            return len(self._file.read(out=interleaved))
        except soundfile.LibsndfileError as error:
            raise InputError(f"{self._path}: damaged: {error.error_string}") from error


def _open(path: str) -> soundfile.SoundFile:
    # libsndfile has one text for all that the system refuses, so the system is asked first.
    try:
        _refuse_unreadable(Path(path))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    try:
        return soundfile.SoundFile(os.fsencode(path))  # as bytes, a name need not be UTF-8
    except soundfile.LibsndfileError as error:
        raise InputError(f"{path}: not a sound file: {error.error_string}") from error


def _refuse_unreadable(path: Path) -> None:
    # Before it is opened: opening a pipe waits for who writes to it, and takes their samples.
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise InputError(f"{path}: not a regular file; raw samples from a pipe are read with -")
    with path.open("rb") as file:
        if not file.read(1):
            raise InputError(f"{path}: empty file")


def _refuse_truncated(path: str, log: str) -> None:
    """Find in libsndfile's log of the header that the file is shorter than it says.

    libsndfile itself reads what is there and calls it success.
    """
    for claimed, actual in _SHORT_CHUNK.findall(log):
        if int(actual) < int(claimed) < _UNKNOWN_SIZE:
            raise InputError(f"{path}: truncated: {claimed} bytes announced, {actual} found")
