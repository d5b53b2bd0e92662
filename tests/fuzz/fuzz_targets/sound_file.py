"""Sound files as ``--source PATH`` opens them, and headers of all their formats."""

import os
import random
from contextlib import closing

import numpy as np
from fuzz_targets.riff import mutate as mutate_riff
from fuzz_targets.wav_files import FS, sound_bytes, wav_bytes
from fuzzing import Scratch, Target
from mutation import havoc, put_number

from spectrod.config.settings import SourceConfig
from spectrod.dsp.spectrum_rules import CHANNELS_MAX, FS_MAX_HZ, FS_MIN_HZ
from spectrod.lib.errors import InputError
from spectrod.source.base import PulledSource
from spectrod.source.files import soundstream
from spectrod.source.files.soundfile import SoundFile
from spectrod.source.files.wavfile import WavFileSource, plain_layout
from spectrod.source.open_source import open_source

_READ_SAMPLES = 4096
_READS_MAX = 8
"""A compressed file may last for hours; only the start of its stream is read."""

_SCRATCH = Scratch()


def check(data: bytes) -> None:
    """Open a file with the reader that the program selects, and read its start."""
    path = os.fspath(_SCRATCH.put("input.wav", data))
    try:
        source = open_source(SourceConfig(uri=path, pace="full"))
        if isinstance(source, WavFileSource):
            _read_in_place(source)
        else:
            _read_blocks(source)
    except InputError:
        return


def _read_blocks(source: PulledSource) -> None:
    blocks = source.blocks(_READ_SAMPLES)
    for _ in range(_READS_MAX):
        block = next(blocks, None)
        if block is None:
            break
        assert block.shape[0] == source.channels
        assert 0 < block.shape[1] <= _READ_SAMPLES
        assert block.dtype == np.float32
    blocks.close()


def _read_in_place(source: WavFileSource) -> None:
    reader = source.open_reader()
    try:
        for _ in range(_READS_MAX):
            block = reader.read(_READ_SAMPLES)
            if block is None:
                break
            assert block.samples.shape[0] == source.channels
            assert 0 < block.n_samples <= _READ_SAMPLES
    finally:
        reader.release()


def seeds() -> list[bytes]:
    """Make a file of each format that the writers know, and others of libsndfile's."""
    made = [wav_bytes("s16", 1), wav_bytes("s24", 2)]
    made += [sound_bytes(".flac", "s16", channels, 300, is_finished=True) for channels in (1, 2)]
    return made + [_by_libsndfile(form) for form in ("AIFF", "AU", "CAF", "OGG", "W64", "RF64")]


def _by_libsndfile(form: str, subtype: str | None = None) -> bytes:
    import io  # noqa: PLC0415

    import soundfile  # noqa: PLC0415

    out = io.BytesIO()
    samples = np.sin(np.arange(200) / 9).astype(np.float32)
    soundfile.write(out, samples, FS, subtype, format=form)
    return out.getvalue()


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Change the chunks of RIFF files, and bytes of all others."""
    return mutate_riff(data, rng) if data[:4] in (b"RIFF", b"RF64") else havoc(data, rng)


def check_open(data: bytes) -> None:
    """Open a file by its header and read its start and its end; ways to read it agree."""
    path = os.fspath(_SCRATCH.put("input.bin", data))
    layout = plain_layout(path)
    try:
        file = SoundFile(path)
    except InputError:
        assert layout is None
        return
    with closing(file):
        assert FS_MIN_HZ <= file.fs <= FS_MAX_HZ
        assert 1 <= file.channels <= CHANNELS_MAX
        assert 1 <= file.n_samples <= file.n_announced
        if layout is not None:
            found = layout.fs, layout.channels, layout.n_samples
            assert found == (file.fs, file.channels, file.n_samples)
            assert not file.damage
        out = np.zeros((min(_READ_SAMPLES, (1 << 18) // file.channels), file.channels), np.float32)
        try:
            assert 0 <= file.read(out) <= min(len(out), file.n_samples)
            if file.seeks_exactly:
                file.seek(file.n_samples - 1)
                assert file.read(out) <= 1
        except InputError:
            return


def check_stream(data: bytes) -> None:
    """Open bytes that come through a pipe, and read them to their end."""
    path = _SCRATCH.put("input.stream", b"x" + data)
    soundstream._opened.clear()
    fd = os.open(path, os.O_RDONLY)
    try:
        os.lseek(fd, 1, os.SEEK_SET)  # a file is read as a stream from there
        source = soundstream.open_stream(SourceConfig(uri="-"), fd, "full")
        if isinstance(source, bytes):
            assert data.startswith(source)
            return
        n_bytes = 0
        for item in source.blocks(_READ_SAMPLES):
            if isinstance(item, np.ndarray):
                assert item.shape[0] == source.channels
                n_bytes += item.size
        assert n_bytes <= len(data)
    except InputError:
        return
    finally:
        os.close(fd)


def open_seeds() -> list[bytes]:
    """Make a file of each container with each kind of coding."""
    pairs = [
        *((form, subtype) for form in ("WAV", "AIFF", "AU", "CAF", "W64") for subtype in _SUBTYPES),
        *(("WAVEX", "PCM_24"), ("RF64", "PCM_16"), ("WAV", "IMA_ADPCM"), ("WAV", "GSM610")),
        *(("W64", "MS_ADPCM"), ("AIFF", "IMA_ADPCM"), ("AU", "G721_32"), ("CAF", "ALAC_16")),
        *(("WAV", "NMS_ADPCM_16"), ("AIFF", "GSM610")),
    ]
    return [_by_libsndfile(form, subtype) for form, subtype in pairs]


def mutate_header(data: bytes, rng: random.Random) -> bytes:
    """Write odd numbers into the header, exchange or cut its bytes, or put bytes behind."""
    changed = bytearray(data)
    n_header = min(len(data), _HEADER_BYTES)
    match rng.randrange(6):
        case 0 | 1:
            put_number(changed, rng.randrange(0, n_header + 1, 2), rng)
        case 2:
            return havoc(data[:n_header], rng) + data[n_header:]
        case 3:
            del changed[rng.randrange(len(changed) + 1) :]
        case 4:
            changed += rng.choice((bytes(100), rng.randbytes(100), data[:n_header]))
        case _:
            at = rng.randrange(0, n_header + 1, 4)
            changed[at:at] = rng.choice(_CHUNKS)
    return bytes(changed)


_SUBTYPES = ("PCM_16", "PCM_24", "FLOAT", "ULAW")
_HEADER_BYTES = 128
_CHUNKS = (b"LIST", b"data", b"fmt ", b"SSND", b"COMM", b"ds64", b"\xf8\xff\xff\xff", b"ID3\4\0\0")

TARGETS = {
    "sound_file": Target(check, seeds, mutate),
    "sound_open": Target(check_open, open_seeds, mutate_header),
    "sound_stream": Target(check_stream, open_seeds, mutate_header),
}
