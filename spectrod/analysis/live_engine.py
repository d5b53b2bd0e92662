"""The engine of live sources: NumPy computes while the kernels of a device are compiled."""

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock
from typing import Any, Protocol

from spectrod.analysis.compile_queue import Compilation, CompileQueue
from spectrod.analysis.engine import Engine, open_engine
from spectrod.analysis.numpy_engine import NumpyEngine, numpy_duration_s
from spectrod.analysis.stream import FrameStream
from spectrod.analysis.warm_up import (
    LIMIT_S,
    WAIT_LIMIT_S,
    CompilerJob,
    CompilerProcess,
    is_compiled,
    warm_up,
)
from spectrod.dsp.blocks import SampleFormat
from spectrod.dsp.sample_layout import SampleLayout
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.errors import DeviceError, NotCompiledError, SpectrodError
from spectrod.opencl.program_cache import BinaryCache

_LOAD_MAX = 0.25
"""Share of the time for which NumPy may compute a live source: machines differ, and the compiler
runs beside it."""
_STOP_S = 0.2
"""Time for a thread to end that loads kernels; one that the driver holds is left behind [s]."""
_ATTEMPTS = 3
"""How often kernels are compiled if they cannot be loaded: a cache may be removed meanwhile."""

_log = logging.getLogger(__name__)
_opened = partial(open_engine, stores=False)


class Compiler(Protocol):
    """Compiles kernels into the cache; see ``CompilerProcess``."""

    def run(self, job: CompilerJob) -> str:
        """Compile; return what went wrong in one line, or an empty text.

        Raises DeviceError if the driver crashed.
        """

    def stop(self) -> None:
        """Make a run in progress return, and later ones do nothing; any thread."""


