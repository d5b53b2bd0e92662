"""Times that recorders write: the bext and guan chunks of a WAV file, comments and names."""

import os
import random
import struct

import numpy as np
from fuzz_targets.wav_files import with_chunks
from fuzzing import Scratch, Target
from mutation import havoc, mutate_text

from spectrod.source.files.recorded_at import RecordedAt, recorded_at, recorded_at_name

_FS = 8000
_BEGIN_NS, _END_NS = -2_208_988_800 * 10**9, 7_258_118_400 * 10**9 + 2 * 10**9
"""1900 to 2199, and bext's tolerance beyond."""

_SEPARATOR = b"\xff"
_NAME_MAX_BYTES = 255
"""Of Linux's file systems."""

_PLAIN = struct.pack("<HHIIHH", 1, 1, _FS, 2 * _FS, 2, 16)
_SAMPLES = np.arange(10, dtype="<i2").tobytes()
_SCRATCH = Scratch()

_WORDS = (
    *(b"Timestamp: ", b"2026-05-01T04:30:00", b"Z", b"+23:59", b"-23:59", b"+02:00", b"-14:00"),
    *(b"0001-01-01T00:00:00", b"9999-12-31T23:59:59", b"1900-01-01", b"2199-12-31", b" ", b"T"),
    *(b"20260501", b"20260501_043000", b"20260501T043000.123456789", b"69F41B40", b".260501043000"),
    *(b"Recorded at 04:30:00 01/05/2026 (UTC)", b"(UTC+2)", b"(UTC-12:30)", b"24:00:00", b"60"),
    *(b"+00", b"-07", b"UTC+2", b"GMT-3", b"EST", b"PM", b"-birdnet-", b"_Z", b".x.wav", b" at "),
    *(b"2026-W18-5T04:30", b".1234567", b",5", b"\xc2\xb2", b"\xd9\xa1", b"\0", b"|", b"\r"),
)


def _check_found(found: RecordedAt | None) -> None:
    if found is not None:
        assert isinstance(found.utc_ns, int)
        assert _BEGIN_NS - 10**10 <= found.utc_ns <= _END_NS
        assert found.origin


def _check_chunk(name: bytes, data: bytes) -> None:
    chunks = [(b"fmt ", _PLAIN), (name, data), (b"data", _SAMPLES)]
    path = os.fspath(_SCRATCH.put("input.wav", with_chunks(b"RIFF", chunks)))
    _check_found(recorded_at(path, float(_FS)))


def check_bext(data: bytes) -> None:
    """Read the time in a BWF header."""
    _check_chunk(b"bext", data)


def check_guano(data: bytes) -> None:
    """Read the time in a GUANO header."""
    _check_chunk(b"guan", data)


def check_text(data: bytes) -> None:
    """Read the time in a file's name and in the comment of its header."""
    name, _, comment = data.partition(_SEPARATOR)
    _check_found(recorded_at_name(os.fsdecode(name[:_NAME_MAX_BYTES])))
    _check_found(recorded_at(os.devnull, float(_FS), comment.decode("utf-8", "replace")))


def bext_seeds() -> list[bytes]:
    """Make headers with and without the count of samples since midnight."""
    date = b"2026-05-0104:30:00"
    begin = (4 * 3600 + 1800) * _FS
    return [
        bytes(320) + date + struct.pack("<QH", begin + extra, 1) + bytes(254) for extra in (0, 77)
    ] + [b"a" * 320 + b"1999/12/3123-59-59" + bytes(8)]


def guano_seeds() -> list[bytes]:
    """Make texts as bat recorders write them."""
    head = b"GUANO|Version: 1.0\nMake: spectrod\n"
    times = (b"2026-05-01T04:30:00+02:00", b"2026-05-01 04:30:00.123456", b"2026-05-01T04:30:00Z")
    return [head + b"Timestamp: " + time + b"\nLength: 1.5\n" for time in times]


def text_seeds() -> list[bytes]:
    """Make names and comments of several recorders."""
    names = (
        b"20260501_043000.WAV",
        b"69F41B40.WAV",
        b"5678.260501043000.wav",
        b"a2026-05-01T04.wav",
        b"2024-03-19-birdnet-09:48:17.wav",
        b"S20210205T035946676+1000_E20210205T040446501+1000.wav",
    )
    comment = b"Recorded at 04:30:00 01/05/2026 (UTC+2) by AudioMoth"
    return [*names, *(name + _SEPARATOR + comment for name in names)]


def _mutate(data: bytes, rng: random.Random) -> bytes:
    return havoc(data, rng) if rng.random() < 0.3 else mutate_text(data, rng, _WORDS)


def _mutate_bext(data: bytes, rng: random.Random) -> bytes:
    if rng.random() < 0.3:
        return havoc(data, rng)
    # Only the 26 bytes of date, time and sample count matter.
    return data[:320] + havoc(data[320:346], rng) + data[346:]


TARGETS = {
    "bext": Target(check_bext, bext_seeds, _mutate_bext, max_bytes=1024),
    "guano": Target(check_guano, guano_seeds, _mutate, max_bytes=1024),
    "time_in_text": Target(check_text, text_seeds, _mutate, max_bytes=512),
}
