"""A piece of the past of one topic, from pyramids, segments and the server's own memory."""

import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec
import numpy as np

from spectrod.apps.web.history.axis import NOTHING, HistoryAxis, Int16Array
from spectrod.apps.web.history.band_level import BandLevel, PowerScale
from spectrod.apps.web.history.budget import Budget, SpentError
from spectrod.apps.web.history.columns import (
    ColumnSums,
    TimeGrid,
    codes_of_levels,
    from_wire,
    less_codes,
    rounded,
    to_wire,
)
from spectrod.apps.web.history.lookup import Found, Topic, find_recordings, find_topic
from spectrod.apps.web.history.recording_index import StoredRecordings
from spectrod.apps.web.history.request import LEVEL, VALUES_MAX, HistoryRequest
from spectrod.apps.web.history.row_ring import CELL_NS, Ring
from spectrod.apps.web.history.source_folder import Pyramid
from spectrod.apps.web.history.sources import (
    HistoryPicture,
    add_pyramid,
    add_remembered,
    add_segments,
)
from spectrod.apps.web.pooling import BinSlice
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import Float32Array
from spectrod.formats.pyramid.metadata import BATCH
from spectrod.lib.errors import ConfigError, SpectrodError
from spectrod.lib.text import printable

PYRAMID_BYTES_MAX: Final = 256 << 20
"""Bytes of cells that one request reads at most; a picture has fewer columns otherwise."""
_CELLS_A_COLUMN: Final = 6
"""Cells that a column has at most: lengths of a pyramid's levels grow by three to six."""
_LEFT_OUT_MAX: Final = 20
LAG_NS: Final = 60 * 10**9
"""Time after which recorders and live rows have told all of a cell [ns]."""


@dataclass(frozen=True, slots=True, eq=False)
class HistoryAnswer:
    """A piece of the past.

    Attributes
    ----------
    header : dict
        What it covers, see docs/web-protocol.md.
    effort_s : (width,) float32
        Duration of the sound in each column [s].
    layers : list of (width, height) uint16
        Codes of the levels.
    axis : HistoryAxis
        Axis of the values.
    is_final : bool
        Whether the same request always has the same answer.
    """

    header: dict[str, Any]
    effort_s: Float32Array
    layers: list[np.ndarray[Any, np.dtype[np.uint16]]]
    axis: HistoryAxis
    is_final: bool

    def encode(self) -> bytes:
        """Return the body of the answer."""
        header = msgspec.json.encode(self.header)
        padding = b"\0" * (-(4 + len(header)) % 4)
        parts = [struct.pack("<I", len(header)), header, padding]
        parts.append(self.effort_s.astype("<f4").tobytes())
        parts.extend(layer.astype("<u2").tobytes() for layer in self.layers)
        return b"".join(parts)


def answer(
    request: HistoryRequest,
    topics: Mapping[int, Topic],
    recordings: StoredRecordings,
    ring: Ring,
    budget: Budget,
    *,
    now_ns: int,
) -> HistoryAnswer:
    """Answer a request.

    Parameters
    ----------
    request : HistoryRequest
        The request.
    topics : mapping of int to Topic
        All topics of the server.
    recordings : StoredRecordings
        Recordings on the disk.
    ring : Ring
        Live rows of the server.
    budget : Budget
        What the request may read; cancelled when nobody waits any more.
    now_ns : int
        This machine's UTC [ns since 1970].

    Raises
    ------
    NotFoundError
        If the topic is not known, or is another one than the asker believes.
    ConfigError
        If the topic has no values at these frequencies, or topics that are to be subtracted have
        different bins or units.
    """
    asked = _Answering(topics, recordings, ring, budget, now_ns)
    if request.less is None:
        return asked.piece(request)
    return asked.difference(request, request.less)


