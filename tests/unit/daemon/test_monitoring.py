"""Metrics: what a snapshot becomes, in both text formats, read by Prometheus's own parsers."""

import dataclasses
import math
import re
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open
from prometheus_client.parser import text_string_to_metric_families as read_prometheus

from spectrod.daemon.monitoring.families import SERIES_MAX, MetricFamily, list_of, text_of
from spectrod.daemon.monitoring.health import unready_reasons
from spectrod.daemon.monitoring.metrics import CHANNELS_MAX, CHECKS, families_of
from spectrod.daemon.monitoring.old_metric_names import OLD_NAMES
from spectrod.daemon.monitoring.process_usage import ProcessUse, process_use
from spectrod.daemon.monitoring.snapshot import ProductLevel, Snapshot
from spectrod.lib.latency import BOUNDS_S, LatencyHistogram
from spectrod.lib.stats import CaptureStats, Stats

READERS = {"openmetrics": read_open, "prometheus": read_prometheus}
SOURCE = Stats(
    state="running",
    source='sound card "USB" \\ one',
    engine="numpy",
    fs=48_000.0,
    channels=2,
    samples=96_000,
    messages=7,
    name="roof",
    products=("dbfs", "slow"),
    computed=("dbfs",),
    capture=CaptureStats(rate_error_ppm=12.5),
    checks=("silent: 1", "dc: 0 (-23.1 dBFS)"),
    level_dbfs=(-20.5, -200.0),
    peak_dbfs=(-3.0, -200.0),
    last_sample_utc_ns=1_700_000_000_500_000_000,
    unit="dBFS",
)
RECORDING = {
    "name": "all",
    "source": "roof",
    "state": "full",
    "written_bytes": 10**12 + 1,
    "free_bytes": None,
    "last_byte_utc_ns": 1_700_000_001_000_000_000,
}


def make_snapshot(**more):
    latency = LatencyHistogram()
    latency.add(0.003)
    latency.add(99.0)
    fields = {
        "version": "1.2.3",
        "python": "3.11.7",
        "start_utc_s": 1.7e9,
        "process": ProcessUse(1.5, 2**30, 40, 65_536, 12),
        "stats": (SOURCE,),
        "channels": {"roof": ("left", "right")},
        "latencies": {"roof": {"queue": latency.snapshot()}},
        "levels": [
            ProductLevel("roof", "left", "dbfs", "broadband", "dB re 20 uPa", 62.5),
            ProductLevel("roof", "left", "slow", "LAeq", "dB", 1.0),
        ],
        "recorders": [RECORDING],
        "triggers": [{"name": "hum", "source": "roof", "is_active": True, "events": 7}],
        "requested_recordings": 1,
        "subscriptions": 2,
        "unsendable": 0,
        "history_bytes": 100,
        "client_keys": 3,
        "refused": {"no_key": 4},
        "requests": {"requests": 5},
        "connections": {"tcp": {"count": 1, "max": 4096, "closings": 0}},
        "is_reloaded": False,
        "configured_utc_s": 1.7e9,
    }
    return Snapshot(**fields | more)


def read(snapshot, text_format="openmetrics"):
    """Return all samples of an exposition: value by name and labels."""
    text = text_of(families_of(snapshot), text_format)
    found = [sample for family in READERS[text_format](text) for sample in family.samples]
    keys = [(one.name, tuple(sorted(one.labels.items()))) for one in found]
    assert len(set(keys)) == len(keys)
    return {(one.name, frozenset(one.labels.items())): one.value for one in found}


def value(samples, name, **labels):
    return samples[f"spectrod_{name}", frozenset(labels.items())]


@pytest.mark.parametrize("text_format", READERS)
def test_the_parsers_of_prometheus_read_every_value(text_format):
    """Both formats give the values, labels with quotes and backslashes, and the histogram."""
    samples = read(make_snapshot(), text_format)
    assert value(samples, "build_info", version="1.2.3", python="3.11.7") == 1
    description = {"description": SOURCE.source, "engine": "numpy", "unit": "dBFS"}
    assert value(samples, "source_info", source="roof", **description) == 1
    assert value(samples, "source_samples_total", source="roof") == 96_000
    assert value(samples, "source_last_sample_timestamp_seconds", source="roof") == 1700000000.5
    assert value(samples, "source_clock_error_ratio", source="roof") == pytest.approx(12.5e-6)
    assert value(samples, "source_state", source="roof", state="running") == 1
    assert value(samples, "source_state", source="roof", state="failed") == 0
    assert value(samples, "recording_failed", recording="all", source="roof") == 1
    assert value(samples, "recording_up", recording="all", source="roof") == 0
    assert value(samples, "recording_state", recording="all", source="roof", state="full") == 1
    assert value(samples, "trigger_active", trigger="hum", source="roof") == 1
    assert value(samples, "trigger_events_total", trigger="hum", source="roof") == 7
    written = value(samples, "recording_written_bytes_total", recording="all", source="roof")
    assert written == 10**12 + 1
    grown = value(samples, "recording_last_byte_timestamp_seconds", recording="all", source="roof")
    assert grown == pytest.approx(1700000001.0)
    assert value(samples, "config_last_reload_successful") == 0
    assert value(samples, "process_resident_memory_bytes") == 2**30
    labels = {"source": "roof", "stage": "queue"}
    assert value(samples, "latency_seconds_bucket", **labels, le="0.005") == 1
    assert value(samples, "latency_seconds_bucket", **labels, le="+Inf") == 2
    assert value(samples, "latency_seconds_count", **labels) == 2
    assert value(samples, "latency_seconds_sum", **labels) == pytest.approx(99.003)


