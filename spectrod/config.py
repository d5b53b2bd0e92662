"""Settings: TOML, environment and flags into frozen structs; the only reader of both.

Later layers win: built-in defaults, the configuration file, ``SPECTROD_SECTION_KEY`` variables,
command-line flags. Every error names the key, the value and the rule; the layer as well, unless
the rule is one between several keys, which may come from different layers.

Several sources stand in tables ``[sources.NAME]``, which only a file can hold. A later layer that
names a source (``source.uri``) replaces them all, and so it does a single one that an earlier layer
names: rate, channels and names of one are not another's. More analyses of them stand in tables
``[products.NAME]``, what is written to files in tables ``[recordings.NAME]``, in a file too.
"""

import os
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec

from spectrod.endpoint import check_bindable, parse_endpoint, parse_raw32
from spectrod.errors import ConfigError
from spectrod.names import check_channel_names, check_name, name_channels
from spectrod.quantities import FREQUENCY_RULE, TIME_RULE, parse_frequency, parse_time
from spectrod.settings import (
    AnalysisConfig,
    Config,
    ControlConfig,
    EngineConfig,
    LevelsConfig,
    LogConfig,
    Pace,
    PcmFormat,
    Product,
    ProductConfig,
    PublishConfig,
    RecordingConfig,
    SecurityConfig,
    SourceConfig,
    SourceTable,
    check_folder_names,
)
from spectrod.suggestions import did_you_mean

__all__ = [
    "AnalysisConfig",
    "Config",
    "ControlConfig",
    "EngineConfig",
    "LevelsConfig",
    "LogConfig",
    "Pace",
    "PcmFormat",
    "Product",
    "ProductConfig",
    "PublishConfig",
    "RecordingConfig",
    "SecurityConfig",
    "SourceConfig",
    "SourceTable",
    "changed_keys",
    "check_file",
    "default_toml",
    "find_file",
    "is_live",
    "load",
    "to_toml",
    "with_changes",
]

SYSTEM_FILE = Path("/etc/spectrod/spectrod.toml")
ENV_PREFIX = "SPECTROD_"
_FILE_BYTES_MAX = 1 << 18

_SOURCES, _PRODUCTS, _LEVELS, _RECORDINGS = "sources", "products", "levels", "recordings"
_NAMED = (_SOURCES, _PRODUCTS, _LEVELS, _RECORDINGS)
"""Sections of tables that have names of their own."""
_SECTIONS: dict[str, dict[str, Any]] = {
    section.name: {key.name: key.type for key in msgspec.structs.fields(section.type)}
    for section in msgspec.structs.fields(Config)
    if section.name not in _NAMED
}
# Of [sources.NAME], whose name is the table's.
_TABLE_KEYS = {key: type_ for key, type_ in _SECTIONS["source"].items() if key != "name"}
_KEYS = {
    _SOURCES: _TABLE_KEYS,
    _PRODUCTS: {_SOURCES: tuple[str, ...], **_SECTIONS["analysis"]},
    _LEVELS: {
        key.name: key.type for key in msgspec.structs.fields(LevelsConfig) if key.name != "name"
    },
    _RECORDINGS: {
        key.name: key.type for key in msgspec.structs.fields(RecordingConfig) if key.name != "name"
    },
}
_LIVE_KEY = re.compile(
    r"log\.level|publish\.on_demand|(source|analysis|sources|products|levels|recordings)(\..+)?"
)
_FREQUENCY_KEY = re.compile(r"_hz$|^samplerate$")
_TIME_KEY = re.compile(r"(?<!_per)_(s|ms)$")
_OF_ALL = f"{_SOURCES}.*."
_KEY_PART = re.compile(r'"([^"]*)"|([^".]+)')

Settings = dict[str, dict[str, Any]]


def default_toml() -> str:
    """Return the commented default configuration."""
    return Path(__file__).with_name("default.toml").read_text("utf-8")


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
        Called with messages for the log: that sources were replaced.

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


def check_file(path: str) -> Config:
    """Check a configuration file by itself, whatever environment and flags would override.

    Returns
    -------
    config : Config
        Of the file alone.

    Raises
    ------
    ConfigError
        As ``load``; also for an endpoint that could not be bound. What only the source can tell,
        such as a missing device, is found when it is opened.
    """
    config = _merged(_from_file(Path(path)))
    publish = config.publish
    endpoints = [parse_endpoint(text) for text in publish.endpoints]
    endpoints += [parse_raw32(text)[0] for text in publish.raw32]
    for endpoint in endpoints:
        check_bindable(
            endpoint,
            insecure=publish.insecure,
            has_keys=bool(config.security.server_key and config.security.client_keys),
        )
    return config


