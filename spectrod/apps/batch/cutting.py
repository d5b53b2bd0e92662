"""Units of a deployment: its files on a time line, cut at days or hours of UTC."""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from spectrod.apps.batch.job import UNIT_NS, Deployment, Job, ProductName
from spectrod.apps.batch.plan import InputFinding, Piece, Unit, unit_name
from spectrod.apps.batch.scan import ScannedFile, finding
from spectrod.dsp.duty_cycle import find_duty_cycle
from spectrod.dsp.units import NS_PER_S
from spectrod.source.base import YEAR_S
from spectrod.source.files.placing import TOLERANCE_S, Member, place
from spectrod.source.files.recorded_at import RecordedAt

OVERLAP_MAX = 0.1
"""Share of a unit's sound that may overlap; of more, files are of two recorders or their times are
wrong, and nobody knows which are right."""
_UNIT_COST_S = 0.3
_FILE_COST_S = 5e-4
_SAMPLE_COSTS_S: dict[ProductName, float] = {
    "millidecade": 5e-9,
    "picture": 5e-9,
    "flags": 1e-8,
    "levels": 4e-8,
    "features": 4e-8,
    "detect": 1e-8,
    "spectra": 1.7e-7,
}
"""Processor time of a sample of a channel with the default settings, on a core of 2023."""


@dataclass(frozen=True, slots=True)
class _FilePart:
    """Part of a file that lies in a unit: its samples [first, end)."""

    file: ScannedFile
    first: int
    end: int

    @property
    def member(self) -> Member:
        """The part as a file of its own."""
        file = self.file
        start_ns = file.recorded.utc_ns + round(self.first / file.fs * NS_PER_S)
        recorded = RecordedAt(start_ns, file.recorded.origin, file.recorded.has_zone)
        n = self.end - self.first
        is_whole = self.end == file.n_samples
        n_announced = file.n_announced - self.first if is_whole else n
        return Member(Path(file.path), file.fs, file.channels, n, n_announced, recorded)


def units_of(
    job: Job, deployment: Deployment, files: Sequence[ScannedFile]
) -> tuple[list[Unit], list[InputFinding]]:
    """Return the units of a deployment in order of time, and findings about its files.

    Parameters
    ----------
    job : Job
        Gives the length of units.
    deployment : Deployment
        Its begin and end bound what counts.
    files : sequence of ScannedFile
        Sorted by time.
    """
    files, findings = _without_copies(deployment, files)
    units = []
    for begin_ns, parts in _by_unit(deployment, files, UNIT_NS[job.unit]):
        unit, about = _unit(job, deployment, begin_ns, parts)
        units.append(unit)
        findings += about
    findings += _of_clocks(
        deployment, files, {one.path for one in findings if one.kind == "overlap"}
    )
    findings += _gaps(deployment, units)
    return units, findings


def _without_copies(
    deployment: Deployment, files: Sequence[ScannedFile]
) -> tuple[list[ScannedFile], list[InputFinding]]:
    """Leave out files that are copies of others: same time, size, first and last block."""
    seen: dict[tuple[int, int, str], ScannedFile] = {}
    findings = []
    for file in files:
        key = file.recorded.utc_ns, file.print_.size, file.print_.digest
        first = seen.setdefault(key, file)
        if first is not file:
            text = f"{file.path}: a copy of {first.path}: left out"
            findings.append(finding(deployment, "duplicate", file.path, text, key[0]))
    return list(seen.values()), findings


def _of_clocks(
    deployment: Deployment, files: Sequence[ScannedFile], overlapping: Collection[str]
) -> list[InputFinding]:
    """Find clocks that were set: times that go back from name to name, and years without sound.

    Files that lose samples to the very file that their time goes back to are named as such already.
    """
    findings = []
    by_folder: dict[Path, list[ScannedFile]] = {}
    for file in files:
        if file.is_second_pass:
            continue  # its name is one of the hour before
        by_folder.setdefault(Path(file.path).parent, []).append(file)
    for in_folder in by_folder.values():
        for before, after in pairwise(sorted(in_folder, key=lambda file: Path(file.path).name)):
            back_s = (before.recorded.utc_ns - after.recorded.utc_ns) / NS_PER_S
            is_told = before.path in overlapping and after.end_utc_ns > before.recorded.utc_ns
            if back_s > TOLERANCE_S and not is_told:
                text = (
                    f"{after.path}: begins {back_s:.1f} s before {Path(before.path).name}, the "
                    "file before it by name: was the clock set back?"
                )
                start_ns = after.recorded.utc_ns
                findings.append(finding(deployment, "clock", after.path, text, start_ns, back_s))
    for before, after in pairwise(files):
        gap_s = (after.recorded.utc_ns - before.end_utc_ns) / NS_PER_S
        if gap_s > YEAR_S:
            text = (
                f"{before.path}: {gap_s / YEAR_S:.3g} years before {Path(after.path).name}: is the "
                "clock of one of them wrong?"
            )
            start_ns = before.recorded.utc_ns
            findings.append(finding(deployment, "clock", before.path, text, start_ns, gap_s))
    return findings


