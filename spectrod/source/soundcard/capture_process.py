"""The daemon's side of the capture process: starts it, queries it, reads its blocks, kills it."""

import os
import sys
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

from spectrod.config.config import PcmFormat
from spectrod.dsp.sample_layout import SampleLayout
from spectrod.lib.errors import UnavailableError
from spectrod.lib.wakeup import Wakeup
from spectrod.source.capture.ring_writer import RECORD, RECORDS_BYTES
from spectrod.source.files.codings import NATIVE_FORMATS
from spectrod.source.shared_samples import SharedSamples
from spectrod.source.soundcard.callback_costs import CallbackCosts
from spectrod.source.soundcard.childprocess import ChildProcess

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
    def layout(self) -> SampleLayout:
        """Layout of the samples that the stream delivers."""
        return SampleLayout(NATIVE_FORMATS[self.format], self.channels, interleaved=True)


class BlockRecord(NamedTuple):
    """The block of one PortAudio callback, whose samples are in the ring; see ``RECORD``."""

    position: int
    t_mono_ns: int
    n_samples: int
    flagged: bool

    @property
    def stop(self) -> int:
        """Position after its last sample."""
        return self.position + self.n_samples


class _RefusedError(UnavailableError):
    """PortAudio refused a request; ``spectrod.source.capture.capture_child`` defines ``kind``."""

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

    Parameters
    ----------
    shared : SharedSamples, optional
        Memory of the ring that streams are written to, one after another; needed for ``open``.
    requests_max : int
        Requests to one process: PortAudio restarts for each.

    Attributes
    ----------
    answer_s : float
        Time after which a process that has not answered is killed [s].
    """

    def __init__(
        self, shared: SharedSamples | None = None, *, requests_max: int = _REQUESTS_A_CHILD
    ) -> None:
        self.answer_s = _ANSWER_S
        self._shared, self._requests_max = shared, requests_max
        self._child: ChildProcess | None = None
        self._records_fds: tuple[int, int] | None = None
        self._costs = CallbackCosts()
        self._requests = 0
        self._is_streaming = False

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
        if self._is_streaming or self._requests >= self._requests_max:
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
        """Open a stream into the ring; ``wait`` returns the records of its blocks.

        Returns
        -------
        latency : float
            Latency as PortAudio reports it [s].

        Raises
        ------
        UnavailableError
            If PortAudio refuses: the device is absent or busy, or it rejects a value.
        """
        assert self._shared is not None, "a stream needs a ring"
        assert self._records_fds is not None, "a device's index is of a scan"
        assert not self._is_streaming, "a process has one stream"
        self._costs = CallbackCosts()
        self._read_records()  # of a stream that failed to open
        latency_s = self._ask_of(
            "open",
            settings,
            stop,
            blocksize=settings.block_frames,
            latency_s=settings.latency_s,
            ring={**self._shared.for_writer(), "records_fd": self._records_fds[1]},
        )
        self._is_streaming = True
        return float(latency_s)

    def pause(self, longest_s: float, stop: Wakeup, hurry: Wakeup) -> None:
        """Let blocks of the stream wait [s], until it ends or a flag is set; clears ``hurry``."""
        assert self._child is not None
        deadline_s = time.monotonic() + longest_s
        if hurry.fileno() in self._child.poll(deadline_s, stop.fileno(), hurry.fileno()):
            hurry.clear()

    def wait(self, timeout_s: float, stop: Wakeup | None = None) -> list[BlockRecord]:
        """Wait for blocks of the stream.

        Returns
        -------
        blocks : list of BlockRecord
            The oldest ones, at most 2048; empty on timeout or if stopped. Records may be missing
            if 2048 were not fetched; the samples of these blocks are in the ring all the same.

        Raises
        ------
        UnavailableError
            If the stream or the process has ended and all its blocks were returned.
        """
        assert self._child is not None
        assert self._records_fds is not None
        deadline_s = time.monotonic() + timeout_s
        records_fd, others = self._records_fds[0], [stop.fileno()] if stop else []
        ready = self._child.poll(deadline_s, records_fd, *others)
        if not ready or not ready.isdisjoint(others):
            return []
        if records_fd in ready:
            return self._read_records()
        try:
            self._child.take_line(deadline_s, stop)
        finally:
            self.close()
        raise UnavailableError(_STREAM_ENDED)

    def _read_records(self) -> list[BlockRecord]:
        assert self._records_fds is not None
        try:
            data = os.read(self._records_fds[0], RECORDS_BYTES)
        except BlockingIOError:
            return []
        records = []
        for position, t_mono_ns, cost_ns, n_samples, flagged in RECORD.iter_unpack(data):
            if cost_ns:  # of the callback before; the first has none
                self._costs.add(cost_ns)
            records.append(BlockRecord(position, t_mono_ns, n_samples, bool(flagged)))
        return records

    def callback_cost_us(self, quantile: float) -> float | None:
        """Return a quantile of the callbacks' duration [us]; None without a running stream."""
        return self._costs.quantile_us(quantile)

    def close(self) -> None:
        """Kill the process without blocking for long. The next scan starts another."""
        if self._child:
            self._child.kill()
        for fd in self._records_fds or ():
            os.close(fd)
        self._child = self._records_fds = None
        self._is_streaming = False
        self._costs = CallbackCosts()

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
            reply = child.ask({"op": operation, **parameters}, self.answer_s, stop)
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
        # Each process has a pipe of its own: another one's records are never read.
        self._requests = 1
        try:
            self._records_fds = os.pipe()
        except OSError as error:
            raise UnavailableError(f"{_NAME}: cannot be started: {error.strerror}") from error
        for fd in self._records_fds:
            os.set_blocking(fd, False)
        fds = (self._records_fds[1], *(self._shared.fds if self._shared else ()))
        command = [sys.executable, "-P", "-m", "spectrod.source.capture", str(os.getpid())]
        # Do not let PortAudio start a JACK server.
        env = os.environ | {"JACK_NO_START_SERVER": "1"}
        self._child = ChildProcess(command, _NAME, env, fds)
        return self._child


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
