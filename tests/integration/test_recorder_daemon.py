"""Configured recordings on running daemons, and a simulated week."""

import importlib.util
import os
import time
from pathlib import Path

import numpy as np
import pytest
import soundfile

from spectrod.client import Control
from spectrod.config import config
from spectrod.daemon.control.controlled import ControlledDaemon
from spectrod.daemon.daemon import build_daemon
from spectrod.formats.directory import Directory
from spectrod.formats.pyramid.metadata import load
from spectrod.formats.segment.segment_reader import SegmentReader
from spectrod.lib.errors import SpectrodError

SECONDS = 20.0

TOML = """
[source]
uri = "signal:sine,1000,-20"
name = "tone"
samplerate = 48000

[engine]
engine = "numpy"

[publish]
endpoints = ["tcp://127.0.0.1:*"]

[control]
state_folder = "{folder}"
requests_per_s = 10000
"""


class Site:
    """A daemon whose configuration file can be changed."""

    def __init__(self, folder, recordings, toml=TOML):
        self.folder, self.file, self.toml = folder, folder / "spectrod.toml", toml
        self.write(recordings)
        self.daemon = build_daemon(self.load())
        self.controlled = ControlledDaemon(self.daemon, self.load(), self.load)
        self.recorded = folder / "recordings"

    def write(self, recordings):
        self.file.write_text(self.toml.format(folder=self.folder) + recordings)

    def load(self):
        return config.load(os.fspath(self.file))

    def call(self, method, **params):
        with Control(self.controlled.endpoints[0]) as control:
            return control.call(method, **params)

    def recorder(self, name):
        """Return the status of a recording."""
        (one,) = [one for one in self.call("status")["recorders"] if one["name"] == name]
        return one

    def await_rows(self, name, n_more, n_before=None):
        """Wait for a number of new rows, from now or a number before, at each heartbeat."""
        expected = (self.recorder(name)["rows"] if n_before is None else n_before) + n_more
        deadline_s = time.monotonic() + SECONDS
        while self.recorder(name)["rows"] < expected:
            assert time.monotonic() < deadline_s, self.recorder(name)
            self.daemon.progress.wait(0.02)

    def await_state(self, name, state):
        """Wait until a recording is in a state."""
        deadline_s = time.monotonic() + SECONDS
        while self.recorder(name)["state"] != state:
            assert time.monotonic() < deadline_s, self.recorder(name)
            self.daemon.progress.wait(0.02)

    def batches(self, name, source="tone"):
        return list(SegmentReader(self.recorded / name / source).batches())


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Start a daemon with recordings, and stop it after the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RUNTIME_DIRECTORY", "run")  # a socket's path must be short
    running = []

    def run(recordings, toml=TOML):
        site = Site(tmp_path, recordings, toml)
        running.append(site.controlled)
        site.controlled.start()
        return site

    yield run
    for one in running:
        one.stop()


def assert_whole(batches, hop=1024):
    """Check that all rows from the source's first sample on exist once, with the tone."""
    index = np.concatenate([batch.sample_index for batch in batches])
    np.testing.assert_array_equal(index, np.arange(len(index)) * hop)
    assert not any(batch.gap_samples or batch.discontinuity for batch in batches)
    assert max(abs(batch.values.max(axis=2) + 20.0).max() for batch in batches) < 1.5


@pytest.mark.slow
def test_a_recording_is_complete_from_the_first_sample_to_the_last(start):
    """A recording has every row over several files, with the source's description."""
    site = start("[recordings.all]\nrotate_s = 1\nmin_free_mb = 1\nattributes = {title = 'T'}")
    site.await_rows("all", 70)
    assert site.recorder("all")["state"] == "recording"
    site.controlled.stop()
    assert_whole(site.batches("all"))
    folder = site.recorded / "all" / "tone"
    assert len(list(folder.iterdir())) == len(list(folder.glob("*.spd"))) > 1
    about = SegmentReader(folder).description
    assert (about.source, about.signals, about.attributes) == ("tone", ("0",), {"title": "T"})
    assert about.settings["analysis"]["win_length"] == 4096
    n_samples = site.daemon.stats()[0].analysed
    n_rows = sum(batch.n_frames for batch in site.batches("all"))
    assert n_rows == (n_samples - 4096) // 1024 + 1
    assert site.daemon.recordings.status()["recorders"] == []


@pytest.mark.slow
def test_recordings_state_the_time_zone_of_their_source(start):
    """Segments and the pyramid, and a file that was asked for; measurements have their own."""
    zoned = TOML.replace("samplerate", 'time_zone = "Asia/Kolkata"\nsamplerate')
    site = start(
        "[recordings.all]\npyramid = true\nmin_free_mb = 1\n[levels.site]\ninterval_s = 0.1\n"
        '[recordings.levels]\nproduct = "site"\nmin_free_mb = 1\n',
        zoned,
    )
    started = site.call("record.start", source="tone", name="one.spd", duration_s=0.2)
    site.await_rows("all", 70)
    site.await_rows("levels", 3)
    site.controlled.stop()
    folder = site.recorded / "all" / "tone"
    with Directory.open(folder / "pyramid") as pyramid:
        stated = [load(pyramid).attributes]
    stated += [SegmentReader(one).description.attributes for one in (folder, started["path"])]
    assert stated == [{"time_zone": "Asia/Kolkata"}] * 3
    (lines,) = (site.recorded / "levels" / "tone").glob("*.csv")
    assert "Kolkata" not in lines.read_text("utf-8")


