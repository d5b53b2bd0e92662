"""The command ``python -m spectrod.apps.bench.fault_soak``."""

import argparse
import json
import math
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from spectrod.apps.bench.fault_soak.run import (
    FAULTS,
    FLAT_S,
    HOUR_BYTES,
    SMALL_DISK_BYTES,
    FaultRun,
    account,
)
from spectrod.apps.bench.fault_soak.site import SoakSite
from spectrod.apps.bench.fault_soak.system_faults import load_analyses
from spectrod.apps.bench.report import new_report
from spectrod.lib.errors import SpectrodError

HOURS_MAX = 24.0
"""Longest run [h]: the numbers of the samples last for longer."""
_SECONDS_PER_H = 3600.0


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return 1 if there was a problem."""
    args = _parser().parse_args(arguments)
    if not (0 < args.hours <= HOURS_MAX and math.isfinite(args.hours)):
        print(f"--hours {args.hours:g}: must be above 0, at most {HOURS_MAX:g}", file=sys.stderr)
        return 2
    folder = Path(tempfile.mkdtemp(prefix="spectrod-soak-"))
    try:
        result = _soak(folder, args)
    except SpectrodError as error:
        print(f"soak: {error}", file=sys.stderr)
        return error.exit_code
    finally:
        if args.keep:
            print(f"kept: {folder}", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    report = new_report("fault_soak") | {"hours": args.hours, "seed": args.seed} | result
    if args.json:
        args.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    print("\n".join(summary(report)))
    return 1 if report["problems"] else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fault_soak", description=__doc__)
    parser.add_argument("--hours", type=float, default=1.0, metavar="N", help="(%(default)s)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="(%(default)s)")
    engines = ("auto", "opencl", "numpy")
    parser.add_argument("--engine", choices=engines, default="auto", help="(%(default)s)")
    names = ", ".join(fault.name for fault in FAULTS)
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help=f"beginning of: {names}"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report")
    parser.add_argument("--keep", action="store_true", help="keep recordings and log")
    return parser


def _soak(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    small_bytes = SMALL_DISK_BYTES + round(args.hours * HOUR_BYTES)
    with SoakSite(folder, small_bytes, args.engine) as site:
        run = FaultRun(site, args.seed, lambda line: print(line, flush=True))
        if args.engine != "numpy" and args.hours * _SECONDS_PER_H >= FLAT_S:
            load_analyses(site)
            site.begin_again()
        run.inject_until(site.begin_s + args.hours * _SECONDS_PER_H, args.only)
        result = account(site, run)
        if args.keep and site.has_small_disk:
            # Its file system goes with the site.
            shutil.copytree(site.small, folder / "small", dirs_exist_ok=True)
    return result


def summary(report: dict[str, Any]) -> list[str]:
    """Return the report as text.

    Parameters
    ----------
    report : dict
        What ``account`` returned, with ``hours`` and ``seed``.
    """
    listened, resources = report["subscriber"], report["resources"]
    n_faults = sum(report["faults"].values())
    rows = f"{listened['rows']} rows, {listened['missed']} missed and counted"
    memory = f"memory {resources['rss_more_bytes'] / 2**20:+.1f} MiB"
    lines = [
        f"{report['seconds']:.0f} s, seed {report['seed']}, {n_faults} faults",
        *(f"  {n:5}  {name}" for name, n in sorted(report["faults"].items())),
        *(f"  left out: {name}: {why}" for name, why in sorted(report["left_out"].items())),
        f"exit code {report['exit_code']}, stopped in {report['stop_s']} s",
        f"subscriber: {rows}, {listened['uncounted']} uncounted",
        f"{memory}, descriptors {resources['descriptors_more']:+g} after the warm-up",
    ]
    for name, one in report["recordings"].items():
        sound = one.get("sound", {})
        lines.append(
            f"recording {name}: {one['rows']['rows']} rows, {sound.get('samples', 0)} samples, "
            f"{sound.get('missing', 0)} missing, {one.get('lost_samples', 0)} counted as lost"
        )
    problems = report["problems"]
    return [*lines, *(f"PROBLEM: {text}" for text in problems), f"{len(problems)} problems"]


if __name__ == "__main__":
    sys.exit(main())
