"""Paths of control sockets on this machine: a daemon makes its own, ``spectrod ctl`` finds it.

The folder is ``$RUNTIME_DIRECTORY`` (systemd's), ``/run/spectrod`` for root,
``$XDG_RUNTIME_DIR/spectrod``, or else a private folder of the user in the temporary folder. Those
of instances, ``/run/spectrod-NAME``, are searched as well. The name comes from the first endpoint
where the daemon publishes: ``control-5556.ipc`` for a port, ``control-STEM.ipc`` for
``ipc://.../STEM.ipc``. This module opens no ZeroMQ socket.
"""

import errno
import os
import re
import socket
import stat
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from spectrod.lib.errors import DeniedError, StorageError, UnavailableError
from spectrod.wire.endpoint import CLOSED_SUFFIX, Endpoint, parse_endpoint

SYSTEM_FOLDER = Path("/run/spectrod")

_PREFIX, _SUFFIX = "control-", ".ipc"
_NOT_FOR_NAMES = re.compile(r"[^A-Za-z0-9._-]")


@dataclass(frozen=True, slots=True)
class SocketFolders:
    """The folders of this machine that may hold control sockets, as one user sees them.

    Attributes
    ----------
    given : str
        ``$RUNTIME_DIRECTORY``: folders of a service, separated by colons; the first counts.
    system : Path
        Root's, and the one where a system's daemon is looked for.
    session : str
        ``$XDG_RUNTIME_DIR``; counts if it is absolute.
    temporary : Path
        Where the user's own is made if none of the others is there.
    uid : int
        Of the user.
    is_root : bool
        Whether the user's daemon has the system's folder.
    """

    given: str
    system: Path
    session: str
    temporary: Path
    uid: int
    is_root: bool

    @classmethod
    def of_process(cls) -> "SocketFolders":
        """Return the folders for the environment and the user of this process."""
        return cls(
            given=os.environ.get("RUNTIME_DIRECTORY", ""),
            system=SYSTEM_FOLDER,
            session=os.environ.get("XDG_RUNTIME_DIR", ""),
            temporary=Path(tempfile.gettempdir()),
            uid=os.geteuid(),
            is_root=os.geteuid() == 0,
        )

    @property
    def of_daemon(self) -> Path | None:
        """Folder of a daemon of this user; None if it must be the temporary one."""
        if given := self.given.partition(":")[0]:
            return Path(given)
        if self.is_root:
            return self.system
        return Path(self.session) / "spectrod" if self.session.startswith("/") else None

    @property
    def private(self) -> Path:
        """The user's temporary folder, which may not exist."""
        return self.temporary / f"spectrod-{self.uid}"

    def existing(self) -> list[Path]:
        """Return the folders that are safe to search, each once."""
        folders = [folder for folder in (self.of_daemon, self.system) if folder is not None]
        folders += sorted(self.system.parent.glob(f"{self.system.name}-*"))  # of instances
        if self.is_private(self.private):
            folders.append(self.private)
        return list(dict.fromkeys(folders))

    def make_private(self) -> Path:
        """Make the user's temporary folder, where another user could have made one of that name.

        Raises
        ------
        StorageError
            If it belongs to another user, others may enter it, or it cannot be made.
        """
        folder = self.private
        try:
            folder.mkdir(0o700)
        except FileExistsError:
            pass
        except OSError as error:
            raise StorageError(f"{folder}: {error.strerror}") from error
        if not self.is_private(folder):
            raise StorageError(f"{folder}: must be a folder of this user, with mode 0700")
        return folder

    def is_private(self, folder: Path) -> bool:
        """Return whether a folder belongs to the user and only the user may enter it."""
        try:
            status = folder.lstat()
        except OSError:
            return False
        is_own_folder = stat.S_ISDIR(status.st_mode) and status.st_uid == self.uid
        return is_own_folder and stat.S_IMODE(status.st_mode) & 0o077 == 0


def own_endpoint(published_at: str, folders: SocketFolders | None = None) -> str:
    """Return the control endpoint of a daemon of this user; make its temporary folder.

    Parameters
    ----------
    published_at : str
        The first endpoint where it publishes, with its actual port.
    folders : SocketFolders, optional
        By default those of this process.

    Raises
    ------
    StorageError
        If the temporary folder belongs to another user, or others may enter it.
    """
    folders = folders or SocketFolders.of_process()
    folder = folders.of_daemon or folders.make_private()
    return f"ipc://{folder / _socket_name(parse_endpoint(published_at))}"


