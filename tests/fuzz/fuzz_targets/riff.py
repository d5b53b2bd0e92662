"""WAV and RF64: the chunks, and the samples read without libsndfile."""

import os
import random
import struct
from collections.abc import Iterator

import numpy as np
from fuzz_targets.wav_files import wav_bytes, with_chunks
from fuzzing import LARGE_BYTES, Scratch, Target
from mutation import ODD_INTEGERS, havoc

from spectrod.lib.errors import InputError
from spectrod.source.files.riff import read_chunks
from spectrod.source.files.wavfile import WavFileSource, plain_layout

_NAMES = (b"fmt ", b"data", b"ds64", b"bext", b"guan", b"LIST", b"fact", b"JUNK")
_WANTED = (b"fmt ", b"bext", b"guan", b"LIST", b"fact")
_CHUNK_MAX_BYTES = 1 << 20
_READ_SAMPLES = 4096
SAMPLE_BYTES = {"int16": 2, "int24": 3, "int32": 4, "float32": 4}
_SCRATCH = Scratch()


def check(data: bytes) -> None:
    """Find chunks and samples; all of them must be in the file."""
    path = os.fspath(_SCRATCH.put("input.wav", data))
    for content in read_chunks(path, _WANTED).values():
        assert len(content) <= min(len(data), _CHUNK_MAX_BYTES)
    layout = plain_layout(path)
    if layout is None:
        return
    n_bytes = layout.n_samples * layout.channels * SAMPLE_BYTES[layout.sample_format]
    assert layout.fs > 0.0
    assert 0 < n_bytes <= len(data) - layout.begin
    try:
        n_read = _read_all(WavFileSource(path, layout))
    except InputError:
        return
    assert n_read == layout.n_samples


def _read_all(source: WavFileSource) -> int:
    """Read a file as the analysis does; return the samples per channel."""
    reader, n_read = source.open_reader(), 0
    try:
        while (block := reader.read(_READ_SAMPLES)) is not None:
            n_read += block.n_samples
    finally:
        reader.release()
    return n_read


def seeds() -> list[bytes]:
    """Make files of each element type, RF64 among them, by our writer and by hand."""
    made = [wav_bytes(subtype, channels) for subtype in ("s16", "f32") for channels in (1, 3)]
    plain = struct.pack("<HHIIHH", 1, 1, 8000, 16000, 2, 16)
    samples = np.arange(20, dtype="<i2").tobytes()
    sizes = struct.pack("<QQQI", 1000, len(samples), 20, 0)
    made.append(with_chunks(b"RIFF", [(b"fmt ", plain), (b"data", samples)]))
    made.append(
        with_chunks(b"RF64", [(b"ds64", sizes), (b"fmt ", plain), (b"data", samples)], 0xFFFFFFFF)
    )
    texts = b"INFOICMT" + struct.pack("<I", 8) + b"comment\0"
    made.append(with_chunks(b"RIFF", [(b"LIST", texts), (b"fmt ", plain), (b"data", samples)]))
    return made


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Change the list of chunks: sizes, names, order, the numbers in them."""
    chunks = _split(data[12:])
    if not chunks or rng.random() < 0.2:
        return havoc(data, rng)
    form, at = data[:12], rng.randrange(len(chunks))
    name, size, content = chunks[at]
    match rng.randrange(7):
        case 0:
            chunks[at] = name, rng.choice(ODD_INTEGERS) & 0xFFFFFFFF, content
        case 1:
            chunks[at] = rng.choice(_NAMES), size, content
        case 2:
            chunks[at] = name, size, havoc(content, rng)
        case 3:
            changed = havoc(content, rng)
            chunks[at] = name, len(changed), changed
        case 4:
            chunks.insert(rng.randrange(len(chunks) + 1), chunks[at])
        case 5:
            del chunks[at]
        case _:
            form = rng.choice((b"RIFF", b"RF64", b"BW64")) + form[4:]
    packed = (struct.pack("<4sI", name[:4], size) + content for name, size, content in chunks)
    return form + b"".join(packed)


def _split(data: bytes) -> list[tuple[bytes, int, bytes]]:
    """Read chunks as far as they go, each with its existing content, padding included."""
    chunks, place = [], 0
    while place + 8 <= len(data) and len(chunks) < 300:
        name, size = struct.unpack_from("<4sI", data, place)
        end = min(len(data), place + 8 + size + size % 2)
        chunks.append((name, size, data[place + 8 : end]))
        place = end
    return chunks


def _claims() -> Iterator[bytes]:
    """Make chunks that claim to be large, and very many small ones."""
    for name in _NAMES:
        for size in (1 << 20, (1 << 20) + 1, 1 << 30, 0xFFFFFFF0):
            yield b"RF64\xff\xff\xff\xffWAVE" + name + struct.pack("<I", size) + bytes(500)
    yield with_chunks(b"RIFF", [(b"bext", b"")] * (LARGE_BYTES // 8))
    yield with_chunks(b"RIFF", [(b"LIST", b"INFO")] * (LARGE_BYTES // 12))


TARGETS = {"riff": Target(check, seeds, mutate, large=_claims)}
