"""The index of recordings: what it finds, and what hostile folders cannot make it do."""

import errno
import json
import os
import time

import numpy as np
import pytest

from spectrod.apps.web.history import recording_index, source_folder
from spectrod.apps.web.history.recording_index import RESCAN_S, RecordingIndex
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.description import Description
from spectrod.formats.pyramid import PyramidWriter
from spectrod.formats.segment.segment_writer import SegmentWriter

SPEC = SpectrumSpec(fs=1000.0, win_length=64, hop=50, nfft=64)
ABOUT = Description(SPEC, "pond", ("a",), "spectrod test")
BEGIN_NS = 1_777_680_000 * 10**9


def rows(n, begin_ns=BEGIN_NS):
    index = (begin_ns - BEGIN_NS) // 10**6 + np.arange(n, dtype=np.int64) * SPEC.hop
    t_ns = BEGIN_NS + index * 10**6
    values = np.full((n, 1, SPEC.n_values), 1e-6, np.float32)
    return SpectrumBatch(values, index, t_ns, t_ns, SPEC, "numpy")


def place(folder, name="all", source="pond"):
    made = folder / name / source
    made.mkdir(parents=True, exist_ok=True)
    return made


def segment(path, n=100, begin_ns=BEGIN_NS):
    writer = SegmentWriter(path, ABOUT)
    writer.write(rows(n, begin_ns))
    writer.finish()


class Clock:
    """A clock that stands until it is set."""

    now_s = 0.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


def found(folder, clock=time.monotonic, **options):
    index = RecordingIndex([folder], clock, **options)
    index.refresh()
    return index


def test_segments_have_the_times_of_their_rows(tmp_path):
    """Begin and end are those of the rows; a growing file has no end."""
    folder = place(tmp_path)
    segment(folder / "one.spd", 100)
    writer = SegmentWriter(folder / "two.spd", ABOUT)
    writer.write(rows(10, BEGIN_NS + 10**10))
    two, one = found(tmp_path).files("pond")
    assert (one.name, one.begin_utc_ns, one.end_utc_ns) == (
        "one.spd",
        BEGIN_NS,
        BEGIN_NS + 5 * 10**9,
    )
    assert (two.name, two.is_part, two.end_utc_ns) == ("two.spd.part", True, None)
    writer.abort()


