"""What a slow page costs: bounded whatever it does, and it is told what it lost."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spectrod.apps.web.client import PageClient
from spectrod.apps.web.limits import Limits
from spectrod.apps.web.outbox import TEXTS_MAX, TEXTS_MAX_BYTES, Outbox
from spectrod.apps.web.page_view import StreamWish, View
from spectrod.apps.web.slow_client import (
    MESSAGE_MAX_BYTES,
    WINDOW_MIN_BYTES,
    Credits,
    RowQueue,
)

sys.path.insert(0, str(Path(__file__).parents[3] / "web"))
from web_pages import decode
from web_rows import TOPIC, frame, make_rows

LIMITS = Limits()
PERIOD_S = 0.02
VALUES = np.linspace(-100.0, -20.0, 4097).astype(np.float32)


def client_with(**fields):
    client = PageClient(LIMITS)
    asked = {"id": 1, "topic_id": 3, "f0": 0.0, "f1": 24e3, "px": 4096, "bits": 16} | fields
    client.set_view(View(generation=1, streams=(StreamWish(**asked),)), {TOPIC.id: TOPIC})
    return client


def client_row():
    """Return a row as it waits for a page."""
    client = client_with(px=64)
    client.push(TOPIC.id, rows_of(1)[0])
    return client.queue.take()[0]


def rows_of(n):
    return make_rows(*[frame(VALUES, k) for k in range(n)])


def test_at_most_eight_messages_are_sent_ahead():
    """The ninth waits for an acknowledgement, which stands for all messages before it."""
    credits_ = Credits(LIMITS)
    for _ in range(8):
        assert credits_.may_send(0.0)
        credits_.note_sent(0.0)
    assert not credits_.may_send(0.1)
    assert credits_.acknowledge(3, 0.1)
    assert credits_.may_send(0.1)


def test_nothing_is_sent_400_ms_after_the_oldest():
    """A page that has drawn nothing for 400 ms gets no more until it does."""
    credits_ = Credits(LIMITS)
    credits_.note_sent(1.0)
    assert credits_.may_send(1.39)
    assert not credits_.may_send(1.41)
    credits_.acknowledge(1, 9.0)
    assert credits_.may_send(9.0)
    assert credits_.silent_s(9.0) == 0.0


def test_the_delay_of_a_line_is_not_late():
    """What the fastest message took is added to the 400 ms, up to as much again."""
    for took_s, most_s in [(0.3, 0.7), (5.0, 0.8)]:
        credits_ = Credits(LIMITS)
        credits_.note_sent(0.0)
        credits_.acknowledge(1, took_s)
        credits_.note_sent(10.0)
        assert credits_.may_send(10.0 + most_s - 0.01)
        assert not credits_.may_send(10.0 + most_s + 0.01)


def test_a_message_that_was_not_sent_is_not_acknowledged():
    """A page cannot earn credit for messages that are still to come."""
    credits_ = Credits(LIMITS)
    credits_.note_sent(0.0)
    assert not credits_.acknowledge(2, 0.0)
    assert credits_.silent_s(5.0) == 5.0
    assert credits_.acknowledge(1, 5.0)
    assert credits_.acknowledge(1, 5.0)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(["rows", "ack", "take", "wait"]), max_size=60), st.integers(1, 40))
def test_no_order_of_events_exceeds_the_bounds(events, burst):
    """Rows that wait and messages on their way are bounded, and no row is lost uncounted."""
    client, now_s, n_pushed, n_taken = client_with(), 0.0, 0, 0
    rows = rows_of(1) * burst
    for event in events:
        if event == "rows":
            for row in rows:
                client.push(TOPIC.id, row)
                n_pushed += 1
        elif event == "ack":
            client.credits.acknowledge(client.credits.newest, now_s)
        elif event == "wait":
            now_s += 0.2
        elif (found := client.take_rows(now_s)) is not None:
            n_taken += len(decode(found[1])[1])
        assert len(client.queue) <= LIMITS.queue_rows
        assert sum(one.size_bytes for one in client.queue._rows) <= LIMITS.queue_bytes
        assert client.credits.newest == 0 or len(client.credits._sent) <= LIMITS.unacked_messages
    assert n_taken + len(client.queue) + client.queue.dropped == n_pushed


def run_slow(client, seconds, *, acks_every_s=None):
    """Let time pass for a client that acknowledges rarely or never; return the rows it got."""
    got, row = [], rows_of(1)[0]
    for k in range(round(seconds / PERIOD_S)):
        now_s = 1.0 + k * PERIOD_S
        client.push(TOPIC.id, row)
        client.adapt(now_s)
        found = client.take_rows(now_s)
        if found is not None:
            got += decode(found[1])[1]
        if acks_every_s and k % round(acks_every_s / PERIOD_S) == 0:
            client.credits.acknowledge(client.credits.newest, now_s)
    return got


def test_a_page_that_draws_nothing_gets_fewer_and_fewer_rows():
    """Without any acknowledgement rows come once a second in the end, merged, and are bounded."""
    client = client_with()
    run_slow(client, 59.0)
    assert len(client.queue) <= LIMITS.queue_rows
    assert client.queue.take()[-1].row.merged == 50
    assert not client.is_gone(60.9)
    assert client.is_gone(61.1)


def run_line(client, seconds, bytes_s, rows, latency_s=0.05):
    """Let rows pass a line of so many bytes a second.

    Whatever the line has delivered is acknowledged. Returns when messages came, their sizes, and
    when rows of each stream came.
    """
    came, sizes, free_s, on_line, of_stream = [], [], 0.0, [], {}
    for k in range(round(seconds / PERIOD_S)):
        now_s = k * PERIOD_S
        for row in rows:
            client.push(TOPIC.id, row)
        client.adapt(now_s)
        found = client.take_rows(now_s)
        if found is not None:
            sizes.append(len(found[1]))
            free_s = max(free_s, now_s) + len(found[1]) / bytes_s
            number, got = decode(found[1])
            on_line.append((free_s + latency_s, number, [row["stream"] for row in got]))
        while on_line and on_line[0][0] <= now_s:
            came_s, number, streams = on_line.pop(0)
            came.append(came_s)
            client.credits.acknowledge(number, now_s)
            for stream in streams:
                of_stream.setdefault(stream, []).append(came_s)
    return came, sizes, of_stream


@pytest.mark.parametrize("bytes_s", [20_000.0, 50_000.0, 200_000.0])
def test_on_a_slow_line_rows_keep_coming(bytes_s):
    """Four charts want 800 kB a second: messages are short and none is lost."""
    streams = tuple(
        StreamWish(id=n, topic_id=3, f0=0.0, f1=24e3, px=1000, bits=16) for n in range(4)
    )
    client = PageClient(LIMITS)
    client.set_view(View(generation=1, streams=streams), {TOPIC.id: TOPIC})
    came, sizes, _ = run_line(client, 60.0, bytes_s, rows_of(1))
    assert max(sizes) <= MESSAGE_MAX_BYTES + 200  # and the heads of the message and its blocks
    gaps = np.diff([0.0, *came])
    assert gaps.max() <= 2.0
    assert gaps[len(gaps) // 2 :].max() <= 1.1
    assert client.queue.dropped == 0


@pytest.mark.parametrize("rows_s", [5.5, 50.0])
def test_a_slow_line_is_used_and_waterfalls_come_first(rows_s):
    """Four charts as a page shows them over 50 kB/s: no row is lost, and no waterfall stands."""
    about = {"topic_id": 3, "f0": 0.0, "f1": 24e3, "px": 640}
    waterfalls = [StreamWish(id=8 * n, bits=8, rows_s=rows_s, **about) for n in range(4)]
    lines = [StreamWish(id=8 * n + 1, bits=16, rows_s=20.0, **about) for n in range(4)]
    client = PageClient(LIMITS)
    client.set_view(View(generation=1, streams=(*waterfalls, *lines)), {TOPIC.id: TOPIC})
    _, sizes, came = run_line(client, 60.0, 50e3, rows_of(1), latency_s=0.1)
    assert sum(sizes) > 0.6 * 50e3 * 60.0
    assert client.queue.dropped == 0
    for n in range(4):
        assert len(came[8 * n]) > len(came[8 * n + 1]) * 0.9
        assert len(came[8 * n]) > 60.0 * 2.5
        assert np.diff([0.0, *came[8 * n]]).max() <= 1.0


def test_rows_that_go_on_in_time_are_no_backlog():
    """A queue that is never empty does not slow a page until a row has waited for half a second."""
    queue, row = RowQueue(LIMITS), client_row()
    for k in range(100):
        queue.adapt(0.125 * k)
        queue.put(row)
        if k >= 3:  # each row waits for 0.375 s
            queue.take(1)
    assert (queue.slowdown, len(queue)) == (1, 3)
    oldest_s = 97 * 0.125
    queue.adapt(oldest_s + 0.49)
    assert queue.slowdown == 1
    queue.adapt(oldest_s + 0.5)
    assert queue.slowdown == 2


def test_a_rate_that_drains_what_waits_is_slow_enough():
    """As long as fewer bytes wait each half second the rate is not halved again."""
    queue, row = RowQueue(LIMITS), client_row()
    queue.adapt(0.0)
    for _ in range(100):
        queue.put(row)
    slowdowns = []
    for k in range(20):
        queue.adapt(0.5 * k)
        slowdowns.append(queue.slowdown)
        if 2 <= k < 10:
            queue.take(10 * row.size_bytes)
    assert slowdowns[:4] == [1, 2, 4, 4]
    assert set(slowdowns[3:11]) == {4}
    assert slowdowns[11:14] == [8, 16, 32]


def test_on_a_fast_line_nothing_waits():
    """On 10 MB a second every message is a row, though it wants 1.6 MB a second."""
    client = client_with()
    streams = tuple(
        StreamWish(id=n, topic_id=3, f0=0.0, f1=24e3, px=4096, bits=16) for n in range(4)
    )
    client.set_view(View(generation=1, streams=streams), {TOPIC.id: TOPIC})
    run_line(client, 10.0, 10e6, rows_of(1))
    assert client.queue.slowdown == 1
    assert len(client.queue) <= 4 * 5


def test_the_window_halves_once_for_what_was_sent_before_it_showed():
    """Messages of one stall are one reason to narrow; those after it are another."""
    credits_ = Credits(LIMITS)
    at_first = credits_.window_bytes
    for _ in range(3):
        credits_.note_sent(0.0, 2_000)
    for now_s in (0.85, 0.9, 0.95):
        assert not credits_.may_send(now_s)
        credits_.acknowledge(credits_.newest - 1, now_s)
    assert credits_.window_bytes == at_first // 2
    credits_.acknowledge(credits_.newest, 1.0)
    for n in range(20):
        credits_.note_sent(10.0 * n, 2_000)
        assert not credits_.may_send(10.0 * n + 5.0)
        credits_.acknowledge(credits_.newest, 10.0 * n + 5.0)
    assert credits_.window_bytes == WINDOW_MIN_BYTES


def test_a_hidden_page_may_be_silent():
    """A page that nobody sees is not closed for drawing nothing."""
    client = client_with()
    run_slow(client, 1.0)
    client.set_view(View(generation=2, visible=False), {TOPIC.id: TOPIC})
    assert not client.is_gone(1000.0)


def test_rows_that_were_dropped_are_told_and_marked():
    """The count is in every later message, and the first row after the hole has its flag."""
    client = client_with()
    for row in rows_of(300):
        client.push(TOPIC.id, row)
    n_dropped = client.queue.dropped
    assert n_dropped == 300 - LIMITS.queue_bytes // (2 * 4097)
    client.push(TOPIC.id, rows_of(301)[300])
    _, rows = decode(client.take_rows(0.0)[1])
    assert {row["client_dropped"] for row in rows} == {client.queue.dropped}
    assert rows[-1]["flags"] == 8


def test_a_page_that_draws_again_gets_all_rows_again():
    """Some seconds after the backlog has gone every message is a row again."""
    client = client_with()
    run_slow(client, 20.0)
    assert client.queue.slowdown > 1
    got = run_slow(client, 120.0, acks_every_s=0.1)
    assert client.queue.slowdown == 1
    assert got[-1]["merged"] == 1


def test_the_rate_is_halved_not_faster_than_twice_a_second():
    """One look at a full queue does not stop the stream."""
    queue = RowQueue(Limits(queue_rows=2))
    client = client_with()
    for row in rows_of(3):
        client.push(TOPIC.id, row)
    for one in client.queue.take():
        queue.put(one)
    queue.adapt(10.0)
    queue.adapt(10.4)
    assert queue.slowdown == 2
    queue.adapt(10.5)
    assert queue.slowdown == 4


def test_the_newest_text_of_a_key_replaces_the_older():
    """What is of interest only as it is now waits once."""
    outbox = Outbox()
    outbox.add("hello")
    for k in range(5):
        outbox.set("state", f"state {k}")
    outbox.add("event")
    assert outbox.take() == ["hello", "state 4", "event"]
    assert not outbox.take()


def test_texts_are_bounded_in_number_and_length():
    """Texts that nobody reads are dropped, the oldest first."""
    outbox = Outbox()
    for k in range(3 * TEXTS_MAX):
        outbox.add(str(k))
    assert len(outbox) == TEXTS_MAX
    assert outbox.take()[-1] == str(3 * TEXTS_MAX - 1)
    for k in range(10):
        outbox.set(k, "x" * (TEXTS_MAX_BYTES // 4))
    assert len(outbox) == 4


def test_a_refusal_is_told_once():
    """A page that asks for the same nonsense again and again is told once at a time."""
    client = client_with()
    for _ in range(100):
        client.refuse("view", "topic_id=7: must be the id of a topic with spectra")
    (text,) = client.outbox.take()
    assert json.loads(text)["what"] == "view"
