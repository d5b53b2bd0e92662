"""A day of field recordings with bad files: all samples are read or counted as gaps."""

import datetime as dt
import re
from pathlib import Path

import h5py
import numpy as np
import pytest
import soundfile

from spectrod.cli import main
from spectrod.config.config import Config, EngineConfig, PublishConfig, SourceTable
from spectrod.daemon.daemon import build_daemon
from spectrod.formats.picture.pixelmap import read_levels

FS = 8000
START = dt.datetime(2026, 5, 1, tzinfo=dt.UTC)
START_NS = 1_777_593_600 * 10**9
N_FILES, EVERY_S, FILE_S = 144, 600, 2
EMPTY, TRUNCATED, ODD, OVERLAPPED = {20, 77}, {33, 100}, 50, 60
OVERLAP_S = 3
N_TRUNCATED = 10_000
"""Samples that are left of a truncated file."""
NUMPY = ["--engine", "numpy"]


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def write(folder, after_s, seconds, amplitude, fs=FS):
    """Write a tone of 1 kHz as AudioMoth would; return its path."""
    when = START + dt.timedelta(seconds=after_s)
    path = folder / f"{when:%Y%m%d_%H%M%S}.WAV"
    x = amplitude * np.sin(2 * np.pi * 1000 / fs * np.arange(round(seconds * fs)))
    with soundfile.SoundFile(path, "w", fs, 1, "PCM_16", format="WAV") as file:
        file.comment = f"Recorded at {when:%H:%M:%S %d/%m/%Y} (UTC) by AudioMoth 24F319055FDF2F8B"
        file.write(x)
    return path


def amplitude_of(k):
    return 0.01 * (1 + k % 9)


@pytest.fixture(scope="module")
def deployment(tmp_path_factory):
    """Make a folder; return it with (begin [s], samples, amplitude) of each readable stretch."""
    folder = tmp_path_factory.mktemp("deployment") / "site"
    folder.mkdir()
    stretches = []
    for k in range(N_FILES):
        begin_s, seconds = k * EVERY_S, 2 * OVERLAP_S if k == OVERLAPPED else FILE_S
        path = write(folder, begin_s, seconds, amplitude_of(k), 2 * FS if k == ODD else FS)
        n_samples = seconds * FS
        if k in EMPTY:
            path.write_bytes(b"")
            n_samples = 0
        elif k in TRUNCATED:
            path.write_bytes(path.read_bytes()[: N_TRUNCATED * 2 - FILE_S * FS * 2])
            n_samples = N_TRUNCATED
        elif k == ODD:
            n_samples = 0
        if n_samples:
            stretches.append((begin_s, n_samples, amplitude_of(k)))
        if k == OVERLAPPED:
            write(folder, begin_s + OVERLAP_S, 2 * OVERLAP_S, amplitude_of(k))
            stretches[-1] = (begin_s, 3 * OVERLAP_S * FS, amplitude_of(k))
    return folder, stretches


def accounts(errors):
    """Parse read, missing and total samples from the last line of standard error."""
    ((*counts, _),) = re.findall(r"(\d+) samples read \+ (\d+) missing = (\d+) \((.*?) s\)", errors)
    return tuple(map(int, counts))


def csv_rows(path):
    lines = [line for line in Path(path).read_text().splitlines() if not line.startswith("#")]
    names = lines[0].split(",")
    return [dict(zip(names, line.split(","), strict=True)) for line in lines[1:]]


@pytest.mark.slow
def test_a_day_with_bad_files_is_accounted_for(deployment, capsys):
    """Read and missing samples add up to the day, and picture and data have gaps in place.

    It takes over a second: the files of a whole day.
    """
    folder, stretches = deployment
    flags = ["--time-axis", "utc", "--bands", "octave", "--win-length", "4000", "--hop", "4000"]
    assert main(["record", str(folder), "-o", "x.png", "-o", "x.csv", *NUMPY, *flags]) == 65
    errors = capsys.readouterr().err
    n_read = sum(n for _, n, _ in stretches)
    n_total = (stretches[-1][0] - stretches[0][0]) * FS + stretches[-1][1]
    assert accounts(errors) == (n_read, n_total - n_read, n_total)
    assert n_total == ((N_FILES - 1) * EVERY_S + FILE_S) * FS
    for text in (
        "20260501_032000.WAV: empty file: left out",
        "20260501_053000.WAV: truncated: 32000 bytes announced, 20000 found: read up to there",
        "20260501_082000.WAV: 16000 Hz x 1, but 142 of 143 files have 8000 Hz x 1: left out",
        "20260501_100003.WAV: begins 3.0 s before 20260501_100000.WAV ends: its first 3.0 s are",
    ):
        assert text in errors
    assert errors.count(".WAV: ") == len(EMPTY) + len(TRUNCATED) + 2
    _check_rows(csv_rows("x.csv"), stretches)
    _check_picture(read_levels("x.png"), n_total - n_read, len(stretches) - 1)


