"""The contract of all engines, run over NumPy and each working OpenCL device."""

from collections.abc import Iterator
from dataclasses import asdict, replace

import numpy as np
import pytest
import scipy.fft
import scipy.signal

from spectrod.analysis.engine import Engine, open_engine
from spectrod.analysis.frame_launch import FrameLaunch
from spectrod.analysis.numpy_engine import NumpyEngine
from spectrod.analysis.opencl_engine import OpenCLEngine
from spectrod.analysis.stft.stft_select import families
from spectrod.analysis.stft.stft_tables import kernel_spec
from spectrod.dsp.sample_layout import SampleLayout
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import FLOOR_DBFS, FULL_SCALE_SINE_FS2
from spectrod.fft import wisdom
from spectrod.lib.errors import InternalError

# Relative L2 of the power against float64. Float32 arithmetic in log2(8192) levels of butterflies
# with tables rounded once stays below 3 ulp of 1.2e-7; a wrong twiddle does not.
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
    """At least one OpenCL device works, so that these tests cover more than NumPy."""
    assert open_engine("opencl").name.startswith("opencl:")


@pytest.fixture
def rng():
    return np.random.default_rng(20_261_120)


def reference(spec, samples, n_frames):
    """Compute one-sided power in float64 with SciPy and its windows."""
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


def filled(engine, samples):
    """Fill one of the engine's buffers with the samples."""
    buffer = engine.sample_buffer(SampleLayout("float32", len(samples)), samples.shape[1])
    buffer.append(samples)
    return buffer


def compute(engine, spec, samples, n_frames):
    return (
        engine.plan(spec, filled(engine, samples), n_frames)
        .submit(FrameLaunch(0, n_frames, spec.averaging_frames))
        .collect()
    )


def assert_accurate(engine, rng, spec, n_frames):
    samples = noise(rng, spec, n_frames)
    power = compute(engine, spec, samples, n_frames)
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
    """Each transform length is accurate with a window as long as the transform."""
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
    """One frame, one less and one more than a work-group's, and several channels are right."""
    assert_accurate(engine, rng, SpectrumSpec(FS, channels, win_length=64, hop=33), n_frames)


def test_agrees_with_short_time_fft(engine, rng):
    """The density is that of ``scipy.signal.ShortTimeFFT`` where its slices equal our frames."""
    spec = SpectrumSpec(FS, 1, win_length=512, hop=128)
    n_frames = 20
    samples = noise(rng, spec, n_frames)
    peer = scipy.signal.ShortTimeFFT(
        scipy.signal.get_window("hann", 512), spec.hop, FS, fft_mode="onesided2X", scale_to="psd"
    )
    first = peer.m_num_mid // spec.hop
    expected = peer.spectrogram(samples[0].astype(np.float64), p0=first, p1=first + n_frames)
    power = compute(engine, spec, samples, n_frames)[:, 0]
    assert relative_l2(power, expected.T) <= RELATIVE_L2_MAX


# ---- Scaling -----------------------------------------------------------------------------------


@pytest.mark.parametrize("nfft", [64, 1024, 8192])
def test_dc_and_nyquist_are_not_doubled(engine, nfft):
    """A constant and the fastest alternation of amplitude 1/2 read 1/4 at their bins."""
    spec = SpectrumSpec(FS, 2, win_length=nfft, hop=nfft, scaling="spectrum")
    alternation = np.where(np.arange(nfft) % 2, -0.5, 0.5)
    samples = np.stack([np.full(nfft, 0.5), alternation]).astype(np.float32)
    power = compute(engine, spec, samples, 1)[0]
    np.testing.assert_allclose([power[0, 0], power[1, -1]], 0.25, rtol=1e-6)


def test_density_integrates_to_the_mean_square(engine, rng):
    """The density's sum times the bin width is the window-weighted mean square (Parseval)."""
    spec = SpectrumSpec(FS, 1, win_length=1001, hop=500, nfft=2048)
    samples = noise(rng, spec, 1)
    power = compute(engine, spec, samples, 1)
    weighted = np.sum((samples[0] * spec.taper.samples) ** 2) / spec.taper.s2
    assert np.sum(power, dtype=np.float64) * spec.delta_f == pytest.approx(weighted, rel=1e-6)


