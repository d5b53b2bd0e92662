"""Parsing of times and frequencies."""

import pytest

from spectrod.lib.durations import parse_frequency, parse_time


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90.0),
        ("12.5", 12.5),
        (".5", 0.5),
        ("1e8", 1e8),
        ("0.1", 0.1),
        ("90s", 90.0),
        ("0.5 s", 0.5),
        ("500ms", 0.5),
        ("250µs", 0.00025),
        ("1m", 60.0),
        ("10min", 600.0),
        ("1.5h", 5400.0),
        ("1d", 86400.0),
        ("1h30m", 5400.0),
        ("1h 30min 5s", 5405.0),
        ("00:01:00", 60.0),
        ("1:02:03", 3723.0),
        ("1:02:03.5", 3723.5),
        ("90:00", 5400.0),
        ("26:00:00", 93600.0),
        ("-12.5", -12.5),
        ("-1:30", -90.0),
        ("+2m", 120.0),
        (" 3 s ", 3.0),
    ],
)
def test_times(text, seconds):
    """A time is a number with or without units, or a clock reading, converted exactly."""
    assert parse_time(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["", "-", "s", "1 week", "1h30", "1:2", "1:60", "1:60:00", "1:02:03:04", "1:02h", "nan", "inf",
     "1e999", "1,5", "0x10", "--1", "1 h -5 s", "4kHz", "1" * 101, "2026-05-01", "1_000"],
)  # fmt: skip
def test_bad_times(text):
    """A text that is not a time is refused and not guessed at."""
    assert parse_time(text) is None


def test_times_in_another_unit():
    """A plain number has the requested unit, as does the result."""
    assert parse_time("10", "ms") == parse_time("10ms", "ms") == parse_time("0.01s", "ms") == 10.0
    assert parse_time("20.1ms", "ms") == 20.1


@pytest.mark.parametrize(
    ("text", "hertz"),
    [
        ("4000", 4000.0),
        ("4k", 4000.0),
        ("4K", 4000.0),
        ("4kHz", 4000.0),
        ("4 khz", 4000.0),
        ("44.1k", 44100.0),
        ("0.5MHz", 500_000.0),
        ("2.4M", 2_400_000.0),
        ("1.42GHz", 1.42e9),
        ("50 Hz", 50.0),
        ("-100k", -100_000.0),
        ("1/60", 1 / 60),
        ("1 / 8 Hz", 0.125),
        ("1e3", 1000.0),
    ],
)
def test_frequencies(text, hertz):
    """A frequency is a number or ratio with or without k, M or G and Hz, converted exactly."""
    assert parse_frequency(text) == hertz


@pytest.mark.parametrize(
    "text",
    ["", "k", "Hz", "4 k 5", "4k5", "4kk", "16mHz", "16m", "4s", "1/0", "1/60/60", "nan", "1e999",
     "4 000", "4k4k", "9" * 101],
)  # fmt: skip
def test_bad_frequencies(text):
    """A text that is not a frequency is refused, m included, which would mean milli."""
    assert parse_frequency(text) is None
