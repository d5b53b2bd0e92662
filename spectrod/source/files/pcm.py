"""Raw interleaved samples: decoders, and sources that read standard input or another stream."""

import logging
import math
import os
import select
import sys
import time
from collections.abc import Callable, Generator, Iterator
from typing import get_args

from spectrod.config.config import PcmFormat
from spectrod.config.settings import IqFormat
from spectrod.dsp.units import Float32Array
from spectrod.lib.durations import format_frequency
from spectrod.lib.errors import InputError
from spectrod.lib.job_pool import Wait
from spectrod.lib.stats import CaptureStats
from spectrod.lib.wakeup import Wakeup
from spectrod.source.base import Discontinuity, PulledSource
from spectrod.source.direct import DirectReader
from spectrod.source.files.codings import CODINGS, Coding, decode
from spectrod.source.files.container.recognised import refuse_sound_file
from spectrod.source.ring import SampleRing

_log = logging.getLogger(__name__)

LOOK_AGAIN_S = 1.0
_SILENCE_S = 5.0
"""Silence of a writer before it is reported [s]: some write large pieces."""


def describe_raw(name: str, format_: PcmFormat, fs: float, channels: int) -> str:
    """Return a readable description, such as ``standard input (cu8, 2.048 MHz, I/Q)``."""
    is_iq = format_ in get_args(IqFormat)
    n, noun = (channels // 2, "I/Q signal") if is_iq else (channels, "channel")
    count = "I/Q" if is_iq and n == 1 else f"{n} {noun}{'s' * (n != 1)}"
    return f"{name} ({format_}, {format_frequency(fs)}, {count})"


class PcmDecoder:
    """Decodes a byte stream that may be split anywhere.

    Parameters
    ----------
    format_ : str or Coding
        A key of ``CODINGS``, or a coding.
    channels : int
        Number of interleaved channels; I and Q are one each.

    Attributes
    ----------
    frame_bytes : int
        Bytes of one sample of all channels.
    rest : bytes
        Incomplete sample at the end of the bytes so far.
    """

    def __init__(self, format_: PcmFormat | Coding, channels: int) -> None:
        self._coding = format_ if isinstance(format_, Coding) else CODINGS[format_]
        self.frame_bytes = self._coding.n_bytes * channels
        self.rest = b""
        self._channels = channels

    def decode(self, data: bytes) -> Float32Array:
        """Return the samples that these bytes complete, (channels, n) float32, n >= 0 [FS]."""
        data = self.rest + data
        n_whole = len(data) // self.frame_bytes * self.frame_bytes
        self.rest = data[n_whole:]
        return decode(data[:n_whole], self._coding).reshape(-1, self._channels).T


class StreamSource(PulledSource):
    """A source of raw samples whose writer sets the pace; ``stop`` ends any wait for the writer.

    Back-pressure reaches the writer through the pipe, so nothing is lost here. After 5 s without
    data the source reports that it waits; later data simply follows.
    """

    is_stored = False

    def __init__(self, fs: float, channels: int, format_: PcmFormat | Coding) -> None:
        super().__init__(pace="full")
        self.fs, self.channels = fs, channels
        self._waiting_for = ""
        self._restarts = self._attempts = 0
        self._decoder = PcmDecoder(format_, channels)
        self._interrupt: Wakeup | None = None
        self._look_s = math.inf

    def start(
        self, reader: SampleRing | DirectReader, on_change: Callable[[], None] = lambda: None
    ) -> None:
        """Start to fill the ring; see ``Source``."""
        if self._pool is None:
            self._interrupt = Wakeup()
        super().start(reader, on_change)

    def interrupt(self) -> None:
        """End a wait for input."""
        if self._interrupt is not None:
            self._interrupt.set()

    def stop(self) -> None:
        """Stop the thread or the job, and wait for it."""
        super().stop()
        wakeup, self._interrupt = self._interrupt, None
        if wakeup is not None:
            wakeup.close()

    def capture(self) -> CaptureStats:
        """Return a snapshot; ``restarts`` counts the writers after the first."""
        return CaptureStats(
            waiting_for=self._waiting_for, restarts=self._restarts, attempts=self._attempts
        )

    def _set_waiting_for(self, reason: str) -> None:
        if reason != self._waiting_for:
            self._waiting_for = reason
            if reason:
                _log.warning("waiting: %s", reason)
            self._on_change()

    def _wait(self, wait: Wait) -> None:
        assert self._interrupt is not None
        poll = select.poll()
        poll.register(self._interrupt, select.POLLIN)
        if wait.fd >= 0:
            poll.register(wait.fd, wait.events)
        poll.poll(max(0.0, wait.until_s - time.monotonic()) * 1e3)

    def _awaited(self, fd: int, name: str) -> Wait:
        """Return the wait for data; report a writer that has been silent for long."""
        now_s = time.monotonic()
        if self._look_s == math.inf:
            self._look_s = now_s + _SILENCE_S
        elif now_s >= self._look_s:
            self._look_s = now_s + LOOK_AGAIN_S
            self._attempts += 1
            self._set_waiting_for(f"nothing is written to {name}")
        return Wait(self._look_s, fd, select.POLLIN)

    def _note_data(self) -> None:
        """Note that the writer has written."""
        self._look_s = math.inf

    def _await_input(self, fd: int, timeout_s: float) -> Generator[Wait, None, bool]:
        """Wait until data or the end of the stream is readable; False on timeout or if stopped."""
        until_s = time.monotonic() + timeout_s
        while not self._stopping.is_set():
            if _is_readable(fd):
                return True
            if time.monotonic() >= until_s:
                return False
            yield Wait(until_s, fd, select.POLLIN)
        return False

    def _t_first_ns(self, n: int) -> int:
        """Return the monotonic time of the first of n samples whose last just arrived [ns]."""
        return time.monotonic_ns() - round(n * 1e9 / self.fs)


class PcmSource(StreamSource):
    """Raw interleaved samples from a file descriptor, until its end.

    A stream that ends within a sample is an error, which is found at the end. The first samples are
    assumed to be captured just before they arrive; the others follow by index / fs.

    Parameters
    ----------
    fs : float
        Sample rate [Hz].
    channels : int
        Interleaved channels.
    format_ : str or Coding
        See ``codings``.
    fd : int
        Descriptor to read; the default is standard input.
    head : bytes
        Bytes that have been read from it.

    Raises
    ------
    InputError
        If standard input is closed.
    """

    def __init__(
        self,
        fs: float,
        channels: int,
        format_: PcmFormat | Coding,
        fd: int | None = None,
        head: bytes = b"",
    ) -> None:
        super().__init__(fs, channels, format_)
        self.name = self.description = "stdin"
        self._is_raw = not isinstance(format_, Coding)
        if not isinstance(format_, Coding):
            self.description = describe_raw("standard input", format_, fs, channels)
        self._fd = standard_input() if fd is None else fd
        self._head = head

    def blocks(self, n_max: int) -> Iterator[Float32Array | Discontinuity | Wait]:
        """Yield samples as they arrive."""
        decoder, is_first = self._decoder, True
        while data := (yield from self._read(n_max * decoder.frame_bytes - len(decoder.rest))):
            if self._is_raw and is_first:
                rule = "it must come within 1 s of the start"
                refuse_sound_file("standard input", decoder.rest + data, rule)
            samples = decoder.decode(data)
            if (n := samples.shape[1]) > 0:
                self._set_waiting_for("")
                if is_first:
                    yield Discontinuity(t_mono_ns=self._t_first_ns(n))
                    is_first = False
                yield samples
        self._set_waiting_for("")
        if not self._stopping.is_set():
            yield from self._end()

    def _end(self) -> Iterator[Wait]:
        """Check the end of the stream; raises InputError."""
        decoder = self._decoder
        if decoder.rest:
            raise InputError(
                f"standard input: ends with {len(decoder.rest)} bytes, "
                f"not a whole number of {decoder.frame_bytes}-byte samples"
            )
        yield from ()

    def _read(self, n_bytes: int) -> Generator[Wait, None, bytes]:
        """Return what is there or comes; b"" at the end, or if stopped."""
        if self._head:
            data, self._head = self._head[:n_bytes], self._head[n_bytes:]
            return data
        while not self._stopping.is_set():
            if _is_readable(self._fd):
                self._note_data()
                try:
                    return os.read(self._fd, n_bytes)
                except OSError as error:
                    raise InputError(f"standard input: {error.strerror}") from error
            yield self._awaited(self._fd, "standard input")
        return b""


def _is_readable(fd: int) -> bool:
    """Return whether data or the end of a stream can be read."""
    if fd < 0:
        return False
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(0))


def standard_input() -> int:
    """Return the descriptor of standard input; raises InputError if it is closed."""
    if sys.stdin is None:  # Python's value if the descriptor is closed
        raise InputError("standard input: closed; - reads raw samples from it")
    return sys.stdin.fileno()
