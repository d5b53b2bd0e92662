"""The host's fast spectra: in float32 and by threads, as exact as those of devices."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spectrod import spectrogram
from spectrod.analysis.engine import open_engine
from spectrod.analysis.numpy_engine import Float64Engine, NumpyEngine
from spectrod.analysis.stft import stft_host
from spectrod.analysis.stft.stft_host import HostStft
from spectrod.analysis.stft.stft_reference import ReferenceStft
from spectrod.analysis.stft.stft_stage import StftSpec, StftTables
from spectrod.analysis.stft.stft_tables import kernel_spec
from spectrod.analysis.stream import FrameStream
from spectrod.dsp.blocks import Block
from spectrod.dsp.sample_layout import SAMPLE_BYTES
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.fft.lengths import is_smooth
from spectrod.lib.errors import ConfigError

RELATIVE_L2_MAX = 3e-7  # of float32, as of every device
BLUESTEIN_FACTOR = 2.0  # of lengths with a large prime factor, as of every device
LEVEL_ERROR_MAX_DB = 1e-3
LENGTHS = [16, 63, 250, 256, 1000, 1021, 4096]
MANY = 1 << 30


def _shape(nfft, **options):
    return StftSpec(nfft, nfft, **options), StftTables(np.hanning(nfft) / nfft)


def _samples(n, channels=2, sample_format="float32"):
    rng = np.random.default_rng(5)
    if sample_format == "int24":
        return rng.integers(0, 256, (channels, n, 3), np.uint8)
    if sample_format == "float32":
        return rng.uniform(-1.0, 1.0, (channels, n)).astype(np.float32)
    limits = np.iinfo(sample_format)
    return rng.integers(limits.min, limits.max, (channels, n), np.dtype(sample_format))


def _error(rows, expected):
    difference = np.abs(rows.astype(np.complex128) - expected)
    return float(np.linalg.norm(difference) / np.linalg.norm(expected))


@pytest.fixture
def float32_at_once(monkeypatch):
    monkeypatch.setattr(stft_host, "MANY_POINTS_AT_ONCE", 0)


@pytest.fixture
def always_threads(monkeypatch):
    monkeypatch.setattr("spectrod.analysis.parallel._PART_BYTES_MIN", 1)
    monkeypatch.setattr("spectrod.analysis.parallel.usable_processors", lambda: 4)


@pytest.mark.parametrize("nfft", LENGTHS)
@pytest.mark.parametrize("output", ["power", "complex"])
@pytest.mark.parametrize("iq", [False, True])
@pytest.mark.usefixtures("float32_at_once")
def test_float32_is_as_exact_as_a_device(nfft, output, iq):
    """Odd, even and prime lengths, real and I/Q: within the bound of all devices."""
    shape, tables = _shape(nfft, output=output, iq=iq)
    samples = _samples(10 * nfft + 40)
    rows = HostStft(shape, tables, 30).rows(samples, 3, nfft // 4 + 1, 27)
    expected = ReferenceStft(shape, tables).rows(samples, 3, nfft // 4 + 1, 27)
    assert rows.dtype == expected.dtype
    limit = RELATIVE_L2_MAX * (1.0 if is_smooth(nfft) else BLUESTEIN_FACTOR)
    assert 0.0 < _error(rows, expected) < limit


@pytest.mark.parametrize("sample_format", SAMPLE_BYTES)
@pytest.mark.usefixtures("float32_at_once")
def test_every_sample_format_in_float32(sample_format):
    """Samples of each format keep their full scale."""
    shape, tables = _shape(256, sample_format=sample_format)
    samples = _samples(5000, sample_format=sample_format)
    rows = HostStft(shape, tables, 30).rows(samples, 0, 64, 60)
    expected = ReferenceStft(shape, tables).rows(samples, 0, 64, 60)
    assert _error(rows, expected) < RELATIVE_L2_MAX


@pytest.mark.parametrize(
    "options",
    [
        {"averaging": "mean", "rate_hz": 50.0},
        {"averaging": "exponential", "rate_hz": 50.0},
        {"averaging": "max", "rate_hz": 50.0},
        {"bands": "third-octave", "broadband": True},
        {"weighting": "A"},
        {"scaling": "dbfs"},
    ],
)
@pytest.mark.usefixtures("float32_at_once")
def test_what_follows_the_transform(options):
    """Averages, bands, weights and levels of float32 are those of float64 within the bound."""
    spec = SpectrumSpec(8000.0, 2, "hann", 512, 128, 512, **{"scaling": "density"} | options)
    block = Block(_samples(40_000), 0, 0, 0)

    def rows(engine):
        stream = FrameStream(spec, engine)
        return np.concatenate([b.values for b in [*stream.push(block), *stream.finish()]])

    found, expected = rows(NumpyEngine()), rows(Float64Engine())
    assert len(found) == len(expected) > 0
    if spec.scaling == "dbfs":
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=LEVEL_ERROR_MAX_DB)
    else:
        assert _error(found, expected) < RELATIVE_L2_MAX


@settings(max_examples=30, deadline=None)
@given(
    cuts=st.lists(st.integers(1, 99), max_size=6, unique=True).map(sorted),
    n_float64=st.integers(0, 120),
)
def test_rows_do_not_depend_on_how_a_stream_is_cut(cuts, n_float64):
    """A frame's number says whether it is in float64; rows before that are those of float64."""
    shape, tables = _shape(100)
    samples = _samples(100 * 25 + 100)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stft_host, "MANY_POINTS_AT_ONCE", MANY)
        patch.setattr(stft_host, "MANY_POINTS", n_float64 * shape.nfft * len(samples))
        whole = HostStft(shape, tables, 1).rows(samples, 0, 25, 100)
        pieces = HostStft(shape, tables, 1)
        rows = [
            pieces.rows(samples, 25 * start, 25, stop - start)
            for start, stop in zip([0, *cuts], [*cuts, 100], strict=True)
        ]
    exact = ReferenceStft(shape, tables).rows(samples, 0, 25, 100)
    np.testing.assert_array_equal(np.concatenate(rows), whole)
    np.testing.assert_array_equal(whole[:n_float64], exact[:n_float64])
    if n_float64 < 100:
        assert not np.array_equal(whole[n_float64:], exact[n_float64:])


