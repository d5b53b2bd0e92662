"""Triggers of spectra in running daemons: their events, recordings, and changes."""

import errno
import json
import logging
import os
import time
from itertools import pairwise

import msgspec
import numpy as np
import pytest
import soundfile

from spectrod.cli import main
from spectrod.client import Control
from spectrod.config import config
from spectrod.daemon.control.controlled import ControlledDaemon
from spectrod.daemon.daemon import build_daemon
from spectrod.formats.event_reading import read_events
from spectrod.lib.errors import SpectrodError, StorageError
from spectrod.measure.triggers.mask import read_mask

SECONDS = 20.0
FS = 8000

TOML = """
[source]
uri = "{uri}"
name = "mic"
pace = "{pace}"

[analysis]
win_length = 512
hop = 128

[engine]
engine = "numpy"

[publish]
endpoints = ["tcp://127.0.0.1:*"]

[control]
state_folder = "{folder}"
requests_per_s = 10000

{rest}
"""

TONE = """
[triggers.tone]
kind = "tone"
f_min_hz = 950.0
f_max_hz = 1050.0
prominence_db = 20.0
for_s = 0.1
"""


class Site:
    """A daemon on a file or a test signal."""

    def __init__(self, folder, uri, rest, pace):
        self.file = folder / "spectrod.toml"
        self.file.write_text(TOML.format(uri=uri, folder=folder, rest=rest, pace=pace))
        self.daemon = build_daemon(self.load())
        self.controlled = ControlledDaemon(self.daemon, self.load(), self.load)

    def load(self):
        return config.load(os.fspath(self.file))

    def call(self, method, **params):
        with Control(self.controlled.endpoints[0]) as control:
            return control.call(method, **params)

    def events(self, kind="trigger."):
        found = self.call("events", limit=1000)
        return [one for one in found if one["kind"].startswith(kind)]

    def await_(self, condition, what):
        """Wait until a condition of the daemon holds."""
        deadline_s = time.monotonic() + SECONDS
        while not condition():
            assert time.monotonic() < deadline_s, (what, self.call("events", limit=1000))
            self.daemon.progress.wait(0.02)


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Start a daemon, and stop it after the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RUNTIME_DIRECTORY", "run")  # a socket's path must be short
    running = []

    def run(uri, rest, pace="realtime"):
        site = Site(tmp_path, uri, rest, pace)
        running.append(site.controlled)
        site.controlled.start()
        return site

    yield run
    for one in running:
        one.stop()


def write_bursts(path, seconds=12.0, on_s=((3.0, 4.5), (8.0, 9.0))):
    """Write noise with bursts of 1 kHz; return the samples."""
    t = np.arange(round(seconds * FS)) / FS
    x = 1e-3 * np.random.default_rng(11).standard_normal(len(t))
    for first_s, last_s in on_s:
        x += ((t >= first_s) & (t < last_s)) * 0.1 * np.sin(2 * np.pi * 1000.0 * t)
    soundfile.write(path, x, FS, "FLOAT")
    return x


def ended(site):
    return all(one.ended for one in site.daemon.runners)


def test_each_tone_of_a_file_is_an_event_with_its_numbers(start, tmp_path, caplog):
    """Each tone begins and ends once, and the events have its times, level and frequency."""
    write_bursts(tmp_path / "bursts.wav")
    caplog.set_level(logging.INFO, "spectrod")
    site = start("bursts.wav", TONE, pace="full")
    site.await_(lambda: ended(site), "the end of the file")
    found = site.events()
    kinds = ["trigger.begun", "trigger.ended"] * 2
    logged = [r.about for r in caplog.records if "trigger tone: " in r.getMessage()]
    assert logged == [{"source": "mic", "event": kind} for kind in kinds[:2]]
    assert [one["kind"] for one in found] == kinds
    facts = [one["trigger"] for one in found]
    assert [one["duration_s"] for one in facts[1::2]] == pytest.approx([1.5, 1.0], abs=0.128)
    for one in facts:
        assert (one["name"], one["kind"], one["channel"]) == ("tone", "tone", "0")
        assert one["level"] == pytest.approx(-20.0, abs=0.1)
        assert one["frequency_hz"] == pytest.approx(1000.0, abs=1.0)
        assert one["threshold"] == pytest.approx(one["floor"] + 20.0)
        assert one["unit"] == "dBFS"
    between_s = (facts[3]["begin_utc_ns"] - facts[1]["begin_utc_ns"]) / 1e9
    assert between_s == pytest.approx(5.0, abs=0.064)
    (status,) = site.call("status")["triggers"]
    assert (status["name"], status["is_active"], status["events"]) == ("tone", False, 2)


