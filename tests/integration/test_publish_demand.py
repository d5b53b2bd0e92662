"""Subscriptions at the publisher and their effects; every wait is for a message."""

import queue
import socket
import threading
from dataclasses import replace

import numpy as np
import pytest
import zmq
from publishing import ANY_PORT, SPEC, TIMEOUT_S, make_batch, make_stats

from spectrod.daemon.publisher.publisher import Publisher
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.errors import BusyError, ConfigError
from spectrod.lib.events import EventLog
from spectrod.wire.schema import EventMessage, Frame, Heartbeat, Meta, decode

LEVELS = SpectrumSpec(
    fs=48000.0,
    channels=2,
    win_length=1024,
    hop=512,
    scaling="dbfs",
    bands="octave",
    product="levels",
)


def receive(sub):
    return decode(sub.recv_multipart())


def receive_until(sub, matches):
    while not matches(message := receive(sub)):
        pass
    return message


@pytest.fixture
def demanded(publish):
    """Make a publisher with a source of two products, and record the demand that it reports."""

    def start(*endpoints, **options):
        reported = queue.Queue()
        publisher = publish(*endpoints, feed={"on_demand": reported.put}, **options)
        feed = publisher.sources[0]
        feed.offer([SPEC, LEVELS])
        assert reported.get(timeout=TIMEOUT_S) == set()
        return publisher, feed, reported

    return start


def test_products_are_in_demand_while_they_have_subscribers(demanded, raw_subscriber):
    """A product is wanted while subscriptions match its topics, and until the last one ends."""
    publisher, _, reported = demanded()
    one = raw_subscriber(publisher.endpoints[0], "spec/mic/0/")
    assert reported.get(timeout=TIMEOUT_S) == {"dbfs"}
    every = raw_subscriber(publisher.endpoints[0], "")
    assert reported.get(timeout=TIMEOUT_S) == {"dbfs", "levels"}
    one.unsubscribe("spec/mic/0/")
    every.close()
    seen = [reported.get(timeout=TIMEOUT_S)]
    while seen[-1]:
        seen.append(reported.get(timeout=TIMEOUT_S))
    assert set(map(frozenset, seen)) <= {frozenset(), frozenset({"dbfs"})}


def test_subscriptions_to_descriptions_heartbeats_and_last_messages_are_no_demand(
    demanded, raw_subscriber, wait_for_subscribers
):
    """Subscriptions to descriptions, heartbeats and last messages are no demand."""
    publisher, _, reported = demanded()
    sub = raw_subscriber(publisher.endpoints[0], "meta/", "hb/", "event/", "last/", "spec/pond/")
    receive(sub)  # or the other one may come first
    wait_for_subscribers(publisher, 1)
    raw_subscriber(publisher.endpoints[0], "bands/")
    assert reported.get(timeout=TIMEOUT_S) == {"levels"}
    assert publisher.subscribers == 2


def test_an_older_subscription_is_demand_for_a_new_product(demanded, raw_subscriber):
    """A subscription older than its product or source counts once that exists."""
    publisher, feed, reported = demanded()
    raw_subscriber(publisher.endpoints[0], "spec/mic/0/density/", "spec/pond/")
    feed.offer([SPEC])
    assert reported.get(timeout=TIMEOUT_S) == set()
    feed.offer([SPEC, SpectrumSpec(fs=48000.0, channels=2, win_length=64, hop=64)])
    while not (products := reported.get(timeout=TIMEOUT_S)):
        pass
    assert products == {"density"}
    pond_reported = queue.Queue()
    pond = publisher.add_source("pond", make_stats, on_demand=pond_reported.put)
    pond.offer([SPEC])
    assert pond_reported.get(timeout=TIMEOUT_S) == {"dbfs"}


def test_a_peer_cannot_cancel_the_demand_of_another(demanded, raw_subscriber, raw_peer):
    """A peer cannot cancel another's demand, and its double subscription leaves none behind."""
    publisher, _, reported = demanded()
    honest = raw_subscriber(publisher.endpoints[0], "spec/")
    assert reported.get(timeout=TIMEOUT_S) == {"dbfs"}
    hostile = raw_peer(publisher.endpoints[0])
    for request in (b"\x00spec/", b"\x00spec/", b"\x01bands/", b"\x01bands/"):
        hostile.send(request)
    assert reported.get(timeout=TIMEOUT_S) == {"dbfs", "levels"}
    hostile.close()
    assert reported.get(timeout=TIMEOUT_S) == {"dbfs"}
    honest.close()
    assert reported.get(timeout=TIMEOUT_S) == set()


