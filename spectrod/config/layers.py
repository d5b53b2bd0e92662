"""Layers of settings: tables of keys and values, each checked by itself."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, get_args

import msgspec
from msgspec import UnsetType

from spectrod.config.settings import Config, RecordingConfig
from spectrod.config.toml_text import Path, TomlText
from spectrod.config.values import broken_rules, from_text, shown
from spectrod.lib.errors import ConfigError, SettingsError
from spectrod.lib.names import check_name
from spectrod.lib.suggestions import did_you_mean
from spectrod.measure.kinds import KINDS
from spectrod.measure.triggers.trigger_config import TriggerConfig

Settings = dict[str, dict[str, Any]]
TableCheck = Callable[[dict[str, Any]], Any]
"""Checks a table of keys; raises ConfigError."""

SOURCES, PRODUCTS, RECORDINGS = "sources", "products", "recordings"
TRIGGERS = "triggers"
NAMED = (SOURCES, PRODUCTS, *KINDS, TRIGGERS, RECORDINGS)
"""Sections of tables that have names of their own."""


def _keys_of(table: Any) -> dict[str, Any]:
    """Return the types of the keys of a table with a name, of values that are given."""
    return {
        key.name: _given(key.type) for key in msgspec.structs.fields(table) if key.name != "name"
    }


def _given(type_: Any) -> Any:
    types = [one for one in get_args(type_) if one is not UnsetType]
    return types[0] if UnsetType in get_args(type_) else type_


SECTIONS: dict[str, dict[str, Any]] = {
    section.name: {key.name: _given(key.type) for key in msgspec.structs.fields(section.type)}
    for section in msgspec.structs.fields(Config)
    if section.name not in NAMED
}
"""Types of the keys of each other section."""
KEYS = {
    # Without the name, which is the table's.
    SOURCES: {key: type_ for key, type_ in SECTIONS["source"].items() if key != "name"},
    PRODUCTS: {SOURCES: tuple[str, ...], **SECTIONS["analysis"]},
    **{word: _keys_of(kind) for word, kind in KINDS.items()},
    TRIGGERS: _keys_of(TriggerConfig),
    RECORDINGS: _keys_of(RecordingConfig),
}
"""Types of the keys of a table of each section of ``NAMED``."""
_MISTAKES_MAX = 1000

Place = tuple[str, tuple[int, ...]]
"""What a line of a mistake begins with, and what sorts the lines."""


class Mistakes:
    """Mistakes of all layers; each is a line that names the place, the value and the rule.

    Attributes
    ----------
    lost : set of tuple
        Paths of settings that have no value because of a mistake; () for any.
    """

    def __init__(self) -> None:
        self._lines: dict[str, tuple[Any, ...]] = {}
        self.lost: set[Path] = set()

    def __len__(self) -> int:
        return len(self._lines)

    def add(self, place: Place, text: str, lost: Path | None = None) -> None:
        """Add a mistake at a place; the same line counts once."""
        where, order = place
        self._lines.setdefault(f"{where}{text}", (*order, len(self._lines)))
        if lost is not None:
            self.lost.add(lost)

    @property
    def has_lost_tables(self) -> bool:
        """Whether tables may be missing, so that rules between tables cannot be checked."""
        return any(len(path) < 2 or (path[0] in NAMED and len(path) == 2) for path in self.lost)

    def lost_keys(self, *tables: Path) -> set[str]:
        """Return the keys of some tables that have no value."""
        return {str(path[len(table)]) for table in tables for path in self.lost
                if len(path) > len(table) and path[: len(table)] == table}  # fmt: skip

    def raise_any(self) -> None:
        """Raise SettingsError if there is a mistake."""
        lines = sorted(self._lines, key=lambda line: self._lines[line])
        if len(lines) > _MISTAKES_MAX:
            more = f"{len(lines) - _MISTAKES_MAX} more mistakes"
            lines = [*lines[:_MISTAKES_MAX], more]
        if lines:
            raise SettingsError(lines)


class Layer:
    """Settings of one origin.

    Parameters
    ----------
    origin : str
        A file's path, or another name for errors.
    number : int
        Later ones win.
    text : TomlText or None
        Where they stand in a file.
    settings : dict
        Filled in by ``check_layer``.
    """

    def __init__(self, origin: str, number: int = 0, text: TomlText | None = None) -> None:
        self.origin, self.number, self.text = origin, number, text
        self.settings: Settings = {}

    @property
    def is_file(self) -> bool:
        """Whether it is a file, so that its settings have positions."""
        return self.text is not None

    def where(self, path: Path) -> str:
        """Return the place of a setting: ``FILE:LINE:COLUMN``, or the origin."""
        position = self.text.position(path) if self.text is not None else None
        return f"{self.origin}:{position.line}:{position.column}" if position else self.origin

    def place(self, path: Path) -> Place:
        """Return the place of a mistake in a setting."""
        position = self.text.position(path) if self.text is not None else None
        return f"{self.where(path)}: ", (self.number, *(position or (0, 0)))

    def has(self, path: Path) -> bool:
        """Return whether it sets a key."""
        value: Any = self.settings
        for part in path:
            if not (isinstance(value, dict) and part in value):
                return False
            value = value[part]
        return True


class TableChecker:
    """Checks the values of a layer by the types of their keys, and adds mistakes.

    In a file the types of values must be right; elsewhere text is read as on a command line.

    Parameters
    ----------
    layer : Layer
        Where they come from.
    mistakes : Mistakes
        Takes those that are found.
    sections : mapping of str to (mapping of str to type)
        Sections that an unknown key may have been meant for, each with its keys.
    """

    def __init__(
        self, layer: Layer, mistakes: Mistakes, sections: Mapping[str, Mapping[str, Any]]
    ) -> None:
        self._layer, self._mistakes, self._sections = layer, mistakes, sections

    def add(self, path: Path, text: str, lost: Path | None = None) -> None:
        """Add a mistake in a setting; ``lost`` has no value because of it."""
        self._mistakes.add(self._layer.place(path), text, lost)

    def table(
        self, path: Path, prefix: str, types: Mapping[str, Any], values: Any
    ) -> dict[str, Any]:
        """Return the values of a table that are right.

        Parameters
        ----------
        path : tuple
            Of the table.
        prefix : str
            Its name, for errors.
        types : mapping of str to type
            Its keys.
        values : object
            From TOML, JSON or text.
        """
        if not isinstance(values, dict):
            self.add(path, f"{prefix}={shown(values)}: must be a table", path)
            return {}
        checked = {}
        for key, value in values.items():
            own = (*path, key)
            if key not in types:
                known = f"[{prefix}] knows {', '.join(types)}"
                meant = did_you_mean(key, types) or self.other_section(key, str(path[0]))
                self.add(own, f"{prefix}.{key}: unknown key; {known}{meant}")
                continue
            try:
                checked[key] = self._converted(f"{prefix}.{key}", key, types[key], value)
            except msgspec.ValidationError:
                is_toml = self._layer.is_file
                for inside, rule in broken_rules(key, value, types[key], is_toml=is_toml):
                    self.add((*own, *inside), f"{prefix}.{key}{rule}", own)
            except ConfigError as error:
                self.add(own, str(error), own)
        return checked

    def _converted(self, name: str, key: str, type_: Any, value: Any) -> Any:
        if not self._layer.is_file and isinstance(value, str):
            value = from_text(name, key, type_, value)
        return msgspec.convert(value, type_, strict=self._layer.is_file)

    def other_section(self, key: str, section: str = "") -> str:
        """Suggest another section that has a key of this name."""
        for other, types in self._sections.items():
            if key in types and other != section:
                return f"; did you mean {other}.{key}?"
        return ""


def check_layer(layer: Layer, data: Mapping[str, Any], mistakes: Mistakes) -> None:
    """Check each value of a layer by itself, and fill in ``layer.settings``.

    Parameters
    ----------
    layer : Layer
        Where they come from.
    data : mapping
        Sections, tables and values.
    mistakes : Mistakes
        Takes those that are found.
    """
    checker = TableChecker(layer, mistakes, SECTIONS)
    for section, values in data.items():
        if not isinstance(values, dict) or section not in (*SECTIONS, *NAMED):
            _add_unknown(checker, section, is_table=isinstance(values, dict))
        elif section in SECTIONS:
            table = checker.table((section,), section, SECTIONS[section], values)
            layer.settings[section] = table
        elif values:
            layer.settings[section] = _named_tables(checker, section, values)


def _add_unknown(checker: TableChecker, section: str, *, is_table: bool) -> None:
    sections = (*SECTIONS, *NAMED)
    known = ", ".join([f"[{one}]" for one in SECTIONS] + [f"[{one}.NAME]" for one in NAMED])
    meant = did_you_mean(section, sections)
    if is_table:
        text = f"[{section}]: unknown section; known: {known}{meant}"
    else:
        meant = meant or checker.other_section(section)
        text = f"{section}: unknown key; keys stand in {known}{meant}"
    checker.add((section,), text, (section,) if is_table or section in sections else None)


def _named_tables(
    checker: TableChecker, section: str, tables: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Check the tables of sources, products, levels or recordings."""
    checked = {}
    for name, table in tables.items():
        path, prefix = (section, name), prefix_of(name, section)
        what = section.removesuffix("s")
        if not isinstance(table, dict):
            text = f"{prefix}: unknown key; a {what} is a table, [{section}.NAME]"
            checker.add(path, text, path)
            continue
        try:
            check_name(f"name of a {what}", name)
        except ConfigError as error:
            checker.add(path, str(error), path)
            continue
        own = {key: table[key] for key in table if (section, key) != (SOURCES, "analysis")}
        checked[name] = checker.table(path, prefix, KEYS[section], own)
        if len(own) < len(table):
            types, analysis = SECTIONS["analysis"], table["analysis"]
            inside = checker.table((*path, "analysis"), f"{prefix}.analysis", types, analysis)
            checked[name]["analysis"] = inside
    return checked


