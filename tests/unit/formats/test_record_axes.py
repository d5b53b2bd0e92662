import math
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spectrod.formats.picture.axes import (
    FREQUENCY_SCALES,
    FrequencyAxis,
    linear_ticks,
    nice_step,
)
from spectrod.formats.picture.time_ticks import clock_axis, elapsed_axis

DAY_NS = 86_400 * 10**9
# 2026-11-20T21:47:03Z
EVENING_NS = 1_795_211_223 * 10**9


def labels(axis):
    return [tick.label for tick in axis.ticks]


@settings(max_examples=100)
@given(st.floats(1e-9, 1e12))
def test_nice_steps_are_one_two_five(at_least):
    """A nice step is the smallest sufficient 1, 2 or 5 times a power of ten."""
    step = nice_step(at_least)
    mantissa = step / 10.0 ** math.floor(math.log10(step * (1.0 + 1e-9)))
    assert min(abs(mantissa - m) for m in (1.0, 2.0, 5.0)) < 1e-6
    assert at_least * (1.0 - 2e-9) <= step <= 2.5 * at_least * (1.0 + 1e-6)


@settings(max_examples=100)
@given(st.floats(-1e4, 1e4), st.floats(0.01, 1e5), st.integers(1, 20))
def test_linear_ticks_stay_inside_and_are_few(lo, span, count):
    """Linear ticks lie within the axis, ascend, stay below the limit and have true labels."""
    ticks = linear_ticks(lo, lo + span, count)
    values = [tick.value for tick in ticks]
    assert values == sorted(set(values))
    assert len(values) <= count + 1
    margin = 1e-6 * span + 1e-9 * abs(lo)
    assert all(lo - margin <= value <= lo + span + margin for value in values)
    assert all(abs(float(tick.label) - tick.value) <= margin for tick in ticks)
    assert len({tick.label for tick in ticks}) == len(ticks)


def test_linear_ticks_include_both_ends():
    """Ends on round numbers have ticks despite rounding of the step."""
    assert [t.label for t in linear_ticks(0.0, 0.3, 3)] == ["0.0", "0.1", "0.2", "0.3"]
    assert [t.label for t in linear_ticks(-25.0, -15.0, 5)] == ["-24", "-22", "-20", "-18", "-16"]


def test_linear_frequencies_are_in_khz_to_both_ends():
    """An axis from 0 to 24 kHz is labelled 0 to 24 at those frequencies."""
    axis = next(FrequencyAxis("linear", 0.0, 24000.0).candidates(12))
    assert axis.title == "kHz"
    assert labels(axis)[0] == "0"
    assert labels(axis)[-1] == "24"
    assert all(float(t.label) * 1000.0 == pytest.approx(t.value) for t in axis.ticks)


def test_low_frequencies_are_in_hz():
    """An axis that ends below 2 kHz is labelled in Hz."""
    axis = next(FrequencyAxis("linear", 0.0, 500.0).candidates(5))
    assert axis.title == "Hz"
    assert labels(axis) == ["0", "100", "200", "300", "400", "500"]


def test_logarithmic_frequencies_reach_both_ends():
    """A logarithmic axis of 20 Hz to 20 kHz has 1-2-5 labels, the ends included."""
    axis = next(FrequencyAxis("log", 20.0, 20000.0).candidates(12))
    assert labels(axis) == ["20", "50", "100", "200", "500", "1k", "2k", "5k", "10k", "20k"]


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ((31.25, 16000.0), "31.5 63 125 250 500 1k 2k 4k 8k 16k"),
        ((20.0, 22050.0), "31.5 63 125 250 500 1k 2k 4k 8k 16k"),
        ((8.0, 63.0), "8 10 12.5 16 20 25 31.5 40 50 63"),
        ((2000.0, 125000.0), "2k 4k 8k 16k 31.5k 63k 125k"),
    ],
)
def test_octaves_have_their_nominal_names(ends, expected):
    """Octave labels have the standard's names, and thirds appear if there are few octaves."""
    axis = next(FrequencyAxis("octave", *ends).candidates(12))
    assert labels(axis) == expected.split()
    assert [tick.value for tick in axis.ticks] == pytest.approx(
        [float(text.replace("k", "")) * (1e3 if "k" in text else 1.0) for text in labels(axis)]
    )


