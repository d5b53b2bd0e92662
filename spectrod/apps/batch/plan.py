"""The plan of a job: a readable file of units, each with the pieces of files that it is made of."""

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from spectrod.apps.batch.job import UNIT_NS, Job, UnitLength, digest
from spectrod.dsp.blocks import SampleFormat, duration_ns
from spectrod.dsp.spectrum_rules import CHANNELS_MAX
from spectrod.dsp.units import NS_PER_S
from spectrod.formats.whole_files import whole_file
from spectrod.lib.errors import ConfigError, InputError, StorageError, storage_error
from spectrod.lib.names import NAME_PATTERN
from spectrod.lib.regular_files import open_regular
from spectrod.lib.text import printable, reason_of

PLAN_FILE = "plan.jsonl"
VERSION = 1
LINE_BYTES_MAX = 1 << 16
"""Longest line of a plan that is read [bytes]."""
UNIT_MAX_S = 86_401
"""Longest time from the first sample of a unit to its last [s]: a day, and rounding."""
PIECES_MAX = 2_000_000
"""Most pieces of a plan."""

FindingKind = Literal[
    "unreadable", "undated", "truncated", "format", "duplicate", "overlap", "gap", "clock"
]
LEFT_OUT_KINDS: frozenset[FindingKind] = frozenset(
    ("unreadable", "undated", "truncated", "format", "overlap")
)
"""Findings because of which samples of the inputs are in no unit."""


Count = Annotated[int, Meta(ge=0, lt=1 << 62)]
UTC_NS_MAX = 9_000_000_000 * NS_PER_S
"""Furthest time before or after 1970 [ns]: times of 64 bits end in 2262."""
FS_MIN, FS_MAX = 1e-3, 1e9
"""Least and greatest sample rate [Hz]."""
MTIME_NS_MAX = (1 << 63) - 1
"""Furthest time of change before or after 1970 [ns]; file systems have further ones."""
UtcNs = Annotated[int, Meta(ge=-UTC_NS_MAX, le=UTC_NS_MAX)]
_Fs = Annotated[float, Meta(ge=FS_MIN, le=FS_MAX)]
_Name = Annotated[str, Meta(pattern=f"^{NAME_PATTERN}$")]
_UnitName = Annotated[str, Meta(pattern=r"^[0-9]{8}(T[0-9]{2})?\Z")]


class Piece(Struct, frozen=True, tag_field="record", tag="piece", kw_only=True):
    """Part of a file that belongs to a unit.

    Attributes
    ----------
    path : str
        The file.
    size : int
        Its size [bytes].
    mtime_ns : int
        When it was modified [ns since 1970].
    digest : str
        Digest of its first and last block, see ``spectrod.apps.batch.fingerprint``.
    sample_format : str
        Format of its samples if they are read as they are, ``int16`` and so on; empty if they are
        decoded to float32.
    first, end : int
        Samples of the file that belong to the unit, [first, end).
    index : int
        Sample of the unit that ``first`` is; counted from the unit's first sample, so gaps count.
    """

    path: Annotated[str, Meta(pattern=r"^[^\x00]+\Z")]
    size: Count
    mtime_ns: Annotated[int, Meta(ge=-MTIME_NS_MAX, le=MTIME_NS_MAX)]
    digest: str
    sample_format: SampleFormat | Literal[""]
    first: Count
    end: Count
    index: Count

    @property
    def n_samples(self) -> int:
        """Samples per channel."""
        return self.end - self.first


class Unit(Struct, frozen=True, tag_field="record", tag="unit", kw_only=True):
    """A day or an hour of a deployment: one time line of samples, and what it will cost.

    Attributes
    ----------
    deployment : str
        Name of the deployment.
    name : str
        ``20260501`` or ``20260501T04``.
    begin_utc_ns : int
        Begin of the day or the hour, UTC [ns].
    start_utc_ns : int
        UTC of its first sample [ns].
    fs : float
        Sample rate of all pieces [Hz].
    channels : int
        Channels of all pieces.
    n_samples : int
        Samples per channel in its pieces.
    cost_s : float
        Processor time that it is expected to take [s]; a rough estimate.
    refused : str
        Why it is set aside from the start; empty if it is computed.
    n_pieces : int
        Number of its pieces, which follow it in the file.
    pieces : tuple of Piece
        In the order of time; no two share a sample of the unit.
    """

    deployment: _Name
    name: _UnitName
    begin_utc_ns: UtcNs
    start_utc_ns: UtcNs
    fs: _Fs
    channels: Annotated[int, Meta(ge=1, le=CHANNELS_MAX)]
    n_samples: Count
    cost_s: Annotated[float, Meta(ge=0, le=1e12)]
    refused: str = ""
    n_pieces: int = 0
    pieces: tuple[Piece, ...] = ()

    @property
    def key(self) -> str:
        """``DEPLOYMENT/NAME``, different for all units of a job."""
        return f"{self.deployment}/{self.name}"

    @property
    def end_utc_ns(self) -> int:
        """UTC after its last sample [ns]."""
        past = max((one.index + one.end - one.first for one in self.pieces), default=0)
        return self.start_utc_ns + duration_ns(past, self.fs)

    @property
    def sound_s(self) -> float:
        """Duration of the samples of a channel [s]."""
        return self.n_samples / self.fs

    @property
    def sample_format(self) -> SampleFormat | Literal[""]:
        """Format of the samples of all pieces; empty if they are decoded to float32."""
        formats = {piece.sample_format for piece in self.pieces}
        return formats.pop() if len(formats) == 1 else ""

    def digest(self, job: Job, cal_id: str = "") -> str:
        """Return what decides whether a result stands: the samples, parameters and program.

        Where files lie does not count.

        Parameters
        ----------
        job : Job
            What is computed.
        cal_id : str
            Identity of the calibration of the channels.
        """
        pieces = [
            [one.size, one.mtime_ns, one.digest, one.first, one.end, one.index]
            for one in self.pieces
        ]
        samples = [self.begin_utc_ns, self.start_utc_ns, self.fs, self.channels, pieces]
        return digest([samples, job.parameters(self.deployment), cal_id])


