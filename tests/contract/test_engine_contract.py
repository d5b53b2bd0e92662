"""What every engine must do, run over NumPy and each OpenCL device that is there and compiles."""

from collections.abc import Iterator

import numpy as np
import pytest
import scipy.fft
import scipy.signal

from spectrod.analysis.engine import Engine, open_engine
from spectrod.analysis.numpy_engine import NumpyEngine
from spectrod.analysis.opencl_engine import OpenCLEngine
from spectrod.errors import ConfigError, InternalError
from spectrod.types import SpectrumSpec

# Relative L2 of the power against float64. Float32 arithmetic in log2(8192) levels of butterflies
# with tables that were rounded once stays below 3 ulp of 1.2e-7; a wrong twiddle does not.
RELATIVE_L2_MAX = 3e-7

FS = 48_000.0
ALL_NFFT = [64, 128, 256, 512, 1024, 2048, 4096, 8192]
SCIPY_WINDOWS = {
    "rectangular": "boxcar",
    "hann": "hann",
    "hamming": "hamming",
    "blackman": "blackman",
    "nuttall": "nuttall",
    "blackmanharris": "blackmanharris",
    "flattop": "flattop",
    "bartlett": "bartlett",
    "kaiser:8.6": ("kaiser", 8.6),
}


@pytest.fixture(scope="module")
def engine(any_device) -> Iterator[Engine]:
    opened = NumpyEngine() if any_device is None else OpenCLEngine(any_device)
    yield opened
    opened.close()


@pytest.mark.opencl
def test_there_is_an_opencl_device():
    """Without a device that works, most of what is tested here would not be."""
    assert open_engine("opencl").name.startswith("opencl:")


@pytest.fixture
def rng():
    return np.random.default_rng(20_261_120)


def reference(spec, samples, n_frames):
    """One-sided power in float64 by SciPy, from windows that SciPy makes."""
    window = scipy.signal.get_window(SCIPY_WINDOWS[spec.window], spec.win_length, fftbins=True)
    starts = np.arange(n_frames) * spec.hop
    frames = np.stack([samples[:, s : s + spec.win_length] for s in starts]).astype(np.float64)
    power = np.abs(scipy.fft.rfft(frames * window, spec.nfft)) ** 2
    power[..., 1:-1] *= 2.0
    if spec.scaling == "density":
        return power / (spec.fs * np.sum(window**2))
    return power / np.sum(window) ** 2


def relative_l2(actual, expected):
    return np.linalg.norm(actual - expected) / np.linalg.norm(expected)


def noise(rng, spec, n_frames, extra=0):
    n = (n_frames - 1) * spec.hop + spec.win_length + extra
    return rng.standard_normal((spec.channels, n)).astype(np.float32)


def assert_accurate(engine, rng, spec, n_frames):
    samples = noise(rng, spec, n_frames)
    power = engine.plan_power(spec, n_frames).execute(samples, n_frames)
    assert power.dtype == np.float32
    assert power.shape == (n_frames, spec.channels, spec.n_bins)
    assert relative_l2(power, reference(spec, samples, n_frames)) <= RELATIVE_L2_MAX


# ---- Accuracy ----------------------------------------------------------------------------------


@pytest.mark.parametrize("window", SCIPY_WINDOWS)
def test_every_window_agrees_with_float64(engine, rng, window):
    """Power under each window is that of SciPy in float64 to float32's accuracy."""
    spec = SpectrumSpec(FS, 2, window, win_length=512, hop=131)
    assert_accurate(engine, rng, spec, 9)


