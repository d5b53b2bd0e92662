"""What a terminal sends to ``spectrod view``: keys, and answers to questions about its graphics."""

import random

from fuzzing import Target
from mutation import havoc

from spectrod.apps.view.controls import ARROWS
from spectrod.apps.view.graphics import Probe
from spectrod.apps.view.keyboard import KeyParser

_READ_BYTES = 4096
"""As the terminal is read."""

_PIECES = (
    *(
        b"\x1b[A",
        b"\x1bOD",
        b"\x1b[1;5A",
        b"\x1b",
        b"\x1b\x1b",
        b"\x1b[",
        b"\x1bP",
        b"\x1b_",
        b"\x07",
    ),
    *(b"\x1b\\", b"q", b"\x0c", b"\xc3\xa4", b"\xff", b"\0", b"\x1b[?62;4c", b"\x1b[6;20;10t"),
    *(
        b"\x1b[6;0;0t",
        b"\x1b[6;99999999999999999999;1t",
        b"\x1b_Gi=31;OK\x1b\\",
        b"\x1b[?c",
        b";4;",
    ),
)


def check(data: bytes) -> None:
    """Feed the bytes as they may come, in pieces; keys are characters or names of arrows."""
    for size in {_READ_BYTES, min(_READ_BYTES, max(1, len(data) // 3))}:
        parser, probe = KeyParser(), Probe({"TERM": "xterm"}, 0.0)
        for place in range(0, len(data), size):
            parser.feed(data[place : place + size])
            while key := parser.next():
                assert len(key) == 1 or key in ARROWS
            while parser.replies:
                assert isinstance(probe.hear(parser.replies.popleft(), 0.1), str)
        parser.expire()
        found = probe.graphics((8, 16))
        if found is not None:
            assert 1 <= found.cell_width_px <= 1000
            assert 1 <= found.cell_height_px <= 1000


def seeds() -> list[bytes]:
    """Make the answers of kitty and of xterm, with keys between them."""
    kitty = b"\x1b[?62;c" + b"\x1b_Gi=31;OK\x1b\\\x1b[6;20;10t\x1b[?62;c"
    return [b"q" + kitty + b"\x1b[A", b"\x1b[?62;4;22cp\x1b[6;18;9t\x1b[?62;4;22c\x1bOB+-"]


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Insert, remove and swap sequences, and change bytes."""
    if rng.random() < 0.4:
        return havoc(data, rng)
    place, end = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    kept = data[end:] if rng.random() < 0.3 else data[place:]
    return data[:place] + rng.choice(_PIECES) + kept


TARGETS = {"terminal": Target(check, seeds, mutate)}
