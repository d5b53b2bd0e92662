"""``spectrod bench fft``: the FFT engine and its peers."""

import argparse
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import get_args

from spectrod.apps.bench import seeds, tables, transforms
from spectrod.apps.bench.launches import ProfilingContext, profile, work_groups
from spectrod.apps.bench.peers import PEERS, choose_peers
from spectrod.apps.bench.transforms import Row
from spectrod.cli.numbers import count
from spectrod.fft.arena import Arena
from spectrod.fft.stage import Kind, Precision, TransformSpec
from spectrod.lib.errors import DeviceError
from spectrod.opencl.context import Context
from spectrod.opencl.devices import DeviceInfo

SUMMARY = "batches of transforms: speed, error, peers"

_SIZES = (64, 256, 1000, 1024, 4096, 1 << 16)


def add_arguments(fft: argparse.ArgumentParser) -> None:
    """Add this benchmark's arguments."""
    fft.add_argument("--size", nargs="+", type=count, default=_SIZES, metavar="N")
    fft.add_argument("--kind", nargs="+", choices=get_args(Kind), default=("c2c", "r2c"))
    fft.add_argument("--inverse", action="store_true", help="of c2c")
    fft.add_argument("--precision", nargs="+", choices=get_args(Precision), default=("single",))
    fft.add_argument(
        "--batch-points",
        nargs="+",
        type=count,
        metavar="N",
        help="values a batch (2^26 on GPUs, 2^16 and 2^22 on CPUs)",
    )
    fft.add_argument(
        "--peer",
        nargs="*",
        metavar="NAME",
        help=f"libraries to compare with: {', '.join(PEERS)}; by default the installed ones",
    )
    group = fft.add_mutually_exclusive_group()
    for name, (summary, _) in _MODES.items():
        group.add_argument(f"--{name}", dest="mode", action="store_const", const=name, help=summary)


def mode(args: argparse.Namespace) -> str:
    """Return the name of the measurement, for the report."""
    return args.mode or "compare"


def measure(args: argparse.Namespace, device: DeviceInfo) -> Iterator[Row]:
    """Measure one device; print each row when it is complete."""
    _, call = _MODES.get(args.mode, ("", _compare))
    return call(args, device)


def _compare(args: argparse.Namespace, device: DeviceInfo) -> Iterator[Row]:
    names = choose_peers(args.peer, device)
    rows = _each(args, Context(device, profiling=True), partial(transforms.compare, names=names))
    return tables.print_each(tables.TRANSFORMS, rows)


def _variants(args: argparse.Namespace, device: DeviceInfo) -> Iterator[Row]:
    rows = _each(args, Context(device, profiling=True), transforms.variants)
    return tables.print_each(tables.TRANSFORMS, rows)


def _profile(args: argparse.Namespace, device: DeviceInfo) -> Iterator[Row]:
    return tables.print_each(tables.LAUNCHES, _each(args, ProfilingContext(device), profile))


def _work_groups(_: argparse.Namespace, device: DeviceInfo) -> Iterator[Row]:
    return tables.print_each(tables.GROUPS, work_groups(device))


def _seeds(_: argparse.Namespace, device: DeviceInfo) -> Iterator[Row]:
    return tables.print_each(tables.SEEDS, seeds.measure(Context(device, profiling=True)))


_MODES: dict[str, tuple[str, Callable[[argparse.Namespace, DeviceInfo], Iterator[Row]]]] = {
    "variants": ("every kernel family, and four ways to get twiddle factors", _variants),
    "profile": ("the time of each kernel of a transform", _profile),
    "workgroups": ("the time of kernels against the size of their work-groups", _work_groups),
    "seeds": ("the measurements of five earlier systems", _seeds),
}


def _each(
    args: argparse.Namespace,
    context: Context,
    measure: Callable[[Arena, TransformSpec], Iterable[Row]],
) -> Iterator[Row]:
    """Measure every requested combination."""
    specs = [
        TransformSpec(n, kind, kind == "c2r" or (args.inverse and kind == "c2c"), precision)
        for precision in args.precision
        for kind in args.kind
        for n in args.size
    ]
    for precision in args.precision:
        if precision == "double" and not context.device.has_fp64:
            raise DeviceError(f"{context.device.label} has no double precision")
        for points in args.batch_points or transforms.default_points(context.device):
            arena = Arena(context, precision, points, max(args.size))
            for spec in specs:
                if spec.precision == precision:
                    yield from measure(arena, spec)
    context.close()
