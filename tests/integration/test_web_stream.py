"""Spectra from a real daemon through the hub and a real WebSocket to a page."""

import asyncio
import sys
from pathlib import Path

import numpy as np
import pytest
import websockets

from spectrod.apps.web import wanted
from spectrod.apps.web.limits import Limits
from spectrod.config.config import (
    AnalysisConfig,
    Config,
    EngineConfig,
    LevelsConfig,
    ProductConfig,
    PublishConfig,
    SourceTable,
)
from spectrod.daemon.daemon import build_daemon

sys.path.insert(0, str(Path(__file__).parents[1] / "web"))
from web_pages import make_hub, open_silent, opened, resident_bytes, served, wish

# 1 kHz is in the middle of a bin: its level is that of the bin.
TONE = SourceTable(
    uri="signal:sine,1000,-20",
    name="tone",
    analysis=AnalysisConfig(win_length=4800, nfft=4800, hop=1200),
)
TOPIC = "spec/tone/0/dbfs/"


@pytest.fixture
def start(count_threads):
    """Run daemons that compute what is subscribed to, and check that they end."""
    threads = count_threads()
    started = []

    def start(*sources, endpoint="tcp://127.0.0.1:*", **settings):
        publish = PublishConfig(endpoints=(endpoint,), on_demand=True)
        config = Config(sources=sources, publish=publish, engine=EngineConfig("numpy"), **settings)
        started.append(build_daemon(config))
        started[-1].start()
        return started[-1]

    yield start
    for running in started:
        running.stop()
    assert count_threads() == threads


@pytest.fixture
def daemon(start):
    return start(TONE)


async def with_page(running, use, **options):
    hub = make_hub(running.publisher.endpoints[0], **options)
    async with served(hub) as address, opened(address) as page:
        return await use(page)


@pytest.mark.parametrize("axis", ["linear", "log", "mel", "octave"])
@pytest.mark.parametrize("bits", [8, 16])
def test_a_tone_is_read_at_its_frequency_and_level(daemon, bits, axis):
    """A tone of -20 dBFS at 1 kHz is in the value of its bin, as near as a step allows."""

    async def use(page):
        topic_id = await page.topic(TOPIC)
        await page.view(wish(topic_id, bits=bits, axis=axis, f0=20))
        row = await page.row()
        levels = page.levels(row)
        low, high = page.hertz(row)
        peak = int(np.nanargmax(levels))
        assert low[peak] <= 1000.0 <= high[peak]
        assert levels[peak] == pytest.approx(-20.0, abs=0.006 if bits == 16 else 0.251)
        described = page.describe(row)
        assert (described["unit"], described["topic_id"]) == ("dBFS", topic_id)
        assert described["row_s"] == 0.025

    asyncio.run(with_page(daemon, use))


def test_rows_come_in_order_and_at_their_time(daemon):
    """Each row of the topic comes once, a hop after the one before it."""

    async def use(page):
        await page.view(wish(await page.topic(TOPIC), rows_s=100))
        rows = [await page.row() for _ in range(40)]
        assert np.all(np.diff([row["seq"] for row in rows]) == 1)
        assert np.diff([row["t_ms"] for row in rows]) == pytest.approx(25.0, abs=0.01)
        assert {row["merged"] for row in rows} == {1}
        assert not any(row["missed"] or row["client_dropped"] for row in rows)

    asyncio.run(with_page(daemon, use))


def test_nothing_is_computed_that_no_page_shows(daemon, monkeypatch):
    """The daemon computes the product while a page shows it, and stops a while after that."""
    monkeypatch.setattr(wanted, "LINGER_S", 0.2)

    def computed():
        return [product for stats in daemon.stats() for product in stats.computed]

    async def use(page):
        await page.view(wish(await page.topic(TOPIC)))
        await page.row()
        assert computed() == ["dbfs"]
        await page.view(generation=2)
        while computed():
            await page.next()

    asyncio.run(with_page(daemon, use))


def test_a_page_that_asks_for_nonsense_is_told_why(daemon):
    """Each text that breaks a rule is refused with its rule, and the page goes on."""

    async def use(page):
        for text, why in (
            ({"op": "view"}, "generation"),
            ({"op": "view", "generation": 1, "streams": [wish(7)]}, "topic_id=7: must be the id"),
            ({"op": "ack", "message": 12}, "message=12: must be one that was sent"),
            ({"op": "dance"}, "dance"),
        ):
            await page.say(**text)
            refused = await page.text("refused")
            assert why in refused["why"]
        await page.view(wish(await page.topic(TOPIC)))
        assert (await page.row())["seq"] >= 0

    asyncio.run(with_page(daemon, use))


def test_what_is_measured_is_the_tone(daemon):
    """Peak, cursor and band read 1 kHz at -20 dBFS, however few pixels the page has."""
    measure = {"peaks": 3, "cursors": [1003.0], "bands": [[900, 1100]]}

    async def use(page):
        await page.view(wish(await page.topic(TOPIC), px=10, measure=measure))
        measured = await page.text("measured")
        assert measured["peaks"][0]["hz"] == pytest.approx(1000.0, abs=0.01)
        assert measured["peaks"][0]["level"] == pytest.approx(-20.0, abs=0.01)
        assert measured["cursors"] == [
            {"hz": 1003.0, "bin_hz": 1000.0, "level": pytest.approx(-20.0, abs=0.01)}
        ]
        (band,) = measured["bands"]
        assert (band["level"], band["unit"]) == (pytest.approx(-20.0, abs=0.01), "dBFS")

    asyncio.run(with_page(daemon, use))


