"""Filters that remove frequency responses: gain, delay, bounds, and what they do to levels."""

import numpy as np
import pytest

from spectrod.dsp.calibration.response import make_response
from spectrod.lib.errors import ConfigError
from spectrod.measure.levels import LevelMeter
from spectrod.measure.levels.equalizer import ERROR_DB, Equalizer, design_equalizer, response_notes

STEP = [(20.0, 0.0), (900.0, 0.0), (1100.0, 6.0), (20000.0, 6.0)]
MICROPHONE = [(20.0, -3.0), (100.0, -0.2), (1000.0, 0.0), (8000.0, 1.5), (20000.0, -4.0)]
MIDDLE = [(500.0, 2.0), (2000.0, 2.0)]


def response(rows):
    return make_response(rows, at_hz=0, sign=1.0)


def gain_db(design, frequencies, fs):
    """Return the gain of a filter whose middle is at the present sample; it is real."""
    k = np.arange(-design.half, design.half + 1)
    phase = 2.0 * np.pi * np.outer(frequencies, k) / fs
    return 20.0 * np.log10(np.abs((design.taps * np.cos(phase)).sum(axis=1)))


@pytest.mark.parametrize("fs", [8000.0, 44100.0, 96000.0])
@pytest.mark.parametrize("rows", [STEP, MICROPHONE, MIDDLE])
def test_the_gain_is_the_inverse_of_the_response_where_it_is_known(rows, fs):
    """Within the table the gain is the response's inverse within 0.05 dB, far outside it is 1."""
    one = response(rows)
    design = design_equalizer(one, fs)
    assert design.error_db <= ERROR_DB
    low, high = one.range_hz
    f = np.geomspace(low, min(high, 0.49 * fs), 301)
    np.testing.assert_allclose(gain_db(design, f, fs), -one.at(f), atol=ERROR_DB + 1e-3)
    far_hz = 9.0 * fs / len(design.taps)
    outside = [f for f in (0.0, low - far_hz, high + far_hz) if 0.0 <= f < fs / 2.0 - far_hz]
    np.testing.assert_allclose(gain_db(design, np.array(outside), fs), 0.0, atol=ERROR_DB)
    np.testing.assert_array_equal(design.taps, design.taps[::-1])


def test_a_table_that_is_too_steep_states_its_error():
    """A step of 6 dB within 1 Hz cannot be removed within the bound: the error and its place."""
    one = response([(20.0, 0.0), (1000.0, 0.0), (1001.0, 6.0), (20000.0, 6.0)])
    design = design_equalizer(one, 48000.0)
    assert 0.5 < design.error_db < 3.1
    assert design.worst_hz == pytest.approx(1000.5, abs=1.0)
    (note,) = response_notes([None, one, response(STEP)], 48000.0)
    assert note.startswith("the frequency response of channel 1 changes too fast")
    assert f"up to {design.error_db:.2f} dB off, at " in note


@pytest.mark.parametrize("block", [1, 777, 20001])
def test_samples_are_filtered_without_delay_and_without_loss(block):
    """Corrected samples are those of a convolution, in step with the others, for any blocks."""
    x = np.random.default_rng(1).uniform(-1.0, 1.0, (2, 20001 if block > 1 else 2500))
    equalizer = Equalizer([response(MIDDLE), None], 8000.0)
    blocks = []
    for first in range(0, x.shape[1], block):
        blocks += equalizer.push(x[:, first : first + block])
    assert equalizer.pending > 0
    blocks += equalizer.finish()
    assert equalizer.pending == 0
    found = np.concatenate(blocks, axis=1)
    np.testing.assert_array_equal(found[:2], x)
    np.testing.assert_array_equal(found[3], x[1])
    expected = np.convolve(x[0], equalizer.designs[0].taps, "same")
    np.testing.assert_allclose(found[2], expected, atol=1e-12)


def through(x, one, fs):
    """Return samples as a channel with a response delivers them, of linear phase."""
    spectrum = np.fft.rfft(x)
    level_db = np.nan_to_num(one.at(np.fft.rfftfreq(x.shape[-1], 1.0 / fs)))
    return np.fft.irfft(spectrum * 10.0 ** (level_db / 20.0), x.shape[-1])


