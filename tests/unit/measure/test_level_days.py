"""Local days beside shorter intervals in one meter."""

import datetime as dt
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from spectrod.lib.errors import ConfigError
from spectrod.measure.levels import LevelFlag, LevelMeter

FS = 1000.0
NS = 1_000_000_000
BERLIN = ZoneInfo("Europe/Berlin")
NAMES = ["LAeq", "L10", "LAFmax", "LAF", "Lden", "Lnight"]
PENALTY_DB = {"day": 0.0, "evening": 5.0, "night": 10.0}


def meter_of(interval_s, **settings):
    given = {"quantities": NAMES, "align": "local", "time_zone": "Europe/Berlin", **settings}
    return LevelMeter(FS, interval_s=interval_s, **given)


def hours_of(first, n_days):
    """Return the UTC of each whole hour of some local days [s], and the local time of each."""
    begin = dt.datetime.combine(first, dt.time(), BERLIN).timestamp()
    end = dt.datetime.combine(first + dt.timedelta(n_days), dt.time(), BERLIN).timestamp()
    return [(t, dt.datetime.fromtimestamp(t, BERLIN)) for t in np.arange(begin, end, 3600.0)]


def measure(meter, hours, seed=3):
    """Measure 4.1 s of noise at the begin of each hour, of a level of its own; nothing else."""
    rng, rows, lost = np.random.default_rng(seed), [], 0
    for utc_s, _ in hours:
        x = rng.normal(0.0, 10.0 ** rng.uniform(-3.0, -1.0), 4100)
        rows += meter.push(x, lost, int(utc_s) * NS)
        lost = 3_600_000 - len(x)
    return rows + meter.finish()


def part_of(local):
    return "day" if 7 <= local.hour < 19 else "evening" if 19 <= local.hour < 23 else "night"


@pytest.mark.parametrize(
    ("first", "lengths_h"),
    [(dt.date(2026, 10, 24), [24, 25, 24]), (dt.date(2026, 3, 28), [24, 23, 24])],
)
def test_days_of_a_change_of_the_clock(first, lengths_h):
    """Days of 23, 24 and 25 hours follow from the levels of their hours, by datetime alone."""
    hours = hours_of(first, 3)
    rows = measure(meter_of(3600.0, days=True), hours)
    days = [row for row in rows if row.is_day]
    single = [row for row in rows if not row.is_day]
    assert [row.begin_utc_ns for row in single] == [int(t) * NS for t, _ in hours]
    assert np.isnan([row.values[4:] for row in single]).all()
    found = {}
    for (_, local), row in zip(hours, single, strict=True):
        power = 10.0 ** (row.values[0, 0] / 10.0)
        found.setdefault(local.date(), {}).setdefault(part_of(local), []).append(power)
    assert [sum(map(len, day.values())) for day in found.values()] == lengths_h
    for row, day in zip(days, found.values(), strict=True):
        every = [one for powers in day.values() for one in powers]
        # All hours have as many samples, and the parts of a day as many hours as are listed.
        weighted = [
            len(powers) * 10.0 ** (PENALTY_DB[part] / 10.0) * np.mean(powers)
            for part, powers in day.items()
        ]
        lden = sum(weighted) / len(every)
        expected = 10.0 * np.log10([np.mean(every), lden, np.mean(day["night"])])
        np.testing.assert_allclose(row.values[[0, 4, 5], 0], expected, rtol=0, atol=1e-9)
        assert row.duration_s == pytest.approx(4.1 * len(every))


def test_days_are_those_of_a_meter_of_days_and_follow_their_hours():
    """Rows of days have the values, times and flags of a meter of days; hours are as before."""
    hours = hours_of(dt.date(2026, 10, 25), 2)[5:40]  # neither day is whole
    rows = measure(meter_of(3600.0, days=True), hours)
    days = measure(meter_of(86400.0), hours)
    plain = measure(meter_of(3600.0, quantities=NAMES[:4]), hours)
    assert [k for k, row in enumerate(rows) if row.is_day] == [20, len(rows) - 1]
    for row, expected in zip([row for row in rows if row.is_day], days, strict=True):
        np.testing.assert_allclose(row.values, expected.values, rtol=0, atol=1e-9)
        assert row.begin_utc_ns == expected.begin_utc_ns
        assert row.n_samples == expected.n_samples
        assert row.due_samples == expected.due_samples
        assert row.flags.tolist() == expected.flags.tolist()
        assert row.flags[0] & LevelFlag.PARTIAL
    singles = [row for row in rows if not row.is_day]
    for row, expected in zip(singles, plain, strict=True):
        assert np.array_equal(row.values[:4], expected.values)
        assert row.flags.tolist() == expected.flags.tolist()


def test_the_total_has_the_samples_once():
    """All intervals together are those of a meter of days."""
    hours = hours_of(dt.date(2026, 10, 24), 2)
    both, days = meter_of(3600.0, days=True), meter_of(86400.0)
    measure(both, hours)
    measure(days, hours)
    found, expected = both.summary(), days.summary()
    np.testing.assert_allclose(found.values, expected.values, rtol=0, atol=1e-9)
    assert found.n_samples == expected.n_samples


@pytest.mark.parametrize(
    ("interval_s", "align", "text"),
    [
        (86400.0, "local", r"interval_s=86400.*: days beside intervals need ones below 86400 s"),
        (3600.0, "utc", r"align='utc': days beside intervals need align='local'"),
    ],
)
def test_days_need_shorter_local_intervals(interval_s, align, text):
    """An interval of a day, and intervals that do not begin at local midnight, are errors."""
    with pytest.raises(ConfigError, match=text):
        meter_of(interval_s, align=align, days=True)
