"""The capture process: calls PortAudio on request, and runs at most one stream.

Requests and replies are lines of JSON. A request is ``{"op": NAME, ...}`` on standard input; its
reply ``{"result": ...}`` or ``{"error": {"kind", "text"}}`` goes to standard output. A stream that
ends by itself writes ``{"event": "finished"}`` there at any time. Requests are answered in order;
if one hangs, all hang, and the parent kills this process.
"""

import contextlib
import ctypes
import errno
import gc
import json
import os
import resource
import select
import signal
import sys
import threading
from types import ModuleType
from typing import TYPE_CHECKING, Any

from spectrod.source.capture.ring_writer import RingWriter

if TYPE_CHECKING:
    from collections.abc import Callable
from pathlib import Path

PROBED_RATES = (
    8_000, 11_025, 16_000, 22_050, 32_000, 44_100, 48_000, 64_000, 88_200, 96_000, 176_400, 192_000,
    250_000, 256_000, 352_800, 384_000, 500_000, 705_600, 768_000,
)  # fmt: skip
PROBED_DTYPES = ("int16", "int24", "int32", "float32")

_PR_SET_PDEATHSIG = 1

_REAL_TIME_PRIORITY = 5  # sound servers have 5, JACK 10, the kernel's interrupt threads 50
_SPIN_US = (200_000, 1_000_000)
"""RLIMIT_RTTIME, soft and hard: processor time without a blocking call after which all threads are
demoted, and, if that fails, after which the process ends [us]."""

# portaudio.h, enum PaErrorCode
_UNANTICIPATED_HOST_ERROR = -9999
_KINDS = {
    -9998: "channels",  # paInvalidChannelCount
    -9997: "samplerate",  # paInvalidSampleRate
    -9996: "absent",  # paInvalidDevice
    -9994: "format",  # paSampleFormatNotSupported
    -9993: "absent",  # paBadIODeviceCombination: the error for a device that has gone
    -9991: "block_ms",  # paBufferTooBig
    -9990: "block_ms",  # paBufferTooSmall
    -9985: "busy",  # paDeviceUnavailable
}

# ALSA's errors, reported by PortAudio, are negative errnos.
_HOST_KINDS = {-errno.EBUSY: "busy", -errno.ENODEV: "absent", -errno.ENOENT: "absent"}


def main() -> None:
    """Answer requests until standard input ends; ``argv`` has the parent's process id."""
    parent = int(sys.argv[1])
    # A thread waits for SIGXCPU, as the main thread may hang in a call. Block it before any other
    # thread starts: a single thread that has not blocked it would end the process.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGXCPU})
    threading.Thread(target=_demote_on_rttime, daemon=True).start()
    _die_with(parent)
    # A service manager sends SIGTERM to all processes of a service; the parent decides when this
    # one ends.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = Child(_take_standard_output())
    for line in sys.stdin:
        child.answer(json.loads(line))
    os._exit(0)  # closing PortAudio may hang


def _take_standard_output() -> int:
    """Separate replies from the output of libraries, which goes to standard error from now on."""
    replies = os.dup(1)
    os.dup2(2, 1)
    return replies


def _die_with(parent: int) -> None:
    """End with the parent, even while a call of PortAudio hangs or this process is stopped."""
    if sys.platform == "linux":
        # NB: the kernel sends it when the thread that started this process ends, so that thread
        # must last.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before the call
            os._exit(0)
    threading.Thread(target=_watch_standard_input, daemon=True).start()


def _watch_standard_input() -> None:
    poll = select.poll()
    poll.register(0, 0)  # POLLHUP is always reported
    poll.poll()
    os._exit(0)


def _promote_to_realtime() -> None:
    """Promote the calling thread to SCHED_RR, if it is SCHED_OTHER and the system permits it.

    Otherwise, on a busy machine, a callback may wait for a processor as long as a block lasts.
    """
    if not hasattr(os, "sched_getscheduler"):
        return
    # RLIMIT_RTPRIO or a seccomp filter may cause any error, and an exception in a callback would
    # end the stream.
    with contextlib.suppress(OSError, ValueError):
        if os.sched_getscheduler(0) == os.SCHED_OTHER:
            resource.setrlimit(resource.RLIMIT_RTTIME, _SPIN_US)
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(_REAL_TIME_PRIORITY))


