"""Where control sockets lie, and how they are found."""

import os
import socket
import stat
from contextlib import closing
from pathlib import Path

import pytest

from spectrod.endpoint import parse_endpoint
from spectrod.errors import DeniedError, StorageError, UnavailableError
from spectrod.wire import rendezvous


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Folders of a machine of our own; the temporary one is set, the others are not there."""
    monkeypatch.setattr(rendezvous, "SYSTEM_FOLDER", tmp_path / "system")
    monkeypatch.setattr(rendezvous.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.delenv("RUNTIME_DIRECTORY", raising=False)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr(rendezvous.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(rendezvous, "_uid_of", lambda _: 1000)
    return tmp_path


def listening(path):
    """Listen at a path, which is short enough for an address from its own folder."""
    path.parent.mkdir(exist_ok=True)
    server = socket.socket(socket.AF_UNIX)
    before = os.getcwd()  # noqa: PTH109
    os.chdir(path.parent)
    server.bind(path.name)
    os.chdir(before)
    server.listen()
    return closing(server)


@pytest.mark.parametrize(
    ("published_at", "name"),
    [
        ("tcp://127.0.0.1:5556", "control-5556.ipc"),
        ("tcp://[::1]:5557", "control-5557.ipc"),
        ("ipc:///run/spectrod/pub.sock", "control-pub.ipc"),
        ("ipc://a b.ipc", "control-a_b.ipc"),
        ("ipc://é", "control-_.ipc"),
    ],
)
def test_the_name_follows_from_where_a_daemon_publishes(published_at, name, folders, monkeypatch):
    """So that who knows one endpoint finds the other."""
    monkeypatch.setenv("RUNTIME_DIRECTORY", "/r")
    assert rendezvous.own_endpoint(published_at) == f"ipc:///r/{name}"


def test_the_folder_is_the_services_the_roots_the_sessions_or_a_temporary_one(folders, monkeypatch):
    """In this order; systemd may name several, of which the first is meant."""
    at = "tcp://127.0.0.1:1"
    assert rendezvous.own_endpoint(at) == f"ipc://{folders}/spectrod-1000/control-1.ipc"
    monkeypatch.setenv("XDG_RUNTIME_DIR", "relative")
    assert rendezvous.own_endpoint(at) == f"ipc://{folders}/spectrod-1000/control-1.ipc"
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1000")
    assert rendezvous.own_endpoint(at) == "ipc:///run/user/1000/spectrod/control-1.ipc"
    monkeypatch.setattr(rendezvous.os, "geteuid", lambda: 0)
    assert rendezvous.own_endpoint(at) == f"ipc://{folders}/system/control-1.ipc"
    monkeypatch.setenv("RUNTIME_DIRECTORY", "/run/a:/run/b")
    assert rendezvous.own_endpoint(at) == "ipc:///run/a/control-1.ipc"


@pytest.mark.parametrize("umask", [0, 0o022, 0o077])
def test_a_temporary_folder_is_for_its_user_alone(umask, folders):
    """Whatever the umask; the second daemon takes the folder of the first."""
    before = os.umask(umask)
    try:
        for _ in range(2):
            rendezvous.own_endpoint("tcp://127.0.0.1:1")
    finally:
        os.umask(before)
    assert stat.S_IMODE((folders / "spectrod-1000").stat().st_mode) == 0o700


def test_a_temporary_folder_that_others_made_or_may_enter_is_refused(folders, monkeypatch):
    """Anyone could have made a folder of that name before us, or a link."""
    folder = folders / "spectrod-1000"
    refused = pytest.raises(StorageError, match="must be a folder of this user's alone, with mode")
    folder.mkdir(0o755)
    with refused:
        rendezvous.own_endpoint("tcp://127.0.0.1:1")
    folder.chmod(0o700)
    monkeypatch.setattr(rendezvous, "_uid_of", lambda _: 1001)
    with refused:
        rendezvous.own_endpoint("tcp://127.0.0.1:1")
    monkeypatch.setattr(rendezvous, "_uid_of", lambda _: 1000)
    folder.rename(folders / "other")
    folder.symlink_to(folders / "other")
    with refused:
        rendezvous.own_endpoint("tcp://127.0.0.1:1")
    folder.unlink()
    folder.write_text("")
    with refused:
        rendezvous.own_endpoint("tcp://127.0.0.1:1")


def test_a_temporary_folder_that_cannot_be_made_is_told(folders, monkeypatch):
    """With its path and the system's reason."""
    monkeypatch.setattr(rendezvous.tempfile, "gettempdir", lambda: str(folders / "absent"))
    with pytest.raises(StorageError, match="absent/spectrod-1000: No such file or directory"):
        rendezvous.own_endpoint("tcp://127.0.0.1:1")


