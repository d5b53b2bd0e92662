"""Content checks: reports of oddities at their start and end, and none of ordinary signals."""

import numpy as np
import pytest

from spectrod.source.checks import FULL_SCALE, ContentChecks
from spectrod.source.signal import SignalSource

FS = 48_000.0
N = 480


def noise(seconds, channels=2, seed=1, level=0.1):
    rng = np.random.default_rng(seed)
    return rng.uniform(-level, level, (channels, round(seconds * FS))).astype(np.float32)


def lines_of(checks, samples, n=N):
    """Check samples in blocks and return the reports."""
    reported = []
    for start in range(0, samples.shape[1], n):
        reported += checks.look(samples[:, start : start + n])
    return reported


@pytest.mark.parametrize("n", [1, 480, 481, 48_000])
def test_ordinary_samples_are_not_odd(n):
    """Noise in blocks of any size gives no report."""
    checks = ContentChecks(2, FS)
    assert lines_of(checks, noise(0.1 if n == 1 else 25), n) == []
    assert checks.active == ()
    assert checks.clipped_samples == 0


def test_silence_starts_and_ends_after_a_second():
    """Exact zeros for over a second are silence, which ends after a second without zeros."""
    checks = ContentChecks(1, FS)
    assert lines_of(checks, np.zeros((1, 48_000), np.float32)) == []
    assert checks.look(np.zeros((1, N), np.float32)) == [
        "channel 0: digital silence for over a second"
    ]
    assert checks.active == ("silent: 0",)
    assert lines_of(checks, noise(1.0, 1)) == []
    assert lines_of(checks, noise(0.01, 1)) == ["channel 0: no longer silent"]
    assert checks.active == ()


def test_flickering_silence_is_not_reported_each_time():
    """Zeros and samples that alternate every half second start and end nothing."""
    checks = ContentChecks(1, FS)
    x = noise(20, 1)
    x[0] *= (np.arange(x.shape[1]) // 24_000) % 2
    assert lines_of(checks, x) == []


def test_channel_is_missing_while_others_are_not():
    """One silent channel of two is missing, two are silence, and each is reported once."""
    checks = ContentChecks(2, FS)
    one = noise(2.0)
    one[1] = 0.0
    assert lines_of(checks, one) == [
        "channel 1: missing: digital silence while other channels have a signal"
    ]
    assert checks.active == ("missing: 1",)
    assert lines_of(checks, 0 * one) == [
        "channel 0: digital silence for over a second",
        "channel 1: digital silence for over a second",
    ]
    assert checks.active == ("silent: 0", "silent: 1")
    assert lines_of(checks, noise(2.0)) == [
        "channel 0: no longer silent",
        "channel 1: no longer silent",
    ]


def test_stuck_value_is_neither_silence_nor_offset():
    """A constant other than zero is stuck; one that changes between blocks is not."""
    checks = ContentChecks(2, FS)
    x = noise(15.0)
    x[1] = 0.25
    assert lines_of(checks, x) == ["channel 1: stuck at one value for over a second"]
    assert checks.active == ("stuck: 1",)
    steps = np.repeat(np.linspace(-0.004, 0.004, 200, dtype=np.float32), N)[np.newaxis]
    assert lines_of(ContentChecks(1, FS), steps) == []


@pytest.mark.parametrize(("mean", "level"), [(0.05, -23.0), (-0.05, -23.0), (0.008, -38.9)])
def test_offset_over_ten_seconds(mean, level):
    """A mean over -40 dBFS (a sine's level, 3 dB above the mean's own) is reported once."""
    checks = ContentChecks(2, FS)
    x = noise(30.0)
    x[0] += np.float32(mean)
    assert lines_of(checks, x) == ["channel 0: DC offset of over -40 dBFS"]
    (text,) = checks.active
    assert text.startswith("dc: 0 (")
    assert float(text.removeprefix("dc: 0 (").removesuffix(" dBFS)")) == pytest.approx(
        level, abs=0.15
    )
    assert lines_of(checks, noise(10.0)) == ["channel 0: DC offset gone"]


def test_offset_between_the_limits_changes_nothing():
    """An offset between -40 and -43 dBFS neither starts nor ends a report."""
    between = noise(10.0, 1) + np.float32(10 ** ((-41.5 - 3.01) / 20))
    checks = ContentChecks(1, FS)
    assert lines_of(checks, between) == []
    lines_of(checks, noise(10.0, 1) + np.float32(0.1))
    assert lines_of(checks, between) == []
    assert checks.active[0] in ("dc: 0 (-41.5 dBFS)", "dc: 0 (-41.6 dBFS)")  # noise has a mean


@pytest.mark.parametrize("fs", [8000, 48_000])
def test_low_frequencies_are_no_offset(fs):
    """Pink noise, whose mean over 10 s exceeds -40 dBFS, has no offset unless one is added."""
    samples = next(SignalSource("pink,-20", fs, 1, "full").blocks(30 * fs))
    means = samples[0].astype(float).reshape(3, -1).mean(axis=1)
    assert np.max(20 * np.log10(np.abs(means)) + 3.01) > -40.0
    checks = ContentChecks(1, fs)
    assert lines_of(checks, samples, fs // 100) == []
    offset = samples - np.float32(means[0]) + np.float32(0.4)
    assert lines_of(checks, offset, fs // 100) == ["channel 0: DC offset of over -40 dBFS"]


@pytest.mark.parametrize("n", [479, 48_000, 1_000_000])
def test_offset_is_found_in_blocks_of_any_size(n):
    """The seconds whose means are compared do not depend on the size of blocks."""
    checks = ContentChecks(1, FS)
    assert lines_of(checks, noise(25.0, 1) + np.float32(0.05), n) == [
        "channel 0: DC offset of over -40 dBFS"
    ]


@pytest.mark.parametrize("n", [1, 2, 3, 7, 480])
def test_clipped_samples_are_those_in_runs_of_three(n):
    """Clipped runs of three or more count in full across blocks; shorter peaks do not count."""
    rng = np.random.default_rng(n)
    full = rng.random(5000) < 0.6
    x = np.where(full, np.where(rng.random(5000) < 0.5, 1.0, -FULL_SCALE), 0.3).astype(np.float32)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], full.astype(int), [0]])))
    lengths = edges[1::2] - edges[::2]
    checks = ContentChecks(2, FS)
    for start in range(0, 5000, n):
        checks.look(np.stack([x, 0.1 * x])[:, start : start + n])
    assert checks.clipped_samples == lengths[lengths >= 3].sum()


