"""Holds of all bins: the extremes and the mean of every row since they began."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spectrod.apps.web.client import PageClient
from spectrod.apps.web.holds import Hold
from spectrod.apps.web.limits import Limits
from spectrod.apps.web.page_view import StreamWish, View

sys.path.insert(0, str(Path(__file__).parents[3] / "web"))
from web_pages import decode
from web_rows import TOPIC, frame, make_rows

TOPICS = {TOPIC.id: TOPIC}


def spectra(n, seed=0, bins=33):
    """Return spectra, some of their bins without data [dB]."""
    rng = np.random.default_rng(seed)
    levels = rng.uniform(-120.0, -20.0, (n, bins)).astype(np.float32)
    levels[rng.random(levels.shape) < 0.2] = np.nan
    return levels


def held(kind, levels):
    hold = Hold(kind)
    for row in make_rows(*[frame(one, k) for k, one in enumerate(levels)]):
        hold.add(row)
    return hold.levels()


@settings(max_examples=30)
@given(st.integers(1, 12), st.integers(0, 99))
def test_holds_are_of_all_rows_with_data(n, seed):
    """Each bin has the greatest, the least, the mean power of its rows; none without data."""
    levels = spectra(n, seed)
    power = 10.0 ** (levels.astype(np.float64) / 10.0)
    some = ~np.isnan(levels).all(axis=0)
    expected = {
        "max": np.nanmax(levels[:, some], axis=0),
        "min": np.nanmin(levels[:, some], axis=0),
        "mean": 10.0 * np.log10(np.nanmean(power[:, some], axis=0)),
    }
    for kind, of_bins in expected.items():
        found = held(kind, levels)
        assert np.array_equal(np.isnan(found), ~some)
        assert found[some] == pytest.approx(of_bins, abs=0.0052)


def test_a_hold_of_other_bins_begins_again():
    """Rows of another axis or unit are not compared with those before."""
    hold = Hold("max")
    hold.add(make_rows(frame(np.full(33, -10.0)))[0])
    hold.add(make_rows(frame(np.full(65, -50.0)))[0])
    assert hold.levels() == pytest.approx(np.full(65, -50.0))
    hold.add(make_rows(frame(np.full(65, -60.0), unit="dB SPL"))[0])
    assert hold.levels() == pytest.approx(np.full(65, -60.0))


def client_with(*wishes):
    client = PageClient(Limits())
    client.set_view(View(generation=1, streams=wishes), TOPICS)
    return client


def wish(**fields):
    asked = {"id": 1, "topic_id": 3, "f0": 0.0, "f1": 24e3, "px": 4000, "bits": 16}
    return StreamWish(**(asked | fields))


def newest(client, *frames):
    """Push messages; return the levels of the last row that comes."""
    for row in make_rows(*frames):
        client.push(TOPIC.id, row)
    client.credits.acknowledge(client.credits.newest, 0.0)
    values = decode(client.take_rows(0.0)[1])[1][-1]["values"]
    return values * 0.01 - 327.67


def test_a_hold_outlasts_a_zoom():
    """A view of fewer bins still has the maximum of rows from before it."""
    client = client_with(wish(of="max"))
    newest(client, frame(np.full(33, -10.0), 0), frame(np.full(33, -50.0), 1))
    client.set_view(View(generation=2, streams=(wish(of="max", f0=6e3, f1=9e3),)), TOPICS)
    levels = newest(client, frame(np.full(33, -60.0), 2))
    assert len(levels) < 10
    assert levels == pytest.approx(-10.0)


def test_a_hold_that_is_shown_no_more_begins_again():
    """What a page shows again later is not a hold of rows that it did not see."""
    client = client_with(wish(of="max"))
    newest(client, frame(np.full(33, -10.0), 0))
    client.set_view(View(generation=2, streams=(wish(),)), TOPICS)
    client.set_view(View(generation=3, streams=(wish(of="max"),)), TOPICS)
    assert newest(client, frame(np.full(33, -60.0), 1)) == pytest.approx(-60.0)


def test_a_reset_is_of_one_topic_and_one_page():
    """After it the hold is that of later rows; other pages keep theirs."""
    clients = [client_with(wish(of="min")) for _ in range(2)]
    for client in clients:
        newest(client, frame(np.full(33, -90.0), 0))
    clients[0].reset_holds(TOPIC.id + 1)
    assert newest(clients[0], frame(np.full(33, -50.0), 1)) == pytest.approx(-90.0)
    clients[0].reset_holds(TOPIC.id)
    for client, level in zip(clients, (-50.0, -90.0), strict=True):
        assert newest(client, frame(np.full(33, -50.0), 2)) == pytest.approx(level)


def test_a_hold_decays_and_an_average_forgets_as_asked():
    """A peak falls 10 dB in 2 s with 1 s of hold time; after a time constant 1/e is left."""
    later = (frame(np.full(33, -20.0), 0), frame(np.full(33, -90.0), 100))
    decaying = wish(of="max", decay_db_s=10.0, hold_s=1.0)
    assert newest(client_with(decaying), *later) == pytest.approx(-30.0, abs=0.0052)
    average = wish(of="mean", time_constant_s=2.0)
    expected = -20.0 + 10.0 * np.log10(np.exp(-1.0))
    assert newest(client_with(average), *later) == pytest.approx(expected, abs=0.0052)


def test_other_ballistics_start_the_hold_again():
    """A hold whose decay is changed is that of later rows; the unused ones change nothing."""
    client = client_with(wish(of="max"))
    newest(client, frame(np.full(33, -10.0), 0))
    client.set_view(View(generation=2, streams=(wish(of="max", time_constant_s=3.0),)), TOPICS)
    assert newest(client, frame(np.full(33, -50.0), 1)) == pytest.approx(-10.0)
    client.set_view(View(generation=3, streams=(wish(of="max", decay_db_s=1.0),)), TOPICS)
    assert newest(client, frame(np.full(33, -60.0), 2)) == pytest.approx(-60.0)


@pytest.mark.parametrize("stat", ["max", "mean"])
def test_bins_of_a_hold_are_taken_together_as_asked(stat):
    """The pixels of a hold are the maximum, or the mean power, of its bins."""
    levels = np.linspace(-100.0, -20.0, 33)
    found = newest(client_with(wish(of="max", px=4, stat=stat)), frame(levels, 0))
    parts = np.split(levels[:32], 4)
    power = [np.mean(10.0 ** (part / 10.0)) for part in parts]
    expected = [part.max() for part in parts] if stat == "max" else 10.0 * np.log10(power)
    assert found[:4] == pytest.approx(expected, abs=0.0052)


def test_holds_that_take_too_much_memory_are_refused():
    """The bound counts all holds of a page, and the refusal says it."""
    client = PageClient(Limits(hold_bytes=100))
    client.set_view(View(generation=1, streams=(wish(of="mean"),)), TOPICS)
    client.push(TOPIC.id, make_rows(frame(np.full(33, -10.0), 0))[0])
    assert client.take_rows(0.0) is None
    assert "all holds must have at most 100 bytes" in client.outbox.take()[0]
