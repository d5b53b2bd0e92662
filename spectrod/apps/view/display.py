"""Pictures on a terminal: characters, and pixels over them."""

from spectrod.apps.view.canvas import Canvas
from spectrod.apps.view.colour import Style
from spectrod.apps.view.kitty import CLEAR, KittyWaterfall
from spectrod.apps.view.painter import TerminalPainter
from spectrod.apps.view.sixel import SixelWaterfall


class Display:
    """Draws pictures on a terminal, and remembers what it shows."""

    def __init__(self, style: Style) -> None:
        self._painter = TerminalPainter(style)
        self._protocol = style.graphics.protocol if style.graphics else None
        self._kitty, self._sixel = KittyWaterfall(), SixelWaterfall()
        self._key: tuple[object, ...] | None = None

    @property
    def farewell(self) -> str:
        """What removes pixels before the terminal is given back."""
        return CLEAR if self._protocol == "kitty" else ""

    def forget(self) -> None:
        """Draw the next picture as a whole: something else may have written to the terminal."""
        self._painter.forget()
        self._kitty.forget()
        self._sixel.forget()

    def paint(self, canvas: Canvas) -> str:
        """Return the output that shows a picture; the terminal must get all of it."""
        if self._protocol is None:
            return self._painter.paint(canvas)
        if self._protocol == "kitty":
            return self._painter.paint(canvas) + self._kitty.paint(canvas.pixels)
        key = canvas.pixels.key if canvas.pixels else None
        if key != self._key:
            # Sixels stay until their characters are erased.
            self._key = key
            self.forget()
        text = self._painter.paint(canvas)
        has_scrolled = self._painter.has_scrolled
        return text + self._sixel.paint(canvas.pixels, has_scrolled=has_scrolled)
