"""Small sound files as bytes, made by the project's writer or assembled from chunks."""

import struct
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from spectrod.dsp.blocks import Block
from spectrod.formats.sound import SoundWriter

FS = 8000
BEGIN_UTC_NS = 1_777_609_800_123_456_000


def wav_bytes(subtype: str = "s16", channels: int = 1, n: int = 50) -> bytes:
    """Make a WAV file as ``spectrod record`` does."""
    return sound_bytes(".wav", subtype, channels, n, is_finished=True)


def sound_bytes(
    suffix: str, subtype: str, channels: int, n: int, *, is_finished: bool, silent: bool = False
) -> bytes:
    """Make a sound file, or the remains of one whose writer was killed."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / f"input{suffix}"
        writer = SoundWriter(path, FS, channels, subtype)
        rng = np.random.default_rng(n)
        samples = rng.integers(-(1 << 15), 1 << 15, (channels, n)).astype(np.float32) / (1 << 15)
        writer.write(Block(samples * (not silent), 0, BEGIN_UTC_NS, BEGIN_UTC_NS))
        writer.flush()
        if is_finished:
            writer.finish()
            return path.read_bytes()
        left = path.with_name(path.name + ".part").read_bytes()
        writer.abort()
        return left


def with_chunks(
    form: bytes, chunks: Sequence[tuple[bytes, bytes]], data_size: int | None = None
) -> bytes:
    """Assemble a WAV or RF64 file, with a right or a wrong size of ``data``."""
    parts = []
    for name, content in chunks:
        is_other = name == b"data" and data_size is not None
        size = data_size if is_other else len(content)
        parts.append(struct.pack("<4sI", name, size) + content + bytes(len(content) % 2))
    packed = b"".join(parts)
    return struct.pack("<4sI4s", form, len(packed) + 4, b"WAVE") + packed
