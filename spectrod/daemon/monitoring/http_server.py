"""A small HTTP server on a thread of its own, bounded in everything that peers can ask of it."""

import contextlib
import errno
import ipaddress
import logging
import selectors
import socket
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Final

from spectrod.daemon.monitoring.http_request import (
    REQUEST_MAX_BYTES,
    HttpRequest,
    HttpResponse,
    encode_response,
    is_whole,
    parse_request,
    text_response,
)
from spectrod.lib.errors import BusyError, ConfigError, SpectrodError, UnavailableError
from spectrod.lib.rate_limit import TokenBucket
from spectrod.lib.wakeup import Wakeup
from spectrod.lib.worker import Worker
from spectrod.wire.endpoint import parse_listen

CONNECTIONS_MAX: Final = 32
CONNECTION_MAX_S: Final = 10.0
"""Time from the acceptance of a connection to the end of its reply [s]."""
CONNECTIONS_PER_S: Final = 50.0
"""Connections accepted in a second; others wait in the operating system's queue."""
_BACKLOG: Final = 64
_READ_BYTES: Final = 4096
_SEND_BYTES: Final = 1 << 16
_JOIN_S: Final = 2.0
_FULL_PAUSE_S: Final = 0.5

_log = logging.getLogger(__name__)

Handler = Callable[[HttpRequest], HttpResponse]


@dataclass(slots=True, eq=False)
class _Connection:
    """A connection: what was read of its request, then what is left of its reply."""

    sock: socket.socket
    deadline_s: float
    received: bytearray = field(default_factory=bytearray)
    unsent: memoryview = field(default_factory=lambda: memoryview(b""))


