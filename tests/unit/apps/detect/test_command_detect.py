"""``spectrod detect``: planted calls are found, with their times in every format, and as clips."""

import argparse
import csv
import json
import shutil
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
import soundfile
from PIL import Image

from spectrod import Stft
from spectrod.apps.detect import row_parts
from spectrod.apps.detect.command import add_arguments
from spectrod.apps.detect.frames import analysis_of, window_for
from spectrod.apps.detect.row_parts import cut_rows, useful_jobs
from spectrod.apps.detect.search import EventSearch
from spectrod.apps.detect.trigger_flags import trigger_of
from spectrod.cli import main, options
from spectrod.config import config
from spectrod.formats.picture.framing import hop_for
from spectrod.formats.picture.pixelmap import read_pixel_map
from spectrod.formats.picture.theme import GAP, N_LEVELS
from spectrod.measure.triggers.look_ahead import LookAhead
from spectrod.measure.triggers.trigger import Trigger
from spectrod.measure.triggers.trigger_config import TriggerConfig

FS = 16000
WINDOW, HOP = 1024, 256
FRAMES = ["--win-length", str(WINDOW), "--hop", str(HOP)]
BAND = ["--band", "2k..4k", "--floor", "8s", *FRAMES]
NOISE = 2e-3
IN_BAND = NOISE**2 * 2000 / (FS / 2)
"""Power of the noise in the band."""
SPAN_S = WINDOW / FS
"""Begin and end are known to a window."""


def sound(calls, seconds, seed=1, over_db=10.0, n_extra=0):
    """White noise with bursts of 3 kHz, whose level over the noise of the band is given."""
    t = np.arange(round(seconds * FS) + n_extra) / FS
    x = NOISE * np.random.default_rng(seed).standard_normal(len(t))
    tone = np.sqrt(2 * IN_BAND * 10 ** (over_db / 10)) * np.sin(2 * np.pi * 3000 * t)
    for begin_s, end_s in calls:
        is_on = (t >= begin_s) & (t < end_s)
        x[is_on] += tone[is_on]
    return x


def store(path, x, subtype="PCM_16"):
    soundfile.write(path, x, FS, subtype=subtype)
    return str(path)


def found_in(path, delimiter=","):
    return list(csv.DictReader(path.read_text().splitlines(), delimiter=delimiter))


def detect(tmp_path, *arguments):
    """Run the command; return the rows of its CSV file."""
    out = tmp_path / "found.csv"
    assert main(["detect", *map(str, arguments), "-o", str(out)]) == 0
    return found_in(out)


@pytest.mark.parametrize("n_extra", [0, 77])
@pytest.mark.parametrize("over_db", [6.0, 10.0, 20.0])
def test_each_call_is_an_event_from_the_first_second_to_the_end(over_db, n_extra, tmp_path):
    """Calls over the threshold are found once each, in the first second and up to the end too."""
    calls = [(0.3, 0.8), (5.0, 5.4), (9.1, 9.5), (19.6, 20.0)]
    file = store(tmp_path / "a.wav", sound(calls, 20, over_db=over_db, n_extra=n_extra))
    rows = detect(tmp_path, file, *BAND, "--over-floor", "4dB", "--hold-off", "0.5")
    assert len(rows) == len(calls)
    for row, (begin_s, end_s) in zip(rows, calls, strict=True):
        assert float(row["begin_s"]) == pytest.approx(begin_s, abs=SPAN_S)
        assert float(row["end_s"]) == pytest.approx(end_s, abs=SPAN_S)
        # Level of tone and noise over that of the noise, whose rows spread by 0.5 dB here.
        expected_db = 10 * np.log10(1 + 10 ** (over_db / 10))
        assert float(row["over_floor_db"]) == pytest.approx(expected_db, abs=2.0)
        assert (row["file"], row["begin_utc"], row["unit"]) == (file, "", "dBFS")


def test_by_default_no_call_is_left_out_however_soon_it_comes(tmp_path, capfd):
    """Calls 0.2 s after others are events; with a hold-off their number is stated."""
    calls = [(k + begin, k + begin + 0.3) for k in range(1, 9) for begin in (0.0, 0.5)]
    file = store(tmp_path / "a.wav", sound(calls, 10, over_db=20))
    rows = detect(tmp_path, file, *BAND)
    assert [float(row["begin_s"]) for row in rows] == pytest.approx(
        [begin for begin, _ in calls], abs=SPAN_S
    )
    assert "left out" not in capfd.readouterr().err
    kept = detect(tmp_path, file, *BAND, "--hold-off", "1")
    assert f"{len(calls) - len(kept)} events within the hold-off of another one left out" in (
        capfd.readouterr().err
    )
    assert 0 < len(kept) < len(calls)