def _demote_on_rttime() -> None:
    """Demote all threads to SCHED_OTHER when one exceeds RLIMIT_RTTIME.

    PortAudio's thread may spin when a device vanishes, or when it is far faster than real time.
    """
    while True:
        signal.sigwait({signal.SIGXCPU})
        for task in Path("/proc/self/task").iterdir():
            with contextlib.suppress(ProcessLookupError):
                os.sched_setscheduler(int(task.name), os.SCHED_OTHER, os.sched_param(0))


class Child:
    """Answers the requests of the parent.

    Parameters
    ----------
    replies : int
        Descriptor that replies are written to.
    """

    def __init__(self, replies: int) -> None:
        self._replies = replies
        self._reply_lock = threading.Lock()
        self._sounddevice: ModuleType | None = None
        self._stream: Any = None
        self._operations: dict[str, Callable[..., Any]] = {
            "scan": self.scan,
            "probe": self.probe,
            "check": self.check,
            "open": self.open,
        }

    def answer(self, request: dict[str, Any]) -> None:
        """Execute a request and reply."""
        operation = self._operations[request.pop("op")]
        try:
            reply = {"result": operation(**request)}
        except _MissingLibraryError as error:
            reply = {"error": {"kind": "library", "text": str(error)}}
        except self._portaudio_errors as error:
            reply = {"error": {"kind": _kind(error), "text": " ".join(str(error).split())}}
        self._write_line(reply)

    def scan(self) -> list[dict[str, Any]]:
        """List the current inputs; PortAudio's own list dates from its start."""
        if self._sounddevice is not None:
            self._sounddevice._terminate()  # noqa: SLF001 - no public way
            self._sounddevice._initialize()  # noqa: SLF001
        portaudio = self._portaudio
        host_apis = portaudio.query_hostapis()
        default = portaudio.default.device[0]
        return [
            {
                "index": index,
                "name": device["name"],
                "host_api": host_apis[device["hostapi"]]["name"],
                "channels": device["max_input_channels"],
                "samplerate": device["default_samplerate"],
                "is_default": index == default,
            }
            for index, device in enumerate(portaudio.query_devices())
            if device["max_input_channels"] > 0
        ]

    def probe(self, device: int) -> dict[str, Any]:
        """Return the rates and formats that a device accepts, and the text of the first refusal."""
        info = self._portaudio.query_devices(device)
        settings = {"device": device, "channels": min(2, info["max_input_channels"])}
        rates = {rate: {"samplerate": rate} for rate in PROBED_RATES}
        formats = {name: {"dtype": name} for name in PROBED_DTYPES}
        errors = {key: self._refusal(settings | own) for key, own in (rates | formats).items()}
        return {
            "rates": [rate for rate in rates if not errors[rate]],
            "formats": [name for name in formats if not errors[name]],
            "error": next(filter(None, errors.values()), ""),
        }

    def _refusal(self, settings: dict[str, Any]) -> str:
        try:
            self._portaudio.check_input_settings(**settings)
        except self._portaudio_errors as error:
            return " ".join(str(error).split())
        return ""

    def check(self, *, host_api: str, exclusive: bool, **settings: Any) -> None:
        """Check whether a device accepts settings; opens no stream."""
        self._portaudio.check_input_settings(
            extra_settings=_extra_settings(self._portaudio, host_api, exclusive), **settings
        )

    def open(
        self,
        *,
        host_api: str,
        exclusive: bool,
        blocksize: int,
        latency_s: float,
        ring: dict[str, int],
        **settings: Any,
    ) -> float:
        """Open and start a stream into a ring of this process's parent; return its latency [s]."""
        write = RingWriter(block_frames=blocksize, **ring).write

        is_urgent = False

        def callback(data: Any, n_frames: int, _time: Any, status: Any) -> None:
            nonlocal is_urgent
            if not is_urgent:
                is_urgent = True
                _promote_to_realtime()
            write(data, n_frames, flagged=bool(status))

        # A garbage collection would delay callbacks, which leave no garbage.
        gc.freeze()
        gc.disable()
        stream = self._portaudio.RawInputStream(
            blocksize=blocksize,
            latency=latency_s or "low",
            extra_settings=_extra_settings(self._portaudio, host_api, exclusive),
            callback=callback,
            finished_callback=lambda: self._write_line({"event": "finished"}),
            **settings,
        )
        try:
            stream.start()
        except self._portaudio_errors:
            stream.close()
            raise
        self._stream = stream  # a collected stream would end
        return float(stream.latency)

    @property
    def _portaudio(self) -> Any:
        if self._sounddevice is None:
            self._sounddevice = _load()
        return self._sounddevice

    @property
    def _portaudio_errors(self) -> tuple[type[Exception], ...]:
        return (self._sounddevice.PortAudioError,) if self._sounddevice else ()

    def _write_line(self, line: dict[str, Any]) -> None:
        data = json.dumps(line).encode() + b"\n"
        with self._reply_lock:  # PortAudio's thread reports the end of a stream
            while data:
                data = data[os.write(self._replies, data) :]


