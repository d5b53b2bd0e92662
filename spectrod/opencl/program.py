"""Compiles OpenCL programs or loads them from the cache, with clear errors."""

import hashlib
import logging
import math
import os
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Lock, local
from typing import Any

import pyopencl as cl

from spectrod.lib.errors import DeviceError, KernelBuildError, NotCompiledError
from spectrod.opencl.binaries import (
    BUILD_OPTIONS,
    compile_program,
    has_program,
    load_binary,
    sound_binary_of,
)
from spectrod.opencl.devices import DeviceInfo
from spectrod.opencl.driver_cache import POCL, driver_cache_folder, driver_cache_trouble
from spectrod.opencl.notice import NOTICE
from spectrod.opencl.program_cache import BinaryCache
from spectrod.opencl.source import Defines, program_source

_NOTHING = nullcontext()

_PROBE = "__kernel void probe(__global int *out) { out[get_global_id(0)] = 1; }"
_COMPLAINT = "error"
"""Start of a compiler's line about a program."""
_REFUSED = b""
"""Content of the cache for a device whose compiler has refused the probe."""
_PROGRAMS_MAX = 128

_log = logging.getLogger(__name__)


class Programs:
    """The programs of one context, compiled or loaded from the cache; the last 128 are kept.

    Compiled programs are stored in the cache by ``store``, when this object is deleted, or at the
    end of the process: PoCL takes 0.2 to 0.5 s to return a program's binary, which must not delay a
    first result.

    Parameters
    ----------
    context : pyopencl.Context
        Context of the device.
    device : DeviceInfo
        The only device of the programs.
    cache : BinaryCache
        Cache to load from and store to.
    programs_max : int
        Maximum number of programs in memory.
    stores : bool
        Whether what is compiled is stored. Not by a process that must not end: PoCL frees memory
        that it has not allocated if a file vanishes from its cache while it makes a binary (3.1,
        ``serialize_file``).
    compiler : callable
        Compiles a source for a context; by default the driver's compiler.
    """

    def __init__(
        self,
        context: Any,
        device: DeviceInfo,
        cache: BinaryCache,
        programs_max: int = _PROGRAMS_MAX,
        *,
        stores: bool = True,
        compiler: Callable[[Any, str], Any] = compile_program,
    ) -> None:
        self._stores = stores
        self._compiler = compiler
        self._programs_max = programs_max
        self._context = context
        self._device = device
        self._cache = cache
        self._programs: dict[tuple[str, Defines], Any] = {}
        self._compiled: dict[str, Any] = {}
        self._lock = Lock()
        self._is_fresh = False
        self._this_thread = local()
        weakref.finalize(self, _store, device, cache, self._compiled, os.getpid())

    def get(self, file: str, defines: Defines) -> Any:
        """Return the program of a kernel file.

        Parameters
        ----------
        file : str
            Name in the kernel folder.
        defines : Defines
            Defines of the program.

        Returns
        -------
        program : pyopencl.Program
            Built.

        Raises
        ------
        KernelBuildError
            With the device, the options and the compiler's first complaint in one line, and the
            compiler's log below.
        DeviceError
            If the driver cannot use its own cache, see ``spectrod.opencl.driver_cache``.
        NotCompiledError
            Within ``only_compiled``, if the program is not in the cache.
        """
        key = file, defines
        with self._lock:
            program = self._programs.pop(key, None)
        program = program or self._named(file, defines)  # two threads may both compile it
        with self._lock:
            self._keep(self._programs, key, program)
        return program

    @contextmanager
    def only_compiled(self) -> Iterator[None]:
        """Raise NotCompiledError in this thread where a program would have to be compiled."""
        self._this_thread.only_compiled = True
        try:
            yield
        finally:
            self._this_thread.only_compiled = False

    def check_compiler(self) -> None:
        """Check that the driver compiles, or has compiled, a kernel of one line.

        PoCL, for example, offers its device even on a processor that is newer than its compiler,
        and then rejects every program (PoCL 3.0 with LLVM 14 on an AMD family 26 processor,
        2026-11).

        Raises
        ------
        DeviceError
            One line, with the first error in the compiler's log; within ``only_compiled`` also if
            an earlier check in any process has stored that it failed.
        NotCompiledError
            Within ``only_compiled``, if there was no earlier check.
        """
        key = cache_key(self._device, _PROBE)
        if self._is_only_compiled and self._cache.load(key) == _REFUSED:
            raise DeviceError(f"{self._device.label}: its compiler refused every program before")
        try:
            self._built_in_two_attempts(_PROBE)
        except cl.Error as error:
            complaint = _first_complaint(str(error))
            if complaint.startswith(_COMPLAINT):  # else the driver failed, not its compiler
                self._cache.store(key, _REFUSED)
            raise DeviceError(
                f"{self._device.label} (driver {self._device.driver}): its compiler refuses every "
                f"program: {complaint}"
            ) from error

    def _built_in_two_attempts(self, source: str) -> Any:
        """Build; once more if that fails, as it does where a driver's files vanish meanwhile."""
        try:
            return self._built(source)
        except cl.Error as error:
            _log.debug("%s: once more: %s", self._device.label, error)
            return self._built(source)

    def first_use(self, *, is_last: bool = True) -> AbstractContextManager[None]:
        """Wrap a wait for the device: drivers may continue to compile at the first launch.

        Parameters
        ----------
        is_last : bool
            Whether the compiled program has run at the end of the context.
        """
        if not self._is_fresh:
            return _NOTHING
        self._is_fresh = not is_last
        return NOTICE.during()

    def store(self) -> None:
        """Store compiled programs in the cache, the oldest first, without a time limit."""
        _store(self._device, self._cache, self._compiled, os.getpid(), math.inf)

    def clear(self) -> None:
        """Store for at most the ``store_s`` of the cache, then drop all programs."""
        _store(self._device, self._cache, self._compiled, os.getpid())
        self._programs.clear()

    def _named(self, file: str, defines: Defines) -> Any:
        try:
            return self._built(program_source(file, defines))
        except cl.Error as error:
            options = " ".join([*BUILD_OPTIONS, *(f"-D{name}={value}" for name, value in defines)])
            raise KernelBuildError(
                f"{file} does not compile for {self._device.label} (driver {self._device.driver}) "
                f"with {options}: {_first_complaint(str(error))}\n{error}"
            ) from error

    def _built(self, source: str) -> Any:
        key = cache_key(self._device, source)
        binary = self._cache.load(key)
        if binary and self._device.platform == POCL and not has_program(binary):
            binary = None
        if binary is None and self._is_only_compiled:
            raise NotCompiledError(f"{self._device.label}: a kernel is not in {self._cache.folder}")
        if trouble := _driver_trouble(self._device):
            raise DeviceError(trouble)
        if binary:
            try:
                return load_binary(self._context, self._device, binary)
            except cl.Error as error:
                _log.debug("%s refuses a binary that it made: %s", self._device.label, error)
        if self._is_only_compiled:
            raise NotCompiledError(f"{self._device.label}: a kernel is not in {self._cache.folder}")
        with NOTICE.during():
            program = self._compiler(self._context, source)
        self._is_fresh = True
        if self._stores:
            with self._lock:
                self._keep(self._compiled, key, program)
        return program

    @property
    def _is_only_compiled(self) -> bool:
        return getattr(self._this_thread, "only_compiled", False)

    def _keep(self, programs: dict[Any, Any], key: Any, program: Any) -> None:
        """Add a program as the newest, and drop the oldest beyond the bound."""
        programs[key] = program
        while len(programs) > self._programs_max:
            del programs[next(iter(programs))]


