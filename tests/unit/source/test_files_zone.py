"""Start times in names that are local times: of folders, single files and raw samples."""

import datetime as dt
import logging
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest
import soundfile

from spectrod.cli import main
from spectrod.config.settings import SourceConfig
from spectrod.source.open_source import open_source

FS = 100
MINUTES = 10
N = 60 * MINUTES * FS
BERLIN = ZoneInfo("Europe/Berlin")
NS = 10**9
AUTUMN = dt.datetime(2026, 10, 24, 23, tzinfo=dt.UTC)  # an hour before the hour that comes twice
SPRING = dt.datetime(2026, 3, 29, 0, tzinfo=dt.UTC)  # an hour before the hour that is left out


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def put(path, seed=0, n=N):
    Path(path).parent.mkdir(exist_ok=True)
    x = np.random.default_rng(seed).integers(-9000, 9000, n, np.int16)
    soundfile.write(path, x, FS, subtype="PCM_16")
    return x


def night(begin, step_min=MINUTES, hours=4):
    """Write files that begin every few minutes, named by their number and Berlin's time."""
    for k in range(hours * 60 // step_min):
        local = (begin + dt.timedelta(minutes=k * step_min)).astimezone(BERLIN)
        put(f"card/{k:02}_{local:%Y%m%d_%H%M%S}.wav", k)


def opened(uri, zone="Europe/Berlin", pace="full"):
    return open_source(SourceConfig(uri=uri, files_zone=zone), pace)


def utc_ns(moment):
    return round(moment.timestamp()) * NS


@pytest.mark.parametrize("begin", [AUTUMN, SPRING, dt.datetime(2026, 7, 1, tzinfo=dt.UTC)])
def test_a_night_is_one_stream(begin, caplog):
    """Files that follow each other have no gaps, whatever the clock on the wall does."""
    night(begin)
    source = opened("card")
    assert source.start_utc_ns == utc_ns(begin)
    assert [one.first for one in source.files] == [k * N for k in range(24)]
    assert [Path(one.path).name[:2] for one in source.files] == [f"{k:02}" for k in range(24)]
    assert not source.left_out.lines
    told = "of 12 files then, 6 are taken for the first time, 6 for the second"
    assert [told in one.message for one in caplog.records] == [True] * (begin is AUTUMN)


@pytest.mark.parametrize("begin", [AUTUMN, SPRING])
def test_a_recorder_that_sleeps_keeps_its_pace(begin):
    """Each half hour has a file, the repeated ones too."""
    night(begin, step_min=30)
    source = opened("card")
    assert [one.first for one in source.files] == [k * 3 * N for k in range(8)]


def test_without_a_zone_times_are_utc():
    """An hour lies upon the one before it, and its files are left out."""
    night(AUTUMN)
    source = opened("card", zone="")
    assert source.start_utc_ns == utc_ns(AUTUMN) + 2 * 3600 * NS
    assert len(source.files) == 18


@pytest.mark.parametrize("pace", ["full", "realtime"])
@pytest.mark.parametrize("name", ["a_20260701_060000.wav", "a_20260701_060000.flac"])
def test_single_files(name, pace):
    """A file without a zone is in that of the setting, one with a zone in its own."""
    put(name)
    assert opened(name, pace=pace).start_utc_ns == utc_ns(dt.datetime(2026, 7, 1, 4, tzinfo=dt.UTC))
    for zone, hour in (("Z", 6), ("+0300", 3)):
        stated = name.replace(".", f"{zone}.")
        Path(name).rename(stated)
        expected = dt.datetime(2026, 7, 1, hour, tzinfo=dt.UTC)
        assert opened(stated, pace=pace).start_utc_ns == utc_ns(expected)
        Path(stated).rename(name)


def test_raw_samples():
    """A name is all that says when they begin."""
    Path("20260701_060000.raw").write_bytes(bytes(2 * N))
    settings = SourceConfig(
        uri="pcm:20260701_060000.raw", samplerate=FS, channels=1, files_zone="Europe/Berlin"
    )
    expected = dt.datetime(2026, 7, 1, 4, tzinfo=dt.UTC)
    assert open_source(settings, "full").start_utc_ns == utc_ns(expected)


@pytest.mark.parametrize(
    ("clock", "utc_hour", "warning"),
    [
        ("20261025_023000", 0, "Europe/Berlin that comes twice: the first is taken"),
        ("20260329_023000", 1, "Europe/Berlin that is left out there"),
    ],
)
def test_a_single_file_in_the_hour_of_a_change(clock, utc_hour, warning, caplog):
    """What cannot be known is said."""
    put(f"{clock}.wav")
    day = dt.datetime.strptime(f"{clock[:8]}+0000", "%Y%m%d%z")
    expected = day + dt.timedelta(hours=utc_hour, minutes=30)
    with caplog.at_level(logging.WARNING):
        assert opened(f"{clock}.wav").start_utc_ns == utc_ns(expected)
    assert [warning in one.message for one in caplog.records] == [True]


def test_copies_in_the_hour_that_comes_twice_are_no_second_pass():
    """A file that is there twice is read once."""
    night(AUTUMN)
    for path in sorted(Path("card").iterdir())[8:10]:
        path.with_name(f"copy_{path.name}").write_bytes(path.read_bytes())
    source = opened("card")
    assert [one.first for one in source.files] == [k * N for k in range(24)]
    assert len(source.left_out.lines) == 2


def test_the_command_takes_local_names(capsys):
    """Hours of the table are those on the wall, with both offsets."""
    night(AUTUMN)
    zones = ["--files-zone", "Europe/Berlin", "--time-zone", "Europe/Berlin", "--align", "local"]
    assert main(["levels", "card", "--quantity", "LZeq", "--interval", "1h", *zones]) == 0
    lines = capsys.readouterr().out.splitlines()[2:6]
    assert [line.split()[:2] for line in lines] == [
        ["2026-10-25T01:00:00.00+02:00", "3600"],
        ["2026-10-25T02:00:00.00+02:00", "3600"],
        ["2026-10-25T02:00:00.00+01:00", "3600"],
        ["2026-10-25T03:00:00.00+01:00", "3600"],
    ]


def test_unknown_zones_are_refused(capsys):
    """The error names the setting."""
    put("a.wav")
    assert main(["levels", "a.wav", "--files-zone", "Mars"]) == 2
    error = capsys.readouterr().err
    assert "files_zone='Mars': there is no such time zone on this machine" in error
    assert error.count("\n") == 1
