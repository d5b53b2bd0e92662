"""uvicorn's protocols with bounds on what a peer that is silent, slow or endless can take."""

import asyncio
import enum
from typing import Any, Final, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState
from websockets.frames import CloseCode, Frame

from spectrod.apps.web.listen import UNSENT_MAX_BYTES
from spectrod.apps.web.page_origin import is_loopback, network_of
from spectrod.lib.rate_limit import TokenBucket

SPARE_CONNECTIONS: Final = 112
"""Connections beside those of all clients' WebSockets: for files and questions."""
NEWCOMER_CONNECTIONS: Final = 16
"""Of all connections, those kept for networks that have none; an eighth of few connections."""
CONNECTIONS_OF_NETWORK: Final = 24
"""Of an IPv4 address or a /64 of IPv6, this machine aside: a browser opens 6, and one for each
WebSocket."""
HEAD_MAX_BYTES: Final = 16384
HEAD_S = 10.0
"""Time for the whole head of a request, from the connection or the last answer on [s]."""
BODY_S = 4.0
"""Time for the body of a request, from its head on [s]; the application answers 408 before."""
ANSWER_S = 60.0
"""Time from a whole request to the end of its answer, which the peer must read [s]."""
MESSAGES_UNREAD_MAX: Final = 256
"""Messages of a WebSocket that its client's task has not read."""
FRAGMENTS_MAX: Final = 64
"""Frames of one message; empty ones do not count towards its size."""
REPLIES_MAX_BYTES: Final = 1 << 22
"""Bytes that wait for a peer that does not read; more than a message can only be replies to pings,
which no flow control stops."""
FRAMES_S: Final = 100.0
"""Frames that the peer of a WebSocket may send, pings, pongs and fragments included [1/s].

Each costs some 10 us, and 40 000 empty ones fit into what asyncio reads at once."""
FRAMES_BURST: Final = 300.0
"""Frames that it may send at once."""
SLICE_BYTES: Final = 1024
"""Bytes that are parsed before the frames in them are counted: at most 170 frames."""


class ConnectionStage(enum.Enum):
    """What a connection waits for."""

    HEAD = enum.auto()
    BODY = enum.auto()
    ANSWER = enum.auto()
    UPGRADED = enum.auto()
    """Nothing: it is a WebSocket's."""


def _seconds(stage: ConnectionStage) -> float | None:
    """Return the time that a stage may take [s]; None without a limit."""
    return {
        ConnectionStage.HEAD: HEAD_S,
        ConnectionStage.BODY: BODY_S,
        ConnectionStage.ANSWER: ANSWER_S,
    }.get(stage)


class BoundedState(ServerState):
    """uvicorn's set of connections, with a bound.

    Parameters
    ----------
    connections_max : int
    """

    def __init__(self, connections_max: int) -> None:
        super().__init__()
        self.connections_max = connections_max


class BoundedHttp(H11Protocol):
    """An HTTP connection with deadlines, and a place among a bounded number of them.

    A new connection takes the place of the one that has waited longest for a request or its body;
    if all have one, it is closed.
    """

    _deadline: asyncio.TimerHandle | None = None
    _stage = ConnectionStage.HEAD
    waiting_since_s = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a place and start the deadline for a first request."""
        stream = cast("asyncio.Transport", transport)
        stream.set_write_buffer_limits(high=UNSENT_MAX_BYTES)
        super().connection_made(stream)
        self._wait()
        if not self._has_place():
            stream.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the deadline."""
        self._stop_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse data; the deadline follows from what the peer is waited for now."""
        super().data_received(data)
        self._update()

    def on_response_complete(self) -> None:
        """Wait for the next request, or answer one that came meanwhile."""
        self._stage = ConnectionStage.HEAD
        super().on_response_complete()
        # The deadline of an answer that is still being read stays.
        if not self.flow.write_paused:
            self._wait()
        self._update()

    def resume_writing(self) -> None:
        """Go on to write; wait for the next request if all of the answer is written."""
        super().resume_writing()
        if self._stage is ConnectionStage.HEAD:
            self._wait()

    def send_400_response(self, msg: str) -> None:
        """Refuse a malformed request, once: uvicorn would answer beside the application.

        The application's answer would then fail, and be logged as its own fault.
        """
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:  # an answer has begun, or is complete
            self.transport.abort()

    def handle_websocket_upgrade(self, event: Any) -> None:
        """Hand the connection over to ``BoundedWebSocket``."""
        self._stop_deadline()
        self._stage = ConnectionStage.UPGRADED
        super().handle_websocket_upgrade(event)

    @property
    def is_waiting(self) -> bool:
        """Whether the peer has sent no whole request."""
        return self._stage in (ConnectionStage.HEAD, ConnectionStage.BODY)

    def _has_place(self) -> bool:
        assert isinstance(self.server_state, BoundedState)
        most = self.server_state.connections_max
        others = [one for one in self.connections if one is not self]
        n_own = sum(_network(one) == _network(self) for one in others)
        if n_own >= CONNECTIONS_OF_NETWORK and not is_loopback(_address(self)):
            return False
        kept = min(NEWCOMER_CONNECTIONS, most // 8) if n_own else 0
        if len(others) < most - kept:
            return True
        waiting = [one for one in others if isinstance(one, BoundedHttp) and one.is_waiting]
        if not waiting:
            return False
        oldest = min(waiting, key=lambda one: one.waiting_since_s)
        # Its loss is reported later: the next connection must not choose it again.
        self.connections.discard(oldest)
        oldest.transport.abort()
        return True

    def _update(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            return
        stage = ConnectionStage.BODY if self.cycle.more_body else ConnectionStage.ANSWER
        if stage is not self._stage and self._stage is not ConnectionStage.UPGRADED:
            self._stage = stage
            self._start_deadline()

    def _wait(self) -> None:
        self.waiting_since_s = self.loop.time()
        self._start_deadline()

    def _start_deadline(self) -> None:
        self._stop_deadline()
        seconds = _seconds(self._stage)
        if seconds is not None:
            self._deadline = self.loop.call_later(seconds, self.transport.abort)

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def _address(connection: Any) -> str:
    """Return the address of a connection's peer; empty if it has none."""
    client = connection.client
    return client[0] if client else ""


