"""Binaries of compiled programs: asked of the driver, checked, and loaded again."""

import ctypes
import warnings
from typing import Any

import pyopencl as cl

from spectrod.lib.errors import DeviceError
from spectrod.opencl.devices import DeviceInfo
from spectrod.opencl.driver_cache import POCL

# No -cl-fast-relaxed-math or similar: results must be those of the float32 arithmetic in the
# kernels.
BUILD_OPTIONS = ("-cl-std=CL1.2",)

# PoCL's compiler prints its number of warnings on standard error.
_NO_WARNINGS = "-w"
_POCL_PROGRAM = b"/program.bc"
_LENGTH_BYTES = 4

# Functions of the loader that pyopencl is linked with, called without the GIL.
_DRIVERS = ctypes.CDLL(cl._cl.__file__)  # noqa: SLF001


def sound_binary_of(device: DeviceInfo, program: Any) -> bytes:
    """Return the binary of a program, from which later processes can make the program again.

    PoCL puts a binary together from the files of its cache, without looking whether they are there.
    It ends a process that loads the binary of a program whose files were removed.

    Raises
    ------
    DeviceError
        If the driver returns none, or a binary that lacks the program or cannot be loaded.
    """
    binary = binary_of(program)
    if device.platform == POCL:
        if not has_program(binary):
            raise DeviceError(f"{device.label}: its cache has lost a program")
        try:
            load_binary(program.context, device, binary)
        except cl.Error as error:
            raise DeviceError(f"{device.label} refuses its own binary: {error}") from error
    return binary


def has_program(binary: bytes) -> bool:
    """Return whether a binary of PoCL holds the code of its program.

    Parameters
    ----------
    binary : bytes
        In PoCL's format: the length of a file's name (uint32), the name, the length of the content
        (uint32), and the content, of the program and then of its kernels.

    References
    ----------
    .. [1] PoCL, lib/CL/pocl_binary.c, ``serialize_file``.
    """
    _, name, rest = binary.partition(_POCL_PROGRAM)
    length = int.from_bytes(rest[:_LENGTH_BYTES], "little")
    return bool(name) and 0 < length <= len(rest) - _LENGTH_BYTES


def binary_of(program: Any) -> bytes:
    """Return the binary of a program of one device, as ``program.get_info(BINARIES)`` does.

    That method would hold the GIL, and block every thread, while PoCL compiles the whole binary:
    for seconds, in a daemon that applies a change.

    Raises
    ------
    DeviceError
        If the driver returns none.
    """
    size, handle = ctypes.c_size_t(), ctypes.c_void_p(program.int_ptr)
    _query(handle, cl.program_info.BINARY_SIZES, size)
    binary = ctypes.create_string_buffer(size.value)
    _query(handle, cl.program_info.BINARIES, ctypes.c_void_p(ctypes.addressof(binary)))
    return binary.raw


def _query(handle: ctypes.c_void_p, what: int, answer: "ctypes._SimpleCData[Any]") -> None:
    code = _DRIVERS.clGetProgramInfo(
        handle, what, ctypes.sizeof(answer), ctypes.byref(answer), None
    )
    if code:
        raise DeviceError(f"the driver has no binary of a program: OpenCL error {code}")


def load_binary(context: Any, device: DeviceInfo, binary: bytes) -> Any:
    """Make a program of a binary; raises pyopencl's errors."""
    return build_quietly(cl.Program(context, [device.handle], [binary]))


def compile_program(context: Any, source: str) -> Any:
    """Return the program of a source, built by the driver's compiler."""
    # pyopencl's own cache waits for locks that killed processes leave behind.
    return build_quietly(cl.Program(context, source), cache_dir=False)


def build_quietly(program: Any, **keywords: Any) -> Any:
    """Build a program; return it. ``keywords`` are those of pyopencl."""
    with warnings.catch_warnings():
        # pyopencl warns about any compiler output, even a blank line.
        warnings.simplefilter("ignore", cl.CompilerWarning)
        return program.build([*BUILD_OPTIONS, _NO_WARNINGS], **keywords)
