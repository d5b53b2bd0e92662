"""The text output of ``spectrod ctl``."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest

import spectrod
from spectrod.apps.ctl import ctl_text
from spectrod.apps.ctl.ctl_replay import _header_text, frame_text
from spectrod.lib.errors import WireError
from spectrod.lib.stats import CaptureStats, Stats
from spectrod.wire.schema import BandFrame, BandsHeader, Frame, SpectrumHeader

DAEMON = {
    "version": spectrod.__version__,
    "pid": 77,
    "uptime_s": 93784.5,
    "publish": ["tcp://127.0.0.1:5556"],
    "engines": ["opencl:PoCL"],
    "subscribers": 1,
    "security": {"no_key": 0, "unknown_key": 3},
    "connections": {
        "tcp": {"count": 90, "max": 96, "is_closed": True, "closings": 2},
        "ipc": {"count": 1, "max": 32, "is_closed": False, "closings": 0},
    },
    "set": ["analysis.hop"],
}
STATS = Stats(
    state="running",
    source="test signal",
    engine="numpy",
    fs=44100.0,
    channels=2,
    samples=1,
    rows=1,
    messages=1_234_567,
    overflows=1,
    dropped=20_500,
    gaps=2,
    gap_samples=4410,
    ring_peak=0.5,
    name="roof",
    products=("dbfs", "thirds"),
    computed=("dbfs",),
    capture=CaptureStats(
        restarts=3, left_out_files=2, rate_error_ppm=-1.26, rate_uncertainty_ppm=0.31
    ),
    checks=("silent: 0",),
    clipped_samples=5,
)


def status(*stats, recordings=(), recorders=()):
    sources = [msgspec.to_builtins(one) for one in stats]
    written = {"recordings": list(recordings), "recorders": list(recorders)}
    return {"daemon": DAEMON, "sources": sources, **written}


def test_a_daemon_of_another_version_is_named():
    """A client of another version than the daemon says so in one line, and what ends it."""
    of_other = status(STATS) | {"daemon": DAEMON | {"version": "0.0.9"}}
    first, second, third, *_ = ctl_text.status_text(of_other).splitlines()
    assert first.startswith("spectrod 0.0.9, process 77")
    assert second == (
        f"this program is spectrod {spectrod.__version__}; an upgraded daemon keeps its version "
        "until it is restarted"
    )
    assert third.startswith("publishes at")


LOST = "1 overflow, 20.5 k drops, 2 gaps (0.1 s)"


def test_a_status_is_a_table_with_further_lines():
    """The status table shows losses by kind and length, idle products in brackets, and problems."""
    recording = {
        "name": "a.png",
        "source": "roof",
        "product": "dbfs",
        "state": "failed",
        "frames": 12,
        "error": "disk full",
    }
    assert ctl_text.status_text(status(STATS, recordings=[recording])).splitlines() == [
        f"spectrod {spectrod.__version__}, process 77, up 1 d 2:03 h, 1 subscription",
        "publishes at tcp://127.0.0.1:5556",
        "computes with opencl:PoCL",
        "refused connections: 3 unknown key",
        "tcp: 90 connections of at most 96, closed to new connections now; closed 2 times",
        "set, and not in the file: analysis.hop",
        "",
        "SOURCE  STATE    RATE      CH  PRODUCTS       MESSAGES  LOST",
        f"roof    running  44.1 kHz  2   dbfs,(thirds)  1.23 M    {LOST}",
        "  test signal, rate -1.3 +- 0.31 ppm",
        "  restarted 3 times",
        "  files left out or read in part: 2",
        "  silent: 0, 5 clipped samples",
        "",
        "RECORDING  SOURCE  STATE   WRITTEN    LOST  BYTES  FREE",
        "a.png      roof    failed  12 frames  -     -      -",
        "  disk full",
    ]


def test_recordings_are_a_table_with_their_files_and_their_trouble():
    """Recordings are listed with files and errors; one without its source shows only that."""
    recorders = [
        {
            "name": "night",
            "source": "roof",
            "state": "recording",
            "error": "",
            "folder": "/var/lib/x",
            "files": ["a.spd"],
            "rows": 123_456,
            "samples": 0,
            "lost_rows": 7,
            "lost_samples": 0,
            "written_bytes": 2_345_678_901,
            "free_bytes": None,
        },
        {
            "name": "night",
            "source": "pond",
            "state": "waiting",
            "error": "the source waits for its device",
        },
    ]
    assert ctl_text.recordings_text(status(STATS, recorders=recorders)).splitlines() == [
        "RECORDING  SOURCE  STATE      WRITTEN     LOST    BYTES    FREE",
        "night      roof    recording  123 k rows  7 rows  2.35 GB  -",
        "  writes /var/lib/x/a.spd",
        "night      pond    waiting    -           -       -        -",
        "  the source waits for its device",
    ]
    asked_for = recorders[0] | {"name": "b.wav", "files": [], "rows": 0, "samples": 20_500}
    asked_for |= {"state": "failed", "error": "disk full", "lost_rows": 0, "written_bytes": 41_000}
    both = status(STATS, recorders=recorders[1:], recordings=[asked_for])
    assert ctl_text.recordings_text(both).splitlines() == [
        "RECORDING  SOURCE  STATE    WRITTEN         LOST     BYTES  FREE",
        "night      pond    waiting  -               -        -      -",
        "  the source waits for its device",
        "b.wav      roof    failed   20.5 k samples  nothing  41 kB  -",
        "  disk full",
    ]
    assert ctl_text.recordings_text(status(STATS)) == "nothing is recorded"
    older = {key: value for key, value in status(STATS).items() if key != "recorders"}
    assert ctl_text.status_text(older) == ctl_text.status_text(status(STATS))


def test_a_single_occurrence_is_not_plural():
    """An event that has occurred once is not printed in the plural."""
    stats = replace(STATS, engine_failures=1, capture=replace(STATS.capture, restarts=1))
    lines = ctl_text.status_text(status(stats)).splitlines()
    assert "  restarted once" in lines
    assert f"  engine failed once; {stats.engine} takes over" in lines


def test_a_source_that_was_never_there_has_no_rate():
    """A source that was never available has no rate but shows its reason to wait."""
    away = Stats(
        "waiting", "soundcard:usb", "", 0.0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0,
        name="shed", capture=CaptureStats(waiting_for="no sound card 'usb'"),
    )  # fmt: skip
    *_, row, about, waits = ctl_text.status_text(status(away)).splitlines()
    assert row.split() == ["shed", "waiting", "-", "-", "-", "0", "nothing"]
    assert (about, waits) == ("  soundcard:usb", "  waits: no sound card 'usb'")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (59.9, "59 s"),
        (60.0, "1:00 min"),
        (3599.0, "59:59 min"),
        (3600.0, "1:00:00 h"),
        (86399.0, "23:59:59 h"),
        (86400.0, "1 d 0:00 h"),
        (40_000_000.0, "462 d 23:06 h"),
    ],
)
def test_times_have_the_unit_that_fits(seconds, text):
    """Times are printed in the unit that fits, from seconds to days."""
    assert ctl_text.duration_text(seconds) == text


@pytest.mark.parametrize(
    ("n", "text"),
    [(0, "0"), (9999, "9999"), (10_000, "10 k"), (999_499, "999 k"), (12_345_678, "12.3 M"),
     (5e9, "5 G"), (7.5e12, "7.5 T")],
)  # fmt: skip
def test_counts_have_three_digits_once_they_are_long(n, text):
    """Large counts have three digits, small ones are whole numbers."""
    assert ctl_text.count_text(n) == text


def test_settings_are_written_as_keys_that_set_takes():
    """Settings are printed as keys that ``set`` accepts, and a single value alone."""
    tree = {"analysis": {"hop": 1, "loop": True}, "sources": {"a.b": {"select": [1, 0], "uri": ""}}}
    assert ctl_text.value_text(tree).splitlines() == [
        "analysis.hop = 1",
        "analysis.loop = true",
        'sources."a.b".select = 1,0',
        'sources."a.b".uri = ',
    ]
    assert ctl_text.value_text({"hop": 1}, "analysis") == "analysis.hop = 1"
    assert ctl_text.value_text(0.125) == "0.125"


def test_metrics_are_a_line_each():
    """Each metric is a line of name, labels, value and unit."""
    metrics = [
        {"name": "samples", "value": 48000, "unit": "samples", "labels": {"source": "a"}},
        {"name": "uptime", "value": 1.5, "unit": "s", "labels": {}},
        {"name": "gaps", "value": 0, "unit": "", "labels": {}},
    ]
    lines = ['samples{source="a"} 48000 samples', "uptime 1.5 s", "gaps 0"]
    assert ctl_text.metrics_text(metrics).splitlines() == lines


def test_events_and_messages_are_a_line_each():
    """Each event or message is a line with its UTC time to the millisecond."""
    event = {"t_utc_ns": 1_767_225_600_123_999_999, "kind": "control.set", "text": "x: 1 -> 2"}
    at = "2026-01-01T00:00:00.123Z"
    assert ctl_text.event_text(event | {"source": "", "who": ""}) == f"{at}  control.set  x: 1 -> 2"
    reported = ctl_text.event_text(event | {"source": "roof", "who": "ann"})
    assert reported == f"{at}  control.set  roof: x: 1 -> 2  (ann)"
    facts = {"begin_utc_ns": event["t_utc_ns"], "end_utc_ns": event["t_utc_ns"] + 2 * 10**9}
    for state, times in ("begun", f"since {at}"), ("ended", f"{at} to 2026-01-01T00:00:02.123Z"):
        of_trigger = {"source": "roof", "who": "", "trigger": facts | {"state": state}}
        reported = ctl_text.event_text(event | of_trigger)
        assert reported == f"{at}  control.set  roof: x: 1 -> 2, {times}"
    header = SpectrumHeader(
        seq=7, epoch=1, t_utc_ns=event["t_utc_ns"], t_mono_ns=0, sample_index=0, fs=48000.0,
        win_length=64, nfft=64, hop=32, window="hann", enbw_hz=1125.0, shape=(33,), unit="dBFS",
        ref="", engine="numpy",
    )  # fmt: skip
    values = np.full(33, -200, np.float32)
    values[8] = -20
    line = frame_text(Frame("spec/a/0/dbfs/", header, values))
    assert line == f"7  {at}  33 values, largest -20.00 dBFS at 6000.0 Hz"
    fields = {"seq": 8, "epoch": 1, "t_utc_ns": event["t_utc_ns"], "t_mono_ns": 0}
    fields |= {"sample_index": 0, "fs": 48000.0, "win_length": 64, "nfft": 64, "hop": 32}
    fields |= {"window": "hann", "enbw_hz": 1125.0, "shape": (33,), "unit": "dBFS", "ref": ""}
    bands = BandsHeader(**fields, engine="numpy", bands="octave", n_bands=33)
    line = frame_text(BandFrame("bands/a/0/octaves/", bands, values))
    assert line == f"8  {at}  33 values, largest -20.00 dBFS in band 8"


@pytest.mark.parametrize("t_utc_ns", [10**30, -(2**63), 1e18, "now", None])
def test_a_time_that_no_daemon_can_mean_is_refused(t_utc_ns):
    """A time outside the range of a daemon's clock is an error that names it."""
    with pytest.raises(WireError, match=r"t_utc_ns=.*: must be an integer of 64 bits"):
        ctl_text.time_text(t_utc_ns)


