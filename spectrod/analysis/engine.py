"""The interface that every engine implements, and the choice among them."""

import logging
from contextlib import suppress
from typing import Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from spectrod.analysis.numpy_engine import NumpyEngine
from spectrod.analysis.rows import RowCount
from spectrod.analysis.window import SampleWindow
from spectrod.errors import ConfigError, DeviceError
from spectrod.sample_layout import SampleLayout
from spectrod.types import SpectrumSpec
from spectrod.units import Float32Array

EngineKind = Literal["auto", "opencl", "numpy"]
ENGINE_KINDS: tuple[EngineKind, ...] = get_args(EngineKind)

IN_FLIGHT_MAX = 2
"""Batches of a plan that may be computed while others are submitted."""

_log = logging.getLogger(__name__)


class Rows(Protocol):
    """What was submitted, on its way."""

    def collect(self) -> NDArray[Any]:
        """Wait for the rows, (rows, signals, values) float32 or complex64.

        Memory goes back to the plan with the last array that refers to it: copy what is kept long.

        Raises
        ------
        DeviceError
            If the device failed.
        """
        ...


class FramePlan(Protocol):
    """Frames of one spec in one window to rows; made once, used by one thread.

    Attributes
    ----------
    count : RowCount
        Which rows come next; as of all that was submitted.
    """

    count: RowCount

    def restart(self) -> None:
        """Begin averages anew with the frames submitted next."""
        ...

    def submit(
        self, place: int, n_frames: int, out: NDArray[Any] | None = None, *, phase: int = 0
    ) -> Rows:
        """Begin to compute frames that follow on those before, unless restarted.

        Parameters
        ----------
        place : int
            Index in the window's data of the first frame's first sample; all samples of the frames
            are there, and stay there until the rows are collected.
        n_frames : int
            1 to the plan's max_frames; while ``IN_FLIGHT_MAX`` are not collected, none.
        out : (rows, signals, values) array, optional
            C-contiguous, where the rows go; by default memory of the plan's.
        phase : int
            Of the row that the first frame is of, see ``spectrod.grid.RowGrid``.

        Raises
        ------
        DeviceError
            If the device failed.
        """
        ...


class Engine(Protocol):
    """What computes: an OpenCL device or NumPy in float64.

    Attributes
    ----------
    name : str
        ``"numpy"``, or ``"opencl:PLATFORM/DEVICE"``; it goes into every message.
    fallback : Engine, optional
        What goes on where this one fails; None where that is an error.
    batch_bytes : int
        Bytes of samples or results, whichever are more, that make a good batch.
    """

    @property
    def name(self) -> str: ...  # noqa: D102 - above

    @property
    def fallback(self) -> "Engine | None": ...  # noqa: D102 - above

    @property
    def batch_bytes(self) -> int: ...  # noqa: D102 - above

    def window(self, layout: SampleLayout, capacity: int) -> SampleWindow:
        """Make an empty window, of memory that suits the device.

        Raises
        ------
        DeviceError
            If there is not so much.
        """
        ...

    def window_over(self, layout: SampleLayout, memory: NDArray[np.uint8]) -> SampleWindow | None:
        """Make a window of samples where they are; None if the device cannot read them there."""
        ...

    def plan(self, spec: SpectrumSpec, window: SampleWindow, max_frames: int) -> FramePlan:
        """Prepare for frames in a window of this engine's, up to max_frames in one batch.

        May be called while another thread uses an earlier plan. NumPy takes any engine's window.

        Raises
        ------
        DeviceError
            If the device is too small or compiles it not.
        """
        ...

    def transpose(self, matrix: Float32Array) -> Float32Array:
        """Transpose a C-contiguous (rows, columns) float32 matrix into a new one."""
        ...

    def keep_programs(self) -> None:
        """Store what was compiled for later processes now, not when the engine is closed."""
        ...

    def close(self) -> None:
        """Release the device."""
        ...


def transpose(engine: Engine, matrix: Float32Array) -> Float32Array:
    """Transpose by an engine, or by its fallback if it fails; see ``Engine.transpose``."""
    try:
        return engine.transpose(matrix)
    except DeviceError as error:
        return stand_in(engine, error).transpose(matrix)


def stand_in(engine: Engine, error: DeviceError) -> Engine:
    """Return what goes on where an engine failed; raise the error if nothing does."""
    if engine.fallback is None:
        raise error
    _log.warning("%s failed, going on with %s: %s", engine.name, engine.fallback.name, error)
    return engine.fallback


def open_engine(kind: EngineKind = "auto", device: str = "") -> Engine:
    """Open what will compute.

    Parameters
    ----------
    kind : {"auto", "opencl", "numpy"}
        "auto" takes the best OpenCL device that works, and NumPy, with one warning in the log,
        where there is none and no device was named, or where the device fails later.
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
        If kind is unknown, device is no text, or one is named for "numpy".
    DeviceError
        If no OpenCL device fits or works, and one was named or kind is "opencl".
    """
    if kind not in ENGINE_KINDS:
        raise ConfigError(f"engine={kind!r}: must be one of {', '.join(ENGINE_KINDS)}")
    if not isinstance(device, str):
        raise ConfigError(f"device={device!r}: must be text, also where it is a number")
    if kind == "numpy":
        if device:
            raise ConfigError(f"device={device!r}: engine 'numpy' uses no OpenCL device")
        return NumpyEngine()
    fallback = None if device or kind == "opencl" else NumpyEngine()
    try:
        return _open_opencl(device, fallback)
    except DeviceError as error:
        if fallback is None:
            raise
        _log.warning("no OpenCL device works, computing with NumPy: %s", error)
        return fallback


def begin_to_open(kind: EngineKind) -> None:
    """Let what takes longest begin, before ``open_engine``, which says what is wrong with it."""
    if kind != "numpy":
        with suppress(ImportError):
            from spectrod.opencl.devices import load_drivers  # noqa: PLC0415 - as below

            load_drivers()


def _open_opencl(device: str, fallback: NumpyEngine | None) -> Engine:
    try:
        # Late: importing pyopencl loads the drivers, which a NumPy engine must not need.
        from spectrod.analysis.opencl_engine import open_opencl  # noqa: PLC0415
    except ImportError as error:
        raise DeviceError(f"pyopencl cannot be loaded: {error}") from error
    return open_opencl(device, fallback)
