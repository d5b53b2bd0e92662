"""Listening sockets of our own, from which ZeroMQ accepts connections (ZMQ_USE_FD).

ZeroMQ cuts connections only by unbinding, which closes its descriptor. The socket stays bound and
listening meanwhile, because another descriptor of it is ours: nobody else can take the port or the
path, and newcomers wait in the backlog.

The socket can also be closed to newcomers without touching connections that live: over TCP, by a
filter in the kernel that drops what arrives at it; over IPC, by taking away its name and its mode.
"""

import ctypes
import os
import socket
import struct
from pathlib import Path

import zmq

from spectrod.endpoint import CLOSED_SUFFIX, Endpoint

IPC_MODE = 0o660

# socket(7), Linux's asm-generic/socket.h and linux/filter.h
_SO_ATTACH_FILTER, _SO_DETACH_FILTER = 26, 27
_BPF_RETURN = 0x06
_DROP_ALL = struct.pack("=HBBI", _BPF_RETURN, 0, 0, 0)  # one instruction: keep 0 bytes


class ListeningSocket:
    """One endpoint, bound and listening.

    ``lend`` and ``take_back`` are for the owner of ZeroMQ's socket, the other methods for the
    thread that counts connections.

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
    must_unbind : bool
        The system allows no filter: to be closed, it must be taken back, which cuts everybody.
    on_must_unbind : callable
        Called, by the thread that counts connections, when that changes.
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
            # What has the path's name later need not be ours.
            flags = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
            self._inode_fd = os.open(endpoint.path, flags)

    def lend(self, sock: zmq.SyncSocket) -> None:
        """Have a ZeroMQ socket accept connections, with the options that it has now.

        Raises
        ------
        OSError
            If the process has no descriptor left, or ZeroMQ none of its own resources.
        """
        self._set_buffers(sock)
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

    def _set_buffers(self, sock: zmq.SyncSocket) -> None:
        """Give the sizes of buffers to the connections, as ZeroMQ does where it listens itself."""
        for theirs, ours in ((zmq.RCVBUF, socket.SO_RCVBUF), (zmq.SNDBUF, socket.SO_SNDBUF)):
            n_bytes = sock.getsockopt(theirs)
            if isinstance(n_bytes, int) and n_bytes > 0:
                self._sock.setsockopt(socket.SOL_SOCKET, ours, n_bytes)

    def take_back(self, sock: zmq.SyncSocket) -> None:
        """Cut all connections that came in here; newcomers wait until it is lent again."""
        # pyzmq unbinds without releasing Python's lock, and libzmq first handles what has come for
        # the socket, which takes seconds where many subscriptions end. Polling does that before.
        sock.poll(0)
        sock.unbind(self.text)

    def close_to_newcomers(self) -> None:
        """Let nobody else connect; idempotent.

        Over TCP, whoever tries is not answered, and its system tries again within seconds. An IPC
        path is not there. What was waiting in the backlog may still come in.

        Raises
        ------
        OSError
            If the system does not do it.
        """
        if self._is_closed:
            return
        if self.endpoint.transport == "tcp":
            # A connection has a copy of the filter that its listening socket had at that moment:
            # none comes about while this one is there, so no connection is muted by it.
            program = ctypes.create_string_buffer(_DROP_ALL, len(_DROP_ALL))
            fprog = struct.pack("@HP", 1, ctypes.addressof(program))
            try:
                self._sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, fprog)
            except OSError:
                self.must_unbind = True
                self.on_must_unbind()
        else:
            # In this order, whatever a crash leaves behind can be deleted by the next start.
            Path(self.endpoint.path).rename(self.endpoint.path + CLOSED_SUFFIX)
            self._set_mode(0)
        self._is_closed = True

    def open_to_newcomers(self) -> None:
        """Let others connect again; idempotent.

        Raises
        ------
        OSError
            If the system does not do it, or something else has the name of an IPC socket now.
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
            os.link(closed, self.endpoint.path)  # which replaces nothing, as a rename would
            closed.unlink()
        self._is_closed = False

    def close(self) -> None:
        """Stop listening, once ZeroMQ has let go of it."""
        self._sock.close()
        if self._inode_fd >= 0:
            os.close(self._inode_fd)
            Path(self.endpoint.path + CLOSED_SUFFIX).unlink(missing_ok=True)

    def _set_mode(self, mode: int) -> None:
        Path(f"/proc/self/fd/{self._inode_fd}").chmod(mode)


def _do_nothing() -> None:
    """Where nobody has to know."""