def _replace_sources(
    settings: Settings, layer: Settings, origin: str, note: Callable[[str], None]
) -> None:
    """Replace all sources of the file by the one that a later layer names."""
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
    for section in _NAMED[1:]:
        of_them = settings.get(section, {})
        for name in [name for name, table in of_them.items() if table.get(_SOURCES)]:
            del of_them[name]
            note(f"{origin}: [{_prefix(name, section)}] of the file goes with them")


def _merged(settings: Settings) -> Config:
    merged: dict[str, Any] = {section: settings.get(section, {}) for section in _SECTIONS}
    merged[_SOURCES] = [
        {"name": name} | table | {"analysis": merged["analysis"] | table.get("analysis", {})}
        for name, table in settings.get(_SOURCES, {}).items()
    ]
    for section in _NAMED[1:]:
        merged[section] = [
            {"name": name} | table for name, table in settings.get(section, {}).items()
        ]
    config = msgspec.convert(merged, Config)
    _check_sources_named(config)
    known = {
        source.name: _check_source(source, f"{_prefix(source.name)}: " if config.sources else "")
        for source in config.all_sources
    }
    for levels in config.levels:
        _check_levels(levels, known)
    for recording in config.recordings:
        _check_recording(recording, known)
    if config.recordings:
        check_folder_names(_RECORDINGS, [recording.name for recording in config.recordings])
        check_folder_names(_SOURCES, [source.name for source in config.all_sources])
    if sum(source.uri == "-" for source in config.sources) > 1:
        raise ConfigError("uri='-': standard input can be read by one source only")
    return config


def _check_sources_named(config: Config) -> None:
    """Check that what names sources names such as there are."""
    names = [source.name for source in config.all_sources]
    for section in _NAMED[1:]:
        for table in getattr(config, section):
            for name in table.sources:
                if name not in names:
                    raise ConfigError(
                        f"{_prefix(table.name, section)}: sources={name!r}: is no source's name; "
                        f"there are: {', '.join(filter(None, names)) or 'none with a name'}"
                    )


def _check_levels(levels: LevelsConfig, known: Mapping[str, Sequence[str]]) -> None:
    """Check sound levels; their name must not be that of a product of the same source."""
    prefix = _prefix(levels.name, _LEVELS)
    try:
        levels.check()
    except ConfigError as error:
        raise ConfigError(f"{prefix}: {error}") from error
    for source in levels.sources or known:
        if levels.name in known[source]:
            raise ConfigError(
                f"{prefix}: is the name of a product of the same source; must be another name"
            )


def _check_recording(recording: RecordingConfig, known: Mapping[str, Sequence[str]]) -> None:
    """Check a recording against the products of each source."""
    prefix = _prefix(recording.name, _RECORDINGS)
    try:
        recording.check()
    except ConfigError as error:
        raise ConfigError(f"{prefix}: {error}") from error
    for source in recording.sources or known:
        if recording.product and recording.product not in known[source]:
            of_source = (
                f"{source} has no such product" if source else "the source has no such product"
            )
            raise ConfigError(
                f"{prefix}: product={recording.product!r}: {of_source}; "
                f"there are: {', '.join(known[source])}"
            )


def _check_source(source: SourceTable, prefix: str) -> tuple[str, ...]:
    """Check what can be checked without the source, which decides on its rate and channels.

    Returns the names of its products.
    """
    n_known = len(source.select) or source.channels
    try:
        if source.name:
            check_name("name", source.name)
        _check_select(source)
        check_channel_names(source.channel_names)
        source.check_format()
        n = n_known or source.default_channels
        unnamed = msgspec.structs.replace(source, channel_names=(), calibration="")
        specs = unnamed.specs(source.known_fs, n)
        if n_known:
            name_channels(source.channel_names, specs[0].n_signals)
        return tuple(spec.product for spec in specs)
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


def _prefix(name: str, section: str = _SOURCES) -> str:
    """Name the table of a source or product as TOML does, where a dot would part it."""
    return f'{section}."{name}"' if "." in name else f"{section}.{name}"


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
    tables = _settings(config)
    sources, others = tables.pop(_SOURCES), {key: tables.pop(key) for key in _NAMED[1:]}
    for name, source in sources.items():
        prefix, analysis = _prefix(name), source.pop("analysis")
        tables |= {prefix: source, f"{prefix}.analysis": analysis}
    for section, named in others.items():
        tables |= {_prefix(name, section): table for name, table in named.items()}
    return tables