@pytest.fixture
def raw_peer():
    """Connect XSUB sockets, which can send any bytes."""
    with zmq.Context() as context:
        sockets = []

        def connect(endpoint):
            peer = context.socket(zmq.XSUB)
            peer.setsockopt(zmq.LINGER, 0)
            peer.connect(endpoint)
            sockets.append(peer)
            return peer

        yield connect
        for peer in sockets:
            peer.close()


def test_rows_passed_over_have_numbers(publish, raw_subscriber):
    """Skipped rows have numbers, so a late subscriber starts with the right one."""
    publisher = publish()
    sub = raw_subscriber(publisher.endpoints[0], "spec/mic/0/", "hb/")
    receive_until(sub, lambda m: isinstance(m, Heartbeat))
    publisher.sources[0].write(make_batch(1))
    publisher.sources[0].write(make_batch(2, first=101, skipped_rows=100))
    frames = [receive_until(sub, lambda m: isinstance(m, Frame)) for _ in range(3)]
    assert [frame.header.seq for frame in frames] == [0, 101, 102]
    assert [frame.header.dropped for frame in frames] == [0, 0, 0]


def test_a_message_that_has_come_can_be_replayed(publish, raw_subscriber):
    """A message is stored before it is sent, so a client that has it can have it replayed."""
    publisher, topic = publish(), "spec/mic/0/dbfs/"
    sub = raw_subscriber(publisher.endpoints[0], topic, "hb/")
    receive_until(sub, lambda m: isinstance(m, Heartbeat))
    sub.unsubscribe("hb/")
    while sub.poll(0):
        sub.recv_multipart()
    is_stored, may_be_sent = threading.Event(), threading.Event()

    def hold_up(_message):
        is_stored.set()
        assert may_be_sent.wait(TIMEOUT_S)

    publisher.history.watch(topic, hold_up)
    publisher.sources[0].write(make_batch(1))
    assert is_stored.wait(TIMEOUT_S)
    assert not sub.poll(100)
    assert publisher.history.newest(topic).seq == 0
    may_be_sent.set()
    assert receive_until(sub, lambda m: isinstance(m, Frame)).header.seq == 0


@pytest.mark.parametrize("replay_mb", [0, 1])
def test_the_last_message_comes_with_the_subscription_to_it(
    publish, progress, raw_subscriber, replay_mb
):
    """A subscription to the last message gets the newest of matching topics, once."""
    publisher = publish(progress=progress, replay_mb=replay_mb)
    publisher.sources[0].write(make_batch(3))
    assert progress.wait(TIMEOUT_S)
    sub = raw_subscriber(publisher.endpoints[0], "last/mic/1/", "hb/")
    last = receive_until(sub, lambda m: isinstance(m, Frame))
    assert (last.topic, last.header.seq, last.values[0]) == ("last/mic/1/dbfs/", 2, 2.5)
    newest = publisher.history.newest("spec/mic/1/dbfs/")
    assert (newest.seq, decode(newest.parts).header) == (2, last.header)
    publisher.sources[0].write(make_batch(1, first=3))
    raw_subscriber(publisher.endpoints[0], "spec/")
    beats = [receive(sub) for _ in range(2)]
    assert {type(beat) for beat in beats} == {Heartbeat}


def test_each_subscription_to_the_last_message_is_answered(publish, progress, raw_subscriber):
    """A second subscription with another prefix gets the last message again."""
    publisher = publish(progress=progress)
    publisher.sources[0].write(make_batch(1))
    assert progress.wait(TIMEOUT_S)
    sub = raw_subscriber(publisher.endpoints[0])
    for prefix, channels in [("last/", "01"), ("last/mic/", "01"), ("last/mic/1/", "1")]:
        sub.subscribe(prefix)
        for channel in channels:
            assert receive(sub).topic == f"last/mic/{channel}/dbfs/"


