"""Decodes the samples of a file whose header was read here."""

from typing import BinaryIO

from spectrod.dsp.units import Float32Array
from spectrod.lib.errors import InputError, UnavailableError
from spectrod.source.files.codings import decode
from spectrod.source.files.container.container_chunks import read_up_to
from spectrod.source.files.container.container_header import SoundHeader
from spectrod.source.store.urls import is_url


class PlainSamples:
    """Samples of one number each, with the methods of ``soundfile.SoundFile`` that are used.

    Parameters
    ----------
    path : str
        Name of the file, for messages.
    file : BinaryIO
        The file.
    header : SoundHeader
        Its header.
    frames : int
        Samples per channel.
    comment : str
        Its comment.
    """

    def __init__(
        self, path: str, file: BinaryIO, header: SoundHeader, frames: int, comment: str
    ) -> None:
        assert header.coding is not None
        self._path, self._file = path, file
        self._coding, self._begin = header.coding, header.stated.begin
        self._step_bytes = header.stated.step_bytes
        self._position = 0
        self.samplerate, self.channels, self.frames = header.fs, header.channels, frames
        self.format, self.subtype, self.comment = header.form, header.subtype, comment

    def read(self, out: Float32Array) -> Float32Array:
        """Read samples into (n, channels) float32 [FS]; return those that were read.

        Raises
        ------
        InputError
            If the file cannot be read; UnavailableError for a file of a store.
        """
        n = min(len(out), self.frames - self._position)
        if n <= 0:
            return out[:0]
        try:
            self._file.seek(self._begin + self._position * self._step_bytes)
            data = read_up_to(self._file, n * self._step_bytes)
        except OSError as error:
            kind = UnavailableError if is_url(self._path) else InputError
            raise kind(f"{self._path}: {error.strerror}") from error
        n = len(data) // self._step_bytes
        out[:n] = decode(data[: n * self._step_bytes], self._coding).reshape(n, self.channels)
        self._position += n
        return out[:n]

    def seek(self, sample_index: int) -> int:
        """Go to a sample."""
        self._position = sample_index
        return sample_index

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    __del__ = close  # as of soundfile.SoundFile: a source that is never read is not closed
