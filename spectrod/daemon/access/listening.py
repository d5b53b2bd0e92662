"""Listening sockets that the daemon makes and ZeroMQ accepts connections from (ZMQ_USE_FD).

ZeroMQ cuts connections only by unbinding, which closes its descriptor. The daemon keeps a second
descriptor, so the socket stays bound and listening: no other process can take the port or the path,
and new connections wait in the backlog.

The socket can also refuse new connections without touching existing ones: over TCP, by a filter in
the kernel that drops arriving packets; over IPC, by removing its name and its mode.
"""

import ctypes
import os
import socket
import struct
from pathlib import Path

import zmq

from spectrod.wire.endpoint import CLOSED_SUFFIX, Endpoint

IPC_MODE = 0o660

# socket(7), Linux's asm-generic/socket.h and linux/filter.h
_SO_ATTACH_FILTER, _SO_DETACH_FILTER = 26, 27
_BPF_RETURN = 0x06
_DROP_ALL = struct.pack("=HBBI", _BPF_RETURN, 0, 0, 0)  # one instruction: keep 0 bytes


class ListeningSocket:
    """One endpoint, bound and listening.

    The owner of ZeroMQ's socket calls ``lend`` and ``take_back``; the thread that counts
    connections calls the other methods.

    Parameters
    ----------
    endpoint : Endpoint
        Endpoint as configured.
    sock : socket.socket
        Bound, listening and not blocking. This object closes it.

    Attributes
    ----------
    endpoint : Endpoint
    text : str
        After ``lend``, the endpoint with its actual address and port.
    must_unbind : bool
        True if the system allows no filter: closing then takes a ``take_back``, which cuts all
        connections.
    on_must_unbind : callable
        Called by the thread that counts connections when ``must_unbind`` changes.
    """

    def __init__(self, endpoint: Endpoint, sock: socket.socket) -> None:
        self.endpoint = endpoint
        self.text = endpoint.text
        self._sock = sock
        self._is_closed = False
        self.must_unbind = False
        self.on_must_unbind = _do_nothing
        self._inode_fd = -1
        if endpoint.transport == "ipc":
            # Another file may have the path's name later.
            flags = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
            self._inode_fd = os.open(endpoint.path, flags)

    def lend(self, sock: zmq.SyncSocket) -> None:
        """Bind a ZeroMQ socket to a duplicate of the listening socket, with its current options.

        Raises
        ------
        OSError
            If the process has no free descriptor, or ZeroMQ lacks resources.
        """
        self._set_buffers(sock)
        fd = os.dup(self._sock.fileno())
        sock.setsockopt(zmq.USE_FD, fd)
        try:
            sock.bind(self.endpoint.text)  # ZeroMQ reads the transport and an IPC path from it
        except zmq.ZMQError as error:
            os.close(fd)
            raise OSError(error.errno, error.strerror) from error
        finally:
            sock.setsockopt(zmq.USE_FD, -1)
        self.text = sock.getsockopt_string(zmq.LAST_ENDPOINT)

    def _set_buffers(self, sock: zmq.SyncSocket) -> None:
        """Set the buffer sizes of connections, as ZeroMQ does for its own listening sockets."""
        for zmq_option, socket_option in (
            (zmq.RCVBUF, socket.SO_RCVBUF),
            (zmq.SNDBUF, socket.SO_SNDBUF),
        ):
            n_bytes = sock.getsockopt(zmq_option)
            if isinstance(n_bytes, int) and n_bytes > 0:
                self._sock.setsockopt(socket.SOL_SOCKET, socket_option, n_bytes)

    def take_back(self, sock: zmq.SyncSocket) -> None:
        """Cut all connections of this endpoint; new ones wait until the next ``lend``."""
        # pyzmq unbinds without releasing the GIL, and libzmq first processes the socket's pending
        # commands, which takes seconds where many subscriptions end. Polling does that before.
        sock.poll(0)
        sock.unbind(self.text)

    def refuse_connections(self) -> None:
        """Refuse new connections; idempotent.

        Over TCP, connection attempts get no answer, and the peer's system retries within seconds.
        An IPC path disappears. Connections in the backlog may still be accepted.

        Raises
        ------
        OSError
            If the system call fails.
        """
        if self._is_closed:
            return
        if self.endpoint.transport == "tcp":
            # A connection inherits the filter of its listening socket at that moment; no connection
            # is made while this filter is attached, so it mutes none.
            program = ctypes.create_string_buffer(_DROP_ALL, len(_DROP_ALL))
            fprog = struct.pack("@HP", 1, ctypes.addressof(program))
            try:
                self._sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, fprog)
            except OSError:
                self.must_unbind = True
                self.on_must_unbind()
        else:
            # In this order, the next start can delete everything that a crash leaves behind.
            Path(self.endpoint.path).rename(self.endpoint.path + CLOSED_SUFFIX)
            self._set_mode(0)
        self._is_closed = True

    def accept_connections(self) -> None:
        """Accept new connections again; idempotent.

        Raises
        ------
        OSError
            If the system call fails, or another file has the name of an IPC socket now.
        """
        if not self._is_closed:
            return
        if self.must_unbind:
            self.must_unbind = False
            self.on_must_unbind()
        elif self.endpoint.transport == "tcp":
            self._sock.setsockopt(socket.SOL_SOCKET, _SO_DETACH_FILTER, 0)
        else:
            self._set_mode(IPC_MODE)
            closed = Path(self.endpoint.path + CLOSED_SUFFIX)
            os.link(closed, self.endpoint.path)  # unlike a rename, it replaces nothing
            closed.unlink()
        self._is_closed = False

    def close(self) -> None:
        """Stop listening; call after ZeroMQ has closed its descriptor."""
        self._sock.close()
        if self._inode_fd >= 0:
            os.close(self._inode_fd)
            Path(self.endpoint.path + CLOSED_SUFFIX).unlink(missing_ok=True)

    def _set_mode(self, mode: int) -> None:
        Path(f"/proc/self/fd/{self._inode_fd}").chmod(mode)


def _do_nothing() -> None:
    """Ignore the call."""
