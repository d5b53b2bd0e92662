"""Sound files as ``--source PATH`` opens them, with libsndfile's decoders."""

import os
import random

import numpy as np
from fuzz_targets.riff import mutate as mutate_riff
from fuzz_targets.wav_files import FS, sound_bytes, wav_bytes
from fuzzing import Scratch, Target
from mutation import havoc

from spectrod.errors import InputError
from spectrod.settings import SourceConfig
from spectrod.source import open_source
from spectrod.source.base import PulledSource
from spectrod.source.wavfile import WavFileSource

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


def _by_libsndfile(form: str) -> bytes:
    import io  # noqa: PLC0415

    import soundfile  # noqa: PLC0415

    out = io.BytesIO()
    samples = np.sin(np.arange(200) / 9).astype(np.float32)
    soundfile.write(out, samples, FS, format=form)
    return out.getvalue()


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Change the chunks of RIFF files, and bytes of all others."""
    return mutate_riff(data, rng) if data[:4] in (b"RIFF", b"RF64") else havoc(data, rng)


TARGETS = {"sound_file": Target(check, seeds, mutate)}
