"""Events of what is stored: those in results of ``spectrod batch``, and in files that are named."""

import contextlib
import logging
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from spectrod.apps.web.archive.archive_index import PLAN, topic_name
from spectrod.apps.web.archive.archives import Archive, Archives
from spectrod.apps.web.compressed import compressed
from spectrod.formats.directory import Directory
from spectrod.formats.event_reading import (
    FILE_BYTES_MAX,
    ParquetRows,
    ReadEvent,
    parse_events,
    read_events,
)
from spectrod.lib.errors import ConfigError, InputError, UnavailableError
from spectrod.lib.text import printable

EVENTS_MAX: Final = 20_000
"""Events that pages get: the newest."""
FILES_MAX: Final = 10_000
"""Entries of a folder of results, and of all dates of a deployment, that are looked at."""
NAMED_MAX: Final = 8
"""Files that are named."""
_ENDS = ("_events.csv", "_events.parquet")
_PARTITIONS = "events"
"""Folder of results that has one for each deployment, which has one for each date."""
_DEPLOYMENT = "deployment="
_DATE = re.compile(r"date=[0-9]{4}-[0-9]{2}-[0-9]{2}")

_Stamp = tuple[int, int, int]
_Entries = Iterator[tuple[Path, "os.DirEntry[str]"]]

_log = logging.getLogger(__name__)


class StoredMark(msgspec.Struct, frozen=True):
    """An event as pages get it: times are in ms of UTC, no band is null, no channel is empty."""

    t0: float
    t1: float
    f0: float | None
    f1: float | None
    source: str
    channel: str
    text: str
    kind: str = "event"


class _StoredSource(NamedTuple):
    """What events need of a source: its channels by number from 1 on, and its begin [ns]."""

    channels: tuple[tuple[int, str], ...]
    begin_ns: int


class _EventFile(NamedTuple):
    """A file of events, and what changes with its content.

    ``root`` is the folder of results below which links are not followed; None of a file that is
    named. ``unit`` is what follows the deployment in its name, and begins with a time.
    """

    endpoint: str
    source: str
    path: Path
    stamp: _Stamp
    root: Path | None = None
    unit: str = ""

    def read(self, parquet: ParquetRows | None = None) -> list[ReadEvent]:
        """Return the events; raises ConfigError, InputError and UnavailableError."""
        if self.root is None:
            return read_events(self.path)
        *folders, name = self.path.relative_to(self.root).parts
        try:
            with _folder(self.root, *folders) as folder:
                content = _content(folder.open_file(name))
        except OSError as error:
            raise InputError(f"{printable(self.path)}: {error.strerror}") from error
        return parse_events(self.path, content, parquet)


def _content(descriptor: int) -> bytes:
    with open(descriptor, "rb") as file:
        return file.read(FILE_BYTES_MAX + 1)


def _stamp(found: os.stat_result) -> _Stamp:
    return found.st_mtime_ns, found.st_size, found.st_ino


@dataclass(frozen=True)
class ListedEvents:
    """The events for pages.

    Attributes
    ----------
    version : int
        Another one after each change; 0 before the first event.
    marks : tuple of StoredMark
        The newest first.
    has_more : bool
        Whether older ones are left out.
    """

    version: int = 0
    marks: tuple[StoredMark, ...] = ()
    has_more: bool = False

    @cached_property
    def body(self) -> bytes:
        """JSON of the marks, in gzip."""
        text = {"version": self.version, "events": self.marks, "has_more": self.has_more}
        return compressed(msgspec.json.encode(text))


class StoredEvents:
    """Finds the events of archives. ``refresh`` is called by one thread at a time.

    Parameters
    ----------
    archives : Archives
        What is shown.
    named : sequence of str
        Files of events, as ``FILE`` or ``SOURCE=FILE``.

    Attributes
    ----------
    listed : ListedEvents
        Those that were found last.

    Raises
    ------
    ConfigError
        If a text names no source that is shown, or a file no format.
    InputError
        If a file that is named cannot be read, or its events have no place in time.
    """

    def __init__(self, archives: Archives, named: Sequence[str] = ()) -> None:
        if len(named) > NAMED_MAX:
            raise ConfigError(f"--events: {len(named)} files: must be at most {NAMED_MAX}")
        self._archives = archives
        self._named = [_named_file(text, archives) for text in named]
        self._read: dict[tuple[_EventFile, _StoredSource], list[StoredMark]] = {}
        self._troubles: set[str] = set()
        self.listed = ListedEvents()
        sources = _sources(archives)
        for file in self._named:
            _placed(file, file.read(), sources[file.endpoint, file.source])
        self.refresh()

    def refresh(self) -> bool:
        """Read what is new or has changed; return whether the events are others than before."""
        with contextlib.ExitStack() as stack:
            # Files of one archive cannot change what another one shows.
            names = [one.name for one in self._archives.archives]
            parquet = {one: stack.enter_context(contextlib.closing(ParquetRows())) for one in names}
            return self._refresh(parquet)

    def _refresh(self, parquet: Mapping[str, ParquetRows]) -> bool:
        sources, before = _sources(self._archives), self._read
        self._read, found, has_more = {}, list[StoredMark](), False
        for file in self._files():
            if len(found) >= EVENTS_MAX and file.root is not None:
                has_more = True
                break
            if source := sources.get((file.endpoint, file.source)):
                key = file, source
                if key in before:
                    self._read[key] = before[key]
                else:
                    self._read[key] = self._marks(file, source, parquet[file.endpoint])
                found += self._read[key]
        if self._read.keys() == before.keys():
            return False
        found.sort(key=lambda mark: mark.t0, reverse=True)
        has_more |= len(found) > EVENTS_MAX
        self.listed = ListedEvents(self.listed.version + 1, tuple(found[:EVENTS_MAX]), has_more)
        return True

    def _files(self) -> Iterator[_EventFile]:
        """Yield those that are named, and those of results, the newest first."""
        for file in self._named:
            try:
                yield file._replace(stamp=_stamp(file.path.stat()))
            except OSError as error:
                self._log_once(f"{printable(file.path)}: {error.strerror}")
        files = [file for one in self._archives.archives for file in _of_results(one)]
        files.sort(key=lambda file: file.unit)
        yield from reversed(files)

    def _marks(
        self, file: _EventFile, source: _StoredSource, parquet: ParquetRows
    ) -> list[StoredMark]:
        try:
            return _placed(file, file.read(parquet), source)
        except (ConfigError, InputError, UnavailableError) as error:
            self._log_once(str(error))
            return []

    def _log_once(self, text: str) -> None:
        if text not in self._troubles and len(self._troubles) < FILES_MAX:
            self._troubles.add(text)
            _log.warning("%s", text)