def _settings(config: Config) -> Settings:
    """Return a configuration as the tables that layers consist of."""
    settings: dict[str, Any] = msgspec.to_builtins(config)
    sources: list[dict[str, Any]] = settings.pop(_SOURCES)
    if sources:
        del settings["source"]
    settings[_SOURCES] = {}
    for source in sources:
        del source[_PRODUCTS], source[_LEVELS]  # follow from [products.*] and [levels.*]
        settings[_SOURCES][source.pop("name")] = source
    for section in _NAMED[1:]:
        settings[section] = {table.pop("name"): table for table in settings.pop(section)}
    return settings


def with_changes(config: Config, changes: Mapping[str, Any], origin: str) -> Config:
    """Change some keys of a configuration, by the rules that hold for a file.

    Parameters
    ----------
    config : Config
        Stays as it is.
    changes : mapping
        Of keys as ``changed_keys`` names them to values, which may be text as on a command line.
        The key of a table, ``sources.NAME``, ``products.NAME`` or ``recordings.NAME``, takes a
        whole table, or None to remove it. ``sources.*.KEY`` stands for KEY of each source.
    origin : str
        Who wants it, for errors.

    Raises
    ------
    ConfigError
        For an unknown key, a wrong type or a broken rule.

    Notes
    -----
    Where there are several sources, each has all keys of its own analysis: ``analysis.KEY`` then
    changes what sources that are added later begin with.
    """
    settings = _settings(config)
    for key, value in changes.items():
        for one in _of_each_source(settings, key, origin):
            _change(settings, one, value, origin)
    new = _merged(_checked_all(settings, origin, strict=False))
    if new.sources and new.analysis != config.analysis:
        # No source has it yet, and a file may leave the rest of it to each; here it is asked for.
        try:
            new.analysis.spec(None, channels=1)
        except ConfigError as error:
            raise ConfigError(f"analysis: {error}") from error
    return new


def _of_each_source(settings: Settings, key: str, origin: str) -> list[str]:
    """Name the keys that ``sources.*.KEY`` stands for; another key stands for itself."""
    if not key.startswith(_OF_ALL):
        return [key]
    own_key = key.removeprefix(_OF_ALL)
    if not own_key or own_key.startswith("."):
        raise ConfigError(f"{origin}: {key}: must be {_OF_ALL}KEY")
    if not settings[_SOURCES]:
        return [own_key if own_key.startswith("analysis.") else f"source.{own_key}"]
    return [f'{_SOURCES}."{name}".{own_key}' for name in settings[_SOURCES]]


def key_parts(key: str) -> list[str]:
    """Split a dotted TOML key; parts in double quotes may hold dots."""
    return [quoted or bare for quoted, bare in _KEY_PART.findall(key)]


def _change(settings: Settings, key: str, value: Any, origin: str) -> None:
    path = key_parts(key)
    last = path.pop() if path else ""
    if path == [_SOURCES] and "source" in settings:
        _make_several(settings, origin)
    table: Any = settings
    for part in path:
        table = table.get(part) if isinstance(table, dict) else None
    if not (path and isinstance(table, dict)):
        raise ConfigError(f"{origin}: {key}: unknown key; must belong to an existing table")
    if value is not None:
        table[last] = value
    elif table.pop(last, None) is None:
        raise ConfigError(f"{origin}: {key}: does not exist, so it cannot be removed")
    elif table is settings[_SOURCES] and not table:
        raise ConfigError(f"{origin}: {key}: is the last source; there must be one")


def _make_several(settings: Settings, origin: str) -> None:
    """Make the single source one of several that may stand beside it."""
    source = settings.pop("source")
    name = source.pop("name", "")
    if not (name and isinstance(name, str)):
        rule = "must be set before there can be others"
        raise ConfigError(f"{origin}: source.name={name!r}: {rule}")
    settings[_SOURCES][name] = source | {"analysis": dict(settings["analysis"])}


def _toml_value(table: str, key: str, value: Any) -> str:
    """Write JSON: its strings, numbers, booleans and arrays of them are TOML's too, all but DEL."""
    if isinstance(value, dict):
        items = (
            f"{_toml_value(table, key, k)} = {_toml_value(table, key, value[k])}" for k in value
        )
        return f"{{ {', '.join(items)} }}" if value else "{}"
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
            keys = before[table] | after[table]
            changed += [f"{table}.{k}" for k in keys if _differ(before[table], after[table], k)]
        elif table.removesuffix(".analysis") not in changed:
            changed.append(table)
    return changed


def _differ(before: Mapping[str, Any], after: Mapping[str, Any], key: str) -> bool:
    return key not in before or key not in after or bool(before[key] != after[key])


def is_live(key: str) -> bool:
    """Return whether a running daemon can apply a key that ``changed_keys`` names."""
    return _LIVE_KEY.fullmatch(key) is not None


