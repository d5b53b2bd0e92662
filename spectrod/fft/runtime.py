"""The devices in use and the transforms made for them, shared by all callers in a process."""

import os
from collections import OrderedDict
from threading import RLock
from typing import Any

from spectrod.fft.bluestein import BLUESTEIN_LENGTH_MAX
from spectrod.fft.host import HostShare, HostTransform
from spectrod.fft.select import check_precision
from spectrod.fft.stage import TransformSpec
from spectrod.fft.transform import LineTransform
from spectrod.lib.errors import ConfigError, DeviceError
from spectrod.opencl.context import Context
from spectrod.opencl.devices import DeviceInfo, list_devices, matching

_Key = tuple[int, TransformSpec]


class TransformCache:
    """The most recently used transforms, bounded in number and in the size of their tables.

    Parameters
    ----------
    max_count, max_bytes : int
        Bounds; the last transform asked for is kept in any case.
    """

    def __init__(self, max_count: int = 64, max_bytes: int = 1 << 30) -> None:
        self._max_count = max_count
        self._max_bytes = max_bytes
        self._transforms: OrderedDict[_Key, LineTransform] = OrderedDict()
        self._lock = RLock()

    def get(self, context: Context, spec: TransformSpec) -> LineTransform:
        """Transform for a device, made if need be: then others wait.

        Raises
        ------
        ConfigError, DeviceError, KernelBuildError
            As ``make_stage``.
        """
        key = id(context), spec  # the transform keeps its context, and with it the id
        with self._lock:
            if key not in self._transforms:
                self._transforms[key] = LineTransform(context, spec)
            self._transforms.move_to_end(key)
            while len(self._transforms) > 1 and self._is_over():
                self._transforms.popitem(last=False)
            return self._transforms[key]

    def clear(self) -> None:
        """Forget all; what is in use stays until it is done."""
        with self._lock:
            self._transforms.clear()

    def __len__(self) -> int:
        return len(self._transforms)

    def _is_over(self) -> bool:
        n_bytes = sum(transform.table_bytes for transform in self._transforms.values())
        return len(self._transforms) > self._max_count or n_bytes > self._max_bytes


class Devices:
    """The default device, opened when it is first needed, and the queues that callers brought.

    Parameters
    ----------
    max_queues : int
        Callers' queues that are remembered, with their programs.
    """

    def __init__(self, max_queues: int = 8) -> None:
        self._max_queues = max_queues
        self._default: Context | None = None
        self._is_forced = False
        self._adopted: OrderedDict[Any, Context] = OrderedDict()
        self._pid: int | None = None
        self._lock = RLock()

    @property
    def is_forked(self) -> bool:
        """Whether this is a copy in another process, where no device can be used any more."""
        return self._pid not in (None, os.getpid())

    def default(self) -> Context:
        """Open the best device that works, or the one chosen; DeviceError if there is none."""
        self._check_process()
        with self._lock:
            if self._default is None:
                self._default = open_first("")
            return self._default

    @property
    def is_forced(self) -> bool:
        """Whether every transform of arrays of the host is computed by the default device."""
        return self._is_forced

    def choose(self, name: str, *, always: bool | None = None) -> DeviceInfo:
        """Make another device the default one, as ``use_device``."""
        if not isinstance(name, str):
            raise ConfigError(f"name={name!r}: must be a text")
        if always is not None and not isinstance(always, bool):
            raise ConfigError(f"always={always!r}: must be True, False or None")
        self._check_process()
        with self._lock:
            self._default = open_first(name)
            self._is_forced = bool(name) if always is None else always
            return self._default.device

    def of_queue(self, queue: Any) -> Context:
        """Context that works in a caller's queue.

        Raises
        ------
        ConfigError, DeviceError
            As ``Context.adopt``.
        """
        self._check_process()
        with self._lock:
            if queue not in self._adopted:
                self._adopted[queue] = Context.adopt(queue)
            self._adopted.move_to_end(queue)
            while len(self._adopted) > self._max_queues:
                self._adopted.popitem(last=False)
            return self._adopted[queue]

    def _check_process(self) -> None:
        """Before the lock is taken, which a fork may have left locked."""
        if self.is_forked:
            raise DeviceError(
                "a device was opened before this process was forked, which drivers do not "
                "survive: start processes by spawn"
            )
        self._pid = os.getpid()


def open_first(name: str) -> Context:
    """Open the first device that a name means and that works.

    Raises
    ------
    DeviceError
        If none does: why the best of them does not.
    """
    failures = []
    for device in matching(name, list_devices()):
        try:
            return Context(device)
        except DeviceError as error:
            failures.append(error)
    raise failures[0]


DEVICES = Devices()
TRANSFORMS = TransformCache()
HOST_SHARE = HostShare()


def host_transforms(n_lines: int, *specs: TransformSpec) -> list[HostTransform]:
    """Return transforms by NumPy of lines on the host, none if the default device computes them.

    Parameters
    ----------
    n_lines : int
        Lines of the first spec.
    *specs : TransformSpec
        What is computed, one after the other.

    Raises
    ------
    DeviceError
        If there is no device, or it lacks the precision: so that small calls need what large ones
        do.
    """
    context = DEVICES.default()
    # Longer ones are not all possible on a device.
    is_long = max(spec.n for spec in specs) > BLUESTEIN_LENGTH_MAX
    if DEVICES.is_forced or is_long or not HOST_SHARE.takes(specs, n_lines * specs[0].n):
        return []
    for spec in specs:
        check_precision(context.device, spec)
    return [HostTransform(context, spec) for spec in specs]


def use_device(name: str, *, always: bool | None = None) -> DeviceInfo:
    """Choose where arrays of the host are transformed from now on.

    Plans that exist keep their device, and plans are always computed by one. pyopencl's arrays are
    transformed where they are.

    Parameters
    ----------
    name : str
        Part of ``PLATFORM/DEVICE`` in any case, an index ``"0:1"`` or a platform's index ``"0"``;
        ``""`` for the best.
    always : bool, optional
        Whether it computes every call, for which new lengths are compiled; else NumPy computes
        calls that are too small or too few to pay, as ``spectrod.fft.host`` says. By default true
        where a name is given.

    Returns
    -------
    device : DeviceInfo
        What is used.

    Raises
    ------
    ConfigError
        If name is not a text, or always not a truth value.
    DeviceError
        If no such device is there and works.
    """
    return DEVICES.choose(name, always=always)