def test_octaves_get_sparser_where_there_is_little_room():
    """With little room, labels skip to every second or third octave and include 1 kHz."""
    axes = list(FrequencyAxis("octave", 20.0, 20000.0).candidates(1))
    assert labels(axes[1]) == ["63", "250", "1k", "4k", "16k"]
    assert labels(axes[2]) == ["125", "1k", "8k"]


def test_octaves_are_evenly_spaced():
    """An octave has the same height everywhere on the axis."""
    axis = FrequencyAxis("octave", 62.5, 16000.0)
    heights = [axis.fraction(62.5 * 2.0**n) for n in range(9)]
    assert heights == pytest.approx([n / 8 for n in range(9)])


def test_mel_is_linear_up_to_1_khz_and_logarithmic_above():
    """The mel axis is Slaney's, with 1 kHz at mel 15 and 6.4 kHz at 42, and even labels."""
    axis = FrequencyAxis("mel", 0.0, 6400.0)
    assert axis.fraction(500.0) == pytest.approx(7.5 / 42)
    assert axis.fraction(1000.0) == pytest.approx(15 / 42)
    assert axis.at(15 / 42 + 27 / 42 / 2) == pytest.approx(1000.0 * 6.4**0.5)
    assert labels(next(axis.candidates(5))) == [
        *("0", "250", "500", "750", "1k", "1.5k", "2k", "3k", "4k", "6k")
    ]
    assert [tick.value for tick in axis.minor()][:11] == pytest.approx(
        [*range(100, 1001, 100), 2e3]
    )


@pytest.mark.parametrize("scale", ["log", "mel", "octave", "bark", "erb"])
def test_short_axes_have_linear_labels(scale):
    """An axis with too few labels of its scale has multiples of a step."""
    axis = next(FrequencyAxis(scale, 900.0, 1100.0).candidates(5))
    assert labels(axis) == ["900", "950", "1000", "1050", "1100"]


def test_negative_frequencies_are_in_khz_too():
    """An I/Q axis has 0 in the middle and labels in kHz on both sides."""
    axis = next(FrequencyAxis("linear", -4000.0, 4000.0).candidates(4))
    assert (axis.title, labels(axis)) == ("kHz", ["-4", "-2", "0", "2", "4"])
    assert FrequencyAxis("linear", -4000.0, 4000.0).fraction(0.0) == 0.5


@pytest.mark.parametrize("scale", FREQUENCY_SCALES)
def test_frequency_axis_is_its_own_inverse(scale):
    """Position and frequency convert back and forth, exactly at the ends."""
    axis = FrequencyAxis(scale, 31.0, 22050.0)
    edges = axis.edges(300)
    assert edges[0] == 31.0
    assert edges[-1] == 22050.0
    for row, f_hz in enumerate(edges):
        assert axis.fraction(f_hz) == pytest.approx(row / 300, abs=1e-12)
    centres = axis.centres(300)
    assert ((edges[:-1] < centres) & (centres < edges[1:])).all()


def test_minor_ticks_fill_decades():
    """A logarithmic axis has minor ticks at 1 to 9 of each decade, a linear one none."""
    minor = [tick.value for tick in FrequencyAxis("log", 100.0, 1000.0).minor()]
    assert minor == pytest.approx([100, 200, 300, 400, 500, 600, 700, 800, 900, 1000])
    assert FrequencyAxis("linear", 0.0, 1000.0).minor() == ()


