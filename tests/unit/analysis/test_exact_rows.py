"""Rows at an exact rate: their start, their frames, and when they are returned."""

from fractions import Fraction

import numpy as np
import pytest

import spectrod
from spectrod.analysis.engine import open_engine
from spectrod.analysis.stream import FrameStream
from spectrod.dsp.blocks import Block
from spectrod.dsp.row_grid import RowGrid, exact_row_step, hop_that_covers, row_period_s
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.errors import ConfigError, DeviceError

FS, WIN, HOP = 1000.5, 64, 30
RATE = 7.0  # 142.928... samples per row
NOISE = np.random.default_rng(5).uniform(-0.5, 0.5, (2, 12_000)).astype(np.float32)
S = 1_000_000_000
REDUCE = {"mean": np.mean, "max": np.max, "min": np.min}


@pytest.fixture(params=["numpy", "auto"], scope="module")
def engine(request):
    engine = open_engine(request.param)
    yield engine
    engine.close()


def spec_of(averaging="mean", **changed):
    given = {"fs": FS, "win_length": WIN, "hop": HOP, "rate_hz": RATE} | changed
    return SpectrumSpec(channels=2, averaging=averaging, **given)


def pushed(stream, first=0, stop=NOISE.shape[1], *, size=997, t_utc_ns=0, **about):
    """Push parts of the noise, whose sample 0 has a time; return the batches."""
    out = []
    for begin in range(first, stop, size):
        end = min(begin + size, stop)
        t_ns = t_utc_ns + round(begin * S / stream.spec.fs)
        out += stream.push(Block(NOISE[:, begin:end], begin, t_ns, t_ns, **about))
        about = {}
    return out


def frame(index):
    """Return the power density of the frame at an index, in float64."""
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WIN) / WIN)
    spectrum = np.fft.rfft(NOISE[:, index : index + WIN] * window)
    power = 2 * np.abs(spectrum) ** 2 / (FS * (window**2).sum())
    power[:, [0, -1]] /= 2
    return power


def rows(batches):
    """Return each row with its index and its number of frames, 0 for a complete row."""
    return [
        (int(index), batch.cut_frames, values, int(t_ns))
        for batch in batches
        for index, values, t_ns in zip(
            batch.sample_index, batch.values, batch.t_utc_ns, strict=True
        )
    ]


@pytest.mark.parametrize(
    ("rate_hz", "period_s"),
    [
        (1.0, 1),
        (8.0, Fraction(1, 8)),
        (0.1, 10),
        (0.01667, 60),
        (1 / 60, 60),
        (0.3333, 3),
        (29.97, Fraction(100, 2997)),
        (0.3, Fraction(10, 3)),
    ],
)
def test_a_rate_is_exact_as_written(rate_hz, period_s):
    """A rate is exact in decimal, or the inverse of whole seconds if four digits match that."""
    assert row_period_s(rate_hz) == period_s
    assert exact_row_step(44_100, rate_hz) == 44_100 * Fraction(period_s)


