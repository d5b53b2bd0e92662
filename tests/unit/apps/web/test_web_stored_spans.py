"""Which times are stored of a topic: files, pyramids and memory, joined, bounded, of its own."""

import asyncio
import itertools
import json
from types import SimpleNamespace
from urllib.parse import urlencode

import numpy as np
import pytest
from starlette.applications import Starlette

from spectrod.apps.web.history import stored_spans
from spectrod.apps.web.history.recording_index import RecordingIndex
from spectrod.apps.web.history.request import TopicRequest
from spectrod.apps.web.history.routes import history_routes
from spectrod.apps.web.history.row_ring import Ring
from spectrod.apps.web.history.stored_spans import SPANS_MAX, StoredSpans, joined
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.description import Description
from spectrod.formats.pyramid import PyramidOptions, PyramidWriter
from spectrod.formats.segment.segment_writer import SegmentWriter
from spectrod.lib.errors import NotFoundError

S = 10**9
BEGIN_NS = 1_777_680_000 * S
SPEC = SpectrumSpec(fs=1000.0, win_length=1000, hop=1000, nfft=1000, scaling="dbfs")
TOPIC = SimpleNamespace(
    id=3,
    topic="spec/mic/0/dbfs/",
    kind="spec",
    endpoint="tcp://127.0.0.1:5556",
    source="mic",
    channel="0",
    product="dbfs",
    unit="dBFS",
)
TOPICS = {3: TOPIC}


def batch(begin_ns, n):
    values = np.full((n, 1, SPEC.n_values), -50.0, np.float32)
    index = np.arange(n, dtype=np.int64) * SPEC.hop
    t_ns = begin_ns + np.arange(n, dtype=np.int64) * S
    return SpectrumBatch(values, index, t_ns, t_ns, SPEC, "numpy")


def write(folder, name, begin_ns, n, *, is_pyramid=False):
    place = folder / "all" / "mic"
    place.mkdir(parents=True, exist_ok=True)
    about = Description(SPEC, "mic", ("0",), "spectrod test")
    if is_pyramid:
        writer = PyramidWriter(place / "pyramid", about, PyramidOptions(1.0))
    else:
        writer = SegmentWriter(place / f"{name}.spd", about)
    writer.write(batch(begin_ns, n))
    writer.finish()


def found(folder, ring=None, topic=3, name=""):
    spans = StoredSpans(RecordingIndex([folder]), ring or Ring())
    return spans.find(TopicRequest(topic, name), TOPICS, BEGIN_NS + 10**6 * S)


async def got(app, query):
    """Send a GET as a server does; return status, headers and the JSON of the body."""
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/api/stored",
        "root_path": "",
        "query_string": urlencode(query).encode(),
        "headers": [],
    }
    sent = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    body = b"".join(message.get("body", b"") for message in sent)
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], headers, json.loads(body)


def test_spans_are_those_of_files_and_of_a_pyramid(tmp_path):
    """Files that follow each other are one span; a pyramid begins with its first cell."""
    write(tmp_path, "a", BEGIN_NS, 10)
    write(tmp_path, "b", BEGIN_NS + 10 * S, 10)
    write(tmp_path, "c", BEGIN_NS + 100 * S, 5)
    stored = found(tmp_path)
    assert stored.spans == [
        (BEGIN_NS, BEGIN_NS + 20 * S),
        (BEGIN_NS + 100 * S, BEGIN_NS + 105 * S),
    ]
    assert not stored.has_pyramid
    write(tmp_path, "", BEGIN_NS + 90 * S, 30, is_pyramid=True)
    stored = found(tmp_path)
    assert stored.has_pyramid
    assert stored.spans[0] == (BEGIN_NS, BEGIN_NS + 20 * S)
    begin_ns, end_ns = stored.spans[1]
    assert abs(begin_ns - (BEGIN_NS + 90 * S)) <= S
    assert end_ns >= BEGIN_NS + 119 * S


def test_of_nothing_there_are_no_spans_and_no_ends(tmp_path):
    """A folder that is missing counts as an empty one."""
    assert found(tmp_path / "missing").fields() == {
        "t0": None, "t1": None, "spans": [], "has_pyramid": False,
    }  # fmt: skip


