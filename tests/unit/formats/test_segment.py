import errno
import logging
import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from spectrod.dsp.conditions import Condition
from spectrod.formats import fileio
from spectrod.formats.segment import appending, index, segment_writer, walk
from spectrod.formats.segment.frame import HEAD_BYTES, MAGIC, Head, Kind, frame
from spectrod.formats.segment.header import Place
from spectrod.formats.segment.segment_reader import SegmentReader
from spectrod.formats.segment.segment_recovery import recover
from spectrod.formats.segment.segment_writer import SegmentWriter
from spectrod.lib.errors import BusyError, ConfigError, InputError, StorageError

sys.path.insert(0, str(Path(__file__).parents[2] / "segments"))
from segment_rows import BEGIN_UTC_NS, describe, make_batch, make_spec, rows_of, shifted

SPEC = make_spec()
ROW_NS = 1_250_000


def write(path, *batches, finish=True, **options):
    made = SegmentWriter(path, describe(batches[0].spec), **options)
    for batch in batches:
        made.write(batch)
    if finish:
        made.finish()
    return made


def read(path, **selection):
    return rows_of(SegmentReader(path).batches(**selection))


def damage(path, offset, n_bytes=1):
    """Change some bytes."""
    content = bytearray(path.read_bytes())
    for place in range(offset, offset + n_bytes):
        content[place] ^= 0x55
    path.write_bytes(content)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"channels": 3, "scaling": "dbfs"},
        {"output": "complex", "scaling": "spectrum"},
        {"channels": 4, "iq": True},
        {"win_length": 4096, "hop": 999, "nfft": 4096, "fs": 48000.0, "bands": "third-octave"},
        {"bands": "octave", "fs": 48000.0, "nfft": 512, "channels": 3, "broadband": True},
        {"averaging": "mean", "averaging_frames": 7, "nfft": 31, "win_length": 15},
    ],
)
def test_rows_and_description_come_back(tmp_path, settings):
    """Values, indices, times and the description survive unchanged."""
    spec = make_spec(**settings)
    path = tmp_path / "a.spd"
    about = describe(
        spec, cal_id="mic-7", settings={"a": {"b": [1, 2.5, None, True]}}, attributes={"title": "Ö"}
    )
    made = SegmentWriter(path, about)
    batches = [
        make_batch(spec, 0, 3),
        make_batch(spec, 3, 1, engine="opencl:x"),
        make_batch(spec, 5, 4, engine="opencl:x", skipped_rows=1),
        make_batch(spec, 20, 2, gap_samples=77, discontinuity=True),
        make_batch(spec, 22, 1, cut_frames=4),
    ]
    for batch in batches:
        made.write(batch)
    made.finish()
    reader = SegmentReader(path)
    assert reader.description == about
    assert rows_of(reader.batches()) == rows_of(batches)
    assert made.n_frames == 11
    assert made.size_bytes == path.stat().st_size
    assert reader.damaged_bytes == 0


def test_a_file_is_whole_at_every_moment(tmp_path):
    """After each batch all rows can be read from the unfinished file."""
    path = tmp_path / "a.spd"
    made = SegmentWriter(path, describe(SPEC))
    assert read(made.part) == []
    batches = []
    for first in range(0, 20, 4):
        batches.append(make_batch(SPEC, first, 4))
        made.write(batches[-1])
        assert made.part.stat().st_size == made.size_bytes
        assert read(made.part) == rows_of(batches)
    assert list(tmp_path.iterdir()) == [made.part]
    made.finish()
    assert list(tmp_path.iterdir()) == [path]
    assert read(made.part) == rows_of(batches), "an open reader of the part continues"


def test_large_batches_become_several_records(tmp_path):
    """A large batch becomes several records, with the gap in the first, and is read as one."""
    batch = make_batch(SPEC, 0, 33, gap_samples=5, discontinuity=True, skipped_rows=2)
    made = SegmentWriter(tmp_path / "a.spd", describe(SPEC), record_bytes=200)
    made.write(batch)
    made.finish()
    assert read(tmp_path / "a.spd") == rows_of([batch])
    assert (tmp_path / "a.spd").read_bytes().count(MAGIC) == 2 + 1 + 11 + 1
    assert len(list(SegmentReader(tmp_path / "a.spd").batches())) == 1


