"""Files that the analysis reads directly, and samples before the first one that counts."""

import numpy as np
import pytest
import soundfile

from spectrod.analysis.numpy_engine import NumpyEngine
from spectrod.config.config import SourceConfig
from spectrod.daemon.pipeline import Pipeline
from spectrod.dsp.blocks import Block
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.errors import InputError
from spectrod.source.files.soundfile import SoundFileSource
from spectrod.source.files.wavfile import WavFileSource
from spectrod.source.open_source import open_source

FS = 8000


class Collect:
    """Keeps batches and samples."""

    def __init__(self):
        self.batches, self.blocks = [], []

    def write(self, chunk):
        (self.blocks if isinstance(chunk, Block) else self.batches).append(chunk)


def analysed(source, **settings):
    kept = Collect()
    spec = SpectrumSpec(source.fs, source.channels, win_length=256, hop=100, scaling="spectrum")
    pipeline = Pipeline(source, spec, NumpyEngine(), **settings)
    pipeline.attach(kept)
    pipeline.tap(kept)
    pipeline.start()
    try:
        while not pipeline.finished:
            assert pipeline.progress.wait(10.0)
    finally:
        pipeline.stop()
    pipeline.raise_failure()
    return kept


def joined(kept):
    return (
        np.concatenate([batch.values for batch in kept.batches]),
        np.concatenate([batch.sample_index for batch in kept.batches]),
        np.concatenate([block.samples for block in kept.blocks], axis=1),
    )


def written(path, channels=2, seconds=3.0):
    samples = np.random.default_rng(3).uniform(-0.9, 0.9, (round(seconds * FS), channels))
    soundfile.write(path, samples, FS, "PCM_24")
    return str(path)


@pytest.mark.parametrize("select", [(), (1,)])
@pytest.mark.parametrize("first", [0, 1, 12_345])
def test_both_ways_give_the_same(tmp_path, select, first):
    """A file read directly gives the same spectra and samples as through a ring."""
    path = written(tmp_path / "20260501_043000.wav")
    direct = open_source(SourceConfig(uri=path, select=select), "full")
    ringed = SoundFileSource(path, "full")
    ringed.select(select or (0, 1))
    assert isinstance(direct, WavFileSource)
    limits = {"first_sample": first, "max_samples": 5001}
    one, other = (analysed(source, **limits) for source in (direct, ringed))
    for got, expected in zip(joined(one), joined(other), strict=True):
        np.testing.assert_array_equal(got, expected)
    begin = one.blocks[0]
    assert (begin.sample_index, begin.lost_samples, begin.discontinuity) == (first, 0, False)
    # To within a nanosecond of rounding.
    assert abs(begin.t_utc_ns - other.blocks[0].t_utc_ns) <= 1
    assert sum(block.n_samples for block in one.blocks) == 5001


def test_an_end_is_taken_at_once(tmp_path):
    """After ``end`` the samples read so far are all."""
    source = open_source(SourceConfig(uri=written(tmp_path / "x.wav")), "full")
    spec = SpectrumSpec(source.fs, 2, win_length=256, hop=100, scaling="spectrum")
    pipeline = Pipeline(source, spec, NumpyEngine())
    pipeline.end()
    pipeline.start()
    while not pipeline.finished:
        assert pipeline.progress.wait(10.0)
    pipeline.stop()
    assert pipeline.stats().samples == 0


def test_a_file_that_goes_away_is_named(tmp_path):
    """A file that can no longer be opened ends the pipeline with its name."""
    source = open_source(SourceConfig(uri=written(tmp_path / "x.wav")), "full")
    (tmp_path / "x.wav").unlink()
    with pytest.raises(InputError, match=r"x\.wav: No such file or directory"):
        analysed(source)
