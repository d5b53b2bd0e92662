"""Settings: frozen structs of every section of the configuration, and values derived from them.

``default.toml`` describes each key. Where the values come from is ``spectrod.config.config``'s
business.
"""

import re
import time
from collections.abc import Sequence
from pathlib import Path
from types import GenericAlias
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, cast, get_args

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from spectrod.config.schedule import Schedule
from spectrod.dsp.bands import check_name as check_bands
from spectrod.dsp.calibration import ChannelCalibration, calibration_of, load_calibration
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_rules import (
    CENTER_FREQUENCY_MAX_HZ,
    CHANNELS_MAX,
    FS_MIN_HZ,
    Align,
    Averaging,
)
from spectrod.dsp.units import NS_PER_S, Scaling
from spectrod.dsp.weighting import Weighting
from spectrod.lib.errors import ConfigError
from spectrod.lib.flag import flag
from spectrod.lib.names import ZONE_MAX_CHARS, check_name, name_channels
from spectrod.lib.output_formats import continuous
from spectrod.lib.site import SITE_KEYS, Depth, Height, Latitude, Longitude, Site, SiteName
from spectrod.measure.kinds import KINDS
from spectrod.measure.measurement_config import MeasurementConfig
from spectrod.measure.triggers.trigger_config import RECORDER_TRIGGERS, TriggerConfig

Endpoints = Annotated[tuple[str, ...], Meta(min_length=1)]
_IS_PATH = Meta(extra={"is_path": True})
PathText = Annotated[str, _IS_PATH]
"""A path, or what may be one: the file of the configuration may change it, a peer may not."""
RealFormat = Literal["u8", "s8", "s16le", "s24le", "s32le", "f32le", "f64le"]
IqFormat = Literal["cu8", "cs8", "cs16", "cs32", "cf32", "cf64"]
"""Pairs of I and Q, little-endian."""
_IQ_FORMATS: tuple[IqFormat, ...] = get_args(IqFormat)
PcmFormat = Literal[RealFormat, IqFormat]
"""Raw samples; ``docs/sources.md`` describes each."""
Pace = Literal["realtime", "full"]
"""As fast as the samples were taken, or as fast as the analysis reads."""

RATE_DEFAULT_HZ = 48_000
"""Sample rate of test signals and raw samples, if none is given."""
RATE_MAX_HZ = 1e8


