"""Kernel tests run on every OpenCL device that exists and compiles."""

import pytest

from spectrod.opencl.context import Context


@pytest.fixture(scope="module")
def context(opencl_device, no_cache):
    """Open each device in turn."""
    opened = Context(opencl_device, profiling=True, cache=no_cache)
    yield opened
    opened.close()