@pytest.mark.parametrize("step", [Fraction(100), Fraction(1001, 7), Fraction(350, 3)])
@pytest.mark.parametrize(("win_length", "frames"), [(40, 3), (40, 1), (300, 4)])
def test_frames_of_a_grid_are_counted_as_they_lie(step, win_length, frames):
    """The number of grid frames that end within given samples is right at any phase."""
    grid = RowGrid(win_length, 25, frames, step)
    for phase in {0, step.denominator - 1}:
        ends = [grid.place(number, phase) + win_length for number in range(60)]
        for n_samples in range(0, 1000, 7):
            assert grid.count(n_samples, phase) == sum(end <= n_samples for end in ends)
        whole = [(phase + row * step.numerator) // step.denominator for row in range(9)]
        assert grid.begins(9, phase).tolist() == whole
        later = grid.phase_of(5, phase)
        assert [one - whole[5] for one in whole[5:]] == grid.begins(4, later).tolist()


@pytest.mark.parametrize(
    ("fs", "rate_hz", "win_length", "hop", "averaging", "frames"),
    [
        (48_000, 1.0, 4096, 2048, "mean", 22),  # (48000 - 4096) // 2048 + 1
        (48_000, 1.0, 24_000, 12_000, "mean", 3),
        (48_000, 1.0, 24_000, 12_000, "max", 4),
        (44_100, 60.0, 735, 735, "mean", 1),
        (44_100, 60.0, 4096, 256, "mean", 3),  # shorter than a window: frames that start in it
        (44_100, 8.0, 4096, 500, "mean", 3),
        (44_100, 8.0, 4096, 500, "min", 12),
        (48_000, 8.0, 4096, 1024, "exponential", 6),
        (48_000, 1 / 60, 48_000, 24_000, "mean", 119),
    ],
)
def test_how_many_frames_a_row_has(fs, rate_hz, win_length, hop, averaging, frames):
    """A mean has the frames within its own time; other averages have those that start in it."""
    settings = {"averaging": averaging, "rate_hz": rate_hz}
    spec = SpectrumSpec(fs, win_length=win_length, hop=hop, **settings)
    assert spec.averaging_frames == frames
    assert spec.row_step == Fraction(fs) / (Fraction(1, 60) if rate_hz < 0.1 else int(rate_hz))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"rate_hz": 60.0, "hop": 30},
            "rows of 16 samples have no frame of hop=30: hop must be at ",
        ),
        ({"rate_hz": 2000.0}, "rate_hz=2000: must be at most fs=1000.5"),
        ({"rate_hz": 1e-9}, "rate_hz=1e-09: must be at least 4.66e-07, fs=1000.5"),
        ({"rate_hz": -1.0}, "rate_hz=-1.0: must be a positive number of Hz"),
        ({"rate_hz": 0.0, "averaging_frames": 2, "align": "utc"}, "align='utc': needs rate_hz"),
        ({"align": "gps"}, "align='gps': must be one of start, utc"),
        ({"averaging_frames": 9}, "averaging_frames=9: rate_hz=7 makes it 3"),
    ],
)
def test_rates_that_cannot_be(changed, message):
    """An impossible rate is an error that names the value, the rule and a hop that fits."""
    with pytest.raises(ConfigError, match=message):
        spec_of(**changed)


def test_samples_outside_all_frames_are_counted():
    """Samples of a row outside all frames of a mean are counted; holds use all samples."""
    assert SpectrumSpec(48_000, hop=2048, averaging="mean", rate_hz=1.0).uncovered == 896
    assert SpectrumSpec(48_000, hop=1568, averaging="mean", rate_hz=1.0).uncovered == 0
    assert SpectrumSpec(48_000, hop=2048, averaging="max", rate_hz=1.0).uncovered == 0


def test_a_hop_that_covers_a_row_is_found():
    """The suggested hop ends a frame with the row: 1568 for 48000 samples and windows of 4096."""
    assert hop_that_covers(48_000, 4096, 2048) == 1568
    assert (48_000 - 4096) % 1568 == 0
    assert hop_that_covers(4096, 4096, 2048) == 2048
    assert hop_that_covers(4000, 4096, 2048) == 0


@pytest.mark.parametrize("averaging", ["mean", "max", "min", "none"])
@pytest.mark.parametrize(("size", "batch_frames"), [(12_000, None), (61, 1), (997, 7), (997, 100)])
def test_rows_are_of_the_frames_in_their_own_time(engine, averaging, size, batch_frames):
    """Row k starts at floor(k fs / rate), and a mean uses the frames every hop within the row."""
    spec = spec_of(averaging)
    n = {"none": 1, "mean": 3}.get(averaging, 5)  # holds use the frames that start in the row
    stream = FrameStream(spec, engine, max_latency_s=float("inf"), batch_frames=batch_frames)
    found = rows(pushed(stream, size=size) + stream.finish())
    step = Fraction(2001, 2) / 7
    assert [index for index, *_ in found] == [int(k * step) for k in range(len(found))]
    assert len(found) == -(-(12_000 - WIN) // step)
    for index, cut, values, t_ns in found:
        if averaging == "none":
            expected = frame(index)
        else:
            left = (12_000 - index - WIN) // HOP + 1
            assert cut == (left if left < n else 0)
            starts = range(index, index + HOP * (cut or n), HOP)
            expected = REDUCE[averaging]([frame(start) for start in starts], axis=0)
        np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-9)
        assert abs(t_ns - index * S / FS) <= 1
    if size < 12_000:
        whole = FrameStream(spec, engine)
        reference = rows(pushed(whole, size=12_000) + whole.finish())
        for one, other in zip(found, reference, strict=True):
            np.testing.assert_array_equal(one[2], other[2])


