"""WebSockets of malformed peers, at a transport that the test plays."""

import asyncio
import json
import struct

import pytest
from uvicorn import Config
from uvicorn.protocols.utils import ClientDisconnected

from spectrod.apps.web.page_connection import (
    FRAGMENTS_MAX,
    FRAMES_BURST,
    MESSAGES_UNREAD_MAX,
    REPLIES_MAX_BYTES,
    BoundedState,
    BoundedWebSocket,
)

HEAD = (
    b"GET /api/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
    b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
FINAL, CONT, TEXT, RESERVED, CLOSE, PING, PONG = 0x80, 0, 1, 3, 8, 9, 10


class Transport(asyncio.Transport):
    """Notes what is written, and how it ends."""

    def __init__(self):
        super().__init__()
        self.written, self.unread_bytes, self.end = [], 0, ""

    def get_extra_info(self, _name, default=None):
        return default

    def write(self, data):
        self.written.append(bytes(data))

    def get_write_buffer_size(self):
        return self.unread_bytes

    def is_closing(self):
        return bool(self.end)

    def close(self):
        self.end = self.end or "closed"

    def abort(self):
        self.end = "aborted"

    def pause_reading(self):
        pass

    def resume_reading(self):
        pass


class Peer:
    """A peer of a WebSocket whose application accepts, and sends a text, when the test says so."""

    def __init__(self):
        self.transport, self.may_accept, self.may_send = (
            Transport(),
            asyncio.Event(),
            asyncio.Event(),
        )
        self.result = asyncio.get_running_loop().create_future()
        config = Config(
            self._app, ws=BoundedWebSocket, lifespan="off", interface="asgi3", log_config=None
        )
        config.load()
        self.socket = BoundedWebSocket(config, BoundedState(1), {})
        self.socket.connection_made(self.transport)
        self.socket.data_received(HEAD)

    async def _app(self, _scope, _receive, send):
        await self.may_accept.wait()
        try:
            await send({"type": "websocket.accept"})
            await self.may_send.wait()
            await send({"type": "websocket.send", "text": "{}"})
        except ClientDisconnected as error:
            self.result.set_result(error)
        else:
            self.result.set_result(None)

    async def accepted(self):
        """Wait for the answer to the handshake, and forget it."""
        self.may_accept.set()
        while not self.transport.written:  # noqa: ASYNC110 - the application's task runs in between
            await asyncio.sleep(0)
        assert self.transport.written.pop().startswith(b"HTTP/1.1 101 ")
        return self

    async def sent(self):
        """Let the application send; return what it was told."""
        self.may_accept.set()
        self.may_send.set()
        return await self.result


def frame(kind, data=b"", *, is_final=True):
    """Return a frame of a client, of at most 125 bytes, masked with zeros."""
    return bytes((kind | (FINAL if is_final else 0), 0x80 | len(data))) + bytes(4) + data


def run(work):
    """Run a test of one peer."""

    async def bounded():
        async with asyncio.timeout(30):
            await work()

    asyncio.run(bounded())


@pytest.mark.parametrize(
    "data",
    [frame(RESERVED), frame(PING), frame(CLOSE), frame(TEXT, b"{}"), frame(CONT), b"\x81\x00"],
)
def test_frames_before_the_answer_to_the_handshake_end_the_connection(data):
    """A client waits for it; the parser could neither take nor refuse them."""

    async def work():
        peer = Peer()
        peer.socket.data_received(data)
        assert (peer.transport.end, peer.transport.written) == ("aborted", [])

    run(work)


def test_nothing_is_sent_after_a_malformed_frame_and_nothing_logged(caplog):
    """The application learns that the peer is gone; it has made no mistake."""

    async def work():
        peer = await Peer().accepted()
        peer.socket.data_received(frame(RESERVED))
        (answer,) = peer.transport.written
        assert answer[:4] == struct.pack("!BBH", FINAL | CLOSE, len(answer) - 2, 1002)
        assert isinstance(await peer.sent(), ClientDisconnected)
        assert peer.transport.written == [answer]

    run(work)
    assert caplog.records == []


@pytest.mark.parametrize("data", [b"\xff\xfe", b"\xc3", b"{}\xed\xa0\x80"])
@pytest.mark.parametrize("n_fragments", [1, 2, 3])
def test_a_text_that_is_no_utf8_is_refused_and_not_logged(caplog, data, n_fragments):
    """1007, however it is cut."""

    async def work():
        peer = await Peer().accepted()
        cuts = [len(data) * k // n_fragments for k in range(n_fragments + 1)]
        for k in range(n_fragments):
            kind, is_final = CONT if k else TEXT, k == n_fragments - 1
            peer.socket.data_received(frame(kind, data[cuts[k] : cuts[k + 1]], is_final=is_final))
        assert peer.transport.written == [struct.pack("!BBH", FINAL | CLOSE, 2, 1007)]
        assert peer.transport.end == "closed"
        assert isinstance(await peer.sent(), ClientDisconnected)

    run(work)
    assert caplog.records == []


def test_a_text_that_is_cut_within_a_character_is_whole():
    """Fragments need not be UTF-8 by themselves."""

    async def work():
        peer = await Peer().accepted()
        data = json.dumps("\u00e9", ensure_ascii=False).encode()
        peer.socket.data_received(frame(TEXT, data[:2], is_final=False) + frame(CONT, data[2:]))
        assert (peer.transport.end, peer.transport.written) == ("", [])
        assert peer.socket.queue.qsize() == 2  # the connection, and the text
        assert await peer.sent() is None

    run(work)


def test_pings_of_a_peer_that_has_gone_get_no_replies():
    """Asyncio would log each of them."""

    async def work():
        peer = await Peer().accepted()
        peer.socket.data_received(frame(PING, b"a"))
        assert peer.transport.written == [bytes((FINAL | 10, 1)) + b"a"]
        peer.transport.abort()
        peer.socket.data_received(frame(PING, b"b") * 100)
        assert len(peer.transport.written) == 1

    run(work)


def test_nothing_is_sent_to_a_peer_that_has_gone():
    """Of many messages that wait the first one says so; the rest are not tried."""

    async def work():
        peer = await Peer().accepted()
        peer.transport.abort()
        assert isinstance(await peer.sent(), ClientDisconnected)
        assert peer.transport.written == []

    run(work)


def test_what_a_peer_may_leave_unread_and_unfinished_is_bounded():
    """Replies to pings, fragments of a message, and messages, each to its last and not beyond."""

    async def work():
        peer = await Peer().accepted()
        peer.transport.unread_bytes = REPLIES_MAX_BYTES
        peer.socket.data_received(frame(PING))
        assert peer.transport.end == ""
        peer.transport.unread_bytes += 1
        peer.socket.data_received(frame(PING))
        assert peer.transport.end == "aborted"
        peer = await Peer().accepted()
        peer.socket.data_received(frame(TEXT, is_final=False))
        peer.socket.data_received(frame(CONT, is_final=False) * (FRAGMENTS_MAX - 1))
        assert peer.transport.end == ""
        peer.socket.data_received(frame(CONT, is_final=False))
        assert peer.transport.end == "aborted"
        peer = await Peer().accepted()
        # One of them is the connection itself.
        peer.socket.data_received(frame(TEXT, b"{}") * (MESSAGES_UNREAD_MAX - 1))
        assert peer.transport.end == ""
        peer.socket.data_received(frame(TEXT, b"{}"))
        assert peer.transport.end == "aborted"

    run(work)


@pytest.mark.parametrize("kind", [PING, PONG])
def test_a_read_full_of_control_frames_is_not_processed_to_its_end(kind):
    """1008 after a bounded number; what follows, also in later reads, gets no reply."""

    async def work():
        peer = await Peer().accepted()
        peer.socket.data_received(frame(kind) * 40_000)
        *replies, end = peer.transport.written
        assert len(replies) <= FRAMES_BURST
        assert end[:4] == struct.pack("!BBH", FINAL | CLOSE, len(end) - 2, 1008)
        assert b"too many frames" in end
        peer.socket.data_received(frame(kind) * 1000)
        assert peer.transport.written[-1] is end
        assert isinstance(await peer.sent(), ClientDisconnected)

    run(work)


def test_control_frames_after_the_servers_own_close_end_the_connection():
    """The peer has ten seconds for its reply to a close, which it may not fill with pings."""

    async def work():
        peer = await Peer().accepted()
        await peer.socket.send({"type": "websocket.close", "code": 1001})
        peer.socket.data_received(frame(PING) * 40_000)
        assert peer.transport.end == "aborted"
        assert len(peer.transport.written) <= 1 + FRAMES_BURST

    run(work)


def test_a_burst_of_frames_within_the_bound_is_answered():
    """Each ping of a burst has its reply, and the connection goes on."""

    async def work():
        peer = await Peer().accepted()
        n_pings = int(FRAMES_BURST) - 1
        peer.socket.data_received(frame(PING, b"a") * n_pings)
        assert b"".join(peer.transport.written) == (bytes((FINAL | PONG, 1)) + b"a") * n_pings
        assert peer.transport.end == ""

    run(work)
