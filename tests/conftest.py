"""The OpenCL devices that tests run on: every one that is there and compiles."""

import math
import os
import signal
import subprocess
import sys
from functools import lru_cache

import hypothesis
import pytest

from spectrod.errors import DeviceError
from spectrod.opencl.context import Context
from spectrod.opencl.devices import list_devices
from spectrod.opencl.notice import NOTICE

# The same examples every time, however slow the machine is. To look for new ones:
# pytest --hypothesis-profile search tests/property
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None)
hypothesis.settings.register_profile("search", max_examples=1000, deadline=None)
hypothesis.settings.load_profile("repeatable")


@lru_cache
def _devices():
    """Find the devices that work, and the reasons of those that do not."""
    try:
        found = list_devices()
    except DeviceError as error:
        return [], [str(error)]
    working, refused = [], []
    for device in found:
        try:
            Context(device).close()
        except DeviceError as error:
            refused.append(str(error))
        else:
            working.append(device)
    return working, refused


def pytest_report_header():
    """Name the devices that tests run on, and those that they cannot run on."""
    working, refused = _devices()
    return [f"OpenCL: {device.label} (driver {device.driver})" for device in working] + [
        f"OpenCL, unusable: {reason}" for reason in refused
    ]


def pytest_generate_tests(metafunc):
    """Run ``opencl_device`` on each of them, and ``any_device`` on NumPy (None) as well."""
    for name, others in (("opencl_device", []), ("any_device", [pytest.param(None, id="numpy")])):
        if name in metafunc.fixturenames:
            working = [
                pytest.param(device, id=device.label, marks=pytest.mark.opencl)
                for device in _devices()[0]
            ]
            metafunc.parametrize(name, [*others, *working], scope="module", indirect=True)


@pytest.fixture(autouse=True, scope="session")
def _no_notice_of_compiling():
    """Let no test depend on whether kernels are in a cache: what is told then has its own tests."""
    NOTICE.after_s = math.inf


@pytest.fixture(autouse=True, scope="session")
def _no_surroundings(tmp_path_factory):
    """Whoever runs the tests may be a service or configure a spectrod; programs under test do not.

    They inherit the environment, so it is changed for all of the session.
    """
    service = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "JOURNAL_STREAM")
    for name in [name for name in os.environ if name in service or name.startswith("SPECTROD_")]:
        del os.environ[name]
    os.environ["SPECTROD_CONFIG"] = os.devnull
    # Tests in the background, or under nohup, were started with these ignored, which is inherited.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # What somebody has tuned is not what is tested.
    os.environ["XDG_DATA_HOME"] = os.fspath(tmp_path_factory.mktemp("data"))
    # Daemons under test are not found by whoever uses the machine, nor the other way round.
    os.environ["RUNTIME_DIRECTORY"] = os.fspath(tmp_path_factory.mktemp("run"))
    os.environ["STATE_DIRECTORY"] = os.fspath(tmp_path_factory.mktemp("state"))


@pytest.fixture(scope="module")
def opencl_device(request):
    """One working OpenCL device after the other."""
    return request.param


@pytest.fixture(scope="module")
def any_device(request):
    """None for NumPy, then one working OpenCL device after the other."""
    return request.param


@pytest.fixture(scope="session")
def real_time_allowed():
    """Tell whether a process may have real-time threads; another one tries, which ends with it."""
    program = "import os; os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(5))"
    tried = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True)
    return tried.returncode == 0
