"""``spectrod batch run``: computes units, and shows how far it is."""

import argparse
import math
import os
import time
from collections.abc import Callable, Sequence
from functools import partial

from spectrod.analysis.engine import HOST_KINDS
from spectrod.apps.batch.decoding import DECODERS_MAX
from spectrod.apps.batch.executor import Executor
from spectrod.apps.batch.job import Job
from spectrod.apps.batch.local_executor import PROCESSES_MAX, LocalExecutor
from spectrod.apps.batch.output import output_of
from spectrod.apps.batch.plan import Unit
from spectrod.apps.batch.product_packages import need_packages
from spectrod.apps.batch.results import record_name
from spectrod.apps.batch.run import run_units, statuses_of
from spectrod.apps.batch.unit import compute_unit
from spectrod.cli.progress import UnitProgress
from spectrod.cli.record_many import default_jobs
from spectrod.lib.errors import ConfigError, DeviceError
from spectrod.lib.text import printable

GPU_JOBS, GPU_PROCESSORS = 4, 4
"""Processes for a GPU by default, and the processors that each should have."""
DEFAULT_DECODERS_MAX = 15
"""Most decoders of a process by default."""
_LOOK_S = 0.1


def make_executor(args: argparse.Namespace, job: Job, stop: Callable[[], bool]) -> Executor:
    """Return the executor that the flags name.

    Parameters
    ----------
    args : argparse.Namespace
        Arguments of ``batch run``.
    job : Job
        Names the devices.
    stop : callable
        Returns True when no more units should be started.

    Raises
    ------
    ConfigError
        If a flag is out of range, or belongs to another executor.
    UnavailableError
        If Dask is not installed.
    """
    if args.jobs is not None and not 1 <= args.jobs <= PROCESSES_MAX:
        raise ConfigError(f"--jobs {args.jobs}: must be 1 to {PROCESSES_MAX}")
    if args.decoders is not None and not 0 <= args.decoders <= DECODERS_MAX:
        raise ConfigError(f"--decoders {args.decoders}: must be 0 to {DECODERS_MAX}")
    if args.executor == "local":
        of_dask = {
            "--scheduler": args.scheduler,
            "--insecure": args.insecure,
            "--resource": args.resource,
        }
        for flag, value in of_dask.items():
            if value:
                raise ConfigError(f"{flag}: needs --executor dask")
        return _local_executor(args, job, stop)
    if args.scheduler and args.jobs is not None:
        raise ConfigError("--jobs: a cluster with a --scheduler has its own number of workers")
    from spectrod.apps.batch.dask_executor import DaskExecutor  # noqa: PLC0415 - optional, and slow

    resources = dict(_resource(text) for text in args.resource)
    compute = partial(compute_unit, n_decoders=args.decoders or 0)
    n_processes = default_jobs() if args.jobs is None else args.jobs
    return DaskExecutor(
        args.scheduler, n_processes, resources, compute, stop, is_insecure=args.insecure
    )


def _local_executor(args: argparse.Namespace, job: Job, stop: Callable[[], bool]) -> LocalExecutor:
    """Return processes: some for each GPU with decoders beside them, else one a processor."""
    gpus = gpus_of(job)
    n_processes = args.jobs or (default_gpu_jobs(len(gpus)) if gpus else default_jobs())
    n_decoders = args.decoders
    if n_decoders is None:
        n_decoders = default_decoders(n_processes) if gpus else 0
    # One device is not named: NumPy continues where it fails, as in all commands.
    names = gpus if len(gpus) > 1 else [""]
    computes = [partial(compute_unit, device=name, n_decoders=n_decoders) for name in names]
    return LocalExecutor(n_processes, computes, stop)


def gpus_of(job: Job) -> list[str]:
    """Return the numbers of all GPUs like the best one that a job's ``device`` names.

    Empty if the job is computed by NumPy or a processor, or if there is an error, which the units
    report.
    """
    if job.engine in HOST_KINDS:
        return []
    try:
        from spectrod.opencl.devices import list_devices, matching  # noqa: PLC0415 - slow

        found = matching(job.device, list_devices())
    except (DeviceError, ImportError):
        return []
    best = found[0]
    if best.kind not in ("gpu", "accelerator"):
        return []
    return [one.number for one in found if (one.label, one.kind) == (best.label, best.kind)]


def default_gpu_jobs(n_gpus: int) -> int:
    """Return the default number of processes: four for each GPU, if there are the processors."""
    n = min(GPU_JOBS * n_gpus, len(os.sched_getaffinity(0)) // GPU_PROCESSORS)
    return min(max(n, n_gpus), PROCESSES_MAX)


def default_decoders(n_processes: int) -> int:
    """Return how many decoders each of some processes has: the other processors, shared out."""
    n_others = len(os.sched_getaffinity(0)) - n_processes
    return min(max(0, n_others // n_processes), DEFAULT_DECODERS_MAX)


def _resource(text: str) -> tuple[str, float]:
    """Split NAME=NUMBER."""
    name, _, number = text.partition("=")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not name or not 0 < value < math.inf:
        raise ConfigError(f"--resource {text!r}: must be NAME=NUMBER, the number above 0, as GPU=1")
    return name, value


def run_job(
    job: Job,
    units: Sequence[Unit],
    executor: Executor,
    stop: Callable[[], bool],
    *,
    retry: bool,
    needs_packages: bool = True,
) -> int:
    """Compute the units that wait, with a line of progress.

    Units that were set aside for a reason that may have passed are tried again.

    Parameters
    ----------
    job : Job
    units : sequence of Unit
        All units of the shard.
    executor : Executor
        Where units are computed.
    stop : callable
        Returns True when no more units should be started.
    retry : bool
        Also compute all other units that are set aside.
    needs_packages : bool
        Whether units are computed with the packages of this process.

    Returns
    -------
    n_done : int
        Number of units that were computed.

    Raises
    ------
    UnavailableError
        If units wait that need a package which is not installed.
    """
    statuses = statuses_of(job, units)
    again = [one.unit for one in statuses if one.may_pass or (retry and one.is_set_aside)]
    due = [one.unit for one in statuses if one.state == "waiting" or one.unit in again]
    if due and needs_packages:
        need_packages(job, for_merge=False)
    for unit in again:
        output_of(job.output).remove(record_name(unit))
    of_key = {unit.key: unit for unit in due}
    failed: set[str] = set()
    n_done, done_s = 0, 0.0

    def sleep(seconds: float) -> None:
        end_s = time.monotonic() + seconds
        while not stop() and (left_s := end_s - time.monotonic()) > 0:
            time.sleep(min(left_s, _LOOK_S))

    total_s = sum(unit.sound_s for unit in due)
    with UnitProgress(len(due), total_s) as progress:
        progress.update(0, 0.0)
        for record in run_units(job, executor, due, sleep=sleep):
            if record.is_computed:
                failed.discard(record.key)
                n_done += 1
                done_s += of_key[record.key].sound_s
            else:
                failed.add(record.key)
                progress.print(f"spectrod: {record.key}: {printable(record.reason)}\n")
            progress.update(n_done, done_s, len(failed))
    return n_done