@pytest.mark.slow
def test_recordings_of_bands_have_a_broadband_level(start):
    """The broadband level of a recording covers all frequencies, though messages have bands."""
    thirds = '[products.thirds]\nbands = "third-octave"\naveraging = "mean"\nrate_hz = 8.0\n'
    site = start(thirds + '[recordings.bands]\nproduct = "thirds"\nmin_free_mb = 1')
    site.await_rows("bands", 3)
    site.controlled.stop()
    batches = site.batches("bands")
    levels = np.concatenate([batch.broadband for batch in batches if not batch.cut_frames])
    assert levels.shape[1:] == (1,)
    np.testing.assert_allclose(levels, -20.0, atol=0.01)
    assert batches[0].values.shape[2] == batches[0].spec.n_values


@pytest.mark.slow
def test_changes_leave_unchanged_recordings_running(start):
    """Recordings added, changed or removed by file or settings leave another one running."""
    steady = "[recordings.steady]\nrotate_s = 0\nmin_free_mb = 1\n"
    site = start(steady + "[recordings.other]\nmin_free_mb = 1\n")
    site.await_rows("steady", 5)
    lines = site.call("set", changes={"recordings.new": {"min_free_mb": 1, "product": "dbfs"}})
    assert lines == ['recordings.new: none -> {"product":"dbfs","min_free_mb":1.0}']
    site.await_rows("new", 5)
    lines = site.call("set", changes={"recordings.other.rotate_s": 60})
    assert lines == ["recordings.other.rotate_s: 3600 -> 60"]
    site.await_rows("other", 5)
    site.write(steady)
    assert "applied recordings.new (the file wins over set)" in site.call("reload")
    site.await_rows("steady", 5)
    assert [one["name"] for one in site.call("status")["recorders"]] == ["steady"]
    # Another analysis starts another file of the same recording; the product keeps its name.
    site.call("set", changes={"analysis.hop": 512})
    site.await_rows("steady", 80)
    site.controlled.stop()
    files = sorted((site.recorded / "steady" / "tone").glob("*.spd"))
    parts = [list(SegmentReader(file).batches()) for file in files]
    assert [part[0].spec.hop for part in parts] == [1024, 512]
    assert_whole(parts[0])
    first = parts[1][0].sample_index[0]
    index = np.concatenate([batch.sample_index for batch in parts[1]])
    np.testing.assert_array_equal(index, first + np.arange(len(index)) * 512)
    assert len(list((site.recorded / "other" / "tone").glob("*.spd"))) == 2


@pytest.mark.slow
def test_a_request_has_it_record_around_now(start):
    """A request records pre-roll and post-roll around now, and an unknown name lists others."""
    keys = "min_free_mb = 1\npre_roll_s = 0.5\npost_roll_s = 0.2\nsamples = 'wav'\n"
    site = start(f"[recordings.event]\ntriggers = ['control']\n{keys}[recordings.all]\n")
    site.await_rows("all", 60)
    armed = site.recorder("event")
    assert armed["state"] == "armed"
    before_ns = time.time_ns()
    assert site.call("record.trigger", name="event") == ["event/tone"]
    asked_ns = time.time_ns()
    site.await_rows("event", 30, armed["rows"])  # those before the request come at once
    site.await_state("event", "armed")
    with pytest.raises(
        SpectrodError, match=r"recording='all', source='': no such .* event of tone"
    ):
        site.call("record.trigger", name="all")
    kinds = [event["kind"] for event in site.call("events")]
    assert {"record.trigger", "control.trigger", "record.begun", "record.file"} <= set(kinds)
    metrics = {
        (one["name"], one["labels"].get("recording")): one["value"] for one in site.call("metrics")
    }
    assert metrics["spectrod_recording_triggers_total", "event"] == 1
    assert metrics["spectrod_recording_up", "all"] == 1
    site.controlled.stop()
    t_ns = np.concatenate([batch.t_utc_ns for batch in site.batches("event")])
    row_ns = 22e6
    # From the first row within the 0.7 s to the last: less than two rows are missing at the ends.
    assert 0.7e9 - 2 * row_ns < t_ns[-1] - t_ns[0] <= 0.7e9
    assert before_ns - 0.5e9 <= t_ns[0] <= asked_ns - 0.5e9 + row_ns
    (sound,) = (site.recorded / "event" / "tone").glob("*.wav")
    assert sound.stat().st_size == pytest.approx(0.7 * 48000 * 4, rel=0.1)


