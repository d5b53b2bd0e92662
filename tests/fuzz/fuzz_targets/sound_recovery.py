"""Sound files that a killed program left: recovered or left alone."""

import os
import random
import struct
from functools import cache

import numpy as np
import soundfile
from fuzz_targets.riff import SAMPLE_BYTES
from fuzz_targets.wav_files import sound_bytes
from fuzzing import Scratch, Target
from mutation import havoc, mutate_text, put_number

from spectrod.formats.sound import recover
from spectrod.formats.sound.notes import boot_id
from spectrod.formats.sound.wav_header import HEADER_BYTES
from spectrod.lib.errors import InputError, StorageError
from spectrod.source.files.wavfile import plain_layout

_SCRATCH = Scratch()
_FLAC_SYNC = b"\xff\xf8"
_NUMBERS_AT = (4, 16, 20, 28, 36, 52, 56, 58, 60, 64, 68, 70, 72, 76, 80, HEADER_BYTES - 4)
"""Sizes, ds64, and the fields of fmt in our header."""

_GUANO_AT = 700
_WORDS = (b"Length: ", b"spectrod|Boot: ", b"GUANO|Version: 1.0", b"\n", b"\xff", b": ", b"Length")


def _recover(suffix: str, data: bytes) -> tuple[str, int] | None:
    """Recover a file; return None if it was refused, after a check that it is unchanged."""
    whole = f"input{suffix}"
    _SCRATCH.clear(whole)
    part = _SCRATCH.create(f"{whole}.part", data)
    try:
        recovered = recover(part)
    except (InputError, StorageError):
        assert part.read_bytes() == data
        assert not (_SCRATCH.folder / whole).exists()
        return None
    assert recovered.path == _SCRATCH.folder / whole
    assert not part.exists()
    assert 0 <= recovered.cut_bytes < len(data)
    assert recovered.n_samples >= 1
    return os.fspath(recovered.path), recovered.n_samples


def check_wav(data: bytes) -> None:
    """Recover a WAV file; its samples are unchanged, and readers find them."""
    found = _recover(".wav", data)
    if found is None:
        return
    path, n_samples = found
    layout = plain_layout(path)
    assert layout is not None
    assert layout.n_samples == n_samples
    n_bytes = n_samples * layout.channels * SAMPLE_BYTES[layout.sample_format]
    with open(path, "rb") as file:  # noqa: PTH123 - a str is at hand
        whole = file.read()
    assert layout.begin == HEADER_BYTES
    assert whole[HEADER_BYTES : HEADER_BYTES + n_bytes] == data[HEADER_BYTES:][:n_bytes]
    assert len(whole) == HEADER_BYTES + n_bytes + n_bytes % 2


def check_flac(data: bytes) -> None:
    """Recover a FLAC file; kept data are unchanged, and the header has their length."""
    found = _recover(".flac", data)
    if found is None:
        return
    path, n_samples = found
    with open(path, "rb") as file:  # noqa: PTH123 - a str is at hand
        whole = file.read()
    assert whole[:18] == data[:18]
    assert whole[42:] == data[42 : len(whole)]
    assert int.from_bytes(whole[18:26], "big") & (1 << 36) - 1 == n_samples & (1 << 36) - 1


def wav_seeds() -> list[bytes]:
    """Make the file of a killed writer, whose headers give less than its length.

    Of one before the last start of the machine, the length in the header counts.
    """
    forms = (("s16", 1), ("s24", 1), ("s24", 3), ("f32", 2))
    made = [sound_bytes(".wav", subtype, n, 40, is_finished=False) for subtype, n in forms]
    other_boot = made[0].replace(boot_id().encode(), b"0" * len(boot_id()))
    assert other_boot != made[0]
    return [*made, other_boot]


def flac_seeds() -> list[bytes]:
    """Make the file of a killed writer, of sound and of silence, with one block to three."""
    made = [sound_bytes(".flac", "s16", 1, 300, is_finished=True)]
    made += [
        sound_bytes(".flac", subtype, n, blocks * 4096, is_finished=False, silent=True)
        for subtype, n, blocks in (("s16", 1, 3), ("s24", 2, 2))
    ]
    return [*made, _small_blocks()]


def _small_blocks() -> bytes:
    """Make a stream of many small blocks."""
    import io  # noqa: PLC0415

    out = io.BytesIO()
    samples = np.random.default_rng(1).integers(-99, 99, 4096 * 2, dtype=np.int16)
    soundfile.write(out, samples, 8000, format="FLAC", subtype="PCM_16")
    return out.getvalue()


