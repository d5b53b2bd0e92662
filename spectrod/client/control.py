"""Requests to a running daemon: what ``spectrod ctl`` is made of."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import zmq

from spectrod.client.calls import decode_reply, encode_call
from spectrod.client.connection import Connection, KeyFile, SyncContext, read_credentials
from spectrod.endpoint import Endpoint, parse_remote
from spectrod.errors import DeniedError, UnavailableError
from spectrod.wire.rendezvous import beside

TIMEOUT_S = 5.0


class Control:
    """A connection to a daemon's control socket. To be used by one thread, one call at a time.

    It may be made before the daemon runs, and lives through the daemon's restarts.

    Parameters
    ----------
    endpoint : str
        Where the daemon takes requests, for example ``ipc:///run/spectrod/control-5556.ipc``. For a
        daemon of this machine also where it publishes: the control socket is looked up each time
        that a connection is opened.
    timeout_s : float
        How long a call waits for its reply [s]; also an attribute, which may be changed.
    server_key : str, path or None
        For endpoints with keys: the daemon's public key, its 40 characters or its file.
    key_file : str, path or None
        For endpoints with keys: the file of our own secret key.
    context : zmq.Context or None
        To share one; None makes one that lives as long as this.

    Attributes
    ----------
    endpoint : str
        As given.

    Raises
    ------
    ConfigError
        If the endpoint is not one that can be connected to, or a key cannot be read.
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

    def call(self, method: str, /, **params: Any) -> Any:
        """Ask for something, wait for it, and return what the method gives.

        Raises
        ------
        DeniedError
            If the key has no right to the method, or the daemon does not let us in.
        ConfigError, NotFoundError
            If the method, a parameter or a name is not known, or a rule is broken.
        UnavailableError
            If no reply came in time, or what was asked for is not there. After the former it is
            not known whether the daemon has done it; it will not do it later.
        BusyError, StorageError, InternalError
            As the daemon says.
        WireError
            If the reply does not follow the protocol.
        """
        return self.call_parts(method, **params)[0]

    def call_parts(self, method: str, /, **params: Any) -> tuple[Any, Sequence[bytes]]:
        """Do as ``call``, and return the parts after the reply as well: whole messages."""
        number, request, wait_s = self._prepare(method, params)
        deadline_s = time.monotonic() + wait_s
        connection = self._open(request)
        while connection.wait(deadline_s):
            reply = self._take(connection, number)
            if reply is not None:
                return reply
        raise self._gave_up(method, wait_s)

    async def call_async(self, method: str, /, **params: Any) -> Any:
        """Do as ``call``, while the running event loop goes on."""
        return (await self.call_parts_async(method, **params))[0]

    async def call_parts_async(self, method: str, /, **params: Any) -> tuple[Any, Sequence[bytes]]:
        """Do as ``call_parts``, while the running event loop goes on."""
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
        # `latest` waits in the daemon as long as it is told to, before the reply is even due.
        longer_s = params.get("timeout_s", 0.0)
        wait_s = self.timeout_s + (longer_s if isinstance(longer_s, (int, float)) else 0.0)
        return self._number, encode_call(self._number, method, params), wait_s

    def _control_endpoint(self) -> Endpoint:
        """Return the control socket of the daemon that publishes at our endpoint, or the latter."""
        found = beside(self._endpoint)
        return self._endpoint if found is None else parse_remote(found)

    def _open(self, request: bytes) -> Connection:
        """Send a request, connected to the daemon."""
        if self._connection is None:
            self._connection = Connection(
                self._control_endpoint(), zmq.DEALER, self._credentials, self._context, {}
            )
        connection = self._connection
        with self._closed_if_denied():
            connection.send(request)
        return connection

    def _take(self, connection: Connection, number: int) -> tuple[Any, Sequence[bytes]] | None:
        with self._closed_if_denied():
            parts = connection.receive()
        return None if parts is None else decode_reply(number, parts)

    @contextmanager
    def _closed_if_denied(self) -> Iterator[None]:
        # With its socket goes the request, which must not be carried out when nobody waits for it.
        try:
            yield
        except DeniedError:
            self.close()
            raise

    def _gave_up(self, method: str, wait_s: float) -> UnavailableError:
        # With its socket goes the request, or a daemon that starts later would carry it out.
        self.close()
        return UnavailableError(
            f"{self._endpoint.text}: no reply to {method} within {wait_s:g} s; "
            "is the daemon running there, and are the keys right?"
        )
