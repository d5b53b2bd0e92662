"""The kinds of sources: the form of their URIs, how to open them and what they allow.

A new kind is a module with its source and one ``SourceKind`` in ``KINDS``. Help texts, error
texts, the configuration check, the control socket and the daemon read this table; only raw samples
(``settings.SourceConfig.is_raw``) and endless signals (``cli.record_samples``) are recognised by
their URI.
"""

import errno
import logging
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from spectrod.config.config import Pace, PcmFormat, SourceConfig
from spectrod.config.settings import RATE_DEFAULT_HZ
from spectrod.dsp.spectrum_rules import CHANNELS_MAX
from spectrod.lib.confinement import hidden_hint
from spectrod.lib.errors import ConfigError, InputError, UnavailableError
from spectrod.lib.text import printable
from spectrod.source.base import SPAN_MAX_S, YEAR_S, Source

if TYPE_CHECKING:
    from spectrod.source.files.triggered import Stretches

_log = logging.getLogger(__name__)

_PASSING = (errno.ENOENT, errno.EACCES, errno.EIO, errno.ESTALE)
"""Errors of a path that another program or a disk may mend."""

TEST_SIGNAL = "sine,1000,-20"
"""The source of ``auto`` if there is no sound card: its level and frequency are easy to check."""


@dataclass(frozen=True, slots=True)
class SourceKind:
    """One kind of source.

    Attributes
    ----------
    form : str
        Form of its URI, for help and error texts: a prefix alone, or ``PREFIX:ARGUMENT``, in
        brackets from the colon on if the argument is optional.
    open : callable
        Creates a source from settings, argument and pace; raises like
        ``spectrod.source.open_source``.
    check : callable
        Checks settings and argument without opening a file or a device; raises ConfigError.
    inspect : callable
        Describes, by its argument, a source that ``config check`` must not open; raises a
        SpectrodError if it is unusable. Returns None for a source that may be opened.
    absent_name : callable or None
        Returns the topic name, by the argument, of a source that is missing. The daemon waits for
        such a source; without this function the source must be present.
    is_safe_over_control : bool
        True if peers may add such a source, because its URI cannot name a file.
    """

    form: str
    open: Callable[[SourceConfig, str, Pace], Source]
    check: Callable[[SourceConfig, str], None] = lambda _settings, _argument: None
    inspect: Callable[[str], str | None] = lambda _argument: None
    absent_name: Callable[[str], str] | None = None
    is_safe_over_control: bool = False

    @property
    def prefix(self) -> str:
        """The whole URI or, before a colon, its start."""
        return self.form.partition(":")[0].rstrip("[")

    @property
    def may_be_absent(self) -> bool:
        """True if the daemon waits for such a source while it is missing."""
        return self.absent_name is not None

    def matches(self, uri: str) -> bool:
        """Return whether a URI is of this kind."""
        return uri == self.prefix or (":" in self.form and uri.startswith(f"{self.prefix}:"))


def find_kind(uri: str) -> tuple[SourceKind, str]:
    """Return the kind of a URI, and the argument; a URI of no known form is a path.

    Raises
    ------
    ConfigError
        If the URI holds a NUL character.
    """
    if "\0" in uri:
        raise ConfigError(f"source.uri={uri!r}: must not hold a NUL character")
    for kind in KINDS:
        if kind.matches(uri):
            return kind, uri.partition(":")[2]
    return FILES, uri


def uri_of(path: str) -> str:
    """Return the URI of a file, whose path may look like that of another kind of source."""
    return path if find_kind(path)[0] is FILES else f"./{path}"


def forms(*, safe_only: bool = False) -> str:
    """List the forms of URIs for help and error texts; optionally only those safe over control."""
    kinds = [kind for kind in (FILES, *KINDS) if kind.is_safe_over_control or not safe_only]
    *first, last = (kind.form for kind in kinds)
    return f"{', '.join(first)} or {last}"


# Import each kind only when it is opened: soundfile, sounddevice and their libraries load slowly.

# ---- sound cards


def _open_soundcard(settings: SourceConfig, text: str, _pace: Pace) -> Source:
    from spectrod.source.soundcard.soundcard import SoundCardSource  # noqa: PLC0415

    return SoundCardSource(text, settings)


def _check_soundcard(_settings: SourceConfig, text: str) -> None:
    _absent_soundcard(text)


def _absent_soundcard(text: str) -> str:
    from spectrod.source.soundcard.devices import parse_selector  # noqa: PLC0415

    return parse_selector(text).topic_name()


