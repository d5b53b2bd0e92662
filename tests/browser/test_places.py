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
    modes = {name.partition(",")[0] for name in counts}
    assert modes == set(page_places.MODES)
    kinds = {name.partition(", ")[2] for name in counts}
    assert kinds >= {
        "waterfall", "line spectrum", "CSV", "PNG", "third octave", "selection", "bar"
    }  # fmt: skip
