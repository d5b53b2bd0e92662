"""``spectrod batch``: archives of many recordings, computed in units of a day or an hour."""

import argparse
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from spectrod.apps.batch.folders import make_folder
from spectrod.apps.batch.job import Job
from spectrod.apps.batch.job_file import read_job
from spectrod.apps.batch.merge import collect, summarise, write_summary
from spectrod.apps.batch.plan import PLAN_FILE, BatchPlan, read_plan, write_plan
from spectrod.apps.batch.product_packages import missing_for_merge, missing_for_units
from spectrod.apps.batch.run import UnitStatus, status_of
from spectrod.apps.batch.shard import Shard, parse_shard
from spectrod.apps.batch.unit import is_claimed
from spectrod.dsp.units import NS_PER_S
from spectrod.lib.errors import ConfigError
from spectrod.lib.text import printable

LISTED_MAX = 20
"""Most findings and failed units that are printed without ``--all``."""

_A_UNIT = {"day": "a day", "hour": "an hour"}
_INCOMPLETE, _INTERRUPTED, _WAITING = 65, 130, 75
_RECOMPUTED_MAX = 10_000
_RECENT_NS = 3600 * NS_PER_S


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    commands = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    plan = commands.add_parser(
        "plan", help="read the headers of all files, and write the plan of units"
    )
    run = commands.add_parser("run", help="compute the units that have no result yet")
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
    for one in (run, status):
        one.add_argument(
            "--shard", metavar="I/N", help="only each N-th unit; slurm, kubernetes/N: by variables"
        )
    verify.add_argument(
        "--recompute", type=int, metavar="K", default=0, help="compare K units, computed again"
    )
    verify.add_argument("--seed", type=int, default=0, help="of the choice of these (%(default)s)")
    merge.add_argument(
        "folders", metavar="FOLDER", type=Path, nargs="*", help="results of other shards"
    )


def run(args: argparse.Namespace) -> int:
    """Plan, run, check, merge or report a job."""
    from spectrod.daemon.service import configure_logging  # noqa: PLC0415

    configure_logging(args.log_level)
    job = read_job(args.job)
    return _COMMANDS[args.what](args, job)


def _plan(args: argparse.Namespace, job: Job) -> int:
    from spectrod.apps.batch.planner import plan_job  # noqa: PLC0415

    plan = plan_job(job)
    path = make_folder(Path(job.output)) / PLAN_FILE
    write_plan(path, plan)
    lines = [f"{one.deployment}: {one.kind}: {one.text}" for one in plan.findings]
    lines += [f"{unit.key}: refused: {unit.refused}" for unit in plan.units if unit.refused]
    with_units = {unit.deployment for unit in plan.units}
    lines += [
        f"{one.name}: no units: none of its files has sound that counts, from begin to end"
        for one in job.deployments
        if one.name not in with_units
    ]
    _print_some(lines, args)
    for line in (*missing_for_units(job), *missing_for_merge(job)):
        print(line)
    head = plan.head
    print(
        f"{printable(path)}: {head.n_units} units of {_A_UNIT[head.unit]}, {head.n_pieces} pieces, "
        f"{_hours(head.sound_s)} of sound, about {_hours(head.cost_s)} of processor time"
    )
    return _INCOMPLETE if plan.is_incomplete else 0


def _run(args: argparse.Namespace, job: Job) -> int:
    from spectrod.apps.batch.command_run import make_executor, run_job  # noqa: PLC0415

    shard = parse_shard(args.shard) if args.shard else Shard()
    plan = read_plan(_plan_path(job), job)
    stop = Stop()
    with _interrupts(stop):
        executor = make_executor(args, job, stop)
        run_job(
            job,
            shard.units(plan.units),
            executor,
            stop,
            retry=args.retry,
            needs_packages=not args.scheduler,
        )
    statuses = _statuses(job, shard.units(plan.units))
    _print_failed(statuses, args)
    print(_counted(statuses))
    if n_kept := sum(one.is_set_aside and not one.may_pass for one in statuses):
        print(f"set aside: {n_kept}; run --retry tries them again")
    if not (args.shard or stop.is_asked):
        _write_report(job, plan, statuses)
    return _INTERRUPTED if stop.is_asked else _exit_code(plan, statuses)


def _status(args: argparse.Namespace, job: Job) -> int:
    shard = parse_shard(args.shard) if args.shard else Shard()
    plan = read_plan(_plan_path(job), job)
    statuses = _statuses(job, shard.units(plan.units))
    _print_failed(statuses, args)
    print(f"{_counted(statuses)}{_pace(job, statuses, time.time_ns())}")
    return _exit_code(plan, statuses)


