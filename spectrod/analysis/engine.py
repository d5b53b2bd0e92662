"""The interface that every engine implements, and the choice among them."""

import logging
from contextlib import AbstractContextManager, suppress
from typing import Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from spectrod.analysis.frame_launch import FrameLaunch
from spectrod.analysis.numpy_engine import Float64Engine, NumpyEngine
from spectrod.analysis.sample_buffer import SampleBuffer
from spectrod.dsp.sample_layout import SampleLayout
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import Float32Array
from spectrod.lib.errors import ConfigError, DeviceError

EngineKind = Literal["auto", "opencl", "numpy", "float64"]
ENGINE_KINDS: tuple[EngineKind, ...] = get_args(EngineKind)
HOST_KINDS: tuple[EngineKind, ...] = ("numpy", "float64")
"""Kinds that use no OpenCL device."""

IN_FLIGHT_MAX = 2
"""Maximum number of batches of a plan in flight."""

_log = logging.getLogger(__name__)


class PendingRows(Protocol):
    """Rows of a submitted batch."""

    def collect(self) -> NDArray[Any]:
        """Wait for the rows, (rows, signals, values) float32 or complex64.

        The memory returns to the plan when no array refers to it any more: copy rows to keep them.

        Raises
        ------
        DeviceError
            If the device failed.
        """
        ...


class FramePlan(Protocol):
    """Computes rows from frames of one spec in one buffer; made once, used by one thread."""

    def resume(self, power: Any) -> None:
        """Continue the averages of another plan of the same spec, before the first frames.

        Parameters
        ----------
        power : (signals, values) float64 or Percentile, optional
            Its averaged power so far, of a mean the sum; of percentiles the unfinished row; None
            before a first frame.
        """
        ...

    def submit(self, launch: FrameLaunch, out: NDArray[Any] | None = None) -> PendingRows:
        """Start to compute frames.

        Parameters
        ----------
        launch : FrameLaunch
            The frames; at most ``IN_FLIGHT_MAX`` batches may be uncollected.
        out : (rows, signals, values) array, optional
            C-contiguous destination of the rows; by default memory of the plan.

        Raises
        ------
        DeviceError
            If the device failed.
        """
        ...


