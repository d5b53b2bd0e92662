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
