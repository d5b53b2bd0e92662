"""Properties of pyopencl's arrays for transforms, without importing their module."""

import sys
from typing import Any

import numpy as np
import pyopencl as cl

from spectrod.lib.errors import ConfigError


def is_device_array(value: Any) -> bool:
    """Return whether a value is a ``pyopencl.array.Array``."""
    # No array exists before its module is imported, which takes a tenth of a second.
    module = sys.modules.get("pyopencl.array")
    return module is not None and isinstance(value, module.Array)


def queue_of(array: Any) -> Any:
    """Return the queue of an array; ConfigError if it has none."""
    if array.queue is None:
        raise ConfigError("a pyopencl array without a queue: give it one by with_queue")
    return array.queue


def placement(array: Any) -> tuple[Any, int]:
    """Return the buffer of an array, and the index of its first value there.

    Raises
    ------
    ConfigError
        If it is not C-contiguous, not in a buffer, or not aligned to its values.
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
    """Return whether two non-empty arrays share bytes; ConfigError as ``placement``."""
    (buffer_a, first_a), (buffer_b, first_b) = _first_byte(a), _first_byte(b)
    return bool(
        buffer_a.int_ptr == buffer_b.int_ptr
        and first_a < first_b + b.nbytes
        and first_b < first_a + a.nbytes
    )


def _first_byte(array: Any) -> tuple[Any, int]:
    """Return the outermost buffer, and the offset of the array's first byte there."""
    buffer, _ = placement(array)
    whole = buffer.get_info(cl.mem_info.ASSOCIATED_MEMOBJECT)
    if whole is None:
        return buffer, array.offset
    return whole, array.offset + buffer.get_info(cl.mem_info.OFFSET)


def is_same(a: Any, b: Any) -> bool:
    """Return whether two non-empty arrays of one shape are the same memory and dtype."""
    same_place = a.base_data.int_ptr == b.base_data.int_ptr and a.offset == b.offset
    return bool(same_place and a.dtype == b.dtype)


def new_array(like: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Return an uninitialised array on the same queue and from the same allocator."""
    return type(like)(queue_of(like), shape, dtype, allocator=like.allocator)


def view(array: Any, dtype: np.dtype[Any]) -> Any:
    """Return an array of another dtype in the same memory; rows hold whole values of both dtypes.

    pyopencl's own method divides an axis other than the last if rows hold a single value.
    """
    width = array.shape[-1] * array.dtype.itemsize // dtype.itemsize
    return type(array)(
        queue_of(array),
        (*array.shape[:-1], width),
        dtype,
        allocator=array.allocator,
        data=array.base_data,
        offset=array.offset,
        events=array.events,
    )


def join(queue: Any, *arrays: Any) -> None:
    """Make the next queued commands wait for pending commands on the arrays."""
    if events := [event for array in arrays for event in array.events]:
        cl.enqueue_barrier(queue, wait_for=events)
