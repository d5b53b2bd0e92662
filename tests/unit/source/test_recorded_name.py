"""Start times in names of files, in the forms of each recorder and in the operator's own."""

import datetime as dt
import re
import time

import numpy as np
import pytest
import soundfile

from spectrod.apps.batch.job import Deployment
from spectrod.apps.batch.scan import scan
from spectrod.cli import main
from spectrod.config.config import SourceConfig
from spectrod.lib.errors import ConfigError
from spectrod.lib.time_format import FORMAT_CHARS_MAX, TimeFormat, check_time_format
from spectrod.source.files.recorded_name import time_in_name
from spectrod.source.open_source import open_source

FS = 8000
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

ZONED = [
    # Wildlife Acoustics, Vesper, BirdNET: UTC after a separator, and fields behind it
    ("Queens_20230502_010000_Z.wav", "2023-05-02T01:00:00"),
    ("Queens_20230502_010000Z_CH01.wav", "2023-05-02T01:00:00"),
    ("Queens_20230502_010000-Z.flac", "2023-05-02T01:00:00"),
    ("2023-05-02_01-00-00_UTC_ch1.wav", "2023-05-02T01:00:00"),
    ("2023-05-02_01-00-00 GMT.wav", "2023-05-02T01:00:00"),
    ("UTC_20230502_010000.wav", "2023-05-02T01:00:00"),
    ("20230502t010000z.wav", "2023-05-02T01:00:00"),
    # Orcasound: offsets of hours
    ("20170613T160000+00.flac", "2017-06-13T16:00:00"),
    ("20170613-160000+00.wav", "2017-06-13T16:00:00"),
    ("2017-06-13T16-00-00+00.wav", "2017-06-13T16:00:00"),
    ("2017-06-13_16-00-00+02.wav", "2017-06-13T14:00:00"),
    ("20170613T160000-07.wav", "2017-06-13T23:00:00"),
    # Frontier Labs, Swift: offsets of hours and minutes, start and end, positions behind
    ("20260501T143000+1000_REC.flac", "2026-05-01T04:30:00"),
    ("20190102T030405+1000_REC [-18.1883+144.5414].flac", "2019-01-01T17:04:05"),
    ("20210617T080000+0000_Rec2_-18.2656+144.5564.flac", "2021-06-17T08:00:00"),
    ("S20210205T035946+1000_E20210205T040446+1000_-08.0+000.0.wav", "2021-02-04T17:59:46"),
    ("S20210205T035946676+1000_E20210205T040446501+1000.wav", "2021-02-04T17:59:46.676000"),
    ("SWIFT_20240301_120000_+0200.wav", "2024-03-01T10:00:00"),
    ("SWIFT_20240301_120000_-0500.wav", "2024-03-01T17:00:00"),
    ("20240301_120000+0545.wav", "2024-03-01T06:15:00"),
    ("20240301T120000-0930.wav", "2024-03-01T21:30:00"),
    ("2024-03-01 12-00-00-03:30.wav", "2024-03-01T15:30:00"),
    ("2024-03-01_12-00-00_UTC+2.wav", "2024-03-01T10:00:00"),
    ("2024-03-01_12-00-00UTC-3.wav", "2024-03-01T15:00:00"),
    ("2024-03-01_12-00-00_(UTC-3:30).wav", "2024-03-01T15:30:00"),
    # SDR programs, hydrophones, cameras
    ("SDRSharp_20210712_173407Z_145000000Hz_IQ.wav", "2021-07-12T17:34:07"),
    ("ICLISTENHF1251_20140101T000000.250Z.wav", "2014-01-01T00:00:00.250000"),
    ("2026-05-01T04_30_00.000Z.mp3", "2026-05-01T04:30:00"),
    ("2024-07-22_11-22-04-123456-+0700.wav", "2024-07-22T04:22:04.123456"),
    ("2026-05-01T04-30-00,5Z.wav", "2026-05-01T04:30:00.500000"),
]
LOCAL = [
    ("2024-03-19-birdnet-09:48:17.wav", "2024-03-19T09:48:17"),
    ("2024-03-19-birdnet-RTSP_1-09:48:17.wav", "2024-03-19T09:48:17"),
    ("Soprano_pipistrelle-96-2024-07-31-birdnet-04_57_21.wav", "2024-07-31T04:57:21"),
    ("2024-03-19 garden 2 09:48:17.wav", "2024-03-19T09:48:17"),
    ("SITE_0+1_20260501_043000.wav", "2026-05-01T04:30:00"),
    ("20260501_043000_0+1.wav", "2026-05-01T04:30:00"),
    ("SM304_20260501$043000.wav", "2026-05-01T04:30:00"),
    ("D20180531-T214524.wav", "2018-05-31T21:45:24"),
    ("SOCAL31H_DL14_050922_235500.x.wav", "2005-09-22T23:55:00"),
    ("SOCAL_d01_050922_235500.d100.x.wav", "2005-09-22T23:55:00"),
    ("2026-05-01 at 04.30.00.wav", "2026-05-01T04:30:00"),
    ("2026-05-01 04.30.00 PM.wav", "2026-05-01T16:30:00"),
    ("2026-05-01 12.30.00 am.wav", "2026-05-01T00:30:00"),
    ("20260501_043000_050000.wav", "2026-05-01T04:30:00"),
    ("20260501_043000_TEST.wav", "2026-05-01T04:30:00"),
    ("20190102T030405-18.1883+144.5414.wav", "2019-01-02T03:04:05"),
    ("20190102T030405+18.1883+144.5414.wav", "2019-01-02T03:04:05"),
    ("20260501_043000-0001.wav", "2026-05-01T04:30:00"),
    ("20260501_043000-3.wav", "2026-05-01T04:30:00"),
]
AMBIGUOUS = [
    ("20260501_043000-0300.wav", "'-0300' in its name may be an offset from UTC or a number"),
    ("2017-06-13_16-00-00-07.wav", "'-07' in its name may be an offset from UTC or a number"),
    ("20260501_043000-0930.wav", "'-0930' in its name may be an offset from UTC or a number"),
    ("20260501T043000+2500.wav", "'+2500' in its name may be an offset from UTC or a number"),
    ("20260501_043000+1.wav", "'+1' in its name may be an offset from UTC or a number"),
    ("20260501_043000_EST.wav", "'EST' in its name is no offset from UTC"),
    ("20260501_043000CEST.wav", "'CEST' in its name is no offset from UTC"),
    ("UTC+1_20260501_043000_x_UTC+2.wav", "its name has more than one time zone"),
    ("ST_20260501_043000_20260501_050000.wav", "its name has more than one time"),
    ("2026-05-01_2026-05-02_a_04:30:00.wav", "its name has more than one time"),
    ("5146.260501043000_5146.260501053000.wav", "its name has more than one time"),
    ("WISPR_230504_195202.wav", "'230504_195202' in its name may begin with the year or the day"),
    (
        "sg639_230411-221029.038.wav",
        "'230411-221029' in its name may begin with the year or the day",
    ),
    (
        "band_17-34-07_12-07-2021.wav",
        "'12-07-2021' in its name may begin with the day or the month",
    ),
]


