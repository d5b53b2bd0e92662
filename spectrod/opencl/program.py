"""Compile OpenCL programs and say clearly why one does not compile."""

import logging
import warnings
from typing import Any

import pyopencl as cl

from spectrod.errors import DeviceError, KernelBuildError
from spectrod.opencl.devices import DeviceInfo
from spectrod.opencl.source import Defines, program_source

# No -cl-fast-relaxed-math and nothing like it: the figures must be those of the float32 arithmetic
# that is written in the kernels.
BUILD_OPTIONS = ("-cl-std=CL1.2",)

_PROBE = "__kernel void probe(__global int *out) { out[get_global_id(0)] = 1; }"

_log = logging.getLogger(__name__)


def build_program(context: Any, device: DeviceInfo, file: str, defines: Defines) -> Any:
    """Compile one kernel file for one device.

    Parameters
    ----------
    context : pyopencl.Context
        Of the device.
    device : DeviceInfo
        For the error's text.
    file : str
        Name in the kernel folder.
    defines : Defines
        What shapes the code.

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
        program = _build(context, program_source(file, defines))
    except cl.Error as error:
        options = " ".join([*BUILD_OPTIONS, *(f"-D{name}={value}" for name, value in defines)])
        raise KernelBuildError(
            f"{file} does not compile for {device.label} (driver {device.driver}) "
            f"with {options}:\n{error}"
        ) from error
    _log.debug("built %s for %s", file, device.label)
    return program


def check_compiler(context: Any, device: DeviceInfo) -> None:
    """Prove that the driver compiles at all, with a kernel of one line.

    PoCL, for one, offers its device also on a processor that is younger than its compiler, and
    then refuses every program (PoCL 3.0 with LLVM 14 on an AMD family 26 processor, 2026-11).

    Raises
    ------
    DeviceError
        One line, with the first complaint in the compiler's log.
    """
    try:
        _build(context, _PROBE)
    except cl.Error as error:
        raise DeviceError(
            f"{device.label} (driver {device.driver}): its compiler refuses every program: "
            f"{_first_complaint(str(error))}"
        ) from error


def _build(context: Any, source: str) -> Any:
    with warnings.catch_warnings():
        # pyopencl warns of any compiler output, also of a blank line.
        warnings.simplefilter("ignore", cl.CompilerWarning)
        return cl.Program(context, source).build(list(BUILD_OPTIONS))


def _first_complaint(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return next((line for line in lines if line.startswith("error")), lines[0])
