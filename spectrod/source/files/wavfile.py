"""Files of plain samples: the analysis reads them without a conversion."""

import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.blocks import Block, duration_ns
from spectrod.dsp.sample_layout import SampleLayout
from spectrod.lib.errors import InputError
from spectrod.lib.text import printable
from spectrod.source.base import SelectableSource
from spectrod.source.direct import ReadyReader
from spectrod.source.files.container.comment import comment_of
from spectrod.source.files.container.container_chunks import FileBytes
from spectrod.source.files.container.raw_layout import PcmLayout, find_layout
from spectrod.source.files.recorded_at import find_start
from spectrod.source.naming import topic_name
from spectrod.source.opening import open_binary
from spectrod.source.store.urls import is_url

_log = logging.getLogger(__name__)


class WavFileSource(ReadyReader, SelectableSource):
    """A file of plain samples, read once at full speed; its own ``SampleReader``.

    The analysis reads the file without a thread, a ring or a conversion in between. It sets the
    pace, so nothing is lost. Another thread may call ``close``. Times are like those of
    ``SoundFileSource``.

    Parameters
    ----------
    path : str
        The file.
    layout : PcmLayout
        From ``plain_layout``.
    time_format : str
        Format of the start time in its name; empty: see ``recorded_at``.
    time_zone : str
        Time zone of start times that name none; empty: UTC. See ``recorded_at``.
    """

    def __init__(
        self, path: str, layout: PcmLayout, time_format: str = "", time_zone: str = ""
    ) -> None:
        super().__init__()
        self._file_layout, self._file = layout, PlainFile(path, layout)
        self._ended = threading.Event()
        self._speakers_path = path
        self.name = topic_name(Path(path).stem)
        self.fs, self.channels = layout.fs, layout.channels
        self.n_samples = layout.n_samples
        self.description = f"{printable(path)} ({layout.form}, {layout.subtype})"
        if layout.note:
            _log.warning("%s: %s", printable(path), layout.note)
        self.take_start(find_start(path, self.fs, _comment(path), time_format, time_zone))

    @property
    def layout(self) -> SampleLayout:
        """Layout of blocks: as in the file, if all channels are read."""
        is_as_in_file = self._selected is None and self.channels > 1
        return SampleLayout(self._file.sample_format, self.channels, interleaved=is_as_in_file)

    def start_at(self, sample_index: int) -> None:
        """Skip the samples before an index; see ``SelectableSource``."""
        self._first = min(sample_index, self._file_layout.n_samples)

    def open_reader(self) -> Self:
        """Return this source, which opens the file when it is first read. Call it once."""
        self._taken = self._first
        self._t_mono_ns = time.monotonic_ns()
        self._t_utc_ns = time.time_ns() if self.start_utc_ns is None else self.start_utc_ns
        return self

    def start(self, reader: Self, on_change: Callable[[], None] = lambda: None) -> None:
        """Do nothing: the analysis reads the file."""

    def stop(self) -> None:
        """Do nothing: nothing runs."""

    # ---- the reader

    @property
    def taken(self) -> int:
        """Index after the newest sample read; any thread may call it."""
        return self._taken

    written = taken

    @property
    def exhausted(self) -> bool:
        """True if everything was read, or after ``close``."""
        return self._taken >= self._file_layout.n_samples or self._ended.is_set()

    def read(self, max_samples: int, into: NDArray[Any] | None = None) -> Block | None:
        """Read up to max_samples; None at the end.

        Parameters
        ----------
        max_samples : int
            Samples per channel.
        into : (channels, n) or (channels, n, 3) array, optional
            Destination of the block's dtype; at most n samples are read then. It is not used if the
            samples of the file are in another order.

        Raises
        ------
        InputError
            If the file cannot be read, or has become shorter.
        """
        if self.exhausted:
            return None
        first, layout = self._taken, self._file_layout
        n = min(max_samples, layout.n_samples - first)
        if self._selected is not None:
            into = None
        samples = self._file.read(first, n, into)
        if self._selected is not None:
            samples = samples[list(self._selected)]
        self._taken += samples.shape[1]
        since_ns = duration_ns(first, layout.fs)
        t_mono_ns, t_utc_ns = self._t_mono_ns + since_ns, self._t_utc_ns + since_ns
        return Block(samples, first, t_mono_ns, t_utc_ns, fs=layout.fs)

    def close(self) -> None:
        """End after the samples read so far; any thread may call it."""
        self._ended.set()

    def release(self) -> None:
        """Close the file."""
        self._file.close()


