"""Topics of what is stored: of each source, channel and product one, with the time it covers."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from spectrod.apps.web.archive.archive_index import ArchiveIndex
from spectrod.apps.web.history.source_folder import Place, Pyramid, SourceFolder, StoredFile
from spectrod.apps.web.history.stored_spans import first_cell_ns
from spectrod.apps.web.page_topics import RowFacts, TopicInfo, level_unit, middle_ms
from spectrod.apps.web.slicing import TopicAxis
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.formats.picture.picture_settings import unnamed_signal
from spectrod.formats.pyramid import PyramidReader
from spectrod.lib.errors import SpectrodError
from spectrod.lib.names import is_name
from spectrod.lib.text import printable
from spectrod.lib.time_zones import TIME_ZONE, is_known_zone, unknown_zone
from spectrod.wire.headers import BandsHeader, SpectrumHeader, ValuesHeader

_NAME_MAX: Final = 160
UNKNOWN_ZONES_MAX: Final = 8
"""Sources with a time zone that is not known which the log names."""
Span = tuple[int, int]
"""Begin and end of what is stored [ns since 1970]."""


@dataclass(frozen=True, slots=True)
class StoredTopic:
    """A topic of an archive.

    Attributes
    ----------
    source, channel : str
    spec : SpectrumSpec
        Spec of the newest rows.
    signal : int
        Number of the channel in it.
    cal_id : str
        Identity of the calibration; empty without one.
    span_ns : (int, int)
        Begin of the first and end of the last stored row or cell [ns since 1970].
    has_pyramid : bool
        Whether cells of a pyramid are among it.
    time_zone : str
        Name of its source's time zone; empty: none is known.
    """

    source: str
    channel: str
    spec: SpectrumSpec
    signal: int
    cal_id: str
    span_ns: Span
    has_pyramid: bool = False
    time_zone: str = ""

    @property
    def topic(self) -> str:
        """Name of the topic, as a daemon has it."""
        kind = "bands" if self.spec.bands else "spec"
        return f"{kind}/{self.source}/{self.channel}/{self.spec.product}/"

    def info(self, number: int, endpoint: str) -> TopicInfo:
        """Return what pages know of it."""
        spec = self.spec
        return TopicInfo(
            id=number,
            topic=self.topic,
            kind=self.topic.partition("/")[0],
            endpoint=endpoint,
            source=self.source,
            channel=self.channel,
            product=spec.product,
            unit=level_unit(spec.scale.units[self.signal]),
            fs=spec.fs,
            time_zone=self.time_zone,
        )

    def facts(self, info: TopicInfo) -> RowFacts:
        """Return what a stream's description says of its rows."""
        spec, table = self.spec, self.spec.band_table
        edges = None if table is None else np.stack([table.lower, table.upper])
        first_hz = float(spec.bin_frequencies[0])
        axis = TopicAxis(spec.n_values, first_hz, spec.delta_f, edges)
        header = _header(spec, self.signal, self.cal_id)
        return RowFacts(info, axis, header, spec.row_s, middle_ms(header, spec.averaging_frames))


