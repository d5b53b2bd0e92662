import numpy as np
import pytest

from spectrod.apps.bench.histogram import EDGES, histogram


def test_every_time_is_counted_once():
    """Every time is counted once; times beyond the edges count in the outermost bins."""
    times = np.concatenate([np.geomspace(1e-9, 1e4, 1001), EDGES, [0.0, -1.0]])
    counted = histogram(times)
    assert counted.counts.sum() == len(times)
    np.testing.assert_array_equal(counted.edges, EDGES)


@pytest.mark.parametrize("bin_number", [0, 1, 20, len(EDGES) - 2])
def test_a_lower_edge_belongs_to_its_bin(bin_number):
    """A bin includes its lower edge but not its upper one; empty outer bins are left out."""
    low, high = EDGES[bin_number : bin_number + 2]
    counted = histogram(np.array([low, np.nextafter(high, 0.0)]))
    np.testing.assert_array_equal(counted.edges, [low, high])
    np.testing.assert_array_equal(counted.counts, [2])