class SourceConfig(Struct, frozen=True):
    """A source of samples; ``default.toml`` describes each key."""

    uri: PathText = "auto"
    name: str = ""
    samplerate: Annotated[
        float,
        Meta(ge=0, le=RATE_MAX_HZ),
        flag("HZ", "sample rate, where the source leaves it open", aliases=("rate",)),
    ] = 0.0
    channels: Annotated[
        int, Meta(ge=0, le=CHANNELS_MAX), flag("N", "channels, where the source leaves it open")
    ] = 0
    select: Annotated[
        tuple[Annotated[int, Meta(ge=0, lt=CHANNELS_MAX)], ...],
        flag("N,N,...", "only these channels, in this order, numbers from 0"),
    ] = ()
    channel_names: tuple[str, ...] = ()
    calibration: Annotated[
        PathText, flag("FILE", "calibration file (TOML): results in dB SPL, Pa, ...")
    ] = ""
    iq: Annotated[
        bool,
        flag("", "each pair of channels is I and Q of one signal; raw samples: 2 channels"),
    ] = False
    center_frequency_hz: Annotated[
        float,
        Meta(ge=-CENTER_FREQUENCY_MAX_HZ, le=CENTER_FREQUENCY_MAX_HZ),
        flag(
            "HZ",
            "the receiver's frequency at 0 Hz of I/Q samples, as 433.92M",
            name="center-frequency",
        ),
    ] = 0.0
    format: Annotated[
        Literal[PcmFormat, ""],
        flag(
            "FMT",
            f"raw samples: {' '.join(get_args(RealFormat))} (s16le), or pairs of I and Q: "
            f"{' '.join(_IQ_FORMATS)}",
        ),
    ] = ""
    block_ms: Annotated[float, Meta(ge=1, le=1000), flag("MS", "block length of a sound card")] = (
        10.0
    )
    latency_ms: Annotated[
        float,
        Meta(ge=0, le=10_000),
        flag("MS", "requested latency of a sound card; 0: the lowest safe"),
    ] = 0.0
    exclusive: Annotated[
        bool, flag("", "keep other programs from the sound card, where possible")
    ] = False
    pace: Annotated[Pace, flag("PACE", "of files and signals: realtime or full (%(default)s)")] = (
        "realtime"
    )
    loop: Annotated[bool, flag("", "play files again and again")] = False
    recursive: Annotated[bool, flag("", "include the subfolders of a folder")] = False
    time_format: Annotated[
        str,
        flag(
            "FORMAT",
            "start time in names of files, as %y%m%d-%H%M%S (else forms of recorders)",
        ),
    ] = ""
    files_zone: Annotated[
        str,
        flag(
            "ZONE",
            "time zone of start times that name none, in names and headers, as Europe/Berlin (UTC)",
        ),
    ] = ""
    strict: Annotated[bool, flag("", "stop at the first file that cannot be read in full")] = False
    time_zone: Annotated[str, Meta(max_length=ZONE_MAX_CHARS)] = ""
    latitude: Latitude | UnsetType = UNSET
    longitude: Longitude | UnsetType = UNSET
    depth_m: Depth | UnsetType = UNSET
    height_m: Height | UnsetType = UNSET
    platform: SiteName = ""
    instrument: SiteName = ""

    @property
    def site(self) -> Site:
        """Where the source is, and what it is."""
        given = {key: getattr(self, key) for key in SITE_KEYS}
        return Site(**{key: value for key, value in given.items() if value is not UNSET})

    @property
    def is_iq(self) -> bool:
        """Whether each two channels are I and Q, as ``iq`` or the sample format says."""
        format_ = self.raw_format if self.is_raw else self.format
        return self.iq or format_ in _IQ_FORMATS

    def calibrations(self, n_signals: int) -> tuple[ChannelCalibration | None, ...]:
        """Read the calibration of each signal; empty without a file.

        Raises
        ------
        ConfigError
            If the file cannot be read, or does not fit the channels.
        """
        names, select = self.channel_names, self.select
        return calibration_of(self.calibration or None, n_signals, names, select)

    def check_calibration(self) -> None:
        """Check the calibration file, whatever the channels; raises ConfigError."""
        if self.calibration:
            load_calibration(self.calibration)

    @property
    def default_channels(self) -> int:
        """Channels of raw samples and test signals, if none are given."""
        return 2 if self.is_iq else 1

    @property
    def is_raw(self) -> bool:
        """Whether ``uri`` names raw samples, whose format nothing but ``format`` says."""
        return self.uri == "-" or self.uri.startswith("pcm:")

    @property
    def raw_format(self) -> PcmFormat:
        """Format of raw samples: the one given, or that of a file's suffix, or s16le."""
        if self.format != "":
            return self.format
        suffix = self.uri.rpartition(".")[2].lower()
        return next((one for one in _IQ_FORMATS if one == suffix), "s16le")

    def check_rate(self) -> None:
        """Check the sample rate, if it is given; raises ConfigError."""
        if self.samplerate and not FS_MIN_HZ <= self.samplerate <= RATE_MAX_HZ:
            rule = f"must be 0, or {FS_MIN_HZ:g} to {RATE_MAX_HZ:g} Hz"
            raise ConfigError(rule, samplerate=self.samplerate)

    def check_format(self) -> None:
        """Check that samples in pairs of I and Q are raw samples in whole pairs.

        Raises
        ------
        ConfigError
            If a rule is broken.
        """
        format_ = self.raw_format if self.is_raw else self.format
        if format_ not in _IQ_FORMATS:
            return
        if not self.is_raw:
            raise ConfigError("must be of raw samples, - or pcm:PATH", format=format_)
        if self.channels % 2:
            raise ConfigError(
                f"must be even with format={format_!r}, whose I and Q count as a channel each",
                "format",
                channels=self.channels,
            )


