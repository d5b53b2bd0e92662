"""The daemon's side of the capture process: starts it, queries it, reads its blocks, kills it."""

import contextlib
import dataclasses
import mmap
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from spectrod.capture.layout import WAKE_READ_BYTES, Layout, RawBlock, RingReader, callback_cost_us
from spectrod.config import PcmFormat
from spectrod.errors import UnavailableError
from spectrod.source.childprocess import ChildProcess
from spectrod.source.pcm import BYTES_PER_SAMPLE, NATIVE_FORMATS
from spectrod.wakeup import Wakeup

PORTAUDIO_PACKAGE = "libportaudio2"
_NAME = "capture process"
_ANSWER_S = 5.0
_STREAM_ENDED = "the sound system has ended the stream"
_REQUESTS_A_CHILD = 40


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """Requested parameters of a stream.

    Attributes
    ----------
    device : int
        Index in the list that the last ``scan`` returned.
    host_api : str
        Name of the device's host API.
    samplerate : float
        [Hz].
    channels : int
    format : str
        A key of ``NATIVE_FORMATS``.
    block_frames : int
        Samples per channel in each block.
    latency_s : float
        Latency [s]; 0 selects the lowest that PortAudio considers safe.
    exclusive : bool
        Deny other programs the device, by means of the host API.
    """

    device: int
    host_api: str
    samplerate: float
    channels: int
    format: PcmFormat
    block_frames: int
    latency_s: float = 0.0
    exclusive: bool = False

    @property
    def layout(self) -> Layout:
        """Layout of the shared ring."""
        frame_bytes = BYTES_PER_SAMPLE[self.format] * self.channels
        return Layout.of_stream(self.samplerate, self.block_frames, frame_bytes)


class _RefusedError(UnavailableError):
    """PortAudio refused a request; ``spectrod.capture.child`` defines ``kind``."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


_REFUSALS = {
    "absent": "is not there",
    "busy": "is busy: another program has it",
    "samplerate": "does not take samplerate={settings.samplerate:g}",
    "channels": "does not give channels={settings.channels}",
    "format": "does not give format={settings.format}",
    "block_ms": "does not take blocks of {settings.block_frames} samples",
}


class CaptureProcess:
    """PortAudio in a separate process, started on demand and restarted when it fails.

    A process serves many requests and one stream. It is killed when it does not answer within 5 s.
    ``scan`` starts a new process if there is none, if the old one has had a stream, and after 40
    requests.
    Used by one thread, which must outlive it: the system kills the process when the thread that
    started it ends.
    """

    def __init__(self) -> None:
        self._child: ChildProcess | None = None
        self._ring: _SharedRing | None = None
        self._requests = 0
        self._is_streaming = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """Process id; None if there is no process."""
        return self._child.pid if self._child else None

    def scan(self, stop: Wakeup | None = None) -> list[dict[str, Any]]:
        """List the audio inputs that are present.

        Parameters
        ----------
        stop : Wakeup, optional
            Setting it ends the wait with an UnavailableError; the same holds for all these methods.

        Returns
        -------
        inputs : list of dict
            Each with ``index name host_api channels samplerate is_default``.

        Raises
        ------
        UnavailableError
            If PortAudio's library is missing, or the process does not answer within 5 s.
        """
        if self._is_streaming or self._requests >= _REQUESTS_A_CHILD:
            self.close()
        try:
            return list(self._ask("scan", stop))
        except _RefusedError:  # a PortAudio that failed to start stays failed
            self.close()
            raise

    def probe(self, device: int, stop: Wakeup | None = None) -> dict[str, Any]:
        """Query the capabilities of a device of the newest scan.

        Returns
        -------
        answer : dict
            ``rates`` [Hz]; ``formats``, keys of ``NATIVE_FORMATS``; ``error``, the text of the
            first refusal.

        Raises
        ------
        UnavailableError
            If the process does not answer within 5 s.
        """
        answer = self._ask("probe", stop, device=device)
        formats = [name for name, dtype in NATIVE_FORMATS.items() if dtype in answer["formats"]]
        return {**answer, "formats": formats}

    def check(self, settings: StreamSettings, stop: Wakeup | None = None) -> None:
        """Check that a device accepts settings; the UnavailableError names the rejected value."""
        self._ask_of("check", settings, stop)

    def open(self, settings: StreamSettings, stop: Wakeup | None = None) -> float:
        """Open a stream; ``wait`` returns its blocks.

        Returns
        -------
        latency : float
            Latency as PortAudio reports it [s].

        Raises
        ------
        UnavailableError
            If PortAudio refuses: the device is absent or busy, or it rejects a value.
        """
        assert self._ring is not None, "a device's index is of a scan"
        assert not self._is_streaming, "a process has one stream"
        layout = settings.layout
        self._ring.divide(layout)
        latency_s = self._ask_of(
            "open",
            settings,
            stop,
            blocksize=settings.block_frames,
            latency_s=settings.latency_s,
            layout=dataclasses.astuple(layout),
        )
        self._is_streaming = True
        return float(latency_s)

    def wait(self, timeout_s: float, stop: Wakeup | None = None) -> list[RawBlock]:
        """Wait for blocks of the stream.

        Blocks not fetched in time are overwritten; the ``frame`` of the next block reveals it.

        Returns
        -------
        blocks : list of RawBlock
            The oldest blocks, at most a quarter of the ring; empty on timeout or if stopped.

        Raises
        ------
        UnavailableError
            If the stream or the process has ended and all its blocks were returned.
        """
        assert self._child is not None
        assert self._ring is not None
        deadline_s = time.monotonic() + timeout_s
        bell, others = self._ring.bell, [stop.fileno()] if stop else []
        while True:
            if not self._ring.reader.has_unread:
                ready = self._child.poll(deadline_s, bell, *others)
                if not ready or not ready.isdisjoint(others):
                    return []
                if bell not in ready:
                    self._hear_end(deadline_s, stop)
            if blocks := self._ring.reader.read():
                return blocks

    def _hear_end(self, deadline_s: float, stop: Wakeup | None) -> None:
        assert self._child is not None
        try:
            self._child.take_line(deadline_s, stop)
        finally:
            self.close()
        raise UnavailableError(_STREAM_ENDED)

    def callback_cost_us(self, quantile: float) -> float | None:
        """Return a quantile of the callbacks' duration [us]; see ``spectrod.capture.layout``."""
        ring = self._ring  # the owning thread may close the ring meanwhile
        return ring.callback_cost_us(quantile) if ring else None

    def close(self) -> None:
        """Kill the process without blocking for long. The next scan starts another."""
        if self._child:
            self._child.kill()
        if self._ring:
            self._ring.close()
        self._child = self._ring = None
        self._is_streaming = False

    def _ask_of(
        self, operation: str, settings: StreamSettings, stop: Wakeup | None, **more: Any
    ) -> Any:
        """Send a request about a device; a refusal becomes one line naming the cause."""
        try:
            return self._ask(operation, stop, **_as_parameters(settings), **more)
        except _RefusedError as error:
            reason = _REFUSALS.get(error.kind, "cannot be opened").format(settings=settings)
            raise UnavailableError(f"{reason} ({error})") from error

    def _ask(self, operation: str, stop: Wakeup | None, **parameters: Any) -> Any:
        self._requests += 1
        try:
            child = self._child or self._make()
            reply = child.ask({"op": operation, **parameters}, _ANSWER_S, stop)
        except UnavailableError:
            self.close()
            raise
        if "event" in reply:  # a stream may end before "open" is answered
            self.close()
            raise UnavailableError(_STREAM_ENDED)
        if "error" not in reply:
            return reply["result"]
        kind, text = reply["error"]["kind"], reply["error"]["text"]
        if kind == "library":
            raise UnavailableError(
                f"soundcard: PortAudio's library is missing: install the package "
                f"{PORTAUDIO_PACKAGE} (its name on Debian and Ubuntu)"
            )
        raise _RefusedError(kind, text)

    def _make(self) -> ChildProcess:
        # NB: each process gets a ring of its own: a stopped one that resumes writes into memory
        # that nobody reads.
        self._requests = 1
        try:
            self._ring = ring = _SharedRing()
        except OSError as error:
            raise UnavailableError(f"{_NAME}: cannot be started: {error.strerror}") from error
        fds = (ring.memory, ring.bell_rope)
        arguments = map(str, (os.getpid(), *fds))
        command = [sys.executable, "-P", "-m", "spectrod.capture", *arguments]
        # Do not let PortAudio start a JACK server.
        env = os.environ | {"JACK_NO_START_SERVER": "1"}
        self._child = ChildProcess(command, _NAME, env, fds)
        return self._child


