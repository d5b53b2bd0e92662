"""Speed of the vector kernels on CPUs, beside FFTW, SciPy and the local-memory kernels.

Every contender of a length runs in turn, once a round, in one process, so that they share what the
machine is doing besides; the best round counts. A line says GFLOP/s (5 N log2 N operations a
complex line, half of it for a real one), the ratio to the first contender, and the relative L2
error against NumPy in float64. Ours is the device's time, without the launch; PoCL takes its number
of threads from POCL_MAX_PTHREAD_COUNT (3.1) or POCL_CPU_MAX_CU_COUNT (later versions).
"""

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import scipy.fft
from _report import ROOT  # before spectrod: makes the checkout importable
from numpy.typing import NDArray

from spectrod.fft.choice import untuned
from spectrod.fft.local import LOCAL
from spectrod.fft.simd import SIMD
from spectrod.fft.stage import Lines, Params, TransformFamily, TransformSpec
from spectrod.opencl.context import Context, event_seconds
from spectrod.opencl.devices import choose

try:
    import pyfftw
except ImportError:
    pyfftw = None

assert ROOT.is_dir()
CHECKED_LINES = 64


@dataclass
class Contender:
    """One way to compute a batch: its name, a timed run [s], and its error."""

    name: str
    run: Callable[[], float]
    error: float
    best: float = np.inf


@dataclass(frozen=True)
class Job:
    """A batch of lines."""

    spec: TransformSpec
    lines: int

    @property
    def flops(self) -> float:
        """Operations by the usual count."""
        real = 1 if self.spec.kind == "c2c" else 2
        return 5.0 * self.spec.n * np.log2(self.spec.n) * self.lines / real

    def signal(self) -> NDArray[Any]:
        """Uniform noise in the shape and type of the lines."""
        rng = np.random.default_rng(1)
        shape = (self.lines, self.spec.n_in)
        real = rng.uniform(-1.0, 1.0, shape).astype(self.real_type)
        if self.spec.kind == "r2c":
            return real
        values = real + 1j * rng.uniform(-1.0, 1.0, shape).astype(self.real_type)
        if self.spec.kind == "c2r":
            values[:, [0, -1]] = values[:, [0, -1]].real
        return values

    @property
    def real_type(self) -> type:
        """Type of a real number."""
        return np.float32 if self.spec.precision == "single" else np.float64

    def reference(self, signal: NDArray[Any]) -> NDArray[Any]:
        """Spectra in float64 of the first lines."""
        few = signal[:CHECKED_LINES]
        if self.spec.kind == "r2c":
            return np.fft.rfft(few.astype(np.float64))
        few = few.astype(np.complex128)
        if self.spec.kind == "c2r":
            return np.fft.irfft(few, self.spec.n, norm="forward")
        return np.fft.fft(few)

    def error(self, result: NDArray[Any]) -> float:
        """Relative L2 error of the first lines [1]."""
        reference = self.reference(self.signal())
        return float(np.linalg.norm(result[:CHECKED_LINES] - reference) / np.linalg.norm(reference))


def fftw(job: Job, threads: int) -> Contender:
    """FFTW with MEASURE: the best of three plans, as its planner times on a machine in use."""
    signal = job.signal()
    out_type = (np.ones(1, job.real_type) * (1 if job.spec.kind == "c2r" else 1j)).dtype
    source = pyfftw.empty_aligned(signal.shape, signal.dtype)
    out = pyfftw.empty_aligned((job.lines, job.spec.n_out), out_type)
    direction = "FFTW_BACKWARD" if job.spec.kind == "c2r" else "FFTW_FORWARD"
    plans = []
    for _ in range(3):
        pyfftw.forget_wisdom()
        flags = ("FFTW_MEASURE",)
        plan = pyfftw.FFTW(
            source, out, axes=(1,), direction=direction, flags=flags, threads=threads
        )
        source[:] = signal
        plan.execute()
        plans.append((min(wall(plan.execute) for _ in range(10)), plan))
    best = min(plans, key=lambda timed: timed[0])[1]
    source[:] = signal
    best.execute()
    return Contender(f"FFTW, {threads} threads", lambda: wall(best.execute), job.error(out))


