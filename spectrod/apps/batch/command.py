"""``spectrod batch``: archives of many recordings, computed in units of a day or an hour."""

import argparse
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from spectrod.apps.batch.command_text import LISTED_MAX, counted, hours, print_some
from spectrod.apps.batch.job import Job
from spectrod.apps.batch.job_file import read_job
from spectrod.apps.batch.merge import collect, summarise, write_summary
from spectrod.apps.batch.output import output_of
from spectrod.apps.batch.plan import PLAN_FILE, BatchPlan, read_plan
from spectrod.apps.batch.product_packages import missing_packages, need_packages
from spectrod.apps.batch.run import UnitStatus, statuses_of
from spectrod.apps.batch.shard import Shard, parse_shard
from spectrod.apps.batch.unit import is_claimed
from spectrod.dsp.units import NS_PER_S
from spectrod.lib.errors import BusyError, ConfigError
from spectrod.lib.text import printable

_INCOMPLETE, _INTERRUPTED, _WAITING = 65, 130, 75
_RECOMPUTED_MAX = 10_000
_RECENT_NS = 3600 * NS_PER_S


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    commands = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    init = commands.add_parser(
        "init", help="look at a folder of recordings, and write a JOB.toml that runs"
    )
    _add_init_arguments(init)
    plan = commands.add_parser(
        "plan", help="read the headers of all files, and write the plan of units"
    )
    run = commands.add_parser(
        "run", help="plan what is new, compute the units that have no result yet, and merge"
    )
    status = commands.add_parser("status", help="count units by their state; name the failed ones")
    verify = commands.add_parser("verify", help="check results against their records and inputs")
    merge = commands.add_parser(
        "merge", help="collect the results of shards, and write the summary of the job"
    )
    report = commands.add_parser("report", help="write report.html and report.json of the results")
    for one in (plan, run, status, verify, merge, report):
        one.add_argument("job", metavar="JOB.toml", type=Path)
        one.add_argument("--log-level", metavar="LEVEL", default="warning", help="(%(default)s)")
    for one in (plan, status):
        one.add_argument("--all", action="store_true", help=f"list more than {LISTED_MAX} lines")
    run.add_argument(
        "--jobs", type=int, metavar="N",
        help="processes (with GPUs up to 4 for each; else one for each processor, at most 8)",
    )  # fmt: skip
    run.add_argument(
        "--decoders", type=int, metavar="N",
        help="of each process: decode files beside it (with GPUs the other processors, else 0)",
    )  # fmt: skip
    run.add_argument(
        "--executor", choices=("local", "dask"), default="local", help="where (%(default)s)"
    )
    run.add_argument(
        "--scheduler", metavar="URL", default="",
        help="of a Dask cluster, tls://HOST:PORT (one of this machine)",
    )  # fmt: skip
    run.add_argument(
        "--insecure", action="store_true",
        help="accept a scheduler without TLS: who reaches it can run programs here, too",
    )  # fmt: skip
    run.add_argument(
        "--resource", metavar="NAME=N", action="append", default=[],
        help="what a worker of Dask must have free for a unit, as GPU=1",
    )  # fmt: skip
    run.add_argument("--retry", action="store_true", help="try units that are set aside again")
    run.add_argument(
        "--no-merge", action="store_true",
        help="end with the units: no summary, no report, nothing of merged=",
    )  # fmt: skip
    for one in (run, status):
        one.add_argument(
            "--shard", metavar="I/N", help="only each N-th unit; slurm, kubernetes/N: by variables"
        )
    verify.add_argument(
        "--recompute", type=int, metavar="K", default=0, help="compare K units, computed again"
    )
    verify.add_argument("--seed", type=int, default=0, help="of the choice of these (%(default)s)")
    merge.add_argument(
        "folders", metavar="FOLDER", nargs="*", help="results of other shards, also s3:// and gs://"
    )


def _add_init_arguments(init: argparse.ArgumentParser) -> None:
    init.add_argument("folder", metavar="FOLDER", help="recordings, at any depth")
    init.add_argument(
        "-o", "--output", metavar="JOB.toml", type=Path, default=Path("JOB.toml"),
        help="the file to write, which must not exist (%(default)s)",
    )  # fmt: skip
    init.add_argument(
        "--files-zone", metavar="ZONE", default="",
        help="of times that state none: Europe/Berlin, or local: this machine's (UTC)",
    )  # fmt: skip
    init.add_argument(
        "--time-format", metavar="FORMAT", default="",
        help="how names state times, as %%d%%m%%Y_%%H%%M (as recorders write them)",
    )  # fmt: skip
    init.add_argument(
        "--time-zone", metavar="ZONE", default="", help="of tables and pictures, likewise (UTC)"
    )
    init.add_argument("--log-level", metavar="LEVEL", default="warning", help="(%(default)s)")