def cache_key(device: DeviceInfo, source: str) -> str:
    """Return a program's name in the cache: a hash of everything that the binary depends on."""
    parts = (device.platform, device.name, device.driver, cl.VERSION_TEXT, *BUILD_OPTIONS, source)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _driver_trouble(device: DeviceInfo) -> str:
    """Return in one line why the driver would end this process; an empty text if it would not."""
    return driver_cache_trouble(driver_cache_folder()) if device.platform == POCL else ""


def _store(
    device: DeviceInfo,
    cache: BinaryCache,
    compiled: dict[str, Any],
    pid: int,
    limit_s: float | None = None,
) -> None:
    """Store and drop programs until a time limit; not after a fork, where drivers hang."""
    end = time.monotonic() + (cache.store_s if limit_s is None else limit_s)
    # PoCL compiles again for a binary.
    if compiled and cache.max_bytes > 0 and os.getpid() == pid:
        for key, program in list(compiled.items()):
            if time.monotonic() < end and not _driver_trouble(device):
                _store_one(device, cache, key, program)
    compiled.clear()


def _store_one(device: DeviceInfo, cache: BinaryCache, key: str, program: Any) -> None:
    try:
        binary = sound_binary_of(device, program)
    except DeviceError as error:  # it is compiled again next time
        _log.debug("not stored: %s", error)
    else:
        cache.store(key, binary)


def _first_complaint(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return next((line for line in lines if line.startswith(_COMPLAINT)), lines[0])