def find_endpoints(folders: SocketFolders | None = None) -> tuple[list[str], list[str]]:
    """Find control sockets with a listener, in all folders that may have them.

    Parameters
    ----------
    folders : SocketFolders, optional
        By default those of this process.

    Returns
    -------
    answering : list of str
        Endpoints that accept a connection.
    denied : list of str
        Endpoints that exist, but deny this user.
    """
    answering, denied = [], []
    for folder in (folders or SocketFolders.of_process()).existing():
        try:
            names = sorted(os.listdir(folder))  # noqa: PTH208 - glob hides errors
        except PermissionError:
            denied.append(f"ipc://{folder}/{_PREFIX}*{_SUFFIX}")
            continue
        except OSError:  # does not exist
            continue
        for path in (folder / name for name in names if _is_control(name)):
            code = _probe(path)
            if code in (0, errno.EAGAIN):
                answering.append(f"ipc://{path}")
            elif code in (errno.EACCES, errno.EPERM):
                denied.append(f"ipc://{path}")
    return answering, denied


def instance_of(endpoint: str, folders: SocketFolders | None = None) -> str:
    """Return the name of the instance whose folder has a control socket; empty for all others."""
    system, folder = (folders or SocketFolders.of_process()).system, _folder_of(endpoint)
    is_of_instance = folder.parent == system.parent and folder.name.startswith(f"{system.name}-")
    return folder.name.removeprefix(f"{system.name}-") if is_of_instance else ""


def preferred(answering: Sequence[str], folders: SocketFolders | None = None) -> str | None:
    """Choose among control sockets the only one of this user's own daemon, else of the system's."""
    several = folders or SocketFolders.of_process()
    for folder in (several.of_daemon or several.private, several.system):
        there = [one for one in answering if _folder_of(one) == folder]
        if there:
            return there[0] if len(there) == 1 else None
    return None


def _folder_of(endpoint: str) -> Path:
    return Path(endpoint.removeprefix("ipc://")).parent


def _is_control(name: str) -> bool:
    return name.startswith(_PREFIX) and name.endswith(_SUFFIX)


def check_answers(endpoint: Endpoint) -> None:
    """Check that an IPC endpoint has a listener.

    Raises
    ------
    DeniedError
        If the socket denies this user.
    UnavailableError
        If it has none.
    """
    if endpoint.transport != "ipc":
        return
    code = _probe(Path(endpoint.path))
    if code in (errno.EACCES, errno.EPERM):
        raise DeniedError(f"{endpoint.text}: permission denied; for its user and group only")
    if code == errno.ENOENT and _is_closed(Path(endpoint.path)):
        raise _closed_error(endpoint.text)
    if code not in (0, errno.EAGAIN):
        raise UnavailableError(f"{endpoint.text}: no daemon: {os.strerror(code)}")


def check_none_closed(folders: SocketFolders | None = None) -> None:
    """Check that no control socket of this machine refuses new connections.

    Raises
    ------
    UnavailableError
        If one does.
    """
    for folder in (folders or SocketFolders.of_process()).existing():
        for closed in sorted(folder.glob(f"{_PREFIX}*{_SUFFIX}{CLOSED_SUFFIX}")):
            path = closed.with_suffix("")
            if _is_closed(path):
                raise _closed_error(f"ipc://{path}")


def _is_closed(path: Path) -> bool:
    """Return whether a daemon refuses new connections at a path, see ``ListeningSocket``."""
    closed = path.with_name(path.name + CLOSED_SUFFIX)
    return _probe(closed) not in (errno.ENOENT, errno.ECONNREFUSED)


def _closed_error(endpoint: str) -> UnavailableError:
    return UnavailableError(f"{endpoint}: too many connections over IPC; try again later")


def beside(endpoint: Endpoint, folders: SocketFolders | None = None) -> str | None:
    """Find the control socket of the daemon that publishes at a local endpoint."""
    if not endpoint.is_local or os.name != "posix":  # no IPC sockets elsewhere
        return None
    name = _socket_name(endpoint)
    existing = (folders or SocketFolders.of_process()).existing()
    if endpoint.transport == "ipc" and Path(endpoint.path).parent in existing:
        # A socket of the same name in another folder belongs to another daemon.
        existing = [Path(endpoint.path).parent]
    for folder in existing:
        if _probe(folder / name) in (0, errno.EAGAIN):
            return f"ipc://{folder / name}"
    return None


def _socket_name(endpoint: Endpoint) -> str:
    if endpoint.transport == "tcp":
        return f"{_PREFIX}{endpoint.port}{_SUFFIX}"
    return f"{_PREFIX}{_NOT_FOR_NAMES.sub('_', Path(endpoint.path).stem)}{_SUFFIX}"


def _probe(path: Path) -> int:
    """Try to connect; return 0 or the errno. A full backlog (EAGAIN) also means a listener."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(0.0)
        try:
            return probe.connect_ex(os.fspath(path))
        except OSError:  # the path is too long for an address: no process can have bound it
            return errno.ENAMETOOLONG
