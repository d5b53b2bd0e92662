"""Holds and the list of peaks of the terminal view."""

import numpy as np
import pytest

from spectrod.apps.view.holds import HOLD_KINDS, Holds
from spectrod.apps.view.peak_list import LIST_WIDTH, PEAKS_MAX, find_peaks, note_name, peak_lines
from spectrod.dsp.ballistics import HOLD_FOREVER, Ballistics
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import FLOOR_DBFS
from spectrod.wire.schema import SpectrumHeader

SPEC = SpectrumSpec(48000.0, win_length=4096, scaling="dbfs")


def make_header(**fields):
    return SpectrumHeader(
        **{
            "seq": 0, "epoch": 1, "t_utc_ns": 0, "t_mono_ns": 0, "sample_index": 0, "fs": SPEC.fs,
            "win_length": SPEC.win_length, "nfft": SPEC.nfft, "hop": SPEC.hop,
            "window": SPEC.window, "enbw_hz": SPEC.enbw_hz, "shape": (SPEC.n_bins,),
            "unit": "dBFS", "ref": "", "engine": "numpy", **fields,
        }
    )  # fmt: skip


def spectrum_of(tones, noise_db=-100.0, seed=0):
    """Return levels of tones, pairs of frequency and level, in noise of a level in each bin."""
    n = SPEC.win_length
    samples = sum(
        10.0 ** (level_db / 20.0) * np.sin(2.0 * np.pi * hz * np.arange(n) / SPEC.fs + k)
        for k, (hz, level_db) in enumerate(tones)
    )
    power = np.abs(np.fft.rfft(samples * SPEC.taper.samples)) ** 2 * SPEC.power_scale * 2.0
    noise = np.random.default_rng(seed).exponential(10.0 ** (noise_db / 10.0) / 2.0, len(power))
    return 10.0 * np.log10((power + noise) / 0.5)


def held(rows, kinds=HOLD_KINDS, ballistics=HOLD_FOREVER):
    """Return holds of rows that come every second."""
    holds = Holds(ballistics)
    holds.switch(frozenset(kinds))
    for t_s, row in enumerate(rows):
        holds.push(np.array(row), float(t_s))
    return holds


def test_holds_are_the_extremes_and_the_mean_power():
    """Maximum and minimum are of levels, the mean is of power: 0 and -10 dB have -2.6 dB."""
    levels = held([[0.0, -50.0], [-10.0, -30.0]]).levels()
    np.testing.assert_array_equal(levels["max"], [0.0, -30.0])
    np.testing.assert_array_equal(levels["min"], [-10.0, -50.0])
    assert levels["mean"][0] == pytest.approx(10.0 * np.log10(1.1 / 2.0))


def test_holds_decay_and_the_average_forgets():
    """After 2 s at 3 dB/s a peak of 0 dB is at -6 dB; with a time constant of 2 s, 1/e is left."""
    levels = held([[0.0], [-90.0], [-90.0]], ballistics=Ballistics(3.0, 0.0, 2.0)).levels()
    assert [levels["max"][0], levels["min"][0]] == pytest.approx([-6.0, -90.0])
    assert levels["mean"][0] == pytest.approx(10.0 * np.log10(np.exp(-1.0)), abs=1e-6)


def test_rows_are_not_changed_by_a_hold():
    """A hold keeps the caller's row as it was."""
    row = np.array([-10.0])
    holds = Holds()
    holds.switch(frozenset(HOLD_KINDS))
    holds.push(row, 9.0)
    holds.push(np.array([-5.0]), 9.0)
    assert row == [-10.0]


def test_a_reset_and_another_length_begin_again():
    """After a reset, or with another number of bins, only later rows count."""
    holds = held([[0.0, 0.0]])
    holds.reset()
    assert not holds.levels()
    holds.push(np.array([-20.0, -20.0]), 9.0)
    assert holds.levels()["max"][0] == -20.0
    holds.push(np.array([-40.0]), 9.0)
    assert {kind: len(levels) for kind, levels in holds.levels().items()} == dict.fromkeys(
        HOLD_KINDS, 1
    )


