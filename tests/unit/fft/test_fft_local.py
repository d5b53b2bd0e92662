"""Shapes of the local-memory kernels: their rules, and the choice for a device."""

import json
from dataclasses import asdict
from math import prod

import numpy as np
import pytest

from spectrod.analysis.stft.stft_local import LOCAL as STFT_LOCAL
from spectrod.analysis.stft.stft_multipass import MULTIPASS_STFT
from spectrod.fft.choice import untuned
from spectrod.fft.local import LOCAL, LocalShape, best_pad, can_mirror, factorizations
from spectrod.fft.multipass import MULTIPASS, MultipassParams
from spectrod.fft.radices import RADICES, radix_lists, values_per_item
from spectrod.fft.stage import TransformSpec, load_params
from spectrod.fft.twiddles import pass_twiddles, twiddle_tables, unit_roots
from spectrod.fft.wisdom import SHIPPED, kernel_version
from spectrod.lib.errors import ConfigError, DeviceError
from spectrod.opencl.context import Context
from spectrod.opencl.devices import DeviceInfo

LENGTHS = (1, 2, 8, 32, 60, 64, 121, 360, 1000, 1024, 2000, 2187, 4096, 6000, 8192)


def device(kind="gpu", group=1024, local=49152):
    return DeviceInfo(
        "Fake",
        "one",
        (0, 0),
        kind,
        "1",
        8,
        group,
        local,
        1 << 33,
        1 << 31,
        has_fp64=True,
        handle=None,
    )


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ({"radices": (17,), "items": 1}, r"radices=\(17,\): must be 1 to 6 of \[2, 3, 4"),
        ({"radices": (2,) * 7, "items": 1}, r"must be 1 to 6 of"),
        ({"radices": (8, 8), "items": 65}, "items=65: must be 1 to the length 64"),
        ({"radices": (8, 8), "items": 8, "lines": 0}, "lines=0: must be at least 1"),
        ({"radices": (8,), "items": 1, "local_pad": -1}, "local_pad=-1: must not be negative"),
        ({"radices": (9,), "items": 1, "sections": 2}, "sections=2: must be 1, or 2 with even"),
        ({"radices": (8,), "items": 1, "sections": 3}, "sections=3: must be 1, or 2"),
    ],
)
def test_a_broken_rule_is_named(values, rule):
    """Each parameter that breaks a rule is refused with its value and the rule."""
    with pytest.raises(ConfigError, match=rule):
        LocalShape(**values)


@pytest.mark.parametrize("n", LENGTHS)
def test_radix_lists_multiply_to_the_length(n):
    """Radix lists are products of known radices equal to the length, the shortest list first."""
    lists = radix_lists(n)
    assert lists
    assert all(prod(radices) == n for radices in lists)
    assert n == 1 or all(set(radices) <= set(RADICES) for radices in lists)
    assert [len(radices) for radices in lists] == sorted(len(radices) for radices in lists)


@pytest.mark.parametrize("n", [17, 34, 1021, 2 * 8191])
def test_a_large_prime_factor_has_no_radices(n):
    """A length with a prime factor above 13 has no radices in this family."""
    assert radix_lists(n) == []
    assert not LOCAL.supports(TransformSpec(n), device())
    assert not MULTIPASS.supports(TransformSpec(n), device())


def test_values_per_item_counts_the_fullest_item():
    """Values per item count the item with most butterflies in any pass."""
    assert values_per_item(64, (8, 8), 8) == 8
    assert values_per_item(64, (8, 8), 7) == 16
    assert values_per_item(1920, (16, 12, 10), 120) == 24


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("kind", ["gpu", "cpu"])
@pytest.mark.parametrize("n", LENGTHS)
def test_all_candidates_fit_and_survive_a_file(n, kind, precision):
    """The choice and the candidates respect the device's limits and load as they were saved."""
    spec, where = TransformSpec(n, precision=precision), device(kind)
    if not LOCAL.supports(spec, where):
        pytest.fail(f"n={n} must fit")
    candidates = list(LOCAL.candidates(spec, where))
    assert candidates[0] == untuned(LOCAL, spec, where)
    assert len(set(candidates)) == len(candidates)
    for params in candidates:
        assert params.length == n
        assert params.fits(where, spec.real_bytes)
        assert load_params(LOCAL.params_type, asdict(params)) == params


@pytest.mark.parametrize("n", [4, 6000, 1 << 14, 44100, 1 << 20, 13**5, 1 << 24, 1 << 26])
@pytest.mark.parametrize("precision", ["single", "double"])
def test_long_lengths_are_cut_into_passes_that_fit(n, precision):
    """Passes of a long length fit, multiply to it, and have columns of 64 bytes if possible."""
    spec, where = TransformSpec(n, precision=precision), device()
    params = untuned(MULTIPASS, spec, where)
    assert params.length == n
    assert all(one.fits(where, spec.real_bytes) for one in params.passes)
    assert all(one.lines * spec.in_value_bytes >= 64 for one in params.passes)
    assert load_params(MULTIPASS.params_type, asdict(params)) == params


def test_a_device_that_is_too_small_is_named():
    """A device without enough local memory is an error that says so."""
    tiny = device(local=1024)
    with pytest.raises(DeviceError, match="n=4096: no local kernel for c2c on Fake/one"):
        untuned(LOCAL, TransformSpec(4096), tiny)
    with pytest.raises(DeviceError, match="n=34: no multipass kernel for c2c on Fake/one"):
        untuned(MULTIPASS, TransformSpec(34), tiny)


