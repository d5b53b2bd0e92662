"""The sound card, through PortAudio, in its simplest form: one stream in this process."""

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from spectrod.errors import SpectrodError, UnavailableError
from spectrod.ring import SampleRing
from spectrod.source.naming import topic_name
from spectrod.stats import CaptureStats

PORTAUDIO_PACKAGE = "libportaudio2"
_BLOCK_SECONDS = 0.01
_DEFAULT_CHANNELS = 2


@dataclass(frozen=True, slots=True)
class InputDevice:
    """An audio input as PortAudio lists it."""

    index: int
    name: str
    host_api: str
    channels: int
    samplerate: float
    is_default: bool


def load_portaudio() -> Any:
    """Import sounddevice, which starts PortAudio; raises UnavailableError without the library."""
    # ALSA's library writes its search for cards, found or not, to descriptor 2 as PortAudio starts.
    with _silent_stderr():
        try:
            import sounddevice  # noqa: PLC0415 - starts PortAudio, so not before a card is wanted
        except OSError as error:
            raise UnavailableError(
                f"soundcard: PortAudio's library is missing: install the package "
                f"{PORTAUDIO_PACKAGE} (its name on Debian and Ubuntu)"
            ) from error
    return sounddevice


@contextlib.contextmanager
def _silent_stderr() -> Iterator[None]:
    saved = os.dup(2)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(null)


def list_inputs() -> list[InputDevice]:
    """List the audio inputs; raises UnavailableError where PortAudio's library is missing."""
    sounddevice = load_portaudio()
    host_apis = sounddevice.query_hostapis()
    default = sounddevice.default.device[0]
    return [
        InputDevice(
            index,
            device["name"],
            host_apis[device["hostapi"]]["name"],
            device["max_input_channels"],
            device["default_samplerate"],
            index == default,
        )
        for index, device in enumerate(sounddevice.query_devices())
        if device["max_input_channels"] > 0
    ]


def choose_input(wanted: str, inputs: list[InputDevice]) -> InputDevice:
    """Find an input by index or else part of its name; "" means the default.

    Raises
    ------
    UnavailableError
        If there is none, with the list of what there is.
    """
    if not inputs:
        raise UnavailableError("soundcard: no audio input on this machine")
    if not wanted:
        return next((device for device in inputs if device.is_default), inputs[0])
    for device in inputs:
        if wanted == str(device.index):
            return device
    for device in inputs:
        if wanted.lower() in device.name.lower():
            return device
    known = ", ".join(f"{device.index} {device.name!r}" for device in inputs)
    raise UnavailableError(f"soundcard:{wanted}: no such audio input; there are {known}")


class SoundCardSource:
    """A PortAudio input; its callback copies samples into the ring and counts, nothing else.

    Parameters
    ----------
    wanted : str
        Part of the device's name, its index, or "" for the default.
    samplerate : int
        [Hz]; 0 takes the device's default.
    channels : int
        0 takes all that the device has, at most 2.

    Raises
    ------
    UnavailableError
        If there is no such device, or it does not take this rate and number of channels.
    """

    n_samples: int | None = None
    start_utc_ns: int | None = None
    is_live = True

    def __init__(self, wanted: str = "", samplerate: int = 0, channels: int = 0) -> None:
        self._sounddevice = load_portaudio()
        device = choose_input(wanted, list_inputs())
        self.name = topic_name(device.name)
        self.fs = float(samplerate or device.samplerate)
        self.channels = channels or min(device.channels, _DEFAULT_CHANNELS)
        self.description = f"sound card {device.name!r} ({device.host_api})"
        self.failure: SpectrodError | None = None
        self._device = device
        self._stream: Any = None
        self._stopping = False
        self._call("check", self._sounddevice.check_input_settings, **self._settings())

    def start(self, ring: SampleRing) -> None:
        """Open the device and begin."""

        def callback(indata: Any, n: int, _time: Any, status: Any) -> None:
            # PortAudio's own times follow the wall clock on some systems, so they are not used.
            age_ns = round(n * 1e9 / self.fs)
            ring.write(
                indata.T,
                ring.written,
                time.monotonic_ns() - age_ns,
                time.time_ns() - age_ns,
                overflow=status.input_overflow,
            )

        def finished() -> None:
            if not self._stopping:
                self.failure = UnavailableError(f"{self.description}: stopped delivering")
            ring.close()

        self._stream = self._call(
            "open",
            self._sounddevice.InputStream,
            blocksize=round(self.fs * _BLOCK_SECONDS),
            callback=callback,
            finished_callback=finished,
            **self._settings(),
        )
        self._call("start", self._stream.start)

    def stop(self) -> None:
        """Stop and close the device."""
        self._stopping = True
        # PortAudio frees what it closes: closing it again would use freed memory.
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    def capture(self) -> CaptureStats:
        """Take a snapshot of how samples arrive."""
        return CaptureStats()

    def _settings(self) -> dict[str, Any]:
        return {
            "device": self._device.index,
            "samplerate": self.fs,
            "channels": self.channels,
            "dtype": "float32",
        }

    def _call(self, what: str, function: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except self._sounddevice.PortAudioError as error:
            text = " ".join(str(error).split())
            raise UnavailableError(
                f"{self.description}: cannot {what} at {self.fs:g} Hz, "
                f"{self.channels} channels: {text}"
            ) from error