def _check_rows(rows, stretches):
    expected = [
        (round(begin_s * FS) + first, amplitude)
        for begin_s, n, amplitude in stretches
        for first in range(0, n - 4000 + 1, 4000)
    ]
    assert [int(row["sample_index"]) for row in rows] == [index for index, _ in expected]
    (band,) = (name for name in rows[0] if re.fullmatch(r"channel 0:(1000|1000\.0|1 kHz)", name))
    levels = [float(row[band]) for row in rows]
    right_db = [20 * np.log10(amplitude) for _, amplitude in expected]
    np.testing.assert_allclose(levels, right_db, atol=0.05)


def _check_picture(levels, n_missing, n_gaps):
    pixels = levels.pixels
    assert (pixels.begin_utc_ns, pixels.gaps, pixels.gap_samples) == (START_NS, n_gaps, n_missing)
    pixel_s = levels.t[1] - levels.t[0]
    is_empty = np.isnan(levels.level).all(axis=0)
    # Columns are shorter than the period, and stand for the recording of it.
    assert pixels.period_s == EVERY_S > pixel_s
    middles = [int((k + 0.5) * EVERY_S / pixel_s) for k in range(N_FILES - 1)]
    assert {k for k, middle in enumerate(middles) if is_empty[middle]} == {*EMPTY, ODD}