@dataclass(frozen=True, slots=True)
class _PieceSpan:
    """Time that a piece covers, UTC [ns]."""

    path: str
    begin_ns: int
    end_ns: int

    @classmethod
    def of(cls, unit: Unit, piece: Piece) -> "_PieceSpan":
        begin_ns = unit.start_utc_ns + round(piece.index / unit.fs * NS_PER_S)
        return cls(piece.path, begin_ns, begin_ns + round(piece.n_samples / unit.fs * NS_PER_S))


# ---- units


def _by_unit(
    deployment: Deployment, files: Sequence[ScannedFile], unit_ns: int
) -> Iterator[tuple[int, list[_FilePart]]]:
    """Yield the begin of each unit with sound, and the parts of files in it, by time."""
    parts: dict[int, list[_FilePart]] = {}
    for file in files:
        begin_ns = max(file.recorded.utc_ns, deployment.begin_utc_ns or file.recorded.utc_ns)
        end_ns = min(file.end_utc_ns, deployment.end_utc_ns or file.end_utc_ns)
        for unit in range(begin_ns // unit_ns, -(-end_ns // unit_ns)):
            first = _index_at(file, max(begin_ns, unit * unit_ns))
            end = min(file.n_samples, _index_at(file, min(end_ns, (unit + 1) * unit_ns)))
            if first < end:
                parts.setdefault(unit, []).append(_FilePart(file, first, end))
    for unit in sorted(parts):
        yield unit * unit_ns, parts[unit]


def _index_at(file: ScannedFile, utc_ns: int) -> int:
    """Return the first sample of a file at or after a UTC [ns]."""
    return max(0, math.ceil((utc_ns - file.recorded.utc_ns) * file.fs / NS_PER_S))


def _unit(
    job: Job, deployment: Deployment, begin_ns: int, parts: Sequence[_FilePart]
) -> tuple[Unit, list[InputFinding]]:
    findings: list[InputFinding] = []
    parts = _alike(deployment, parts, findings)
    members = [part.member for part in parts]
    placed = _placed(deployment, {part.member.path: part for part in parts}, members, findings)
    start_ns, fs = members[0].t_ns, members[0].fs
    # The clock of a recorder and its sample rate differ: samples may come to lie beyond the end.
    limit = math.ceil((begin_ns + UNIT_NS[job.unit] - start_ns) * fs / NS_PER_S)
    pieces = []
    for member, part in placed:
        n = min(member.n_samples, limit - member.origin)
        if n > member.first:
            pieces.append(_piece(part, member, n))
    n_samples = sum(piece.n_samples for piece in pieces)
    n_all = sum(member.n_samples for member in members)
    overlap = 1.0 - sum(member.n_samples - member.first for member, _ in placed) / n_all
    return Unit(
        deployment=deployment.name,
        name=unit_name(begin_ns, job.unit),
        begin_utc_ns=begin_ns,
        start_utc_ns=start_ns,
        fs=fs,
        channels=members[0].channels,
        n_samples=n_samples,
        cost_s=round(_cost_s(job, n_samples * members[0].channels, len(pieces)), 3),
        refused=_refusal(overlap, parts),
        n_pieces=len(pieces),
        pieces=tuple(pieces),
    ), findings


def _alike(
    deployment: Deployment, parts: Sequence[_FilePart], findings: list[InputFinding]
) -> Sequence[_FilePart]:
    """Select the parts that have the unit's most common rate and number of channels."""
    counts = Counter((part.file.fs, part.file.channels) for part in parts)
    ((chosen, n_chosen),) = counts.most_common(1)  # in a tie, that of the earliest file
    for part in parts:
        file = part.file
        if (file.fs, file.channels) != chosen:
            text = (
                f"{file.path}: {file.fs:g} Hz x {file.channels}, but {n_chosen} of {len(parts)} "
                f"files of the unit have {chosen[0]:g} Hz x {chosen[1]}: left out"
            )
            start_ns, duration_s = file.recorded.utc_ns, (part.end - part.first) / file.fs
            findings.append(finding(deployment, "format", file.path, text, start_ns, duration_s))
    return [part for part in parts if (part.file.fs, part.file.channels) == chosen]


def _placed(
    deployment: Deployment,
    parts: Mapping[Path, _FilePart],
    members: Sequence[Member],
    findings: list[InputFinding],
) -> list[tuple[Member, _FilePart]]:
    """Place the members, and return each with its part."""

    def note(path: Path, problem: str, consequence: str) -> None:
        part = parts[path]
        text = f"{problem.replace(str(path), part.file.path)}: {consequence}"
        findings.append(finding(deployment, "overlap", part.file.path, text, part.member.t_ns))

    return [(member, parts[member.path]) for member in place(members, note)]


def _piece(part: _FilePart, member: Member, n: int) -> Piece:
    file = part.file
    return Piece(
        path=file.path,
        size=file.print_.size,
        mtime_ns=file.print_.mtime_ns,
        digest=file.print_.digest,
        sample_format=file.sample_format,
        first=part.first + member.first,
        end=part.first + n,
        index=member.origin + member.first,
    )


def _refusal(overlap: float, parts: Sequence[_FilePart]) -> str:
    if overlap <= OVERLAP_MAX:
        return ""
    folders = sorted({part.file.path.rpartition("/")[0] or "/" for part in parts})
    of = f"; its files are in {', '.join(folders[:4])}" if len(folders) > 1 else ""
    return (
        f"{overlap:.0%} of the sound overlaps (at most {OVERLAP_MAX:.0%}): two recorders with one "
        f"name, or wrong times{of}"
    )


def _cost_s(job: Job, n_values: int, n_pieces: int) -> float:
    sample_s = sum(_SAMPLE_COSTS_S[product] for product in job.products)
    return _UNIT_COST_S + _FILE_COST_S * n_pieces + sample_s * n_values


def _gaps(deployment: Deployment, units: Sequence[Unit]) -> Iterator[InputFinding]:
    """Yield the times without samples of ``TOLERANCE_S`` or longer, those of a schedule in one."""
    spans = [_PieceSpan.of(unit, piece) for unit in units for piece in unit.pieces]
    gaps = [(a, b) for a, b in pairwise(spans) if _gap_s(a, b) >= TOLERANCE_S]
    if not gaps:
        return
    begins_ns = np.array([spans[0].begin_ns, *(after.begin_ns for _, after in gaps)])
    ends_ns = np.array([*(before.end_ns for before, _ in gaps), spans[-1].end_ns])
    # Nanoseconds since 1970 have more digits than float64.
    begins_s, ends_s = ((limits - begins_ns[0]) / NS_PER_S for limits in (begins_ns, ends_ns))
    found = find_duty_cycle(begins_s, ends_s)
    are_scheduled = [False] * len(gaps) if found is None else found.is_scheduled.tolist()
    for (before, after), is_scheduled in zip(gaps, are_scheduled, strict=True):
        if is_scheduled:
            continue
        gap_s = _gap_s(before, after)
        when = f"{np.datetime64(before.end_ns // NS_PER_S, 's')}Z"
        text = f"{when}: {gap_s:.6g} s without sound after {Path(before.path).name}"
        yield finding(deployment, "gap", after.path, text, before.end_ns, gap_s)
    if found is not None:
        pauses_s = found.pauses_s
        text = (
            f"{len(pauses_s)} gaps of {np.median(pauses_s):.6g} s, of a schedule of "
            f"{found.period_s:.6g} s"
        )
        first = spans[0]
        yield finding(
            deployment, "gap", first.path, text, first.begin_ns, round(float(pauses_s.sum()), 9)
        )


def _gap_s(before: _PieceSpan, after: _PieceSpan) -> float:
    return (after.begin_ns - before.end_ns) / NS_PER_S