def test_an_end_without_rows_leaves_nothing(tmp_path):
    """A segment without rows leaves no file and is an error."""
    made = SegmentWriter(tmp_path / "a.spd", describe(SPEC))
    made.write(make_batch(SPEC, 0, 0))
    with pytest.raises(InputError, match=r"a\.spd: nothing to write: fewer than 16 samples"):
        made.finish()
    SegmentWriter(tmp_path / "b.spd", describe(SPEC)).abort()
    assert list(tmp_path.iterdir()) == []


def test_rows_outlive_an_abort(tmp_path):
    """After an abort the rows stay in the unfinished file."""
    made = write(tmp_path / "a.spd", make_batch(SPEC, 0, 3), finish=False)
    made.abort()
    made.abort()
    assert list(tmp_path.iterdir()) == [made.part]
    assert len(read(made.part)) == 3


def test_an_aborted_copy_leaves_no_rows(tmp_path, disk):
    """A copy leaves no part of its rows, neither after an abort nor after a failed end."""
    for name in ("a", "b"):
        made = SegmentWriter(tmp_path / f"{name}.spd", describe(SPEC), is_copy=True)
        made.write(make_batch(SPEC, 0, 3))
        if name == "a":
            made.abort()
        else:
            disk.cannot_sync = errno.EIO
            with pytest.raises(StorageError, match=r"b\.spd: Input/output error"):
                made.finish()
        made.abort()
        assert list(tmp_path.iterdir()) == []


def test_engines_are_numbered_as_far_as_numbers_go(tmp_path, monkeypatch):
    """More engines than the format can number are an error before a write."""
    monkeypatch.setattr(segment_writer, "ENGINES_MAX", 2)
    made = SegmentWriter(tmp_path / "b.spd", describe(SPEC))
    for row, engine in enumerate("abab"):
        made.write(make_batch(SPEC, row, 1, engine=engine))
    with pytest.raises(ConfigError, match=r"b\.spd: more than 2 engines"):
        made.write(make_batch(SPEC, 4, 1, engine="c"))
    made.finish()
    assert [batch.engine for batch in SegmentReader(made.path).batches()] == list("abab")


def test_another_analysis_is_refused(tmp_path):
    """Rows of another analysis are refused."""
    made = SegmentWriter(tmp_path / "a.spd", describe(SPEC))
    with pytest.raises(ConfigError, match=r"a\.spd: the analysis has changed"):
        made.write(make_batch(make_spec(hop=11), 0, 1))
    wrong = make_batch(SPEC, 0, 1)
    with pytest.raises(ConfigError, match="values of float64: must be float32 with this spec"):
        made.write(replace(wrong, values=wrong.values.astype(np.float64)))
    made.abort()


def test_settings_that_json_does_not_hold_are_refused(tmp_path):
    """Settings that JSON cannot express are refused, and no file is created."""
    with pytest.raises(ConfigError, match="settings of 'mic': must fit in JSON"):
        SegmentWriter(tmp_path / "a.spd", describe(SPEC, settings={"a": object()}))
    assert list(tmp_path.iterdir()) == []


def test_names_that_are_no_text_are_stored_with_question_marks(tmp_path):
    """A file name that is not text is stored with question marks."""
    made = SegmentWriter(tmp_path / "a.spd", describe(SPEC, settings={"uri": "x\udcff.wav"}))
    made.write(make_batch(SPEC, 0, 1, engine="numpy"))
    made.finish()
    assert SegmentReader(made.path).description.settings == {"uri": "x?.wav"}


def test_nobody_writes_over_an_unfinished_file(tmp_path):
    """An unfinished file, in use or left by a crash, is not overwritten."""
    path = tmp_path / "a.spd"
    first = write(path, make_batch(SPEC, 0, 1), finish=False)
    with pytest.raises(BusyError, match=r"a\.spd\.part: another program is writing it"):
        SegmentWriter(path, describe(SPEC))
    with pytest.raises(BusyError, match=r"a\.spd\.part: another program is writing it"):
        recover(first.part)
    first.abort()
    with pytest.raises(StorageError, match=r"a\.spd\.part: is left of a recording that broke off"):
        SegmentWriter(path, describe(SPEC))
    assert len(read(first.part)) == 1


