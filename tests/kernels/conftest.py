"""Each kernel test runs on every OpenCL device that is there and compiles."""

import pytest

from spectrod.opencl.context import Context


@pytest.fixture(scope="module")
def context(opencl_device):
    """Open one device after the other."""
    opened = Context(opencl_device, profiling=True)
    yield opened
    opened.close()
