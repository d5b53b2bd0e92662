"""Text output of ``spectrod ctl``, from replies that are already printable. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import spectrod
from spectrod.lib.errors import WireError
from spectrod.lib.text import printable
from spectrod.lib.time_zones import span_text, utc_text

Json = Mapping[str, Any]

_HEADINGS = ("SOURCE", "STATE", "RATE", "CH", "PRODUCTS", "MESSAGES", "LOST")
_RECORDING_HEADINGS = ("RECORDING", "SOURCE", "STATE", "WRITTEN", "LOST", "BYTES", "FREE")
_TRIGGER_HEADINGS = ("TRIGGER", "SOURCE", "KIND", "PRODUCT", "EVENTS", "STATE")
_MASK_HEADINGS = ("MASK", "SOURCE", "PRODUCT", "LEARNED", "ROWS", "STATE")
_CELL_MAX_CHARS = 200
"""Longest cell: it pads that column in all other rows, of which there may be thousands."""

_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def status_text(status: Json) -> str:
    """Format a status: a few lines for the daemon, and a table of its sources."""
    lines = [*_daemon_lines(status["daemon"]), ""]
    rows = [_HEADINGS, *(_row(source) for source in status["sources"])]
    for line, source in zip(_table(rows), (None, *status["sources"]), strict=True):
        lines.append(line)
        if source is not None:
            lines += [f"  {note}" for note in _notes(source)]
    if status["recordings"] or status.get("recorders"):
        lines += ["", recordings_text(status)]
    if status.get("triggers"):  # older daemons do not send them
        lines += ["", *_table([_TRIGGER_HEADINGS, *map(_trigger_row, status["triggers"])])]
    return "\n".join(lines)


def recordings_text(status: Json) -> str:
    """Format a table of recordings: configured and requested ones.

    A further line follows for a file that is being written, and for an error.
    """
    several = [*status.get("recorders", ()), *status["recordings"]]  # older daemons lack the first
    if not several:
        return "nothing is recorded"
    lines = []
    rows = [_RECORDING_HEADINGS, *map(_recording_row, several)]
    for line, one in zip(_table(rows), (None, *several), strict=True):
        lines.append(line)
        if one is not None:
            lines += [f"  writes {one['folder']}/{name}" for name in one.get("files", ())]
            lines += [f"  {one['error']}"] if one["error"] else []
    return "\n".join(lines)


def learning_text(several: Sequence[Json]) -> str:
    """Format a table of masks that are or were being learned, the latest last."""
    if not several:
        return "no mask is being learned"
    rows = [_MASK_HEADINGS]
    for one in several:
        seconds = f"{one['seen_samples'] / one['fs']:.0f} of {one['due_samples'] / one['fs']:.0f} s"
        state = f"{one['state']}: {one['error']}" if one["error"] else one["state"]
        rows.append((one["name"], one["source"], one["product"], seconds, str(one["rows"]), state))
    return "\n".join(_table(rows))


def _trigger_row(one: Json) -> tuple[str, ...]:
    state = f"since {time_text(one['begin_utc_ns'])}" if one["is_active"] else "-"
    what = (one["name"], one["source"], one["kind"], one["product"])
    return (*what, count_text(one["events"]), state)


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    rows = [[printable(cell, _CELL_MAX_CHARS) for cell in row] for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    for row in rows:
        padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(padded).rstrip()


def _daemon_lines(daemon: Json) -> Iterator[str]:
    n_subscribers = daemon["subscribers"]
    subscribers = f"{n_subscribers} subscription{'' if n_subscribers == 1 else 's'}"
    up = duration_text(daemon["uptime_s"])
    yield f"spectrod {daemon['version']}, process {daemon['pid']}, up {up}, {subscribers}"
    if daemon["version"] != spectrod.__version__:
        yield (
            f"this program is spectrod {spectrod.__version__}; an upgraded daemon keeps its "
            "version until it is restarted"
        )
    yield f"publishes at {', '.join(daemon['publish'])}"
    yield f"computes with {', '.join(daemon['engines']) or 'nothing yet'}"
    refused = {kind: n for kind, n in daemon["security"].items() if n}
    if refused:
        kinds = ", ".join(f"{n} {kind.replace('_', ' ')}" for kind, n in refused.items())
        yield f"refused connections: {kinds}"
    yield from _connections(daemon.get("connections", {}))  # older daemons do not send them
    if daemon.get("unsendable"):  # older daemons do not send it
        yield f"dropped, as they cannot be encoded: {count_text(daemon['unsendable'])} messages"
    if daemon["set"]:
        yield f"set, and not in the file: {', '.join(daemon['set'])}"


def _connections(by_transport: Json) -> Iterator[str]:
    for transport, of in by_transport.items():
        if of["closings"]:
            now = "closed to new connections now" if of["is_closed"] else "open"
            yield (
                f"{transport}: {of['count']} connections of at most {of['max']}, {now}; "
                f"closed {of['closings']} times"
            )


def _row(source: Json) -> tuple[str, ...]:
    return (
        source["name"],
        source["state"],
        f"{source['fs'] / 1e3:g} kHz" if source["fs"] else "-",
        str(source["channels"] or "-"),
        ",".join(_products(source)) or "-",
        count_text(source["messages"]),
        _lost(source),
    )


def _products(source: Json) -> list[str]:
    """Return the names of the products; those that nobody wants are in brackets."""
    computed = source["computed"]
    return [name if name in computed else f"({name})" for name in source["products"]]


def _lost(source: Json) -> str:
    counts = (
        (source["overflows"], "overflow", "overflows"),
        (source["overruns"], "overrun", "overruns"),
        (source["dropped"], "drop", "drops"),
        (source["capture"]["suspected"], "suspected", "suspected"),
        (source["gaps"], "gap", "gaps"),
    )
    lost = [f"{count_text(n)} {one if n == 1 else several}" for n, one, several in counts if n]
    if source["gap_samples"] and source["fs"]:
        lost[-1] += f" ({source['gap_samples'] / source['fs']:.3g} s)"
    return ", ".join(lost) or "nothing"


def _notes(source: Json) -> Iterator[str]:
    """Yield further lines on a source."""
    capture = source["capture"]
    about = source["source"]
    if capture["rate_error_ppm"] is not None:
        bound = capture["rate_uncertainty_ppm"]
        uncertainty = "" if bound is None else f" +- {bound:.2g}"
        about += f", rate {capture['rate_error_ppm']:+.1f}{uncertainty} ppm"
    yield about
    if source.get("cal_id"):  # older daemons do not send it
        yield f"calibration {source['cal_id']}: {source['unit']}"
    if capture["waiting_for"]:
        yield f"waits: {capture['waiting_for']}"
    if capture["restarts"]:
        yield f"restarted {_times(capture['restarts'])}"
    if n_files := capture.get("left_out_files"):  # older daemons do not count them
        yield f"files left out or read in part: {count_text(n_files)}"
    if source["engine_failures"]:
        yield f"engine failed {_times(source['engine_failures'])}; {source['engine']} takes over"
    if source["checks"] or source["clipped_samples"]:
        clipped = f"{count_text(source['clipped_samples'])} clipped samples"
        yield ", ".join([*source["checks"], *([clipped] if source["clipped_samples"] else [])])


def _times(n: int) -> str:
    return "once" if n == 1 else f"{count_text(n)} times"


def _recording_row(one: Json) -> tuple[str, ...]:
    if "rows" not in one:  # waits for its source, or the daemon is older
        written = f"{count_text(one['frames'])} frames" if "frames" in one else "-"
        return (one["name"], one["source"], one["state"], written, "-", "-", "-")
    counts = ((one["rows"], "rows"), (one["samples"], "samples"))
    lost = ((one["lost_rows"], "rows"), (one["lost_samples"], "samples"))
    return (
        one["name"],
        one["source"],
        one["state"],
        _counted(counts),
        _counted(lost),
        _bytes_text(one["written_bytes"]),
        "-" if one["free_bytes"] is None else _bytes_text(one["free_bytes"]),
    )


def _counted(counts: Sequence[tuple[int, str]]) -> str:
    return ", ".join(f"{count_text(n)} {unit}" for n, unit in counts if n) or "nothing"


def _bytes_text(n_bytes: int) -> str:
    for scale, prefix in _PREFIXES:
        if n_bytes >= scale:
            return f"{n_bytes / scale:.3g} {prefix}B"
    return f"{n_bytes} B"


def metrics_text(metrics: Sequence[Json]) -> str:
    """Format one line per metric: name, labels, value, unit."""
    return "\n".join(
        f"{one['name']}{_labels(one['labels'])} {one['value']:.15g} {one['unit']}".rstrip()
        for one in metrics
    )


def _labels(labels: Json) -> str:
    return "{" + ",".join(f'{k}="{v}"' for k, v in labels.items()) + "}" if labels else ""


def event_text(event: Json) -> str:
    """Format an event as a line: time, kind, source, text, times of a trigger's event, peer."""
    source = f"{event['source']}: " if event["source"] else ""
    who = f"  ({event['who']})" if event["who"] else ""
    times = _times_text(event.get("trigger"))  # older daemons do not send it
    return f"{time_text(event['t_utc_ns'])}  {event['kind']}  {source}{event['text']}{times}{who}"