def test_a_call_that_outlasts_the_hold_off_has_its_own_begin_and_level(tmp_path, capfd):
    """Begin and peak are those of the call, not those of the end of the hold-off."""
    x = sound([(1.0, 1.5), (1.8, 4.0)], 10, over_db=20)
    x[round(2.0 * FS) : round(4.0 * FS)] *= 0.5
    x[round(2.0 * FS) : round(4.0 * FS)] += sound([], 2, seed=9)
    file = store(tmp_path / "a.wav", x)
    _, row = detect(tmp_path, file, *BAND, "--hold-off", "1")
    _, same = detect(tmp_path, file, *BAND)
    assert row == same
    assert float(row["begin_s"]) == pytest.approx(1.8, abs=SPAN_S)
    assert "left out" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("given", "frames"),
    [
        ([], (1024, 256)),
        (["--win-length", "2048"], (2048, 512)),
        (["--win-length", "999"], (999, 249)),
        (["--win-length", "2048", "--hop", "100"], (2048, 100)),
        (["--hop", "500"], (4096, 500)),
        (["--nfft", "8192"], (4096, 1024)),
        (["--bands", "third-octave"], (4096, 1024)),
        (["--averaging", "mean", "--rate-hz", "20"], (1024, 256)),
        (["--trigger", "call"], (4096, 1024)),
        (["--config", "own.toml"], (512, 128)),
    ],
)
def test_frames_are_chosen_by_time_unless_named(given, frames, tmp_path, monkeypatch):
    """The window is near 64 ms and overlaps by 3/4; what is named, and the daemon's, stays."""
    monkeypatch.chdir(tmp_path)
    table = "[triggers.call]\nthreshold = -50\nunit = 'dBFS'\n"
    Path("spectrod.toml").write_text(table)
    Path("own.toml").write_text("[analysis]\nwin_length = 512\n")
    given = given if "--config" in given else [*given, "--config", "spectrod.toml"]
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    args = parser.parse_args(["a.wav", *given])
    args.source = "a.wav"
    analysis = analysis_of(args, config.load_layers(args.config, options.flags(args)), FS)
    assert (analysis.win_length, analysis.hop) == frames


@pytest.mark.parametrize(
    ("fs", "window"),
    [(10, 64), (8000, 512), (16000, 1024), (44100, 2048), (48000, 4096), (384000, 32768)],
)
def test_windows_are_powers_of_two_near_64_ms(fs, window):
    """Of usual rates they last 45 to 90 ms; of low ones they have 64 samples."""
    assert window_for(fs) == window
    assert fs < 1000 or 0.045 <= window / fs <= 0.091


@pytest.mark.parametrize("kind", ["band", "bin"])
def test_noise_alone_has_no_event(kind, tmp_path):
    """A minute of noise reaches neither default threshold."""
    file = store(tmp_path / "a.wav", sound([], 60, seed=4))
    assert detect(tmp_path, file, *BAND, "--kind", kind) == []


def test_a_bin_is_named_by_its_frequency(tmp_path):
    """The event of a bin has the frequency of its peak, to a bin."""
    file = store(tmp_path / "a.wav", sound([(1.0, 2.0)], 12, over_db=20))
    (row,) = detect(tmp_path, file, *BAND, "--kind", "bin", "--over-floor", "20 dB")
    assert float(row["frequency_hz"]) == pytest.approx(3000.0, abs=FS / WINDOW)


def rows_of(samples):
    with Stft(FS, engine="numpy", win_length=WINDOW, hop=HOP, scaling="dbfs") as stft:
        return [*stft.push(samples.astype(np.float32)[np.newaxis]), *stft.finish()]


def trigger(batches, **keys):
    over_db = 8.0 if keys.get("kind", "band") == "band" else 15.0
    floor = {"over_floor_db": over_db, "floor_s": 8.0, "hold_off_s": 0.5}
    band = {"f_min_hz": 2000.0, "f_max_hz": 4000.0}
    return Trigger(TriggerConfig("t", **band, **floor, **keys), batches[0].spec, ("0",))


@pytest.mark.parametrize("kind", ["band", "bin"])
def test_after_a_window_of_the_floor_events_are_those_of_the_daemon(kind):
    """Once a window of rows was read, a look ahead and a live trigger give the same events."""
    calls = [(k + 0.5, k + 0.8) for k in range(0, 30, 2)]
    batches = rows_of(sound(calls, 30, over_db=15))
    live, stored = trigger(batches, kind=kind), LookAhead(trigger(batches, kind=kind))
    of_live = [event for batch in batches for event in live.push(batch)] + live.end("stopped")
    of_file = [event for batch in batches for event in stored.push(batch)] + stored.finish()
    settled_ns = int(batches[0].t_utc_ns[0]) + 8_300_000_000
    late = [one for one in of_live if one.begin_utc_ns > settled_ns]
    assert len(late) >= 20
    assert [one for one in of_file if one.begin_utc_ns > settled_ns] == late
    assert len(of_file) > len(of_live)


def cut(folder, x, pause_s):
    """Store a recording in files of 2 s, each followed by a pause."""
    folder.mkdir()
    begin = np.datetime64("2026-05-01T04:00:00")
    for k, piece in enumerate(x.reshape(-1, 2 * FS)):
        clock = str(begin + np.timedelta64(k * (2 + pause_s), "s")).translate(
            {45: None, 58: None, 84: "_"}
        )
        store(folder / f"{clock}.wav", piece, "FLOAT")
    return folder


