"""Files of learned masks."""

import random
from collections.abc import Iterator

import numpy as np
from fuzzing import Scratch, Target, nested
from mutation import havoc, mutate_text

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.errors import ConfigError
from spectrod.measure.triggers.mask import LearnedFrom, Mask, analysis_of, mask_toml, read_mask

_SCRATCH = Scratch()

_WORDS = (
    *(b"unit = ", b"points = [", b"[learned]", b"[analysis]", b"[1, 2]", b"[0.5, -60.25]", b"],"),
    *(b"nan", b"inf", b"-1e300", b"1e400", b"0x7f", b"9223372036854775808", b"true", b"'dBFS'"),
    *(b"rows = ", b"fs = 48000.0", b"win_length = 4096", b"begin_utc_ns = 1", b"#", b"{", b"\xff"),
)


def check_mask(data: bytes) -> None:
    """Read a mask; its levels are finite where it has any, and it is written and read back."""
    path = _SCRATCH.put("found.toml", data)
    try:
        mask = read_mask(path.parent, "found")
    except ConfigError:
        return
    f_hz = np.array([1e-3, 1.0, 1e3, 1e9])
    assert np.isfinite(mask.at(f_hz)).all()
    assert not mask.covers(np.array([0.0, -1.0])).any()
    if mask.learned is None or all(name.isascii() for name in mask.analysis):
        mask_toml(mask)


def mask_seeds() -> list[bytes]:
    """Make a learned mask, and one that was drawn."""
    spec = SpectrumSpec(8000.0, win_length=64, scaling="dbfs")
    learned = LearnedFrom("mic", "dbfs", 1_700_000_000_000_000_000, 60.0, 3000, 0, 99.0, 6.0)
    points = ((125.0, -60.25), (4000.0, -71.5))
    return [
        mask_toml(Mask(points, "dBFS", learned, analysis_of(spec))).encode(),
        mask_toml(Mask(points, "dB SPL")).encode(),
    ]


def mutate_mask(data: bytes, rng: random.Random) -> bytes:
    """Change words of the TOML."""
    return havoc(data, rng) if rng.random() < 0.1 else mutate_text(data, rng, _WORDS)


def _large() -> Iterator[bytes]:
    yield from nested(b"points = ")
    yield b"unit = 'dBFS'\npoints = [" + b"".join(b"[%d,0]," % k for k in range(1, 40_000)) + b"]"
    yield b"unit = 'dBFS'\npoints = [" + b"1," * 490_000 + b"]"
    yield b"[analysis]\n" + b"".join(b"k%d = 1\n" % k for k in range(60_000))


TARGETS = {"mask": Target(check_mask, mask_seeds, mutate_mask, max_bytes=4096, large=_large)}
