"""Copies made in parts by several threads."""

import numpy as np
import pytest

from spectrod.analysis.parallel_copy import copy


@pytest.mark.parametrize(("shape", "axis"), [((2, 1_500_001), 1), ((3001, 2, 257), 0), ((1, 5), 1)])
def test_a_copy_is_whole(shape, axis):
    """A copy in any number of parts is complete, also for rows with gaps between them."""
    source = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    out = np.zeros((*shape[:-1], shape[-1] + 3), np.float32)
    copy(out[..., : shape[-1]], source, axis)
    np.testing.assert_array_equal(out[..., : shape[-1]], source)
    assert not out[..., shape[-1] :].any()
