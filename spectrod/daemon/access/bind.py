"""Listening sockets for endpoints: locked, cleaned up, and with safe permissions."""

import errno
import fcntl
import ipaddress
import os
import socket
import stat
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from spectrod.daemon.access.listening import IPC_MODE, ListeningSocket
from spectrod.lib.descriptors import current_limit
from spectrod.lib.errors import (
    BusyError,
    ConfigError,
    SpectrodError,
    StorageError,
    UnavailableError,
)
from spectrod.wire.endpoint import CLOSED_SUFFIX, Endpoint

_BACKLOG_MAX = 128
_BACKLOG_SHARE = 1 / 16  # of the limit of descriptors: the backlog is accepted beyond the bound
_IPC_UMASK = 0o777 & ~IPC_MODE
_FOLDER_MODE = 0o750
_SIOCGIFADDR = 0x8915  # netdevice(7)


def listen(endpoint: Endpoint, cleanup: ExitStack) -> ListeningSocket:
    """Bind and listen; nothing accepts connections yet.

    Parameters
    ----------
    endpoint : Endpoint
        Where.
    cleanup : ExitStack
        Receives the cleanup; close it only after the context of ZeroMQ's socket has terminated,
        because ZeroMQ closes its descriptors in its own threads.

    Raises
    ------
    BusyError
        If another process holds the port or the path.
    StorageError
        If the folder of an IPC path cannot be used.
    ConfigError
        If the address cannot be bound, or ``localhost`` resolves to an address of a network
        interface or of another machine.
    UnavailableError
        If no network interface has the address.
    """
    if endpoint.transport == "ipc":
        cleanup.enter_context(_reserve_path(endpoint))
    try:
        sock = _listen_ipc(endpoint) if endpoint.transport == "ipc" else _listen_tcp(endpoint)
    except OSError as error:
        raise _translated(error, endpoint) from error
    listening = ListeningSocket(endpoint, sock)
    cleanup.callback(listening.close)
    return listening


def _listen_ipc(endpoint: Endpoint) -> socket.socket:
    with ExitStack() as undo:
        sock = undo.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        with _umask(_IPC_UMASK):
            sock.bind(endpoint.path)
        _begin(sock)
        undo.pop_all()
    return sock


def _listen_tcp(endpoint: Endpoint) -> socket.socket:
    family = socket.AF_INET6 if endpoint.is_ipv6 else socket.AF_INET
    with ExitStack() as undo:
        sock = undo.enter_context(socket.socket(family, socket.SOCK_STREAM))
        address = _resolved(endpoint, sock)
        if endpoint.is_local and not _is_loopback(address):
            raise ConfigError(
                f"endpoint={endpoint.text!r}: {endpoint.host} is {address[0]} here, which other "
                "machines may reach; write 127.0.0.1"
            )
        # After a restart, connections of the previous daemon may be in TIME_WAIT.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if endpoint.is_ipv6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind(address)
        _begin(sock)
        undo.pop_all()
    return sock


def _begin(sock: socket.socket) -> None:
    # After a revocation, two threads of ZeroMQ may briefly accept from it: neither may block.
    sock.setblocking(False)  # noqa: FBT003 - its only parameter
    sock.listen(min(_BACKLOG_MAX, int(current_limit() * _BACKLOG_SHARE)))


def _resolved(endpoint: Endpoint, sock: socket.socket) -> tuple[str, int]:
    """Find the address of an interface or of a host; raises OSError (socket.gaierror)."""
    host = endpoint.host
    if host == "*":
        return "", endpoint.port
    if host in {name for _, name in socket.if_nameindex()}:
        answer = fcntl.ioctl(sock, _SIOCGIFADDR, struct.pack("16s24x", host.encode()))
        return socket.inet_ntoa(answer[20:24]), endpoint.port
    found = socket.getaddrinfo(host, endpoint.port, sock.family, sock.type)
    return found[0][4]  # type: ignore[return-value] # IPv6 has four items, which bind accepts