def test_memory_counts_as_stored(tmp_path):
    """The server's own rows are part of the answer, from the first to the last."""
    span = BEGIN_NS + 500 * S, BEGIN_NS + 600 * S
    ring = SimpleNamespace(span_ns=lambda topic_id: span if topic_id == 3 else None)
    write(tmp_path, "a", BEGIN_NS, 10)
    assert found(tmp_path, ring).spans == [(BEGIN_NS, BEGIN_NS + 10 * S), span]
    assert Ring().span_ns(3) is None


def test_a_damaged_pyramid_is_left_out(tmp_path):
    """Its segments are reported all the same."""
    write(tmp_path, "a", BEGIN_NS, 10)
    write(tmp_path, "", BEGIN_NS, 30, is_pyramid=True)
    for path in (tmp_path / "all" / "mic" / "pyramid").rglob("*"):
        if path.is_file() and path.name != "pyramid.json":
            path.write_bytes(b"\0" * 100)
    spans = found(tmp_path).spans
    assert spans[0][0] == BEGIN_NS


@pytest.mark.parametrize("n", [1, 2, SPANS_MAX - 1, SPANS_MAX, SPANS_MAX + 1, 3000])
def test_many_spans_are_joined_over_their_shortest_gaps(n):
    """At most the bound is reported, nothing that is stored is left out, and long gaps stay."""
    rng = np.random.default_rng(n)
    gaps = rng.permutation(n) + 1
    begins = np.cumsum(gaps * 100 + 10)
    spans = [(int(begin), int(begin) + 10) for begin in begins]
    rng.shuffle(spans)
    told = joined(list(spans))
    assert len(told) == min(n, SPANS_MAX)
    assert all(any(a <= begin and end <= b for a, b in told) for begin, end in spans[:50])
    assert all(one[1] < other[0] for one, other in itertools.pairwise(told))
    if n > SPANS_MAX:
        kept = min(other[0] - one[1] for one, other in itertools.pairwise(told))
        assert kept >= 100 * (n - SPANS_MAX)


def test_the_route_answers_refuses_and_is_never_cached(tmp_path):
    """Unknown topics are 404, bad numbers 400, each with its reason."""
    write(tmp_path, "a", BEGIN_NS, 10)
    routes = history_routes(RecordingIndex([tmp_path]), Ring(), lambda: TOPICS)
    app = Starlette(routes=routes)
    status, headers, fields = asyncio.run(got(app, {"topic": 3}))
    assert (status, headers["cache-control"]) == (200, "no-store")
    t0_ms = BEGIN_NS / 1e6
    assert fields == {
        "t0": t0_ms,
        "t1": t0_ms + 10_000,
        "spans": [[t0_ms, t0_ms + 10_000]],
        "has_pyramid": False,
    }
    for query, status, why in (
        ({"topic": 4}, 404, "topic=4: this server has no topic of this number"),
        ({"topic": 3, "name": "x y"}, 404, "topic=3: is tcp://127.0.0.1:5556 spec/mic/0/dbfs/ now"),
        ({"topic": "-1"}, 400, "topic='-1': must be a whole number"),
        ({}, 400, "topic: is missing"),
        ({"topic": 3, "name": "x" * 2000}, 400, "must be at most 1024 characters"),
    ):
        refused, headers, fields = asyncio.run(got(app, query))
        assert (refused, headers["cache-control"]) == (status, "no-store")
        assert why in fields["error"]


def test_a_topic_of_another_name_is_refused(tmp_path):
    """Numbers change when a server starts again; names do not."""
    with pytest.raises(NotFoundError, match="load the page again"):
        found(tmp_path, name="tcp://127.0.0.1:5556 spec/other/0/dbfs/")


def test_begins_of_pyramids_are_remembered_within_a_bound(tmp_path, monkeypatch):
    """More pyramids than the bound begin again with none: each is read once while they fit."""
    write(tmp_path, "", BEGIN_NS, 30, is_pyramid=True)
    read = []
    first_cell_ns = stored_spans.first_cell_ns
    monkeypatch.setattr(
        stored_spans, "first_cell_ns", lambda reader: read.append(1) or first_cell_ns(reader)
    )
    spans = StoredSpans(RecordingIndex([tmp_path]), Ring())
    for _ in range(3):
        spans.find(TopicRequest(3), TOPICS, BEGIN_NS)
    assert len(read) == 1
    monkeypatch.setattr(stored_spans, "PYRAMIDS_MAX", 0)
    spans = StoredSpans(RecordingIndex([tmp_path]), Ring())
    spans.find(TopicRequest(3), TOPICS, BEGIN_NS)
    assert len(spans._begins_ns) == 1
