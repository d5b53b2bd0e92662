"""Raw interleaved samples in a regular file."""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from spectrod.config.config import Pace, PcmFormat
from spectrod.dsp.units import Float32Array
from spectrod.lib.errors import InputError
from spectrod.lib.text import printable
from spectrod.source.base import PulledSource
from spectrod.source.files.container.recognised import HEAD_BYTES, refuse_sound_file
from spectrod.source.files.pcm import PcmDecoder, describe_raw
from spectrod.source.files.recorded_at import find_start
from spectrod.source.naming import topic_name


class RawFileSource(PulledSource):
    """A file of raw samples without a header, played once or in a loop.

    Parameters
    ----------
    path : str
        Path of the file; a start time in its name is used.
    raw_format : (float, int, str)
        Sample rate [Hz], interleaved channels, and the format, see ``codings``.
    pace : {"realtime", "full"}
        Pace of reading.
    loop : bool
        Repeat the file endlessly; times are then those of playing.
    time_format : str
        Format of the start time in its name; empty: see ``recorded_at``.
    time_zone : str
        Time zone of start times that name none; empty: UTC. See ``recorded_at``.

    Raises
    ------
    InputError
        If the file cannot be read, is empty, or does not hold a whole number of samples.
    """

    def __init__(
        self,
        path: str,
        raw_format: tuple[float, int, PcmFormat],
        pace: Pace,
        *,
        loop: bool = False,
        time_format: str = "",
        time_zone: str = "",
    ) -> None:
        super().__init__(pace)
        fs, channels, format_ = raw_format
        self.name = topic_name(Path(path).stem)
        self.description = describe_raw(printable(path), format_, fs, channels)
        self.fs, self.channels = fs, channels
        self._path, self._loop = path, loop
        self._decoder = PcmDecoder(format_, channels)
        self._n_bytes = _checked_size(path, self._decoder.frame_bytes)
        if not loop:
            self.n_samples = self._n_bytes // self._decoder.frame_bytes
            self.take_start(find_start(path, time_format=time_format, time_zone=time_zone))

    def start_at(self, sample_index: int) -> None:
        """Skip the samples before an index; see ``PulledSource``."""
        if not self._loop:
            self._first = sample_index

    def blocks(self, n_max: int) -> Iterator[Float32Array]:
        """Yield the file's samples; raises InputError if the file has become shorter."""
        n_bytes = n_max * self._decoder.frame_bytes
        with Path(self._path).open("rb") as file:
            file.seek(self._first * self._decoder.frame_bytes)
            while data := self._read(file, n_bytes):
                yield self._decoder.decode(data)

    def _read(self, file: BinaryIO, n_bytes: int) -> bytes:
        data = bytearray(self._read_once(file, n_bytes))
        while self._loop and len(data) < n_bytes:
            file.seek(0)
            data += self._read_once(file, n_bytes - len(data))
        return bytes(data)

    def _read_once(self, file: BinaryIO, n_bytes: int) -> bytes:
        """Read n_bytes, fewer only at the end; data appended since the start is ignored."""
        n_due = min(n_bytes, self._n_bytes - file.tell())
        try:
            data = file.read(n_due)
        except OSError as error:
            raise InputError(f"{self._path}: {error.strerror}") from error
        if len(data) < n_due:
            raise InputError(
                f"{self._path}: truncated: {self._n_bytes} bytes announced, {file.tell()} found"
            )
        return data


def _checked_size(path: str, frame_bytes: int) -> int:
    size = Path(path).stat().st_size
    if size == 0:
        raise InputError(f"{path}: empty file")
    try:
        with Path(path).open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    refuse_sound_file(path, head, "give its path without pcm:")
    if size % frame_bytes:
        raise InputError(
            f"{path}: {size} bytes are not a whole number of {frame_bytes}-byte samples"
        )
    return size
