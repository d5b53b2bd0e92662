"""One unit of a job: from pieces of files to its products and its record."""

import fcntl
import hashlib
import os
import platform
import resource
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache, partial
from pathlib import Path

from spectrod.analysis.engine import Engine
from spectrod.analysis.engine_pool import KeptEngines
from spectrod.apps.batch.decoding import Decoders
from spectrod.apps.batch.folders import make_folder, open_lock
from spectrod.apps.batch.job import Job, ProductName
from spectrod.apps.batch.output import JobOutput, output_of
from spectrod.apps.batch.plan import Unit
from spectrod.apps.batch.products import UnitProducts, output_products
from spectrod.apps.batch.results import (
    PROBLEMS_MAX,
    STATE_FOLDER,
    OutputFile,
    UnitCosts,
    UnitRecord,
    read_record,
    record_name,
    write_record,
)
from spectrod.apps.batch.unit_samples import UnitSamples
from spectrod.apps.batch.unit_settings import SOFTWARE, UnitSettings, settings_of
from spectrod.lib.errors import BusyError, ConfigError, SpectrodError, storage_errors
from spectrod.lib.regular_files import open_regular
from spectrod.lib.text import printable

INCOMPLETE = 65
_KIB = 1024


@cache
def _engines() -> KeptEngines:
    """Return the engines of this process, which its units use one after the other."""
    return KeptEngines()


@cache
def _decoders(n: int) -> Decoders:
    """Return the decoders of this process."""
    return Decoders(n)


def compute_unit(job: Job, unit: Unit, *, device: str = "", n_decoders: int = 0) -> UnitRecord:
    """Compute a unit, give its files their names, and write its record.

    A result that stands is returned unchanged. The files depend on the job, the samples and the
    program alone, to the bit. All are written into a folder of their own, get their names when all
    are complete, and the record follows; so whenever the process is killed, no file under a final
    name is incomplete, and a unit with a record has all its files.

    Parameters
    ----------
    job : Job
        What to compute; ``job.output`` is made if it is a folder that does not exist.
    unit : Unit
        Of the job's plan.
    device : str
        Device to use; by default the best one that ``job.device`` names.
    n_decoders : int
        Processes that decode files beside this one, see ``Decoders``; 0: this one does.

    Returns
    -------
    record : UnitRecord
        Its state is "failed" if a ``SpectrodError`` ended it; attempts are counted by the record
        that was there before.
    """
    try:
        settings = settings_of(job, unit)
        digest, output = _digest(settings), output_of(job.output)
        with _claimed(output.scratch, unit) as parts:
            before = read_record(output, unit)
            if before is not None and stands(output, before, digest):
                return before
            output.prepare(output_products(settings))
            open_engine = partial(_engines().open, job.engine, device or job.device)
            decoders = _decoders(n_decoders) if n_decoders else None
            return _compute(settings, digest, parts, before, open_engine, decoders)
    except SpectrodError as error:
        return failed(job, unit, error)


def _digest(settings: UnitSettings) -> str:
    cal_id = ",".join(
        " ".join([one.cal_id, *one.validity.attributes.values()]) if one else ""
        for one in settings.calibrations
    )
    return settings.unit.digest(settings.job, cal_id)


def unit_digest(job: Job, unit: Unit) -> str:
    """Return what decides whether a result stands, see ``Unit.digest``.

    It is empty if the settings do not fit the files, so that the unit fails.
    """
    try:
        return _digest(settings_of(job, unit))
    except SpectrodError:
        return ""


def stands(output: JobOutput, record: UnitRecord, digest: str) -> bool:
    """Return whether a result was computed from the same, and its files have their sizes."""
    if record.digest != digest or not record.is_computed:
        return False
    return all(output.size(one.path) == one.size for one in record.outputs)


def failed(job: Job, unit: Unit, error: SpectrodError) -> UnitRecord:
    """Return the record of a failed attempt, and write it, if the disk takes it.

    Settings that do not fit the samples use up all attempts: another one would fail, too. That
    another process computes the unit is not written: the record is that process's.
    """
    digest = unit_digest(job, unit)
    attempts = 0
    with suppress(SpectrodError):
        before = read_record(output_of(job.output), unit)
        if before is not None and before.state == "failed" and before.digest == digest:
            attempts = before.attempts
    needed = job.attempts if isinstance(error, ConfigError) else 0
    record = UnitRecord(
        deployment=unit.deployment,
        unit=unit.name,
        digest=digest,
        state="failed",
        begin_utc_ns=unit.begin_utc_ns,
        exit_code=error.exit_code,
        reason=printable(str(error)),
        attempts=max(attempts + 1, needed),
        fs=unit.fs,
        software=SOFTWARE,
        host=platform.node(),
        finished_utc_ns=time.time_ns(),
    )
    if not isinstance(error, BusyError):
        with suppress(SpectrodError):  # a full disk: the next run tries it again
            write_record(output_of(job.output), unit, record)
    return record


