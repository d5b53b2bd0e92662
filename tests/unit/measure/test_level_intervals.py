"""Intervals of local time: bounds at wall times, also where clocks change."""

import datetime as dt
from itertools import pairwise
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from spectrod.measure.intervals import IntervalGrid, UtcOfSamples, local_utc_ns
from spectrod.measure.levels import LevelMeter

NS = 10**9
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def bounds(date, interval_s, zone_name, days=1):
    """Return the UTC of all bounds from local midnight on [s since 1970]."""
    zone, clock = ZoneInfo(zone_name), UtcOfSamples(1.0)
    grid = IntervalGrid(1.0, interval_s, "local", zone, clock)
    begin, end = (local_utc_ns(date + dt.timedelta(days=k), 0, zone) // NS for k in (0, days))
    found = [begin]
    while found[-1] < end:
        first, after = grid.around(found[-1])
        assert first == found[-1]
        assert grid.around(after - 1) == (first, after)
        found.append(after)
    assert found[-1] == end
    return found


def wall(utc_s, zone_name):
    return (EPOCH + dt.timedelta(seconds=utc_s)).astimezone(ZoneInfo(zone_name))


@pytest.mark.parametrize(
    "zone",
    [
        "Europe/Berlin", "Asia/Kathmandu", "Asia/Kolkata", "America/St_Johns", "Pacific/Chatham",
        "Australia/Adelaide", "UTC",
    ],
)  # fmt: skip
@pytest.mark.parametrize("interval_s", [3600, 900, 1800, 6 * 3600, 86400])
def test_intervals_begin_at_wall_times(zone, interval_s):
    """On days without a change all intervals are equally long and begin at multiples of a day."""
    found = bounds(dt.date(2026, 7, 1), interval_s, zone, days=2)
    assert {after - before for before, after in pairwise(found)} == {interval_s}
    for utc_s in found:
        local = wall(utc_s, zone)
        assert (local.hour * 3600 + local.minute * 60 + local.second) % interval_s == 0


CHANGES = [
    ("Europe/Berlin", dt.date(2026, 3, 29), 3600, 23, {3600}),
    ("Europe/Berlin", dt.date(2026, 10, 25), 3600, 25, {3600}),
    ("Europe/Berlin", dt.date(2026, 3, 29), 900, 92, {900}),
    ("Europe/Berlin", dt.date(2026, 10, 25), 900, 100, {900}),
    ("Europe/Berlin", dt.date(2026, 3, 29), 6 * 3600, 4, {5 * 3600, 6 * 3600}),
    ("Europe/Berlin", dt.date(2026, 10, 25), 6 * 3600, 4, {7 * 3600, 6 * 3600}),
    ("Europe/Berlin", dt.date(2026, 3, 29), 86400, 1, {23 * 3600}),
    ("Europe/Berlin", dt.date(2026, 10, 25), 86400, 1, {25 * 3600}),
    ("Australia/Lord_Howe", dt.date(2026, 4, 5), 3600, 24, {3600, 5400}),
    ("Australia/Lord_Howe", dt.date(2026, 10, 4), 3600, 23, {3600, 5400}),
    ("Australia/Lord_Howe", dt.date(2026, 4, 5), 1800, 49, {1800}),
    ("Australia/Lord_Howe", dt.date(2026, 10, 4), 1800, 47, {1800}),
    ("America/Havana", dt.date(2024, 11, 3), 86400, 1, {25 * 3600}),  # midnight comes twice
    ("America/Havana", dt.date(2024, 11, 3), 3600, 25, {3600}),
    ("America/Havana", dt.date(2026, 3, 8), 3600, 23, {3600}),  # there is no midnight
    ("America/Sao_Paulo", dt.date(2018, 2, 17), 3600, 25, {3600}),
    ("Pacific/Apia", dt.date(2011, 12, 29), 3600, 24, {3600}),  # the next date was left out
]


@pytest.mark.parametrize(("zone", "date", "interval_s", "n", "lengths_s"), CHANGES)
def test_days_on_which_the_clock_changes(zone, date, interval_s, n, lengths_s):
    """A repeated hour is two intervals; only what does not divide the change has another length."""
    found = bounds(date, interval_s, zone)
    lengths = [after - before for before, after in pairwise(found)]
    assert (len(lengths), set(lengths)) == (n, lengths_s)


def test_levels_of_local_hours():
    """Levels of Kathmandu's hours begin at 45 minutes of UTC."""
    fs = 1000.0
    begin_ns = 1777609800 * NS  # 2026-05-01T04:30Z, 10:15 in Kathmandu
    meter = LevelMeter(
        fs, quantities=["LZeq"], interval_s=900, align="local", time_zone="Asia/Kathmandu",
        utc_ns=begin_ns,
    )  # fmt: skip
    x = np.random.default_rng(1).standard_normal((1, 1_000_000)).astype(np.float32) / 10
    rows = meter.push(x) + meter.finish()
    assert [row.begin_utc_ns - begin_ns for row in rows] == [0, 900 * NS]
    hourly = LevelMeter(
        fs, quantities=["LZeq"], interval_s=3600, align="local", time_zone="Asia/Kathmandu",
        utc_ns=begin_ns + 2000 * NS,
    )  # fmt: skip
    rows = hourly.push(x) + hourly.finish()
    assert [row.begin_utc_ns - begin_ns for row in rows] == [2000 * NS, 2700 * NS]


def test_the_span_of_an_interval_has_what_is_missing_in_it():
    """It ends with the last measured sample, also where a gap ends the interval."""
    meter, x = LevelMeter(8000, 1, interval_s=2.0), np.full((1, 3000), 0.1, np.float32)
    rows = meter.push(x) + meter.push(x, missing_samples=4000) + meter.push(x, missing_samples=9000)
    rows += meter.finish()
    assert [row.n_samples for row in rows] == [6000, 3000]
    assert [row.span_samples for row in rows] == [10_000, 3000]
