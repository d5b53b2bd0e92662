"""``api/history`` over ASGI: status, caching, one computation for all, cancellation."""

import asyncio
import gc
import gzip
import json
import threading
import time
import tracemalloc
import weakref
from urllib.parse import urlencode

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.requests import Request

from spectrod.apps.web.history import answer_cache, routes
from spectrod.apps.web.history.answer import HistoryAnswer
from spectrod.apps.web.history.answer_cache import FRESH_S, Answers
from spectrod.apps.web.history.axis import HistoryAxis
from spectrod.apps.web.history.budget import AbandonedError
from spectrod.apps.web.history.recording_index import RecordingIndex
from spectrod.apps.web.history.request import LAYERS, HistoryRequest
from spectrod.apps.web.history.row_ring import Ring
from spectrod.lib.errors import BusyError

QUERY = {"topic": 7, "t0": 0, "t1": 1000, "f0": 0, "f1": 100, "w": 4, "h": 5}
AXIS = HistoryAxis.of_bins(10.0, 20.0, 5)
SOON_S = 10.0


def made(request, *, is_final=True, size=0):
    """Make an answer whose values are the topic's number."""
    layer = np.full((request.width, request.height + size), request.topic, np.uint16)
    return HistoryAnswer({"w": request.width}, np.zeros(4, np.float32), [layer], AXIS, is_final)


def asked(topic=7):
    return HistoryRequest(topic, 0.0, 1.0, 0.0, 1.0, 4, 5, ("max",))


async def got(app, query, headers=None, leaves=None):
    """Send a GET as a server does; return status, headers and body."""
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/api/history",
        "root_path": "",
        "query_string": urlencode(query).encode(),
        "headers": [(k.encode(), v.encode()) for k, v in (headers or {}).items()],
    }
    leaves = leaves or asyncio.Event()
    incoming = [{"type": "http.request", "body": b"", "more_body": False}]
    sent = []

    async def receive():
        if incoming:
            return incoming.pop()
        await leaves.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    body = b"".join(message.get("body", b"") for message in sent)
    return sent[0]["status"], {k.decode(): v.decode() for k, v in sent[0]["headers"]}, body


def app_of(folder, topics=dict):
    return Starlette(routes=routes.history_routes(RecordingIndex([folder]), Ring(), topics))


def test_refusals_have_their_status_and_their_text(tmp_path):
    """Bad requests are 400, unknown topics 404; both say why, and are not cached."""
    app = app_of(tmp_path)
    status, headers, body = asyncio.run(got(app, QUERY | {"w": 0}))
    assert (status, headers["cache-control"]) == (400, "no-store")
    assert json.loads(body) == {"error": "w='0': must be a whole number, 1 to 2048"}
    status, _, body = asyncio.run(got(app, QUERY))
    assert status == 404
    assert json.loads(body) == {"error": "topic=7: this server has no topic of this number"}


@pytest.mark.parametrize("is_final", [True, False])
def test_only_final_answers_may_be_cached(tmp_path, monkeypatch, is_final):
    """Final answers are immutable; an ETag saves sending any of them again."""
    monkeypatch.setattr(
        routes, "answer", lambda request, *_, **__: made(request, is_final=is_final)
    )
    app = app_of(tmp_path)

    async def twice():
        first = await got(app, QUERY)
        return first, await got(app, QUERY, {"if-none-match": first[1]["etag"]})

    (status, headers, body), again = asyncio.run(twice())
    assert status == 200
    assert headers["content-type"] == "application/octet-stream"
    assert np.frombuffer(body[-40:], "<u2").tolist() == [7] * 20
    assert headers["cache-control"] == (
        "private, max-age=31536000, immutable" if is_final else "no-store"
    )
    assert (again[0], again[2]) == (304, b"")


