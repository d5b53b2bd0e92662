"""The FFT engine on a large GPU: untuned and tuned, beside cuFFT in the same process.

Self-contained: run it from a checkout with pyopencl installed, ``python benchmarks/h200_fft.py
OUT.json``. It writes the report after each transform, so that an interrupted run leaves what it
has; what the tuner found goes to ``OUT.wisdom.json``, valid for any driver of such a device. cuFFT
is measured where CuPy is installed, pytest is run where paths are given. ``--small`` is for a
machine that only has to show that the script works.
"""

import argparse
import importlib.metadata
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from _report import Report, describe_device, new_report, run_tests, write_report

from spectrod.apps.bench import transforms
from spectrod.apps.bench.peers import PreparedRun, choose_peers
from spectrod.apps.bench.tables import TRANSFORMS
from spectrod.cli.tables import heading, line
from spectrod.fft import reference, wisdom
from spectrod.fft.arena import Arena
from spectrod.fft.choice import untuned
from spectrod.fft.select import families, make_stage
from spectrod.fft.stage import Stage, TransformSpec
from spectrod.fft.tuner import tune
from spectrod.lib.errors import SpectrodError, UnavailableError
from spectrod.opencl.context import Context
from spectrod.opencl.devices import choose

PARTS = ("c2c/single", "r2c/single", "c2r/single", "c2c/double")
SIZES = (
    *(1 << k for k in (6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 18, 20, 22, 24)),
    *(1000, 1200, 1920, 2000, 4800, 6000),
)
SMALL_SIZES = (64, 1000, 1024)
VERSIONS = ("pyopencl", "numpy", "scipy", "cupy-cuda12x", "cupy-cuda13x", "torch")


def versions() -> Report:
    """Versions of the libraries that are installed."""
    found = {}
    for name in VERSIONS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def untuned_stage(context: Context, spec: TransformSpec) -> Stage:
    """Build the choice that is made without any saved result."""
    family = next(f for f in families(context.device).values() if f.supports(spec, context.device))
    return family.build(context, spec, untuned(family, spec, context.device))


class Bench:
    """Measures one transform after the other and keeps the report."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.device = choose(arguments.device)
        self.context = Context(self.device, profiling=True)
        self.report = new_report("h200_fft")
        self.report |= {"device": describe_device(self.device), "versions": versions()}
        self.report["points"] = arguments.points
        self.peers = [name for name in ("cuFFT",) if name in choose_peers(None, self.device)]

    def run_part(self, part: str, deadline: float) -> None:
        """Measure all sizes of a kind in a precision."""
        kind, _, precision = part.partition("/")
        arena = Arena(self.context, precision, self.arguments.points, max(self.arguments.sizes))
        print(heading(TRANSFORMS), flush=True)
        for n in self.arguments.sizes:
            if time.monotonic() > deadline:
                print("out of time", flush=True)
                return
            for row in self.rows(arena, TransformSpec(n, kind, kind == "c2r", precision)):
                self.report["results"].append(row)
                print(line(TRANSFORMS, row), flush=True)
            self.keep()

    def rows(self, arena: Arena, spec: TransformSpec) -> Iterator[Report]:
        """Measure cuFFT, ours untuned and ours tuned in turns."""
        work = transforms.work_of(arena, spec)
        place = {"n": spec.n, "kind": spec.kind, "precision": spec.precision}
        prepared: dict[str, tuple[PreparedRun, float]] = {}
        extra: dict[str, Report] = {}
        for name in self.peers:
            try:
                prepared[name] = transforms.prepare_peer(name, work.strict(), self.device)
            except UnavailableError as reason:
                yield place | {"what": name, "failed": str(reason)}
        try:
            prepared["untuned"] = self.prepared(arena, untuned_stage(self.context, spec))
            if self.arguments.tune:
                extra["tuned"] = self.tune(arena, spec)
            if wisdom.lookup(self.device, spec):
                prepared["tuned"] = self.prepared(arena, make_stage(self.context, spec))
        except SpectrodError as error:
            yield place | {"what": "spectrod", "failed": str(error).splitlines()[0]}
        for row in transforms.measure(arena, work, prepared) if prepared else ():
            yield row | extra.get(row["what"], {})

    def prepared(self, arena: Arena, stage: Stage) -> tuple[PreparedRun, float]:
        """Make a stage ready; a wrong one is an error."""
        error = arena.error(stage)
        if not error <= reference.error_limit(stage.spec):
            raise SpectrodError(f"{stage.spec}: relative L2 error {error:.1e}")
        run = transforms.prepare_stage(arena, stage)
        run.seconds()  # warms up
        return run, error

    def tune(self, arena: Arena, spec: TransformSpec) -> Report:
        """Tune, save the winner, and say how the search went."""
        outcome = tune(arena, families(self.device), spec, self.arguments.tune)
        if outcome.result:
            wisdom.save(self.device, [outcome.result])
            any_driver = replace(self.device, driver=wisdom.ANY_DRIVER)
            wisdom.save(
                any_driver, [outcome.result], self.arguments.out.with_suffix(".wisdom.json")
            )
        found = outcome.result
        return {
            "family": found and found.family,
            "params": found and found.params,
            "tried": outcome.n_tried,
            "refused": outcome.n_refused,
            "wrong": outcome.dropped,
        }

    def keep(self) -> None:
        """Write what there is so far."""
        write_report(self.report, self.arguments.out)


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="report to write, JSON")
    parser.add_argument("--device", default="", help="part of PLATFORM/DEVICE, or an index")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    parser.add_argument("--points", type=int, default=1 << 26, help="values a batch")
    parser.add_argument("--tune", type=float, default=0.0, help="seconds a transform")
    parser.add_argument("--tests", nargs="+", default=[], help="paths to run pytest on")
    parser.add_argument("--limit", type=float, default=330.0, help="seconds; no row begins later")
    parser.add_argument("--small", action="store_true", help="few sizes, 2^18 values a batch")
    arguments = parser.parse_args()
    if arguments.small:
        arguments.sizes, arguments.points = SMALL_SIZES, 1 << 18
    return arguments


def main() -> None:
    """Run all parts in turn."""
    arguments = parse_arguments()
    deadline = time.monotonic() + arguments.limit
    # Neither use nor change what the user has tuned.
    os.environ["XDG_DATA_HOME"] = str(arguments.out.resolve().with_suffix(".data"))
    bench = Bench(arguments)
    print(bench.device.label, bench.device.driver, bench.report["commit"], flush=True)
    for part in arguments.parts:
        bench.run_part(part, deadline)
    if arguments.tests:
        bench.report["tests"] = run_tests(arguments.tests, max(60.0, deadline - time.monotonic()))
        print(bench.report["tests"], flush=True)
    bench.keep()
    bench.context.close()


if __name__ == "__main__":
    main()
