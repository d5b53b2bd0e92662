"""Hours of the week and duty cycles of a schedule."""

import calendar
import datetime as dt

import numpy as np
import pytest

from spectrod.config.schedule import NEVER_NS, Schedule
from spectrod.lib.errors import ConfigError

NS = 1_000_000_000


def at(text):
    """Return the UTC time of a weekday and hour; 2026-05-04 is a Monday."""
    return calendar.timegm(dt.datetime.fromisoformat(text).timetuple()) * NS


@pytest.mark.parametrize(
    ("hours", "inside", "outside"),
    [
        (["06:00-18:00"], ["2026-05-04 06:00", "2026-05-09 17:59:59"], ["2026-05-04 05:59:59",
         "2026-05-04 18:00"]),
        (["22:00-04:00"], ["2026-05-04 22:00", "2026-05-04 03:59:59"], ["2026-05-04 04:00",
         "2026-05-04 21:59:59"]),
        (["Sun 23:00-01:00"], ["2026-05-10 23:30", "2026-05-11 00:30"], ["2026-05-10 00:30",
         "2026-05-11 01:00", "2026-05-04 23:30"]),
        (["Mon-Fri 00:00-24:00"], ["2026-05-04 00:00", "2026-05-08 23:59:59"],
         ["2026-05-09 00:00", "2026-05-03 23:59:59"]),
        (["Sat,Sun 12:00-13:00", "mon 07:30-07:31"], ["2026-05-09 12:00", "2026-05-10 12:59",
         "2026-05-04 07:30:30"], ["2026-05-11 12:00", "2026-05-05 07:30:30"]),
        (["Fri-Mon 10:00-11:00"], ["2026-05-08 10:00", "2026-05-11 10:30"], ["2026-05-12 10:30"]),
        (["05:00-05:00"], ["2026-05-04 04:59", "2026-05-04 05:00"], []),
    ],
)  # fmt: skip
def test_hours_include_their_start_and_exclude_their_end(hours, inside, outside):
    """Hours include their start but not their end, on named days or all, also over midnight."""
    schedule = Schedule(hours)
    assert all(schedule.covers(at(t)) for t in inside)
    assert not any(schedule.covers(at(t)) for t in outside)


@pytest.mark.parametrize(
    ("hours", "cycle"),
    [
        (["06:00-18:00", "Sat 17:00-22:13"], (0.0, 0.0)),
        (["Sun 23:59-00:01"], (300.0, 600.0)),
        ([], (7.5, 11.25)),
        (["Mon,Thu 01:00-02:30"], (60.0, 60.0)),
    ],
)
def test_the_state_is_constant_up_to_the_next_change(hours, cycle):
    """The state is constant up to the next change, which comes within a week."""
    schedule = Schedule(hours, *cycle)
    rng = np.random.default_rng(7)
    for t in rng.integers(at("2026-01-01"), at("2027-01-01"), 300).tolist():
        turn = schedule.next_turn_ns(t)
        assert t < turn <= t + 7 * 86400 * NS
        assert schedule.covers(turn - 1) == schedule.covers(t)
        between = t + int(rng.integers(0, turn - t))
        assert schedule.covers(between) == schedule.covers(t)


def test_its_turns_are_at_the_edges():
    """Changes are at the edges of the hours, from Monday on."""
    schedule = Schedule(["Mon-Tue 06:00-18:00"])
    t, turns = at("2026-05-04 00:00"), []
    for _ in range(5):
        t = schedule.next_turn_ns(t)
        turns.append(f"{dt.datetime.fromtimestamp(t // NS, dt.UTC):%a %H:%M}")
    assert turns == ["Mon 06:00", "Mon 18:00", "Tue 06:00", "Tue 18:00", "Mon 06:00"]


def test_a_cycle_starts_with_the_day():
    """A duty cycle starts with each day, first on, then off."""
    schedule = Schedule((), 300.0, 600.0)
    midnight = at("2026-05-04 00:00")
    assert schedule.covers(midnight)
    assert schedule.covers(midnight + 300 * NS - 1)
    assert not schedule.covers(midnight + 300 * NS)
    assert schedule.next_turn_ns(midnight + 300 * NS) == midnight + 900 * NS


@pytest.mark.parametrize("hours", [[], ["00:00-24:00"], ["00:00-00:00"]])
def test_all_hours_have_no_turn(hours):
    """A schedule of all hours has neither changes nor an end."""
    assert Schedule(hours).covers(0)
    assert Schedule(hours).next_turn_ns(at("2026-05-04")) == NEVER_NS


@pytest.mark.parametrize(
    ("hours", "cycle", "message"),
    [
        (["6:00-18:00"], (0, 0), "schedule='6:00-18:00': must be HH:MM-HH:MM in UTC"),
        (["06:00-24:01"], (0, 0), "00:00 to 24:00"),
        (["24:00-06:00"], (0, 0), "00:00 to 24:00"),
        (["06:60-07:00"], (0, 0), "00:00 to 24:00"),
        (["Mo 06:00-07:00"], (0, 0), "'mo': days are Mon Tue Wed Thu Fri Sat Sun"),
        (["Mon,,Tue 06:00-07:00"], (0, 0), "'': days are Mon"),
        ([], (5.0, 0.0), "on_s=5, off_s=0: must both be 0, or neither"),
        ([], (0.0, 2.5), "on_s=0, off_s=2.5: must both be 0, or neither"),
        ([], (0.5, 2.0), "on_s=0.5, off_s=2: must be 1 or more, where not 0"),
        ([], (1e-10, 1e-10), "on_s=1e-10, off_s=1e-10: must be 1 or more, where not 0"),
    ],
)
def test_an_invalid_schedule_is_refused(hours, cycle, message):
    """An invalid schedule is refused with the value and the rule."""
    with pytest.raises(ConfigError, match=message):
        Schedule(hours, *cycle)