def path_keys(table: type[Struct]) -> tuple[str, ...]:
    """Return the keys of a table that are paths."""
    return tuple(key.name for key in msgspec.structs.fields(table) if _IS_PATH in _notes(key.type))


def _notes(type_: Any) -> tuple[Any, ...]:
    return getattr(type_, "__metadata__", ())


def _one_of(choice: Any) -> str:
    return ", ".join(get_args(choice))


class AnalysisConfig(Struct, frozen=True):
    """The table of analysis parameters.

    Each field is a key of ``[analysis]`` and of ``[products.NAME]``, a flag of the command line,
    and the field of ``SpectrumSpec`` of the same name.
    """

    window: Annotated[str, flag("NAME", "hann, flattop, blackmanharris, ... (%(default)s)")] = (
        "hann"
    )
    win_length: Annotated[int, flag("N", "length of the window in samples (%(default)s)")] = 4096
    hop: Annotated[int, flag("N", "samples between starts of frames (%(default)s)")] = 1024
    nfft: Annotated[
        int, flag("N", "transform length, at least win_length; powers of two are fastest")
    ] = 0
    scaling: Annotated[
        Scaling,
        flag(
            "KIND",
            f"{_one_of(Scaling)}: power for each hertz, power, or levels in dBFS, where calibrated "
            "dB SPL and the like (%(default)s)",
        ),
    ] = "dbfs"
    weighting: Annotated[
        Weighting, flag("KIND", f"frequency weighting: {_one_of(Weighting)} (Z, none)")
    ] = "Z"
    bands: Annotated[
        str,
        flag(
            "BANDS",
            "octave, third-octave, octave/12, mel:64, bark, erb, millidecade, cqt:12, vqt:24",
        ),
    ] = ""
    averaging: Annotated[
        str,
        flag(
            "KIND",
            f"averaging over the frames of a row: {_one_of(Averaging)}, floor, or the level "
            "exceeded a percentage of the time as L90 (none)",
        ),
    ] = "none"
    averaging_s: Annotated[
        float, flag("TIME", "time constant of exponential averaging (%(default)s)")
    ] = 0.125
    rate_hz: Annotated[
        float,
        Meta(ge=0, le=1e6),
        flag("HZ", "rows a second, exactly, as 10, 0.5 or 1/60 (every frame)"),
    ] = 0.0
    align: Annotated[
        Align, flag("WHERE", f"alignment of rows with --rate-hz: {_one_of(Align)} (%(default)s)")
    ] = "start"

    def spec(
        self,
        fs: float | None,
        channels: int,
        *,
        iq: bool = False,
        center_frequency_hz: float = 0.0,
        product: str = "",
        calibration: tuple[ChannelCalibration | None, ...] = (),
    ) -> SpectrumSpec:
        """Bind to a source's rate and channels; raises ConfigError if a rule is broken.

        If the rate is None, not known yet, only rules that hold at any rate are checked: not
        whether bands fit the bins, and rows the frames (``depends_on_fs``). Such a spec says
        nothing of the spectra to come.
        """
        if fs is None:
            return self._without_fs().spec(
                RATE_DEFAULT_HZ,
                channels,
                iq=iq,
                center_frequency_hz=center_frequency_hz,
                product=product,
                calibration=calibration,
            )
        if self.averaging not in ("none", "exponential") and not self.rate_hz:
            raise ConfigError(
                "needs rate_hz, the rows a second that it makes", averaging=self.averaging
            )
        return SpectrumSpec(
            fs,
            channels,
            iq=iq,
            product=product,
            center_frequency_hz=center_frequency_hz,
            broadband=bool(self.bands),
            calibration=calibration,
            **msgspec.structs.asdict(self),
        )

    @property
    def depends_on_fs(self) -> tuple[str, ...]:
        """The settings that may fit some sample rates only, as a configuration file has them."""
        found = (f'bands = "{self.bands}"',) if self.bands else ()
        return found + ((f"rate_hz = {self.rate_hz:g}",) if self.rate_hz else ())

    def _without_fs(self) -> "AnalysisConfig":
        """Put settings that fit any sample rate in place of those that depend on it."""
        if self.bands:
            check_bands(self.bands)
        longest = max(self.hop, self.win_length, 1)
        return msgspec.structs.replace(
            self,
            bands="octave" if self.bands else "",
            rate_hz=RATE_DEFAULT_HZ / longest if self.rate_hz else 0.0,
        )


