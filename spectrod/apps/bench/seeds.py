"""Measurements of five earlier systems that spectrod builds on, repeated on this machine.

E. Bainville's radix-2 transform (2010); G. Iodice's mixed radix (2016); the transforms in global
and local memory of a thesis (Linköping, 2016), with its plain loop; AMD's batch mode and 2D
transforms (2011). ``spectrod.apps.bench.launches.work_groups`` has the table of the OpenCL
Programming Book.
"""

import cmath
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.apps.bench.inplace import INPLACE
from spectrod.apps.bench.naive_transpose import NaiveTranspose
from spectrod.apps.bench.radix2 import RADIX2, Radix2Params
from spectrod.apps.bench.transforms import Row
from spectrod.fft.arena import Arena
from spectrod.fft.choice import untuned
from spectrod.fft.plan2d import PlaneTransform
from spectrod.fft.select import make_stage
from spectrod.fft.stage import Lines, Precision, Stage, TransformFamily, TransformSpec
from spectrod.fft.timing import Timer, median_seconds, span_seconds
from spectrod.fft.transform import LineTransform
from spectrod.fft.transpose import DeviceTranspose
from spectrod.opencl.context import Context, event_seconds
from spectrod.opencl.devices import DeviceInfo

_LOOP_N = 1024


@dataclass(frozen=True, slots=True)
class Sizes:
    """Extent of the measurements.

    Attributes
    ----------
    long_n : int
        Length of the long radix-2 transform.
    edges : tuple of int
        Edges of the squares that are transposed and transformed, ascending.
    batches : tuple of int
        Numbers of transforms per launch.
    rounds : int
        Number of repetitions of each time.
    rounds_s : float
        Time after which no further round starts [s].
    """

    long_n: int
    edges: tuple[int, ...] = (64, 128, 256, 512, 1024, 2048)
    batches: tuple[int, ...] = (1, 16, 256, 4096)
    rounds: int = 9
    rounds_s: float = 1.0

    @classmethod
    def of(cls, device: DeviceInfo) -> "Sizes":
        """Return the sizes that fill a device."""
        return cls(1 << 24 if device.kind == "gpu" else 1 << 20)


def measure(context: Context, sizes: Sizes | None = None) -> Iterator[Row]:
    """Repeat all measurements on one device.

    Parameters
    ----------
    context : Context
        The device, with profiling.
    sizes : Sizes, optional
        Extent; by default it suits the device.

    Yields
    ------
    row : Row
        See ``spectrod.apps.bench.tables.SEEDS``; medians of times measured in turns.
    """
    for part in (_radix2, _mixed_radix, _batches, _plain_loop, _transposes, _planes):
        yield from part(context, sizes or Sizes.of(context.device))


def _radix2(context: Context, sizes: Sizes) -> Iterator[Row]:
    """Measure one long transform in log2(n) passes, with vectors of one, two and four."""
    n = sizes.long_n
    arena, spec = Arena(context, "single", n, n), TransformSpec(n)
    stages = {
        f"vectors of {v}": RADIX2.build(context, spec, Radix2Params(vector=v)) for v in (1, 2, 4)
    }
    yield from _compare(sizes, "radix 2, all passes", f"{n}", _device_timers(arena, stages))
    events = arena.launch(stages["vectors of 1"])
    times = [event_seconds(event) for event in events]
    yield from _rows("radix 2, one pass", f"{n}", {"shortest": min(times), "longest": max(times)})


def _mixed_radix(context: Context, sizes: Sizes) -> Iterator[Row]:
    """Compare the baseline, the digit-reversed form in place, and spectrod."""
    for n in (256, 4096, 1 << 16):
        arena, spec = Arena(context, "single", 1 << 20, n), TransformSpec(n)
        stages = {
            "radix 2": _untuned(RADIX2, context, spec),
            "mixed radix in place": _untuned(INPLACE, context, spec),
            "spectrod": make_stage(context, spec),
        }
        yield from _compare(
            sizes, "radix 2 and mixed, 2^20 points", f"{n}", _device_timers(arena, stages)
        )


def _batches(context: Context, sizes: Sizes) -> Iterator[Row]:
    """Time a transform alone and in batches, which share launches and transfers."""
    spec = TransformSpec(_LOOP_N)
    stage = make_stage(context, spec)
    times = {}
    for batch in sizes.batches:
        arena = Arena(context, "single", batch * spec.n, spec.n)
        (seconds,) = _medians([partial(arena.wall_seconds, stage)], sizes)
        times[f"in a batch of {batch}"] = seconds / batch
    yield from _rows("a transform in a batch", f"{spec.n}", times)