def test_rows_shorter_than_a_window_use_frames_that_start_in_them(engine):
    """Rows shorter than a window use frames that start in them, and stay exactly spaced."""
    spec = spec_of(rate_hz=20.0)  # 50 samples: frames at 0 and 30
    stream = FrameStream(spec, engine)
    found = rows(pushed(stream))
    assert [index for index, *_ in found[:5]] == [0, 50, 100, 150, 200]
    for index, _, values, _ in found[:20]:
        expected = (frame(index) + frame(index + HOP)) / 2
        np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-9)


def test_an_exponential_average_uses_the_frames_that_start_in_a_row(engine):
    """An exponential average continues across rows with the right time constant at any step."""
    spec = spec_of("exponential", averaging_s=0.2)
    stream = FrameStream(spec, engine)
    found = rows(pushed(stream))
    state, step = None, Fraction(2001, 2) / 7
    weight = -np.expm1(-float(step) / 5 / (FS * 0.2))
    for k, (index, cut, values, _) in enumerate(found):
        assert (index, cut) == (int(k * step), 0)
        for start in range(index, index + 5 * HOP, HOP):
            state = frame(start) if state is None else state + weight * (frame(start) - state)
        np.testing.assert_allclose(values, state, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("size", [61, 5000])
def test_rows_restart_after_a_gap(engine, size):
    """A gap ends a row early, and the first row after it starts with the samples."""
    stream = FrameStream(spec_of(), engine)
    found = pushed(stream, 0, 4950, size=size)
    found += pushed(stream, 6000, 9000, size=size, discontinuity=True)
    index = [one[:2] for one in rows(found + stream.finish())]
    step = Fraction(2001, 2) / 7
    assert index[:34] == [(int(k * step), 0) for k in range(34)]
    assert index[34] == (int(34 * step), 1)
    assert index[35:37] == [(6000, 0), (6142, 0)]


# ---- rows aligned to UTC


@pytest.mark.parametrize("t_utc_ns", [0, 1_700_000_000 * S + 123_456_789, 17 * S - 1, -5 * S + 7])
@pytest.mark.parametrize("fs", [1000.0, FS, 44.1e3 / 37])
@pytest.mark.parametrize("rate_hz", [2.0, 3.0])
def test_aligned_rows_start_with_the_clock(engine, t_utc_ns, fs, rate_hz):
    """Aligned rows start with the first sample at or after a whole multiple of their length."""
    spec = spec_of(fs=fs, rate_hz=rate_hz, align="utc")
    stream = FrameStream(spec, engine, max_latency_s=float("inf"), batch_frames=5)
    found = rows(pushed(stream, t_utc_ns=t_utc_ns) + stream.finish())
    lead = [one for one in found[:1] if one[1]]
    whole = found[len(lead) : -1]
    assert len(whole) > 15
    period = Fraction(S) / int(rate_hz)
    numbers = [round(t_ns / period) for *_, t_ns in whole]
    assert [t_ns for *_, t_ns in whole] == [round(number * period) for number in numbers]
    assert numbers == list(range(numbers[0], numbers[0] + len(whole)))
    for (index, *_), number in zip(whole, numbers, strict=True):
        exact = (number * period - t_utc_ns) * Fraction(repr(fs)) / S
        assert -Fraction(1, 50) <= index - exact < 1
    if lead:
        (index, cut, values, _) = lead[0]
        assert index == 0
        assert cut == min(spec.averaging_frames, (whole[0][0] - WIN) // HOP + 1)
        if fs == FS:
            expected = np.mean([frame(start) for start in range(0, cut * HOP, HOP)], axis=0)
            np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-9)


def test_the_lead_is_cut_by_a_gap_or_the_end(engine):
    """Frames before the first whole row become a shorter row, even if that row never comes."""
    for stop, cut in ((300, 8), (WIN + 5, 1), (WIN - 1, 0)):
        stream = FrameStream(spec_of(fs=1000.0, rate_hz=1.0, align="utc"), engine)
        found = rows(pushed(stream, 0, stop, t_utc_ns=S // 2) + stream.finish())
        assert [one[:2] for one in found] == [(0, cut)][: cut > 0]
        assert stream.left_out_samples() == [(stop - WIN) % HOP if stop >= WIN else stop]


def test_samples_before_the_first_row_that_fill_no_frame_are_counted(engine):
    """Samples before the first row that fill no frame are counted as left out."""
    stream = FrameStream(spec_of(fs=1000.0, rate_hz=1.0, align="utc"), engine)
    found = rows(pushed(stream, 0, 2100, t_utc_ns=S - 100 * 10**6) + stream.finish())
    assert [one[:2] for one in found] == [(0, 2), (100, 0), (1100, 0)]
    assert stream.left_out_samples() == [100 - (WIN + HOP)]


def drifting(stream, ppm, n_blocks=120, size=100):
    """Make blocks of a source whose clock shows that its rate is off."""
    out, t_ns = [], 10 * S
    for number in range(n_blocks):
        first = number * size
        out += stream.push(Block(NOISE[:, first : first + size], first, t_ns, t_ns))
        t_ns += round(size * S / stream.spec.fs * (1 - ppm * 1e-6))
    return out


@pytest.mark.parametrize("ppm", [-900, 900])
def test_aligned_rows_follow_the_clock(engine, ppm):
    """If the sample rate is off, some rows are a sample longer or shorter, and none is late."""
    spec = spec_of(fs=1000.0, rate_hz=2.0, align="utc")
    stream = FrameStream(spec, engine)
    batches = drifting(stream, ppm)
    found = rows(batches)
    assert [t_ns for *_, t_ns in found] == [10 * S + k * S // 2 for k in range(len(found))]
    assert not any(batch.discontinuity for batch in batches)
    true_index = [k * 500 * (1 + ppm * 1e-6) for k in range(len(found))]
    np.testing.assert_allclose([index for index, *_ in found], true_index, atol=2.0)


@pytest.mark.parametrize("step_ns", [S // 4, -S // 4, 7200 * S, -7200 * S])
def test_a_step_of_utc_realigns_rows(engine, step_ns):
    """After a step of UTC, rows restart at the next multiple, and no sample is in two rows.

    The row says that it is not contiguous where samples before it are left out.
    """
    stream = FrameStream(spec_of(fs=1000.0, rate_hz=2.0, align="utc"), engine)
    before = pushed(stream, 0, 4000, size=100, t_utc_ns=9000 * S)
    after = pushed(stream, 4000, 8000, size=100, t_utc_ns=9000 * S + step_ns)
    broken = [batch for batch in before + after if batch.discontinuity]
    assert len(broken) == (step_ns % (S // 2) != 0)
    found = rows(before + after)
    index = np.array([one[0] for one in found])
    times = np.array([one[3] for one in found])
    assert (times % (S // 2) == 0).all()
    assert (np.diff(index) >= 500).all()
    for batch in broken:
        at = int(np.argmax(np.diff(index) != 500)) + 1
        assert int(batch.sample_index[0]) == index[at]
        stream.finish()  # the last row, whose last frame ends at 484 or earlier
        last = (8000 - index[-1] - 500 - WIN) // HOP * HOP + WIN
        skipped = index[at] - index[at - 1] - 500
        assert stream.left_out_samples() == [skipped + 8000 - index[-1] - 500 - last]
    assert times[-1] == 9000 * S + step_ns + index[-1] * 10**6


def test_rows_without_demand_are_not_computed(engine):
    """Unwanted rows are not computed; those that follow keep their places, aligned or not."""
    for align in ("start", "utc"):
        spec = spec_of(fs=1000.0, rate_hz=2.0, align=align)
        stream = FrameStream(spec, engine)
        pushed(stream, 0, 1700)
        stream.want(frozenset())
        assert pushed(stream, 1700, 3200) == []
        stream.want(None)
        batches = pushed(stream, 3200, 5000)
        assert batches[0].sample_index[0] == 3500
        assert batches[0].skipped_rows == 4


class Failing:
    """An engine that computes with another one until it is set to fail."""

    def __init__(self, engine):
        self._engine, self.name, self.fallback = engine, "failing", engine
        self.batch_bytes, self.fails = engine.batch_bytes, False
        self.block_batch_bytes = 0

    def sample_buffer(self, layout, capacity):
        return self._engine.sample_buffer(layout, capacity)

    def plan(self, spec, buffer, max_frames):
        plan = self._engine.plan(spec, buffer, max_frames)
        submit, outer = plan.submit, self

        def guarded(*args, **kwargs):
            if outer.fails:
                raise DeviceError("lost")
            return submit(*args, **kwargs)

        plan.submit = guarded
        return plan


@pytest.mark.parametrize("fails_at", [0, 400, 431, 461, 500, 700])
@pytest.mark.parametrize("batch_frames", [1, 2, 4, 100])
def test_rows_keep_their_places_where_an_engine_fails(fails_at, batch_frames):
    """An engine failure loses only the row in progress; later rows keep place and content."""
    numpy_engine = open_engine("numpy")
    spec = spec_of(rate_hz=6.9)
    whole = FrameStream(spec, numpy_engine)
    expected = {one[0]: one for one in rows(pushed(whole, size=50) + whole.finish())}
    engine = Failing(numpy_engine)
    stream = FrameStream(spec, engine, max_latency_s=0.05, batch_frames=batch_frames)
    batches = pushed(stream, 0, fails_at, size=31) if fails_at else []
    engine.fails = True
    batches += pushed(stream, fails_at, size=31) + stream.finish()
    found = rows(batches)
    assert len(expected) - len(found) <= 1
    for index, cut, values, t_ns in found:
        assert cut == expected[index][1]
        assert abs(t_ns - expected[index][3]) <= 1
        np.testing.assert_array_equal(values, expected[index][2])
    assert stream.engine_failures == 1


class FailingLate(Failing):
    """Rows of a batch are computed, and then one batch cannot be collected."""

    def __init__(self, engine, fails_at):
        super().__init__(engine)
        self.left = fails_at

    def plan(self, spec, buffer, max_frames):
        plan = self._engine.plan(spec, buffer, max_frames)
        submit = plan.submit
        plan.submit = lambda *args, **kwargs: LateRows(self, submit(*args, **kwargs))
        return plan


class LateRows:
    """Rows of FailingLate."""

    def __init__(self, engine, pending):
        self._engine, self._pending = engine, pending

    def collect(self):
        self._engine.left -= 1
        if self._engine.left == 0:
            raise DeviceError("lost")
        return self._pending.collect()


@pytest.mark.parametrize("fails_at", range(1, 16))
@pytest.mark.parametrize(("batch_frames", "size"), [(1, 31), (1, 500), (2, 500)])
def test_rows_keep_their_places_where_frames_in_flight_are_lost(fails_at, batch_frames, size):
    """If the lost frames leave nothing in flight, or are noticed with later ones due, rows stay."""
    numpy_engine = open_engine("numpy")
    spec = spec_of(rate_hz=6.9)
    whole = FrameStream(spec, numpy_engine)
    expected = {one[0]: one for one in rows(pushed(whole, size=50) + whole.finish())}
    stream = FrameStream(spec, FailingLate(numpy_engine, fails_at), batch_frames=batch_frames)
    found = rows(pushed(stream, size=size) + stream.finish())
    assert stream.engine_failures == 1
    assert len(expected) - len(found) <= 1
    for index, cut, values, t_ns in found:
        assert cut == expected[index][1]
        assert abs(t_ns - expected[index][3]) <= 1
        np.testing.assert_array_equal(values, expected[index][2])


@pytest.mark.parametrize("rate_hz", [7.0, 20.0])
@pytest.mark.parametrize("averaging", ["none", "mean"])
@pytest.mark.parametrize("kind", ["numpy", "auto"])
def test_a_whole_signal_has_the_rows_of_a_stream(kind, averaging, rate_hz):
    """The argument rate_hz of spectrogram and Stft gives a stream's rows and their centres."""
    x = NOISE[0]
    settings = {"win_length": WIN, "hop": HOP, "averaging": averaging, "rate_hz": rate_hz}
    found = spectrod.spectrogram(x, FS, engine=kind, **settings)
    with spectrod.Stft(FS, engine=kind, **settings) as stft:
        batches = stft.push(x) + stft.finish()
    np.testing.assert_allclose(
        found.values.T, np.concatenate([batch.values[:, 0] for batch in batches]), rtol=1e-6
    )
    span = found.spec.row_span
    begins = np.concatenate([batch.sample_index for batch in batches])
    np.testing.assert_allclose(found.t[:-1], (begins[:-1] + span / 2) / FS, rtol=1e-12)