def test_files_with_other_names_are_refused():
    """A file with a missing or an extra parameter is refused with the names."""
    with pytest.raises(ConfigError, match=r"\['radices'\]: must be \['fused', 'items', 'lines'"):
        load_params(LOCAL.params_type, {"radices": (8, 8)})
    with pytest.raises(ConfigError, match=r"\['passes'\]: must be \['passes', 'slice_bytes'\]"):
        load_params(MULTIPASS.params_type, {"passes": []})
    values = asdict(LocalShape((8, 8), 8)) | {"items": "8"}
    with pytest.raises(ConfigError, match=r"Expected `int`, got `str` - at `\$.items`"):
        load_params(LOCAL.params_type, values)
    with pytest.raises(ConfigError, match="items=65: must be 1 to the length 64"):
        load_params(LOCAL.params_type, values | {"items": 65})
    with pytest.raises(ConfigError, match="1 passes: must be 2 or 3"):
        MultipassParams((LocalShape((8,), 1),))


def test_a_work_group_of_a_cpu_fits_on_its_stack():
    """The memory of all items in a work-group fits the stack of PoCL's threads."""
    spec = TransformSpec(16384, "r2c", precision="double")
    wide = LocalShape((32, 16, 16), 256, 16)
    assert not wide.fits(device("cpu", 4096, 1 << 22), spec.real_bytes)


def test_the_gap_is_the_first_radix_if_that_is_even():
    """The padding is the first radix if that is even, since odd strides have no bank conflicts."""
    assert [best_pad(radices) for radices in ((8, 8), (15, 16), (32, 3))] == [8, 0, 32]


def test_long_lines_of_one_item_are_avoided():
    """No item reads a long line alone if four items could share it."""
    assert all(items >= 4 for _, items in factorizations(32, 1024)[:1])
    assert all(items >= 4 for _, items in factorizations(16, 1024)[:1])


@pytest.mark.parametrize("n", [1, 2, 3, 7, 12, 1000, 4099, 65536])
def test_unit_roots_are_right_to_an_ulp(n):
    """Roots of unity agree with long double within one unit in the last place of float64."""
    k = np.arange(n)
    angle = k.astype(np.longdouble) * (
        2 * np.longdouble("3.14159265358979323846264338327950288") / n
    )
    roots = unit_roots(k, n)
    ulp = np.finfo(np.float64).eps
    assert np.max(np.abs(roots.real - np.cos(angle))) < ulp
    assert np.max(np.abs(roots.imag + np.sin(angle))) < ulp


def test_two_short_tables_make_every_root():
    """Every root is a product of one entry each of two short tables."""
    n, low = 1000, 32
    table = twiddle_tables(n, low)
    k = np.arange(n)
    products = table[k % low] * table[low + k // low]
    np.testing.assert_allclose(products, unit_roots(k, n), rtol=0, atol=4 * np.finfo(float).eps)


def test_pass_twiddles_fill_the_table_without_gaps():
    """Passes of radix R after length s take (R - 1) s twiddles each, n - 1 in all."""
    table = pass_twiddles((4, 3, 2))
    assert len(table) == 23
    np.testing.assert_allclose(table[3 + 4 + 1], unit_roots(2 * 1, 12), atol=1e-15)


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.json")), ids=lambda path: path.stem)
def test_results_that_come_with_the_package_can_be_built(path):
    """Every shipped result matches the kernels, loads, has the right length, and fits a GPU."""
    content = json.loads(path.read_text(encoding="utf-8"))
    assert content["results"]
    for result in content["results"]:
        assert result["kernels"] == kernel_version(result["family"])
        n, kind, name = result["n"], result["kind"], result["family"]
        of_frames = {STFT_LOCAL.name: STFT_LOCAL, MULTIPASS_STFT.name: MULTIPASS_STFT}
        families = of_frames if kind == "stft" else {f.name: f for f in (LOCAL, MULTIPASS)}
        params = load_params(families[name].params_type, result["params"])
        kind = "r2c" if kind == "stft" else kind
        spec = TransformSpec(n, kind, kind == "c2r", result["precision"])
        if isinstance(params, MultipassParams):
            assert params.length == spec.complex_length
            paired = {"c2c": None, "c2r": 0, "r2c": len(params.passes) - 1}[kind]
            for number, shape in enumerate(params.passes):
                assert shape.fits(device(), spec.real_bytes, 2 if number == paired else 1)
            continue
        params = params.passes if name == STFT_LOCAL.name else params
        assert params.length == spec.complex_length
        assert params.fits(device(), spec.real_bytes)
        assert not params.mirrored or can_mirror(spec, params)


def test_pairs_that_items_cannot_hold_are_refused(opencl_device):
    """A mirrored shape needs two whole butterflies per item in the pass next to the bins."""
    context = Context(opencl_device)
    params = LocalShape((8, 8), 8, mirrored=True)
    with pytest.raises(ConfigError, match="mirrored=True: 8 items cannot hold pairs"):
        LOCAL.build(context, TransformSpec(128, "r2c"), params)
    with pytest.raises(ConfigError, match=r"radices=\(8, 8\): must multiply to 128"):
        LOCAL.build(context, TransformSpec(128), LocalShape((8, 8), 8))
    with pytest.raises(DeviceError, match=r"524288 items with \d+ bytes of local memory"):
        LOCAL.build(context, TransformSpec(64), LocalShape((8, 8), 8, 1 << 16))
    context.close()


@pytest.mark.parametrize("kind", ["r2c", "c2r"])
def test_long_real_lines_have_passes_on_gpus_only(kind):
    """A GPU takes real lines in the passes of half their length; a CPU has vectors for them."""
    spec = TransformSpec(1 << 17, kind, kind == "c2r")
    assert not MULTIPASS.supports(spec, device("cpu"))
    params = untuned(MULTIPASS, spec, device("gpu"))
    assert (len(params.passes), params.length) == (2, 1 << 16)
    assert load_params(MULTIPASS.params_type, asdict(params)) == params
