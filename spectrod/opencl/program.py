"""Compile OpenCL programs or take them from the cache, and say clearly why one does not compile."""

import hashlib
import logging
import warnings
from typing import Any

import pyopencl as cl

from spectrod.errors import DeviceError, KernelBuildError
from spectrod.opencl.cache import BinaryCache
from spectrod.opencl.devices import DeviceInfo
from spectrod.opencl.source import Defines, program_source

# No -cl-fast-relaxed-math and nothing like it: the figures must be those of the float32 arithmetic
# that is written in the kernels.
BUILD_OPTIONS = ("-cl-std=CL1.2",)

_PROBE = "__kernel void probe(__global int *out) { out[get_global_id(0)] = 1; }"

_log = logging.getLogger(__name__)


def build_program(
    context: Any, device: DeviceInfo, file: str, defines: Defines, cache: BinaryCache
) -> Any:
    """Make the program of one kernel file for one device.

    Parameters
    ----------
    context : pyopencl.Context
        Of the device.
    device : DeviceInfo
        The program's only one.
    file : str
        Name in the kernel folder.
    defines : Defines
        What shapes the code.
    cache : BinaryCache
        Asked first; gets what had to be compiled.

    Returns
    -------
    program : pyopencl.Program
        Built.

    Raises
    ------
    KernelBuildError
        With the device, the options and the compiler's log.
    """
    try:
        return _cached(context, device, program_source(file, defines), cache)
    except cl.Error as error:
        options = " ".join([*BUILD_OPTIONS, *(f"-D{name}={value}" for name, value in defines)])
        raise KernelBuildError(
            f"{file} does not compile for {device.label} (driver {device.driver}) "
            f"with {options}:\n{error}"
        ) from error


def check_compiler(context: Any, device: DeviceInfo, cache: BinaryCache) -> None:
    """Prove that the driver compiles at all, or did before, with a kernel of one line.

    PoCL, for one, offers its device also on a processor that is younger than its compiler, and
    then refuses every program (PoCL 3.0 with LLVM 14 on an AMD family 26 processor, 2026-11).

    Raises
    ------
    DeviceError
        One line, with the first complaint in the compiler's log.
    """
    try:
        _cached(context, device, _PROBE, cache)
    except cl.Error as error:
        raise DeviceError(
            f"{device.label} (driver {device.driver}): its compiler refuses every program: "
            f"{_first_complaint(str(error))}"
        ) from error


def cache_key(device: DeviceInfo, source: str) -> str:
    """Name of a program in the cache: whatever the binary depends on, hashed."""
    parts = (device.platform, device.name, device.driver, cl.VERSION_TEXT, *BUILD_OPTIONS, source)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _cached(context: Any, device: DeviceInfo, source: str, cache: BinaryCache) -> Any:
    key = cache_key(device, source)
    binary = cache.load(key)
    if binary is not None:
        try:
            return _load(context, device, binary)
        except cl.Error as error:
            _log.debug("%s refuses a binary that it made: %s", device.label, error)
    program = _build(context, source)
    if cache.max_bytes > 0:  # PoCL takes 0.2 s to say what the binary is
        cache.store(key, program.get_info(cl.program_info.BINARIES)[0])
    return program


def _load(context: Any, device: DeviceInfo, binary: bytes) -> Any:
    return _silently(cl.Program(context, [device.handle], [binary]))


def _build(context: Any, source: str) -> Any:
    # pyopencl's own cache waits for locks that a killed process leaves behind.
    return _silently(cl.Program(context, source), cache_dir=False)


def _silently(program: Any, **keywords: Any) -> Any:
    with warnings.catch_warnings():
        # pyopencl warns of any compiler output, also of a blank line.
        warnings.simplefilter("ignore", cl.CompilerWarning)
        return program.build(list(BUILD_OPTIONS), **keywords)


def _first_complaint(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return next((line for line in lines if line.startswith("error")), lines[0])
