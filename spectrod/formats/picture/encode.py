"""Encoders of a page, one for each file format."""

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace
from PIL import Image, features

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.formats.picture.colormaps import Uint8Array
from spectrod.formats.picture.drawing import draw, draw_content, draw_frame
from spectrod.formats.picture.embedded import EXIF_DESCRIPTION, METADATA_KEY
from spectrod.formats.picture.lettering import report_missing
from spectrod.formats.picture.page import Page, PageFrame
from spectrod.formats.picture.page_layout import page_limits
from spectrod.formats.picture.picture_settings import PictureOptions
from spectrod.formats.picture.png import encode_png
from spectrod.formats.picture.surface import Surface
from spectrod.formats.picture.theme import THEMES, Theme, palette
from spectrod.lib.errors import ConfigError, UnavailableError
from spectrod.lib.text import printable

if TYPE_CHECKING:
    from spectrod.formats.picture.sheet import Sheet

_JPEG_QUALITY = 92
_FRAMES_KEPT = 8
"""Number of drawn frames that are kept for further pictures."""
_KEPT_PIXELS_MAX = 1 << 22
"""Largest page whose frame is kept [px]; each takes a byte a pixel."""

_EXIF_SOFTWARE = 0x0131
_CODECS = {".jpg": "jpg", ".jpeg": "jpg", ".webp": "webp"}
"""Optional parts of Pillow."""

_SIDE_MAX = {".jpg": 65500, ".jpeg": 65500, ".webp": 16383, ".pdf": 19200}
"""Largest width or height of a format [px]; for PDF 200 inches (ISO 32000-1, annex C)."""

_PGM_TOP = 65535
"""Largest value of a pixel; 0 stands for missing samples."""

_PGM_LEAST_DB = 1e-3
"""Smallest range of levels, so that a flat picture has a scale too."""


@dataclass(frozen=True, slots=True)
class PictureMetadata:
    """Metadata of a picture's file.

    Attributes
    ----------
    title : str
        Title of the page.
    software : str
        Name and version of the program that made it.
    begin_utc_ns : int
        Date of a PDF: the begin of the recording, so that the same recording makes the same
        file [ns].
    description : str
        JSON description of the pixels, for ``spectrod.formats.picture.embedded``.
    metadata_key : str
        Name of the description in a PNG.
    """

    title: str
    software: str
    begin_utc_ns: int
    description: str
    metadata_key: str = METADATA_KEY


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """A page for the encoders, whatever it shows.

    Attributes
    ----------
    about : PictureMetadata
        Metadata of the file.
    size : (int, int)
        Width and height [px].
    draw : callable
        Draws the page on a ``Surface``.
    names : tuple of str
        Texts that may have characters without a typeface, besides the title.
    theme : Theme
        Colours of paper and ink.
    palette : bytes
        All 256 colours of the plots, three bytes each.
    entries : (height, width) uint8 or None
        Palette entries of a page that has nothing but plots.
    drawn : callable, optional
        Draws the page on a ``Sheet`` of its own; by default ``draw`` does.
    """

    about: PictureMetadata
    size: tuple[int, int]
    draw: Callable[[Surface], None]
    names: tuple[str, ...]
    theme: Theme
    palette: bytes
    entries: Uint8Array | None = None
    drawn: Callable[[], "Sheet"] | None = None


def _document(page: Page, kept_pixels_max: int) -> Document:
    theme, pixels, layout = THEMES[page.theme], page.pixels, page.layout
    return Document(
        PictureMetadata(page.title, pixels.software, pixels.begin_utc_ns, pixels.to_json()),
        (layout.width, layout.height),
        partial(draw, page),
        page.frame.names,
        theme,
        palette(page.colormap, theme),
        page.entries.reshape(-1, page.entries.shape[2]) if page.frame.is_bare else None,
        partial(_drawn, page, kept_pixels_max),
    )