@pytest.mark.parametrize("kind", ["band", "bin"])
@pytest.mark.parametrize("pause_s", [1, 60, 36_000])
def test_pauses_change_no_event(pause_s, kind, tmp_path):
    """A recording cut into files of 2 s, with pauses of any length, has the events of the whole.

    A file is 125 hops long, so rows lie alike; those that span two files are missing. The floor is
    of 128 rows, some others: of a bin it has a deviation of about 0.6 dB, and differs by less than
    3 dB. By that much an event may begin and end with another row, whose window holds a bit more.
    """
    calls = [(k + 0.5, k + 0.8) for k in range(1, 40, 2)]
    x = sound(calls, 40, over_db=20)
    given = [*BAND, "--kind", kind]
    whole = detect(tmp_path, store(tmp_path / "a.wav", x, "FLOAT"), *given)
    parts = detect(tmp_path, cut(tmp_path / "in", x, pause_s), *given)
    assert len(whole) == len(parts) == len(calls)
    for k, (one, other) in enumerate(zip(whole, parts, strict=True)):
        for key, lies_s in (("begin_s", 2 * k), ("end_s", 2 * k)):
            assert float(other[key]) + lies_s == pytest.approx(float(one[key]), abs=HOP / FS + 1e-6)
        heights = [float(row["over_floor_db"]) for row in (one, other)]
        assert heights[1] == pytest.approx(heights[0], abs=3.0)


@pytest.mark.parametrize("kind", ["band", "bin"])
def test_noise_in_short_files_has_no_event(kind, tmp_path):
    """Files of 2 s with long pauses have the floor of more than a file: noise is no event."""
    given = [*BAND, "--kind", kind]
    assert detect(tmp_path, cut(tmp_path / "in", sound([], 120, seed=5), 600), *given) == []


def test_a_tone_through_most_of_a_short_file_is_an_event(tmp_path):
    """It lasts for longer than four fifths of its file, and for less than those of the floor."""
    folder = cut(tmp_path / "in", sound([(4.05, 5.95)], 12, over_db=20), 600)
    (row,) = detect(tmp_path, folder, *BAND)
    assert float(row["begin_s"]) == pytest.approx(0.05, abs=SPAN_S)
    assert float(row["end_s"]) == pytest.approx(1.95, abs=SPAN_S)


def test_rows_wait_within_a_bound_of_memory(monkeypatch):
    """If the rows of a window exceed the bound, the floor is that of those which are there."""
    calls = [(0.3, 0.8)]
    batches = [one for batch in rows_of(sound(calls, 10)) for one in _singles(batch)]
    stored = LookAhead(trigger(batches))
    monkeypatch.setattr(
        "spectrod.measure.triggers.look_ahead.WAITING_MAX_BYTES",
        100 * stored.measure(batches[0]).n_bytes,
    )
    found = [stored.push(batch) for batch in batches]
    assert found[98] == []
    assert [event.state for event in found[99]] == ["begun", "ended"]


def _singles(batch):
    return [batch.between(k, k + 1) for k in range(batch.n_frames)]


def test_a_short_stretch_without_a_floor_is_named(tmp_path, capfd):
    """Less than 16 rows have no floor: nothing is found, and a line says so."""
    x = sound([(0.05, 0.1)], 0.2)
    assert detect(tmp_path, store(tmp_path / "a.wav", x), *BAND) == []
    assert "too short for a noise floor and not examined" in capfd.readouterr().err


def test_folders_and_formats_agree(tmp_path):
    """Raven's and Audacity's times are the CSV's, in each file and with all files joined."""
    folder = tmp_path / "in"
    folder.mkdir()
    lengths = {"A_20260501_040000.wav": 10, "A_20260501_041000.wav": 12, "A_20260501_042000.wav": 9}
    for k, (name, seconds) in enumerate(lengths.items()):
        store(folder / name, sound([(0.2, 0.6), (5.0 + k, 5.4 + k)], seconds, seed=k))
    names = [f"f.{end}" for end in ("csv", "json", "selections.txt", "labels.txt")]
    outputs = [part for name in names for part in ("-o", str(tmp_path / name))]
    assert main(["detect", str(folder), *BAND, "--over-floor", "6dB", *outputs]) == 0
    of_csv = found_in(tmp_path / "f.csv")
    assert len(of_csv) == 6
    of_json = json.loads((tmp_path / "f.json").read_text())
    raven = found_in(tmp_path / "f.selections.txt", "\t")
    labels = (tmp_path / "f.labels.txt").read_text().splitlines()
    starts = dict(zip(lengths, np.cumsum([0, *lengths.values()]), strict=False))
    for k, row in enumerate(of_csv):
        name = Path(row["file"]).name
        begin_s, end_s = float(row["begin_s"]), float(row["end_s"])
        assert of_json[k]["begin_s"] == begin_s
        assert raven[k]["Begin File"] == name
        assert float(raven[k]["File Offset (s)"]) == pytest.approx(begin_s, abs=1 / FS)
        joined = starts[name] + np.array([begin_s, end_s])
        times = float(raven[k]["Begin Time (s)"]), float(raven[k]["End Time (s)"])
        assert times == pytest.approx(joined, abs=1 / FS)
        assert [*map(float, labels[2 * k].split("\t")[:2])] == pytest.approx(joined, abs=1 / FS)
        assert labels[2 * k + 1] == "\\\t2000.000\t4000.000"
        utc = np.datetime64(row["begin_utc"].rstrip("Z"), "ns")
        digits = name[2:17]
        begin = np.datetime64(f"2026-05-01T{digits[9:11]}:{digits[11:13]}:{digits[13:15]}", "ns")
        assert (utc - begin) / np.timedelta64(1, "s") == pytest.approx(begin_s, abs=1 / FS)
    assert [Path(row["file"]).name for row in of_csv] == [name for name in lengths for _ in "ab"]