def setting_layer(layers: Sequence[Layer], path: Path) -> Layer | None:
    """Return the last layer that sets a key, or the array that has an item; None for a default."""
    key = path[:-1] if path and isinstance(path[-1], int) else path
    return next((layer for layer in reversed(layers) if layer.has(key)), None)


def prefix_of(name: str, section: str = SOURCES) -> str:
    """Name the table of a source or product as TOML does, where a dot would split it."""
    return f'{section}."{name}"' if "." in name else f"{section}.{name}"


def broken_keys(
    check: TableCheck, table: Mapping[str, Any], lost: set[str]
) -> Iterator[tuple[str | None, str]]:
    """Yield every error of a check that stops at the first.

    The first key of an error is left out, and the rest is checked again, so that each broken rule
    is found. An error about a key which is left out says nothing, as its default is meant.

    Parameters
    ----------
    check : callable
        Checks a table; raises ConfigError.
    table : mapping
        Keys and values.
    lost : set of str
        Keys that are left out from the start.

    Yields
    ------
    key : str or None
        The key of the table that breaks the rule; None if the error is about none of them.
    message : str
        Of the error.
    """
    rest = {key: value for key, value in table.items() if key not in lost}
    left_out = set(lost)
    while True:
        try:
            check(rest)
        except ConfigError as error:
            keys, message = error.keys, str(error)
        else:
            return
        own = next((key for key in keys if key in rest), None)
        if left_out.isdisjoint(keys):
            yield own, message
        if own is None:
            return
        left_out.add(own)
        del rest[own]
