"""Samples that move to the front of their buffer."""

import numpy as np
import pytest

from spectrod.analysis.sample_buffer import SampleBuffer
from spectrod.dsp.sample_layout import SampleLayout
from spectrod.lib.errors import InternalError

CAPACITY = 1 << 20


# 2^19 samples of two channels are 4 MiB, which several threads copy, and the most that fit.
@pytest.mark.parametrize("n", [0, 1, 1001, (1 << 19) - 1, 1 << 19])
@pytest.mark.parametrize("interleaved", [False, True])
def test_the_newest_samples_move_to_the_front(n, interleaved):
    """They keep values and positions, however many they are."""
    samples = np.random.default_rng(n).standard_normal((2, CAPACITY)).astype(np.float32)
    buffer = SampleBuffer(SampleLayout("float32", 2, interleaved), CAPACITY)
    buffer.append(samples)
    buffer.move(CAPACITY - n)
    assert (buffer.start, buffer.end, buffer.fill) == (CAPACITY - n, CAPACITY, n)
    np.testing.assert_array_equal(buffer.data[:, :n], samples[:, CAPACITY - n :])


@pytest.mark.parametrize("step", [(1 << 19) - 5, 1 << 19, 1 << 20])
def test_samples_are_appended_in_steps(step):
    """After each step the buffer has its samples, and no others."""
    samples = np.random.default_rng(step).standard_normal((2, CAPACITY - 3)).astype(np.float32)
    buffer = SampleBuffer(SampleLayout("float32", 2, interleaved=False), CAPACITY)
    buffer.append(samples[:, :3])
    ends = []
    for _ in buffer.append_steps(samples[:, 3:], step):
        ends.append(buffer.end)
        np.testing.assert_array_equal(buffer.data[:, : buffer.fill], samples[:, : buffer.end])
    assert ends == [*range(3 + step, CAPACITY - 3, step), CAPACITY - 3]


def test_samples_that_overlap_their_new_place_move_as_well():
    """A buffer that is not full moves samples over themselves."""
    buffer = SampleBuffer(SampleLayout("float32", 1, interleaved=False), CAPACITY)
    samples = np.arange(CAPACITY // 2 + 5, dtype=np.float32)[np.newaxis]
    buffer.append(samples)
    buffer.move(5)
    np.testing.assert_array_equal(buffer.data[:, : CAPACITY // 2], samples[:, 5:])


def test_more_than_half_a_buffer_does_not_move():
    """No caller may ask for it: the samples would not fit in what a stream reads."""
    buffer = SampleBuffer(SampleLayout("float32", 1, interleaved=False), 64)
    buffer.append(np.zeros((1, 64), np.float32))
    with pytest.raises(InternalError, match=r"^33 samples do not fit half a buffer of 64$"):
        buffer.move(31)
