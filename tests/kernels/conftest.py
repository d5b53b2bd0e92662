"""Kernel tests run on every OpenCL device that exists and compiles."""

import pytest

from spectrod.opencl.context import Context


@pytest.fixture(scope="module")
def context(opencl_device, no_cache):
    """Open each device in turn."""
    opened = Context(opencl_device, profiling=True, cache=no_cache)
    yield opened
    opened.close()


@pytest.fixture
def skip_unless_fits_register(context):
    """Return a function that skips a test with vectors that no shape has on the device.

    Compilers may crash on vectors wider than the registers of their target (LLVM 14 does, on an
    AMD with AVX-512), so neither the untuned choice nor the tuner takes them.
    """
    width = context.device.vector_bytes

    def skip(n_bytes):
        if n_bytes > width:
            pytest.skip(f"vectors of {n_bytes} bytes: registers have {width} here")

    return skip