def test_files_cannot_be_made_everywhere(tmp_path):
    """A missing folder is an error with the final name."""
    with pytest.raises(StorageError, match=r"no/a\.spd: No such file or directory"):
        SegmentWriter(tmp_path / "no" / "a.spd", describe(SPEC))


# ---- failing disks


class Disk:
    """A replacement for ``os`` whose calls fail on request, after some bytes of a write."""

    def __init__(self):
        self.error = 0
        self.room = 0
        self.cannot_cut = False
        self.syncs = 0
        self.cannot_sync = 0

    def __getattr__(self, name):
        return getattr(os, name)

    def pwrite(self, descriptor, data, offset):
        if not self.error:
            return os.pwrite(descriptor, data[: max(1, len(data) // 2)], offset)
        if self.room:
            n, self.room = os.pwrite(descriptor, data[: self.room], offset), 0
            return n
        raise OSError(self.error, os.strerror(self.error))

    def ftruncate(self, descriptor, size):
        if self.cannot_cut:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        os.ftruncate(descriptor, size)

    def fdatasync(self, descriptor):
        self.syncs += 1
        if self.cannot_sync:
            raise OSError(self.cannot_sync, os.strerror(self.cannot_sync))
        os.fdatasync(descriptor)


@pytest.fixture
def disk(monkeypatch):
    made = Disk()
    monkeypatch.setattr(appending, "os", made)
    monkeypatch.setattr(fileio, "os", made)
    return made


@pytest.mark.parametrize("cannot_cut", [False, True])
@pytest.mark.parametrize("room", [0, 1, HEAD_BYTES, 150])
def test_a_batch_is_taken_whole_or_not_at_all(tmp_path, disk, room, cannot_cut):
    """A batch is written completely or not at all, and writing continues when there is space."""
    batches = [make_batch(SPEC, 0, 2), make_batch(SPEC, 2, 3, engine="other")]
    made = SegmentWriter(tmp_path / "a.spd", describe(SPEC))
    made.write(batches[0])
    size = made.size_bytes
    disk.error, disk.room, disk.cannot_cut = errno.ENOSPC, room, cannot_cut
    for reason in ("No space left", "Input/output error" if cannot_cut else "No space"):
        with pytest.raises(StorageError, match=rf"a\.spd: {reason}"):
            made.write(batches[1])
        assert made.size_bytes == size
        assert read(made.part) == rows_of(batches[:1])
    disk.error, disk.cannot_cut = 0, False
    made.write(batches[1])
    made.finish()
    assert read(made.path) == rows_of(batches)
    assert SegmentReader(made.path).damaged_bytes == 0


def test_a_batch_that_cannot_be_synchronised_is_not_taken(tmp_path, disk):
    """A batch that cannot be synced is not accepted, so a retry does not duplicate its rows."""
    batch = make_batch(SPEC, 0, 2)
    made = SegmentWriter(tmp_path / "a.spd", describe(SPEC), fsync_s=0.0)
    disk.cannot_sync = errno.EIO
    with pytest.raises(StorageError, match=r"a\.spd: Input/output error"):
        made.write(batch)
    assert made.n_frames == 0
    disk.cannot_sync = 0
    made.write(batch)
    made.finish()
    assert read(made.path) == rows_of([batch])


def test_files_are_synchronised_at_the_interval(tmp_path, disk, monkeypatch):
    """A file is synced at the interval, and only if there is new data."""
    now_s = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now_s[0])
    made = SegmentWriter(tmp_path / "a.spd", describe(SPEC), fsync_s=5.0)
    before = disk.syncs
    seen = []
    for row in range(8):
        now_s[0] += 2.0
        made.write(make_batch(SPEC, row, 1))
        seen.append(disk.syncs - before)
    assert seen == [0, 0, 1, 1, 1, 2, 2, 2]
    made.flush()
    made.flush()
    assert disk.syncs - before == 3
    made.finish()


def test_a_full_disk_does_not_keep_a_file_from_its_name(tmp_path, disk, caplog):
    """On a full disk a file still gets its final name, without the index that speeds up search."""
    batch = make_batch(SPEC, 0, 3)
    made = write(tmp_path / "a.spd", batch, finish=False)
    disk.error, disk.room = errno.ENOSPC, 20
    made.finish()
    assert "a.spd: is slower to search: no index: No space left on device" in caplog.text
    assert read(made.path) == rows_of([batch])
    assert read(made.path, start_row=2) == rows_of([make_batch(SPEC, 0, 3)])[2:]


def test_a_removed_file_is_noticed(tmp_path):
    """A removed file is detected within the interval and is an error."""
    made = write(tmp_path / "a.spd", make_batch(SPEC, 0, 1), finish=False, fsync_s=0.0)
    assert not made.is_gone
    made.part.unlink()
    with pytest.raises(StorageError, match=r"a\.spd: was removed while it was being written"):
        made.write(make_batch(SPEC, 1, 1))
    assert made.is_gone
    with pytest.raises(StorageError, match="was removed"):
        made.finish()


# ---- search


@pytest.mark.parametrize("records", [1, 7, 2048, 5000])
def test_the_index_stays_small_and_finds_every_row(records):
    """The small index finds every row and reads few extra ones."""
    made = index.SparseIndex(entries_max=64)
    for k in range(records):
        made.add(index.IndexEntry(3 * k, 1000 + 10 * k, 500 + k), 3)
    payload = made.encode(["numpy"])
    assert index.index_length(payload) == len(payload) < 3000
    stored = index.StoredIndex(payload)
    assert (stored.rows, stored.engines) == (3 * records, ("numpy",))
    step = -(-records // 32) if records > 64 else 1
    for k in range(0, records, 11):
        assert k - step <= stored.offset_of_row(3 * k + 2) - 500 <= k
        assert k - 2 * step <= stored.offset_of_time(1000 + 10 * k) - 500 <= k
    assert stored.offset_of_row(1 << 60) - 500 >= records - step


def test_times_out_of_order_are_found(tmp_path):
    """After the clock was set back, search finds the first row of a time."""
    made = index.SparseIndex()
    for k, t_utc_ns in enumerate([10, 20, 30, 15, 25, 35]):
        made.add(index.IndexEntry(k, t_utc_ns, k), 1)
    assert index.StoredIndex(made.encode([])).offset_of_time(25) == 1


@pytest.mark.parametrize("is_finished", [True, False])
@pytest.mark.parametrize("n", [1, 3])
def test_rows_are_chosen_by_time_and_by_number(tmp_path, n, is_finished):
    """Rows are selected exactly from start to stop, with and without an index."""
    batches = [make_batch(SPEC, first, n, engine=f"e{first % 2}") for first in range(0, 60, n)]
    made = write(tmp_path / "a.spd", *batches, finish=is_finished)
    path = made.path if is_finished else made.part
    whole = rows_of(batches)
    for start, stop in [(0, 60), (1, 59), (17, 18), (31, 31), (59, 200), (60, 61)]:
        assert read(path, start_row=start, stop_row=stop) == whole[start:stop]
        times = [BEGIN_UTC_NS + ROW_NS * row for row in (start, stop)]
        assert read(path, start_utc_ns=times[0], stop_utc_ns=times[1]) == whole[start:stop]
    later = BEGIN_UTC_NS + 1
    assert read(path, start_utc_ns=later) == whole[1:]
    assert SegmentReader(path).span_utc_ns() == (BEGIN_UTC_NS, BEGIN_UTC_NS + 60 * ROW_NS)
    made.abort()


def test_a_part_does_not_start_with_a_gap(tmp_path):
    """A part has no gap before its first row."""
    gap = shifted(make_batch(SPEC, 2, 2), 500, gap_samples=500, discontinuity=True)
    write(tmp_path / "a.spd", make_batch(SPEC, 0, 2), gap)
    (part,) = SegmentReader(tmp_path / "a.spd").batches(start_row=2)
    assert (part.gap_samples, part.discontinuity, part.n_frames) == (0, False, 2)
    (_, behind) = SegmentReader(tmp_path / "a.spd").batches(start_row=1)
    assert (behind.gap_samples, behind.discontinuity) == (500, True)


# ---- several segments


def write_three(folder, n_rows=4):
    """Write three segments of one recording, whose names do not follow their order."""
    place, batches = None, []
    for number, name in enumerate(["b", "c", "a"]):
        batches.append(make_batch(SPEC, number * n_rows, n_rows))
        place = write(folder / f"{name}.spd", batches[-1], place=place).next_place
    return batches


def test_segments_follow_on_one_another(tmp_path):
    """A folder of segments reads like one file, whatever the names."""
    batches = write_three(tmp_path)
    reader = SegmentReader(tmp_path)
    assert [path.name for path in reader.paths] == ["b.spd", "c.spd", "a.spd"]
    assert rows_of(reader.batches()) == rows_of(batches)
    assert read(tmp_path, start_row=5, stop_row=9) == rows_of(batches)[5:9]
    assert read(tmp_path, start_utc_ns=BEGIN_UTC_NS + 9 * ROW_NS) == rows_of(batches)[9:]
    assert len(list(reader.batches())) == 1


def test_a_missing_segment_is_a_gap(tmp_path):
    """A missing segment is a gap of the length that the sample indices skip."""
    write_three(tmp_path)
    (tmp_path / "c.spd").unlink()
    first, behind = SegmentReader(tmp_path).batches()
    assert (first.n_frames, behind.n_frames) == (4, 4)
    assert (behind.gap_samples, behind.discontinuity) == (40, True)


def test_a_segment_that_cannot_be_read_is_a_gap(tmp_path, caplog):
    """An unreadable segment in a folder is skipped with a warning and becomes a gap."""
    write_three(tmp_path)
    (tmp_path / "c.spd").write_bytes(b"RIFF")
    assert len(read(tmp_path)) == 8
    assert "c.spd: must be a segment of spectrod's, with an intact header; it is left out" in (
        caplog.text
    )


def test_recordings_follow_on_one_another(tmp_path):
    """Sample indices of later recordings continue across the time between recordings."""
    later = make_batch(SPEC, 0, 2)
    later = replace(later, t_utc_ns=later.t_utc_ns + 10**9)
    write(tmp_path / "z.spd", make_batch(SPEC, 0, 4))
    write(tmp_path / "a.spd", later)
    first, second = SegmentReader(tmp_path).batches()
    assert first.n_frames == 4
    assert (second.gap_samples, second.discontinuity) == (8000 - 40, True)
    np.testing.assert_array_equal(second.sample_index, [8000, 8010])
    np.testing.assert_array_equal(second.t_utc_ns, later.t_utc_ns)
    with pytest.raises(InputError, match="rows have numbers in one recording: it has several"):
        SegmentReader(tmp_path).batches(start_row=1)


def test_a_folder_that_is_no_recording_is_refused(tmp_path):
    """A folder of unrelated files, or of none, is refused in one line."""
    with pytest.raises(InputError, match=r"must hold segments, \*\.spd"):
        SegmentReader(tmp_path)
    write(tmp_path / "a.spd", make_batch(SPEC, 0, 1))
    write(tmp_path / "b.spd", make_batch(make_spec(hop=9), 0, 1))
    with pytest.raises(InputError, match=r"a\.spd and b\.spd are of different analyses"):
        SegmentReader(tmp_path)
    (tmp_path / "b.spd").write_bytes((tmp_path / "a.spd").read_bytes())
    with pytest.raises(InputError, match=r"a\.spd and b\.spd are the same part of a recording"):
        SegmentReader(tmp_path)
    for name in ("a", "b"):
        (tmp_path / f"{name}.spd").write_bytes(b"")
    with pytest.raises(InputError, match="none of its 2 segments can be read"):
        SegmentReader(tmp_path)


@pytest.mark.parametrize("content", [b"", b"SPD", b"RIFF" + bytes(5000), MAGIC + bytes(9000)])
def test_other_files_are_refused(tmp_path, content):
    """Other files are refused in one line, whatever their content."""
    (tmp_path / "a.spd").write_bytes(content)
    with pytest.raises(InputError, match=r"a\.spd: must be a segment of spectrod's"):
        SegmentReader(tmp_path / "a.spd")
    with pytest.raises(StorageError, match=r"b\.spd: No such file"):
        SegmentReader(tmp_path / "b.spd")


def test_a_disk_that_cannot_be_read_is_one_error(tmp_path, monkeypatch):
    """A read error is one line with the file and the reason, and does not look like the end."""
    write(tmp_path / "a.spd", *(make_batch(SPEC, row, 1, engine=f"e{row}") for row in range(3)))
    batches = SegmentReader(tmp_path / "a.spd").batches()
    next(batches)

    def fail(*_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(walk.Walk, "_read", fail)
    with pytest.raises(StorageError, match=r"a\.spd: Input/output error"):
        next(batches)


# ---- damage


def test_damaged_values_cost_their_record_alone(tmp_path, caplog):
    """Damaged values lose one record, with a gap and a warning that gives the place."""
    batches = [make_batch(SPEC, first, 2) for first in range(0, 10, 2)]
    made = write(tmp_path / "a.spd", *batches)
    content = made.path.read_bytes()
    damage(made.path, content.index(batches[2].values.tobytes()) + 3)
    reader = SegmentReader(made.path)
    before, behind = reader.batches()
    assert rows_of([before]) == rows_of(batches[:2])
    assert (behind.gap_samples, behind.discontinuity) == (20, True)
    assert rows_of([replace(behind, gap_samples=0, discontinuity=False)]) == rows_of(batches[3:])
    assert reader.damaged_bytes == HEAD_BYTES + 2 * (24 + 36)
    assert f"a.spd: {reader.damaged_bytes} bytes from" in caplog.text


@pytest.mark.parametrize("scan_bytes", [HEAD_BYTES, HEAD_BYTES + 1, 200, 1 << 20])
def test_a_damaged_head_costs_its_record_alone(tmp_path, monkeypatch, scan_bytes):
    """After a damaged record header, a search finds the next one, even among similar values."""
    monkeypatch.setattr(walk, "_SCAN_BYTES", scan_bytes)
    batches = [make_batch(SPEC, first, 2) for first in range(0, 10, 2)]
    traps = np.frombuffer(MAGIC * 18, "<f4").reshape(2, 1, 9)
    batches[2] = replace(batches[2], values=traps)
    made = write(tmp_path / "a.spd", *batches)
    head = made.path.read_bytes().index(traps.tobytes()) - 48 - HEAD_BYTES
    damage(made.path, head, 8)
    rows = read(made.path)
    assert [row[0] for row in rows] == [row[0] for row in rows_of(batches[:2] + batches[3:])]
    assert [row[5] for row in rows] == [0, 0, 0, 0, 20, 0, 0, 0]


def test_one_damaged_header_is_no_loss(tmp_path):
    """The file header exists twice, so damage to one copy loses nothing."""
    for offset in (0, 2, 80, 4096, 4200):
        path = tmp_path / f"{offset}.spd"
        batch = make_batch(SPEC, 0, 3)
        write(path, batch)
        damage(path, offset)
        assert read(path) == rows_of([batch])


def test_a_later_version_is_refused(tmp_path):
    """A file of a later version is refused."""
    for document, reason in [
        (b'{"schema": "spectrod.segment", "v": 2}', "header of version 2: must be 1"),
        (b'{"schema": "spectrod.segment", "v": 1}', "header that cannot be read: .*missing"),
        (b'{"schema": "another", "v": 1}', "header that cannot be read: Invalid enum value"),
        (b"\xff", "header that cannot be read: "),
    ]:
        (tmp_path / "a.spd").write_bytes(frame(Head(Kind.HEADER, 1, 0, 0), document))
        with pytest.raises(StorageError, match=rf"a\.spd: {reason}"):
            SegmentReader(tmp_path / "a.spd")


def test_blocks_of_other_recordings_are_no_rows(tmp_path):
    """Blocks of deleted files after the end are not read as rows of this file."""
    batch = make_batch(SPEC, 0, 3)
    other = write(tmp_path / "b.spd", make_batch(SPEC, 0, 9))
    made = write(tmp_path / "a.spd", batch, finish=False)
    made.abort()
    with made.part.open("ab") as file:
        file.write(other.path.read_bytes())
    assert read(made.part) == rows_of([batch])
    assert recover(made.part).rows == 3
    assert read(made.path) == rows_of([batch])


# ---- recovery


def test_recovery_makes_a_file_whole(tmp_path, caplog):
    """Recovery cuts a torn tail, writes the index and gives the file its name."""
    caplog.set_level(logging.INFO)
    batches = [make_batch(SPEC, 0, 2), make_batch(SPEC, 2, 3, engine="b"), make_batch(SPEC, 5, 1)]
    made = write(tmp_path / "a.spd", *batches, finish=False)
    made.abort()
    torn = made.part.read_bytes()[:-5]
    made.part.write_bytes(torn)
    recovered = recover(made.part)
    assert (recovered.path, recovered.rows) == (made.path, 5)
    assert recovered.cut_bytes == HEAD_BYTES + 60 - 5
    assert list(tmp_path.iterdir()) == [made.path]
    assert read(made.path) == rows_of(batches[:2])
    assert read(made.path, start_row=4) == rows_of(batches[:2])[4:]
    assert SegmentReader(made.path).damaged_bytes == 0
    assert "a.spd: 5 rows are whole; 131 bytes of a torn end cut off" in caplog.text


def test_recovery_makes_the_same_file_as_finishing(tmp_path):
    """Recovery of an intact file gives the bytes that finishing would have written."""
    place = Place(7)
    batches = [make_batch(SPEC, 0, 2), make_batch(SPEC, 2, 3, engine="b")]
    unfinished = write(tmp_path / "a.spd", *batches, place=place, finish=False)
    unfinished.abort()
    copy = tmp_path / "b.spd.part"
    copy.write_bytes(unfinished.part.read_bytes())
    recover(copy)
    recover(unfinished.part)
    finished = write(tmp_path / "c.spd", *batches, place=place).path
    begin = 2 * 4096  # headers contain the time
    assert (tmp_path / "b.spd").read_bytes()[begin:] == finished.read_bytes()[begin:]


def test_recovery_keeps_intact_records_after_damage(tmp_path):
    """Recovery keeps intact records after damage, counts the damage and cuts only the end."""
    batches = [make_batch(SPEC, first, 2) for first in range(0, 8, 2)]
    made = write(tmp_path / "a.spd", *batches, finish=False)
    made.abort()
    damage(made.part, made.part.read_bytes().index(batches[1].values.tobytes()))
    with made.part.open("ab") as file:
        file.write(bytes(5000))
    recovered = recover(made.part)
    assert (recovered.rows, recovered.cut_bytes) == (6, 5000)
    assert recovered.damaged_bytes == HEAD_BYTES + 2 * 60
    assert len(read(made.path)) == 6


def test_recovery_of_a_file_without_rows(tmp_path, caplog):
    """Recovery removes a file without rows and renames one that may have had some."""
    made = SegmentWriter(tmp_path / "a.spd", describe(SPEC))
    kept = made.part.read_bytes()
    made.abort()
    (tmp_path / "a.spd.part").write_bytes(kept)
    assert recover(tmp_path / "a.spd.part").path is None
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "a.spd.part").write_bytes(kept + b"SPD")
    aside = recover(tmp_path / "a.spd.part").path
    assert aside.read_bytes() == kept + b"SPD"
    aside.unlink()
    for size in (0, 100, 8192):
        (tmp_path / "a.spd.part").write_bytes(bytes(size))
        assert recover(tmp_path / "a.spd.part").cut_bytes == size
        assert list(tmp_path.iterdir()) == []
    (tmp_path / "a.spd.part").write_bytes(bytes(8193))
    recovered = recover(tmp_path / "a.spd.part")
    assert recovered.path == tmp_path / "a.spd.part.damaged"
    assert (recovered.rows, recovered.damaged_bytes) == (0, 8193)
    assert list(tmp_path.iterdir()) == [recovered.path]
    assert caplog.text.count("a.spd.part: ") == 6


def test_recovery_replaces_nothing(tmp_path):
    """Recovery replaces neither a finished file nor a file of another kind."""
    made = write(tmp_path / "a.spd", make_batch(SPEC, 0, 2))
    (tmp_path / "a.spd.part").write_bytes(made.path.read_bytes())
    with pytest.raises(StorageError, match=r"a\.spd exists and is not replaced"):
        recover(tmp_path / "a.spd.part")
    with pytest.raises(InputError, match=r"a\.spd: must end in \.part"):
        recover(made.path)
    with pytest.raises(StorageError, match=r"b\.spd\.part: No such file"):
        recover(tmp_path / "b.spd.part")


GOOD, CLIPPED = Condition.CHECKED, Condition.CHECKED | Condition.CLIPPING


def marked(batch, *conditions):
    """Return a batch of which each row has these conditions, of the first signal."""
    found = np.full((batch.n_frames, batch.spec.n_signals), GOOD, np.uint8)
    found[:, 0] = conditions
    return replace(batch, conditions=found)


@pytest.mark.parametrize("channels", [1, 3])
def test_conditions_come_back(tmp_path, channels):
    """Rows have the conditions that they were written with; those of rows without are unknown."""
    spec = make_spec(channels=channels)
    first = marked(make_batch(spec, 0, 3), GOOD, GOOD, GOOD)
    second = marked(make_batch(spec, 3, 2), CLIPPED, GOOD)
    third = make_batch(spec, 5, 2)
    path = tmp_path / "a.spd"
    write(path, first, second, third)
    found = [one.conditions for one in SegmentReader(path).batches()]
    joined = np.concatenate([first.conditions, second.conditions])
    np.testing.assert_array_equal(found[0], joined)
    assert (found[1], len(found)) == (None, 2)
    for begin in range(1, 5):
        (part, *_) = SegmentReader(path).batches(start_row=begin)
        np.testing.assert_array_equal(part.conditions, joined[begin:])


def test_good_rows_take_no_more_bytes(tmp_path):
    """Only rows with a condition need a record of their own."""
    batch = make_batch(SPEC, 0, 3)
    sizes = [
        write(tmp_path / f"{name}.spd", one).size_bytes
        for name, one in {
            "unknown": batch, "good00": marked(batch, GOOD, GOOD, GOOD),
            "clipped": marked(batch, GOOD, CLIPPED, GOOD),
        }.items()
    ]  # fmt: skip
    assert sizes[0] == sizes[1]
    assert sizes[2] - sizes[1] == HEAD_BYTES + 3 * SPEC.n_signals


def test_an_index_leads_to_the_conditions_of_its_rows(tmp_path):
    """Rows that are found by the index, of a whole and of a recovered segment, have theirs."""
    batches = [marked(make_batch(SPEC, k, 1), CLIPPED if k % 2 else GOOD) for k in range(40)]
    write(tmp_path / "a.spd", *batches)
    write(tmp_path / "b.spd", *batches, finish=False).abort()
    assert recover(tmp_path / "b.spd.part").rows == 40
    for name in ("a.spd", "b.spd"):
        reader = SegmentReader(tmp_path / name)
        found = np.concatenate([one.conditions for one in reader.batches(start_row=31)])
        assert found[:, 0].tolist() == [CLIPPED, GOOD] * 4 + [CLIPPED]


def test_damaged_conditions_are_unknown(tmp_path):
    """Rows whose record of conditions is damaged are whole, and nobody checked them."""
    path = tmp_path / "a.spd"
    batch = marked(make_batch(SPEC, 0, 3), CLIPPED, GOOD, GOOD)
    size = write(path, batch).size_bytes
    with path.open("rb") as file:
        (offset,) = (one.offset for one in walk.Walk(file) if one.head.kind == Kind.CONDITIONS)
    assert offset < size
    damage(path, offset + HEAD_BYTES)
    (found,) = SegmentReader(path).batches()
    assert found.conditions is None
    assert rows_of([found]) == rows_of([replace(batch, conditions=None)])


def test_conditions_of_another_length_are_an_error(tmp_path):
    """A record of conditions has one byte for each row and signal."""
    path = tmp_path / "a.spd"
    made = SegmentWriter(path, describe(SPEC))
    made.write(make_batch(SPEC, 0, 3))
    head = Head(Kind.CONDITIONS, made.place.recording, made._seq, 3)
    made._append(head, b"\1" * (2 * SPEC.n_signals))
    made.write(make_batch(SPEC, 3, 3))
    made.finish()
    with pytest.raises(StorageError, match=rf"bytes: must be 3 rows of {SPEC.n_signals}$"):
        list(SegmentReader(path).batches())
