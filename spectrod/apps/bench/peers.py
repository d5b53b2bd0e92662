"""Other FFT libraries, one class each, measured beside spectrod if they are installed.

Each gets the same values, and is timed in its normal use: with its threads, its planning done, its
data where it expects them. The OpenCL libraries use pyopencl's objects, so this module imports
pyopencl directly.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol, get_args

import numpy as np
import pyopencl as cl
from numpy.typing import NDArray

from spectrod.apps.bench.work import Work
from spectrod.fft import reference
from spectrod.fft.stage import Kind, TransformSpec
from spectrod.fft.timing import Timer
from spectrod.lib.errors import ConfigError, UnavailableError
from spectrod.opencl.devices import DeviceInfo

_ALL_KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """A prepared computation that can run repeatedly.

    Attributes
    ----------
    seconds : callable
        Runs once and returns the time [s].
    result : callable
        Runs once and returns the result, (batch, n_out), without scaling.
    """

    seconds: Timer
    result: Callable[[], NDArray[Any]]


def run_on_host(call: Callable[[], Any], result: Callable[[], Any] | None = None) -> PreparedRun:
    """Time a call by the wall clock; its value is the result, unless another one is given."""

    def seconds() -> float:
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    return PreparedRun(seconds, result or call)


class TransformPeer(Protocol):
    """An FFT library.

    Attributes
    ----------
    module : str
        Module that must be installed.
    device_kinds : tuple of str
        Kinds of OpenCL devices to compare it with.
    kinds : tuple of str
        Kinds of transforms that it computes.
    """

    module: str
    device_kinds: tuple[str, ...]
    kinds: tuple[Kind, ...]

    def prepare(self, work: Work, device: DeviceInfo) -> PreparedRun:
        """Plan the work; on this device, if it is an OpenCL library.

        Raises
        ------
        ImportError
            If the installed library does not work.
        """
        ...


class _Host:
    """Base of all CPU libraries."""

    device_kinds: tuple[str, ...] = ("cpu",)
    kinds: tuple[Kind, ...] = _ALL_KINDS

    run = staticmethod(run_on_host)


class Scipy(_Host):
    """``scipy.fft`` (pocketfft) with all workers."""

    module = "scipy"

    def prepare(self, work: Work, device: DeviceInfo) -> PreparedRun:
        """See ``TransformPeer``."""
        del device
        call = _numpy_call(import_module("scipy.fft"), work.spec)
        return self.run(lambda: call(work.lines, workers=os.cpu_count()))


class Mkl(_Host):
    """Intel's MKL through ``mkl_fft``."""

    module = "mkl_fft"

    def prepare(self, work: Work, device: DeviceInfo) -> PreparedRun:
        """See ``TransformPeer``."""
        del device
        call = _numpy_call(import_module("mkl_fft"), work.spec)
        out = np.empty((work.batch, work.spec.n_out), reference.out_dtype(work.spec))
        return self.run(lambda: call(work.lines, out=out))


class Fftw(_Host):
    """FFTW through pyFFTW, planned by measurement, with all threads."""

    module = "pyfftw"

    def prepare(self, work: Work, device: DeviceInfo) -> PreparedRun:
        """See ``TransformPeer``."""
        del device
        spec, pyfftw = work.spec, import_module("pyfftw")
        source = pyfftw.empty_aligned(work.lines.shape, work.lines.dtype)
        out = pyfftw.empty_aligned((work.batch, spec.n_out), reference.out_dtype(spec))
        plan = pyfftw.FFTW(
            source,
            out,
            axes=(1,),
            direction="FFTW_BACKWARD" if spec.inverse else "FFTW_FORWARD",
            flags=("FFTW_MEASURE",),
            threads=os.cpu_count(),
        )
        source[...] = work.lines  # planning has overwritten it

        def result() -> NDArray[Any]:
            plan.execute()
            return np.asarray(out)

        return self.run(plan.execute, result)


class TorchCpu(_Host):
    """PyTorch on the processor."""

    module = "torch"

    def prepare(self, work: Work, device: DeviceInfo) -> PreparedRun:
        """See ``TransformPeer``."""
        del device
        torch = import_module("torch")
        source, call = torch.from_numpy(work.lines), _numpy_call(torch.fft, work.spec)
        return self.run(lambda: call(source), lambda: call(source).numpy())