class _SharedRing:
    """Memory and wake-up descriptors of a ring, which a child process inherits."""

    def __init__(self) -> None:
        self.memory = _anonymous_memory()
        try:
            self.bell, self.bell_rope = _bell()
        except OSError:
            os.close(self.memory)
            raise
        self._map: mmap.mmap | None = None

    def divide(self, layout: Layout) -> None:
        """Resize the memory to fit a ring, and map it."""
        self._unmap()
        try:
            os.ftruncate(self.memory, layout.size)
            self._map = mmap.mmap(self.memory, layout.size, prot=mmap.PROT_READ)
        except OSError as error:
            size = f"{layout.size / 2**20:.0f} MiB"
            raise UnavailableError(f"no memory for a ring of {size}: {error.strerror}") from error
        with contextlib.suppress(BlockingIOError):  # drain wake-ups of a stream that failed to open
            os.read(self.bell, WAKE_READ_BYTES)
        self.reader = RingReader(layout, self._map, self.bell)

    def callback_cost_us(self, quantile: float) -> float | None:
        """See ``spectrod.capture.layout``."""
        try:
            return callback_cost_us(self._map, quantile) if self._map else None
        except ValueError:  # the owning thread unmapped it meanwhile
            return None

    def _unmap(self) -> None:
        if self._map:
            self._map.close()

    def close(self) -> None:
        """Unmap the memory and close all descriptors."""
        self._unmap()
        for fd in {self.memory, self.bell, self.bell_rope}:
            os.close(fd)


def _bell() -> tuple[int, int]:
    """Create a wake-up channel; returns its read and its write descriptor."""
    if hasattr(os, "eventfd"):
        bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        return bell, bell
    bell, rope = os.pipe()
    os.set_blocking(bell, False)
    os.set_blocking(rope, False)
    return bell, rope


def _anonymous_memory() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("spectrod-capture")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _as_parameters(settings: StreamSettings) -> dict[str, Any]:
    """Convert settings to sounddevice's parameters, plus the other values that the child needs."""
    return {
        "device": settings.device,
        "host_api": settings.host_api,
        "samplerate": settings.samplerate,
        "channels": settings.channels,
        "dtype": NATIVE_FORMATS[settings.format],
        "exclusive": settings.exclusive,
    }
