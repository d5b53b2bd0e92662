"""Weightings of sound level meters as filters: IEC 61672-1 tables 3 and 4, and SciPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import signal

from spectrod.dsp.weighting import power_factors
from spectrod.lib.errors import ConfigError
from spectrod.measure.levels.frequency_weighting import k_cascade, weighting_cascade
from spectrod.measure.levels.recursive import CHUNK_SAMPLES, RecursiveFilter, response
from spectrod.measure.levels.time_weighting import TimeWeightedSquare

INF = np.inf
FREQUENCIES = 10.0 ** (np.arange(10, 44) / 10.0)
# IEC 61672-1:2013, table 3, class 1: tolerances [dB] at the exact frequencies of 10 Hz to 20 kHz.
UPPER = [3, 2.5, 2, 2, 2, 1.5, *[1] * 14, 0.7, *[1] * 6, 1.5, 1.5, 1.5, 2, 2, 2.5, 3]
LOWER = [INF, INF, 4, 2, 1.5, 1.5, *[1] * 14, 0.7, *[1] * 6, 1.5, 2, 2.5, 3, 5, 16, INF]
RATES = [44100.0, 48000.0, 96000.0, 192000.0]

# IEC 61672-1:2013, table 4: burst [s], LAFmax - LA, LAE - LA, LASmax - LA [dB], and the class 1
# limits of F and E, upper and lower, and of S.
BURSTS = [
    (1.0, 0.0, 0.0, -2.0, 0.5, 0.5, 0.5, 0.5),
    (0.5, -0.1, -3.0, -4.1, 0.5, 0.5, 0.5, 0.5),
    (0.2, -1.0, -7.0, -7.4, 0.5, 0.5, 0.5, 0.5),
    (0.1, -2.6, -10.0, -10.2, 1.0, 1.0, 1.0, 1.0),
    (0.05, -4.8, -13.0, -13.1, 1.0, 1.0, 1.0, 1.0),
    (0.02, -8.3, -17.0, -17.0, 1.0, 1.0, 1.0, 1.5),
    (0.01, -11.1, -20.0, -20.0, 1.0, 1.0, 1.0, 2.0),
    (0.005, -14.1, -23.0, -23.0, 1.0, 1.0, 1.0, 2.5),
    (0.002, -18.0, -27.0, -27.0, 1.0, 1.5, 1.0, 3.0),
    (0.001, -21.0, -30.0, None, 1.0, 2.0, 0, 0),
    (0.0005, -24.0, -33.0, None, 1.0, 2.5, 0, 0),
    (0.00025, -27.0, -36.0, None, 1.0, 3.0, 0, 0),
]


def db(power):
    return 10.0 * np.log10(power)


def run(stage, x):
    """Pass (channels, n) samples through a stage, chunk by chunk."""
    n = x.shape[1]
    padded = np.pad(x, ((0, 0), (0, -n % CHUNK_SAMPLES)))
    chunks = np.split(padded, padded.shape[1] // CHUNK_SAMPLES, axis=1)
    return np.concatenate([stage.run(np.ascontiguousarray(one)) for one in chunks], axis=1)[:, :n]


def as_sos(cascade):
    pad = [0.0]
    return np.array([[*s.b, *pad * (3 - len(s.b)), *s.a, *pad * (3 - len(s.a))] for s in cascade])


@pytest.mark.parametrize("fs", RATES)
@pytest.mark.parametrize("weighting", ["A", "C"])
def test_table_3(weighting, fs):
    """All 34 rows are within class 1, and within 0.1 dB of the curve, at the usual rates."""
    error_db = db(
        response(weighting_cascade(weighting, fs), FREQUENCIES, fs)
        / power_factors(weighting, FREQUENCIES)
    )
    assert (error_db <= UPPER).all()
    assert (-error_db <= LOWER).all()
    np.testing.assert_allclose(error_db, 0.0, rtol=0, atol=0.01)


@pytest.mark.parametrize("fs", [1000.0, 7919.0, 16000.0, 22050.0, 384000.0, 768000.0])
@pytest.mark.parametrize("weighting", ["A", "C"])
def test_any_rate(weighting, fs):
    """Filters follow the curve at odd, low and high rates up to 0.45 of the rate."""
    frequencies = np.geomspace(10.0, 0.45 * fs, 500)
    goal = power_factors(weighting, frequencies)
    error_db = db(response(weighting_cascade(weighting, fs), frequencies, fs) / goal)
    np.testing.assert_allclose(error_db, 0.0, rtol=0, atol=0.002)


@pytest.mark.parametrize("fs", [999.0, 5e6, float("nan")])
def test_rates_without_a_filter(fs):
    """A rate at which no filter follows the curve is an error."""
    with pytest.raises(ConfigError, match=r"fs=.*: (the weighting A needs|no filter)"):
        weighting_cascade("A", fs)


def test_k_weighting_is_the_recommendations():
    """At 48 kHz the coefficients are those of BS.1770-5, tables 1 and 2."""
    shelf, high_pass = k_cascade(48000.0)
    close = {"rtol": 0, "atol": 1e-13}
    b = [1.53512485958697, -2.69169618940638, 1.19839281085285]
    np.testing.assert_allclose(shelf.b, b, **close)
    np.testing.assert_allclose(shelf.a, [1.0, -1.69065929318241, 0.73248077421585], **close)
    assert high_pass.b == (1.0, -2.0, 1.0)
    np.testing.assert_allclose(high_pass.a, [1.0, -1.99004745483398, 0.99007225036621], **close)
    with pytest.raises(ConfigError, match="fs=7999: loudness needs a sample rate of at least 8000"):
        k_cascade(7999.0)


@pytest.mark.parametrize("fs", [8000.0, 48000.0, 192000.0])
@pytest.mark.parametrize("weighting", ["A", "C", "K"])
def test_running_filter_is_scipys(weighting, fs):
    """The matrix form computes what the difference equation of the sections does."""
    cascade = k_cascade(fs) if weighting == "K" else weighting_cascade(weighting, fs)
    x = np.random.default_rng(5).standard_normal((3, 5 * CHUNK_SAMPLES + 17)) + 1.0
    expected = signal.sosfilt(as_sos(cascade), x)
    np.testing.assert_allclose(run(RecursiveFilter(cascade, 3), x), expected, rtol=0, atol=1e-7)


def test_channels_are_independent_to_the_bit():
    """A channel's output does not depend on how many others are filtered with it."""
    cascade = weighting_cascade("A", 48000.0)
    x = np.random.default_rng(6).standard_normal((7, 3 * CHUNK_SAMPLES))
    together = run(RecursiveFilter(cascade, 7), x)
    for k in range(7):
        np.testing.assert_array_equal(
            run(RecursiveFilter(cascade, 1), x[k : k + 1])[0], together[k]
        )


