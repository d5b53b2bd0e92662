from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from spectrod.analysis.stft.stft_simd import SIMD
from spectrod.analysis.stft.stft_simd_shapes import own_bytes
from spectrod.analysis.stft.stft_stage import (
    FULL_SCALE,
    Average,
    BandRows,
    Samples,
    StftLaunch,
    StftSpec,
    StftTables,
)
from spectrod.fft.choice import untuned
from spectrod.fft.simd_shape import SimdShape, needs_scratch

GUARD = 77.0
POWER_L2 = 3e-7
FLOOR_DB = -120.0


@pytest.fixture(autouse=True)
def _cpu_only(context):
    if context.device.kind != "cpu":
        pytest.skip("the family is for CPUs")


@dataclass
class Recording:
    """Samples of every format where a launch finds them, and as float64 [FS]."""

    spec: StftSpec
    channels: int = 1
    hop: int = 0
    n_frames: int = 5
    first: int = 3
    seed: int = 5
    pitch_gap: int = 0
    values: np.ndarray = field(init=False)
    image: np.ndarray = field(init=False)

    def __post_init__(self):
        self.hop = self.hop or self.spec.nfft // 2 - 1
        parts = self.channels * self.spec.parts
        span = (self.n_frames - 1) * self.hop + self.spec.win_length
        rng = np.random.default_rng(self.seed)
        raw = rng.uniform(-0.9, 0.9, (parts, span)) * FULL_SCALE[self.spec.sample_format]
        if self.spec.sample_format == "float32":
            raw = raw.astype(np.float32)
        else:
            raw = np.rint(raw).astype(np.int64)
        self.values = raw / FULL_SCALE[self.spec.sample_format]
        self.image = self._stored(self._placed(raw))

    def _placed(self, raw):
        """Put samples at their places, between poison values."""
        parts, span = raw.shape
        poison = np.nan if raw.dtype == np.float32 else int(FULL_SCALE[self.spec.sample_format]) - 1
        if self.spec.interleaved:
            placed = np.full((self.first + span + 2, parts + self.pitch_gap), poison, raw.dtype)
            placed[self.first : self.first + span, :parts] = raw.T
            self.pitch = parts + self.pitch_gap
        else:
            self.pitch = self.first + span + 2 + self.pitch_gap
            placed = np.full((parts, self.pitch), poison, raw.dtype)
            placed[:, self.first : self.first + span] = raw
        return placed.ravel()

    def _stored(self, placed):
        if self.spec.sample_format == "int24":
            return placed.astype("<i4").view(np.uint8).reshape(-1, 4)[:, :3].ravel()
        return placed.astype(self.spec.sample_format)

    def frames(self):
        """Return the frames of each channel of results, (frames, channels, win_length)."""
        windows = np.lib.stride_tricks.sliding_window_view(
            self.values, self.spec.win_length, axis=1
        )[:, :: self.hop]
        frames = np.moveaxis(windows, 1, 0)
        return frames[:, ::2] + 1j * frames[:, 1::2] if self.spec.iq else frames

    def samples(self, context, first=0):
        return Samples(context.table(self.image), self.pitch, self.first + first)


def make_tables(spec, smoothing=0.3):
    rng = np.random.default_rng(17)
    bands = None
    if spec.n_bands:
        first = rng.integers(0, spec.n_bins, spec.n_bands)
        first[-1] = spec.n_bins - 1
        count = np.minimum(rng.integers(1, 45, spec.n_bands), spec.n_bins - first)
        bands = BandRows(first, count, rng.uniform(0.1, 1.0, count.sum()))
    return StftTables(
        window=rng.uniform(0.2, 1.0, spec.win_length) / np.sqrt(spec.nfft),
        weights=rng.uniform(0.1, 2.0, spec.n_bins) if spec.weighted else None,
        bands=bands,
        smoothing=smoothing,
        floor_db=FLOOR_DB,
    )


def spectra(spec, tables, frames):
    """Compute X in float64."""
    windowed = frames * tables.window
    if spec.iq:
        return np.fft.fftshift(np.fft.fft(windowed, spec.nfft), axes=-1)
    return np.fft.rfft(windowed, spec.nfft)