def _header(spec: SpectrumSpec, signal: int, cal_id: str) -> ValuesHeader:
    """Return a header of rows, with the fields that are the same in all of them."""
    unit, ref = spec.scale.units[signal], spec.scale.references[signal]
    common: dict[str, Any] = {
        name: getattr(spec, name)
        for name in ("fs", "win_length", "nfft", "window", "weighting", "averaging", "enbw_hz")
    }
    numbers = dict.fromkeys(("seq", "epoch", "t_utc_ns", "t_mono_ns", "sample_index"), 0)
    common |= numbers | {
        "averaging_frames": spec.averaging_frames,
        "hop": max(1, int(spec.row_step)),
        "frame_hop": spec.hop,
        "shape": (spec.n_values,),
        "unit": unit,
        "ref": ref,
        "cal_id": cal_id or None,
        "engine": "",
    }
    if spec.bands:
        return BandsHeader(**common, bands=spec.bands, n_bands=spec.n_values)
    return SpectrumHeader(**common, first_bin=-(spec.nfft // 2) if spec.iq else 0)


class StoredTopics:
    """Finds the topics of an index. Used by one thread at a time.

    Parameters
    ----------
    index : ArchiveIndex
        Where they are.

    Attributes
    ----------
    unnamed : list of str
        What ``find`` left out, as no topic can have its name.
    unknown_zones : list of str
        Sources that state a time zone which this machine does not know, the first of them.
    """

    def __init__(self, index: ArchiveIndex) -> None:
        self._index = index
        self._begins_ns: dict[Place, tuple[Pyramid, int]] = {}
        self.unnamed: list[str] = []
        self.unknown_zones: list[str] = []

    def find(self) -> dict[str, StoredTopic]:
        """Return the topics by name; of several analyses of one the newest counts.

        Channels and products whose names no topic can have are left out.
        """
        found: dict[str, StoredTopic] = {}
        self.unnamed, self.unknown_zones = [], []
        sources = self._index.sources()
        for one in (topic for source in sources for topic in self._of_source(source)):
            before = found.get(one.topic)
            found[one.topic] = one if before is None else _joined(before, one)
        return found

    def _of_source(self, source: SourceFolder) -> Iterator[StoredTopic]:
        zone = stated_zone(source.files, source.pyramid)
        if zone and not is_known_zone(zone):
            if len(self.unknown_zones) < UNKNOWN_ZONES_MAX:
                self.unknown_zones.append(f"{source.name}: {unknown_zone(zone)}")
            zone = ""
        for one in self._of_folder(source):
            yield replace(one, time_zone=zone)

    def _of_folder(self, source: SourceFolder) -> Iterator[StoredTopic]:
        for file in source.files:
            about, begin_ns = file.description, file.begin_utc_ns
            span = begin_ns, max(begin_ns + 1, file.end_utc_ns or begin_ns)
            if about.spec.output != "complex":
                yield from self._of_signals(source.name, about.signals, about.spec, span)
        pyramid = source.pyramid
        found = None if pyramid is None else self._span(pyramid)
        if pyramid is not None and found is not None:
            signals = pyramid.about.signals
            for one in self._of_signals(source.name, signals, pyramid.spec, found):
                yield replace(one, has_pyramid=True)

    def _of_signals(
        self, source: str, signals: tuple[str, ...], spec: SpectrumSpec, span: Span
    ) -> Iterator[StoredTopic]:
        for k, channel in enumerate(signals):
            if one := stored_topic(source, channel, spec, k, span):
                yield one
            else:
                name = printable(f"{channel}/{spec.product}", _NAME_MAX)
                self.unnamed.append(f"{source}: {name}: no topic can have this name")

    def _span(self, pyramid: Pyramid) -> Span | None:
        """Return the span of the cells of a pyramid; None if it has none, or cannot be read."""
        try:
            reader = self._index.open_pyramid(pyramid)
        except (OSError, SpectrodError):
            return None
        try:
            spans = [span for n in _levels(reader) if (span := reader.span_utc_ns(n))]
            known, begin_ns = self._begins_ns.get(pyramid.place, (None, 0))
            if known is not pyramid and spans:
                begin_ns = first_cell_ns(reader)
                self._begins_ns[pyramid.place] = pyramid, begin_ns
        except (OSError, SpectrodError):
            return None
        finally:
            reader.close()
        # The finest level ends last: coarser cells are written when they are complete.
        return (begin_ns, spans[0][1]) if spans else None


def _joined(one: StoredTopic, other: StoredTopic) -> StoredTopic:
    older, newer = sorted((other, one), key=lambda topic: topic.span_ns[1])
    span = min(one.span_ns[0], other.span_ns[0]), newer.span_ns[1]
    return replace(
        newer,
        span_ns=span,
        has_pyramid=one.has_pyramid or other.has_pyramid,
        time_zone=newer.time_zone or older.time_zone,
    )


def stored_topic(
    source: str, channel: str, spec: SpectrumSpec, signal: int, span: Span, time_zone: str = ""
) -> StoredTopic | None:
    """Return what is stored of a channel; None if no topic can have its name or its product's."""
    # As in topics of a daemon: files of `record` have a name with a space.
    known = str(signal) if channel == unnamed_signal(signal) else channel
    if not (is_name(known) and is_name(spec.product)):
        return None
    cal_id = spec.scale.cal_ids[signal]
    return StoredTopic(source, known, spec, signal, cal_id, span, time_zone=time_zone)


def stated_zone(files: Iterable[StoredFile], pyramid: Pyramid | None) -> str:
    """Return the time zone that recordings of a source state; empty without any.

    The newest segment that states one says which: a pyramid keeps the attributes that it was made
    with.
    """
    stating = [file for file in files if file.description.attributes.get(TIME_ZONE)]
    if stating:
        newest = max(stating, key=lambda file: file.begin_utc_ns)
        return newest.description.attributes[TIME_ZONE]
    return "" if pyramid is None else pyramid.about.attributes.get(TIME_ZONE, "")


def _levels(reader: PyramidReader) -> range:
    return range(len(reader.about.cells_ns))
