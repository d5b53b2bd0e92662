"""The sequence signal, its check, and the sample rate measured from arrival times."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectrod.apps.bench.sequence_signal import (
    FRAMES_MAX,
    Break,
    NumberCheck,
    numbered_frames,
    read_numbers,
)
from spectrod.apps.bench.verifying_ring import WatchedRing, rate_error_ppm
from spectrod.source.files.codings import CODINGS, decode

FS = 48000


def samples(first, n):
    return decode(numbered_frames(first, n).tobytes(), CODINGS["s16le"]).reshape(-1, 2).T


@pytest.mark.parametrize("first", [1, 65535, 2**31 - 3, FRAMES_MAX - 1000])
def test_each_frame_carries_its_number(first):
    """Frame numbers can be read back from decoded samples, from the first to the last."""
    assert read_numbers(samples(first, 1000)).tolist() == list(range(first, first + 1000))


def test_silence_has_no_frame_number():
    """Silence reads as 0, a number that no played frame has."""
    assert not read_numbers(np.zeros((2, 5), np.float32)).any()


@given(
    st.lists(st.tuples(st.integers(1, 700), st.integers(0, 3), st.integers(-40, 40)), max_size=20)
)
def test_every_loss_is_measured(blocks):
    """Unreported losses, false reports and inserted silence are distinguished to the sample."""
    check, index, number, expected, silent = NumberCheck(), 0, 1, [], 0
    check.look(samples(number, 50), index)
    index, number = 50, 51
    for n, silence, jump in blocks:
        announced, lost = max(0, -jump), max(0, jump)
        check.look(np.zeros((2, silence), np.float32), index + announced)
        index, number, silent = index + announced + silence, number + lost, silent + silence
        if jump:
            expected.append(Break(index, announced, lost))
        check.look(samples(number, n), index)
        index, number = index + n, number + n
    assert check.breaks == expected
    assert (check.n_breaks, check.silent) == (len(expected), silent)
    assert check.unaccounted == sum(abs(found.unaccounted) for found in expected)


def test_a_gap_of_the_right_size_is_explained():
    """A gap of the right size is a discontinuity without unexplained samples."""
    check = NumberCheck()
    check.look(samples(1, 100), 0)
    check.look(samples(1101, 100), 1100)
    assert check.breaks == [Break(1100, 1000, 1000)]
    assert check.unaccounted == 0


@pytest.mark.parametrize("rate_ppm", [-80.0, 0.0, 3.0])
def test_rate_is_read_from_the_soonest_arrivals(rate_ppm):
    """Late blocks do not change the measured rate, and the uncertainty covers the error."""
    rng = np.random.default_rng(7)
    index = np.arange(1, 601) * FS
    late_s = rng.exponential(50e-6, len(index))
    t_s = 5.0 + index / (FS * (1 + rate_ppm * 1e-6)) + late_s
    arrivals = np.stack([index, np.rint(t_s * 1e9).astype(np.int64)], axis=1)
    error, uncertainty = rate_error_ppm(arrivals, FS)
    # The earliest of 120 arrivals is late by 50 us / 120 on average, over at least 480 s: 0.001
    # ppm.
    assert error == pytest.approx(rate_ppm, abs=0.01)
    assert abs(error - rate_ppm) < uncertainty < 0.5


@pytest.mark.parametrize("seconds", [8, 13, 24])
def test_rate_of_a_short_run_is_known_to_its_jitter(seconds):
    """The true rate of a run of a few seconds lies within a nonzero uncertainty."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        index = np.arange(1, seconds + 1) * FS
        late_s = rng.uniform(0.0, 2e-3, seconds)
        arrivals = np.stack([index, np.rint((index / FS + late_s) * 1e9).astype(np.int64)], axis=1)
        error, uncertainty = rate_error_ppm(arrivals, FS)
        assert abs(error) <= uncertainty * (1 + 1e-6)


def test_ring_keeps_the_soonest_block_of_each_second(monkeypatch):
    """The ring keeps the arrival of the least late block of each second."""
    ring = WatchedRing(1000.0, 2, 1000)
    late_ms = iter([3, 1, 2, 9, 5, 4, 5, 7, 6, 8, 1])
    times = []

    def monotonic_ns():
        times.append((len(times) + 1) * 250_000_000 + next(late_ms) * 1_000_000)
        return times[-1]

    monkeypatch.setattr("spectrod.apps.bench.verifying_ring.time.monotonic_ns", monotonic_ns)
    for number in range(11):
        ring.write(samples(1 + 250 * number, 250), 250 * number, 0, 0)
    ring.release()
    assert ring.arrivals[:, 0].tolist() == [500, 1500, 2750]
    assert ring.check.frames == 2750
