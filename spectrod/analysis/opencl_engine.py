"""The engine on an OpenCL device."""

import logging

from spectrod.errors import ConfigError, DeviceError
from spectrod.fft.stft_plan import StftPowerPlan
from spectrod.fft.transpose import Transposer
from spectrod.opencl.context import Context
from spectrod.opencl.devices import DeviceInfo, list_devices, matching
from spectrod.types import SpectrumSpec
from spectrod.units import Float32Array

_log = logging.getLogger(__name__)


class OpenCLEngine:
    """Implements ``spectrod.analysis.engine.Engine`` on one device.

    Each plan, and ``transpose``, is one thread's at a time; others may make plans meanwhile.

    Parameters
    ----------
    device : DeviceInfo
        From ``spectrod.opencl.devices``.
    profiling : bool
        Whether events carry times; for benchmarks.

    Raises
    ------
    DeviceError
        If the device cannot be opened or compiles nothing.
    """

    def __init__(self, device: DeviceInfo, *, profiling: bool = False) -> None:
        self.name = f"opencl:{device.label}"
        self.context = Context(device, profiling=profiling)
        self._transposer: Transposer | None = None

    def plan_power(self, spec: SpectrumSpec, max_frames: int) -> StftPowerPlan:
        """Prepare for frames as ``spec`` says, up to max_frames in one call.

        Raises
        ------
        ConfigError
            If max_frames < 1.
        DeviceError
            If the device is too small, saying which limit, or how much memory it lacks.
        """
        if max_frames < 1:
            raise ConfigError(f"max_frames={max_frames}: must be at least 1")
        return StftPowerPlan(self.context, spec, max_frames)

    def transpose(self, matrix: Float32Array) -> Float32Array:
        """Transpose a C-contiguous (rows, columns) float32 matrix into a new one."""
        if self._transposer is None:
            self._transposer = Transposer(self.context)
        return self._transposer.transpose(matrix)

    def close(self) -> None:
        """Wait for the device and release it; plans must not be used any more."""
        self._transposer = None
        self.context.close()


def open_opencl(device: str) -> OpenCLEngine:
    """Open the best device that the name means and that works.

    Parameters
    ----------
    device : str
        As in ``spectrod.opencl.devices.matching``; "" for any.

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
            return OpenCLEngine(candidate)
        except DeviceError as error:
            reasons.append(str(error))
            _log.warning("passing over an OpenCL device: %s", error)
    raise DeviceError("; ".join(reasons))
