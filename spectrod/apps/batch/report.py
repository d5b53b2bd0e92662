"""The report of a job: for each deployment what was computed, what is missing, and its average."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import msgspec
from msgspec import Struct

from spectrod.apps.batch.comparison import (
    Axes,
    Comparison,
    DeploymentDifference,
    SignalAverage,
    common_axes,
    compare,
    on_one_scale,
)
from spectrod.apps.batch.flags import FLAGS_BYTES_MAX, parse_flags
from spectrod.apps.batch.job import UNIT_NS, Job
from spectrod.apps.batch.ltsa import PooledDay, pool_days
from spectrod.apps.batch.output import output_of, write
from spectrod.apps.batch.plan import BatchPlan, InputFinding, Unit
from spectrod.apps.batch.result_paths import is_parquet
from spectrod.apps.batch.results import UnitRecord
from spectrod.apps.batch.run import UnitStatus
from spectrod.apps.batch.tables import EVENTS_BYTES_MAX, count_events
from spectrod.dsp.blocks import duration_ns
from spectrod.dsp.units import NS_PER_S
from spectrod.lib.text import printable
from spectrod.lib.time_zones import find_zone
from spectrod.source.files.placing import TOLERANCE_S

REPORT_JSON, REPORT_HTML = "report.json", "report.html"
SIGNALS_MAX = 8
"""Most channels of a deployment whose averages are drawn."""
NOTES_MAX = 1000
"""Most findings of a deployment that are listed."""
VERSION = 1
_UNIT_OF_NAME = re.compile(r"_[0-9]{8}(T[0-9]{2})?\.nc$")


class SetAside(Struct, frozen=True, kw_only=True):
    """A unit without a whole result."""

    unit: str
    state: str
    reason: str
    exit_code: int


class DayCoverage(Struct, frozen=True, kw_only=True):
    """How much of a UTC day has been computed: ``share`` is 0 to 1; and its events."""

    day: str
    share: float
    events: int = 0


class DeploymentReport(Struct, frozen=True, kw_only=True):
    """What came of a deployment.

    Attributes
    ----------
    name : str
        Of the deployment.
    begin_utc_ns, end_utc_ns : int
        From the first to behind the last sample of the plan [ns]; 0 without units.
    n_units : dict of int
        Units of each state.
    sound_s, computed_s, missing_s : float
        Sound in the plan; in results; missing between the first and last sample of units [s].
    coverage : float
        ``computed_s`` as a share of the time from begin to end, 0 to 1.
    gaps : int
        Interruptions within units with results, pauses of a schedule among them.
    unit_gaps : int
        Interruptions of 2 s or longer between the sound of a unit with a result and that of the
        next one, if that has a result, too.
    unit_gaps_s : float
        Their time [s].
    findings : dict of int
        Findings of the plan of each kind: gaps between files, overlaps, clock jumps, ...
    notes : tuple of str
        The first 1000 findings.
    flagged_minutes : dict of int
        Minutes with each quality flag; empty without the product ``flags``.
    clipped_samples : int
        Of the files of flags.
    events : int or None
        Events of all days; None without the product ``detect``.
    processor_s, realtime_factor : float
        Processor time of all results [s]; seconds of sound computed in one of them.
    memory_bytes : int
        Largest peak memory of a process [bytes].
    days : tuple of DayCoverage
        Days with units, ascending.
    set_aside : tuple of SetAside
        Units that failed, are partial, or wait with a reason.
    unreadable : tuple of str
        Files of results that could not be read for this report.
    """

    name: str
    begin_utc_ns: int
    end_utc_ns: int
    n_units: dict[str, int]
    sound_s: float
    computed_s: float
    missing_s: float
    coverage: float
    gaps: int
    unit_gaps: int
    unit_gaps_s: float
    findings: dict[str, int]
    notes: tuple[str, ...]
    flagged_minutes: dict[str, int]
    clipped_samples: int
    events: int | None
    processor_s: float
    realtime_factor: float
    memory_bytes: int
    days: tuple[DayCoverage, ...]
    set_aside: tuple[SetAside, ...]
    unreadable: tuple[str, ...]


class JobReport(Struct, frozen=True, kw_only=True):
    """Report of a job; ``v`` is the version of this format.

    ``time_zone`` is that of the times on the page; days and units are of UTC.
    ``differences_left_out`` has a line for each average that is not compared, with the reason.
    """

    job: str
    software: str
    unit: str
    time_zone: str
    deployments: tuple[DeploymentReport, ...]
    differences: tuple[DeploymentDifference, ...] = ()
    differences_left_out: tuple[str, ...] = ()
    v: int = VERSION


class ReportPictures(NamedTuple):
    """Pictures of a report: averages in the order of its deployments, and differences of them."""

    averages: list[SignalAverage]
    comparisons: list[Comparison]


class _Flags(NamedTuple):
    minutes: Counter[str]
    clipped: int
    unreadable: list[str]


def make_report(
    job: Job, plan: BatchPlan, statuses: Sequence[UnitStatus]
) -> tuple[JobReport, ReportPictures]:
    """Return the report of a job, and its pictures."""
    reports: list[DeploymentReport] = []
    averages: list[SignalAverage] = []
    of_deployment: dict[str, list[UnitStatus]] = {one.name: [] for one in job.deployments}
    for status in statuses:
        of_deployment[status.unit.deployment].append(status)
    axes = common_axes(
        {name: _axes(some) for name, some in of_deployment.items() if _computed(some)}
    )
    for one in job.deployments:
        of_it = of_deployment[one.name]
        drawn = _averages(job, one.name, of_it, axes.get(one.name))
        averages += drawn
        findings = [found for found in plan.findings if found.deployment == one.name]
        reports.append(_deployment(job, one.name, of_it, findings, drawn))
    averages = on_one_scale(averages)
    found, left_out = compare(averages)
    report = JobReport(
        job=job.name,
        software=plan.head.software,
        unit=job.unit,
        time_zone=find_zone(job.time_zone).key,
        deployments=tuple(reports),
        differences=tuple(one.numbers for one in found),
        differences_left_out=tuple(printable(line) for line in left_out),
    )
    return report, ReportPictures(averages, found)


def write_report(job: Job, report: JobReport, page: str) -> str:
    """Write ``report.json`` and ``report.html``, and return the place of the page."""
    output = output_of(job.output)
    content = msgspec.json.format(msgspec.json.encode(report), indent=1)
    write(output, REPORT_JSON, content + b"\n")
    write(output, REPORT_HTML, page.encode("utf-8", "replace"))
    return output.place(REPORT_HTML)


def _deployment(
    job: Job,
    name: str,
    statuses: Sequence[UnitStatus],
    findings: Sequence[InputFinding],
    averages: Sequence[SignalAverage],
) -> DeploymentReport:
    records = _computed(statuses)
    begin_ns, end_ns = _span(statuses)
    unit_gaps_s = _unit_gaps_s(statuses)
    computed_s = sum(one.read_samples / one.fs for one in records)
    processor_s = sum(one.costs.processor_s for one in records)
    flags = _flags(job, records)
    unreadable = [name for one in averages for name in one.average.unreadable]
    events = _events(job, records, unreadable)
    return DeploymentReport(
        name=name,
        begin_utc_ns=begin_ns,
        end_utc_ns=end_ns,
        n_units=dict(Counter(one.state for one in statuses)),
        sound_s=round(sum(one.unit.sound_s for one in statuses), 3),
        computed_s=round(computed_s, 3),
        missing_s=round(sum(one.missing_samples / one.fs for one in records), 3),
        coverage=round(min(1.0, computed_s * NS_PER_S / max(1, end_ns - begin_ns)), 6),
        gaps=sum(one.gaps for one in records),
        unit_gaps=len(unit_gaps_s),
        unit_gaps_s=round(sum(unit_gaps_s), 3),
        findings=dict(Counter[str](one.kind for one in findings)),
        notes=tuple(printable(f"{one.kind}: {one.text}") for one in findings[:NOTES_MAX]),
        flagged_minutes=dict(sorted(flags.minutes.items())),
        clipped_samples=flags.clipped,
        events=events.total() if "detect" in job.products else None,
        processor_s=round(processor_s, 3),
        realtime_factor=round(computed_s / processor_s, 1) if processor_s else 0.0,
        memory_bytes=max((one.costs.memory_bytes for one in records), default=0),
        days=_days(statuses, events),
        set_aside=tuple(
            SetAside(
                unit=one.unit.name,
                state=one.state,
                reason=printable(one.reason),
                exit_code=one.exit_code,
            )
            for one in statuses
            if one.reason
        ),
        unreadable=tuple(unreadable + flags.unreadable),
    )


def _computed(statuses: Sequence[UnitStatus]) -> list[UnitRecord]:
    return [one.record for one in statuses if one.record is not None and one.record.is_computed]


def _span(statuses: Sequence[UnitStatus]) -> tuple[int, int]:
    """Return when the first sample begins and the last one ends, by the plan; 0, 0 without."""
    if not statuses:
        return 0, 0
    units = [one.unit for one in statuses]
    return min(one.start_utc_ns for one in units), max(_end_ns(one) for one in units)


def _end_ns(unit: Unit) -> int:
    """Return when the last sample of a unit ends, by the plan [ns]."""
    last = unit.pieces[-1] if unit.pieces else None
    n_samples = last.index + last.n_samples if last else unit.n_samples
    return unit.start_utc_ns + duration_ns(n_samples, unit.fs)


def _unit_gaps_s(statuses: Sequence[UnitStatus]) -> list[float]:
    """Return the time of each interruption between successive units that both have results [s]."""
    gaps_s = [
        (after.unit.start_utc_ns - _end_ns(before.unit)) / NS_PER_S
        for before, after in pairwise(statuses)
        if len(_computed([before, after])) == 2
    ]
    return [gap_s for gap_s in gaps_s if gap_s >= TOLERANCE_S]


def _day(unit_name: str) -> str:
    """Return the UTC day that a unit lies in, as ``YYYY-MM-DD``."""
    return f"{unit_name[:4]}-{unit_name[4:6]}-{unit_name[6:8]}"


def _days(statuses: Sequence[UnitStatus], events: Counter[str]) -> tuple[DayCoverage, ...]:
    seconds: dict[str, float] = defaultdict(float)
    for one in statuses:
        record = one.record
        is_computed = record is not None and record.is_computed
        day = _day(one.unit.name)
        seconds[day] += record.read_samples / record.fs if record and is_computed else 0.0
    return tuple(
        DayCoverage(day=day, share=round(min(1.0, seconds[day] / 86400.0), 6), events=events[day])
        for day in sorted(seconds)
    )


def _events(job: Job, records: Sequence[UnitRecord], unreadable: list[str]) -> Counter[str]:
    """Return the events of each day; add files that cannot be read to those unreadable."""
    found: Counter[str] = Counter()
    for record in records:
        for one in record.outputs:
            if one.product != "detect":
                continue
            if is_parquet(one.path):
                found[_day(record.unit)] += record.findings.events
                continue
            try:
                content = output_of(job.output).read(one.path, EVENTS_BYTES_MAX)
                found[_day(record.unit)] += count_events(content)
            except (OSError, ValueError):
                unreadable.append(one.path)
    return found


def _flags(job: Job, records: Sequence[UnitRecord]) -> _Flags:
    minutes: Counter[str] = Counter()
    clipped, unreadable = 0, []
    for record in records:
        for one in record.outputs:
            if one.product != "flags":
                continue
            if is_parquet(one.path):
                clipped += record.findings.clipped_samples
                minutes.update(record.findings.flagged_minutes)
                continue
            try:
                content = output_of(job.output).read(one.path, FLAGS_BYTES_MAX)
                found, n_clipped = parse_flags(content)
            except (OSError, ValueError):
                unreadable.append(one.path)
                continue
            clipped += n_clipped
            minutes.update(found)
    return _Flags(minutes, clipped, unreadable)


def _axes(statuses: Sequence[UnitStatus]) -> Axes:
    """Return the time of the plan of a deployment, and half of its highest rate."""
    return Axes(*_span(statuses), max(one.fs for one in _computed(statuses)) / 2.0)


def _averages(
    job: Job, name: str, statuses: Sequence[UnitStatus], axes: Axes | None
) -> list[SignalAverage]:
    """Return the averages of a deployment's signals by its daily files; none without them."""
    if axes is None:
        return []
    output = output_of(job.output)
    of_signal: dict[str, list[PooledDay]] = {}
    for status in statuses:
        unit, record = status.unit, status.record
        if record is None or not record.is_computed:
            continue
        day_utc_ns = unit.begin_utc_ns - unit.begin_utc_ns % UNIT_NS["day"]
        for one in record.outputs:
            if one.product != "millidecade":
                continue
            file_name = one.path.rpartition("/")[2]
            signal = _UNIT_OF_NAME.sub("", file_name).removeprefix(name).removeprefix("_")
            day = PooledDay(partial(output.fetched, one.path), one, day_utc_ns, unit.fs)
            of_signal.setdefault(signal, []).append(day)
    return [
        SignalAverage(name, signal, pool_days(days, *axes), tuple(days))
        for signal, days in list(of_signal.items())[:SIGNALS_MAX]
    ]
