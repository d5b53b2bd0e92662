"""Percentiles and noise floors over the frames of rows."""

import numpy as np
import pytest

import spectrod
from spectrod.analysis.engine import open_engine
from spectrod.analysis.percentile import Percentile, expected_rank
from spectrod.analysis.stream import FrameStream
from spectrod.config.settings import AnalysisConfig
from spectrod.dsp.averaging import KEPT_FRAMES_MAX, exceeded_percent
from spectrod.dsp.blocks import Block
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.errors import ConfigError

FS, WIN, HOP = 8000.0, 64, 32


@pytest.fixture(params=["numpy", "auto"], scope="module")
def engine(request):
    engine = open_engine(request.param)
    yield engine
    engine.close()


def noise(n=5003, channels=2):
    return np.random.default_rng(5).normal(0.0, 0.1, (channels, n)).astype(np.float32)


def ranked(frames, averaging):
    """Return NumPy's percentile of frames, (frames, ...), that occurred."""
    percent = 100.0 - float(averaging[1:])
    return np.percentile(frames, percent, axis=0, method="inverted_cdf")


def streamed(engine, x, block_size, **parameters):
    spec = SpectrumSpec(FS, len(x), win_length=WIN, hop=HOP, **parameters)
    stream = FrameStream(spec, engine, max_latency_s=float("inf"))
    out = []
    for first in range(0, x.shape[1], block_size):
        out += stream.push(Block(x[:, first : first + block_size], first, 0, 0))
    return out + stream.finish()


@pytest.mark.parametrize("bands", ["", "third-octave"])
@pytest.mark.parametrize("scaling", ["density", "dbfs"])
@pytest.mark.parametrize("averaging", ["L90", "L50", "L0.1"])
def test_a_row_is_the_percentile_of_its_frames(averaging, scaling, bands):
    """Rows, the shorter last one too, are NumPy's percentiles of the frames, to the bit."""
    settings = {"win_length": 256, "hop": 100, "scaling": scaling, "bands": bands}
    x = noise()
    frames = spectrod.spectrogram(x, FS, engine="numpy", **settings)
    rows = spectrod.spectrogram(
        x, FS, engine="numpy", averaging=averaging, averaging_frames=13, **settings
    )
    every = frames.values.transpose(2, 0, 1)
    expected = [ranked(every[k : k + 13], averaging) for k in range(0, len(every), 13)]
    np.testing.assert_array_equal(rows.values.transpose(2, 0, 1), expected)
    assert rows.unit == frames.unit
    if bands:
        levels = frames.broadband.T
        expected = [ranked(levels[k : k + 13], averaging) for k in range(0, len(levels), 13)]
        np.testing.assert_array_equal(rows.broadband.T, expected)


@pytest.mark.parametrize("block_size", [1, 333, 6000])
def test_live_rows_are_those_of_a_file(engine, block_size):
    """Blocks of any size give the rows of the whole signal, on every engine."""
    if block_size == 1 and engine.name != "numpy":
        block_size = 17
    x = noise(1003 if block_size == 1 else 5003)
    whole = spectrod.spectrogram(
        x,
        FS,
        win_length=WIN,
        hop=HOP,
        averaging="L80",
        averaging_frames=7,
        engine="numpy" if engine.name == "numpy" else "auto",
    )
    batches = streamed(engine, x, block_size, averaging="L80", averaging_frames=7)
    values = np.concatenate([batch.values for batch in batches])
    np.testing.assert_array_equal(values, whole.values.transpose(2, 0, 1))


@pytest.mark.parametrize("rate_hz", [10.0, 7.3])
def test_rows_at_a_rate_are_over_the_frames_that_begin_in_them(engine, rate_hz):
    """The percentile above all frames is the maximum, also where rows are not whole hops."""
    settings = {"win_length": WIN, "hop": HOP, "rate_hz": rate_hz}
    settings["engine"] = "numpy" if engine.name == "numpy" else "auto"
    highest = spectrod.spectrogram(noise(), FS, averaging="max", **settings)
    percentile = spectrod.spectrogram(noise(), FS, averaging="L0.001", **settings)
    np.testing.assert_allclose(percentile.values, highest.values, rtol=1e-6)