def _pace(job: Job, statuses: Sequence[UnitStatus], now_ns: int) -> str:
    """Return how many units are being computed, and how fast it has been in the last hour."""
    waiting = [one.unit for one in statuses if one.state == "waiting"]
    n_computing = sum(is_claimed(Path(job.output), unit) for unit in waiting)
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
    return f"{text}, {speed:.0f} x real time, {_hours(left_s)} left"


def _verify(args: argparse.Namespace, job: Job) -> int:
    from spectrod.apps.batch import verify  # noqa: PLC0415

    if not 0 <= args.recompute <= _RECOMPUTED_MAX:
        raise ConfigError(f"--recompute {args.recompute}: must be 0 to {_RECOMPUTED_MAX}")
    plan = read_plan(_plan_path(job), job)
    statuses = _statuses(job, plan.units)
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
    print(f"{_counted(statuses)}{again}; problems: {len(dict.fromkeys(problems))}")
    return max(74 if problems else 0, _exit_code(plan, statuses))


def _merge(args: argparse.Namespace, job: Job) -> int:
    plan = read_plan(_plan_path(job), job)
    n_copied = collect(job, plan, args.folders)
    statuses = _statuses(job, plan.units)
    path = write_summary(job, summarise(job, plan, statuses))
    print(f"{printable(path)}: {_counted(statuses)}, {n_copied} copied from other folders")
    _write_report(job, plan, statuses)
    _write_merged(job, statuses)
    return _exit_code(plan, statuses)


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
    plan = read_plan(_plan_path(job), job)
    statuses = _statuses(job, plan.units)
    _write_report(job, plan, statuses)
    return _exit_code(plan, statuses)


def _write_report(job: Job, plan: BatchPlan, statuses: Sequence[UnitStatus]) -> None:
    from spectrod.apps.batch.report import make_report, write_report  # noqa: PLC0415
    from spectrod.apps.batch.report_page import html_page  # noqa: PLC0415

    report, averages = make_report(job, plan, statuses)
    print(printable(write_report(job, report, html_page(report, averages))))


_COMMANDS = {
    "plan": _plan,
    "run": _run,
    "status": _status,
    "verify": _verify,
    "merge": _merge,
    "report": _report,
}


# ---- text and exit codes


def _plan_path(job: Job) -> Path:
    return Path(job.output) / PLAN_FILE


def _statuses(job: Job, units: Sequence[object]) -> list[UnitStatus]:
    return [status_of(job, unit) for unit in units]  # type: ignore[arg-type]


def _exit_code(plan: BatchPlan, statuses: Sequence[UnitStatus]) -> int:
    """Return the highest code: 75 if units wait, 65 if something of the inputs is left out."""
    codes = [one.exit_code for one in statuses]
    codes += [_WAITING] * any(one.state == "waiting" for one in statuses)
    codes += [_INCOMPLETE] * plan.is_incomplete
    return max(codes, default=0)


def _counted(statuses: Sequence[UnitStatus]) -> str:
    counts = {
        state: sum(one.state == state for one in statuses)
        for state in ("done", "partial", "failed", "waiting")
    }
    text = ", ".join(f"{n} {state}" for state, n in counts.items() if n) or "none"
    records = [one.record for one in statuses if one.record is not None and one.record.is_computed]
    processor_s = sum(one.costs.processor_s for one in records)
    sound_s = sum(one.read_samples / one.fs for one in records)
    speed = f", {sound_s / processor_s:.0f} x real time of a core" if processor_s else ""
    return f"units: {text} of {len(statuses)}; {_hours(sound_s)} of sound{speed}"


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds:.0f} s"


def _print_failed(statuses: Sequence[UnitStatus], args: argparse.Namespace) -> None:
    hint = "; the next run tries it again"
    lines = [
        f"{one.unit.key}: {one.state}: {one.reason}{hint if one.may_pass else ''}"
        for one in statuses
        if one.reason
    ]
    _print_some(lines, args)


def _print_some(lines: Sequence[str], args: argparse.Namespace) -> None:
    shown = lines if getattr(args, "all", False) else lines[:LISTED_MAX]
    for line in shown:
        print(printable(line))
    if len(lines) > len(shown):
        command = "plan" if args.what == "plan" else "status"
        print(f"and {len(lines) - len(shown)} more ({command} --all lists them)")


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