def test_events_of_a_sweep_alternate_and_reach_subscribers(start, raw_subscriber):
    """A tone that comes and goes is sent to subscribers as begins and ends in turn."""
    rest = TONE.replace("for_s = 0.1", "for_s = 0.0\nhold_off_s = 0.1")
    site = start("signal:sweep,700,1300,1,-20", rest)
    subscriber = raw_subscriber(site.daemon.publisher.endpoints[0], "event/mic/")
    found = []
    while len(found) < 4:
        _, header, *_ = subscriber.recv_multipart()
        event = msgspec.json.decode(header)
        if event["kind"].startswith("trigger."):
            found.append(event)
    states = [one["trigger"]["state"] for one in found]
    assert all(one != other for one, other in pairwise(states))
    assert all(one["schema"] == "spectrod.event" for one in found)


def test_a_recording_has_the_sound_around_its_events_and_nothing_else(start, tmp_path):
    """A recording holds the samples of the event, its pre-roll and its post-roll."""
    x = write_bursts(tmp_path / "bursts.wav", 20.0, ((12.0, 13.5),))
    rest = TONE + '[recordings.r]\ntriggers = ["tone"]\nsamples = "wav"\npre_roll_s = 1.0\n'
    site = start("bursts.wav", rest + "post_roll_s = 0.5\n", pace="full")
    site.await_(lambda: ended(site), "the end of the file")
    site.controlled.stop()
    (file,) = (tmp_path / "recordings" / "r" / "mic").glob("*.wav")
    recorded, fs = soundfile.read(file)
    facts = site.daemon.events.since(0)
    (event,) = [one.trigger for one in facts if one.kind == "trigger.ended"]
    seconds = event["duration_s"] + 1.5
    assert fs == FS
    assert len(recorded) / FS == pytest.approx(seconds, abs=0.002)
    first = round((12.0 - 1.0) * FS)
    at = np.argmax(np.correlate(x[first - FS : first + len(recorded) + FS], recorded, "valid"))
    np.testing.assert_allclose(
        x[first - FS + at : first - FS + at + len(recorded)], recorded, atol=1e-6
    )
    assert abs(at - FS) / FS <= 0.064


def test_events_are_marked_in_the_recordings_of_a_daemon(start, tmp_path, capsys):
    """By UTC and in their files, whose sound begins to change there; both clocks agree."""
    write_bursts(tmp_path / "20260501_043000.wav", 20.0, ((4.0, 5.5), (12.0, 13.0)))
    rest = TONE + '[recordings.r]\ntriggers = ["tone"]\nsamples = "wav"\npre_roll_s = 1.0\n'
    site = start("20260501_043000.wav", rest + "post_roll_s = 0.5\n", pace="full")
    site.await_(lambda: ended(site), "the end of the file")
    folder = tmp_path / "recordings" / "r" / "mic"
    endpoint = ["--endpoint", site.controlled.endpoints[0]]
    site.await_(lambda: len(list(folder.glob("*.wav"))) == 2, "both files")
    for name in ("e.csv", "e.selections.txt", "e.sigmf-meta"):
        arguments = ["events", "--recordings", str(folder), "-o", name]
        assert main(["ctl", *arguments, *endpoint]) == 0
        assert capsys.readouterr().out == f"# {name}: 2 events\n"
    of_csv, of_raven, of_sigmf = (
        read_events(tmp_path / name) for name in ("e.csv", "e.selections.txt", "e.sigmf-meta")
    )
    facts = [one["trigger"] for one in site.events("trigger.ended")]
    begin_ns = 1_777_609_800 * 10**9
    for k, begin_s in enumerate((4.0, 12.0)):
        assert of_csv[k].begin_utc_ns == of_sigmf[k].begin_utc_ns
        assert abs(of_csv[k].begin_utc_ns - facts[k]["begin_utc_ns"]) <= 1000
        assert (of_csv[k].begin_utc_ns - begin_ns) / 1e9 == pytest.approx(begin_s, abs=0.064)
        recorded, _ = soundfile.read(of_csv[k].file)
        assert of_csv[k].begin_s == pytest.approx(1.0, abs=1.0 / FS)
        first = round(of_csv[k].begin_s * FS)
        last = first + round(of_csv[k].duration_s * FS)
        assert np.abs(recorded[: first - 8]).max() < 0.01
        assert np.abs(recorded[first:last]).max() > 0.09
        assert np.abs(recorded[last + 8 :]).max() < 0.01
    lengths_s = [soundfile.info(one.file).duration for one in of_csv]
    assert of_raven[1].begin_s == pytest.approx(lengths_s[0] + of_csv[1].begin_s, abs=1e-6)