def utc_of(ns):
    """Return UTC to the microsecond."""
    if ns is None:
        return None
    return (EPOCH + dt.timedelta(microseconds=ns // 1000)).isoformat().removesuffix("+00:00")


def put(path):
    soundfile.write(path, np.zeros(80), FS, subtype="PCM_16", format="WAV")
    return path


def scanned(folder, **keys):
    """Return the files and the findings of a deployment."""
    return scan(Deployment(name="site", inputs=(str(folder),), **keys))


@pytest.mark.parametrize(("name", "utc"), [*ZONED, *LOCAL])
def test_forms_of_recorders(tmp_path, name, utc):
    """A form of a name gives the same time alone, in a folder and in an archive."""
    found = time_in_name(name)
    assert (utc_of(found.found.utc_ns), found.why) == (utc, "")
    assert found.found.has_zone == ((name, utc) in ZONED)
    path = put(tmp_path / name)
    for uri in (str(path), str(tmp_path)):
        assert utc_of(open_source(SourceConfig(uri=uri), "full").start_utc_ns) == utc
    (file,), findings = scanned(tmp_path)
    assert (utc_of(file.recorded.utc_ns), findings) == (utc, [])


@pytest.mark.parametrize("name", [name for name, _ in ZONED])
def test_a_zone_in_a_name_has_precedence(tmp_path, name):
    """A deployment's time zone does not shift a time that names its zone itself."""
    put(tmp_path / name)
    (file,), _ = scanned(tmp_path, time_zone="America/New_York")
    assert utc_of(file.recorded.utc_ns) == dict(ZONED)[name]


@pytest.mark.parametrize(("name", "why"), AMBIGUOUS)
def test_ambiguous_names_give_no_time_and_say_why(tmp_path, caplog, name, why):
    """A name of two readings gives no time, and one line says which part it is."""
    assert time_in_name(name).found is None
    path = put(tmp_path / name)
    assert open_source(SourceConfig(uri=str(path)), "full").start_utc_ns is None
    (line,) = caplog.messages
    assert line == f"{path}: has no start time: {why} (time_format tells)"
    caplog.clear()
    assert open_source(SourceConfig(uri=str(tmp_path)), "full").start_utc_ns is None
    (line,) = caplog.messages
    assert line.endswith(f"without gaps between them; {why} (time_format tells)")
    files, (finding,) = scanned(tmp_path)
    assert not files
    place = f"{path}: its header or name states no start time"
    assert finding.text == f"{place}: {why} (time_format tells)"


def test_an_ambiguous_file_among_others_is_left_out_with_the_reason(tmp_path):
    """A folder leaves an ambiguous file out, as one without a time, and says why."""
    put(tmp_path / "20260501_040000.wav")
    put(tmp_path / "20260501_043000-0300.wav")
    source = open_source(SourceConfig(uri=str(tmp_path)), "full")
    (line,) = source.left_out.lines
    assert "has no start time, but other files have one: '-0300' in its name may be" in line


# ---- formats of the operator

FORMATS = [
    ("%y%m%d-%H%M%S.%f", "sg639_MHI_Apr2023_230411-221029.038.wav", "2023-04-11T22:10:29.038000"),
    ("%y%m%d_%H%M%S", "WISPR_230504_195202.wav", "2023-05-04T19:52:02"),
    ("%d%m%y_%H%M", "site_040523_1952.wav", "2023-05-04T19:52:00"),
    ("%Y%m%d_%H", "20230504_19.wav", "2023-05-04T19:00:00"),
    ("%H-%M-%S_%d-%m-%Y", "band_17-34-07_12-07-2021.wav", "2021-07-12T17:34:07"),
    ("%d-%b-%Y %H%M%S.%f", "12-Jul-2021 173407.123 7.1MHz.wav", "2021-07-12T17:34:07.123000"),
    ("%d %B %Y, %I.%M %p", "4 1 12 July 2021, 12.05 PM.wav", "2021-07-12T12:05:00"),
    ("%Y%j_%H%M%S", "DSG_2024061_000000.wav", "2024-03-01T00:00:00"),
    ("%Y%m%d_%H%M%S%z", "S_20240301_120000-0500.wav", "2024-03-01T17:00:00"),
    ("%Y%m%d_%H%M%S_EST", "S_20240301_120000_EST.wav", "2024-03-01T12:00:00"),
    ("%Y-%m-%d*%H_%M_%S", "2024-03-01 mic 2 12_00_00.wav", "2024-03-01T12:00:00"),
    ("live%s", "live1530000000.wav", "2018-06-26T08:00:00"),
    ("100%%_%Y%m%d%H%M", "100%_202403011200.wav", "2024-03-01T12:00:00"),
    ("%y%m%d%H%M%S", "710501043000.wav", "1971-05-01T04:30:00"),
]


@pytest.mark.parametrize(("time_format", "name", "utc"), FORMATS)
def test_formats_of_the_operator(tmp_path, time_format, name, utc):
    """A format finds the time anywhere in a name: alone, in a folder and in an archive."""
    path = put(tmp_path / name)
    for uri in (str(path), str(tmp_path)):
        source = open_source(SourceConfig(uri=uri, time_format=time_format), "full")
        assert utc_of(source.start_utc_ns) == utc
    (file,), findings = scanned(tmp_path, time_format=time_format)
    assert (utc_of(file.recorded.utc_ns), findings) == (utc, [])


@pytest.mark.parametrize(
    ("time_format", "name", "why"),
    [
        ("%y%m%d_%H%M%S", "1230504_195202.wav", "'%y%m%d_%H%M%S' is not in its name"),
        ("%y%m%d_%H%M%S", "230504_1952021.wav", "'%y%m%d_%H%M%S' is not in its name"),
        ("%y%m%d_%H%M", "231304_1952.wav", "finds a time in its name that does not exist"),
        ("%Y%j_%H", "2023366_00.wav", "finds a time in its name that does not exist"),
        ("%Y%j_%H", "2023000_00.wav", "finds a time in its name that does not exist"),
        ("%Y%m%d_%I%p", "20230504_13pm.wav", "finds a time in its name that does not exist"),
        ("%Y%m%d_%H%z", "20230504_13+9900.wav", ""),
        ("%y%m%d_%H", "230504_19_230504_20.wav", "is in its name with more than one time"),
    ],
)
def test_a_name_without_the_format_has_no_time(tmp_path, caplog, time_format, name, why):
    """A name that the format does not fit, or fits twice, gives no time and says so."""
    path = put(tmp_path / name)
    source = open_source(SourceConfig(uri=str(path), time_format=time_format), "full")
    if why:
        assert source.start_utc_ns is None
        assert [why in line for line in caplog.messages] == [True]
    else:
        assert utc_of(source.start_utc_ns) == "2023-04-30T10:00:00"


def test_the_same_time_twice_is_one_time(tmp_path):
    """A format that fits twice with one time gives that time."""
    path = put(tmp_path / "230504_19_230504_19.wav")
    source = open_source(SourceConfig(uri=str(path), time_format="%y%m%d_%H"), "full")
    assert utc_of(source.start_utc_ns) == "2023-05-04T19:00:00"


def test_a_format_has_precedence_over_headers(tmp_path):
    """With a format the name alone counts, in spite of a comment with a zone."""
    path = tmp_path / "230504_195202.wav"
    with soundfile.SoundFile(path, "w", FS, 1, "PCM_16") as file:
        file.comment = "Recorded at 04:30:00 01/05/2026 (UTC) by AudioMoth"
        file.write(np.zeros(80))
    settings = SourceConfig(uri=str(path), time_format="%y%m%d_%H%M%S")
    assert utc_of(open_source(settings, "full").start_utc_ns) == "2023-05-04T19:52:02"
    (file,), _ = scanned(tmp_path, time_format="%y%m%d_%H%M%S")
    assert utc_of(file.recorded.utc_ns) == "2023-05-04T19:52:02"


@pytest.mark.parametrize(
    ("time_format", "rule"),
    [
        ("%Q", "%Q is no field; known: %Y %y %m %d %j %b %B %H %I %p %M %S %f %s %z %%"),
        ("%Y%m%d%H%", "% is no field"),
        ("%Y%m%d", "must have one hour: %H or %I"),
        ("%m%d%H", "must have one year: %Y or %y"),
        ("%Y%y%m%d%H", "must have one year: %Y or %y"),
        ("%Y%d%H", "must have one month: %m or %b or %B"),
        ("%Y%m%H", "must have one day: %d"),
        ("%Y%j%d%H", "must have %j, or a month and a day"),
        ("%Y%m%d%I", "must have %p with %I, and with it alone"),
        ("%Y%m%d%H%p", "must have %p with %I, and with it alone"),
        ("%Y%m%d%H%S", "must have %M with %S"),
        ("%Y%m%d%H%M.%f", "must have %S with %f"),
        ("%Y%m%d%H%H", "must have %H once"),
        ("%s%Y", "must have nothing but %f beside %s"),
        ("*%Y*%m%d%H", "must have at most one *"),
        ("no fields", "must have one year: %Y or %y"),
        ("%Y%m%d%H" + "x" * FORMAT_CHARS_MAX, f"must have at most {FORMAT_CHARS_MAX} characters"),
    ],
)
def test_formats_that_make_no_time_are_refused(tmp_path, capsys, time_format, rule):
    """A format with unknown, repeated or missing fields is refused with the rule, exit code 2."""
    with pytest.raises(ConfigError, match="^" + re.escape(f"time_format={time_format!r}: {rule}")):
        check_time_format(time_format)
    path = put(tmp_path / "a.wav")
    command = ["record", str(path), "-o", str(tmp_path / "a.png"), "--time-format", time_format]
    assert main(command) == 2
    assert rule in capsys.readouterr().err
    assert not (tmp_path / "a.png").exists()


def test_a_job_refuses_a_wrong_format_by_line(tmp_path, capsys):
    """A job names the line of a format that makes no time, and of one that headers exclude."""
    job = tmp_path / "JOB.toml"
    job.write_text(
        '[job]\nname = "a"\noutput = "out"\n\n[deployments.a]\ninputs = ["."]\n'
        'time_format = "%Y"\n\n[deployments.b]\ninputs = ["."]\ntime = "header"\n'
        'time_format = "%Y%m%d%H"\n'
    )
    assert main(["batch", "plan", str(job)]) == 2
    error = capsys.readouterr().err
    assert f"{job}:7:" in error
    assert "time_format='%Y': must have one month" in error
    assert f"{job}:12:" in error
    assert "time_format='%Y%m%d%H': is for names, and time='header'" in error


@pytest.mark.parametrize(
    "name",
    [
        "20260501" * 2000,
        "20260501 " * 400,
        "".join(f"2026-05-{k % 28 + 1:02d}x" for k in range(190))
        + "".join(f"x04:{k % 60:02d}:{k // 60:02d}x" for k in range(200)),
        "20260501T043000_" * 250,
        "1-" * 2000,
    ],
)
def test_long_names_cost_little(name):
    """The longest names of stores, full of dates and times, take milliseconds of the processor."""
    time_format = TimeFormat("%Y%m%d*%H:%M:%S")
    begin_s = time.process_time()
    for _ in range(10):
        assert time_format.times(name) == set()
        time_in_name(name)
    assert (time.process_time() - begin_s) / 10 < 0.2
