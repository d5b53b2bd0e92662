r"""The kernels on OpenCL drivers side by side: those of this system, and of others in containers.

    python benchmarks/bench_drivers.py --json drivers.json
    python benchmarks/bench_drivers.py --python .venv/bin/python \
        --python 'systemd-nspawn --quiet --directory=/var/tmp/deb13 /opt/spectrod/bin/python'

Each system is a command that starts a Python with spectrod in it, by default this one. In every
round each of them runs ``spectrod bench fft`` and ``spectrod bench stft`` without peers, in turns,
so that all meet the same machine. The best round counts; the report has every round.
"""

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from _report import new_report, write_report

_SIZES = (512, 1024, 4096)
_RATES = {"fft": ("gflop_per_s", "GFLOP/s"), "stft": ("gs_per_s", "GS/s")}
_KEYS = ("n", "kind", "precision", "batch", "hop", "product", "what")
# The report goes to the standard output of that system, whose files are not here.
_PROGRAM = """
import contextlib, pathlib, sys, tempfile
from spectrod.cli import main
with tempfile.TemporaryDirectory() as folder:
    file = pathlib.Path(folder, "report.json")
    with contextlib.redirect_stdout(sys.stderr):
        code = main([*sys.argv[1:], "--json", str(file)])
    print(file.read_text())
sys.exit(code)
"""


def main() -> None:
    """Measure, print a table for each benchmark and optionally store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", action="append", metavar="COMMAND", help="a system's Python")
    parser.add_argument("--size", type=int, nargs="+", default=_SIZES, metavar="N")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    report = new_report("drivers")
    for what, (field, unit) in _RATES.items():
        found: dict[tuple[Any, ...], dict[str, Any]] = {}
        for _ in range(args.rounds):
            for number, command in enumerate(args.python or [shlex.quote(sys.executable)], 1):
                for case, rate in _measured(command, what, field, args.size):
                    new = {"system": number, **case, "unit": unit, "rounds": []}
                    found.setdefault((number, *case.values()), new)["rounds"].append(rate)
        report["results"] += found.values()
        _print_table(f"{what}, {unit}", list(found.values()))
        if args.json:
            write_report(report, args.json)


def _measured(
    command: str, what: str, field: str, sizes: list[int]
) -> Iterator[tuple[dict[str, Any], float]]:
    """Run a benchmark on all devices of a system; yield each case of spectrod and its rate."""
    size = [str(n) for n in sizes]
    line = [*shlex.split(command), "-c", _PROGRAM, "bench", what, "--size", *size, "--peer"]
    text = subprocess.run(line, check=True, stdout=subprocess.PIPE, text=True).stdout
    for device in json.loads(text)["devices"]:
        about = {
            "benchmark": what,
            "driver": device["device"]["driver"],
            "device": device["device"]["label"],
        }
        for row in device["rows"]:
            yield about | {key: row[key] for key in _KEYS if key in row}, row[field]


def _print_table(title: str, results: list[dict[str, Any]]) -> None:
    """Print a line for each case, with a column for each driver of each system."""
    columns = list(dict.fromkeys((one["system"], one["driver"]) for one in results))
    cases: dict[str, dict[tuple[int, str], float]] = {}
    for one in results:
        case = " ".join(str(one[key]) for key in _KEYS if key in one)
        cases.setdefault(case, {})[one["system"], one["driver"]] = max(one["rounds"])
    heads = [f"{number}: {driver}" for number, driver in columns]
    print(f"\n{title:44}" + "".join(f"{head:>16}" for head in heads))
    for case, rates in cases.items():
        print(f"{case:44}" + "".join(f"{rates.get(column, 0.0):16.3g}" for column in columns))


if __name__ == "__main__":
    main()