@pytest.mark.parametrize(
    ("accepted", "is_coded"),
    [
        ("gzip, deflate, br, zstd", True),
        ("br;q=1, GZIP ; q=0.5", True),
        ("gzip;q=0", False),
        ("gzip; q=0.000", False),
        ("deflate", False),
        ("", False),
    ],
)
def test_answers_are_compressed_for_who_accepts_it(tmp_path, monkeypatch, accepted, is_coded):
    """The content is the same in both codings, and has the same tag."""
    monkeypatch.setattr(routes, "answer", lambda request, *_, **__: made(request, size=20_000))
    app = app_of(tmp_path)
    _, plain_headers, plain = asyncio.run(got(app, QUERY))
    _, headers, body = asyncio.run(got(app, QUERY, {"accept-encoding": accepted}))
    assert headers.get("content-encoding") == ("gzip" if is_coded else None)
    assert (gzip.decompress(body) if is_coded else body) == plain
    assert (len(body) < len(plain) / 10) == is_coded
    assert headers["etag"] == plain_headers["etag"]
    assert headers["vary"] == "Accept-Encoding"


def test_a_client_that_leaves_cancels_its_computation(tmp_path, monkeypatch):
    """When the client goes, the thread that computes for it is told to end."""
    ended = threading.Event()

    def slow(_request, _topics, _index, _ring, budget, **_):
        begun.set()
        assert budget.cancelled.wait(SOON_S)
        ended.set()
        raise AbandonedError

    monkeypatch.setattr(routes, "answer", slow)
    begun = threading.Event()

    async def leave():
        leaves = asyncio.Event()
        task = asyncio.ensure_future(got(app_of(tmp_path), QUERY, leaves=leaves))
        assert await asyncio.to_thread(begun.wait, SOON_S)
        leaves.set()
        return await task

    assert asyncio.run(leave())[0] == 499
    assert ended.wait(SOON_S)


