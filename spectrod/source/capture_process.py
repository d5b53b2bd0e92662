"""The daemon's side of the capture process: starts it, asks it, reads its blocks, ends it."""

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
    """What a stream is asked for.

    Attributes
    ----------
    device : int
        Index in the list that ``scan`` returned last.
    host_api : str
        Its host API's name.
    samplerate : float
        [Hz].
    channels : int
    format : str
        A key of ``NATIVE_FORMATS``.
    block_frames : int
        Samples a channel in each block.
    latency_s : float
        0 for the least that PortAudio calls safe [s].
    exclusive : bool
        Keep others from the device, by the host API's own means.
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
        """Of the shared ring."""
        frame_bytes = BYTES_PER_SAMPLE[self.format] * self.channels
        return Layout.of_stream(self.samplerate, self.block_frames, frame_bytes)


class _RefusedError(UnavailableError):
    """PortAudio said no; ``kind`` as ``spectrod.capture.child`` sorts it."""

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
    """PortAudio in a process of its own, made when it is needed and made anew when it fails.

    A process serves many requests and one stream. It is killed when it does not answer within 5 s;
    a scan makes another where there is none, where its stream has begun, and after 40 requests.
    Used by one thread, which must outlive it: the system ends the process with the thread that
    started it.
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
        """Of the process, if there is one."""
        return self._child.pid if self._child else None

    def scan(self, stop: Wakeup | None = None) -> list[dict[str, Any]]:
        """List the audio inputs that there are now.

        Parameters
        ----------
        stop : Wakeup, optional
            Ends the wait when it is set, with an UnavailableError; so in all these methods.

        Returns
        -------
        inputs : list of dict
            Each with ``index name host_api channels samplerate is_default``.

        Raises
        ------
        UnavailableError
            If PortAudio's library is missing, or there is no answer within 5 s.
        """
        if self._is_streaming or self._requests >= _REQUESTS_A_CHILD:
            self.close()
        try:
            return list(self._ask("scan", stop))
        except _RefusedError:  # PortAudio did not start, and does not once it has failed to
            self.close()
            raise

    def probe(self, device: int, stop: Wakeup | None = None) -> dict[str, Any]:
        """Ask what a device of the newest scan takes.

        Returns
        -------
        answer : dict
            ``rates`` [Hz]; ``formats``, keys of ``NATIVE_FORMATS``; ``error``, the text of the
            first refusal.

        Raises
        ------
        UnavailableError
            If there is no answer within 5 s.
        """
        answer = self._ask("probe", stop, device=device)
        formats = [name for name, dtype in NATIVE_FORMATS.items() if dtype in answer["formats"]]
        return {**answer, "formats": formats}

    def check(self, settings: StreamSettings, stop: Wakeup | None = None) -> None:
        """Ask whether a device takes settings; raises UnavailableError, which names the value."""
        self._ask_of("check", settings, stop)

    def open(self, settings: StreamSettings, stop: Wakeup | None = None) -> float:
        """Begin a stream, whose blocks ``wait`` returns.

        Returns
        -------
        latency : float
            As PortAudio reckons it [s].

        Raises
        ------
        UnavailableError
            If PortAudio says no: absent, busy, or which value it refuses.
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

        Blocks that were not fetched in time are overwritten: the next one's ``frame`` tells.

        Returns
        -------
        blocks : list of RawBlock
            The oldest, a quarter of the ring at most; empty after the time, or if stopped.

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
        """Say how long the stream's callbacks take, see ``spectrod.capture.layout`` [us]."""
        ring = self._ring  # its own thread may close it meanwhile
        return ring.callback_cost_us(quantile) if ring else None

    def close(self) -> None:
        """Kill the process; never blocks for long. A scan makes another."""
        if self._child:
            self._child.kill()
        if self._ring:
            self._ring.close()
        self._child = self._ring = None
        self._is_streaming = False

    def _ask_of(
        self, operation: str, settings: StreamSettings, stop: Wakeup | None, **more: Any
    ) -> Any:
        """Ask about a device; PortAudio's refusal becomes one line that names what it is about."""
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
        if "event" in reply:  # a stream may end before it was said to be open
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
        # NB: a ring for each process, so that one that was stopped and wakes up writes into
        # nobody's memory.
        self._requests = 1
        try:
            self._ring = ring = _SharedRing()
        except OSError as error:
            raise UnavailableError(f"{_NAME}: cannot be started: {error.strerror}") from error
        fds = (ring.memory, ring.bell_rope)
        arguments = map(str, (os.getpid(), *fds))
        command = [sys.executable, "-P", "-m", "spectrod.capture", *arguments]
        # A JACK server is not a thing to be started by who listens.
        env = os.environ | {"JACK_NO_START_SERVER": "1"}
        self._child = ChildProcess(command, _NAME, env, fds)
        return self._child


class _SharedRing:
    """Memory and bell of a ring; descriptors that a child process inherits."""

    def __init__(self) -> None:
        self.memory = _anonymous_memory()
        try:
            self.bell, self.bell_rope = _bell()
        except OSError:
            os.close(self.memory)
            raise
        self._map: mmap.mmap | None = None

    def divide(self, layout: Layout) -> None:
        """Give the memory the size of a ring, and map it."""
        self._unmap()
        try:
            os.ftruncate(self.memory, layout.size)
            self._map = mmap.mmap(self.memory, layout.size, prot=mmap.PROT_READ)
        except OSError as error:
            size = f"{layout.size / 2**20:.0f} MiB"
            raise UnavailableError(f"no memory for a ring of {size}: {error.strerror}") from error
        with contextlib.suppress(BlockingIOError):  # of a stream that broke off when it was opened
            os.read(self.bell, WAKE_READ_BYTES)
        self.reader = RingReader(layout, self._map, self.bell)

    def callback_cost_us(self, quantile: float) -> float | None:
        """See ``spectrod.capture.layout``."""
        try:
            return callback_cost_us(self._map, quantile) if self._map else None
        except ValueError:  # unmapped meanwhile, by the thread that it belongs to
            return None

    def _unmap(self) -> None:
        if self._map:
            self._map.close()

    def close(self) -> None:
        """Give everything back."""
        self._unmap()
        for fd in {self.memory, self.bell, self.bell_rope}:
            os.close(fd)


def _bell() -> tuple[int, int]:
    """Make a bell; returns the descriptors to hear it and to ring it by."""
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
    """Write settings as sounddevice's parameters, with what else the child needs to know."""
    return {
        "device": settings.device,
        "host_api": settings.host_api,
        "samplerate": settings.samplerate,
        "channels": settings.channels,
        "dtype": NATIVE_FORMATS[settings.format],
        "exclusive": settings.exclusive,
    }
