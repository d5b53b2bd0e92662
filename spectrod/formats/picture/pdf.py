"""A page as PDF: axes and strips as vectors, texts in embedded fonts, plots as images."""

import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self
from unicodedata import bidirectional
from xml.sax.saxutils import escape

import numpy as np
from fontTools.ttLib import TTLibError
from fpdf import FPDF
from fpdf.errors import FPDFException
from PIL import Image, ImageDraw, ImageFont

from spectrod.dsp.units import Float32Array
from spectrod.formats.picture.colormaps import Uint8Array
from spectrod.formats.picture.embedded import PDF_ELEMENT
from spectrod.formats.picture.lettering import Run, ascent, coloured, legible, typeset
from spectrod.formats.picture.surface import (
    FULL_INK,
    SOFT_INK,
    BoolArray,
    Box,
    Point,
    outline,
    runs,
    stretched,
)
from spectrod.formats.picture.theme import HATCH_PERIOD, Rgb, Theme
from spectrod.lib.errors import StorageError, storage_errors

if TYPE_CHECKING:
    from spectrod.formats.picture.encode import PictureMetadata

_POINTS_PER_PIXEL = 0.75
"""As in CSS: 96 pixels and 72 points per inch."""

_HATCH_PX = 1.5
_SHAPED = ("R", "AL", "AN", "NSM")
"""Bidirectional classes of characters that need reordering or combining, which fpdf2 lacks."""

_RASTER_SCALE = 4
"""Resolution of such texts, as a multiple of the page's pixels."""


