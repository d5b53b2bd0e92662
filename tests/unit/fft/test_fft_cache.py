from types import SimpleNamespace

import pytest

from spectrod.fft import runtime
from spectrod.fft.runtime import Devices, TransformCache, open_first
from spectrod.fft.stage import TransformSpec
from spectrod.lib.errors import DeviceError


@pytest.fixture
def made(monkeypatch):
    """Make transforms that hold only their key and tables of n bytes."""
    made = []

    def make(context, spec):
        made.append(spec.n)
        return SimpleNamespace(context=context, spec=spec, table_bytes=spec.n)

    monkeypatch.setattr(runtime, "LineTransform", make)
    return made


def use(cache, *lengths, context="context"):
    return [cache.get(context, TransformSpec(n)) for n in lengths]


def test_a_transform_is_made_once(made):
    """A transform is made once and reused until it is dropped from the cache."""
    cache = TransformCache()
    first, second = use(cache, 8, 8)
    assert first is second
    cache.clear()
    use(cache, 8)
    assert made == [8, 8]


def test_each_device_has_its_own(made):
    """Contexts are distinguished by identity, not by equality."""
    cache = TransformCache()
    assert use(cache, 8, context=[])[0] is not use(cache, 8, context=[])[0]


def test_the_least_recently_used_goes_beyond_the_count(made):
    """Beyond the count, the least recently used transform is dropped; a request renews one."""
    cache = TransformCache(max_count=2)
    use(cache, 1, 2, 1, 3, 1, 2)
    assert made == [1, 2, 3, 2]
    assert len(cache) == 2


def test_the_least_recently_used_goes_beyond_the_size(made):
    """Beyond the size of tables, the least recently used is dropped; one transform always stays."""
    cache = TransformCache(max_bytes=10)
    use(cache, 4, 5, 100, 100, 4)
    assert made == [4, 5, 100, 4]
    assert len(cache) == 1


@pytest.fixture
def two_devices(monkeypatch):
    """Give the machine two devices; those in ``broken`` cannot be opened."""
    devices = [SimpleNamespace(label=f"P/{name}", number=f"0:{i}") for i, name in enumerate("ab")]
    broken = set()

    def open_context(device):
        if device.label in broken:
            raise DeviceError(f"{device.label} is broken")
        return SimpleNamespace(device=device)

    monkeypatch.setattr(runtime, "list_devices", lambda: devices)
    monkeypatch.setattr(runtime, "Context", open_context)
    return broken


def test_the_first_device_that_works_is_opened(two_devices):
    """The first device that can compile is opened and the others before it are skipped."""
    two_devices.add("P/a")
    assert open_first("").device.label == "P/b"


def test_no_device_that_works_is_one_line(two_devices):
    """If no device works, the error is that of the best device."""
    two_devices.update(("P/a", "P/b"))
    with pytest.raises(DeviceError, match=r"^P/a is broken$"):
        open_first("")


def test_another_device_is_chosen(two_devices):
    """A chosen device stays the default, and a name without a match changes nothing."""
    devices = Devices()
    assert devices.default() is devices.default()
    assert devices.choose("/b").label == "P/b"
    with pytest.raises(DeviceError, match="device='c': no OpenCL device fits"):
        devices.choose("c")
    assert devices.default().device.label == "P/b"


def test_queues_are_remembered_within_a_bound(monkeypatch):
    """A bounded number of queues is kept with their contexts; the least recently used goes."""
    monkeypatch.setattr(
        runtime.Context, "adopt", lambda queue: SimpleNamespace(queue=queue), raising=False
    )
    devices = Devices(max_queues=2)
    queues = "abc"
    contexts = [devices.of_queue(queues[n]) for n in (0, 1, 0, 2, 0, 1)]
    assert contexts[0] is contexts[2] is contexts[4]
    assert contexts[1] is not contexts[5]
