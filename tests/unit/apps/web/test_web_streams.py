"""Rows of a stream: merged, described, and equal for clients that ask for the same."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spectrod.apps.web.client import PageClient
from spectrod.apps.web.limits import Limits
from spectrod.apps.web.page_rows import RowMaker
from spectrod.apps.web.page_view import StreamWish, View

sys.path.insert(0, str(Path(__file__).parents[3] / "web"))
from web_pages import decode
from web_rows import TOPIC, band_frame, frame, make_rows

TOPICS = {TOPIC.id: TOPIC}


def client_with(*wishes, limits=None, **view):
    client = PageClient(limits or Limits())
    client.set_view(View(generation=1, streams=wishes, **view), TOPICS)
    return client


def wish(**fields):
    return StreamWish(**({"id": 1, "topic_id": 3, "f0": 0.0, "f1": 24e3, "px": 4000} | fields))


def received(client, rows):
    """Push rows; return the rows that the client would get, with their descriptions."""
    for row in rows:
        client.push(TOPIC.id, row)
    found = client.take_rows(0.0)
    return [] if found is None else decode(found[1])[1]


def described(client):
    """Return the descriptions that are queued, in order."""
    seen = {}
    for one in client.queue.take():
        seen[one.description.generation] = one.description.fields
    return list(seen.values())


def noise(n, bins=33, seed=1):
    rng = np.random.default_rng(seed)
    return [rng.uniform(-120.0, -20.0, bins).astype(np.float32) for _ in range(n)]


def u16(levels):
    return np.rint((levels.astype(np.float64) + 327.67) / 0.01)


def test_a_row_is_its_levels():
    """Bins finer than pixels come as they are, with number, time and counts."""
    levels = noise(1)[0]
    row = frame(levels, 7, missed=2, gap_samples=480)
    found = received(client_with(wish(bits=16)), make_rows(row))
    assert len(found) == 1
    assert np.array_equal(found[0]["values"], u16(levels))
    about = {name: found[0][name] for name in ("seq", "missed", "merged", "flags", "gap_samples")}
    assert about == {"seq": 7, "missed": 2, "merged": 1, "flags": 1, "gap_samples": 480}
    assert found[0]["t_ms"] == pytest.approx(7 * 20.0 + 64 / 48000 / 2 * 1e3)


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("every", [1, 2, 5])
def test_slower_rows_are_maxima(bits, every):
    """Rows that a page wants less often are the maximum of all messages, none left out."""
    rows = make_rows(*[frame(levels, k) for k, levels in enumerate(noise(10))])
    whole = received(client_with(wish(bits=bits, rows_s=50.0)), rows)
    assert len(whole) == 10
    found = received(client_with(wish(bits=bits, rows_s=50.0 / every)), rows)
    assert [row["merged"] for row in found] == [every] * (10 // every)
    for k, row in enumerate(found):
        parts = whole[k * every : (k + 1) * every]
        assert np.array_equal(row["values"], np.max([one["values"] for one in parts], axis=0))
        assert row["seq"] == parts[-1]["seq"]
        assert row["t_ms"] == pytest.approx((parts[0]["t_ms"] + parts[-1]["t_ms"]) / 2)


@settings(max_examples=30)
@given(st.integers(1, 6), st.integers(1, 40))
def test_means_are_of_power_over_bins_and_messages(every, px):
    """The mean of several bins of several messages is that of their powers."""
    levels = noise(every, 33, seed=every)
    rows = make_rows(*[frame(one, k) for k, one in enumerate(levels)])
    client = client_with(wish(bits=16, stat="mean", rows_s=50.0 / every, px=px))
    (found,) = received(client, rows)
    per_value = -(-33 // len(found["values"]))
    per_value = 1 << (per_value - 1).bit_length()
    power = 10.0 ** (np.array(levels, np.float64) / 10.0)
    for k, value in enumerate(found["values"]):
        expected = 10.0 * np.log10(power[:, k * per_value : (k + 1) * per_value].mean())
        assert value * 0.01 - 327.67 == pytest.approx(expected, abs=0.0051)


def test_a_gap_is_not_merged_over():
    """The messages before a gap are a row of their own, the one after it says how long it was."""
    rows = make_rows(
        *[frame(levels, k, gap_samples=960 * (k == 4)) for k, levels in enumerate(noise(8))]
    )
    found = received(client_with(wish(rows_s=50.0 / 3.0)), rows)
    assert [row["merged"] for row in found] == [3, 1, 3]
    assert [row["flags"] for row in found] == [0, 0, 1]
    assert [row["gap_samples"] for row in found] == [0, 0, 960]


def test_a_restart_of_the_daemon_begins_a_description():
    """Rows of another epoch are described again, and the first of them says so."""
    some = noise(4)
    rows = make_rows(
        frame(some[0], 7),
        frame(some[1], 0, epoch=2, restarted=True, missed=0),
        frame(some[2], 1, epoch=2),
    )
    client = client_with(wish())
    for row in rows:
        client.push(TOPIC.id, row)
    descriptions, message = client.take_rows(0.0)
    assert [one.fields["epoch"] for one in descriptions] == ["1", "2"]
    assert [row["flags"] for row in decode(message)[1]] == [0, 2, 0]


def test_bytes_are_described_again_when_their_range_moves():
    """A louder row has another ``lo`` than those before it; 16 bits never change."""
    rows = make_rows(frame(noise(1)[0] - 60.0, 0), frame(noise(1)[0] + 20.0, 1))
    client = client_with(wish(), wish(id=2, bits=16))
    for row in rows:
        client.push(TOPIC.id, row)
    about = [(one["id"], one["lo"], one["step"]) for one in described(client)]
    assert about == [(1, -187.0, 0.5), (2, -327.67, 0.01), (1, -117.0, 0.5)]


def test_clients_that_ask_for_the_same_share_its_bytes():
    """Equal slices are encoded once, however many pages show them."""
    (row,) = make_rows(frame(noise(1)[0], 0))
    clients = [client_with(wish()), client_with(wish(id=9))]
    for client in clients:
        client.push(TOPIC.id, row)
    first, second = (client.queue.take()[0].row.data for client in clients)
    assert first is second


def test_a_view_that_changes_only_the_speed_keeps_the_description():
    """Rows go on in the generation that the page knows."""
    rows = make_rows(*[frame(levels, k) for k, levels in enumerate(noise(4))])
    client = client_with(wish())
    client.push(TOPIC.id, rows[0])
    client.set_view(View(generation=2, streams=(wish(rows_s=25.0),)), TOPICS)
    client.push(TOPIC.id, rows[1])
    client.push(TOPIC.id, rows[2])
    assert len(described(client)) == 1


def test_rows_of_an_older_view_keep_their_description():
    """Rows that wait when the page zooms are still described, each as it was made."""
    rows = make_rows(*[frame(levels, k) for k, levels in enumerate(noise(2))])
    client = client_with(wish())
    client.push(TOPIC.id, rows[0])
    client.set_view(View(generation=2, streams=(wish(f0=6e3, f1=12e3),)), TOPICS)
    client.push(TOPIC.id, rows[1])
    old, new = described(client)
    assert (old["view"], old["slices"][0]["first"]) == (1, 0)
    assert (new["view"], new["slices"][0]["first"]) == (2, 8)
    assert new["generation"] > old["generation"]


def test_no_message_is_lost_when_the_view_changes():
    """Messages that were being merged are a row of the old view, however often it changes."""
    rows = make_rows(*[frame(levels, k) for k, levels in enumerate(noise(20))])
    client = client_with(wish(rows_s=10.0))
    for k, row in enumerate(rows):
        client.push(TOPIC.id, row)
        if k % 3 == 0:
            zoomed = wish(rows_s=10.0, f1=20e3 - k)
            client.set_view(View(generation=k + 2, streams=(zoomed,)), TOPICS)
    found = decode(client.take_rows(0.0)[1])[1]
    assert sum(row["merged"] for row in found) == 19
    assert [row["seq"] for row in found] == [0, 3, 6, 9, 12, 15, 18]


def test_a_hidden_page_gets_a_row_a_second():
    """What nobody sees comes once a second, the maximum of all messages."""
    rows = make_rows(*[frame(levels, k) for k, levels in enumerate(noise(50))])
    found = received(client_with(wish(), visible=False), rows)
    assert [row["merged"] for row in found] == [50]


def test_values_that_are_no_levels_become_levels():
    """A density of 1e-6 FS^2/Hz is -60 dB re FS^2/Hz; a negative power is no data."""
    values = np.full(33, 1e-6)
    values[:2] = -1.0, 0.0
    maker = RowMaker(TOPIC)
    row = maker.make(frame(values, 0, unit="FS^2/Hz"), None)
    client = client_with(wish(bits=16))
    client.push(TOPIC.id, row)
    assert row.facts.fields["unit"] == "dB re FS^2/Hz"
    (found,) = decode(client.take_rows(0.0)[1])[1]
    assert found["values"][:3].tolist() == [65535, 0, 26767]


def test_bands_wait_for_their_edges():
    """Bands whose description has not come, or has other bands, make no row."""
    maker = RowMaker(TOPIC)
    edges = np.array([[10.0, 20.0, 40.0], [20.0, 40.0, 80.0]])
    bands = band_frame([-10.0, -20.0, -30.0])
    assert maker.make(bands, None) is None
    assert maker.make(bands, edges[:, :2]) is None
    row = maker.make(bands, edges)
    assert json.loads(bytes(row.facts.fields["edges_hz"])) == edges.tolist()
    assert row.facts.fields["n_bins"] == 3


def test_a_topic_of_too_many_bands_is_refused():
    """A description with the edges of a million bands is never made; the page is told why."""
    limits = Limits(values=2)
    client = client_with(wish(), limits=limits)
    edges = np.array([[10.0, 20.0, 40.0], [20.0, 40.0, 80.0]])
    row = RowMaker(TOPIC).make(band_frame([-10.0, -20.0, -30.0]), edges)
    client.push(TOPIC.id, row)
    assert client.take_rows(0.0) is None
    assert "topic_id=3: 3 bands: must be at most 2" in client.outbox.take()[0]
    assert client.topics() == set()


def test_the_middle_of_a_cut_row_is_earlier():
    """A row that a gap cut off is as long as its frames."""
    long = {"averaging": "mean", "averaging_frames": 4, "frame_hop": 32, "hop": 128}
    maker = RowMaker(TOPIC)
    whole = maker.make(frame(noise(1)[0], 0, **long), None)
    cut = maker.make(frame(noise(1)[0], 0, cut_frames=2, **long), None)
    assert whole.t_ms == pytest.approx((64 + 3 * 32) / 96.0)
    assert cut.t_ms == pytest.approx((64 + 32) / 96.0)


def test_no_page_gets_more_rows_than_the_server_allows():
    """A wish for more rows a second than the bound is one for the bound."""
    rows = make_rows(*[frame(levels, k) for k, levels in enumerate(noise(10))])
    client = client_with(wish(rows_s=1e9), limits=Limits(rows_s=10.0))
    assert [row["merged"] for row in received(client, rows)] == [5, 5]