def powers(spec, tables, frames):
    """Compute the averaged values in float64."""
    power = np.abs(spectra(spec, tables, frames)) ** 2
    if not spec.iq:
        power[..., [0, -1]] /= 2.0
    if spec.weighted:
        power *= tables.weights
    if not spec.n_bands:
        return power
    bands, ends = tables.bands, np.cumsum(tables.bands.count)
    return np.stack(
        [
            power[..., first : first + count] @ bands.weights[end - count : end]
            for first, count, end in zip(bands.first, bands.count, ends, strict=True)
        ],
        axis=-1,
    )


def levels(power):
    return np.maximum(10.0 * np.log10(power), FLOOR_DB)


def run(context, recording, *, tables=None, shape=None, **average):
    """Compute all frames in one launch, and check that memory after the rows is unchanged."""
    spec = recording.spec
    shape = shape or untuned(SIMD, spec, context.device)
    stage = SIMD.build(context, spec, tables or make_tables(spec), shape)
    state = Average(average.pop("state"), **average) if average else None
    n_frames = recording.n_frames
    return launch(context, stage, recording, recording.samples(context), n_frames, state)


def launch(context, stage, recording, samples, n_frames, average=None):
    spec, channels = stage.spec, recording.channels
    rows = average.rows(n_frames) if average else n_frames
    dtype = np.complex64 if spec.output == "complex" else np.float32
    image = np.full(rows * channels * spec.n_values + 33, GUARD, dtype)
    out = context.table(image)
    n_bytes = stage.scratch_bytes(n_frames, channels)
    scratch = context.allocate(n_bytes) if n_bytes else None
    stage.launch(out, StftLaunch(samples, recording.hop, n_frames, channels, average), scratch)
    context.download(image, out)
    np.testing.assert_array_equal(image[-33:], GUARD)
    return image[:-33].reshape(rows, channels, spec.n_values)


def assert_power(result, expected):
    assert result.shape == expected.shape
    error = np.linalg.norm((result - expected).ravel()) / np.linalg.norm(expected.ravel())
    assert error <= POWER_L2


@pytest.mark.parametrize("nfft", [16, 18, 60, 64, 250, 256, 1000, 1024, 1920, 8192])
@pytest.mark.slow
def test_power_of_every_layout_is_right(context, nfft):
    """Frames or columns as lanes, odd hops and an odd count are right with several channels."""
    recording = Recording(StftSpec(nfft, nfft), channels=2, n_frames=19, pitch_gap=5)
    expected = powers(recording.spec, make_tables(recording.spec), recording.frames())
    assert_power(run(context, recording), expected)


@pytest.mark.parametrize("nfft", [1 << 16, 1 << 18, 3**7 * 20])
@pytest.mark.slow
def test_long_frames_are_right(context, nfft):
    """Frames beyond a mebibyte, which a work-item holds in the scratch buffer, are right."""
    spec = StftSpec(nfft, nfft, "int16", iq=nfft > 1 << 16)
    recording = Recording(spec, n_frames=3, hop=1001)
    shape = untuned(SIMD, spec, context.device)
    assert needs_scratch(own_bytes(shape, spec)) == (nfft > 1 << 16 or not shape.columns)
    assert_power(run(context, recording), powers(spec, make_tables(spec), recording.frames()))


@pytest.mark.parametrize("sample_format", ["int16", "int24", "int32", "float32"])
@pytest.mark.parametrize(
    ("nfft", "win_length", "interleaved"),
    [(60, 60, False), (60, 59, True), (256, 256, False), (1024, 700, True)],
)
@pytest.mark.slow
def test_samples_of_every_format_are_right(context, nfft, win_length, sample_format, interleaved):
    """Bytes are combined and scaled, and samples outside the window are not read."""
    spec = StftSpec(nfft, win_length, sample_format, interleaved)
    recording = Recording(spec, channels=2)
    assert_power(run(context, recording), powers(spec, make_tables(spec), recording.frames()))


