"""Spectra from a real daemon through the hub and a real WebSocket to a page."""

import asyncio
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from spectrod.config import AnalysisConfig, Config, EngineConfig, PublishConfig, SourceTable
from spectrod.daemon import build_daemon
from spectrod.web import wanted

sys.path.insert(0, str(Path(__file__).parents[1] / "web"))
from web_pages import make_hub, opened, served, wish

# 1 kHz is in the middle of a bin: its level is that of the bin.
TONE = SourceTable(
    uri="signal:sine,1000,-20",
    name="tone",
    analysis=AnalysisConfig(win_length=4800, nfft=4800, hop=1200),
)
TOPIC = "spec/tone/0/dbfs/"


@pytest.fixture
def daemon():
    """Run a daemon that computes what is subscribed to, and check that it ends."""
    threads = threading.active_count()
    publish = PublishConfig(endpoints=("tcp://127.0.0.1:*",), on_demand=True)
    running = build_daemon(Config(sources=(TONE,), publish=publish, engine=EngineConfig("numpy")))
    running.start()
    yield running
    running.stop()
    assert threading.active_count() == threads


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