class TorchCuda:
    """PyTorch on a CUDA device: cuFFT, a plan cache and an allocator."""

    module = "torch"
    device_kinds: tuple[str, ...] = ("gpu",)
    kinds: tuple[Kind, ...] = _ALL_KINDS

    def prepare(self, work: Work, device: DeviceInfo) -> PreparedRun:
        """See ``TransformPeer``."""
        del device
        torch = import_module("torch")
        if not torch.cuda.is_available():
            raise ImportError("torch sees no CUDA device")
        source, call = torch.from_numpy(work.lines).cuda(), _numpy_call(torch.fft, work.spec)

        def seconds() -> float:
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            call(source)
            end.record()
            end.synchronize()
            return float(start.elapsed_time(end)) * 1e-3

        return PreparedRun(seconds, lambda: call(source).cpu().numpy())


class CuFft:
    """NVIDIA's cuFFT through CuPy: the plan alone, between two events."""

    module = "cupy"
    device_kinds: tuple[str, ...] = ("gpu",)
    kinds: tuple[Kind, ...] = _ALL_KINDS

    def prepare(self, work: Work, device: DeviceInfo) -> PreparedRun:
        """See ``TransformPeer``."""
        del device
        cupy, cufft = import_module("cupy"), import_module("cupy.cuda.cufft")
        spec = work.spec
        plan = cufft.Plan1d(spec.n, getattr(cufft, _cufft_type(work)), work.batch)
        source = cupy.asarray(work.lines)
        out = cupy.empty((work.batch, spec.n_out), reference.out_dtype(spec))
        direction = cufft.CUFFT_INVERSE if spec.inverse else cufft.CUFFT_FORWARD
        start, end = (cupy.cuda.Event() for _ in range(2))

        def seconds() -> float:
            start.record()
            plan.fft(source, out, direction)
            end.record()
            end.synchronize()
            return float(cupy.cuda.get_elapsed_time(start, end)) * 1e-3

        def result() -> NDArray[Any]:
            source.set(work.lines)  # c2r may have overwritten it
            plan.fft(source, out, direction)
            return np.asarray(out.get())

        return PreparedRun(seconds, result)


class _OpenCL:
    """Base of all OpenCL libraries: a separate queue on the measured device."""

    device_kinds: tuple[str, ...] = ("gpu", "accelerator", "cpu", "other")
    kinds: tuple[Kind, ...] = _ALL_KINDS

    @staticmethod
    def queue(device: DeviceInfo) -> Any:
        """Open a queue with profiling."""
        properties = cl.command_queue_properties.PROFILING_ENABLE
        return cl.CommandQueue(cl.Context([device.handle]), properties=properties)

    @staticmethod
    def run(queue: Any, call: Callable[[], Any], out: Any, divided_by: float = 1.0) -> PreparedRun:
        """Time calls between two markers by a GPU's clock, on other devices by the wall clock."""

        def wall_seconds() -> float:
            start = time.perf_counter()
            call()
            queue.finish()
            return time.perf_counter() - start

        def event_seconds() -> float:
            start = cl.enqueue_marker(queue)
            call()
            end = cl.enqueue_marker(queue)
            end.wait()
            return float(end.profile.end - start.profile.end) * 1e-9

        def result() -> NDArray[Any]:
            call()
            return np.asarray(out.get()) * divided_by

        is_gpu = queue.device.type & cl.device_type.GPU
        return PreparedRun(event_seconds if is_gpu else wall_seconds, result)


class VkFft(_OpenCL):
    """VkFFT's OpenCL back end through pyvkfft."""

    module = "pyvkfft"

    def prepare(self, work: Work, device: DeviceInfo) -> PreparedRun:
        """See ``TransformPeer``."""
        spec, queue = work.spec, self.queue(device)
        vkfft, arrays = import_module("pyvkfft.opencl"), import_module("pyopencl.array")
        source = arrays.to_device(queue, work.lines)
        out = arrays.empty(queue, (work.batch, spec.n_out), reference.out_dtype(spec))
        is_real = spec.kind != "c2c"
        # VkFFT expects the real side of a real transform, whatever its direction.
        real_side = out if spec.kind == "c2r" else source
        plan = vkfft.VkFFTApp(
            real_side.shape,
            real_side.dtype,
            queue,
            ndim=1,
            inplace=False,
            norm=0,
            r2c=is_real,
            r2c_odd=is_real and spec.n % 2 == 1,
        )
        call = plan.ifft if spec.inverse else plan.fft
        return self.run(queue, lambda: call(source, out), out)


