"""The weights of a loudness are those of the speakers that a file names."""

import io
import struct

import numpy as np
import pytest
import soundfile

from spectrod.config.config import SourceConfig
from spectrod.lib.errors import ConfigError
from spectrod.measure.levels import LevelMeter
from spectrod.measure.levels.loudness import channel_weights, speaker_weights
from spectrod.source.files.speakers import find_speakers
from spectrod.source.open_source import open_source

FS = 48000
S = 1.41
MASKS = {
    "mono": (0x4, (1,)),
    "stereo": (0x3, (1, 1)),
    "2.1": (0xB, (1, 1, 0)),
    "4.0": (0x107, (1, 1, 1, S)),
    "quad": (0x33, (1, 1, S, S)),
    "quad of sides": (0x603, (1, 1, S, S)),
    "4.1": (0x10F, (1, 1, 1, 0, S)),
    "5.0": (0x37, (1, 1, 1, S, S)),
    "5.0 of sides": (0x607, (1, 1, 1, S, S)),
    "5.1": (0x3F, (1, 1, 1, 0, S, S)),
    "5.1 of sides": (0x60F, (1, 1, 1, 0, S, S)),
    "6.0": (0x707, (1, 1, 1, 1, S, S)),
    "6.1": (0x70F, (1, 1, 1, 0, 1, S, S)),
    "7.1": (0x63F, (1, 1, 1, 0, 1, 1, S, S)),
    "7.1 wide": (0xFF, (1, 1, 1, 0, S, S, 1, 1)),
    "5.1.2": (0x503F, (1, 1, 1, 0, S, S, 1, 1)),
}
NOISE = np.random.default_rng(4).uniform(-0.1, 0.1, (FS, 8)).astype(np.float32)


def wav(channels, mask):
    """Make a WAV file of noise with a channel mask."""
    file = io.BytesIO()
    soundfile.write(file, NOISE[:, :channels], FS, format="WAVEX", subtype="FLOAT")
    data = bytearray(file.getvalue())
    at = data.index(b"fmt ") + 8
    data[at + 20 : at + 24] = struct.pack("<I", mask)
    return bytes(data)


def flac(channels, comment=b""):
    """Make a FLAC file, with a comment before its other metadata."""
    file = io.BytesIO()
    soundfile.write(file, NOISE[:, :channels], FS, format="FLAC")
    data = file.getvalue()
    if not comment:
        return data
    block = struct.pack("<I", 0) + struct.pack("<II", 1, len(comment)) + comment
    return data[:42] + bytes((4,)) + len(block).to_bytes(3, "big") + block + data[42:]


def ogg(channels, subtype):
    file = io.BytesIO()
    soundfile.write(file, NOISE[:, :channels], FS, format="OGG", subtype=subtype)
    return file.getvalue()


def loudness(samples, **more):
    """Measure the loudness of (n, channels) samples."""
    meter = LevelMeter(FS, samples.shape[1], quantities=["LUFS_I"], interval_s=0.5, **more)
    meter.push(samples.T.astype(np.float64))
    meter.finish()
    return meter.summary().values[0, 0]


@pytest.mark.parametrize("name", MASKS)
def test_weights_follow_the_mask(tmp_path, name):
    """The source of a WAV file names its speakers, which have the weights of BS.1770."""
    mask, expected = MASKS[name]
    path = tmp_path / "x.wav"
    path.write_bytes(wav(len(expected), mask))
    for pace in ("full", "realtime"):
        source = open_source(SourceConfig(uri=str(path)), pace)
        assert channel_weights(len(expected), None, source.speakers) == expected
    source = open_source(SourceConfig(uri=str(tmp_path)), "full")
    assert speaker_weights(source.speakers) == expected


def test_low_frequencies_are_left_out(tmp_path):
    """A 4.1 file is as loud with any sound in its low-frequency channel as without."""
    path = tmp_path / "x.wav"
    path.write_bytes(wav(5, 0x10F))
    source = open_source(SourceConfig(uri=str(path)), "full")
    samples = NOISE[:, :5].copy()
    loud = loudness(samples, speakers=source.speakers)
    samples[:, 3] *= 10
    assert loudness(samples, speakers=source.speakers) == loud
    others = loudness(samples[:, [0, 1, 2, 4]], channel_weights=[1, 1, 1, S])
    assert loud == pytest.approx(others, abs=1e-9)
    assert loudness(samples) > loud + 10  # five channels without speakers