class LiveEngine:
    """The best OpenCL device, or NumPy until the kernels for it are compiled.

    A stream whose kernels are not in the cache starts with NumPy. Another process compiles them;
    then the stream moves to the device at the next frame. If that fails, NumPy continues. A stream
    that is too much for NumPy waits for the compiler instead.

    Parameters
    ----------
    name : str
        Name of the source, for the log.
    compiler : Compiler, optional
        Compiles kernels; by default a ``CompilerProcess``.
    open_device : callable, optional
        Opens the device as ``open_engine`` does, without compiling if ``compiles`` is False.
    queue : CompileQueue, optional
        Where its compilations wait for their turn; shared by the sources of a daemon.

    Notes
    -----
    Streams are opened by one thread at a time, and used by another.
    """

    def __init__(
        self,
        name: str,
        compiler: Compiler | None = None,
        open_device: Callable[..., Engine] = _opened,
        queue: CompileQueue | None = None,
    ) -> None:
        self._source_name = name
        self._compiler = compiler or CompilerProcess()
        self._open_device = open_device
        self._compiling = Lock()
        self._newest: _Preparation | None = None
        self._queue = queue or CompileQueue()
        self._compilations: list[Compilation] = []
        self._is_closed = False
        self._device: Engine | None = None
        try:
            self._device = open_device(compiles=False)
        except NotCompiledError as error:
            _log.debug("%s", error)

    @property
    def name(self) -> str:
        """Name of the device, or ``"numpy"`` before one is open."""
        return self._device.name if self._device else NumpyEngine.name

    def open_stream(
        self,
        specs: SpectrumSpec | Sequence[SpectrumSpec],
        *,
        sample_format: SampleFormat = "float32",
        interleaved: bool = False,
        **settings: Any,
    ) -> FrameStream:
        """Open a stream, which computes at once.

        Parameters
        ----------
        specs : SpectrumSpec or sequence of them
            What to compute.
        sample_format : {"float32", "int16", "int24", "int32"}
            Format of the blocks.
        interleaved : bool
            Order of samples in the buffer.
        **settings
            Other parameters of ``FrameStream``.

        Raises
        ------
        ConfigError, DeviceError
            As ``FrameStream``.
        """
        several = (specs,) if isinstance(specs, SpectrumSpec) else tuple(specs)
        work = _Preparation(
            self._source_name,
            several,
            SampleLayout(sample_format, several[0].channels, interleaved),
        )
        open_on = partial(
            FrameStream, specs, sample_format=sample_format, interleaved=interleaved, **settings
        )
        if not self._is_ready(work):
            if sum(numpy_duration_s(spec, spec.fs) for spec in several) <= _LOAD_MAX:
                _log.info("%s: compiling kernels; NumPy computes until then", self._source_name)
                stream = open_on(engine=NumpyEngine(), next_engine=work.take)
                self._start(work)
                return stream
            _log.info("%s: compiling kernels; its spectra begin after that", self._source_name)
            try:
                with self._compiling:
                    self._prepare(work, limit_s=WAIT_LIMIT_S)
            except DeviceError as error:
                _report_failure(error)
                return open_on(engine=NumpyEngine())
            if self._is_closed:
                return open_on(engine=NumpyEngine())
        self._device = self._device or self._open_device()
        return open_on(engine=self._device)

    def close(self) -> None:
        """Stop compiling, and release the device."""
        self._is_closed = True
        self._compiler.stop()
        deadline_s = time.monotonic() + _STOP_S
        for one in self._compilations:
            self._queue.cancel(one)
        ended = [one.wait(max(0.0, deadline_s - time.monotonic())) for one in self._compilations]
        # A driver that still compiles in a thread must keep its context.
        if self._device and all(ended):
            self._device.close()

    def _is_ready(self, work: "_Preparation") -> bool:
        device = self._device
        if device is None:
            return False
        return device.name == NumpyEngine.name or is_compiled(device, work.specs, work.layout)

    def _start(self, work: "_Preparation") -> None:
        self._newest = work
        running = [one for one in self._compilations if not one.has_ended]
        self._compilations = [*running, self._queue.add(partial(self._prepare_if_newest, work))]

    def _prepare_if_newest(self, work: "_Preparation", compilation: Compilation) -> None:
        with self._compiling:  # of several changes in a row, only the last one is compiled
            if self._newest is not work or self._is_closed:
                return
            try:
                if not (compilation.followed_another and self._is_settled(work)):
                    self._prepare(work)
            except SpectrodError as error:
                self._queue.failed.add(work.text)
                _report_failure(error)

    def _is_settled(self, work: "_Preparation") -> bool:
        """Load what another source's compilation has stored; True if that works or had failed."""
        return work.text in self._queue.failed or (
            BinaryCache().is_writable() and self._loaded(work)
        )

    def _prepare(self, work: "_Preparation", limit_s: float = LIMIT_S) -> None:
        """Compile, and open the device if it is not open yet."""
        device = self._device.name.removeprefix("opencl:") if self._device else ""
        job = CompilerJob.of(work.specs, work.layout, device, limit_s=limit_s)
        trouble = ""
        for _ in range(_ATTEMPTS):
            if trouble := self._compiler.run(job):
                break
            if self._loaded(work):
                return
            trouble = "they cannot be loaded from the cache"
        if not self._is_closed:
            self._queue.failed.add(work.text)
            _log.warning("cannot compile kernels: %s", trouble)

    def _loaded(self, work: "_Preparation") -> bool:
        """Load compiled kernels; compile them again where they cannot be stored."""
        stores = BinaryCache().is_writable()
        try:
            self._device = self._device or self._open_device(compiles=not stores)
        except NotCompiledError:
            return False
        if not self._is_ready(work):
            if stores:
                return False
            _log.debug("compiled kernels cannot be stored: compiling them in this process")
            warm_up(self._device, work.specs, work.layout)
        work.finish(self._device)
        return True


class _Preparation:
    """A stream's way to a device: what to compile, and then the device, once."""

    def __init__(self, name: str, specs: tuple[SpectrumSpec, ...], layout: SampleLayout) -> None:
        self.specs, self.layout = specs, layout
        self._name = name
        self._start_s = time.monotonic()
        self._ready: deque[Engine] = deque(maxlen=1)

    @property
    def text(self) -> str:
        """The same text for all that needs the same kernels."""
        return CompilerJob.of(self.specs, self.layout).command[-1]

    def finish(self, device: Engine) -> None:
        """Provide the device."""
        if device.name != NumpyEngine.name:
            self._ready.append(device)

    def take(self) -> Engine | None:
        """Return the device once, when it is ready; called by the stream's thread."""
        if not self._ready:
            return None
        device, spent_s = self._ready.pop(), time.monotonic() - self._start_s
        _log.info("%s: moved to %s after %.1f s", self._name, device.name, spent_s)
        return device


def _report_failure(failure: SpectrodError) -> None:
    _log.warning("cannot compile kernels: %s", failure)