@pytest.mark.slow
def test_clipping_is_reported_once_a_minute():
    """Clipping is reported at once, then by a count each minute, then at its end."""
    checks = ContentChecks(1, FS)
    quiet, loud = noise(0.01, 1), np.ones((1, N), np.float32)
    loud[0, 3:] = 0.5
    reported = []
    for second in range(200):
        for block in (loud if second < 100 else quiet, *[quiet] * 99):
            reported += [(second, line) for line in checks.look(block)]
    assert reported == [
        (0, "channel 0: 3 samples at full scale since the last such line"),
        (0, "channel 0: clips"),
        (60, "channel 0: 180 samples at full scale since the last such line"),
        (120, "channel 0: 117 samples at full scale since the last such line"),
        (180, "channel 0: no longer clips, for a minute"),
    ]
    assert checks.clipped_samples == 300
    assert checks.look(loud) == [
        "channel 0: 3 samples at full scale since the last such line",
        "channel 0: clips",
    ]
    assert checks.active == ("clipping: 0",)


def test_samples_that_are_not_finite_are_others_business():
    """NaN and infinities neither start nor end a content check."""
    checks = ContentChecks(2, FS)
    x = noise(12.0)
    x[:, 1000] = np.nan
    x[0, 2000] = np.inf
    x[0, 2001] = -np.inf
    assert lines_of(checks, x) == []
    assert lines_of(checks, np.zeros((2, 96_000), np.float32)) != []


def test_values_near_the_end_of_float32s_range_are_looked_at():
    """Sums of values near float32's maximum, which a device may deliver, do not overflow."""
    checks = ContentChecks(1, FS)
    with np.errstate(over="raise"):
        checks.look(np.full((1, 100), 3e38, np.float32))


@pytest.mark.parametrize("n", [479, 480])
def test_the_level_is_that_of_the_last_second(n):
    """A sine of -20 dBFS reads -20.00 in each channel, and a later silence the floor."""
    checks = ContentChecks(2, FS)
    t = np.arange(round(1.1 * FS)) / FS
    sine = (0.1 * np.sin(2 * np.pi * 1000.0 * t)).astype(np.float32)
    lines_of(checks, np.stack([sine, 0.5 * sine])[:, : int(0.9 * FS)], n)
    assert checks.level.rms_dbfs == ()
    lines_of(checks, np.stack([sine, 0.5 * sine])[:, int(0.9 * FS) :], n)
    # Blocks cut the last period: by at most half of it in 48 000 samples.
    assert checks.level.rms_dbfs == pytest.approx((-20.0, -26.02), abs=0.01)
    assert checks.level.peak_dbfs == pytest.approx((-20.0, -26.02), abs=0.01)
    lines_of(checks, np.zeros((2, round(2.2 * FS)), np.float32), n)
    assert checks.level.rms_dbfs == (-200.0, -200.0)