_ProductKeys: Any = msgspec.defstruct(
    "_ProductKeys",
    [
        ("name", str),
        ("sources", tuple[str, ...], ()),
        *(
            (key.name, key.type | UnsetType, UNSET)
            for key in msgspec.structs.fields(AnalysisConfig)
        ),
    ],
    frozen=True,
)


class ProductConfig(_ProductKeys, frozen=True):  # type: ignore[misc,call-arg]  # made above
    """One more analysis of sources; what is unset is as in the analysis of each of them.

    Attributes
    ----------
    name : str
        The PRODUCT of its topics.
    sources : tuple of str
        Those that have it; all if none is named.
    window, win_length, ...
        As in ``AnalysisConfig``.
    """

    def of(self, analysis: AnalysisConfig) -> "Product":
        """Fill in what is unset from the analysis of a source."""
        own = {
            key: value
            for key in analysis.__struct_fields__
            if (value := getattr(self, key)) is not UNSET
        }
        return Product(self.name, msgspec.structs.replace(analysis, **own))


class Product(Struct, frozen=True):
    """One more analysis of a source."""

    name: str
    """The PRODUCT of its topics."""
    analysis: AnalysisConfig


_MEASUREMENTS: Final[Sequence[tuple[str, Any, object]]] = [
    (word, GenericAlias(tuple, (kind, ...)), ()) for word, kind in KINDS.items()
]
"""A field for the tables of each kind of measurement."""
if TYPE_CHECKING:
    _MeasuredSource = SourceConfig
    _Measurements = Struct
else:
    _MeasuredSource = msgspec.defstruct(
        "_MeasuredSource", _MEASUREMENTS, bases=(SourceConfig,), frozen=True, kw_only=True
    )
    _Measurements = msgspec.defstruct("_Measurements", _MEASUREMENTS, frozen=True, kw_only=True)


