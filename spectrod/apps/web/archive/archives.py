"""The archives that a server shows: found, refreshed, and listed as topics with numbers."""

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final

from spectrod.apps.web.archive.archive_index import HISTORY, PLAN, ArchiveIndex
from spectrod.apps.web.archive.job_zones import JobZones, job_zones
from spectrod.apps.web.archive.stored_topics import StoredTopic, StoredTopics
from spectrod.apps.web.history.recording_index import RecordingIndex
from spectrod.apps.web.page_topics import RowFacts, TopicInfo
from spectrod.apps.web.page_view import TOPICS_MAX
from spectrod.config.config_files import parse, read
from spectrod.lib.errors import ConfigError, InputError
from spectrod.lib.text import printable
from spectrod.source.source_listing import list_sound_files
from spectrod.source.store.urls import is_url

_log = logging.getLogger(__name__)

ARCHIVES_MAX: Final = 16
"""Archives of one server."""
_NAME_MAX: Final = 64
_IDS_MAX: Final = 4 * TOPICS_MAX
_JOB_SUFFIX = ".toml"
_GONE = "is no longer there"


@dataclass(eq=False)
class Archive:
    """An archive: what its endpoint is called on pages, where it is, and what was found in it."""

    name: str
    path: Path
    index: ArchiveIndex
    topics: dict[str, StoredTopic] = field(default_factory=dict)
    zones: JobZones = field(default_factory=JobZones)
    """Time zones of its sources, of a job's file; others are those that recordings state."""
    why: str = ""
    """Why nothing of it can be read now; empty if that is not so."""

    @property
    def unnamed(self) -> list[str]:
        """What is left out, as no topic can have its name."""
        return self._finder.unnamed

    def __post_init__(self) -> None:
        self._finder = StoredTopics(self.index)

    def refresh(self) -> None:
        """Look at what is there; log once that all of it has gone."""
        self.index.refresh()
        why = "" if self.index.is_there else _GONE
        if why and not self.why:
            _log.warning("%s: %s", printable(self.path), why)
        self.why, self.topics = why, {} if why else self._finder.find()
        for text in self._finder.unnamed + self._finder.unknown_zones:
            self.index.log_once(text)


class Archives:
    """Several archives. ``refresh`` is called by one thread at a time, the rest by any.

    Parameters
    ----------
    archives : sequence of Archive
        With different names.
    """

    def __init__(self, archives: Sequence[Archive]) -> None:
        self.archives = tuple(archives)
        self._by_name = {one.name: one for one in archives}
        self._ids: dict[tuple[str, str], int] = {}
        self._numbers = count()
        # Replaced as a whole: whoever reads it while another thread refreshes has one or the other.
        self._found: dict[int, tuple[TopicInfo, StoredTopic]] = {}
        self._facts: dict[int, tuple[StoredTopic, RowFacts]] = {}

    @property
    def topics(self) -> dict[int, TopicInfo]:
        """Topics by number, as they were found last."""
        return {number: info for number, (info, _) in self._found.items()}

    def of(self, endpoint: str) -> RecordingIndex:
        """Return the index of the archive of a topic."""
        return self._by_name[endpoint].index

    def facts(self, number: int) -> RowFacts | None:
        """Return what a stream's description says of a topic; None if there is no such topic."""
        info, stored = self._found.get(number, (None, None))
        if info is None or stored is None:
            return None
        described, facts = self._facts.get(number, (None, None))
        if facts is None or described != stored:
            facts = stored.facts(info)
            self._facts[number] = stored, facts
        return facts

    def refresh(self) -> bool:
        """Look at what is there; return whether it is something else than before.

        A topic that goes and comes again keeps its number.
        """
        before = self._found, [one.why for one in self.archives]
        for one in self.archives:
            one.refresh()
        if len(self._ids) > _IDS_MAX:  # of a folder whose names always change
            self._ids, self._facts = {}, {}
        found = [(one.name, topic) for one in self.archives for topic in one.topics.values()]
        numbered = [(self._number(name, one.topic), name, one) for name, one in found[:TOPICS_MAX]]
        self._found = {number: (one.info(number, name), one) for number, name, one in numbered}
        return before != (self._found, [one.why for one in self.archives])

    def listed(self) -> list[dict[str, Any]]:
        """Return the topics for a page, with the time that is stored of each [ms]."""
        return [
            _listed(info, stored, self._by_name[info.endpoint].zones.of(info.source))
            for info, stored in self._found.values()
        ]

    def _number(self, endpoint: str, topic: str) -> int:
        key = endpoint, topic
        if key not in self._ids:
            self._ids[key] = next(self._numbers)
        return self._ids[key]


