"""Windows given as arrays or as SciPy's tuples."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import signal

import spectrod
from spectrod.analysis.numpy_engine import NumpyEngine
from spectrod.analysis.stream import FrameStream
from spectrod.dsp.spectrum import SpectrumSpec, taper_for
from spectrod.dsp.windows import CUSTOM, Window, get_window, make_window, unknown_window
from spectrod.formats.description import Description, spec_fields, stored_spec
from spectrod.formats.export.attributes import global_attributes
from spectrod.formats.picture import pixelmap
from spectrod.formats.segment.header import Header, Place, decode_header, encode_header
from spectrod.lib.errors import ConfigError, StorageError

FS = 8000.0
TUKEY = signal.get_window(("tukey", 0.25), 501)


def noise(n=4001):
    """Make reproducible samples."""
    return np.random.default_rng(15).uniform(-1.0, 1.0, n).astype(np.float32)


def custom_spec(**settings):
    """Make a spec whose window is an array."""
    taper = make_window(TUKEY, 501)
    return SpectrumSpec(FS, 1, CUSTOM, 501, 250, taper=taper, **settings)


@pytest.mark.opencl
@pytest.mark.parametrize("scaling", ["density", "spectrum"])
@pytest.mark.parametrize(
    ("window", "n", "engine"),
    [
        (("tukey", 0.25), 501, "auto"),
        (("tukey", 0.25), 501, "numpy"),
        (("dpss", 2.5), 512, "numpy"),
        (("gaussian", 40.0), 300, "numpy"),
        ("cosine", 255, "numpy"),
    ],
)
def test_arrays_agree_with_scipy(window, n, scaling, engine):
    """Spectra with any of SciPy's windows, even or odd, agree with SciPy and use its S1 and S2."""
    taper = signal.get_window(window, n)
    _, _, expected = signal.spectrogram(
        noise(), FS, taper, noverlap=n - n // 4, detrend=False, nfft=512, scaling=scaling
    )
    found = spectrod.spectrogram(
        noise(), FS, window=taper, nfft=512, scaling=scaling, engine=engine
    )
    # SciPy computes float32 in float32, and both differ from float64 by a similar error.
    error = np.linalg.norm(found.values - expected) / np.linalg.norm(expected)
    assert error < 6e-7
    assert (found.spec.window, found.spec.win_length, found.spec.hop) == ("custom", n, n // 4)
    assert found.spec.enbw_hz == pytest.approx(FS * (taper**2).sum() / taper.sum() ** 2, rel=1e-12)


def test_a_named_window_as_an_array_is_the_same():
    """A named window given as an array, scaled or negated, too, gives identical spectra."""
    hann = signal.get_window("hann", 256)
    expected = spectrod.spectrogram(noise(), FS, win_length=256, hop=100, engine="numpy")
    for window in (hann, list(hann), -hann, 4.0 * hann, hann.astype(np.float64)[::-1][::-1]):
        found = spectrod.spectrogram(noise(), FS, window=window, hop=100, engine="numpy")
        np.testing.assert_allclose(found.values, expected.values, rtol=1e-6)
    with spectrod.Stft(FS, window=hann, hop=100, engine="numpy") as stft:
        values = [b.values for part in (noise()[:999], noise()[999:]) for b in stft.push(part)]
    np.testing.assert_allclose(np.concatenate(values)[:, 0].T, expected.values, rtol=1e-6)


def test_an_array_is_copied():
    """The window array is copied, and the window of a spec is read-only."""
    window = np.ones(64)
    spec = SpectrumSpec(FS, 1, CUSTOM, 64, 64, taper=make_window(window, 64))
    window[:] = 0.0
    assert spec.taper.s1 == 64.0
    with pytest.raises(ValueError, match="read-only"):
        spec.taper.samples[0] = 2.0


@pytest.mark.parametrize(
    ("window", "name"),
    [
        (("kaiser", 8.6), "kaiser:8.6"),
        (("kaiser", 14), "kaiser:14"),
        (("kaiser", np.float32(0.5)), "kaiser:0.5"),
        (("hann",), "hann"),
        ("flattop", "flattop"),
    ],
)
def test_tuples_are_names(window, name):
    """Tuples select the same samples as in ``scipy.signal.get_window``."""
    taper = make_window(window, 100)
    assert taper is get_window(name, 100)
    np.testing.assert_allclose(taper.samples, signal.get_window(window, 100), atol=1e-15)
    with spectrod.Stft(FS, window=window, win_length=(64, 128), hop=64, engine="numpy") as stft:
        assert [spec.window for spec in stft.specs] == [name, name]


@pytest.mark.parametrize(
    ("window", "message"),
    [
        (np.ones(63), "window: 63 samples: must be as many as win_length=64"),
        (np.full(64, np.nan), "window: sample 0 is nan: must be finite"),
        ([1.0, np.inf] * 32, "window: sample 1 is inf: must be finite"),
        (np.zeros(64), "window: its sum is 0, of squares 0: must be finite, and not 0"),
        (
            np.full(64, 1e200),
            "window: its sum is 6.4e+201, of squares inf: must be finite, and not",
        ),
        (np.full(64, 1e-200), "of squares 0: must be finite, and not 0"),
        (np.sin(np.arange(64) * np.pi / 32), "of squares 32: must be finite, and not 0"),
        (
            np.ones(64, complex),
            "window of shape (64,), dtype complex128: must be a name, ('kaiser'",
        ),
        (
            np.ones((8, 8)),
            "window of shape (8, 8), dtype float64: must be a name, ('kaiser', beta)",
        ),
        ([[1.0], [1.0, 2.0]], "window of shape (0,), dtype object: must be a name"),
        (None, "window of shape (), dtype object: must be a name, ('kaiser', beta), or an array"),
        (("tukey", 0.25), "window=('tukey', 0.25): must be ('kaiser', beta), the only name with a"),
        (("kaiser", "x"), "window=('kaiser', 'x'): must be ('kaiser', beta), the only name"),
        (("kaiser", 1.0, 2.0), "window=('kaiser', 1.0, 2.0): must be ('kaiser', beta)"),
        (("kaiser", 900.0), "window='kaiser:900': kaiser needs its beta, 0 to 700"),
        (("hamm",), "window='hamm': must be one of rectangular, hann"),
        ("custom", "window='custom': must be one of rectangular, hann"),
        (b"hann", "window of shape (), dtype |S4: must be a name"),
    ],
)
def test_windows_that_break_a_rule(window, message):
    """A window that breaks a rule is one line with the value or shape and the rule."""
    with pytest.raises(ConfigError, match=re.escape(message)) as refused:
        spectrod.spectrogram(noise(), FS, window=window, win_length=64)
    assert "\n" not in str(refused.value)


def test_the_length_follows_from_an_array():
    """An array fixes the length, within the general bounds, so it fits only one resolution."""
    assert len(taper_for(TUKEY, None).samples) == 501
    assert len(taper_for("hann", None).samples) == 4096
    with pytest.raises(
        ConfigError, match=r"^window: 501 samples: must be as many as win_length=64"
    ):
        spectrod.Stft(FS, window=TUKEY, win_length=(501, 64), engine="numpy")
    with pytest.raises(ConfigError, match=r"^win_length=1: must be 2 to 1048576"):
        spectrod.spectrogram(noise(), FS, window=[1.0])


def test_specs_are_equal_if_their_windows_are():
    """Specs with custom windows are equal only if the samples are equal."""
    spec, same = custom_spec(), custom_spec()
    other = replace(spec, taper=make_window(TUKEY[::-1] * 2.0, 501))
    assert spec == same
    assert hash(spec) == hash(same)
    assert spec != other
    assert replace(spec, hop=100).taper is spec.taper
    assert replace(spec, window="hann") == SpectrumSpec(FS, 1, "hann", 501, 250)
    assert Window("hann", *[np.ones(3), 3.0, 3.0]) != "hann"
    with pytest.raises(
        ConfigError, match=r"^window: 501 samples: must be as many as win_length=500$"
    ):
        replace(spec, win_length=500)
    with pytest.raises(ConfigError, match=r"^window='custom': must be given as an array"):
        SpectrumSpec(FS, 1, CUSTOM)


def test_files_store_custom_and_the_noise_bandwidth():
    """Segments, exports and pictures store "custom" and the noise bandwidth of the window.

    A spec that is read back has both but cannot be computed.
    """
    spec = custom_spec()
    about = Description(spec, "site", ("0",), "spectrod")
    enbw_hz = FS * (TUKEY**2).sum() / TUKEY.sum() ** 2
    written = encode_header(Header(about, Place(1), 0, 0))
    document = json.loads(written)
    assert document["spec"]["window"] == "custom"
    assert document["enbw_hz"] == pytest.approx(enbw_hz)
    attributes = global_attributes(about, {})
    assert (attributes["window"], attributes["enbw_hz"]) == ("custom", pytest.approx(enbw_hz))
    facts = pixelmap.Recording(spec, "numpy", 0, 0, 0, "spectrod").facts()
    assert (facts["window"], facts["enbw_hz"]) == ("custom", pytest.approx(enbw_hz))

    read = decode_header(written).description.spec
    assert read == stored_spec(spec_fields(spec))
    assert read != spec
    assert (read.window, read.enbw_hz) == ("custom", pytest.approx(enbw_hz, rel=1e-12))
    assert spec_fields(read) == spec_fields(spec)
    with pytest.raises(ConfigError, match=r"^window='custom': its samples are not known"):
        FrameStream(read, NumpyEngine()).push(None)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nenbw_bins": 0.5}, "spec: nenbw_bins=0.5: must be 1 or more, and finite"),
        ({"nenbw_bins": float("inf")}, "spec: nenbw_bins=inf: must be 1 or more, and finite"),
        ({"nenbw_bins": "1"}, "spec: Expected `float`, got `str`"),
        ({"win_length": 0}, "spec: win_length=0: must be 1 to 1048576"),
        ({"win_length": 2**62}, "spec: win_length=4611686018427387904: must be 1 to 1048576"),
        ({"nenbw_bins": None}, "spec: Expected `float`, got `null`"),
        ({"taper": 1}, "spec: Object contains unknown field `taper`"),
    ],
)
def test_stored_windows_that_cannot_be(changes, message):
    """A damaged stored window is an error of one line and allocates no memory."""
    with pytest.raises(StorageError, match=re.escape(message)):
        stored_spec(spec_fields(custom_spec()) | changes)
    named = spec_fields(SpectrumSpec(FS))
    assert "nenbw_bins" not in named
    with pytest.raises(StorageError, match=r"^spec: window='custom': must be given as an array"):
        stored_spec(named | {"window": "custom"})


def test_an_unknown_window_takes_no_memory():
    """A window of a million unknown samples is stored as one value."""
    assert unknown_window(1 << 20, 1.5).samples.strides == (0,)
