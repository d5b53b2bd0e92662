"""Connection of a client: socket options and keys, the same for every kind of client."""

import asyncio
import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import zmq
from zmq.utils.monitor import recv_monitor_message

from spectrod.client.zmtp_probe import ZmtpPeer, read_peer
from spectrod.lib.errors import ConfigError, DeniedError, SpectrodError, UnavailableError
from spectrod.wire.endpoint import Endpoint
from spectrod.wire.headers import PART_MAX_BYTES
from spectrod.wire.keys import read_key, read_secret
from spectrod.wire.liveness import notice_gone_peers

_RECONNECT_MS = 50  # to which libzmq adds up to as much again, at random
_REFUSED_S = 1.0  # minimum delay after a refusal: a handshake costs the daemon more than the client
# Only events that come once per daemon: libzmq's thread blocks when the monitor is not read, and
# most other events come at every connection attempt.
_EVENTS: Final = (
    zmq.Event.HANDSHAKE_SUCCEEDED
    | zmq.Event.HANDSHAKE_FAILED_PROTOCOL
    | zmq.Event.HANDSHAKE_FAILED_AUTH
)
_MECHANISM_MISMATCH: Final = 0x11000002
_KIND_MISMATCH: Final = 0x10000018
_SILENCE_S = 1.0  # then the client reads the endpoint's mechanism and kind
_SILENCE_LATER_S = 3.0  # of a connected publisher, which sends heartbeats every second
_SILENCE_AGAIN_S = 60.0
_GREETING_S = 0.5
_RENEWED_S = 60.0  # minimum time between two reconnects
_UNANSWERED = "a daemon is there, but does not answer; is the server key its server.pub?"
_NO_CONTROL = (
    "the daemon publishes there and answers no requests; give its control endpoint, that of "
    "control.endpoints, which its log has (on its machine: run spectrod ctl without --endpoint)"
)
_NO_DATA = "the daemon answers requests there and publishes nothing; give an endpoint of [publish]"
_OVERHEAD_BYTES = 64  # of a part in a message of CURVE

KeyFile = str | os.PathLike[str]
SyncContext = zmq.Context[zmq.SyncSocket]


@dataclass(frozen=True, slots=True, repr=False)
class Credentials:
    """Keys of a CURVE connection, each in Z85, 40 bytes of ASCII."""

    server_key: bytes
    """The daemon's public key: the client talks only to a peer with its secret key."""
    public_key: bytes
    secret_key: bytes


def read_credentials(server_key: KeyFile | None, key_file: KeyFile | None) -> Credentials | None:
    """Read the keys of a connection.

    Parameters
    ----------
    server_key : str, path or None
        The daemon's public key: its 40 characters, or its file (``server.pub``).
    key_file : str, path or None
        Our own secret key's file (``NAME.key``), which nobody else may read.

    Returns
    -------
    credentials : Credentials or None
        None if neither is given.

    Raises
    ------
    ConfigError
        If only one of them is given, or a file cannot be read or is not a key's.
    """
    if server_key is None and key_file is None:
        return None
    if server_key is None or key_file is None:
        missing = "server_key" if server_key is None else "key_file"
        raise ConfigError(f"{missing}: must be given too: server_key and key_file go together")
    own = read_secret(Path(key_file))
    return Credentials(read_key(os.fspath(server_key)), own.key, own.secret)