def _listed(info: TopicInfo, stored: StoredTopic, zone: str) -> dict[str, Any]:
    begin_ns, end_ns = stored.span_ns
    fields: dict[str, Any] = {name: getattr(info, name) for name in info.__slots__}
    return fields | {
        "stored": [begin_ns / 1e6, end_ns / 1e6],
        "has_pyramid": stored.has_pyramid,
        "time_zone": zone or info.time_zone,
    }


def open_archives(paths: Sequence[str]) -> Archives:
    """Find what is stored below some paths.

    Parameters
    ----------
    paths : sequence of str
        Folders, segments, and files of jobs of ``spectrod batch``.

    Raises
    ------
    ConfigError
        If there are too many, or a job cannot be read.
    InputError
        If one does not exist, or nothing in it can be shown.
    """
    paths = list(dict.fromkeys(paths))
    if len(paths) > ARCHIVES_MAX:
        raise ConfigError(f"{len(paths)} archives: must be at most {ARCHIVES_MAX}")
    named: dict[str, Archive] = {}
    for text in paths:
        is_job = text.endswith(_JOB_SUFFIX)
        folder, zones = _of_job(Path(text)) if is_job else (Path(text), JobZones())
        path = _found(folder)
        name = _free_name(path, named)
        named[name] = Archive(name, path, ArchiveIndex(path), zones=zones)
    archives = Archives(list(named.values()))
    archives.refresh()
    for one in archives.archives:
        if not one.topics:
            raise InputError(_nothing(one))
    return archives


def _found(path: Path) -> Path:
    """Return a path without links; raises InputError if nothing is there."""
    try:
        path.stat()
    except OSError as error:
        raise InputError(f"{printable(path)}: {error.strerror}") from error
    return Path(os.path.realpath(path))


def _free_name(path: Path, taken: dict[str, Archive]) -> str:
    name = printable(path.name or "archive", _NAME_MAX)
    numbers = (f"{name} ({n})" for n in count(2))
    return name if name not in taken else next(one for one in numbers if one not in taken)


def _of_job(path: Path) -> tuple[Path, JobZones]:
    """Return the folder of the results of a job and its zones: no more of its file is read."""
    data = parse(path, read(path)).data
    job = data.get("job")
    output = job.get("output") if isinstance(job, dict) else None
    if not isinstance(output, str) or not output:
        raise ConfigError(f"{printable(path)}: job.output: must be the folder of the results")
    if is_url(output):
        raise InputError(
            f"{printable(path)}: job.output={printable(output)}: must be a folder; spectrod batch "
            "merge copies results from a bucket into one"
        )
    found = path.parent / Path(output).expanduser()
    if not found.is_dir():
        raise InputError(f"{printable(found)}: has no results yet: spectrod batch run {path.name}")
    try:
        return found, job_zones(data)
    except ConfigError as error:
        raise ConfigError(f"{printable(path)}: {error}") from error


def _nothing(archive: Archive) -> str:
    """Return why an archive shows nothing, for whoever opens it."""
    path, index = archive.path, archive.index
    name = printable(path)
    damaged = sum(one.n_damaged for one in index.sources())
    if damaged:
        files = "1 file" if damaged == 1 else f"{damaged} files"
        return f"{name}: {files} cannot be read: damaged, or of another kind"
    if archive.unnamed:
        return f"{name}: {archive.unnamed[0]}"
    if (path / PLAN).is_file() and not (path / HISTORY).exists():
        return (
            f'{name}: has results but no pyramids: add merged = ["pyramid"] to [job], and run '
            "spectrod batch merge"
        )
    nothing = f"{name}: holds no recordings of spectra (.spd) and no pyramid"
    to_do = f", but sound files: spectrod batch init {name} makes a job of them"
    return nothing + (to_do if _has_sound(path) else "")


def _has_sound(path: Path) -> bool:
    try:
        return bool(list_sound_files(str(path), recursive=True).files)
    except InputError:
        return False