def test_the_first_and_the_last_time_of_64_bits_are_written():
    """The first and the last time of 64 bits, in 1677 and 2262, can be printed."""
    assert ctl_text.time_text(1 - 2**63) == "1677-09-21T00:12:43.145Z"
    assert ctl_text.time_text(2**63 - 1) == "2262-04-11T23:47:16.854Z"


def test_triggers_and_masks_are_tables():
    """A status lists triggers with their events; masks have their progress and their error."""
    status = {"daemon": DAEMON, "sources": [], "recordings": []}
    trigger = {"name": "hum", "source": "mic", "kind": "band", "product": "dbfs", "events": 3}
    on = trigger | {"is_active": True, "begin_utc_ns": 1_700_000_000_000_000_000}
    off = trigger | {"name": "far", "is_active": False, "begin_utc_ns": None}
    text = ctl_text.status_text(status | {"triggers": [on, off]}).splitlines()
    assert text[-3:] == [
        "TRIGGER  SOURCE  KIND  PRODUCT  EVENTS  STATE",
        "hum      mic     band  dbfs     3       since 2023-11-14T22:13:20.000Z",
        "far      mic     band  dbfs     3       -",
    ]
    mask = {"name": "q", "source": "mic", "product": "dbfs", "rows": 9, "fs": 10.0, "error": "no"}
    mask |= {"state": "failed", "seen_samples": 20, "due_samples": 300}
    assert ctl_text.learning_text([mask]).splitlines()[1] == (
        "q     mic     dbfs     2 of 30 s  9     failed: no"
    )
    assert ctl_text.learning_text([]) == "no mask is being learned"


def test_a_header_that_is_nested_deeply_is_one_error():
    """``replay --json`` prints all that a daemon sends, also what no version knows."""
    assert _header_text(b'{"a":[1]}') == '{"a": [1]}'
    with pytest.raises(WireError, match=r"^a header is nested too deeply to be printed$"):
        _header_text(b'{"a":' + b"[" * 100_000)
