"""The streaming STFT: framing, gaps, times, and any division of the stream."""

import re
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spectrod
from spectrod.analysis.buffer_pool import BufferPool, PooledBuffer
from spectrod.analysis.engine import open_engine
from spectrod.analysis.numpy_engine import NumpyEngine
from spectrod.analysis.stream import FrameStream
from spectrod.dsp.blocks import Block
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_rules import HOP_MAX
from spectrod.lib.errors import ConfigError, DeviceError, InputError

RNG = np.random.default_rng(11)
NOISE = RNG.uniform(-1, 1, (2, 5000)).astype(np.float32)


def block(start, stop, **kwargs):
    return Block(NOISE[:, start:stop], start, start * 1000, 5_000_000 + start * 1000, **kwargs)


def stream(win_length=128, hop=37, **kwargs):
    spec = SpectrumSpec(1e6, 2, "hann", win_length, hop, scaling="spectrum")
    return FrameStream(spec, NumpyEngine(), **kwargs)


def joined(batches):
    """Join values and indices of all batches."""
    return (
        np.concatenate([batch.values for batch in batches]),
        np.concatenate([batch.sample_index for batch in batches]),
    )


def direct(index, win_length=128, nfft=128):
    """Compute the power spectrum of the frame at an index directly in float64."""
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(win_length) / win_length)
    frame = NOISE[:, index : index + win_length].astype(float) * window
    power = np.square(np.abs(np.fft.rfft(frame, nfft))) / window.sum() ** 2
    power[:, 1:-1] *= 2.0
    return power


def test_frames_have_the_right_place_and_power():
    """Frame p starts at p * hop and holds the one-sided power of its samples."""
    values, index = joined(stream().push(block(0, 1000)))
    np.testing.assert_array_equal(index, np.arange(0, 1000 - 127, 37))
    for frame, start in zip(values, index, strict=True):
        np.testing.assert_allclose(frame, direct(start), rtol=1e-5, atol=1e-12)


@settings(max_examples=60)
@given(
    cuts=st.lists(st.integers(1, 4999), max_size=40),
    hop=st.sampled_from([1, 37, 128, 300, 1999]),
)
def test_any_cut_of_the_stream_gives_the_same_frames(cuts, hop):
    """In any division of a stream into blocks, every frame comes once, bit for bit the same."""
    whole, index = joined(stream(hop=hop).push(block(0, 5000)))
    parts = stream(hop=hop)
    edges = sorted({0, 5000, *cuts})
    batches = [b for a, z in pairwise(edges) for b in parts.push(block(a, z))]
    values, part_index = joined(batches)
    np.testing.assert_array_equal(part_index, index)
    np.testing.assert_array_equal(values, whole)
    assert parts.gaps == 0


@pytest.mark.parametrize("engine", ["numpy", "auto"])
@pytest.mark.parametrize("dropped", [0, 5])
@pytest.mark.parametrize("hop", [37, 300])
def test_samples_written_into_the_memory_of_the_stream(engine, hop, dropped):
    """Samples written into the stream's own memory give the same frames, also in cut blocks."""
    opened = open_engine(engine)
    spec = SpectrumSpec(1e6, 1, "hann", 128, hop, scaling="spectrum")
    noise = RNG.integers(-(2**15), 2**15, (1, 300_001), dtype=np.int16)
    stream_of = partial(FrameStream, spec, opened, sample_format="int16", batch_frames=16)
    expected, index = joined(stream_of().push(Block(noise[:, dropped:], dropped, 0, 0)))
    frames, batches, n_reserved, first = stream_of(), [], 0, 0
    while first < noise.shape[1]:
        memory = frames.reserve(1009)
        if memory is None:
            samples = noise[:, first : first + 1009]
        else:
            samples = memory[:, : noise.shape[1] - first]
            samples[...] = noise[:, first : first + samples.shape[1]]
            n_reserved += samples.shape[1]
        n_cut = 0 if first else dropped
        batches += frames.push(Block(samples[:, n_cut:], first + n_cut, 0, 0))
        first += samples.shape[1]
    values, part_index = joined(batches)
    np.testing.assert_array_equal(part_index, index)
    np.testing.assert_array_equal(values, expected)
    assert n_reserved > 250_000
    opened.close()


