from dataclasses import asdict, replace

import pytest

from spectrod.fft import wisdom
from spectrod.fft.local import LocalShape
from spectrod.fft.select import FAMILIES, families, make_stage
from spectrod.fft.stage import TransformSpec
from spectrod.lib.errors import ConfigError, DeviceError
from spectrod.opencl.context import Context


@pytest.fixture(scope="module")
def context(opencl_device):
    opened = Context(opencl_device)
    yield opened
    opened.close()


@pytest.fixture
def saved(monkeypatch):
    """Save one tuning result, of length 16."""

    def save(name, values):
        def lookup(_, spec):
            return (name, values) if spec.n == 16 else None

        monkeypatch.setattr(wisdom, "lookup", lookup)

    return save


def test_every_family_has_its_own_name():
    """Each family has a unique name, by which a tuning result finds it."""
    assert all(family.name == name for name, family in FAMILIES.items())


def test_cpus_prefer_vector_kernels(opencl_device):
    """A processor prefers the vector kernels, and every device can use all families."""
    on_cpu = families(replace(opencl_device, kind="cpu"))
    on_gpu = families(replace(opencl_device, kind="gpu"))
    assert set(on_cpu) == set(on_gpu) == set(FAMILIES)
    assert next(iter(on_cpu)) == "simd"
    assert next(iter(on_gpu)) == "local"


@pytest.mark.slow
def test_a_saved_result_is_taken(context, saved):
    """The saved family and parameters take precedence over the untuned choice."""
    saved("bluestein", {"length": 45})
    stage = make_stage(context, TransformSpec(16))
    assert (type(stage).__name__, stage.spec.n) == ("BluesteinStage", 16)


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("bluestein", {"length": "long"}, "Expected `int`, got `str` - at `$.length`"),
        ("bluestein", {"size": 45}, "['size']: must be ['length']"),
        ("bluestein", {"length": 20}, "length=20: must be 2 n - 1=31 to"),
        ("local", asdict(LocalShape((8, 8), 8)), "radices=(8, 8): must multiply to 16"),
    ],
)
def test_a_saved_result_that_makes_no_sense_is_ignored(
    context, saved, caplog, name, values, reason
):
    """An invalid saved result is ignored with a log line, and the untuned choice is used."""
    spec = TransformSpec(16)
    saved(name, values)
    assert type(make_stage(context, spec)).__name__ != "BluesteinStage"
    assert "the tuned parameters of n=16 are ignored" in caplog.text
    assert reason in caplog.text


def test_a_saved_result_of_an_unknown_family_is_ignored(context, saved):
    """A saved result of an unknown family, as from another version, is ignored."""
    saved("quantum", {})
    make_stage(context, TransformSpec(16))


def test_double_precision_needs_a_device_that_has_it(context, monkeypatch):
    """Double precision on a device without it is an error that names the device and a way out."""
    monkeypatch.setattr(context, "device", replace(context.device, has_fp64=False))
    with pytest.raises(DeviceError, match="has no double precision: give it float32 or complex64"):
        make_stage(context, TransformSpec(16, precision="double"))


def test_a_long_length_with_a_large_prime_is_refused(context):
    """A long length with a large prime factor is refused, as Bluestein needs twice the length."""
    with pytest.raises(ConfigError, match="n=67108859: too long for a length with a prime factor"):
        make_stage(context, TransformSpec((1 << 26) - 5))


@pytest.mark.parametrize(("n", "lengths"), [(60, [120]), (17, [35, 36, 40, 42, 64])])
def test_bluestein_is_hardly_searched_where_other_families_work(opencl_device, n, lengths):
    """The tuner tries one chirp length for a smooth transform, and several for another one.

    With 125, complex transforms of 60 points have an error of 1.501e-7, above the limit 1.499e-7
    of smooth lengths.
    """
    candidates = FAMILIES["bluestein"].candidates(TransformSpec(n), opencl_device)
    assert [candidate.length for candidate in candidates] == lengths