class SourceTable(_MeasuredSource, frozen=True):
    """A source with the analyses of its own; what ``[sources.NAME]`` says, ``name`` included."""

    analysis: AnalysisConfig = AnalysisConfig()
    products: tuple[Product, ...] = ()
    """Beside the analysis, which is the main one; filled in, as measurements are, by
    ``Config.all_sources``."""
    triggers: tuple[TriggerConfig, ...] = ()
    """Triggers of spectra; filled in by ``Config.all_sources``."""

    def measurements(self, word: str) -> tuple[MeasurementConfig, ...]:
        """Return the tables of a kind of measurement."""
        return cast("tuple[MeasurementConfig, ...]", getattr(self, word))

    @property
    def known_fs(self) -> float | None:
        """Sample rate that it will have, if that is known before it is opened [Hz]."""
        is_known = self.samplerate or self._is_of_settings
        return float(self.samplerate or RATE_DEFAULT_HZ) if is_known else None

    @property
    def known_channels(self) -> int | None:
        """Channels that it will have, if that is known before it is opened."""
        default = self.default_channels if self._is_of_settings else None
        return len(self.select) or self.channels or default

    @property
    def _is_of_settings(self) -> bool:
        """Whether rate and channels are those of the settings, or their defaults."""
        return self.uri.partition(":")[0] in ("signal", "pcm", "-")

    @property
    def unchecked(self) -> tuple[str, ...]:
        """Settings that only its sample rate or its channels, not known yet, can prove wrong."""
        has_fs, has_channels = self.known_fs is not None, self.known_channels is not None
        own = {f"products.{one.name}: ": one.analysis for one in self.products}
        analyses = {} if has_fs else {"": self.analysis, **own}
        found = [f"{name}{one}" for name in analyses for one in analyses[name].depends_on_fs]
        for word, kind in KINDS.items():
            is_known = has_fs or not kind.depends_on_fs
            if not (is_known and (has_channels or not kind.depends_on_channels)):
                found += [f"{word}.{one.name}" for one in self.measurements(word)]
        return tuple(found)

    def specs(
        self,
        fs: float | None,
        channels: int,
        *,
        is_iq: bool | None = None,
        center_frequency_hz: float = 0.0,
    ) -> tuple[SpectrumSpec, ...]:
        """Bind all analyses to what the source turned out to be, once it is open.

        Parameters
        ----------
        fs : float or None
            Sample rate [Hz]; None if it is not known, see ``AnalysisConfig.spec``.
        channels : int
            That are analysed.
        is_iq : bool, optional
            Whether each two of them are I and Q; by default what the settings say.
        center_frequency_hz : float
            Frequency that 0 Hz of I/Q samples stands for [Hz].

        Returns
        -------
        specs : tuple of SpectrumSpec
            The main one first; no two of one product.

        Raises
        ------
        ConfigError
            If a rule is broken, ``channel_names`` are not one for each spectrum, or the calibration
            file is not valid.
        """
        iq = self.is_iq if is_iq is None else is_iq
        signal: dict[str, Any] = {
            "iq": iq,
            "center_frequency_hz": center_frequency_hz,
            "calibration": self.calibrations(channels // 2 if iq else channels),
        }
        specs = [self.analysis.spec(fs, channels, **signal)]
        name_channels(self.channel_names, specs[0].n_signals)
        for product in self.products:
            specs.append(self._spec(product, fs, channels, signal))
            if product.name == specs[0].product:
                raise ConfigError(
                    f"products.{product.name}: is the name of the main analysis; "
                    "must be another name"
                )
        return tuple(specs)

    def _spec(
        self, product: Product, fs: float | None, channels: int, signal: dict[str, Any]
    ) -> SpectrumSpec:
        check_name("name of a product", product.name)
        try:
            return product.analysis.spec(fs, channels, product=product.name, **signal)
        except ConfigError as error:
            raise error.of(f"products.{product.name}") from error


_Amount = Annotated[float, Meta(ge=0, le=1e9)]
_Roll = Annotated[float, Meta(ge=0, le=3600)]
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}", re.ASCII)
_TIME_CODE = re.compile(r"%([A-Za-z])", re.ASCII)
_LONGEST = {
    **dict.fromkeys("CHIMSUVWdgmy", "00"),
    **dict.fromkeys("YG", "2026"),
    **dict.fromkeys("abh", "Wed"),
    **dict.fromkeys("AB", "Wednesday"),
    **dict.fromkeys("uw", "0"),
    "F": "2026-11-22",
    "Z": "UTC",
    "j": "001",
    "p": "PM",
    "z": "+0000",
}
"""Codes of strftime whose text, at any time, is of characters that file names may have, each with
an example of the longest. Others write spaces (``%e``), slashes (``%D``) or colons (``%T``)."""


