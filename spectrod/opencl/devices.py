"""OpenCL devices: list, match by name, choose the best."""

import ctypes
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pyopencl as cl

from spectrod.lib.errors import DeviceError
from spectrod.lib.text import printable
from spectrod.opencl.driver_cache import (
    choose_driver_cache,
    driver_cache_folder,
    driver_cache_trouble,
)

DeviceKind = Literal["gpu", "accelerator", "cpu", "other"]
_PROCESSORS = Path("/sys/devices/system/cpu")
"""What PoCL finds out of memory and caches with; it aborts where this is missing."""
_CPUINFO_BYTES_MAX = 1 << 14
"""Bytes to read of the list of processors: the first one is enough."""
_AVX512_TARGETS = (
    *("-skylake-avx512", "-cascadelake", "-cooperlake", "-cannonlake", "-icelake-client"),
    *("-icelake-server", "-tigerlake", "-rocketlake", "-sapphirerapids", "-emeraldrapids"),
    *("-graniterapids", "-znver4", "-znver5", "-x86-64-v4"),
)
"""LLVM's names of processors for which its code may use AVX-512."""
_PREFERENCE: tuple[DeviceKind, ...] = ("gpu", "accelerator", "cpu", "other")


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """One OpenCL device.

    Attributes
    ----------
    platform, name : str
        Names given by the driver.
    index : tuple of int
        Index of the platform and of the device in it.
    kind : {"gpu", "accelerator", "cpu", "other"}
        Type of the device.
    driver : str
        Version of the driver.
    compute_units, max_work_group_size : int
        Limits of a launch.
    local_mem_bytes, global_mem_bytes, max_alloc_bytes : int
        Memory: of a work-group, of the device, of the largest buffer [bytes].
    has_fp64 : bool
        Whether it supports double precision.
    handle : pyopencl.Device
        Used only by ``spectrod.opencl``.
    shares_host_memory : bool
        Whether its kernels access the host's memory as fast as their own buffers.
    vector_bytes : int
        Width of the vectors that suit a processor [bytes]: 64 with AVX-512, else 32.
    """

    platform: str
    name: str
    index: tuple[int, int]
    kind: DeviceKind
    driver: str
    compute_units: int
    max_work_group_size: int
    local_mem_bytes: int
    global_mem_bytes: int
    max_alloc_bytes: int
    has_fp64: bool
    handle: Any = field(repr=False, compare=False)
    shares_host_memory: bool = False
    vector_bytes: int = 32

    @property
    def label(self) -> str:
        """``PLATFORM/DEVICE``, the text that names are matched against."""
        return f"{self.platform}/{self.name}"

    @property
    def number(self) -> str:
        """Index in the form that is accepted as a name, for example ``"0:1"``."""
        return f"{self.index[0]}:{self.index[1]}"


def load_drivers() -> None:
    """Load the drivers in another thread.

    Loading takes tens of milliseconds, and pyopencl would hold the GIL. A request for devices in
    the meantime waits for it and raises its errors. The process does not end before: a driver must
    not be unloaded while it initialises.
    """
    if not _PROCESSORS.is_dir():
        return  # a request for devices says so
    _loading_process()
    loader = ctypes.CDLL(cl._cl.__file__)  # noqa: SLF001 - the one that pyopencl was linked with
    count = ctypes.byref(ctypes.c_uint())
    load = threading.Thread(
        target=loader.clGetPlatformIDs, args=(0, None, count), name="spectrod-drivers"
    )
    load.start()


def list_devices() -> list[DeviceInfo]:
    """Return every device of every platform, best first.

    GPUs come before accelerators and CPUs; within a kind, the device with more compute units comes
    first, then the lower index. Empty without a platform. Drivers do not survive a fork, and some
    hang after one.

    Raises
    ------
    DeviceError
        If the OpenCL loader fails for a reason other than a missing platform, after a fork, or
        where there is no ``/sys``.
    """
    if not _PROCESSORS.is_dir():
        raise DeviceError(
            f"{_PROCESSORS}: is no folder, and without it PoCL would end the process: mount /sys"
        )
    if os.getpid() != _loading_process():
        raise DeviceError(
            "OpenCL was loaded before this process was forked, which drivers do not survive: "
            "processes must be spawned"
        )
    return sorted(_enumerate(), key=_rank)


@cache
def _loading_process() -> int:
    """Return the process that first listed devices: this one, or one that it was forked from.

    Drivers are loaded after the first call.
    """
    choose_driver_cache()
    return os.getpid()