def _plain_loop(context: Context, sizes: Sizes) -> Iterator[Row]:
    """Compare with plain loops in Python, and with NumPy."""
    arena, spec = Arena(context, "single", _LOOP_N, _LOOP_N), TransformSpec(_LOOP_N)
    stage, x = make_stage(context, spec), arena.lines(spec, 1)[0]
    values = [complex(value) for value in x]
    timers: dict[str, Timer] = {
        "Python loop": _wall(lambda: loop_fft(values)),
        "numpy.fft": _wall(lambda: np.fft.fft(x)),
        "spectrod": partial(arena.wall_seconds, stage),
    }
    yield from _compare(sizes, "one transform, plain loop", f"{_LOOP_N}", timers)


def loop_fft(values: Sequence[complex]) -> list[complex]:
    """Transform 2^k complex values with plain loops, like a first program."""
    n = len(values)
    bits = n.bit_length() - 1
    x = [values[int(f"{i:0{bits}b}"[::-1], 2)] if bits else values[i] for i in range(n)]
    span = 1
    while span < n:
        for k in range(span):
            turn = cmath.exp(-1j * cmath.pi * k / span)
            for i in range(k, n, 2 * span):
                odd = turn * x[i + span]
                x[i], x[i + span] = x[i] + odd, x[i] - odd
        span *= 2
    return x


def _transposes(context: Context, sizes: Sizes) -> Iterator[Row]:
    """Compare the tiled transpose with the naive one."""
    source = context.table(np.zeros(sizes.edges[-1] ** 2, np.complex64))
    out = context.allocate(8 * sizes.edges[-1] ** 2)
    kernels: dict[str, NaiveTranspose | DeviceTranspose] = {
        "naive": NaiveTranspose(context),
        "tiled": DeviceTranspose(context, 8),
    }
    for edge in sizes.edges:
        lines = Lines(out, edge * edge), Lines(source, edge * edge)
        timers = {
            name: _event(partial(kernel.launch, *lines, 1, edge, edge))
            for name, kernel in kernels.items()
        }
        yield from _compare(sizes, "transpose", f"{edge} x {edge}", timers)


def _planes(context: Context, sizes: Sizes) -> Iterator[Row]:
    """Time 2D transforms of a square with the data on the device, and from the host and back."""
    for edge in sizes.edges:
        image = np.random.default_rng(edge).random((1, edge, edge)).astype(np.complex64)
        single = _plane(context, edge, "single")
        timers = {
            "without transfers": _plane_timer(single, image),
            "with transfers": _wall(partial(single.run, np.empty_like(image), image, 1.0)),
            "numpy.fft": _wall(partial(np.fft.fft2, image)),
        }
        if context.device.has_fp64:
            double = _plane(context, edge, "double")
            timers["double, without transfers"] = _plane_timer(double, image.astype(np.complex128))
        yield from _compare(sizes, "2D transform", f"{edge} x {edge}", timers)


def _plane(context: Context, edge: int, precision: Precision) -> PlaneTransform:
    line = LineTransform(context, TransformSpec(edge, precision=precision))
    return PlaneTransform(line, line)


def _plane_timer(plane: PlaneTransform, image: NDArray[Any]) -> Timer:
    source, out = plane.context.table(image), plane.context.allocate(image.nbytes)
    launch = partial(plane.run_on_device, Lines(out, 0), Lines(source, 0), 1, 1.0)
    return lambda: span_seconds(launch())


def _untuned(family: TransformFamily, context: Context, spec: TransformSpec) -> Stage:
    return family.build(context, spec, untuned(family, spec, context.device))


def _device_timers(arena: Arena, stages: Mapping[str, Stage]) -> dict[str, Timer]:
    return {name: partial(arena.device_seconds, stage) for name, stage in stages.items()}


def _event(launch: Callable[[], Any]) -> Timer:
    return lambda: event_seconds(launch())


def _wall(call: Callable[[], Any]) -> Timer:
    def seconds() -> float:
        start = perf_counter()
        call()
        return perf_counter() - start

    return seconds


def _medians(timers: Sequence[Timer], sizes: Sizes) -> list[float]:
    for timer in timers:
        timer()  # warms up
    return median_seconds(timers, sizes.rounds, sizes.rounds_s)


def _compare(sizes: Sizes, measure: str, size: str, timers: Mapping[str, Timer]) -> Iterator[Row]:
    medians = _medians(list(timers.values()), sizes)
    return _rows(measure, size, dict(zip(timers, medians, strict=True)))


def _rows(measure: str, size: str, times: Mapping[str, float]) -> Iterator[Row]:
    first = next(iter(times.values()))
    for what, seconds in times.items():
        row = {"measure": measure, "size": size, "what": what}
        yield row | {"seconds": seconds, "speed": first / seconds}
