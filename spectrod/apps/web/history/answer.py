"""A piece of the past of one topic, from pyramids, segments and the server's own memory."""

import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import numpy as np

from spectrod.apps.web.history.axis import HistoryAxis
from spectrod.apps.web.history.budget import Budget, SpentError
from spectrod.apps.web.history.columns import ColumnSums, TimeGrid, rounded, to_wire
from spectrod.apps.web.history.lookup import Found, Topic, find_recordings, find_topic
from spectrod.apps.web.history.recording_index import StoredRecordings
from spectrod.apps.web.history.request import VALUES_MAX, HistoryRequest
from spectrod.apps.web.history.row_ring import CELL_NS, Ring
from spectrod.apps.web.history.source_folder import Pyramid
from spectrod.apps.web.history.sources import (
    HistoryPicture,
    add_pyramid,
    add_remembered,
    add_segments,
)
from spectrod.apps.web.pooling import BinSlice
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
        If the topic has no values at these frequencies.
    """
    topic = find_topic(request, topics)
    index = recordings.of(topic.endpoint)
    index.refresh()
    found = find_recordings(topic, topics, index)
    axis, frequencies = _axis(request, topic, found, ring)
    grid = TimeGrid.covering(request.t0_ns, request.t1_ns, _width(request, found))
    if grid.width * len(axis) * len(request.layers) > VALUES_MAX:
        size = f"w={request.width}, h={request.height}: {len(axis)} values a column"
        raise ConfigError(f"{size}: must be at most {VALUES_MAX} values")
    columns = ColumnSums(grid, len(axis), with_mean="mean" in request.layers)
    filling = _Filling(HistoryPicture(columns, axis, topic.channel, index, budget))
    filling.fill(topic.id, found, ring)
    layers = {"max": columns.greatest, "mean": columns.mean}
    left_out = [*filling.left_out, *index.left_out(topic.source)][:_LEFT_OUT_MAX]
    damaged = index.damaged(topic.source)  # as long as they are there: answers are final
    header = _header(topic, grid, frequencies) | {
        "layers": list(request.layers),
        "sources": filling.sources,
        "left_out": [*damaged, *left_out],
    }
    is_final = (
        bool(filling.sources)
        and not left_out
        and grid.t1_ns + grid.column_ns + LAG_NS < now_ns
        # The past of an archive changes when it is merged again.
        and not any(BATCH in one.about.settings for one in found.pyramids)
    )
    codes = [to_wire(rounded(layers[name](), request.step_codes)) for name in request.layers]
    return HistoryAnswer(header, columns.efforts(), codes, axis, is_final and bool(request.name))


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
        newest = max(
            (file for files in found.files.values() for file in files),
            key=lambda file: file.begin_utc_ns,
            default=None,
        )
        specs = [one.spec for one in found.pyramids]
        specs = [newest.description.spec] if newest else specs
        if not specs:
            return _equal(_empty_axis(request))
        whole = HistoryAxis.of_spec(specs[0])
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
    return max(1, min(request.width, PYRAMID_BYTES_MAX // (_CELLS_A_COLUMN * cell_bytes)))


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
            except (OSError, SpectrodError):
                self.left_out.append(f"{name}: cannot be read, or is damaged")

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
