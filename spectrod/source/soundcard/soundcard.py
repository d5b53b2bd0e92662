"""The sound card, through PortAudio in a separate process."""

from collections.abc import Callable
from contextlib import closing

from spectrod.config.config import SourceConfig
from spectrod.dsp.sample_layout import SampleLayout
from spectrod.lib.errors import ConfigError, SpectrodError, UnavailableError
from spectrod.lib.stats import CaptureStats
from spectrod.source.channels import select_channels
from spectrod.source.files.codings import NATIVE_FORMATS
from spectrod.source.left_out import LeftOut
from spectrod.source.ring import SampleRing, default_capacity
from spectrod.source.shared_samples import SharedSamples
from spectrod.source.soundcard.capture_process import CaptureProcess, StreamSettings
from spectrod.source.soundcard.devices import (
    InputDevice,
    choose_input,
    describe_inputs,
    lasting_selector,
    parse_selector,
)
from spectrod.source.soundcard.supervisor import Supervisor

_DEFAULT_CHANNELS = 2


class SoundCardSource:
    """An input of a sound card that may be unplugged and return.

    If the device disappears, the source waits for the same device without a limit and keeps rate
    and channels; see ``Supervisor``. ``CaptureIndex`` lists the kinds of losses.

    Parameters
    ----------
    text : str
        Selects the device; see ``spectrod.source.soundcard.devices.parse_selector``.
    settings : SourceConfig
        A rate of 0 selects the device's default; 0 channels select its first two, or as many as
        ``select`` needs.

    Raises
    ------
    ConfigError
        If a setting is invalid.
    UnavailableError
        If the device is missing or busy, or rejects these settings.
    """

    is_iq: bool = False
    speakers: tuple[str, ...] = ()
    center_frequency_hz: float = 0.0
    n_samples: int | None = None
    start_utc_ns: int | None = None
    is_live = True
    is_stored = False

    def __init__(self, text: str, settings: SourceConfig) -> None:
        selector = parse_selector(text)
        with closing(CaptureProcess()) as process:
            device = choose_input(selector, describe_inputs(process.scan()))
            self.description = f"sound card {device.name!r} ({device.host_api})"
            self._settings = _stream_settings(device, settings)
            try:
                process.check(self._settings)
            except UnavailableError as error:
                raise UnavailableError(f"{self.description}: {error}") from error
        self._selected = select_channels(settings, self._settings.channels)
        self._selector = lasting_selector(device)
        self.name = selector.topic_name()
        self.fs, self.channels = self._settings.samplerate, len(self._selected)
        # Planar layout: frames are read more often than samples are written.
        self.layout = SampleLayout(NATIVE_FORMATS[self._settings.format], self.channels)
        self.failure: SpectrodError | None = None
        self.left_out = LeftOut()
        self._supervisor: Supervisor | None = None
        self._is_stopped = False

    def open_memory(self) -> SharedSamples:
        """Create the memory of a ring for all channels of the device."""
        settings = self._settings
        return SharedSamples(
            settings.layout, default_capacity(self.fs), self._selected, settings.block_frames
        )

    def open_reader(self) -> SampleRing:
        """Create a ring that capture processes fill."""
        return SampleRing(self.fs, self.layout, shared=self.open_memory())

    def start(self, reader: SampleRing, on_change: Callable[[], None] = lambda: None) -> None:
        """Start to fill the ring from a thread and a process; see ``Source``."""

        def end(failure: SpectrodError | None) -> None:
            self.failure = failure
            reader.close()

        self._supervisor = Supervisor(
            self.description,
            self._selector,
            self._settings,
            reader,
            on_change=on_change,
            on_end=end,
        )
        self._supervisor.start()

    def stop(self) -> None:
        """Stop thread and process within a second; may be called twice, and before the start."""
        if self._supervisor and not self._is_stopped:
            self._is_stopped = True
            self._supervisor.stop()

    def capture(self) -> CaptureStats:
        """Return a snapshot of the capture statistics; any thread may call it."""
        return self._supervisor.capture() if self._supervisor else CaptureStats()

    def callback_cost_us(self, quantile: float) -> float | None:
        """Return a quantile of the durations of PortAudio's callbacks [us]; see ``CallbackCosts``.

        None without a running stream.
        """
        return self._supervisor.callback_cost_us(quantile) if self._supervisor else None


def _stream_settings(device: InputDevice, settings: SourceConfig) -> StreamSettings:
    """Replace unset settings by the device's defaults."""
    format_ = settings.format or "f32le"
    if format_ not in NATIVE_FORMATS:
        known = ", ".join(NATIVE_FORMATS)
        raise ConfigError(f"source.format={format_}: a sound card gives one of {known}")
    if settings.exclusive:
        _check_exclusive(device)
    samplerate = float(settings.samplerate or device.samplerate)
    needed = max(settings.select, default=0) + 1
    return StreamSettings(
        device=device.index,
        host_api=device.host_api,
        samplerate=samplerate,
        channels=settings.channels or max(min(device.channels, _DEFAULT_CHANNELS), needed),
        format=format_,
        block_frames=max(1, round(samplerate * settings.block_ms * 1e-3)),
        latency_s=settings.latency_ms * 1e-3,
        exclusive=settings.exclusive,
    )


def _check_exclusive(device: InputDevice) -> None:
    """Refuse exclusive mode where it is unavailable, instead of sharing the device."""
    if device.host_api in ("Windows WASAPI", "Core Audio"):
        return
    if device.host_api == "ALSA" and "(hw:" in device.name:
        return  # a hw device is always exclusive
    rule = "only a hw device is, of ALSA's" if device.host_api == "ALSA" else "it is always shared"
    raise ConfigError(f"source.exclusive=true: {device.name!r} ({device.host_api}): {rule}")