def mutate_wav(data: bytes, rng: random.Random) -> bytes:
    """Change the numbers of the header, its texts, or the length of the file."""
    changed = bytearray(data)
    match rng.randrange(5):
        case 0 | 1:
            put_number(changed, rng.choice(_NUMBERS_AT), rng)
        case 2 if len(data) >= HEADER_BYTES:
            text = mutate_text(data[_GUANO_AT : HEADER_BYTES - 8], rng, _WORDS)
            room = HEADER_BYTES - 8 - _GUANO_AT
            changed[_GUANO_AT : HEADER_BYTES - 8] = text[:room].ljust(room, b"\n")
        case 3:
            del changed[rng.randrange(len(changed) + 1) :]
        case _:
            return havoc(data, rng)
    return bytes(changed)


def mutate_flac(data: bytes, rng: random.Random) -> bytes:
    """Change blocks: their headers and order, mostly with right checksums."""
    blocks = data.split(_FLAC_SYNC)
    at = rng.randrange(len(blocks))
    match rng.randrange(6):
        case 0:
            blocks.insert(rng.randrange(1, len(blocks) + 1), blocks[at])
        case 1 if len(blocks) > 1:
            del blocks[max(1, at)]
        case 2:
            blocks[at] = havoc(blocks[at], rng)
        case 3 if at:
            blocks[at] = havoc(blocks[at][:12], rng) + blocks[at][12:]
        case 4:
            start = bytearray(data[:42])
            put_number(start, rng.choice((8, 10, 12, 14, 18, 20, 22)), rng)
            return bytes(start) + data[42:]
        case _:
            return data[: rng.randrange(len(data) + 1)]
    changed = _FLAC_SYNC.join(blocks)
    return repair_flac(changed) if rng.random() < 0.7 else changed


def repair_flac(data: bytes) -> bytes:
    """Correct both checksums of every block: from one sync code to the next."""
    begin, *blocks = data.split(_FLAC_SYNC)
    return begin + b"".join(_checked(_FLAC_SYNC + block) for block in blocks)


def _checked(block: bytes) -> bytes:
    if len(block) < 8:
        return block
    end = _head_end(block)
    if end + 3 > len(block):
        return block
    headed = block[:end] + bytes([_crc(block[:end], 8, 0x07)]) + block[end + 1 : -2]
    return headed + struct.pack(">H", _crc(headed, 16, 0x8005))


def _head_end(block: bytes) -> int:
    """Find the position of the checksum in a block's header (RFC 9639, section 9.1)."""
    n_ones = 8 - (block[4] ^ 0xFF).bit_length()
    n_more = {6: 1, 7: 2}.get(block[2] >> 4, 0) + {12: 1, 13: 2, 14: 2}.get(block[2] & 15, 0)
    return 4 + max(1, n_ones) + n_more


def _crc(data: bytes, bits: int, polynomial: int) -> int:
    """Compute a checksum of 8 or 16 bits, of halves together; zeros in front change none."""
    n_bytes = bits // 8
    n_symbols = 1 << max(0, -(-len(data) // n_bytes) - 1).bit_length()
    symbols = np.frombuffer(data.rjust(n_symbols * n_bytes, b"\0"), f">u{n_bytes}")
    level = 0
    while len(symbols) > 1:
        symbols = _shifted(bits, polynomial, level)[symbols[::2]] ^ symbols[1::2]
        level += 1
    return int(_shifted(bits, polynomial, 0)[symbols[0]])


@cache
def _shifted(bits: int, polynomial: int, level: int) -> np.ndarray:
    """Return the remainder of each symbol before ``2^level`` others."""
    if level:
        half = _shifted(bits, polynomial, level - 1)
        return half[half]
    top, mask = 1 << bits - 1, (1 << bits) - 1
    crc = np.arange(1 << bits)
    for _ in range(bits):
        crc = np.where(crc & top, crc << 1 ^ polynomial, crc << 1) & mask
    return crc.astype(f"u{bits // 8}")


def repair_wav(data: bytes) -> bytes:
    """Restore the marks by which our header is recognised."""
    if len(data) < HEADER_BYTES:
        return data
    fixed = bytearray(data)
    fixed[8:12], fixed[48:52], fixed[HEADER_BYTES - 8 : HEADER_BYTES - 4] = (
        b"WAVE",
        b"fmt ",
        b"data",
    )
    if bytes(fixed[:4]) not in (b"RIFF", b"RF64"):
        fixed[:4] = b"RIFF"
    return bytes(fixed)


TARGETS = {
    "wav_recovery": Target(check_wav, wav_seeds, mutate_wav, repair_wav),
    "flac_recovery": Target(check_flac, flac_seeds, mutate_flac, repair_flac, 4096),
}
