"""Gaps between rows: the minutes that they reach into, and the memory that they take."""

import sys
from pathlib import Path

from spectrod.formats.export import day_gaps
from spectrod.formats.export.day_gaps import DayGaps
from spectrod.formats.export.minutes import MINUTE_NS

sys.path.insert(0, str(Path(__file__).parents[2] / "segments"))
from segment_rows import BEGIN_UTC_NS, make_batch, make_spec, shifted

SPEC = make_spec(fs=80.0, hop=16)  # five rows a second
FIRST = BEGIN_UTC_NS // MINUTE_NS


def gaps_at(*places):
    """Return gaps of 10 s that end so many minutes after the minute of the first row."""
    found = DayGaps(SPEC.fs)
    found.add(make_batch(SPEC, 0, 5))
    for minute in places:
        past_s = minute * 60 + 30 - BEGIN_UTC_NS % MINUTE_NS / 1e9
        n_samples = round(past_s * SPEC.fs)
        found.add(shifted(make_batch(SPEC, 0, 5), n_samples, gap_samples=round(10 * SPEC.fs)))
    return found


def test_more_gaps_than_are_kept_count_by_their_minutes(monkeypatch):
    """Those beyond the bound take no more memory than a minute, and none is forgotten too early."""
    places = (2, 3, 5, 9, 14, 22)
    expected = {FIRST + minute for minute in places}
    assert gaps_at(*places).minutes() == expected
    monkeypatch.setattr(day_gaps, "GAPS_MAX", 2)
    found = gaps_at(*places)
    assert len(found._gaps) == 2
    assert found.minutes() == expected
    found.forget_before((FIRST + 9) * MINUTE_NS)
    assert found.minutes() == {FIRST + 9, FIRST + 14, FIRST + 22}
    found.forget_before((FIRST + 30) * MINUTE_NS)
    assert found.minutes() == set()
