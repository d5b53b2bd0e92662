"""The interface that every engine implements, and the choice among them."""

import logging
from typing import Literal, Protocol, get_args

from spectrod.analysis.numpy_engine import NumpyEngine
from spectrod.errors import ConfigError, DeviceError
from spectrod.types import SpectrumSpec
from spectrod.units import Float32Array

EngineKind = Literal["auto", "opencl", "numpy"]
ENGINE_KINDS: tuple[EngineKind, ...] = get_args(EngineKind)

_log = logging.getLogger(__name__)


class PowerPlan(Protocol):
    """Window, transform and square frames of one shape; made once, executed often, one thread."""

    def execute(self, samples: Float32Array, n_frames: int) -> Float32Array:
        """Compute the one-sided power of overlapping frames.

        Parameters
        ----------
        samples : (channels, n) float32
            C-contiguous, n >= (n_frames - 1) * hop + win_length; frame p starts at p * hop [FS].
        n_frames : int
            1 to the plan's max_frames.

        Returns
        -------
        power : (n_frames, channels, n_bins) float32
            ``spec.power_scale * |X|^2``, doubled but at DC and Nyquist; linear also where
            spec.scaling is "dbfs". A new array.
        """


class Engine(Protocol):
    """What computes: an OpenCL device or NumPy in float64."""

    name: str
    """``"numpy"``, or ``"opencl:PLATFORM/DEVICE"``; it goes into every message."""

    def plan_power(self, spec: SpectrumSpec, max_frames: int) -> PowerPlan:
        """Prepare for frames as ``spec`` says, up to max_frames in one call.

        May be called while another thread executes an earlier plan.
        """

    def transpose(self, matrix: Float32Array) -> Float32Array:
        """Transpose a C-contiguous (rows, columns) float32 matrix into a new one."""

    def close(self) -> None:
        """Release the device."""


def open_engine(kind: EngineKind = "auto", device: str = "") -> Engine:
    """Open what will compute.

    Parameters
    ----------
    kind : {"auto", "opencl", "numpy"}
        "auto" takes the best OpenCL device that works, and NumPy, with one warning in the log,
        where there is none and no device was named.
    device : str
        Part of ``PLATFORM/DEVICE`` in any case, an index ``"0:1"``, or a platform's index
        ``"0"``; "" for any. Not with "numpy".

    Returns
    -------
    engine : Engine
        To be closed by the caller. Its ``name`` says what it is.

    Raises
    ------
    ConfigError
        If kind is unknown, or a device is named for "numpy".
    DeviceError
        If no OpenCL device fits or works, and one was named or kind is "opencl".
    """
    if kind not in ENGINE_KINDS:
        raise ConfigError(f"engine={kind!r}: must be one of {', '.join(ENGINE_KINDS)}")
    if kind == "numpy":
        if device:
            raise ConfigError(f"device={device!r}: engine 'numpy' uses no OpenCL device")
        return NumpyEngine()
    try:
        return _open_opencl(device)
    except DeviceError as error:
        if device or kind == "opencl":
            raise
        _log.warning("no OpenCL device works, computing with NumPy: %s", error)
        return NumpyEngine()


def _open_opencl(device: str) -> Engine:
    try:
        # Late: importing pyopencl loads the drivers, which a NumPy engine must not need.
        from spectrod.analysis.opencl_engine import open_opencl  # noqa: PLC0415
    except ImportError as error:
        raise DeviceError(f"pyopencl cannot be loaded: {error}") from error
    return open_opencl(device)