@pytest.mark.slow
def test_each_source_has_a_folder_and_one_that_comes_is_recorded(start):
    """Each source, also an added one, has a folder, and a removed one's files are finished."""
    site = start("[recordings.all]\nmin_free_mb = 1\n")
    with pytest.raises(SpectrodError, match=r"sources: name='\.\.': must not be dots alone"):
        site.call("source.add", name="..", settings={"uri": "signal:white,-20"})
    site.call("source.add", name="_..", settings={"uri": "signal:white,-20"})
    deadline_s = time.monotonic() + SECONDS
    while not all(one.get("rows") for one in site.call("status")["recorders"]):
        assert time.monotonic() < deadline_s
        site.daemon.progress.wait(0.02)
    site.call("source.remove", name="_..")
    site.call("source.add", name="away", settings={"uri": "soundcard:no such card"})
    running, waiting = site.call("status")["recorders"]
    assert (running["source"], running["state"]) == ("tone", "recording")
    assert (waiting["source"], waiting["state"]) == ("away", "waiting")
    assert waiting["error"] == "the source waits for its device"
    assert sorted(one.name for one in (site.recorded / "all").iterdir()) == ["_..", "tone"]
    assert site.batches("all", "_..")
    assert not list((site.recorded / "all" / "_..").glob("*.part"))


@pytest.mark.slow
@pytest.mark.parametrize(("suffix", "n_frames"), [("spd", None), ("wav", 24_000), ("flac", 24_000)])
def test_a_requested_file_ends_at_its_duration_without_a_loss(suffix, n_frames, start):
    """A requested file of spectra or samples ends at its duration without a loss."""
    site = start("")
    name = f"x.{suffix}"
    started = site.call("record.start", name=name, duration_s=0.5)
    assert (started["state"], started["product"]) == ("recording", "dbfs")
    deadline_s = time.monotonic() + SECONDS
    while (facts := site.call("status")["recordings"][0])["state"] == "recording":
        assert time.monotonic() < deadline_s
        site.daemon.progress.wait(0.02)
    assert (facts["state"], facts["error"]) == ("finished", "")
    file = site.folder / name
    assert file.stat().st_size > 0
    if suffix == "spd":
        batches = list(SegmentReader(file).batches())
        index = np.concatenate([batch.sample_index for batch in batches])
        assert facts["frames"] == len(index) in (23, 24)
        np.testing.assert_array_equal(index, index[0] + np.arange(len(index)) * 1024)
        assert SegmentReader(file).description.source == "tone"
    else:
        samples, fs = soundfile.read(file)
        assert (len(samples), fs, facts["frames"]) == (n_frames, 48000, n_frames)
        assert np.sqrt(np.mean(samples**2)) == pytest.approx(0.1 / np.sqrt(2), rel=0.01)
    with pytest.raises(SpectrodError, match="already exists; choose another name"):
        site.call("record.start", name=name)


@pytest.mark.slow
def test_files_that_are_asked_for_are_finished_by_stop_and_with_the_daemon(start):
    """A stop, and the daemon's end, finish requested files; for other formats convert is named."""
    site = start("")
    site.call("record.start", name="a.spd")
    site.call("record.start", name="b.wav")
    site.call("record.start", name="c.spd")
    expected = (
        r"name='d.nc': a running daemon makes .png, .spd, .wav, .flac; spectrod convert makes"
    )
    with pytest.raises(SpectrodError, match=expected):
        site.call("record.start", name="d.nc")
    with pytest.raises(SpectrodError, match=r"\.wav, \.flac; spectrod record makes others"):
        site.call("record.start", name="d.sigmf-meta")
    deadline_s = time.monotonic() + SECONDS
    while min(one["frames"] for one in site.call("status")["recordings"]) < 10:
        assert time.monotonic() < deadline_s
        site.daemon.progress.wait(0.02)
    assert [one["state"] for one in site.call("record.stop", name="a.spd")] == ["finished"]
    site.controlled.stop()
    assert {"a.spd", "b.wav", "c.spd"} <= {one.name for one in site.folder.iterdir()}
    assert not list(site.folder.glob("*.part"))


def test_peers_cannot_choose_folders(start):
    """Peers cannot choose where files go, and the configured folder stays."""
    site = start("")
    with pytest.raises(SpectrodError, match="folder='/tmp': no folders from peers outside the"):
        site.call("set", changes={"recordings.x": {"folder": "/tmp"}})  # noqa: S108
    with pytest.raises(SpectrodError, match=r"makes '\.\./x'; must make 1 to 100 of"):
        site.call("set", changes={"recordings.x": {"file_name": "../x"}})


# ---- a simulated week


@pytest.fixture(scope="module")
def simulated():
    """Load the script that simulates a year, as a module."""
    path = Path(__file__).parents[2] / "benchmarks" / "simulated_year.py"
    spec = importlib.util.spec_from_file_location("simulated_year", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "days", "kept_days"),
    [({}, 8, 8), ({"keep_days": 3.0}, 8, 3), ({"pyramid": True}, 2, 2)],
)
def test_rotation_retention_and_pyramids_are_right_after_days(
    settings, days, kept_days, simulated, tmp_path
):
    """After days each kept row exists once, in its day's file, at the documented size."""
    found = simulated.check_year(simulated.Year(tmp_path / "year", **settings), days, kept_days)
    assert found["rows"] > 0
