"""Settings: TOML, environment and flags into frozen structs; the only reader of both.

Later layers win: built-in defaults, the configuration file, ``SPECTROD_SECTION_KEY`` variables,
command-line flags. Every error names the key, the value and the rule; the layer as well, unless
the rule is one between several keys, which may come from different layers.

Several sources stand in tables ``[sources.NAME]``, which only a file can hold. A later layer that
names a source (``source.uri``) replaces them all, and so it does a single one that an earlier layer
names: rate, channels and names of one are not another's.
"""

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from spectrod.errors import ConfigError
from spectrod.types import CHANNELS_MAX, SpectrumSpec
from spectrod.units import Scaling
from spectrod.wire.endpoint import check_bindable, parse_endpoint
from spectrod.wire.names import check_channel_names, check_name, name_channels

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
    block_ms: Annotated[float, Meta(ge=1, le=1000)] = 10.0
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

    def spec(self, fs: float, channels: int, *, iq: bool = False) -> SpectrumSpec:
        """Bind to a source's rate and channels; raises ConfigError if a rule is broken."""
        return SpectrumSpec(
            fs, channels, self.window, self.win_length, self.hop, self.nfft, self.scaling, iq=iq
        )


class SourceTable(SourceConfig, frozen=True):
    """A source with the analysis of its own; what ``[sources.NAME]`` says, ``name`` included."""

    analysis: AnalysisConfig = AnalysisConfig()

    def spec(self, fs: float, channels: int) -> SpectrumSpec:
        """Bind to what the source turned out to be, once it is open.

        Raises
        ------
        ConfigError
            If a rule is broken, or ``channel_names`` are not one for each spectrum.
        """
        spec = self.analysis.spec(fs, channels, iq=self.iq)
        name_channels(self.channel_names, spec.n_signals)
        return spec


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
    on_demand: bool = True
    replay_mb: Annotated[float, Meta(ge=0, le=65536)] = 16.0
    raw32: tuple[str, ...] = ()


class ControlConfig(Struct, frozen=True):
    """Where the daemon takes requests, and how many."""

    endpoints: tuple[str, ...] = ("auto",)
    requests_per_s: Annotated[float, Meta(gt=0, le=100_000)] = 100.0
    state_folder: str = ""


class SecurityConfig(Struct, frozen=True):
    """Who may connect."""

    server_key: str = ""
    client_keys: str = ""
    require: Literal["remote", "always"] = "remote"


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
    control: ControlConfig = ControlConfig()
    security: SecurityConfig = SecurityConfig()
    log: LogConfig = LogConfig()
    sources: tuple[SourceTable, ...] = ()
    """Where there are any, ``source`` counts for nothing, and each has all of its analysis."""

    @property
    def all_sources(self) -> tuple[SourceTable, ...]:
        """What the daemon analyses: those of ``[sources.*]``, or else the one of ``[source]``."""
        own = msgspec.structs.asdict(self.source)
        return self.sources or (SourceTable(**own, analysis=self.analysis),)


_SOURCES = "sources"
_SECTIONS: dict[str, dict[str, Any]] = {
    section.name: {key.name: key.type for key in msgspec.structs.fields(section.type)}
    for section in msgspec.structs.fields(Config)
    if section.name != _SOURCES
}
# Of [sources.NAME], whose name is the table's.
_TABLE_KEYS = {key: type_ for key, type_ in _SECTIONS["source"].items() if key != "name"}
_LIVE_KEY = re.compile(r'log\.level|(sources\.("[^"]+"|[^".]+)\.)?analysis\.\w+')

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


