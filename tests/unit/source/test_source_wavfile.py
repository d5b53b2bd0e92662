"""Plain WAV files read without libsndfile, compared with libsndfile."""

import numpy as np
import pytest
import soundfile

from spectrod.analysis.samples import to_float32
from spectrod.config.config import SourceConfig
from spectrod.lib.errors import InputError
from spectrod.source.files.wavfile import WavFileSource, plain_layout
from spectrod.source.open_source import open_source

SUBTYPES = ["PCM_16", "PCM_24", "PCM_32", "FLOAT"]


def write(path, subtype="PCM_16", channels=1, n=1001, fs=8000, form="WAV"):
    samples = np.random.default_rng(5).uniform(-1.0, 1.0, (n, channels))
    soundfile.write(path, samples, fs, subtype, format=form)
    return soundfile.read(path, dtype="float32", always_2d=True)[0].T


def opened(path, **settings):
    return open_source(SourceConfig(uri=str(path), **settings), "full")


def fed(source, n_max=100):
    reader, blocks = source.open_reader(), []
    while not reader.exhausted:
        blocks.append(reader.read(n_max))
    assert reader.read(n_max) is None
    reader.release()
    joined = [to_float32(block.samples, reader.layout.sample_format) for block in blocks]
    return blocks, np.concatenate(joined, axis=1)


@pytest.mark.parametrize("form", ["WAV", "WAVEX", "RF64"])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("subtype", SUBTYPES)
def test_samples_equal_those_of_libsndfile(tmp_path, form, channels, subtype):
    """The samples equal libsndfile's bit for bit."""
    expected = write(tmp_path / "x.wav", subtype, channels, form=form)
    source = opened(tmp_path / "x.wav")
    assert isinstance(source, WavFileSource)
    assert (source.fs, source.channels, source.n_samples) == (8000.0, channels, 1001)
    blocks, joined = fed(source)
    assert [block.sample_index for block in blocks] == list(range(0, 1001, 100))
    np.testing.assert_array_equal(joined, expected)


def test_selected_channels(tmp_path):
    """A reader delivers only the selected channels in their order."""
    expected = write(tmp_path / "x.wav", "PCM_16", 3)
    source = opened(tmp_path / "x.wav", select=(2, 0))
    _, got = fed(source, 64)
    np.testing.assert_array_equal(got, expected[[2, 0]])


@pytest.mark.parametrize("subtype", SUBTYPES)
def test_samples_are_read_into_an_array(tmp_path, subtype):
    """A reader fills an array of the file's memory order as far as there is room."""
    write(tmp_path / "x.wav", subtype, 2)
    fed_blocks, _ = fed(opened(tmp_path / "x.wav"))
    expected = np.concatenate([block.samples for block in fed_blocks], axis=1)
    reader, taken = opened(tmp_path / "x.wav").open_reader(), []
    while not reader.exhausted:
        memory = np.zeros((97, 2, *expected.shape[2:]), expected.dtype).swapaxes(0, 1)
        block = reader.read(400, memory)
        assert np.shares_memory(block.samples, memory)
        assert block.n_samples == min(97, 1001 - block.sample_index)
        taken.append(block.samples)
    reader.release()
    np.testing.assert_array_equal(np.concatenate(taken, axis=1), expected)
    reader = opened(tmp_path / "x.wav").open_reader()
    other = np.zeros((2, 97, *expected.shape[2:]), expected.dtype)
    block = reader.read(400, other)
    assert not np.shares_memory(block.samples, other)
    assert block.n_samples == 400
    assert not other.any()
    reader.release()


def test_times(tmp_path):
    """Times are the comment's start time plus the sample index over the rate."""
    with soundfile.SoundFile(tmp_path / "x.wav", "w", 8000, 1, "PCM_16") as file:
        file.comment = "Recorded at 04:30:00 01/05/2026 (UTC) by AudioMoth"
        file.write(np.zeros(300))
    blocks, _ = fed(opened(tmp_path / "x.wav"), 100)
    begin_ns = 1777609800 * 10**9
    assert [block.t_utc_ns - begin_ns for block in blocks] == [0, 12_500_000, 25_000_000]
    assert blocks[2].t_mono_ns - blocks[0].t_mono_ns == 25_000_000


def test_times_are_found_behind_other_lists(tmp_path):
    """The comment is found after other LIST chunks, such as names of marks."""
    with soundfile.SoundFile(tmp_path / "x.wav", "w", 8000, 1, "PCM_16") as file:
        file.comment = "Recorded at 04:30:00 01/05/2026 (UTC) by AudioMoth"
        file.write(np.zeros(300))
    data = (tmp_path / "x.wav").read_bytes()
    marks = b"LIST" + (18).to_bytes(4, "little") + b"adtllabl" + bytes([6, 0, 0, 0, 1]) + bytes(5)
    (tmp_path / "y.wav").write_bytes(data[:12] + marks + data[12:])
    sources = [opened(tmp_path / "x.wav"), opened(tmp_path / "y.wav")]
    assert [source.start_utc_ns for source in sources] == [1777609800 * 10**9] * 2


@pytest.mark.parametrize("wrong_size", [200, 0x00FFFFFF])
def test_the_size_that_fits_an_rf64_file_counts(tmp_path, wrong_size):
    """If the two sizes in an RF64 header differ, the one at which the file ends counts."""
    expected = write(tmp_path / "x.wav", form="RF64")
    data = (tmp_path / "x.wav").read_bytes()
    at = data.index(b"data") + 4
    size = wrong_size.to_bytes(4, "little")
    (tmp_path / "y.wav").write_bytes(data[:at] + size + data[at + 4 :])
    np.testing.assert_array_equal(fed(opened(tmp_path / "y.wav"))[1], expected)


def test_skipping(tmp_path):
    """Skipped samples are not read, and the index advances."""
    expected = write(tmp_path / "x.wav")
    source = opened(tmp_path / "x.wav")
    source.start_at(701)
    reader = source.open_reader()
    block = reader.read(400)
    assert (block.sample_index, block.n_samples, reader.exhausted) == (701, 300, True)
    np.testing.assert_array_equal(to_float32(block.samples, "int16"), expected[:, 701:])
    reader.release()


def test_other_formats_are_converted(tmp_path):
    """Codecs, wrong lengths and other formats are converted to float32."""
    write(tmp_path / "x.wav", "PCM_U8")
    write(tmp_path / "y.wav", "ULAW")
    write(tmp_path / "z.wav")
    data = (tmp_path / "z.wav").read_bytes()
    (tmp_path / "short.wav").write_bytes(data[:-3])
    (tmp_path / "odd.wav").write_bytes(data[:40] + (2001).to_bytes(4, "little") + data[44:])
    (tmp_path / "none.wav").write_bytes(data[:40] + bytes(4))
    (tmp_path / "text.wav").write_text("RIFF")
    for name in ("x", "y", "short", "odd", "none", "text", "missing"):
        assert plain_layout(str(tmp_path / f"{name}.wav")) is None, name
    with pytest.raises(InputError, match="truncated: 2002 bytes announced, 1999 found"):
        opened(tmp_path / "short.wav", strict=True)
    assert opened(tmp_path / "short.wav").n_samples == 999


def test_a_file_that_shrinks_is_an_error(tmp_path):
    """A file that is cut while it is read is an error."""
    write(tmp_path / "x.wav")
    reader = opened(tmp_path / "x.wav").open_reader()
    reader.read(100)
    with (tmp_path / "x.wav").open("r+b") as file:
        file.truncate(1000)
    with pytest.raises(InputError, match=r"x\.wav: truncated while it was read"):
        reader.read(1000)
    reader.release()
