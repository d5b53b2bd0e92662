"""What ``spectrod tones`` found as a CSV file: a row for each tone and each harmonic."""

import csv
import io
import math
from collections.abc import Iterator, Mapping
from typing import Any

from spectrod.apps.measurements.tone_lines import PEAK_COLUMNS
from spectrod.lib.text import printable

_ABOUT = ("source", "fs", "window", "win_length", "frames")
_FIGURES = ("thd_db", "thd_n_db", "sinad_db", "snr_db", "sfdr_db", "spur_hz", "enob_bits")
_PEAK_KEYS = tuple(column.key for column in PEAK_COLUMNS)
_COLUMNS = ("channel", "kind", "order", *_PEAK_KEYS, "unit")


def tones_text(found: Mapping[str, Any]) -> str:
    """Return the text of a CSV file of what was measured, as JSON has it.

    Comments before the names of columns have the analysis and the figures of distortion of each
    channel. A row is a tone (``peak``), the fundamental (order 1) or a harmonic; cells of values
    that are not known are empty.
    """
    text = io.StringIO()
    for line in _comments(found):
        text.write(f"# {printable(line)}\n")
    writer = csv.DictWriter(text, _COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for channel in found["channels"]:
        for row in _rows(channel):
            cells = {key: _cell(value) for key, value in row.items()}
            named = {"channel": channel["channel"], "unit": channel["unit"]}
            writer.writerow(cells | named)
    return text.getvalue()


def _comments(found: Mapping[str, Any]) -> Iterator[str]:
    for key in _ABOUT:
        yield f"{key}: {found[key]}"
    for channel in found["channels"]:
        name = f"channel {channel['channel']}"
        yield f"{name} clipped_samples: {channel['clipped_samples']}"
        if channel["distortion"] is None:
            yield f"{name} distortion: not measured: {channel['not_measured']}"
            continue
        for key in _FIGURES:
            yield f"{name} {key}: {channel['distortion'][key]:.9g}"


def _rows(channel: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for peak in channel["peaks"]:
        yield {"kind": "peak"} | peak
    distortion = channel["distortion"]
    if distortion is not None:
        orders = [{"order": 1} | distortion, *distortion["harmonics"]]
        for kind, one in zip(("fundamental", *["harmonic"] * len(orders)), orders, strict=False):
            kept = {key: one[key] for key in ("order", "frequency_hz", "level_db")}
            yield {"kind": kind} | kept


def _cell(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:.9g}" if math.isfinite(value) else ""
    return value
