"""Settings of a running daemon: those in force, changes to them, and reloads of the file."""

import logging
import threading
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from spectrod.config import config
from spectrod.config.config import Config, RecordingConfig, SourceTable
from spectrod.config.settings import path_keys
from spectrod.daemon.change_journal import Journal
from spectrod.lib.errors import ConfigError, NotFoundError, SpectrodError
from spectrod.lib.names import check_name
from spectrod.lib.suggestions import did_you_mean
from spectrod.measure.kinds import KINDS
from spectrod.source.kinds import find_kind, forms

_SIGNAL: Final = "SIGHUP"
_DEFAULTS: Final[Any] = msgspec.json.decode(msgspec.json.encode(SourceTable()))
_OF_RECORDING: Final[Any] = msgspec.json.decode(msgspec.json.encode(RecordingConfig("")))
_OF_NEW: Final[Mapping[type, msgspec.Struct]] = {
    SourceTable: SourceTable(),
    RecordingConfig: RecordingConfig(""),
}
"""What a table that a peer adds begins with."""


class Named(Protocol):
    """A source of the daemon."""

    @property
    def name(self) -> str:
        """Name of the source in topics."""


class Reconfigurable(Protocol):
    """The daemon, whose settings can be changed."""

    @property
    def runners(self) -> Sequence[Named]:
        """Sources of the daemon."""

    def reconfigure(self, settings: Config) -> None:
        """Change to a configuration, all or nothing; raises a SpectrodError."""


class LastLoad(NamedTuple):
    """Result of the last attempt to read the configuration."""

    is_ok: bool
    error: str
    """Reason of a failure, in one line; else empty."""
    t_utc_ns: int
    """Time of the attempt [ns since 1970]."""
    ok_utc_ns: int
    """Time of the last attempt that succeeded [ns since 1970]."""