def test_a_trigger_is_changed_without_ending_others(start):
    """A changed trigger ends its event, another one goes on, and bad values change nothing."""
    level = '[triggers.NAME]\nthreshold = -60\nunit = "dBFS"\n'
    site = start("signal:sine,1000,-20", level.replace("NAME", "a") + level.replace("NAME", "b"))
    site.await_(lambda: len(site.events("trigger.begun")) == 2, "both")
    with pytest.raises(SpectrodError, match=r"f_max_hz=30000: must be 0 to 24000 Hz, the Nyquist"):
        site.call("set", changes={"triggers.a.f_max_hz": "30k"})
    site.call("set", changes={"triggers.a.threshold": 10.0})
    (end,) = [one["trigger"] for one in site.events("trigger.ended")]
    assert (end["name"], end["reason"]) == ("a", "stopped")
    states = {one["name"]: one["is_active"] for one in site.call("status")["triggers"]}
    assert states == {"a": False, "b": True}
    site.call("set", changes={"triggers.b": None})
    assert [one["trigger"]["name"] for one in site.events("trigger.ended")] == ["a", "b"]


def test_a_change_of_the_analysis_that_does_not_fit_is_refused(start):
    """An analysis in which a trigger cannot be is refused, and the old one goes on."""
    site = start("signal:sine,1000,-20", TONE)
    with pytest.raises(SpectrodError, match=r"triggers\.tone: bands='octave': tones are measured"):
        site.call("set", changes={"analysis.bands": "octave"})
    assert site.call("get", key="analysis.bands") == ""


def test_events_end_with_the_daemon(start):
    """An event that lasts to the stop ends with it."""
    site = start("signal:sine,1000,-20", TONE)
    site.await_(lambda: site.events("trigger.begun"), "the begin")
    site.controlled.stop()
    kinds = [one.kind for one in site.daemon.events.since(0) if one.trigger]
    assert kinds == ["trigger.begun", "trigger.ended"]


# ---- learned masks

NOISE = "signal:white,-20"
QUIET = {"source": "mic", "name": "quiet", "duration_s": 0.8, "margin_db": 6.0}


def last_learning(site):
    return site.call("learn.list")[-1]


def learn(site, **params):
    """Learn a mask, and return how that ended."""
    site.call("learn.start", **QUIET | params)
    site.await_(lambda: last_learning(site)["state"] != "learning", "the mask")
    return last_learning(site)


def test_a_learned_mask_is_used_by_a_trigger_and_survives_a_restart(start, tmp_path):
    """A mask is 6 dB over the percentile of noise; a daemon that starts later uses it."""
    site = start(NOISE, "")
    found = learn(site)
    assert (found["state"], found["error"], found["missing_samples"]) == ("finished", "", 0)
    mask = read_mask(tmp_path / "masks", "quiet")
    # Of noise, a bin has 1.5 / 256 of the power; one of 100 is ln(100) times the mean.
    mean_db = -20.0 + 10 * np.log10(1.5 / 256)
    expected_db = mean_db + 10 * np.log10(np.log(100.0)) + 6.0
    levels = np.array(mask.points)[2:-2, 1]
    # 300 rows that overlap: single percentiles vary by 1 dB, the mean of 253 by little.
    assert float(levels.mean()) == pytest.approx(expected_db, abs=0.5)
    site.call("set", changes={"triggers.m": {"kind": "mask", "mask": "quiet", "hold_off_s": 0.1}})
    with pytest.raises(SpectrodError, match=r"was learned with win_length=512: the product dbfs"):
        site.call("set", changes={"analysis.win_length": 256})
    site.controlled.stop()

    again = start("signal:white,0", '[triggers.m]\nkind = "mask"\nmask = "quiet"\n')
    again.await_(lambda: again.events("trigger.begun"), "noise over the mask")
    (event, *_) = again.events("trigger.begun")
    assert event["trigger"]["level"] >= event["trigger"]["threshold"]


