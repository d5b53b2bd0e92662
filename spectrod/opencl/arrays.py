"""pyopencl's arrays: what a transform has to know of them, without importing their module."""

import sys
from typing import Any

import pyopencl as cl

from spectrod.errors import ConfigError


def is_device_array(value: Any) -> bool:
    """Whether it is a ``pyopencl.array.Array``."""
    # There is none before its module is imported, which takes a tenth of a second.
    module = sys.modules.get("pyopencl.array")
    return module is not None and isinstance(value, module.Array)


def queue_of(array: Any) -> Any:
    """Queue that an array's commands go to; ConfigError if it has none."""
    if array.queue is None:
        raise ConfigError("a pyopencl array without a queue: give it one by with_queue")
    return array.queue


def placement(array: Any) -> tuple[Any, int]:
    """Buffer of an array, and the number of its first value there.

    Raises
    ------
    ConfigError
        If it is not C-contiguous, not in a buffer, or not at a whole value.
    """
    if not array.flags.c_contiguous:
        raise ConfigError(f"a pyopencl array with strides {array.strides}: must be C-contiguous")
    buffer = array.base_data
    if not isinstance(buffer, cl.MemoryObjectHolder):
        raise ConfigError(f"a pyopencl array in {type(buffer).__name__}: must be in a Buffer")
    first, rest = divmod(array.offset, array.dtype.itemsize)
    if rest:
        raise ConfigError(
            f"a pyopencl array at byte {array.offset}: must be a multiple of {array.dtype.itemsize}"
        )
    return buffer, first


def overlap(a: Any, b: Any) -> bool:
    """Whether two non-empty arrays have bytes in common."""
    return bool(
        a.base_data.int_ptr == b.base_data.int_ptr
        and a.offset < b.offset + b.nbytes
        and b.offset < a.offset + a.nbytes
    )


def new_array(like: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Array on the same queue and from the same allocator, with anything in it."""
    return type(like)(queue_of(like), shape, dtype, allocator=like.allocator)


def join(queue: Any, *arrays: Any) -> None:
    """Let what is queued next wait for what others are still doing to the arrays."""
    if events := [event for array in arrays for event in array.events]:
        cl.enqueue_barrier(queue, wait_for=events)
