"""Calibration files, and the frequency responses that makers of microphones ship."""

import math
import random
from collections.abc import Iterator

from fuzzing import Scratch, Target, nested
from mutation import havoc, mutate_text

from spectrod.apps.measurements.calibration_update import to_toml
from spectrod.dsp.calibration import load_calibration, parse_reference
from spectrod.dsp.calibration.file import read_tables
from spectrod.dsp.calibration.response_text import parse_response
from spectrod.lib.errors import ConfigError

_SCRATCH = Scratch()

_WORDS = (
    *(b"reference", b"sensitivity", b"full_scale_db", b"full_scale", b"level_db", b"reads_dbfs"),
    *(b'"20 uPa"', b'"1 uPa"', b'"1 m/s2"', b'"1 V"', b'"50 mV/Pa"', b'"-165 dB re 1 V/uPa"'),
    *(b'"100 mV/g"', b'"rms"', b'"sine"', b"nan", b"inf", b"-1e300", b"[[10, 0], [20, 1]]", b"[]"),
    *(
        b"[channels.a]",
        b"[channels.0.response]",
        b"[response]",
        b"table = ",
        b'file = "x"',
        b"at_hz = 0",
    ),
)
_ROW_WORDS = (
    b"\t",
    b";",
    b",",
    b"#",
    b"\r\n",
    b"-.7",
    b"1e400",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"nan",
    b"20 ",
)


def check_calibration(data: bytes) -> None:
    """Read a file; levels are finite, and its tables are written so that they are read back."""
    path = _SCRATCH.put("mic.toml", data)
    try:
        found = load_calibration(path)
    except ConfigError:
        return
    for one in filter(None, (found.base, *found.by_channel.values())):
        assert math.isfinite(one.full_scale_db)
        assert 0.0 < one.full_scale < math.inf
        assert parse_reference(one.reference.name) == one.reference
    to_toml(read_tables(path))


def check_response(data: bytes) -> None:
    """Read rows; they are pairs of numbers."""
    try:
        rows = parse_response(data)
    except ConfigError:
        return
    assert all(not math.isnan(value) for row in rows for value in row)


def calibration_seeds() -> list[bytes]:
    """Make a file of each way to state the level, and one with channels."""
    chain = b'reference = "20 uPa"\nsensitivity = "50 mV/Pa"\ngain_db = 20\nfull_scale_v = 2\n'
    curve = b'[response]\nkind = "correction"\ntable = [[20, -1.5], [1000, 0], [2e4, 3]]\n'
    end = b'reference = "1 uPa"\nfull_scale_db = 171\nfull_scale = "rms"\nserial = "A-1"\n'
    reads = b'reference = "1 V"\nlevel_db = 0\nreads_dbfs = -9.01\ndate = 2026-11-22\n'
    channel = b'[channels.left]\nsensitivity = "-165 dB re 1 V/Pa"\nnotes = "x"\n'
    return [chain + curve, end, reads, chain + channel]


def response_seeds() -> list[bytes]:
    """Make rows in the dialects of makers."""
    mini_dsp = b'"Sens Factor =-1.378dB, AGain =18dB, SERNO: 7012345"\n10.054\t-6.0\n20.2\t-.63\n'
    return [
        mini_dsp,
        b"*1000Hz\t-38.6\r\n20 1.5\r\n30 2\r\n",
        b"20;-0,7;12\n30;1,5;-3\n",
        b"20,-1\n",
    ]


def mutate_calibration(data: bytes, rng: random.Random) -> bytes:
    """Change words of the TOML."""
    return havoc(data, rng) if rng.random() < 0.1 else mutate_text(data, rng, _WORDS)


def mutate_response(data: bytes, rng: random.Random) -> bytes:
    """Change separators and numbers."""
    return havoc(data, rng) if rng.random() < 0.3 else mutate_text(data, rng, _ROW_WORDS)


def _large_toml() -> Iterator[bytes]:
    yield from nested(b"[response]\ntable = ")
    rows = b", ".join(b"[%d, 0]" % k for k in range(1, 20_000))
    yield b'reference = "1 V"\nlevel_db = 0\nreads_dbfs = 0\n[response]\ntable = [' + rows + b"]"
    yield b"".join(b"[channels.c%d]\n" % k for k in range(15_000))


def _large_rows() -> Iterator[bytes]:
    yield b"".join(b"%d 0\n" % k for k in range(1, 120_000))
    yield b"9" * 1_000_000
    yield b"#\n" * 500_000


TARGETS = {
    "calibration": Target(
        check_calibration, calibration_seeds, mutate_calibration, max_bytes=4096, large=_large_toml
    ),
    "response": Target(
        check_response, response_seeds, mutate_response, max_bytes=4096, large=_large_rows
    ),
}