def test_messages_of_a_removed_product_are_dropped(demanded, raw_subscriber):
    """A message of an old shape, such as bands before bins, is no longer kept or sent."""
    publisher, feed, reported = demanded()
    sub = raw_subscriber(publisher.endpoints[0], "spec/", "bands/")
    while reported.get(timeout=TIMEOUT_S) != {"dbfs", "levels"}:
        pass
    feed.write(make_batch(spec=LEVELS))
    feed.write(make_batch())
    receive_until(sub, lambda m: m.topic == "spec/mic/1/dbfs/")
    bins = replace(LEVELS, bands="")
    feed.offer([bins])
    feed.write(make_batch(spec=LEVELS))
    receive_until(sub, lambda m: m.topic == "bands/mic/1/levels/")
    feed.write(make_batch(spec=bins))
    receive_until(sub, lambda m: m.topic == "spec/mic/1/levels/")
    publisher.stop()  # the message received last may not be kept yet
    assert publisher.history.topics() == ["spec/mic/0/levels/", "spec/mic/1/levels/"]


def test_history_returns_missed_messages(publish, progress):
    """The history returns messages by topic and number, as they were sent."""
    publisher = publish(progress=progress)
    assert publisher.history.newest("spec/mic/0/dbfs/") is None
    received, fourth = [], threading.Event()

    def hear(message):
        received.append(message.seq)
        if message.seq == 3:
            fourth.set()

    publisher.history.watch("spec/mic/0/dbfs/", hear)
    publisher.sources[0].write(make_batch(4))
    assert fourth.wait(TIMEOUT_S)
    again = publisher.history.since("spec/mic/0/dbfs/", 2, publisher.epoch)
    frames = [decode(message.parts) for message in again]
    assert [(frame.header.seq, frame.values[0]) for frame in frames] == [(2, 2.0), (3, 3.0)]
    assert received == [0, 1, 2, 3]


def test_events_are_sent_as_they_happen(publish, raw_subscriber):
    """Events are numbered by topic and in all, those before the start included."""
    events = EventLog(lambda: publisher and publisher.send_events())
    publisher = None
    events.add("daemon.started", "0")
    publisher = publish(events=events)
    sub = raw_subscriber(publisher.endpoints[0], "event/", "hb/")
    receive_until(sub, lambda m: isinstance(m, Heartbeat))
    events.add("source.waiting", "no audio input", source="mic")
    events.add("control.set", "analysis.hop: 1024 -> 512", who="roof")
    events.add("source.back", "there", source="mic")
    seen = [receive_until(sub, lambda m: isinstance(m, EventMessage)) for _ in range(3)]
    assert [message.topic for message in seen] == ["event/mic/", "event/-/", "event/mic/"]
    headers = [message.header for message in seen]
    assert [(h.seq, h.number) for h in headers] == [(0, 1), (1, 2), (1, 3)]
    assert (headers[1].kind, headers[1].who) == ("control.set", "roof")
    assert {h.epoch for h in headers} == {publisher.epoch}


def test_plain_vectors_are_one_part_of_float32(demanded, raw_subscriber):
    """Plain vectors are one part of float32 without topic or header, as GNU Radio reads them."""
    text = f"{ANY_PORT} spec/mic/1/dbfs/"
    publisher, feed, reported = demanded(raw32=[text])
    vectors = raw_subscriber(publisher.raw32_endpoints[0], "")
    assert reported.get(timeout=TIMEOUT_S) == {"dbfs"}
    feed.write(make_batch(2))
    feed.write(make_batch(1, spec=LEVELS))
    for first in (0.5, 1.5):
        (values,) = vectors.recv_multipart()
        np.testing.assert_array_equal(np.frombuffer(values, "<f4"), [first] * SPEC.n_values)
    vectors.close()
    assert reported.get(timeout=TIMEOUT_S) == set()
    assert publisher.subscribers == 0


def test_plain_vectors_have_endpoints_of_their_own(publish):
    """Two topics of plain vectors have two endpoints, and an occupied one is an error."""
    with pytest.raises(ConfigError, match=r"endpoint='tcp://127\.0\.0\.1:7': named 2 times"):
        Publisher(["tcp://127.0.0.1:7"], raw32=["tcp://127.0.0.1:7 spec/mic/0/dbfs/"])
    taken = publish().endpoints[0]
    with pytest.raises(BusyError, match=f"endpoint='{taken}': in use by another process"):
        publish(raw32=[f"{taken} spec/mic/0/dbfs/"])