class LiveSettings:
    """The settings in force; changes from several threads are serialised.

    Parameters
    ----------
    daemon : Reconfigurable
        Runs with ``settings``.
    settings : Config
        Settings at the start.
    load : callable
        Reads file, environment and command line again.
    journal : Journal
        Records every change.
    reload_keys : callable
        Reads the keys again and returns readable descriptions of the changes.
    check_keys : callable
        Reads the keys without using them; raises ConfigError if they cannot be used.

    Attributes
    ----------
    current : Config
        Settings in force.
    last_load : LastLoad
        Whether the last reload succeeded; at first the start.
    """

    def __init__(
        self,
        daemon: Reconfigurable,
        settings: Config,
        load: Callable[[], Config],
        journal: Journal,
        reload_keys: Callable[[], list[str]] = list,
        check_keys: Callable[[], None] = lambda: None,
    ) -> None:
        self._daemon, self._load, self._journal = daemon, load, journal
        self._reload_keys, self._check_keys = reload_keys, check_keys
        self._loaded = settings
        self._changing = threading.Lock()
        self.current = settings
        now_ns = time.time_ns()
        self.last_load = LastLoad(is_ok=True, error="", t_utc_ns=now_ns, ok_utc_ns=now_ns)

    @property
    def set_keys(self) -> tuple[str, ...]:
        """Keys that were set at run time and differ from the file."""
        return tuple(config.changed_keys(self._loaded, self.current))

    def get(self, key: str = "") -> Any:
        """Return the value in force of all keys, of a table, or of one key, named as in the file.

        Raises
        ------
        NotFoundError
            If there is no such key.
        """
        value: Any = _tree(self.current)
        for part in config.key_parts(key):
            if not (isinstance(value, dict) and part in value):
                known = f"there are {_names(_tree(self.current))}"
                suggestion = did_you_mean(part, value if isinstance(value, dict) else ())
                raise NotFoundError(f"{key}: unknown key; {known}{suggestion}")
            value = value[part]
        return value

    def set(self, changes: Mapping[str, Any], who: str) -> list[str]:
        """Change keys, all or none.

        Parameters
        ----------
        changes : mapping
            Keys and values, which may be text like on a command line; None removes a table.
        who : str
            Peer that requested the changes.

        Returns
        -------
        lines : list of str
            Each change, ``KEY: OLD -> NEW``. With several sources, also ``note: ...`` for each key
            that does not state which sources it affects.

        Raises
        ------
        ConfigError
            If a rule is violated, a key needs a restart, or a source would be opened by its path.
        SpectrodError
            If the daemon cannot apply the change.
        """
        with self._changing:
            new = config.with_changes(self.current, changes, "set")
            return self._change_to(new, "control.set", who)

    def add_source(self, name: str, table: Mapping[str, Any], who: str) -> list[str]:
        """Add a source and start it; arguments and errors like ``set``."""
        check_name("name of a source", name)
        with self._changing:
            before = self._with_tables(self.current)
            if any(source.name == name for source in before.all_sources):
                raise ConfigError(f"source={name!r}: already exists; choose another name")
            key = f'sources."{name}"'
            new = config.with_changes(before, {key: dict(table)}, "source.add")
            if before is not self.current:
                self._apply(before)  # the same source, so no change remains if the next step fails
                self._loaded = self._with_tables(self._loaded)
            return self._change_to(new, "source.add", who)

    def remove_source(self, name: str, who: str) -> list[str]:
        """Stop and remove a source; arguments and errors like ``set``."""
        with self._changing:
            names = [source.name for source in self._with_tables(self.current).all_sources]
            if name not in names:
                raise NotFoundError(
                    f"source={name!r}: does not exist; there are: {', '.join(names)}"
                )
            if len(names) == 1:
                raise ConfigError(f"source={name!r}: is the last one, and a daemon must have one")
            new = config.with_changes(self.current, {f'sources."{name}"': None}, "source.remove")
            return self._change_to(new, "source.remove", who)

    def reload(self, who: str = _SIGNAL) -> list[str]:
        """Read configuration and keys again, and apply the keys that can change at run time.

        Values set since the file was last read are dropped: the file takes precedence.

        Returns
        -------
        lines : list of str
            Applied keys, reverted keys, and keys that need a restart.

        Raises
        ------
        SpectrodError
            If the file or a key is invalid, or the daemon cannot apply the file; nothing has
            changed then. Keys that become invalid meanwhile leave the old keys in force.
        """
        with self._changing, self._noted_load():
            old, new, was_set = self.current, self._load(), self.set_keys
            changed = config.changed_keys(old, new)
            live = [key for key in changed if config.is_live(key)]
            self._check_keys()
            # Keep the old value of keys that are not applied, so the next reload reports them
            # again.
            self._apply(_with_live_parts(old, new))
            lines = [
                f"applied {key}{' (the file wins over set)' if key in was_set else ''}"
                for key in live
            ]
            lines += [f"{key} needs a restart" for key in changed if key not in live]
            self._loaded = self.current
            return self._with_keys(lines, who)

    @contextmanager
    def _noted_load(self) -> Iterator[None]:
        error = ""
        try:
            yield
        except SpectrodError as failure:
            error = str(failure)
            raise
        finally:
            now_ns = time.time_ns()
            ok_utc_ns = self.last_load.ok_utc_ns if error else now_ns
            self.last_load = LastLoad(not error, error, now_ns, ok_utc_ns)

    def _with_keys(self, lines: list[str], who: str) -> list[str]:
        """Read the keys again, and record all changes whether that succeeds or not."""
        # A signal has no reply: the service logs the lines, or only the error.
        log = who != _SIGNAL
        try:
            lines = [*lines, *self._reload_keys()] or ["nothing has changed"]
        except ConfigError as error:
            lines, log = [*lines, f"keys as they were: {error}"], True
            raise ConfigError(f"settings applied, keys as they were: {error}") from error
        finally:
            self._journal.note("control.reload", "; ".join(lines), who=who, log=log)
        return lines

    def _change_to(self, new: Config, kind: str, who: str) -> list[str]:
        """Apply a peer's request."""
        old = self.current
        changed = config.changed_keys(old, new)
        for key in changed:
            if not config.is_live(key):
                raise ConfigError(f"{key}: needs a restart: change it in the file")
        _check_folders(old, new)
        _check_paths(old, new)
        self._apply(new)
        lines = _differences(old, new, changed)
        for line in lines:
            self._journal.note(kind, line, who=who)
        return lines + _reach(new, changed)

    def _apply(self, new: Config) -> None:
        self._daemon.reconfigure(new)
        logging.getLogger().setLevel(new.log.level.upper())
        self.current = new

    def _with_tables(self, settings: Config) -> Config:
        """Convert a single [source] to a named table, so that other sources can be added."""
        if settings.sources:
            return settings
        (table,), (runner,) = settings.all_sources, self._daemon.runners
        named = msgspec.structs.replace(
            table, name=runner.name, products=(), triggers=(), **dict.fromkeys(KINDS, ())
        )
        return msgspec.structs.replace(settings, sources=(named,))