@pytest.mark.parametrize("hertz", [50.0, 400.0, 980.0, 1030.0, 4000.0, 15000.0])
def test_a_step_of_6_db_reads_flat(hertz):
    """Through a step of 6 dB, a sine reads its level on both sides and on the slope."""
    fs, one = 48000.0, response(STEP)
    x = 0.1 * np.sin(2.0 * np.pi * hertz / fs * np.arange(round(3 * fs)))
    raised = through(x, one, fs)
    meter = LevelMeter(fs, quantities=["LZeq", "LZFmax", "peak"], responses=[one])
    rows = meter.push(raised[None]) + meter.finish()
    assert [row.first_sample for row in rows] == [0, 48000, 96000]
    found = rows[1].values[:2, 0]
    np.testing.assert_allclose(found, -20.0, atol=ERROR_DB + 0.01)
    # Peaks are those of the digital samples.
    assert rows[1].values[2, 0] == pytest.approx(-20.0 + one.at(np.array([hertz]))[0], abs=0.01)


def test_levels_keep_their_time():
    """A burst is in the interval where it was, after a gap too, with and without a correction."""
    fs = 8000
    x = np.zeros((2, 4 * fs))
    x[:, fs + 200 : fs + 1000] = 0.5
    x[:, 3 * fs + 7200 : 3 * fs + 7900] = 0.5
    settings = {"quantities": ["LZeq", "rms", "dc"], "interval_s": 0.1, "align": "utc"}

    def rows_of(**more):
        meter = LevelMeter(fs, 2, **settings, **more)
        rows = []
        for first in (0, 5000, 13000):
            rows += meter.push(x[:, first : first + 5000], 3000 * (first == 13000), first * 125_000)
        rows += meter.push(x[:, 18000:], 0, 18000 * 125_000)
        return rows + meter.finish()

    one = response([(5.0, 0.0), (300.0, 0.0), (600.0, 3.0), (3900.0, 3.0)])
    plain, corrected = rows_of(), rows_of(responses=[None, one])
    for mine, other in zip(plain, corrected, strict=True):
        assert (mine.first_sample, mine.n_samples) == (other.first_sample, other.n_samples)
        assert mine.begin_utc_ns == other.begin_utc_ns
        np.testing.assert_array_equal(mine.values[1:], other.values[1:])
        np.testing.assert_array_equal(mine.values[:, 0], other.values[:, 0])
    loud = [row.first_sample for row in corrected if row.values[0, 1] > -20.0]
    assert loud == [row.first_sample for row in plain if row.values[0, 1] > -20.0]


def test_values_do_not_depend_on_blocks():
    """Corrected levels are the same to the bit for any cut of the samples into blocks."""
    x = np.random.default_rng(3).uniform(-0.5, 0.5, (1, 30_001))

    def rows_of(block):
        meter = LevelMeter(
            8000, quantities=["LAeq", "LAFmax"], responses=[response(MIDDLE)], bands="octave"
        )
        rows = []
        for first in range(0, x.shape[1], block):
            rows += meter.push(x[:, first : first + block])
        return rows + meter.finish()

    for one, other in zip(rows_of(30_001), rows_of(997), strict=True):
        np.testing.assert_array_equal(one.values, other.values)
        np.testing.assert_array_equal(one.band_values, other.band_values)


def test_rows_settle_later_with_a_correction():
    """Rows that hold samples without their neighbours at the start are settling."""
    one = response(MICROPHONE)
    meter = LevelMeter(48000, quantities=["LZeq"], interval_s=0.1, responses=[one])
    rows = meter.push(np.zeros((1, 96000))) + meter.finish()
    n_settling = sum(int(row.flags[0] & 4 > 0) for row in rows)
    assert n_settling == -(-meter.equalizer.half // 4800)


def test_bands_are_corrected():
    """Noise through a step of 6 dB has flat octaves after its correction."""
    fs, one = 48000.0, response(STEP)
    x = np.random.default_rng(4).standard_normal(round(4 * fs)) * 0.05
    settings = {"bands": "octave", "quantities": ["LZeq"], "interval_s": 4.0}
    plain, corrected = LevelMeter(fs, **settings), LevelMeter(fs, **settings, responses=[one])
    for meter, samples in ((plain, x), (corrected, through(x, one, fs))):
        meter.push(samples[None])
        meter.finish()
    np.testing.assert_allclose(
        corrected.summary().band_values, plain.summary().band_values, atol=ERROR_DB + 0.02
    )


def test_wrong_responses():
    """As many responses as channels are needed."""
    with pytest.raises(ConfigError, match="responses: 1 values for 2 channels"):
        LevelMeter(48000, 2, responses=[response(STEP)])
    assert LevelMeter(48000, 2, responses=[None]).equalizer is None