def _compute(
    settings: UnitSettings,
    digest: str,
    parts: Path,
    before: UnitRecord | None,
    open_engine: Callable[[], Engine],
    decoders: Decoders | None,
) -> UnitRecord:
    start_s, start_cpu_s = time.perf_counter(), _processor_s(decoders)
    unit, output = settings.unit, output_of(settings.job.output)
    samples = UnitSamples(unit, settings.deployment.select, decoders)
    samples.check()
    products = UnitProducts(settings, parts, samples.layout, open_engine())
    try:
        with closing(samples.blocks()) as blocks:
            for block in blocks:
                products.write(block)
        samples.check_again()
        end_s = time.perf_counter()
        made = products.finish()
    except BaseException:
        products.abort()
        raise
    problems = (*samples.problems, *products.problems)
    outputs = _publish(settings, output, made, before)
    now_s = time.perf_counter()
    record = UnitRecord(
        deployment=unit.deployment,
        unit=unit.name,
        digest=digest,
        state="partial" if samples.problems else "done",
        begin_utc_ns=unit.begin_utc_ns,
        exit_code=INCOMPLETE if samples.problems else 0,
        reason=printable(problems[0]) if problems else "",
        problems=tuple(printable(line) for line in problems[:PROBLEMS_MAX]),
        outputs=outputs,
        fs=unit.fs,
        read_samples=samples.read_samples,
        missing_samples=samples.missing_samples,
        gaps=samples.gaps,
        engine=products.engine,
        findings=products.findings,
        software=SOFTWARE,
        host=platform.node(),
        finished_utc_ns=time.time_ns(),
        costs=UnitCosts(
            wall_s=round(now_s - start_s, 3),
            processor_s=round(_processor_s(decoders) - start_cpu_s, 3),
            read_s=round(samples.read_s, 3),
            analyse_s=round(end_s - start_s - samples.read_s, 3),
            write_s=round(now_s - end_s, 3),
            memory_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIB,
        ),
    )
    write_record(output, unit, record)
    return record


def _processor_s(decoders: Decoders | None) -> float:
    return time.process_time() + (decoders.processor_s if decoders is not None else 0.0)


# ---- files


@contextmanager
def _claimed(folder: Path, unit: Unit) -> Iterator[Path]:
    """Claim a unit for this process; yield the empty folder of its unfinished files.

    The lock ends with the process, however that ends; so a folder found here was left behind.

    Raises
    ------
    BusyError
        If another process computes the unit.
    StorageError
        If the folders cannot be made, or one of them is a link.
    """
    state = make_folder(folder, STATE_FOLDER, "parts", unit.deployment)
    parts, lock = state / unit.name, open_lock(state, f"{unit.name}.lock")
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BusyError("another process computes it") from error
        with storage_errors(parts):
            shutil.rmtree(parts, ignore_errors=True)
            parts.mkdir()
        try:
            yield parts
        finally:
            shutil.rmtree(parts, ignore_errors=True)
    finally:
        os.close(lock)


def is_claimed(folder: Path, unit: Unit) -> bool:
    """Return whether a process computes a unit now."""
    state = folder / STATE_FOLDER / "parts" / unit.deployment
    if not (state / unit.name).is_dir():
        return False
    try:
        lock = os.open(state / f"{unit.name}.lock", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def _publish(
    settings: UnitSettings,
    output: JobOutput,
    made: dict[ProductName, list[Path]],
    before: UnitRecord | None,
) -> tuple[OutputFile, ...]:
    """Give complete files their names; remove the files of an earlier result that are no more."""
    unit = settings.unit
    outputs, files = [], {}
    for product, paths in made.items():
        for path in paths:
            name = path.name
            if product == "millidecade":
                # Of an hour, too, the writer's name has the day alone.
                name = name.replace(f"_{unit.name[:8]}", f"_{unit.name}")
            relative = settings.result_path(product, name)
            files[relative] = path
            outputs.append(_output_file(product, path, relative))
    if before is None or before.is_computed:  # that of a failure counts the attempts
        output.remove(record_name(unit))
    output.publish(files)
    for old in before.outputs if before is not None else ():
        if old.path not in files:
            output.remove(old.path)
    return tuple(outputs)


def _output_file(product: ProductName, path: Path, relative: str) -> OutputFile:
    size, sha256 = file_digest(path)
    return OutputFile(product=product, path=relative, size=size, sha256=sha256)


def file_digest(path: Path) -> tuple[int, str]:
    """Return a file's size [bytes] and SHA-256; raises StorageError."""
    with storage_errors(path), open_regular(path) as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
        return os.fstat(file.fileno()).st_size, found
