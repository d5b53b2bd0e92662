"""Where samples come from: one function opens them all."""

import logging
import stat
from pathlib import Path

from spectrod.config import Pace, PcmFormat, SourceConfig
from spectrod.errors import ConfigError, InputError, UnavailableError
from spectrod.names import check_name
from spectrod.settings import RATE_DEFAULT_HZ
from spectrod.source.base import SPAN_MAX_S, YEAR_S, PulledSource, Source
from spectrod.source.channels import select_channels
from spectrod.types import CHANNELS_MAX

__all__ = ["Pace", "Source", "check_uri", "open_source"]

_log = logging.getLogger(__name__)

TEST_SIGNAL = "sine,1000,-20"
"""What ``auto`` takes where there is no sound card: it proves the numbers at a glance."""


def open_source(settings: SourceConfig, pace: Pace | None = None) -> Source:
    """Make the source that a URI names; it delivers after its ``start``.

    Parameters
    ----------
    settings : SourceConfig
        ``default.toml`` describes the forms of its ``uri``.
    pace : {"realtime", "full"}, optional
        In place of ``settings.pace``; for files and test signals, since sound cards and pipes have
        their own.

    Returns
    -------
    source : Source
        With sample rate known, and channels: those that are selected.

    Raises
    ------
    ConfigError, InputError, UnavailableError
        If the URI is malformed, the file unusable, the device not there.
    """
    _check_text(settings.uri)
    source = _open(settings, pace or settings.pace)
    if isinstance(source, PulledSource):
        source.select(select_channels(settings, source.channels))
    source.is_iq |= settings.is_iq
    source.center_frequency_hz = settings.center_frequency_hz or source.center_frequency_hz
    if source.center_frequency_hz and not source.is_iq:
        raise ConfigError(
            f"source.center_frequency_hz={source.center_frequency_hz:.15g}: needs I/Q samples: "
            "iq, or a format such as cu8"
        )
    if settings.name:
        source.name = check_name("source.name", settings.name)
    return source


def check_uri(settings: SourceConfig) -> None:
    """Check what a URI says by itself, without opening a file or a device.

    Raises
    ------
    ConfigError
        If it is malformed.
    """
    kind, _, rest = settings.uri.partition(":")
    _check_text(settings.uri)
    if kind == "signal":
        _open_signal(settings, rest, "full")
    elif kind == "soundcard":
        from spectrod.source.devices import parse_wanted  # noqa: PLC0415 - as below

        parse_wanted(rest)
    elif kind == "pcm":
        _check_pcm(rest)
    else:
        _check_scheme(settings.uri)


def _check_text(uri: str) -> None:
    if "\0" in uri:
        raise ConfigError(f"source.uri={uri!r}: must not hold a NUL character")


def _check_pcm(path: str) -> None:
    if not path:
        raise ConfigError("pcm:: must be pcm:PATH, a FIFO or a file of raw samples")


def _check_scheme(uri: str) -> None:
    if "://" in uri:
        raise ConfigError(
            f"{uri}: must be a sound file, a folder of them, -, pcm:PATH, "
            "signal:KIND,..., soundcard[:NAME] or auto"
        )


def _open(settings: SourceConfig, pace: Pace) -> Source:
    kind, _, rest = settings.uri.partition(":")
    if settings.uri == "auto":
        return _open_auto(settings, pace)
    if kind == "soundcard":
        return _open_soundcard(settings, rest)
    if kind == "signal":
        return _open_signal(settings, rest, pace)
    if kind == "pcm" or settings.uri == "-":
        return _open_pcm(settings, rest, pace)
    _check_scheme(settings.uri)
    return _open_file(settings, pace)


def _open_auto(settings: SourceConfig, pace: Pace) -> Source:
    try:
        return _open_soundcard(settings, "")
    except UnavailableError as error:
        _log.warning("%s; analysing the test signal %s instead", error, TEST_SIGNAL)
        return _open_signal(settings, TEST_SIGNAL, pace)


# Each kind is imported when it is opened: soundfile, sounddevice and their libraries cost time.


