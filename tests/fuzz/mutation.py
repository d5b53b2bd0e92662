"""Seeded changes of inputs: of bytes, of numbers among them, of JSON, of text."""

import json
import random
import re
from collections.abc import Sequence
from typing import Any

ODD_INTEGERS: Sequence[int] = (
    *(0, 1, 2, 3, 7, 8, 15, 16, 17, 64, 127, 128, 255, 256, 4095, 4096, 32767, 32768, 65535, 65536),
    *(2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1),
)

ODD_VALUES: Sequence[Any] = (
    *(0, -1, 1, 2, 3, 64, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**400),
    *(-0.0, 0.5, 1e-320, 1e-9, 1e15, 1e308, float("inf"), float("nan")),
    *("", "a" * 300, "\0", "\N{GRINNING FACE}", "\ud800", "/", "..", "<f4", "<f8", "|O", ">f4"),
    *("\x1b[31m", "a\nb", "nan", "1e999", "-1", "0x10", "9" * 5000),
    *(None, True, False, [], {}, [[]], [0], [33], [33, 1], [2**63], [-1], ["0"], {"a": {"a": []}}),
)
"""Values for the fields of a JSON object. Texts may be lone surrogates: bytes that are no UTF-8."""

_DEEP = 5_000


def havoc(data: bytes, rng: random.Random) -> bytes:
    """Change some bytes: set, flip, insert, delete, repeat, or write an odd number."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(changed) + 1)
        end = min(len(changed), place + rng.choice((1, 1, 2, 4, 8, 16, 64)))
        match rng.randrange(6):
            case 0:
                changed[place:end] = rng.randbytes(end - place)
            case 1 if place < len(changed):
                changed[place] ^= 1 << rng.randrange(8)
            case 2:
                changed[place:place] = rng.choice((rng.randbytes(4), bytes(8), b"\xff" * 4))
            case 3:
                del changed[place:end]
            case 4:
                changed[place:place] = changed[place:end] * rng.choice((1, 2, 16))
            case _:
                put_number(changed, place, rng)
    return bytes(changed)


def put_number(data: bytearray, place: int, rng: random.Random) -> None:
    """Write an odd number of 1 to 8 bytes at an offset."""
    n_bytes = rng.choice((1, 2, 4, 8))
    number = rng.choice(ODD_INTEGERS) & (1 << 8 * n_bytes) - 1
    data[place : place + n_bytes] = number.to_bytes(n_bytes, rng.choice(("little", "big")))


_STRUCTURES = (
    *(b"GCOL", b"OHDR", b"TREE", b"BTHD", b"BTLF", b"FRHP", b"FHDB", b"FADB", b"EAHD", b"SNOD"),
    *(b"HEAP", b"FAHD", b"OCHK"),
)
"""Signatures of HDF5's structures."""


def mutate_hdf5(data: bytes, rng: random.Random) -> bytes:
    """Change sizes, addresses and counts behind the signatures of HDF5's structures, or bytes."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        mark = rng.choice(_STRUCTURES)
        places = [found.start() for found in re.finditer(mark, changed)]
        if not places or rng.random() < 0.3:
            changed = bytearray(havoc(bytes(changed), rng))
        else:
            put_number(changed, rng.choice(places) + len(mark) + rng.randrange(64), rng)
    return bytes(changed)


def mutate_json(text: bytes, rng: random.Random) -> bytes:
    """Change one member of a JSON object or of a nested one; leave other bytes as they are."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(value, dict) or not value:
        return text
    _change(_some_table(value, rng), rng)
    written = json.dumps(value, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
    if rng.random() < 0.001:
        deep = rng.choice((b"[", b'{"a":')) * rng.randrange(_DEEP)
        written = written[:-1] + b',"deep":' + deep
    return written


def _some_table(value: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Choose the object, or a nested one that is not empty."""
    inside = [one for one in value.values() if isinstance(one, dict) and one]
    if inside and rng.random() < 0.6:
        return _some_table(rng.choice(inside), rng)
    return value


def _change(table: dict[str, Any], rng: random.Random) -> None:
    key = rng.choice(list(table))
    old = table[key]
    match rng.randrange(8):
        case 0:
            del table[key]
        case 1:
            table[str(rng.choice(ODD_VALUES))] = rng.choice(ODD_VALUES)
        case 2:
            table[key] = table[rng.choice(list(table))]
        case 3 if isinstance(old, list):
            table[key] = [*old, *old] if rng.random() < 0.5 else old[1:]
        case 4 if isinstance(old, int | float):
            table[key] = rng.choice((old + 1, old - 1, -old, old * 2, old * 1000, old // 2))
        case 5 if isinstance(old, str):
            place = rng.randrange(len(old) + 1)
            table[key] = old[:place] + str(rng.choice(ODD_VALUES)) + old[place:]
        case _:
            table[key] = rng.choice(ODD_VALUES)


def mutate_text(data: bytes, rng: random.Random, words: Sequence[bytes]) -> bytes:
    """Change the lines of a text: insert words, and remove, repeat, swap and join lines."""
    lines = data.split(b"\n")
    place = rng.randrange(len(lines))
    line = lines[place]
    within = rng.randrange(len(line) + 1)
    match rng.randrange(6):
        case 0:
            lines[place] = line[:within] + rng.choice(words) + line[within:]
        case 1:
            cut = min(len(line), within + rng.randint(1, 8))
            lines[place] = line[:within] + rng.choice(words) + line[cut:]
        case 2:
            del lines[place]
        case 3:
            lines.insert(rng.randrange(len(lines) + 1), line)
        case 4:
            lines.insert(place, rng.choice(words))
        case _:
            other = rng.randrange(len(lines))
            lines[place], lines[other] = lines[other], lines[place]
    return b"\n".join(lines)