class Engine(Protocol):
    """Implementation of the analysis: an OpenCL device, or NumPy.

    Attributes
    ----------
    name : str
        ``"numpy"`` or ``"opencl:PLATFORM/DEVICE"``; part of every message.
    fallback : Engine, optional
        Engine that continues if this one fails; None if a failure is an error.
    batch_bytes : int
        Suitable size of a batch, the larger of samples and results [bytes].
    block_batch_bytes : int
        Maximum size of a batch of a long block that the engine reads in its own memory; 0 if the
        engine reads copies of samples [bytes].
    """

    @property
    def name(self) -> str: ...  # noqa: D102 - above

    @property
    def fallback(self) -> "Engine | None": ...  # noqa: D102 - above

    @property
    def batch_bytes(self) -> int: ...  # noqa: D102 - above

    @property
    def block_batch_bytes(self) -> int: ...  # noqa: D102 - above

    def sample_buffer(self, layout: SampleLayout, capacity: int) -> SampleBuffer:
        """Make an empty buffer in memory that suits the device.

        Raises
        ------
        DeviceError
            If there is not enough memory.
        """
        ...

    def sample_buffer_over(
        self, layout: SampleLayout, memory: NDArray[np.uint8]
    ) -> SampleBuffer | None:
        """Make a buffer over existing samples; None if the device cannot read them in place."""
        ...

    def result_memory(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return memory for rows that ``submit`` writes to; it may be that of earlier results.

        Memory is used again only when no array refers to it any more.

        Raises
        ------
        DeviceError
            If there is not enough memory.
        """
        ...

    def plan(self, spec: SpectrumSpec, buffer: SampleBuffer, max_frames: int) -> FramePlan:
        """Make a plan for frames in a buffer of this engine, up to max_frames in one batch.

        May be called while another thread uses an earlier plan. NumPy accepts any engine's buffer.

        Raises
        ------
        DeviceError
            If the device is too small or cannot compile the kernels.
        """
        ...

    def transpose(self, matrix: Float32Array) -> Float32Array:
        """Transpose a C-contiguous (rows, columns) float32 matrix into a new one."""
        ...

    def only_compiled(self) -> AbstractContextManager[None]:
        """Raise NotCompiledError in this thread where a kernel would have to be compiled."""
        ...

    def keep_programs(self) -> None:
        """Store compiled programs for later processes now, instead of at ``close``."""
        ...

    def close(self) -> None:
        """Release the device."""
        ...


def transpose(engine: Engine, matrix: Float32Array) -> Float32Array:
    """Transpose by an engine, or by its fallback if it fails; see ``Engine.transpose``."""
    try:
        return engine.transpose(matrix)
    except DeviceError as error:
        return fallback_for(engine, error).transpose(matrix)


def fallback_for(engine: Engine, error: DeviceError) -> Engine:
    """Return the fallback of a failed engine; raise the error if it has none."""
    if engine.fallback is None:
        raise error
    first_line, _, build_log = str(error).partition("\n")
    _log.warning("%s failed, continuing with %s: %s", engine.name, engine.fallback.name, first_line)
    if build_log:
        _log.debug("%s: %s", engine.name, build_log)
    return engine.fallback


def open_engine(
    kind: EngineKind = "auto", device: str = "", *, compiles: bool = True, stores: bool = True
) -> Engine:
    """Open an engine.

    Parameters
    ----------
    kind : {"auto", "opencl", "numpy", "float64"}
        "auto" selects the best OpenCL device that works; if there is none and no device was named,
        or if the device fails later, it uses NumPy and logs one warning. "float64" is NumPy that
        computes all in float64, however long it takes.
    device : str
        Part of ``PLATFORM/DEVICE`` in any case, an index ``"0:1"``, or a platform's index
        ``"0"``; "" for any. Not with "numpy" or "float64".
    compiles : bool
        Whether the check of a driver's compiler may compile, for a second.
    stores : bool
        Whether compiled programs are stored for later processes, which has ended processes whose
        driver's cache was removed meanwhile.

    Returns
    -------
    engine : Engine
        The caller closes it. ``name`` identifies it.

    Raises
    ------
    ConfigError
        If kind is unknown, device is no text, or a device is given for an engine without one.
    DeviceError
        If no OpenCL device fits or works, and one was named or kind is "opencl".
    NotCompiledError
        If the check of a driver's compiler is not in the cache and must not compile.
    """
    if kind not in ENGINE_KINDS:
        raise ConfigError(f"engine={kind!r}: must be one of {', '.join(ENGINE_KINDS)}")
    if not isinstance(device, str):
        raise ConfigError(f"device={device!r}: must be text, also where it is a number")
    if kind in HOST_KINDS:
        if device:
            raise ConfigError(f"device={device!r}: engine {kind!r} uses no OpenCL device")
        return NumpyEngine() if kind == "numpy" else Float64Engine()
    fallback = None if device or kind == "opencl" else NumpyEngine()
    try:
        return _open_opencl(device, fallback, compiles=compiles, stores=stores)
    except DeviceError as error:
        if fallback is None:
            raise
        _log.warning("no OpenCL device works, using NumPy: %s", error)
        return fallback


def preload_drivers(kind: EngineKind) -> None:
    """Start to load the OpenCL drivers before ``open_engine``, which reports errors."""
    if kind not in HOST_KINDS:
        with suppress(ImportError):
            from spectrod.opencl.devices import load_drivers  # noqa: PLC0415 - as below

            load_drivers()


def _open_opencl(
    device: str, fallback: NumpyEngine | None, *, compiles: bool, stores: bool
) -> Engine:
    try:
        # Late import: pyopencl loads the drivers, which a NumPy engine must not need.
        from spectrod.analysis.opencl_engine import open_opencl  # noqa: PLC0415
    except ImportError as error:
        raise DeviceError(f"pyopencl cannot be loaded: {error}") from error
    return open_opencl(device, fallback, compiles=compiles, stores=stores)
