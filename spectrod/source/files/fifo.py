"""Raw interleaved samples from a FIFO with changing writers."""

import errno
import fcntl
import logging
import os
import stat
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

from spectrod.config.config import PcmFormat
from spectrod.dsp.units import Float32Array
from spectrod.lib.errors import InputError
from spectrod.lib.job_pool import JobPool, Wait
from spectrod.lib.text import printable
from spectrod.source.base import Discontinuity
from spectrod.source.direct import DirectReader
from spectrod.source.files.container.recognised import refuse_sound_file
from spectrod.source.files.pcm import LOOK_AGAIN_S, StreamSource, describe_raw
from spectrod.source.naming import topic_name
from spectrod.source.ring import SampleRing

_log = logging.getLogger(__name__)

_HAND_OVER_S = 0.1
_LEAST_PAUSE_S = 0.005
"""A job of a pool reads at most so often, so that pieces that are written apart are read at once.
"""
_PIPE_BYTES = 1 << 16
"""What a FIFO holds where the system does not tell [bytes]."""


class FifoSource(StreamSource):
    """Raw interleaved samples from a FIFO, without end: after each writer it waits for the next.

    The time between two writers is a gap: from the last samples of one to the first of the next,
    times fs, at least one sample. If a writer ends within a sample, its bytes are dropped, counted
    and logged. The first samples of each writer are assumed to be captured just before they arrive;
    the others follow by index / fs, so within one writer times drift as far as its true rate is
    off.

    The FIFO may be removed and created again meanwhile; a waiting source looks for it every second.

    Parameters
    ----------
    path : str
        Path of the FIFO, which is opened at the start.
    fs : float
        Sample rate [Hz].
    channels : int
        Interleaved channels.
    format_ : str
        See ``codings``.
    hand_over_s : float
        Time from one writer to the next that is not reported as waiting [s].

    Attributes
    ----------
    dropped_bytes : int
        Bytes of incomplete samples so far.

    Raises
    ------
    InputError
        If the FIFO does not exist or is not readable.
    """

    def __init__(
        self,
        path: str,
        fs: float,
        channels: int,
        format_: PcmFormat,
        *,
        hand_over_s: float = _HAND_OVER_S,
    ) -> None:
        super().__init__(fs, channels, format_)
        self._hand_over_s = hand_over_s
        _check_fifo(path)
        self.name = topic_name(Path(path).stem)
        self.description = describe_raw(printable(path), format_, fs, channels)
        self.dropped_bytes = 0
        self._path = path
        self._fd, self._pipe_bytes = -1, _PIPE_BYTES
        self._t_last_ns: int | None = None

    def join(self, pool: JobPool) -> bool:
        """Let a pool serve the source; see ``PulledSource``."""
        self._pool = pool
        return True

    def start(
        self, reader: SampleRing | DirectReader, on_change: Callable[[], None] = lambda: None
    ) -> None:
        """Start to fill the ring; see ``Source``."""
        assert isinstance(reader, SampleRing)
        self._ring = reader
        super().start(reader, on_change)

    def blocks(self, n_max: int) -> Iterator[Float32Array | Discontinuity | Wait]:
        """Yield samples as they arrive, from one writer after another."""
        try:
            while (yield from self._wait_for_writer()):
                yield from self._one_writer(n_max)
                self._drop_rest()
        finally:
            self._close()

    def _one_writer(self, n_max: int) -> Iterator[Float32Array | Discontinuity | Wait]:
        decoder, is_first = self._decoder, True
        while data := (yield from self._read(n_max * decoder.frame_bytes - len(decoder.rest))):
            if is_first:
                rule = "pcm: takes raw samples; sound files come through standard input, -"
                refuse_sound_file(self._path, decoder.rest + data, rule)
            samples = decoder.decode(data)
            if (n := samples.shape[1]) > 0:
                t_first_ns = self._t_first_ns(n)
                self._set_waiting_for("")
                if is_first:
                    yield self._discontinuity(t_first_ns)
                    is_first = False
                self._t_last_ns = t_first_ns + round(n * 1e9 / self.fs)
                yield samples
            if self._pool and (pause_s := self._pause_s(len(data))) > 0.0:
                yield Wait(time.monotonic() + pause_s, self._fd)

    def _pause_s(self, n_read: int) -> float:
        """Return how long the FIFO may fill, to half of it at most; 0 if it was fuller."""
        half = self._pipe_bytes // 2
        pause_s = half / (self.fs * self._decoder.frame_bytes)
        if n_read >= half or pause_s < _LEAST_PAUSE_S:
            return 0.0
        return min(pause_s, max(_LEAST_PAUSE_S, self._ring.relaxed_s))

    def _discontinuity(self, t_first_ns: int) -> Discontinuity:
        """Count the samples missed since the previous writer, if there was one."""
        lost = 0
        if self._t_last_ns is not None:
            # The new writer's first burst may reach back before the end of the old one.
            lost = max(1, round((t_first_ns - self._t_last_ns) * 1e-9 * self.fs))
            self._restarts += 1
            _log.info("%s: written again, %d samples missing", self._path, lost)
        return Discontinuity(lost, t_first_ns)

    def _read(self, n_bytes: int) -> Generator[Wait, None, bytes]:
        """Read available data or wait for it; b"" when the last writer has gone, or if stopped."""
        # NB: read before waiting; a writer that came and went since leaves data but no hang-up.
        while not self._stopping.is_set():
            try:
                data = os.read(self._fd, n_bytes)
            except BlockingIOError:
                yield self._awaited(self._fd, self._path)
            except OSError as error:
                raise InputError(f"{self._path}: {error.strerror}") from error
            else:
                self._note_data()
                return data
        return b""

    def _wait_for_writer(self) -> Generator[Wait, None, bool]:
        """Wait until data is readable; False if stopped."""
        while not self._stopping.is_set():
            reason = self._reopen()
            # A writer may be there already: it waits in its own open for a reader.
            if not reason and (yield from self._await_input(self._fd, self._hand_over_s)):
                return True
            if not self._stopping.is_set():
                self._set_waiting_for(reason or f"no program writes to {self._path}")
            if (yield from self._await_input(self._fd, LOOK_AGAIN_S)):
                return True
        return False

    def _reopen(self) -> str:
        """Reopen the FIFO: after its last writer has gone, the old descriptor only reports the end.

        The new descriptor is opened before the old one is closed, so the FIFO keeps data that a
        writer has already written. Returns why it cannot be opened; "" if it is.
        """
        fd, reason = -1, ""
        self._attempts += 1
        try:
            _check_fifo(self._path)
            fd = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except InputError as error:
            reason = str(error)
        except OSError as error:
            reason = f"{self._path}: {error.strerror}"
        self._close()
        self._fd = fd
        self._pipe_bytes = _capacity(fd) if fd >= 0 else _PIPE_BYTES
        return reason

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def _drop_rest(self) -> None:
        n_bytes, self._decoder.rest = len(self._decoder.rest), b""
        if n_bytes and not self._stopping.is_set():
            self.dropped_bytes += n_bytes
            _log.warning(
                "%s: the writer left %d bytes of an unfinished sample, dropped; %d bytes so far",
                self._path,
                n_bytes,
                self.dropped_bytes,
            )


def _capacity(fd: int) -> int:
    """Return what a FIFO holds [bytes]."""
    if not hasattr(fcntl, "F_GETPIPE_SZ"):
        return _PIPE_BYTES
    try:
        return fcntl.fcntl(fd, fcntl.F_GETPIPE_SZ)
    except OSError:
        return _PIPE_BYTES


def _check_fifo(path: str) -> None:
    try:
        is_fifo = stat.S_ISFIFO(Path(path).stat().st_mode)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    if not is_fifo:
        raise InputError(f"{path}: neither a FIFO nor a file of raw samples")
    # Do not open it to check: a waiting writer would proceed, and its samples would be lost.
    if not os.access(path, os.R_OK):
        raise InputError(f"{path}: {os.strerror(errno.EACCES)}")