def _network(connection: Any) -> str:
    return network_of(_address(connection))


class BoundedWebSocket(WebSocketsSansIOProtocol):
    """A WebSocket whose peer cannot make the server keep, log or do more than a bounded amount."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._frames_allowed = TokenBucket(FRAMES_S, FRAMES_BURST, self.loop.time())

    def data_received(self, data: bytes) -> None:
        """Parse data; end the connection if it has too many frames, or replies are not read.

        A client waits for the answer to its handshake (RFC 6455, 4.1): frames before it end the
        connection, since the parser can neither take nor refuse them yet.
        """
        if self.handshake_initiated and not self.handshake_complete:
            self.transport.abort()
            return
        for start in range(0, len(data), SLICE_BYTES):
            super().data_received(data[start : start + SLICE_BYTES])
            if self.transport.is_closing():
                return
        if self.transport.get_write_buffer_size() > REPLIES_MAX_BYTES:
            self.transport.abort()

    def handle_events(self) -> None:
        """Process frames; end the connection with 1008 if there are too many."""
        n_frames = sum(isinstance(event, Frame) for event in self.conn.events)
        if self._frames_allowed.take(self.loop.time(), n_frames):
            super().handle_events()
        elif self.close_sent:
            self.transport.abort()
        else:
            self.conn.data_to_send()  # the replies to these frames, which are not sent
            self.conn.fail(CloseCode.POLICY_VIOLATION, "too many frames")
            self.handle_parser_exception()

    async def send(self, message: Any) -> None:
        """Send a message; a refusal is complete with its body, which uvicorn logs as an error.

        Nothing follows the close that answers a malformed frame, or the loss of the connection:
        the peer is gone, which is no error of the application. Asyncio would log each message.
        """
        await self.writable.wait()
        is_over = self.close_sent or self.transport.is_closing()
        if is_over and message["type"] == "websocket.send":
            raise ClientDisconnected
        await super().send(message)
        if message["type"] == "websocket.http.response.body":
            self.handshake_complete = True

    def handle_ping(self) -> None:
        """Reply; asyncio would log each reply to a peer that has gone."""
        if not self.transport.is_closing():
            super().handle_ping()

    def handle_cont(self, event: Frame) -> None:
        """Take a fragment; end the connection if a message has too many."""
        if len(self.frames) >= FRAGMENTS_MAX:
            self.transport.abort()
            return
        super().handle_cont(event)

    def send_receive_event_to_app(self) -> None:
        """Queue a message; end the connection if too many are unread, or it is no UTF-8.

        The latter uvicorn would log with a traceback.
        """
        if self.queue.qsize() >= MESSAGES_UNREAD_MAX:
            self.transport.abort()
            return
        if self.curr_msg_data_type == "text" and not _is_utf8(b"".join(self.frames)):
            if not self.close_sent:
                self.conn.fail(CloseCode.INVALID_DATA)
                self.handle_parser_exception()
            return
        super().send_receive_event_to_app()


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