class Connection:
    """A socket that reconnects without end. Used by one thread.

    No part of a message takes more than ``PART_MAX_BYTES``, the largest of the protocol: ZeroMQ
    ends the connection before it takes memory for a larger one. The number of parts of one message
    is not bounded, as ZeroMQ collects all of them first.

    Parameters
    ----------
    endpoint : Endpoint
        The daemon's endpoint.
    kind : int
        ``zmq.SUB`` or ``zmq.DEALER``.
    credentials : Credentials or None
        Keys for an endpoint that requires them.
    context : zmq.Context or None
        A shared context; None makes one for the lifetime of the connection.
    options : mapping of zmq.SocketOption to int
        More socket options.

    Attributes
    ----------
    hint : str
        Why there may be no connection: a daemon with another key drops a client without a word.
        Empty if unknown, and once there is one.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        kind: int,
        credentials: Credentials | None,
        context: SyncContext | None,
        options: Mapping[zmq.SocketOption, int],
    ) -> None:
        self.endpoint = endpoint
        self._owns_context = context is None
        self._context = zmq.Context() if context is None else context
        self.socket: zmq.SyncSocket = self._context.socket(kind)
        # Set linger before connect: without it, the end of the context waits for a daemon.
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.MAXMSGSIZE, PART_MAX_BYTES + _OVERHEAD_BYTES)
        # A growing interval would delay the connection to a daemon by up to its start-up time.
        self.socket.setsockopt(zmq.RECONNECT_IVL, _RECONNECT_MS)
        notice_gone_peers(self.socket)
        self.socket.setsockopt(zmq.IPV6, endpoint.is_ipv6)
        for option, value in options.items():
            self.socket.setsockopt(option, value)
        if credentials is not None:
            self.socket.setsockopt(zmq.CURVE_SERVERKEY, credentials.server_key)
            self.socket.setsockopt(zmq.CURVE_PUBLICKEY, credentials.public_key)
            self.socket.setsockopt(zmq.CURVE_SECRETKEY, credentials.secret_key)
        self._monitor = self.socket.get_monitor_socket(_EVENTS)
        self._mechanism = "NULL" if credentials is None else "CURVE"
        # A reply may take any time, so silence is no reason to read the mechanism.
        self._silence_s = _SILENCE_LATER_S if kind == zmq.SUB else math.inf
        self._reconnect_at_s = self._ask_at_s = math.inf
        self._was_connected, self._may_renew_s = False, 0.0
        self._was_silent = False
        self._is_for_requests = kind == zmq.DEALER
        self._refusal: SpectrodError | None = None
        self.hint = ""
        self._connect()

    def __del__(self) -> None:
        # After `for frame in subscribe(...): break` nothing else closes it.
        self.close()

    def subscribe(self, prefix: str) -> None:
        """Subscribe to all topics with a prefix.

        Raises
        ------
        ConfigError
            If it is not ASCII, as topics are.
        """
        if not prefix.isascii():
            raise ConfigError(f"prefix={prefix!r}: must be ASCII, as topics are")
        self.socket.subscribe(prefix)

    def unsubscribe(self, prefix: str) -> None:
        """Unsubscribe once from a prefix that was subscribed to."""
        self.socket.unsubscribe(prefix)

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        return self.socket.closed

    @property
    def is_readable(self) -> bool:
        """Whether a message is in the queue."""
        return bool(self.socket.poll(0))

    def receive(self) -> list[bytes] | None:
        """Return the next message of the queue without waiting; None if it is empty.

        Raises
        ------
        DeniedError
            If the daemon refuses the connection, once; ``wait`` connects again a second later.
        ConfigError
            If requests are sent to where a daemon publishes, likewise.
        """
        try:
            parts = self.socket.recv_multipart(zmq.NOBLOCK)
        except zmq.Again:
            self._check_monitor()
            return None
        self._note_connected()
        return parts

    def send(self, part: bytes) -> None:
        """Send a message of one part, or keep it until there is a connection.

        Raises
        ------
        DeniedError, ConfigError
            As ``receive``.
        UnavailableError
            If the queue is full.
        """
        try:
            self.socket.send(part, zmq.NOBLOCK)
        except zmq.Again:
            self._check_monitor()  # libzmq may have given up the connection
            raise UnavailableError(f"{self.endpoint.text}: too many messages wait") from None
        if self._ask_at_s != math.inf:
            self._ask_at_s = time.monotonic() + _SILENCE_S

    def wait(self, deadline_s: float | None) -> bool:
        """Wait until ``receive`` has a message or an error, at most until a monotonic time."""
        poller = zmq.Poller()
        poller.register(self.socket, zmq.POLLIN)
        poller.register(self._monitor, zmq.POLLIN)
        while self._refusal is None:
            until_s = self._until_s(deadline_s)
            left_s = max(0.0, until_s - time.monotonic())
            if poller.poll(None if left_s == math.inf else math.ceil(left_s * 1e3)):
                return True
            if until_s == deadline_s:
                return False
            self.look()
        return True

    async def wait_async(self, deadline_s: float | None) -> bool:
        """Do as ``wait`` in the running event loop, which also runs if messages never end."""
        sockets = (self.socket, self._monitor)
        await asyncio.sleep(0)
        # A readable ZeroMQ descriptor means that there may be events; a poll processes them.
        while self._refusal is None and not any(socket.poll(0) for socket in sockets):
            until_s = self._until_s(deadline_s)
            if await _wait_readable(sockets, until_s):
                continue
            if until_s == deadline_s:
                return False
            if self._is_silent():
                self._compare(await asyncio.to_thread(read_peer, self.endpoint, _GREETING_S))
        return True

    def look(self) -> None:
        """Do what ``wait`` does in a long silence, for callers that wait only briefly.

        It does nothing most times, and takes up to half a second at most once a minute.
        """
        if self._is_silent():
            self._compare(read_peer(self.endpoint, _GREETING_S))

    def close(self) -> None:
        """Close the socket, and the context unless it is shared; idempotent."""
        self.socket.close()
        self._monitor.close()
        if self._owns_context:
            self._context.term()

    def _connect(self) -> None:
        self.socket.connect(self.endpoint.text)
        self._reconnect_at_s = math.inf
        self._ask_at_s = time.monotonic() + _SILENCE_S

    def _note_connected(self) -> None:
        self._was_connected, self._was_silent, self.hint = True, False, ""
        self._ask_at_s = time.monotonic() + self._silence_s

    def _check_monitor(self) -> None:
        refusal, self._refusal = self._refusal, None
        if self._monitor.poll(0):
            event = recv_monitor_message(self._monitor)
            if event["event"] != zmq.Event.HANDSHAKE_SUCCEEDED:
                refusal = self._refused(event["value"])
            else:
                self._note_connected()
        if refusal is None:
            return
        # libzmq does not retry after a refusal, so a key that is accepted later needs a reconnect.
        self.socket.disconnect(self.endpoint.text)
        self._reconnect_at_s = time.monotonic() + _REFUSED_S
        self._ask_at_s = math.inf
        raise refusal

    def _until_s(self, deadline_s: float | None) -> float:
        """Reconnect if it is due after a refusal; return the time until which to wait."""
        if time.monotonic() >= self._reconnect_at_s:
            self._connect()
        end_s = math.inf if deadline_s is None else deadline_s
        # Skip the mechanism probe if the deadline is shorter than it takes.
        ask_at_s = self._ask_at_s if self._ask_at_s + _GREETING_S <= end_s else math.inf
        return min(end_s, self._reconnect_at_s, ask_at_s)

    def _is_silent(self) -> bool:
        """Whether to probe the mechanism now; rarely, as it costs the daemon a connection."""
        is_due = time.monotonic() >= self._ask_at_s
        if is_due:
            self._ask_at_s = time.monotonic() + _SILENCE_AGAIN_S
        return is_due

    def _compare(self, peer: ZmtpPeer | None) -> None:
        if peer is None:
            return
        if peer.mechanism != self._mechanism:
            self._refusal = self._refused(_MECHANISM_MISMATCH)
        elif peer.kind and (peer.kind == "ROUTER") != self._is_for_requests:
            self._note_other_kind()
        else:
            if peer.mechanism == "CURVE" and not self._was_connected:
                self.hint = _UNANSWERED
            self._renew()

    def _note_other_kind(self) -> None:
        # A subscriber may wait for a daemon with other settings that starts later.
        if self._is_for_requests:
            self._refusal = self._refused(_KIND_MISMATCH)
        else:
            self.hint = _NO_DATA

    def _renew(self) -> None:
        """Reconnect to a publisher that is reachable but silent longer than its heartbeats allow.

        libzmq does not reconnect after a message that was too large or broke the protocol.
        """
        now_s = time.monotonic()
        is_publisher = self._silence_s != math.inf
        if not (is_publisher and self._was_connected and now_s >= self._may_renew_s):
            return
        if not self._was_silent:
            # Wait once more: if this process or its machine was paused, the first silence was not
            # the publisher's, and a reconnect would lose the messages that are on their way.
            self._was_silent = True
            self._ask_at_s = now_s + self._silence_s
            return
        self._may_renew_s = now_s + _RENEWED_S
        self._was_connected = self._was_silent = False
        self.socket.disconnect(self.endpoint.text)
        self._connect()

    def _refused(self, code: int) -> SpectrodError:
        if code == _KIND_MISMATCH:
            if self._is_for_requests:
                return ConfigError(f"{self.endpoint.text}: {_NO_CONTROL}")
            return DeniedError(f"{self.endpoint.text}: {_NO_DATA}")
        return DeniedError(f"{self.endpoint.text}: {self._reason(code)}")

    def _reason(self, code: int) -> str:
        if code != _MECHANISM_MISMATCH:
            return "the daemon refuses the key; is its public key in the daemon's client_keys?"
        if self._mechanism == "CURVE":
            return "the endpoint requires no keys; omit server_key and key_file"
        return "the endpoint requires keys; give server_key and key_file"


async def _wait_readable(sockets: Sequence[zmq.SyncSocket], until_s: float) -> bool:
    """Wait for a readable descriptor, at most until a monotonic time."""
    loop = asyncio.get_running_loop()
    timeout_s = None if until_s == math.inf else until_s - time.monotonic()
    readable = loop.create_future()
    for socket in sockets:
        loop.add_reader(socket.fileno(), _note, readable)
    try:
        async with asyncio.timeout(timeout_s):
            await readable
    except TimeoutError:
        return False
    finally:
        for socket in sockets:
            loop.remove_reader(socket.fileno())
    return True


def _note(readable: "asyncio.Future[None]") -> None:
    if not readable.done():
        readable.set_result(None)
