"""The hint before a CSV file becomes very large."""

import pytest

from spectrod.cli import csv_size, main
from spectrod.cli.csv_size import csv_bytes, large_csv_hint
from spectrod.dsp.spectrum import SpectrumSpec


@pytest.mark.parametrize("scaling", ["dbfs", "density", "spectrum"])
@pytest.mark.parametrize("channels", [1, 2])
def test_the_estimate_is_near_the_size_of_noise(tmp_path, scaling, channels):
    """The rows of a CSV file of noise have the estimated size within a tenth."""
    path = tmp_path / "noise.csv"
    source = ["signal:white,-20", "--rate", "8000", "--channels", str(channels)]
    analysis = ["--win-length", "256", "--hop", "128", "--scaling", scaling, "--engine", "numpy"]
    command = ["record", *source, "--pace", "full", "--duration", "2", "-o", str(path), *analysis]
    assert main(command) == 0
    lines = [line for line in path.read_text().splitlines(keepends=True) if line[0] != "#"]
    spec = SpectrumSpec(8000.0, channels, win_length=256, hop=128, scaling=scaling)
    n_rows = len(lines) - 1
    assert n_rows == 124
    assert sum(map(len, lines[1:])) == pytest.approx(csv_bytes(spec, n_rows), rel=0.1)


def test_only_large_files_have_a_hint():
    """The hint comes from 1 GB on, and counts rows and values of all channels."""
    spec = SpectrumSpec(48_000.0, 2, win_length=4096, hop=1024, scaling="density")
    n_least = 10**9 / csv_bytes(spec, 1.0) * 1024
    assert large_csv_hint(spec, None) == ""
    assert large_csv_hint(spec, round(n_least * 0.999)) == ""
    # 10 GB: some 180 thousand rows of 60 bytes and of 2 x 2049 values of 13.6 bytes.
    assert large_csv_hint(spec, round(n_least * 10)).startswith(
        ".csv: will have about 10 GB: 179235 rows of 4098 values as text; --hop, "
    )


@pytest.mark.parametrize(("name", "is_warned"), [("a.csv", True), ("a.npz", False)])
def test_a_hint_comes_before_a_large_file(tmp_path, monkeypatch, capsys, name, is_warned):
    """A recording whose CSV file is above the limit has one line of warning; others have none."""
    monkeypatch.setattr(csv_size, "csv_bytes", lambda *_: 2e9)
    source = ["signal:white,-20", "--rate", "8000", "--pace", "full", "--duration", "1"]
    assert main(["record", *source, "-o", str(tmp_path / name), "--engine", "numpy"]) == 0
    assert (".csv: will have about" in capsys.readouterr().err) == is_warned