def _open_soundcard(settings: SourceConfig, wanted: str) -> Source:
    from spectrod.source.soundcard import SoundCardSource  # noqa: PLC0415

    return SoundCardSource(wanted, settings)


def _open_signal(settings: SourceConfig, text: str, pace: Pace) -> Source:
    from spectrod.source.signal import SignalSource  # noqa: PLC0415

    fs, channels, _ = _raw_format(settings)
    return SignalSource(text, fs, channels, pace)


def _open_pcm(settings: SourceConfig, path: str, pace: Pace) -> Source:
    from spectrod.source.fifo import FifoSource  # noqa: PLC0415
    from spectrod.source.pcm import PcmSource  # noqa: PLC0415
    from spectrod.source.rawfile import RawFileSource  # noqa: PLC0415

    fs, channels, format_ = _raw_format(settings)
    if settings.uri == "-":
        return PcmSource(fs, channels, format_)
    _check_pcm(path)
    if stat.S_ISREG(_mode(path)):
        return RawFileSource(path, fs, channels, format_, pace, loop=settings.loop)
    return FifoSource(path, fs, channels, format_)


def _raw_format(settings: SourceConfig) -> tuple[float, int, PcmFormat]:
    """Sample rate [Hz], channels and format of what does not say them itself."""
    return (
        float(settings.samplerate or RATE_DEFAULT_HZ),
        settings.channels or settings.default_channels,
        settings.raw_format,
    )


def _mode(path: str) -> int:
    """Type and permissions of a file; 0 where what is to open it will say what is wrong."""
    try:
        return Path(path).stat().st_mode
    except OSError:
        return 0


def _open_file(settings: SourceConfig, pace: Pace) -> Source:
    source = _open_recorded(settings, pace)
    _require_own("samplerate", settings.samplerate, round(source.fs), settings.uri)
    _require_own("channels", settings.channels, source.channels, settings.uri)
    if source.channels > CHANNELS_MAX:
        raise InputError(
            f"{settings.uri}: has {source.channels} channels: must be at most {CHANNELS_MAX}"
        )
    if source.n_samples is not None and source.n_samples > SPAN_MAX_S * source.fs:
        years = source.n_samples / source.fs / YEAR_S
        raise InputError(
            f"{settings.uri}: lasts {years:.3g} years: must be at most {SPAN_MAX_S / YEAR_S:g}"
        )
    return source


def _open_recorded(settings: SourceConfig, pace: Pace) -> PulledSource:
    if stat.S_ISDIR(_mode(settings.uri)):
        from spectrod.source.folder import FolderSource  # noqa: PLC0415

        return FolderSource(
            settings.uri,
            pace,
            loop=settings.loop,
            strict=settings.strict,
            recursive=settings.recursive,
        )
    if Path(settings.uri).suffix.lower().startswith(".sigmf"):
        return _open_sigmf(settings, pace)
    if pace == "full" and not settings.loop:
        from spectrod.source.wavfile import WavFileSource, plain_layout  # noqa: PLC0415

        if layout := plain_layout(settings.uri):
            return WavFileSource(settings.uri, layout)
    from spectrod.source.soundfile import SoundFileSource  # noqa: PLC0415

    return SoundFileSource(settings.uri, pace, loop=settings.loop, strict=settings.strict)


def _open_sigmf(settings: SourceConfig, pace: Pace) -> PulledSource:
    from spectrod.source.sigmf import SigmfSource  # noqa: PLC0415
    from spectrod.source.sigmf_meta import is_sigmf  # noqa: PLC0415

    if not is_sigmf(settings.uri):
        rule = "must be a .sigmf-meta file; unpack an archive, and take one of its recordings"
        raise InputError(f"{settings.uri}: {rule}")
    return SigmfSource(settings.uri, settings.samplerate, pace, loop=settings.loop)


def _require_own(key: str, wanted: int, own: int, path: str) -> None:
    if wanted not in (0, own):
        raise ConfigError(f"source.{key}={wanted}: {path} has {own}, and a file's own is used")
