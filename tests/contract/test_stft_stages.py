"""Every family of stages, on every OpenCL device, agrees with the float64 reference."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from spectrod.analysis.stft.stft_reference import ReferenceStft
from spectrod.analysis.stft.stft_select import all_families, families, make_stft_stage
from spectrod.analysis.stft.stft_stage import (
    Average,
    BandRows,
    RowPlaces,
    Samples,
    StftLaunch,
    StftSpec,
    StftTables,
    frame_places,
)
from spectrod.analysis.stft.stft_tables import kernel_spec
from spectrod.dsp.sample_layout import SAMPLE_BYTES
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.windows import WINDOW_NAMES
from spectrod.fft.choice import untuned
from spectrod.fft.lengths import is_smooth
from spectrod.opencl.context import Context

pytestmark = [pytest.mark.slow, pytest.mark.forms(3)]  # one for each family

# A transform in float32 has a relative L2 error of 1.2e-7 to 2e-7 to 2^20 points, and power the
# same: most of a frame's error is where most of its power is. Bluestein's lengths take three
# transforms. Levels have this accuracy in noise but not far below a loud tone, see docs/stft.md.
RELATIVE_L2_MAX = 3e-7
BLUESTEIN_FACTOR = 2.0
LEVEL_ERROR_MAX_DB = 1e-3
LEVEL_RANGE_DB = 100.0
GUARD = np.float32(-12345.5)
GUARDS = 64


SPEC = StftSpec(256, 250)
"""Of most tests: other lengths are other programs, and compiling them takes most of the time."""


@dataclass(frozen=True)
class Launch:
    """The input of a stage: a spec, and the place of the frames of some channels."""

    spec: StftSpec
    channels: int = 2
    hop: int = 77
    n_frames: int = 9
    first: int = 5
    frames: int = 4
    """Frames per row, with an average."""
    gap: int = 3
    """Unused samples between channels."""
    places: RowPlaces | None = None
    """Starts of rows, with ``spec.placed``."""

    @property
    def begins(self):
        average = None if self.spec.averaging == "none" else Average(None, self.frames)
        return self.first + frame_places(self.hop, self.n_frames, average, self.places)

    @property
    def n_samples(self):
        return int(self.begins.max()) + self.spec.win_length


@pytest.fixture(scope="module")
def context(opencl_device, no_cache):
    opened = Context(opencl_device, cache=no_cache)
    yield opened
    opened.close()


@pytest.fixture
def rng():
    return np.random.default_rng(4)


@pytest.fixture(params=list(all_families()), ids=lambda family: family.name)
def family(request):
    return request.param


def build(family, context, spec, tables):
    if not family.supports(spec, context.device):
        pytest.skip("the family does not compute everything on every device")
    return family.build(context, spec, tables, untuned(family, spec, context.device))


def tables_of(spec, rng):
    """Make a window without symmetry, and weights and bands of every size."""
    taper = rng.uniform(0.5, 1.0, spec.win_length) * np.sin(
        np.pi * (np.arange(spec.win_length) + 0.5) / spec.win_length
    )
    weights = rng.uniform(0.5, 2.0, spec.n_bins) if spec.weighted else None
    first = np.sort(rng.integers(0, spec.n_bins - 1, spec.n_bands))
    count = rng.integers(1, np.maximum(2, np.minimum(spec.n_bins - first, spec.n_bins // 3)))
    bands = BandRows(first, count, rng.uniform(0.0, 1.0, count.sum())) if spec.n_bands else None
    window = taper / np.sqrt(np.square(taper).sum())
    return StftTables(window, weights, bands, smoothing=0.3, floor_db=-150.0)


def noise(launch, rng):
    """Make samples of a launch's format, (channels * parts, n), for int24 with 3 bytes."""
    spec = launch.spec
    x = rng.uniform(-0.9, 0.9, (launch.channels * spec.parts, launch.n_samples))
    if spec.sample_format == "float32":
        return x.astype(np.float32)
    if spec.sample_format == "int16":
        return (x * 2**15).astype(np.int16)
    integers = (x * 2**31).astype(np.int32)
    if spec.sample_format == "int32":
        return integers
    return np.ascontiguousarray(integers.view(np.uint8).reshape(*x.shape, 4)[..., 1:])


