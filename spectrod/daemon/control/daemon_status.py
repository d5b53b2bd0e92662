"""Status of a daemon: one object for people and programs, and a flat list of metrics."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from spectrod.lib.stats import Stats

# For each source: attribute of Stats, name, unit.
_OF_SOURCE: Final = (
    ("samples", "samples", "samples"),
    ("analysed", "analysed_samples", "samples"),
    ("frames", "frames", "frames"),
    ("messages", "messages", "messages"),
    ("heartbeats", "heartbeats", "messages"),
    ("overflows", "overflows", ""),
    ("overruns", "overruns", ""),
    ("dropped", "dropped_frames", "frames"),
    ("gaps", "gaps", ""),
    ("gap_samples", "gap_samples", "samples"),
    ("clipped_samples", "clipped_samples", "samples"),
    ("ring_peak", "ring_peak", ""),
    ("engine_failures", "engine_failures", ""),
    ("fs", "sample_rate", "Hz"),
)
_OF_CAPTURE: Final = (
    ("restarts", "capture_restarts", ""),
    ("attempts", "capture_attempts", ""),
    ("suspected", "suspected_losses", ""),
    ("suspected_samples", "suspected_samples", "samples"),
    ("left_out_files", "left_out_files", ""),
    ("rate_error_ppm", "rate_error", "1e-6"),
    ("rate_uncertainty_ppm", "rate_uncertainty", "1e-6"),
    ("jitter_s", "capture_jitter", "s"),
)

# For each configured recording: key of its snapshot, name, unit.
_OF_RECORDER: Final = (
    ("rows", "recorded_rows", "rows"),
    ("samples", "recorded_samples", "samples"),
    ("lost_rows", "recorder_lost_rows", "rows"),
    ("lost_samples", "recorder_lost_samples", "samples"),
    ("written_bytes", "recorder_written", "bytes"),
    ("kept_files", "recorder_kept_files", ""),
    ("kept_bytes", "recorder_kept", "bytes"),
    ("free_bytes", "recorder_free", "bytes"),
    ("triggers", "recorder_triggers", ""),
)
_TROUBLE: Final = ("failed", "full", "waiting")
_UNWRITABLE: Final = ("failed", "full")


def metric(name: str, value: float, unit: str = "", **labels: str) -> dict[str, Any]:
    """Return one metric: name, value, unit (empty for a plain count), labels."""
    return {"name": name, "value": value, "unit": unit, "labels": labels}


def source_metrics(stats: Iterable[Stats]) -> list[dict[str, Any]]:
    """Return the counters of each source; unknown values are omitted."""
    found = []
    for one in stats:
        for owner, table in ((one, _OF_SOURCE), (one.capture, _OF_CAPTURE)):
            for attribute, name, unit in table:
                value = getattr(owner, attribute)
                if value is not None:
                    found.append(metric(name, value, unit, source=one.name))
        found.append(metric("up", int(one.state == "running"), source=one.name))
    return found


def recorder_metrics(recorders: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the counters of each recording; unknown values are omitted."""
    found = []
    for one in recorders:
        labels = {"recording": one["name"], "source": one["source"]}
        for key, name, unit in _OF_RECORDER:
            if one.get(key) is not None:
                found.append(metric(name, one[key], unit, **labels))
        found.append(metric("recorder_up", int(one["state"] not in _TROUBLE), **labels))
    return found


def recorder_troubles(recorders: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a text for each recording that cannot be written."""
    return [
        f"recording {one['name']} of {one['source']}: {one['state']}{_reason(one['error'])}"
        for one in recorders
        if one["state"] in _UNWRITABLE
    ]


def _reason(error: str) -> str:
    return f": {error}" if error else ""


def connection_metrics(facts: Mapping[Any, Mapping[str, int]]) -> list[dict[str, Any]]:
    """Return the number of connections, and its maximum, by transport."""
    names = {"count": "connections", "max": "connections_max", "closings": "listen_closings"}
    return [
        metric(name, of[key], transport=transport)
        for transport, of in facts.items()
        for key, name in names.items()
    ]


def counter_metrics(name: str, counts: Mapping[Any, int], label: str) -> list[dict[str, Any]]:
    """Return counts by kind, with the kind as a label."""
    return [metric(name, n, **{label: kind}) for kind, n in sorted(counts.items())]


def engines(stats: Sequence[Stats]) -> list[str]:
    """Return the names of the engines in use, without duplicates."""
    return list(dict.fromkeys(one.engine for one in stats if one.engine))
