import logging
import os
import subprocess
import sys

import numpy as np
import pytest

from spectrod.analysis import opencl_engine
from spectrod.analysis.engine import fallback_for, open_engine, transpose
from spectrod.analysis.numpy_engine import NumpyEngine
from spectrod.lib.errors import ConfigError, DeviceError, NotCompiledError
from spectrod.opencl import devices
from spectrod.opencl.devices import DeviceInfo


def device(name, index=0):
    return DeviceInfo(
        "Fake", name, (0, index), "cpu", "1", 1, 256, 65536, 1, 1, has_fp64=True, handle=None
    )


@pytest.fixture
def machine(monkeypatch):
    """Return a function that sets the list of devices and which of them work."""

    class FakeEngine:
        def __init__(self, info, fallback=None, *, compiles=True, stores=True):  # noqa: ARG002
            self.fallback = fallback
            if "broken" in info.name:
                raise DeviceError(f"{info.label}: its compiler refuses every program")
            self.name = f"opencl:{info.label}"

    def set_devices(*names):
        found = [device(name, i) for i, name in enumerate(names)]
        monkeypatch.setattr(opencl_engine, "list_devices", lambda: found)

    monkeypatch.setattr(opencl_engine, "OpenCLEngine", FakeEngine)
    return set_devices


@pytest.mark.parametrize("kind", ["auto", "opencl"])
def test_the_best_device_is_taken(machine, caplog, kind):
    """If OpenCL works, the first device is used and nothing is logged."""
    machine("first", "second")
    assert open_engine(kind).name == "opencl:Fake/first"
    assert not caplog.records


def test_a_device_that_was_never_checked_is_not_skipped(monkeypatch):
    """Without compiling, a device whose check is not in the cache is an error and not replaced."""

    def unchecked(info, fallback, *, compiles, stores):
        assert stores
        assert fallback is not None
        raise NotCompiledError(f"{info.label}: {compiles}")

    monkeypatch.setattr(opencl_engine, "list_devices", lambda: [device("first"), device("second")])
    monkeypatch.setattr(opencl_engine, "OpenCLEngine", unchecked)
    with pytest.raises(NotCompiledError, match=r"^Fake/first: False$"):
        open_engine(compiles=False)


def test_numpy_stands_in_only_where_nothing_was_asked_for(machine):
    """Only auto without a device's name has a NumPy fallback."""
    machine("first")
    assert open_engine("auto").fallback.name == "numpy"
    assert open_engine("opencl").fallback is None
    assert open_engine("auto", "first").fallback is None
    assert open_engine("numpy").fallback is None


def test_drivers_are_not_used_behind_a_fork(monkeypatch, caplog):
    """After a fork, where some drivers would hang, OpenCL is an error and auto uses NumPy."""
    devices.list_devices()
    forked = os.getpid() + 1
    monkeypatch.setattr(devices.os, "getpid", lambda: forked)
    with pytest.raises(DeviceError, match="OpenCL was loaded before this process was forked"):
        open_engine("opencl")
    assert open_engine("auto").name == "numpy"
    assert "processes must be spawned" in caplog.text


def test_a_fallback_is_logged(caplog):
    """A fallback is logged with the reason; without a fallback the failure is raised."""
    engine = NumpyEngine()
    with pytest.raises(DeviceError, match=r"^GPU: lost$"):
        fallback_for(engine, DeviceError("GPU: lost"))
    engine.fallback = NumpyEngine()
    assert fallback_for(engine, DeviceError("GPU: lost")) is engine.fallback
    assert caplog.messages == ["numpy failed, continuing with numpy: GPU: lost"]


def test_a_transpose_falls_back_from_a_failed_device():
    """A picture is drawn at the end even if the device failed before."""

    class Lost(NumpyEngine):
        fallback = NumpyEngine()

        def transpose(self, _):
            raise DeviceError("GPU: lost")

    np.testing.assert_array_equal(transpose(Lost(), np.eye(2, 3, 1)), np.eye(2, 3, 1).T)


@pytest.mark.parametrize("kind", ["auto", "opencl"])
def test_a_device_that_does_not_work_is_passed_over_aloud(machine, caplog, kind):
    """A device that cannot compile is skipped with one warning that gives the reason."""
    machine("broken", "second")
    assert open_engine(kind).name == "opencl:Fake/second"
    assert [r.levelno for r in caplog.records] == [logging.WARNING]
    assert "skipping an OpenCL device: Fake/broken: its compiler" in caplog.text


