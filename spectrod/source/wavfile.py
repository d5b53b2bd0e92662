"""Plain WAV files without libsndfile: the analysis reads their samples without conversion."""

import os
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from spectrod.chunks import duration_ns
from spectrod.config import PcmFormat
from spectrod.errors import InputError
from spectrod.sample_layout import SampleLayout
from spectrod.source.base import PulledSource
from spectrod.source.naming import topic_name
from spectrod.source.pcm import NATIVE_FORMATS, decode_pcm
from spectrod.source.recorded_at import find_start
from spectrod.source.riff import PcmLayout, find_samples, read_chunks
from spectrod.text import printable
from spectrod.types import Block
from spectrod.units import Float32Array
from spectrod.wakeup import Wakeup

_FORMATS: dict[tuple[bool, int], PcmFormat] = {
    (False, 16): "s16le",
    (False, 24): "s24le",
    (False, 32): "s32le",
    (True, 32): "f32le",
}


class WavFileSource(PulledSource):
    """A WAV or RF64 file of plain samples, read once at full speed.

    Times are like those of ``SoundFileSource``. ``feed`` reads it without a thread, a ring or a
    conversion between the file and the analysis; ``start`` fills a ring like any other source.

    Parameters
    ----------
    path : str
        The file.
    layout : PcmLayout
        From ``plain_layout``.
    """

    def __init__(self, path: str, layout: PcmLayout) -> None:
        super().__init__("full")
        self._path, self._layout = path, layout
        self._format = _FORMATS[layout.is_float, layout.bits]
        self.name = topic_name(Path(path).stem)
        self.fs, self.channels = layout.fs, layout.channels
        self.n_samples = layout.n_samples
        kind = "FLOAT" if layout.is_float else f"PCM_{layout.bits}"
        self.description = f"{printable(path)} (WAV, {kind})"
        self.start_utc_ns = find_start(path, self.fs, _comment(path))

    def begin_at(self, sample_index: int) -> None:
        """Skip the samples before an index; see ``PulledSource``. A feed has ``skip``."""
        self._begin = sample_index

    def blocks(self, n_max: int) -> Iterator[Float32Array]:
        """Yield the file's samples; raises InputError if the file is too short for its header."""
        step_bytes = self._layout.channels * self._layout.bits // 8
        with Path(self._path).open("rb", buffering=0) as file:
            file.seek(self._layout.begin + self._begin * step_bytes)
            for first in range(self._begin, self._layout.n_samples, n_max):
                n = min(n_max, self._layout.n_samples - first)
                data = np.empty(n * step_bytes, np.uint8)
                _fill(self._path, file, data)
                yield decode_pcm(data.tobytes(), self._format).reshape(n, -1).T

    def feed(self) -> "FileFeed":
        """Open the file for direct reading by the analysis, from sample 0."""
        return FileFeed(self._path, self._layout, self._selected, self.start_utc_ns)


class FileFeed:
    """Pull-style reader of a file; replaces the consumer's side of a ``SampleRing``.

    Nothing is lost: the reader sets the pace. Used by one thread; another may call ``close``.

    Parameters
    ----------
    path : str
        A WAV file.
    layout : PcmLayout
        Layout of its samples.
    selected : sequence of int, optional
        Channels to read, in their order; all by default.
    start_utc_ns : int, optional
        UTC of sample 0 [ns]; now by default.
    """

    overflows = suspected = overruns = 0
    peak_fill = 0.0

    def __init__(
        self,
        path: str,
        layout: PcmLayout,
        selected: Sequence[int] | None,
        start_utc_ns: int | None,
    ) -> None:
        self._path, self._file_layout, self._selected = path, layout, selected
        sample_format = NATIVE_FORMATS[_FORMATS[layout.is_float, layout.bits]]
        self._in_file = SampleLayout(sample_format, layout.channels, interleaved=True)
        channels = layout.channels if selected is None else len(selected)
        self.layout = SampleLayout(
            sample_format, channels, interleaved=selected is None and channels > 1
        )
        self.data = Wakeup()
        self._t_mono_ns = time.monotonic_ns()
        self._t_utc_ns = time.time_ns() if start_utc_ns is None else start_utc_ns
        self._ended = threading.Event()
        self._taken = 0
        self._file: BinaryIO | None = None

    @property
    def taken(self) -> int:
        """Index after the newest sample read; any thread may call it."""
        return self._taken

    written = taken

    @property
    def exhausted(self) -> bool:
        """True if everything was read, or the feed was closed."""
        return self._taken >= self._file_layout.n_samples or self._ended.is_set()

    def skip(self, n: int) -> None:
        """Skip the next n samples, or all that are left if fewer."""
        self._taken = min(self._taken + n, self._file_layout.n_samples)
        if self._file is not None:
            self._file.seek(self._place)

    @property
    def _place(self) -> int:
        """File offset of the next sample [bytes]."""
        return self._file_layout.begin + self._taken * self._in_file.step_bytes

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
        memory = self._in_order(into) if into is not None else None
        if memory is None:
            memory = np.empty(n * self._in_file.step_bytes, np.uint8)
        n = min(n, len(memory) // self._in_file.step_bytes)
        memory = memory[: n * self._in_file.step_bytes]
        _fill(self._path, self._opened(), memory)
        samples = self._in_file.arranged(memory, n)
        if self._selected is not None:
            samples = samples[list(self._selected)]
        self._taken += n
        since_ns = duration_ns(first, layout.fs)
        t_mono_ns, t_utc_ns = self._t_mono_ns + since_ns, self._t_utc_ns + since_ns
        return Block(samples, first, t_mono_ns, t_utc_ns, fs=layout.fs)

    def _in_order(self, samples: NDArray[Any]) -> NDArray[np.uint8] | None:
        """View samples as bytes in the order of the file; None if their order differs."""
        ordered = samples.swapaxes(0, 1)
        if self._selected is not None or not ordered.flags.c_contiguous:
            return None
        return ordered.reshape(-1).view(np.uint8)

    def _opened(self) -> BinaryIO:
        if self._file is None:
            try:
                self._file = Path(self._path).open("rb", buffering=0)  # noqa: SIM115 - see release
            except OSError as error:
                raise InputError(f"{self._path}: {error.strerror}") from error
            self._file.seek(self._place)
        return self._file

    def close(self) -> None:
        """End the feed after the samples read so far; any thread may call it."""
        self._ended.set()
        self.data.set()

    def release(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
        self.data.close()


def plain_layout(path: str) -> PcmLayout | None:
    """Return the layout of a file that ``WavFileSource`` can read; None for other files.

    libsndfile handles all damaged or unusual files, and their errors.
    """
    try:
        layout = find_samples(path) if os.path.isfile(path) else None  # noqa: PTH113 - "\0" is none
    except (OSError, struct.error):
        return None
    if layout is None or (layout.is_float, layout.bits) not in _FORMATS:
        return None
    return layout


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
    """Return the comment in a WAV file's INFO list, as libsndfile does."""
    texts = read_chunks(path, (b"LISTINFO",)).get(b"LISTINFO", b"")
    place = 4
    while place + 8 <= len(texts):
        name, size = struct.unpack_from("<4sI", texts, place)
        if name == b"ICMT":
            text = texts[place + 8 : place + 8 + size]
            return text.partition(b"\0")[0].decode("utf-8", "replace")
        place += 8 + size + size % 2
    return ""