def load(
    path: str | None = None,
    flags: Mapping[str, Mapping[str, Any]] | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> Config:
    """Merge all layers into one configuration.

    Parameters
    ----------
    path : str, optional
        Configuration file; without it ``$SPECTROD_CONFIG``, then ``/etc/spectrod/spectrod.toml``
        if that exists.
    flags : mapping of section to key to value, optional
        From the command line; values of None do not count.
    note : callable, optional
        Called with what whoever reads the log should know: that sources were replaced.

    Returns
    -------
    config : Config

    Raises
    ------
    ConfigError
        For a file that cannot be read, bad TOML, an unknown key, a wrong type, a broken rule.
    """
    file = find_file(path)
    settings = _from_file(file) if file else {}
    for origin, layer in (
        ("environment", _from_environment()),
        ("command line", _from_flags(flags or {})),
    ):
        _replace_sources(settings, layer, origin, note)
        for section, values in layer.items():
            settings.setdefault(section, {}).update(values)
    return _merged(settings)


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


def _replace_sources(
    settings: Settings, layer: Settings, origin: str, note: Callable[[str], None]
) -> None:
    """Let a source that a later layer names take the place of all that the file has."""
    tables = settings.get(_SOURCES, {})
    given = layer.get("source", {})
    if "uri" in given and "uri" in settings.get("source", {}):
        del settings["source"]
    if not (tables and given):
        return
    names = ", ".join(f"[{_prefix(name)}]" for name in tables)
    if "uri" not in given:
        raise ConfigError(
            f"{origin}: source.{next(iter(given))}: belongs to a single source, and the file has "
            f"{names}; set it there, or name a source here as well, which replaces them"
        )
    del settings[_SOURCES]
    note(f"{origin}: source.uri={given['uri']!r} replaces {names} of the file")


def _merged(settings: Settings) -> Config:
    merged: dict[str, Any] = {section: settings.get(section, {}) for section in _SECTIONS}
    merged[_SOURCES] = [
        {"name": name} | table | {"analysis": merged["analysis"] | table.get("analysis", {})}
        for name, table in settings.get(_SOURCES, {}).items()
    ]
    config = msgspec.convert(merged, Config)
    for source in config.all_sources:
        _check_source(source, f"{_prefix(source.name)}: " if config.sources else "")
    if sum(source.uri == "-" for source in config.sources) > 1:
        raise ConfigError("uri='-': standard input can be read by one source only")
    return config


def _check_source(source: SourceTable, prefix: str) -> None:
    """Check what can be checked without the source, which decides on its rate and channels."""
    n_known = len(source.select) or source.channels
    try:
        if source.name:
            check_name("name", source.name)
        _check_select(source)
        check_channel_names(source.channel_names)
        n = n_known or (2 if source.iq else 1)
        spec = source.analysis.spec(float(source.samplerate or 48_000), n, iq=source.iq)
        if n_known:
            name_channels(source.channel_names, spec.n_signals)
    except ConfigError as error:
        if prefix:
            raise ConfigError(f"{prefix}{error}") from error
        raise


def _check_select(source: SourceTable) -> None:
    select = ",".join(map(str, source.select))
    if len(set(source.select)) < len(source.select):
        raise ConfigError(f"select={select}: must name each channel once")
    if source.channels and max(source.select, default=0) >= source.channels:
        raise ConfigError(f"select={select}: must be below channels={source.channels}")


def _prefix(name: str) -> str:
    """Name the table of a source as TOML does, where a dot would part it."""
    return f'{_SOURCES}."{name}"' if "." in name else f"{_SOURCES}.{name}"


def to_toml(config: Config) -> str:
    """Write a configuration as TOML that ``load`` reads back to the same.

    Raises
    ------
    ConfigError
        If a text is not Unicode (a file name of other bytes), which TOML cannot say.
    """
    lines = []
    for table, values in _tables(config).items():
        lines.append(f"[{table}]")
        lines += [f"{key} = {_toml_value(table, key, value)}" for key, value in values.items()]
        lines.append("")
    return "\n".join(lines)


def _tables(config: Config) -> dict[str, dict[str, Any]]:
    """Keys and values of each table that says something, by the table's name in TOML."""
    tables: dict[str, Any] = msgspec.to_builtins(config)
    sources: list[dict[str, Any]] = tables.pop(_SOURCES)
    if sources:
        del tables["source"]
    for source in sources:
        prefix = _prefix(source.pop("name"))
        analysis = source.pop("analysis")
        tables |= {prefix: source, f"{prefix}.analysis": analysis}
    return tables


def _toml_value(table: str, key: str, value: Any) -> str:
    """Write JSON: its strings, numbers, booleans and arrays of them are TOML's too, all but DEL."""
    try:
        return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f")
    except UnicodeEncodeError as error:
        raise ConfigError(f"{table}.{key}={value!r}: must be UTF-8 to be written") from error


def changed_keys(old: Config, new: Config) -> list[str]:
    """Name the settings in which two configurations differ.

    Returns
    -------
    keys : list of str
        Each ``section.key``, or the section where only one of them has it.
    """
    before, after = _tables(old), _tables(new)
    changed = []
    for table in before | after:
        if table in before and table in after:
            keys = before[table]
            changed += [f"{table}.{k}" for k in keys if before[table][k] != after[table][k]]
        elif table.removesuffix(".analysis") not in changed:
            changed.append(table)
    return changed


def is_live(key: str) -> bool:
    """Say whether a running daemon can take on a key that ``changed_keys`` names."""
    return _LIVE_KEY.fullmatch(key) is not None


def _from_file(path: Path) -> Settings:
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from error
    tables = data.pop(_SOURCES, {})
    for section, values in {**data, _SOURCES: tables}.items():
        if not isinstance(values, dict):
            raise ConfigError(f"{path}: {section}: unknown key; keys stand in {_known_sections()}")
    settings = _checked(data, str(path), strict=True)
    if tables:
        if "source" in data:
            raise ConfigError(
                f"{path}: [source] and [{_prefix(next(iter(tables)))}]: "
                "must be one or the other in a file"
            )
        settings[_SOURCES] = {n: _checked_table(n, table, path) for n, table in tables.items()}
    return settings


def _checked_table(name: str, table: Any, path: Path) -> dict[str, Any]:
    """Check one source's table of a file."""
    prefix = _prefix(name)
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: {prefix}: unknown key; a source is a table, [{_SOURCES}.NAME]")
    check_name(f"{path}: name of a source", name)
    analysis = table.get("analysis", {})
    if not isinstance(analysis, dict):
        raise ConfigError(f"{path}: {prefix}.analysis={analysis!r}: must be a table")
    own = {
        key: _convert(prefix, _TABLE_KEYS, key, value, str(path), strict=True)
        for key, value in table.items()
        if key != "analysis"
    }
    types = _SECTIONS["analysis"]
    return own | {
        "analysis": {
            key: _convert(f"{prefix}.analysis", types, key, value, str(path), strict=True)
            for key, value in analysis.items()
        }
    }


def _from_environment() -> Settings:
    settings: Settings = {}
    for variable, text in os.environ.items():
        if variable.startswith(ENV_PREFIX) and variable != ENV_PREFIX + "CONFIG":
            section, is_ours, key = variable.removeprefix(ENV_PREFIX).lower().partition("_")
            # Other variables may share the prefix; only SPECTROD_<section>_ is ours to judge.
            if is_ours and section in _SECTIONS:
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
    for section in data:
        if section not in _SECTIONS:
            raise ConfigError(f"{origin}: [{section}]: unknown section; known: {_known_sections()}")
    return {
        section: {
            key: _convert(section, _SECTIONS[section], key, value, origin, strict=strict)
            for key, value in values.items()
        }
        for section, values in data.items()
    }


def _convert(
    table: str, types: Mapping[str, Any], key: str, value: Any, origin: str, *, strict: bool
) -> Any:
    if key not in types:
        raise ConfigError(
            f"{origin}: {table}.{key}: unknown key; [{table}] knows {', '.join(types)}"
        )
    type_ = types[key]
    if not strict and isinstance(value, str) and _is_list(type_):
        value = [item for part in value.split(",") if (item := part.strip())]
    try:
        return msgspec.convert(value, type_, strict=strict)
    except msgspec.ValidationError as error:
        is_choice = get_origin(type_) is Literal
        rule = f"must be one of {', '.join(get_args(type_))}" if is_choice else str(error)
        raise ConfigError(f"{origin}: {table}.{key}={value!r}: {rule}") from error


def _is_list(type_: Any) -> bool:
    bare = get_args(type_)[0] if get_origin(type_) is Annotated else type_
    return get_origin(bare) is tuple


def _known_sections() -> str:
    return ", ".join(f"[{section}]" for section in (*_SECTIONS, f"{_SOURCES}.NAME"))