def test_a_hold_that_stays_on_goes_on():
    """To switch one hold leaves the rows of the others."""
    holds = held([[-1.0]], ["max"])
    holds.switch(frozenset(["max", "min"]))
    holds.push(np.array([-2.0]), 9.0)
    assert {kind: levels[0] for kind, levels in holds.levels().items()} == {"max": -1, "min": -2}
    holds.switch(frozenset(["min"]))
    assert list(holds.levels()) == ["min"]


def test_silence_has_a_mean_at_the_floor():
    """The mean of silence is the floor, and not minus infinity."""
    mean = held([[FLOOR_DBFS]], ["mean"]).levels()["mean"]
    assert mean[0] == pytest.approx(FLOOR_DBFS)


def test_peaks_are_the_tones_by_level():
    """Tones in noise are listed by level, with frequency and level between the bins."""
    tones = [(440.0, -20.0), (1003.3, -12.0), (9000.0, -50.0)]
    peaks = find_peaks(spectrum_of(tones), make_header())
    assert len(peaks) >= 3
    for peak, (hz, level_db) in zip(peaks, sorted(tones, key=lambda one: -one[1]), strict=False):
        assert peak.frequency_hz == pytest.approx(hz, abs=0.3)
        assert peak.level_db == pytest.approx(level_db, abs=0.1)


def test_side_lobes_are_no_peaks():
    """A tone without noise is one peak although its window has side lobes of a few decibels."""
    levels = np.maximum(spectrum_of([(1000.0, -10.0)], noise_db=-300.0), -85.0)
    assert len(find_peaks(levels, make_header())) == 1


def test_noise_alone_has_no_peaks():
    """A mean of 20 rows of white noise has no peak."""
    rows = [spectrum_of([(0.0, -300.0)], -80.0, seed) for seed in range(20)]
    mean = 10.0 * np.log10(np.mean(10.0 ** (np.array(rows) / 10.0), axis=0))
    assert find_peaks(mean, make_header()) == []


def test_a_dip_below_6_db_joins_two_maxima():
    """Two maxima are two peaks only if the level between them falls by 6 dB from the lower one."""
    for dip_db, n_peaks in ((5.0, 1), (7.0, 2)):
        levels = np.full(SPEC.n_bins, -100.0)
        levels[300:303] = -20.0, -21.0 - dip_db, -21.0
        assert len(find_peaks(levels, make_header())) == n_peaks


@pytest.mark.parametrize("n_tones", [0, 1, 30])
def test_the_list_is_bounded_and_fits(n_tones):
    """A list has at most ten peaks, in lines of its width."""
    levels = np.full(SPEC.n_bins, -100.0)
    levels[50 : 50 + 40 * n_tones : 40] = np.linspace(-60.0, -10.0, n_tones)
    header = make_header(unit="dB re 20 uPa \x1b[2J")
    peaks = find_peaks(levels, header)
    assert len(peaks) == min(n_tones, PEAKS_MAX)
    lines = peak_lines(peaks, header)
    assert len(lines) == 1 + max(1, len(peaks))
    assert max(map(len, lines)) <= LIST_WIDTH
    assert all(line.isascii() and line.isprintable() for line in lines)


def test_peaks_are_those_of_the_visible_bins():
    """Only peaks inside a range of bins are listed."""
    levels = spectrum_of([(440.0, -20.0), (5000.0, -20.0)])
    peaks = find_peaks(levels, make_header(), 100, 1000)
    assert peaks[0].frequency_hz == pytest.approx(5000.0, abs=0.3)
    assert all(100 * SPEC.delta_f < peak.frequency_hz < 1000 * SPEC.delta_f for peak in peaks)
    assert find_peaks(levels, make_header(), 100, 102) == []
    assert find_peaks(levels, make_header(), 100, 100) == []
    assert len(find_peaks(levels, make_header(), count=1)) == 1


@pytest.mark.parametrize(
    ("hz", "note"),
    [
        (440.0, "A4 +0"),
        (261.6256, "C4 +0"),
        (445.0, "A4 +20"),
        (27.5, "A0 +0"),
        (8.1758, "C-1 +0"),
        (466.0, "A#4 -1"),
        (0.0, ""),
        (-100.0, ""),
        (float("nan"), ""),
        (float("inf"), ""),
    ],
)
def test_notes(hz, note):
    """Notes are of equal temperament with A4 = 440 Hz, with cents; without one for 0 Hz."""
    assert note_name(hz) == note
