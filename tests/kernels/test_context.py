"""A context on each device: programs, launches, copies and their errors."""

import numpy as np
import pyopencl as cl
import pytest

from spectrod.analysis.sample_buffer import aligned_memory
from spectrod.lib.errors import DeviceError, KernelBuildError
from spectrod.opencl.context import Context, event_seconds
from spectrod.opencl.transfers import Transfers

DEFINES = (("VALUE_BYTES", 4), ("TILE", 8), ("TILE_ROWS", 8), ("BLOCK", 4))


@pytest.fixture(scope="module")
def context(opencl_device):
    opened = Context(opencl_device, profiling=True)
    yield opened
    opened.close()


def test_a_missing_define_is_a_build_error_with_the_log(context):
    """A build error has the file, the device, the options and the compiler's log."""
    with pytest.raises(KernelBuildError, match=r"fft_simd\.cl does not compile for") as caught:
        context.kernel("fft_simd.cl", "fft_simd", (("N", 64),))
    text = str(caught.value)
    assert context.device.label in text
    assert "-cl-std=CL1.2 -DN=64" in text


def test_a_programs_second_kernel_needs_no_compiler(context):
    """Kernels of equal defines share a program."""
    first, second = (context.kernel("transpose.cl", "transpose", DEFINES) for _ in range(2))
    assert first.program.int_ptr == second.program.int_ptr


def test_a_failing_launch_is_a_device_error(context):
    """A launch that the driver refuses is one line with the device and the kernel."""
    kernel = context.kernel("transpose.cl", "transpose", DEFINES)
    with pytest.raises(DeviceError, match="cannot run transpose"):
        context.launch(kernel, (3,), (3,))


def test_events_have_times(context):
    """With profiling, a copy on the device has a positive time."""
    source, destination = context.table(np.ones(1 << 16, np.float32)), context.allocate(1 << 18)
    assert event_seconds(context.copy(destination, source)) > 0.0
    out = np.zeros(1 << 16, np.float32)
    context.download(out, destination)
    assert (out == 1.0).all()


def test_new_buffers_are_zero(context):
    """A new buffer contains zeros."""
    out = np.ones(1001, np.float32)
    context.download(out, context.allocate(out.nbytes))
    assert not out.any()


def test_the_drivers_own_error_stays_as_the_cause(context):
    """A translated error keeps the driver's error as its cause, for a report."""
    with pytest.raises(DeviceError) as caught:
        context.allocate(0)
    assert isinstance(caught.value.__cause__, cl.Error)


@pytest.mark.parametrize("rows", [1, 3])
def test_copies_beside_the_queue_keep_their_order(context, rows):
    """The queue waits for copies from page-locked memory, and all parts come back."""
    transfers = Transfers(context)
    memory = aligned_memory(rows * 4096)
    lock = transfers.lock_pages(memory)
    memory[:] = np.random.default_rng(1).integers(0, 256, memory.shape)
    twin, copy = context.allocate(memory.nbytes), context.allocate(memory.nbytes)
    for first, n in ((0, 1000), (1000, 3096)):
        if rows == 1:
            event = transfers.start_upload(twin, memory, first, n)
        else:
            event = transfers.start_upload_columns(twin, memory, 4096, first, n)
        context.join([event])
    copied = context.copy(copy, twin)
    context.begin()
    out = np.zeros_like(memory)
    context.wait(transfers.start_download(out, copy, [copied]))
    np.testing.assert_array_equal(out, memory)
    lock.release()


def test_what_another_queue_cannot_do_is_a_device_error(context):
    """What cannot be locked, and copies that do not fit, are errors with the device's name."""
    transfers = Transfers(context)
    with pytest.raises(DeviceError, match=r"cannot lock 0\.0 MiB of memory"):
        transfers.lock_pages(np.empty(0, np.uint8))
    memory = aligned_memory(4096)
    with pytest.raises(DeviceError, match=r"cannot be written to"):
        transfers.start_upload(context.allocate(16), memory, 0, 4096)