def test_a_gap_cuts_a_row(engine):
    """The row before a gap is over its own frames and says how many; the next one starts again."""
    x = noise()
    spec = SpectrumSpec(FS, 2, "hann", WIN, HOP, averaging="L50", averaging_frames=20)
    plain = SpectrumSpec(FS, 2, "hann", WIN, HOP)
    n = WIN + 24 * HOP  # 25 frames
    found = {}
    for one in (spec, plain):
        stream = FrameStream(one, engine)
        out = stream.push(Block(x[:, :n], 0, 0, 0))
        out += stream.push(Block(x[:, n : 2 * n], n + 500, 0, 0, discontinuity=True))
        found[one] = out + stream.finish()
    frames = np.concatenate([batch.values for batch in found[plain]])
    rows = np.concatenate([batch.values for batch in found[spec]])
    parts = frames[:20], frames[20:25], frames[25:45], frames[45:]
    np.testing.assert_array_equal(rows, [ranked(part, "L50") for part in parts])
    assert [batch.cut_frames for batch in found[spec]] == [0, 5, 0, 5]


def test_a_row_continues_when_the_stream_moves_to_another_engine():
    """A row that one engine began and another finished is the percentile of all its frames."""
    x, ready = noise(2000), []
    spec = SpectrumSpec(FS, 2, "hann", WIN, HOP, averaging="L50", averaging_frames=50)
    first, second = open_engine("numpy"), open_engine("auto")
    stream = FrameStream(spec, first, next_engine=lambda: ready.pop() if ready else None)
    out = stream.push(Block(x[:, :1000], 0, 0, 0))
    ready.append(second)
    out += stream.push(Block(x[:, 1000:], 1000, 0, 0)) + stream.finish()
    assert stream.engine is second
    rows = np.concatenate([batch.values for batch in out])
    frames = spectrod.spectrogram(x, FS, win_length=WIN, hop=HOP, engine="numpy").values
    expected = ranked(frames[..., :50].transpose(2, 0, 1), "L50")
    np.testing.assert_allclose(rows[0], expected, rtol=1e-5)
    second.close()


@pytest.mark.parametrize("scaling", ["density", "dbfs"])
@pytest.mark.parametrize("averaging", ["L99.9", "L90", "L3"])
def test_long_rows_are_within_half_a_class(averaging, scaling):
    """Frames beyond those that are kept are counted: within 0.05 dB of NumPy's percentile."""
    n, n_values = KEPT_FRAMES_MAX + 501, 9
    spec = SpectrumSpec(
        FS, win_length=16, nfft=16, scaling=scaling, averaging=averaging, averaging_frames=n
    )
    levels = np.random.default_rng(6).normal(-60.0, 20.0, (n, 1, n_values)).astype(np.float32)
    frames = levels if scaling == "dbfs" else 10.0 ** (levels / np.float32(10.0))
    percentile = Percentile(spec)
    for _ in range(2):  # the second row has no counts of the first
        for part in np.array_split(frames, 7):
            percentile.add(part)
        row = percentile.finish()
        row = row if scaling == "dbfs" else 10.0 * np.log10(row)
        assert np.abs(row - ranked(levels, averaging)).max() <= 0.0501