class _MissingLibraryError(Exception):
    """There is no PortAudio on this machine."""


def _load() -> ModuleType:
    try:
        import sounddevice  # noqa: PLC0415 - starts PortAudio, which may hang: only on request
    except OSError as error:
        raise _MissingLibraryError(str(error)) from error
    _take_any_name(sounddevice)
    return sounddevice  # type: ignore[no-any-return]


def _take_any_name(sounddevice: Any) -> None:
    """Make ``query_devices`` accept names that are not UTF-8.

    In sounddevice 0.5.6 one such name causes a UnicodeDecodeError for the list of all devices, and
    for each stream of that device. A byte that is not UTF-8 becomes a lone surrogate (PEP 383).
    """
    query = sounddevice.query_devices

    def query_devices(device: int | None = None, kind: str | None = None) -> Any:
        try:
            return query(device, kind)
        except UnicodeDecodeError:
            info = sounddevice._lib.Pa_GetDeviceInfo(device)  # noqa: SLF001 - no public way
            name = sounddevice._ffi.string(info.name)  # noqa: SLF001
            return {
                "name": name.decode("utf-8", "surrogateescape"),
                "index": device,
                "hostapi": info.hostApi,
                "max_input_channels": info.maxInputChannels,
                "max_output_channels": info.maxOutputChannels,
                "default_low_input_latency": info.defaultLowInputLatency,
                "default_low_output_latency": info.defaultLowOutputLatency,
                "default_high_input_latency": info.defaultHighInputLatency,
                "default_high_output_latency": info.defaultHighOutputLatency,
                "default_samplerate": info.defaultSampleRate,
            }

    sounddevice.query_devices = query_devices


def _extra_settings(sounddevice: Any, host_api: str, exclusive: bool) -> Any:  # noqa: FBT001
    """Return a host API's settings for exclusive use, if any; ALSA's hw is always exclusive."""
    if exclusive and host_api == "Windows WASAPI":
        return sounddevice.WasapiSettings(exclusive=True)
    if exclusive and host_api == "Core Audio":
        return sounddevice.CoreAudioSettings(
            change_device_parameters=True, fail_if_conversion_required=True
        )
    return None


def _kind(error: Exception) -> str:
    """Classify an error of PortAudio by its remedy."""
    code, host_error = (*error.args[1:], None, None)[:2]
    if code is None:  # sounddevice's own error: an index that does not exist any more
        return "absent"
    if code == _UNANTICIPATED_HOST_ERROR and host_error:
        return _HOST_KINDS.get(host_error[1], "failed")
    return _KINDS.get(code, "failed")
