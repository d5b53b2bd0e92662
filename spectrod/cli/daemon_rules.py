"""What a daemon needs of its configuration, found without opening a source, a device or a key."""

import os
from collections.abc import Iterator
from pathlib import Path

from spectrod.config.config import Config, SettingPath, SourceTable, endpoint_rules
from spectrod.daemon import resource_needs
from spectrod.lib.errors import ConfigError, SpectrodError, StorageError
from spectrod.source.kinds import FILES, find_kind
from spectrod.source.open_source import check_uri


def daemon_rules(config: Config) -> Iterator[tuple[SettingPath, str]]:
    """Check what a daemon needs: endpoints that can be bound, sources' URIs that can be opened."""
    yield from endpoint_rules(config)
    for table in config.all_sources:
        try:
            check_uri(table)
        except ConfigError as error:
            yield _path(config, table, "uri"), f"{source_name(config, table)}: {error}"


def start_rules(config: Config) -> Iterator[tuple[SettingPath, str]]:
    """Check what a daemon needs at its start: also the calibrations, which it reads first."""
    yield from daemon_rules(config)
    for table in config.all_sources:
        try:
            table.check_calibration()
        except ConfigError as error:
            text = f"{source_name(config, table)}: calibration {error}"
            yield _path(config, table, "calibration"), text


def client_key_rules(config: Config) -> Iterator[tuple[SettingPath, str]]:
    """Read the keys of clients, which a reload reads as well."""
    from spectrod.wire.keys import read_folder  # noqa: PLC0415 - loads ZeroMQ

    if config.security.client_keys:
        try:
            read_folder(Path(config.security.client_keys))
        except ConfigError as error:
            yield ("security", "client_keys"), str(error)


def warnings(config: Config) -> Iterator[tuple[SettingPath, str]]:
    """Yield the path of each setting that names what is not there, or not writable, and a text.

    It opens nothing: sound cards are not looked for.
    """
    for table in config.all_sources:
        name = source_name(config, table)
        if text := _missing_source(table):
            yield _path(config, table, "uri"), f"{name}: {text}"
        if table.calibration and not Path(table.calibration).is_file():
            text = f"{name}: calibration {table.calibration}: there is no such file"
            yield _path(config, table, "calibration"), text
    yield from _bad_folders(config)
    for text in resource_needs.shortages(config):
        yield ("sources",) if config.sources else ("source",), text


def _missing_source(table: SourceTable) -> str:
    """Return why the file or FIFO of a source cannot be opened; empty for all other sources."""
    kind, argument = find_kind(table.uri)
    try:
        if kind is FILES:
            Path(argument).stat()
        elif table.uri.startswith("pcm:"):
            kind.inspect(argument)
    except OSError as error:
        return f"{argument}: {error.strerror}"
    except SpectrodError as error:
        return str(error)
    return ""


def _bad_folders(config: Config) -> Iterator[tuple[SettingPath, str]]:
    folders: list[tuple[tuple[str, ...], str]] = [
        (("control", "state_folder"), config.control.state_folder)
    ]
    folders += [(("recordings", one.name, "folder"), one.folder) for one in config.recordings]
    for path, folder in folders:
        try:
            if folder:
                check_folder(Path(folder), ".".join(path))
        except StorageError as error:
            yield path, str(error)


def unchecked(config: Config) -> Iterator[str]:
    """Yield a line for each source whose settings depend on its unknown rate or channels."""
    for table in config.all_sources:
        if table.unchecked:
            name, settings = source_name(config, table), ", ".join(table.unchecked)
            yield (
                f"{name}: not checked, because only the source knows its sample rate or channels: "
                f"{settings} (set them, or use --deep)"
            )


def source_name(config: Config, table: SourceTable) -> str:
    """Return the table of a source, for errors."""
    return f"sources.{table.name}" if config.sources else "source"


def _path(config: Config, table: SourceTable, key: str) -> SettingPath:
    return ("sources", table.name, key) if config.sources else ("source", key)


def check_folder(folder: Path, name: str) -> str:
    """Check that this user can write to a folder, or create it; return a description.

    Raises
    ------
    StorageError
        If not.
    """
    place = folder
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        raise StorageError(f"{name}={str(folder)!r}: {place} is not a folder")
    if not os.access(place, os.W_OK | os.X_OK):
        raise StorageError(f"{name}={str(folder)!r}: this user cannot write to {place}")
    return f"{name}: {folder}" + ("" if place == folder else " (will be made)")