def test_the_list_has_the_names_and_values_of_the_exposition():
    """The list has each series of the text but the buckets, with its value, and its unit."""
    text = {key: value for key, value in read(make_snapshot(), "prometheus").items()
            if not key[0].endswith("_bucket")}  # fmt: skip
    listed = [one for one in list_of(families_of(make_snapshot())) if "spectrod_" in one["name"]]
    found = {(one["name"], frozenset(one["labels"].items())): one["value"] for one in listed}
    assert len(found) == len(listed)
    assert found == pytest.approx(text)
    units = {one["name"].removeprefix("spectrod_"): one["unit"] for one in listed}
    assert units["source_samples_total"] == units["source_gap_samples_total"] == "samples"
    assert units["source_sample_rate_hertz"] == "Hz"
    assert units["recording_written_bytes_total"] == "bytes"
    assert (units["latency_seconds_sum"], units["latency_seconds_count"]) == ("s", "")
    assert (units["channel_level_dbfs"], units["product_level_db"]) == ("dBFS", "dB")
    assert units["source_up"] == units["source_gaps_total"] == ""


def test_the_list_has_the_old_names_too():
    """Each old name stands for a metric that exists, and has its value, unit and labels."""
    families = families_of(make_snapshot())
    assert OLD_NAMES.keys() <= {family.full_name for family in families}
    assert len(set(OLD_NAMES.values())) == len(OLD_NAMES)
    listed = list_of(families)
    new = [one | {"name": OLD_NAMES[one["name"]]} for one in listed if one["name"] in OLD_NAMES]
    assert len(new) > len(OLD_NAMES) / 2
    assert [one for one in listed if not one["name"].startswith("spectrod_")] == new


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan])
def test_a_number_that_json_lacks_is_not_listed(number):
    """A series whose value is not finite is left out of the list."""
    family = MetricFamily("spectrod_x", "gauge", "A number.")
    family.add(number)
    assert [one["name"] for one in list_of([family])] == ["spectrod_omitted_series"]


def test_the_list_is_bounded_and_counts_what_is_left_out():
    """Thousands of sources give the series of the bound, and a count of the rest."""
    stats = tuple(dataclasses.replace(SOURCE, name=f"s{k}") for k in range(2000))
    listed = list_of(families_of(make_snapshot(stats=stats, channels={}, latencies={})))
    named = [one for one in listed if one["name"].startswith("spectrod_")]
    assert len(named) == SERIES_MAX + 1
    assert named[-1]["value"] > 2000


def test_unknown_values_are_left_out():
    """A clock error that was not measured, and free space that is not known, have no series."""
    unknown = dataclasses.replace(SOURCE, capture=CaptureStats(), last_sample_utc_ns=0)
    names = {name for name, _ in read(make_snapshot(stats=(unknown,)))}
    assert "spectrod_source_clock_error_ratio" not in names
    assert "spectrod_source_last_sample_timestamp_seconds" not in names
    assert "spectrod_recording_disk_free_bytes" not in names
    assert "spectrod_source_samples_total" in names


def test_each_channel_has_its_level_and_its_checks():
    """A channel has its level and peak, and 0 or 1 for each check, by its name."""
    samples = read(make_snapshot())
    assert value(samples, "channel_level_dbfs", source="roof", channel="left") == -20.5
    assert value(samples, "channel_peak_dbfs", source="roof", channel="right") == -200.0
    found = {
        (channel, check)
        for channel in ("left", "right")
        for check in CHECKS
        if value(samples, "channel_check", source="roof", channel=channel, check=check)
    }
    assert found == {("left", "dc"), ("right", "silent")}