@dataclass(frozen=True, slots=True)
class _Answering:
    """What a request may be answered from."""

    topics: Mapping[int, Topic]
    recordings: StoredRecordings
    ring: Ring
    budget: Budget
    now_ns: int

    def piece(self, request: HistoryRequest) -> HistoryAnswer:
        """Answer a request for the levels of one topic."""
        topic = find_topic(request, self.topics)
        index = self.recordings.of(topic.endpoint)
        index.refresh()
        found = find_recordings(topic, self.topics, index)
        is_level = request.layers == (LEVEL,)
        scale = _power_scale(topic.id, found, self.ring) if is_level else None
        level = _band_level(request, found, scale) if scale else None
        if level is None:
            axis, frequencies = _axis(request, topic, found, self.ring)
        else:
            axis, frequencies = _equal(level.whole)
        grid = TimeGrid.covering(request.t0_ns, request.t1_ns, _width(request, found))
        if grid.width * len(axis) * len(request.layers) > VALUES_MAX:
            size = f"w={request.width}, h={request.height}: {len(axis)} values a column"
            raise ConfigError(f"{size}: must be at most {VALUES_MAX} values")
        columns = ColumnSums(grid, len(axis), with_mean=request.layers != ("max",))
        picture = HistoryPicture(columns, level or axis, topic.channel, index, self.budget)
        filling = _Filling(picture)
        filling.fill(topic.id, found, self.ring)
        left_out = [*filling.left_out, *index.left_out(topic.source)][:_LEFT_OUT_MAX]
        damaged = index.damaged(topic.source)  # as long as they are there: answers are final
        header = (
            _header(topic, grid, frequencies)
            | _window(topic.id, found, self.ring)
            | {
                "layers": list(request.layers),
                "row_s": spec.row_s if (spec := _newest_spec(found)) else None,
                "until": columns.until_ns / 1e6,
                "sources": filling.sources,
                "left_out": [*damaged, *left_out],
            }
        )
        if level is not None:
            header["unit"] = level.unit
        remembered = self.ring.span_ns(topic.id)
        # Rows of a daemon whose clock is late go on in a time that is long over.
        is_growing = remembered is not None and grid.t0_ns < remembered[1] < grid.t1_ns
        is_final = (
            bool(filling.sources)
            and not is_growing
            and not left_out
            and grid.t1_ns + grid.column_ns + LAG_NS < self.now_ns
            # The past of an archive changes when it is merged again.
            and not any(BATCH in one.about.settings for one in found.pyramids)
        )
        layers = _layers(columns, level, request)
        codes = [to_wire(rounded(one, request.step_codes)) for one in layers]
        return HistoryAnswer(
            header, columns.efforts(), codes, axis, is_final and bool(request.name)
        )

    def difference(self, request: HistoryRequest, less: int) -> HistoryAnswer:
        """Answer a request for the levels of one topic less those of another, in dB."""
        exact = replace(request, less=None, less_name="", step_codes=1)
        one = self.piece(exact)
        other = self.piece(
            replace(exact, topic=less, name=request.less_name, width=one.header["w"])
        )
        if other.header["w"] < one.header["w"]:
            one = self.piece(replace(exact, width=other.header["w"]))
        _check_same(one, other)
        layers = [
            to_wire(rounded(less_codes(from_wire(a), from_wire(b)), request.step_codes))
            for a, b in zip(one.layers, other.layers, strict=True)
        ]
        header = one.header | {
            "unit": "dB",
            "until": min(one.header["until"], other.header["until"]),
            "less": other.header["topic"],
            "sources": list(dict.fromkeys(one.header["sources"] + other.header["sources"])),
            "left_out": list(dict.fromkeys(one.header["left_out"] + other.header["left_out"])),
        }
        effort_s = np.minimum(one.effort_s, other.effort_s)
        return HistoryAnswer(
            header, effort_s, layers, one.axis, is_final=one.is_final and other.is_final
        )


def _check_same(one: HistoryAnswer, other: HistoryAnswer) -> None:
    """Raise ConfigError if two answers cannot be subtracted from each other."""
    names = f"{one.header['topic']} less {other.header['topic']}"
    if one.header["unit"] != other.header["unit"]:
        units = f"{one.header['unit']} and {other.header['unit']}"
        raise ConfigError(f"{names}: have different units, {units}")
    if not one.axis.same(other.axis):
        raise ConfigError(f"{names}: have different bins; a difference needs the same")


