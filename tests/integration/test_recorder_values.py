"""Recordings of measurements by a running daemon."""

import time

import h5netcdf
import numpy as np
import pytest
import soundfile
from metered import load

from spectrod.cli import main
from spectrod.daemon.daemon import Daemon

FS = 8000
LIMIT_S = 60.0


def lines_of(path):
    """Return the comments, the names of the columns, and the rows of a CSV file."""
    lines = path.read_text("utf-8").splitlines()
    comments = [one for one in lines if one.startswith("#")]
    names, *rows = lines[len(comments) :]
    return comments, names, [row.split(",") for row in rows]


def await_rows(daemon, n):
    """Wait until every recording has a number of rows."""
    deadline_s = time.monotonic() + LIMIT_S
    while min(one.get("rows", 0) for one in daemon.recordings.status()["recorders"]) < n:
        assert time.monotonic() < deadline_s, daemon.recordings.status()["recorders"]
        daemon.progress.wait(0.02)


@pytest.mark.slow
def test_recorded_levels_are_those_of_the_command(tmp_path, monkeypatch):
    """A recording in 1/24 octaves has the digits of ``spectrod levels``, without a subscriber.

    It has every sample up to the stop of the daemon, the last ones in a partial interval.

    Features of the same source have a recording of their own.
    """
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(5).uniform(-0.3, 0.3, (4 * FS, 2)).astype(np.float32)
    soundfile.write("a.wav", x, FS, subtype="FLOAT")
    daemon = Daemon(
        load(
            tmp_path,
            'uri = "a.wav"\nloop = true\nchannel_names = ["left", "right"]',
            '[levels.finest]\nbands = "octave/24"\ninterval_s = 0.25\nalign = "start"\n'
            '[features.shape]\ninterval_s = 0.25\nalign = "start"\nwin_length = 256\n'
            'spectra = ["kurtosis"]\n'
            "[transfer.pair]\ninterval_s = 0.25\nwin_length = 256\n"
            'quantities = ["mean_coherence"]\n'
            '[recordings.transfer]\nproduct = "pair"\nfolder = "r"\nmin_free_mb = 0\n'
            '[recordings.levels]\nproduct = "finest"\nfolder = "r"\nmin_free_mb = 0\n'
            'attributes = {title = "T"}\n'
            '[recordings.netcdf]\nproduct = "finest"\nvalues = "nc"\nfolder = "r"\n'
            '[recordings.features]\nproduct = "shape"\nfolder = "r"\nmin_free_mb = 0\n',
        )
    )
    daemon.start()
    try:
        await_rows(daemon, 4)
        (stats,) = daemon.stats()
        assert {"finest", "shape"} <= {*stats.computed}
        assert {one["state"] for one in daemon.recordings.status()["recorders"]} == {"recording"}
    finally:
        daemon.stop()
    n_samples = daemon.stats()[0].analysed
    levels = ["levels", "a.wav", "--interval", "250ms", "--bands", "octave/24"]
    assert main([*levels, "-o", "l.csv"]) == 0
    features = ["features", "a.wav", "--interval", "250ms", "--win-length", "256", "-o", "f.csv"]
    assert main(features) == 0
    for name, made in (("levels", "l.csv"), ("features", "f.csv")):
        (file,) = (tmp_path / "r" / name / "mic").iterdir()
        comments, names, rows = lines_of(file)
        assert comments[0].startswith(
            f'# spectrod_origin: {{"recording": "{name}", "source": "mic"'
        )
        expected_comments, expected_names, expected = lines_of(tmp_path / made)
        assert {*comments} >= {one for one in expected_comments if one.startswith("# units")}
        named = expected_names.replace("@0", "@left").replace("@1", "@right")
        assert names == named.replace("elapsed_s", "time")
        assert sum(float(row[1]) for row in rows) * FS == pytest.approx(n_samples)
        n = min(len(rows), len(expected)) - 1  # the last one is partial
        assert n >= 4
        for row, other in zip(rows[:n], expected[:n], strict=True):
            assert row[1:] == other[1:]
    (file,) = (tmp_path / "r/netcdf/mic").iterdir()
    assert main([*levels, "-o", "l.nc"]) == 0
    with h5netcdf.File(file) as recorded, h5netcdf.File(tmp_path / "l.nc") as made:
        assert {*recorded.variables} == {*made.variables}
        n = min(len(recorded["time"]), len(made["time"])) - 1
        for name in ("LAeq", "LAFmax", "LZeq_bands", "flags", "effort"):
            np.testing.assert_array_equal(recorded[name][:n], made[name][:n])
    (file,) = (tmp_path / "r/transfer/mic").iterdir()
    comments, names, rows = lines_of(file)
    assert names == "time,duration_s,flags,mean_coherence"
    assert {len(row) for row in rows} == {4}
    notes = '# comment: "values of bins (kurtosis) are not recorded"'
    assert notes in lines_of(next((tmp_path / "r/features/mic").iterdir()))[0]
    assert '# title: "T"' in lines_of(next((tmp_path / "r/levels/mic").iterdir()))[0]


@pytest.mark.slow
def test_a_reload_leaves_unchanged_values_running(tmp_path):
    """A new table of levels divides no interval of the others; a changed one begins a new file."""
    source = 'uri = "signal:sine,1000,-20"\nsamplerate = 8000'
    site = '[recordings.all]\nproduct = "site"\nfolder = "r"\nmin_free_mb = 0\n[levels.site]\n'
    site = site.replace('"r"', f'"{tmp_path}/r"')
    other = '\n[levels.other]\nquantities = ["LCeq"]'
    daemon = Daemon(load(tmp_path, source, f"{site}interval_s = 0.1"))
    daemon.start()
    try:
        await_rows(daemon, 3)
        (meter,) = daemon.runners[0].meters
        daemon.reconfigure(load(tmp_path, source, f"{site}interval_s = 0.1{other}"))
        assert daemon.runners[0].meters[0] is meter
        await_rows(daemon, 6)
        assert len(list((tmp_path / "r/all/mic").iterdir())) == 1
        daemon.reconfigure(load(tmp_path, source, f"{site}interval_s = 0.2{other}"))
        assert daemon.runners[0].meters[0] is not meter
        await_rows(daemon, 2)
    finally:
        daemon.stop()
    first, second = sorted(
        (tmp_path / "r/all/mic").iterdir(), key=lambda path: path.stat().st_mtime
    )
    rows = lines_of(first)[2]
    assert len(rows) >= 6
    whole = rows[1:-1]  # the last one is what the change has cut off
    assert {float(row[1]) for row in whole} == {0.1}
    assert "partial" not in {flag for row in whole for flag in row[2].split("|")}
    assert float(rows[-1][1]) == 0.1 or "partial" in rows[-1][2]
    assert 0.2 in {float(row[1]) for row in lines_of(second)[2]}