@pytest.mark.parametrize(
    ("duration_s", "count", "title", "expected"),
    [
        (0.0213, 4, "s", ["0.00", "0.01", "0.02"]),
        (1.0, 5, "s", ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (59.9996, 4, "s", ["0", "15", "30", "45"]),
        (150.0, 6, "min:s", ["0:00", "0:30", "1:00", "1:30", "2:00", "2:30"]),
        (3600.0, 4, "h:min", ["0:00", "0:15", "0:30", "0:45", "1:00"]),
        (3700.0, 200, "h:min:s", ["0:00:00", "0:00:30"]),
        (86400.0 * 2, 4, "d h:min", ["0d 00:00", "0d 12:00", "1d 00:00", "1d 12:00", "2d 00:00"]),
        (86400.0 * 9, 5, "d", ["0", "2", "4", "6", "8"]),
    ],
)
def test_elapsed_times_read_like_a_clock(duration_s, count, title, expected):
    """Time labels suit the duration, in seconds to days at a clock's steps."""
    axis = elapsed_axis(duration_s, count)
    assert axis.title == f"elapsed time [{title}]"
    assert labels(axis)[: len(expected)] == expected


def test_elapsed_times_continue_in_the_next_picture():
    """Ticks of a later part have the same times and labels as on the whole recording."""
    axis = elapsed_axis(600.0, 4, begin_s=5400.0 - 33.0)
    assert axis.title == "elapsed time [h:min]"
    assert labels(axis) == ["1:30", "1:35"]
    assert [tick.value for tick in axis.ticks] == pytest.approx([33.0, 333.0])


def test_elapsed_labels_carry_over():
    """A value that rounding puts just below a minute is not labelled as 60 seconds."""
    axis = elapsed_axis(60.3, 200)
    assert "1:00.0" in labels(axis)
    assert not any(label.endswith(":60.0") for label in labels(axis))


def test_utc_ticks_stand_on_round_times():
    """UTC ticks are at round wall-clock times, independent of the start."""
    axis = clock_axis(EVENING_NS, 60.0, 6)
    assert axis.title == "UTC, 2026-11-20"
    assert labels(axis)[:2] == ["21:47:10", "21:47:20"]
    assert axis.ticks[0].value == pytest.approx(7.0)


def test_utc_fractions_are_exact():
    """Fractions of a second are exact despite 1.8e18 ns since 1970."""
    axis = clock_axis(EVENING_NS + 1, 0.01, 5)
    assert labels(axis) == ["21:47:03.002", "21:47:03.004", "21:47:03.006", "21:47:03.008",
                            "21:47:03.010"]  # fmt: skip
    assert axis.ticks[0].value == pytest.approx(0.002, abs=2e-9)


def test_midnight_names_the_day():
    """A recording across midnight shows the date there, and both dates in the title."""
    axis = clock_axis(EVENING_NS, 4.0 * 3600.0, 4)
    assert labels(axis) == ["22:00", "23:00", "Nov 21", "01:00"]
    assert axis.title == "UTC, 2026-11-20 to 2026-11-21"


def test_long_recordings_have_dates():
    """Labels of a recording of weeks are dates at midnight."""
    axis = clock_axis(EVENING_NS, 20.0 * 86400.0, 5)
    assert labels(axis)[0].startswith("2026-11-2")
    assert all((EVENING_NS + round(t.value * 1e9)) % DAY_NS < 1000 for t in axis.ticks)


def utc_ns(*date):
    return round(datetime(*date, tzinfo=UTC).timestamp()) * 10**9


def walls(axis, begin_ns, zone):
    """Return the local time of each tick."""
    since = [timedelta(microseconds=begin_ns // 1000 + round(t.value * 1e6)) for t in axis.ticks]
    return [(datetime(1970, 1, 1, tzinfo=UTC) + one).astimezone(zone) for one in since]


@pytest.mark.parametrize(
    ("date", "hours", "offsets"),
    [
        ((2026, 3, 28, 23), 23, "UTC+01:00, UTC+02:00"),
        ((2026, 10, 24, 22), 25, "UTC+02:00, UTC+01:00"),
        ((2026, 6, 30, 22), 24, "UTC+02:00"),
    ],
)
@pytest.mark.parametrize("step_min", [15, 60, 180, 720])
def test_days_of_23_and_25_hours(date, hours, offsets, step_min):
    """Ticks of Berlin's days are at all round local times of the day, by the zone's own rules."""
    zone, begin_ns = ZoneInfo("Europe/Berlin"), utc_ns(*date)
    axis = clock_axis(begin_ns, hours * 3600.0, -(-hours * 60 // step_min), zone)
    day = f"{walls(axis, begin_ns, zone)[0]:%Y-%m-%d}"
    every_minute = [
        (datetime.fromtimestamp(begin_ns // 10**9 + 60 * k, UTC)).astimezone(zone)
        for k in range(hours * 60 + 1)
    ]
    expected, seen = [], set()
    for moment in every_minute:
        wall = moment.replace(tzinfo=None, fold=0)
        is_round = (wall.hour * 60 + wall.minute) % step_min == 0
        # Of the hour that comes twice, steps longer than an hour have the first only.
        if is_round and not (step_min > 60 and wall in seen):
            expected.append(moment)
            seen.add(wall)
    found = walls(axis, begin_ns, zone)
    assert [one.isoformat() for one in found] == [one.isoformat() for one in expected]
    assert (found[0].hour, found[-1].hour, (found[-1] - found[0]).days) == (0, 0, 1)
    names = [f"{one:%b %d}" if one.hour == one.minute == 0 else f"{one:%H:%M}" for one in expected]
    assert labels(axis) == names
    assert axis.title.startswith(f"Europe/Berlin ({offsets}), {day} to ")


@pytest.mark.parametrize(
    ("zone", "first"), [("Asia/Kathmandu", 900.0), ("America/St_Johns", 1800.0)]
)
def test_zones_of_quarter_hours(zone, first):
    """Hours begin where those of the zone do."""
    axis = clock_axis(utc_ns(2026, 5, 1, 6), 5 * 3600.0, 5, ZoneInfo(zone))
    assert axis.ticks[0].value == first
    assert {tick.label[-3:] for tick in axis.ticks} == {":00"}


def test_a_date_without_midnight_is_named():
    """Where the clock is put forward at midnight, the first tick of the date names it."""
    axis = clock_axis(utc_ns(2026, 9, 6, 2), 4 * 3600.0, 4, ZoneInfo("America/Santiago"))
    assert labels(axis) == ["22:00", "23:00", "Sep 06", "02:00", "03:00"]


def test_dates_begin_at_local_midnights():
    """Days of a year are ticks at the midnights of the zone, whose both offsets are named."""
    zone, begin_ns = ZoneInfo("Europe/Berlin"), utc_ns(2025, 12, 31, 23)
    axis = clock_axis(begin_ns, 365 * 86400.0, 20, zone)
    found = walls(axis, begin_ns, zone)
    assert {(one.hour, one.minute) for one in found} == {(0, 0)}
    assert {one.utcoffset() for one in found} == {timedelta(hours=1), timedelta(hours=2)}
    assert labels(axis) == [f"{one:%Y-%m-%d}" for one in found]
    assert axis.title == "Europe/Berlin (UTC+01:00, UTC+02:00), 2026-01-01 to 2027-01-01"


def test_fractions_of_seconds_are_those_of_utc():
    """A zone moves the hours of short recordings, not their ticks."""
    local = clock_axis(EVENING_NS + 1, 0.01, 5, ZoneInfo("Asia/Kathmandu"))
    assert [one.value for one in local.ticks] == [
        one.value for one in clock_axis(EVENING_NS + 1, 0.01, 5).ticks
    ]
    assert labels(local)[0] == "03:32:03.002"
    assert local.title == "Asia/Kathmandu (UTC+05:45), 2026-11-21"