def test_long_input_is_cut_into_bounded_batches():
    """A batch holds at most the requested number of frames, however much is pushed at once."""
    long = np.zeros((1, 40_000), np.float32)
    spec = SpectrumSpec(1e6, 1, win_length=64, hop=8)
    frames = FrameStream(spec, NumpyEngine(), batch_frames=1024)
    batches = frames.push(Block(long, 0, 0, 0))
    assert [b.n_frames for b in batches] == [1024, 1024, 1024, 1024, 897]


def test_no_frame_spans_a_gap():
    """After a gap frames restart, and the next batch gives the number of missing samples."""
    frames = stream()
    before = frames.push(block(0, 1000))
    after = frames.push(block(1500, 2500, discontinuity=True, lost_samples=500))
    assert joined(before)[1][-1] + 128 <= 1000
    assert after[0].sample_index[0] == 1500
    assert (after[0].gap_samples, after[0].discontinuity) == (500, True)
    assert (frames.gaps, frames.gap_samples) == (1, 500)
    np.testing.assert_allclose(after[0].values[0], direct(1500), rtol=1e-5, atol=1e-12)
    assert frames.push(block(2500, 3500))[0].gap_samples == 0


def test_samples_that_an_index_leaves_out_are_lost():
    """A jump of the index counts in full, with or without a loss reported by the block."""
    frames = stream()
    frames.push(block(0, 1000))
    batch = frames.push(block(1200, 2000))[0]
    assert (batch.sample_index[0], batch.gap_samples, batch.discontinuity) == (1200, 200, True)


def test_a_huge_hop_needs_no_huge_memory():
    """With hops longer than a batch, memory holds a few windows, and frames keep their places."""
    frames = stream(hop=HOP_MAX)
    assert frames._buffer.data.nbytes <= 1 << 18
    batches = frames.push(block(0, 1000))
    assert [batch.n_frames for batch in batches] == [1]
    assert frames.next_index == 1000
    frames.push(Block(NOISE, HOP_MAX - 4000, 0, 0))
    assert frames.gap_samples == HOP_MAX - 5000


def test_a_gap_survives_a_change_of_the_analysis():
    """A gap not yet reported is reported by the stream of the next analysis, and counters go on."""
    frames, after = stream(), stream(win_length=64)
    frames.push(block(0, 200))
    assert frames.push(block(210, 300, discontinuity=True, lost_samples=10)) == []
    after.inherit_counts(frames)
    assert after.push(block(300, 400))[0].gap_samples == 10
    assert (after.gaps, after.gap_samples) == (1, 10)


def test_rows_passed_over_survive_a_change_of_the_analysis():
    """Skipped rows are counted in the product's next batch, and complete frames are delivered."""
    frames, after = stream(), stream(hop=100)
    frames.push(block(0, 128))
    assert frames.want(frozenset()) == []
    assert frames.push(block(128, 128 + 3 * 37)) == []
    after.inherit_counts(frames)
    assert after.push(block(300, 500))[0].skipped_rows == 3


def test_rows_of_bands_that_were_passed_over_are_no_spectra():
    """Spectra and bands are numbered apart: neither counts rows of the other that nobody wanted."""
    of_bands = SpectrumSpec(48000.0, 2, "hann", 1024, 37, bands="octave", product="density")
    bands = FrameStream(of_bands, NumpyEngine())
    spectra = FrameStream(replace(of_bands, bands="", win_length=128), NumpyEngine())
    assert bands.want(frozenset()) == []
    assert bands.push(block(0, 2000)) == []
    assert bands.launchers[0].pending.skipped_rows > 0
    spectra.inherit_counts(bands)
    assert spectra.push(block(2000, 2200))[0].skipped_rows == 0


