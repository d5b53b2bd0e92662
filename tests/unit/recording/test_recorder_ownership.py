"""Ownership of files in a recording's folder."""

import os
import re
import time

import numpy as np
import pytest

from spectrod.config.settings import RecordingConfig
from spectrod.dsp.blocks import Block
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.description import Description
from spectrod.formats.directory import Directory
from spectrod.formats.origin import read_origin
from spectrod.formats.segment.segment_reader import SegmentReader
from spectrod.formats.segment.segment_writer import SegmentWriter
from spectrod.formats.sound import SoundOptions, SoundWriter
from spectrod.lib.errors import StorageError
from spectrod.recording import recording_folder
from spectrod.recording.ownership import Owner
from spectrod.recording.recorder_clock import Clock
from spectrod.recording.recording_folder import RecordingFolder

SPEC = SpectrumSpec(1000.0, win_length=64, hop=10, nfft=64, scaling="spectrum")
BEGIN_UTC_NS = 1_777_609_800_123_456_000
STEM = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(BEGIN_UTC_NS // 10**9))
CONFIG = RecordingConfig("night", min_free_mb=0.0, keep_days=1.0)
OWNER = Owner("night", "pond", CONFIG.file_stem)
KINDS = pytest.mark.parametrize("suffix", [".spd", ".wav", ".flac"])


def write(path, recording="night", source="pond", n=5):
    """Make a finished file as recordings do, or other writers without a recording's name."""
    if path.suffix == ".spd":
        writer = SegmentWriter(path, Description(SPEC, source, ("0",), "x", recording=recording))
        times = np.arange(n, dtype=np.int64)
        values = np.zeros((n, 1, SPEC.n_values), np.float32)
        writer.write(SpectrumBatch(values, times * 10, times, times + BEGIN_UTC_NS, SPEC, "numpy"))
    else:
        options = SoundOptions(source=source, recording=recording)
        writer = SoundWriter(path, 8000, 1, "s16", options)
        samples = np.zeros((1, 1000 * n), np.float32)
        writer.write(Block(samples, 0, BEGIN_UTC_NS, BEGIN_UTC_NS))
    writer.finish()
    return path


def as_earlier(path):
    """Remove from a file the marks that early versions, without recording names, did not write."""
    content = path.read_bytes()
    if path.suffix == ".wav":
        content = re.sub(rb"spectrod\|Recording: [^\n]*\n", lambda m: b"\n" * len(m[0]), content)
    else:
        content = re.sub(rb" Recording \S+, file \S+\. ", lambda m: b" " * len(m[0]), content)
    path.write_bytes(content)


def earlier_segment(path, monkeypatch):
    """Make a segment whose header has no name of a recording."""
    from spectrod.formats.segment import segment_writer  # noqa: PLC0415

    encode = segment_writer.encode_header
    names = rb'"recording_name": "[^"]*", "file_name": "[^"]*", '
    monkeypatch.setattr(
        segment_writer, "encode_header", lambda header: re.sub(names, b"", encode(header))
    )
    return write(path)


def is_own(path, owner=OWNER):
    with Directory.open(path.parent) as folder:
        return owner.wrote(folder, path.name)


@KINDS
def test_a_file_names_its_writer(tmp_path, suffix):
    """The recording, the source, the name and the start can be read back from a file."""
    descriptor = os.open(write(tmp_path / f"a{suffix}"), os.O_RDONLY)
    origin = read_origin(descriptor, suffix)
    os.close(descriptor)
    assert (origin.recording, origin.source) == ("night", "pond")
    assert origin.file_name == f"a{suffix}"
    if suffix != ".spd":  # such a file need not be read for its first row
        assert origin.begin_utc_ns // 10**9 == BEGIN_UTC_NS // 10**9


@KINDS
@pytest.mark.parametrize(
    ("name", "recording", "source", "expected"),
    [
        ("a", "night", "pond", True),
        ("a", "", "pond", False),
        ("a", "Night", "pond", False),
        ("a", "night2", "pond", False),
        ("a", "night", "roof", False),
        ("a.b", "night", "pond", True),
    ],
)
def test_only_files_of_the_recording_and_source_are_its_own(
    tmp_path, suffix, name, recording, source, expected
):
    """A recording owns only files with its own name and source."""
    assert is_own(write(tmp_path / f"{name}{suffix}", recording, source)) is expected


@KINDS
@pytest.mark.parametrize(
    ("new", "expected"), [("a_1", True), ("a_12", True), ("kept", False), ("a_x", False)]
)
def test_a_file_under_another_name_is_the_users(tmp_path, suffix, new, expected):
    """A renamed file belongs to the user, except for an added number."""
    path = write(tmp_path / f"a{suffix}")
    assert is_own(path.rename(tmp_path / f"{new}{suffix}")) is expected


@KINDS
def test_an_unfinished_file_with_a_second_name_is_left_alone(tmp_path, suffix):
    """An unfinished file with a second hard link stays, since a cut would change the other name."""
    path = write(tmp_path / f"a{suffix}")
    os.link(path, tmp_path / f"a{suffix}.part")
    os.link(path, tmp_path / "elsewhere")
    assert is_own(path) is True
    assert is_own(tmp_path / f"a{suffix}.part") is False


@KINDS
def test_files_of_earlier_versions_are_recognised_by_all_else(tmp_path, suffix, monkeypatch):
    """Files of early versions are recognised by source, owner and the name for their start."""

    def make(stem):
        path = tmp_path / f"{stem}{suffix}"
        if suffix == ".spd":
            with monkeypatch.context() as patched:
                return earlier_segment(path, patched)
        write(path)
        as_earlier(path)
        return path

    own, renamed = make(STEM), make("song")
    assert is_own(own) is True
    assert is_own(renamed) is False
    assert is_own(own, Owner("night", "roof", CONFIG.file_stem)) is False
    monkeypatch.setattr(os, "geteuid", lambda: own.stat().st_uid + 1)
    assert is_own(own) is False


@pytest.mark.parametrize("suffix", [".spd", ".wav", ".flac"])
@pytest.mark.parametrize("content", [b"", b"song", bytes(70_000), b"fLaC" + bytes(70_000)])
def test_other_files_are_not_its_own(tmp_path, suffix, content):
    """Other files are not owned, whatever their content."""
    path = tmp_path / f"a{suffix}"
    path.write_bytes(content)
    assert is_own(path) is False


def test_pipes_and_links_are_not_opened(tmp_path):
    """A pipe, which would block, and a link, which leads elsewhere, are not opened."""
    write(tmp_path / "a.spd")
    os.mkfifo(tmp_path / "pipe.spd")
    (tmp_path / "link.spd").symlink_to("a.spd")
    assert is_own(tmp_path / "pipe.spd") is None
    assert is_own(tmp_path / "link.spd") is None


# ---- the folder


@pytest.fixture
def folder(tmp_path):
    made = RecordingFolder(tmp_path / "night" / "pond", CONFIG, OWNER, Clock())
    made.made()
    yield made
    made.release()


def age(path, days=2.0):
    then_s = time.time() - days * 86400
    os.utime(path, (then_s, then_s))
    return path


def test_many_files_are_looked_at_a_part_at_a_time_the_oldest_first(folder, monkeypatch):
    """Many files are examined in parts, oldest first, and expired ones go in order."""
    monkeypatch.setattr(recording_folder, "CHECKED_AT_ONCE", 4)
    for k in range(10):
        age(write(folder.path / f"f{k}.spd"), days=0.55 + 0.1 * k)
    (folder.path / "song.wav").write_bytes(b"a user's")
    age(folder.path / "song.wav", days=9.0)
    deleted = []
    for _ in range(5):
        deleted += folder.tidy(0)
    assert deleted == ["f9.spd", "f8.spd", "f7.spd", "f6.spd", "f5.spd"]
    assert (folder.n_files, folder.n_untried, folder.foreign) == (5, 0, ["song.wav"])
    assert (folder.path / "song.wav").exists()


def test_old_files_that_cannot_be_read_do_not_hide_the_others(folder, monkeypatch):
    """Unreadable old files do not keep expired files from deletion."""
    monkeypatch.setattr(recording_folder, "CHECKED_AT_ONCE", 4)
    for k in range(9):
        (folder.path / f"secret{k}.spd").write_bytes(b"somebody else's")
        age(folder.path / f"secret{k}.spd", days=9.0)
    age(write(folder.path / "old.spd"), days=2.0)
    wrote = OWNER.wrote

    def wrote_if_readable(directory, name):
        return None if name.startswith("secret") else wrote(directory, name)

    monkeypatch.setattr(OWNER, "wrote", wrote_if_readable)
    deleted = folder.tidy(0)
    assert folder.n_untried == 6
    deleted += [name for _ in range(2) for name in folder.tidy(0)]
    assert deleted == ["old.spd"]
    assert folder.n_untried == 0


def test_each_file_is_read_once(folder, monkeypatch):
    """Each file is read once until it changes."""
    for k in range(3):
        write(folder.path / f"f{k}.spd")
    asked = []
    monkeypatch.setattr(OWNER, "wrote", lambda _folder, name: asked.append(name) or True)
    for _ in range(3):
        folder.tidy(0)
    assert sorted(asked) == ["f0.spd", "f1.spd", "f2.spd"]
    (folder.path / "f1.spd").write_bytes(b"another")
    folder.tidy(0)
    assert sorted(asked) == ["f0.spd", "f1.spd", "f1.spd", "f2.spd"]


def test_a_file_put_in_place_of_another_is_not_deleted(folder):
    """A file put in place of another between check and deletion is not deleted."""
    age(write(folder.path / "a.spd"))
    (file,) = folder._survey(folder.claimed)
    (folder.path / "a.spd").unlink()
    (folder.path / "b").write_text("a user's")
    (folder.path / "b").rename(folder.path / "a.spd")
    folder._delete(folder.claimed, file)
    assert (folder.path / "a.spd").read_text() == "a user's"


def test_a_recordings_folder_in_the_place_of_another_keeps_its_files(folder, tmp_path):
    """A recording does not delete another one's files if folders are swapped."""
    age(write(folder.path / "a.spd", recording="other"))
    assert folder.tidy(0) == []
    assert folder.foreign == ["a.spd"]


@pytest.mark.parametrize("name", ["night", "pond"])
def test_a_folder_behind_a_link_is_not_claimed(tmp_path, name):
    """A folder behind a link is refused for recording and for deletion."""
    target = tmp_path / "target"
    (target / "pond").mkdir(parents=True)
    base = tmp_path / "base"
    link = base / "night" / "pond" if name == "pond" else base / "night"
    link.parent.mkdir(parents=True)
    link.symlink_to(target)
    folder = RecordingFolder(base / "night" / "pond", CONFIG, OWNER, Clock(), base)
    for claim in (folder.claim, folder.made):
        with pytest.raises(StorageError, match=f"{name} is a link: links below {base} are not"):
            claim()
    assert folder.claimed is None


def test_a_moved_folder_is_not_in_place(folder, tmp_path):
    """A moved or removed folder is not in place, and one without a claim has no place to lose."""
    assert folder.is_in_place()
    folder.path.rename(tmp_path / "moved")
    assert not folder.is_in_place()
    folder.path.symlink_to(tmp_path / "moved")
    assert not folder.is_in_place()
    folder.release()
    assert folder.is_in_place()


def test_files_survive_a_conversion_but_their_mark_does_not(tmp_path):
    """A copy made by spectrod convert belongs to the user, although its rows are the same."""
    first = SegmentReader(write(tmp_path / "a.spd"))
    assert first.description.recording == ""