def scipy_fft(job: Job, threads: int) -> Contender:
    """SciPy's transforms, which allocate their result."""
    signal = job.signal()

    def transform() -> NDArray[Any]:
        if job.spec.kind == "r2c":
            return scipy.fft.rfft(signal, workers=threads)
        if job.spec.kind == "c2r":
            return scipy.fft.irfft(signal, job.spec.n, norm="forward", workers=threads)
        return scipy.fft.fft(signal, workers=threads)

    return Contender(
        f"scipy.fft, {threads} workers", lambda: wall(transform), job.error(transform())
    )


def wall(call: Callable[[], object]) -> float:
    """Time of a call [s]."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def stage(context: Context, job: Job, family: TransformFamily, params: Params) -> Contender:
    """Time a kernel of spectrod by its events."""
    spec, signal = job.spec, job.signal()
    built = family.build(context, spec, params)
    source = context.table(signal)
    out = context.allocate(job.lines * spec.n_out * spec.out_value_bytes)
    scratch = context.allocate(max(1, built.scratch_bytes(job.lines, 1)))

    def run() -> float:
        events = built.launch(
            Lines(out, spec.n_out), Lines(source, spec.n_in), job.lines, 1, 1.0, scratch
        )
        return sum(event_seconds(event) for event in events)

    run()
    result_type = job.reference(signal[:1]).dtype
    narrow = np.result_type(job.real_type, np.float32)
    if spec.precision == "single":
        result_type = np.dtype(narrow if spec.kind == "c2r" else np.complex64)
    result = np.empty((job.lines, spec.n_out), result_type)
    context.download(result, out)
    return Contender(f"{family.name} {params}", run, job.error(result))


def contenders(
    context: Context, job: Job, n_choices: int, threads: int, *, with_local: bool
) -> Iterator[Contender]:
    """Peers first, then ours."""
    if pyfftw is not None:
        yield fftw(job, threads)
    yield scipy_fft(job, threads)
    if with_local and LOCAL.supports(job.spec, context.device):
        yield stage(context, job, LOCAL, untuned(LOCAL, job.spec, context.device))
    for params in islice(SIMD.candidates(job.spec, context.device), n_choices):
        yield stage(context, job, SIMD, params)


def race(found: list[Contender], rounds: int) -> None:
    """Run each once a round."""
    for _ in range(rounds):
        for contender in found:
            contender.best = min(contender.best, contender.run())


def main() -> None:
    """Print a table for every length."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", type=int, nargs="*", default=[256, 512, 1024, 2048, 4096, 8192])
    parser.add_argument("--kind", choices=("c2c", "r2c", "c2r"), default="c2c")
    parser.add_argument("--precision", choices=("single", "double"), default="single")
    parser.add_argument("--points", type=int, default=1 << 20, help="values a batch")
    parser.add_argument("--choices", type=int, default=1, help="parameters to try")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--device", default="")
    parser.add_argument("--threads", type=int, default=0, help="of the peers; 0 for all cores")
    parser.add_argument("--local", action="store_true", help="the local-memory kernel as well")
    args = parser.parse_args()
    context = Context(choose(args.device), profiling=True)
    threads = args.threads or context.device.compute_units
    for n in args.sizes:
        spec = TransformSpec(n, args.kind, args.kind == "c2r", args.precision)
        job = Job(spec, max(1, args.points // n))
        found = list(contenders(context, job, args.choices, threads, with_local=args.local))
        race(found, args.rounds)
        for contender in found:
            print(
                f"{n:6d} {job.flops / contender.best / 1e9:7.1f} GFLOP/s "
                f"{found[0].best / contender.best:5.2f}  {contender.error:.1e}  {contender.name}"
            )


if __name__ == "__main__":
    main()
