"""Settings: TOML, environment and flags into frozen structs; the only reader of both.

Later layers win: built-in defaults, the configuration file, ``SPECTROD_SECTION_KEY`` variables,
command-line flags. Every error names the key, the value and the rule; the layer as well, unless
the rule is one between several keys, which may come from different layers.
"""

import os
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from spectrod.errors import ConfigError
from spectrod.types import CHANNELS_MAX, SpectrumSpec
from spectrod.units import Scaling
from spectrod.wire.endpoint import check_bindable, parse_endpoint

SYSTEM_FILE = Path("/etc/spectrod/spectrod.toml")
ENV_PREFIX = "SPECTROD_"

Endpoints = Annotated[tuple[str, ...], Meta(min_length=1)]
PcmFormat = Literal["u8", "s16le", "s24le", "s32le", "f32le", "f64le"]
Pace = Literal["realtime", "full"]
"""As fast as the samples were taken, or as fast as the analysis reads."""


class SourceConfig(Struct, frozen=True):
    """Where samples come from; ``default.toml`` describes each key."""

    uri: str = "auto"
    name: str = ""
    samplerate: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    channels: Annotated[int, Meta(ge=0, le=CHANNELS_MAX)] = 0
    select: tuple[Annotated[int, Meta(ge=0, lt=CHANNELS_MAX)], ...] = ()
    channel_names: tuple[str, ...] = ()
    iq: bool = False
    format: PcmFormat | Literal[""] = ""
    block_ms: Annotated[float, Meta(gt=0, le=1000)] = 10.0
    latency_ms: Annotated[float, Meta(ge=0, le=10_000)] = 0.0
    exclusive: bool = False
    pace: Pace = "realtime"
    loop: bool = False


class AnalysisConfig(Struct, frozen=True):
    """What is computed."""

    window: str = "hann"
    win_length: int = 4096
    hop: int = 1024
    nfft: int = 0
    scaling: Scaling = "dbfs"

    def spec(self, fs: float, channels: int) -> SpectrumSpec:
        """Bind to a source's rate and channels; raises ConfigError if a rule is broken."""
        return SpectrumSpec(
            fs, channels, self.window, self.win_length, self.hop, self.nfft, self.scaling
        )


class EngineConfig(Struct, frozen=True):
    """What computes it."""

    engine: Literal["auto", "opencl", "numpy"] = "auto"
    device: str = ""


class PublishConfig(Struct, frozen=True):
    """Where spectra go."""

    endpoints: Endpoints = ("tcp://127.0.0.1:5556",)
    insecure: bool = False
    queue_frames: Annotated[int, Meta(ge=1)] = 256
    high_water_mark: Annotated[int, Meta(ge=1)] = 256


class LogConfig(Struct, frozen=True):
    """What is said about it."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    style: Literal["auto", "journal", "human", "json"] = "auto"


class Config(Struct, frozen=True):
    """All settings of the daemon, immutable."""

    source: SourceConfig = SourceConfig()
    analysis: AnalysisConfig = AnalysisConfig()
    engine: EngineConfig = EngineConfig()
    publish: PublishConfig = PublishConfig()
    log: LogConfig = LogConfig()


_SECTIONS: dict[str, dict[str, Any]] = {
    section.name: {key.name: key.type for key in msgspec.structs.fields(section.type)}
    for section in msgspec.structs.fields(Config)
}

Settings = dict[str, dict[str, Any]]


def default_toml() -> str:
    """Return the commented default configuration."""
    return resources.files("spectrod").joinpath("default.toml").read_text("utf-8")


def find_file(path: str | None) -> Path | None:
    """Find the configuration file: the one named, the environment's, the system's, or none."""
    if path is not None:
        return Path(path)
    named = os.environ.get(ENV_PREFIX + "CONFIG")
    if named:
        return Path(named)
    return SYSTEM_FILE if SYSTEM_FILE.exists() else None


def load(path: str | None = None, flags: Mapping[str, Mapping[str, Any]] | None = None) -> Config:
    """Merge all layers into one configuration.

    Parameters
    ----------
    path : str, optional
        Configuration file; without it ``$SPECTROD_CONFIG``, then ``/etc/spectrod/spectrod.toml``
        if that exists.
    flags : mapping of section to key to value, optional
        From the command line; values of None do not count.

    Returns
    -------
    config : Config

    Raises
    ------
    ConfigError
        For a file that cannot be read, bad TOML, an unknown key, a wrong type, a broken rule.
    """
    file = find_file(path)
    return _merged(_from_file(file) if file else {}, _from_environment(), _from_flags(flags or {}))


def check_file(path: str) -> None:
    """Check a configuration file by itself, whatever environment and flags would override.

    Raises
    ------
    ConfigError
        As ``load``; also for an endpoint that could not be bound. What only the source can tell,
        such as a missing device, is found when it is opened.
    """
    config = _merged(_from_file(Path(path)))
    for endpoint in config.publish.endpoints:
        check_bindable(parse_endpoint(endpoint), insecure=config.publish.insecure)


def _merged(*layers: Settings) -> Config:
    merged: Settings = {section: {} for section in _SECTIONS}
    for layer in layers:
        for section, values in layer.items():
            merged[section].update(values)
    config = msgspec.convert(merged, Config)
    # fs and channels come from the source; what can be checked without them is checked now.
    config.analysis.spec(float(config.source.samplerate or 48_000), config.source.channels or 1)
    return config


def to_toml(config: Config) -> str:
    """Write a configuration as TOML that ``load`` reads back to the same.

    Raises
    ------
    ConfigError
        If a text is not Unicode (a file name of other bytes), which TOML cannot say.
    """
    lines = []
    for section, values in msgspec.to_builtins(config).items():
        lines.append(f"[{section}]")
        lines += [f"{key} = {_toml_value(section, key, value)}" for key, value in values.items()]
        lines.append("")
    return "\n".join(lines)


def _toml_value(section: str, key: str, value: Any) -> str:
    """Write JSON: its strings, numbers, booleans and arrays of them are TOML's too, all but DEL."""
    try:
        return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f")
    except UnicodeEncodeError as error:
        raise ConfigError(f"{section}.{key}={value!r}: must be UTF-8 to be written") from error


