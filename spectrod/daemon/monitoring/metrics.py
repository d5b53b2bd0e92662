"""Metrics of a daemon: a snapshot as metric families. Pure; ``docs/monitoring.md`` lists them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, get_args

from spectrod.daemon.monitoring.families import MetricFamily, MetricKind
from spectrod.daemon.monitoring.health import UNWRITABLE
from spectrod.daemon.monitoring.snapshot import Snapshot
from spectrod.dsp.units import NS_PER_S
from spectrod.lib.stats import State, Stats

CHANNELS_MAX: Final = 64
"""Channels of a source that have series of their own."""
CHECKS: Final = ("silent", "missing", "stuck", "dc", "clipping")
RECORDING_STATES: Final = ("recording", "armed", "off", "waiting", "full", "failed")
_DELIVERING: Final[Sequence[State]] = ("running", "paused")
_PPM: Final = 1e-6

_SourceMetric = tuple[str, MetricKind, str, Callable[[Stats], float | None]]
"""Name, kind, help, value."""


def _counter(name: str, text: str, field: str = "") -> _SourceMetric:
    return name, "counter", text, attrgetter(field or name)


def _gauge(name: str, text: str, field: str = "") -> _SourceMetric:
    return name, "gauge", text, attrgetter(field or name)


def _time_gauge(name: str, text: str, field: str) -> _SourceMetric:
    """Return the metric of a field in nanoseconds since 1970, which has no value where it is 0."""

    def seconds(one: Stats) -> float | None:
        return utc_ns / NS_PER_S if (utc_ns := getattr(one, field)) else None

    return name, "gauge", f"{text}, in seconds since 1970.", seconds


def _from_ppm(value: float | None) -> float | None:
    return None if value is None else value * _PPM


_OF_SOURCE: Final[Sequence[_SourceMetric]] = (
    ("up", "gauge", "1 while the source is running.", lambda one: int(one.state == "running")),
    _gauge("sample_rate_hertz", "Nominal sample rate.", "fs"),
    _gauge("channels", "Analysed channels."),
    _time_gauge(
        "last_sample_timestamp_seconds", "When the analysis last read samples", "last_sample_utc_ns"
    ),
    _time_gauge(
        "last_message_timestamp_seconds",
        "When the last message with values was made",
        "last_message_utc_ns",
    ),
    _counter("samples", "Samples per channel, including lost ones."),
    _counter(
        "analysed_samples",
        "Samples per channel that the analysis has read, including lost ones.",
        "analysed",
    ),
    _counter("rows", "Spectra and averages computed, of all products."),
    _counter("messages", "Messages with values, sent to subscribers or only kept for replay."),
    _counter("heartbeats", "Heartbeats handed to ZeroMQ."),
    _counter("overflows", "Blocks with the overflow flag of the sound system."),
    _counter("overruns", "Times that samples were overwritten before they were analysed."),
    _counter("dropped_rows", "Rows dropped from a full queue.", "dropped"),
    _counter("gaps", "Discontinuities that the analysis has seen."),
    _counter("gap_samples", "Samples per channel missing in gaps."),
    _counter(
        "clipped_samples", "Samples at full scale in runs of three or more, over all channels."
    ),
    _counter("engine_failures", "Failures of the engine after which NumPy continued."),
    _counter("self_checks", "Rows recomputed by NumPy in float64 for comparison."),
    _gauge(
        "self_check_error_ratio",
        "Largest relative L2 error of the power of these rows.",
        "self_check_error",
    ),
    _gauge("ring_peak_ratio", "Highest fill of the sample ring.", "ring_peak"),
    _counter("capture_restarts", "Restarts of the capture.", "capture.restarts"),
    _counter("capture_attempts", "Attempts to start the capture.", "capture.attempts"),
    _counter(
        "suspected_losses",
        "Losses without a flag, found by counting samples against the clock.",
        "capture.suspected",
    ),
    _counter(
        "suspected_samples",
        "Samples per channel missing in suspected losses.",
        "capture.suspected_samples",
    ),
    _counter(
        "left_out_files",
        "Files of the source that were skipped or read only in part.",
        "capture.left_out_files",
    ),
    (
        "clock_error_ratio",
        "gauge",
        "Measured over nominal sample rate, minus one.",
        lambda one: _from_ppm(one.capture.rate_error_ppm),
    ),
    (
        "clock_error_uncertainty_ratio",
        "gauge",
        "Half width of the 95 % interval of the clock error.",
        lambda one: _from_ppm(one.capture.rate_uncertainty_ppm),
    ),
    _gauge(
        "capture_jitter_seconds",
        "Median delay of deliveries behind the earliest ones.",
        "capture.jitter_s",
    ),
)

# Key of a recording's status, name, kind, help, factor.
_OF_RECORDING: Final[Sequence[tuple[str, str, MetricKind, str, float]]] = (
    ("rows", "rows", "counter", "Rows written.", 1),
    ("samples", "samples", "counter", "Samples per channel written.", 1),
    ("lost_rows", "lost_rows", "counter", "Rows lost by faults and full disks.", 1),
    ("lost_samples", "lost_samples", "counter", "Samples lost by faults and full disks.", 1),
    ("written_bytes", "written_bytes", "counter", "Bytes written.", 1),
    ("kept_files", "kept_files", "gauge", "Files in the folder.", 1),
    ("kept_bytes", "kept_bytes", "gauge", "Bytes of the files in the folder.", 1),
    ("free_bytes", "disk_free_bytes", "gauge", "Free space of the folder's disk.", 1),
    ("triggers", "triggers", "counter", "Events that triggered it.", 1),
    (
        "last_byte_utc_ns",
        "last_byte_timestamp_seconds",
        "gauge",
        "When its files last grew, in seconds since 1970.",
        1 / NS_PER_S,
    ),
)


def families_of(snapshot: Snapshot) -> list[MetricFamily]:
    """Return the metric families of a daemon, the most important ones first."""
    return [
        *_of_daemon(snapshot),
        *_of_recordings(snapshot.recorders),
        *_of_triggers(snapshot.triggers),
        *_of_sources(snapshot.stats),
        *_of_latencies(snapshot),
        *_of_products(snapshot),
        *_of_channels(snapshot),
    ]


def _of_daemon(one: Snapshot) -> Iterator[MetricFamily]:
    build = MetricFamily("spectrod_build", "info", "Version of spectrod and of Python.")
    build.add(1, version=one.version, python=one.python)
    yield build
    use = one.process
    single: Sequence[tuple[str, MetricKind, str, float | None]] = (
        ("start_time_seconds", "gauge", "Start of the daemon, since 1970.", one.start_utc_s),
        (
            "config_last_reload_successful",
            "gauge",
            "0 if the last attempt to read the configuration failed.",
            int(one.is_reloaded),
        ),
        (
            "config_last_reload_success_timestamp_seconds",
            "gauge",
            "When the configuration was last read without an error, in seconds since 1970.",
            one.configured_utc_s,
        ),
        ("process_cpu_seconds", "counter", "Processor time, user and system.", use.cpu_s),
        ("process_resident_memory_bytes", "gauge", "Resident memory.", use.resident_bytes),
        ("process_open_fds", "gauge", "Open file descriptors.", use.open_fds),
        ("process_max_fds", "gauge", "Limit of open file descriptors.", use.max_fds),
        ("process_threads", "gauge", "Threads of Python.", use.threads),
        ("subscriptions", "gauge", "Subscriptions to values.", one.subscriptions),
        ("unsendable_messages", "counter", "Messages that cannot be encoded.", one.unsendable),
        ("history_bytes", "gauge", "Memory of messages kept for replay.", one.history_bytes),
        ("client_keys", "gauge", "Keys of clients that may connect.", one.client_keys),
        (
            "requested_recordings",
            "gauge",
            "Recordings that peers asked for and that are being written.",
            one.requested_recordings,
        ),
    )
    for name, kind, text, value in single:
        yield _single(name, kind, text, value)
    yield from _by_kind(one)


def _single(name: str, kind: MetricKind, text: str, value: float | None) -> MetricFamily:
    family = MetricFamily(f"spectrod_{name}", kind, text)
    family.add(value)
    return family


def _by_kind(one: Snapshot) -> Iterator[MetricFamily]:
    refused = MetricFamily("spectrod_refused_connections", "counter", "Refused connections.")
    for kind, n in sorted(one.refused.items()):
        refused.add(n, kind=kind)
    requests = MetricFamily(
        "spectrod_control_requests", "counter", "Control requests, replies and errors, by kind."
    )
    for kind, n in sorted(one.requests.items()):
        requests.add(n, kind=kind)
    yield from (refused, requests)
    by_transport: Sequence[tuple[str, str, MetricKind, str]] = (
        ("count", "connections", "gauge", "Connections of ZeroMQ peers."),
        ("max", "connections_max", "gauge", "Limit of connections."),
        ("closings", "connection_closings", "counter", "Times closed to new connections."),
    )
    for key, name, metric_kind, text in by_transport:
        family = MetricFamily(f"spectrod_{name}", metric_kind, text)
        for transport, of in one.connections.items():
            family.add(of[key], transport=transport)
        yield family


def _of_recordings(recorders: Sequence[Mapping[str, Any]]) -> Iterator[MetricFamily]:
    state = MetricFamily("spectrod_recording_state", "gauge", "1 for the recording's state.")
    failed = MetricFamily(
        "spectrod_recording_failed", "gauge", "1 if a recording cannot be written: full or failed."
    )
    up = MetricFamily("spectrod_recording_up", "gauge", "1 unless it waits, or is full or failed.")
    for one in recorders:
        labels = {"recording": one["name"], "source": one["source"]}
        failed.add(int(one["state"] in UNWRITABLE), **labels)
        up.add(int(one["state"] not in (*UNWRITABLE, "waiting")), **labels)
        for name in RECORDING_STATES:
            state.add(int(one["state"] == name), **labels, state=name)
    yield from (failed, up, state)
    for key, name, kind, text, factor in _OF_RECORDING:
        family = MetricFamily(f"spectrod_recording_{name}", kind, text)
        for one in recorders:
            value = one.get(key)
            if value is not None:
                family.add(value * factor, recording=one["name"], source=one["source"])
        yield family


def _of_triggers(triggers: Sequence[Mapping[str, Any]]) -> Iterator[MetricFamily]:
    active = MetricFamily("spectrod_trigger_active", "gauge", "1 during an event of the trigger.")
    events = MetricFamily("spectrod_trigger_events", "counter", "Events of the trigger.")
    for one in triggers:
        labels = {"trigger": one["name"], "source": one["source"]}
        active.add(int(one["is_active"]), **labels)
        events.add(one["events"], **labels)
    yield from (active, events)


def _of_sources(stats: Sequence[Stats]) -> Iterator[MetricFamily]:
    info = MetricFamily("spectrod_source", "info", "Description and engine of the source.")
    state = MetricFamily("spectrod_source_state", "gauge", "1 for the source's state.")
    for one in stats:
        info.add(1, source=one.name, description=one.source, engine=one.engine, unit=one.unit)
        for name in get_args(State):
            state.add(int(one.state == name), source=one.name, state=name)
    yield from (info, state)
    for name, kind, text, value_of in _OF_SOURCE:
        family = MetricFamily(f"spectrod_source_{name}", kind, text)
        for one in stats:
            family.add(value_of(one), source=one.name)
        yield family


def _of_latencies(one: Snapshot) -> Iterator[MetricFamily]:
    text = "Time of a stage: capture and analysis of a block, queue and publish of a row."
    family = MetricFamily("spectrod_latency_seconds", "histogram", text)
    for source, stages in one.latencies.items():
        for stage, counts in stages.items():
            family.add(counts, source=source, stage=stage)
    yield family


def _of_products(one: Snapshot) -> Iterator[MetricFamily]:
    computed = MetricFamily("spectrod_product_computed", "gauge", "1 while it is computed.")
    for stats in one.stats:
        for product in stats.products:
            computed.add(int(product in stats.computed), source=stats.name, product=product)
    level = MetricFamily("spectrod_product_level_db", "gauge", "Level in a topic's newest message.")
    current = {
        (stats.name, product)
        for stats in one.stats
        if stats.state in _DELIVERING
        for product in stats.computed
    }
    for found in one.levels:
        if (found.source, found.product) not in current:
            continue  # an old message: nobody wants the product now, or no samples come
        level.add(
            found.level_db,
            source=found.source,
            channel=found.channel,
            product=found.product,
            quantity=found.quantity,
            unit=found.unit,
        )
    yield from (computed, level)


def _of_channels(one: Snapshot) -> Iterator[MetricFamily]:
    level = MetricFamily(
        "spectrod_channel_level_dbfs",
        "gauge",
        "Level of the samples of the last second; a full-scale sine is 0.",
    )
    peak = MetricFamily(
        "spectrod_channel_peak_dbfs", "gauge", "Highest magnitude of the last second's samples."
    )
    check = MetricFamily("spectrod_channel_check", "gauge", "1 while the samples show this.")
    for stats in one.stats:
        names = one.channels.get(stats.name, ())[:CHANNELS_MAX]
        # Sources that have no levels are not checked; levels of others are old.
        is_current = stats.level_dbfs and stats.state in _DELIVERING
        active = _active(stats.checks)
        for k, name in enumerate(names if is_current else ()):
            labels = {"source": stats.name, "channel": name}
            level.add(stats.level_dbfs[k], **labels)
            peak.add(stats.peak_dbfs[k], **labels)
            for what in CHECKS:
                check.add(int((what, k) in active), **labels, check=what)
    yield from (level, peak, check)


def _active(checks: Sequence[str]) -> set[tuple[str, int]]:
    """Parse texts such as ``silent: 0`` and ``dc: 1 (-23.1 dBFS)``."""
    found = set()
    for text in checks:
        what, _, rest = text.partition(": ")
        found.add((what, int(rest.split()[0])))
    return found