def test_times_of_a_zone_have_its_offset(tmp_path, capsys):
    """CSV, JSON, table and picture have local times with an offset, past the end of summer time."""
    zone = ["--time-zone", "Europe/Berlin"]
    folder = tmp_path / "in"
    folder.mkdir()
    for k, clock in enumerate(("20261025_005930", "20261025_010030")):
        store(folder / f"{clock}.wav", sound([(1.0, 1.5)], 10, seed=k, over_db=20))
    outputs = ["-o", str(tmp_path / "a.json"), "--pictures", str(tmp_path / "p")]
    local = detect(tmp_path, folder, *BAND, *zone, *outputs)
    utc = detect(tmp_path, folder, *BAND)
    assert [row["begin"][10:16] + row["begin"][-6:] for row in local] == [
        "T02:59+02:00",
        "T02:00+01:00",
    ]
    of_json = json.loads((tmp_path / "a.json").read_text())
    for one, other, row in zip(local, of_json, utc, strict=True):
        for key in ("begin", "end"):
            assert one[key] == other[key]
            same = datetime.fromisoformat(one[key][:26] + one[key][29:])
            assert same == datetime.fromisoformat(row[f"{key}_utc"][:26] + "+00:00")
        assert [*one.values()][2:] == [*row.values()][2:]
    (first, _) = sorted((tmp_path / "p").iterdir())
    assert read_pixel_map(first).options["time_zone"] == "Europe/Berlin"
    capsys.readouterr()
    assert main(["detect", str(folder), *BAND, *zone]) == 0
    _, names, _, first, _, second = capsys.readouterr().out.splitlines()
    assert names.split()[0] == "Europe/Berlin"
    cells = [one.split()[0] for one in (first, second)]
    assert cells == [one["begin"][:23] + one["begin"][29:] for one in local]
    assert {len(one) for one in (names, first, second)} == {len(names)}


def test_several_files_are_joined_in_their_order(tmp_path):
    """Times of all files count on over the sources; each has a floor of its own."""
    first = store(tmp_path / "a.wav", sound([(1.0, 1.5)], 10))
    second = store(tmp_path / "b.wav", 8 * sound([(0.2, 0.7)], 10, seed=2))
    raven = tmp_path / "raven.txt"
    assert main(["detect", first, second, *BAND, "--over-floor", "6", "-o", str(raven)]) == 0
    rows = found_in(raven, "\t")
    assert [row["Begin File"] for row in rows] == ["a.wav", "b.wav"]
    for row, begin_s in zip(rows, (1.0, 10.2), strict=True):
        assert float(row["Begin Time (s)"]) == pytest.approx(begin_s, abs=SPAN_S)


def test_events_of_several_processes_are_those_of_one(tmp_path, capfd, monkeypatch):
    """Files, tables, clips and what is said are alike to the byte, in the order of the sources."""
    monkeypatch.chdir(tmp_path)
    for k, calls in enumerate([[(1.0, 1.3), (4.0, 4.3)], [], [(2.0, 2.5)]]):
        store(f"{k}.wav", sound(calls, 6, seed=k + 1))
    store("short.wav", np.zeros(FS // 10))
    cut(Path("folder"), sound([(1.0, 1.3)], 4, seed=7), 0)
    sources = ["2.wav", "0.wav", "short.wav", "folder", "1.wav"]
    found = []
    for jobs in ([], ["--jobs", "2"]):
        outputs = ["-o", "o/e.csv", "-o", "o/raven.txt", "--clips", "o/clips"]
        code = main(["detect", *sources, *BAND, *outputs, *jobs])
        said, warned = capfd.readouterr()
        # Without the times of log lines.
        warned = [one.split(" ", 1)[1] for one in warned.splitlines()]
        files = {
            str(path): path.read_bytes() for path in sorted(Path("o").rglob("*")) if path.is_file()
        }
        shutil.rmtree("o")
        found.append((code, said, warned, files))
    assert found[0] == found[1]
    code, _, warned, files = found[0]
    assert code == 0
    assert "short.wav" in "".join(warned)
    assert len(files) == 2 + 4


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["a.wav", "--jobs", "65"], "--jobs 65: must be 1 to 64"),
        (["a.wav", "signal:white,-20", "--jobs", "2"], "which signal:white,-20 is not"),
        (["a.wav", "broken.wav", "--jobs", "2"], "broken.wav"),
    ],
)
def test_processes_are_refused_in_a_line(arguments, text, tmp_path, capfd, monkeypatch):
    """Also where a source of another process cannot be read; no file is left."""
    monkeypatch.chdir(tmp_path)
    store("a.wav", sound([(1.0, 1.3)], 4))
    Path("broken.wav").write_bytes(b"RIFF")
    assert main(["detect", *arguments, *BAND, "-o", "e.csv"]) != 0
    error = capfd.readouterr().err
    assert text in error
    assert error.count("\n") == 1
    assert not Path("e.csv").exists()