def test_a_replaced_mask_is_read_again(start, tmp_path):
    """A trigger takes the mask that replaces its own at once, without a change of settings."""
    site = start(NOISE, "")
    assert learn(site)["state"] == "finished"
    site.call("set", changes={"triggers.m": {"kind": "mask", "mask": "quiet"}})
    site.await_(lambda: not site.events("trigger.begun"), "silence")
    before = read_mask(tmp_path / "masks", "quiet")
    assert learn(site, replace=True, margin_db=-40.0)["state"] == "finished"
    after = read_mask(tmp_path / "masks", "quiet")
    assert after.points[9][1] < before.points[9][1] - 30.0
    site.await_(lambda: site.events("trigger.begun"), "noise over the lower mask")
    assert [one["text"] for one in site.events("trigger.mask")] == ["quiet: read again"]


@pytest.mark.parametrize(
    ("params", "rule"),
    [
        ({"name": "../x"}, r"learn\.start: Expected `str` matching regex"),
        ({"name": "a/b"}, r"learn\.start: Expected `str` matching regex"),
        ({"name": ".."}, r"learn\.start: Expected `str` matching regex"),
        ({"name": "x\n"}, r"learn\.start: Expected `str` matching regex"),
        ({"name": "x" * 65}, r"learn\.start: Expected `str` matching regex"),
        ({"product": "no"}, r"product='no': mic has no such product; there are: dbfs"),
        ({"duration_s": 0.5}, r"duration_s=0\.5: has 187 rows: percentile=99\.9 needs at least"),
        ({"duration_s": 1e9}, r"Expected `float` <= 604800"),
        ({"percentile": 100.0}, r"Expected `float` <= 99\.99"),
    ],
)
def test_a_mask_that_cannot_be_learned_is_refused_at_once(start, params, rule):
    """Names outside the folder, unknown products, short and endless times are one error each."""
    site = start(NOISE, "")
    with pytest.raises(SpectrodError, match=rule):
        site.call("learn.start", **QUIET | {"percentile": 99.9} | params)
    assert site.call("learn.list") == []


def test_one_mask_is_learned_at_a_time_and_can_be_aborted(start, tmp_path):
    """A second mask is refused while one is learned; an aborted one leaves no file."""
    site = start(NOISE, "")
    site.call("learn.start", **QUIET | {"duration_s": 3600.0})
    with pytest.raises(SpectrodError, match=r"mask='quiet': is being learned; one at a time"):
        site.call("learn.start", **QUIET | {"name": "other"})
    with pytest.raises(SpectrodError, match=r"mask='nix': is not being learned; there are: quiet"):
        site.call("learn.abort", name="nix")
    assert site.call("learn.abort", name="quiet")["state"] == "aborted"
    assert list((tmp_path / "masks").iterdir()) == []
    with pytest.raises(SpectrodError, match=r"mask='': is not being learned; there are: none"):
        site.call("learn.abort")


def test_a_mask_is_refused_where_its_analysis_changes_or_its_source_ends(start, tmp_path):
    """Rows of another analysis are no part of the mask, and an ended source gives none."""
    site = start(NOISE, "")
    site.call("learn.start", **QUIET | {"duration_s": 3600.0})
    site.call("set", changes={"analysis.win_length": 256})
    site.await_(lambda: last_learning(site)["state"] == "failed", "the failure")
    assert last_learning(site)["error"] == "the analysis has changed: learn the mask again"
    write_bursts(tmp_path / "b.wav")
    site.controlled.stop()
    other = start("b.wav", "", pace="full")
    other.await_(lambda: ended(other), "the end of the file")
    with pytest.raises(SpectrodError, match=r"source='mic': no data: the source has ended"):
        other.call("learn.start", **QUIET)


def test_a_pause_is_a_gap_that_a_mask_does_not_bear(start):
    """More than 5 % of missing time is refused with both numbers."""
    site = start(NOISE, "")
    site.call("learn.start", **QUIET | {"duration_s": 2.0})
    site.await_(lambda: last_learning(site)["rows"] > 0, "rows")
    before = site.daemon.runners[0].pipeline.ring.taken
    site.call("pause")
    site.await_(
        lambda: site.daemon.runners[0].pipeline.ring.taken > before + FS, "a second of samples"
    )
    site.call("resume")
    site.await_(lambda: last_learning(site)["state"] == "failed", "the failure")
    assert "% of the time: must be at most 5 %" in last_learning(site)["error"]


def test_a_folder_that_cannot_be_written_is_an_error_before_the_time(start, tmp_path):
    """A link or a file in the place of the folder is refused at once, with exit code 74."""
    site = start(NOISE, "")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "masks").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match=r"masks: Not a directory"):
        site.call("learn.start", **QUIET)
    assert list((tmp_path / "elsewhere").iterdir()) == []
    (tmp_path / "masks").unlink()
    (tmp_path / "masks").mkdir()
    (tmp_path / "masks" / "quiet.toml").write_text("mine")
    with pytest.raises(StorageError, match=r"quiet\.toml: already exists; choose another name"):
        site.call("learn.start", **QUIET)
    assert (tmp_path / "masks" / "quiet.toml").read_text() == "mine"


