"""OpenCL devices: what is there, which fits a name, which is best."""

import ctypes
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

import pyopencl as cl

from spectrod.errors import DeviceError
from spectrod.text import printable

DeviceKind = Literal["gpu", "accelerator", "cpu", "other"]
_PREFERENCE: tuple[DeviceKind, ...] = ("gpu", "accelerator", "cpu", "other")


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """One OpenCL device.

    Attributes
    ----------
    platform, name : str
        As the driver calls them.
    index : tuple of int
        Number of the platform and of the device in it.
    kind : {"gpu", "accelerator", "cpu", "other"}
        What it is.
    driver : str
        Version of the driver.
    compute_units, max_work_group_size : int
        Limits of a launch.
    local_mem_bytes, global_mem_bytes, max_alloc_bytes : int
        Memory: of a work-group, of the device, of the largest buffer [bytes].
    has_fp64 : bool
        Whether it computes in double precision.
    handle : pyopencl.Device
        For ``spectrod.opencl`` alone.
    shares_host_memory : bool
        Whether its kernels work in the host's memory as fast as in buffers of its own.
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

    @property
    def label(self) -> str:
        """``PLATFORM/DEVICE``, the text that a device's name is matched with."""
        return f"{self.platform}/{self.name}"

    @property
    def number(self) -> str:
        """Index as it may be given for a name, for example ``"0:1"``."""
        return f"{self.index[0]}:{self.index[1]}"


def load_drivers() -> None:
    """Have the drivers loaded by a thread, while whoever calls it does something else.

    That takes tens of milliseconds, through pyopencl with the interpreter's lock. Who asks for
    devices meanwhile waits for it, and is told what goes wrong. The process does not end before:
    a driver would be torn down while it sets itself up.
    """
    _loading_process()
    loader = ctypes.CDLL(cl._cl.__file__)  # noqa: SLF001 - the one that pyopencl was linked with
    count = ctypes.byref(ctypes.c_uint())
    load = threading.Thread(
        target=loader.clGetPlatformIDs, args=(0, None, count), name="spectrod-drivers"
    )
    load.start()


def list_devices() -> list[DeviceInfo]:
    """Every device of every platform, best first.

    GPUs come before accelerators and those before CPUs; within a kind the one with more compute
    units comes first, then the one with the lower index. Empty where there is no platform. Drivers
    do not survive a fork, and some wait for ever behind one.

    Raises
    ------
    DeviceError
        If the OpenCL loader fails for another reason than having no platform, or behind a fork.
    """
    if os.getpid() != _loading_process():
        raise DeviceError(
            "OpenCL was loaded before this process was forked, which drivers do not survive: "
            "processes must be spawned"
        )
    return sorted(_enumerate(), key=_rank)


@cache
def _loading_process() -> int:
    """Process that asked for devices first, of this one and those that it was forked from."""
    return os.getpid()


def matching(name: str, devices: Sequence[DeviceInfo]) -> list[DeviceInfo]:
    """Devices that a name means.

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
        If none fits; the text lists what is there.
    """
    found = [device for device in devices if _fits(name, device)]
    if found:
        return found
    if not devices:
        raise DeviceError("no OpenCL platform has a device: no driver is installed, or none works")
    known = ", ".join(f"{device.number} {device.label}" for device in devices)
    raise DeviceError(f"device={name!r}: no OpenCL device fits; there are: {known}")


def choose(name: str = "") -> DeviceInfo:
    """Best device that the name means, see ``matching``; DeviceError if there is none."""
    return matching(name, list_devices())[0]


def identify(handle: Any) -> DeviceInfo:
    """Describe a device that somebody else opened.

    Raises
    ------
    DeviceError
        If it is a part of a device.
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
        # The loader calls it an error to have no platform.
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
    )


def _kind(device_type: int) -> DeviceKind:
    if device_type & cl.device_type.GPU:
        return "gpu"
    if device_type & cl.device_type.ACCELERATOR:
        return "accelerator"
    return "cpu" if device_type & cl.device_type.CPU else "other"