def poisoned(launch, x):
    """Place the samples in memory, with values around them that would show in results."""
    spec, poison = launch.spec, np.nan if x.dtype.kind == "f" else 127
    used = np.zeros(launch.n_samples, bool)
    for start in launch.begins:
        used[start : start + spec.win_length] = True
    x = x.copy()
    x[:, ~used] = poison
    laid = np.moveaxis(x, 0, 1) if spec.interleaved else x
    memory = np.full((laid.shape[0], laid.shape[1] + launch.gap, *laid.shape[2:]), poison, x.dtype)
    memory[:, : laid.shape[1]] = laid
    return memory


def guarded(context, values):
    """Make device memory with values and a few guard values after them."""
    words = np.ravel(values).view(np.float32)
    return context.table(np.concatenate([words, np.full(GUARDS, GUARD)]))


def unguarded(context, buffer, like):
    """Return the values of a guarded buffer, after a check of the guards."""
    words = np.empty(buffer.size // 4, np.float32)
    context.download(words, buffer)
    assert (words[-GUARDS:] == GUARD).all()
    return words[:-GUARDS].view(like.dtype).reshape(like.shape)


def run(context, stage, launch, x, cuts=()):
    """Compute the rows of a launch, or of several in sequence."""
    spec = stage.spec
    memory = poisoned(launch, x)
    buffer, pitch = context.table(memory), memory.shape[1]
    dtype = np.complex64 if spec.output == "complex" else np.float32
    blank = np.zeros((launch.channels, spec.state_values), np.float32)
    average = None
    if spec.averaging != "none":
        average = Average(guarded(context, blank), launch.frames)
    rows, frame = [], 0
    for n_frames in (*cuts, launch.n_frames - sum(cuts)):
        n_rows = n_frames if average is None else average.rows(n_frames)
        empty = np.zeros((n_rows, launch.channels, spec.n_values), dtype)
        out = guarded(context, empty)
        scratch_bytes = stage.scratch_bytes(n_frames, launch.channels)
        part = StftLaunch(
            Samples(buffer, pitch, int(launch.begins[frame])),
            launch.hop,
            n_frames,
            launch.channels,
            average,
            launch.places and launch.places.of(frame // (launch.frames if average else 1)),
        )
        stage.launch(out, part, context.allocate(scratch_bytes) if scratch_bytes else None)
        rows.append(unguarded(context, out, empty))
        frame += n_frames
        if average is not None:
            unguarded(context, average.state, blank)
            done = frame % launch.frames
            primed = done > 0 or spec.averaging == "exponential"
            average = replace(average, done=done, primed=primed)
    return np.concatenate(rows)


def expected_of(launch, tables, x):
    reference = ReferenceStft(launch.spec, tables)
    return reference.rows(
        x,
        launch.first,
        launch.hop,
        launch.n_frames,
        reference.average(launch.frames),
        launch.places,
    )


def assert_right(launch, rows, expected):
    """Check rows against the limits of power or of levels."""
    assert rows.shape == expected.shape
    if launch.spec.decibels:
        loud = expected > expected.max() - LEVEL_RANGE_DB
        np.testing.assert_allclose(rows[loud], expected[loud], rtol=0, atol=LEVEL_ERROR_MAX_DB)
        return
    factor = 1.0 if is_smooth(launch.spec.nfft, 13) else BLUESTEIN_FACTOR
    wide = expected.astype(np.complex128 if np.iscomplexobj(expected) else np.float64)
    error = np.linalg.norm(rows - wide) / np.linalg.norm(wide)
    assert error <= RELATIVE_L2_MAX * factor


def check(family, context, rng, launch):
    tables = tables_of(launch.spec, rng)
    stage = build(family, context, launch.spec, tables)
    x = noise(launch, rng)
    assert_right(launch, run(context, stage, launch, x), expected_of(launch, tables, x))


# Every sort of length: the shortest, powers, odd and even products, primes, twice a prime.
LENGTHS = [16, 17, 90, 1000, 1022, 2048, 4095]
LENGTHS_LONG = [8192, 10007, 48000, 65536, 1 << 20]


@pytest.mark.parametrize("nfft", LENGTHS)
def test_lengths(family, context, rng, nfft):
    """Short and medium lengths are right, with padding and an odd hop."""
    check(family, context, rng, Launch(StftSpec(nfft, nfft - nfft // 5), hop=nfft // 3 | 1))


@pytest.mark.parametrize("nfft", LENGTHS_LONG)
def test_long_lengths(family, context, rng, nfft):
    """Long lengths are right, with few frames."""
    check(family, context, rng, Launch(StftSpec(nfft, nfft - 3), 1, nfft // 2 + 1, n_frames=3))


@pytest.mark.parametrize(
    ("nfft", "output"),
    [(16, "power"), (255, "complex"), (1000, "power"), (65536, "complex")],
)
def test_two_sided_spectra(family, context, rng, nfft, output):
    """Spectra of I/Q signals are right and ascending, for odd lengths, too."""
    spec = StftSpec(nfft, nfft - 5, iq=True, output=output)
    check(family, context, rng, Launch(spec, hop=nfft // 2 + 1, n_frames=5))


@pytest.mark.parametrize("iq", [False, True])
@pytest.mark.parametrize("sample_format", SAMPLE_BYTES)
def test_formats_and_layouts(family, context, rng, sample_format, iq):
    """Each sample format, planar or interleaved, real or I/Q, is right at odd and even offsets."""
    interleaved = iq != (sample_format in ("int16", "int32"))
    spec = replace(SPEC, sample_format=sample_format, interleaved=interleaved, iq=iq)
    tables = tables_of(spec, rng)
    stage = build(family, context, spec, tables)
    for first, hop, gap, channels in ((5, 77, 3, 3), (4, 78, 2, 2)):
        launch = Launch(spec, channels, hop, first=first, gap=gap)
        x = noise(launch, rng)
        assert_right(launch, run(context, stage, launch, x), expected_of(launch, tables, x))


PRODUCTS = [
    {"output": "complex"},
    {"decibels": True},
    {"weighted": True, "decibels": True},
    {"n_bands": 40, "weighted": True},
    {"n_bands": 9, "decibels": True},
    {"averaging": "mean"},
    {"averaging": "max"},
    {"averaging": "min", "weighted": True},
    {"averaging": "exponential"},
    {"averaging": "mean", "n_bands": 9, "decibels": True},
    {"averaging": "exponential", "n_bands": 9, "weighted": True},
    {"averaging": "max", "iq": True, "n_bands": 9},
    {"averaging": "min", "iq": True, "decibels": True, "weighted": True},
]


@pytest.mark.parametrize(
    ("index", "product"),
    list(enumerate(PRODUCTS)),
    ids=["-".join(map(str, product.values())) for product in PRODUCTS],
)
def test_products(family, context, rng, index, product):
    """Weights, bands, averages and levels are right alone, combined and in several launches."""
    nfft = (60, 256)[index % 2]
    launch = Launch(StftSpec(nfft, nfft - 6, **product), 3, n_frames=23)
    tables = tables_of(launch.spec, rng)
    stage = build(family, context, launch.spec, tables)
    x = noise(launch, rng)
    whole = run(context, stage, launch, x)
    assert_right(launch, whole, expected_of(launch, tables, x))
    for cuts in ((1, 1, 1, 2, 7), (17,), (4, 8)):
        np.testing.assert_array_equal(run(context, stage, launch, x, cuts), whole)


@pytest.mark.parametrize("averaging", ["mean", "exponential"])
def test_a_row_may_need_more_frames_than_there_are(family, context, rng, averaging):
    """With too few frames for a row none is written, and the state keeps the frames so far."""
    launch = Launch(replace(SPEC, averaging=averaging), 2, n_frames=5, frames=20)
    tables = tables_of(launch.spec, rng)
    stage = build(family, context, launch.spec, tables)
    x = noise(replace(launch, n_frames=20), rng)
    assert run(context, stage, launch, x[:, : launch.n_samples], (2,)).shape == (0, 2, 129)
    launch = replace(launch, n_frames=20)
    whole = run(context, stage, launch, x)
    assert_right(launch, whole, expected_of(launch, tables, x))
    np.testing.assert_array_equal(run(context, stage, launch, x, (5, 3)), whole)


@pytest.mark.parametrize(
    "spec",
    [StftSpec(16, 16, averaging="mean"), replace(SPEC, averaging="exponential")],
    ids=["mean-16", "exponential-256"],
)
def test_rounding_errors_do_not_add_up(family, context, rng, spec):
    """An average over 30000 frames of a growing tone is as accurate as one frame."""
    launch = Launch(spec, 1, hop=1, n_frames=30000, frames=30000)
    tables = replace(tables_of(spec, rng), smoothing=1e-5)
    stage = build(family, context, spec, tables)
    n = np.arange(launch.n_samples)
    x = (np.sin(0.7 * n) * np.exp(n / 40000 - 1)).astype(np.float32)[np.newaxis]
    assert_right(launch, run(context, stage, launch, x), expected_of(launch, tables, x))


@pytest.mark.parametrize("interleaved", [False, True])
def test_results_are_those_of_the_frame_alone(family, context, rng, interleaved):
    """A frame's result has the same bits with any launches, hop, offset and number of channels."""
    spec = replace(SPEC, interleaved=interleaved)
    stage = build(family, context, spec, tables_of(spec, rng))
    launch = Launch(spec, 5, hop=31, n_frames=37, first=3)
    x = noise(launch, rng)
    whole = run(context, stage, launch, x)
    for cuts in ((1,), (16, 16), (5, 11, 2)):
        np.testing.assert_array_equal(run(context, stage, launch, x, cuts), whole)
    every_third = replace(launch, hop=93, n_frames=13)
    np.testing.assert_array_equal(run(context, stage, every_third, x), whole[::3])
    later = replace(launch, first=3 + 31 * 6, n_frames=31)
    np.testing.assert_array_equal(run(context, stage, later, x), whole[6:])
    moved = replace(launch, first=8)
    padded = np.concatenate([np.zeros((5, 5), np.float32), x], 1)
    np.testing.assert_array_equal(run(context, stage, moved, padded), whole)
    for channels in ([2], [4, 0], [0, 1, 2]):
        some = run(context, stage, replace(launch, channels=len(channels)), x[channels])
        np.testing.assert_array_equal(some, whole[:, channels])


@pytest.mark.parametrize("interleaved", [False, True])
def test_numbers_of_channels(family, context, rng, interleaved):
    """Any number of channels is right, also where lanes or groups do not divide it."""
    spec = replace(SPEC, interleaved=interleaved)
    tables = tables_of(spec, rng)
    stage = build(family, context, spec, tables)
    for channels in (1, 2, 3, 7, 16, 33, 64):
        launch = Launch(spec, channels, n_frames=5)
        x = noise(launch, rng)
        assert_right(launch, run(context, stage, launch, x), expected_of(launch, tables, x))


@pytest.mark.parametrize(("nfft", "win_length"), [(16, 1), (60, 2), (1024, 15), (512, 16)])
def test_short_windows_and_far_hops(family, context, rng, nfft, win_length):
    """Windows padded to many times their length are right with tiny and with large hops."""
    spec = StftSpec(nfft, win_length)
    tables = tables_of(spec, rng)
    stage = build(family, context, spec, tables)
    for hop in (1, win_length, 10 * nfft + 1):
        launch = Launch(spec, 2, hop, n_frames=18)
        x = noise(launch, rng)
        assert_right(launch, run(context, stage, launch, x), expected_of(launch, tables, x))


@pytest.mark.parametrize("window", [name for name in WINDOW_NAMES if ":" not in name])
def test_windows_and_scales(family, context, rng, window):
    """Usual windows and scalings are right, from noise density to tone level."""
    for scaling in ("density", "dbfs"):
        product = SpectrumSpec(48e3, 2, window, 500, 99, 512, scaling)
        spec, tables = kernel_spec(product, "int16")
        stage = build(family, context, spec, tables)
        launch = Launch(spec, hop=product.hop)
        x = noise(launch, rng)
        assert_right(launch, run(context, stage, launch, x), expected_of(launch, tables, x))


@pytest.mark.parametrize("bands", ["octave", "third-octave", "mel:20"])
def test_named_bands_and_weightings(family, context, rng, bands):
    """A-weighted levels in bands, averaged as by a sound level meter, are right."""
    product = SpectrumSpec(
        48e3, 2, "hann", 1000, 480, 1024, "dbfs",
        weighting="A", bands=bands, averaging="exponential", averaging_frames=3,
    )  # fmt: skip
    spec, tables = kernel_spec(product)
    launch = Launch(spec, hop=product.hop, frames=3)
    stage = build(family, context, spec, tables)
    x = noise(launch, rng)
    assert_right(launch, run(context, stage, launch, x), expected_of(launch, tables, x))


def test_a_loud_tone_costs_its_neighbours_little(family, context, rng):
    """The error of a bin is small relative to the loudest bin, at any distance."""
    spec = StftSpec(1024, 1024, output="complex")
    tables = StftTables(np.hanning(1024) / 512)
    stage = build(family, context, spec, tables)
    launch = Launch(spec, hop=511)
    n = np.arange(launch.n_samples)
    tones = [0.9 * np.sin(0.7 * n), 1e-5 * np.sin(0.3 * n)]
    x = np.array(tones, np.float32) + 1e-6 * rng.standard_normal((2, len(n))).astype(np.float32)
    rows, expected = run(context, stage, launch, x), expected_of(launch, tables, x)
    for channel in range(2):
        errors = np.abs(rows[:, channel] - expected[:, channel])
        assert errors.max() <= RELATIVE_L2_MAX * np.abs(expected[:, channel]).max()


@pytest.mark.parametrize(
    "spec",
    [SPEC, StftSpec(60, 54, n_bands=9), StftSpec(60, 54, averaging="max")],
    ids=["bins", "bands", "max"],
)
def test_a_nan_stays_in_its_frames(family, context, rng, spec):
    """A NaN in one frame of one channel makes that frame's row NaN and changes no other."""
    launch = Launch(spec, 3, hop=spec.win_length + 1, n_frames=20)
    stage = build(family, context, launch.spec, tables_of(launch.spec, rng))
    x = noise(launch, rng)
    clean = run(context, stage, launch, x)
    x[1, launch.first + 7 * launch.hop + 11] = np.nan
    rows = run(context, stage, launch, x)
    touched = 7 // (launch.frames if spec.averaging != "none" else 1)
    assert np.isnan(rows[touched, 1]).all()
    rows[touched, 1] = clean[touched, 1]
    np.testing.assert_array_equal(rows, clean)


@pytest.mark.parametrize("nfft", [90, 256])
def test_an_infinite_bin_is_in_its_own_band_alone(family, context, nfft):
    """A power beyond float32 affects its own band and not the neighbouring one."""
    spec = StftSpec(nfft, nfft, n_bands=2)
    bands = BandRows(np.array([0, 37]), np.array([37, 6]), np.full(43, 0.5))
    stage = build(family, context, spec, StftTables(np.ones(nfft), bands=bands))
    launch = Launch(spec, 1)
    n = np.arange(launch.n_samples)
    x = (1e19 * np.sin(2 * np.pi * 37 / nfft * n)).astype(np.float32)[np.newaxis]
    assert (np.isfinite(run(context, stage, launch, x)) == [True, False]).all()


def test_levels_of_silence_and_of_no_number(family, context, rng):
    """Silence has the lowest level, and NaN stays NaN."""
    launch = Launch(replace(SPEC, decibels=True), 3)
    tables = tables_of(launch.spec, rng)
    stage = build(family, context, launch.spec, tables)
    x = noise(launch, rng)
    x[1], x[2, -1] = 0.0, np.nan
    rows = run(context, stage, launch, x)
    assert (rows[:, 1] == tables.floor_db).all()
    assert np.isnan(rows[-1, 2]).all()
    assert np.isfinite(rows[:-1]).all()


def test_the_choice_is_among_those_that_can(context, rng):
    """The first able family is selected, and the last one can compute everything."""
    spec = StftSpec(101, 101)
    able = list(families(spec, context.device))
    assert able[-1] is list(all_families())[-1]
    tables = tables_of(spec, rng)
    chosen = make_stft_stage(context, spec, tables)
    assert type(chosen) is type(build(able[0], context, spec, tables))


def test_every_candidate_is_right(family, context, rng):
    """Every candidate of the tuner computes the right spectra."""
    launch = Launch(StftSpec(240, 240), hop=119)
    tables = tables_of(launch.spec, rng)
    build(family, context, launch.spec, tables)
    x = noise(launch, rng)
    expected = expected_of(launch, tables, x)
    for params in list(family.candidates(launch.spec, context.device))[1:3]:
        stage = family.build(context, launch.spec, tables, params)
        assert_right(launch, run(context, stage, launch, x), expected)


# A whole step, with samples between rows; one that is not whole; and rows that overlap.
STEPS = [RowPlaces(997), RowPlaces(4001, 7, 5), RowPlaces(401, 3)]


@pytest.mark.parametrize("places", STEPS, ids=str)
@pytest.mark.parametrize("averaging", ["none", "mean", "max", "exponential"])
@pytest.mark.parametrize("nfft", [64, 90, 256])
def test_rows_at_places_of_their_own(family, context, rng, nfft, averaging, places):
    """Each row starts at its given place in any launches, with its frames a hop apart."""
    layout = {"interleaved": nfft == 64, "n_bands": 9}
    spec = StftSpec(nfft, nfft - 5, averaging=averaging, placed=True, **layout)
    launch = Launch(spec, hop=77, n_frames=19, places=places)
    tables = tables_of(spec, rng)
    stage = build(family, context, spec, tables)
    x = noise(launch, rng)
    expected = expected_of(launch, tables, x)
    whole = run(context, stage, launch, x)
    assert_right(launch, whole, expected)
    for cuts in ((1, 2, 3), (5, 7), (4,)):
        np.testing.assert_array_equal(run(context, stage, launch, x, cuts), whole)


@pytest.mark.parametrize("places", STEPS, ids=str)
def test_spectra_at_places_of_their_own(family, context, rng, places):
    """Without averages each frame is a row at its given place, also for complex and I/Q."""
    spec = StftSpec(1024, 1024, output="complex", iq=True, placed=True)
    for channels, first, gap in ((3, 5, 3), (2, 4, 2)):
        check(family, context, rng, Launch(spec, channels, 1, first=first, gap=gap, places=places))


def test_reference_rows_are_frames_at_their_places(rng):
    """The float64 reference, compared with single frames, uses the given places."""
    places = RowPlaces(4001, 7, 5)
    spec = StftSpec(64, 60, averaging="mean", placed=True)
    launch = Launch(spec, hop=33, n_frames=12, places=places)
    tables = tables_of(spec, rng)
    x = noise(launch, rng)
    rows = []
    for row in range(3):
        begin = 5 + (5 + row * 4001) // 7
        power = 0.0
        for frame in range(4):
            start = begin + frame * 33
            spectrum = np.fft.rfft(x[:, start : start + 60] * tables.window, 64)
            power = power + np.abs(spectrum) ** 2 / 4
        power[:, [0, -1]] /= 2
        rows.append(power)
    np.testing.assert_allclose(expected_of(launch, tables, x), rows, rtol=1e-6)
