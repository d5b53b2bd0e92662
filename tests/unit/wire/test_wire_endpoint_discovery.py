"""Where control sockets lie, and how they are found."""

import errno
import os
import socket
import stat
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from spectrod.lib.errors import DeniedError, StorageError, UnavailableError
from spectrod.wire import endpoint_discovery
from spectrod.wire.endpoint import parse_endpoint
from spectrod.wire.endpoint_discovery import SocketFolders


@pytest.fixture
def folders(tmp_path):
    """Folders of a machine of our own; the temporary one is there, the others are not."""
    return SocketFolders(
        given="",
        system=tmp_path / "system",
        session="",
        temporary=tmp_path,
        uid=os.geteuid(),
        is_root=False,
    )


@pytest.fixture
def near(folders, tmp_path, monkeypatch):
    """Folders by paths that are short enough for addresses, from the current folder."""
    monkeypatch.chdir(tmp_path)
    return replace(folders, given="run", system=Path("system"))


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
def test_the_name_follows_from_where_a_daemon_publishes(published_at, name, folders):
    """The publish endpoint leads to the control endpoint."""
    found = endpoint_discovery.own_endpoint(published_at, replace(folders, given="/r"))
    assert found == f"ipc:///r/{name}"


def test_the_folder_is_the_services_the_roots_the_sessions_or_a_temporary_one(folders):
    """In this order; systemd may name several, of which the first is meant."""

    def own(**changes):
        return endpoint_discovery.own_endpoint("tcp://127.0.0.1:1", replace(folders, **changes))

    temporary = f"ipc://{folders.temporary}/spectrod-{folders.uid}/control-1.ipc"
    assert own() == own(session="relative") == temporary
    session = "/run/user/1000"
    assert own(session=session) == "ipc:///run/user/1000/spectrod/control-1.ipc"
    assert own(session=session, is_root=True) == f"ipc://{folders.system}/control-1.ipc"
    given = "/run/a:/run/b"
    assert own(session=session, is_root=True, given=given) == "ipc:///run/a/control-1.ipc"


def test_the_folders_of_a_process_are_those_of_its_environment(monkeypatch):
    """And of its user."""
    monkeypatch.setenv("RUNTIME_DIRECTORY", "/run/a")
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/7")
    found = SocketFolders.of_process()
    assert (found.given, found.session) == ("/run/a", "/run/user/7")
    assert (found.uid, found.is_root) == (os.geteuid(), os.geteuid() == 0)
    assert found.system == Path("/run/spectrod")


@pytest.mark.parametrize("umask", [0, 0o022, 0o077])
def test_a_temporary_folder_is_for_its_user_alone(umask, folders):
    """Whatever the umask; the second daemon takes the folder of the first."""
    before = os.umask(umask)
    try:
        for _ in range(2):
            endpoint_discovery.own_endpoint("tcp://127.0.0.1:1", folders)
    finally:
        os.umask(before)
    assert stat.S_IMODE(folders.private.stat().st_mode) == 0o700


def test_a_temporary_folder_that_others_made_or_may_enter_is_refused(folders):
    """Anyone could have made a folder of that name before us, or a link."""

    def refused(of=folders):
        with pytest.raises(StorageError, match="must be a folder of this user, with mode"):
            endpoint_discovery.own_endpoint("tcp://127.0.0.1:1", of)

    folder = folders.private
    folder.mkdir(0o755)
    refused()
    folder.chmod(0o700)
    stranger = replace(folders, uid=folders.uid + 1)
    folder.rename(stranger.private)
    refused(stranger)
    folder.symlink_to(stranger.private)
    refused()
    folder.unlink()
    folder.write_text("")
    refused()


def test_a_temporary_folder_that_cannot_be_made_is_reported(folders):
    """With its path and the system's reason."""
    absent = replace(folders, temporary=folders.temporary / "absent")
    with pytest.raises(StorageError, match=r"absent/spectrod-\d+: No such file or directory"):
        endpoint_discovery.own_endpoint("tcp://127.0.0.1:1", absent)


def test_only_sockets_that_somebody_listens_at_are_found(near, tmp_path):
    """In all folders; those of dead daemons and others' files are passed over."""
    with (
        listening(tmp_path / "run" / "control-1.ipc"),
        listening(tmp_path / "system" / "control-pub.ipc"),
        listening(tmp_path / "run" / "other.ipc"),
    ):
        with listening(tmp_path / "run" / "control-2.ipc"):
            pass
        (tmp_path / "run" / "control-3.ipc").write_text("")
        found, denied = endpoint_discovery.find_endpoints(near)
        assert found == ["ipc://run/control-1.ipc", "ipc://system/control-pub.ipc"]
        assert denied == []
        assert endpoint_discovery.beside(parse_endpoint("tcp://127.0.0.1:1"), near) == found[0]
        assert endpoint_discovery.beside(parse_endpoint("ipc:///x/pub.sock"), near) == found[1]
        for other in ("tcp://127.0.0.1:2", "tcp://192.0.2.1:1"):
            assert endpoint_discovery.beside(parse_endpoint(other), near) is None