class PlainFile:
    """Reads the samples of a file as they are; it is opened when it is first read.

    Parameters
    ----------
    path : str
        The file.
    layout : PcmLayout
        From ``plain_layout``.

    Attributes
    ----------
    sample_format : SampleFormat
        Format of the samples.
    """

    def __init__(self, path: str, layout: PcmLayout) -> None:
        self.sample_format = layout.sample_format
        self._path, self._begin = path, layout.begin
        self._in_file = SampleLayout(self.sample_format, layout.channels, interleaved=True)
        self._file: BinaryIO | None = None
        self._position = 0

    def read(self, first: int, n: int, into: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read n samples of all channels from one of them on, all of which the file must have.

        Parameters
        ----------
        first, n : int
            Samples per channel; n >= 1.
        into : (channels, n_max) or (channels, n_max, 3) array, optional
            Destination of the dtype of ``sample_format``; at most n_max samples are read then. It
            is not used if its samples are in another order than those of the file.

        Returns
        -------
        samples : (channels, n) or (channels, n, 3) array

        Raises
        ------
        InputError
            If the file cannot be read, or ends before.
        """
        memory = _in_order(into) if into is not None else None
        if memory is None:
            memory = np.empty(n * self._in_file.step_bytes, np.uint8)
        n = min(n, len(memory) // self._in_file.step_bytes)
        memory = memory[: n * self._in_file.step_bytes]
        _fill(self._path, self._opened(first), memory)
        self._position = first + n
        return self._in_file.arranged(memory, n)

    def _opened(self, first: int) -> BinaryIO:
        """Return the file at a sample."""
        try:
            if self._file is None:
                self._file = open_binary(self._path)
                self._position = -1
            if first != self._position:
                self._file.seek(self._begin + first * self._in_file.step_bytes)
        except OSError as error:
            raise InputError(f"{self._path}: {error.strerror}") from error
        return self._file

    def close(self) -> None:
        """Close the file. Idempotent."""
        if self._file is not None:
            self._file.close()


def _in_order(samples: NDArray[Any]) -> NDArray[np.uint8] | None:
    """View samples as bytes in the order of the file; None if their order differs."""
    ordered = samples.swapaxes(0, 1)
    return ordered.reshape(-1).view(np.uint8) if ordered.flags.c_contiguous else None


def plain_layout(path: str) -> PcmLayout | None:
    """Return the layout of a file that ``WavFileSource`` can read; None for other files.

    ``SoundFile`` handles all damaged or unusual files, and their errors.
    """
    try:
        is_file = is_url(path) or os.path.isfile(path)  # noqa: PTH113 - "\0" is none
        return find_layout(path) if is_file else None
    except (OSError, InputError):
        return None


def _fill(path: str, file: BinaryIO, memory: NDArray[np.uint8]) -> None:
    """Fill the memory; raises InputError if the file ends before."""
    view, n_read = memory.data, 0
    while n_read < len(memory):
        try:
            n_new = file.readinto(view[n_read:])  # type: ignore[attr-defined]
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from error
        if n_new == 0:
            raise InputError(f"{path}: truncated while it was read")
        n_read += n_new


def _comment(path: str) -> str:
    with open_binary(path) as file:
        return comment_of(FileBytes(file))
