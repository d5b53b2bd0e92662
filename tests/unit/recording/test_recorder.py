"""A recording without its thread: the distribution of rows and samples to files."""

import errno
import os
import random
import re
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from spectrod.config.settings import RecordingConfig
from spectrod.dsp.blocks import Block
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.pyramid import PyramidReader
from spectrod.formats.segment import segment_writer
from spectrod.formats.segment.segment_reader import SegmentReader
from spectrod.lib.errors import StorageError
from spectrod.lib.events import EventLog
from spectrod.recording import recording_folder
from spectrod.recording.configured import ConfiguredRecording, Recorded
from spectrod.recording.recorder_clock import Clock

NS = 1_000_000_000
FS = 1000.0
NOON_NS = 1_780_315_200 * NS  # 2026-06-01T12:00:00Z, a Monday
SPEC = SpectrumSpec(FS, win_length=64, hop=100, nfft=64, scaling="spectrum")  # ten rows per second


class FastClock(Clock):
    """A clock that the test advances."""

    def __init__(self):
        self.now_s = 0.0

    def utc_ns(self):
        return NOON_NS + round(self.now_s * NS)

    def monotonic_s(self):
        return self.now_s


class Machine:
    """A recording whose spectra and sound contain their own row and sample numbers."""

    def __init__(self, place, **settings):
        self.folder = place / "site"
        self.clock, self.events = FastClock(), EventLog()
        settings = {"min_free_mb": 0.0, "rotate_s": 0} | settings
        self.config = RecordingConfig("night", **settings)
        self.config.check()
        self.spec, self.gap_samples = SPEC, 0
        self.begin()

    def begin(self):
        recorded = Recorded("pond", ("0",), FS, "spectrod test", lambda: {"hop": 100})
        self.recording = ConfiguredRecording(
            self.config, recorded, self.folder, self.events, self.clock
        )
        self.recording.start()

    def play(self, seconds, rows_a_batch=5):
        """Push spectra and samples of some seconds, and tick at their time."""
        n_batches = round(seconds * 10) // rows_a_batch
        for _ in range(n_batches):
            self.recording.write(self.block(rows_a_batch * 100))
            self.recording.write(self.batch(rows_a_batch))
            self.clock.now_s = round(self.clock.now_s + rows_a_batch / 10, 3)
            self.recording.tick()

    def batch(self, n_rows):
        first = round(self.clock.now_s * 10)
        rows = first + np.arange(n_rows)
        values = np.repeat(rows.astype(np.float32), self.spec.n_values).reshape(n_rows, 1, -1)
        t_utc_ns = NOON_NS + rows * (NS // 10)
        gap_samples, self.gap_samples = self.gap_samples, 0
        return SpectrumBatch(
            values, rows * 100, t_utc_ns - NOON_NS, t_utc_ns, self.spec, "numpy", gap_samples
        )

    def block(self, n):
        first = round(self.clock.now_s * FS)
        samples = ((first + np.arange(n)) % 30000 / 32768).astype(np.float32)
        return Block(samples[None], first, 0, NOON_NS + first * NS // 1000, fs=FS)

    def trigger(self, t_ns):
        self.recording.trigger(t_ns, t_ns, "asked for")

    def files(self, suffix=".spd"):
        return sorted(one.name for one in self.folder.iterdir() if one.name.endswith(suffix))

    def rows(self, name):
        """Return the rows in a file, and each gap with the row after it."""
        batches = list(SegmentReader(self.folder / name).batches())
        gaps = [(int(b.values[0, 0, 0]), b.gap_samples) for b in batches if b.gap_samples]
        return np.concatenate([b.values[:, 0, 0] for b in batches]).astype(int).tolist(), gaps

    def reported(self, kind=""):
        return [one.text for one in self.events.since() if one.kind.startswith(kind)]


@pytest.fixture
def machine(tmp_path):
    random.seed(7)  # the wait before a retry is random
    return lambda **settings: Machine(tmp_path, **settings)


@pytest.mark.parametrize("rows_a_batch", [7, 50])
def test_files_end_at_whole_times_and_follow_on(machine, rows_a_batch):
    """Files end at whole times, cut to the row, without a missing or repeated row or a gap."""
    site = machine(rotate_s=2)
    site.clock.now_s = 1.0
    site.play(5.6, rows_a_batch)
    site.recording.finish()
    last = 10 + 56 // rows_a_batch * rows_a_batch
    expected = {
        "20260601T120001Z.spd": (list(range(10, 20)), []),
        "20260601T120002Z.spd": (list(range(20, 40)), []),
        "20260601T120004Z.spd": (list(range(40, min(last, 60))), []),
        "20260601T120006Z.spd": (list(range(60, last)), []),
    }
    expected = {name: held for name, held in expected.items() if held[0]}
    assert {name: site.rows(name) for name in site.files()} == expected
    whole = list(SegmentReader(site.folder).batches())
    assert sum(batch.n_frames for batch in whole) == last - 10
    assert not any(batch.discontinuity or batch.gap_samples for batch in whole[1:])
    assert site.recording.status()["rows"] == last - 10


@pytest.mark.parametrize("rule", [{"rotate_s": 2}, {"rotate_mb": 0.02}])
def test_a_recording_between_two_files_is_recording(machine, rule):
    """When a finished file is reported and the next is not open yet, the state is "recording"."""
    site, states = machine(**rule), []
    site.events = EventLog(lambda: states.append(site.recording.status()["state"]))
    site.begin()
    site.play(10.0)
    assert len(site.reported("record.file")) == 1
    assert states[-1] == "recording"
    site.recording.finish()
    assert site.recording.status()["state"] == "waiting"


def test_a_recording_whose_source_stops_between_two_files_waits(machine):
    """If nothing comes after a file has ended by its size, the recording waits once it is due."""
    site = machine(rotate_s=60, rotate_mb=0.02)
    site.play(0.5)
    while not site.files():
        site.play(0.5)
    assert site.recording.status()["state"] == "recording"
    site.clock.now_s += 90.0
    site.recording.tick()
    assert site.recording.status()["state"] == "waiting"
    site.recording.finish()


def test_files_end_at_their_size(machine):
    """A file ends with the batch that reaches its size, and the next is contiguous."""
    site = machine(rotate_mb=0.02)
    site.play(20.0)
    site.recording.finish()
    sizes = [(site.folder / name).stat().st_size for name in site.files()]
    assert len(sizes) > 2
    assert all(20_000 <= size < 21_500 for size in sizes[:-1])
    rows = [row for name in site.files() for row in site.rows(name)[0]]
    assert rows == list(range(200))


def test_a_name_that_is_taken_gets_a_number(machine):
    """If a name is taken, finished or not, the new file gets a number."""
    site = machine(file_name="%Y")
    site.folder.mkdir()
    (site.folder / "2026.spd").write_bytes(b"another's")
    (site.folder / "2026_1.spd.part.damaged").touch()
    site.play(1.0)
    site.recording.finish()
    assert site.files() == ["2026.spd", "2026_1.spd"]
    assert (site.folder / "2026.spd").read_bytes() == b"another's"


def test_times_outside_the_schedule_are_a_gap(machine):
    """Times outside the schedule or the duty cycle are gaps, and each stretch has its own file."""
    site = machine(schedule=("Mon 12:00-12:01",), on_s=2.0, off_s=3.0)
    site.play(11.0)
    assert site.recording.status()["state"] == "recording"
    site.play(60.0)
    assert site.recording.status()["state"] == "off"
    site.recording.finish()
    assert len(site.files()) == 12
    assert site.rows("20260601T120000Z.spd") == (list(range(20)), [])
    assert site.rows("20260601T120005Z.spd")[0] == list(range(50, 70))
    whole = list(SegmentReader(site.folder).batches())
    assert [batch.gap_samples for batch in whole if batch.gap_samples] == [3000] * 11
    assert site.recording.status()["lost_rows"] == 0


def test_each_event_has_a_file_with_pre_roll_and_post_roll(machine):
    """Each event has a file with its pre-roll and post-roll to the row; overlaps share one."""
    site = machine(triggers=("control",), pre_roll_s=1.0, post_roll_s=0.5)
    site.play(5.0)
    assert site.recording.status()["state"] == "armed"
    assert not site.folder.exists()
    site.trigger(NOON_NS + 5 * NS)
    site.play(1.0)
    site.trigger(NOON_NS + 6 * NS)
    site.play(6.0)
    site.trigger(NOON_NS + 12 * NS - 1)
    site.play(0.5)
    site.recording.finish()
    assert {name: site.rows(name)[0] for name in site.files()} == {
        "20260601T120004Z.spd": list(range(40, 66)),
        "20260601T120011Z.spd": list(range(110, 125)),
    }
    whole = list(SegmentReader(site.folder).batches())
    assert [batch.gap_samples for batch in whole if batch.gap_samples] == [4400]
    assert site.recording.status()["triggers"] == 2


def test_events_are_recorded_after_the_clock_is_set_back(machine):
    """After the clock is set back, events do not wait for the earlier time."""
    site = machine(triggers=("control",), pre_roll_s=1.0, post_roll_s=0.5)
    site.clock.now_s = 3600.0
    site.play(5.0)
    site.clock.now_s = 0.0
    site.play(3.0)
    site.trigger(NOON_NS + 3 * NS)
    site.play(3.0)
    assert {name: site.rows(name)[0] for name in site.files()} == {
        "20260601T120002Z.spd": list(range(20, 36)),
    }
    assert site.reported("record.pre_roll") == []


def test_a_pre_roll_that_does_not_fit_is_reported_once(machine, monkeypatch):
    """A pre-roll that exceeds memory is shortened and reported once."""
    monkeypatch.setattr("spectrod.recording.configured.HELD_MAX_BYTES", 20_000)
    site = machine(triggers=("control",), pre_roll_s=60.0, post_roll_s=1.0)
    site.play(60.0)
    site.trigger(NOON_NS + 60 * NS)
    site.play(5.0)
    site.recording.finish()
    (name,) = site.files()
    rows, _ = site.rows(name)
    assert rows == list(range(rows[0], 611))
    assert 450 < rows[0] < 600
    (reported,) = site.reported("record.pre_roll")
    assert reported.startswith(
        "night: pre_roll_s=60: needs more than 0 MB: the pre-roll is shorter"
    )


@pytest.mark.parametrize("suffix", ["wav", "flac"])
def test_sound_beside_the_spectra_is_cut_at_the_same_times(machine, suffix):
    """Sound and spectra are cut at the same times, to the sample, with the same names."""
    site = machine(rotate_s=2, samples=suffix)
    site.clock.now_s = 1.5
    site.play(3.5)
    site.recording.finish()
    names = site.files(f".{suffix}")
    assert [name.partition(".")[0] for name in names] == [n.partition(".")[0] for n in site.files()]
    parts = [soundfile.read(site.folder / name, dtype="float32")[0] for name in names]
    assert [len(part) for part in parts] == [500, 2000, 1000]
    expected = (1500 + np.arange(3500)) % 30000 / 32768
    np.testing.assert_array_equal(np.concatenate(parts), expected.astype(np.float32))


def test_samples_alone_can_be_recorded(machine):
    """A recording may have samples without spectra."""
    site = machine(spectra=False, samples="wav")
    site.play(1.0)
    site.recording.finish()
    assert (site.files(), len(site.files(".wav"))) == ([], 1)


def test_a_pyramid_continues_over_restarts_and_changes_of_the_analysis(machine):
    """A pyramid continues over restarts, and rows of another analysis get a separate one."""
    site = machine(spectra=False, pyramid=True)
    site.play(10.0)
    site.recording.finish()
    site.begin()
    site.play(10.0)
    site.spec = replace(SPEC, window="hamming")
    site.play(5.0)
    site.recording.finish()
    assert sorted(one.name for one in site.folder.iterdir()) == ["pyramid", "pyramid-2"]
    for name, window in (("pyramid", "hann"), ("pyramid-2", "hamming")):
        assert PyramidReader(site.folder / name).about.spec["window"] == window


def test_a_change_of_the_analysis_starts_a_new_recording(machine):
    """A change of the analysis starts a new file with new row numbers."""
    site = machine()
    site.play(2.0)
    site.spec = replace(SPEC, window="hamming")
    site.play(2.0)
    site.recording.finish()
    first, second = (SegmentReader(site.folder / name) for name in site.files())
    assert (first.description.spec.window, second.description.spec.window) == ("hann", "hamming")
    assert sum(batch.n_frames for batch in second.batches()) == 20


def test_a_clock_that_is_set_back_starts_a_new_file(machine):
    """If the clock is set back, a new file starts, as the old one would last too long."""
    site = machine(rotate_s=10)
    site.play(2.0)
    site.clock.now_s += 86400.0
    site.play(2.0)
    site.clock.now_s -= 86400.0
    site.play(2.0)
    site.recording.finish()
    assert site.files() == [
        "20260601T120000Z.spd", "20260601T120004Z.spd", "20260602T120002Z.spd",
    ]  # fmt: skip


def test_a_file_whose_time_is_over_ends_without_rows(machine):
    """A file ends after its time without rows, when none can be late any more."""
    site = machine(rotate_s=10)
    site.play(5.0)
    site.clock.now_s = 11.0
    site.recording.tick()
    assert site.files() == []
    site.clock.now_s = 13.0
    site.recording.tick()
    assert site.files() == ["20260601T120000Z.spd"]


# ---- retention


def test_files_are_kept_by_age(machine):
    """Files of the recording are deleted by age since their end; other files stay."""
    site = machine(rotate_s=3600, keep_days=0.25)
    site.folder.mkdir()
    (site.folder / "notes.txt").touch()
    for _ in range(12):
        site.play(10.0)
        site.clock.now_s = round(site.clock.now_s + 3590.0)
        site.recording.tick()
    assert site.files() == [f"20260601T{h}0000Z.spd" for h in range(17, 23)]
    assert (site.folder / "notes.txt").exists()
    assert any("not kept any longer" in text for text in site.reported("record.deleted"))


def test_files_are_kept_by_size(machine):
    """Files are limited by total size, including the open one, and the oldest go first."""
    site = machine(rotate_s=10, keep_mb=0.1)
    site.play(200.0)
    site.clock.now_s += 10.0
    site.recording.tick()
    sizes = {name: (site.folder / name).stat().st_size for name in site.files()}
    facts = site.recording.status()
    assert sum(sizes.values()) <= 100_000 < sum(sizes.values()) + 2 * max(sizes.values())
    assert list(sizes)[-1] == "20260601T120310Z.spd"
    assert (facts["kept_files"], facts["kept_bytes"]) == (len(sizes), sum(sizes.values()))


class Disk:
    """A disk with a given free space, less the contents of the recording's folder."""

    def __init__(self, folder, n_bytes):
        self.folder, self.n_bytes = folder, n_bytes

    def statvfs(self, _path):
        used = sum(f.stat().st_size for f in self.folder.iterdir()) if self.folder.exists() else 0
        return os.statvfs_result((1, 1, 0, 0, self.n_bytes - used, 0, 0, 0, 0, 255))


def with_disk(site, monkeypatch, n_bytes):
    disk = Disk(site.folder, n_bytes)
    monkeypatch.setattr(recording_folder.os, "statvfs", disk.statvfs)
    return disk


def test_it_stops_before_the_disk_is_full_and_resumes_by_itself(machine, monkeypatch):
    """Before the disk is full, recording stops and counts a gap; it resumes by itself."""
    site = machine(min_free_mb=0.1)
    disk = with_disk(site, monkeypatch, 150_000)
    site.play(100.0)
    facts = site.recording.status()
    assert (facts["state"], facts["files"]) == ("full", [])
    assert facts["free_bytes"] < 100_000
    assert facts["rows"] + facts["lost_rows"] == 1000
    n_rows = facts["rows"]
    assert site.rows(site.files()[0])[0] == list(range(n_rows))
    disk.n_bytes += 9_000
    site.play(1.0)
    assert site.recording.status()["state"] == "full"
    disk.n_bytes += 50_000
    site.play(2.0)
    assert site.recording.status()["state"] == "recording"
    site.recording.finish()
    # Data before the first tick that sees the space are missed, too.
    assert site.rows(site.files()[1])[0] == list(range(1015, 1030))
    whole = list(SegmentReader(site.folder).batches())
    assert [b.gap_samples for b in whole if b.gap_samples] == [(1015 - n_rows) * 100]
    (full,), (room,) = site.reported("record.full"), site.reported("record.room")
    assert "less than min_free_mb=0.1 is free" in full
    assert "has space again; recording continues" in room


def test_where_the_oldest_may_go_it_does_not_stop(machine, monkeypatch):
    """If the oldest files may be deleted, recording continues while there are any."""
    site = machine(min_free_mb=0.1, when_full="delete", rotate_s=10)
    with_disk(site, monkeypatch, 180_000)
    site.play(300.0)
    facts = site.recording.status()
    assert (facts["rows"], facts["lost_rows"]) == (3000, 0)
    assert 1 <= len(site.files()) < 10
    assert site.reported("record.full") == []


# ---- faults


def test_a_disk_error_is_reported_once_and_retried(machine, monkeypatch):
    """A disk error is reported once and retried at growing intervals, with a counted gap."""
    site = machine()
    site.play(2.0)
    real, calls = os.pwrite, []

    def fail(*_):
        calls.append(site.clock.now_s)
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(segment_writer.os, "pwrite", fail)
    site.play(120.0)
    facts = site.recording.status()
    assert facts["state"] == "failed"
    assert "Input/output error" in facts["error"]
    assert len(calls) < 40
    monkeypatch.setattr(segment_writer.os, "pwrite", real)
    site.play(60.0)
    site.recording.finish()
    facts = site.recording.status()
    assert facts["error"] == ""
    assert facts["rows"] + facts["lost_rows"] == 1820
    whole = list(SegmentReader(site.folder).batches())
    assert sum(batch.n_frames for batch in whole) == facts["rows"]
    gaps = [batch.gap_samples for batch in whole if batch.gap_samples]
    assert gaps == [facts["lost_rows"] * 100]
    (failed,), (resumed,) = site.reported("record.failed"), site.reported("record.resumed")
    assert failed.endswith("Input/output error; it is tried again")
    assert resumed == f"night: resumed; {facts['lost_rows']} rows are missing"
    assert not list(site.folder.glob("*.part"))


def test_a_folder_that_is_removed_is_made_again(machine):
    """A removed folder is recreated within the sync interval, and rows since then count as lost."""
    site = machine(fsync_s=1.0)
    site.play(2.0)
    for file in site.folder.iterdir():
        file.unlink()
    site.folder.rmdir()
    site.play(10.0)
    assert site.recording.status()["state"] == "recording"
    site.recording.finish()
    (name,) = site.files()
    rows, _ = site.rows(name)
    assert rows == list(range(rows[0], 120))
    assert rows[0] <= 35
    facts = site.recording.status()
    assert (facts["rows"], facts["lost_rows"]) == (120 - rows[0], rows[0])
    assert site.reported("record.resumed") == [f"night: resumed; {rows[0]} rows are missing"]
    (failed,) = site.reported("record.failed")
    assert "was removed while it was being written" in failed


def test_rows_of_a_removed_file_count_as_lost(machine):
    """Rows of a removed file count as lost also if the file ends before the next check."""
    site = machine(rotate_s=2)
    site.play(1.0)
    for file in site.folder.iterdir():
        file.unlink()
    site.recording.write(site.batch(20))
    site.play(3.0)
    site.recording.finish()
    facts = site.recording.status()
    kept = [row for name in site.files() for row in site.rows(name)[0]]
    assert facts["rows"] == len(kept)
    (failed,) = site.reported("record.failed")
    assert "was removed while it was being written" in failed


def test_a_folder_that_cannot_be_created_is_reported_once(machine, tmp_path):
    """A folder that cannot be created is reported once and retried."""
    (tmp_path / "site").touch()
    site = machine()
    site.play(30.0)
    assert site.recording.status()["state"] == "failed"
    (tmp_path / "site").unlink()
    site.play(60.0)  # the last attempt may have been just now, and the next one 37.5 s away
    site.recording.finish()
    assert site.recording.status()["rows"] >= 200
    (failed,) = site.reported("record.failed")
    assert "site: Not a directory" in failed


@pytest.mark.parametrize("is_left", [False, True])
def test_nothing_is_recorded_while_the_disk_is_away(machine, monkeypatch, tmp_path, is_left):
    """Without its disk a recording writes nothing below the mount point, and resumes with it."""
    place = tmp_path / "disk"
    if is_left:  # by a daemon that did not look
        (tmp_path / "site").mkdir()
    site = machine(folder=str(place), must_be_mounted=str(place))
    site.play(30.0)
    facts = site.recording.status()
    assert (facts["state"], facts["rows"], facts["lost_rows"]) == ("failed", 0, 300)
    assert facts["error"] == f"{place}: no disk is mounted there (must_be_mounted)"
    assert facts["free_bytes"] is None  # that of the root disk says nothing
    (failed,) = site.reported("record.failed")
    assert failed == f"night: {facts['error']}; it is tried again"
    assert not place.exists()
    assert not site.files() if is_left else not site.folder.exists()
    monkeypatch.setattr(recording_folder.RecordingFolder, "_is_mounted", lambda _: True)
    site.play(60.0)  # the last attempt may have been just now, and the next one 37.5 s away
    site.recording.finish()
    facts = site.recording.status()
    assert facts["rows"] >= 200
    assert facts["rows"] + facts["lost_rows"] == 900


def test_another_file_system_is_a_disk(machine):
    """A mount point of another file system is a disk; one of the same file system is none."""
    site = machine(folder="/proc/x", must_be_mounted="/proc")
    site.recording._folder._require_mounted()
    site = machine(folder="/proc/self", must_be_mounted="/proc/self")
    with pytest.raises(StorageError, match=r"^/proc/self: no disk is mounted there"):
        site.recording._folder._require_mounted()


def test_a_disk_that_does_not_answer_is_reported(machine, monkeypatch):
    """An error of the mount point itself is the reason that is reported."""
    site = machine(folder="/srv/x", must_be_mounted="/srv")

    def stat(*_, **__):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(recording_folder.Path, "stat", stat)
    assert site.recording._folder.free_bytes() is None
    with pytest.raises(StorageError, match=r"site: Input/output error$"):
        site.recording._folder.made()


def test_a_killed_daemons_file_is_recovered_at_the_next_start(machine):
    """At the next start, a killed daemon's file is cut at its torn end and gets its name."""
    site = machine(samples="wav")
    site.play(5.0)
    (part,) = site.folder.glob("*.spd.part")
    content = part.read_bytes()
    (sound,) = site.folder.glob("*.wav.part")
    of_sound = sound.read_bytes()
    site.recording.finish()
    for one in site.folder.iterdir():
        one.unlink()
    part.write_bytes(content[:-7])
    sound.write_bytes(of_sound)
    (site.folder / "x.flac.part").write_bytes(b"no sound")
    site.begin()
    assert site.files() == ["20260601T120000Z.spd"]
    assert site.rows("20260601T120000Z.spd")[0] == list(range(45))
    assert len(soundfile.read(site.folder / "20260601T120000Z.wav")[0]) == 5000
    texts = site.reported("record.recovered")
    assert any("45 rows kept" in text for text in texts)
    assert any("5000 samples kept, 0 bytes cut" in text for text in texts)
    (left,) = site.reported("record.unrecovered")
    assert "x.flac.part: is left unchanged" in left


@pytest.mark.parametrize(("suffix", "n_bytes"), [("flac", None), ("wav", 4096), ("wav", 4097)])
def test_sound_that_a_kill_ended_before_its_first_sample_is_removed(machine, suffix, n_bytes):
    """A file without a whole block or sample is removed at the next start, with one event."""
    site = machine(samples=suffix)
    site.play(3.0)  # less than a FLAC block
    (part,) = site.folder.glob(f"*.{suffix}.part")
    content = part.read_bytes()[:n_bytes]
    site.recording.finish()
    for one in site.folder.iterdir():
        one.unlink()
    part.write_bytes(content)
    site.begin()
    assert list(site.folder.iterdir()) == []
    (text,) = site.reported("record.recovered")
    what = f"without a sample in its {len(content)} bytes, it was removed"
    assert text == f"night: {part.name}: was not finished; {what}"


def test_recovery_ignores_pipes_and_links(machine, tmp_path):
    """Recovery ignores pipes, which block, and links, which lead to another user's file."""
    site = machine()
    site.folder.mkdir(exist_ok=True)
    os.mkfifo(site.folder / "a.wav.part")
    (tmp_path / "another.spd.part").write_bytes(b"another's")
    (site.folder / "b.spd.part").symlink_to(tmp_path / "another.spd.part")
    (site.folder / "c.flac.part").mkdir()
    before = sorted(site.folder.iterdir())
    site.begin()
    assert sorted(site.folder.iterdir()) == before
    assert (tmp_path / "another.spd.part").exists()
    assert site.reported("record.unrecovered") == []


def test_a_file_that_cannot_be_deleted_is_reported_once(machine, monkeypatch):
    """A file that cannot be deleted is reported once, and the recording continues."""
    site = machine(rotate_s=10, keep_days=0.0005)

    unlink = os.unlink

    def fail(path, **options):
        if str(path).endswith(".spd"):
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        unlink(path, **options)

    monkeypatch.setattr(os, "unlink", fail)
    site.play(300.0)
    (failed,) = site.reported("record.failed")
    assert re.fullmatch(r"night: cannot delete: .*\.spd: Operation not permitted", failed)
    assert site.recording.status()["rows"] == 3000


def test_a_file_of_another_program_is_recovered_after_its_end(machine):
    """An unfinished file is recovered once its writer has ended, also outside the schedule."""
    first = machine()
    first.play(2.0)
    second = machine(schedule=("Tue 00:00-01:00",))
    second.play(1.0)
    assert second.files() == []
    first.recording._folder.release()
    for writer in first.recording._writers:
        writer._output.abort()
    second.play(1.0)
    assert second.files() == ["20260601T120000Z.spd"]
    (text,) = second.reported("record.recovered")
    assert "20 rows kept" in text


def test_two_programs_do_not_take_the_same_folder(machine):
    """A second program waits for the folder without recovery or deletion until the first ends."""
    first, second = machine(), machine(keep_days=0.00001)
    first.play(2.0)
    second.begin()
    second.play(20.0)
    assert len(second.reported("record.failed")) == 1
    assert second.recording.status()["state"] == "failed"
    assert "another program records into it" in second.recording.status()["error"]
    assert len(list(first.folder.glob("*.part"))) == 1
    first.recording.finish()
    assert first.files() == ["20260601T120000Z.spd"]
    second.config = RecordingConfig("night", min_free_mb=0.0, rotate_s=0)
    second.begin()
    second.play(2.0)
    second.recording.finish()
    assert len(first.files()) == 2


FULL_DISK = """
    import resource, sys
    from pathlib import Path
    import numpy as np
    import soundfile
    sys.path.insert(0, sys.argv[1])
    from test_recorder import Machine

    site = Machine(Path(sys.argv[2]), samples="flac", spectra=False)
    noise = np.random.default_rng(5)
    one = site.block
    def block(n):
        numbered = one(n)
        numbered.samples[:] = noise.integers(-32768, 32768, (1, n)) / 32768
        return numbered
    site.block = block
    site.play(10.5)
    site.recording.tick()
    part, = Path(sys.argv[2], "site").glob("*.part")
    limit = part.stat().st_size + int(sys.argv[3])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    site.play(20.0)
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    site.play(70.0)
    site.recording.finish()
    facts = site.recording.status()
    there = sum(soundfile.info(path).frames for path in site.folder.glob("*.flac"))
    print(facts["samples"], facts["lost_samples"], there, len(site.files(".part")))
"""


@pytest.mark.slow
@pytest.mark.parametrize("n_bytes", [0, 100, 20_000])
def test_samples_that_flac_held_back_when_the_disk_was_full_count_as_lost(tmp_path, n_bytes):
    """What a FLAC encoder held for a block that never fitted is lost, not written; none is left."""
    folder = Path(__file__).parent
    command = [sys.executable, "-c", textwrap.dedent(FULL_DISK), folder, tmp_path, str(n_bytes)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    written, lost, there, n_parts = map(int, done.stdout.split())
    assert written + lost == 100_500
    assert there == written
    assert lost > 0
    assert n_parts == 0