def matching(name: str, devices: Sequence[DeviceInfo]) -> list[DeviceInfo]:
    """Return the devices that match a name.

    Parameters
    ----------
    name : str
        Part of ``PLATFORM/DEVICE`` in any case, an index ``"0:1"``, a platform's index ``"0"``, or
        "" for all.
    devices : sequence of DeviceInfo
        The choice, best first.

    Returns
    -------
    found : list of DeviceInfo
        At least one, in the given order.

    Raises
    ------
    DeviceError
        If none matches; the text lists all devices.
    """
    found = [device for device in devices if _fits(name, device)]
    if found:
        return found
    if not devices:
        # PoCL reports no device where it cannot make its cache.
        reason = driver_cache_trouble(driver_cache_folder())
        rest = f"; {reason}" if reason else ""
        raise DeviceError(
            f"no OpenCL platform has a device: no driver is installed, or none works{rest}"
        )
    known = ", ".join(f"{device.number} {device.label}" for device in devices)
    raise DeviceError(f"device={name!r}: no OpenCL device fits; there are: {known}")


def choose(name: str = "") -> DeviceInfo:
    """Return the best device that matches a name, see ``matching``; DeviceError if none does."""
    return matching(name, list_devices())[0]


def identify(handle: Any) -> DeviceInfo:
    """Describe a device that a caller has opened.

    Raises
    ------
    DeviceError
        If it is a sub-device.
    """
    for device in _enumerate():
        if device.handle == handle:
            return device
    raise DeviceError(f"{handle.name}: must be a whole device of a platform, not a part of one")


def _fits(name: str, device: DeviceInfo) -> bool:
    platform, colon, number = name.partition(":")
    if platform.isdecimal() and (number.isdecimal() or not colon):
        return (int(platform), int(number or device.index[1])) == device.index
    return name.casefold() in device.label.casefold()


def _rank(device: DeviceInfo) -> tuple[int, int, tuple[int, int]]:
    return _PREFERENCE.index(device.kind), -device.compute_units, device.index


def _enumerate() -> list[DeviceInfo]:
    return [
        _describe(device, platform, (p, d))
        for p, platform in enumerate(_platforms())
        for d, device in enumerate(_devices(platform))
    ]


def _platforms() -> list[Any]:
    try:
        return list(cl.get_platforms())
    except cl.Error as error:
        # The loader reports a missing platform as an error.
        if error.code == cl.status_code.PLATFORM_NOT_FOUND_KHR:
            return []
        raise DeviceError(f"the OpenCL loader cannot list its platforms: {error}") from error


def _devices(platform: Any) -> list[Any]:
    try:
        return list(platform.get_devices())
    except cl.Error as error:
        if error.code == cl.status_code.DEVICE_NOT_FOUND:
            return []
        raise DeviceError(f"{platform.name} cannot list its devices: {error}") from error


def _describe(device: Any, platform: Any, index: tuple[int, int]) -> DeviceInfo:
    return DeviceInfo(
        platform=printable(platform.name.strip()),
        name=printable(device.name.strip()),
        index=index,
        kind=_kind(device.type),
        driver=printable(device.driver_version.strip()),
        compute_units=device.max_compute_units,
        max_work_group_size=device.max_work_group_size,
        local_mem_bytes=device.local_mem_size,
        global_mem_bytes=device.global_mem_size,
        max_alloc_bytes=device.max_mem_alloc_size,
        has_fp64=bool(device.double_fp_config),
        handle=device,
        shares_host_memory=_kind(device.type) == "cpu",
        vector_bytes=vector_bytes(device.version),
    )


@cache
def vector_bytes(version: str, cpuinfo: Path = Path("/proc/cpuinfo")) -> int:
    """Return the width of the vectors that suit a driver on this machine's processor [bytes].

    PoCL reports widths of the processor, whatever its compiler targets. LLVM 14, for example, takes
    an AMD of family 25 with AVX-512 for one without: there vectors of 64 bytes crash the compiler,
    or make kernels that take minutes.

    Parameters
    ----------
    version : str
        Version of the device, which names PoCL's target, as ``PoCL HSTR: TRIPLE-znver3``. Drivers
        that name none are taken to know the processor.
    cpuinfo : Path
        List of the processors and their features; without it, the width is 32.
    """
    _, names_target, target = version.partition("HSTR: ")
    if names_target and not target.rstrip().endswith(_AVX512_TARGETS):
        return 32
    try:
        with cpuinfo.open("rb") as file:
            features = file.read(_CPUINFO_BYTES_MAX).partition(b"\nflags")[2].partition(b"\n")[0]
    except OSError:
        return 32
    return 64 if b"avx512f" in features.split() else 32


def _kind(device_type: int) -> DeviceKind:
    if device_type & cl.device_type.GPU:
        return "gpu"
    if device_type & cl.device_type.ACCELERATOR:
        return "accelerator"
    return "cpu" if device_type & cl.device_type.CPU else "other"
