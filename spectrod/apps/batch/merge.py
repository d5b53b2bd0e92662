"""The state of a whole job: records of all shards in one summary, which reports are made from."""

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from spectrod.apps.batch.daily_file import DAILY_BYTES_MAX
from spectrod.apps.batch.flags import FLAGS_BYTES_MAX
from spectrod.apps.batch.folder_output import FolderOutput
from spectrod.apps.batch.job import Job
from spectrod.apps.batch.output import JobOutput, output_of, write
from spectrod.apps.batch.plan import BatchPlan, InputFinding, Unit
from spectrod.apps.batch.products import output_products
from spectrod.apps.batch.results import UnitRecord, read_record, record_name, write_record
from spectrod.apps.batch.run import UnitStatus, statuses_of
from spectrod.apps.batch.tables import EVENTS_BYTES_MAX
from spectrod.apps.batch.unit import file_digest, stands, unit_digest
from spectrod.apps.batch.unit_settings import settings_of
from spectrod.formats.whole_files import whole_file
from spectrod.lib.errors import StorageError
from spectrod.lib.regular_files import open_regular
from spectrod.lib.text import printable
from spectrod.source.store.bucket_address import bucket_address
from spectrod.source.store.urls import is_url

SUMMARY_FILE = "summary.json"
VERSION = 1


class UnitLine(Struct, frozen=True, kw_only=True):
    """A unit in a summary; its record if it has one."""

    deployment: str
    unit: str
    state: str
    begin_utc_ns: int
    sound_s: float
    reason: str = ""
    exit_code: int = 0
    record: UnitRecord | None = None


class JobSummary(Struct, frozen=True, kw_only=True):
    """All of a job's results.

    Attributes
    ----------
    job : str
        Its name.
    software : str
        Program that made the plan.
    n_units : dict of int
        Units of each state.
    sound_s, computed_s : float
        Sound in the plan; in units with results [s].
    processor_s : float
        Processor time of all results [s].
    findings : tuple of InputFinding
        Of the plan.
    units : tuple of UnitLine
        In the order of the plan.
    v : int
        Version of this format.
    """

    job: str
    software: str
    n_units: dict[str, int]
    sound_s: float
    computed_s: float
    processor_s: float
    findings: tuple[InputFinding, ...]
    units: tuple[UnitLine, ...]
    v: int = VERSION


def summarise(job: Job, plan: BatchPlan, statuses: Sequence[UnitStatus] = ()) -> JobSummary:
    """Return the summary of a job by its records; raises StorageError if one cannot be read."""
    statuses = statuses or statuses_of(job, plan.units)
    counts = dict.fromkeys(("done", "partial", "failed", "waiting"), 0)
    for one in statuses:
        counts[one.state] += 1
    computed = [one.record for one in statuses if one.record is not None and one.record.is_computed]
    return JobSummary(
        job=job.name,
        software=plan.head.software,
        n_units=counts,
        sound_s=plan.head.sound_s,
        computed_s=round(sum(one.read_samples / one.fs for one in computed), 3),
        processor_s=round(sum(one.costs.processor_s for one in computed), 3),
        findings=plan.findings,
        units=tuple(_line(one) for one in statuses),
    )


def _line(one: UnitStatus) -> UnitLine:
    return UnitLine(
        deployment=one.unit.deployment,
        unit=one.unit.name,
        state=one.state,
        begin_utc_ns=one.unit.begin_utc_ns,
        sound_s=round(one.unit.sound_s, 6),
        reason=one.reason,
        exit_code=one.exit_code,
        record=one.record,
    )


def write_summary(job: Job, summary: JobSummary) -> str:
    """Write the summary into the output, and return its place."""
    output = output_of(job.output)
    content = msgspec.json.format(msgspec.json.encode(summary), indent=1) + b"\n"
    write(output, SUMMARY_FILE, content)
    return output.place(SUMMARY_FILE)


def collect(job: Job, plan: BatchPlan, addresses: Iterable[str]) -> int:
    """Copy the results that stand elsewhere, where this job has none; return their number.

    Shards whose machines share no disk have outputs of their own, folders or buckets. Each file is
    compared with its record as it is copied. The folders themselves may be links, but what is in
    them may not.

    Raises
    ------
    ConfigError
        If the address of a bucket breaks a rule, see ``bucket_address``.
    StorageError
        If a folder is missing, a record names a file that its unit cannot have, a file is a link
        or lies behind one, is not that of its record, or cannot be copied.
    """
    names = [record_name(unit) for unit in plan.units]
    own, n_copied = output_of(job.output), 0
    for address in addresses:
        there, here = _shard(address).snapshot(names), own.snapshot(names)
        for unit in plan.units:
            digest = unit_digest(job, unit)
            theirs, ours = read_record(there, unit), read_record(here, unit)
            if theirs is None or not stands(there, theirs, digest):
                continue
            if ours is not None and stands(here, ours, digest):
                continue
            _refuse_names(there, job, unit, theirs)
            for one in theirs.outputs:
                with there.fetched(one.path) as source, own.written(one.path) as target:
                    _copy(source, target, one.sha256)
            own.remove(record_name(unit))
            write_record(own, unit, theirs)
            n_copied += 1
    return n_copied


def _shard(address: str) -> JobOutput:
    if is_url(address):
        return output_of(bucket_address(address))
    if not Path(address).is_dir():
        raise StorageError(f"{address}: is no folder")
    return _ShardFolder(Path(address))


class _ShardFolder(FolderOutput):
    """Results of somebody else: nothing in them is a link, as a shard writes none."""

    def _path(self, name: str) -> Path:
        path = super()._path(name)
        for one in (path, *path.parents):
            if one == self.scratch:
                return path
            if one.is_symlink():
                raise StorageError(
                    f"{one}: is a link: must be a file or a folder below {self.scratch}"
                )
        return path


_BYTES_MAX = {
    "flags": FLAGS_BYTES_MAX,
    "millidecade": DAILY_BYTES_MAX,
    "detect": EVENTS_BYTES_MAX,
}
"""Largest files of products [bytes]; those of others grow with their rates."""


def _refuse_names(there: JobOutput, job: Job, unit: Unit, record: UnitRecord) -> None:
    """Check that a record names files that its unit can have, each once, and of their sizes."""
    products, place = output_products(settings_of(job, unit)), there.place(record_name(unit))
    for one in record.outputs:
        if products.pop(one.path, None) != one.product:
            raise StorageError(
                f"{place}: {one.path} as {printable(one.product)}: is no file "
                f"of {unit.key}, or is named twice"
            )
        if one.size > (most := _BYTES_MAX.get(one.product, one.size)):
            raise StorageError(
                f"{place}: {one.path}: has {one.size} bytes: must have at most {most}"
            )


def _copy(path: Path, target: Path, sha256: str) -> None:
    with whole_file(target, replaces=True, follows_link=False) as part:
        with open_regular(path) as source, part.open("xb") as copy:
            shutil.copyfileobj(source, copy)
        if file_digest(part)[1] != sha256:
            raise StorageError(f"{path}: is not what was computed: its content has changed")
