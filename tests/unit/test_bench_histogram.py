import numpy as np
import pytest

from spectrod.bench.histogram import EDGES, histogram


def test_every_time_is_counted_once():
    """Counts add up, whatever the times; those beyond the edges are in the outermost bins."""
    times = np.concatenate([np.geomspace(1e-9, 1e4, 1001), EDGES, [0.0, -1.0]])
    counted = histogram(times)
    assert counted.counts.sum() == len(times)
    np.testing.assert_array_equal(counted.edges, EDGES)


@pytest.mark.parametrize("bin_number", [0, 1, 20, len(EDGES) - 2])
def test_a_lower_edge_belongs_to_its_bin(bin_number):
    """A bin holds its lower edge and not its upper one; empty bins around it are left out."""
    low, high = EDGES[bin_number : bin_number + 2]
    counted = histogram(np.array([low, np.nextafter(high, 0.0)]))
    np.testing.assert_array_equal(counted.edges, [low, high])
    np.testing.assert_array_equal(counted.counts, [2])


def test_lines_have_shares_and_bars():
    """The fullest bin has the longest bar, one with anything in it has some, and none none."""
    counted = histogram(np.array([1.2e-3] * 99 + [2.5e-3]))
    first, second, third = counted.lines()
    assert first.split() == ["1", "to", "1.5", "ms", "99.00%", "#" * 50]
    assert second.split() == ["1.5", "to", "2", "ms", "0.00%"]
    assert third.split() == ["2", "to", "3", "ms", "1.00%", "#"]