def _inspect_soundcard(text: str) -> str:
    from spectrod.source.soundcard.devices import choose_input, list_inputs, parse_selector  # noqa: PLC0415

    device = choose_input(parse_selector(text), [found.device for found in list_inputs()])
    return f"soundcard {device.name}: there, {device.samplerate:g} Hz, channels: {device.channels}"


def _open_auto(settings: SourceConfig, _argument: str, pace: Pace) -> Source:
    try:
        return _open_soundcard(settings, "", pace)
    except UnavailableError as error:
        _log.warning("%s; analysing the test signal %s instead", error, TEST_SIGNAL)
        return _open_signal(settings, TEST_SIGNAL, pace)


# ---- test signals


def _open_signal(settings: SourceConfig, text: str, pace: Pace) -> Source:
    from spectrod.source.signal import SignalSource  # noqa: PLC0415

    fs, channels, _ = _raw_format(settings)
    return SignalSource(text, fs, channels, pace)


def _check_signal(settings: SourceConfig, text: str) -> None:
    _open_signal(settings, text, "full")


# ---- raw samples


def _open_standard_input(settings: SourceConfig, _argument: str, pace: Pace) -> Source:
    from spectrod.source.files.pcm import PcmSource, standard_input  # noqa: PLC0415
    from spectrod.source.files.soundstream import NAME, open_stream  # noqa: PLC0415

    fd = standard_input()
    found = open_stream(settings, fd, pace)
    if isinstance(found, bytes):
        _warn_of_assumed_rate(settings)
        return PcmSource(*_raw_format(settings), fd, found)
    _require_own("samplerate", settings.samplerate, found.fs, NAME)
    _require_own("channels", settings.channels, found.channels, NAME)
    return found


def _open_pcm(settings: SourceConfig, path: str, pace: Pace) -> Source:
    from spectrod.source.files.fifo import FifoSource  # noqa: PLC0415
    from spectrod.source.files.rawfile import RawFileSource  # noqa: PLC0415

    _check_pcm(settings, path)
    _require_readable(path)
    _warn_of_assumed_rate(settings)
    if stat.S_ISREG(_mode(path)):
        return RawFileSource(
            path,
            _raw_format(settings),
            pace,
            loop=settings.loop,
            time_format=settings.time_format,
            time_zone=settings.files_zone,
        )
    return FifoSource(path, *_raw_format(settings))


def _warn_of_assumed_rate(settings: SourceConfig) -> None:
    """Say which rate I/Q is taken to have, if none is given: that of receivers is far higher."""
    if settings.is_iq and not settings.samplerate:
        uri = printable(settings.uri)
        _log.warning(
            "%s: I/Q without a sample rate: %d Hz is assumed (--samplerate)", uri, RATE_DEFAULT_HZ
        )


def _require_readable(path: str) -> None:
    """Raise UnavailableError if another program, or a disk, may still bring a path."""
    try:
        mode = Path(path).stat().st_mode
    except OSError as error:
        if error.errno not in _PASSING:
            return  # the reader reports it
        hint = hidden_hint(Path(path).absolute())
        rest = f"; {hint}" if hint else ""
        raise UnavailableError(f"{path}: {error.strerror}{rest}") from error
    is_readable = stat.S_ISFIFO(mode) or stat.S_ISREG(mode)
    if is_readable and not os.access(path, os.R_OK):
        raise UnavailableError(f"{path}: {os.strerror(errno.EACCES)}")


def _absent_pcm(path: str) -> str:
    from spectrod.source.naming import topic_name  # noqa: PLC0415

    return topic_name(Path(path).stem)


def _check_pcm(_settings: SourceConfig, path: str) -> None:
    if not path:
        raise ConfigError("pcm:: must be pcm:PATH, a FIFO or a file of raw samples")


def _inspect_pcm(path: str) -> str | None:
    """Check a FIFO without opening it, which would take samples from its reader."""
    if Path(path).is_file():
        return None
    try:
        mode = Path(path).stat().st_mode
    except OSError as error:
        raise InputError(f"pcm:{path}: {error.strerror}") from error
    if not stat.S_ISFIFO(mode):
        raise InputError(f"pcm:{path}: must be a FIFO or a file of raw samples")
    if not os.access(path, os.R_OK):
        raise InputError(f"pcm:{path}: Permission denied")
    return f"pcm:{path}: a FIFO"


def _raw_format(settings: SourceConfig) -> tuple[float, int, PcmFormat]:
    """Return sample rate [Hz], channels and format of samples without a header."""
    return (
        float(settings.samplerate or RATE_DEFAULT_HZ),
        settings.channels or settings.default_channels,
        settings.raw_format,
    )