@pytest.mark.parametrize(
    "text",
    ["tcp://127.0.0.1:5558", "tcp://127.0.0.1:5558 spec/mic/0/", "x spec/a/0/b/ ", "", "a b c"],
)
def test_where_plain_vectors_go_must_be_an_endpoint_and_a_topic(text):
    """An error about plain vectors has the whole text and the rule."""
    with pytest.raises(ConfigError, match=r"raw32=.*: must be an endpoint and a topic|endpoint='x"):
        Publisher([ANY_PORT], raw32=[text])


def test_sources_come_and_go_while_the_publisher_runs(publish, raw_subscriber):
    """An added source is published at once; a removed one sends the rest and a goodbye."""
    publisher = publish()
    sub = raw_subscriber(publisher.endpoints[0], "")
    receive_until(sub, lambda m: isinstance(m, Heartbeat))
    pond = publisher.add_source("pond", make_stats)
    pond.write(make_batch(2))
    publisher.remove_source(pond)
    assert [feed.name for feed in publisher.sources] == ["mic"]
    seen = [receive_until(sub, lambda m: "/pond/" in m.topic)]
    while not (isinstance(seen[-1], Heartbeat) and seen[-1].header.state == "stopped"):
        seen.append(receive_until(sub, lambda m: "/pond/" in m.topic))
    kinds = [type(message) for message in seen if not isinstance(message, Heartbeat)]
    assert kinds == [Meta] * 2 + [Frame] * 4
    receive_until(sub, lambda m: "/mic/" in m.topic)  # sent after the goodbye and what follows it
    assert publisher.history.topics() == []


def test_a_source_that_returns_continues_its_numbers(publish, raw_subscriber):
    """A source that returns continues its numbers, which never go back within an epoch."""
    publisher = publish()
    sub = raw_subscriber(publisher.endpoints[0], "spec/pond/0/", "hb/pond/", "hb/mic/")
    receive_until(sub, lambda m: isinstance(m, Heartbeat))
    seqs, beats = [], []
    for k in range(3):
        pond = publisher.add_source("pond", make_stats)
        pond.write(make_batch(2, first=2 * k))
        publisher.remove_source(pond)
    while len(seqs) < 6 or beats[-1].state != "stopped":
        message = receive(sub)
        if isinstance(message, Frame):
            seqs.append(message.header.seq)
        elif message.source == "pond":
            beats.append(message.header)
    assert seqs == [0, 1, 2, 3, 4, 5]
    assert [beat.seq for beat in beats] == list(range(len(beats)))


def test_a_source_may_be_removed_before_the_start():
    """A source removed before the start is never announced, and its name is free."""
    publisher = Publisher([ANY_PORT])
    publisher.remove_source(publisher.add_source("mic", make_stats))
    assert publisher.sources == ()
    publisher.add_source("mic", make_stats)


def test_all_kinds_of_endpoints_carry_the_same_messages(publish, raw_subscriber, ipc_path):
    """IPv4, IPv6 and IPC carry the same messages with one numbering and all subscriptions."""
    with socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::1", 0))  # a machine without IPv6 fails here with a message
    publisher = publish(ANY_PORT, "tcp://[::1]:*", f"ipc://{ipc_path}")
    subs = [raw_subscriber(endpoint, "spec/mic/0/", "hb/") for endpoint in publisher.endpoints]
    while publisher.subscribers < 3:
        receive(subs[0])
    publisher.sources[0].write(make_batch(2))
    seen = [
        [receive_until(sub, lambda m: isinstance(m, Frame)).header for _ in "ab"] for sub in subs
    ]
    assert seen[0] == seen[1] == seen[2]
    assert [header.seq for header in seen[0]] == [0, 1]


def test_rules_of_numbers_hold_with_gaps_and_drops(publish, raw_subscriber):
    """Dropped messages count for their product, and skipped rows are no drops."""
    publisher = publish(queue_frames=2)
    sub = raw_subscriber(publisher.endpoints[0], "spec/mic/0/", "hb/")
    receive_until(sub, lambda m: isinstance(m, Heartbeat))
    batch = replace(make_batch(7, gap_samples=9), skipped_rows=5)
    publisher.sources[0].write(batch)
    headers = [receive_until(sub, lambda m: isinstance(m, Frame)).header for _ in range(2)]
    assert [(h.seq, h.dropped, h.gap_samples) for h in headers] == [(10, 5, 9), (11, 5, 0)]