class InputFinding(Struct, frozen=True, tag_field="record", tag="finding", kw_only=True):
    """Something about the inputs that the owner of an archive should know.

    Attributes
    ----------
    kind : str
        See ``FindingKind``.
    deployment : str
        Name of the deployment.
    path : str
        The file, or the folder.
    utc_ns : int or None
        Where on the time line it is, if that is known [ns].
    duration_s : float
        How much sound or time it concerns [s]; 0 if unknown.
    text : str
        One line.
    """

    kind: FindingKind
    deployment: str
    path: str
    text: str
    utc_ns: int | None = None
    duration_s: float = 0.0


class PlanHead(Struct, frozen=True, tag_field="record", tag="plan", kw_only=True):
    """The first line of a plan.

    ``inputs_digest`` is that of ``spectrod.apps.batch.planner``; empty in plans of versions that
    had none.
    """

    v: int
    software: str
    job: str
    unit: UnitLength
    job_digest: str
    n_units: int
    n_pieces: int
    n_findings: int
    sound_s: float
    cost_s: float
    inputs_digest: str = ""


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """A plan.

    Attributes
    ----------
    head : PlanHead
        Totals.
    units : tuple of Unit
        In the order of deployments and time; a shard i of n has units i, i + n, ...
    findings : tuple of InputFinding
        In the order of deployments.
    """

    head: PlanHead
    units: tuple[Unit, ...]
    findings: tuple[InputFinding, ...]

    @property
    def is_incomplete(self) -> bool:
        """Whether samples of the inputs are in no unit, or units are refused."""
        kinds = {one.kind for one in self.findings}
        return bool(kinds & LEFT_OUT_KINDS) or any(unit.refused for unit in self.units)


_Line = PlanHead | InputFinding | Unit | Piece