def run(args: argparse.Namespace) -> int:
    """Draft, plan, run, check, merge or report a job."""
    from spectrod.daemon.service import configure_logging  # noqa: PLC0415

    configure_logging(args.log_level)
    if args.what == "init":
        from spectrod.apps.batch.command_init import init  # noqa: PLC0415

        init(
            args.folder,
            args.output,
            files_zone=args.files_zone,
            time_format=args.time_format,
            time_zone=args.time_zone,
        )
        return 0
    job = read_job(args.job)
    return _COMMANDS[args.what](args, job)


def _plan(args: argparse.Namespace, job: Job) -> int:
    from spectrod.apps.batch import command_plan  # noqa: PLC0415
    from spectrod.apps.batch.settings_check import check_settings  # noqa: PLC0415

    plan = command_plan.make_and_write(job)
    command_plan.print_findings(job, plan, is_all=args.all)
    if missing := missing_packages(job):
        print(missing)
    command_plan.print_totals(job, plan)
    check_settings(job, plan.units)
    return _INCOMPLETE if plan.is_incomplete else 0


def _run(args: argparse.Namespace, job: Job) -> int:
    from spectrod.apps.batch.command_plan import up_to_date_plan  # noqa: PLC0415
    from spectrod.apps.batch.command_run import make_executor, run_job  # noqa: PLC0415
    from spectrod.apps.batch.settings_check import check_settings  # noqa: PLC0415

    shard = parse_shard(args.shard) if args.shard else Shard()
    merges = not (args.shard or args.no_merge)
    needs_packages = not args.scheduler
    stop = Stop()
    with _interrupts(stop):
        executor = make_executor(args, job, stop)
        if merges and missing_packages(job, for_units=False):
            need_packages(job, for_units=needs_packages)  # all that is missing at once
        # Shards are parts of one plan: none of them makes another.
        plan = _plan_of(job) if args.shard else up_to_date_plan(job, needs_packages=needs_packages)
        check_settings(job, shard.units(plan.units))
        n_done = run_job(
            job,
            shard.units(plan.units),
            executor,
            stop,
            retry=args.retry,
            needs_packages=needs_packages,
        )
    statuses = statuses_of(job, shard.units(plan.units))
    _print_failed(statuses, args)
    print(f"{counted(statuses)}; computed now: {n_done}")
    if n_kept := sum(one.is_set_aside and not one.may_pass for one in statuses):
        print(f"set aside: {n_kept}; run --retry tries them again")
    if stop.is_asked:
        return _INTERRUPTED
    if merges:
        try:
            _write_season(job, plan, statuses)
        except BusyError as error:  # another run of this job has come to its end
            print(printable(str(error)))
    return _exit_code(plan, statuses)


def _status(args: argparse.Namespace, job: Job) -> int:
    shard = parse_shard(args.shard) if args.shard else Shard()
    plan = _plan_of(job)
    statuses = statuses_of(job, shard.units(plan.units))
    _print_failed(statuses, args)
    print(f"{counted(statuses)}{_pace(job, statuses, time.time_ns())}")
    return _exit_code(plan, statuses)


def _pace(job: Job, statuses: Sequence[UnitStatus], now_ns: int) -> str:
    """Return how many units are being computed, and how fast it has been in the last hour."""
    waiting = [one.unit for one in statuses if one.state == "waiting"]
    scratch = output_of(job.output).scratch
    n_computing = sum(is_claimed(scratch, unit) for unit in waiting)
    if not n_computing:
        return ""
    since_ns = now_ns - _RECENT_NS
    recent = [
        one.record for one in statuses if one.record and one.record.finished_utc_ns > since_ns
    ]
    text = f"; {n_computing} computing now"
    if not recent:
        return text
    first_ns = min(one.finished_utc_ns - round(one.costs.wall_s * NS_PER_S) for one in recent)
    sound_s = sum(one.read_samples / one.fs for one in recent if one.is_computed)
    speed = sound_s / max(1.0, (now_ns - first_ns) / NS_PER_S)
    left_s = sum(unit.sound_s for unit in waiting) / speed if speed else 0.0
    return f"{text}, {speed:.0f} x real time, {hours(left_s)} left"


