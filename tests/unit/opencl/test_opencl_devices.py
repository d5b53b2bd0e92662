from types import SimpleNamespace

import pyopencl as cl
import pytest

from spectrod.lib.errors import DeviceError
from spectrod.opencl import devices
from spectrod.opencl.devices import choose, list_devices, load_drivers, matching


def fake_device(name, kind, units):
    return SimpleNamespace(
        name=f" {name} ",
        type=kind,
        version="OpenCL 3.0 Acme",
        driver_version="1.0",
        max_compute_units=units,
        max_work_group_size=256,
        local_mem_size=32768,
        global_mem_size=1 << 30,
        max_mem_alloc_size=1 << 28,
        double_fp_config=0,
    )


def fake_platform(name, *members):
    return SimpleNamespace(name=name, get_devices=lambda: list(members))


GPU, CPU, ACCELERATOR = cl.device_type.GPU, cl.device_type.CPU, cl.device_type.ACCELERATOR


@pytest.fixture(autouse=True)
def _has_sys(monkeypatch, tmp_path):
    """Let the machine have what PoCL needs of /sys."""
    monkeypatch.setattr(devices, "_PROCESSORS", tmp_path)


@pytest.fixture
def machine(monkeypatch):
    """Give the machine two platforms: a CPU's and one with two GPUs and an accelerator."""
    platforms = [
        fake_platform("Portable", fake_device("pthread-EPYC", CPU, 256)),
        fake_platform(
            "Acme CUDA",
            fake_device("Small GPU", GPU, 16),
            fake_device("Big GPU", GPU, 132),
            fake_device("Card", ACCELERATOR, 512),
        ),
    ]
    monkeypatch.setattr(devices.cl, "get_platforms", lambda: platforms)


def raising(error):
    def call(*_):
        raise error

    return call


def cl_error(code, kind=cl.LogicError):
    return kind(cl._cl._ErrorRecord(msg="because", code=code, routine="clCall"))


def test_devices_are_listed_best_first(machine):
    """Devices are ordered GPUs first, by compute units, then accelerators, then CPUs."""
    assert [d.name for d in list_devices()] == ["Big GPU", "Small GPU", "Card", "pthread-EPYC"]


def test_a_device_is_described(machine):
    """A device has a trimmed name, index, label and the driver's limits."""
    device = choose("small")
    assert (device.index, device.number, device.kind) == ((1, 0), "1:0", "gpu")
    assert device.label == "Acme CUDA/Small GPU"
    assert (device.max_work_group_size, device.local_mem_bytes) == (256, 32768)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("", "Big GPU"),
        ("gpu", "Big GPU"),
        ("CUDA/small", "Small GPU"),
        ("PORTABLE", "pthread-EPYC"),
        ("0", "pthread-EPYC"),
        ("1", "Big GPU"),
        ("1:0", "Small GPU"),
        ("1:2", "Card"),
    ],
)
def test_a_name_is_part_of_the_label_or_an_index(machine, name, expected):
    """Text matches part of PLATFORM/DEVICE in any case, digits an index; the best is first."""
    assert choose(name).name == expected


@pytest.mark.parametrize("name", ["nvidia", "1:3", "2", "0:1", "1:", "gpu:0"])
def test_a_name_without_a_match_lists_the_devices(machine, name):
    """The error for a name without a match lists every device with its index."""
    with pytest.raises(DeviceError, match=f"device='{name}': no OpenCL device fits") as caught:
        choose(name)
    assert str(caught.value).endswith(
        "1:1 Acme CUDA/Big GPU, 1:0 Acme CUDA/Small GPU, 1:2 Acme CUDA/Card, "
        "0:0 Portable/pthread-EPYC"
    )


def test_all_matches_come_in_order(machine):
    """A name may match several devices, which are ordered best first."""
    assert [d.name for d in matching("gpu", list_devices())] == ["Big GPU", "Small GPU"]


def test_no_platform_is_no_devices(monkeypatch):
    """The loader's error for no platforms gives an empty list of devices."""
    error = cl_error(cl.status_code.PLATFORM_NOT_FOUND_KHR)
    monkeypatch.setattr(devices.cl, "get_platforms", raising(error))
    assert list_devices() == []
    with pytest.raises(DeviceError, match="no OpenCL platform has a device"):
        choose("anything")


def test_without_sys_no_driver_is_loaded(monkeypatch, tmp_path):
    """Where /sys is not mounted, an error takes the place of PoCL's end of the process."""
    monkeypatch.setattr(devices, "_PROCESSORS", tmp_path / "none")
    monkeypatch.setattr(devices.cl, "get_platforms", lambda: pytest.fail("loads drivers"))
    with pytest.raises(DeviceError, match=r"none: is no folder, and without it PoCL would end the"):
        list_devices()
    load_drivers()  # returns


def test_a_platform_without_devices_is_passed_over(monkeypatch):
    """A platform without devices is skipped without an error."""
    empty = fake_platform("Empty")
    empty.get_devices = raising(cl_error(cl.status_code.DEVICE_NOT_FOUND))
    other = fake_platform("Other", fake_device("d", CPU, 1))
    monkeypatch.setattr(devices.cl, "get_platforms", lambda: [empty, other])
    assert [d.number for d in list_devices()] == ["1:0"]


def test_a_broken_loader_is_a_device_error(monkeypatch):
    """Any other failure of the loader is reported in one line."""
    error = cl_error(cl.status_code.OUT_OF_HOST_MEMORY, cl.RuntimeError)
    monkeypatch.setattr(devices.cl, "get_platforms", raising(error))
    with pytest.raises(DeviceError, match="the OpenCL loader cannot list its platforms: clCall"):
        list_devices()


def test_a_broken_platform_is_a_device_error(monkeypatch):
    """An error of a platform that cannot list its devices names the platform."""
    broken = fake_platform("Broken")
    broken.get_devices = raising(cl_error(cl.status_code.OUT_OF_HOST_MEMORY, cl.RuntimeError))
    monkeypatch.setattr(devices.cl, "get_platforms", lambda: [broken])
    with pytest.raises(DeviceError, match="Broken cannot list its devices: clCall"):
        list_devices()


def test_a_device_of_no_known_type_is_other(monkeypatch):
    """Custom devices are listed last, with type "other"."""
    platform = fake_platform("P", fake_device("custom", 16, 99), fake_device("cpu", CPU, 1))
    monkeypatch.setattr(devices.cl, "get_platforms", lambda: [platform])
    assert [d.kind for d in list_devices()] == ["cpu", "other"]
