"""The OpenCL devices on which tests run, and which tests `make test` leaves to `make test-all`."""

import argparse
import ctypes
import gc
import logging
import math
import os
import random
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import zlib
from collections import Counter, defaultdict
from functools import lru_cache

import hypothesis
import pytest
from xdist.scheduler import LoadFileScheduling

from spectrod.lib.errors import DeviceError
from spectrod.opencl.context import Context
from spectrod.opencl.devices import list_devices
from spectrod.opencl.notice import NOTICE
from spectrod.opencl.program_cache import BinaryCache

# As the command sets it: PoCL compiles each kernel once.
os.environ.setdefault("POCL_WORK_GROUP_SPECIALIZATION", "0")

# The same examples every time, however slow the machine is. To look for new ones:
# pytest --hypothesis-profile search tests/property
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None)
hypothesis.settings.register_profile("search", max_examples=1000, deadline=None)
hypothesis.settings.load_profile("repeatable")


REST = ("every_driver", "every_form", "extended", "systemd", "alone")
"""Markers of what `make test` leaves out."""
FORMS = 2
"""Combinations of a test's parameters that `make test` runs on OpenCL, where each compiles."""
MANY = 500
"""Tests on OpenCL that make a file one of the longest."""


@lru_cache
def _devices():
    """Find the working devices, and the reasons why others do not work."""
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


def pytest_addoption(parser):
    """Add the option of `make test-share`."""
    parser.addoption(
        "--share",
        type=share,
        metavar="K/N",
        help="of the tests that `make test` leaves out, those in the K-th of N shares of the files",
    )