def test_complete_frames_are_delivered_when_demand_ends():
    """Frames that wait for a batch to fill are delivered when demand ends."""
    frames = stream(max_latency_s=float("inf"))
    assert frames.push(block(0, 128 + 2 * 37)) == []
    assert [batch.n_frames for batch in frames.want(frozenset())] == [3]
    assert frames.push(block(128 + 2 * 37, 1000)) == []


@pytest.mark.parametrize("averaging", ["mean", "max", "exponential"])
def test_a_reset_restarts_averages(averaging):
    """After a reset the next row has only later frames and is marked as not contiguous."""
    spec = SpectrumSpec(
        1e6, 2, win_length=128, hop=128, averaging=averaging, averaging_frames=3, averaging_s=0.01
    )
    frames = FrameStream(spec, NumpyEngine())
    assert [b.n_frames for b in frames.push(block(0, 128 * 5))] == [1]
    frames.reset("another")
    assert frames.cut_frames == 0
    frames.reset(spec.product)
    assert frames.cut_frames == 2
    (batch,) = frames.push(block(128 * 5, 128 * 8))
    (alone,) = FrameStream(spec, NumpyEngine()).push(block(128 * 5, 128 * 8))
    np.testing.assert_array_equal(batch.values, alone.values)
    assert (batch.sample_index[0], batch.discontinuity, batch.gap_samples) == (128 * 5, True, 0)
    frames.reset()
    assert frames.cut_frames == 2


def test_gaps_in_a_row_add_up():
    """Losses without a frame between them are reported as one sum."""
    frames = stream()
    frames.push(block(0, 200))
    assert frames.push(block(210, 300, discontinuity=True, lost_samples=10)) == []
    batches = frames.push(block(320, 600, discontinuity=True, lost_samples=20))
    assert (batches[0].gap_samples, frames.gaps) == (30, 2)


def test_a_hop_longer_than_the_window_skips_samples():
    """With hop > win_length the samples between frames are skipped."""
    _, index = joined(stream(hop=300).push(block(0, 1000)))
    np.testing.assert_array_equal(index, [0, 300, 600])


def test_times_are_those_of_each_frames_first_sample():
    """Times follow the newest block's time by index / fs."""
    frames = stream()
    frames.push(block(0, 100))
    batch = frames.push(block(100, 400))[0]
    np.testing.assert_array_equal(batch.t_mono_ns, batch.sample_index * 1000)
    np.testing.assert_array_equal(batch.t_utc_ns, 5_000_000 + batch.sample_index * 1000)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_samples_that_are_not_finite(bad):
    """Samples that are not finite are an error or, in a tolerant stream, a gap of their block."""
    samples = NOISE[:, 200:300].copy()
    samples[1, 7] = bad
    poisoned = Block(samples, 200, 0, 0)
    frames = stream()
    frames.push(block(0, 200))
    with pytest.raises(InputError, match=f"sample 207 of channel 1 is {bad}: must be finite"):
        frames.push(poisoned)
    frames = stream(on_nonfinite="gap")
    frames.push(block(0, 200))
    assert frames.push(poisoned) == []
    batch = frames.push(block(300, 600))[0]
    assert (batch.sample_index[0], batch.gap_samples) == (300, 100)
    assert np.isfinite(batch.values).all()


def test_public_stft_takes_arrays():
    """Arrays are contiguous, and times are elapsed times."""
    with spectrod.Stft(8000, win_length=64, hop=32, engine="numpy") as stft:
        batches = [*stft.push(np.zeros(50)), *stft.push(np.zeros(100, np.int16))]
    values, index = joined(batches)
    assert values.shape == (3, 1, 33)
    np.testing.assert_array_equal(index, [0, 32, 64])
    assert batches[-1].t_mono_ns[-1] == 8_000_000


