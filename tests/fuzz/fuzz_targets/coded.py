"""Streams whose lengths and ends are found before they are decoded; what a recorder left out."""

import io
import os
import random
import struct
import zlib
from functools import cache

import numpy as np
import soundfile
from fuzz_targets.riff import mutate as mutate_riff
from fuzz_targets.sound_recovery import mutate_flac, repair_flac
from fuzz_targets.wav_files import with_chunks
from fuzzing import Scratch, Target
from mutation import havoc

from spectrod.lib.errors import InputError
from spectrod.measure.levels.loudness import speaker_weights
from spectrod.source.files.flac_length import find_flac
from spectrod.source.files.mpeg import find_mpeg
from spectrod.source.files.ogg import ends_whole, find_ogg
from spectrod.source.files.soundfile import SoundFile
from spectrod.source.files.speakers import find_speakers
from spectrod.source.files.triggered import find_stretches

_SCRATCH = Scratch()
_READ_SAMPLES = 4096
_READS_MAX = 4
_FRAME_BYTES_MIN = 24
_SAMPLES_MAX = 1152
_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def _read(name: str, data: bytes) -> None:
    """Decode the start of a file."""
    try:
        file = SoundFile(os.fspath(_SCRATCH.put(name, data)))
    except InputError:
        return
    try:
        memory = np.empty((_READ_SAMPLES, file.channels), np.float32)
        n_read = 0
        for _ in range(_READS_MAX):
            n_read += (n := file.read(memory))
            if n < _READ_SAMPLES:
                break
        assert n_read <= file.n_samples
    finally:
        file.close()


def check_mpeg(data: bytes) -> None:
    """Count frames: there is room for all of them in the file, and for what is decoded in them."""
    stream = find_mpeg(io.BytesIO(data), 0, len(data))
    if stream is not None:
        assert 0 <= stream.begin <= stream.end <= len(data)
        assert stream.n_samples * _FRAME_BYTES_MIN <= _SAMPLES_MAX * len(data)
        assert "\n" not in stream.damage
    _read("input.mp3", data)


def check_ogg(data: bytes) -> None:
    """Walk pages: the links follow each other, and are in the file."""
    found = find_ogg(io.BytesIO(data), len(data))
    ends_whole(io.BytesIO(data), len(data))
    place = 0
    for begin, end in found.links:
        assert place == begin < end <= len(data)
        place = end
    _read("input.ogg", data)


def check_flac(data: bytes) -> None:
    """Find the length: the samples have room in the file, the header is that of the file."""
    stream = find_flac(io.BytesIO(data), len(data))
    if stream is not None:
        assert 42 <= stream.begin < stream.end <= len(data)
        assert stream.head[:18] == data[stream.begin - 42 :][:18]
        assert 0 < stream.n_samples < 1 << 36
    _read("input.flac", data)


def check_speakers(data: bytes) -> None:
    """Find speakers, which have weights."""
    found = find_speakers(os.fspath(_SCRATCH.put("input", data)))
    assert len(found) <= 18
    assert len(speaker_weights(found)) == len(found)


def check_triggered(data: bytes) -> None:
    """Find stretches: they follow each other, and are in the file."""
    try:
        found = find_stretches(os.fspath(_SCRATCH.put("input.wav", data)))
    except InputError:
        return
    if found is None:
        return
    assert found.length.min() > 0
    assert (found.first[1:] >= found.first[:-1] + found.length[:-1]).all()
    assert (found.at[1:] >= found.at[:-1] + found.length[:-1]).all()
    assert found.at[-1] + found.length[-1] <= found.n_stored <= len(data) // 2
    assert found.first[-1] + found.length[-1] <= found.n_samples
    pieces = list(found.pieces(100, found.n_samples))
    assert sum(n for *_, n in pieces) <= found.length.sum()


@cache
def _encoded(form: str, subtype: str | None = None, channels: int = 1, n: int = 6000) -> bytes:
    out = io.BytesIO()
    samples = np.random.default_rng(2).uniform(-0.1, 0.1, (n, channels))
    soundfile.write(out, samples, 48000, format=form, subtype=subtype)
    return out.getvalue()


def mpeg_seeds() -> list[bytes]:
    """Make a stream with the first frame that states its length, and without, with tags."""
    data = _encoded("MP3")
    bare = data[data.index(data[:2], 4) :]
    return [data, bare, b"ID3\4\0\0\0\0\0\x0a" + bytes(10) + bare + b"TAG" + bytes(125)]


def ogg_seeds() -> list[bytes]:
    """Make files of one stream and of two."""
    one = _encoded("OGG", "VORBIS", 1, 2000)
    return [one, one + one, _encoded("OGG", "OPUS", 2, 2000)]


