"""Spectra with vectors for registers: a work-item computes whole frames. The family for CPUs."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from spectrod.analysis.stft.stft_defines import stft_defines
from spectrod.analysis.stft.stft_simd_shapes import (
    LANES,
    may_be_direct,
    own_bytes,
    own_values,
    shapes,
)
from spectrod.analysis.stft.stft_simd_tables import simd_tables
from spectrod.analysis.stft.stft_stage import (
    StftLaunch,
    StftSpec,
    StftTables,
)
from spectrod.fft.defines import KernelDefines
from spectrod.fft.simd_shape import ITEMS_PER_UNIT, SimdShape, needs_scratch
from spectrod.lib.errors import ConfigError
from spectrod.opencl.arguments import Arguments
from spectrod.opencl.context import Context
from spectrod.opencl.devices import DeviceInfo

# Bytes of scratch in all; on processors of many cores less of them work at very long frames.
_SCRATCH_BYTES_MAX = 1 << 28


class SimdStftStage:
    """Stage of the family.

    Parameters
    ----------
    context : Context
        The device.
    spec : StftSpec
        What it computes.
    tables : StftTables
        With which numbers.
    shape : SimdShape
        How; frames that cannot be read directly are staged all the same.

    Raises
    ------
    ConfigError
        If the shape is of another length, or one that the kernel lacks.
    DeviceError
        If the device has not got what is needed.
    KernelBuildError
        If the kernel does not compile.
    """

    def __init__(
        self, context: Context, spec: StftSpec, tables: StftTables, shape: SimdShape
    ) -> None:
        if shape.length != spec.complex_length:
            raise ConfigError(
                f"{shape}: must make the complex length {spec.complex_length} of nfft={spec.nfft}"
            )
        if shape.lanes not in LANES or shape.rows < shape.lanes:
            raise ConfigError(f"{shape}: must have 8 or 16 lanes, and as many rows or more")
        shape = replace(shape, staged=shape.staged or not may_be_direct(spec))
        self.spec = spec
        self.shape = shape
        self._context = context
        self._own_bytes = own_bytes(shape, spec)
        self._needs_scratch = needs_scratch(self._own_bytes)
        self._kernel = context.kernel("stft_simd.cl", "stft_simd", _defines(spec, shape).pairs())
        self._tables = [context.table(table) for table in simd_tables(spec, tables, shape)]
        for index, table in enumerate(self._tables, 2):
            self._kernel.set_arg(index, table)
        self._kernel.set_arg(24, np.float32(tables.smoothing))
        self._kernel.set_arg(25, np.float32(tables.floor_db))
        self._arguments = Arguments(self._kernel)
        self._items_max = self._most_items()

    def scratch_bytes(self, n_frames: int, channels: int) -> int:
        """Where a frame is too long for private memory: a place for one for each core."""
        if not self._needs_scratch:
            return 0
        return min(self._items_max, n_frames * channels) * self._own_bytes

    def launch(self, out: Any, launch: StftLaunch, scratch: Any = None) -> list[Any]:
        """Queue the computation, as ``StftStage.launch`` says."""
        return [self._launch(out, one, scratch) for one in launch.side_by_side(self.spec.averaging)]

    def _launch(self, out: Any, launch: StftLaunch, scratch: Any) -> Any:
        samples = launch.samples
        tasks = launch.channels * self._tasks(launch)
        chunk = -(-tasks // self._items_max)
        self._arguments.set(0, (out, samples.buffer))
        self._arguments.set(9, (launch.state, scratch if self._needs_scratch else None))
        row_frames, done, primed = launch.row_state
        counts = (
            launch.n_frames,
            launch.channels,
            samples.pitch,
            samples.first,
            launch.hop,
            row_frames,
            done,
            int(primed),
            tasks,
            chunk,
            *launch.place_arguments,
        )
        self._arguments.set_counts(11, counts)
        return self._context.launch(self._kernel, (-(-tasks // chunk),), (1,))

    def _tasks(self, launch: StftLaunch) -> int:
        """Pieces of a channel's work that depend on nothing else."""
        if self.spec.averaging == "exponential":
            return 1
        if launch.average:
            row_frames, done, _ = launch.row_state
            return -(-(done + launch.n_frames) // row_frames)
        return launch.n_frames if self.shape.columns else -(-launch.n_frames // self.shape.lanes)

    def _most_items(self) -> int:
        units = self._context.device.compute_units
        if self._needs_scratch:
            return max(1, min(units, _SCRATCH_BYTES_MAX // self._own_bytes))
        return ITEMS_PER_UNIT * units


class SimdStft:
    """Vector kernels: transforms with no prime factor above 13, real ones of even length."""

    name = "stft-simd"
    params_type = SimdShape

    def supports(self, spec: StftSpec, device: DeviceInfo) -> bool:
        """Whether the device is a CPU and the length is one of those."""
        return next(iter(self.candidates(spec, device)), None) is not None

    def candidates(self, spec: StftSpec, device: DeviceInfo) -> Iterator[SimdShape]:
        """Lanes as columns and as frames, of both widths, with the best radices of the rows."""
        if device.kind == "cpu":
            yield from shapes(spec, device.vector_bytes)

    def build(
        self, context: Context, spec: StftSpec, tables: StftTables, params: SimdShape
    ) -> SimdStftStage:
        """Compile the stage."""
        return SimdStftStage(context, spec, tables, params)


SIMD = SimdStft()


def _defines(spec: StftSpec, shape: SimdShape) -> KernelDefines:
    return (
        shape.defines(own_bytes(shape, spec))
        | stft_defines(spec)
        | KernelDefines(own_values=own_values(shape, spec))
    )