@pytest.mark.usefixtures("always_threads")
@pytest.mark.parametrize("averaging", ["none", "mean", "exponential"])
def test_threads_compute_the_same_rows(averaging):
    """Rows by four threads are those of one, in order, with an average and without."""
    shape, tables = _shape(250, averaging=averaging)
    samples = _samples(60_000)
    host = HostStft(shape, tables, 1)
    host._chunk_values = 5000
    expected = ReferenceStft(shape, tables, chunk_values=5000)
    np.testing.assert_array_equal(
        host.rows(samples, 0, 61, 900, host.average(7)),
        expected.rows(samples, 0, 61, 900, expected.average(7)),
    )


@pytest.mark.usefixtures("float32_at_once")
def test_without_scipy_all_is_float64(monkeypatch):
    """Where no library has transforms in float32, NumPy computes all."""
    monkeypatch.setattr(stft_host, "_float32", lambda: None)
    shape, tables = _shape(256)
    samples = _samples(4000)
    np.testing.assert_array_equal(
        HostStft(shape, tables, 30).rows(samples, 0, 64, 50),
        ReferenceStft(shape, tables).rows(samples, 0, 64, 50),
    )


@pytest.mark.usefixtures("float32_at_once")
def test_values_that_are_not_finite_stay_where_they_are():
    """NaN makes the frames that have it NaN, and no other; nothing is warned of."""
    shape, tables = _shape(256)
    samples = _samples(4000)
    samples[1, 2000] = np.nan
    rows = HostStft(shape, tables, 30).rows(samples, 0, 64, 50)
    assert np.isfinite(rows[:, 0]).all()
    has_nan = np.isnan(rows[:, 1]).all(axis=1)
    begins = 64 * np.arange(50)
    np.testing.assert_array_equal(has_nan, (begins <= 2000) & (begins + 256 > 2000))


@pytest.mark.usefixtures("float32_at_once")
def test_engine_float64_computes_all_in_float64():
    """``engine="float64"`` is exact where ``"numpy"`` computes in float32."""
    x = _samples(20_000, 1)[0]
    exact = spectrogram(x, 8000.0, win_length=256, engine="float64")
    fast = spectrogram(x, 8000.0, win_length=256, engine="numpy")
    spec = replace(exact.spec)
    reference = ReferenceStft(*kernel_spec(spec))
    expected = reference.rows(x[np.newaxis], 0, spec.hop, exact.values.shape[-1])
    np.testing.assert_array_equal(exact.values, expected[:, 0].T)
    assert not np.array_equal(fast.values, exact.values)


@pytest.mark.parametrize("kind", ["numpy", "float64"])
def test_an_engine_of_the_host_has_no_device(kind):
    """A device is for OpenCL alone."""
    with pytest.raises(ConfigError, match=f"device='0': engine '{kind}' uses no OpenCL device"):
        open_engine(kind, "0")
