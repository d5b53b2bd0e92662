from math import prod

import pytest

from spectrod.errors import ConfigError
from spectrod.fft.stft_radices import PASSES_MAX, choose_radices


@pytest.mark.parametrize(
    ("half", "radices"),
    [
        (32, (8, 4)),
        (64, (8, 8)),
        (128, (8, 4, 4)),
        (256, (8, 8, 4)),
        (512, (8, 8, 8)),
        (1024, (8, 8, 4, 4)),
        (2048, (8, 8, 8, 4)),
        (4096, (8, 8, 8, 8)),
    ],
)
def test_eights_first_then_fours(half, radices):
    """Every length is cut into passes of radix 8 and at most two of radix 4."""
    assert choose_radices(half) == radices
    assert prod(radices) == half
    assert 2 <= len(radices) <= PASSES_MAX


@pytest.mark.parametrize("half", [0, 1, 16, 33, 96, 4095, 8192, -32])
def test_other_lengths_are_refused(half):
    """Lengths that are no power of two or out of range are named with the rule."""
    with pytest.raises(ConfigError, match=f"half={half}: must be a power of two, 32 to 4096"):
        choose_radices(half)