def _recordings(name):
    """Write sound with calls on both sides of each joint, and at the ends; return its path."""
    if name == "file":
        return store("a.wav", sound([(0.2, 0.6), (3.8, 4.3), (8.0, 8.2), (11.9, 12.0)], 12))
    Path(name).mkdir()
    step_s = {"continuous": 3, "pauses": 10}[name]
    calls = [(0.1, 0.4), (2.7, 3.2), (3.6, 3.9), (4.4, 4.7), (5.95, 6.2), (8.0, 11.0)]
    x = sound(calls, 12, seed=5)
    for k in range(4):
        part = x[3 * k * FS : 3 * (k + 1) * FS]
        store(f"{name}/A_20260501_0400{k * step_s:02}.wav", part)
    return name


KINDS = [
    ["--over-floor", "6"],
    ["--kind", "bin", "--over-floor", "20", "--hold-off", "1"],
    ["--kind", "tone", "--prominence", "20"],
    ["--over-floor", "6", "--pulse", "0.1s..1s", "--pause", "0.1s..6s", "--pulses", "2"],
    ["--over-floor", "6", "--averaging", "mean", "--rate-hz", "20"],
]


@pytest.mark.parametrize("kind", KINDS, ids=["band", "bin", "tone", "pulses", "means"])
@pytest.mark.parametrize("name", ["file", "continuous", "pauses"])
def test_parts_of_one_source_have_the_events_of_the_whole(name, kind, monkeypatch, tmp_path):
    """Rows of parts, cut at gaps and at frames, are those of the whole to the bit."""
    monkeypatch.chdir(tmp_path)
    source = _recordings(name)
    search = _search(source, kind)
    whole = list(search.rows())
    found = [_search(source, kind, rows=whole)]
    for jobs in (2, 5):
        parts = cut_rows(search.source, search._span, search._spec, jobs)
        rows = [one for part in parts for one in _search(source, kind).rows(part)]
        found.append(_search(source, kind, rows=rows))
        for key in ("sample_index", "t_utc_ns"):
            both = [np.concatenate([getattr(one, key) for one in each]) for each in (whole, rows)]
            assert np.array_equal(*both)
        assert len(parts) > 3 or "--averaging" in kind
    assert len(found[0]) >= 2 - ("--pulse" in kind)
    assert found[1] == found[0] == found[2]


def _search(source, kind, rows=None):
    """Return the search that the command makes, or the events in rows."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    band = BAND if "--over-floor" in kind else [*BAND[:2], *FRAMES]
    args = parser.parse_args([source, *band, *kind])
    args.source = source
    settings = config.load(args.config, options.flags(args))
    search = EventSearch(args, *trigger_of(args, settings), is_hidden=True)
    if rows is None:
        return search
    monkey = iter(rows)
    search.rows = lambda: (one for one in monkey)
    return list(search.events())


def test_processes_share_one_source(tmp_path, capfd, monkeypatch):
    """Files and clips are those of one process; what is too short has one, and a line says so."""
    monkeypatch.chdir(tmp_path)
    source = _recordings("continuous")
    n_points = int(12 * FS / HOP) * WINDOW
    monkeypatch.setattr(row_parts, "_PROCESS_POINTS_MIN", n_points // 4)
    found = []
    for jobs in ([], ["--jobs", "2"]):
        outputs = ["-o", "o/e.csv", "--clips", "o/clips"]
        assert main(["detect", source, *BAND, "--over-floor", "6", *outputs, *jobs]) == 0
        files = {path: path.read_bytes() for path in Path("o").rglob("*") if path.is_file()}
        found.append((files, capfd.readouterr()))
        shutil.rmtree("o")
    assert found[0] == found[1]
    short = store("short.wav", sound([], 3.0))
    assert main(["detect", short, *BAND, "--jobs", "2"]) == 0
    assert "one process searches short.wav: it is too short" in capfd.readouterr().err


def test_no_process_starts_that_would_not_pay(monkeypatch, tmp_path):
    """Each process has as many points as its start is worth, or there are fewer of them.

    Pauses between files are no points.
    """
    monkeypatch.chdir(tmp_path)
    search = _search(_recordings("pauses"), [])
    of_search = search.source, search._span, search._spec
    n_points = 12 * FS // HOP * WINDOW
    for least, jobs in ((n_points, 1), (n_points // 2 + 1, 1), (n_points // 2, 2), (1, 3)):
        monkeypatch.setattr(row_parts, "_PROCESS_POINTS_MIN", least)
        assert useful_jobs(*of_search, 3) == jobs


@pytest.mark.parametrize("subtype", ["PCM_16", "PCM_24", "FLOAT"])
def test_clips_have_the_samples_of_the_source(subtype, tmp_path):
    """A clip is the event and a margin, bit for bit, in the format of the file."""
    path = tmp_path / "A_20260501_040000.wav"
    file = store(path, sound([(0.2, 0.6), (5.0, 5.5)], 10), subtype)
    clips = tmp_path / "clips"
    rows = detect(tmp_path, file, *BAND, "--over-floor", "6", "--clips", clips, "--margin", "500ms")
    dtype = "float32" if subtype == "FLOAT" else "int32"
    whole, _ = soundfile.read(path, dtype=dtype)
    written = sorted(clips.iterdir())
    assert len(written) == len(rows) == 2
    for clip, row in zip(written, rows, strict=True):
        first = max(0, round(float(row["begin_s"]) * FS) - FS // 2)
        stop = round(float(row["end_s"]) * FS) + FS // 2
        samples, _ = soundfile.read(clip, dtype=dtype)
        assert np.array_equal(samples, whole[first:stop])
        assert soundfile.info(clip).subtype == subtype
        utc = row["begin_utc"].replace("-", "").replace(":", "")
        assert clip.name == f"A_20260501_040000_{utc[:19]}Z.wav"


def test_clips_of_a_folder_are_of_their_files(tmp_path):
    """A clip of a folder's event has the samples of the file where it is."""
    folder, clips = tmp_path / "in", tmp_path / "clips"
    folder.mkdir()
    paths = [folder / f"A_20260501_04{k}000.wav" for k in range(2)]
    for k, path in enumerate(paths):
        store(path, sound([(3.0, 3.5)], 10, seed=k))
    detect(tmp_path, folder, *BAND, "--over-floor", "6", "--clips", clips, "--margin", "10ms")
    written = sorted(clips.iterdir())
    assert len(written) == 2
    for clip, path in zip(written, paths, strict=True):
        whole, _ = soundfile.read(path, dtype="int16")
        samples, _ = soundfile.read(clip, dtype="int16")
        at = np.flatnonzero(whole == samples[0])
        assert any(np.array_equal(whole[k : k + len(samples)], samples) for k in at)