@pytest.mark.parametrize("nfft", ALL_NFFT)
def test_every_length_agrees_with_float64_at_half_overlap(engine, rng, nfft):
    """Each transform length is accurate with the window as long as the transform."""
    assert_accurate(engine, rng, SpectrumSpec(FS, 1, win_length=nfft, hop=nfft // 2), 33)


@pytest.mark.parametrize("nfft", ALL_NFFT)
def test_every_length_agrees_with_float64_for_an_odd_padded_window(engine, rng, nfft):
    """Each transform length is accurate with an odd window shorter than it, and an odd hop."""
    win_length = nfft // 2 + 1
    assert_accurate(engine, rng, SpectrumSpec(FS, 2, win_length=win_length, hop=nfft // 3 | 1), 7)


@pytest.mark.parametrize("win_length", [2, 3, 63, 64, 127, 128])
def test_windows_of_any_length_are_padded_with_zeros(engine, rng, win_length):
    """Windows from two samples up to the transform's length are accurate."""
    assert_accurate(engine, rng, SpectrumSpec(FS, 1, "hamming", win_length, 17, nfft=128), 5)


@pytest.mark.parametrize("hop", [1, 2, 255, 256, 257, 1000])
def test_hops_of_any_length_are_legal(engine, rng, hop):
    """Frames start at every multiple of the hop: one sample, odd, or longer than the window."""
    assert_accurate(engine, rng, SpectrumSpec(FS, 1, win_length=256, hop=hop), 11)


@pytest.mark.parametrize("channels", [1, 2, 5])
@pytest.mark.parametrize("n_frames", [1, 2, 31, 32, 33])
def test_any_number_of_frames_and_channels(engine, rng, channels, n_frames):
    """One frame, one frame less and more than a work-group's, and several channels are right."""
    assert_accurate(engine, rng, SpectrumSpec(FS, channels, win_length=64, hop=33), n_frames)


def test_agrees_with_short_time_fft(engine, rng):
    """The density is that of ``scipy.signal.ShortTimeFFT`` where its slices are our frames."""
    spec = SpectrumSpec(FS, 1, win_length=512, hop=128)
    n_frames = 20
    samples = noise(rng, spec, n_frames)
    peer = scipy.signal.ShortTimeFFT(
        scipy.signal.get_window("hann", 512), spec.hop, FS, fft_mode="onesided2X", scale_to="psd"
    )
    first = peer.m_num_mid // spec.hop
    expected = peer.spectrogram(samples[0].astype(np.float64), p0=first, p1=first + n_frames)
    power = engine.plan_power(spec, n_frames).execute(samples, n_frames)[:, 0]
    assert relative_l2(power, expected.T) <= RELATIVE_L2_MAX


# ---- Scaling -----------------------------------------------------------------------------------


@pytest.mark.parametrize("nfft", [64, 1024, 8192])
def test_dc_and_nyquist_are_not_doubled(engine, nfft):
    """A constant and the fastest alternation of amplitude 1/2 read 1/4 at their bins."""
    spec = SpectrumSpec(FS, 2, win_length=nfft, hop=nfft, scaling="spectrum")
    alternation = np.where(np.arange(nfft) % 2, -0.5, 0.5)
    samples = np.stack([np.full(nfft, 0.5), alternation]).astype(np.float32)
    power = engine.plan_power(spec, 1).execute(samples, 1)[0]
    np.testing.assert_allclose([power[0, 0], power[1, -1]], 0.25, rtol=1e-6)


def test_density_integrates_to_the_mean_square(engine, rng):
    """The density's sum times the bin width is the window-weighted mean square (Parseval)."""
    spec = SpectrumSpec(FS, 1, win_length=1001, hop=500, nfft=2048)
    samples = noise(rng, spec, 1)
    power = engine.plan_power(spec, 1).execute(samples, 1)
    weighted = np.sum((samples[0] * spec.taper.samples) ** 2) / spec.taper.s2
    assert np.sum(power, dtype=np.float64) * spec.delta_f == pytest.approx(weighted, rel=1e-6)


@pytest.mark.parametrize("scaling", ["density", "spectrum", "dbfs"])
def test_scalings_are_linear_power(engine, rng, scaling):
    """Each scaling is its power scale times the same spectrum; levels are taken later."""
    spec = SpectrumSpec(FS, 1, win_length=256, hop=100, scaling=scaling)
    assert_accurate(engine, rng, spec, 3)


@pytest.mark.parametrize("nfft", ALL_NFFT)
@pytest.mark.parametrize("offset_bins", [0.0, 0.25, 0.5])
def test_tone_reads_its_level_on_and_between_bins(engine, nfft, offset_bins):
    """A sine at -20 dBFS under the flat-top window peaks at -20 dBFS within 0.05 dB."""
    spec = SpectrumSpec(FS, 1, "flattop", nfft, nfft, scaling="spectrum")
    cycles = (nfft // 4 + offset_bins) / nfft
    tone = 0.1 * np.sin(2.0 * np.pi * cycles * np.arange(nfft) + 0.3)
    power = engine.plan_power(spec, 1).execute(tone[None].astype(np.float32), 1)[0, 0]
    assert np.argmax(power) in (nfft // 4, nfft // 4 + 1)
    assert 10.0 * np.log10(power.max() / 0.5) == pytest.approx(-20.0, abs=0.05)


def test_silence_is_zero(engine):
    """Zeros in, zeros out, in every bin."""
    spec = SpectrumSpec(FS, 1, win_length=128, hop=64)
    power = engine.plan_power(spec, 3).execute(np.zeros((1, 256), np.float32), 3)
    assert not power.any()


# ---- Isolation of frames -------------------------------------------------------------------------


@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("nfft", [64, 512])
def test_a_bad_sample_spoils_only_its_frames(engine, rng, poison, nfft):
    """Frames that do not hold the bad sample are the same bits as without it."""
    spec = SpectrumSpec(FS, 2, "rectangular", nfft - 3, nfft // 2, nfft)
    n_frames, where = 40, 10 * spec.hop + 7
    samples = noise(rng, spec, n_frames)
    plan = engine.plan_power(spec, n_frames)
    clean = plan.execute(samples, n_frames)
    samples[1, where] = poison
    power = plan.execute(samples, n_frames)
    starts = np.arange(n_frames) * spec.hop
    holds = (starts <= where) & (where < starts + spec.win_length)
    assert not np.isfinite(power[holds, 1]).any()
    np.testing.assert_array_equal(power[~holds], clean[~holds])
    np.testing.assert_array_equal(power[:, 0], clean[:, 0])


@pytest.mark.parametrize("win_length", [100, 101])
def test_samples_between_frames_are_never_read(engine, rng, win_length):
    """With a hop longer than the window, what lies between frames may be NaN."""
    spec = SpectrumSpec(FS, 1, win_length=win_length, hop=150, nfft=256)
    n_frames = 12
    samples = noise(rng, spec, n_frames, extra=9)
    plan = engine.plan_power(spec, n_frames)
    clean = plan.execute(samples, n_frames)
    position = np.arange(samples.shape[1])
    samples[0, position % spec.hop >= win_length] = np.nan
    samples[0, (n_frames - 1) * spec.hop + win_length :] = np.nan
    np.testing.assert_array_equal(plan.execute(samples, n_frames), clean)


@pytest.mark.parametrize("nfft", [64, 1024])
def test_batches_may_be_split_anywhere(engine, rng, nfft):
    """Frames are the same bits in one call, in several, and under plans of other sizes."""
    spec = SpectrumSpec(FS, 2, win_length=nfft - 1, hop=nfft // 4 + 1, nfft=nfft)
    n_frames = 37
    samples = noise(rng, spec, n_frames)
    whole = engine.plan_power(spec, n_frames).execute(samples, n_frames)
    plan = engine.plan_power(spec, 16)
    first = 0
    for count in (1, 16, 3, 2, 15):
        part = np.ascontiguousarray(samples[:, first * spec.hop :])
        np.testing.assert_array_equal(plan.execute(part, count), whole[first : first + count])
        first += count
    assert first == n_frames


def test_each_result_is_an_array_of_its_own(engine, rng):
    """A later call leaves an earlier result alone."""
    spec = SpectrumSpec(FS, 1, win_length=64, hop=32)
    plan = engine.plan_power(spec, 4)
    first = plan.execute(noise(rng, spec, 4), 4)
    kept = first.copy()
    plan.execute(noise(rng, spec, 4), 4)
    np.testing.assert_array_equal(first, kept)


# ---- Refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("samples", "n_frames", "message"),
    [
        (np.zeros((1, 300), np.float32), 0, r"n_frames=0: the plan is for 1 to 4"),
        (np.zeros((1, 300), np.float32), 5, r"n_frames=5: the plan is for 1 to 4"),
        (np.zeros((2, 300), np.float32), 1, r"shape \(2, 300\): must be \(channels=1, n\)"),
        (np.zeros(300, np.float32), 1, r"shape \(300,\): must be \(channels=1, n\)"),
        (np.zeros((1, 300)), 1, r"samples of float64: must be C-contiguous float32"),
        (np.zeros((300, 1), np.float32).T[:, ::2], 1, r"must be C-contiguous float32"),
        (np.zeros((1, 159), np.float32), 4, r"159 samples a channel: 4 frames need 160"),
    ],
)
def test_misuse_is_an_internal_error(engine, samples, n_frames, message):
    """Samples that do not fit the plan raise an error that names the value and the rule."""
    plan = engine.plan_power(SpectrumSpec(FS, 1, win_length=64, hop=32), 4)
    with pytest.raises(InternalError, match=message):
        plan.execute(samples, n_frames)


def test_a_plan_is_for_at_least_one_frame(engine):
    """A plan for no frames is refused."""
    with pytest.raises(ConfigError, match="max_frames=0: must be at least 1"):
        engine.plan_power(SpectrumSpec(FS), 0)


def test_more_samples_than_the_frames_need_are_ignored(engine, rng):
    """The result depends on the frames' samples only, however many more are given."""
    spec = SpectrumSpec(FS, 2, win_length=64, hop=40)
    samples = noise(rng, spec, 3, extra=1001)
    plan = engine.plan_power(spec, 3)
    exact = np.ascontiguousarray(samples[:, :144])
    np.testing.assert_array_equal(plan.execute(samples, 3), plan.execute(exact, 3))


# ---- Transpose ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shape", [(1, 1), (1, 97), (97, 1), (32, 32), (33, 31), (3, 5000), (1025, 513), (0, 4)]
)
def test_transpose_moves_every_bit(engine, rng, shape):
    """A transpose of any shape is exact, also for NaN and infinities."""
    bits = rng.integers(0, 2**32, shape, dtype=np.uint32)
    result = engine.transpose(bits.view(np.float32))
    assert result.flags.c_contiguous
    np.testing.assert_array_equal(result.view(np.uint32), bits.T)


def test_transpose_of_a_large_matrix(engine, rng):
    """A matrix larger than a device's block is put together rightly."""
    matrix = rng.standard_normal((2100, 4097)).astype(np.float32)
    np.testing.assert_array_equal(engine.transpose(matrix), matrix.T)


def test_the_name_says_what_computes(engine):
    """The name is ``numpy`` or ``opencl:PLATFORM/DEVICE``."""
    assert engine.name == "numpy" or engine.name.startswith("opencl:")
