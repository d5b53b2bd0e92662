"""Which times are stored of a topic: spans of its recordings and of what the server remembers."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from spectrod.apps.web.history.lookup import Topic, find_recordings, find_topic
from spectrod.apps.web.history.recording_index import RecordingIndex, StoredRecordings
from spectrod.apps.web.history.request import TopicRequest
from spectrod.apps.web.history.row_ring import Ring
from spectrod.apps.web.history.source_folder import Place, Pyramid
from spectrod.formats.pyramid import PyramidReader
from spectrod.formats.pyramid.ladder import file_cells
from spectrod.lib.errors import SpectrodError

Span = tuple[int, int]
"""Begin and end [ns since 1970]."""
SPANS_MAX: Final = 512
"""Spans of an answer: the shortest gaps between more of them are left out."""
PYRAMIDS_MAX: Final = 1024
"""Pyramids whose begin is remembered."""


@dataclass(frozen=True, slots=True)
class StoredTimes:
    """What is stored of a topic.

    Attributes
    ----------
    spans : list of (int, int)
        Times that files or memory cover, ascending and apart [ns since 1970]; within a pyramid's
        there may be gaps.
    has_pyramid : bool
        Whether levels of all that time can be had at once.
    """

    spans: list[Span]
    has_pyramid: bool

    def fields(self) -> dict[str, Any]:
        """Return the fields of ``api/stored``; times in ms."""
        spans = [[begin / 1e6, end / 1e6] for begin, end in self.spans]
        ends = (spans[0][0], spans[-1][1]) if spans else (None, None)
        return {"t0": ends[0], "t1": ends[1], "spans": spans, "has_pyramid": self.has_pyramid}


class StoredSpans:
    """Finds what is stored of topics. Used by one thread at a time.

    Parameters
    ----------
    recordings : StoredRecordings
        Recordings on the disk.
    ring : Ring
        Live rows of the server.
    """

    def __init__(self, recordings: StoredRecordings, ring: Ring) -> None:
        self._recordings, self._ring = recordings, ring
        self._begins_ns: dict[Place, tuple[Pyramid, int]] = {}

    def find(self, request: TopicRequest, topics: Mapping[int, Topic], now_ns: int) -> StoredTimes:
        """Return what is stored of a topic.

        Parameters
        ----------
        request : TopicRequest
            The topic.
        topics : mapping of int to Topic
            All topics of the server.
        now_ns : int
            This machine's UTC, at which a growing file ends [ns since 1970].

        Raises
        ------
        NotFoundError
            If the topic is not known, or is another one than the asker believes.
        """
        topic = find_topic(request, topics)
        index = self._recordings.of(topic.endpoint)
        index.refresh()
        found = find_recordings(topic, topics, index)
        files = [file for files in found.files.values() for file in files]
        spans = [(file.begin_utc_ns, file.end_utc_ns or now_ns) for file in files]
        cells = [span for one in found.pyramids if (span := self._of_pyramid(index, one))]
        remembered = self._ring.span_ns(topic.id)
        live = [remembered] if remembered else []
        return StoredTimes(joined([*spans, *cells, *live]), has_pyramid=bool(cells))

    def _of_pyramid(self, index: RecordingIndex, pyramid: Pyramid) -> Span | None:
        """Return the span of a pyramid's cells; None without, or if it cannot be read."""
        try:
            reader = index.open_pyramid(pyramid)
        except (OSError, SpectrodError):
            return None
        try:
            ends = [span[1] for n in _levels(reader) if (span := reader.span_utc_ns(n))]
            if not ends:
                return None
            known, begin_ns = self._begins_ns.get(pyramid.place, (None, 0))
            if known is not pyramid:
                begin_ns = first_cell_ns(reader)
                if len(self._begins_ns) >= PYRAMIDS_MAX:
                    self._begins_ns.clear()
                self._begins_ns[pyramid.place] = pyramid, begin_ns
        except (OSError, SpectrodError):
            return None
        finally:
            reader.close()
        # The finest level ends last: coarser cells are written when they are complete.
        return begin_ns, ends[0]


def joined(spans: list[Span]) -> list[Span]:
    """Return the union of spans, ascending, at most ``SPANS_MAX`` of them."""
    found: list[Span] = []
    for begin, end in sorted(span for span in spans if span[0] < span[1]):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((begin, end))
    if len(found) <= SPANS_MAX:
        return found
    gaps = sorted(range(1, len(found)), key=lambda n: found[n - 1][1] - found[n][0])
    firsts = [0, *sorted(gaps[: SPANS_MAX - 1]), len(found)]
    return [(found[a][0], found[b - 1][1]) for a, b in pairwise(firsts)]


def first_cell_ns(reader: PyramidReader) -> int:
    """Return the begin of the first cell, of the finest level that reaches back as far [ns]."""
    firsts = [t_ns for n in _levels(reader) if (t_ns := _first_ns(reader, n)) is not None]
    # A coarse cell begins before its first row, by less than its length.
    latest_ns = min(firsts, default=0) + max(reader.about.cells_ns)
    return next((t_ns for t_ns in firsts if t_ns < latest_ns), 0)


def _levels(reader: PyramidReader) -> range:
    return range(len(reader.about.cells_ns))


def _first_ns(reader: PyramidReader, level: int) -> int | None:
    """Return the begin of the first cell in the oldest file of a level [ns]; None without one."""
    span = reader.span_utc_ns(level)
    if span is None:
        return None
    cell_ns = reader.about.cells_ns[level]
    stop_ns = min(span[1], span[0] + file_cells(cell_ns) * cell_ns)
    found = (cells.begin_utc_ns for cells in reader.cells(level, span[0], stop_ns))
    return next((int(begins[0]) for begins in found if len(begins)), None)