def share(text):
    """Parse the number of a share and how many there are."""
    number, slash, of = text.partition("/")
    if not (slash and number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
        raise argparse.ArgumentTypeError(f"{text!r}: must be K/N with 1 <= K <= N")
    return int(number), int(of)


def pytest_report_header(config):
    """Name the devices on which tests run, those on which they cannot, and what is left out."""
    working, refused = _devices()
    lines = [f"OpenCL: {device.label} (driver {device.driver})" for device in working]
    lines += [f"OpenCL, unusable: {reason}" for reason in refused]
    if config.option.share:
        number, of = config.option.share
        lines.append(f"of the tests that `make test` leaves out: share {number} of {of}")
    return lines


def pytest_generate_tests(metafunc):
    """Run ``opencl_device`` on each device, and ``any_device`` on NumPy (None) as well.

    Devices after the first have the marker ``every_driver``.
    """
    for name, others in (("opencl_device", []), ("any_device", [pytest.param(None, id="numpy")])):
        if name in metafunc.fixturenames:
            working = [
                pytest.param(
                    device,
                    id=device.label,
                    marks=[pytest.mark.opencl, *([pytest.mark.every_driver] if number else [])],
                )
                for number, device in enumerate(_devices()[0])
            ]
            metafunc.parametrize(name, [*others, *working], scope="module", indirect=True)


def _device_of(item):
    """Return the OpenCL device of a test, or None."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return parameters.get("opencl_device") or parameters.get("any_device")


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """Leave what is collected out of Python's searches for garbage: it stays until the end.

    Else they take a quarter of the time to collect, and in tests 0.4 s each.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # -m must see the markers
def pytest_collection_modifyitems(config, items):
    """Mark what `make test` leaves out; order the files for many processes."""
    mark_forms(items)
    if config.option.share:
        kept = of_share(items, *config.option.share)
        config.hook.pytest_deselected(items=[*set(items).difference(kept)])
        items[:] = kept
    if hasattr(config, "workerinput"):
        compiling = Counter(_file_of(item.nodeid) for item in items if _device_of(item))
        items.sort(key=lambda item: place(_file_of(item.nodeid), compiling))


def of_share(items, number, of):
    """Choose what `make test` runs, and of the rest the tests of the files in a share."""
    return [
        item
        for item in items
        if zlib.crc32(_file_of(item.nodeid).encode()) % of == number - 1
        or not any(item.get_closest_marker(name) for name in REST)
    ]


def place(path, compiling):
    """Return the place of a file in a run of many processes, by its name and its tests on OpenCL.

    Files of a folder wait for the same thing, or compute the same: mixed, some wait while others
    compute. The longest are first, and the short files of ``unit`` last, so that all processes end
    at about the same time.
    """
    return compiling[path] < MANY, "/unit/" in path, zlib.crc32(path.encode()), path


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Split ``--dist loadfile`` by OpenCL device too: no two devices share a kernel."""
    if config.getvalue("dist") != "loadfile":
        return None
    scheduler = LoadFileScheduling(config, log)
    scheduler._split_scope = scope_of
    return scheduler


def scope_of(nodeid):
    """Return what the tests have in common that stay in one process."""
    label = next((one.label for one in _devices()[0] if one.label in nodeid), "")
    return f"{_file_of(nodeid)} {label}"


def _file_of(nodeid):
    return nodeid.partition("::")[0]


def mark_forms(items):
    """Give ``every_form`` to combinations of parameters that `make test` leaves to `make test-all`.

    A test on an OpenCL device keeps ``FORMS`` of them, and a test with the marker ``forms`` as many
    as it says.
    """
    forms = defaultdict(list)
    for item in items:
        is_combination = hasattr(item, "callspec") and not item.get_closest_marker("every_driver")
        if is_combination and (_device_of(item) or item.get_closest_marker("forms")):
            forms[item.nodeid.partition("[")[0]].append(item)
    for name, combinations in forms.items():
        kept = spread(name, combinations)
        for item in combinations:
            if item not in kept:
                item.add_marker(pytest.mark.every_form)


def spread(name, items):
    """Choose tests whose parameters have as many values as possible, always the same tests."""
    marker = items[0].get_closest_marker("forms")
    values = {item: {(k, repr(v)) for k, v in item.callspec.params.items()} for item in items}
    left = random.Random(name).sample(items, len(items))  # noqa: S311 - no secrets
    missing = set().union(*values.values())
    kept = []
    while left and len(kept) < (marker.args[0] if marker else FORMS):
        kept.append(max(left, key=lambda item: len(values[item] & missing)))
        left.remove(kept[-1])
        missing -= values[kept[-1]]
    return kept


@pytest.fixture(autouse=True, scope="session")
def _no_notice_of_compiling():
    """Disable the notice about compilation, which depends on caches and has its own tests."""
    NOTICE.after_s = math.inf


@pytest.fixture(autouse=True, scope="session")
def _no_surroundings(tmp_path_factory):
    """Remove settings of the user or of a service from the environment of all tests.

    Programs under test inherit the environment, so it is changed for the whole session.
    """
    service = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "JOURNAL_STREAM")
    for name in [name for name in os.environ if name in service or name.startswith("SPECTROD_")]:
        del os.environ[name]
    os.environ["SPECTROD_CONFIG"] = os.devnull
    # Tests in the background, or under nohup, inherit that these signals are ignored.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # The user's tuning results are not under test.
    os.environ["XDG_DATA_HOME"] = os.fspath(tmp_path_factory.mktemp("data"))
    # Daemons under test are hidden from the machine's users, and the reverse.
    os.environ["RUNTIME_DIRECTORY"] = os.fspath(tmp_path_factory.mktemp("run"))
    os.environ["STATE_DIRECTORY"] = os.fspath(tmp_path_factory.mktemp("state"))


@pytest.fixture(autouse=True, scope="session")
def _no_waits_for_the_disk():
    """Let ``fsync`` return at once for files and folders: no test cuts the power of the machine.

    What cannot be flushed, such as a descriptor that is closed, is the same error.
    """
    with pytest.MonkeyPatch.context() as patch:
        for flush in (os.fsync, os.fdatasync):
            patch.setattr(os, flush.__name__, _flush_of_what_has_no_disk(flush))
        yield


def _flush_of_what_has_no_disk(flush):
    def flush_unless_on_a_disk(file):
        mode = os.fstat(file if isinstance(file, int) else file.fileno()).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            flush(file)

    return flush_unless_on_a_disk


@pytest.fixture(autouse=True)
def _logging_as_at_the_start():
    """Set the level of the root logger before each test, and restore its handlers after it.

    Commands under test set both, and a daemon of an earlier test may do so after that test.
    """
    root = logging.getLogger()
    root.setLevel(logging.WARNING)
    handlers = root.handlers[:]
    yield
    root.setLevel(logging.WARNING)
    for handler in [one for one in root.handlers if one not in handlers]:
        root.removeHandler(handler)
    logging.captureWarnings(capture=False)


@pytest.fixture(scope="session")
def count_threads():
    """Return a function that counts threads, less those that stay to share the next long copy."""
    stay = "spectrod-parallel"
    return lambda: sum(not one.name.startswith(stay) for one in threading.enumerate())


@pytest.fixture(scope="session")
def working_devices():
    """Return all OpenCL devices whose compiler works."""
    return _devices()[0]


@pytest.fixture(scope="module")
def opencl_device(request):
    """Return each working OpenCL device in turn."""
    return request.param


@pytest.fixture(scope="module")
def any_device(request):
    """Return None for NumPy, then each working OpenCL device in turn."""
    return request.param


@pytest.fixture(scope="session")
def no_cache():
    """Return a cache that stores nothing, for kernels of one test module.

    PoCL takes seconds to return their binaries, and has a cache of its own.
    """
    return BinaryCache(max_bytes=0)


@pytest.fixture(scope="session")
def _socket_filters():
    """Leave a test out where the system forbids filters on sockets, as systemd-nspawn does.

    There the daemon cuts everybody instead, as docs/adr/0018 says.
    """
    accept_all = ctypes.create_string_buffer(struct.pack("=HBBI", 0x06, 0, 0, 0xFFFF), 8)
    program = struct.pack("@HP", 1, ctypes.addressof(accept_all))
    with socket.socket() as sock:
        try:
            sock.setsockopt(socket.SOL_SOCKET, 26, program)  # SO_ATTACH_FILTER
        except PermissionError:
            pytest.skip("the system forbids filters on sockets")


@pytest.fixture(scope="session")
def real_time_allowed():
    """Return whether a process may have real-time threads, tested in a separate process."""
    program = "import os; os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(5))"
    tried = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True)
    return tried.returncode == 0
