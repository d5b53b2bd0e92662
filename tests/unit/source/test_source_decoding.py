"""Decoded samples do not depend on how a file is read: in what blocks, and from where."""

import io
import struct
from pathlib import Path

import numpy as np
import pytest
import soundfile

from spectrod.apps.batch.decoder import SoundChunk, decode
from spectrod.config.config import SourceConfig
from spectrod.source.files.soundfile import SoundFile
from spectrod.source.open_source import open_source

DATA = Path(__file__).parents[2] / "data"
N = 30_011
FS = 44100


def encoded(format_, subtype=None, *, fs=FS, channels=2, **more):
    """Encode noise whose loudness changes, so that a variable bit rate does vary."""
    rng = np.random.default_rng(11)
    steps = np.repeat(rng.uniform(0.001, 0.3, 12), N // 12 + 1)[:N, np.newaxis]
    file = io.BytesIO()
    soundfile.write(
        file,
        steps * rng.standard_normal((N, channels)),
        fs,
        format=format_,
        subtype=subtype,
        **more,
    )
    return file.getvalue()


def without_length(data):
    """Drop the first frame of an MP3 file, which states the number of frames."""
    return data[data.index(data[:2], 4) :]


def vbr():
    return encoded("MP3", bitrate_mode="VARIABLE", compression_level=0.3)


def in_wave(stream, tag, *, fs=FS, channels=2, fact=0):
    """Put a stream of MPEG audio into a WAV file."""
    fmt = struct.pack("<HHIIHHH", tag, channels, fs, 16000, 1, 0, 12) + bytes(12)
    chunks = [(b"fmt ", fmt), (b"fact", struct.pack("<I", fact)), (b"data", stream)]
    body = b"".join(
        name + struct.pack("<I", len(content)) + content + bytes(len(content) % 2)
        for name, content in chunks
    )
    return b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WAVE" + body


CODINGS = {
    "cbr.mp3": lambda: encoded("MP3", bitrate_mode="CONSTANT"),
    "cbr_without_length.mp3": lambda: without_length(encoded("MP3", bitrate_mode="CONSTANT")),
    "vbr.mp3": vbr,
    "vbr_without_length.mp3": lambda: without_length(vbr()),
    "mpeg2.mp3": lambda: encoded("MP3", fs=22050, channels=1),
    "layer2.mp2": (DATA / "noise.mp2").read_bytes,
    "mp3.wav": lambda: in_wave(without_length(vbr()), 0x55),
    "mp3_with_length.wav": lambda: in_wave(vbr(), 0x55),
    "mp2.wav": lambda: in_wave((DATA / "noise.mp2").read_bytes(), 0x50, fs=32000, channels=1),
    "vorbis.ogg": lambda: encoded("OGG", "VORBIS"),
    "opus.opus": lambda: encoded("OGG", "OPUS", fs=48000),
    "flac16.flac": lambda: encoded("FLAC", "PCM_16"),
    "flac24.flac": lambda: encoded("FLAC", "PCM_24"),
    "alac.caf": lambda: encoded("CAF", "ALAC_16"),
    "gsm.wav": lambda: encoded("WAV", "GSM610", fs=8000, channels=1),
    "gsm.aiff": lambda: encoded("AIFF", "GSM610", fs=8000, channels=1),
    "ms_adpcm.wav": lambda: encoded("WAV", "MS_ADPCM"),
    "ima_adpcm.wav": lambda: encoded("WAV", "IMA_ADPCM"),
    "ima_adpcm.aiff": lambda: encoded("AIFF", "IMA_ADPCM", channels=1),
    "g721.au": lambda: encoded("AU", "G721_32", channels=1),
    "nms.wav": lambda: encoded("WAV", "NMS_ADPCM_16", fs=8000, channels=1),
    "dwvw.aiff": lambda: encoded("AIFF", "DWVW_16", channels=1),
    "dpcm.xi": lambda: encoded("XI", "DPCM_16", channels=1),
    "alaw.wav": lambda: encoded("WAV", "ALAW"),
    "ulaw.au": lambda: encoded("AU", "ULAW"),
    "pcm.sds": lambda: encoded("SDS", "PCM_16", channels=1),
    "pcm.voc": lambda: encoded("VOC", "PCM_16"),
    "pcm.w64": lambda: encoded("W64", "PCM_24"),
}


@pytest.fixture(params=CODINGS)
def coded(request, tmp_path):
    """Return a file of one coding."""
    path = tmp_path / request.param
    path.write_bytes(CODINGS[request.param]())
    return str(path)


def read_in(path, block, first=0):
    """Read a file in blocks, from one of its samples on."""
    file = SoundFile(path)
    memory = np.empty((block, file.channels), np.float32)
    found = []
    file.skip(first)
    while n := file.read(memory):
        found.append(memory[:n].copy())
    file.close()
    return np.concatenate(found)


def whole(path):
    """Read a file with one call of libsndfile."""
    file = SoundFile(path)
    memory = np.empty((file.n_samples + 10_000, file.channels), np.float32)
    n = file.read(memory)
    file.close()
    return memory[:n]


def test_any_partition_gives_the_same_samples(coded):
    """Reading in blocks, and from any sample on, gives the samples of one read, bit for bit."""
    expected = whole(coded)
    assert len(expected) > 20_000
    for block in (441, 4096, 9973):
        np.testing.assert_array_equal(read_in(coded, block), expected)
    for first in (1, 1151, 20_001):
        np.testing.assert_array_equal(read_in(coded, 7001, first), expected[first:])


def test_a_rewound_file_gives_the_same_samples(coded):
    """A file that is read again after a part of it gives its samples from the first one on."""
    expected = whole(coded)[:5000]
    file = SoundFile(coded)
    memory = np.empty((5000, file.channels), np.float32)
    for n_before in (100, 4999):
        assert file.read(memory[:n_before]) == n_before
        file.rewind()
        assert file.read(memory) == 5000
        np.testing.assert_array_equal(memory, expected)
        file.rewind()
    file.close()


@pytest.mark.parametrize("pace", ["realtime", "full"])
def test_sources_give_the_samples_of_one_read(coded, collect, pace):
    """A file alone gives the same samples live, in blocks of 10 ms, and at full speed."""
    source = open_source(SourceConfig(uri=coded), pace)
    source.pace = "full"
    ((index, samples, *_),) = collect(source)
    expected = whole(coded).T
    assert index == 0
    np.testing.assert_array_equal(samples, expected)


def test_a_folder_gives_the_samples_of_one_read(coded, collect):
    """A file in a folder gives the same samples."""
    folder = Path(coded).parent
    path = Path(coded).rename(folder / "x.wav")
    ((_, samples, *_),) = collect(open_source(SourceConfig(uri=str(folder)), "full"))
    np.testing.assert_array_equal(samples, whole(str(path)).T)


def test_chunks_of_a_batch_are_exact_or_refused(coded):
    """A decoder beside gives the right samples of a chunk, or none where it cannot seek."""
    expected = whole(coded)
    file = SoundFile(coded)
    fs, channels, seeks_exactly = file.fs, file.channels, file.seeks_exactly
    file.close()
    chunk = SoundChunk(coded, fs, channels, 10_007, 20_011, 4096)
    out = np.empty((chunk.end - chunk.first, channels), np.float32)
    assert decode(chunk, out) == seeks_exactly
    if seeks_exactly:
        np.testing.assert_array_equal(out, expected[chunk.first : chunk.end])


@pytest.mark.parametrize("name", ["gsm.wav", "ms_adpcm.wav", "vbr.mp3"])
def test_lossy_codings_are_decoded_in_order(tmp_path, name):
    """A coding whose samples depend on those before is never searched by a seek."""
    path = tmp_path / name
    path.write_bytes(CODINGS[name]())
    file = SoundFile(str(path))
    assert not file.seeks_exactly
    file.close()


@pytest.mark.parametrize("fact", [0, 31_000, 500_000])
def test_mpeg_audio_in_a_wave_file_is_whole(tmp_path, collect, fact):
    """An MP3 stream in a WAV file has the samples of its frames, whatever the header says."""
    stream = without_length(vbr())
    (tmp_path / "x.mp3").write_bytes(stream)
    (tmp_path / "x.wav").write_bytes(in_wave(stream, 0x55, fact=fact))
    expected = whole(str(tmp_path / "x.mp3"))
    np.testing.assert_array_equal(whole(str(tmp_path / "x.wav")), expected)
    for cut, n_files in ((0, 0), (30, 1)):
        data = (tmp_path / "x.wav").read_bytes()
        (tmp_path / "x.wav").write_bytes(data[: len(data) - cut])
        source = open_source(SourceConfig(uri=str(tmp_path / "x.wav")), "full")
        ((_, samples, *_),) = collect(source)
        assert source.left_out.n_files == n_files
        np.testing.assert_array_equal(samples, expected[: samples.shape[1]].T)
        assert len(expected) - samples.shape[1] == 1152 * n_files


@pytest.mark.parametrize("name", ["ms_adpcm.wav", "ima_adpcm.wav", "gsm.wav"])
@pytest.mark.parametrize("stated", [N, N - 100, 5, 10**6, 0])
def test_padding_of_the_last_block_is_no_sound(tmp_path, name, stated):
    """A block codec has the samples that its header states, if they end in the last block."""
    path = tmp_path / name
    data = CODINGS[name]()
    at = data.index(b"fact") + 8
    path.write_bytes(data[:at] + struct.pack("<I", stated) + data[at + 4 :])
    file = SoundFile(str(path))
    (block,) = struct.unpack_from("<H", data, data.index(b"fmt ") + 8 + 18)
    n_decoded = -(-N // block) * block
    is_stated = n_decoded - block < stated <= n_decoded
    assert file.n_samples == (stated if is_stated else n_decoded)
    memory = np.empty((40_000, file.channels), np.float32)
    assert file.read(memory) == file.n_samples
    assert file.damage == ""
    file.close()