@pytest.mark.slow
def test_daily_files_of_a_day_with_bad_files(deployment, capsys):
    """A minute has the effort of its readable samples, and no values without any.

    It takes over a second: the files of a whole day.
    """
    folder, stretches = deployment
    assert main(["record", str(folder), "-o", "d.nc", "--profile", "millidecade", *NUMPY]) == 65
    n_read, n_missing, n_total = accounts(capsys.readouterr().err)
    assert n_read + n_missing == n_total == ((N_FILES - 1) * EVERY_S + FILE_S) * FS
    with h5py.File("d_20260501.nc") as file:
        effort_s, psd = file["effort"][:], file["psd"][:]
    right_s = np.zeros(24 * 60)
    for begin_s, n, _ in stretches:
        right_s[begin_s // 60] = n // (FS // 2) / 2  # by frames of a second that overlap by half
    np.testing.assert_allclose(effort_s, right_s)
    np.testing.assert_array_equal(np.isnan(psd).all(axis=1), right_s == 0)


@pytest.mark.parametrize(
    ("start", "duration", "n_total"),
    [
        ("599.5", "601.5", 601.5 * FS),
        ("0", "500", 500 * FS),
        ("12010", "1200", 1200 * FS),
        ("-1.5", "1h", 1.5 * FS),
        ("-600", "599", 599 * FS),
    ],
)
def test_parts_are_accounted_for(deployment, capsys, start, duration, n_total):
    """For any part, also one that starts or ends in a gap, all samples are accounted for."""
    folder, stretches = deployment
    flags = ["--start", start, "--duration", duration, "--win-length", "256", "--height", "64"]
    assert main(["record", str(folder), "-o", "x.png", *NUMPY, *flags]) == 65
    n_read, n_missing, n_found = accounts(capsys.readouterr().err)
    end_s = stretches[-1][0] + stretches[-1][1] / FS
    begin_s = float(start) + (end_s if start.startswith("-") else 0.0)
    right_db = sum(
        max(0.0, min(begin_s + n_total / FS, t_s + n / FS) - max(begin_s, t_s))
        for t_s, n, _ in stretches
    )
    assert (n_read, n_read + n_missing, n_found) == (right_db * FS, n_total, n_total)


def test_nothing_left_out_is_exit_code_0(tmp_path, capsys):
    """Gaps between intact files are no fault and give exit code 0."""
    (tmp_path / "site").mkdir()
    for k in range(3):
        write(tmp_path / "site", 60 * k, 1, 0.1)
    assert main(["record", "site", "-o", "x.png", "--win-length", "256", *NUMPY]) == 0
    assert "left out" not in capsys.readouterr().err


def test_strictly_the_first_bad_file_ends_it(deployment, tmp_path, capsys):
    """In strict mode the first bad file ends the run without output, in one line."""
    folder, _ = deployment
    assert main(["record", str(folder), "--strict", "-o", "x.png", *NUMPY]) == 2
    errors = capsys.readouterr().err
    assert "_032000.WAV: empty file (without --strict, what can be read is read)" in errors
    assert errors.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_deep_check_of_the_configuration_names_a_bad_file(tmp_path, capsys):
    """The command ``config check --deep`` names a bad file of a folder before a daemon plays it."""
    (tmp_path / "site").mkdir()
    paths = [write(tmp_path / "site", 10 * k, 1, 0.1) for k in range(2)]
    paths[1].write_bytes(b"")
    (tmp_path / "c.toml").write_text('[source]\nuri = "site"\n[engine]\nengine = "numpy"\n')
    assert main(["config", "check", "c.toml", "--deep"]) == 0
    text = "files left out or read in part: 1, first site/20260501_000010.WAV: empty file: left out"
    assert text in capsys.readouterr().out


@pytest.mark.parametrize("suffix", ["wav", "flac"])
def test_a_truncated_file_is_recorded_up_to_its_end(tmp_path, capsys, suffix):
    """A truncated file is drawn to its end, with a line and an exit code about the rest."""
    path = tmp_path / f"x.{suffix}"
    noise = np.random.default_rng(1).uniform(-0.5, 0.5, 20 * FS)
    soundfile.write(path, noise, FS, "PCM_16")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    arguments = ["record", path.name, "-o", "x.png", "-o", "x.csv", "--win-length", "256", *NUMPY]
    assert main([*arguments, "--strict"]) == 2
    errors = capsys.readouterr().err
    assert re.search(r"x\.\w+: (truncated|damaged): .* \(without --strict, what can be", errors)
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    assert main(arguments) == 65
    errors = capsys.readouterr().err
    assert re.search(rf"x\.{suffix}: (truncated|damaged): .*: read up to there", errors)
    n_read, n_missing, _ = accounts(errors)
    assert (8 * FS < n_read <= 10 * FS, n_missing) == (True, 0)
    assert int(csv_rows("x.csv")[-1]["sample_index"]) + 256 > n_read - 1024
    drawn_s = read_levels("x.png").pixels.duration_s
    assert drawn_s == pytest.approx(n_read / FS, abs=0.1)


def test_a_daemon_reports_bad_files_and_continues(tmp_path):
    """Each bad file is an event and is counted, and the daemon plays the rest of the folder."""
    folder = tmp_path / "site"
    folder.mkdir()
    paths = [write(folder, 10 * k, FILE_S, 0.1) for k in range(4)]
    paths[1].write_bytes(b"")
    paths[2].write_bytes(paths[2].read_bytes()[: N_TRUNCATED * 2 - FILE_S * FS * 2])
    table = SourceTable(uri=str(folder), pace="full", name="site")
    publish = PublishConfig(endpoints=("tcp://127.0.0.1:*",))
    engine = EngineConfig(engine="numpy")
    daemon = build_daemon(Config(sources=(table,), publish=publish, engine=engine))
    daemon.start()
    try:
        while not daemon.finished:
            daemon.progress.wait(0.5)
        (stats,) = daemon.stats()
        events = [one for one in daemon.events.since() if one.kind == "source.left_out"]
    finally:
        daemon.stop()
    assert (stats.state, stats.capture.left_out_files) == ("finished", 2)
    assert stats.samples - stats.gap_samples == 2 * FILE_S * FS + N_TRUNCATED
    assert [one.source for one in events] == ["site", "site"]
    assert events[0].text.endswith("20260501_000010.WAV: empty file: left out")
    assert events[1].text.endswith("32000 bytes announced, 20000 found: read up to there")