@pytest.mark.parametrize("scaling", ["density", "spectrum"])
def test_scalings_are_linear_power(engine, rng, scaling):
    """Each linear scaling is its power scale times the same spectrum."""
    spec = SpectrumSpec(FS, 1, win_length=256, hop=100, scaling=scaling)
    assert_accurate(engine, rng, spec, 3)


def test_levels_are_those_of_the_power(engine, rng):
    """Levels are within 0.001 dB of those of the exact power, and silence is at the floor."""
    spec = SpectrumSpec(FS, 1, win_length=256, hop=100, scaling="dbfs")
    samples = noise(rng, spec, 3)
    samples[0, 200:] = 0.0
    levels = compute(engine, spec, samples, 3)
    expected = 10.0 * np.log10(reference(spec, samples, 2) / FULL_SCALE_SINE_FS2)
    np.testing.assert_allclose(levels[:2], expected, atol=0.001, rtol=0.0)
    assert (levels[2] == FLOOR_DBFS).all()


@pytest.mark.parametrize("nfft", ALL_NFFT)
@pytest.mark.parametrize("offset_bins", [0.0, 0.25, 0.5])
def test_tone_reads_its_level_on_and_between_bins(engine, nfft, offset_bins):
    """A sine at -20 dBFS under the flat-top window peaks at -20 dBFS within 0.05 dB."""
    spec = SpectrumSpec(FS, 1, "flattop", nfft, nfft, scaling="spectrum")
    cycles = (nfft // 4 + offset_bins) / nfft
    tone = 0.1 * np.sin(2.0 * np.pi * cycles * np.arange(nfft) + 0.3)
    power = compute(engine, spec, tone[None].astype(np.float32), 1)[0, 0]
    assert np.argmax(power) in (nfft // 4, nfft // 4 + 1)
    assert 10.0 * np.log10(power.max() / 0.5) == pytest.approx(-20.0, abs=0.05)


def test_silence_is_zero(engine):
    """Zeros give zero in every bin."""
    spec = SpectrumSpec(FS, 1, win_length=128, hop=64)
    power = compute(engine, spec, np.zeros((1, 256), np.float32), 3)
    assert not power.any()


# ---- Isolation of frames -------------------------------------------------------------------------


@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("nfft", [64, 512])
def test_a_bad_sample_spoils_only_its_frames(engine, rng, poison, nfft):
    """Frames without the bad sample are bit for bit the same as without it."""
    spec = SpectrumSpec(FS, 2, "rectangular", nfft - 3, nfft // 2, nfft)
    n_frames, where = 40, 10 * spec.hop + 7
    samples = noise(rng, spec, n_frames)
    clean = compute(engine, spec, samples, n_frames)
    samples[1, where] = poison
    power = compute(engine, spec, samples, n_frames)
    starts = np.arange(n_frames) * spec.hop
    holds = (starts <= where) & (where < starts + spec.win_length)
    assert not np.isfinite(power[holds, 1]).any()
    np.testing.assert_array_equal(power[~holds], clean[~holds])
    np.testing.assert_array_equal(power[:, 0], clean[:, 0])


@pytest.mark.parametrize("win_length", [100, 101])
def test_samples_between_frames_are_never_read(engine, rng, win_length):
    """With a hop longer than the window, the samples between frames may be NaN."""
    spec = SpectrumSpec(FS, 1, win_length=win_length, hop=150, nfft=256)
    n_frames = 12
    samples = noise(rng, spec, n_frames, extra=9)
    clean = compute(engine, spec, samples, n_frames)
    position = np.arange(samples.shape[1])
    samples[0, position % spec.hop >= win_length] = np.nan
    samples[0, (n_frames - 1) * spec.hop + win_length :] = np.nan
    np.testing.assert_array_equal(compute(engine, spec, samples, n_frames), clean)


@pytest.mark.parametrize("nfft", [64, 1024])
def test_batches_may_be_split_anywhere(engine, rng, nfft):
    """Frames are bit for bit the same in one call, in several, and under plans of other sizes."""
    spec = SpectrumSpec(FS, 2, win_length=nfft - 1, hop=nfft // 4 + 1, nfft=nfft)
    n_frames = 37
    samples = noise(rng, spec, n_frames)
    whole = compute(engine, spec, samples, n_frames)
    plan = engine.plan(spec, filled(engine, samples), 16)
    first = 0
    for count in (1, 16, 3, 2, 15):
        part = plan.submit(FrameLaunch(first * spec.hop, count)).collect()
        np.testing.assert_array_equal(part, whole[first : first + count])
        first += count
    assert first == n_frames


def test_each_result_is_an_array_of_its_own(engine, rng):
    """A later batch does not change results that are still referenced, even by a view of a view."""
    spec = SpectrumSpec(FS, 1, win_length=64, hop=32)
    plan = engine.plan(spec, filled(engine, noise(rng, spec, 40)), 4)
    row = plan.submit(FrameLaunch(0, 4)).collect()[1:3][0, 0]
    kept = row.copy()
    for first in range(0, 36 * 32, 32):
        plan.submit(FrameLaunch(first, 4)).collect()
    np.testing.assert_array_equal(row, kept)


def test_results_go_where_they_shall(engine, rng):
    """Rows are written into the caller's array at any offset, and nowhere else."""
    spec = SpectrumSpec(FS, 2, win_length=64, hop=32)
    samples = noise(rng, spec, 3)
    plan = engine.plan(spec, filled(engine, samples), 3)
    expected = plan.submit(FrameLaunch(0, 3)).collect()
    memory = np.full(expected.size + 16, 7.0, np.float32)
    for first in (0, 1, 4):
        out = memory[first : first + expected.size].reshape(expected.shape)
        assert plan.submit(FrameLaunch(0, 3), out).collect() is out
        np.testing.assert_array_equal(out, expected)
        memory[first : first + expected.size] = 7.0
        assert (memory == 7.0).all()


def test_two_batches_may_be_on_their_way(engine, rng):
    """Batches are right whichever is collected first."""
    spec = SpectrumSpec(FS, 1, win_length=64, hop=32)
    samples = noise(rng, spec, 8)
    plan = engine.plan(spec, filled(engine, samples), 4)
    first, second = plan.submit(FrameLaunch(0, 4)), plan.submit(FrameLaunch(4 * 32, 4))
    rows = [second.collect(), first.collect()]
    np.testing.assert_array_equal(np.concatenate(rows[::-1]), compute(engine, spec, samples, 8))


def test_samples_and_rows_in_flight_keep_their_memory(engine, rng):
    """Samples and rows in flight stay unchanged without references from the caller."""
    spec = SpectrumSpec(FS, 2, win_length=4096, hop=64)
    samples = noise(rng, spec, 400)
    buffer = filled(engine, samples)
    expected = engine.plan(spec, buffer, 400).submit(FrameLaunch(0, 400)).collect()
    for _ in range(20):
        rows = engine.plan(spec, filled(engine, samples), 400).submit(FrameLaunch(0, 400))
        litter = [np.full(samples.shape, np.nan, np.float32) for _ in range(3)]
        np.testing.assert_array_equal(rows.collect(), expected)
        engine.plan(spec, filled(engine, samples), 400).submit(FrameLaunch(0, 400))
        del litter


def test_a_sample_buffer_that_moved_has_the_same_frames(engine, rng):
    """Frames are the same after samples move to the buffer's front and new ones follow."""
    spec = SpectrumSpec(FS, 2, win_length=64, hop=33)
    samples = noise(rng, spec, 12)
    whole = compute(engine, spec, samples, 12)
    buffer = engine.sample_buffer(SampleLayout("float32", 2), 200)
    plan = engine.plan(spec, buffer, 5)
    buffer.append(samples[:, :200])
    np.testing.assert_array_equal(plan.submit(FrameLaunch(0, 5)).collect(), whole[:5])
    buffer.move(5 * 33)
    buffer.append(samples[:, 200:365])
    np.testing.assert_array_equal(
        plan.submit(FrameLaunch(buffer.place(5 * 33), 5)).collect(), whole[5:10]
    )
    with pytest.raises(InternalError, match="197 samples do not fit half a buffer of 200"):
        buffer.move(buffer.end - 197)


def test_memory_of_others_is_read_in_place_or_refused(engine, rng):
    """Samples of another owner give the same bits in place, or the engine refuses them."""
    spec = SpectrumSpec(FS, 2, win_length=64, hop=32)
    samples = noise(rng, spec, 5)
    expected = compute(engine, spec, samples, 5)
    memory = samples.reshape(-1).view(np.uint8)
    buffer = engine.sample_buffer_over(SampleLayout("float32", 2), memory)
    if buffer is not None:
        rows = engine.plan(spec, buffer, 5).submit(FrameLaunch(0, 5)).collect()
        np.testing.assert_array_equal(rows, expected)


def test_averages_continue_from_batch_to_batch(engine, rng):
    """Rows of a mean over three frames do not depend on the division into batches."""
    spec = SpectrumSpec(FS, 2, win_length=64, hop=32, averaging="mean", averaging_frames=3)
    samples = noise(rng, spec, 9)
    plan = engine.plan(spec, filled(engine, samples), 9)
    whole = plan.submit(FrameLaunch(0, 9, 3)).collect()
    parts = [
        plan.submit(FrameLaunch(first * 32, n, 3, first % 3, primed=first % 3 > 0)).collect()
        for first, n in ((0, 1), (1, 1), (2, 5), (7, 2))
    ]
    assert [len(part) for part in parts] == [0, 0, 2, 1]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    power = compute(engine, replace(spec, averaging="none", averaging_frames=1), samples, 9)
    assert relative_l2(whole[1], power[3:6].astype(float).mean(axis=0)) <= RELATIVE_L2_MAX
    plan.submit(FrameLaunch(0, 2, 3)).collect()
    np.testing.assert_array_equal(plan.submit(FrameLaunch(0, 9, 3)).collect(), whole)


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
    """A matrix larger than a device's block is transposed correctly in parts."""
    matrix = rng.standard_normal((2100, 4097)).astype(np.float32)
    np.testing.assert_array_equal(engine.transpose(matrix), matrix.T)


def test_the_name_has_platform_and_device(engine):
    """The engine's name is ``numpy`` or ``opencl:PLATFORM/DEVICE``."""
    assert engine.name == "numpy" or engine.name.startswith("opencl:")


def test_a_plan_uses_the_stage_of_an_earlier_one(opencl_device):
    """The next plan of a spec builds nothing; a plan beside another one builds its own stage."""
    engine = OpenCLEngine(opencl_device)
    buffer = engine.sample_buffer(SampleLayout("float32", 1), 512)
    buffer.append(np.ones((1, 512), np.float32))
    spec = SpectrumSpec(FS, 1, "hann", 64, 32)
    first, second = engine.plan(spec, buffer, 4), engine.plan(spec, buffer, 4)
    expected = first.submit(FrameLaunch(0, 4)).collect().copy()
    np.testing.assert_array_equal(second.submit(FrameLaunch(0, 4)).collect(), expected)
    built_bytes = engine.context.table_bytes
    del first, second
    again = [engine.plan(spec, buffer, 4) for _ in range(2)]
    assert engine.context.table_bytes == built_bytes
    for plan in again:
        np.testing.assert_array_equal(plan.submit(FrameLaunch(0, 4)).collect(), expected)
    engine.plan(spec, buffer, 4)
    assert engine.context.table_bytes > built_bytes
    del again, plan
    engine.close()


def test_unused_stages_are_bounded(opencl_device):
    """The stage that has been unused for longest is dropped, so specs that change leave nothing."""
    engine = OpenCLEngine(opencl_device)
    buffer = engine.sample_buffer(SampleLayout("float32", 1), 512)
    for name in ("hann", "hamming", "blackman", "nuttall", "bartlett"):
        engine.plan(SpectrumSpec(FS, 1, name, 64, 32), buffer, 4)
    built_bytes = engine.context.table_bytes
    engine.plan(SpectrumSpec(FS, 1, "hamming", 64, 32), buffer, 4)
    assert engine.context.table_bytes == built_bytes
    engine.plan(SpectrumSpec(FS, 1, "hann", 64, 32), buffer, 4)
    assert engine.context.table_bytes > built_bytes
    engine.close()


def test_a_tuned_result_replaces_an_unused_stage(opencl_device, monkeypatch):
    """A plan does not use a stage that was built before the tuner saved another result."""
    engine = OpenCLEngine(opencl_device)
    buffer = engine.sample_buffer(SampleLayout("float32", 1), 512)
    spec = SpectrumSpec(FS, 1, "hann", 64, 32)
    engine.plan(spec, buffer, 4)
    built_bytes = engine.context.table_bytes
    shape, _ = kernel_spec(spec)
    family = next(families(shape, opencl_device))
    params = list(family.candidates(shape, opencl_device))[-1]
    monkeypatch.setattr(wisdom, "lookup", lambda *_: (family.name, asdict(params)))
    engine.plan(spec, buffer, 4)
    assert engine.context.table_bytes > built_bytes
    engine.close()
