"""Graphics of a terminal: whether it shows pixels, and how."""

import fcntl
import re
import struct
import termios
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Protocol = Literal["kitty", "sixel"]

PROBE_LIMIT_S = 2.0
"""How long a terminal may take to answer [s]; later answers are ignored."""

_ATTRIBUTES = "\x1b[c"  # primary device attributes, which every terminal since the VT100 answers
_KITTY_QUERY = "\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\"
_CELL_QUERY = "\x1b[16t"
_ATTRIBUTES_REPLY = re.compile(rb"\x1b\[\?([0-9;]*)c")
_CELL_REPLY = re.compile(rb"\x1b\[6;([0-9]{1,5});([0-9]{1,5})t")
_KITTY_REPLY = b"\x1b_Gi=31;OK\x1b\\"
_SIXEL = b"4"
_CELL_MIN_PX, _CELL_MAX_PX = 4, 64
_CELL_PX = (10, 20)  # if a terminal does not tell


@dataclass(frozen=True, slots=True)
class Graphics:
    """How a terminal shows pixels.

    Attributes
    ----------
    protocol : {"kitty", "sixel"}
        The terminal graphics protocol of kitty, or DEC's sixels.
    cell_width_px, cell_height_px : int
        Size of a character [px].
    """

    protocol: Protocol
    cell_width_px: int
    cell_height_px: int


class Probe:
    """Asks a terminal for its graphics.

    The first question is one that every terminal answers; only one that did is asked the others,
    with the first question as their end. Nothing waits for answers.
    """

    def __init__(self, environment: Mapping[str, str], started_s: float) -> None:
        self._is_console = environment.get("TERM") == "linux"  # it would print the second question
        self._deadline_s = started_s + PROBE_LIMIT_S
        self._n_answers = 0
        self._has_kitty = self._has_sixel = False
        self._cell_px: tuple[int, int] | None = None

    @staticmethod
    def question() -> str:
        """Return the first question."""
        return _ATTRIBUTES

    @property
    def is_over(self) -> bool:
        """Whether all answers came."""
        return self._n_answers >= (1 if self._is_console else 2)

    def hear(self, reply: bytes, now_s: float) -> str:
        """Take an escape sequence of the terminal; return the next question, or an empty text."""
        if self.is_over or now_s > self._deadline_s:
            return ""
        if attributes := _ATTRIBUTES_REPLY.fullmatch(reply):
            self._n_answers += 1
            self._has_sixel |= _SIXEL in attributes[1].split(b";")[1:]
            return "" if self.is_over else f"{_KITTY_QUERY}{_CELL_QUERY}{_ATTRIBUTES}"
        if cell := _CELL_REPLY.fullmatch(reply):
            self._cell_px = int(cell[2]), int(cell[1])
        self._has_kitty |= reply == _KITTY_REPLY
        return ""

    def graphics(self, window_cell_px: tuple[int, int] | None) -> Graphics | None:
        """Return what the terminal can show; None for characters only, or before it answered.

        Parameters
        ----------
        window_cell_px : tuple of int or None
            Width and height of a character by the window's size, if the system knows it.
        """
        if not self.is_over:
            return None
        known = self._cell_px or window_cell_px
        if self._has_kitty:
            return Graphics("kitty", *_bounded(known or _CELL_PX))
        # Sixels have the size of their pixels: it must be known.
        is_usable = self._has_sixel and known is not None and _bounded(known) == known
        return Graphics("sixel", *known) if known is not None and is_usable else None


def window_cell_px(fd: int) -> tuple[int, int] | None:
    """Return width and height of a character, as the system knows it from the window [px]."""
    try:
        size = fcntl.ioctl(fd, termios.TIOCGWINSZ, bytes(8))
    except OSError:
        return None
    rows, columns, width_px, height_px = struct.unpack("HHHH", size)
    if not (rows and columns and width_px and height_px):
        return None
    return width_px // columns, height_px // rows


def _bounded(cell_px: tuple[int, int]) -> tuple[int, int]:
    width, height = (min(max(px, _CELL_MIN_PX), _CELL_MAX_PX) for px in cell_px)
    return width, height
