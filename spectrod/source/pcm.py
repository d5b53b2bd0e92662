"""Raw interleaved samples from standard input or any other stream."""

import os
import select
import sys
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from spectrod.config import PcmFormat
from spectrod.errors import InputError
from spectrod.source.base import PulledSource
from spectrod.units import Float32Array
from spectrod.wakeup import Wakeup

BYTES_PER_SAMPLE: dict[PcmFormat, int] = {
    "u8": 1,
    "s16le": 2,
    "s24le": 3,
    "s32le": 4,
    "f32le": 4,
    "f64le": 8,
}
_INTEGERS: dict[PcmFormat, tuple[str, float]] = {
    "s16le": ("<i2", 2.0**15),
    "s32le": ("<i4", 2.0**31),
}
_FLOATS: dict[PcmFormat, str] = {"f32le": "<f4", "f64le": "<f8"}


def decode_pcm(data: bytes, format_: PcmFormat) -> Float32Array:
    """Convert raw samples to float32.

    Parameters
    ----------
    data : bytes
        Whole samples.
    format_ : str
        ``u8 s16le s24le s32le f32le f64le``.

    Returns
    -------
    samples : (n,) float32
        Integers divided by their full scale, so in [-1, 1]; floats as they are [FS].
    """
    if format_ in _FLOATS:
        with np.errstate(over="ignore"):  # what overflows is found as an infinity
            return np.frombuffer(data, _FLOATS[format_]).astype(np.float32)
    if format_ == "u8":
        return (np.frombuffer(data, np.uint8).astype(np.float32) - 128.0) / np.float32(128.0)
    dtype, full_scale = _INTEGERS["s32le" if format_ == "s24le" else format_]
    integers = _widen_s24(data) if format_ == "s24le" else np.frombuffer(data, dtype)
    return integers.astype(np.float32) * np.float32(1.0 / full_scale)


def _widen_s24(data: bytes) -> NDArray[np.int32]:
    """Put three bytes into the upper ones of an int32: same sign, same fraction of full scale."""
    wide = np.zeros((len(data) // 3, 4), np.uint8)
    wide[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
    return wide.view("<i4")[:, 0]


class PcmSource(PulledSource):
    """Raw interleaved samples from a file descriptor, until it ends.

    What writes to it sets the pace; back-pressure reaches it through the pipe. A stream that ends
    inside a sample is an error when that is found, at its end.

    Parameters
    ----------
    fs : float
        Sample rate [Hz].
    channels : int
        Interleaved channels.
    format_ : str
        See ``decode_pcm``.
    fd : int
        Descriptor to read; standard input if not given.

    Raises
    ------
    InputError
        If standard input is closed.
    """

    def __init__(self, fs: float, channels: int, format_: PcmFormat, fd: int | None = None) -> None:
        super().__init__(pace="full")
        self.name = "stdin"
        self.description = f"standard input ({format_}, {fs:g} Hz, {channels} channels)"
        self.fs, self.channels = fs, channels
        self._format = format_
        self._fd = _standard_input() if fd is None else fd
        self._frame_bytes = BYTES_PER_SAMPLE[format_] * channels
        self._interrupt = Wakeup()
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLIN)
        self._poll.register(self._interrupt, select.POLLIN)

    def interrupt(self) -> None:
        """End a wait for input."""
        self._interrupt.set()

    def blocks(self, n_max: int) -> Iterator[Float32Array]:
        """Yield samples as they arrive."""
        rest = b""
        while data := self._read(n_max * self._frame_bytes - len(rest)):
            data = rest + data
            n_whole = len(data) // self._frame_bytes * self._frame_bytes
            rest = data[n_whole:]
            if n_whole:
                samples = decode_pcm(data[:n_whole], self._format)
                yield samples.reshape(-1, self.channels).T
        if rest and not self._stopping.is_set():
            raise InputError(
                f"standard input: ends with {len(rest)} bytes, "
                f"not a whole number of {self._frame_bytes}-byte samples"
            )

    def _read(self, n_bytes: int) -> bytes:
        if self._interrupt.fileno() in dict(self._poll.poll()):
            return b""
        try:
            return os.read(self._fd, n_bytes)
        except OSError as error:
            raise InputError(f"standard input: {error.strerror}") from error


def _standard_input() -> int:
    if sys.stdin is None:  # as Python leaves it where the descriptor is closed
        raise InputError("standard input: closed; - reads raw samples from it")
    return sys.stdin.fileno()