def test_a_disk_that_is_full_at_the_end_leaves_the_old_mask(start, tmp_path, monkeypatch):
    """A write that fails after the time is reported as such, and leaves no partial file."""
    site = start(NOISE, "")
    assert learn(site)["state"] == "finished"
    content = (tmp_path / "masks" / "quiet.toml").read_bytes()
    site.call("learn.start", **QUIET | {"replace": True})

    def full(_descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("spectrod.formats.directory.os.fsync", full)
        site.await_(lambda: last_learning(site)["state"] == "failed", "the failure")
    assert last_learning(site)["error_code"] == "storage"
    assert "No space left on device" in last_learning(site)["error"]
    assert [one.name for one in (tmp_path / "masks").iterdir()] == ["quiet.toml"]
    assert (tmp_path / "masks" / "quiet.toml").read_bytes() == content


def test_ctl_learns_waits_and_lists(start, tmp_path, capsys):
    """``ctl learn`` waits for the mask and prints its path; ``--list`` shows it."""
    site = start(NOISE, "")
    endpoint = ["ctl", "--endpoint", site.controlled.endpoints[0]]
    assert main([*endpoint, "learn", "-o", "quiet", "--minutes", "0.02"]) == 0
    assert capsys.readouterr().out.startswith(f"{tmp_path}/masks/quiet.toml: finished, ")
    assert main([*endpoint, "learn", "--list"]) == 0
    assert "quiet  mic     dbfs     1 of 1 s" in capsys.readouterr().out
    assert main([*endpoint, "learn", "-o", "slow", "--minutes", "60", "--detach"]) == 0
    assert "slow.toml: learning" in capsys.readouterr().out
    assert main([*endpoint, "learn", "--abort"]) == 0
    assert "slow.toml: aborted" in capsys.readouterr().out
    assert main([*endpoint, "learn"]) == 2
    assert "-o: must name the mask to learn" in capsys.readouterr().err
    assert main([*endpoint, "status"]) == 0


def test_a_missing_mask_is_an_error_at_the_start(tmp_path):
    """A daemon whose trigger names a mask that does not exist does not start, and says why."""
    rest = '[triggers.m]\nkind = "mask"\nmask = "nix"\n'
    with pytest.raises(
        SpectrodError, match=r"triggers\.m: mask='nix': .*/nix\.toml does not exist"
    ):
        Site(tmp_path, NOISE, rest, "realtime")


BAND = """
[triggers.band]
kind = "band"
f_min_hz = 900.0
f_max_hz = 1100.0
threshold = -30.0
unit = "dBFS"
hold_off_s = 0.1
"""


@pytest.mark.parametrize("rest", [TONE, BAND], ids=["tone", "band"])
def test_events_of_a_file_are_those_of_detect(rest, start, tmp_path):
    """A daemon that plays a file reports the events that ``spectrod detect`` finds in it."""
    file = tmp_path / "20260501_040000.wav"
    write_bursts(file, on_s=((1.0, 1.7), (3.003, 4.5), (8.0, 9.0), (9.5, 9.6), (11.5, 12.0)))
    site = start(file.name, rest, pace="full")
    site.await_(lambda: ended(site), "the end of the file")
    live = [one["trigger"] for one in site.events("trigger.ended")]
    name = live[0]["name"]
    command = ["detect", os.fspath(file), "--trigger", name, "--config", os.fspath(site.file)]
    assert main([*command, "-o", "events.json"]) == 0
    found = json.loads((tmp_path / "events.json").read_bytes())
    assert [placed(one, begin_utc_ns(one)) for one in found] == [
        placed(one, one["begin_utc_ns"]) for one in live
    ]
    assert len(found) >= 4
    for of_file, of_daemon in zip(found, live, strict=True):
        for key in ("frequency_hz", "level", "threshold"):
            assert of_file[key] == pytest.approx(of_daemon[key], abs=0.00501)


def begin_utc_ns(event):
    """Return the begin of an event of a file [ns of UTC]."""
    return int(np.datetime64(event["begin_utc"].removesuffix("Z"), "ns").astype(np.int64))


def placed(event, begin_ns):
    return begin_ns, event["duration_s"], event["channel"], event["f_min_hz"], event["unit"]
