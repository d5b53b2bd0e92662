"""Settings: TOML, environment and flags into frozen structs; the only reader of both.

Later layers win: built-in defaults, the configuration file, its drop-ins, ``SPECTROD_SECTION_KEY``
variables, command-line flags. Every error names the key, the value and the rule; the layer as well,
unless the rule is one between several keys, which may come from different layers.

Several sources stand in tables ``[sources.NAME]``, which only a file can hold. A later layer that
names a source (``source.uri``) replaces them all, and so it does a single one that an earlier layer
names: rate, channels and names of one are not another's. More analyses of them stand in tables
``[products.NAME]``, triggers of events in tables ``[triggers.NAME]``, what is written to files in
tables ``[recordings.NAME]``, in a file too.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from spectrod.config import config_files
from spectrod.config.config_files import SYSTEM_FILE
from spectrod.config.layers import (
    NAMED,
    PRODUCTS,
    SECTIONS,
    SOURCES,
    TRIGGERS,
    Layer,
    Mistakes,
    Settings,
    check_layer,
    prefix_of,
    setting_layer,
)
from spectrod.config.rules import Rules, endpoint_rules, merge
from spectrod.config.settings import (
    AnalysisConfig,
    Config,
    ControlConfig,
    EngineConfig,
    HttpConfig,
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
)
from spectrod.lib.errors import ConfigError
from spectrod.lib.text import printable
from spectrod.measure.features.features_config import FeaturesConfig
from spectrod.measure.kinds import KINDS
from spectrod.measure.levels.levels_config import LevelsConfig
from spectrod.measure.tones.tones_config import TonesConfig
from spectrod.measure.transfer.transfer_config import TransferConfig

__all__ = [
    "SYSTEM_FILE",
    "AnalysisConfig",
    "Config",
    "ControlConfig",
    "EngineConfig",
    "FeaturesConfig",
    "HttpConfig",
    "LevelsConfig",
    "Loaded",
    "LogConfig",
    "Pace",
    "PcmFormat",
    "Product",
    "ProductConfig",
    "PublishConfig",
    "RecordingConfig",
    "Rules",
    "SecurityConfig",
    "SettingPath",
    "SourceConfig",
    "SourceTable",
    "TonesConfig",
    "TransferConfig",
    "changed_keys",
    "check_file",
    "check_file_layers",
    "default_toml",
    "endpoint_rules",
    "find_file",
    "is_live",
    "load",
    "load_layers",
    "to_toml",
    "with_changes",
]

ENV_PREFIX = "SPECTROD_"
_FILE_VARIABLE = ENV_PREFIX + "CONFIG"

_LIVE_KEY = re.compile(
    r"log\.level|publish\.on_demand|"
    rf"(source|analysis|{'|'.join(NAMED)})(\..+)?"
)
_OF_ALL = f"{SOURCES}.*."
_KEY_PART = re.compile(r'"([^"]*)"|([^".]+)')


def default_toml() -> str:
    """Return the commented default configuration."""
    return Path(__file__).with_name("default.toml").read_text("utf-8")


def find_file(path: str | None = None) -> Path | None:
    """Find the configuration file; see ``spectrod.config.config_files.find_file``."""
    return config_files.find_file(path, _FILE_VARIABLE)


SettingPath = tuple[str | int, ...]
"""Section, table and key of a setting, and the number of an item."""


class Loaded(NamedTuple):
    """A configuration, and where its settings come from."""

    config: Config
    layers: tuple[Layer, ...]
    """Later ones win."""

    def where(self, path: SettingPath) -> str:
        """Return the place of a setting: ``FILE:LINE:COLUMN``, a layer's name or ``default``."""
        layer = setting_layer(self.layers, path)
        if layer is None and path[0] == SOURCES and "analysis" in path[2:]:
            return self.where(path[2:])  # what a source does not say is as in [analysis]
        return layer.where(path) if layer else "default"


def load(
    path: str | None = None,
    flags: Mapping[str, Mapping[str, Any]] | None = None,
    note: Callable[[str], None] = lambda _: None,
    rules: Rules | None = None,
) -> Config:
    """Merge all layers into one configuration.

    Parameters
    ----------
    path : str, optional
        Configuration file; without it the one that ``find_file`` finds.
    flags : mapping of section to key to value, optional
        From the command line; values of None do not count.
    note : callable, optional
        Called with messages for the log: that sources were replaced.
    rules : callable, optional
        More checks of the configuration.

    Returns
    -------
    config : Config

    Raises
    ------
    SettingsError
        Names every file that cannot be read, bad TOML, unknown key, wrong type and broken rule.
    """
    return load_layers(path, flags, note, rules).config