def test_a_folder_is_listed_once_for_all_clips(tmp_path, capfd):
    """Clips and pictures of a folder's events read no headers again: its warning comes once."""
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("a.wav", "b.wav"):
        store(folder / name, sound([(3.0, 3.5)], 10))
    both = ["--clips", tmp_path / "clips", "--pictures", tmp_path / "pictures"]
    assert len(detect(tmp_path, folder, *BAND, "--over-floor", "6", *both)) == 2
    assert len(list((tmp_path / "clips").iterdir())) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert "no file says when it begins" in line


@pytest.mark.parametrize("is_dated", [False, True])
def test_pictures_frame_their_events(is_dated, tmp_path):
    """A picture has the clip's name, its times, and a frame around the event in its channel."""
    name = "A_20260501_040000" if is_dated else "a"
    x = np.column_stack([sound([], 10, seed=2), sound([(5.0, 5.5)], 10, over_db=20)])
    file = store(tmp_path / f"{name}.wav", x)
    clips, pictures = tmp_path / "clips", tmp_path / "new" / "pictures"
    both = ["--clips", clips, "--pictures", pictures, "--margin", "1s"]
    (row,) = detect(tmp_path, file, *BAND, *both)
    assert row["channel"] == "1"
    (picture,) = pictures.iterdir()
    assert [path.stem for path in clips.iterdir()] == [picture.stem]
    about = read_pixel_map(picture)
    begin_s, length_s = float(row["begin_s"]), float(row["duration_s"])
    assert about.duration_s == pytest.approx(length_s + 2.0, abs=SPAN_S)
    assert about.options["time_axis"] == "utc" if is_dated else "time_axis" not in about.options
    if is_dated:
        begin_ns = np.datetime64(row["begin_utc"].rstrip("Z"), "ns").astype(np.int64) - 10**9
        assert about.begin_utc_ns == pytest.approx(begin_ns, abs=10**9 / FS)
    with Image.open(picture) as image:
        pixels = np.asarray(image)
    plots = [pixels[top : top + n, left : left + m] for left, top, m, n in about.plots]
    assert not np.any(plots[0] == GAP - 1)
    rows, columns = np.nonzero(plots[1] == GAP - 1)
    n_rows, n_columns = plots[1].shape
    times_s = (
        begin_s - 1.0 + np.array([columns.min(), columns.max()]) / n_columns * about.duration_s
    )
    pixel_s = about.duration_s / n_columns
    assert times_s == pytest.approx([begin_s, begin_s + length_s], abs=2 * pixel_s)
    ends_hz = FS / 2 * (1 - np.array([rows.max(), rows.min()]) / n_rows)
    assert ends_hz == pytest.approx([2000.0, 4000.0], abs=2 * FS / 2 / n_rows)