def _entries(document: Document) -> Uint8Array:
    """Return the palette entry of each pixel of a page."""
    if document.entries is not None:
        return document.entries
    report_missing((document.about.title, *document.names))
    if document.drawn is not None:
        return document.drawn().entries()
    sheet = _new_sheet(*document.size)
    document.draw(sheet)
    return sheet.entries()


def _drawn(page: Page, kept_pixels_max: int) -> "Sheet":
    """Draw a page on a copy of its frame, which many pictures share."""
    layout = page.layout
    is_kept = layout.width * layout.height <= kept_pixels_max
    sheet = _kept_frame(page.frame).copy() if is_kept else _frame_sheet(page.frame)
    draw_content(page, sheet)
    return sheet


@lru_cache(maxsize=_FRAMES_KEPT)
def _kept_frame(frame: PageFrame) -> "Sheet":
    return _frame_sheet(frame)


def _frame_sheet(frame: PageFrame) -> "Sheet":
    sheet = _new_sheet(frame.layout.width, frame.layout.height)
    draw_frame(frame, sheet)
    return sheet


def _new_sheet(width: int, height: int) -> "Sheet":
    # Imported when needed: a raw picture needs no drawing.
    from spectrod.formats.picture.sheet import Sheet  # noqa: PLC0415

    return Sheet(width, height)


def _image(document: Document) -> Image.Image:
    image = Image.fromarray(_entries(document))
    image.putpalette(document.palette)
    return image


def _png(document: Document) -> bytes:
    about = document.about
    texts = [("Software", about.software), (about.metadata_key, about.description)]
    if about.title:
        texts.insert(0, ("Title", printable(about.title)))
    return encode_png(_entries(document), document.palette, texts)


def _exif(document: Document) -> Image.Exif:
    exif = Image.Exif()
    # EXIF texts are ASCII, into which JSON can encode all characters.
    exif[EXIF_DESCRIPTION] = json.dumps(json.loads(document.about.description))
    exif[_EXIF_SOFTWARE] = document.about.software
    return exif


def _jpeg(document: Document) -> bytes:
    # Subsampled colours would smear letters and single rows of tones.
    image, exif = _image(document).convert("RGB"), _exif(document)
    return _saved(image, format="JPEG", quality=_JPEG_QUALITY, subsampling=0, exif=exif)


def _webp(document: Document) -> bytes:
    image, exif = _image(document).convert("RGB"), _exif(document)
    return _saved(image, format="WEBP", lossless=True, quality=30, method=2, exif=exif)


def _pgm(page: Page) -> bytes:
    """Encode the plots' levels with 16 bits; a comment describes them."""
    levels = page.values if page.scale is None else page.scale(page.values)
    levels = levels.reshape(-1, levels.shape[2])
    is_there = np.isfinite(levels)
    audible = levels[is_there]
    if "levels" in page.pixels.options or audible.size == 0:
        lo, hi = page.frame.levels
    else:
        lo, hi = float(audible.min()), float(audible.max())
    hi = max(hi, lo + _PGM_LEAST_DB)
    step_db = (hi - lo) / (_PGM_TOP - 1)
    steps = np.rint((np.where(is_there, levels, lo) - np.float64(lo)) / step_db)
    values = np.where(is_there, 1.0 + np.clip(steps, 0.0, _PGM_TOP - 1.0), 0.0)
    rows, columns = levels.shape
    height = page.entries.shape[1]
    pixels = replace(
        page.pixels,
        plots=tuple((0, top, columns, height) for top in range(0, rows, height)),
        level_min=lo,
        level_max=hi,
        n_levels=_PGM_TOP,
    )
    comment = json.dumps(json.loads(pixels.to_json()))
    header = (
        f"P5\n# value v >= 1: {lo!r} + (v - 1) * {step_db!r} {pixels.level_unit}; 0: no samples\n"
        f"# {METADATA_KEY}: {comment}\n{columns} {rows}\n{_PGM_TOP}\n"
    )
    return header.encode("ascii") + values.astype(">u2").tobytes()