def flac_seeds() -> list[bytes]:
    """Make files whose header does not state their length."""
    made = [_encoded("FLAC", "PCM_16", channels, 9000 // channels) for channels in (1, 2)]
    return [data[:21] + bytes((data[21] & 0xF0,)) + bytes(20) + data[42:] for data in made]


def speaker_seeds() -> list[bytes]:
    """Make the headers that name speakers."""
    fmt = struct.pack("<HHIIHHHHIH14x", 0xFFFE, 6, 48000, 576000, 12, 16, 22, 16, 0x3F, 1)
    comment = b"WAVEFORMATEXTENSIBLE_CHANNEL_MASK=0x60f"
    flac = _encoded("FLAC", "PCM_16", 6, 100)
    block = struct.pack("<III", 0, 1, len(comment)) + comment
    return [
        with_chunks(b"RIFF", [(b"fmt ", fmt), (b"data", bytes(24))]),
        flac[:42] + b"\4" + len(block).to_bytes(3, "big") + block + flac[42:],
        _encoded("OGG", "VORBIS", 6, 100)[:200],
        _encoded("OGG", "OPUS", 3, 100)[:200],
    ]


def triggered_seeds() -> list[bytes]:
    """Make a recording of AudioMoth with a block that stands for others."""
    text = b"by AudioMoth 1. Amplitude threshold was 512".ljust(424, b"\0")
    comment = b"INFOICMT" + struct.pack("<I", len(text)) + text
    fmt = struct.pack("<HHIIHH", 1, 1, 8000, 16000, 2, 16)
    block = b"\1\0" * 5 + b"\xff\xff" * 27 + bytes(448)
    samples = b"\5\1" * 12 + b"\5\1" * 256 + block + bytes(512) + b"\7\0" * 300
    return [with_chunks(b"RIFF", [(b"fmt ", fmt), (b"LIST", comment), (b"data", samples)])]


def mutate_pages(data: bytes, rng: random.Random) -> bytes:
    """Change, drop, repeat or exchange pages."""
    pages = [b"OggS" + page for page in data.split(b"OggS")[1:]]
    if not pages:
        return havoc(data, rng)
    at = rng.randrange(len(pages))
    match rng.randrange(5):
        case 0:
            pages[at] = havoc(pages[at][:27], rng) + pages[at][27:]
        case 1:
            del pages[at]
        case 2:
            pages.insert(rng.randrange(len(pages) + 1), pages[at])
        case 3:
            return data[: rng.randrange(len(data) + 1)]
        case _:
            pages[at] = havoc(pages[at], rng)
    changed = b"".join(pages)
    return repair_ogg(changed) if rng.random() < 0.7 else changed


def repair_ogg(data: bytes) -> bytes:
    """Correct the checksum of every page: from one mark to the next."""
    first, *pages = data.split(b"OggS")
    return first + b"".join(map(_checked, pages))


def _checked(page: bytes) -> bytes:
    if len(page) < 22:
        return b"OggS" + page
    whole = bytearray(b"OggS" + page)
    whole[22:26] = bytes(4)
    whole[22:26] = _crc(whole)
    return bytes(whole)


def _crc(data: bytes) -> bytes:
    """Compute Ogg's checksum: zlib's, with the bits of bytes reversed and nothing at its ends."""
    reflected = zlib.crc32(data.translate(_REVERSED), 0xFFFFFFFF) ^ 0xFFFFFFFF
    return reflected.to_bytes(4, "big").translate(_REVERSED)


def mutate_frames(data: bytes, rng: random.Random) -> bytes:
    """Change frame headers, drop or repeat frames, or cut the file."""
    sync = b"\xff\xfb" if b"\xff\xfb" in data else data[:2]
    frames = data.split(sync)
    at = rng.randrange(len(frames))
    match rng.randrange(4):
        case 0:
            frames[at] = havoc(frames[at][:2], rng) + frames[at][2:]
        case 1:
            frames.insert(at, frames[rng.randrange(len(frames))])
        case 2:
            del frames[at]
        case _:
            return havoc(data, rng)[: rng.randrange(len(data) + 1)]
    return sync.join(frames)


TARGETS = {
    "mpeg": Target(check_mpeg, mpeg_seeds, mutate_frames),
    "ogg": Target(check_ogg, ogg_seeds, mutate_pages, repair_ogg),
    "flac_length": Target(check_flac, flac_seeds, mutate_flac, repair_flac, 1 << 15),
    "triggered": Target(check_triggered, triggered_seeds, mutate_riff),
    "speakers": Target(check_speakers, speaker_seeds, havoc),
}
