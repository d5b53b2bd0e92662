"""Time of a transform by kernel, and by size of the work-groups."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
from statistics import median
from typing import Any

import numpy as np

from spectrod.apps.bench.naive_transpose import NaiveTranspose
from spectrod.apps.bench.radix2 import RADIX2, Radix2Params
from spectrod.apps.bench.transforms import Row, work_of
from spectrod.fft.arena import Arena
from spectrod.fft.select import make_stage
from spectrod.fft.stage import Lines, TransformSpec
from spectrod.fft.transpose import DeviceTranspose, tile_shape
from spectrod.opencl.context import Context, Size, event_seconds
from spectrod.opencl.devices import DeviceInfo

GROUP_ITEMS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
"""Sizes of work-groups, as in the OpenCL Programming Book's table."""

_RUNS = 5


class ProfilingContext(Context):
    """A context that records the launched kernels."""

    def __init__(self, device: DeviceInfo) -> None:
        super().__init__(device, profiling=True)
        self.launched: list[tuple[str, Any]] = []

    def launch(
        self, kernel: Any, global_size: Size, local_size: Size, offset: Size | None = None
    ) -> Any:
        """Launch like ``Context.launch``; record the kernel's name and the event."""
        event = super().launch(kernel, global_size, local_size, offset)
        self.launched.append((kernel.function_name, event))
        return event


def profile(arena: Arena, spec: TransformSpec) -> Iterator[Row]:
    """Measure each kernel launch of spectrod's transform.

    Parameters
    ----------
    arena : Arena
        Arena in a ``ProfilingContext``.
    spec : TransformSpec
        Transform to measure.

    Yields
    ------
    row : Row
        See ``spectrod.apps.bench.tables.LAUNCHES``; medians of several runs, in launch order.
    """
    context = arena.context
    assert isinstance(context, ProfilingContext)
    stage = make_stage(context, spec)
    arena.device_seconds(stage)  # warms up
    runs = []
    for _ in range(_RUNS):
        context.launched.clear()
        arena.device_seconds(stage)
        runs.append([event_seconds(event) for _, event in context.launched])
    names = [name for name, _ in context.launched]
    times = [median(column) for column in zip(*runs, strict=True)]
    work = work_of(arena, spec)
    for name, seconds in zip(names, times, strict=True):
        yield {
            "n": spec.n,
            "kind": spec.kind,
            "precision": spec.precision,
            "batch": work.batch,
            "kernel": name,
            "seconds": seconds,
            "share": seconds / sum(times),
            "gb_per_s": work.n_bytes / seconds / 1e9,
        }


def work_groups(
    device: DeviceInfo, edge: int = 512, sizes: Sequence[int] = GROUP_ITEMS
) -> Iterator[Row]:
    """Measure kernels by the size of their work-groups, like the OpenCL Programming Book.

    Parameters
    ----------
    device : DeviceInfo
        Device to measure.
    edge : int
        Edge of a square of complex values in single precision, a power of two: the butterflies of
        the radix-2 baseline run along its rows, and it is transposed.
    sizes : sequence of int
        Sizes of the work-groups, ascending.

    Yields
    ------
    row : Row
        See ``spectrod.apps.bench.tables.GROUPS``. The transposes have a largest size of groups.
    """
    spec = TransformSpec(edge)
    for group_items in sizes:
        if group_items > device.max_work_group_size:
            return
        # Pretend a lower limit of the device: kernels that adapt to the limit then use exactly that
        # size.
        context = Context(replace(device, max_work_group_size=group_items), profiling=True)
        arena = Arena(context, "single", edge * edge, edge)
        stage = RADIX2.build(context, spec, Radix2Params(group_items=group_items))
        arena.device_seconds(stage)  # warms up
        row: Row = {"group_items": group_items}
        row["butterflies"] = median(arena.device_seconds(stage) for _ in range(_RUNS))
        yield row | _transposes(context, edge)
        context.close()


def _transposes(context: Context, edge: int) -> Row:
    """Measure the tiled and the naive transpose of a square."""
    if prod(tile_shape(context.device, 8)) != context.device.max_work_group_size:
        return {}
    source, out = context.table(np.ones((edge, edge), np.complex64)), context.allocate(8 * edge**2)
    lines = Lines(out, edge * edge), Lines(source, edge * edge)
    row = {}
    transposes: dict[str, DeviceTranspose | NaiveTranspose] = {
        "tiled": DeviceTranspose(context, 8, in_registers=False),
        "naive": NaiveTranspose(context),
    }
    for name, transpose in transposes.items():
        launches = (transpose.launch(*lines, 1, edge, edge) for _ in range(_RUNS + 1))
        row[name] = median([event_seconds(event) for event in launches][1:])
    return row