def test_the_end_of_a_long_file_is_found_with_few_reads(tmp_path):
    """Large records cost some scanning, not the file; without the budget, the end stays open."""
    folder = place(tmp_path)
    writer = SegmentWriter(folder / "long.spd", ABOUT)
    for n in range(40):
        writer.write(rows(3000, BEGIN_NS + n * 150 * 10**9))
    writer.finish()
    size = (folder / "long.spd").stat().st_size
    (file,) = found(tmp_path, indexed_bytes=size // 2).files("pond")
    assert file.end_utc_ns == BEGIN_NS + 40 * 150 * 10**9
    (file,) = found(tmp_path, indexed_bytes=300_000).files("pond")
    assert file.end_utc_ns is None


def test_the_index_follows_changes_but_not_at_once(tmp_path, clock):
    """Folders are scanned again after some seconds: new files, finished ones, deleted ones."""
    folder = place(tmp_path)
    index = found(tmp_path, clock)
    assert index.files("pond") == []
    writer = SegmentWriter(folder / "one.spd", ABOUT)
    writer.write(rows(10))
    index.refresh()
    assert index.files("pond") == []
    clock.now_s = RESCAN_S
    index.refresh()
    assert [file.name for file in index.files("pond")] == ["one.spd.part"]
    writer.finish()
    descriptor = index.open_file(index.files("pond")[0])
    os.close(descriptor)
    clock.now_s *= 2
    index.refresh()
    assert [file.name for file in index.files("pond")] == ["one.spd"]
    (folder / "one.spd").unlink()
    clock.now_s *= 2
    index.refresh()
    assert index.files("pond") == []


def test_headers_are_read_once(tmp_path, clock, monkeypatch):
    """A scan reads only the headers of files that are new or have changed."""
    folder = place(tmp_path)
    for n in range(5):
        segment(folder / f"{n}.spd", begin_ns=BEGIN_NS + n * 10**10)
    read = []
    original = source_folder.read_beginning
    monkeypatch.setattr(
        source_folder,
        "read_beginning",
        lambda path, file: read.append(path) or original(path, file),
    )
    index = found(tmp_path, clock)
    assert len(read) == 5
    segment(folder / "5.spd")
    clock.now_s = RESCAN_S
    index.refresh()
    assert [path.name for path in read[5:]] == ["5.spd"]
    descriptions = {id(file.description) for file in index.files("pond")}
    assert len(descriptions) <= 2, "equal descriptions are shared"


def test_a_growing_file_without_rows_is_read_again(tmp_path, clock):
    """A file that had no rows at the first scan is found once it has some."""
    writer = SegmentWriter(place(tmp_path) / "one.spd", ABOUT)
    index = found(tmp_path, clock)
    assert index.files("pond") == []
    writer.write(rows(10))
    clock.now_s = RESCAN_S
    index.refresh()
    assert len(index.files("pond")) == 1
    writer.abort()


def test_a_scan_ends_in_time_and_says_what_is_left(tmp_path):
    """Files whose headers there was no time for are counted, and read by the next scans."""
    folder = place(tmp_path)
    for n in range(5):
        segment(folder / f"{n}.spd", begin_ns=BEGIN_NS + n * 10**10)
    times = [0.0] * 6
    later_s = 1.0
    index = RecordingIndex([tmp_path], lambda: times.pop() if times else later_s)
    index.refresh()
    left = 5 - len(index.files("pond"))
    assert 0 < left < 5
    assert index.left_out("pond") == [f"{left} files of recordings are not indexed yet"]
    assert index.left_out("lake") == []
    later_s = 100.0
    index.refresh()
    assert len(index.files("pond")) == 5
    assert index.left_out("pond") == []


def settle(folder):
    """Let the last change of a folder have been an hour ago."""
    then_s = time.time() - 3600.0
    os.utime(folder, (then_s, then_s))


def test_files_of_an_unchanged_folder_are_not_looked_at_again(tmp_path, clock, monkeypatch):
    """A file that grows is; all are after a minute, and as soon as a name comes or goes."""
    folder, looked = place(tmp_path), []
    status = source_folder._status
    monkeypatch.setattr(
        source_folder, "_status", lambda entry: looked.append(entry.name) or status(entry)
    )
    segment(folder / "one.spd")
    segment(folder / "two.spd")
    (folder / "three.spd.part").write_bytes(b"")
    settle(folder)
    index = found(tmp_path, clock)
    assert sorted(looked) == ["one.spd", "three.spd.part", "two.spd"]
    looked.clear()
    segment(tmp_path / "three.spd", begin_ns=BEGIN_NS + 10**12)
    (folder / "three.spd.part").write_bytes((tmp_path / "three.spd").read_bytes())
    clock.now_s += RESCAN_S
    index.refresh()
    assert (looked, len(index.files("pond"))) == ([], 3)
    clock.now_s += source_folder.FULL_SCAN_S
    index.refresh()
    assert len(looked) == 3
    looked.clear()
    (folder / "one.spd").unlink()
    clock.now_s += RESCAN_S
    index.refresh()
    assert (len(looked), len(index.files("pond"))) == (2, 2)


def test_a_change_in_the_tick_of_a_scan_is_found(tmp_path, clock):
    """The time of a folder's change tells nothing while it is that of the clock."""
    folder = place(tmp_path)
    segment(folder / "one.spd")
    index = found(tmp_path, clock)
    changed_ns = folder.stat().st_mtime_ns
    segment(folder / "two.spd")
    os.utime(folder, ns=(changed_ns, changed_ns))
    clock.now_s += RESCAN_S
    index.refresh()
    assert len(index.files("pond")) == 2


def test_folders_for_which_a_scan_had_no_time_are_said_and_scanned_later(tmp_path, monkeypatch):
    """However many names those before it have."""
    for name in ("a", "b", "c"):
        segment(place(tmp_path, name) / "one.spd")
        settle(tmp_path / name / "pond")
    clock = Clock()
    status = source_folder._status

    def slow(entry):
        clock.now_s += recording_index.SCAN_S
        return status(entry)

    monkeypatch.setattr(source_folder, "_status", slow)
    index = found(tmp_path, clock)
    assert "2 folders of recordings are not indexed yet" in index.left_out("pond")
    for _ in range(5):
        clock.now_s += RESCAN_S
        index.refresh()
    assert (index.left_out("pond"), len(index.files("pond"))) == ([], 3)


def test_links_and_other_kinds_of_files_are_not_followed(tmp_path):
    """Links at each level, FIFOs and folders named as files are ignored, and nothing waits."""
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    folder = place(outside)
    segment(folder / "one.spd")
    pyramid = PyramidWriter(folder / "pyramid", ABOUT)
    pyramid.write(rows(100))
    pyramid.finish()
    here = place(inside)
    (inside / "link").symlink_to(outside / "all")
    (inside / "all" / "lake").symlink_to(folder)
    (here / "link.spd").symlink_to(folder / "one.spd")
    (here / "pyramid").symlink_to(folder / "pyramid")
    (here / "folder.spd").mkdir()
    os.mkfifo(here / "fifo.spd")
    index = found(inside)
    assert index.files("pond") == index.files("lake") == []
    assert index.pyramids("pond") == index.pyramids("lake") == []
    (inside / "all").rename(inside / "gone")
    (tmp_path / "way").symlink_to(outside)
    assert len(found(tmp_path / "way").files("pond")) == 1, "the folder itself is the operator's"


def test_a_file_that_a_link_replaces_after_the_scan_is_not_opened(tmp_path):
    """A link that takes a file's place between scan and read is an error, not a read."""
    folder = place(tmp_path)
    segment(folder / "one.spd")
    index = found(tmp_path)
    (tmp_path / "secret").write_text("secret")
    (folder / "one.spd").unlink()
    (folder / "one.spd").symlink_to(tmp_path / "secret")
    with pytest.raises(OSError, match="symbolic links"):
        index.open_file(index.files("pond")[0])


def test_unreadable_files_are_left_out(tmp_path):
    """Empty, torn, foreign and huge damaged files are no segments, and cost a bounded read."""
    folder = place(tmp_path)
    segment(folder / "good.spd")
    data = (folder / "good.spd").read_bytes()
    (folder / "empty.spd").touch()
    (folder / "torn.spd").write_bytes(data[:100])
    (folder / "text.spd").write_text("not a segment\n" * 1000)
    with (folder / "zeros.spd").open("wb") as file:
        file.truncate(1 << 40)
    (folder / "noise.spd").write_bytes(np.random.default_rng(1).bytes(8 << 20))
    (folder / "tail.spd").write_bytes(data[:8192] + np.random.default_rng(2).bytes(8 << 20))
    (folder / "\udcff\n.spd").write_bytes(data)
    index = found(tmp_path)
    assert sorted(file.name for file in index.files("pond")) == ["good.spd", "\udcff\n.spd"]


def test_damaged_files_are_counted_while_they_are_there(tmp_path, clock):
    """Finished files and a pyramid that cannot be read; not a file that is only beginning."""
    folder = place(tmp_path)
    segment(folder / "whole.spd")
    (folder / "torn.spd").write_bytes((folder / "whole.spd").read_bytes()[:100])
    (folder / "new.spd.part").write_bytes(b"SPD")
    (folder / "pyramid").mkdir()
    (folder / "pyramid" / "pyramid.json").write_text("{")
    index = found(tmp_path, clock)
    two = ["2 files of recordings cannot be read: damaged, or of another kind"]
    assert index.damaged("pond") == two
    assert index.damaged("lake") == []
    clock.now_s += RESCAN_S
    index.refresh()
    assert index.damaged("pond") == two
    (folder / "torn.spd").unlink()
    clock.now_s += RESCAN_S
    index.refresh()
    assert index.damaged("pond") == [two[0].replace("2 files", "1 file")]


def test_numbers_of_names_are_bounded(tmp_path, monkeypatch, caplog):
    """Beyond the limits the newest files, and the first folders, are indexed; the rest is said."""
    for name in ("a", "b", "c"):
        for source in ("x", "y"):
            segment(place(tmp_path, name, source) / "one.spd")
    monkeypatch.setattr(recording_index, "SOURCES_MAX", 3)
    index = found(tmp_path)
    assert len(index.files("x")) + len(index.files("y")) == 3
    assert caplog.messages == [f"{tmp_path}: more than 3 folders of sources: the rest is left"]
    caplog.clear()
    monkeypatch.setattr(recording_index, "SOURCES_MAX", 100)
    monkeypatch.setattr(recording_index, "NAMES_MAX", 2)
    index = found(tmp_path)
    assert len(index.files("x")) == 2
    assert caplog.messages == [f"{tmp_path}: more than 2 names: the rest is left out"]
    folder = place(tmp_path / "many")
    for n in range(5):
        segment(folder / f"{n}.spd")
        os.utime(folder / f"{n}.spd", (n, n))
    monkeypatch.setattr(source_folder, "FILES_MAX", 2)
    names = {file.name for file in found(tmp_path / "many").files("pond")}
    assert names == {"3.spd", "4.spd"}


def test_hostile_pyramids_are_refused_before_their_cells_are_read(tmp_path, caplog):
    """Damaged metadata and cells of a huge size are said with the reason; segments stay."""
    folder = place(tmp_path)
    segment(folder / "one.spd")
    writer = PyramidWriter(folder / "pyramid", ABOUT)
    writer.write(rows(100))
    writer.finish()
    assert len(found(tmp_path).pyramids("pond")) == 1
    path = folder / "pyramid" / "pyramid.json"
    about = json.loads(path.read_text())
    nfft = 1 << 20
    about["spec"] |= {"nfft": nfft, "win_length": nfft}
    about |= {"group": 1, "n_values": nfft // 2 + 1}
    path.write_text(json.dumps(about))
    index = found(tmp_path)
    assert index.pyramids("pond") == []
    rule = "cells of 524289 values: must be at most 32768"
    assert caplog.messages == [f"{folder / 'pyramid'}: {rule}"]
    caplog.clear()
    path.write_text("[" * 100_000)
    index = found(tmp_path)
    assert index.pyramids("pond") == []
    assert "damaged" in caplog.messages[0]
    assert len(index.files("pond")) == 1


def test_folders_may_be_missing_or_forbidden(tmp_path, caplog, clock):
    """A folder that is not there is empty until it comes; one that is a file is said."""
    (tmp_path / "file").touch()
    index = RecordingIndex([tmp_path / "missing", tmp_path / "file"], clock)
    for _ in range(3):
        index.refresh()
        clock.now_s += RESCAN_S
    assert index.files("pond") == []
    assert caplog.messages == [f"{tmp_path / 'file'}: Not a directory"], "said once"


def test_folders_that_deny_this_user_are_said_on_the_page(tmp_path, caplog, clock, monkeypatch):
    """The log names the folder, the page only that there is one; until it is readable."""

    def denied(path):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    index = RecordingIndex([tmp_path], clock)
    with monkeypatch.context() as patch:  # no mode of a folder denies root
        patch.setattr(recording_index.Directory, "open", denied)
        index.refresh()
    assert caplog.messages == [f"{tmp_path}: Permission denied"]
    (text,) = index.left_out("pond")
    assert text.startswith("recordings: 1 of 1 folders cannot be read by this server's user;")
    clock.now_s += RESCAN_S
    index.refresh()
    assert index.left_out("pond") == []
