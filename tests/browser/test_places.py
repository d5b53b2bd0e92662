"""A seeded part of ``benchmarks/page_places.py``: what the page says is equal to the rows."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import page_places

pytestmark = [pytest.mark.extended, pytest.mark.timeout(300)]


def test_random_places_are_equal_to_the_rows(chromium):
    """Places of each mode, also over the seam of recording, server and page, have their rows."""
    counts = page_places.measure(chromium, 80, seed=3, recorded_s=60)
    assert sum(counts.values()) >= 80
    modes, kinds, directions = map(set, zip(*map(parts, counts), strict=True))
    assert modes == set(page_places.MODES)
    assert kinds >= {
        "waterfall", "line spectrum", "CSV", "PNG", "third octave", "selection", "bar"
    }  # fmt: skip
    # Where live rows begin is a place of its own, if one of the random ones lies there.
    assert directions - {"live rows begin"} == {"", *page_places.DIRECTIONS}


def parts(name):
    """Return mode, kind and direction of time of a count; empty of those without one."""
    mode, kind, direction = (*name.split(", "), "")[:3]
    return mode, kind, direction.removeprefix("time ")