class RecordingConfig(Struct, frozen=True):
    """A recording that the daemon makes by itself; ``default.toml`` describes each key."""

    name: str
    sources: tuple[str, ...] = ()
    """Which are recorded; none named: all."""
    product: str = ""
    folder: PathText = ""
    must_be_mounted: PathText = ""
    file_name: str = "%Y%m%dT%H%M%SZ"
    spectra: bool = True
    values: str = "csv"
    """Suffix of the files, without its point, if the product is of measurements."""
    samples: str = ""
    pyramid: bool = False
    fsync_s: Annotated[float, Meta(ge=0.1, le=3600)] = 5.0
    rotate_s: Annotated[int, Meta(ge=0, le=366 * 86400)] = 3600
    rotate_mb: _Amount = 0.0
    keep_days: _Amount = 0.0
    keep_mb: _Amount = 0.0
    min_free_mb: _Amount = 256.0
    when_full: Literal["stop", "delete"] = "stop"
    schedule: tuple[str, ...] = ()
    on_s: _Amount = 0.0
    off_s: _Amount = 0.0
    triggers: tuple[str, ...] = ()
    """Triggers of ``RECORDER_TRIGGERS``, and names of ``[triggers.NAME]``."""
    trigger_dbfs: Annotated[float, Meta(ge=-200, le=20)] = -20.0
    pre_roll_s: _Roll = 0.0
    post_roll_s: _Roll = 0.0
    attributes: dict[str, str] = {}

    @property
    def named_triggers(self) -> tuple[str, ...]:
        """Triggers that have a table of their own."""
        return tuple(name for name in self.triggers if name not in RECORDER_TRIGGERS)

    @property
    def hours(self) -> Schedule:
        """When it runs; raises ConfigError if a rule is broken."""
        return Schedule(self.schedule, self.on_s, self.off_s)

    def file_stem(self, t_utc_ns: int) -> str:
        """Name a file that begins at a time [ns since 1970], without its suffix."""
        return time.strftime(self.file_name, time.gmtime(t_utc_ns // NS_PER_S))

    def check(self) -> None:
        """Check what belongs together.

        Raises
        ------
        ConfigError
            If a rule is broken.
        """
        check_name("name of a recording", self.name)
        _ = self.hours
        self._check_mount_point()
        self._check_file_name()
        known = [suffix.lstrip(".") for suffix in continuous("samples")]
        if self.samples and self.samples not in known:
            raise ConfigError(f"must be '', {' or '.join(known)}", samples=self.samples)
        formats = [suffix.lstrip(".") for suffix in continuous("values")]
        if self.values not in formats:
            raise ConfigError(
                f"must be {' or '.join(formats)}, a form of files; product names what they hold",
                values=self.values,
            )
        if not (self.spectra or self.samples or self.pyramid):
            raise ConfigError(
                "spectra=false: must be true where neither samples nor pyramid is; "
                "true records the values of a product of measurements, too",
                "spectra",
            )
        rolls = {"pre_roll_s": self.pre_roll_s, "post_roll_s": self.post_roll_s}
        for key, roll_s in rolls.items():
            if roll_s and not self.triggers:
                raise ConfigError(f"{key}={roll_s:g}: must be 0 without triggers", key)

    def _check_mount_point(self) -> None:
        if not self.must_be_mounted:
            return
        mount_point = Path(self.must_be_mounted)
        if not mount_point.is_absolute() or ".." in mount_point.parts:
            raise ConfigError(
                "must be an absolute path without ..", must_be_mounted=self.must_be_mounted
            )
        if not Path(self.folder).is_relative_to(mount_point):
            raise ConfigError(
                f"must be folder={self.folder!r}, or a folder above it",
                "folder",
                must_be_mounted=self.must_be_mounted,
            )

    def _check_file_name(self) -> None:
        # Flags and widths (%_I, %9Y) stay as they are, and are refused: they write spaces.
        longest = _TIME_CODE.sub(lambda code: _LONGEST.get(code[1], code[0]), self.file_name)
        if not _FILE_NAME.fullmatch(longest):
            codes = " ".join(f"%{code}" for code in sorted(_LONGEST))
            raise ConfigError(
                f"makes {longest!r}; must make 1 to 100 of "
                f"A-Z a-z 0-9 . _ + -, the first a letter or digit, with no codes but {codes}",
                file_name=self.file_name,
            )


def check_folder_names(section: str, names: Sequence[str]) -> None:
    """Check names that become folders of recordings: each must have a folder of its own.

    FAT and exFAT ignore case, and dots at the end of a name.

    Parameters
    ----------
    section : str
        Of the configuration, for errors: ``recordings`` or ``sources``.
    names : sequence of str
        Empty ones are ignored: a single source may have no name.

    Raises
    ------
    ConfigError
        If a name consists of dots alone, or two names differ only in case or in dots at the end.
    """
    found: dict[str, str] = {}
    for name in filter(None, names):
        folder = name.rstrip(".").casefold()
        if not folder:
            raise ConfigError(
                f"{section}: name={name!r}: must not be dots alone, since recordings have a folder "
                "of this name"
            )
        if folder in found:
            raise ConfigError(
                f"{section}: names {found[folder]!r} and {name!r}: must differ in more than case "
                "and dots at the end, since recordings have folders of these names"
            )
        found[folder] = name


class EngineConfig(Struct, frozen=True):
    """Engine and device."""

    engine: Literal["auto", "opencl", "numpy", "float64"] = "auto"
    device: str = ""


class PublishConfig(Struct, frozen=True):
    """Endpoints and limits of the publisher."""

    endpoints: Endpoints = ("tcp://127.0.0.1:5556",)
    insecure: bool = False
    queue_frames: Annotated[int, Meta(ge=1)] = 256
    high_water_mark: Annotated[int, Meta(ge=1)] = 256
    on_demand: bool = True
    replay_mb: Annotated[float, Meta(ge=0, le=65536)] = 16.0
    raw32: tuple[str, ...] = ()


class ControlConfig(Struct, frozen=True):
    """Control endpoints and limits of requests."""

    endpoints: tuple[str, ...] = ("auto",)
    requests_per_s: Annotated[float, Meta(gt=0, le=100_000)] = 100.0
    state_folder: PathText = ""


class SecurityConfig(Struct, frozen=True):
    """Keys and limits of connections."""

    server_key: PathText = ""
    client_keys: PathText = ""
    require: Literal["remote", "always"] = "remote"
    max_connections: Annotated[int, Meta(ge=1, le=1_000_000)] = 4096


class HttpConfig(Struct, frozen=True):
    """Metrics and health over HTTP."""

    listen: str = ""
    insecure: bool = False
    hosts: Annotated[tuple[str, ...], Meta(max_length=16)] = ()


class LogConfig(Struct, frozen=True):
    """Level and style of the log."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    style: Literal["auto", "journal", "human", "json"] = "auto"


class Config(_Measurements, frozen=True):
    """All settings of the daemon, immutable; the tables of measurements as well."""

    source: SourceConfig = SourceConfig()
    analysis: AnalysisConfig = AnalysisConfig()
    engine: EngineConfig = EngineConfig()
    publish: PublishConfig = PublishConfig()
    control: ControlConfig = ControlConfig()
    security: SecurityConfig = SecurityConfig()
    http: HttpConfig = HttpConfig()
    log: LogConfig = LogConfig()
    sources: tuple[SourceTable, ...] = ()
    """Where there are any, ``source`` counts for nothing, and each has all of its analysis."""
    products: tuple[ProductConfig, ...] = ()
    triggers: tuple[TriggerConfig, ...] = ()
    recordings: tuple[RecordingConfig, ...] = ()

    @property
    def all_sources(self) -> tuple[SourceTable, ...]:
        """Sources of the daemon: those of ``[sources.*]``, or else the one of ``[source]``.

        Each with its products, in the order of the configuration.
        """
        own: dict[str, Any] = msgspec.structs.asdict(self.source)
        tables = self.sources or (SourceTable(**own, analysis=self.analysis),)
        return tuple(self._with_products(table) for table in tables)

    def _with_products(self, table: SourceTable) -> SourceTable:
        products = [
            product.of(table.analysis)
            for product in self.products
            if not product.sources or table.name in product.sources
        ]
        named = {
            section: tuple(
                one
                for one in getattr(self, section)
                if not one.sources or table.name in one.sources
            )
            for section in (*KINDS, "triggers")
        }
        return msgspec.structs.replace(table, products=tuple(products), **named)