@pytest.mark.parametrize("seconds", [(0.0, 4.0), (0.2, 3.1), (1.0, 3.0)])
def test_each_column_of_a_picture_is_of_its_own_time(seconds, tmp_path):
    """A call that slides does so up to the edges of its picture, also at both ends of the file."""
    begin_s, end_s = seconds
    low_hz, slope, window, hop = 1000.0, 500.0, 4096, 1024  # the slope in Hz/s
    t = np.arange(4 * FS) / FS
    x = 0.1 * np.sin(2 * np.pi * (low_hz * t + slope / 2 * t**2))
    file = store(tmp_path / "a.wav", x, "FLOAT")
    band = ["--band", f"{low_hz + slope * begin_s:g}..{low_hz + slope * end_s:g}"]
    fixed = ["--threshold", "-26", "--unit", "dBFS", "--release", "0", "--margin", "1us"]
    frames = ["--win-length", window, "--hop", hop]
    (row,) = detect(tmp_path, file, *band, *fixed, *frames, "--pictures", tmp_path / "p")
    (picture,) = (tmp_path / "p").iterdir()
    about = read_pixel_map(picture)
    with Image.open(picture) as image:
        pixels = np.asarray(image)
    ((left, top, width, height),) = about.plots
    plot = pixels[top : top + height, left : left + width].astype(int)
    plot[plot >= N_LEVELS] = -1  # the frame
    (columns,) = np.nonzero((plot >= 0).sum(axis=0) > height // 2)
    assert len(columns) >= width - 4
    found_hz = FS / 2 * (1 - (np.argmax(plot, axis=0) + 0.5) / height)[columns]
    # At the begin of the file no frame lies around its first half of a window.
    n_samples = round(float(row["duration_s"]) * FS)
    half_s = (window - hop_for(window, n_samples, width)) / 2 / FS
    first_s = max(float(row["begin_s"]), half_s)
    times_s = first_s + (columns + 0.5) / width * about.duration_s
    # A window, in whose half the tone slides by 64 Hz, is highest at its middle: to a pixel (16 Hz)
    # and some bins of 4 Hz its level is highest at the tone of that time.
    within_hz = FS / 2 / height + 4 * FS / window
    assert found_hz == pytest.approx(low_hz + slope * times_s, abs=within_hz)


@pytest.mark.parametrize("bands", ["third-octave", "mel:40"])
def test_pictures_show_bands(bands, tmp_path):
    """Bands and averages are drawn as well, the averages as single frames."""
    file = store(tmp_path / "a.wav", sound([(5.0, 5.5)], 10, over_db=20))
    given = ["--kind", "bin", "--bands", bands, "--averaging", "mean", "--rate-hz", "20"]
    detect(tmp_path, file, *BAND[:2], *FRAMES, *given, "--pictures", tmp_path / "p")
    (picture,) = (tmp_path / "p").iterdir()
    assert read_pixel_map(picture).bands == bands


def test_folders_are_made_once_nothing_is_refused(tmp_path, capfd):
    """A refused run makes no folder; one without events makes them; a file is no folder."""
    quiet = store(tmp_path / "quiet.wav", sound([], 2))
    folders = [tmp_path / "clips", tmp_path / "pictures"]
    both = ["--clips", str(folders[0]), "--pictures", str(folders[1])]
    for arguments in (["none.wav"], [quiet, "none.wav"], [quiet, "--band", "2k..9k"]):
        assert main(["detect", *arguments, *FRAMES, *both]) == 2
        assert not any(folder.exists() for folder in folders)
    capfd.readouterr()
    assert main(["detect", quiet, *BAND[:2], *FRAMES, *both]) == 0
    assert all(folder.is_dir() for folder in folders)
    assert main(["detect", quiet, "--pictures", quiet]) == 74
    assert capfd.readouterr().err == f"spectrod: {quiet}: must be a folder, it is a file\n"


def test_a_trigger_of_the_configuration_and_a_mask(tmp_path, capsys):
    """--trigger takes a table of the configuration, and --mask a file of points."""
    file = store(tmp_path / "a.wav", sound([(1.0, 2.0)], 10, over_db=20))
    configuration = tmp_path / "c.toml"
    configuration.write_text("[triggers.call]\nf_min_hz = 2000\nthreshold = -50\nunit = 'dBFS'\n")
    mask = tmp_path / "m.toml"
    mask.write_text("unit = 'dBFS'\npoints = [[2000, -50], [4000, -50]]\n")
    given = [["--trigger", "call", "--config", str(configuration)], ["--mask", str(mask)]]
    for arguments in (*given, ["--threshold", "-50", "--unit", "dBFS"], ["--prominence", "20dB"]):
        (row,) = detect(tmp_path, file, *FRAMES, *arguments)
        assert float(row["begin_s"]) == pytest.approx(1.0, abs=SPAN_S)
    assert main(["detect", file, *FRAMES, "--trigger", "call", "--config", str(configuration)]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[-3].startswith("# ")
    assert out[-2].split() == ["in", "file", "[s]", "length", "[s]", *out[-2].split()[5:]]


def test_events_of_a_folder_stand_below_their_files(tmp_path, capsys):
    """Without an output, times count from the begin of the file that is named above them."""
    folder = tmp_path / "night"
    folder.mkdir()
    for k, name in enumerate(("20260501_043000.wav", "20260501_044000.wav")):
        store(folder / name, sound([(3.0 + k, 3.5 + k)], 10, seed=k))
    assert main(["detect", str(folder), *FRAMES, *BAND, "--over-floor", "6"]) == 0
    _, _, *lines = capsys.readouterr().out.splitlines()
    assert [line.split("/")[-1] for line in lines[::2]] == [
        "20260501_043000.wav",
        "20260501_044000.wav",
    ]
    begins_s = [float(line.split()[1]) for line in lines[1::2]]
    assert begins_s == pytest.approx([3.0, 4.0], abs=SPAN_S)


def test_a_pattern_finds_the_alarm_beside_a_kettle(tmp_path, capsys):
    """Pulses of a smoke alarm are an event with their number in each format; a whistle is none."""
    whistle, alarm = [(2.0, 6.0)], [(8.0, 8.5), (9.0, 9.5), (10.0, 10.5)]
    file = store(tmp_path / "a.wav", sound(whistle + alarm, 13, over_db=20))
    pattern = [*BAND, "--pulse", "300ms..0.7", "--pause", "0.3..0.7", "--pulses", "3"]
    names = [f"f.{end}" for end in ("csv", "json", "selections.txt", "labels.txt")]
    outputs = [part for name in names for part in ("-o", str(tmp_path / name))]
    assert main(["detect", file, *pattern, *outputs]) == 0
    (row,) = found_in(tmp_path / "f.csv")
    assert float(row["begin_s"]) == pytest.approx(8.0, abs=SPAN_S)
    assert float(row["end_s"]) == pytest.approx(10.5, abs=SPAN_S)
    assert row["pulses"] == "3"
    assert json.loads((tmp_path / "f.json").read_text())[0]["pulses"] == 3
    assert found_in(tmp_path / "f.selections.txt", "\t")[0]["Pulses"] == "3"
    assert (tmp_path / "f.labels.txt").read_text().splitlines()[0].endswith(" dBFS 3 pulses")
    capsys.readouterr()
    assert main(["detect", file, *pattern]) == 0
    _, names, values = capsys.readouterr().out.splitlines()
    assert (names.split()[-1], values.split()[-1]) == ("pulses", "3")
    plain = detect(tmp_path, file, *BAND)
    assert len(plain) == 4
    assert {row["pulses"] for row in plain} == {""}


ERRORS = [
    (["-o", "x.txt"], "x.txt: events: the name must end with .csv, .json, selections.txt"),
    (["--band", "2k"], "--band 2k: must be LO..HI, as 2k..6k"),
    (["--time-zone", "Mars/X"], "--time-zone='Mars/X': there is no such time zone"),
    (["--time-zone", "UTC"], "has no start time; give --start-time"),
    (["--band", "6k..2k"], "f_min_hz=6000: must be below f_max_hz=2000"),
    (["--band", "2k..90k"], "f_max_hz=90000: must be 0 to 8000 Hz, the Nyquist frequency"),
    (["--over-floor", "much"], "--over-floor='much': must be a number"),
    (["--over-floor", "0"], "over_floor_db=0: must be 0.1 to 200"),
    (["--floor", "0.2"], "floor_s=0.2: must be at least 16 rows of the product"),
    (["--threshold", "-40"], "unit='': must name the unit of threshold"),
    (["--threshold", "-40", "--unit", "dB SPL"], "unit='dB SPL': must be 'dBFS'"),
    (["--kind", "tone"], "prominence_db: must be given for kind='tone'"),
    (["--mask", "m.csv"], "--mask m.csv: suffix must be .toml"),
    (["--mask", "none.toml"], "none.toml does not exist"),
    (["--trigger", "call"], "--trigger call: must be a table [triggers.NAME]"),
    (["--pulse", "0.5", "--pause", "1..2"], "--pulse='0.5': must be LO..HI, as 0.3..0.7"),
    (["--pulse", "1..x", "--pause", "1..2"], "--pulse='x': must be a time: 90, 1.5h"),
    (["--pulse", "0.3..0.7"], "pause_s: must be given with pulse_s"),
    (["--margin", "2h"], "--margin 7200: must be at most 3600 s"),
]


@pytest.mark.parametrize(("arguments", "message"), ERRORS, ids=lambda one: str(one)[:24])
def test_bad_input_is_one_line_and_leaves_no_file(arguments, message, tmp_path, monkeypatch, capfd):
    """Each error names the value and the rule; no output is left."""
    monkeypatch.chdir(tmp_path)
    store(tmp_path / "a.wav", sound([], 2))
    assert main(["detect", "a.wav", "-o", "found.csv", *arguments]) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert message in line
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.wav"]


def test_sources_without_an_end_or_a_second_reading_are_refused(tmp_path, capfd):
    """An endless signal needs a duration, and clips need a file."""
    assert main(["detect", "signal:white,-20", "--band", "2k..4k"]) == 2
    assert "has no end; give --duration" in capfd.readouterr().err
    for flag in ("--clips", "--pictures"):
        given = [flag, str(tmp_path / "files"), "--duration", "2"]
        assert main(["detect", "signal:white,-20", "--band", "2k..4k", *given]) == 2
        assert "files: signal:white,-20 cannot be read twice" in capfd.readouterr().err
        assert list(tmp_path.iterdir()) == []
