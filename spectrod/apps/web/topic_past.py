"""What is known of a topic without its rows: what they are, and when the newest stored one ends."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from heapq import nlargest
from typing import Final

from spectrod.apps.web.archive.stored_topics import StoredTopic
from spectrod.apps.web.history.axis import ascends
from spectrod.apps.web.history.budget import Budget, SpentError
from spectrod.apps.web.history.lookup import Found, find_recordings
from spectrod.apps.web.history.recording_index import RecordingIndex, StoredRecordings
from spectrod.apps.web.history.row_ring import Ring
from spectrod.apps.web.history.source_folder import (
    INDEXED_BYTES,
    Pyramid,
    StoredFile,
    end_utc_ns,
)
from spectrod.apps.web.history.stored_rows import opened, read_beginning
from spectrod.apps.web.page_topics import RowFacts, TopicInfo, facts_of_meta
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.errors import SpectrodError, WireError
from spectrod.lib.text import printable
from spectrod.wire.schema import Meta

FOLDERS_MAX: Final = 8
"""Folders whose newest file is looked at for its end, those whose files began last."""


@dataclass(frozen=True, slots=True, eq=False)
class TopicPast:
    """What is known of a topic without its rows.

    Attributes
    ----------
    facts : RowFacts
        What is constant of its rows.
    newest_ms : float or None
        End of the newest stored row, or of the cell that has it [ms since 1970]; None without.
    """

    facts: RowFacts
    newest_ms: float | None

    def __eq__(self, other: object) -> bool:
        """Return whether both say the same to a page."""
        if not isinstance(other, TopicPast):
            return NotImplemented
        return (self.newest_ms, self.facts.fields) == (other.newest_ms, other.facts.fields)

    __hash__ = None  # type: ignore[assignment]


class TopicPasts:
    """Finds what is known of topics without their rows. Used by one thread at a time.

    Parameters
    ----------
    recordings : StoredRecordings
        Recordings on the disk.
    ring : Ring
        Live rows of the server.
    topics : callable
        Returns all topics of the server by their numbers, which others do not change.
    """

    def __init__(
        self,
        recordings: StoredRecordings,
        ring: Ring,
        topics: Callable[[], Mapping[int, TopicInfo]],
    ) -> None:
        self._recordings, self._ring, self._topics = recordings, ring, topics

    def find(self, topic: TopicInfo, meta: Meta | None) -> TopicPast | None:
        """Return what is known of a topic; None if that does not say what its rows are.

        Parameters
        ----------
        topic : TopicInfo
            The topic.
        meta : Meta or None
            Its daemon's description; without one, or with a broken one, the newest recording says
            what its rows are.
        """
        index = self._recordings.of(topic.endpoint)
        index.refresh()
        found = find_recordings(topic, self._topics(), index)
        facts = described_facts(topic, meta) or _recorded_facts(topic, found)
        if facts is None:
            return None
        remembered = self._ring.span_ns(topic.id)
        ends = [*_ends_of_files(index, found), *([remembered[1]] if remembered else [])]
        rows_ns = max(ends, default=0)
        cells = [end for begin, end in _last_cells(index, found) if begin >= rows_ns]
        newest_ns = max([rows_ns, *cells])
        return TopicPast(facts, newest_ns / 1e6 if newest_ns else None)


def described_past(topic: TopicInfo, meta: Meta | None) -> TopicPast | None:
    """Return what a daemon's description says of a topic, as ``TopicPasts.find``."""
    facts = described_facts(topic, meta)
    return None if facts is None else TopicPast(facts, None)


def described_facts(topic: TopicInfo, meta: Meta | None) -> RowFacts | None:
    """Return what a daemon's description says of a topic's rows; None without a sound one."""
    if meta is None or (topic.kind == "bands") != (meta.edges is not None):
        return None
    if meta.edges is not None and not ascends(*meta.edges):
        return None
    try:
        return facts_of_meta(topic, meta)
    except WireError:  # which is counted and logged where rows have the same
        return None


def _recorded_facts(topic: TopicInfo, found: Found) -> RowFacts | None:
    """Return what the newest recording says of a topic's rows; None without any of its kind."""
    for signals, spec in _newest_first(found):
        signal = signals.index(topic.channel)
        cal_id = spec.scale.cal_ids[signal]
        stored = StoredTopic(topic.source, topic.channel, spec, signal, cal_id, (0, 0))
        if stored.topic == topic.topic:
            return stored.facts(topic)
    return None


def _newest_first(found: Found) -> Iterator[tuple[tuple[str, ...], SpectrumSpec]]:
    """Yield signals and spec of the newest segments, then of pyramids."""
    for file in _newest_files(found):
        yield file.description.signals, file.description.spec
    for pyramid in found.pyramids:
        yield pyramid.about.signals, pyramid.spec


def _newest_files(found: Found) -> list[StoredFile]:
    """Return the file of each folder that began last, the newest first."""
    newest = [max(files, key=lambda file: file.begin_utc_ns) for files in found.files.values()]
    return nlargest(FOLDERS_MAX, newest, key=lambda file: file.begin_utc_ns)


def _ends_of_files(index: RecordingIndex, found: Found) -> Iterator[int]:
    """Yield the ends of the newest files [ns]; of one that grows that of its last row by now."""
    for file in _newest_files(found):
        yield file.end_utc_ns or _end_now_ns(index, file)


def _end_now_ns(index: RecordingIndex, file: StoredFile) -> int:
    """Return the end of the last row of a file [ns]; its begin if that cannot be read."""
    path = file.place[0] / file.place[1] / file.place[2] / file.name
    try:
        with opened(index.open_file(file), Budget(n_bytes=INDEXED_BYTES)) as content:
            end_ns = end_utc_ns(path, content, read_beginning(path, content))
    except OSError:  # it has vanished since
        return file.begin_utc_ns
    except (SpectrodError, SpentError) as error:
        index.log_once(printable(f"{path}: {error}"))
        return file.begin_utc_ns
    return file.begin_utc_ns if end_ns is None else end_ns


def _last_cells(index: RecordingIndex, found: Found) -> Iterator[tuple[int, int]]:
    """Yield begin and end of the last of the finest cells of pyramids [ns].

    It ends later than its last row. Pyramids that cannot be read have none.
    """
    for pyramid in found.pyramids:
        try:
            cell = _last_cell(index, pyramid)
        except OSError:  # it has vanished since
            continue
        except SpectrodError as error:
            index.log_once(printable(str(error)))
            continue
        if cell is not None:
            yield cell


def _last_cell(index: RecordingIndex, pyramid: Pyramid) -> tuple[int, int] | None:
    reader = index.open_pyramid(pyramid)
    try:
        for level, cell_ns in enumerate(reader.about.cells_ns):
            if span := reader.span_utc_ns(level):
                return span[1] - cell_ns, span[1]
        return None
    finally:
        reader.close()