def _is_loopback(address: tuple[str, int]) -> bool:
    try:
        return ipaddress.ip_address(address[0]).is_loopback
    except ValueError:  # all interfaces
        return False


def _translated(error: OSError, endpoint: Endpoint) -> SpectrodError:
    text, code = f"endpoint={endpoint.text!r}", error.errno
    if isinstance(error, socket.gaierror):
        return UnavailableError(f"{text}: no interface or host of this name: {error.strerror}")
    if code == errno.EADDRINUSE:
        return BusyError(f"{text}: in use by another process; stop it or choose another")
    if endpoint.transport == "ipc":
        return StorageError(f"{text}: cannot make the socket: {error.strerror}")
    if code == errno.EACCES:
        return ConfigError(f"{text}: this user may not use the port; choose one above 1023")
    if code == errno.EADDRNOTAVAIL:
        return UnavailableError(f"{text}: no network interface of this machine has that address")
    return ConfigError(f"{text}: cannot bind: {error.strerror}")


@contextmanager
def _reserve_path(endpoint: Endpoint) -> Iterator[None]:
    """Make the folder of an IPC path, hold its lock, and delete a stale socket.

    The lock keeps other daemons from binding to the path between the check that a socket is stale
    and our bind.
    """
    path = Path(endpoint.path)
    lock = path.with_name(path.name + ".lock")
    try:
        path.parent.mkdir(_FOLDER_MODE, parents=True, exist_ok=True)
        lock_fd = _lock_file(lock, endpoint)
    except OSError as error:
        raise StorageError(f"endpoint={endpoint.text!r}: {lock}: {error.strerror}") from error
    with ExitStack() as undo:
        undo.callback(os.close, lock_fd)
        undo.callback(lock.unlink, missing_ok=True)  # while it is locked: see _lock_file
        _delete_closed(path)
        _delete_stale(path, endpoint)
        undo.callback(path.unlink, missing_ok=True)
        yield


def _lock_file(lock: Path, endpoint: Endpoint) -> int:
    """Return the descriptor of the locked file; the end of the process releases the lock."""
    while True:
        with ExitStack() as undo:
            lock_fd = _open_regular(lock)
            undo.callback(os.close, lock_fd)
            try:
                fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BusyError(
                    f"endpoint={endpoint.text!r}: in use by another process, which holds {lock}"
                ) from None
            # Otherwise its owner deleted it between our open and our lock: try the new file.
            if _is_same_file(lock_fd, lock):
                undo.pop_all()
                return lock_fd


def _open_regular(lock: Path) -> int:
    """Open or create a regular file; raises OSError if the path is anything else."""
    try:
        fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o660)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(error.errno, "is a symbolic link, must be a regular file") from error
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "must be a regular file")
    return fd


def _is_same_file(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.lstat())
    except FileNotFoundError:
        return False


def _delete_closed(path: Path) -> None:
    """Delete the socket of a daemon that was killed while it accepted no new connections."""
    closed = path.with_name(path.name + CLOSED_SUFFIX)
    with suppress(FileNotFoundError):
        if stat.S_ISSOCK(closed.lstat().st_mode):
            closed.unlink()


def _delete_stale(path: Path, endpoint: Endpoint) -> None:
    """Delete a socket without a listener; refuse anything else."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise StorageError(f"endpoint={endpoint.text!r}: the path exists and is not a socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(0.0)
        code = probe.connect_ex(str(path))
    if code in (0, errno.EAGAIN):
        raise BusyError(f"endpoint={endpoint.text!r}: in use by another process")
    if code != errno.ECONNREFUSED:
        raise StorageError(f"endpoint={endpoint.text!r}: {os.strerror(code)}")
    path.unlink()


@contextmanager
def _umask(mask: int) -> Iterator[None]:
    """Set the umask during a bind, for the whole process: there is none per thread."""
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)