def _times_text(trigger: Json | None) -> str:
    """Format the times of the sound, where the event's is that of its report."""
    if trigger is None:
        return ""
    begin_ns, end_ns = _checked_ns(trigger["begin_utc_ns"]), _checked_ns(trigger["end_utc_ns"])
    return f", {span_text(begin_ns, end_ns if trigger['state'] == 'ended' else None)}"


def time_text(t_utc_ns: int) -> str:
    """Format UTC with milliseconds, as ISO 8601.

    Raises
    ------
    WireError
        If it is not a 64-bit integer, like every time from a daemon.
    """
    return utc_text(_checked_ns(t_utc_ns))


def _checked_ns(t_utc_ns: Any) -> int:
    if not (isinstance(t_utc_ns, int) and abs(t_utc_ns) < 1 << 63):
        raise WireError(f"t_utc_ns={t_utc_ns!r}: must be an integer of 64 bits")
    return t_utc_ns


def duration_text(seconds: float) -> str:
    """Format a duration as ``12 s``, ``4:05 min``, ``3:04:05 h`` or ``2 d 3:04 h``."""
    whole = int(seconds)
    minutes, s = divmod(whole, 60)
    hours, m = divmod(minutes, 60)
    days, h = divmod(hours, 24)
    if days:
        return f"{days} d {h}:{m:02d} h"
    if hours:
        return f"{h}:{m:02d}:{s:02d} h"
    return f"{m}:{s:02d} min" if minutes else f"{s} s"


def count_text(n: float) -> str:
    """Format a count; from ten thousand on with three digits and a prefix."""
    for scale, prefix in _PREFIXES:
        if n >= scale and n >= 10_000:
            return f"{n / scale:.3g} {prefix}"
    return f"{n:g}"


def value_text(value: Any, prefix: str = "") -> str:
    """Format settings as ``KEY = VALUE`` lines, a single one as its value."""
    if not isinstance(value, dict):
        return _scalar(value)
    return "\n".join(_lines(value, prefix))


def _lines(table: Json, prefix: str) -> Iterator[str]:
    for key, value in table.items():
        part = f'"{key}"' if "." in key else key
        name = f"{prefix}.{part}" if prefix else part
        if isinstance(value, dict):
            yield from _lines(value, name)
        else:
            yield f"{name} = {_scalar(value)}"


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ",".join(_scalar(item) for item in value)
    return str(value)