class PdfSheet:
    """A page as PDF; a context manager, because it needs font files until its end.

    Parameters
    ----------
    width, height, theme, palette
        See ``VectorSheet``.

    Raises
    ------
    StorageError
        If the font files cannot be written; ``text`` raises it too.
    """

    def __init__(self, width: int, height: int, theme: Theme, palette: bytes) -> None:
        self._theme, self._palette = theme, palette
        self._pdf = FPDF(unit=_POINTS_PER_PIXEL, format=(width, height))
        self._pdf.set_auto_page_break(auto=False)
        self._pdf.add_page()
        self._families: dict[tuple[str, int], str] = {}
        try:
            self._folder = tempfile.TemporaryDirectory(prefix="spectrod-fonts-")
        except OSError as error:
            raise StorageError(f"folder for temporary files: {error.strerror}") from error
        self._rectangle(0, 0, width, height, theme.paper)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        """Delete the font files."""
        self._folder.cleanup()

    def _colour(self, ink: int) -> Rgb:
        return self._theme.mixed(ink / FULL_INK)

    def text(
        self, at: Point, text: str, size: int, *, align: float = 0.0, ink: int = FULL_INK
    ) -> None:
        """Draw a line of text, see ``Surface``."""
        pieces = typeset(text, size)
        base = pieces[0].font
        _, top, _, bottom = base.getbbox("0")
        y = at[1] - (top + bottom) / 2.0 + ascent(base)
        families = [self._family(run) for run in pieces]
        widths = [
            self._width(run, family, size) for run, family in zip(pieces, families, strict=True)
        ]
        x = at[0] - align * sum(widths)
        for run, family, width in zip(pieces, families, widths, strict=True):
            if not run.text:
                continue
            if family:
                self._pdf.set_font(family, size=size * _POINTS_PER_PIXEL)
                self._pdf.set_text_color(*self._colour(ink))
                self._pdf.text(x, y, run.text)
            else:
                self._raster(x, y, run, self._colour(ink))
            x += width

    def _width(self, run: Run, family: str, size: int) -> float:
        if not family or not run.text:
            return run.width
        self._pdf.set_font(family, size=size * _POINTS_PER_PIXEL)
        return float(self._pdf.get_string_width(run.text))

    def _family(self, run: Run) -> str:
        """Embed a run's typeface, and return its name; "" if the run must be drawn as an image."""
        font = run.font
        if (
            not isinstance(font, ImageFont.FreeTypeFont)
            or run.is_pictures
            or any(bidirectional(character) in _SHAPED for character in run.text)
        ):
            return ""
        index = run.file.index if run.file else 0
        path = _path_of(font)
        if (path, index) not in self._families:
            self._families[path, index] = self._embedded(font, index)
        return self._families[path, index]

    def _embedded(self, font: ImageFont.FreeTypeFont, index: int) -> str:
        path, name = _path_of(font), f"font{len(self._families)}"
        if not path:
            path = str(Path(self._folder.name) / f"{name}.ttf")
            with storage_errors(path):
                Path(path).write_bytes(font.font_bytes)
        try:
            with _quiet():
                self._pdf.add_font(name, fname=path, collection_font_number=index)
        # Errors of fpdf2 for fonts that it cannot embed.
        except (FPDFException, TTLibError, NotImplementedError, ValueError, KeyError):
            return ""
        return name

    def _raster(self, x: float, baseline: float, run: Run, colour: Rgb) -> None:
        """Draw a run as an image: coloured glyphs, or text that Pillow must lay out."""
        if run.is_pictures:
            image, scale = coloured(run), 1.0 / run.scale
            top = baseline - ascent(run.font) * run.scale
        else:
            image, scale = _drawn(run, colour)
            top = baseline - ascent(run.font)
        self._pdf.image(image, x, top, image.width / scale, image.height / scale)

    def line(self, start: tuple[int, int], end: tuple[int, int], ink: int) -> None:
        """Draw a line one pixel wide, horizontal or vertical, both ends included."""
        width, height = end[0] - start[0] + 1, end[1] - start[1] + 1
        self._rectangle(start[0], start[1], width, height, self._colour(ink))

    def _rectangle(self, left: int, top: int, width: int, height: int, fill: Rgb) -> None:
        self._pdf.set_fill_color(*fill)
        self._pdf.rect(left, top, width, height, style="F")

    def frame(self, box: Box) -> None:
        """Draw a thin frame directly around an area."""
        self._pdf.set_draw_color(*self._colour(SOFT_INK))
        self._pdf.set_line_width(1.0)
        self._pdf.rect(box.left - 0.5, box.top - 0.5, box.width + 1, box.height + 1, style="D")

    def band(self, box: Box, low: Float32Array, high: Float32Array, ink: int) -> None:
        """Fill between two curves, at least one pixel high; see ``Surface``."""
        self._pdf.set_fill_color(*self._colour(ink))
        for points in outline(box, low, high):
            self._pdf.polygon(points, style="F")

    def gaps(self, box: Box, is_gap: BoolArray) -> None:
        """Hatch columns where samples are missing."""
        self._pdf.set_draw_color(*self._theme.gap)
        self._pdf.set_line_width(_HATCH_PX)
        for first, stop in runs(is_gap):
            left, width = box.left + first, stop - first
            with self._pdf.rect_clip(left, box.top, width, box.height):
                for x in range(0, width + box.height + HATCH_PERIOD, HATCH_PERIOD):
                    self._pdf.line(
                        left + x - box.height - 1, box.bottom + 1, left + x + 1, box.top - 1
                    )

    def picture(self, box: Box, entries: Uint8Array) -> None:
        """Draw palette entries as an image of the same palette."""
        image = Image.fromarray(np.ascontiguousarray(stretched(box, entries)))
        image.putpalette(self._palette)
        self._pdf.image(image, box.left, box.top, box.width, box.height)

    def pdf(self, about: "PictureMetadata") -> bytes:
        """Return the complete document."""
        self._pdf.set_title(legible(about.title))
        self._pdf.set_creator(about.software)
        self._pdf.set_creation_date(datetime.fromtimestamp(about.begin_utc_ns // 10**9, UTC))
        self._pdf.set_xmp_metadata(_xmp(about))
        with _quiet():
            return bytes(self._pdf.output())


def _xmp(about: "PictureMetadata") -> str:
    return f"""<x:xmpmeta xmlns:x="adobe:ns:meta/">
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<rdf:Description rdf:about="" xmlns:spectrod="urn:spectrod:picture">
<{PDF_ELEMENT}>{escape(about.description)}</{PDF_ELEMENT}>
</rdf:Description>
</rdf:RDF>
</x:xmpmeta>"""


def _path_of(font: ImageFont.FreeTypeFont) -> str:
    """Return the path of a typeface; "" for Pillow's own, which is in memory."""
    path = font.path
    return os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else ""


def _drawn(run: Run, colour: Rgb) -> tuple[Image.Image, float]:
    """Draw a run in a colour on a transparent image; return it and its magnification."""
    font, scale = run.font, 1
    if isinstance(font, ImageFont.FreeTypeFont):
        scale = _RASTER_SCALE
        font = font.font_variant(size=font.size * scale)
        height = sum(font.getmetrics())
    else:
        height = round(font.getbbox(run.text)[3])
    image = Image.new("RGBA", (max(1, round(font.getlength(run.text))), height), (*colour, 0))
    ImageDraw.Draw(image).text((0, 0), run.text, font=font, fill=(*colour, 255))
    return image, float(scale)


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress log messages of fontTools and fpdf2 on tables that a subset does not need."""
    loggers = [logging.getLogger(name) for name in ("fontTools", "fpdf")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
