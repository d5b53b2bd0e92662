"""Where samples come from: one function opens them all."""

import logging

from spectrod.config import Pace, SourceConfig
from spectrod.errors import ConfigError, UnavailableError
from spectrod.source.base import Source
from spectrod.source.naming import topic_name

__all__ = ["Pace", "Source", "open_source"]

_log = logging.getLogger(__name__)

TEST_SIGNAL = "sine,1000,-20"
"""What ``auto`` takes where there is no sound card: it proves the numbers at a glance."""

_DEFAULT_FS = 48_000


def open_source(settings: SourceConfig, pace: Pace) -> Source:
    """Make the source that a URI names; it delivers after its ``start``.

    Parameters
    ----------
    settings : SourceConfig
        ``default.toml`` describes the forms of its ``uri``.
    pace : {"realtime", "full"}
        For files and test signals; sound cards and pipes have their own.

    Returns
    -------
    source : Source
        With sample rate and channels known.

    Raises
    ------
    ConfigError, InputError, UnavailableError
        If the URI is malformed, the file unusable, the device not there.
    """
    source = _open(settings, pace)
    if settings.name:
        if settings.name != topic_name(settings.name):
            raise ConfigError(f"source.name={settings.name!r}: only letters, digits, . _ - may be")
        source.name = settings.name
    return source


def _open(settings: SourceConfig, pace: Pace) -> Source:
    kind, _, rest = settings.uri.partition(":")
    if settings.uri == "auto":
        return _open_auto(settings, pace)
    if kind == "soundcard":
        return _open_soundcard(settings, rest)
    if kind == "signal":
        return _open_signal(settings, rest, pace)
    if settings.uri == "-":
        return _open_pcm(settings)
    if "://" in settings.uri:
        raise ConfigError(
            f"{settings.uri}: must be a sound file, -, signal:KIND,..., soundcard[:NAME] or auto"
        )
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

    return SoundCardSource(wanted, settings.samplerate, settings.channels)


def _open_signal(settings: SourceConfig, text: str, pace: Pace) -> Source:
    from spectrod.source.signal import SignalSource  # noqa: PLC0415

    return SignalSource(
        text, float(settings.samplerate or _DEFAULT_FS), settings.channels or 1, pace
    )


def _open_pcm(settings: SourceConfig) -> Source:
    from spectrod.source.pcm import PcmSource  # noqa: PLC0415

    return PcmSource(
        float(settings.samplerate or _DEFAULT_FS),
        settings.channels or 1,
        settings.format or "s16le",
    )


def _open_file(settings: SourceConfig, pace: Pace) -> Source:
    from spectrod.source.soundfile import SoundFileSource  # noqa: PLC0415

    source = SoundFileSource(settings.uri, pace)
    _require_own("samplerate", settings.samplerate, round(source.fs), settings.uri)
    _require_own("channels", settings.channels, source.channels, settings.uri)
    return source


def _require_own(key: str, wanted: int, own: int, path: str) -> None:
    if wanted not in (0, own):
        raise ConfigError(f"source.{key}={wanted}: {path} has {own}, and a file's own is used")
