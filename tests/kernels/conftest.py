"""Each kernel test runs on every OpenCL device that is there and compiles."""

import pytest

from spectrod.errors import DeviceError
from spectrod.opencl.context import Context
from spectrod.opencl.devices import list_devices


@pytest.fixture(
    scope="module",
    params=[pytest.param(d, id=d.label, marks=pytest.mark.opencl) for d in list_devices()],
)
def context(request):
    """Open one device after the other."""
    try:
        opened = Context(request.param, profiling=True)
    except DeviceError as error:
        pytest.skip(str(error))
    yield opened
    opened.close()