def _mode(path: str) -> int:
    """Return type and permissions of a file; 0 on errors, which the reader reports."""
    try:
        return Path(path).stat().st_mode
    except OSError:
        return 0


# ---- files


def _open_file(settings: SourceConfig, path: str, pace: Pace) -> Source:
    _check_path(settings, path)
    if not _mode(path) and (hint := hidden_hint(Path(path).absolute())):
        raise InputError(f"{path}: No such file or directory; {hint}")
    source = _open_recorded(settings, path, pace)
    _require_own("samplerate", settings.samplerate, source.fs, path)
    _require_own("channels", settings.channels, source.channels, path)
    if source.channels > CHANNELS_MAX:
        raise InputError(f"{path}: has {source.channels} channels: must be at most {CHANNELS_MAX}")
    if source.n_samples is not None and source.n_samples > SPAN_MAX_S * source.fs:
        years = source.n_samples / source.fs / YEAR_S
        raise InputError(
            f"{path}: lasts {years:.3g} years: must be at most {SPAN_MAX_S / YEAR_S:g}"
        )
    return source


def _check_path(_settings: SourceConfig, path: str) -> None:
    if "://" in path:
        raise ConfigError(f"{path}: must be a {forms()}")


def _open_recorded(settings: SourceConfig, path: str, pace: Pace) -> Source:
    if stat.S_ISDIR(_mode(path)):
        from spectrod.source.files.folder import FolderSource  # noqa: PLC0415

        return FolderSource(
            path,
            pace,
            loop=settings.loop,
            strict=settings.strict,
            recursive=settings.recursive,
            time_format=settings.time_format,
            time_zone=settings.files_zone,
        )
    if Path(path).suffix.lower().startswith(".sigmf"):
        return _open_sigmf(settings, path, pace)
    from spectrod.source.files.triggered import find_stretches  # noqa: PLC0415

    if stretches := find_stretches(path):
        return _open_triggered(settings, path, pace, stretches)
    if pace == "full" and not settings.loop:
        from spectrod.source.files.wavfile import WavFileSource, plain_layout  # noqa: PLC0415

        if layout := plain_layout(path):
            return WavFileSource(path, layout, settings.time_format, settings.files_zone)
    from spectrod.source.files.soundfile import SoundFileSource  # noqa: PLC0415

    return SoundFileSource(
        path,
        pace,
        loop=settings.loop,
        strict=settings.strict,
        time_format=settings.time_format,
        time_zone=settings.files_zone,
    )


def _open_triggered(
    settings: SourceConfig, path: str, pace: Pace, stretches: "Stretches"
) -> Source:
    from spectrod.source.files.soundfile import TriggeredSource  # noqa: PLC0415

    return TriggeredSource(
        path,
        pace,
        stretches,
        loop=settings.loop,
        strict=settings.strict,
        time_format=settings.time_format,
        time_zone=settings.files_zone,
    )


def _open_sigmf(settings: SourceConfig, path: str, pace: Pace) -> Source:
    from spectrod.source.files.sigmf import SigmfSource  # noqa: PLC0415
    from spectrod.source.files.sigmf_meta import is_sigmf  # noqa: PLC0415

    if not is_sigmf(path):
        rule = "must be a .sigmf-meta file; unpack an archive, and take one of its recordings"
        raise InputError(f"{path}: {rule}")
    return SigmfSource(
        path,
        settings.samplerate,
        pace,
        loop=settings.loop,
        time_format=settings.time_format,
        time_zone=settings.files_zone,
    )


def _require_own(key: str, given: float, own: float, path: str) -> None:
    if given not in (0, own):
        raise ConfigError(
            f"source.{key}={given:.15g}: {path} has {own:.15g}, and a file's own is used"
        )


# ---- the table

FILES = SourceKind("sound file, folder of them, SigMF recording", _open_file, _check_path)
"""Kind of every URI that has none of the other forms."""

KINDS: tuple[SourceKind, ...] = (
    SourceKind("-", _open_standard_input, inspect=lambda _: "-: is not opened"),
    SourceKind("pcm:PATH", _open_pcm, _check_pcm, _inspect_pcm, _absent_pcm),
    SourceKind("signal:KIND,...", _open_signal, _check_signal, is_safe_over_control=True),
    SourceKind(
        "soundcard[:NAME]",
        _open_soundcard,
        _check_soundcard,
        _inspect_soundcard,
        _absent_soundcard,
        is_safe_over_control=True,
    ),
    SourceKind(
        "auto", _open_auto, inspect=lambda _: "auto: is not opened", is_safe_over_control=True
    ),
)