def test_equal_requests_are_computed_once():
    """All that wait for the same request get one computation; one of them may leave."""
    calls, gate = [], threading.Event()

    def compute(request, _budget):
        calls.append(request)
        assert gate.wait(SOON_S)
        return made(request)

    async def several():
        answers = Answers(compute)
        tasks = [asyncio.ensure_future(answers.get(asked())) for _ in range(5)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        gate.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        return found, await answers.get(asked())

    found, later = asyncio.run(several())
    assert isinstance(found[0], asyncio.CancelledError)
    assert len({one.body for one in [*found[1:], later]}) == 1
    assert len(calls) == 1


def test_answers_that_may_change_are_computed_again_soon():
    """A final answer is kept, another one for a second."""
    now_s, calls = [0.0], []

    def compute(request, _budget):
        calls.append(request.topic)
        return made(request, is_final=request.topic == 1)

    async def ask():
        answers = Answers(compute, clock=lambda: now_s[0])
        for now_s[0] in (0.0, FRESH_S, FRESH_S + 0.1):
            for topic in (1, 2):
                await answers.get(asked(topic))

    asyncio.run(ask())
    assert calls == [1, 2, 2]


def test_kept_answers_take_bounded_memory():
    """Beyond the limit, the answer that was not used for longest goes."""
    calls = []

    def compute(request, _budget):
        calls.append(request.topic)
        return made(request, size=500)

    async def ask():
        first = await Answers(compute).get(asked(1))
        calls.clear()
        four_bytes = 4.5 * answer_cache._n_bytes(asked(1), first)
        answers = Answers(compute, cache_bytes=round(four_bytes))
        for topic in (1, 2, 3, 4, 1, 5, 1, 2):
            await answers.get(asked(topic))

    asyncio.run(ask())
    assert calls == [1, 2, 3, 4, 5, 2]


@pytest.mark.parametrize("name", ["", "n" * 1024])
def test_small_answers_count_with_what_is_kept_beside_them(name):
    """The limit is that of all memory, which thousands of answers of 100 bytes take."""
    kept = answer_cache._KeptAnswer(bytes_max=1 << 20, clock=time.monotonic)
    tracemalloc.start()
    try:
        for k in range(2500):
            names = {"layers": (*LAYERS,), "name": f"{name}{k}"}
            request = HistoryRequest(k, k + 0.1, k + 0.2, k + 0.3, k + 0.4, 4, 5, **names)
            kept.put(
                request, answer_cache.Encoded(bytes(100 + k % 2), f'"{k:032x}"', is_final=True)
            )
        n_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0.6 < n_bytes / (1 << 20) < 1.2


def test_askers_get_the_threads_in_turn():
    """One with many requests does not make another wait for all of them."""
    order, gate = [], threading.Event()

    def compute(request, _budget):
        assert gate.wait(SOON_S)
        order.append(request.topic)
        return made(request)

    async def ask():
        answers = Answers(compute)
        greedy = [asyncio.ensure_future(answers.get(asked(n), "a")) for n in range(24)]
        await asyncio.sleep(0)
        other = [asyncio.ensure_future(answers.get(asked(n), "b")) for n in (100, 101)]
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(*greedy, *other)

    asyncio.run(ask())
    # Two are computed when the other comes, two at a time from then on.
    assert order.index(100) <= 4
    assert order.index(101) <= 7


def test_requests_that_nobody_waits_for_any_more_are_not_computed():
    """Those that have no thread yet are forgotten."""
    calls, gate = [], threading.Event()

    def compute(request, _budget):
        calls.append(request.topic)
        assert gate.wait(SOON_S)
        return made(request)

    async def ask():
        answers = Answers(compute)
        tasks = [asyncio.ensure_future(answers.get(asked(n), "a")) for n in range(6)]
        await asyncio.sleep(0)
        for task in tasks[2:5]:
            task.cancel()
        await asyncio.gather(*tasks[2:5], return_exceptions=True)
        gate.set()
        await asyncio.gather(tasks[0], tasks[1], tasks[5])

    asyncio.run(ask())
    assert sorted(calls) == [0, 1, 5]


def test_whoever_asks_after_an_error_gets_a_new_computation():
    """Also in the same turn of the loop in which those who waited learn of the error."""
    calls = []

    def compute(request, _budget):
        calls.append(request)
        raise BusyError("once")

    async def ask():
        answers = Answers(compute)

        async def twice():
            with pytest.raises(BusyError):
                await answers.get(asked())
            with pytest.raises(BusyError):
                await answers.get(asked())

        await asyncio.gather(*(twice() for _ in range(5)))

    asyncio.run(ask())
    assert len(calls) == 2


def test_too_many_requests_are_refused(monkeypatch):
    """The number of different requests that wait is bounded."""
    monkeypatch.setattr(answer_cache, "WAITING_MAX", 2)
    gate = threading.Event()

    def compute(request, _budget):
        assert gate.wait(SOON_S)
        return made(request)

    async def ask():
        answers = Answers(compute)
        tasks = [asyncio.ensure_future(answers.get(asked(topic))) for topic in (1, 2)]
        await asyncio.sleep(0)
        with pytest.raises(BusyError, match=r"^2 requests of history wait already: try again"):
            await answers.get(asked(3))
        gate.set()
        await asyncio.gather(*tasks)
        await answers.get(asked(3))

    asyncio.run(ask())


def test_errors_of_a_computation_reach_all_and_are_not_kept():
    """A failed computation fails for those who wait, and the next request tries again."""
    calls = []

    def compute(request, _budget):
        calls.append(request)
        raise BusyError("once")

    async def ask():
        answers = Answers(compute)
        for _ in range(2):
            with pytest.raises(BusyError, match="once"):
                await answers.get(asked())

    asyncio.run(ask())
    assert len(calls) == 2


def test_a_computation_that_fails_leaves_no_memory():
    """What it had is freed at once, not when Python next collects."""
    freed = threading.Event()

    def compute(_request, _budget):
        columns = np.zeros(1000)
        weakref.finalize(columns, freed.set)
        raise BusyError("no time")

    async def ask():
        with pytest.raises(BusyError, match="no time"):
            await Answers(compute).get(asked())

    gc.disable()
    try:
        asyncio.run(ask())
        assert freed.wait(10.0)  # its thread may still be in it
    finally:
        gc.enable()


def test_requests_are_read_from_the_address():
    """Names that are escaped in the address arrive as they were."""
    name = "tcp://127.0.0.1:5556 spec/a/b/c/"
    scope = {"type": "http", "query_string": urlencode(QUERY | {"name": name}).encode()}
    assert routes.parse_request(Request(scope | {"headers": []}).query_params).name == name
