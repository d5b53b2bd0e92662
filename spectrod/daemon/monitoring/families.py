"""Metric families: as a list, and in the two text formats that Prometheus reads. Pure.

References
----------
.. [1] OpenMetrics 1.0, https://prometheus.io/docs/specs/om/open_metrics_spec/
.. [2] Prometheus text format 0.0.4, https://prometheus.io/docs/instrumenting/exposition_formats/
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from spectrod.daemon.monitoring.old_metric_names import OLD_NAMES
from spectrod.lib.latency import BOUNDS_S, LatencyCounts
from spectrod.lib.text import printable

MetricKind = Literal["counter", "gauge", "histogram", "info"]
TextFormat = Literal["openmetrics", "prometheus"]

CONTENT_TYPES: Final[Mapping[TextFormat, str]] = {
    "openmetrics": "application/openmetrics-text; version=1.0.0; charset=utf-8",
    "prometheus": "text/plain; version=0.0.4; charset=utf-8",
}
SERIES_MAX: Final = 10_000
"""Series of one exposition; the families that come last lose the rest."""
LABEL_MAX_CHARS: Final = 128

_OMITTED: Final = "spectrod_omitted_series"
_UNITS: Final = ("seconds", "bytes", "hertz", "ratio")
# By the last word of a name.
_SYMBOLS: Final[Mapping[str, str]] = {
    "seconds": "s",
    "bytes": "bytes",
    "hertz": "Hz",
    "db": "dB",
    "dbfs": "dBFS",
    "samples": "samples",
    "rows": "rows",
    "messages": "messages",
}
_SUFFIXES: Final[Mapping[MetricKind, str]] = {
    "counter": "_total",
    "gauge": "",
    "histogram": "",
    "info": "_info",
}


@dataclass(frozen=True, slots=True)
class MetricFamily:
    """All series of one name.

    Attributes
    ----------
    name : str
        Name without the suffix that its kind appends: ``_total`` or ``_info``.
    kind : {"counter", "gauge", "histogram", "info"}
    help : str
        One sentence.
    series : list of (labels, value)
        A value is a number; of a histogram, its ``LatencyCounts``.
    """

    name: str
    kind: MetricKind
    help: str
    series: list[tuple[Mapping[str, str], float | LatencyCounts]] = field(default_factory=list)

    def add(self, value: float | LatencyCounts | None, **labels: str) -> None:
        """Add a series; one without a value is left out."""
        if value is not None:
            self.series.append((labels, value))

    @property
    def full_name(self) -> str:
        """Name of its series."""
        return self.name + _SUFFIXES[self.kind]

    @property
    def unit(self) -> str:
        """Last word of its name, which is its unit if it has one."""
        return self.name.rpartition("_")[2]


def text_of(families: Iterable[MetricFamily], text_format: TextFormat) -> str:
    """Return an exposition of at most ``SERIES_MAX`` series.

    Families without series are left out. The last family counts the series that had no room; a
    bucket of a histogram counts as a series.
    """
    lines: list[str] = []
    for family in _bounded(families):
        lines += _family_lines(family, text_format)
    if text_format == "openmetrics":
        lines.append("# EOF")
    return "\n".join([*lines, ""])


def list_of(families: Iterable[MetricFamily]) -> list[dict[str, Any]]:
    """Return the same series as objects: name, value, unit (empty for a plain count), labels.

    A histogram has its sum and its count, without buckets. Values that are not finite are left out:
    JSON has no number for them.
    """
    found = []
    for family in _bounded(families):
        unit = _SYMBOLS.get(family.unit, "")
        for labels, value in family.series:
            shown = {name: printable(text, LABEL_MAX_CHARS) for name, text in labels.items()}
            for name, number, symbol in _numbers(family, value, unit):
                if math.isfinite(number):
                    found.append({"name": name, "value": number, "unit": symbol, "labels": shown})
    return found


def _numbers(
    family: MetricFamily, value: float | LatencyCounts, unit: str
) -> Iterator[tuple[str, float, str]]:
    if isinstance(value, LatencyCounts):
        yield f"{family.name}_sum", value.sum_s, unit
        yield f"{family.name}_count", sum(value.counts), ""
        return
    yield family.full_name, value, unit
    if family.full_name in OLD_NAMES:
        yield OLD_NAMES[family.full_name], value, unit


def _bounded(families: Iterable[MetricFamily]) -> Iterator[MetricFamily]:
    """Yield families with at most ``SERIES_MAX`` series, and a last one that counts the rest."""
    n_left, n_omitted = SERIES_MAX, 0
    for family in families:
        kept = []
        for labels, value in family.series:
            n = len(BOUNDS_S) + 3 if isinstance(value, LatencyCounts) else 1
            if n <= n_left:
                n_left -= n
                kept.append((labels, value))
            else:
                n_omitted += n
        yield replace(family, series=kept)
    omitted = MetricFamily(_OMITTED, "gauge", "Series that had no room in this exposition.")
    omitted.add(n_omitted)
    yield omitted


def _family_lines(family: MetricFamily, text_format: TextFormat) -> Iterator[str]:
    if not family.series:
        return
    is_open = text_format == "openmetrics"
    name = family.name if is_open else family.full_name
    kind = "gauge" if family.kind == "info" and not is_open else family.kind
    yield f"# TYPE {name} {kind}"
    if is_open and family.unit in _UNITS:
        yield f"# UNIT {name} {family.unit}"
    yield f"# HELP {name} {_escaped(family.help, quotes=is_open)}"
    for labels, value in family.series:
        if isinstance(value, LatencyCounts):
            yield from _histogram_lines(family.name, labels, value)
        else:
            yield f"{family.full_name}{_labels(labels)} {_number(value)}"


def _histogram_lines(name: str, labels: Mapping[str, str], value: LatencyCounts) -> Iterator[str]:
    total = 0
    for bound_s, count in zip((*BOUNDS_S, math.inf), value.counts, strict=True):
        total += count
        yield f"{name}_bucket{_labels({**labels, 'le': _number(bound_s)})} {total}"
    yield f"{name}_sum{_labels(labels)} {_number(value.sum_s)}"
    yield f"{name}_count{_labels(labels)} {total}"


def _labels(labels: Mapping[str, str]) -> str:
    pairs = (
        f'{name}="{_escaped(printable(text, LABEL_MAX_CHARS), quotes=True)}"'
        for name, text in labels.items()
    )
    return f"{{{','.join(pairs)}}}" if labels else ""


def _escaped(text: str, *, quotes: bool) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quotes else text


def _number(value: float) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    return repr(value)
