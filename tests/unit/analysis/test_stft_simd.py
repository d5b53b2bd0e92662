from dataclasses import asdict, replace
from types import SimpleNamespace

import numpy as np
import pytest

from spectrod.analysis.stft.stft_simd import SIMD, SimdStftStage
from spectrod.analysis.stft.stft_simd_shapes import own_bytes
from spectrod.analysis.stft.stft_simd_tables import band_weights, simd_tables, window_table
from spectrod.analysis.stft.stft_stage import BandRows, StftSpec, StftTables
from spectrod.dsp.spectrum_rules import NFFT_MAX
from spectrod.fft.choice import untuned
from spectrod.fft.simd_shape import SimdShape
from spectrod.fft.stage import load_params
from spectrod.lib.errors import ConfigError, DeviceError

GOOD = SimdShape(8, (4, 8), columns=True)
LINES = SimdShape(8, (3, 3), columns=False)
ODD = SimdShape(8, (5, 5), columns=False)
CPU = SimpleNamespace(kind="cpu", label="P/D", vector_bytes=32)
GPU = SimpleNamespace(kind="gpu", label="P/D")


@pytest.mark.parametrize(
    ("nfft", "shape"),
    [(256, SimdShape(4, (4, 8), columns=True)), (30, SimdShape(16, (3, 5), columns=False))],
)
def test_a_shape_that_its_kernel_lacks_is_refused(nfft, shape):
    """A stage checks the additional rules of frames before compilation."""
    with pytest.raises(ConfigError, match="must have 8 or 16 lanes, and as many rows or more"):
        SimdStftStage(None, StftSpec(nfft, nfft), StftTables(np.ones(nfft)), shape)


def test_a_shape_of_another_length_is_refused():
    """A stage refuses a shape of another length with that length."""
    spec = StftSpec(256, 256)
    with pytest.raises(ConfigError, match="must make the complex length 128 of nfft=256"):
        SimdStftStage(None, spec, StftTables(np.ones(256)), GOOD)


@pytest.mark.parametrize("iq", [False, True])
@pytest.mark.parametrize("nfft", [16, 18, 60, 128, 250, 1000, 1024, 65536, 2 * 3**11, NFFT_MAX])
def test_candidates_are_of_the_length(nfft, iq):
    """Candidates are a few distinct shapes of the right length that fit in memory."""
    spec = StftSpec(nfft, nfft, iq=iq, decibels=True)
    shapes = list(SIMD.candidates(spec, CPU))
    assert SIMD.supports(spec, CPU)
    assert len(set(shapes)) == len(shapes) <= 18
    assert {shape.length for shape in shapes} == {spec.complex_length}
    assert max(own_bytes(shape, spec) for shape in shapes) <= 1 << 28


def test_shapes_survive_a_file():
    """A shape survives a file, where a tuple becomes a list."""
    assert load_params(SIMD.params_type, {**asdict(GOOD), "radices": [4, 8]}) == GOOD


@pytest.mark.parametrize("spec", [StftSpec(256, 255), StftSpec(256, 256, interleaved=True)])
def test_samples_that_are_not_adjacent_are_staged(spec):
    """Columns load samples directly only if a full window has them side by side."""
    assert all(shape.staged for shape in SIMD.candidates(spec, CPU))


@pytest.mark.parametrize(
    ("spec", "device"),
    [
        (StftSpec(64, 64), GPU),
        (StftSpec(34, 34), CPU),
        (StftSpec(27, 27), CPU),
        (StftSpec(17, 17, iq=True), CPU),
    ],
)
def test_unsupported_specs_have_no_choice(spec, device):
    """GPUs, large primes and odd real frames are not supported."""
    assert not SIMD.supports(spec, device)
    with pytest.raises(DeviceError, match=f"n={spec.nfft}: no stft-simd kernel for .* on P/D"):
        untuned(SIMD, spec, device)


def test_a_window_lies_as_it_is_loaded():
    """Window factors of even samples precede those of odd ones; the last vector overlaps."""
    window = np.arange(1.0, 18.0)
    table = window_table(StftSpec(18, 17, "int16"), window, LINES)
    assert table.shape == (2, 2, 8)
    expected = np.array([3, 5, 7, 9, 11, 13, 15, 17]) / 2.0 / 2.0**15
    np.testing.assert_array_equal(table[1, 0], expected)
    np.testing.assert_array_equal(table[1, 1, -2:], [16 / 2.0**16, 0.0])


def test_a_window_of_columns_lies_column_by_column():
    """Of 32 rows the second vector belongs to the column 32 complex values later."""
    spec = StftSpec(512, 512)
    table = window_table(spec, np.arange(512.0), replace(GOOD, staged=False))
    assert table.shape == (32, 2, 8)
    np.testing.assert_array_equal(table[1, 1], (64 + 2 * np.arange(8) + 1) / 2.0)
    np.testing.assert_array_equal(table[8, 0], 2 * np.arange(8, 16) / 2.0)


def test_a_window_of_iq_moves_the_spectrum_by_half():
    """Signs alternate to move the middle of a two-sided spectrum, in both parts alike."""
    table = window_table(StftSpec(256, 256, "int24", iq=True), np.ones(256), GOOD)
    np.testing.assert_array_equal(table[0, 0, :3] * 2.0**31, [1, -1, 1])
    np.testing.assert_array_equal(table[:, 0], table[:, 1])
    odd = window_table(StftSpec(25, 25, iq=True), np.ones(25), ODD)
    assert (odd == 1.0).all()


def test_weights_of_bands_fill_whole_vectors():
    """In columns each band's weights start at a vector; in lines they are contiguous."""
    bands = BandRows(np.array([3, 0]), np.array([9, 2]), np.arange(1.0, 12.0))
    table = band_weights(bands, GOOD)
    np.testing.assert_array_equal(table, [*range(1, 10), *[0] * 7, 10, 11, *[0] * 6])
    assert band_weights(bands, LINES) is bands.weights


def test_tables_that_are_not_read_are_one_number():
    """An unused table is one number, since the kernel needs all seven arguments."""
    tables = simd_tables(StftSpec(25, 25, iq=True), StftTables(np.ones(25)), ODD)
    assert [table.size for table in tables] == [2 * 5 * 4, 1, 1, 4 * 2 * 8, 1, 2, 1]