def load_layers(
    path: str | None = None,
    flags: Mapping[str, Mapping[str, Any]] | None = None,
    note: Callable[[str], None] = lambda _: None,
    rules: Rules | None = None,
) -> Loaded:
    """Merge all layers, and keep them; parameters and errors as of ``load``."""
    mistakes = Mistakes()
    file = find_file(path)
    layers = _file_layers(file, mistakes) if file else []
    settings = _stacked(layers, mistakes)
    later = {"environment": _from_environment(), "command line": _from_flags(flags or {})}
    for number, (origin, data) in enumerate(later.items(), config_files.DROP_INS_MAX + 1):
        layer = Layer(origin, number)
        check_layer(layer, data, mistakes)
        _replace_sources(settings, layer, mistakes, note)
        _update(settings, layer.settings)
        layers.append(layer)
    return Loaded(merge(settings, layers, mistakes, rules), tuple(layers))


def check_file(path: str) -> Config:
    """Check a configuration file by itself; see ``check_file_layers``."""
    return check_file_layers(path).config


def check_file_layers(path: str, rules: Rules = endpoint_rules) -> Loaded:
    """Check a configuration file by itself, whatever environment and flags would override.

    Returns
    -------
    loaded : Loaded
        The configuration of the file alone.

    Raises
    ------
    SettingsError
        As ``load``; by default also for endpoints that could not be bound. What only the source can
        tell, such as a missing device, is found when it is opened.
    """
    mistakes = Mistakes()
    layers = _file_layers(Path(path), mistakes)
    return Loaded(merge(_stacked(layers, mistakes), layers, mistakes, rules), tuple(layers))


def _file_layers(file: Path, mistakes: Mistakes) -> list[Layer]:
    """Read a file, then its drop-ins in the order of their names."""
    try:
        drop_ins = config_files.drop_ins(file)
    except ConfigError as error:
        mistakes.add(("", (1,)), str(error), lost=())
        drop_ins = []
    # Drop-ins may be all there is, but a file that was named must exist.
    is_absent = drop_ins and not file.exists() and file == config_files.default_file()
    paths = drop_ins if is_absent else [file, *drop_ins]
    bytes_left, layers = config_files.TOTAL_BYTES_MAX, []
    for number, path in enumerate(paths):
        try:
            content = config_files.read(path, bytes_left)
            bytes_left -= len(content)
            text = config_files.parse(path, content)
        except ConfigError as error:
            mistakes.add(("", (number,)), str(error), lost=())
            continue
        layers.append(Layer(str(path), number, text))
        check_layer(layers[-1], text.data, mistakes)
    return layers


def _stacked(layers: Sequence[Layer], mistakes: Mistakes) -> Settings:
    """Merge layers of files: later ones win for each key."""
    settings: Settings = {}
    for layer in layers:
        _update(settings, layer.settings)
    if settings.get(SOURCES) and "source" in settings:
        path = (SOURCES, next(iter(settings[SOURCES])))
        layer = next(one for one in reversed(layers) if one.has(path))
        other = next(one for one in reversed(layers) if one.has(("source",)))
        text = f"[source] and [{prefix_of(path[1])}]: must be one or the other"
        elsewhere = f"; [source] stands in {other.where(('source',))}"
        mistakes.add(layer.place(path), f"{text}{elsewhere}", lost=())
    return settings


def _update(settings: Settings, layer: Settings) -> None:
    """Put the keys of a layer in the place of those of earlier ones."""
    for section, values in layer.items():
        own = settings.setdefault(section, {})
        for key, value in values.items():
            if section in NAMED and isinstance(own.get(key), dict):
                _update_table(own[key], value)
            else:
                own[key] = dict(value) if isinstance(value, dict) else value


def _update_table(table: dict[str, Any], values: Mapping[str, Any]) -> None:
    for key, value in values.items():
        is_table = isinstance(value, dict) and isinstance(table.get(key), dict)
        table[key] = table[key] | value if is_table else value


def _replace_sources(
    settings: Settings, layer: Layer, mistakes: Mistakes, note: Callable[[str], None]
) -> None:
    """Replace all sources of the file by the one that a later layer names."""
    tables = settings.get(SOURCES, {})
    origin, given = layer.origin, layer.settings.get("source", {})
    if "uri" in given and "uri" in settings.get("source", {}):
        del settings["source"]
    if not (tables and given):
        return
    names = ", ".join(f"[{prefix_of(name)}]" for name in tables)
    if "uri" not in given:
        text = (
            f"source.{next(iter(given))}: belongs to a single source, and the file has "
            f"{names}; set it there, or name a source here as well, which replaces them"
        )
        mistakes.add(layer.place(()), text, lost=())
        return
    del settings[SOURCES]
    note(f"{origin}: source.uri={given['uri']!r} replaces {names} of the file")
    for section in NAMED[1:]:
        of_them = settings.get(section, {})
        for name in [name for name, table in of_them.items() if table.get(SOURCES)]:
            del of_them[name]
            note(f"{origin}: [{prefix_of(name, section)}] of the file goes with them")


