"""Foreign files in the folders of recordings are not written, changed or deleted.

Each test runs a daemon that records a tone into a folder in which another user may rename files and
make links.
"""

import fcntl
import os
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from spectrod.client import Control
from spectrod.config import config
from spectrod.daemon.control.controlled import ControlledDaemon
from spectrod.daemon.daemon import build_daemon
from spectrod.formats.segment.segment_reader import SegmentReader
from spectrod.lib.errors import SpectrodError

pytestmark = pytest.mark.slow

LIMIT_S = 30.0
DAY_S = 86400

TOML = """
[source]
uri = "signal:sine,1000,-20"
name = "mic"
samplerate = 48000

[engine]
engine = "numpy"

[publish]
endpoints = ["tcp://127.0.0.1:*"]

[control]
state_folder = "{state}"
requests_per_s = 10000

[recordings.r]
folder = "{share}"
min_free_mb = 0
fsync_s = 0.1
{keys}
"""


class Site:
    """A daemon that records into ``share``, and its output."""

    def __init__(self, tmp_path):
        self.share, self.state, self.victim = (
            tmp_path / name for name in ("share", "state", "victim")
        )
        self.folder = self.share / "r" / "mic"
        self._file = tmp_path / "spectrod.toml"

    @contextmanager
    def running(self, keys=""):
        """Run the daemon, and stop it after the test."""
        self._file.write_text(TOML.format(state=self.state, share=self.share, keys=keys))
        settings = config.load(os.fspath(self._file))
        self.daemon = build_daemon(settings)
        controlled = ControlledDaemon(self.daemon, settings, lambda: settings)
        controlled.start()
        try:
            with Control(controlled.endpoints[0]) as self.control:
                yield self
        finally:
            controlled.stop()

    def events(self, kind):
        found = self.control.call("events", limit=1000)
        return [event["text"] for event in found if event["kind"] == kind]

    def recorder(self):
        (facts,) = self.control.call("status")["recorders"]
        return facts

    def wait(self, is_true):
        """Wait for a condition; return its value."""
        deadline_s = time.monotonic() + LIMIT_S
        while not (found := is_true()):
            assert time.monotonic() < deadline_s, (self.recorder(), self.control.call("events"))
            self.daemon.progress.wait(0.02)
        return found

    def wait_rows(self, n_more=8):
        """Wait for more rows in files."""
        n = self.recorder()["rows"] + n_more
        self.wait(lambda: self.recorder()["rows"] >= n)


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RUNTIME_DIRECTORY", "run")  # a socket's path must be short
    made = Site(tmp_path)
    made.share.mkdir()
    made.victim.mkdir()
    return made


def plant(folder, *names, age_s=10 * DAY_S):
    """Make old finished files of another user; return their contents."""
    folder.mkdir(parents=True, exist_ok=True)
    then_s = time.time() - age_s
    for name in names:
        (folder / name).write_text(f"{name} is not the recording's")
        os.utime(folder / name, (then_s, then_s))
    return contents(folder)


def contents(folder):
    return {
        os.fspath(one.relative_to(folder)): one.read_bytes()
        for one in folder.rglob("*")
        if one.is_file()
    }


RETENTION = "keep_days = 0.0001\nkeep_mb = 0.00001\nrotate_s = 1\n"


@pytest.mark.parametrize("level", ["recording", "source"])
def test_a_link_in_place_of_a_folder_is_not_followed(level, site):
    """A link in place of a folder is not followed to delete or to write; recording resumes."""
    if level == "recording":
        before = plant(site.victim / "mic", "song.wav", "album.flac", "left.spd.part")
        link = site.share / "r"
    else:
        before = plant(site.victim, "song.wav", "album.flac", "left.spd.part")
        link = site.share / "r" / "mic"
        link.parent.mkdir()
    link.symlink_to(site.victim)
    with site.running(RETENTION):
        (text,) = site.wait(lambda: site.events("record.failed"))
        assert f"{link.name} is a link: links below {site.share} are not followed" in text
        assert site.recorder()["state"] == "failed"
        n_rows = site.daemon.stats()[0].rows
        site.wait(lambda: site.daemon.stats()[0].rows > n_rows + 20)
        assert contents(site.victim / "mic" if level == "recording" else site.victim) == before
        link.unlink()
        site.wait(lambda: site.recorder()["rows"] > 8)
    assert contents(site.victim / "mic" if level == "recording" else site.victim) == before
    assert site.folder.is_dir()


def test_the_operators_own_folder_may_be_a_link(site):
    """The operator's own folder may be a link to another disk, as only its content is guarded."""
    disk = site.victim / "disk"
    disk.mkdir()
    site.share.rmdir()
    site.share.symlink_to(disk)
    with site.running():
        site.wait_rows()
    assert list(SegmentReader(disk / "r" / "mic").batches())