def test_public_stft_checks_blocks_too():
    """A block with another number of channels is refused and not broadcast."""
    with (
        spectrod.Stft(8000, channels=2, win_length=64, hop=32, engine="numpy") as stft,
        pytest.raises(InputError, match=r"samples of shape \(1, 50\): must have 2 channels"),
    ):
        stft.push(Block(np.zeros((1, 50), np.float32), 0, 0, 0))


def test_spectrogram_shapes_and_axes():
    """One channel gives (bins, frames), several (channels, bins, frames), and t has centres."""
    s = spectrod.spectrogram(NOISE[0], 1000.0, win_length=128, hop=50, engine="numpy")
    assert s.values.shape == (65, 98)
    assert (s.f[0], s.f[-1], s.t[0], s.t[1]) == (0.0, 500.0, 0.064, 0.114)
    assert (s.unit, s.engine) == ("FS^2/Hz", "numpy")
    assert spectrod.spectrogram(NOISE, 1.0, win_length=100, engine="numpy").values.ndim == 3


@pytest.mark.parametrize(
    ("x", "kwargs", "error", "message"),
    [
        (NOISE[0, :100], {}, InputError, "100 samples: fewer than one window, win_length=4096"),
        (NOISE[0], {"hop": 0}, ConfigError, "hop=0: must be at least 1 sample"),
        (NOISE[0], {"win_length": "many"}, ConfigError, "win_length='many': "),
        (NOISE[0], {"engine": "fpga"}, ConfigError, "engine='fpga': must be one of auto,"),
        ([1.0, np.nan] * 3000, {}, InputError, "sample 1 of channel 0 is nan: must be finite"),
    ],
)
def test_bad_arguments(x, kwargs, error, message):
    """Each invalid argument is one clear error."""
    with pytest.raises(error, match=message):
        spectrod.spectrogram(x, 48000.0, **kwargs)


def test_several_resolutions_at_once():
    """Sequences of arguments are broadcast, and each resolution's batches are those of it alone."""
    with spectrod.Stft(
        8000, channels=2, win_length=(64, 512), hop=(32, 100), nfft=512, engine="numpy"
    ) as stft:
        batches = stft.push(NOISE)
    assert [(s.win_length, s.hop, s.nfft) for s in stft.specs] == [(64, 32, 512), (512, 100, 512)]
    assert stft.spec is stft.specs[0]
    for spec in stft.specs:
        alone = FrameStream(spec, NumpyEngine()).push(Block(NOISE, 0, 0, 0))
        mine = [batch for batch in batches if batch.spec is spec]
        np.testing.assert_array_equal(joined(mine)[0], joined(alone)[0])


def test_a_closed_stream_computes_nothing():
    """A closed stream, whose device may be gone, computes nothing, and its results stay valid."""
    stft = spectrod.Stft(8000, win_length=np.array([64, 128]), hop=32, engine="numpy")
    batches = stft.push(np.ones(128))
    stft.close()
    for call in (stft.flush, lambda: stft.push(np.ones(128))):
        with pytest.raises(ConfigError, match="Stft: is closed"):
            call()
    assert [batch.n_frames for batch in batches] == [3, 1]


def test_a_window_larger_than_memory_is_a_device_error():
    """A window larger than memory is one clear device error."""
    with pytest.raises(DeviceError, match=r"the host has no [\d.]+ MiB of memory left"):
        spectrod.Stft(8000, batch_frames=1 << 40, engine="numpy")