def to_toml(config: Config, where: Callable[[SettingPath], str] | None = None) -> str:
    """Write a configuration as TOML that ``load`` reads back to the same.

    Parameters
    ----------
    config : Config
        The configuration.
    where : callable, optional
        Returns the origin of a setting, for a comment at its line; see ``Loaded.where``.

    Raises
    ------
    ConfigError
        If a text is not Unicode (a file name of other bytes), which TOML cannot say.
    """
    lines = []
    for table, values in _tables(config).items():
        lines.append(f"[{table}]")
        for key, value in values.items():
            comment = f"  # {printable(where((*key_parts(table), key)))}" if where else ""
            lines.append(f"{key} = {_toml_value(table, key, value)}{comment}")
        lines.append("")
    return "\n".join(lines)


def _tables(config: Config) -> dict[str, dict[str, Any]]:
    """Keys and values of each table that says something, by the table's name in TOML."""
    tables = _settings(config)
    sources, others = tables.pop(SOURCES), {key: tables.pop(key) for key in NAMED[1:]}
    for name, source in sources.items():
        prefix, analysis = prefix_of(name), source.pop("analysis")
        tables |= {prefix: source, f"{prefix}.analysis": analysis}
    for section, named in others.items():
        tables |= {prefix_of(name, section): table for name, table in named.items()}
    return tables


def _settings(config: Config) -> Settings:
    """Return a configuration as the tables that layers consist of."""
    settings: dict[str, Any] = msgspec.to_builtins(config)
    sources: list[dict[str, Any]] = settings.pop(SOURCES)
    if sources:
        del settings["source"]
    settings[SOURCES] = {}
    for source in sources:
        for section in (PRODUCTS, *KINDS, TRIGGERS):
            del source[section]  # follow from [products.*] and so on
        settings[SOURCES][source.pop("name")] = source
    for section in NAMED[1:]:
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
        The key of a table, such as ``sources.NAME`` or ``recordings.NAME``, takes a whole
        table, or None to remove it. ``sources.*.KEY`` stands for KEY of each source.
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
    mistakes = Mistakes()
    layer = Layer(origin)
    check_layer(layer, settings, mistakes)
    mistakes.raise_any()
    new = merge(layer.settings, [layer], mistakes)
    if new.sources and new.analysis != config.analysis:
        # No source has it yet, and a file may leave the rest of it to each; here it is asked for.
        try:
            new.analysis.spec(None, channels=1)
        except ConfigError as error:
            raise error.of("analysis") from error
    return new


def _of_each_source(settings: Settings, key: str, origin: str) -> list[str]:
    """Name the keys that ``sources.*.KEY`` stands for; another key stands for itself."""
    if not key.startswith(_OF_ALL):
        return [key]
    own_key = key.removeprefix(_OF_ALL)
    if not own_key or own_key.startswith("."):
        raise ConfigError(f"{origin}: {key}: must be {_OF_ALL}KEY")
    if not settings[SOURCES]:
        return [own_key if own_key.startswith("analysis.") else f"source.{own_key}"]
    return [f'{SOURCES}."{name}".{own_key}' for name in settings[SOURCES]]


def key_parts(key: str) -> list[str]:
    """Split a dotted TOML key; parts in double quotes may hold dots."""
    return [quoted or bare for quoted, bare in _KEY_PART.findall(key)]


def _change(settings: Settings, key: str, value: Any, origin: str) -> None:
    path = key_parts(key)
    last = path.pop() if path else ""
    if path == [SOURCES] and "source" in settings:
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
    elif table is settings[SOURCES] and not table:
        raise ConfigError(f"{origin}: {key}: is the last source; there must be one")


def _make_several(settings: Settings, origin: str) -> None:
    """Make the single source one of several that may stand beside it."""
    source = settings.pop("source")
    name = source.pop("name", "")
    if not (name and isinstance(name, str)):
        rule = "must be set before there can be others"
        raise ConfigError(f"{origin}: source.name={name!r}: {rule}")
    settings[SOURCES][name] = source | {"analysis": dict(settings["analysis"])}


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


def _from_environment() -> Settings:
    settings: Settings = {}
    # The values of others are not read, which would take most of the time.
    for variable in (name for name in os.environ if name.startswith(ENV_PREFIX)):
        if variable != _FILE_VARIABLE:
            section, separator, key = variable.removeprefix(ENV_PREFIX).lower().partition("_")
            # Other variables may share the prefix; only SPECTROD_<section>_ is ours to judge.
            if separator and section in SECTIONS:
                settings.setdefault(section, {})[key] = os.environ[variable]
    return settings


def _from_flags(flags: Mapping[str, Mapping[str, Any]]) -> Settings:
    return {
        section: {key: value for key, value in values.items() if value is not None}
        for section, values in flags.items()
    }