def test_only_files_of_the_recording_are_deleted_or_recovered(site):
    """Foreign files in a recording's folder stay, however old, and are reported once."""
    with site.running("rotate_s = 1\nsamples = 'wav'"):
        site.wait(lambda: len(list(site.folder.glob("*.spd"))) >= 2)
    own = sorted(one.name for one in site.folder.iterdir())
    for name in own:
        if name == own[0]:
            # A copy under another name is the user's, as is a recording of another name.
            (site.folder / "kept.spd").write_bytes((site.folder / name).read_bytes())
            (site.folder / "kept.spd.part").write_bytes((site.folder / name).read_bytes())
        os.utime(site.folder / name, (0, 0))
    before = plant(site.folder, "song.wav", "album.flac", "20200101T000000Z.spd", "x.wav.part")
    left = {name: content for name, content in before.items() if name not in own}
    with site.running(RETENTION):
        site.wait(lambda: site.events("record.deleted"))
        (foreign,) = site.wait(lambda: site.events("record.foreign"))
        (unfinished,) = site.events("record.unrecovered")
        site.wait(lambda: not {one.name for one in site.folder.iterdir()} & set(own))
    assert "20200101T000000Z.spd and 3 more: neither counted nor deleted" in foreign
    assert "kept.spd.part and 1 more: is left unchanged: this recording did not write" in unfinished
    found = contents(site.folder)
    assert {name: found.get(name) for name in left} == left


@pytest.mark.parametrize("by", ["link", "folder", "locked folder"])
def test_a_folder_that_is_replaced_while_recording_is_noticed(by, site):
    """If a folder is replaced while recording, open files end in the old one, not in the new."""
    with site.running(RETENTION.replace("rotate_s = 1", "rotate_s = 0")):
        site.wait_rows()
        before = plant(site.victim, "theirs.wav", "theirs.spd.part")
        moved = site.share / "moved"
        site.folder.rename(moved)
        if by == "link":
            site.folder.symlink_to(site.victim)
        else:
            site.victim.rename(site.folder)
        other = site.folder
        descriptor = os.open(other, os.O_RDONLY)
        try:
            if by == "locked folder":
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            (text,) = site.wait(lambda: site.events("record.moved"))
            assert "mic: was moved or replaced: files that were started in it end there" in text
            if by == "folder":
                site.wait_rows()
            else:
                (text,) = site.wait(lambda: site.events("record.failed"))
                rule = "mic is a link" if by == "link" else "another program records into it"
                assert rule in text
                assert contents(other) == before
        finally:
            os.close(descriptor)
    found = contents(other)
    assert {name: found.get(name) for name in before} == before
    # The rows until then are valid, under their final name, in the folder of their start.
    assert not list(moved.glob("*.part"))
    assert sum(batch.n_frames for batch in SegmentReader(moved).batches()) >= 8


def test_a_file_that_gets_the_final_name_meanwhile_is_not_replaced(site):
    """A user's file that takes the final name stays, and the recording gets the next name."""
    with site.running("rotate_s = 0\nsamples = 'flac'"):
        site.wait_rows()
        site.wait(lambda: len(list(site.folder.glob("*.part"))) == 2)
        parts = list(site.folder.glob("*.part"))
        names = [part.name.removesuffix(".part") for part in parts]
        before = plant(site.folder, *names)
        before = {name: before[name] for name in names}
    found = contents(site.folder)
    assert {name: found[name] for name in names} == before
    assert sorted(set(found) - set(names)) == sorted(
        f"{Path(name).stem}_1{Path(name).suffix}" for name in names
    )


def test_a_control_key_deletes_nothing_outside_the_state_folder(site):
    """A control peer can change no key of a recording whose folder the operator set."""
    with site.running("rotate_s = 1"):
        site.wait(lambda: len(list(site.folder.glob("*.spd"))) >= 2)
        before = set(site.folder.glob("*.spd"))
        for changes in (
            {"recordings.r.keep_mb": 0.0001},
            {"recordings.r.keep_days": 1e-6},
            {"recordings.r.min_free_mb": 1e9, "recordings.r.when_full": "delete"},
            {"recordings.r.folder": ""},
            {"recordings.r": None},
        ):
            with pytest.raises(SpectrodError, match=r"peers change no recording with a folder of"):
                site.control.call("set", changes=changes)
        site.wait_rows(60)  # more than a second, so that retention was checked
        assert before <= set(site.folder.glob("*.spd"))
        assert site.recorder()["state"] == "recording"


def descriptors():
    return {one.name for one in Path("/proc/self/fd").iterdir()}


@pytest.mark.parametrize("name", ["x.spd", "x.wav", "x.flac", "x.png"])
def test_a_duration_beyond_all_bounds_is_refused_and_leaves_nothing(name, site):
    """An excessive duration is refused and leaves neither a descriptor nor a file."""
    with site.running():
        site.wait_rows()
        before = descriptors()
        for duration_s in (1e300, 31_622_400.1, 0, -1.0, "1e300", [], True):
            with pytest.raises(SpectrodError, match=r"record\.start: Expected `float( \| null)?`"):
                site.control.call("record.start", name=name, duration_s=duration_s)
        site.wait(lambda: descriptors() <= before)  # the recorder looks into its folder meanwhile
        assert list(site.state.glob("x*")) == []
        assert site.control.call("status")["recordings"] == []
