"""The engine of the host: NumPy, for tests and for machines without OpenCL."""

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.analysis.constant_q_rows import ConstantQRows
from spectrod.analysis.frame_launch import FrameLaunch
from spectrod.analysis.reassigned_rows import ReassignedRows
from spectrod.analysis.result_pool import host_results
from spectrod.analysis.sample_buffer import SampleBuffer
from spectrod.analysis.stft.stft_host import HostStft
from spectrod.analysis.stft.stft_reference import ReferenceStft
from spectrod.analysis.stft.stft_tables import kernel_spec, row_places
from spectrod.dsp.bands import REASSIGNED
from spectrod.dsp.constant_q import is_constant_q
from spectrod.dsp.sample_layout import SampleLayout
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import Float32Array, Float64Array

_POINT_S = 25e-9
"""Time for a point of a transform; 10 to 35 ns on processors of 2017 to 2024 [s]."""


def numpy_duration_s(spec: SpectrumSpec, n_samples: float) -> float:
    """Estimate how long NumPy computes the spectra of n_samples per channel [s]."""
    return n_samples / spec.hop * spec.n_signals * spec.nfft * _POINT_S


class NumpyEngine:
    """Implements ``spectrod.analysis.engine.Engine`` without a device.

    ``HostStft`` says what it computes in float32.
    """

    name = "numpy"
    fallback = None
    batch_bytes = block_batch_bytes = 1 << 20

    def sample_buffer(self, layout: SampleLayout, capacity: int) -> SampleBuffer:
        """Make an empty buffer."""
        return SampleBuffer(layout, capacity)

    def sample_buffer_over(self, layout: SampleLayout, memory: NDArray[np.uint8]) -> SampleBuffer:
        """Make a buffer over existing samples."""
        return SampleBuffer(layout, len(memory) // layout.step_bytes, memory, filled=True)

    def result_memory(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return memory for rows."""
        return host_results(shape, dtype)

    def plan(self, spec: SpectrumSpec, buffer: SampleBuffer, max_frames: int) -> "NumpyPlan":
        """Make a plan for frames in a buffer, any number per batch."""
        return NumpyPlan(spec, buffer, max_frames)

    def transpose(self, matrix: Float32Array) -> Float32Array:
        """Transpose a C-contiguous (rows, columns) float32 matrix into a new one."""
        return np.array(matrix.T, order="C")

    def only_compiled(self) -> AbstractContextManager[None]:
        """Do nothing: nothing is compiled."""
        return nullcontext()

    def keep_programs(self) -> None:
        """Do nothing: nothing is compiled."""

    def close(self) -> None:
        """Do nothing: there is no device."""


class Float64Engine(NumpyEngine):
    """NumPy in float64, however long it takes."""

    def plan(self, spec: SpectrumSpec, buffer: SampleBuffer, max_frames: int) -> "NumpyPlan":  # noqa: ARG002
        """Make a plan for frames in a buffer, any number per batch."""
        return NumpyPlan(spec, buffer, None)


class Float32Engine(NumpyEngine):
    """NumPy in float32 from the first frame on, where ``HostStft`` can: for parts of a stream."""

    def plan(self, spec: SpectrumSpec, buffer: SampleBuffer, max_frames: int) -> "NumpyPlan":  # noqa: ARG002
        """Make a plan for frames in a buffer, any number per batch."""
        return NumpyPlan(spec, buffer, sys.maxsize)


class NumpyPlan:
    """Computes frames at ``submit``, rounded once at the end.

    Implements ``spectrod.analysis.engine.FramePlan``.

    Parameters
    ----------
    spec : SpectrumSpec
        What to compute.
    buffer : SampleBuffer
        Its samples.
    max_frames : int, optional
        Frames of the largest batch; None to compute in float64 always.
    """

    def __init__(
        self, spec: SpectrumSpec, buffer: SampleBuffer, max_frames: int | None = None
    ) -> None:
        layout = buffer.layout
        self._hop, self._grid = spec.hop, spec.grid
        self._buffer = buffer
        self._reference = _rows_of(spec, layout, max_frames)
        self._average = self._reference.average(spec.averaging_frames)

    def resume(self, power: Float64Array | None) -> None:
        """Continue the averages of another plan; see ``FramePlan``."""
        if self._average is not None:
            self._average.state = power

    @property
    def average_power(self) -> Float64Array | None:
        """Averaged power so far, (signals, values), see ``FramePlan.resume``."""
        return None if self._average is None else self._average.state

    def submit(self, launch: FrameLaunch, out: NDArray[Any] | None = None) -> "Computed":
        """Compute frames, the first at an index of a buffer's data."""
        if self._average is not None:
            if not launch.primed:
                self._average.clear()
            self._average.frames, self._average.done = launch.row_frames, launch.done
        rows = self._reference.rows(
            (launch.source or self._buffer).data,
            launch.place,
            self._hop,
            launch.n_frames,
            self._average,
            row_places(self._grid, launch.phase),
            out,
        )
        return Computed(rows)


def _rows_of(spec: SpectrumSpec, layout: SampleLayout, max_frames: int | None) -> ReferenceStft:
    if is_constant_q(spec.bands):
        return ConstantQRows(spec, layout)
    if spec.bands == REASSIGNED:
        return ReassignedRows(spec, layout)
    shape, tables = kernel_spec(spec, layout.sample_format, interleaved=layout.interleaved)
    return HostStft(shape, tables, max_frames)


class Computed:
    """Rows that are complete; implements ``spectrod.analysis.engine.PendingRows``."""

    def __init__(self, rows: NDArray[Any]) -> None:
        self._rows = rows

    def collect(self) -> NDArray[Any]:
        """Return the rows."""
        return self._rows