@pytest.mark.parametrize("channels", [1, 2, 3, 64])
@pytest.mark.parametrize("pitch_gap", [0, 1])
@pytest.mark.slow
def test_any_number_of_interleaved_channels_is_right(context, channels, pitch_gap):
    """One, two and many channels are right, also with unused values between them."""
    spec = StftSpec(256, 256, "int16", interleaved=True)
    recording = Recording(spec, channels=channels, pitch_gap=pitch_gap, n_frames=9)
    assert_power(run(context, recording), powers(spec, make_tables(spec), recording.frames()))


@pytest.mark.parametrize(
    ("nfft", "win_length", "interleaved", "output"),
    [
        (30, 29, False, "power"),
        (45, 45, True, "power"),
        (45, 45, False, "complex"),
        (336, 336, False, "power"),
        (336, 336, True, "complex"),
        (1024, 1000, True, "power"),
    ],
)
@pytest.mark.slow
def test_iq_is_right(context, nfft, win_length, interleaved, output):
    """Two-sided spectra are right and ascending, for even and odd lengths."""
    spec = StftSpec(nfft, win_length, "int16", interleaved, iq=True, output=output)
    recording = Recording(spec, channels=2, n_frames=17)
    tables = make_tables(spec)
    expected = (spectra if output == "complex" else powers)(spec, tables, recording.frames())
    assert_power(run(context, recording), expected)


@pytest.mark.parametrize("nfft", [36, 256, 1024])
@pytest.mark.slow
def test_complex_spectra_are_right(context, nfft):
    """All bins of a complex spectrum are right, the first and the last not halved."""
    recording = Recording(StftSpec(nfft, nfft, output="complex"), n_frames=17)
    expected = spectra(recording.spec, make_tables(recording.spec), recording.frames())
    assert_power(run(context, recording), expected)


@pytest.mark.parametrize("n_bands", [0, 3, 33])
@pytest.mark.parametrize("nfft", [64, 256])
@pytest.mark.slow
def test_weighted_bands_as_levels_are_right(context, nfft, n_bands):
    """Weights, bands of any length and place, and levels are right to single precision."""
    spec = StftSpec(nfft, nfft, weighted=True, n_bands=n_bands, decibels=True)
    recording = Recording(spec, n_frames=18, channels=2)
    expected = powers(spec, make_tables(spec), recording.frames())
    # Every bin's amplitude has an error of some 1e-7 of the largest.
    tolerance = 1e-4 + 8.7 * 2e-7 * np.sqrt(expected.max() / expected)
    assert (np.abs(run(context, recording) - levels(expected)) <= tolerance).all()


def averaged(spec, tables, power, frames):
    """Compute rows of an average in float64, from its start."""
    if spec.averaging == "exponential":
        y = power[0]
        rows = []
        for number, x in enumerate(power, 1):
            y = y + tables.smoothing * (x - y)
            rows += [y] if number % frames == 0 else []
        return np.stack(rows)
    fold = {"mean": np.mean, "max": np.max, "min": np.min}[spec.averaging]
    whole = len(power) // frames * frames
    return fold(power[:whole].reshape(-1, frames, *power.shape[1:]), axis=1)


@pytest.mark.parametrize("averaging", ["mean", "max", "min", "exponential"])
@pytest.mark.parametrize(("nfft", "n_bands"), [(64, 5), (256, 0)])
@pytest.mark.slow
def test_averages_do_not_depend_on_launches(context, nfft, n_bands, averaging):
    """Rows of seven frames are right, with the same bits if a stream comes in pieces."""
    spec = StftSpec(nfft, nfft, n_bands=n_bands, averaging=averaging)
    recording = Recording(spec, channels=2, n_frames=47, hop=5)
    tables, frames = make_tables(spec), 7
    stage = SIMD.build(context, spec, tables, untuned(SIMD, spec, context.device))
    samples = recording.samples(context)
    state = context.allocate(4 * 2 * spec.state_values)
    whole = launch(context, stage, recording, samples, 47, Average(state, frames))
    expected = averaged(spec, tables, powers(spec, tables, recording.frames()), frames)
    assert_power(whole, expected)
    pieces, start = [], 0
    for count in (1, 6, 1, 20, 2, 17):
        primed = start > 0 if averaging == "exponential" else start % frames > 0
        average = Average(state, frames, start % frames, primed)
        part = replace(samples, first=samples.first + start * recording.hop)
        pieces.append(launch(context, stage, recording, part, count, average))
        start += count
    np.testing.assert_array_equal(np.concatenate(pieces), whole)


