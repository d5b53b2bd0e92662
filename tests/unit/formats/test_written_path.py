"""Links in the paths of outputs: our own are followed, those that strangers planted are not."""

import os
import tempfile
from pathlib import Path

import pytest

from spectrod.apps.ctl.replaced_file import replace_text
from spectrod.apps.measurements.text_file import write_text
from spectrod.cli import main
from spectrod.formats.part import PartFile
from spectrod.formats.path_links import LINKS_MAX, written_path
from spectrod.formats.whole_files import check_writable, is_there, write_whole
from spectrod.lib.errors import StorageError

OWNER, STRANGER = 60001, 60002
"""Owner of the shared folder, and one who may write in it. The tests' own user is root."""

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of two users")


@pytest.fixture
def shared(tmp_path):
    """Make a folder that all users may write, with a folder and a file of the user beside it."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home/precious").write_bytes(b"precious")
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    os.chown(folder, OWNER, OWNER)
    return folder


def plant(path, target, uid=STRANGER):
    path.symlink_to(target)
    os.lchown(path, uid, uid)


WAYS = {
    "check": check_writable,
    "whole file": lambda path: write_whole(path, b"new"),
    "whole file, checked before": lambda path: write_whole(path, b"new", replaces=True),
    "part": PartFile,
    "text": lambda path: write_text(path, "new"),
    "replaced text": lambda path: replace_text(path, "new"),
    "is there": is_there,
}


@as_root
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("planted", ["out.png", "there"])
def test_a_link_of_a_stranger_is_not_followed(shared, way, planted):
    """What lies behind a stranger's link, in place of the file or of a folder, stays as it is."""
    home = shared.parent / "home"
    is_file = planted == "out.png"
    plant(shared / planted, home / "precious" if is_file else home)
    path = shared / planted if is_file else shared / planted / "precious"
    with pytest.raises(StorageError) as refused:
        WAYS[way](path)
    text = f"{path}: {shared / planted} is a link of another user (uid {STRANGER}): "
    assert str(refused.value) == f"{text}it is not followed"
    assert (home / "precious").read_bytes() == b"precious"
    assert list(home.iterdir()) == [home / "precious"]


@as_root
@pytest.mark.parametrize("uid", [OWNER, 0])
def test_links_of_the_user_and_of_the_owner_of_the_folder_are_followed(shared, uid):
    """The user's own link is followed in any folder, and that of the folder's owner."""
    home = shared.parent / "home"
    plant(shared / "out.png", home / "precious", uid)
    check_writable(shared / "out.png")
    write_whole(shared / "out.png", b"new")
    assert (home / "precious").read_bytes() == b"new"
    assert (shared / "out.png").is_symlink()


@as_root
def test_a_link_behind_a_link_counts_as_well(shared):
    """The user's link leads to a stranger's: the second is not followed."""
    plant(shared / "theirs", shared.parent / "home/precious")
    plant(shared / "mine.csv", "theirs", uid=0)
    with pytest.raises(StorageError, match=r"mine\.csv: .*/theirs is a link of another user"):
        write_whole(shared / "mine.csv", b"new")


@as_root
def test_another_user_writes_through_no_link_of_a_stranger():
    """A process with the rights of one user alone keeps its file where another planted a link."""
    with tempfile.TemporaryDirectory(prefix="spectrod-links-") as folder:
        base = Path(folder)
        base.chmod(0o755)
        precious = _planted(base)
        child = os.fork()
        if not child:
            _write_and_exit(base / "shared/out.npz")
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
        assert precious.read_bytes() == b"precious"


def _planted(base):
    """Make a user's file, and a stranger's link to it in a folder of root; return the file."""
    for name, uid in (("home", OWNER), ("shared", 0)):
        (base / name).mkdir()
        os.chown(base / name, uid, uid)
    (base / "shared").chmod(0o1777)
    precious = base / "home/precious"
    precious.write_bytes(b"precious")
    os.chown(precious, OWNER, OWNER)
    plant(base / "shared/out.npz", precious)
    return precious