def _layers(
    columns: ColumnSums, level: BandLevel | None, request: HistoryRequest
) -> list[Int16Array]:
    """Return the codes of each layer."""
    if request.layers == (LEVEL,):
        if level is None:  # nothing is known
            return [np.full((columns.grid.width, 1), NOTHING, np.int16)]
        return [codes_of_levels(level.levels(columns.mean_power()))]
    layers = {"max": columns.greatest, "mean": columns.mean}
    return [layers[name]() for name in request.layers]


def _band_level(request: HistoryRequest, found: Found, scale: PowerScale) -> BandLevel:
    """Return what sums up the values between the frequencies."""
    spec = _newest_spec(found)
    group = max((one.about.group for one in found.pyramids if one.spec == spec), default=1)
    first, stop = scale.axis.inside(request.f0_hz, request.f1_hz)
    return BandLevel(scale, first // group * group, stop, group)


def _power_scale(topic_id: int, found: Found, ring: Ring) -> PowerScale | None:
    """Return what values of the newest recording are, else of live rows; None without any."""
    spec = _newest_spec(found)
    if spec is not None:
        return PowerScale.of_spec(spec)
    axis, about = ring.axis(topic_id), ring.unit_and_enbw_hz(topic_id)
    return None if axis is None or about is None else PowerScale(axis, *about)


def _newest_spec(found: Found) -> SpectrumSpec | None:
    """Return the analysis of the newest segment, or else of a pyramid; None without any."""
    newest = max(
        (file for files in found.files.values() for file in files),
        key=lambda file: file.begin_utc_ns,
        default=None,
    )
    if newest is not None:
        return newest.description.spec
    return found.pyramids[0].spec if found.pyramids else None


def _window(topic_id: int, found: Found, ring: Ring) -> dict[str, Any]:
    """Return what sums over bins need beside their levels, of the rows that have the axis."""
    spec, live = _newest_spec(found), ring.enbw_hz_and_weighting(topic_id)
    recorded = (None, None) if spec is None else (spec.enbw_hz, spec.weighting)
    return dict(zip(("enbw_hz", "weighting"), live or recorded, strict=True))


def _axis(
    request: HistoryRequest, topic: Topic, found: Found, ring: Ring
) -> tuple[HistoryAxis, dict[str, Any]]:
    """Choose the axis of the picture, that of the topic now, or of its newest recording.

    Returns
    -------
    axis, frequencies : HistoryAxis, dict
        The axis, and what the header says of it.
    """
    whole = ring.axis(topic.id)
    if whole is None:
        spec = _newest_spec(found)
        if spec is None:
            return _equal(_empty_axis(request))
        whole = HistoryAxis.of_spec(spec)
    group, span = _group(request, found, whole), (request.f0_hz, request.f1_hz)
    if request.axis is None:
        return _equal(whole.view(*span, request.height, group))
    slices = whole.slices(*span, request.height, request.axis, group)
    return _sliced(whole, slices)


def _equal(axis: HistoryAxis) -> tuple[HistoryAxis, dict[str, Any]]:
    """Return an axis of equally wide values, or of bands, and what the header says of it."""
    f0_hz, f1_hz = axis.ends_hz
    edges = [axis.lower.tolist(), axis.upper.tolist()] if axis.is_bands else None
    return axis, {"f0": f0_hz, "f1": f1_hz, "h": len(axis), "edges_hz": edges}


def _sliced(whole: HistoryAxis, slices: Sequence[BinSlice]) -> tuple[HistoryAxis, dict[str, Any]]:
    """Return the axis of slices, and what the header says of it; edges say all of bands."""
    axis = whole.sliced(slices)
    if whole.is_bands:
        return _equal(axis)
    width_hz = float(whole.upper[0] - whole.lower[0])
    return axis, {
        "f0": float(axis.lower[0]),
        "f1": float(axis.upper[-1]),
        "h": len(axis),
        "edges_hz": None,
        "first_hz": float(whole.lower[0]) + width_hz / 2.0,
        "bin_hz": width_hz,
        "n_bins": len(whole),
        "slices": [one._asdict() for one in slices],
    }


def _group(request: HistoryRequest, found: Found, whole: HistoryAxis) -> int:
    """Return how many bins a value has at least, so that pyramids fit; 1 where rows lead."""
    for one in found.pyramids:
        is_coarse = request.t1_ns - request.t0_ns >= one.about.cells_ns[0] * request.width
        if is_coarse and HistoryAxis.of_spec(one.spec).same(whole):
            return one.about.group
    return 1


def _empty_axis(request: HistoryRequest) -> HistoryAxis:
    """Return the axis of a picture of nothing: one value."""
    width_hz = request.f1_hz - request.f0_hz
    return HistoryAxis.of_bins(request.f0_hz + width_hz / 2, width_hz, 1)


def _width(request: HistoryRequest, found: Found) -> int:
    """Return the largest number of columns whose cells may be read."""
    cell_bytes = max((_cell_bytes(one) for one in found.pyramids), default=1)
    most = PYRAMID_BYTES_MAX // (_CELLS_A_COLUMN * cell_bytes)
    return max(1, min(request.width, most))


def _cell_bytes(pyramid: Pyramid) -> int:
    return 16 + 6 * len(pyramid.about.signals) * pyramid.about.n_values


@dataclass(slots=True)
class _Filling:
    """Adds each kind of source to a picture, the best first.

    Attributes
    ----------
    sources : list of str
        Kinds of sources that had something.
    left_out : list of str
        What could not be had.
    """

    picture: HistoryPicture
    sources: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def fill(self, topic_id: int, found: Found, ring: Ring) -> None:
        """Add all sources."""
        column_ns = self.picture.columns.grid.column_ns
        self._pyramids([one for one in found.pyramids if one.about.cells_ns[0] <= column_ns])
        for files in found.files.values():
            with self._noting("segment"):
                self.left_out.extend(add_segments(self.picture, files))
        self._remembered(topic_id, ring)
        # Cells that are longer than a column show only where there are no rows at all.
        self._pyramids([one for one in found.pyramids if one.about.cells_ns[0] > column_ns])

    def _pyramids(self, pyramids: Sequence[Pyramid]) -> None:
        for one in pyramids:
            cell_ns = one.about.cells_ns[0]
            least_empty_ns = 2 * cell_ns if self.sources else 0
            name = printable(f"{one.place[1]}/{one.place[2]}/{one.name}")
            try:
                with self._noting("pyramid"):
                    add_pyramid(self.picture, one, least_empty_ns)
            except SpentError as error:
                self.left_out.append(f"{name}: was not read to its end: {error}")
            except (OSError, SpectrodError) as error:
                self.left_out.append(f"{name}: cannot be read, or is damaged")
                self.picture.index.log_once(f"{name}: {printable(str(error))}")

    def _remembered(self, topic_id: int, ring: Ring) -> None:
        grid = self.picture.columns.grid
        # Rows that are longer than columns reach into the picture from outside.
        span = topic_id, grid.t0_ns - CELL_NS, grid.t1_ns + CELL_NS
        for between in (ring.rows, ring.cells):
            # One source: a column in which the replay ends and live rows begin has both.
            self.picture.columns.begin_source()
            ends = []
            for name, is_replayed in (("replay", True), ("ring", False)):
                with self._noting(name):
                    found = between(*span, is_replayed=is_replayed)
                    ends.append(add_remembered(self.picture, found))
            self.picture.columns.end_source(max(ends))

    @contextmanager
    def _noting(self, name: str) -> Iterator[None]:
        """Note a kind of source if any of its rows count."""
        columns = self.picture.columns
        n_before = columns.n_used
        try:
            yield
        finally:
            if columns.n_used > n_before and name not in self.sources:
                self.sources.append(name)


def _header(topic: Topic, grid: TimeGrid, frequencies: dict[str, Any]) -> dict[str, Any]:
    """Return what the answer covers."""
    return {
        "topic": topic.topic,
        "kind": topic.kind,
        "unit": topic.unit if topic.unit.startswith("dB") else f"dB re {topic.unit}",
        "cell_ms": grid.column_ns / 1e6,
        "t0": grid.t0_ns / 1e6,
        "t1": grid.t1_ns / 1e6,
        "w": grid.width,
        **frequencies,
    }