class HttpServer:
    """Serves GET and HEAD requests on one address, one reply a connection.

    Bounds: ``CONNECTIONS_MAX`` connections, the oldest of which makes room for a new one;
    ``CONNECTION_MAX_S`` for each, ``REQUEST_MAX_BYTES`` for a request, ``CONNECTIONS_PER_S`` in a
    second. Its thread reads counters of other threads and waits for none of them.

    Parameters
    ----------
    listen : str
        ``HOST:PORT``.
    handle : callable
        Returns the reply to a request; called by the server's thread.
    insecure : bool
        Allow an address that other machines can reach.
    hosts : collection of str
        See ``parse_request``.

    Attributes
    ----------
    address : str
        ``HOST:PORT`` with the actual port, once started.

    Raises
    ------
    ConfigError
        If the address is malformed, or other machines could reach it and insecure is not set.
    """

    def __init__(
        self,
        listen: str,
        handle: Handler,
        *,
        insecure: bool = False,
        hosts: Collection[str] = (),
    ) -> None:
        self._listen, self._endpoint = listen, parse_listen(listen, insecure=insecure)
        self._hosts = frozenset(name.lower() for name in hosts)
        self._handle = handle
        self._connections: list[_Connection] = []
        self._bucket = TokenBucket(CONNECTIONS_PER_S, CONNECTIONS_PER_S, time.monotonic())
        self._wakeup: Wakeup | None = None
        self._worker: Worker | None = None
        self.address = ""

    def start(self) -> None:
        """Bind in the calling thread, then start the thread.

        Raises
        ------
        BusyError, ConfigError, UnavailableError
            If the address is in use, not allowed, or not of this machine.
        """
        listener = self._bind()
        host, port = listener.getsockname()[:2]
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._wakeup = Wakeup()
        self._worker = Worker("http", partial(self._serve, listener, self._wakeup), self._ended)
        self._worker.start()

    def stop(self) -> None:
        """End the thread and close all connections; idempotent."""
        if self._worker is None or self._wakeup is None:
            return
        self._wakeup.set()
        self._worker.require_end(_JOIN_S)
        self._worker = None
        self._wakeup.close()

    def _bind(self) -> socket.socket:
        host = None if self._endpoint.host == "*" else self._endpoint.host
        try:
            found = socket.getaddrinfo(
                host, self._endpoint.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )
            family, kind, protocol, _, address = found[0]
            listener = socket.socket(family, kind, protocol)
        except OSError as error:
            raise UnavailableError(f"http.listen={self._listen!r}: {error.strerror}") from error
        if self._endpoint.host == "localhost" and not ipaddress.ip_address(address[0]).is_loopback:
            listener.close()
            raise ConfigError(f"http.listen={self._listen!r}: localhost is {address[0]} here")
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.settimeout(0.0)
            listener.bind(address)
            listener.listen(_BACKLOG)
        except OSError as error:
            listener.close()
            raise _bind_error(self._listen, error) from error
        return listener

    def _ended(self, failure: SpectrodError | None) -> None:
        if failure:
            _log.error("http: no longer served: %s", failure)

    # ---- the thread

    def _serve(self, listener: socket.socket, wakeup: Wakeup) -> None:
        with contextlib.ExitStack() as cleanup:
            cleanup.callback(self._close_all)
            cleanup.callback(listener.close)
            selector = cleanup.enter_context(selectors.DefaultSelector())
            selector.register(wakeup, selectors.EVENT_READ)
            selector.register(listener, selectors.EVENT_READ)
            paused_until_s = 0.0
            while True:
                for key, _ in selector.select(self._wait_s(paused_until_s)):
                    if key.fileobj is wakeup:
                        return
                    if key.fileobj is listener:
                        pause_s = self._accept(listener, selector)
                        if pause_s:
                            selector.unregister(listener)
                            paused_until_s = time.monotonic() + pause_s
                    else:
                        self._advance(key.data, selector)
                now_s = time.monotonic()
                self._expire(now_s, selector)
                if paused_until_s and now_s >= paused_until_s:
                    paused_until_s = 0.0
                    selector.register(listener, selectors.EVENT_READ)

    def _wait_s(self, paused_until_s: float) -> float | None:
        due = [one.deadline_s for one in self._connections[:1]]
        if paused_until_s:
            due.append(paused_until_s)
        return max(0.0, min(due) - time.monotonic()) if due else None

    def _accept(self, listener: socket.socket, selector: selectors.BaseSelector) -> float:
        """Accept one connection; return for how long to accept none [s]."""
        now_s = time.monotonic()
        if not self._bucket.take(now_s):
            return self._bucket.wait_s(now_s)
        try:
            sock, _ = listener.accept()
        except OSError as error:
            # Gone before it was accepted, or no descriptor left: the next attempt may succeed.
            is_gone = error.errno in (errno.EAGAIN, errno.ECONNABORTED)
            return 0.0 if is_gone else _FULL_PAUSE_S
        sock.settimeout(0.0)
        if len(self._connections) >= CONNECTIONS_MAX:
            self._close(self._connections[0], selector)
        connection = _Connection(sock, now_s + CONNECTION_MAX_S)
        self._connections.append(connection)
        selector.register(sock, selectors.EVENT_READ, connection)
        return 0.0

    def _advance(self, one: _Connection, selector: selectors.BaseSelector) -> None:
        """Read or write what is possible without waiting."""
        if one.sock.fileno() < 0:
            return  # closed in this round, to make room
        try:
            is_done = self._send(one) if one.unsent else self._receive(one, selector)
        except BlockingIOError:
            return
        except OSError:
            is_done = True  # the peer is gone
        if is_done:
            self._close(one, selector)

    def _receive(self, one: _Connection, selector: selectors.BaseSelector) -> bool:
        data = one.sock.recv(_READ_BYTES)
        one.received += data
        if is_whole(one.received):
            one.unsent = memoryview(self._reply(bytes(one.received)))
        elif len(one.received) > REQUEST_MAX_BYTES:
            rule = f"must have at most {REQUEST_MAX_BYTES} bytes"
            too_large = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            one.unsent = memoryview(encode_response(text_response(too_large, f"request: {rule}")))
        else:
            return not data
        one.received.clear()
        selector.modify(one.sock, selectors.EVENT_WRITE, one)
        return False

    def _reply(self, data: bytes) -> bytes:
        request = parse_request(data, self._hosts)
        if isinstance(request, HttpResponse):
            return encode_response(request)
        return encode_response(self._handle(request), has_body=request.method != "HEAD")

    @staticmethod
    def _send(one: _Connection) -> bool:
        n = one.sock.send(one.unsent[:_SEND_BYTES])
        one.unsent = one.unsent[n:]
        return not one.unsent

    def _expire(self, now_s: float, selector: selectors.BaseSelector) -> None:
        # All have the same limit: the oldest is first.
        while self._connections and self._connections[0].deadline_s <= now_s:
            self._close(self._connections[0], selector)

    def _close(self, one: _Connection, selector: selectors.BaseSelector) -> None:
        selector.unregister(one.sock)
        one.sock.close()
        self._connections.remove(one)

    def _close_all(self) -> None:
        for one in self._connections:
            one.sock.close()
        self._connections.clear()


def _bind_error(listen: str, error: OSError) -> SpectrodError:
    text = f"http.listen={listen!r}: {error.strerror}"
    if error.errno == errno.EADDRINUSE:
        return BusyError(text)
    if error.errno == errno.EACCES:
        return ConfigError(text)
    return UnavailableError(text)