def test_frames_held_back_come_with_a_flush():
    """With a latency bound push may return nothing; flush returns the frames and a count."""
    with spectrod.Stft(
        8000, win_length=64, hop=32, max_latency_s=0.02, batch_frames=50, engine="numpy"
    ) as stft:
        assert stft.push(np.zeros(200)) == []
        assert stft.remainder() == [(200, 0)]
        assert [batch.n_frames for batch in stft.flush()] == [5]
        assert stft.remainder() == [(40, 0)]
        assert stft.flush() == []
        # The next frame is complete with 24 more; then 160 samples are 0.02 s.
        assert stft.push(np.zeros(24 + 159)) == []
        assert [batch.n_frames for batch in stft.push(np.zeros(1))] == [6]


def test_averages_leave_frames_over():
    """Frames of an unfinished average wait, and become a shorter row at a gap."""
    spec = SpectrumSpec(1e6, 2, win_length=128, hop=100, averaging="max", averaging_frames=4)
    frames = FrameStream(spec, NumpyEngine())
    batches = frames.push(block(0, 1000))
    assert [int(batch.sample_index[0]) for batch in batches] == [0]
    assert frames.remainder() == [(100, 1)]
    cut, after = frames.push(block(1500, 2500))
    assert (cut.sample_index.tolist(), cut.cut_frames) == ([800], 1)
    assert (after.sample_index[0], after.gap_samples) == (1500, 500)
    assert frames.cut_frames == 0


@pytest.mark.parametrize(
    ("data", "kwargs"),
    [
        (NOISE.T.copy().tobytes(), {"sample_format": "float32"}),
        (np.ascontiguousarray(NOISE.T).T, {"interleaved": True}),
        (NOISE.astype(np.float64), {}),
    ],
)
def test_samples_may_come_in_any_order_of_memory(data, kwargs):
    """Bytes, transposed arrays and doubles give the same spectra as a plain array."""
    results = []
    for samples, settings_ in ((NOISE, {}), (data, kwargs)):
        with spectrod.Stft(
            8000, channels=2, win_length=64, hop=32, engine="numpy", **settings_
        ) as stft:
            results.append(joined(stft.push(samples))[0])
    np.testing.assert_array_equal(*results)


def test_integers_are_taken_as_they_are():
    """Integers of 16 and 24 bits are fractions of full scale, converted beforehand or not."""
    wide = np.random.default_rng(3).integers(-(2**23), 2**23, 3000)
    packed = np.stack([wide & 255, wide >> 8 & 255, wide >> 16 & 255], 1).astype(np.uint8)
    short = (wide >> 8).astype(np.int16)
    for data, format_, floats in (
        (packed.tobytes(), "int24", wide / 2.0**23),
        (packed, "int24", wide / 2.0**23),
        (short, "int16", short / 2.0**15),
    ):
        with spectrod.Stft(8000, win_length=64, sample_format=format_, engine="numpy") as stft:
            values, _ = joined(stft.push(data))
        with spectrod.Stft(8000, win_length=64, engine="numpy") as stft:
            np.testing.assert_array_equal(values, joined(stft.push(floats))[0])


def test_results_keep_their_memory_until_released():
    """A spectrogram that is still referenced is not overwritten; memory of a released one is."""
    x = np.random.default_rng(5).standard_normal(5000).astype(np.float32)
    first = spectrod.spectrogram(x, 8000, win_length=64, engine="numpy").values
    expected, view, address = first.copy(), first[3:], first.__array_interface__["data"][0]
    del first
    other = spectrod.spectrogram(2 * x, 8000, win_length=64, engine="numpy").values
    np.testing.assert_array_equal(view, expected[3:])
    assert other.__array_interface__["data"][0] != address
    del view
    third = spectrod.spectrogram(3 * x, 8000, win_length=64, engine="numpy").values
    assert third.__array_interface__["data"][0] == address
    np.testing.assert_allclose(third, 9 * expected, rtol=1e-5)