def _from_file(path: Path) -> Settings:
    try:
        with path.open("rb") as file:
            content = file.read(_FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    if len(content) > _FILE_BYTES_MAX:
        raise ConfigError(f"{path}: must have at most {_FILE_BYTES_MAX} bytes")
    try:
        data = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from error
    except RecursionError:
        raise ConfigError(f"{path}: not valid TOML here: tables or arrays too deep") from None
    return _checked_all(data, str(path), strict=True)


def _checked_all(data: dict[str, Any], origin: str, *, strict: bool) -> Settings:
    """Check each value of a layer that may hold tables of sources, products and recordings."""
    named = {section: data.pop(section, {}) for section in _NAMED}
    for section, values in {**data, **named}.items():
        if not isinstance(values, dict):
            raise ConfigError(
                f"{origin}: {section}: unknown key; keys stand in {_known_sections()}"
            )
    settings = _checked(data, origin, strict=strict)
    if named[_SOURCES] and "source" in data:
        raise ConfigError(
            f"{origin}: [source] and [{_prefix(next(iter(named[_SOURCES])))}]: "
            "must be one or the other in a file"
        )
    for section, tables in named.items():
        if tables:
            settings[section] = {
                name: _checked_table(section, name, table, origin, strict=strict)
                for name, table in tables.items()
            }
    return settings


def _checked_table(
    section: str, name: str, table: Any, origin: str, *, strict: bool
) -> dict[str, Any]:
    """Check the table of one source, product or recording."""
    prefix, what = _prefix(name, section), section.removesuffix("s")
    if not isinstance(table, dict):
        raise ConfigError(f"{origin}: {prefix}: unknown key; a {what} is a table, [{section}.NAME]")
    check_name(f"{origin}: name of a {what}", name)
    analysis = table.get("analysis", {}) if section == _SOURCES else None
    types = _KEYS[section]
    own = {
        key: _convert(prefix, types, key, value, origin, strict=strict)
        for key, value in table.items()
        if analysis is None or key != "analysis"
    }
    if analysis is None:
        return own
    if not isinstance(analysis, dict):
        raise ConfigError(f"{origin}: {prefix}.analysis={analysis!r}: must be a table")
    prefix, types = f"{prefix}.analysis", _SECTIONS["analysis"]
    return own | {
        "analysis": {
            key: _convert(prefix, types, key, value, origin, strict=strict)
            for key, value in analysis.items()
        }
    }


def _from_environment() -> Settings:
    settings: Settings = {}
    for variable, text in os.environ.items():
        if variable.startswith(ENV_PREFIX) and variable != ENV_PREFIX + "CONFIG":
            section, separator, key = variable.removeprefix(ENV_PREFIX).lower().partition("_")
            # Other variables may share the prefix; only SPECTROD_<section>_ is ours to judge.
            if separator and section in _SECTIONS:
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
            suggestion = did_you_mean(section, (*_SECTIONS, *_NAMED))
            raise ConfigError(
                f"{origin}: [{section}]: unknown section; known: {_known_sections()}{suggestion}"
            )
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
            f"{did_you_mean(key, types)}"
        )
    type_ = types[key]
    if not strict and isinstance(value, str):
        value = _from_text(f"{origin}: {table}.{key}", key, type_, value)
    try:
        return msgspec.convert(value, type_, strict=strict)
    except msgspec.ValidationError as error:
        rule = str(error)
        bare = _bare(type_)
        if get_origin(bare) is Literal:
            choices = get_args(bare)
            known = ", ".join(filter(None, choices))
            rule = f"must be one of {known}{did_you_mean(str(value), choices)}"
        raise ConfigError(f"{origin}: {table}.{key}={value!r}: {rule}") from error


def _bare(type_: Any) -> Any:
    """Return a type without its rules."""
    return get_args(type_)[0] if get_origin(type_) is Annotated else type_


def _from_text(name: str, key: str, type_: Any, text: str) -> Any:
    """Read a value as text outside a file has it: lists with commas, times and rates with units."""
    bare = _bare(type_)
    if get_origin(bare) is tuple:
        return [item for part in text.split(",") if (item := part.strip())]
    if bare not in (int, float):
        return text
    if _FREQUENCY_KEY.search(key):
        number, rule = parse_frequency(text), FREQUENCY_RULE
    elif match := _TIME_KEY.search(key):
        number, rule = parse_time(text, match[1]), TIME_RULE
    else:
        return text
    if number is None:
        raise ConfigError(f"{name}={text!r}: {rule}")
    return int(number) if bare is int and number.is_integer() else number


def _known_sections() -> str:
    tables = (f"{section}.NAME" for section in _NAMED)
    return ", ".join(f"[{section}]" for section in (*_SECTIONS, *tables))
