import numpy as np
import pytest

from spectrod.analysis.numpy_engine import NumpyEngine
from spectrod.analysis.stream import FrameStream
from spectrod.dsp.blocks import Block
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.formats.picture.axes import FrequencyAxis
from spectrod.formats.picture.pixelmap import read_levels
from spectrod.formats.picture.render import PictureOptions
from spectrod.formats.picture.sink import PictureSink

FS = 48000.0
TONE_HZ = 1000.0
TONE_DBFS = -20.0


def picture_of_tone(path, nfft, options, f_hz=TONE_HZ, win_length=0):
    """Draw a sine of TONE_DBFS through the reference engine and read its picture back."""
    win_length = win_length or nfft
    spec = SpectrumSpec(
        fs=FS,
        window="flattop",
        win_length=win_length,
        hop=win_length // 4,
        nfft=nfft,
        scaling="spectrum",
    )
    n_frames = 12
    n = np.arange((n_frames - 1) * spec.hop + win_length)
    amplitude = 10.0 ** (TONE_DBFS / 20.0)
    samples = (amplitude * np.sin(2.0 * np.pi * f_hz / FS * n))[np.newaxis].astype(np.float32)
    engine = NumpyEngine()
    batch = FrameStream(spec, engine).push(Block(samples, 0, 0, 0))[0]
    sink = PictureSink(path, options, engine.transpose, spec)
    sink.write(batch)
    sink.finish()
    return read_levels(path)


def row_of(read, f_hz):
    """Return the row whose span of the axis holds a frequency."""
    pixels = read.pixels
    axis = FrequencyAxis(pixels.f_scale, pixels.f_min_hz, pixels.f_max_hz)
    return int(axis.fraction(f_hz) * len(read.f))


# 1 kHz is bin 21.33 of 1024, 85.33 of 4096 and 170.67 of 8192; 1007.8125 Hz is bin 43 of 2048,
# and 996.09375 Hz is 42.5 of it: between two bins. 1026.5625 Hz is bin 21.9 of 1024, whose row of
# 512 reaches from bin 21 to 22: the nearer one is that of the row above.
@pytest.mark.parametrize("f_scale", ["linear", "log"])
@pytest.mark.parametrize("height", [100, 512, 777])
@pytest.mark.parametrize(
    ("nfft", "f_hz"),
    [(1024, 1000.0), (1024, 1026.5625), (4096, 1000.0), (2048, 1007.8125), (2048, 996.09375)],
)
def test_a_tone_reads_its_level_in_its_row(tmp_path, f_scale, height, nfft, f_hz):
    """A -20 dBFS tone reads -20.00 +-0.05 dBFS in its row, on and between bins, on both axes."""
    options = PictureOptions(width=200, height=height, f_scale=f_scale, levels=(-25.0, -15.0))
    read = picture_of_tone(tmp_path / "x.png", nfft, options, f_hz)
    np.testing.assert_allclose(read.level[row_of(read, f_hz)], TONE_DBFS, atol=0.05)
    assert read.level.max() <= TONE_DBFS + 0.05


@pytest.mark.parametrize("f_scale", ["linear", "log"])
def test_zero_padding_keeps_the_level(tmp_path, f_scale):
    """A zero-padded transform reads the same level."""
    options = PictureOptions(width=200, height=300, f_scale=f_scale, levels=(-25.0, -15.0))
    read = picture_of_tone(tmp_path / "x.png", 4096, options, win_length=3001)
    np.testing.assert_allclose(read.level[row_of(read, TONE_HZ)], TONE_DBFS, atol=0.05)


def test_the_tone_is_at_its_label(tmp_path):
    """With the default range the brightest row holds the tone's frequency, on both axes."""
    for f_scale in ("linear", "log"):
        options = PictureOptions(width=200, f_scale=f_scale, f_max=4000.0)
        read = picture_of_tone(tmp_path / "x.png", 8192, options)
        brightest = np.flatnonzero(read.level[:, 100] == read.level[:, 100].max())
        assert brightest[0] <= row_of(read, TONE_HZ) <= brightest[-1]


@pytest.mark.parametrize("span_hz", [20.0, 400.0])
def test_zoomed_rows_read_single_bins(tmp_path, span_hz):
    """Rows much narrower than a bin still read the tone's level around it."""
    options = PictureOptions(
        width=200,
        height=400,
        f_min=TONE_HZ - span_hz / 2.0,
        f_max=TONE_HZ + span_hz / 2.0,
        levels=(-25.0, -15.0),
    )
    read = picture_of_tone(tmp_path / "x.png", 4096, options)
    np.testing.assert_allclose(read.level[row_of(read, TONE_HZ)], TONE_DBFS, atol=0.05)