@pytest.mark.parametrize("frames", [KEPT_FRAMES_MAX, KEPT_FRAMES_MAX + 1])
def test_silence_and_values_that_are_none(frames):
    """Silence is 0 and the lowest level; an infinite power or NaN is the greatest value."""
    for scaling, silent in (("density", 0.0), ("dbfs", -200.0)):
        spec = SpectrumSpec(
            FS, win_length=16, nfft=16, scaling=scaling, averaging="L50", averaging_frames=frames
        )
        percentile = Percentile(spec)
        values = np.full((frames, 1, 9), silent, np.float32)
        values[: frames // 2 + 1, 0, 1] = np.inf
        values[: frames // 2 + 1, 0, 2] = np.nan
        percentile.add(values)
        row = percentile.finish()[0]
        assert not np.isfinite(row[1:3]).any()
        np.testing.assert_array_equal(row[3:], silent)


def test_expected_ranks():
    """The expectation of a rank is the sum of 1 / (n - i), and -ln(1 - p) for many frames."""
    for n in (1, 2, 37, 64, 65, 500):
        for rank in {1, max(1, n // 5), n}:
            assert expected_rank(rank, n) == pytest.approx(sum(1.0 / (n - i) for i in range(rank)))
    assert expected_rank(200_000, 1_000_000) == pytest.approx(-np.log(0.8), rel=1e-5)


@pytest.mark.parametrize("scaling", ["density", "dbfs"])
def test_the_floor_is_that_of_the_noise(scaling):
    """Of noise with tones and pulses it is the noise's power: 0.3 dB, with pulses 1.2 dB."""
    n, settings = 400_000, {"win_length": 512, "hop": 256, "averaging_frames": 100}
    x = noise(n, 1)[0]
    settings |= {"scaling": scaling, "engine": "numpy"}
    mean = spectrod.spectrogram(x, FS, averaging="mean", **settings)
    time_s = np.arange(n) / FS
    tones = 0.5 * np.sin(2 * np.pi * 1000.0 * time_s) * (time_s % 2.0 < 0.4)
    pulses = np.where(time_s % 1.0 < 0.1, 30.0, 1.0)
    for signal, least, most in ((x, -0.3, 0.3), (x * pulses + tones, 0.0, 1.2)):
        found = spectrod.spectrogram(signal, FS, averaging="floor", **settings)
        powers = [one.spec.scale.to_power(one.values[4:-4]).mean() for one in (found, mean)]
        assert least <= 10.0 * np.log10(powers[0] / powers[1]) <= most


def test_the_floor_of_silence_is_the_lowest_level():
    """Nothing is added to the lowest level."""
    found = spectrod.spectrogram(
        np.zeros(2000), FS, win_length=64, averaging="floor", averaging_frames=5, scaling="dbfs"
    )
    assert (found.values == -200.0).all()


@pytest.mark.parametrize("name", ["L0.1", "L1", "L5", "L10", "L50", "L99", "L99.999", "L12.25"])
def test_names_of_percentiles(name):
    """Ln is the value exceeded n % of the time."""
    assert exceeded_percent(name) == float(name[1:])


@pytest.mark.parametrize(
    "name",
    ["L0", "L100", "L05", "L5.0", "L0.0001", "l90", "L", "L-1", "Lnan", "P90", "L٩", 90, None],
)
def test_other_names_are_refused(name):
    """A percentile has one spelling; the error lists what exists."""
    with pytest.raises(ConfigError, match=r"averaging=.*: must be one of none, .* floor, or L and"):
        SpectrumSpec(FS, averaging=name)


@pytest.mark.parametrize(
    ("parameters", "rule"),
    [
        (
            {"channels": 64, "averaging_frames": 2000},
            "averaging='L90': 131136 values over 2000 frames need 1000 MiB: must be at most 256",
        ),
        ({"channels": 9, "averaging_frames": 1 << 30}, "need 281 MiB: must be at most 256 MiB"),
        ({"averaging": "floor", "bands": "octave"}, "averaging='floor': is of bins"),
        ({"output": "complex"}, "averaging='L90': complex spectra have none"),
    ],
)
def test_bounds_of_percentiles(parameters, rule):
    """Memory is bounded before any is taken; what has no percentile is refused."""
    with pytest.raises(ConfigError, match=rule):
        SpectrumSpec(FS, **{"averaging": "L90"} | parameters)


def test_the_configuration_needs_a_rate():
    """A percentile in the configuration is over the rows of rate_hz."""
    with pytest.raises(ConfigError, match="averaging='L90': needs rate_hz"):
        AnalysisConfig(averaging="L90").spec(FS, 1)
    spec = AnalysisConfig(averaging="L90", rate_hz=1.0).spec(FS, 1)
    assert (spec.averaging, spec.averaging_frames) == ("L90", 8)
