"""``config check --deep``: opens everything that a configuration names."""

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from spectrod.analysis.engine import open_engine
from spectrod.config import Config, SourceTable
from spectrod.errors import ConfigError, SpectrodError, StorageError
from spectrod.recording.state_folder import state_folder
from spectrod.source import check_uri, open_source, specs_of
from spectrod.source.kinds import find_kind
from spectrod.wire.access import Access

_RECORDINGS_FOLDER = "recordings"

Check = Callable[[], str]
"""Opens one resource and returns a description; raises a SpectrodError."""


def check_uris(config: Config) -> None:
    """Check the syntax of each source's URI; raises ConfigError for the first malformed one."""
    for table in config.all_sources:
        try:
            check_uri(table)
        except ConfigError as error:
            raise ConfigError(f"{_named(config, table)}{error}") from error


def unchecked(config: Config) -> Iterator[str]:
    """Yield a line for each source whose settings can be checked only with its sample rate."""
    for table in config.all_sources:
        if table.unchecked:
            yield (
                f"{_named(config, table)}not checked, because only the source knows its sample "
                f"rate: {', '.join(table.unchecked)} (set samplerate, or use --deep)"
            )


def checks(config: Config) -> Iterator[Check]:
    """Yield a check for each named resource: sources, engine, folders, keys."""
    for table in config.all_sources:
        yield partial(_source, table, _named(config, table))
        if table.calibration:
            yield partial(_calibration, table, _named(config, table))
    yield partial(_engine, config)
    for folder, name in _folders(config):
        yield partial(_folder, folder, name)
    yield partial(_keys, config)


def _named(config: Config, table: SourceTable) -> str:
    return f"sources.{table.name}: " if config.sources else "source: "


def _source(table: SourceTable, name: str) -> str:
    """Open a source whose samples can be read again, and check its analyses at its rate."""
    try:
        kind, argument = find_kind(table.uri)
        if text := kind.inspect(argument):
            return name + text
        source = open_source(table, "full")
        specs = specs_of(table, source)
    except SpectrodError as error:
        raise type(error)(f"{name}{error}") from error
    products = ", ".join(spec.product for spec in specs)
    text = (
        f"{name}{source.description}: {source.fs:.10g} Hz, channels: {source.channels}, "
        f"products: {products}"
    )
    left_out = source.left_out
    if not left_out.n_files:
        return text
    return f"{text}; files left out or read in part: {left_out.n_files}, first {left_out.lines[0]}"


def _calibration(table: SourceTable, name: str) -> str:
    try:
        table.check_calibration()
    except ConfigError as error:
        raise ConfigError(f"{name}{error}") from error
    return f"{name}calibration {table.calibration}: can be read"


def _engine(config: Config) -> str:
    requested = config.engine
    try:
        engine = open_engine(requested.engine, requested.device)
    except SpectrodError as error:
        raise type(error)(f"engine: {error}") from error
    try:
        return f"engine: {engine.name}"
    finally:
        engine.close()


def _folders(config: Config) -> Iterator[tuple[Path, str]]:
    state = state_folder(config.control.state_folder)
    if config.control.endpoints:
        yield state, "control.state_folder"
    for recording in config.recordings:
        name = f"recordings.{recording.name}.folder"
        yield Path(recording.folder) if recording.folder else state / _RECORDINGS_FOLDER, name


def _folder(folder: Path, name: str) -> str:
    """Check that this user can write to a folder, or create it."""
    place = folder
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        raise StorageError(f"{name}={str(folder)!r}: {place} is not a folder")
    if not os.access(place, os.W_OK | os.X_OK):
        raise StorageError(f"{name}={str(folder)!r}: this user cannot write to {place}")
    return f"{name}: {folder}" + ("" if place == folder else " (will be made)")


def _keys(config: Config) -> str:
    try:
        access = Access(config.security)
    except SpectrodError as error:
        raise type(error)(f"security: {error}") from error
    try:
        return "security: " + ("keys can be read" if access.has_keys else "no keys")
    finally:
        access.close()