def test_a_product_that_nobody_wants_has_no_level():
    """The newest message of a product that is not computed is old: it gives no level."""
    samples = read(make_snapshot())
    levels = {labels for name, labels in samples if name == "spectrod_product_level_db"}
    assert [dict(labels)["product"] for labels in levels] == ["dbfs"]
    assert value(samples, "product_computed", source="roof", product="slow") == 0


@pytest.mark.parametrize("state", ["waiting", "failed", "finished"])
def test_a_source_without_samples_has_no_levels(state):
    """Levels and checks of a source that delivers nothing are old: they have no series."""
    absent = dataclasses.replace(SOURCE, state=state)
    names = {name for name, _ in read(make_snapshot(stats=(absent,)))}
    assert not names & {
        "spectrod_channel_level_dbfs",
        "spectrod_channel_peak_dbfs",
        "spectrod_channel_check",
        "spectrod_product_level_db",
    }
    assert "spectrod_source_samples_total" in names


def test_a_source_of_many_channels_shows_the_first_ones():
    """Of more channels than the bound the first ones have series."""
    n = CHANNELS_MAX + 1
    levels = (-30.0,) * n
    many = dataclasses.replace(SOURCE, channels=n, checks=(), level_dbfs=levels, peak_dbfs=levels)
    samples = read(make_snapshot(stats=(many,), channels={"roof": [str(k) for k in range(n)]}))
    shown = {dict(labels)["channel"] for name, labels in samples if name.endswith("level_dbfs")}
    assert shown == {str(k) for k in range(CHANNELS_MAX)}


def test_an_exposition_is_bounded_and_counts_what_is_left_out():
    """Thousands of sources give the series of the bound; the rest is counted, the daemon's stay."""
    stats = tuple(dataclasses.replace(SOURCE, name=f"s{k}") for k in range(2000))
    samples = read(make_snapshot(stats=stats, channels={}, latencies={}))
    assert len(samples) == SERIES_MAX + 1
    assert value(samples, "omitted_series") > 2000
    assert value(samples, "subscriptions") == 2


def test_labels_are_one_short_line():
    """A label with control characters, line breaks and 10 000 letters is escaped and cut."""
    family = MetricFamily("spectrod_x", "gauge", "Help with\nbreak.")
    family.add(1, text="a\nb\0\udcff" + "z" * 10_000)
    (sample,) = next(read_prometheus(text_of([family], "prometheus"))).samples
    assert len(sample.labels["text"]) == 128
    assert sample.labels["text"].isprintable()


@pytest.mark.parametrize("text_format", READERS)
@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan, 0.0, 1e-300, 2**63])
def test_any_number_can_be_read(number, text_format):
    """Infinity, NaN and large integers keep their value."""
    family = MetricFamily("spectrod_x", "gauge", "A number.")
    family.add(number)
    first = next(iter(READERS[text_format](text_of([family], text_format))))
    assert first.samples[0].value == pytest.approx(number, nan_ok=True)


def test_a_latency_falls_into_the_bucket_of_its_bound():
    """A latency on a bound counts in that bucket, one above in the next, a negative one as 0."""
    histogram = LatencyHistogram()
    for latency_s in (BOUNDS_S[2], BOUNDS_S[2] * 1.001, -1.0, 1e9):
        histogram.add(latency_s)
    counts = histogram.snapshot().counts
    assert [k for k, n in enumerate(counts) if n] == [0, 2, 3, len(BOUNDS_S)]
    assert sum(counts) == 4


def test_the_process_is_measured():
    """The process has used processor time and memory, and has a descriptor more for a file."""
    before = process_use()
    with Path(__file__).open("rb"):
        after = process_use()
    assert after.open_fds == before.open_fds + 1
    assert after.cpu_s > 0
    assert after.resident_bytes > 1 << 20
    assert after.threads >= 1


def test_readiness_names_each_reason():
    """Sources that wait, start or have failed, and recordings, are reasons; paused ones are not."""
    waiting = dataclasses.replace(
        SOURCE, state="waiting", capture=CaptureStats(waiting_for="no such card")
    )
    paused = dataclasses.replace(SOURCE, state="paused")
    ended = dataclasses.replace(SOURCE, state="finished")
    assert unready_reasons([SOURCE, paused, ended], []) == []
    assert unready_reasons([waiting], ["recording all of roof: full"]) == [
        "source roof: waiting: no such card",
        "recording all of roof: full",
    ]


def test_the_documentation_lists_every_metric():
    """Each name of the exposition is in docs/monitoring.md, and no other one."""
    text = (Path(__file__).parents[3] / "docs" / "monitoring.md").read_text("utf-8")
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `spectrod_")]
    listed = {name for row in rows for name in re.findall(r"`(spectrod_\w+)`", row)}
    names = {family.full_name for family in families_of(make_snapshot())}
    assert listed == names | {"spectrod_omitted_series"}