def test_only_sockets_that_somebody_listens_at_are_found(folders, monkeypatch):
    """In all folders; those of dead daemons and others' files are passed over."""
    monkeypatch.chdir(folders)
    monkeypatch.setenv("RUNTIME_DIRECTORY", "run")
    monkeypatch.setattr(rendezvous, "SYSTEM_FOLDER", rendezvous.Path("system"))
    with (
        listening(folders / "run" / "control-1.ipc"),
        listening(folders / "system" / "control-pub.ipc"),
        listening(folders / "run" / "other.ipc"),
    ):
        with listening(folders / "run" / "control-2.ipc"):
            pass
        (folders / "run" / "control-3.ipc").write_text("")
        found, denied = rendezvous.find_endpoints()
        assert found == ["ipc://run/control-1.ipc", "ipc://system/control-pub.ipc"]
        assert denied == []
        assert rendezvous.beside(parse_endpoint("tcp://127.0.0.1:1")) == found[0]
        assert rendezvous.beside(parse_endpoint("ipc:///x/pub.sock")) == found[1]
        for other in ("tcp://127.0.0.1:2", "tcp://192.0.2.1:1"):
            assert rendezvous.beside(parse_endpoint(other)) is None


def test_the_daemon_of_an_endpoint_in_such_a_folder_is_in_that_folder(folders, monkeypatch):
    """One of the same name in another is another daemon, whichever of them may be reached."""
    monkeypatch.chdir(folders)
    monkeypatch.setattr(rendezvous, "SYSTEM_FOLDER", Path("system"))
    monkeypatch.setenv("RUNTIME_DIRECTORY", "run")
    with listening(folders / "run" / "control-pub.ipc"):
        (folders / "system").mkdir()
        assert rendezvous.beside(parse_endpoint("ipc://system/pub.ipc")) is None
        with listening(folders / "system" / "control-pub.ipc"):
            found = rendezvous.beside(parse_endpoint("ipc://system/pub.ipc"))
            assert found == "ipc://system/control-pub.ipc"
        assert rendezvous.beside(parse_endpoint("ipc://run/pub.ipc")) == "ipc://run/control-pub.ipc"


def test_a_socket_of_another_user_is_told_apart_from_none(folders, monkeypatch):
    """Whoever may not connect hears that, not that there is no daemon."""
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(folders))
    (folders / "control-1.ipc").write_text("")
    monkeypatch.setattr(rendezvous, "_probe", lambda _: rendezvous.errno.EACCES)
    assert rendezvous.find_endpoints() == ([], [f"ipc://{folders}/control-1.ipc"])
    with pytest.raises(DeniedError, match="not for this user; it is for its user and group"):
        rendezvous.check_answers(parse_endpoint("ipc:///x"))


def test_a_folder_that_may_not_be_looked_into_is_told(folders, monkeypatch):
    """As systemd's of a dynamic user, which is root's alone to enter."""

    def refuse(_):
        raise PermissionError

    monkeypatch.setattr(rendezvous.os, "listdir", refuse)
    assert rendezvous.find_endpoints() == ([], [f"ipc://{folders}/system/control-*.ipc"])


def test_a_named_socket_that_nobody_listens_at_is_told_at_once(folders):
    """With the system's reason; of TCP nobody knows before a reply."""
    with pytest.raises(UnavailableError, match="ipc:///nope: no daemon: No such file or directory"):
        rendezvous.check_answers(parse_endpoint("ipc:///nope"))
    rendezvous.check_answers(parse_endpoint("tcp://127.0.0.1:1"))


def test_a_socket_that_is_closed_to_newcomers_is_told(folders, monkeypatch):
    """Whether it is named or looked for; not what a daemon that was killed has left."""
    monkeypatch.chdir(folders)
    monkeypatch.setattr(rendezvous, "SYSTEM_FOLDER", Path("system"))
    text = "ipc://system/control-1.ipc: too many connections over IPC, closed to newcomers"
    with listening(folders / "system" / "control-1.ipc.closed"):
        assert rendezvous.find_endpoints() == ([], [])
        with pytest.raises(UnavailableError, match=text):
            rendezvous.check_none_closed()
        with pytest.raises(UnavailableError, match=text):
            rendezvous.check_answers(parse_endpoint("ipc://system/control-1.ipc"))
    rendezvous.check_none_closed()
    with pytest.raises(UnavailableError, match="no daemon: No such file or directory"):
        rendezvous.check_answers(parse_endpoint("ipc://system/control-1.ipc"))