def _write_and_exit(path):
    """With the rights of one user, write a file; end with 3 if a link is the reason why not."""
    try:
        os.setgroups([])
        os.setgid(OWNER)
        os.setuid(OWNER)
        write_whole(path, b"new")
    except StorageError as error:
        os._exit(3 if "is a link of another user" in str(error) else 4)
    finally:
        os._exit(5)


@as_root
@pytest.mark.parametrize("suffix", [".png", ".npz", ".csv", ".spd", ".wav", ".nc", ".svg"])
def test_record_writes_through_no_planted_link(shared, suffix, capsys, monkeypatch):
    """``record`` ends with one line, and the file behind a stranger's link stays."""
    precious = shared.parent / "home/precious"
    plant(shared / f"out{suffix}", precious)
    monkeypatch.chdir(shared)
    argv = ["record", "signal:white,-20", "-o", f"out{suffix}", "--duration", "0.1"]
    assert main([*argv, "--engine", "numpy", "--pace", "full"]) == 74
    assert f"is a link of another user (uid {STRANGER}): it is not" in capsys.readouterr().err
    assert precious.read_bytes() == b"precious"


@as_root
@pytest.mark.parametrize("planted", ["out.zarr", "there"])
def test_a_store_is_written_through_no_planted_link(shared, planted, capsys):
    """A folder of results is neither replaced nor made behind a stranger's link."""
    home = shared.parent / "home"
    store = home / "out.zarr"
    if planted == "out.zarr":
        store.mkdir()
        (store / "zarr.json").touch()
    plant(shared / planted, store if planted == "out.zarr" else home)
    path = shared / ("out.zarr" if planted == "out.zarr" else "there/out.zarr")
    argv = ["record", "signal:white,-20", "-o", str(path), "--duration", "0.1"]
    before = sorted(home.rglob("*"))
    assert main([*argv, "--engine", "numpy", "--pace", "full"]) == 74
    assert "is a link of another user" in capsys.readouterr().err
    assert sorted(home.rglob("*")) == before


def test_a_store_is_written_to_the_target_of_our_own_link(tmp_path):
    """A link of the user stays, as one to a file does, and the store that it names is replaced."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "out.zarr").symlink_to("disk/out.zarr")
    argv = ["record", "signal:white,-20", "-o", str(tmp_path / "out.zarr"), "--duration", "0.1"]
    for _ in range(2):
        assert main([*argv, "--engine", "numpy", "--pace", "full"]) == 0
    assert (tmp_path / "out.zarr").is_symlink()
    assert [path.name for path in (tmp_path / "disk").iterdir()] == ["out.zarr"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a/x", "a/x"),
        ("l/x", "a/x"),
        ("l/../x", "x"),
        ("a/../l/./x", "a/x"),
        ("file", "a/b/new"),
        ("absolute", "a"),
        ("missing/../x", "x"),
        ("up/x", "x"),
    ],
)
def test_paths_of_our_own_links_are_those_of_the_system(tmp_path, monkeypatch, path, expected):
    """Relative and absolute links, and parents behind links, lead where ``realpath`` leads."""
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "l").symlink_to("a")
    (tmp_path / "file").symlink_to("l/b/new")
    (tmp_path / "absolute").symlink_to(tmp_path / "l")
    (tmp_path / "up").symlink_to("a/..")
    monkeypatch.chdir(tmp_path)
    here = Path(os.path.realpath(tmp_path))
    for one in (Path(path), tmp_path / path):
        assert written_path(one) == Path(os.path.realpath(one)) == here / expected


def test_links_without_end_are_refused(tmp_path):
    """A link to itself, and more links than the system follows, are one error."""
    (tmp_path / "loop").symlink_to("loop")
    for n in range(LINKS_MAX + 1):
        (tmp_path / f"l{n}").symlink_to(f"l{n + 1}")
    for name in ("loop", "l0"):
        with pytest.raises(StorageError, match=f"{name}: Too many levels of symbolic links"):
            written_path(tmp_path / name)
    assert written_path(tmp_path / "l1") == Path(os.path.realpath(tmp_path / "l1"))
