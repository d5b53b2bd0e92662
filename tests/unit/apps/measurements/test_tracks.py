"""``spectrod tones --tracks``: tracks of planted tones as events, with and without gaps."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

from spectrod.apps.measurements import track_writer
from spectrod.cli import main
from spectrod.formats.event_reading import read_events

S = 10**9
BEGIN_NS = 1_777_609_800 * S
"""2026-05-01, 04:30 UTC."""
FORMATS = ["t.csv", "t.json", "t.parquet", "t.selections.txt", "t.labels.txt", "t.sigmf-meta"]
FRAMES = ["--interval", "0.5s", "--win-length", "2048", "--align", "start"]
FS = 16000
HALF_BIN_HZ = FS / 2048 / 2


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def sound(seconds, *tones, fs=FS, first_s=0.0, seed=1):
    """Noise with tones, each of a frequency [Hz], its change [Hz/s], a begin and an end [s]."""
    t = first_s + np.arange(round(seconds * fs)) / fs
    x = 1e-4 * np.random.default_rng(seed).standard_normal(len(t))
    for f_hz, slope, begin_s, end_s in tones:
        is_on = (t >= begin_s) & (t < end_s)
        x[is_on] += 0.1 * np.sin(2 * np.pi * (f_hz * t + slope / 2 * t * t))[is_on]
    return x


def store(path, x, fs=FS):
    soundfile.write(path, x, fs, subtype="FLOAT")


def folder_of(files, *tones, folder="rec"):
    """Write files of a folder, each with its time and its length [s]."""
    Path(folder).mkdir()
    for clock, seconds in files:
        store(f"{folder}/20260501_{clock}.wav", sound(seconds, *tones))


def tracked(source, *arguments, name="t.csv"):
    """Return the events of a file."""
    if name.endswith(".parquet"):
        pytest.importorskip("arro3.io")
    assert main(["tones", source, *FRAMES, "--tracks", name, *arguments]) == 0
    return read_events(Path(name))


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("fs", [16000, 44100])
def test_tones_are_events_of_their_intervals(name, fs, capsys):
    """Begin and end within a sample, by both clocks; band of all peaks; channel; highest level."""
    steady, rising = (500.0, 0.0, 0.0, 10.0), (2000.0, 20.0, 2.0, 5.0)
    both = [sound(10, steady, fs=fs), sound(10, rising, fs=fs, seed=2)]
    store("20260501_043000.wav", np.array(both).T, fs)
    found = tracked("20260501_043000.wav", "--max-step", "50", name=name)
    assert capsys.readouterr().out == f"# {name}: 2 tracks\n"
    hum, call = found
    np.testing.assert_allclose(
        [one * fs for one in (hum.begin_s, hum.duration_s, call.begin_s, call.duration_s)],
        [0.0, 10 * fs, 2 * fs, 3 * fs],
        rtol=0,
        atol=0.5,
    )
    half_hz = fs / 2048 / 2
    assert (hum.f_min_hz, hum.f_max_hz) == pytest.approx((500 - half_hz, 500 + half_hz), abs=0.1)
    # Means of half a second of a tone that rises by 10 Hz in it.
    assert call.f_min_hz == pytest.approx(2000 + 20 * 2.25 - half_hz, abs=3.0)
    assert call.f_max_hz == pytest.approx(2000 + 20 * 4.75 + half_hz, abs=3.0)
    if "txt" not in name:
        assert [one.begin_utc_ns - BEGIN_NS for one in found] == [0, 2 * S]
    if "selections" in name:
        assert [one.channel for one in found] == [1, 2]
    elif "labels" in name or "sigmf" in name:
        assert "tone 0" in hum.text
        assert "-20.0 dBFS" in hum.text
    else:
        assert [one.channel for one in found] == ["0", "1"]
        assert hum.text == "tone 0, -20.0 dBFS, peak at 500 Hz"


def test_a_gap_parts_the_events_of_a_track():
    """One name, as the track goes on; time in all files and in each, and UTC, are right."""
    folder_of([("043000", 4.25), ("043010", 3.0)], (1000.0, 0.0, 0.0, 60.0))
    arguments = ["--max-missed", "20"]
    first, second = tracked("rec", *arguments)
    assert first.text == second.text == "tone 0, -20.0 dBFS, peak at 1000 Hz"
    assert [one.begin_utc_ns - BEGIN_NS for one in (first, second)] == [0, 10 * S]
    assert (first.begin_s, first.duration_s, second.begin_s, second.duration_s) == (0, 4.25, 0, 3)
    assert [one.file for one in (first, second)] == [
        "rec/20260501_043000.wav", "rec/20260501_043010.wav",
    ]  # fmt: skip
    of_raven = tracked("rec", *arguments, name="t.selections.txt")
    assert [one.begin_s for one in of_raven] == [0.0, 4.25]
    one, other = tracked("rec", *arguments, name="t.sigmf-meta")
    assert (one.begin_utc_ns, other.begin_utc_ns) == (BEGIN_NS, BEGIN_NS + 10 * S)
    assert (one.begin_s, other.begin_s, other.duration_s) == (0.0, 4.25, 3.0)


def test_an_interval_with_a_gap_in_it_has_a_part_on_both_sides():
    """Neither part reaches into the gap."""
    folder_of([("043000", 4.2), ("043007", 3.0)], (1000.0, 0.0, 0.0, 60.0))
    slow = ["--interval", "4s", "--max-missed", "0"]
    found = tracked("rec", *slow)
    assert [(one.file[-6:-4], one.begin_s, one.duration_s) for one in found] == [
        ("00", 0.0, 4.2), ("07", 0.0, 3.0),
    ]  # fmt: skip
    assert [one.begin_utc_ns - BEGIN_NS for one in found] == [0, 7 * S]


def test_a_part_of_a_recording_has_the_times_of_the_whole():
    """Of --start, also where the first files are skipped, and there is a gap before it."""
    folder_of([("043000", 4.0), ("043010", 6.0)], (1000.0, 0.0, 0.0, 60.0))
    (one,) = tracked("rec", "--start", "12s", "--duration", "2s")
    assert (one.file[-6:-4], one.begin_s, one.duration_s) == ("10", 2.0, 2.0)
    assert one.begin_utc_ns == BEGIN_NS + 12 * S
    (one,) = tracked("rec", "--start", "12s", "--duration", "2s", name="t.labels.txt")
    assert one.begin_s == 6.0


def test_points_follow_a_tone_that_moves():
    """An event for each interval, of one name, beside a table of the intervals' values."""
    store("a.wav", sound(3, (1000.0, 100.0, 0.0, 3.0)))
    points = tracked("a.wav", "--max-step", "200", "--track-points", "-o", "v.csv")
    assert [one.begin_s for one in points] == [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]
    assert {one.duration_s for one in points} == {0.5}
    assert {one.text.partition(",")[0] for one in points} == {"tone 0"}
    middles = np.array([(one.f_min_hz + one.f_max_hz) / 2 for one in points])
    np.testing.assert_allclose(middles, 1000 + 100 * (0.25 + np.arange(6) / 2), atol=15)
    widths = np.array([one.f_max_hz - one.f_min_hz for one in points])
    np.testing.assert_allclose(widths, 2 * HALF_BIN_HZ)
    (row, *_) = csv.DictReader(Path("t.csv").read_text("utf-8").splitlines())
    assert (row["threshold"], row["floor"], row["begin_utc"]) == ("", "", "")
    lines = Path("v.csv").read_text("utf-8").splitlines()
    assert len([one for one in lines if not one.startswith("#")]) == 7