def test_named_values_and_bands_come_too(start):
    """Sound levels come without being asked for; bands are rows with their edges."""
    thirds = ProductConfig("thirds", bands="third-octave", averaging="mean", rate_hz=20.0)
    levels = LevelsConfig("slm", quantities=("LZeq",), interval_s=0.25)
    daemon = start(TONE, products=(thirds,), levels=(levels,))

    async def use(page):
        values = await page.text("values")
        assert (values["names"], values["units"]) == (["LZeq"], ["dBFS"])
        await page.topic("levels/tone/0/slm/")
        await page.view(wish(await page.topic("bands/tone/0/thirds/"), bits=16, axis="log"))
        row = await page.row()
        described = page.describe(row)
        lower, upper = described["edges_hz"]
        peak = int(np.nanargmax(page.levels(row)))
        assert lower[peak] < 1000.0 < upper[peak]
        assert described["n_bins"] == len(lower) == len(row["values"])

    asyncio.run(with_page(daemon, use))


@pytest.mark.parametrize("linger_s", [0.0, 60.0])
def test_a_daemon_that_restarts_is_seen_again(start, monkeypatch, linger_s):
    """The page is told that it has gone and come; the first row of the new one says so."""
    monkeypatch.setattr(wanted, "LINGER_S", linger_s)
    first = start(TONE)
    endpoint = first.publisher.endpoints[0]

    async def use(page):
        await page.view(wish(await page.topic(TOPIC)))
        old = await page.row()
        first.stop()
        await page.text("state", lambda text: not text["endpoints"][0]["connected"])
        page.rows.clear()
        start(TONE, endpoint=endpoint)
        new = await page.row(lambda row: row["flags"] & 2)
        assert page.describe(new)["epoch"] != page.describe(old)["epoch"]
        state = await page.text("state", lambda text: text["endpoints"][0]["connected"])
        assert state["sources"][0]["source"] == "tone"

    asyncio.run(with_page(first, use))


WIDE = SourceTable(
    uri="signal:white,-20",
    name="wide",
    analysis=AnalysisConfig(win_length=16384, nfft=16384, hop=480),
)


@pytest.mark.slow
def test_pages_that_do_not_read_cost_no_memory_and_harm_no_other(start):
    """Rows for sockets that nobody reads are bounded, and another page loses none."""
    daemon = start(WIDE)
    hub = make_hub(daemon.publisher.endpoints[0])

    async def use():
        async with served(hub) as address, opened(address) as page:
            asked = wish(await page.topic("spec/wide/0/dbfs/"), px=4096, bits=16, rows_s=200)
            streams = [asked | {"id": k, "f0": 10 * k} for k in range(40)]
            silent = [await open_silent(address, streams) for _ in range(3)]
            await page.view(asked)
            seqs = [(await page.row())["seq"] for _ in range(100)]
            before = resident_bytes()
            seqs += [(await page.row())["seq"] for _ in range(400)]
            grown = resident_bytes() - before
            last = await page.row()
            for connection in silent:
                connection.close()
            # 3 pages with 40 streams of 16 kB were due 100 times a second.
            assert grown < 16e6
            assert np.all(np.diff(seqs) == 1)
            assert last["client_dropped"] == 0

    asyncio.run(use())


def test_views_are_shown_ten_times_a_second(daemon):
    """Of views that follow each other faster the last is shown, and few of the others."""

    async def use(page):
        topic_id = await page.topic(TOPIC)
        for k in range(50):
            await page.view(wish(topic_id, f1=20000 + k), generation=k)
        await page.text("stream", lambda text: text["view"] == 49)
        shown = {text["view"] for text in page.texts if text["op"] == "stream"}
        assert len(shown) < 25

    asyncio.run(with_page(daemon, use))


async def talk_until_closed(page, n_texts):
    for _ in range(n_texts):
        await page.say("ack", message=0)
    while True:
        await page.next()


@pytest.mark.parametrize(("acknowledges", "n_texts", "code"), [(False, 0, 1013), (True, 300, 1008)])
def test_a_page_that_breaks_the_rules_is_closed(daemon, acknowledges, n_texts, code):
    """A visible page that draws nothing, and one that floods, are closed, each with its reason."""

    async def use(page):
        page.acknowledges = acknowledges
        await page.view(wish(await page.topic(TOPIC)))
        with pytest.raises(websockets.ConnectionClosed) as closed:
            await talk_until_closed(page, n_texts)
        assert closed.value.rcvd.code == code

    asyncio.run(with_page(daemon, use, limits=Limits(silent_s=0.5)))


def test_an_endpoint_where_nothing_is_is_shown(daemon):
    """The page knows both endpoints, and shows the one that is there."""
    hub = make_hub(daemon.publisher.endpoints[0], "tcp://127.0.0.1:9")

    async def use():
        async with served(hub) as address, opened(address) as page:
            state = await page.text("state", lambda text: text["endpoints"][0]["connected"])
            absent = state["endpoints"][1]
            assert (absent["connected"], absent["silence_s"]) == (False, None)
            await page.view(wish(await page.topic(TOPIC)))
            await page.row()

    asyncio.run(use())


def test_a_page_that_comes_again_misses_nothing_between(daemon, monkeypatch):
    """Messages that nobody asked for do not count as lost, and make no gap."""
    monkeypatch.setattr(wanted, "LINGER_S", 0.0)

    async def use(page):
        await page.view(wish(await page.topic(TOPIC)))
        await page.row()
        await page.view(generation=2)
        while any(stats.computed for stats in daemon.stats()):
            await page.next()
        page.rows.clear()
        await page.view(wish(await page.topic(TOPIC)), generation=3)
        row = await page.row()
        assert (row["missed"], row["flags"]) == (0, 0)

    asyncio.run(with_page(daemon, use))