class Reikna(_OpenCL):
    """Reikna's OpenCL back end: complex transforms; it divides inverse ones by n."""

    module = "reikna"
    kinds: tuple[Kind, ...] = ("c2c",)

    def prepare(self, work: Work, device: DeviceInfo) -> PreparedRun:
        """See ``TransformPeer``."""
        spec, queue = work.spec, self.queue(device)
        thread = import_module("reikna.cluda").ocl_api().Thread(queue)
        source = thread.to_device(work.lines)
        out = thread.empty_like(source)
        plan = import_module("reikna.fft").FFT(source, axes=(1,)).compile(thread)
        scale = spec.n if spec.inverse else 1
        return self.run(queue, lambda: plan(out, source, int(spec.inverse)), out, scale)


PEERS: Mapping[str, TransformPeer] = {
    "scipy.fft": Scipy(),
    "pyFFTW": Fftw(),
    "mkl_fft": Mkl(),
    "torch": TorchCpu(),
    "torch-cuda": TorchCuda(),
    "cuFFT": CuFft(),
    "pyvkfft": VkFft(),
    "reikna": Reikna(),
}
"""All peers, by their names in tables and options."""

# Exceptions of a library that does not support this machine, device or size.
_FAILURES = (
    *(ImportError, RuntimeError, ValueError, TypeError, AttributeError, LookupError),
    *(MemoryError, OSError, cl.Error),
)


def choose_peers(names: Sequence[str] | None, device: DeviceInfo) -> list[str]:
    """Choose the libraries to measure beside spectrod.

    Parameters
    ----------
    names : sequence of str or None
        Requested libraries; None for all that are installed and suit the device.
    device : DeviceInfo
        Device that spectrod uses.

    Raises
    ------
    ConfigError
        For an unknown name.
    UnavailableError
        If a requested library is not installed.
    """
    if names is None:
        fitting = (name for name, peer in PEERS.items() if device.kind in peer.device_kinds)
        return [name for name in fitting if _is_installed(PEERS[name])]
    for name in names:
        if name not in PEERS:
            raise ConfigError(f"peer {name!r}: must be one of {', '.join(PEERS)}")
        if not _is_installed(PEERS[name]):
            raise UnavailableError(f"peer {name!r}: {PEERS[name].module} is not installed")
    return list(names)


def prepare(name: str, work: Work, device: DeviceInfo) -> tuple[PreparedRun, float]:
    """Prepare a library for some work, and run it once.

    Returns
    -------
    run : PreparedRun
        Run that is warmed up.
    error : float
        Relative L2 error of the result [1].

    Raises
    ------
    UnavailableError
        If the library does not work here or does not compute this, with its own text.
    """
    with translated():
        run = PEERS[name].prepare(work, device)
        return run, work.error(run.result())


@contextmanager
def translated() -> Iterator[None]:
    """Convert a library's exceptions to an UnavailableError of one line."""
    try:
        yield
    except _FAILURES as failure:
        reason = str(failure).strip().splitlines() or [type(failure).__name__]
        raise UnavailableError(reason[0]) from failure


def _is_installed(peer: TransformPeer) -> bool:
    return find_spec(peer.module) is not None


def _cufft_type(work: Work) -> str:
    is_single = work.spec.precision == "single"
    kinds = {"c2c": ("C2C", "Z2Z"), "r2c": ("R2C", "D2Z"), "c2r": ("C2R", "Z2D")}
    return f"CUFFT_{kinds[work.spec.kind][0 if is_single else 1]}"


def _numpy_call(module: Any, spec: TransformSpec) -> Callable[..., Any]:
    """Return the function of an unscaled transform in a module with NumPy's names."""
    names = {"c2c": "ifft" if spec.inverse else "fft", "r2c": "rfft", "c2r": "irfft"}
    options: dict[str, Any] = {"norm": "forward"} if spec.inverse else {}
    if spec.kind == "c2r":
        options["n"] = spec.n
    return partial(getattr(module, names[spec.kind]), **options)