def test_silence_leaves_no_denormal_state():
    """After long silence the state is exactly 0, because denormal numbers are slow."""
    averages = TimeWeightedSquare("F", 1000.0, 1)
    averages.run(np.ones((1, CHUNK_SAMPLES)))
    for _ in range(15):  # 61 s: exp(-61 / 0.125) is 1e-213
        last = averages.run(np.zeros((1, CHUNK_SAMPLES)))
    assert not last.any()


@pytest.mark.parametrize(("weighting", "tau"), [("F", 0.125), ("S", 1.0)])
def test_time_weighting_is_a_one_pole_average(weighting, tau):
    """F and S average the square with their time constants; a stop decays at the standard rate."""
    fs = 8000.0
    squares = np.square(np.random.default_rng(7).standard_normal((2, 3 * CHUNK_SAMPLES)))
    squares[:, 2 * CHUNK_SAMPLES :] = 0.0
    averages = run(TimeWeightedSquare(weighting, fs, 2), squares)
    a = -np.expm1(-1.0 / (fs * tau))
    expected = signal.lfilter([a], [1.0, a - 1.0], squares)
    np.testing.assert_allclose(averages, expected, rtol=1e-9, atol=1e-15)
    first, last = averages[0, 2 * CHUNK_SAMPLES], averages[0, -1]
    decay_db_s = db(first / last) / ((CHUNK_SAMPLES - 1) / fs)
    assert decay_db_s == pytest.approx({"F": 34.74, "S": 4.343}[weighting], abs=0.01)


