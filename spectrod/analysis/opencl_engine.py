"""The engine on an OpenCL device."""

import logging

import numpy as np
from numpy.typing import NDArray

from spectrod.analysis.device_memory import device_memory
from spectrod.analysis.numpy_engine import NumpyEngine
from spectrod.analysis.opencl_plan import OpenCLPlan
from spectrod.analysis.window import SampleWindow
from spectrod.errors import ConfigError, DeviceError
from spectrod.fft.transpose import Transposer
from spectrod.opencl.context import Context
from spectrod.opencl.devices import DeviceInfo, list_devices, matching
from spectrod.sample_layout import SampleLayout
from spectrod.types import SpectrumSpec
from spectrod.units import Float32Array

_log = logging.getLogger(__name__)

# Results that stay in a processor's cache until they are used; enough work for a GPU to hide what
# a launch costs.
_SHARED_BATCH_BYTES = 1 << 21
_MIRRORED_BATCH_BYTES = 1 << 25


class OpenCLEngine:
    """Implements ``spectrod.analysis.engine.Engine`` on one device.

    Each plan, and ``transpose``, is one thread's at a time; others may make plans meanwhile.

    Parameters
    ----------
    device : DeviceInfo
        From ``spectrod.opencl.devices``.
    profiling : bool
        Whether events carry times; for benchmarks.
    fallback : NumpyEngine, optional
        What goes on if the device fails.

    Raises
    ------
    DeviceError
        If the device cannot be opened or compiles nothing.
    """

    def __init__(
        self,
        device: DeviceInfo,
        *,
        profiling: bool = False,
        fallback: NumpyEngine | None = None,
    ) -> None:
        self.name = f"opencl:{device.label}"
        self.fallback = fallback
        self.context = Context(device, profiling=profiling)
        self.batch_bytes = (
            _SHARED_BATCH_BYTES if device.shares_host_memory else _MIRRORED_BATCH_BYTES
        )
        self._memory = device_memory(self.context)
        self._transposer: Transposer | None = None

    def window(self, layout: SampleLayout, capacity: int) -> SampleWindow:
        """Make an empty window, with its twin where the device has memory of its own.

        Raises
        ------
        DeviceError
            If there is not so much memory.
        """
        return self._memory.window(layout, capacity)

    def window_over(self, layout: SampleLayout, memory: NDArray[np.uint8]) -> SampleWindow | None:
        """Make a window of samples where they are; None if the device cannot read them there."""
        return self._memory.window_over(layout, memory)

    def plan(self, spec: SpectrumSpec, window: SampleWindow, max_frames: int) -> OpenCLPlan:
        """Prepare for frames in a window of this engine's, up to max_frames in one batch.

        Raises
        ------
        ConfigError
            If max_frames < 1.
        DeviceError
            If the device is too small, saying which limit, or how much memory it lacks.
        """
        if max_frames < 1:
            raise ConfigError(f"max_frames={max_frames}: must be at least 1")
        return OpenCLPlan(self.context, self._memory, spec, window, max_frames)

    def transpose(self, matrix: Float32Array) -> Float32Array:
        """Transpose a C-contiguous (rows, columns) float32 matrix into a new one."""
        if self._transposer is None:
            self._transposer = Transposer(self.context)
        return self._transposer.transpose(matrix)

    def keep_programs(self) -> None:
        """Store what was compiled for later processes now, not when the engine is closed."""
        self.context.keep_programs()

    def close(self) -> None:
        """Wait for the device and release it; plans must not be used any more."""
        self._transposer = None
        try:
            self.context.close()
        except DeviceError as error:
            # Whoever used it has heard of it; nothing is left to be released.
            _log.debug("closing a device that failed: %s", error)


def open_opencl(device: str, fallback: NumpyEngine | None = None) -> OpenCLEngine:
    """Open the best device that the name means and that works.

    Parameters
    ----------
    device : str
        As in ``spectrod.opencl.devices.matching``; "" for any.
    fallback : NumpyEngine, optional
        What goes on if the device fails later.

    Returns
    -------
    engine : OpenCLEngine
        Each better device that was passed over is logged with its reason.

    Raises
    ------
    DeviceError
        If none fits or none works.
    """
    reasons = []
    for candidate in matching(device, list_devices()):
        try:
            return OpenCLEngine(candidate, fallback=fallback)
        except DeviceError as error:
            reasons.append(str(error))
            _log.warning("passing over an OpenCL device: %s", error)
    raise DeviceError("; ".join(reasons))