def test_the_daemon_of_an_endpoint_in_such_a_folder_is_in_that_folder(near, tmp_path):
    """One of the same name in another is another daemon, whichever of them may be reached."""

    def beside(endpoint):
        return endpoint_discovery.beside(parse_endpoint(endpoint), near)

    with listening(tmp_path / "run" / "control-pub.ipc"):
        (tmp_path / "system").mkdir()
        assert beside("ipc://system/pub.ipc") is None
        with listening(tmp_path / "system" / "control-pub.ipc"):
            assert beside("ipc://system/pub.ipc") == "ipc://system/control-pub.ipc"
        assert beside("ipc://run/pub.ipc") == "ipc://run/control-pub.ipc"


def test_a_socket_of_another_user_differs_from_none(folders, tmp_path, monkeypatch):
    """A user without permission gets that error, not that there is no daemon."""
    (tmp_path / "control-1.ipc").write_text("")
    monkeypatch.setattr(socket.socket, "connect_ex", lambda *_: errno.EACCES)
    found = endpoint_discovery.find_endpoints(replace(folders, given=str(tmp_path)))
    assert found == ([], [f"ipc://{tmp_path}/control-1.ipc"])
    with pytest.raises(DeniedError, match="permission denied; for its user and group only"):
        endpoint_discovery.check_answers(parse_endpoint("ipc:///x"))


def test_a_folder_without_permission_is_reported(folders, monkeypatch):
    """As systemd's of a dynamic user, which is root's alone to enter."""

    def refuse(_):
        raise PermissionError

    monkeypatch.setattr(endpoint_discovery.os, "listdir", refuse)
    assert endpoint_discovery.find_endpoints(folders) == (
        [],
        [f"ipc://{folders.system}/control-*.ipc"],
    )


def test_a_named_socket_without_a_listener_is_reported_at_once():
    """With the system's reason; of TCP nobody knows before a reply."""
    with pytest.raises(UnavailableError, match="ipc:///nope: no daemon: No such file or directory"):
        endpoint_discovery.check_answers(parse_endpoint("ipc:///nope"))
    endpoint_discovery.check_answers(parse_endpoint("tcp://127.0.0.1:1"))


def test_a_socket_closed_to_new_connections_is_reported(near, tmp_path):
    """Both when it is named and when it is searched for; not the file of a killed daemon."""
    text = "ipc://system/control-1.ipc: too many connections over IPC"
    with listening(tmp_path / "system" / "control-1.ipc.closed"):
        assert endpoint_discovery.find_endpoints(near) == ([], [])
        with pytest.raises(UnavailableError, match=text):
            endpoint_discovery.check_none_closed(near)
        with pytest.raises(UnavailableError, match=text):
            endpoint_discovery.check_answers(parse_endpoint("ipc://system/control-1.ipc"))
    endpoint_discovery.check_none_closed(near)
    with pytest.raises(UnavailableError, match="no daemon: No such file or directory"):
        endpoint_discovery.check_answers(parse_endpoint("ipc://system/control-1.ipc"))


@pytest.mark.parametrize(
    ("answering", "chosen"),
    [
        (["session/control-1", "system/control-1", "system-roof/control-1"], "session/control-1"),
        (["system/control-1", "system-roof/control-1"], "system/control-1"),
        (["system-roof/control-1", "system-pond/control-1"], None),
        (["session/control-1", "session/control-2", "system/control-1"], None),
        (["system/control-1", "system/control-2"], None),
    ],
)
def test_the_own_daemon_and_then_the_systems_is_preferred(folders, tmp_path, answering, chosen):
    """Of several daemons the user's own is meant, else the system's, if it is alone there."""
    folders = replace(folders, given=str(tmp_path / "session"))
    several = [f"ipc://{tmp_path}/{one}.ipc" for one in answering]
    expected = chosen and f"ipc://{tmp_path}/{chosen}.ipc"
    assert endpoint_discovery.preferred(several, folders) == expected


def test_the_folder_names_the_instance(folders, tmp_path):
    """Sockets of an instance lie in a folder of its name."""
    names = {"system": "", "system-roof": "roof", "system-a-b": "a-b", "session": ""}
    for folder, name in names.items():
        endpoint = f"ipc://{tmp_path}/{folder}/control-1.ipc"
        assert endpoint_discovery.instance_of(endpoint, folders) == name