def burst(seconds, fs, total_s, lead_s=0.1):
    """Make a burst of whole periods of 4 kHz, amplitude 1."""
    t = np.arange(round(total_s * fs)) / fs
    is_on = (t >= lead_s - 1e-9) & (t < lead_s + seconds - 1e-9)
    return (np.sin(2.0 * np.pi * 4000.0 * (t - lead_s)) * is_on)[np.newaxis]


@pytest.mark.parametrize("row", BURSTS, ids=[f"{row[0] * 1e3:g}ms" for row in BURSTS])
def test_table_4(row):
    """Tone bursts of 4 kHz read within class 1 for F, S and E, 0.15 dB from an ideal A filter."""
    seconds, fast, exposure, slow, upper, lower, slow_upper, slow_lower = row
    fs = 48000.0
    x = burst(seconds, fs, seconds + 0.3)
    cascade = weighting_cascade("A", fs)
    steady = 0.5 * response(cascade, np.array([4000.0]), fs)[0]
    squares = np.square(run(RecursiveFilter(cascade, 1), x))
    found = {kind: run(TimeWeightedSquare(kind, fs, 1), squares).max() for kind in "FS"}
    error_db = db(found["F"] / steady) - fast
    assert -lower <= error_db <= upper
    assert abs(error_db) < 0.2
    error_db = db(squares.sum() / fs / steady) - exposure
    assert -lower <= error_db <= upper
    assert abs(error_db) < 0.2
    if slow is not None:
        assert -slow_lower <= db(found["S"] / steady) - slow <= slow_upper


@pytest.mark.parametrize("fs", [44100.0, 48000.0, 96000.0])
@pytest.mark.parametrize(
    ("seconds", "repeats_hz", "table_db"),
    [
        (0.02, 0, -3.6),
        (0.005, 0, -8.8),
        (0.002, 0, -12.6),
        (0.005, 100, -2.7),
        (0.005, 20, -7.6),
        (0.005, 2, -8.8),
    ],
)
def test_impulse_weighting(seconds, repeats_hz, table_db, fs):
    """Bursts of 2 kHz of any phase read the exponential average of IEC 60651 for I within 0.1 dB.

    That of a burst of 2 ms is -12.55 dB, which the standard's table rounds to -12.6.
    """
    period = 1.0 / repeats_hz if repeats_hz else np.inf
    closed_db = db(np.expm1(-seconds / 0.035) / np.expm1(-period / 0.035))
    assert closed_db == pytest.approx(table_db, abs=0.05)
    for phase, start in [(0.0, 0.0), (0.4, 0.5), (np.pi / 2, 0.0), (2.0, 0.25)]:
        t = (np.arange(round((2.0 if repeats_hz else 0.1) * fs)) - start) / fs
        since = t % period if repeats_hz else t
        is_on = (since >= 0.0) & (since < seconds - 1e-9)
        squares = np.square(np.sin(2.0 * np.pi * 2000.0 * since + phase) * is_on)
        maximum = run(TimeWeightedSquare("I", fs, 1), squares[np.newaxis]).max()
        assert db(maximum / 0.5) == pytest.approx(closed_db, abs=0.1)


def test_impulse_weighting_decays():
    """After a burst, I decays by 2.90 dB a second."""
    fs = 8000.0
    squares = np.zeros((1, 4 * CHUNK_SAMPLES))
    squares[:, :400] = 1.0
    level = db(run(TimeWeightedSquare("I", fs, 1), squares)[0])
    assert level[8000] - level[16000] == pytest.approx(2.895, abs=0.01)


@settings(max_examples=20)
@given(st.data())
def test_reset_forgets(data):
    """A filter that was reset computes the same bits as a new one."""
    seed = data.draw(st.integers(0, 1000))
    x = np.random.default_rng(seed).standard_normal((2, CHUNK_SAMPLES))
    used, new = (RecursiveFilter(weighting_cascade("C", 48000.0), 2) for _ in range(2))
    used.run(x[:, ::-1].copy())
    used.reset()
    np.testing.assert_array_equal(used.run(x), new.run(x))