@pytest.mark.parametrize(
    ("channels", "expected"),
    [
        (3, (1, 1, 1)),
        (4, (1, 1, S, S)),
        (5, (1, 1, 1, S, S)),
        (6, (1, 1, 1, 0, S, S)),
        (7, (1, 1, 1, 0, 1, S, S)),
        (8, (1, 1, 1, 0, 1, 1, S, S)),
    ],
)
def test_channels_of_flac(tmp_path, channels, expected):
    """FLAC has an order for each number of channels; a mask in its comment counts before it."""
    path = tmp_path / "x.flac"
    path.write_bytes(flac(channels))
    assert speaker_weights(find_speakers(str(path))) == expected
    path.write_bytes(flac(channels, b"title=x"))
    assert speaker_weights(find_speakers(str(path))) == expected
    path.write_bytes(flac(5, b"waveformatextensible_channel_mask=0x10f"))
    assert find_speakers(str(path)) == ("FL", "FR", "FC", "LFE", "BC")
    path.write_bytes(b"ID3\4\0\0\0\0\0\x0a" + bytes(10) + flac(channels))
    assert speaker_weights(find_speakers(str(path))) == expected


@pytest.mark.parametrize("subtype", ["VORBIS", "OPUS"])
@pytest.mark.parametrize(
    ("channels", "expected"),
    [(3, (1, 1, 1)), (5, (1, 1, 1, S, S)), (6, (1, 1, 1, S, S, 0)), (7, (1, 1, 1, S, S, 1, 0))],
)
def test_channels_of_ogg(tmp_path, subtype, channels, expected):
    """Vorbis and Opus have the centre second and low frequencies last."""
    path = tmp_path / "x.ogg"
    path.write_bytes(ogg(channels, subtype))
    found = find_speakers(str(path))
    assert found[1] == "FC"
    assert speaker_weights(found) == expected


def test_sound_fields_have_no_speakers(tmp_path):
    """Channels of Opus that are a sound field are no speakers."""
    data = ogg(6, "OPUS")
    at = data.index(b"OpusHead") + 18
    (tmp_path / "x.opus").write_bytes(data[:at] + b"\2" + data[at + 1 :])
    assert find_speakers(str(tmp_path / "x.opus")) == ()


@pytest.mark.parametrize("mask", [0, 0x3, 0x80000000])
def test_a_mask_of_too_few_bits_names_nothing(tmp_path, mask):
    """Where not every channel has a speaker, the number of channels counts."""
    (tmp_path / "x.wav").write_bytes(wav(6, mask))
    assert find_speakers(str(tmp_path / "x.wav")) == ()
    (tmp_path / "x.wav").write_bytes(wav(2, 0x3F))
    assert find_speakers(str(tmp_path / "x.wav")) == ("FL", "FR")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"RIFF",
        b"fLaC",
        b"OggS",
        b"OggS" + bytes(22) + b"\xff",
        b"OggS" + bytes(22) + b"\1\x1e\1vorbis",
        b"fLaC" + bytes(100),
        b"fLaC" + b"\1\0\0\0" * 500,
        b"RIFF\0\0\0\0WAVEfmt \x18\0\0\0\xfe\xff\xff\xff" + bytes(20),
    ],
)
def test_headers_that_end_early_name_nothing(tmp_path, data):
    """A header that is cut, or claims anything, names no more speakers than it has channels."""
    (tmp_path / "x").write_bytes(data)
    assert len(find_speakers(str(tmp_path / "x"))) <= 1
    assert find_speakers(str(tmp_path / "y")) == ()


def test_selected_channels_keep_their_speakers(tmp_path):
    """A selection has the speakers of its channels, in its order."""
    (tmp_path / "x.wav").write_bytes(wav(6, 0x3F))
    settings = SourceConfig(uri=str(tmp_path / "x.wav"), select=(3, 0, 5))
    assert open_source(settings, "full").speakers == ("LFE", "FL", "BR")
    assert open_source(SourceConfig(uri="signal:sine,1000,-20"), "full").speakers == ()


def test_weights_without_speakers():
    """Without speakers some numbers of channels have weights; given weights always count."""
    assert channel_weights(6) == (1, 1, 1, 0, S, S)
    assert channel_weights(2, [0.5, 2], ("FL", "LFE")) == (0.5, 2)
    with pytest.raises(ConfigError, match=r"channels=4: .* for files that name the speakers"):
        channel_weights(4)
    with pytest.raises(ConfigError, match="speakers: 2 values for 3 channels"):
        channel_weights(3, None, ("FL", "FR"))
