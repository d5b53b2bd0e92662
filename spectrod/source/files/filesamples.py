"""The samples of one file: as they are in files of plain samples, decoded from all others."""

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.blocks import SampleFormat
from spectrod.dsp.units import Float32Array
from spectrod.lib.errors import InputError
from spectrod.source.files.soundfile import SoundFile
from spectrod.source.files.triggered import find_stretches
from spectrod.source.files.wavfile import PlainFile, plain_layout
from spectrod.source.opening import open_binary

SAMPLE_MAX = 1e12
"""Largest sample that is used [FS]: up to it the sum of the longest frame, squared, (2^20 1e12)^2,
is within float32. No recorder makes greater ones, but flipped bits do."""
UNUSABLE = f"beyond {SAMPLE_MAX:g}, or not finite"
"""What is wrong with the samples that are left out."""


class FileSamples:
    """Reads the samples of a sound file; leaves out infinity, NaN, and those beyond a limit.

    Parameters
    ----------
    path : str
        The file.
    sample_format : SampleFormat or ""
        Format of the samples as ``plain_format_of`` found it; they are read as they are. Empty:
        they are decoded to float32.

    Attributes
    ----------
    fs : float
        Sample rate [Hz].
    channels : int
        Channels.
    n_samples : int
        Samples per channel, those counted that AudioMoth left out.
    has_gaps : bool
        Whether AudioMoth left some out: ``runs`` has none of these.
    position : int
        Index after the last sample read.
    n_unusable : int
        Samples left out so far.

    Raises
    ------
    InputError
        If the file cannot be opened, or is not as it was when its format was found.
    """

    def __init__(self, path: str, sample_format: SampleFormat | Literal[""]) -> None:
        self._path = path
        self._decoded: SoundFile | None = None
        self._plain: PlainFile | None = None
        self._is_float = sample_format == "float32"
        if sample_format:
            layout = plain_layout(path)
            if layout is None or layout.sample_format != sample_format:
                raise _changed(path)
            self._plain = PlainFile(path, layout)
            self.fs, self.channels, self.n_samples = layout.fs, layout.channels, layout.n_samples
        else:
            self._decoded = file = SoundFile(path)
            self._is_float = file.is_float
            self.fs, self.channels, self.n_samples = file.fs, file.channels, file.n_samples
        self.position = self._at = self.n_unusable = 0
        try:
            self._stretches = find_stretches(path, None if sample_format else file.comment)
        except InputError:
            self.close()
            raise
        self._n_stored = self.n_samples
        if self._stretches is not None:
            self.n_samples = self._stretches.n_samples

    @property
    def has_gaps(self) -> bool:  # noqa: D102 - above
        return self._stretches is not None

    @property
    def damage(self) -> str:
        """Damage found so far; "" if none. Samples up to it are readable."""
        return self._decoded.damage if self._decoded is not None else ""

    def skip(self, first: int) -> None:
        """Go to a sample; raises InputError if the file is damaged before it."""
        self.position = first
        if self._stretches is None:
            self._go_to(first)

    def _go_to(self, at: int) -> None:
        if self._decoded is not None and at != self._at:
            self._decoded.skip(at)
        self._at = at

    def runs(self, end: int, n_max: int) -> Iterator[tuple[int, NDArray[Any]]]:
        """Read from ``position`` on to an index, or to the end of what is readable.

        Parameters
        ----------
        end : int
            Index after the last sample.
        n_max : int
            Samples per channel that are read at a time, see ``spectrod.source.base.block_length``.

        Yields
        ------
        index : int
            Of the first sample.
        samples : (channels, n) or (channels, n, 3) array
            In the sample format, in memory of their own.

        Raises
        ------
        InputError
            If the file cannot be read; not for damage.
        """
        for begin, at, length in self._kept(end):
            self._go_to(at)
            self.position, stop = begin, begin + length
            while (n := min(n_max, stop - self.position)) > 0:
                samples = self._read(n)
                if not samples.shape[1]:
                    return
                first = self.position
                self.position += samples.shape[1]
                self._at += samples.shape[1]
                for run in self._usable_runs(samples):
                    yield first + run.start, samples[:, run]

    def _kept(self, end: int) -> Iterator[tuple[int, int, int]]:
        """Yield index, index in the file, and length of what the file has up to an index."""
        if self._stretches is None:
            yield self.position, self._at, end - self.position
        else:
            yield from self._stretches.pieces(self.position, end)

    def _read(self, n: int) -> NDArray[Any]:
        if self._plain is not None:
            n = min(n, self._n_stored - self._at)
            return self._plain.read(self._at, n) if n > 0 else np.empty((self.channels, 0))
        assert self._decoded is not None
        memory = np.empty((n, self.channels), np.float32)
        return memory[: self._decoded.read(memory)].T

    def _usable_runs(self, samples: NDArray[Any]) -> list[slice]:
        if not self._is_float or are_usable(samples).all():
            return [slice(0, samples.shape[1])]
        runs = usable_runs(samples.T)
        self.n_unusable += samples.shape[1] - sum(run.stop - run.start for run in runs)
        return runs

    def close(self) -> None:
        """Close the file. Idempotent."""
        for file in (self._plain, self._decoded):
            if file is not None:
                file.close()


def _changed(path: str) -> InputError:
    try:
        open_binary(path).close()
    except OSError as error:
        return InputError(f"{path}: {error.strerror}")
    return InputError(f"{path}: has changed since its header was read")


def plain_format_of(path: str, file: SoundFile) -> SampleFormat | Literal[""]:
    """Return the format in which ``FileSamples`` can read a file as it is; empty if it cannot.

    Parameters
    ----------
    path : str
        A file.
    file : SoundFile
        The same as it was opened: where the two differ, its samples are converted.

    Raises
    ------
    OSError
        If the file cannot be read.
    """
    layout = plain_layout(path)
    if layout is None:
        return ""
    found = layout.n_samples, layout.channels, layout.fs
    return layout.sample_format if found == (file.n_samples, file.channels, file.fs) else ""


def are_usable(samples: Float32Array) -> NDArray[np.bool_]:
    """Return which samples are numbers of at most ``SAMPLE_MAX``."""
    with np.errstate(invalid="ignore"):  # of NaN
        return np.abs(samples) <= SAMPLE_MAX


def usable_runs(samples: Float32Array) -> list[slice]:
    """Find the runs of (n, channels) samples that are usable in all channels."""
    is_usable = are_usable(samples).all(axis=1)
    edges = np.flatnonzero(np.diff(is_usable, prepend=False, append=False)).tolist()
    return [slice(begin, end) for begin, end in zip(edges[::2], edges[1::2], strict=True)]
