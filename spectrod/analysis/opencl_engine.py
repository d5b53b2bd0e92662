"""The engine on an OpenCL device."""

import logging
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.analysis.device_memory import device_memory
from spectrod.analysis.numpy_engine import NumpyEngine, NumpyPlan
from spectrod.analysis.opencl_plan import OpenCLPlan
from spectrod.analysis.sample_buffer import SampleBuffer
from spectrod.analysis.stage_pool import StagePool
from spectrod.dsp.bands import is_host_only
from spectrod.dsp.sample_layout import SampleLayout
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import Float32Array
from spectrod.fft.transpose import Transposer
from spectrod.lib.errors import ConfigError, DeviceError
from spectrod.opencl.context import Context
from spectrod.opencl.devices import DeviceInfo, list_devices, matching

_log = logging.getLogger(__name__)

# Results that stay in a processor's cache until they are read; enough work for a GPU to hide the
# cost of a launch. A long block is there already: few launches are faster.
_SHARED_BATCH_BYTES = 1 << 21
_SHARED_BLOCK_BATCH_BYTES = 1 << 23
_MIRRORED_BATCH_BYTES = 1 << 25


class OpenCLEngine:
    """Implements ``spectrod.analysis.engine.Engine`` on one device.

    One thread at a time uses each plan and ``transpose``; others may make plans meanwhile.

    Parameters
    ----------
    device : DeviceInfo
        From ``spectrod.opencl.devices``.
    profiling : bool
        Whether events carry times, for benchmarks.
    fallback : NumpyEngine, optional
        Engine that continues if the device fails.
    compiles : bool
        Whether the check of the driver's compiler may compile.
    stores : bool
        Whether compiled programs are stored for later processes.

    Raises
    ------
    DeviceError
        If the device cannot be opened or compiles nothing.
    NotCompiledError
        If the check would have to compile and must not.
    """

    def __init__(
        self,
        device: DeviceInfo,
        *,
        profiling: bool = False,
        fallback: NumpyEngine | None = None,
        compiles: bool = True,
        stores: bool = True,
    ) -> None:
        self.name = f"opencl:{device.label}"
        self.fallback = fallback
        self.context = Context(device, profiling=profiling, compiles=compiles, stores=stores)
        is_shared = device.shares_host_memory
        self.batch_bytes = _SHARED_BATCH_BYTES if is_shared else _MIRRORED_BATCH_BYTES
        self.block_batch_bytes = _SHARED_BLOCK_BATCH_BYTES if is_shared else 0
        self._memory = device_memory(self.context)
        self._stages = StagePool(self.context)
        self._transposer: Transposer | None = None

    def sample_buffer(self, layout: SampleLayout, capacity: int) -> SampleBuffer:
        """Make an empty buffer, with a copy on devices with their own memory.

        Raises
        ------
        DeviceError
            If there is not enough memory.
        """
        return self._memory.sample_buffer(layout, capacity)

    def sample_buffer_over(
        self, layout: SampleLayout, memory: NDArray[np.uint8]
    ) -> SampleBuffer | None:
        """Make a buffer over existing samples; None if the device cannot read them in place."""
        return self._memory.sample_buffer_over(layout, memory)

    def result_memory(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return memory for rows, where the device can write them itself.

        Raises
        ------
        DeviceError
            If there is not enough memory.
        """
        return self._memory.result_memory(shape, dtype)

    def plan(
        self, spec: SpectrumSpec, buffer: SampleBuffer, max_frames: int
    ) -> OpenCLPlan | NumpyPlan:
        """Make a plan for frames in a buffer of this engine, up to max_frames in one batch.

        NumPy computes constant-Q transforms and reassignment, for which there are no kernels.

        Raises
        ------
        ConfigError
            If max_frames < 1.
        DeviceError
            If the device is too small; the text names the limit or the missing memory.
        """
        if max_frames < 1:
            raise ConfigError(f"max_frames={max_frames}: must be at least 1")
        if is_host_only(spec.bands):
            return NumpyPlan(spec, buffer)
        return OpenCLPlan(self.context, self._memory, self._stages, spec, buffer, max_frames)

    def transpose(self, matrix: Float32Array) -> Float32Array:
        """Transpose a C-contiguous (rows, columns) float32 matrix into a new one."""
        if self._transposer is None:
            self._transposer = Transposer(self.context)
        return self._transposer.transpose(matrix)

    def only_compiled(self) -> AbstractContextManager[None]:
        """Raise NotCompiledError in this thread where a kernel would have to be compiled."""
        return self.context.only_compiled()

    def keep_programs(self) -> None:
        """Store compiled programs for later processes now, instead of at ``close``."""
        self.context.keep_programs()

    def close(self) -> None:
        """Wait for the device and release it; plans must not be used afterwards."""
        self._transposer = None
        self._stages.clear()
        try:
            self.context.close()
        except DeviceError as error:
            # Its users have already received the error; nothing is left to release.
            _log.debug("closing a device that failed: %s", error)


def open_opencl(
    device: str,
    fallback: NumpyEngine | None = None,
    *,
    compiles: bool = True,
    stores: bool = True,
) -> OpenCLEngine:
    """Open the best working device that matches a name.

    Parameters
    ----------
    device : str
        As in ``spectrod.opencl.devices.matching``; "" for any.
    fallback : NumpyEngine, optional
        Engine that continues if the device fails later.
    compiles : bool
        Whether the check of a driver's compiler may compile.
    stores : bool
        Whether compiled programs are stored for later processes.

    Returns
    -------
    engine : OpenCLEngine
        Each better device that was skipped is logged with its reason.

    Raises
    ------
    DeviceError
        If no device matches or works.
    NotCompiledError
        If a check would have to compile and must not.
    """
    reasons = []
    for candidate in matching(device, list_devices()):
        try:
            engine = OpenCLEngine(candidate, fallback=fallback, compiles=compiles, stores=stores)
        except DeviceError as error:
            reasons.append(str(error))
        else:
            for reason in reasons:
                _log.warning("skipping an OpenCL device: %s", reason)
            return engine
    raise DeviceError("; ".join(dict.fromkeys(reasons)))