def test_tones_below_0_hz_of_i_q_have_their_band():
    """The band is not cut at 0 Hz, as that of real signals is."""
    t = np.arange(2 * FS) / FS
    noise = 1e-4 * np.random.default_rng(1).standard_normal((2, len(t)))
    parts = 0.1 * np.array([np.cos(-2000 * np.pi * t), np.sin(-2000 * np.pi * t)])
    store("iq.wav", (parts + noise).T)
    (one,) = tracked("iq.wav", "--iq", "--quantity", "tracks")
    middle_hz = (one.f_min_hz + one.f_max_hz) / 2
    assert middle_hz == pytest.approx(-1000.0, abs=0.1)


def test_events_beyond_what_is_read_are_left_out(monkeypatch, capsys):
    """With one line; what is written can be read."""
    monkeypatch.setattr(track_writer, "FILE_EVENTS_MAX", 3)
    store("a.wav", sound(3, (1000.0, 0.0, 0.0, 3.0)))
    assert len(tracked("a.wav", "--track-points")) == 3
    rule = "t.csv: a file has at most 3 events: later ones are left out"
    assert capsys.readouterr().err.count(rule) == 1


def test_a_recording_without_a_tone_has_no_track():
    """The file is complete, and has none."""
    store("a.wav", np.zeros(3 * FS))
    assert tracked("a.wav", name="t.json") == []
    assert json.loads(Path("t.json").read_text("utf-8")) == []


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--tracks", "t.csv"], "--tracks t.csv: must be with --interval"),
        (["--track-points"], "--track-points: must be with --interval"),
        ([*FRAMES, "--track-points"], "--track-points: must be with --tracks FILE"),
        ([*FRAMES, "--tracks", "t.xlsx"], "t.xlsx: events: the name must end with .csv, .json"),
        ([*FRAMES, "--tracks", "t.csv", "--jobs", "2"], "--jobs 2: must be without --tracks"),
        ([*FRAMES, "--tracks", "t.csv", "-o", "t.csv"], "t.csv: must be named once"),
        ([*FRAMES, "--tracks", "t.csv", "--tracks", "b.sigmf-meta"], "is the metadata of b.sigmf"),
    ],
)
def test_bad_arguments_of_tracks(arguments, text, capsys, tmp_path):
    """One line, and no file is left."""
    store("a.wav", sound(2))
    (tmp_path / "b.sigmf-data").touch()
    assert main(["tones", "a.wav", *arguments]) == 2
    error = capsys.readouterr().err
    assert text in error
    assert error.count("\n") == 1
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.wav", "b.sigmf-data"]