def _reach(settings: Config, changed: Sequence[str]) -> list[str]:
    """Return a note for each change whose key does not state which sources it affects."""
    names = [source.name for source in settings.sources]
    if len(names) < 2:
        return []
    notes = [
        f"note: {key} is for sources that are added later; {', '.join(names)} keep theirs "
        f"(sources.*.{key} changes those of all)"
        for key in changed
        if key.startswith("analysis.")
    ]
    for product in settings.products:
        prefix = config.key_parts(f'products."{product.name}"')
        if any(config.key_parts(key)[:2] == prefix for key in changed):
            reached = ", ".join(product.sources or names)
            notes.append(f"note: products.{product.name} is of {reached}")
    return notes


def _with_live_parts(old: Config, new: Config) -> Config:
    """Return the old settings with those of the new ones that can change at run time."""
    return msgspec.structs.replace(
        old,
        source=new.source,
        analysis=new.analysis,
        sources=new.sources,
        products=new.products,
        triggers=new.triggers,
        recordings=new.recordings,
        **{word: getattr(new, word) for word in KINDS},
        publish=msgspec.structs.replace(old.publish, on_demand=new.publish.on_demand),
        log=msgspec.structs.replace(old.log, level=new.log.level),
    )


def _check_paths(old: Config, new: Config) -> None:
    """Refuse changes of paths by peers, who would have the daemon open files of their choice."""
    before = dict(_tables_with_paths(old))
    before.setdefault(f"sources.{old.source.name}", old.source)  # it may become one of several
    for name, table in _tables_with_paths(new):
        was = before.get(name, _OF_NEW.get(type(table), table))
        for key in path_keys(type(table)):
            value = getattr(table, key)
            if value != getattr(was, key):
                _refuse_path(name, key, value)


def _refuse_path(table: str, key: str, value: str) -> None:
    """Raise ConfigError, unless the value is the URI of a source that can name no file."""
    if key != "uri":
        raise ConfigError(
            f"{table}.{key}={value!r}: peers change no paths; change it in the file and reload"
        )
    if not find_kind(value)[0].is_safe_over_control:
        raise ConfigError(
            f"uri={value!r}: no file paths from peers outside the state folder; "
            f"must be {forms(safe_only=True)}"
        )


def _tables_with_paths(settings: Config) -> Iterator[tuple[str, msgspec.Struct]]:
    """Yield the name and the values of each table that may hold paths."""
    yield from (("control", settings.control), ("security", settings.security))
    if not settings.sources:
        yield "source", settings.source
    yield from ((f"sources.{source.name}", source) for source in settings.sources)
    yield from ((f"recordings.{recording.name}", recording) for recording in settings.recordings)


def _check_folders(old: Config, new: Config) -> None:
    """Refuse changes by peers to recordings that are, or would be, outside the state folder.

    Retention deletes files there, so peers may change no key of such recordings.
    """
    before = {recording.name: recording for recording in old.recordings}
    after = {recording.name: recording for recording in new.recordings}
    for name in {**before, **after}:
        was, becomes = before.get(name), after.get(name)
        if was == becomes:
            continue
        if was is not None and was.folder:
            raise ConfigError(
                f"recordings.{name}: peers change no recording with a folder of its own "
                f"({was.folder}), only those in the state folder; change it in the file and reload"
            )
        if becomes is not None and becomes.folder:
            raise ConfigError(
                f"folder={becomes.folder!r}: no folders from peers outside the state folder; "
                "must be ''"
            )


def _tree(settings: Config) -> dict[str, Any]:
    """Return settings as nested tables, like in the file."""
    return tomllib.loads(config.to_toml(settings))


def _names(tree: Mapping[str, Any]) -> str:
    return ", ".join(f"[{name}]" for name in tree)


def _differences(old: Config, new: Config, keys: Sequence[str]) -> list[str]:
    before, after = _tree(old), _tree(new)
    return [f"{key}: {_shown(before, key)} -> {_shown(after, key)}" for key in keys]


def _shown(tree: Any, key: str) -> str:
    section, *_ = parts = config.key_parts(key)
    for part in parts:
        if part not in tree:
            return "none"
        tree = tree[part]
    defaults = _OF_RECORDING if section == "recordings" else _DEFAULTS
    return msgspec.json.encode(_non_defaults(tree, defaults)).decode()


def _non_defaults(value: Any, default: Any) -> Any:
    """Return the parts of a table that differ from the defaults."""
    if not (isinstance(value, dict) and isinstance(default, dict)):
        return value
    return {k: _non_defaults(v, default.get(k)) for k, v in value.items() if default.get(k) != v}