def _svg(document: Document) -> bytes:
    from spectrod.formats.picture.vector import VectorSheet  # noqa: PLC0415

    sheet = VectorSheet(*document.size, document.theme, document.palette)
    document.draw(sheet)
    return sheet.svg(document.about.title, document.about.description)


def _pdf(document: Document) -> bytes:
    # Optional; its import takes longer than everything else.
    from spectrod.formats.picture.pdf import PdfSheet  # noqa: PLC0415

    if document.entries is None:
        report_missing((document.about.title, *document.names))
    with PdfSheet(*document.size, document.theme, document.palette) as sheet:
        document.draw(sheet)
        return sheet.pdf(document.about)


def _saved(image: Image.Image, **settings: object) -> bytes:
    out = io.BytesIO()
    image.save(out, **settings)  # type: ignore[arg-type]
    return out.getvalue()


_ENCODERS: dict[str, Callable[[Document], bytes]] = {
    ".png": _png,
    ".jpg": _jpeg,
    ".jpeg": _jpeg,
    ".webp": _webp,
    ".svg": _svg,
    ".pdf": _pdf,
}

_LEVELS = ".pgm"
"""Suffix of pictures of the levels themselves, without a palette."""

SUFFIXES = (*_ENCODERS, _LEVELS)


def encode(page: Page, suffix: str, *, kept_pixels_max: int = _KEPT_PIXELS_MAX) -> bytes:
    """Encode a page in the format of a suffix, one of ``SUFFIXES`` in any case.

    The frame of a page of up to ``kept_pixels_max`` [px] is kept for further pictures.

    Every file contains a description of its pixels: a PNG in its text entry "spectrod", an SVG in
    ``metadata``, a PDF in its XMP, JPEG and WebP in EXIF's ImageDescription, a PGM in a comment.
    """
    suffix = suffix.lower()
    return (
        _pgm(page)
        if suffix == _LEVELS
        else encode_document(_document(page, kept_pixels_max), suffix)
    )


def encode_document(document: Document, suffix: str) -> bytes:
    """Encode any page in the format of a suffix, see ``encode``; .pgm holds levels only."""
    return _ENCODERS[suffix](document)


def check_pdf() -> None:
    """Raise UnavailableError if the package for PDF is not installed; the text says which."""
    # Imported when needed, because it takes 20 ms.
    from importlib import metadata  # noqa: PLC0415

    try:
        # By distribution: an older package has the same import name.
        metadata.distribution("fpdf2")
    except metadata.PackageNotFoundError:
        raise UnavailableError(
            ".pdf: fpdf2 is not installed: pip install 'spectrod[pdf]'"
        ) from None


def check_format(suffix: str, options: PictureOptions, spec: SpectrumSpec) -> None:
    """Check before recording that a format can hold such pictures.

    Raises
    ------
    ConfigError
        If the suffix is unknown, or a page would exceed the largest size of its format.
    UnavailableError
        If Pillow was built without the format, or the package for PDF is not installed.
    """
    suffix = suffix.lower()
    if suffix not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        raise ConfigError(f"{suffix or 'no suffix'}: a picture's suffix must be one of {known}")
    codec = _CODECS.get(suffix)
    if codec is not None and not features.check(codec):
        raise UnavailableError(f"{suffix}: the installed Pillow cannot write it")
    if suffix == ".pdf":
        check_pdf()
    n_plots = 1 if options.channels_as == "files" else spec.n_signals
    size = (options.width, options.height_for(n_plots))
    largest = max(page_limits(size, n_plots, len(options.strips)))
    if largest > _SIDE_MAX.get(suffix, largest):
        raise ConfigError(
            f"width={size[0]}, height={size[1]}, channels={n_plots}: a page may get {largest} "
            f"pixels long, and {suffix} has at most {_SIDE_MAX[suffix]}"
        )
