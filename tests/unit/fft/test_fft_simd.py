from dataclasses import asdict, replace
from types import SimpleNamespace

import numpy as np
import pytest

from spectrod.fft.choice import untuned
from spectrod.fft.simd import SIMD, SimdStage, own_bytes
from spectrod.fft.simd_shape import SimdShape
from spectrod.fft.simd_tables import column_twiddles, mirror_twiddles, row_twiddles
from spectrod.fft.stage import TransformSpec, load_params
from spectrod.lib.errors import ConfigError, DeviceError

GOOD = SimdShape(8, (4, 8), columns=True)
CPU = SimpleNamespace(kind="cpu", label="P/D", vector_bytes=32)
GPU = SimpleNamespace(kind="gpu", label="P/D")


def root(k, n):
    return np.exp(-2j * np.pi * k / n)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lanes": 3}, "lanes=3: must be 2, 4, 8 or 16"),
        ({"radices": ()}, r"radices=\(\): must be 1 to 6 of \[1, 2, 3"),
        ({"radices": (2,) * 7}, "must be 1 to 6 of"),
        ({"radices": (17,)}, r"radices=\(17,\): must be 1 to 6 of"),
        ({"radices": (32,)}, r"radices=\(32,\): must be 1 to 6 of"),
        ({"radices": (7,)}, r"radices=\(7,\): must multiply to lanes=8 or more for columns"),
    ],
)
def test_a_broken_rule_is_named(change, message):
    """Each rule of a shape is checked before compilation."""
    with pytest.raises(ConfigError, match=message):
        replace(GOOD, **change)


def test_parameters_survive_a_file():
    """Parameters survive a file, where tuples become lists."""
    assert load_params(SIMD.params_type, {**asdict(GOOD), "radices": [4, 8]}) == GOOD


def test_a_file_with_other_names_is_refused():
    """A file with missing or unknown names is an error that lists the right ones."""
    with pytest.raises(
        ConfigError, match=r"\['lanes'\]: must be \['columns', 'lanes', 'radices', 'staged'\]"
    ):
        load_params(SIMD.params_type, {"lanes": 8})


def test_parameters_of_another_length_are_refused():
    """Parameters of another length are refused with that length."""
    with pytest.raises(ConfigError, match="must make the complex length 128 of n=256"):
        SimdStage(None, TransformSpec(256, "r2c"), GOOD)


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("kind", ["c2c", "r2c", "c2r"])
@pytest.mark.parametrize("n", [2, 16, 100, 256, 1000, 1024, 2310, 8192, 65536, 1 << 20])
def test_candidates_are_of_the_length_and_the_choice_is_the_first(n, kind, precision):
    """The tuner gets a few distinct candidates of the right length within the limit."""
    spec = TransformSpec(n, kind, kind == "c2r", precision)
    candidates = list(SIMD.candidates(spec, CPU))
    assert SIMD.supports(spec, CPU)
    assert candidates[0] == untuned(SIMD, spec, CPU)
    assert len(set(candidates)) == len(candidates) <= 18
    assert {params.length for params in candidates} == {n if kind == "c2c" else n // 2}
    assert max(own_bytes(params, spec) for params in candidates) <= 1 << 26


@pytest.mark.parametrize(
    ("spec", "device"),
    [
        (TransformSpec(64), GPU),
        (TransformSpec(17), CPU),
        (TransformSpec(27, "r2c"), CPU),
        (TransformSpec(1 << 24), CPU),
        (TransformSpec(1 << 23, precision="double"), CPU),
    ],
)
def test_unsupported_specs_have_no_choice(spec, device):
    """GPUs, large primes, odd real lines and lines beyond the memory limit are not supported."""
    assert not SIMD.supports(spec, device)
    assert list(SIMD.candidates(spec, device)) == []
    with pytest.raises(DeviceError, match=f"n={spec.n}: no simd kernel for {spec.kind} on P/D"):
        untuned(SIMD, spec, device)


def test_row_twiddles_are_those_of_a_decimation_in_frequency():
    """Row twiddles lie pass by pass, none for the last, in the order in which a pass reads them."""
    table = row_twiddles((2, 3, 4))
    assert len(table) == 12 * 1 + 4 * 2
    np.testing.assert_allclose(table[:12], root(np.arange(12), 24), atol=1e-15)
    np.testing.assert_allclose(table[12 + 2 * 3 + 1], root(3 * 2, 12), atol=1e-15)


def test_column_twiddles_cover_rows_that_make_no_whole_block():
    """Column twiddles cover a partial block: of six rows in blocks of four, the second has two."""
    table = column_twiddles(24, 4)
    assert table.shape == (2, 3, 2, 4)
    expected = root(3 * np.arange(2, 6), 24)
    np.testing.assert_allclose(table[1, 2], [expected.real, expected.imag], atol=1e-15)


def test_mirror_twiddles_cover_half_the_bins():
    """Mirror twiddles cover bins below half the length, in blocks of four, of a line of 2n."""
    table = mirror_twiddles(24, 4)
    assert table.shape == (3, 2, 4)
    expected = root(np.arange(8, 12), 48)
    np.testing.assert_allclose(table[2], [expected.real, expected.imag], atol=1e-15)
