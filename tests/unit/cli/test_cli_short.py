"""Sources shorter than a window: one window over the existing samples, with right levels."""

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import scipy.signal
import soundfile

from spectrod.cli import main
from spectrod.formats.picture.pixelmap import read_levels
from spectrod.formats.segment.segment_reader import SegmentReader

FS = 48000
REPORT = "samples are fewer than the window of"


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def sound(n_samples, channels=2):
    """Make noise and tones of -6 dBFS, at other frequencies in each channel."""
    t = np.arange(n_samples)[:, np.newaxis] / FS
    tone = 0.5 * np.sin(2.0 * np.pi * (6000.0 + 3000.0 * np.arange(channels)) * t)
    noise = np.random.default_rng(7).normal(0.0, 1e-3, tone.shape)
    samples = (tone + noise).astype(np.float32)
    soundfile.write("short.wav", samples, FS, subtype="FLOAT")
    return samples


def rows_of(path):
    with closing(SegmentReader(path)) as reader:
        assert reader.left_out_samples == 0
        values = np.concatenate([batch.values for batch in reader.batches()])
        return reader.description.spec, values


def expected_dbfs(samples, nfft):
    """Compute the level of each bin except the first and the last with SciPy's window."""
    window = scipy.signal.get_window("hann", len(samples))
    spectrum = np.fft.rfft(samples.T * window, nfft) / window.sum()
    return 10.0 * np.log10(4.0 * np.abs(spectrum[:, 1:-1]) ** 2)


@pytest.mark.parametrize("n_samples", [2, 3, 220, 2047])
def test_picture_and_data_have_the_levels_of_the_samples_there_are(capsys, n_samples):
    """The window covers the existing samples, the rest is padding, and levels are right."""
    samples = sound(n_samples)
    look = ["--raw", "--height", "64", "--width", "3", "--levels", "-90,10"]
    assert main(["record", "short.wav", "-o", "x.pgm", "-o", "x.spd", *look]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert f"short.wav: {n_samples} {REPORT} 4096 (--win-length): the window is sh" in lines[0]
    assert "has no start time" in lines[1]
    assert len(lines) == 2
    window = scipy.signal.get_window("hann", n_samples)
    spec, values = rows_of("x.spd")
    assert (spec.win_length, spec.nfft) == (n_samples, 4096)
    assert spec.enbw_hz == pytest.approx(FS * (window**2).sum() / window.sum() ** 2)
    assert values.shape == (1, 2, 2049)
    right_db = expected_dbfs(samples, 4096)
    is_audible = right_db > -80.0
    np.testing.assert_allclose(values[0, :, 1:-1][is_audible], right_db[is_audible], atol=2e-3)
    for channel in (0, 1):
        level = read_levels("x.pgm", channel)
        assert (level.pixels.win_length, level.pixels.nfft) == (n_samples, 2048)
        loudest = expected_dbfs(samples, 2048)[channel].max()
        # A spectrum of two samples has its largest value at 0 Hz or the Nyquist frequency.
        assert level.level.max() >= loudest - 2e-3
        if n_samples > 3:
            assert level.level.max() == pytest.approx(loudest, abs=2e-3)
            assert loudest == pytest.approx(-6.0, abs=0.3)
        np.testing.assert_array_equal(level.level[:, 0], level.level[:, 2])


def test_a_window_of_just_the_length_is_no_reason_to_report(capsys):
    """From the window's length on, nothing is reported and nothing is shortened."""
    sound(2048)
    assert main(["record", "short.wav", "-o", "x.pgm", "--raw", "--width", "1"]) == 0
    assert capsys.readouterr().err == ""
    assert read_levels("x.pgm").pixels.win_length == 2048


@pytest.mark.parametrize(
    "analysis",
    [
        ["--averaging", "mean", "--rate-hz", "1", "--win-length", "24000", "--hop", "12000"],
        ["--averaging", "max", "--rate-hz", "1", "--win-length", "24000", "--hop", "12000"],
        ["--rate-hz", "10", "--win-length", "4096"],
        ["--averaging", "exponential"],
        ["--bands", "third-octave", "--weighting", "A"],
    ],
)
def test_rows_at_a_rate_and_bands_are_made_too(analysis):
    """Any analysis, with a row rate or bands, makes one row of one frame from a short source."""
    sound(2000)
    assert main(["record", "short.wav", "-o", "x.spd", *analysis]) == 0
    spec, values = rows_of("x.spd")
    assert spec.win_length == 2000
    assert len(values) == 1
    if spec.bands:
        centre = spec.frequencies[values[0, 0].argmax()]
        assert centre == pytest.approx(6309.6, rel=0.01)
        # A-weighting is -0.1 dB at 6.3 kHz.
        assert values[0, 0].max() == pytest.approx(-6.1, abs=0.4)


def test_a_long_term_average_is_drawn_too():
    """The density of a long-term average uses the bandwidth of the shortened window."""
    sound(2000)
    look = ["--raw", "--width", "2", "--height", "64", "--levels", "-100,0"]
    assert main(["record", "short.wav", "-o", "x.pgm", "--view", "ltsa", *look]) == 0
    level = read_levels("x.pgm")
    assert level.pixels.win_length == 2000
    expected_db = 10.0 * np.log10(0.125 / level.pixels.enbw_hz)
    assert level.level.max() == pytest.approx(expected_db, abs=0.1)


def test_a_short_source_compiles_no_kernels():
    """NumPy computes short windows of any length unless a device or OpenCL is requested."""
    sound(1234)
    assert main(["record", "short.wav", "-o", "x.pgm", "--raw", "--width", "1"]) == 0
    assert read_levels("x.pgm").pixels.engine == "numpy"


@pytest.mark.parametrize(
    ("n_samples", "options", "text"),
    [
        (1, [], "short.wav: too short: 1 of the 2 samples that a spectrum needs"),
        (
            40000,
            ["--profile", "millidecade", "--start-time", "2026-05-01T00:00:00Z"],
            "short.wav: too short: 40000 of the 48000 samples of one frame (--profile millidecade)",
        ),
    ],
)
def test_too_few_samples_for_a_spectrum_are_refused(capsys, n_samples, options, text):
    """One sample makes no spectrum, and a profile needs frames of one second; both are refused."""
    sound(n_samples)
    assert main(["record", "short.wav", "-o", "x.nc", *options]) == 2
    assert capsys.readouterr().err == f"spectrod: {text}\n"
    assert [path.name for path in Path().iterdir()] == ["short.wav"]
