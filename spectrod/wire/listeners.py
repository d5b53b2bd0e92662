"""The endpoints of one socket, and cutting off who may not be connected to them any more."""

from collections.abc import Callable
from contextlib import ExitStack

import zmq

from spectrod.wire.access import Access
from spectrod.wire.bind import bind, bind_again
from spectrod.wire.endpoint import Endpoint


class Listeners:
    """Binds a socket to endpoints, with keys where they are needed. The socket owner's.

    Parameters
    ----------
    sock : zmq.Socket
        Made with ``access.context``; its options are set.
    access : Access
        Has been started.
    wake : callable
        Called, by any thread, when ``refresh`` has something to do.
    """

    def __init__(self, sock: zmq.SyncSocket, access: Access, wake: Callable[[], None]) -> None:
        self._sock = sock
        self._access = access
        self._generation = access.generation
        self._with_keys: list[tuple[Endpoint, str]] = []
        access.watch(sock, wake)

    def bind(self, endpoint: Endpoint, cleanup: ExitStack) -> str:
        """Bind, as ``spectrod.wire.bind.bind``, and return what the endpoint became."""
        self._access.prepare(self._sock, endpoint)
        text = bind(self._sock, endpoint, cleanup)
        if self._access.is_curve(endpoint):
            self._with_keys.append((endpoint, text))
        return text

    def refresh(self) -> bool:
        """Cut all connections that a key opened, if a key has gone; whether that was needed.

        Whoever may, connects again by itself. What was waiting to be sent to it may be lost.

        Raises
        ------
        BusyError, StorageError, UnavailableError, InternalError
            If an endpoint cannot be bound again.
        """
        if self._generation == self._access.generation:
            return False
        self._generation = self._access.generation
        for endpoint, text in self._with_keys:
            closed = self._access.times_closed(text)
            self._sock.unbind(text)
            # Bound too soon, TCP's port would be in use, and the new IPC file would be deleted.
            self._access.wait_closed(text, closed + 1)
            self._access.prepare(self._sock, endpoint)
            bind_again(self._sock, endpoint, text)
        return True
