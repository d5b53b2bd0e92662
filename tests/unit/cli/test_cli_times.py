"""Points and lengths of time in arguments."""

from zoneinfo import ZoneInfo

import pytest

from spectrod.cli.times import Extent, parse_next_utc_ns, parse_seconds, parse_utc_ns
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


BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-05-01T06:30", "2026-05-01T04:30"),
        ("2026-05-01T06:30Z", "2026-05-01T06:30"),
        ("2026-05-01T06:30+01:00", "2026-05-01T05:30"),
        ("2026-10-25T02:30", "2026-10-25T00:30"),  # comes twice: the first
        ("2026-12-01T06:30", "2026-12-01T05:30"),
    ],
)
def test_times_without_a_zone_are_those_of_the_given_zone(text, expected):
    """A time that names UTC or an offset means that; another is local, in summer and winter."""
    assert parse_utc_ns("--start", text, BERLIN) == parse_utc_ns("--start", expected)
    extent = Extent("a.wav", parse_utc_ns("--start", "2026-01-01"), None, BERLIN)
    offset_ns = extent.offset_ns("--start", text)
    assert offset_ns == parse_utc_ns("--start", expected) - extent.begin_utc_ns


@pytest.mark.parametrize(
    ("after", "text", "expected"),
    [
        ("2026-05-01T04:00", "T06:30", "2026-05-01T04:30"),
        ("2026-05-01T04:30", "06:30", "2026-05-01T04:30"),
        ("2026-05-01T04:30:01", "06:30", "2026-05-02T04:30"),
        ("2026-05-01T04:00", "06:30Z", "2026-05-01T06:30"),
        ("2026-05-01T23:00", "00:30", "2026-05-02T22:30"),
        ("2026-10-24T23:00", "02:30", "2026-10-25T00:30"),
        ("2026-10-25T00:31", "02:30", "2026-10-25T01:30"),  # the second pass
        ("2026-10-25T01:31", "02:30", "2026-10-26T01:30"),
    ],
)
def test_times_of_day_are_local(after, text, expected):
    """The first such local time at or after another one, also where an hour comes twice."""
    after_ns = parse_utc_ns("--start", after)
    found_ns = parse_next_utc_ns("--start", text, after_ns, BERLIN)
    assert found_ns == parse_utc_ns("--start", expected)