def changed_keys(old: Config, new: Config) -> list[str]:
    """Name the settings, as ``section.key``, in which two configurations differ."""
    before, after = msgspec.to_builtins(old), msgspec.to_builtins(new)
    return [
        f"{section}.{key}"
        for section, keys in _SECTIONS.items()
        for key in keys
        if before[section][key] != after[section][key]
    ]


def _from_file(path: Path) -> Settings:
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from error
    for section, values in data.items():
        if not isinstance(values, dict):
            raise ConfigError(f"{path}: {section}: unknown key; keys stand in {_known_sections()}")
    return _checked(data, str(path), strict=True)


def _from_environment() -> Settings:
    settings: Settings = {}
    for variable, text in os.environ.items():
        if variable.startswith(ENV_PREFIX) and variable != ENV_PREFIX + "CONFIG":
            section, _, key = variable.removeprefix(ENV_PREFIX).lower().partition("_")
            # Other variables may share the prefix; only SPECTROD_<section>_ is ours to judge.
            if section in _SECTIONS:
                settings.setdefault(section, {})[key] = text
    return _checked(settings, "environment", strict=False)


def _from_flags(flags: Mapping[str, Mapping[str, Any]]) -> Settings:
    given = {
        section: {key: value for key, value in values.items() if value is not None}
        for section, values in flags.items()
    }
    return _checked(given, "command line", strict=False)


def _checked(data: Mapping[str, Mapping[str, Any]], origin: str, *, strict: bool) -> Settings:
    """Check each value of a layer by itself, so that an error can name the layer."""
    return {
        section: {
            key: _convert(section, key, value, origin, strict=strict)
            for key, value in values.items()
        }
        for section, values in data.items()
    }


def _convert(section: str, key: str, value: Any, origin: str, *, strict: bool) -> Any:
    if section not in _SECTIONS:
        raise ConfigError(f"{origin}: [{section}]: unknown section; known: {_known_sections()}")
    types = _SECTIONS[section]
    if key not in types:
        raise ConfigError(
            f"{origin}: {section}.{key}: unknown key; [{section}] knows {', '.join(types)}"
        )
    type_ = types[key]
    if not strict and isinstance(value, str) and type_ == Endpoints:
        value = [item for part in value.split(",") if (item := part.strip())]
    try:
        return msgspec.convert(value, type_, strict=strict)
    except msgspec.ValidationError as error:
        is_choice = get_origin(type_) is Literal
        rule = f"must be one of {', '.join(get_args(type_))}" if is_choice else str(error)
        raise ConfigError(f"{origin}: {section}.{key}={value!r}: {rule}") from error


def _known_sections() -> str:
    return ", ".join(f"[{section}]" for section in _SECTIONS)