@pytest.mark.parametrize("nfft", [64, 1024])
@pytest.mark.parametrize("sample_format", ["int24", "float32"])
@pytest.mark.slow
def test_frames_depend_on_their_samples_alone(context, nfft, sample_format):
    """Each frame alone, read from any alignment, has the same bits."""
    recording = Recording(StftSpec(nfft, nfft, sample_format), n_frames=18, hop=nfft + 3)
    spec = recording.spec
    stage = SIMD.build(context, spec, make_tables(spec), untuned(SIMD, spec, context.device))
    samples = recording.samples(context)
    together = launch(context, stage, recording, samples, 18)
    for frame in range(18):
        part = replace(samples, first=samples.first + frame * recording.hop)
        alone = launch(context, stage, recording, part, 1)
        np.testing.assert_array_equal(alone[0], together[frame])


@pytest.mark.parametrize("averaging", ["none", "max", "min"])
@pytest.mark.parametrize("nfft", [64, 256])
@pytest.mark.slow
def test_nan_stays_in_its_frame(context, nfft, averaging):
    """A frame with one NaN is all NaN; others, in the same vectors, are unchanged."""
    spec = StftSpec(nfft, nfft, averaging=averaging, decibels=True)
    recording = Recording(spec, n_frames=20, hop=nfft, first=0)
    state = context.allocate(4 * max(1, spec.state_values))
    average = {} if averaging == "none" else {"state": state, "frames": 2}
    clean = run(context, recording, **average)
    recording.image[6 * nfft + 9] = np.nan
    result = run(context, recording, **average)
    row = 6 if averaging == "none" else 3
    assert np.isnan(result[row]).all()
    others = np.arange(len(result)) != row
    np.testing.assert_array_equal(result[others], clean[others])


@pytest.mark.parametrize("nfft", [64, 256])
@pytest.mark.slow
def test_levels_of_all_powers_are_right(context, nfft):
    """Silence is at the floor; the smallest numbers and infinity have their levels."""
    spec = StftSpec(nfft, nfft, decibels=True)
    recording = Recording(spec, n_frames=60, hop=nfft, first=0)
    window = np.zeros(nfft)
    window[0] = 1.0
    amplitudes = np.concatenate([np.geomspace(1e-22, 1e19, 58), [0.0, 3e19]])
    recording.image[: 60 * nfft : nfft] = amplitudes
    result = run(context, recording, tables=StftTables(window, floor_db=-600.0))[:, 0, 1:-1]
    assert (result[-2] == -600.0).all()
    assert (result[-1] == np.inf).all()
    power = amplitudes[:-2].astype(np.float32).astype(np.float64) ** 2
    steps = np.finfo(np.float32).smallest_subnormal / power
    error = np.abs(result[:-2] - 10.0 * np.log10(power)[:, None])
    assert (error <= (2e-5 + 4.4 * steps)[:, None]).all()


@pytest.mark.parametrize(
    ("nfft", "shape"),
    [
        (256, SimdShape(16, (16, 8), columns=False)),
        (256, SimdShape(8, (16, 8), columns=False)),
        (256, SimdShape(8, (16,), columns=True)),
        (256, SimdShape(8, (8, 2), columns=True, staged=False)),
        (1024, SimdShape(16, (2, 4, 4), columns=True)),
        (1024, SimdShape(8, (16, 4), columns=True, staged=False)),
        (832, SimdShape(16, (2, 13), columns=True, staged=False)),
        (864, SimdShape(16, (9, 3), columns=True)),
        (720, SimdShape(8, (5, 9), columns=True)),
        (720, SimdShape(8, (2, 3, 2, 3, 2, 5), columns=False)),
    ],
)
@pytest.mark.slow
def test_every_shape_is_right(context, skip_unless_fits_register, nfft, shape):
    """One pass or many, with even and odd numbers and radices of last butterflies, are right."""
    skip_unless_fits_register(shape.lanes * 4)
    recording = Recording(StftSpec(nfft, nfft), n_frames=9)
    expected = powers(recording.spec, make_tables(recording.spec), recording.frames())
    assert_power(run(context, recording, shape=shape), expected)
