"""Frames to rows on an OpenCL device."""

from contextlib import suppress
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from spectrod.analysis.device_memory import DeviceMemory, DeviceSamples, Target
from spectrod.analysis.frame_launch import FrameLaunch
from spectrod.analysis.sample_buffer import SampleBuffer
from spectrod.analysis.stage_pool import StagePool
from spectrod.analysis.stft.stft_stage import Average, StftLaunch
from spectrod.analysis.stft.stft_tables import row_places
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import Float64Array
from spectrod.lib.errors import DeviceError
from spectrod.opencl.context import Context


class OpenCLPlan:
    """Computes rows from a buffer's samples with one fused launch per batch.

    The constructor allocates all device memory. Implements ``spectrod.analysis.engine.FramePlan``.

    Parameters
    ----------
    context : Context
        The device.
    memory : DeviceMemory
        Memory strategy of the device.
    stages : StagePool
        Stages of the device.
    spec : SpectrumSpec
        Spec of the rows.
    buffer : SampleBuffer
        Window in that memory.
    max_frames : int
        Maximum number of frames in one batch, >= 1.

    Raises
    ------
    DeviceError
        If the device is too small; the text names the limit or the missing memory.
    KernelBuildError
        If a kernel does not compile.
    """

    def __init__(
        self,
        context: Context,
        memory: DeviceMemory,
        stages: StagePool,
        spec: SpectrumSpec,
        buffer: SampleBuffer,
        max_frames: int,
    ) -> None:
        self._stages = stages
        self._pooled = stages.take(spec, buffer.layout)
        self._stage, shape = self._pooled.stage, self._pooled.shape
        self._context = context
        self._hop, self._grid = spec.hop, spec.grid
        self._buffer = cast("DeviceSamples", buffer)
        self._row_shape = spec.n_signals, shape.n_values
        row_bytes = spec.n_signals * shape.n_values * shape.value_bytes
        dtype = np.dtype(np.complex64 if shape.output == "complex" else np.float32)
        max_rows = -(-max_frames // spec.averaging_frames)
        self._results = memory.results(dtype, max_rows * row_bytes)
        scratch_bytes = self._stage.scratch_bytes(max_frames, spec.n_signals)
        self._scratch = context.allocate(scratch_bytes) if scratch_bytes else None
        self._state_parts = shape.state_values // shape.n_values
        state_bytes = 4 * spec.n_signals * shape.state_values
        self._state = context.allocate(state_bytes) if state_bytes else None

    def resume(self, power: Float64Array | None) -> None:
        """Continue the averages of another plan; see ``FramePlan``."""
        if self._state is not None and power is not None:
            state = np.zeros((len(power), self._state_parts, power.shape[1]), np.float32)
            state[:, 0] = power
            if self._state_parts > 1:  # kernels subtract what the rounding of the value has added
                state[:, 1] = state[:, 0] - power
            self._context.upload(self._state, state)

    def submit(self, launch: FrameLaunch, out: NDArray[Any] | None = None) -> "InFlight":
        """Enqueue frames, the first at an index of a buffer's data, and start the device."""
        buffer = cast("DeviceSamples", launch.source or self._buffer)
        average = None
        if self._state is not None:
            average = Average(self._state, launch.row_frames, launch.done, launch.primed)
        target = self._results.target((launch.n_rows, *self._row_shape), out)
        events = self._stage.launch(
            target.buffer(),
            StftLaunch(
                buffer.samples(launch.place),
                self._hop,
                launch.n_frames,
                self._row_shape[0],
                average,
                row_places(self._grid, launch.phase),
            ),
            self._scratch,
        )
        in_flight = InFlight(self._context, target, events[-1], buffer)
        self._context.begin()
        target.begin(events)
        return in_flight

    def __del__(self) -> None:
        # Absent if the constructor failed. Kernels in flight keep what they use.
        if pooled := getattr(self, "_pooled", None):
            self._stages.put(pooled)


class InFlight:
    """Rows in flight; implements ``spectrod.analysis.engine.PendingRows``.

    The buffer and the rows' memory stay valid until the kernels are done, even if the rows are
    never collected: kernels hold no references to the host's memory.
    """

    def __init__(
        self, context: Context, target: Target, last_event: Any, buffer: DeviceSamples
    ) -> None:
        self._context = context
        self._target = target
        self._last_event: Any = last_event
        self._buffer = buffer

    def collect(self) -> NDArray[Any]:
        """Wait for the rows."""
        rows = self._target.collect()
        self._last_event = None
        return rows

    def __del__(self) -> None:
        if self._last_event is None:
            return
        # ``collect`` raises failures; __del__ cannot.
        with suppress(DeviceError):
            self._context.wait(self._last_event)