def test_a_pool_lends_returned_buffers():
    """A buffer is lent again only after the last view of it is released."""
    made = []

    def make(n_bytes):
        made.append(n_bytes)
        return PooledBuffer(np.zeros(n_bytes, np.uint8), None)

    pool = BufferPool(make)
    array = pool.lend((3, 5), np.dtype(np.float32)).array()
    view = array[1:][:, ::2].T
    address = array.ctypes.data
    del array
    other = pool.lend((3, 5), np.dtype(np.float32)).array()
    assert other.ctypes.data != address
    del view
    assert pool.lend((16,), np.dtype(np.float32)).array().ctypes.data == address
    assert made == [64, 64]


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"win_length": (64, 128), "hop": (1, 2, 3)}, "win_length has 2, hop has 3; must be equal"),
        ({"hop": ()}, "hop has 0; must be equally many, at least 1"),
        ({"max_latency_s": -1.0}, "max_latency_s=-1.0: must be 0 s or more"),
        ({"max_latency_s": float("nan")}, "max_latency_s=nan: must be 0 s or more"),
        ({"max_latency_s": "1"}, "max_latency_s='1': must be 0 s or more"),
        ({"batch_frames": 0}, "batch_frames=0: must be at least 1"),
        ({"batch_frames": 1.5}, "batch_frames=1.5: must be at least 1, a whole number"),
        ({"sample_format": "int8"}, "sample_format='int8': must be one of int16, int24, int32, "),
        ({"bands": 3}, "bands=3: must be a name, or '' for bins"),
        ({"window": ["hann"]}, "window of shape (1,), dtype <U4: must be a name, ('kaiser', beta)"),
        ({"win_length": "64"}, "win_length='64': must be a whole number"),
        ({"device": 0}, "device=0: must be text, also where it is a number"),
    ],
)
def test_bad_settings_of_a_stream(settings_, message):
    """Each invalid setting is one clear error."""
    with pytest.raises(ConfigError, match=re.escape(message)):
        spectrod.Stft(8000, engine="numpy", **settings_)


def test_specs_of_one_stream_fit_each_other():
    """All specs of a stream have the source's sample rate and channels."""
    with pytest.raises(ConfigError, match=r"fs: must be the same for all specs, not \[1.0, 2.0\]"):
        FrameStream([SpectrumSpec(1.0), SpectrumSpec(2.0)], NumpyEngine())
    with pytest.raises(ConfigError, match="specs: must be at least one"):
        FrameStream([], NumpyEngine())


def test_repr_is_one_line():
    """A stream and its batches say what they are, and print no arrays."""
    with spectrod.Stft(8000, channels=2, win_length=64, hop=32, engine="numpy") as stft:
        assert repr(stft) == "<Stft: 8000 Hz, 2 channels, hann window of 64 at 32, numpy>"
        (batch,) = stft.push(np.zeros((2, 200), np.float32))
        assert repr(batch) == (
            "<SpectrumBatch: 5 rows of 2 x 33 values from sample 0, density in FS^2/Hz, numpy>"
        )
    assert repr(stft).endswith("numpy, closed>")


@pytest.mark.parametrize(
    ("keyword", "message"),
    [
        ("nperseg", "'nperseg'; it is win_length here"),
        ("noverlap", "'noverlap'; hop is win_length - noverlap"),
        ("n_fft", "'n_fft'; it is nfft here, and win_length is that of the window"),
        ("center", "'center'; the first frame begins at the first sample, nothing is padded"),
        ("winlength", "'winlength'; did you mean win_length?"),
        ("xyzzy", "'xyzzy'"),
    ],
)
def test_keywords_of_other_libraries_name_ours(keyword, message):
    """Who comes from SciPy, librosa or PyTorch is told the keyword, or what is different."""
    for name, call in (
        ("spectrogram", partial(spectrod.spectrogram, np.zeros(100), 8000)),
        ("Stft", partial(spectrod.Stft, 8000)),
    ):
        expected = f"{name}() got an unexpected keyword argument {message}"
        with pytest.raises(TypeError, match=f"^{re.escape(expected)}$"):
            call(**{keyword: 256})
