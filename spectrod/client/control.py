"""Requests to a running daemon; ``spectrod ctl`` uses them."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import zmq

from spectrod.client.connection import Connection, KeyFile, SyncContext, read_credentials
from spectrod.client.rpc_codec import decode_reply, encode_call
from spectrod.lib.errors import ConfigError, DeniedError, UnavailableError
from spectrod.wire.endpoint import Endpoint, parse_remote
from spectrod.wire.endpoint_discovery import beside

TIMEOUT_S = 5.0


class Control:
    """A connection to a daemon's control socket. Used by one thread, one call at a time.

    It may be made before the daemon runs, and survives the daemon's restarts.

    Parameters
    ----------
    endpoint : str
        The daemon's control endpoint, for example ``ipc:///run/spectrod/control-5556.ipc``. For a
        daemon of this machine also the endpoint where it publishes: each new connection then looks
        up the control socket.
    timeout_s : float
        How long a call waits for its reply [s]; also an attribute, which may be changed.
    server_key : str, path or None
        For endpoints with keys: the daemon's public key, its 40 characters or its file.
    key_file : str, path or None
        For endpoints with keys: the file of the client's secret key.
    context : zmq.Context or None
        A shared context; None makes one for the lifetime of this object.

    Attributes
    ----------
    endpoint : str
        As given.

    Raises
    ------
    ConfigError
        If the endpoint is invalid, or a key cannot be read.
    """

    def __init__(
        self,
        endpoint: str,
        *,
        timeout_s: float = TIMEOUT_S,
        server_key: KeyFile | None = None,
        key_file: KeyFile | None = None,
        context: SyncContext | None = None,
    ) -> None:
        self._endpoint = parse_remote(endpoint)
        self.endpoint = endpoint
        self.timeout_s = timeout_s
        self._credentials = read_credentials(server_key, key_file)
        self._context = context
        self._connection: Connection | None = None
        self._number = 0

    def __repr__(self) -> str:
        """Return one line: the endpoint and the timeout."""
        return f"<Control: {self.endpoint}, timeout {self.timeout_s:g} s>"

    def call(self, method: str, /, **params: Any) -> Any:
        """Call a method, wait for the reply, and return its result.

        Raises
        ------
        DeniedError
            If the key has no right to the method, or the daemon refuses the connection.
        ConfigError, NotFoundError
            If the method, a parameter or a name is unknown, a rule is broken, or the endpoint is
            where a daemon publishes.
        UnavailableError
            If no reply came in time, or the requested thing is unavailable. Without a reply it is
            unknown whether the daemon has executed the request; it will not execute it later.
        BusyError, StorageError, InternalError
            As the daemon reports.
        WireError
            If the reply does not follow the protocol.
        """
        return self.call_parts(method, **params)[0]

    def call_parts(self, method: str, /, **params: Any) -> tuple[Any, Sequence[bytes]]:
        """Do as ``call``, and also return the parts after the reply: whole messages."""
        number, request, wait_s = self._prepare(method, params)
        deadline_s = time.monotonic() + wait_s
        connection = self._open(request)
        while connection.wait(deadline_s):
            reply = self._take(connection, number)
            if reply is not None:
                return reply
        raise self._gave_up(method, wait_s)

    async def call_async(self, method: str, /, **params: Any) -> Any:
        """Do as ``call`` in the running event loop."""
        return (await self.call_parts_async(method, **params))[0]

    async def call_parts_async(self, method: str, /, **params: Any) -> tuple[Any, Sequence[bytes]]:
        """Do as ``call_parts`` in the running event loop."""
        number, request, wait_s = self._prepare(method, params)
        deadline_s = time.monotonic() + wait_s
        connection = self._open(request)
        while await connection.wait_async(deadline_s):
            reply = self._take(connection, number)
            if reply is not None:
                return reply
        raise self._gave_up(method, wait_s)

    def close(self) -> None:
        """End the connection; idempotent."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def _prepare(self, method: str, params: dict[str, Any]) -> tuple[int, bytes, float]:
        self._number += 1
        # `latest` waits in the daemon for its timeout before the reply is due.
        longer_s = params.get("timeout_s", 0.0)
        wait_s = self.timeout_s + (longer_s if isinstance(longer_s, (int, float)) else 0.0)
        return self._number, encode_call(self._number, method, params), wait_s

    def _control_endpoint(self) -> Endpoint:
        """Return the control endpoint of a daemon given by where it publishes."""
        found = beside(self._endpoint)
        return self._endpoint if found is None else parse_remote(found)

    def _open(self, request: bytes) -> Connection:
        """Connect if necessary, and send a request."""
        if self._connection is None:
            self._connection = Connection(
                self._control_endpoint(), zmq.DEALER, self._credentials, self._context, {}
            )
        connection = self._connection
        with self._closed_if_refused():
            connection.send(request)
        return connection

    def _take(self, connection: Connection, number: int) -> tuple[Any, Sequence[bytes]] | None:
        with self._closed_if_refused():
            parts = connection.receive()
        return None if parts is None else decode_reply(number, parts)

    @contextmanager
    def _closed_if_refused(self) -> Iterator[None]:
        # Closing the socket drops the request: it must not be executed after its caller has given
        # up.
        try:
            yield
        except (ConfigError, DeniedError):
            self.close()
            raise

    def _gave_up(self, method: str, wait_s: float) -> UnavailableError:
        # Closing the socket drops the request: a daemon that starts later must not execute it.
        self.close()
        return UnavailableError(
            f"{self._endpoint.text}: no reply to {method} within {wait_s:g} s; "
            "is the daemon running there, and are the keys right? Requests need its control "
            "endpoint, not where it publishes"
        )
