"""Where control sockets of this machine lie: the daemon makes its own, ``spectrod ctl`` finds it.

The folder is ``$RUNTIME_DIRECTORY`` (systemd's), ``/run/spectrod`` for root,
``$XDG_RUNTIME_DIR/spectrod``, or else one of the user's own in the temporary folder. The name
comes from the first endpoint that the daemon publishes at: ``control-5556.ipc`` for a port,
``control-STEM.ipc`` for ``ipc://.../STEM.ipc``. Opens no socket of ZeroMQ.
"""

import errno
import os
import re
import socket
import stat
import tempfile
from pathlib import Path

from spectrod.endpoint import CLOSED_SUFFIX, Endpoint, parse_endpoint
from spectrod.errors import DeniedError, StorageError, UnavailableError

SYSTEM_FOLDER = Path("/run/spectrod")

_PREFIX, _SUFFIX = "control-", ".ipc"
_NOT_FOR_NAMES = re.compile(r"[^A-Za-z0-9._-]")


def own_endpoint(published_at: str) -> str:
    """Name the control endpoint of a daemon of this user; its temporary folder is made.

    Parameters
    ----------
    published_at : str
        The first endpoint that it publishes at, with the port that was chosen.

    Raises
    ------
    StorageError
        If the temporary folder belongs to somebody else, or others may enter it.
    """
    folder = _daemon_folder()
    if folder is None:
        folder = _temporary_folder()
        _make_private(folder)
    return f"ipc://{folder / _socket_name(parse_endpoint(published_at))}"


def find_endpoints() -> tuple[list[str], list[str]]:
    """Look for control sockets at which somebody listens, in all folders that may have them.

    Returns
    -------
    answering : list of str
        Endpoints that take a connection.
    denied : list of str
        Endpoints that are there, and not for this user.
    """
    answering, denied = [], []
    for folder in _folders():
        try:
            names = sorted(os.listdir(folder))  # noqa: PTH208 - glob passes over what is denied
        except PermissionError:
            denied.append(f"ipc://{folder}/{_PREFIX}*{_SUFFIX}")
            continue
        except OSError:  # not there
            continue
        for path in (folder / name for name in names if _is_control(name)):
            code = _probe(path)
            if code in (0, errno.EAGAIN):
                answering.append(f"ipc://{path}")
            elif code in (errno.EACCES, errno.EPERM):
                denied.append(f"ipc://{path}")
    return answering, denied


def _is_control(name: str) -> bool:
    return name.startswith(_PREFIX) and name.endswith(_SUFFIX)


def check_answers(endpoint: Endpoint) -> None:
    """Find out at once whether somebody listens at an IPC endpoint.

    Raises
    ------
    DeniedError
        If the socket is not for this user.
    UnavailableError
        If nobody does.
    """
    if endpoint.transport != "ipc":
        return
    code = _probe(Path(endpoint.path))
    if code in (errno.EACCES, errno.EPERM):
        raise DeniedError(f"{endpoint.text}: not for this user; it is for its user and group")
    if code == errno.ENOENT and _is_closed(Path(endpoint.path)):
        raise _closed_error(endpoint.text)
    if code not in (0, errno.EAGAIN):
        raise UnavailableError(f"{endpoint.text}: no daemon: {os.strerror(code)}")


def check_none_closed() -> None:
    """Find out why no control socket of this machine answers, if one is closed to newcomers.

    Raises
    ------
    UnavailableError
        If there is such a one.
    """
    for folder in _folders():
        for closed in sorted(folder.glob(f"{_PREFIX}*{_SUFFIX}{CLOSED_SUFFIX}")):
            path = closed.with_suffix("")
            if _is_closed(path):
                raise _closed_error(f"ipc://{path}")


def _is_closed(path: Path) -> bool:
    """Whether a daemon that runs has closed a socket to newcomers, see ``ListeningSocket``."""
    closed = path.with_name(path.name + CLOSED_SUFFIX)
    return _probe(closed) not in (errno.ENOENT, errno.ECONNREFUSED)


def _closed_error(endpoint: str) -> UnavailableError:
    return UnavailableError(
        f"{endpoint}: too many connections over IPC, closed to newcomers; try again later"
    )


def beside(endpoint: Endpoint) -> str | None:
    """Find the control socket of the daemon that publishes at an endpoint of this machine."""
    if not endpoint.is_local or os.name != "posix":  # no IPC sockets elsewhere
        return None
    name, folders = _socket_name(endpoint), _folders()
    if endpoint.transport == "ipc" and Path(endpoint.path).parent in folders:
        # That of the same name in another folder is another daemon's.
        folders = [Path(endpoint.path).parent]
    for folder in folders:
        if _probe(folder / name) in (0, errno.EAGAIN):
            return f"ipc://{folder / name}"
    return None


def _socket_name(endpoint: Endpoint) -> str:
    if endpoint.transport == "tcp":
        return f"{_PREFIX}{endpoint.port}{_SUFFIX}"
    return f"{_PREFIX}{_NOT_FOR_NAMES.sub('_', Path(endpoint.path).stem)}{_SUFFIX}"


def _daemon_folder() -> Path | None:
    given = os.environ.get("RUNTIME_DIRECTORY", "").partition(":")[0]
    if given:
        return Path(given)
    if os.geteuid() == 0:
        return SYSTEM_FOLDER
    of_session = os.environ.get("XDG_RUNTIME_DIR", "")
    return Path(of_session) / "spectrod" if of_session.startswith("/") else None


def _temporary_folder() -> Path:
    return Path(tempfile.gettempdir()) / f"spectrod-{os.geteuid()}"


def _folders() -> list[Path]:
    """Return the folders that are there and safe to look into, each once."""
    own = _daemon_folder()
    folders = [folder for folder in (own, SYSTEM_FOLDER) if folder is not None]
    temporary = _temporary_folder()
    if _is_private(temporary):
        folders.append(temporary)
    return list(dict.fromkeys(folders))


def _make_private(folder: Path) -> None:
    """Make a folder of our own where anyone could have made one of that name before us."""
    try:
        folder.mkdir(0o700)
    except FileExistsError:
        pass
    except OSError as error:
        raise StorageError(f"{folder}: {error.strerror}") from error
    if not _is_private(folder):
        raise StorageError(f"{folder}: must be a folder of this user's alone, with mode 0700")


def _is_private(folder: Path) -> bool:
    try:
        status = folder.lstat()
    except OSError:
        return False
    is_ours = stat.S_ISDIR(status.st_mode) and _uid_of(status) == os.geteuid()
    return is_ours and stat.S_IMODE(status.st_mode) & 0o077 == 0


def _uid_of(status: os.stat_result) -> int:
    return status.st_uid


def _probe(path: Path) -> int:
    """Try to connect; return 0 or the error's number. A full backlog (EAGAIN) is somebody too."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(0.0)
        try:
            return probe.connect_ex(os.fspath(path))
        except OSError:  # the path is too long for an address: nobody could have bound it
            return errno.ENAMETOOLONG
