"""Listening sockets of our own, from which ZeroMQ accepts connections (ZMQ_USE_FD).

ZeroMQ cuts connections only by unbinding, which closes its descriptor. The socket stays bound and
listening meanwhile, because another descriptor of it is ours: nobody else can take the port or the
path, and newcomers wait in the backlog.
"""

import os
import socket

import zmq

from spectrod.wire.endpoint import Endpoint


class ListeningSocket:
    """One endpoint, bound and listening.

    Parameters
    ----------
    endpoint : Endpoint
        As it was configured.
    sock : socket.socket
        Bound, listening and not blocking. Becomes this object's.

    Attributes
    ----------
    endpoint : Endpoint
    text : str
        What the endpoint became, with the address and the port that were chosen, after ``lend``.
    """

    def __init__(self, endpoint: Endpoint, sock: socket.socket) -> None:
        self.endpoint = endpoint
        self.text = endpoint.text
        self._sock = sock

    def lend(self, sock: zmq.SyncSocket) -> None:
        """Have a ZeroMQ socket accept connections, with the options that it has now.

        Raises
        ------
        OSError
            If the process has no descriptor left, or ZeroMQ none of its own resources.
        """
        fd = os.dup(self._sock.fileno())
        sock.setsockopt(zmq.USE_FD, fd)
        try:
            sock.bind(self.endpoint.text)  # of which ZeroMQ reads the transport and an IPC path
        except zmq.ZMQError as error:
            os.close(fd)
            raise OSError(error.errno, error.strerror) from error
        finally:
            sock.setsockopt(zmq.USE_FD, -1)
        self.text = sock.getsockopt_string(zmq.LAST_ENDPOINT)

    def take_back(self, sock: zmq.SyncSocket) -> None:
        """Cut all connections that came in here; newcomers wait until it is lent again."""
        sock.unbind(self.text)

    def close(self) -> None:
        """Stop listening, once ZeroMQ has let go of it."""
        self._sock.close()