def _sources(archives: Archives) -> dict[tuple[str, str], _StoredSource]:
    found: dict[tuple[str, str], _StoredSource] = {}
    for archive in archives.archives:
        for one in archive.topics.values():
            key, own = (archive.name, one.source), (one.signal + 1, one.channel)
            channels, begin_ns = found.get(key, ((), one.span_ns[0]))
            joined = tuple(sorted({*channels, own}))
            found[key] = _StoredSource(joined, min(begin_ns, one.span_ns[0]))
    return found


def _named_file(text: str, archives: Archives) -> _EventFile:
    """Return the file that an option names; its source is the only one that is shown, or named."""
    shown = sorted(_sources(archives))
    source, equals, path = text.partition("=")
    if not equals or "/" in source:
        source, path = "", text
    fitting = [key for key in shown if source in {"", key[1]}]
    if len(fitting) == 1:
        return _EventFile(*fitting[0], Path(path), (0, 0, 0))
    names = ", ".join(sorted({name for _, name in shown}))
    raise ConfigError(f"--events {printable(text)}: must be SOURCE=FILE with one of {names}")


def _of_results(archive: Archive) -> Iterator[_EventFile]:
    """Yield the files of events in results of ``spectrod batch``, without following links."""
    root = archive.path
    if archive.why or not (root / PLAN).is_file():
        return
    known = {one.source for one in archive.topics.values()}
    for deployment, entries in _deployments(root):
        if (source := topic_name(deployment)) in known:
            for path, stamp in _tables(entries, deployment):
                unit = path.name.removeprefix(deployment)
                yield _EventFile(archive.name, source, path, stamp, root, unit)


def _deployments(root: Path) -> Iterator[tuple[str, _Entries]]:
    """Yield folders of deployments with their entries, in both layouts of results."""
    for name in _folders_in(root):
        yield name, _entries(root, name)
    for name in _folders_in(root, _PARTITIONS):
        if name.startswith(_DEPLOYMENT):
            yield name.removeprefix(_DEPLOYMENT), _entries_of_dates(root, name)


def _entries_of_dates(root: Path, name: str) -> _Entries:
    """Yield the entries of a deployment's partitions, the newest first."""
    dates = filter(_DATE.fullmatch, _folders_in(root, _PARTITIONS, name))
    for date in sorted(dates, reverse=True):
        yield from _entries(root, _PARTITIONS, name, date)


def _tables(entries: _Entries, deployment: str) -> Iterator[tuple[Path, _Stamp]]:
    for path, entry in islice(entries, FILES_MAX):
        if entry.name.startswith(deployment) and entry.name.endswith(_ENDS):
            with contextlib.suppress(OSError):  # it has just gone
                found = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(found.st_mode):
                    yield path, _stamp(found)


def _folders_in(root: Path, *folders: str) -> list[str]:
    entries = islice(_entries(root, *folders), FILES_MAX)
    return [entry.name for _, entry in entries if entry.is_dir(follow_symlinks=False)]


def _entries(root: Path, *folders: str) -> _Entries:
    """Yield the entries of a folder of results; none if it has gone, or is behind a link."""
    path = root.joinpath(*folders)
    try:
        with _folder(root, *folders) as folder, folder.scan() as entries:
            for entry in entries:
                yield path / entry.name, entry
    except OSError as error:
        _log.debug("%s: %s", printable(path), error)


@contextlib.contextmanager
def _folder(root: Path, *folders: str) -> Iterator[Directory]:
    """Open a folder below another one, without following links."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(Directory.open(root))
        for name in folders:
            folder = stack.enter_context(folder.child(name))
        yield folder


def _placed(
    file: _EventFile, events: Sequence[ReadEvent], source: _StoredSource
) -> list[StoredMark]:
    """Return the marks of events, those without a time of the clock from the source's begin on."""
    without = {one.file for one in events if one.begin_utc_ns is None}
    if len(without) > 1:
        rule = "must have times of the clock (begin_utc), as it is about several files"
        raise InputError(f"{printable(file.path)}: {rule}")
    channels: dict[str | int | None, str] = {name: name for _, name in source.channels}
    channels |= dict(source.channels)
    return [_mark(one, file.source, channels, source.begin_ns) for one in events]


def _mark(
    one: ReadEvent, source: str, channels: Mapping[str | int | None, str], begin_ns: int
) -> StoredMark:
    begin_s = one.begin_s if one.begin_utc_ns is None else 0.0
    t0_ms = (one.begin_utc_ns or begin_ns) / 1e6 + 1e3 * begin_s
    return StoredMark(
        t0=t0_ms,
        t1=t0_ms + 1e3 * one.duration_s,
        f0=one.f_min_hz,
        f1=one.f_max_hz,
        source=source,
        channel=channels.get(one.channel, ""),
        text=one.text,
    )
