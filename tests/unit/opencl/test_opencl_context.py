import numpy as np
import pyopencl as cl
import pytest

from spectrod.lib.errors import ConfigError, DeviceError
from spectrod.opencl.context import REGION_ALIGN, Context
from spectrod.opencl.devices import identify
from spectrod.opencl.hostmemory import CopiedMemory, SharedMemory, host_memory
from spectrod.opencl.workspace import Workspace

DEFINES = (("VALUE_BYTES", 4),)


@pytest.fixture(scope="module")
def context(opencl_device):
    opened = Context(opencl_device)
    yield opened
    opened.close()


def transpose(context, out, source, rows, columns):
    kernel = context.kernel("transpose.cl", "transpose_blocks", DEFINES)
    sizes = [np.uint64(n) for n in (0, 0, rows, columns)]
    kernel.set_args(out, *sizes[:2], source, *sizes[:2], *sizes[2:])
    context.launch(kernel, (-(-rows // 8) * -(-columns // 8),), (1,))


def test_a_queue_is_adopted(opencl_device):
    """Kernels run in a queue passed by the caller, on its device."""
    other = cl.Context([opencl_device.handle])
    queue = cl.CommandQueue(other)
    context = Context.adopt(queue)
    assert (context.queue, context.device) == (queue, opencl_device)
    table = context.table(np.arange(6, dtype=np.uint32))
    out = context.allocate(24)
    transpose(context, out, table, 2, 3)
    result = np.empty(6, np.uint32)
    cl.enqueue_copy(queue, result, out)
    assert result.tolist() == [0, 3, 1, 4, 2, 5]


def test_a_queue_without_order_is_refused(opencl_device):
    """An out-of-order queue is refused, since plans rely on the order of commands."""
    if not opencl_device.handle.queue_on_host_properties & 1:
        pytest.skip("the device has no other queues")
    out_of_order = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
    other = cl.Context([opencl_device.handle])
    queue = cl.CommandQueue(other, properties=out_of_order)
    with pytest.raises(ConfigError, match="queue is out of order: must be one that keeps"):
        Context.adopt(queue)


def test_a_part_of_a_device_is_refused():
    """A sub-device is refused, since only whole devices can be named."""
    with pytest.raises(DeviceError, match="a name: must be a whole device of a platform"):
        identify(type("Part", (), {"name": "a name"})())


@pytest.mark.parametrize("memory_class", [SharedMemory, CopiedMemory])
def test_arrays_of_the_host_are_read_and_written(context, memory_class):
    """After collection, the host's array holds the result, whether it was wrapped or copied."""
    if memory_class is SharedMemory and not context.device.shares_host_memory:
        pytest.skip("the device has memory of its own")
    memory = memory_class(context)
    x = np.arange(35, dtype=np.uint32).reshape(5, 7)
    x.flags.writeable = False
    out = np.zeros((7, 5), np.uint32)
    with context.lock:
        target = memory.target(out)
        transpose(context, target, memory.source(x), 5, 7)
        memory.collect(out, target)
    np.testing.assert_array_equal(out, x.T)


@pytest.mark.parametrize("memory_class", [SharedMemory, CopiedMemory])
def test_an_array_is_overwritten(context, memory_class):
    """An array that is both read and written holds the values before, then the results."""
    if memory_class is SharedMemory and not context.device.shares_host_memory:
        pytest.skip("the device has memory of its own")
    memory, x = memory_class(context), np.arange(64, dtype=np.uint32)
    with context.lock:
        both = memory.both(x)
        cl.enqueue_copy(context.queue, both, both, byte_count=128, dst_offset=128)
        memory.collect(x, both)
    np.testing.assert_array_equal(x, np.tile(np.arange(32), 2))


@pytest.mark.parametrize("offset", [0, 8, 16])
def test_arrays_are_wrapped_where_vectors_may_lie(context, offset):
    """Complex doubles are wrapped in place only at multiples of 16 bytes, and copied otherwise."""
    if not context.device.shares_host_memory:
        pytest.skip("the device has memory of its own")
    memory, room = SharedMemory(context), np.zeros(96, np.uint8)
    first = -room.ctypes.data % 16 + offset
    x = room[first : first + 64].view(np.complex128)
    x[...] = [1, 2, 3, 4]
    with context.lock:
        both = memory.both(x)
        is_wrapped = bool(both.flags & cl.mem_flags.USE_HOST_PTR)
        cl.enqueue_copy(context.queue, both, both, byte_count=32, dst_offset=32)
        memory.collect(x, both)
    assert is_wrapped == (offset % 16 == 0)
    np.testing.assert_array_equal(x, [1, 2, 1, 2])
    assert np.all(room[first + 64 :] == 0)


def test_the_device_decides_on_copies_of_arrays(context):
    """A CPU works on arrays in place."""
    shared = context.device.kind == "cpu"
    assert isinstance(host_memory(context), SharedMemory if shared else CopiedMemory)


def test_parts_of_parts_are_parts_of_the_whole(context):
    """A region of a region starts at the sum of both offsets."""
    whole = context.table(np.arange(4 * REGION_ALIGN // 4, dtype=np.uint32))
    part = context.region(context.region(whole, REGION_ALIGN, 3 * REGION_ALIGN), REGION_ALIGN, 16)
    values = np.empty(4, np.uint32)
    context.download(values, part)
    np.testing.assert_array_equal(values, 2 * REGION_ALIGN // 4 + np.arange(4))


def test_tables_are_counted(context):
    """A context counts the bytes of the tables that it allocates."""
    before = context.table_bytes
    context.table(np.zeros(100, np.complex64))
    assert context.table_bytes - before == 800


def test_a_workspace_grows_and_is_kept():
    """A workspace is kept and grows only on demand, after the smaller buffer is released."""
    sizes = []

    def allocate(n_bytes):
        sizes.append(n_bytes)
        return type("Buffer", (), {"size": n_bytes})()

    workspace = Workspace(allocate)
    first = workspace.get("a", 100)
    assert workspace.get("a", 60) is first
    assert workspace.get("a", 200).size == 200
    assert workspace.get("b", 0) is None
    workspace.clear()
    workspace.get("a", 10)
    assert sizes == [100, 200, 10]
