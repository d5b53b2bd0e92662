"""Connections at the level of the operating system: find them, count their bytes, cut one.

libzmq can end all connections of an endpoint, but not a single one. When its socket is shut down,
libzmq drops the connection as if the peer had gone. Descriptors are reused; the inode identifies a
connection while it is open.
"""

import fcntl
import os
import socket
import stat
import struct
import termios
from collections.abc import Collection
from contextlib import suppress
from typing import Literal, NamedTuple

import zmq

Transport = Literal["tcp", "ipc"]

_FDS = "/proc/self/fd"
_DRAIN_BYTES = 1 << 16
_DRAINS = 64
# Bytes that TCP has received, in struct tcp_info of linux/tcp.h, since Linux 4.1.
_TCP_INFO_RECEIVED = slice(128, 136)


class Link(NamedTuple):
    """A connection of this process."""

    fd: int
    inode: int

    @property
    def is_there(self) -> bool:
        """Whether the connection is still open."""
        return inode_of(self.fd) == self.inode


class Traffic(NamedTuple):
    """Received bytes of a connection."""

    received_bytes: int
    """Total since it was made; 0 over IPC, where the number is unknown."""
    waiting_bytes: int
    """Bytes that libzmq has not read yet."""


def inode_of(fd: int) -> int | None:
    """Return the inode of a descriptor; None if it is closed."""
    try:
        return os.fstat(fd).st_ino
    except OSError:
        return None


def fd_of(frame: zmq.Frame) -> int | None:
    """Return the descriptor of the connection of a frame received with ``copy=False``.

    A later connection may have reused the descriptor: see ``Access.link_of``. None for messages
    that libzmq makes itself, when the last subscriber to a prefix has gone.
    """
    try:
        return int(frame.get(zmq.SRCFD))
    except zmq.ZMQError:
        return None


def cut(link: Link) -> Transport | None:
    """Cut a connection; return its transport, or None if it had already ended. Any thread.

    A listening socket is never shut down: libzmq would abort the process.
    """
    sock = _own(link)
    if sock is None:
        return None
    transport: Transport = "ipc" if sock.family == socket.AF_UNIX else "tcp"
    with sock, suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
        # Drop what libzmq would otherwise still read; over TCP that is little.
        for _ in range(_DRAINS if transport == "ipc" else 0):
            if not sock.recv(_DRAIN_BYTES, socket.MSG_DONTWAIT):
                break
    return transport


def traffic(link: Link, *, is_tcp: bool) -> Traffic | None:
    """Return the received bytes of a connection; None if it has ended."""
    waiting = bytearray(4)
    try:
        fcntl.ioctl(link.fd, termios.FIONREAD, waiting)
        received = _received_bytes(link.fd) if is_tcp else 0
    except OSError:
        return None
    return Traffic(received, int.from_bytes(waiting, "little"))


class Links:
    """Finds the connections to endpoints of this process. Used by one thread.

    Parameters
    ----------
    endpoints : collection of str
        ``tcp://HOST:PORT`` and ``ipc://PATH``, as they were bound.
    """

    def __init__(self, endpoints: Collection[str]) -> None:
        # As getsockname returns it for a connection: a port, or a path.
        self._places = {_place(text) for text in endpoints}
        # Inode of every descriptor of the process, and for a connection whether it is TCP.
        self._seen: dict[int, tuple[int, bool | None]] = {}

    def find(self) -> dict[Link, bool]:
        """Return all open connections, and for each whether it is TCP (not IPC).

        Raises
        ------
        OSError
            If the system does not list a process's descriptors (needs Linux's ``/proc``).
        """
        seen: dict[int, tuple[int, bool | None]] = {}
        with os.scandir(_FDS) as entries:
            fds = [int(entry.name) for entry in entries]
        for fd in fds:
            inode = inode_of(fd)
            if inode is not None:
                before = self._seen.get(fd)
                is_known = before is not None and before[0] == inode
                seen[fd] = before if before and is_known else (inode, _kind(fd, self._places))
        self._seen = seen
        return {
            Link(fd, inode): is_tcp for fd, (inode, is_tcp) in seen.items() if is_tcp is not None
        }


def _kind(fd: int, places: Collection[int | str]) -> bool | None:
    """Return whether a descriptor's connection is TCP; None if it is none to these endpoints."""
    inode = inode_of(fd)
    sock = None if inode is None else _own(Link(fd, inode))
    if sock is None:
        return None
    with sock:
        try:
            sock.getpeername()  # fails for a listening socket
            name = sock.getsockname()
        except OSError:
            return None
    is_tcp = isinstance(name, tuple)
    return is_tcp if (name[1] if is_tcp else name) in places else None


def _place(endpoint: str) -> int | str:
    if endpoint.startswith("ipc://"):
        return endpoint.removeprefix("ipc://")
    return int(endpoint.rpartition(":")[2])


def _own(link: Link) -> socket.socket | None:
    """Duplicate a connection; return None if it has ended, or is no connection."""
    try:
        fd = os.dup(link.fd)  # libzmq may close its descriptor at any time
    except OSError:
        return None
    about = os.fstat(fd)
    if about.st_ino != link.inode or not stat.S_ISSOCK(about.st_mode):
        os.close(fd)
        return None
    try:
        sock = socket.socket(fileno=fd)
    except OSError:  # for example a descriptor of a socket's path (O_PATH)
        os.close(fd)
        return None
    if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        sock.close()
        return None
    return sock


def _received_bytes(fd: int) -> int:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=fd)
    try:
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_RECEIVED.stop)
    finally:
        sock.detach()
    received = info[_TCP_INFO_RECEIVED]
    return int(struct.unpack("=Q", received)[0]) if len(received) == 8 else 0
