"""Arguments of kernels: numbers by pyopencl's fast method, where it exists."""

from types import SimpleNamespace

import numpy as np
import pytest

from spectrod.opencl.arguments import Arguments


@pytest.mark.parametrize("has_fast", [True, False])
def test_numbers_take_the_fast_method(has_fast):
    """Numbers and vectors are set by ``_set_arg_buf``, or ``set_arg`` in a pyopencl without it."""
    slow, fast = [], []
    kernel = SimpleNamespace(set_arg=lambda *given: slow.append(given))
    if has_fast:
        kernel._set_arg_buf = lambda *given: fast.append(given)
    buffer, number, vector = object(), np.uint64(7), np.zeros(4, np.uint32)
    Arguments(kernel).set(3, [buffer, number, None, vector])
    numbers = [(4, number), (6, vector)]
    others = [(3, buffer), (5, None)]
    assert fast == (numbers if has_fast else [])
    assert slow == (others if has_fast else [*others[:1], numbers[0], others[1], numbers[1]])


def test_counts_that_are_the_same_are_not_set_again():
    """Counts are set as 64 bits where they differ from those that the kernel has."""
    done = []
    arguments = Arguments(
        SimpleNamespace(_set_arg_buf=lambda *given: done.append(given), set_arg=None)
    )
    arguments.set_counts(5, [1, 2, 3])
    assert [(index, int(count)) for index, count in done] == [(5, 1), (6, 2), (7, 3)]
    assert all(isinstance(count, np.uint64) for _, count in done)
    done.clear()
    arguments.set_counts(5, [1, 9, 3])
    assert done == [(6, 9)]
