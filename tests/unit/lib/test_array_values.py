"""NumPy's and DLPack's protocols of objects with values."""

import numpy as np
import pytest

from spectrod import Stft, spectrogram
from spectrod.lib.array_values import ArrayValues
from spectrod.measure.levels import LevelMeter

FS = 8000
X = 0.1 * np.random.default_rng(1).standard_normal((2, 2 * FS + 1)).astype(np.float32)


class Numbers(ArrayValues):
    """Has an array."""

    def __init__(self, values):
        self.values = values


def test_an_array_is_not_copied_unless_it_must_be():
    """The function asarray gives the memory of the values; another type, and array(), copies."""
    found = Numbers(X)
    assert np.asarray(found) is X
    wide = np.asarray(found, np.float64)
    assert wide.dtype == np.float64
    np.testing.assert_array_equal(wide, X)
    assert not np.shares_memory(np.array(found), X)
    if not np.__version__.startswith("1."):
        with pytest.raises(ValueError, match="avoid copy"):
            np.asarray(found, np.float64, copy=False)


def test_dlpack_gives_the_same_memory():
    """A library that reads DLPack sees the values where they are."""
    found = Numbers(X)
    assert np.shares_memory(np.from_dlpack(found), X)
    assert found.__dlpack_device__() == X.__dlpack_device__()


def test_spectra_and_rows_are_arrays_of_their_values():
    """A spectrogram, a batch, and rows of levels, of which several stack."""
    spectra = spectrogram(X, FS, win_length=256, engine="numpy")
    assert np.asarray(spectra) is spectra.values
    np.testing.assert_array_equal(np.from_dlpack(spectra), spectra.values)
    with Stft(FS, channels=2, win_length=256, engine="numpy") as stft:
        batch = stft.push(X)[0]
    assert np.asarray(batch) is batch.values
    meter = LevelMeter(FS, 2)
    rows = [*meter.push(X), *meter.finish()]
    assert np.asarray(rows).shape == (3, 2, 2)
    np.testing.assert_array_equal(np.asarray(rows)[1], rows[1].values)
