"""The criteria by which a soak test fails."""

import pytest

from spectrod.apps.bench.soak import faults

GOOD = {
    "unaccounted": 0, "breaks": 0, "silent": 0, "overflows": 0, "overruns": 0, "suspected": 0,
    "restarts": 0, "gaps": 0, "rate_ppm": 0.2, "rate_uncertainty_ppm": 0.1, "true_rate_ppm": -0.1,
    "true_rate_uncertainty_ppm": 0.1, "descriptors": 30, "capture_descriptors": 12,
    "rss_bytes": 100 << 20, "capture_rss_bytes": 20 << 20,
}  # fmt: skip


def rows(**last):
    return [GOOD] * 19 + [GOOD | last]


def test_run_that_lost_nothing_has_no_faults():
    """Equal counts, an agreeing rate and flat memory are no faults."""
    assert list(faults(rows(rss_bytes=(100 << 20) + 4096))) == []


@pytest.mark.parametrize(
    ("last", "fault"),
    [
        ({"unaccounted": 3}, "unaccounted: 3"),
        ({"silent": 7}, "silent: 7"),
        ({"suspected": 1}, "suspected: 1"),
        ({"restarts": 1}, "restarts: 1"),
        ({"rate_ppm": None}, "rate: not known"),
        ({"rate_ppm": 1.2}, "rate: +1.300 ppm from truth, more than 1.200"),
        ({"descriptors": 31}, "descriptors: 30, later 31"),
        ({"rss_bytes": 103 << 20}, "rss_bytes: 3.0 MiB more than after half of the time"),
    ],
)
def test_each_defect_is_a_fault(last, fault):
    """Each single defect is reported as one fault with its size."""
    assert list(faults(rows(**last))) == [fault]
