"""A feed: what it asks a daemon for, and what it makes of messages that are not as they should."""

import asyncio
import sys
from pathlib import Path

import pytest
import zmq

from spectrod.apps.web.feed import Feed
from spectrod.wire.headers import EventHeader, HeartbeatHeader
from spectrod.wire.schema import EventMessage, Heartbeat, encode

sys.path.insert(0, str(Path(__file__).parents[3] / "web"))
from web_rows import TOPIC, frame

TIMEOUT_S = 10.0
LEVELS = [-20.0] * 33


@pytest.fixture
def publisher():
    """A socket of a daemon."""
    with zmq.Context() as context:
        socket = context.socket(zmq.XPUB)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RCVTIMEO, int(TIMEOUT_S * 1e3))
        port = socket.bind_to_random_port("tcp://127.0.0.1")
        yield socket, f"tcp://127.0.0.1:{port}"
        socket.close()


def followed(publisher, talk, wanted=(TOPIC.topic,)):
    """Run a feed while a task talks to it, with queues of its messages and of its events."""
    socket, endpoint = publisher

    async def run():
        frames, events = asyncio.Queue(), asyncio.Queue()
        feed = Feed(
            *(endpoint, None, None),
            lambda _, one: frames.put_nowait(one),
            lambda _, one: events.put_nowait(one),
        )
        running = asyncio.create_task(feed.run())
        feed.want(wanted)
        subscribed = {await asyncio.to_thread(socket.recv) for _ in range(3 + len(wanted))}
        assert subscribed == {b"\x01meta/", b"\x01hb/", b"\x01event/"} | {
            b"\x01" + name.encode() for name in wanted
        }
        async with asyncio.timeout(TIMEOUT_S):
            await talk(feed, socket, frames, events)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(run())


def test_messages_come_and_broken_ones_are_counted(publisher):
    """A message that breaks the protocol is left out, counted, and does not end the feed."""

    async def talk(feed, socket, frames, events):
        del events
        socket.send_multipart(encode(frame(LEVELS, 4)))
        socket.send_multipart([TOPIC.topic.encode(), b"{}", b""])
        socket.send_multipart(encode(frame(LEVELS, 6)))
        assert [(await frames.get()).header.seq for _ in range(2)] == [4, 6]
        assert (feed.broken, feed.missed, feed.connected) == (1, 1, True)

    followed(publisher, talk)


def test_only_what_is_wanted_is_asked_for(publisher):
    """Prefixes that are wanted no more are unsubscribed from; those that stay are left alone."""

    async def talk(feed, socket, frames, events):
        del frames, events
        feed.want({TOPIC.topic, "levels/"})
        assert await asyncio.to_thread(socket.recv) == b"\x01levels/"
        feed.want({"levels/"})
        assert await asyncio.to_thread(socket.recv) == b"\x00" + TOPIC.topic.encode()

    followed(publisher, talk)


def test_events_and_clocks_are_noted(publisher):
    """Events are passed on; a heartbeat says how far the daemon's clock is from this one."""
    counts = {"seq": 0, "epoch": 1, "t_utc_ns": 0}
    beat = HeartbeatHeader(**counts, t_mono_ns=0, state="running", frames=3)
    event = EventHeader(**counts, number=0, kind="source.waiting", text="gone")

    async def talk(feed, socket, frames, events):
        del frames
        socket.send_multipart(encode(Heartbeat("hb/mic/", beat)))
        socket.send_multipart(encode(EventMessage("event/-/", event)))
        assert (await events.get()).header.text == "gone"
        assert feed.clock_offset_s["mic"] < -1e9

    followed(publisher, talk)


def test_a_feed_without_a_daemon_has_no_connection(publisher):
    """Before the first message nothing is known, and that is not an error."""

    async def talk(feed, socket, frames, events):
        del socket, frames, events
        assert not feed.connected
        assert feed.why == ""
        assert feed.new_meta() == []

    followed(publisher, talk)
