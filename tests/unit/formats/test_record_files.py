import errno
import os
from pathlib import Path

import pytest

from spectrod.formats import whole_files
from spectrod.formats.whole_files import check_writable, unpublished, whole_file, write_whole
from spectrod.lib.errors import StorageError


def test_a_check_leaves_nothing(tmp_path):
    """A check whether a file can be created leaves no file."""
    check_writable(tmp_path / "x.png")
    assert list(tmp_path.iterdir()) == []


def test_files_are_written_whole(tmp_path):
    """A file has its content and the usual permissions, and no other file is left."""
    path = tmp_path / "x.png"
    path.write_bytes(b"old")
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]
    umask = os.umask(0)
    os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing/x.png", "No such file or directory"),
        ("folder.png", "is a folder"),
        ("file/x.png", "Not a directory"),
        ("x" * 300 + ".png", "File name too long"),
    ],
)
def test_impossible_paths_are_found_early(tmp_path, name, reason):
    """A path where no file can be is an error with the path and the reason."""
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match=reason) as caught:
        check_writable(tmp_path / name)
    assert str(caught.value).startswith(str(tmp_path / name))
    assert caught.value.exit_code == 74


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (os.mkfifo, "is not a regular file"),
        (lambda path: path.symlink_to(os.devnull), "is not a regular file"),
        (lambda path: path.symlink_to(path.parent), "is a folder"),
        (lambda path: path.symlink_to(path), "Too many levels of symbolic links"),
        (lambda path: path.symlink_to("missing/y.png"), "No such file or directory"),
    ],
)
def test_only_files_are_replaced(tmp_path, make, reason):
    """A picture does not replace a pipe, a device or a folder, also behind a link."""
    path = tmp_path / "x.png"
    make(path)
    with pytest.raises(StorageError, match=rf"x\.png: {reason}"):
        check_writable(path)
    assert list(tmp_path.iterdir()) == [path]


def test_files_without_write_permission_are_kept(tmp_path, monkeypatch):
    """A file without write permission is not replaced, even if its folder allows that."""
    path = tmp_path / "x.png"
    path.touch()
    # Root may write everything, so the system's answer is simulated.
    monkeypatch.setattr(whole_files.os, "access", lambda *asked: asked != (path, os.W_OK))
    with pytest.raises(StorageError, match=r"x\.png: Permission denied"):
        check_writable(path)


@pytest.mark.parametrize("exists", [True, False])
def test_links_stay_links(tmp_path, exists):
    """Writing to a link writes the file that it names, existing or not, in that file's folder."""
    (tmp_path / "there").mkdir()
    file = tmp_path / "there" / "y.png"
    if exists:
        file.write_bytes(b"old")
    link = tmp_path / "x.png"
    link.symlink_to("there/y.png")
    check_writable(link)
    write_whole(link, b"new")
    assert link.is_symlink()
    assert file.read_bytes() == b"new"
    assert list(file.parent.iterdir()) == [file]


def test_an_interrupted_check_leaves_nothing(tmp_path, monkeypatch):
    """Ctrl-C right after the check's probe is created still removes it."""

    def interrupted(path, **_):
        path.write_bytes(b"")
        raise KeyboardInterrupt

    monkeypatch.setattr(whole_files.Path, "touch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        check_writable(tmp_path / "x.png")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    """If the disk fills up, the old file stays, the part is removed, and the reason is reported."""

    def no_space(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "x.png"
    path.write_bytes(b"old")
    monkeypatch.setattr(whole_files.os, "fsync", no_space)
    with pytest.raises(StorageError, match=r"x\.png: No space left on device"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_gets_the_name_meanwhile_is_not_replaced(tmp_path, caplog):
    """If a file of the name appears meanwhile, it stays, and the new one gets a logged number."""
    path = tmp_path / "x.npz"
    with whole_file(path) as part:
        part.write_bytes(b"new")
        path.write_bytes(b"a user's")
    assert path.read_bytes() == b"a user's"
    assert (tmp_path / "x_1.npz").read_bytes() == b"new"
    assert "x.npz: another file has this name; the new one is x_1.npz" in caplog.text
    write_whole(path, b"newer", replaces=False)
    assert path.read_bytes() == b"a user's"
    write_whole(path, b"newest")
    assert path.read_bytes() == b"newest"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["x.npz", "x_1.npz", "x_2.npz"]


@pytest.mark.parametrize("replaces", [True, False])
def test_whoever_completes_a_file_may_leave_it_to_another_to_publish(tmp_path, replaces):
    """A file that is left unpublished has a temporary name and all its content until then."""
    path = tmp_path / "x.png"
    if replaces:
        path.write_bytes(b"old")
    with unpublished() as written:
        write_whole(path, b"new")
    (file,) = written
    assert path.exists() == replaces
    assert file.part.read_bytes() == b"new"
    file.publish()
    assert path.read_bytes() == b"new"
    write_whole(path, b"newest")
    assert path.read_bytes() == b"newest"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_is_published_late_replaces_none_that_came_meanwhile(tmp_path, caplog):
    """The file of another program that came before the publication stays."""
    path = tmp_path / "x.png"
    with unpublished() as written:
        write_whole(path, b"new")
    path.write_bytes(b"a user's")
    written[0].publish()
    assert path.read_bytes() == b"a user's"
    assert (tmp_path / "x_1.png").read_bytes() == b"new"
    assert "x.png: another file has this name; the new one is x_1.png" in caplog.text


def test_a_folder_of_many_files_is_tried_once(tmp_path, monkeypatch):
    """A folder in which a file could be made is not tried again for the next file of a block."""
    tried, folders = [], set()
    monkeypatch.setattr(Path, "touch", lambda probe, **_: tried.append(probe))
    for name in ("x.png", "y.png"):
        with unpublished(folders):
            check_writable(tmp_path / name)
    with unpublished(folders), pytest.raises(StorageError, match="is a folder"):
        check_writable(tmp_path)
    check_writable(tmp_path / "z.png")
    assert [probe.parent for probe in tried] == [tmp_path, tmp_path]


def test_unpublished_files_are_removed_if_their_block_fails(tmp_path):
    """What raises out of the block leaves no complete file that nobody knows of."""

    def write_and_stop():
        with unpublished():
            write_whole(tmp_path / "x.png", b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_and_stop()
    assert list(tmp_path.iterdir()) == []


def test_a_failed_publication_leaves_the_old_file(tmp_path, monkeypatch):
    """If the disk fails to keep the file, the old one stays, and the error names the final path."""

    def broken(descriptor):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    path = tmp_path / "x.png"
    path.write_bytes(b"old")
    with unpublished() as written:
        write_whole(path, b"new")
    monkeypatch.setattr(whole_files.os, "fsync", broken)
    with pytest.raises(StorageError, match=r"x\.png: Input/output error"):
        written[0].publish()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
