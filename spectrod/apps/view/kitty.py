"""The waterfall in kitty's terminal graphics protocol.

Source: "Terminal graphics protocol", https://sw.kovidgoyal.net/kitty/graphics-protocol/. Each strip
is an image of its own: it is sent once it has a new row, and only placed again when it moves.
"""

import base64
import io
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from spectrod.apps.view.colour import shades
from spectrod.apps.view.pixels import PixelWaterfall, Strip

CLEAR: Final = "\x1b_Ga=d,d=A,q=2\x1b\\"
"""Removes all images."""

_CHUNK_BYTES = 4096
_FIRST_ID = 7001
_IDS = 1000  # more than a screen has lines


class KittyWaterfall:
    """Shows a waterfall, and remembers which strips the terminal has."""

    def __init__(self) -> None:
        self._key: tuple[object, ...] | None = None
        self._sent: dict[int, int] = {}
        self._position = 0

    def forget(self) -> None:
        """Send everything again with the next picture."""
        self._key = None

    def paint(self, picture: PixelWaterfall | None) -> str:
        """Return the output that shows a waterfall; None removes it."""
        parts: list[str] = []
        key = None if picture is None else picture.key
        if key != self._key:
            if self._sent or self._key is None:
                parts.append(CLEAR)
            self._key, self._sent = key, {}
        if picture is not None:
            has_moved = picture.position != self._position
            self._position = picture.position
            visible = {strip.number for strip in picture.strips()}
            parts += [_delete(number) for number in self._sent if number not in visible]
            self._sent = {n: count for n, count in self._sent.items() if n in visible}
            for strip in picture.strips():
                parts.append(self._show(picture, strip, has_moved=has_moved))
        return "".join(parts)

    def _show(self, picture: PixelWaterfall, strip: Strip, *, has_moved: bool) -> str:
        """Return the output for a strip; empty if it is shown already."""
        area, number = picture.area, strip.number
        place = f"\x1b[{strip.line + 1};{area.column + 1}H"
        keys = f"i={_id(number)},p=1,c={area.width},r=1,C=1,q=2"
        # A full strip whose oldest rows were forgotten stays as it is.
        if strip.n_rows > self._sent.get(number, 0):
            self._sent[number] = strip.n_rows
            return place + _transmit(_png(picture.shades(strip)), f"a=T,f=100,{keys}")
        return f"{place}\x1b_Ga=p,{keys}\x1b\\" if has_moved else ""


def _id(number: int) -> int:
    return _FIRST_ID + number % _IDS


def _delete(number: int) -> str:
    return f"\x1b_Ga=d,d=I,i={_id(number)},q=2\x1b\\"


def _transmit(data: bytes, keys: str) -> str:
    """Return the commands that send an image in chunks."""
    text = base64.standard_b64encode(data).decode("ascii")
    chunks = [text[at : at + _CHUNK_BYTES] for at in range(0, len(text), _CHUNK_BYTES)]
    commands = []
    for k, chunk in enumerate(chunks):
        more = int(k < len(chunks) - 1)
        control = f"{keys},m={more}" if k == 0 else f"m={more}"
        commands.append(f"\x1b_G{control};{chunk}\x1b\\")
    return "".join(commands)


def _png(indices: NDArray[np.uint8]) -> bytes:
    image = Image.fromarray(indices)
    image.putpalette([value for rgb in shades() for value in rgb])
    stream = io.BytesIO()
    image.save(stream, "PNG", compress_level=1)
    return stream.getvalue()
