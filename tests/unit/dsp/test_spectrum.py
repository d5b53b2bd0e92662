"""Windows, units and the meaning of a spectrum."""

import numpy as np
import pytest
from scipy import signal

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import FLOOR_DBFS, dbfs_to_amplitude, power_to_dbfs
from spectrod.dsp.windows import WINDOW_NAMES, get_window
from spectrod.lib.errors import ConfigError

SCIPY_NAMES = {"rectangular": "boxcar", "kaiser:8.6": ("kaiser", 8.6)}
NAMES = [name for name in WINDOW_NAMES if name != "kaiser:BETA"] + ["kaiser:8.6"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [2, 3, 64, 65, 1000, 8192])
def test_windows_are_scipys_periodic_ones(name, n):
    """Each window is SciPy's periodic one of the same name."""
    expected = signal.get_window(SCIPY_NAMES.get(name, name), n, fftbins=True)
    np.testing.assert_allclose(get_window(name, n).samples, expected, atol=2e-15)


@pytest.mark.parametrize(
    ("name", "nenbw"),
    [("rectangular", 1.0), ("hann", 1.5), ("blackmanharris", 2.0044), ("flattop", 3.7702)],
)
def test_equivalent_noise_bandwidths(name, nenbw):
    """Noise bandwidths are those of the literature (Heinzel et al. 2002, table 2)."""
    window = get_window(name, 4096)
    assert window.nenbw_bins == pytest.approx(nenbw, abs=6e-4)
    assert window.enbw_hz(48000.0) == pytest.approx(window.nenbw_bins * 48000.0 / 4096)


def test_windows_are_shared_and_read_only():
    """Windows are shared between callers and read-only."""
    window = get_window("hann", 64)
    assert get_window("hann", 64) is window
    with pytest.raises(ValueError, match="read-only"):
        window.samples[0] = 1.0


def test_dbfs_of_sines_and_squares():
    """A full-scale sine is 0 dBFS, a full-scale square wave +3.01 dBFS, and silence the floor."""
    level = power_to_dbfs(np.array([0.5, 1.0, 0.005, 0.0, np.nan], np.float32))
    np.testing.assert_allclose(level[:4], [0.0, 3.0103, -20.0, FLOOR_DBFS], atol=2e-5)
    assert np.isnan(level[4])
    assert dbfs_to_amplitude(-20.0) == pytest.approx(0.1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("scaling", "iq", "zero_db"),
    [
        ("dbfs", False, 0.5),
        ("dbfs", True, 1.0),
        ("spectrum", False, 0.5),
        ("spectrum", True, 1.0),
        ("density", False, 1.0),
        ("density", True, 1.0),
    ],
)
def test_values_as_power_and_as_levels(scaling, iq, zero_db, dtype):
    """Power and level of the same values agree in every scaling, with the dtype kept."""
    spec = SpectrumSpec(48000.0, 2, scaling=scaling, iq=iq)
    power = np.array([zero_db, 0.01 * zero_db, 1e-30, np.nan], dtype)
    floor = -300.0 if scaling == "density" else FLOOR_DBFS
    level = np.array([0.0, -20.0, floor, np.nan], dtype)
    values = level if scaling == "dbfs" else power
    assert spec.scale.to_level(values).dtype == spec.scale.to_power(values).dtype == dtype
    np.testing.assert_allclose(spec.scale.to_level(values), level, atol=1e-4)
    np.testing.assert_allclose(spec.scale.to_power(values)[:2], power[:2], rtol=1e-5)


def test_spec_fills_in_the_transform_length():
    """The default nfft is the smallest power of two that holds the window."""
    assert SpectrumSpec(48000.0, win_length=10).nfft == 64
    assert SpectrumSpec(48000.0, win_length=1000).nfft == 1024
    assert SpectrumSpec(48000.0, win_length=1024).nfft == 1024


def test_spec_counts_whole_frames():
    """A frame counts when all its samples exist, for any hop."""
    spec = SpectrumSpec(1.0, win_length=100, hop=30)
    assert [spec.n_frames(n) for n in (0, 99, 100, 129, 130)] == [0, 0, 1, 1, 2]
    assert SpectrumSpec(1.0, win_length=64, hop=100).n_frames(164) == 2


def test_spec_holds_plain_numbers():
    """NumPy's integers and floats become int and float, which messages can hold."""
    spec = SpectrumSpec(np.float32(8000), *np.array([2]), "hann", *np.array([128, 64]))
    numbers = (spec.fs, spec.channels, spec.win_length, spec.hop, spec.nfft)
    assert numbers == (8000.0, 2, 128, 64, 128)
    assert [type(number) for number in numbers] == [float, int, int, int, int]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fs": 0.0}, "fs=0.0: must be a positive number of Hz"),
        ({"fs": 1e-4}, r"fs=0.0001: must be 0.001 to 1e\+10 Hz"),
        ({"fs": 2e10}, r"fs=2e\+10: must be 0.001 to 1e\+10 Hz"),
        ({"fs": float("nan")}, "fs=nan: must be a positive number of Hz"),
        ({"channels": 4097}, "channels=4097: must be 1 to 4096"),
        ({"fs": "fast"}, "fs=fast: must be a positive number of Hz"),
        ({"hop": -1}, "hop=-1: must be at least 1 sample"),
        ({"hop": 2**31}, "hop=2147483648: must be at most 2147483647 samples"),
        ({"hop": 512.5}, "hop=512.5: must be a whole number"),
        ({"win_length": 1024.5}, "win_length=1024.5: must be a whole number"),
        ({"window": ("kaiser", 8.6)}, r"window=\('kaiser', 8.6\): must be a name, one of rect"),
        ({"window": "kaiserin:3"}, "window='kaiserin:3': must be one of rectangular, hann"),
        ({"window": "kaiser:b"}, "window='kaiser:b': kaiser needs its beta, 0 to 700"),
        ({"nfft": 15}, "nfft=15: must be 16 to 1048576"),
        ({"nfft": 2**20 + 1}, "nfft=1048577: must be 16 to 1048576"),
        ({"win_length": 2**20 + 1}, "win_length=1048577: must be 2 to 1048576"),
        ({"nfft": 1000}, "win_length=4096: must not exceed nfft=1000"),
        ({"scaling": "psd"}, "scaling='psd': must be one of density, spectrum, dbfs"),
    ],
)
def test_spec_rules(changes, message):
    """An error about a spec names the value and the rule."""
    with pytest.raises(ConfigError, match=message):
        SpectrumSpec(**({"fs": 48000.0} | changes))
