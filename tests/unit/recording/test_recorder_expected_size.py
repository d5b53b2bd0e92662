"""The space that a recording will need, as it is reported before the first file."""

import numpy as np
import pytest

from spectrod.config.settings import RecordingConfig
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.description import Description
from spectrod.formats.segment.segment_writer import SegmentWriter
from spectrod.recording.expected_size import day_bytes, space_text

DEFAULT = SpectrumSpec(48000.0, 1, win_length=4096, hop=1024, scaling="dbfs")
NIGHT = RecordingConfig("night")


@pytest.mark.parametrize(
    ("spec", "hour_bytes"),
    [
        (DEFAULT, 1.4e9),
        (SpectrumSpec(48000.0, 1, win_length=48000, hop=48000, nfft=65536), 472e6),
    ],
)
def test_the_documented_sizes_are_those_that_are_reported(spec, hour_bytes):
    """An hour of the analyses in docs/recorder.md has the bytes of its table, to two digits."""
    assert day_bytes(NIGHT, spec) / 24 == pytest.approx(hour_bytes, rel=0.01)


@pytest.mark.parametrize("channels", [1, 3])
def test_a_file_is_no_longer_than_reported(tmp_path, channels):
    """A segment of rows that come one by one has the expected bytes, but for header and index."""
    spec = SpectrumSpec(1000.0, channels, win_length=250, hop=100)
    writer = SegmentWriter(
        tmp_path / "x.spd", Description(spec, "pond", tuple(map(str, range(channels))), "test")
    )
    before = writer.size_bytes
    for row in range(50):
        values = np.zeros((1, channels, spec.n_values), np.float32)
        index = np.array([row * 100])
        writer.write(SpectrumBatch(values, index, index, index, spec, "numpy", 0))
    n_bytes = writer.size_bytes - before
    writer.finish()
    expected = day_bytes(NIGHT, spec) / 86400 * 50 * spec.row_s
    assert 0.95 * expected < n_bytes < 1.02 * expected


@pytest.mark.parametrize(
    ("config", "text"),
    [
        (NIGHT, "needs up to 34 GB a day, until less than min_free_mb=256 is free"),
        (RecordingConfig("night", keep_days=9), "needs up to 34 GB a day"),
        (RecordingConfig("night", when_full="delete"), "needs up to 34 GB a day"),
        (
            RecordingConfig("night", keep_mb=1, on_s=2.0, off_s=3.0),
            "needs up to 34 GB a day of recording",
        ),
        (
            RecordingConfig("night", keep_mb=1, spectra=False, samples="wav"),
            "needs up to 17 GB a day",
        ),
        (RecordingConfig("night", keep_mb=1, samples="flac"), "needs up to 46 GB a day"),
    ],
)
def test_the_report_says_what_a_day_needs(config, text):
    """The text has the size of a day, and says if nothing but the disk bounds the recording."""
    assert space_text(config, DEFAULT) == text


def test_small_recordings_have_small_units():
    """Rows of a minute need megabytes, and slower ones kilobytes."""
    minutes = SpectrumSpec(1000.0, 1, win_length=64, hop=64, averaging="mean", rate_hz=1 / 60)
    assert space_text(RecordingConfig("x", keep_mb=1), minutes) == "needs up to 330 kB a day"
