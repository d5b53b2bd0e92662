"""A file that libsndfile does not decode is named by what it is, with the way to read it."""

import re
import struct

import pytest

from spectrod.lib.errors import InputError
from spectrod.source.files.foreign import foreign_form
from spectrod.source.files.soundfile import SoundFile

HEADS = {
    "MP4, M4A or another form of QuickTime": [
        b"\0\0\0\x1cftypM4A \0\0\2\0",
        b"\0\0\0\x14ftypqt  ",
        b"\0\0\0\x08wide\0\0\x10\0mdat",
        b"\0\0\x10\0moov",
    ],
    "WMA or ASF": [bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c")],
    "Matroska or WebM": [b"\x1a\x45\xdf\xa3\x9fB\x86\x81\1"],
    "AAC": [b"\xff\xf1\x50\x80", b"\xff\xf9\x50\x80", b"ADIF", b"\x56\xe0\x20"],
    "AMR": [b"#!AMR\n", b"#!AMR-WB\n"],
    "AC-3 or E-AC-3": [b"\x0b\x77\x60\xd3"],
    "DTS": [b"\x7f\xfe\x80\x01\xfc", b"\xff\x1f\x00\xe8\xf1\x07"],
    "DSD (DSF)": [b"DSD \x1c\0\0\0"],
    "DSD (DSDIFF)": [b"FRM8" + bytes(8) + b"DSD "],
    "WavPack": [b"wvpk\x20\1\0\0"],
    "Monkey's Audio (APE)": [b"MAC \x96\x0f"],
    "True Audio (TTA)": [b"TTA1\1\0"],
    "TAK": [b"tBaK"],
    "OptimFROG": [b"OFR \x0c"],
    "Shorten": [b"ajkg\2"],
    "Musepack": [b"MPCKSH", b"MP+\x07"],
    "Ogg with Speex": [b"OggS\0\2" + bytes(22) + b"Speex   1.2"],
    "Ogg with FLAC": [b"OggS\0\2" + bytes(22) + b"\x7fFLAC\1"],
    "Ogg without a stream of sound": [b"OggS\0\2" + bytes(22) + b"\x80theora"],
    "RealAudio or RealMedia": [b".ra\xfd\0\4", b".RMF\0\0"],
    "Flash video": [b"FLV\1\4"],
    "WAV with AAC, WMA, AC-3 or DTS": [
        b"RIFF\0\1\0\0WAVEfmt \x12\0\0\0"
        + struct.pack("<HHIIHHH4sI", tag, 2, 48000, 16000, 4, 16, 0, b"data", 400)
        for tag in (0xFF, 0x1610, 0x161, 0x2000, 0x2001)
    ],
    "AVI": [b"RIFF\0\1\0\0AVI LIST"],
    "an MPEG transport stream": [3 * (b"\x47" + bytes(187))],
    "an MPEG program stream": [b"\0\0\1\xba\x44"],
}
CASES = [(name, head) for name, heads in HEADS.items() for head in heads]


@pytest.mark.parametrize(("name", "head"), CASES)
def test_files_of_other_decoders_are_named(tmp_path, name, head):
    """The line says what the file is, and how FFmpeg hands its samples to spectrod."""
    path = tmp_path / "a talk.m4a"
    path.write_bytes(head + bytes(500))
    command = f"ffmpeg -v error -i '{path}' -f f32le -ac 2 -ar 48000 - | spectrod record - "
    message = f"{path}: {name}, which spectrod does not decode; FFmpeg does: {command}"
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        SoundFile(str(path))
    assert "\n" not in str(caught.value)


def test_a_tag_in_front_hides_nothing(tmp_path):
    """A file that begins with a tag of ID3v2 is recognised by what follows."""
    path = tmp_path / "x.aac"
    path.write_bytes(b"ID3\4\0\0\0\0\2\0" + bytes(256) + b"\xff\xf1\x50\x80" + bytes(500))
    with pytest.raises(InputError, match=r"x\.aac: AAC, which spectrod does not decode"):
        SoundFile(str(path))


def test_an_unknown_coding_of_a_known_container_is_named(tmp_path):
    """A CAF file with AAC gets the same line as an MP4 file."""
    path = tmp_path / "x.caf"
    form = struct.pack(">d4sIIIII", 44100.0, b"aac ", 0, 0, 1024, 2, 0)
    data = struct.pack(">4sqI", b"data", 104, 0) + bytes(100)
    path.write_bytes(b"caff\0\1\0\0" + struct.pack(">4sq", b"desc", 32) + form + data)
    with pytest.raises(InputError, match=r"x\.caf: sound in a coding that spectrod does not"):
        SoundFile(str(path))


@pytest.mark.parametrize("head", [b"", b"not a sound", b"\x89PNG\r\n\x1a\n", b"RIFF\0\0\0\0WAVE"])
def test_nothing_else_is_named(head):
    """Texts, pictures and headers of formats that are read have no such name."""
    assert foreign_form(head) == ""
