"""Levels and palette entries of pixels, computed by NumPy and by OpenCL."""

import numpy as np
import pytest

from spectrod.analysis.engine import open_engine
from spectrod.analysis.numpy_engine import NumpyEngine
from spectrod.dsp.units import FLOOR_DBFS
from spectrod.formats.picture.painter import EnginePainter, NumpyPainter, OpenCLPainter
from spectrod.formats.picture.theme import GAP, N_LEVELS
from spectrod.lib.errors import DeviceError

SPANS = np.array([[0, 2, 5, 5], [2, 3, 9, 6]])


def host():
    return NumpyPainter(lambda matrix: np.ascontiguousarray(matrix.T))


@pytest.fixture(params=["numpy", "auto"], scope="module")
def painter(request):
    engine = open_engine(request.param)
    yield EnginePainter(engine)
    engine.close()


def noise(columns=131, bins=9, seed=4):
    power = np.random.default_rng(seed).exponential(size=(columns, bins)).astype(np.float32)
    power[7], power[9], power[11, 3] = np.nan, 0.0, 1e-30
    return power


def test_the_device_is_the_engines():
    """An engine with a device paints with its kernels, others with NumPy."""
    engine = open_engine("auto")
    painter = EnginePainter(engine)
    painter.levels(noise(), SPANS, 0.5, 0.0)
    assert isinstance(painter._own(), OpenCLPainter)
    assert isinstance(EnginePainter(NumpyEngine())._own(), NumpyPainter)
    engine.close()


@pytest.mark.parametrize("longest", [1, 2, 5, 8, 9, 40])
def test_rows_of_any_number_of_bins_show_the_largest(longest):
    """Rows of different numbers of bins, few or many, have the largest of theirs, or NaN."""
    rng = np.random.default_rng(longest)
    power = noise(columns=17, bins=90)
    first = np.sort(rng.integers(0, 90 - longest, 50))
    spans = np.stack([first, first + rng.integers(1, longest + 1, 50)])
    spans[1, 3] = first[3] + longest
    levels = host().levels(power, spans, 0.5, 0.0)
    largest = [power[:, begin:stop].max(axis=1) for begin, stop in spans.T]
    with np.errstate(divide="ignore"):
        expected = np.maximum(10.0 * np.log10(np.array(largest) / 0.5), FLOOR_DBFS)
    np.testing.assert_allclose(levels, expected, rtol=1e-5, atol=1e-5)


def test_a_row_shows_its_largest_bin(painter):
    """A pixel row shows its largest bin at the level of its power, and a gap stays a gap."""
    power = np.array([[0.5, 2.0, 1.0], [np.nan, 1.0, 0.0]], np.float32)
    levels = painter.levels(power, np.array([[0, 2], [2, 3]]), 0.5, 0.0)
    expected = 10.0 * np.log10([[4.0, np.nan], [2.0, np.nan]])
    expected[1, 1] = FLOOR_DBFS
    np.testing.assert_allclose(levels, expected, atol=1e-5)


def test_levels_have_their_references(painter):
    """Half a unit of power is 0 dB of a full-scale sine; the offset is added after the floor."""
    power, spans = np.array([[0.5, 0.0]], np.float32), np.array([[0, 1], [1, 2]])
    levels = painter.levels(power, spans, 0.5, -3.0)
    np.testing.assert_allclose(levels[:, 0], [-3.0, FLOOR_DBFS - 3.0], atol=1e-5)
    assert painter.levels(power, spans, 1.0, 0.0)[0, 0] == pytest.approx(-3.0103, abs=1e-4)


@pytest.mark.parametrize("columns", [1, 64, 131])
def test_levels_agree_with_the_hosts(painter, columns):
    """All painters agree on levels to 1e-4 dB, with gaps at the same places."""
    power = np.ascontiguousarray(noise()[:columns])
    got, expected = (p.levels(power, SPANS, 0.5, -3.0) for p in (painter, host()))
    np.testing.assert_allclose(got, expected, atol=1e-4)


@pytest.mark.parametrize("shape", [(1, 1), (4, 131), (65, 64)])
def test_entries_are_the_hosts(painter, shape):
    """All painters make the same entries of the same levels, also at the limits of rounding."""
    rng = np.random.default_rng(8)
    levels = rng.uniform(-130.0, 10.0, shape).astype(np.float32)
    # Halfway between two entries.
    levels.flat[::3] = -100.0 + (rng.integers(0, 239, levels.flat[::3].shape) + 0.5) * 80.0 / 239
    levels.flat[::7] = np.nan
    got, expected = (p.entries(levels[::-1], -100.0, -20.0) for p in (painter, host()))
    np.testing.assert_array_equal(got, expected)


def test_entries_of_ends_and_gaps(painter):
    """Levels beyond the range take the end entries, and a gap is hatched."""
    levels = np.array([[-200.0, -100.0, -60.0, -20.0, 0.0, np.nan, np.nan, np.nan, np.nan]])
    entries = painter.entries(levels.astype(np.float32), -100.0, -20.0)[0].tolist()
    assert entries[:2] == [0, 0]
    assert entries[2] in (119, 120)
    assert entries[3:5] == [N_LEVELS - 1] * 2
    assert entries[5:] == [N_LEVELS, N_LEVELS, N_LEVELS, GAP]


class _Broken(NumpyEngine):
    def __init__(self, fallback):
        self.fallback, self.name = fallback, "broken"

    def transpose(self, matrix):  # noqa: ARG002
        raise DeviceError("it is gone")


def test_a_device_that_fails_is_replaced():
    """If the engine fails, the fallback paints; without a fallback the error is raised."""
    power = noise()
    levels = EnginePainter(_Broken(NumpyEngine())).levels(power, SPANS, 0.5, 0.0)
    np.testing.assert_array_equal(levels, host().levels(power, SPANS, 0.5, 0.0))
    with pytest.raises(DeviceError, match="it is gone"):
        EnginePainter(_Broken(None)).levels(power, SPANS, 0.5, 0.0)
