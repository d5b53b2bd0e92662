"""Files by descriptor: links are not followed, and no file is replaced."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from spectrod.dsp.blocks import Block
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats import directory as directory_module
from spectrod.formats.description import Description
from spectrod.formats.directory import Directory, numbered
from spectrod.formats.part import PartFile
from spectrod.formats.segment.segment_writer import SegmentWriter
from spectrod.formats.sound import SoundWriter
from spectrod.lib.errors import StorageError

SPEC = SpectrumSpec(1000.0, win_length=64, hop=10, nfft=64, scaling="spectrum")
BATCH = SpectrumBatch(
    np.zeros((2, 1, SPEC.n_bins), np.float32),
    np.array([0, 10]), np.zeros(2, np.int64), np.zeros(2, np.int64), SPEC, "numpy",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    with Directory.open(tmp_path) as opened:
        yield opened


def fail_with(number):
    def fail(*_args, **_options):
        raise OSError(number, os.strerror(number))

    return fail


@pytest.fixture(params=["renameat2", "link", "look"])
def way(request, monkeypatch):
    """Rename with each method in turn: those of ext4, of NFS, and of exFAT on an old kernel."""
    if request.param != "renameat2":
        monkeypatch.setattr(directory_module, "_renameat2_noreplace", fail_with(errno.EINVAL))
    if request.param == "look":
        monkeypatch.setattr(os, "link", fail_with(errno.EPERM))
    return request.param


def test_a_finished_file_replaces_none_whatever_the_file_system(way, folder):
    """A finished file gets the first free number and replaces no file on any file system."""
    for name in ("a.spd", "a_1.spd"):
        (folder.path / name).write_text("another's")
    (folder.path / "new").write_text("ours")
    assert folder.publish("new", "a.spd") == "a_2.spd"
    contents = {one.name: one.read_text() for one in folder.path.iterdir()}
    assert contents == {"a.spd": "another's", "a_1.spd": "another's", "a_2.spd": "ours"}


@pytest.mark.parametrize("kind", ["file", "folder", "link", "dangling"])
def test_whatever_has_the_name_is_not_replaced(way, kind, folder):
    """A name that is taken, even by a broken link, is not replaced."""
    taken = folder.path / "a"
    if kind == "folder":
        taken.mkdir()
    elif kind == "file":
        taken.touch()
    else:
        taken.symlink_to("/" if kind == "link" else "nowhere")
    (folder.path / "new").touch()
    with pytest.raises(FileExistsError):
        folder.rename_noreplace("new", "a")
    assert sorted(one.name for one in folder.path.iterdir()) == ["a", "new"]


def test_an_error_of_the_disk_is_not_taken_for_a_missing_call(monkeypatch, folder):
    """Only errors that mean a missing system call lead to the next method of renaming."""
    monkeypatch.setattr(directory_module, "_renameat2_noreplace", fail_with(errno.EIO))
    (folder.path / "new").touch()
    with pytest.raises(OSError, match="Input/output error"):
        folder.rename_noreplace("new", "a")
    assert [one.name for one in folder.path.iterdir()] == ["new"]


@pytest.mark.parametrize(
    ("name", "number", "expected"),
    [("a.spd", 0, "a.spd"), ("a.b.wav", 2, "a.b_2.wav"), ("a", 1, "a_1"), (".x", 3, ".x_3")],
)
def test_a_number_stands_before_the_suffix(name, number, expected):
    """A number goes before the suffix, so the file keeps its type and sorts after the first."""
    assert numbered(name, number) == expected


def test_a_folder_that_is_a_link_is_not_opened(folder):
    """A link or a file in place of a folder is refused, even if it appears before the creation."""
    (folder.path / "target").mkdir()
    (folder.path / "link").symlink_to("target")
    (folder.path / "file").touch()
    for name in ("link", "file"):
        for open_it in (folder.child, folder.make_child):
            with pytest.raises(NotADirectoryError):
                open_it(name)
    with folder.make_child("new") as made, folder.child("target"):
        assert made.path == folder.path / "new"


def test_only_regular_files_are_opened(folder):
    """Only regular files are opened, since a link leads elsewhere and a FIFO blocks."""
    os.mkfifo(folder.path / "fifo")
    (folder.path / "file").write_text("x")
    (folder.path / "link").symlink_to("file")
    (folder.path / "sub").mkdir()
    for name in ("fifo", "link", "sub", "missing"):
        with pytest.raises(OSError, match=r"regular|symbolic|No such"):
            folder.open_file(name)
    os.close(folder.open_file("file"))


def test_a_folder_that_was_moved_is_still_the_one(folder):
    """A folder that was moved stays the open one, whatever replaces it at its old path."""
    with folder.make_child("a") as held:
        (folder.path / "a").rename(folder.path / "b")
        (folder.path / "a").mkdir()
        assert held.write_new("x", b"content") == "x"
        assert held.write_new("x", b"other") == "x_1"
    assert [one.name for one in (folder.path / "a").iterdir()] == []
    assert {one.name: one.read_bytes() for one in (folder.path / "b").iterdir()} == {
        "x": b"content", "x_1": b"other",
    }  # fmt: skip


# ---- files being written


def segment(part):
    writer = SegmentWriter(part, Description(SPEC, "pond", ("0",), "test"))
    writer.write(BATCH)
    return writer


def sound(part):
    writer = SoundWriter(part, 8000, 1, "s16")
    writer.write(Block(np.zeros((1, 5000), np.float32), 0, 0, 0))
    return writer


WRITERS = pytest.mark.parametrize(
    ("write", "name"), [(segment, "a.spd"), (sound, "a.wav"), (sound, "a.flac")]
)


@WRITERS
def test_a_recording_replaces_no_file_that_came_meanwhile(write, name, folder, caplog):
    """A user's file of the final name stays, and the recording gets the next number."""
    writer = write(PartFile(folder.path / name, folder))
    (folder.path / name).write_text("a user's")
    writer.finish()
    assert (folder.path / name).read_text() == "a user's"
    assert writer.path == folder.path / numbered(name, 1)
    assert writer.path.stat().st_size > 0
    assert not list(folder.path.glob("*.part"))
    assert f"{name}: another file has this name; the new one is" in caplog.text