def test_auto_without_any_device_is_numpy_with_one_warning(machine, caplog):
    """Without any OpenCL device, auto uses NumPy and logs one warning."""
    machine()
    assert isinstance(open_engine(), NumpyEngine)
    assert len(caplog.records) == 1
    assert "no OpenCL device works, using NumPy: no OpenCL platform" in caplog.text


def test_auto_with_only_broken_devices_is_numpy(machine, caplog):
    """If no device works, auto uses NumPy and logs the reason."""
    machine("broken")
    assert open_engine().name == "numpy"
    assert "using NumPy: Fake/broken: its compiler refuses" in caplog.text


@pytest.mark.parametrize("kind", ["auto", "opencl"])
def test_a_named_device_that_is_missing_is_an_error(machine, kind):
    """A device name without a match is an error and selects nothing else."""
    machine("first")
    with pytest.raises(DeviceError, match="device='h200': no OpenCL device fits; there are: 0:0"):
        open_engine(kind, "h200")


@pytest.mark.parametrize("kind", ["auto", "opencl"])
def test_a_named_device_that_does_not_work_is_an_error(machine, kind):
    """A named device that cannot compile is an error and is not replaced."""
    machine("broken", "second")
    with pytest.raises(DeviceError, match="its compiler refuses every program"):
        open_engine(kind, "broken")


def test_opencl_without_any_device_is_an_error(machine):
    """Without any device, the opencl engine is an error and is not replaced."""
    machine()
    with pytest.raises(DeviceError, match="no OpenCL platform has a device"):
        open_engine("opencl")


def test_numpy_takes_no_device():
    """The NumPy engine opens without listing devices and refuses a device's name."""
    assert open_engine("numpy").name == "numpy"
    with pytest.raises(ConfigError, match="device='gpu': engine 'numpy' uses no OpenCL device"):
        open_engine("numpy", "gpu")


def test_an_unknown_kind_is_named_with_the_choice():
    """An unknown engine is refused with the list of engines."""
    with pytest.raises(ConfigError, match="engine='cuda': must be one of auto, opencl, numpy"):
        open_engine("cuda")


def test_pyopencl_that_cannot_be_loaded_counts_as_no_device(monkeypatch, caplog):
    """If pyopencl cannot be loaded, auto uses NumPy, and opencl is a clear error."""
    monkeypatch.setitem(sys.modules, "spectrod.analysis.opencl_engine", None)
    assert open_engine().name == "numpy"
    assert "pyopencl cannot be loaded" in caplog.text
    with pytest.raises(DeviceError, match="pyopencl cannot be loaded"):
        open_engine("opencl")


def run_python(code, **environment):
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, env=os.environ | environment, check=True, capture_output=True, text=True
    )


@pytest.mark.slow
def test_numpy_needs_no_opencl():
    """The NumPy engine imports no part of OpenCL."""
    code = (
        "import sys; from spectrod.analysis.engine import open_engine; open_engine('numpy');"
        "print('pyopencl' in sys.modules)"
    )
    assert run_python(code).stdout == "False\n"


@pytest.mark.slow
def test_drivers_are_loaded_beforehand():
    """Preloaded drivers give the same devices, and the NumPy engine loads no drivers."""
    code = (
        "import sys; from spectrod.analysis.engine import preload_drivers, open_engine;"
        "preload_drivers('numpy'); print('pyopencl' in sys.modules);"
        "preload_drivers('auto'); print(open_engine().name)"
    )
    assert run_python(code).stdout == f"False\n{open_engine().name}\n"


@pytest.mark.slow
def test_a_machine_without_drivers_computes_with_numpy():
    """With the real loader and no driver, auto warns once and computes with NumPy."""
    code = (
        "import logging; logging.basicConfig(format='%(message)s');"
        "from spectrod.analysis.engine import open_engine; print(open_engine().name)"
    )
    result = run_python(code, OCL_ICD_VENDORS="/nonexistent")
    assert result.stdout == "numpy\n"
    assert result.stderr == (
        "no OpenCL device works, using NumPy: no OpenCL platform has a device: "
        "no driver is installed, or none works\n"
    )
