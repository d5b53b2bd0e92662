"""Topics of a source as its recordings have them, where its daemon has described none."""

from collections.abc import Iterator, Sequence
from heapq import nlargest

from spectrod.apps.web.archive.stored_topics import stated_zone, stored_topic
from spectrod.apps.web.history.recording_index import RecordingIndex
from spectrod.apps.web.history.source_folder import Pyramid, StoredFile
from spectrod.apps.web.page_topics import TopicInfo
from spectrod.apps.web.topic_past import FOLDERS_MAX
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.time_zones import is_known_zone, unknown_zone
from spectrod.wire.endpoint import parse_remote

_UNKNOWN = 0, 0
"""Span of what is stored: whoever shows it asks for that."""


class RecordedTopics:
    """Finds what was recorded of sources. Used by one thread at a time.

    Parameters
    ----------
    index : RecordingIndex
        Recordings of the daemons on this machine.
    n_daemons : int
        Daemons of the server. Of several only those on this machine have recordings.
    """

    def __init__(self, index: RecordingIndex, n_daemons: int) -> None:
        self._index, self._n_daemons = index, n_daemons

    def of(self, endpoint: str, source: str) -> list[TopicInfo]:
        """Return the topics of a source's newest recordings, without numbers.

        Of each folder of recordings the segment that began last counts, and the pyramid: earlier
        ones may have had other channels and products.
        """
        if self._n_daemons > 1 and not parse_remote(endpoint).is_local:
            return []
        self._index.refresh()
        files, pyramids = self._index.files(source), self._index.pyramids(source)[:FOLDERS_MAX]
        zone = self._known(source, stated_zone(files, pyramids[0] if pyramids else None))
        found: dict[str, TopicInfo] = {}
        for signals, spec in _newest_first(files, pyramids):
            for k, channel in enumerate(signals):
                if stored := stored_topic(source, channel, spec, k, _UNKNOWN, zone):
                    found.setdefault(stored.topic, stored.info(0, endpoint))
        return list(found.values())

    def _known(self, source: str, zone: str) -> str:
        """Return a time zone; empty, and logged once, if this machine does not know it."""
        if not zone or is_known_zone(zone):
            return zone
        self._index.log_once(f"{source}: {unknown_zone(zone)}")
        return ""


def _newest_first(
    files: Sequence[StoredFile], pyramids: Sequence[Pyramid]
) -> Iterator[tuple[tuple[str, ...], SpectrumSpec]]:
    """Yield signals and spec of the newest segment of each folder, then of pyramids."""
    newest = {file.place: file for file in sorted(files, key=_begin)}
    for file in nlargest(FOLDERS_MAX, newest.values(), key=_begin):
        if file.description.spec.output != "complex":
            yield file.description.signals, file.description.spec
    for pyramid in pyramids:
        yield pyramid.about.signals, pyramid.spec


def _begin(file: StoredFile) -> int:
    return file.begin_utc_ns
