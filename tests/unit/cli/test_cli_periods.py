"""Files of periods of local time: their bounds, names and lengths, also where clocks change."""

import datetime as dt
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest
import soundfile

from spectrod.cli import main
from spectrod.cli.periods import Period
from spectrod.lib.errors import ConfigError

NS = 10**9
HOUR_NS = 3600 * NS
DAY_NS = 24 * HOUR_NS
BERLIN = ZoneInfo("Europe/Berlin")
FS = 16


def utc_ns(*date):
    return round(dt.datetime(*date, tzinfo=dt.UTC).timestamp()) * NS


@pytest.mark.parametrize(
    ("at", "begin", "hours"),
    [
        ((2026, 3, 29, 12), (2026, 3, 28, 23), 23),
        ((2026, 3, 29, 21, 59, 59), (2026, 3, 28, 23), 23),
        ((2026, 3, 29, 22), (2026, 3, 29, 22), 24),
        ((2026, 10, 24, 22), (2026, 10, 24, 22), 25),
        ((2026, 10, 25, 22, 59, 59), (2026, 10, 24, 22), 25),
    ],
)
def test_local_days(at, begin, hours):
    """A day lasts from midnight to midnight, and has the name of its date."""
    period, begin_ns = Period(DAY_NS, BERLIN), utc_ns(*begin)
    assert period.around(utc_ns(*at)) == (begin_ns, begin_ns + hours * HOUR_NS)
    date = f"{dt.datetime(*begin, tzinfo=dt.UTC).astimezone(BERLIN):%Y%m%d}"
    assert period.path("a/%Y%m%d.png", begin_ns) == Path(f"a/{date}.png")


@pytest.mark.parametrize("length_ns", [NS, 7 * 60 * NS, HOUR_NS, DAY_NS, 7 * DAY_NS])
def test_periods_of_utc(length_ns):
    """They are of one length, whatever that is, and count from 1970, also before it."""
    period = Period(length_ns)
    for number in (-1, 0, 1_000_003):
        bounds = number * length_ns, (number + 1) * length_ns
        assert period.around(bounds[0]) == period.around(bounds[1] - 1) == bounds


@pytest.mark.parametrize("length_ns", [NS + 1, 7 * 60 * NS, 7 * DAY_NS])
def test_local_periods_divide_a_day(length_ns):
    """Others would not begin at midnights."""
    with pytest.raises(ConfigError, match="must divide a day into whole seconds with --time-zone"):
        Period(length_ns, BERLIN)


@pytest.mark.parametrize(
    ("length_ns", "pattern", "rule"),
    [
        (DAY_NS, "%m%d.png", "names must differ for different times with --every"),
        (HOUR_NS, "%Y%m%d.png", "names must differ for different times with --every"),
        (HOUR_NS, "%Y%m%d%H.png", r"names must have the offset from UTC .*: an hour comes twice"),
    ],
)
def test_names_that_would_replace_files(length_ns, pattern, rule):
    """Names differ a year later, and in the hour that comes twice."""
    with pytest.raises(ConfigError, match=rf"^{pattern}: {rule}"):
        Period(length_ns, BERLIN).check_names(pattern)


@pytest.mark.parametrize(
    ("length_ns", "pattern"), [(DAY_NS, "%Y%m%d.png"), (HOUR_NS, "%Y%m%d%H%z.png")]
)
def test_names_that_tell_all_periods_apart(length_ns, pattern):
    """Days need no offset, hours have one."""
    Period(length_ns, BERLIN).check_names(pattern)


@pytest.fixture
def _recorded(monkeypatch, tmp_path):
    """Six hours of Berlin's night in which an hour comes twice, by the name of the file."""
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(2).uniform(-0.5, 0.5, 6 * 3600 * FS)
    soundfile.write("20261024T233000+0200.wav", x, FS, subtype="PCM_16")


EVERY = ["record", "20261024T233000+0200.wav", "-o", "out"]
ZONE = ["--time-zone", "Europe/Berlin"]


@pytest.mark.usefixtures("_recorded")
def test_a_file_an_hour():
    """No sample is lost or in two files, and names have the offset."""
    assert main([*EVERY, "--every", "1h", "--name", "%Y%m%dT%H%M%S%z.wav", *ZONE]) == 0
    names = [
        *("20261024T230000+0200", "20261025T000000+0200", "20261025T010000+0200"),
        *("20261025T020000+0200", "20261025T020000+0100", "20261025T030000+0100"),
        "20261025T040000+0100",
    ]
    found = [soundfile.read(f"out/{name}.wav")[0] for name in names]
    assert {one.stem for one in Path("out").iterdir()} == set(names)
    hours = [len(one) / FS / 3600 for one in found]
    assert hours == [0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5]
    whole, _ = soundfile.read("20261024T233000+0200.wav")
    np.testing.assert_array_equal(np.concatenate(found), whole)


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["--every", "7min", "--name", "%Y%z.wav", *ZONE], "--every 7min: must divide a day into"),
        (["--every", "1h", "--name", "%Y%m%d%H.wav", *ZONE], "names must have the offset from UTC"),
        (["--every", "1h", "--name", "%Y%z.wav", "--time-zone", "Mars"], "time_zone='Mars': there"),
        (["-o", "a.wav", *ZONE], "--time-zone Europe/Berlin: is for .png .jpg"),
    ],
)
@pytest.mark.usefixtures("_recorded")
def test_wrong_periods(arguments, rule, capsys):
    """Each is one line of error, before anything is written."""
    command = EVERY if "--every" in arguments else EVERY[:2]
    assert main([*command, *arguments]) == 2
    error = capsys.readouterr().err
    assert rule in error
    assert error.count("\n") == 1
    assert [one.name for one in Path().iterdir()] == ["20261024T233000+0200.wav"]
