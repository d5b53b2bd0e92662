"""A page of pixels: texts and lines in ink on paper, and coloured areas over them."""

import numpy as np
from PIL import Image, ImageDraw

from spectrod.dsp.units import Float32Array
from spectrod.formats.picture.colormaps import Uint8Array
from spectrod.formats.picture.lettering import Run, ascent, coloured, drawn, typeset
from spectrod.formats.picture.surface import (
    FULL_INK,
    SOFT_INK,
    BoolArray,
    Box,
    Point,
    runs,
    stretched,
)
from spectrod.formats.picture.theme import GAP, N_LEVELS, hatching, ink_entries


class Sheet:
    """A page of pixels: ink from 0 (paper) to 255, and palette entries over it."""

    def __init__(self, width: int, height: int) -> None:
        self._image = Image.new("L", (width, height))
        self._draw = ImageDraw.Draw(self._image)
        self._over: list[tuple[Box, Uint8Array]] = []
        self._copied: Uint8Array | None = None
        self._inked = height, 0
        """First row with ink that was drawn since the copy, and the one after the last."""

    def copy(self) -> "Sheet":
        """Return a sheet with the same content, to draw more on it."""
        if self._copied is None or self._inked[0] < self._inked[1]:
            self._copied = self._ink_entries()
            self._inked = self._image.height, 0
        other = Sheet(0, 0)
        other._image, other._over = self._image.copy(), list(self._over)
        other._draw = ImageDraw.Draw(other._image)
        other._copied, other._inked = self._copied, self._inked
        return other

    def _note_ink(self, top: int, bottom: int) -> None:
        """Note that rows get ink."""
        first, stop = self._inked
        self._inked = max(0, min(first, top)), min(max(stop, bottom), self._image.height)

    def text(
        self,
        at: Point,
        text: str,
        size: int,
        *,
        align: float = 0.0,
        ink: int = FULL_INK,
    ) -> None:
        """Draw a line of text.

        Parameters
        ----------
        at : (float, float)
            Horizontal anchor, and vertical centre of the digits [px].
        text : str
            Text of one line.
        size : int
            Font size [px].
        align : float
            Position of the anchor in the text: 0 at its begin, 0.5 in the middle, 1 at its end.
        ink : int
            Amount of ink, 0 to 255.
        """
        runs = typeset(text, size)
        base = runs[0].font
        _, high, _, low = base.getbbox("0")
        x = round(at[0] - align * sum(run.width for run in runs))
        y = round(at[1] - (high + low) / 2.0)
        for run in runs:
            if run.is_pictures:
                self._pictures(x, y + ascent(base), run, ink)
            elif run.text:
                fall = ascent(base) - ascent(run.font) if run.font is not base else 0
                mask, left, top = drawn(run.font, run.text)
                upper = y + fall + top
                self._note_ink(upper, upper + mask.height)
                self._image.paste(ink, (x + left, upper), mask)
            x += round(run.width)

    def _pictures(self, x: int, baseline: int, run: Run, ink: int) -> None:
        """Draw coloured glyphs in shades of ink, darker colours with more of it."""
        glyphs = coloured(run)
        size = [max(1, round(length * run.scale)) for length in glyphs.size]
        glyphs = glyphs.resize((size[0], size[1]), Image.Resampling.LANCZOS)
        alpha, luminance = (
            np.asarray(channel, np.float32)
            for channel in (glyphs.getchannel("A"), glyphs.convert("L"))
        )
        shade = alpha * (1.0 - luminance / 255.0) * (ink / FULL_INK)
        mask = Image.fromarray(np.rint(shade).astype(np.uint8))
        top = baseline - round(ascent(run.font) * run.scale)
        self._note_ink(top, top + mask.height)
        self._image.paste(FULL_INK, (x, top), mask)

    def line(self, start: tuple[int, int], end: tuple[int, int], ink: int) -> None:
        """Draw a line one pixel wide, both ends included."""
        self._note_ink(min(start[1], end[1]), max(start[1], end[1]) + 1)
        self._draw.line([start, end], fill=ink)

    def frame(self, box: Box) -> None:
        """Draw a thin frame directly around an area."""
        corners = (box.left - 1, box.top - 1, box.right, box.bottom)
        self._note_ink(box.top - 1, box.bottom + 1)
        self._draw.rectangle(corners, outline=SOFT_INK)

    def band(self, box: Box, low: Float32Array, high: Float32Array, ink: int) -> None:
        """Fill between two curves, at least one pixel high; see ``Surface``."""
        is_there = np.isfinite(low) & np.isfinite(high)
        top, bottom = (
            box.height - 1 - np.rint(np.where(is_there, curve, 0.0) * (box.height - 1))
            for curve in (high, low)
        )
        row = np.arange(box.height)[:, np.newaxis]
        mask = (top <= row) & (row <= bottom) & is_there
        self._note_ink(box.top, box.bottom)
        self._image.paste(ink, (box.left, box.top), Image.fromarray(mask))

    def gaps(self, box: Box, is_gap: BoolArray) -> None:
        """Hatch columns where samples are missing."""
        entries = np.full((box.height, box.width), N_LEVELS, np.uint8)
        entries[hatching(entries.shape)] = GAP
        for first, stop in runs(is_gap):
            area = Box(box.left + first, box.top, stop - first, box.height)
            self._over.append((area, entries[:, first:stop]))

    def picture(self, box: Box, entries: Uint8Array) -> None:
        """Draw palette entries; repeat them if there are fewer than pixels."""
        self._over.append((box, stretched(box, entries)))

    def coverage(self) -> Uint8Array:
        """Return the ink of each pixel, shape (height, width)."""
        return np.asarray(self._image)

    def entries(self) -> Uint8Array:
        """Return the palette entry of each pixel, shape (height, width)."""
        canvas = self._ink_entries()
        for box, entries in self._over:
            canvas[box.top : box.bottom, box.left : box.right] = entries
        return canvas

    def _ink_entries(self) -> Uint8Array:
        """Return the palette entry of each pixel's ink; rows without new ink are those copied."""
        if self._copied is None:
            return ink_entries(self.coverage())
        canvas, (first, stop) = self._copied.copy(), self._inked
        if first < stop:
            rows = self._image.crop((0, first, self._image.width, stop))
            canvas[first:stop] = ink_entries(np.asarray(rows))
        return canvas
