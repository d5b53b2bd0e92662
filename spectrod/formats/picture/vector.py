"""A page of vectors: an SVG whose texts stay texts, with plots as embedded images."""

import base64
import io
from xml.sax.saxutils import escape, quoteattr

import numpy as np
from PIL import Image

from spectrod.dsp.units import Float32Array
from spectrod.formats.picture.colormaps import Uint8Array
from spectrod.formats.picture.lettering import legible, typeset
from spectrod.formats.picture.surface import (
    FULL_INK,
    SOFT_INK,
    BoolArray,
    Box,
    Point,
    outline,
    runs,
)
from spectrod.formats.picture.theme import Rgb, Theme

_FAMILY = "Aileron, 'Helvetica Neue', Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"
_DIGIT_HEIGHT = 0.71
"""Height of digits in such typefaces, as a share of the font size."""

_ANCHORS = {0.0: "start", 0.5: "middle", 1.0: "end"}


class VectorSheet:
    """A page as SVG 1.1 elements.

    Parameters
    ----------
    width, height : int
        Size of the page [px].
    theme : Theme
        Colours of paper and ink.
    palette : bytes
        All 256 colours of the plots, three bytes each.
    """

    def __init__(self, width: int, height: int, theme: Theme, palette: bytes) -> None:
        self._width, self._height = width, height
        self._theme = theme
        self._palette = palette
        self._elements: list[str] = []

    def _colour(self, ink: int) -> str:
        return _hex(self._theme.mixed(ink / FULL_INK))

    def text(
        self, at: Point, text: str, size: int, *, align: float = 0.0, ink: int = FULL_INK
    ) -> None:
        """Draw a line of text, see ``Surface``.

        With any typeface of a viewer, the text is as wide as the layout assumes. Text with
        characters that no typeface has here gets the width of the viewer's own glyphs.
        """
        text, runs = legible(text), typeset(text, size)
        if not text:
            return
        length = ""
        if not any(run.missing for run in runs):
            width = sum(run.width for run in runs)
            length = f'textLength="{width:.1f}" lengthAdjust="spacingAndGlyphs" '
        self._elements.append(
            f'<text x="{at[0]:g}" y="{at[1] + _DIGIT_HEIGHT * size / 2.0:.1f}" font-size="{size}" '
            f'text-anchor="{_ANCHORS[align]}" {length}fill="{self._colour(ink)}">'
            f"{escape(text)}</text>"
        )

    def line(self, start: tuple[int, int], end: tuple[int, int], ink: int) -> None:
        """Draw a line one pixel wide, horizontal or vertical, both ends included."""
        width, height = end[0] - start[0] + 1, end[1] - start[1] + 1
        self._rectangle(start[0], start[1], width, height, self._colour(ink))

    def _rectangle(self, left: int, top: int, width: int, height: int, fill: str) -> None:
        self._elements.append(
            f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="{fill}"/>'
        )

    def frame(self, box: Box) -> None:
        """Draw a thin frame directly around an area."""
        self._elements.append(
            f'<rect x="{box.left - 0.5}" y="{box.top - 0.5}" width="{box.width + 1}" '
            f'height="{box.height + 1}" fill="none" stroke="{self._colour(SOFT_INK)}"/>'
        )

    def band(self, box: Box, low: Float32Array, high: Float32Array, ink: int) -> None:
        """Fill between two curves, at least one pixel high; see ``Surface``."""
        pieces = (
            "M" + "L".join(f"{x:g} {y:.1f}" for x, y in points) + "Z"
            for points in outline(box, low, high)
        )
        self._elements.append(f'<path d="{"".join(pieces)}" fill="{self._colour(ink)}"/>')

    def gaps(self, box: Box, is_gap: BoolArray) -> None:
        """Hatch columns where samples are missing."""
        for first, stop in runs(is_gap):
            self._rectangle(box.left + first, box.top, stop - first, box.height, "url(#gap)")

    def picture(self, box: Box, entries: Uint8Array) -> None:
        """Draw palette entries as an embedded PNG."""
        image = Image.fromarray(np.ascontiguousarray(entries))
        image.putpalette(self._palette)
        png = io.BytesIO()
        image.save(png, format="PNG")
        content = base64.b64encode(png.getvalue()).decode("ascii")
        self._elements.append(
            f'<image x="{box.left}" y="{box.top}" width="{box.width}" height="{box.height}" '
            'preserveAspectRatio="none" style="image-rendering: pixelated" '
            f'xlink:href="data:image/png;base64,{content}"/>'
        )

    def svg(self, title: str, metadata: str) -> bytes:
        """Return the complete page; its ``metadata`` element has the id "spectrod"."""
        title = legible(title)
        hatch = f'stroke="{_hex(self._theme.gap)}" stroke-width="1.5"'
        head = f"""<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"
  width="{self._width}" height="{self._height}" viewBox="0 0 {self._width} {self._height}"
  font-family={quoteattr(_FAMILY)}>
<title>{escape(title)}</title>
<metadata id="spectrod">{escape(metadata)}</metadata>
<defs><pattern id="gap" width="8" height="8" patternUnits="userSpaceOnUse">
<path d="M-2 2L2 -2M0 8L8 0M6 10L10 6" {hatch}/>
</pattern></defs>
<rect width="100%" height="100%" fill="{_hex(self._theme.paper)}"/>"""
        return "\n".join([head, *self._elements, "</svg>\n"]).encode()


def _hex(colour: Rgb) -> str:
    return "#" + "".join(f"{part:02x}" for part in colour)
