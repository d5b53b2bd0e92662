"""The rule for which calls the host computes, and NumPy's transforms beside the reference."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

import spectrod.fft
from spectrod.fft import reference, runtime
from spectrod.fft.host import HostShare, HostTransform
from spectrod.fft.stage import TransformSpec
from spectrod.lib.errors import ConfigError, DeviceError

KINDS = [("c2c", False), ("c2c", True), ("r2c", False), ("c2r", True)]


def test_small_calls_stay_on_the_host_for_good():
    """Calls of at most ``small`` values are the host's and do not count."""
    share = HostShare(small=100, paying=300)
    assert all(share.takes("a", 100) for _ in range(10))
    assert share.takes("a", 101)


def test_a_shape_moves_when_its_values_pay():
    """The call that reaches ``paying`` values goes to the device, as those after it."""
    share = HostShare(small=10, paying=300)
    assert [share.takes("a", 100) for _ in range(4)] == [True, True, False, False]
    assert share.takes("b", 299)
    assert not share.takes("c", 300)
    assert share.takes("a", 10)


def test_shapes_that_are_remembered_are_bounded():
    """The shape that was used least recently counts from 0 again."""
    share = HostShare(small=10, paying=300, shapes_max=2)
    for shape in ("a", "b", "a", "c"):
        assert share.takes(shape, 100)
    assert not share.takes("a", 100)
    assert share.takes("b", 299)


def values(rng, shape, dtype):
    x = rng.uniform(-1, 1, shape)
    if dtype.kind == "c":
        x = x + 1j * rng.uniform(-1, 1, shape)
    return x.astype(dtype)


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize(("kind", "inverse"), KINDS)
@pytest.mark.parametrize("n", [1, 2, 17, 60, 243, 509, 1021, 1024])
def test_numpy_is_as_exact_as_a_device(n, kind, inverse, precision):
    """Lines along a middle axis keep the limit of devices, scaled as asked for."""
    spec = TransformSpec(n, kind, inverse, precision)
    x = values(np.random.default_rng(n), (2, spec.n_in, 3), reference.in_dtype(spec))
    out = np.empty((2, spec.n_out, 3), reference.out_dtype(spec))
    HostTransform(None, spec).run(out, x, 0.5)
    lines, results = (np.moveaxis(a, 1, -1).reshape(6, -1) for a in (x, out))
    expected = reference.transform(spec, lines)
    assert reference.relative_l2(2.0 * results, expected) <= reference.error_limit(spec)


@pytest.fixture
def automatic(opencl_device, monkeypatch):
    """The best device, on which no call is small but those of up to 64 values."""
    monkeypatch.setattr(runtime, "HOST_SHARE", HostShare(small=64, paying=400))
    spectrod.fft.use_device(opencl_device.number, always=False)
    yield
    spectrod.fft.use_device(opencl_device.number)


@pytest.fixture
def compiled(monkeypatch):
    """Note each transform that is asked of a device."""
    asked = []
    get = runtime.TRANSFORMS.get
    monkeypatch.setattr(
        runtime.TRANSFORMS, "get", lambda context, spec: asked.append(spec.n) or get(context, spec)
    )
    return asked


@pytest.mark.usefixtures("automatic")
def test_a_new_length_is_compiled_when_it_pays(compiled):
    """Two calls of 150 values are NumPy's, bit for bit; the third is the device's."""
    x = np.random.default_rng(1).standard_normal((10, 15)).astype(np.complex64)
    for _ in range(2):
        np.testing.assert_array_equal(spectrod.fft.fft(x), np.fft.fft(x))
    assert compiled == []
    np.testing.assert_allclose(spectrod.fft.fft(x), np.fft.fft(x), rtol=0, atol=1e-5)
    assert compiled == [15]


@pytest.mark.usefixtures("automatic")
def test_planes_count_both_lengths(compiled, monkeypatch):
    """A plane is NumPy's until planes of its lengths pay; kinds count apart."""
    x = np.random.default_rng(2).standard_normal((12, 15))
    bins = np.fft.rfft2(x)
    for _ in range(2):
        np.testing.assert_allclose(spectrod.fft.rfft2(x), bins, rtol=0, atol=1e-13)
    np.testing.assert_allclose(spectrod.fft.irfft2(bins, (12, 15)), x, rtol=0, atol=1e-14)
    assert compiled == []

    def refuse(_context, spec):
        raise DeviceError(f"compiles {spec.n}")

    monkeypatch.setattr(runtime.TRANSFORMS, "get", refuse)
    with pytest.raises(DeviceError, match="compiles 15"):
        spectrod.fft.rfft2(x)


@pytest.mark.usefixtures("automatic")
def test_out_is_written_by_the_host_too(compiled):
    """``out`` has its rules on the host as on a device, and may be the array itself."""
    x = np.random.default_rng(3).standard_normal((2, 3, 8)).astype(np.complex64)
    expected = np.fft.ifft(x, axis=1)
    with pytest.raises(ConfigError, match=re.escape("out of complex128: must be complex64")):
        spectrod.fft.ifft(x, axis=1, out=np.empty(x.shape, complex))
    assert spectrod.fft.ifft(x, axis=1, out=x) is x
    np.testing.assert_allclose(x, expected, rtol=0, atol=1e-6)
    assert compiled == []


def test_infinite_values_are_scaled_without_a_nan():
    """The factor of an inverse transform makes no NaN of an infinite value's other part."""
    out = np.array([[[np.inf]]], np.complex64)
    HostTransform(None, TransformSpec(1)).run(out, out, 0.5)
    assert out[0, 0, 0] == np.inf


def test_a_named_device_computes_every_call(opencl_device, compiled):
    """A name says that device; ``always`` says it with or without a name."""
    x = np.ones(15, np.complex64)
    for name, always, expected in (
        (opencl_device.number, None, [15]),
        ("", None, []),
        ("", True, [15]),
        (opencl_device.number, False, []),
    ):
        compiled.clear()
        spectrod.fft.use_device(name, always=always)
        assert spectrod.fft.fft(x)[0] == 15
        assert compiled == expected
    with pytest.raises(ConfigError, match=re.escape("always=1: must be True, False or None")):
        spectrod.fft.use_device("", always=1)
    spectrod.fft.use_device(opencl_device.number)


def test_the_host_computes_nothing_that_the_device_cannot(monkeypatch):
    """Without double precision small calls fail as large ones do; the longest go to the device."""
    device = SimpleNamespace(has_fp64=False, label="X/Y")
    monkeypatch.setattr(
        runtime,
        "DEVICES",
        SimpleNamespace(default=lambda: SimpleNamespace(device=device), is_forced=False),
    )
    assert len(runtime.host_transforms(1, TransformSpec(8))) == 1
    with pytest.raises(DeviceError, match="X/Y has no double precision"):
        runtime.host_transforms(1, TransformSpec(8, precision="double"))
    monkeypatch.setattr(runtime, "HOST_SHARE", HostShare(small=1 << 27))
    assert runtime.host_transforms(1, TransformSpec((1 << 25) + 1)) == []