def _verify(args: argparse.Namespace, job: Job) -> int:
    from spectrod.apps.batch import verify  # noqa: PLC0415

    if not 0 <= args.recompute <= _RECOMPUTED_MAX:
        raise ConfigError(f"--recompute {args.recompute}: must be 0 to {_RECOMPUTED_MAX}")
    plan = _plan_of(job)
    statuses = statuses_of(job, plan.units)
    problems: list[str] = []
    for one in statuses:
        if one.record is not None and one.record.is_computed:
            problems += verify.file_problems(job, one.record)
        if not one.unit.refused:
            problems += verify.input_problems(one.unit)
    chosen = verify.choose(statuses, args.recompute, args.seed)
    for one in chosen:
        assert one.record is not None
        problems += verify.recomputed_problems(job, one.unit, one.record)
    if job.merged:
        from spectrod.apps.batch.merged import merged_problems  # noqa: PLC0415 - optional, and slow

        problems += merged_problems(job, statuses)
    for line in dict.fromkeys(problems):
        print(printable(line))
    again = f", {len(chosen)} computed again" if chosen else ""
    print(f"{counted(statuses)}{again}; problems: {len(dict.fromkeys(problems))}")
    return max(74 if problems else 0, _exit_code(plan, statuses))


def _merge(args: argparse.Namespace, job: Job) -> int:
    need_packages(job, for_units=False)
    plan = _plan_of(job)
    n_copied = collect(job, plan, args.folders)
    statuses = statuses_of(job, plan.units)
    print(f"{counted(statuses)}, {n_copied} copied from other folders")
    _write_season(job, plan, statuses)
    return _exit_code(plan, statuses)


def _write_season(job: Job, plan: BatchPlan, statuses: Sequence[UnitStatus]) -> None:
    """Write what is made of all units together: the summary, the report, and ``job.merged``."""
    print(printable(write_summary(job, summarise(job, plan, statuses))))
    _write_report(job, plan, statuses)
    _write_merged(job, statuses)


def _write_merged(job: Job, statuses: Sequence[UnitStatus]) -> None:
    from spectrod.apps.batch.merged import left_over, write_merged  # noqa: PLC0415 - optional, and slow

    for one in write_merged(job, statuses):
        print(
            f"{printable(one.path)}: units: {one.n_written} written, {one.n_kept} unchanged, "
            f"{one.n_missing} not computed"
        )
    for path in left_over(job):
        print(f"{printable(path)}: is of an earlier merge: merged= names it no longer")


def _report(_: argparse.Namespace, job: Job) -> int:
    plan = _plan_of(job)
    statuses = statuses_of(job, plan.units)
    _write_report(job, plan, statuses)
    return _exit_code(plan, statuses)


def _write_report(job: Job, plan: BatchPlan, statuses: Sequence[UnitStatus]) -> None:
    from spectrod.apps.batch.report import make_report, write_report  # noqa: PLC0415
    from spectrod.apps.batch.report_page import html_page  # noqa: PLC0415

    report, pictures = make_report(job, plan, statuses)
    print(printable(write_report(job, report, html_page(report, pictures))))


_COMMANDS = {
    "plan": _plan,
    "run": _run,
    "status": _status,
    "verify": _verify,
    "merge": _merge,
    "report": _report,
}


def _plan_of(job: Job) -> BatchPlan:
    with output_of(job.output).fetched(PLAN_FILE) as path:
        return read_plan(path, job)


# ---- text and exit codes


def _exit_code(plan: BatchPlan, statuses: Sequence[UnitStatus]) -> int:
    """Return the highest code: 75 if units wait, 65 if something of the inputs is left out."""
    codes = [one.exit_code for one in statuses]
    codes += [_WAITING] * any(one.state == "waiting" for one in statuses)
    codes += [_INCOMPLETE] * plan.is_incomplete
    return max(codes, default=0)


def _print_failed(statuses: Sequence[UnitStatus], args: argparse.Namespace) -> None:
    hint = "; the next run tries it again"
    lines = [
        f"{one.unit.key}: {one.state}: {one.reason}{hint if one.may_pass else ''}"
        for one in statuses
        if one.reason
    ]
    print_some(lines, is_all=getattr(args, "all", False), command="status")


class Stop:
    """Whether Ctrl-C was pressed: units in progress are completed, the second time given up."""

    def __init__(self) -> None:
        self.is_asked = False

    def __call__(self) -> bool:
        """Return whether no more units should be started."""
        return self.is_asked

    def ask(self) -> None:
        """Start no more units; the second time raise KeyboardInterrupt."""
        if self.is_asked:
            raise KeyboardInterrupt
        self.is_asked = True
        with suppress(OSError):
            if sys.stderr is not None:
                text = "completing the units in progress; Ctrl-C again gives them up"
                sys.stderr.write(f"\nspectrod: {text}\n")


@contextmanager
def _interrupts(stop: Stop) -> Iterator[None]:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, lambda *_: stop.ask()) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