def unit_name(begin_utc_ns: int, unit: UnitLength) -> str:
    """Return the name of the day or hour that begins at a UTC [ns]."""
    begin = dt.datetime.fromtimestamp(begin_utc_ns // NS_PER_S, dt.UTC)
    return begin.strftime("%Y%m%d" if unit == "day" else "%Y%m%dT%H")


def make_plan(
    job: Job,
    software: str,
    units: Sequence[Unit],
    findings: Sequence[InputFinding],
    inputs_digest: str = "",
) -> BatchPlan:
    """Return the plan of units and findings, with their totals.

    Raises
    ------
    InputError
        If it has more pieces than are read again.
    """
    n_pieces = sum(len(unit.pieces) for unit in units)
    if n_pieces > PIECES_MAX:
        raise InputError(f"{job.name}: {n_pieces} pieces of files: must be at most {PIECES_MAX}")
    head = PlanHead(
        v=VERSION,
        software=software,
        job=job.name,
        unit=job.unit,
        job_digest=job.plan_digest,
        n_units=len(units),
        n_pieces=n_pieces,
        n_findings=len(findings),
        sound_s=round(sum(unit.sound_s for unit in units), 3),
        cost_s=round(sum(unit.cost_s for unit in units), 3),
        inputs_digest=inputs_digest,
    )
    return BatchPlan(head, tuple(units), tuple(findings))


def write_plan(path: Path, plan: BatchPlan) -> None:
    """Write a plan, one JSON object a line: head, findings, and each unit before its pieces.

    The same plan always has the same bytes.

    Raises
    ------
    StorageError
        If it cannot be written; an old plan stays then.
    """
    encoder = msgspec.json.Encoder()
    with whole_file(path, follows_link=False) as part, part.open("xb") as file:
        for line in _lines(plan):
            file.write(encoder.encode(line) + b"\n")


def _lines(plan: BatchPlan) -> Iterator[_Line]:
    yield plan.head
    yield from plan.findings
    for unit in plan.units:
        n_pieces = len(unit.pieces)
        yield msgspec.structs.replace(unit, pieces=(), n_pieces=n_pieces)
        yield from unit.pieces


def read_plan(path: Path, job: Job) -> BatchPlan:
    """Read the plan of a job.

    Raises
    ------
    ConfigError
        If there is none, or the job's inputs have changed since.
    StorageError
        If it cannot be read, is no plan, is cut off, or has pieces that overlap.
    """
    again = "run spectrod batch plan"
    plan = stored_plan(path)
    if plan is None:
        raise ConfigError(f"{path}: there is no plan; {again}")
    if plan.head.job_digest != job.plan_digest:
        raise ConfigError(
            f"{path}: the inputs, times or the unit of the job have changed since; {again}"
        )
    check_plan(path, plan, job)
    return plan


def stored_plan(path: Path) -> BatchPlan | None:
    """Read a plan, whatever job it is of; None if there is none.

    Raises
    ------
    StorageError
        If it cannot be read, is no plan, or is cut off.
    """
    try:
        return _read(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise storage_error(path, error) from error


def check_plan(path: Path, plan: BatchPlan, job: Job) -> None:
    """Check that each unit is of the job and comes once, and that its pieces do not overlap.

    Raises
    ------
    StorageError
        If not; names the unit.
    """
    deployments = {one.name for one in job.deployments}
    keys = set()
    for unit in plan.units:
        if unit.deployment not in deployments or unit.key in keys:
            raise StorageError(f"{path}: {unit.key}: must be of a deployment of the job, and once")
        keys.add(unit.key)
        if unit.name not in (unit_name(unit.begin_utc_ns, one) for one in UNIT_NS):
            raise StorageError(f"{path}: {unit.key}: must have the name of its begin")
        end = 0
        for piece in unit.pieces:
            if piece.index < end or piece.end <= piece.first:
                raise StorageError(f"{path}: {unit.key}: {piece.path}: must follow the one before")
            end = piece.index + piece.n_samples
        if end > UNIT_MAX_S * unit.fs:
            raise StorageError(f"{path}: {unit.key}: its pieces must end within a day")


def _read(path: Path) -> BatchPlan:
    decoder = msgspec.json.Decoder(_Line)
    head: PlanHead | None = None
    findings: list[InputFinding] = []
    units: list[Unit] = []
    pieces: list[Piece] = []
    n_pieces = 0
    with open_regular(path) as file:
        number = 0
        while line := file.readline(LINE_BYTES_MAX + 1):
            number += 1
            where = f"{path}:{number}"
            one = _decoded(decoder, line, where)
            if isinstance(one, PlanHead):
                _check_head(one, head, where)
                head = one
            elif isinstance(one, InputFinding):
                findings.append(one)
            elif isinstance(one, Piece):
                pieces.append(one)
                n_pieces += 1
            else:
                _give_pieces(units, pieces, where)
                units.append(one)
            if n_pieces > PIECES_MAX:
                raise StorageError(f"{where}: must have at most {PIECES_MAX} pieces")
    _give_pieces(units, pieces, str(path))
    counts = len(units), n_pieces, len(findings)
    if head is None or counts != (head.n_units, head.n_pieces, head.n_findings):
        raise StorageError(f"{path}: is cut off, or no plan; run spectrod batch plan")
    return BatchPlan(head, tuple(units), tuple(findings))


def _decoded(decoder: msgspec.json.Decoder[_Line], line: bytes, where: str) -> _Line:
    if len(line) > LINE_BYTES_MAX:
        raise StorageError(f"{where}: a line must have at most {LINE_BYTES_MAX} bytes")
    try:
        return decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise StorageError(
            f"{where}: is no line of a plan: {printable(reason_of(error))}"
        ) from error


def _check_head(one: PlanHead, before: PlanHead | None, where: str) -> None:
    if before is not None:
        raise StorageError(f"{where}: a second head; run spectrod batch plan")
    if one.v != VERSION:
        raise StorageError(f"{where}: is a plan of version {one.v}: must be {VERSION}")


def _give_pieces(units: list[Unit], pieces: list[Piece], where: str) -> None:
    """Give the pieces read so far to the newest unit."""
    if units:
        if len(pieces) != units[-1].n_pieces:
            raise StorageError(f"{where}: {units[-1].key}: pieces are missing")
        units[-1] = msgspec.structs.replace(units[-1], pieces=tuple(pieces))
    elif pieces:
        raise StorageError(f"{where}: pieces before the first unit")
    pieces.clear()
