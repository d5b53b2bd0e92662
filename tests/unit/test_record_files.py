import errno
import os

import pytest

from spectrod.errors import StorageError
from spectrod.record import files
from spectrod.record.files import check_writable, write_whole


def test_a_check_leaves_nothing(tmp_path):
    """Asking whether a file could be made makes none."""
    check_writable(tmp_path / "x.png")
    assert list(tmp_path.iterdir()) == []


def test_files_are_written_whole(tmp_path):
    """The file has its content and the usual permissions, and nothing else is left."""
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
    """A path where no file can be is an error that names it and the reason."""
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match=reason) as caught:
        check_writable(tmp_path / name)
    assert str(caught.value).startswith(str(tmp_path / name))
    assert caught.value.exit_code == 74


def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    """Where the disk fills up the old file stays, the part is removed, and the reason is told."""

    def no_space(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "x.png"
    path.write_bytes(b"old")
    monkeypatch.setattr(files.os, "fsync", no_space)
    with pytest.raises(StorageError, match=r"x\.png: No space left on device"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
