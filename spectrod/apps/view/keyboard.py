"""Keys of a terminal from the bytes that it sends."""

import re
from collections import deque
from collections.abc import Mapping
from typing import Final

from spectrod.apps.view.controls import ARROWS

GONE: Final = "gone"
"""What a keyboard returns when its terminal has gone."""
REDRAW: Final = "\f"
"""Ctrl-L."""

_ARROWS: Final[Mapping[bytes, str]] = {
    b"\x1b" + kind + end: name
    for kind in (b"[", b"O")
    for end, name in zip((b"A", b"B", b"C", b"D"), ARROWS, strict=True)
}
"""Sequences that terminals send for arrows."""

# Escape sequences (ECMA-48): control sequences, single shifts, strings such as replies, Alt-keys.
_SEQUENCE = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|[P_\]X^][^\x1b\x07]*(?:\x1b\\|\x07)|[^\[OP_\]X^\x1b])",
    re.DOTALL,
)
_UNFINISHED_MAX = 256


class KeyParser:
    """Splits input into keys and escape sequences.

    Attributes
    ----------
    replies : list of bytes
        Escape sequences that are no keys, such as replies to queries; the caller empties it.
    """

    def __init__(self) -> None:
        self._input = b""
        self._keys: deque[str] = deque()
        self.replies: deque[bytes] = deque(maxlen=16)

    def feed(self, data: bytes) -> None:
        """Take input."""
        self._input += data
        place = 0
        while (escape := self._input.find(b"\x1b", place)) >= 0:
            self._keys.extend(self._input[place:escape].decode("ascii", "replace"))
            place = escape
            sequence = _SEQUENCE.match(self._input, place)
            if sequence is None:
                break
            place = sequence.end()
            self._take(sequence[0])
        else:
            self._keys.extend(self._input[place:].decode("ascii", "replace"))
            place = len(self._input)
        self._input = self._input[place:]
        if len(self._input) > _UNFINISHED_MAX:
            self._input = b""

    def expire(self) -> None:
        """Drop the beginning of a sequence whose rest has not come."""
        self._input = b""

    def next(self) -> str:
        """Return the next key: a character or the name of an arrow; empty if there is none."""
        return self._keys.popleft() if self._keys else ""

    def _take(self, sequence: bytes) -> None:
        if sequence in _ARROWS:
            self._keys.append(_ARROWS[sequence])
        else:
            self.replies.append(sequence)
