"""A and C weighting of spectra, with sines of the frequencies of IEC 61672-1, table 3."""

import numpy as np
import pytest

from spectrod import spectrogram
from spectrod.dsp.weighting import power_factors

FREQUENCIES = 10.0 ** (np.arange(10, 44) / 10.0)
"""Exact frequencies of the rows of the table, 10 Hz to 20 kHz."""


def error_db(weighting, f_hz, fs, win_length, engine="numpy"):
    """Return by how much a sine reads above the curve [dB]."""
    x = 0.5 * np.sin(2.0 * np.pi * f_hz / fs * np.arange(win_length) + 0.3)
    found = spectrogram(
        x.astype(np.float32), fs, win_length=win_length, hop=win_length, bands="third-octave",
        weighting=weighting, scaling="dbfs", engine=engine,
    )  # fmt: skip
    goal = 10.0 * np.log10(power_factors(weighting, np.array([f_hz])))[0]
    return found.broadband[0] - 20.0 * np.log10(0.5) - goal


@pytest.mark.slow
@pytest.mark.parametrize("weighting", ["A", "C"])
@pytest.mark.parametrize(
    ("fs", "win_length"), [(44100, 1 << 17), (48000, 1 << 17), (96000, 1 << 18), (192000, 1 << 19)]
)
def test_sines_of_table_3(weighting, fs, win_length):
    """Sines of all rows below 0.45 fs read within 0.1 dB of the curve, frames of 2.7 s."""
    rows = FREQUENCIES[0.45 * fs > FREQUENCIES]
    assert len(rows) == (33 if fs == 44100 else 34)
    errors_db = [error_db(weighting, float(f_hz), fs, win_length) for f_hz in rows]
    np.testing.assert_allclose(errors_db, 0.0, rtol=0, atol=0.1)


@pytest.mark.opencl
@pytest.mark.parametrize("weighting", ["A", "C"])
@pytest.mark.parametrize("engine", ["numpy", "auto"])
def test_short_frames(weighting, engine):
    """In frames of 4096 samples at 48 kHz, sines from 100 Hz on read within 0.1 dB."""
    rows = FREQUENCIES[FREQUENCIES > 99.0]
    errors_db = [error_db(weighting, float(f_hz), 48000, 4096, engine) for f_hz in rows]
    np.testing.assert_allclose(errors_db, 0.0, rtol=0, atol=0.1)


def test_a_low_sine_reads_high_in_short_frames():
    """A sine has the weighting of all bins of its main lobe: low ones of few bins read high."""
    errors_db = [error_db("A", float(f_hz), 48000, 4096) for f_hz in FREQUENCIES[5:11]]
    np.testing.assert_allclose(errors_db, [1.52, 0.84, 0.45, 0.23, 0.12, 0.06], atol=0.01)
