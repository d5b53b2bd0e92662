"""Requests to a running daemon: what ``spectrod ctl`` is made of."""

import time
from collections.abc import Sequence
from typing import Any, Self

import zmq

from spectrod.client.calls import decode_reply, encode_call
from spectrod.client.connection import Credentials, connect
from spectrod.errors import UnavailableError
from spectrod.wire.endpoint import parse_remote

TIMEOUT_S = 5.0


class Control:
    """A connection to a daemon's control socket. To be used by one thread, one call at a time.

    It may be made before the daemon runs, and lives through the daemon's restarts.

    Parameters
    ----------
    endpoint : str
        Where the daemon takes requests, for example ``ipc:///run/spectrod/control.sock``.
    timeout_s : float
        How long a call waits for its reply [s].
    credentials : Credentials or None
        For an endpoint that needs keys.
    context : zmq.Context or None
        To share one; None makes one that lives as long as this.

    Raises
    ------
    ConfigError
        If the endpoint is not one that can be connected to.
    """

    def __init__(
        self,
        endpoint: str,
        *,
        timeout_s: float = TIMEOUT_S,
        credentials: Credentials | None = None,
        context: "zmq.Context[zmq.SyncSocket] | None" = None,
    ) -> None:
        self._endpoint = parse_remote(endpoint)
        self._timeout_s = timeout_s
        self._credentials = credentials
        self._owns_context = context is None
        self._context = zmq.Context() if context is None else context
        self._socket: zmq.SyncSocket | None = None
        self._number = 0

    def call(self, method: str, /, **params: Any) -> Any:
        """Ask for something, wait for it, and return what the method gives.

        Raises
        ------
        DeniedError
            If the key has no right to the method.
        ConfigError
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
        self._number += 1
        request = encode_call(self._number, method, params)
        # `latest` waits in the daemon as long as it is told to, before the reply is even due.
        wait_s = self._timeout_s + float(params.get("timeout_s", 0.0))
        deadline_s = time.monotonic() + wait_s
        socket = self._open()
        socket.send(request)
        while socket.poll(max(0, round((deadline_s - time.monotonic()) * 1e3))):
            reply = decode_reply(self._number, socket.recv_multipart())
            if reply is not None:
                return reply
        # With its socket goes the request, or a daemon that starts later would carry it out.
        self._close_socket()
        raise UnavailableError(
            f"{self._endpoint.text}: no reply to {method} within {wait_s:g} s; "
            "is the daemon running there, and are the keys right?"
        )

    def close(self) -> None:
        """End the connection; idempotent."""
        self._close_socket()
        if self._owns_context:
            self._context.term()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def _open(self) -> zmq.SyncSocket:
        if self._socket is None:
            self._socket = self._context.socket(zmq.DEALER)
            connect(self._socket, self._endpoint, self._credentials)
        return self._socket

    def _close_socket(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
