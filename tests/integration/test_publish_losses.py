"""Slow subscribers: their losses are known exactly, and other subscribers have none."""

import threading
from pathlib import Path

import pytest
import zmq
from publishing import TIMEOUT_S, make_batch

from spectrod.daemon.publisher import xpub
from spectrod.daemon.publisher.new_subscriptions import AGAIN_S
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.wire.schema import Frame, decode

SPEC = SpectrumSpec(fs=48000.0, win_length=4096, hop=48, scaling="dbfs")
TOPIC = "spec/mic/0/dbfs/"
FAST, SLOW, HIGH_WATER_MARK, TURN, MESSAGES = 4, 4, 20, 10, 1000
LONG = SpectrumSpec(fs=48000.0, win_length=65536, hop=48, scaling="dbfs")
WAITING = 120
"""Messages of 128 KB: more than sockets of the system hold, fewer than a queue of ZeroMQ."""
HELD_UP_S = 0.5


def threads():
    """Count this process's threads, ZeroMQ's among them."""
    return len(list(Path("/proc/self/task").iterdir()))


class Reader:
    """One SUB socket with its received and its missed messages."""

    def __init__(self, sub):
        self.sub = sub
        self.received = self.missed = self.next_seq = 0

    def read_one(self):
        frame = decode(self.sub.recv_multipart())
        assert isinstance(frame, Frame)
        self.missed += frame.header.seq - self.next_seq
        self.next_seq = frame.header.seq + 1
        self.received += 1
        assert frame.values[0] == frame.header.seq

    def read_until(self, seq):
        while self.next_seq < seq:
            self.read_one()


@pytest.mark.slow
def test_fast_subscribers_lose_nothing_and_slow_ones_can_count_their_losses(
    publish, raw_subscriber, ipc_path
):
    """For each subscriber, received messages and holes in seq add up to all that were sent."""
    publisher = publish(f"ipc://{ipc_path}", high_water_mark=HIGH_WATER_MARK)
    feed, endpoint = publisher.sources[0], publisher.endpoints[0]
    fast = [Reader(raw_subscriber(endpoint, TOPIC)) for _ in range(FAST)]
    slow = [Reader(raw_subscriber(endpoint, TOPIC, high_water_mark=1)) for _ in range(SLOW)]
    beats = raw_subscriber(endpoint, "hb/")
    while publisher.subscribers < FAST + SLOW:
        beats.recv_multipart()
    for first in range(0, MESSAGES, TURN):
        feed.write(make_batch(TURN, first, SPEC))
        for reader in fast:
            reader.read_until(first + TURN)
    assert [(reader.received, reader.missed) for reader in fast] == [(MESSAGES, 0)] * FAST
    sent = MESSAGES
    for reader in slow:
        reader.read_until(1)
        # Its queue is full of old messages; each that is read makes room for a newer one.
        while reader.next_seq <= MESSAGES:
            feed.write(make_batch(1, sent, SPEC))
            sent += 1
            for other in fast:
                other.read_until(sent)
            if reader.sub.poll(TIMEOUT_S * 1e3):
                reader.read_one()
        assert reader.received + reader.missed == reader.next_seq
        assert reader.missed > MESSAGES / 4
    assert [(reader.received, reader.missed) for reader in fast] == [(sent, 0)] * FAST
    assert feed.dropped == 0


@pytest.mark.extended
@pytest.mark.slow
def test_subscribers_that_vanish_leave_nothing_behind(
    publish, raw_subscriber, fds, ipc_path, resident_bytes, monkeypatch
):
    """Subscribers that vanish in any way leave neither descriptors nor threads nor memory."""
    monkeypatch.setitem(AGAIN_S, b"last/", 0.0)  # else each that waits for one does so for 1 s
    publisher = publish(f"ipc://{ipc_path}", replay_mb=0)
    feed, endpoint = publisher.sources[0], publisher.endpoints[0]
    steady = Reader(raw_subscriber(endpoint, TOPIC))
    beats = raw_subscriber(endpoint, "hb/")
    while not publisher.subscribers:
        beats.recv_multipart()
    with zmq.Context() as context:
        for k in range(300):
            if k == 100:  # by then all sizes are stable
                before = fds(), resident_bytes(), threads()
            with context.socket(zmq.SUB) as sub:
                sub.setsockopt(zmq.LINGER, 0)
                sub.setsockopt(zmq.RCVTIMEO, int(TIMEOUT_S * 1e3))
                sub.subscribe("spec/")
                sub.subscribe(f"spec/mic/{k}/")
                sub.subscribe("last/")
                sub.connect(endpoint)
                if k % 8 == 1:  # by then there is a last message
                    sub.recv_multipart()
            feed.write(make_batch(1, k, SPEC))
            steady.read_until(k + 1)
    while publisher.subscribers > 1:
        beats.recv_multipart()
    assert (steady.received, steady.missed) == (300, 0)
    assert fds() <= before[0] + 4
    assert resident_bytes() - before[1] < 8 << 20
    assert threads() <= before[2]


def test_a_subscriber_that_is_behind_gets_the_last_heartbeat(
    publish, raw_subscriber, wait_for_subscribers, monkeypatch
):
    """A subscriber that is held up while the publisher ends misses nothing, not the end either."""
    monkeypatch.setattr(xpub, "GOODBYE_S", TIMEOUT_S)
    publisher = publish()
    sub = raw_subscriber(publisher.endpoints[0], "hb/", TOPIC, high_water_mark=1)
    wait_for_subscribers(publisher)
    publisher.sources[0].write(make_batch(WAITING, 0, LONG))
    stopping = threading.Thread(target=publisher.stop)
    stopping.start()
    stopping.join(HELD_UP_S)
    assert stopping.is_alive()
    numbers, state = [], ""
    while state != "stopped":
        message = decode(sub.recv_multipart())
        if isinstance(message, Frame):
            numbers.append(message.header.seq)
        else:
            state = message.header.state
    assert numbers == list(range(WAITING))
    stopping.join(TIMEOUT_S)
    assert not stopping.is_alive()
