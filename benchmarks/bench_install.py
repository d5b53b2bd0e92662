"""What an installation costs: megabytes of each extra, and the time of imports.

    python benchmarks/bench_install.py [--before TREE] [--rounds N] [--json FILE]

Sizes are those of the files that pip installed here, of an extra's packages with all that they need
and spectrod itself does not; an extra that is not installed is left out. Compiled modules of Python
are not counted. Times are user and system time of a process with nothing but ``import spectrod``,
and of ``spectrod --help``, medians. With ``--before``, another tree of spectrod, as one of
``git worktree``, is timed in turns with this one.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from _report import new_report, write_report
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_TREE = Path(__file__).parents[1]
_CODES = {
    "python": "pass",
    "import spectrod": "import spectrod",
    "spectrod --help": "import sys; from spectrod.cli import main; sys.exit(main(['--help']))",
}


def main() -> None:
    """Measure, print and optionally store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", metavar="TREE", type=Path)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    report = new_report("installation")
    report["mb"] = sizes = dict(_sizes())
    for name, mb in sizes.items():
        print(f"{name}: {mb} MB")
    trees = {"now": _TREE} | ({"before": args.before} if args.before else {})
    report["cpu_ms"] = times = _times(trees, args.rounds)
    for what, of_tree in times.items():
        print(f"{what}: {', '.join(f'{tree} {ms} ms' for tree, ms in of_tree.items())}")
    if args.json:
        write_report(report, args.json)


# ---- sizes


def _sizes() -> Iterator[tuple[str, float]]:
    """Yield each extra with its megabytes, that of spectrod's own packages first."""
    base = set(_needed("spectrod", ()))
    yield "spectrod", _megabytes(base - {"spectrod"})
    for extra in sorted(metadata.metadata("spectrod").get_all("Provides-Extra") or ()):
        try:
            yield extra, _megabytes(set(_needed("spectrod", (extra,))) - base)
        except metadata.PackageNotFoundError as error:
            print(f"{extra}: left out: {error.name} is not installed")


def _needed(name: str, extras: Iterable[str]) -> set[str]:
    """Return a package and all that it needs with some of its extras, by their canonical names."""
    found: set[tuple[str, tuple[str, ...]]] = set()
    waiting = [(canonicalize_name(name), tuple(extras))]
    while waiting:
        one = waiting.pop()
        if one in found:
            continue
        found.add(one)
        for text in metadata.requires(one[0]) or ():
            wanted = Requirement(text)
            chosen = [{"extra": extra} for extra in ("", *one[1])]
            if wanted.marker is None or any(wanted.marker.evaluate(each) for each in chosen):
                waiting.append((canonicalize_name(wanted.name), tuple(sorted(wanted.extras))))
    return {package for package, _ in found}


def _megabytes(packages: Iterable[str]) -> float:
    """Return the size of the files of packages, without compiled modules of Python."""
    n_bytes = 0
    for package in packages:
        for file in metadata.files(package) or ():
            path = Path(str(file.locate()))
            if path.suffix != ".pyc" and path.is_file():
                n_bytes += path.stat().st_size
    return round(n_bytes / 1e6, 1)


# ---- times


def _times(trees: dict[str, Path], n_rounds: int) -> dict[str, dict[str, Any]]:
    """Return the median of each code's processor time in each tree [ms]."""
    found: dict[tuple[str, str], list[float]] = {}
    for number in range(n_rounds + 1):
        for what, code in _CODES.items():
            for name, tree in trees.items():
                used_s = _used_s(code, tree)
                if number:  # the first one compiles modules
                    found.setdefault((what, name), []).append(used_s)
    return {
        what: {name: round(1e3 * statistics.median(found[what, name]), 1) for name in trees}
        for what in _CODES
    }


def _used_s(code: str, tree: Path) -> float:
    environment = os.environ | {"PYTHONPATH": str(tree)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", code]
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, cwd=tree, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