@WRITERS
def test_a_file_that_the_user_names_is_replaced_if_it_was_there(write, name, tmp_path):
    """A file named with ``-o`` is replaced if it existed at the start, and not if it came later."""
    (tmp_path / name).write_text("old")
    write(tmp_path / name).finish()
    assert (tmp_path / name).read_bytes() != b"old"
    writer = write(tmp_path / f"b{name}")
    (tmp_path / f"b{name}").write_text("a user's")
    writer.finish()
    assert (tmp_path / f"b{name}").read_text() == "a user's"


@WRITERS
def test_another_file_in_place_of_the_unfinished_one_is_left_alone(write, name, folder):
    """Another file in place of the unfinished one is neither renamed nor deleted."""
    for end in ("finish", "abort"):
        writer = write(PartFile(folder.path / name, folder))
        writer.part.unlink()
        writer.part.write_text("another's")
        if end == "finish":
            with pytest.raises(StorageError, match="was removed while it was being written"):
                writer.finish()
        else:
            writer.abort()
        assert [one.read_text() for one in folder.path.iterdir()] == ["another's"]
        writer.part.unlink()


def descriptors():
    return {one.name for one in Path("/proc/self/fd").iterdir()}


@WRITERS
@pytest.mark.parametrize("end", ["finish", "abort"])
def test_no_descriptor_is_left_open(write, name, end, folder):
    """No descriptor stays open, even if a writer cannot be made."""
    before = descriptors()
    getattr(write(PartFile(folder.path / name, folder)), end)()
    (folder.path / f"{name}.part").touch()
    with pytest.raises(StorageError, match=r"is left of a recording"):
        write(PartFile(folder.path / name, folder))
    with pytest.raises(StorageError, match="No such file or directory"):
        write(folder.path / "missing" / name)
    assert descriptors() == before
