"""Points and lengths of time in arguments."""

import pytest

from spectrod.cli.times import parse_next_utc_ns, parse_seconds
from spectrod.lib.errors import ConfigError

HALF_PAST_FOUR_NS = 1_777_609_800 * 10**9
HOUR_NS = 3600 * 10**9


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90.0),
        ("0.5 s", 0.5),
        ("10min", 600.0),
        ("1.5h", 5400.0),
        ("1d", 86400.0),
        ("1e8", 1e8),
    ],
)
def test_lengths(text, seconds):
    """A length without a unit is in seconds."""
    assert parse_seconds("--every", text) == seconds


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "must be a time: 90, 1.5h"),
        ("1 week", "must be a time: 90, 1.5h"),
        ("nan", "must be a time: 90, 1.5h"),
        ("h", "must be a time: 90, 1.5h"),
        ("0", "must be above 0 and below 1e\\+09 s"),
        ("-1", "must be above 0 and below 1e\\+09 s"),
        ("1e9", "must be above 0 and below 1e\\+09 s"),
    ],
)
def test_bad_lengths(text, rule):
    """A malformed or excessive length is refused with the flag and the rule."""
    with pytest.raises(ConfigError, match=f"--every {text}: {rule}"):
        parse_seconds("--every", text)


@pytest.mark.parametrize(
    ("text", "after_h"),
    [
        ("04:30", 0.0),
        ("04:30:00", 0.0),
        ("4:29", 24.0 - 1 / 60),
        ("05:00", 0.5),
        ("T05:00", 0.5),
        ("05:00Z", 0.5),
    ],
)
def test_times_of_day(text, after_h):
    """A time of day is its next occurrence; the present moment counts."""
    found_ns = parse_next_utc_ns("--start", text, HALF_PAST_FOUR_NS)
    assert found_ns - HALF_PAST_FOUR_NS == pytest.approx(after_h * HOUR_NS)


def test_points_of_time_may_be_past():
    """A point of time in ISO 8601 may be past."""
    found_ns = parse_next_utc_ns("--start", "2026-05-01T05:00:00+01:00", HALF_PAST_FOUR_NS)
    assert found_ns == HALF_PAST_FOUR_NS - HOUR_NS // 2


@pytest.mark.parametrize("text", ["24:00", "12:60", "12:00:60"])
def test_bad_times_of_day(text):
    """An impossible time of day is refused."""
    with pytest.raises(ConfigError, match="must be a time of day, 00:00 to 23:59:59"):
        parse_next_utc_ns("--start", text, 0)
