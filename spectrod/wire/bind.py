"""Bind a socket to endpoints so that nothing is stolen, left behind or open to strangers."""

import errno
import fcntl
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import zmq

from spectrod.errors import BusyError, ConfigError, SpectrodError, StorageError, UnavailableError
from spectrod.wire.endpoint import Endpoint

_IPC_UMASK = 0o117  # the socket becomes 0660
_FOLDER_MODE = 0o750


def bind(sock: zmq.SyncSocket, endpoint: Endpoint, cleanup: ExitStack) -> str:
    """Bind, and return the endpoint that it became, with the port that was chosen.

    Parameters
    ----------
    sock : zmq.Socket
        Its options are set.
    endpoint : Endpoint
        Where to.
    cleanup : ExitStack
        Receives what must be undone; close it only once the socket's context has terminated,
        because ZeroMQ removes the socket file in its own thread.

    Raises
    ------
    BusyError
        If another process holds the port or the path.
    StorageError
        If the folder of an IPC path cannot be used.
    ConfigError, UnavailableError
        If the address cannot be bound to.
    """
    if endpoint.transport == "ipc":
        cleanup.enter_context(_reserve_path(endpoint))
    bind_again(sock, endpoint, endpoint.text)
    return sock.getsockopt_string(zmq.LAST_ENDPOINT)


def bind_again(sock: zmq.SyncSocket, endpoint: Endpoint, text: str) -> None:
    """Bind what was unbound again, to what ``bind`` has returned for it.

    Raises
    ------
    BusyError, ConfigError, StorageError, UnavailableError
        As ``bind``.
    """
    if endpoint.transport == "ipc":
        with _umask(_IPC_UMASK):
            _bind(sock, endpoint, text)
    else:
        sock.setsockopt(zmq.IPV6, endpoint.is_ipv6)
        _bind(sock, endpoint, text)


def _bind(sock: zmq.SyncSocket, endpoint: Endpoint, text: str) -> None:
    try:
        sock.bind(text)
    except zmq.ZMQError as error:
        raise _translated(error.errno, endpoint) from error


def _translated(code: int | None, endpoint: Endpoint) -> SpectrodError:
    text = f"endpoint={endpoint.text!r}"
    if code == errno.EADDRINUSE:
        return BusyError(f"{text}: in use by another process; stop it or choose another")
    if endpoint.transport == "ipc":
        return StorageError(f"{text}: cannot make the socket: {zmq.strerror(code or 0)}")
    if code == errno.EACCES:
        return ConfigError(f"{text}: this user may not use the port; choose one above 1023")
    if code in (errno.ENODEV, errno.EADDRNOTAVAIL):
        return UnavailableError(f"{text}: no network interface of this machine has that address")
    return ConfigError(f"{text}: cannot bind: {zmq.strerror(code or 0)}")


@contextmanager
def _reserve_path(endpoint: Endpoint) -> Iterator[None]:
    """Hold the lock of an IPC path, with its folder there and no stale socket in the way.

    ZeroMQ lets a second daemon take over the path of a living one, hence the lock; and it deletes
    whatever file stands at the path, hence the check.
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
        _check_stale(path, endpoint)
        undo.callback(path.unlink, missing_ok=True)
        yield


def _lock_file(lock: Path, endpoint: Endpoint) -> int:
    """Return the descriptor of the locked file, which ends with the process at the latest."""
    while True:
        lock_fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o660)
        try:
            fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock_fd)
            raise BusyError(
                f"endpoint={endpoint.text!r}: in use by another process, which holds {lock}"
            ) from None
        if _is_same_file(lock_fd, lock):
            return lock_fd
        os.close(lock_fd)  # its owner removed it between our open and our lock: try the new one


def _is_same_file(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except FileNotFoundError:
        return False


def _check_stale(path: Path, endpoint: Endpoint) -> None:
    """Refuse a path at which something lives that does not know our lock."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise StorageError(f"endpoint={endpoint.text!r}: the path is there and is not a socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(0.0)
        code = probe.connect_ex(str(path))
    if code in (0, errno.EAGAIN):
        raise BusyError(f"endpoint={endpoint.text!r}: in use by another process")
    if code != errno.ECONNREFUSED:
        raise StorageError(f"endpoint={endpoint.text!r}: {os.strerror(code)}")


@contextmanager
def _umask(mask: int) -> Iterator[None]:
    """Set the umask of the whole process for the moment of a bind: there is none per thread."""
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)
