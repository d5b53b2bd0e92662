"""Encoders of a page, one for each file format."""

import io
import json
from collections.abc import Callable

import numpy as np
from msgspec.structs import replace
from PIL import Image, PngImagePlugin, features

from spectrod.errors import ConfigError, UnavailableError
from spectrod.formats.picture.colormaps import Uint8Array
from spectrod.formats.picture.drawing import draw
from spectrod.formats.picture.embedded import EXIF_DESCRIPTION, METADATA_KEY
from spectrod.formats.picture.layout import page_limits
from spectrod.formats.picture.lettering import report_missing
from spectrod.formats.picture.options import PictureOptions
from spectrod.formats.picture.page import Page
from spectrod.formats.picture.theme import THEMES, palette
from spectrod.text import printable
from spectrod.types import SpectrumSpec

_JPEG_QUALITY = 92
_PNG_LEVEL = 3
"""Takes half the time of zlib's default 6, for files about 4 % larger."""

_EXIF_SOFTWARE = 0x0131
_CODECS = {".jpg": "jpg", ".jpeg": "jpg", ".webp": "webp"}
"""Optional parts of Pillow."""

_SIDE_MAX = {".jpg": 65500, ".jpeg": 65500, ".webp": 16383, ".pdf": 19200}
"""Largest width or height of a format [px]; for PDF 200 inches (ISO 32000-1, annex C)."""

_PGM_TOP = 65535
"""Largest value of a pixel; 0 stands for missing samples."""

_PGM_LEAST_DB = 1e-3
"""Smallest range of levels, so that a flat picture has a scale too."""


def _canvas(page: Page) -> Uint8Array:
    """Return the palette entry of each pixel of the page, shape (height, width)."""
    if page.is_bare:
        return page.entries.reshape(-1, page.entries.shape[2])
    # Imported when needed: a raw picture needs no drawing.
    from spectrod.formats.picture.sheet import Sheet  # noqa: PLC0415

    report_missing((page.title, *page.names))
    sheet = Sheet(page.layout.width, page.layout.height)
    draw(page, sheet)
    return sheet.entries()


def _image(page: Page) -> Image.Image:
    image = Image.fromarray(_canvas(page))
    image.putpalette(palette(page.colormap, THEMES[page.theme]))
    return image


def _png(page: Page) -> bytes:
    info = PngImagePlugin.PngInfo()
    if page.title:
        info.add_text("Title", printable(page.title))
    info.add_text("Software", page.pixels.software)
    info.add_text(METADATA_KEY, page.pixels.to_json())
    return _saved(_image(page), format="PNG", pnginfo=info, compress_level=_PNG_LEVEL)


def _exif(page: Page) -> Image.Exif:
    exif = Image.Exif()
    # EXIF texts are ASCII, into which JSON can encode all characters.
    exif[EXIF_DESCRIPTION] = json.dumps(json.loads(page.pixels.to_json()))
    exif[_EXIF_SOFTWARE] = page.pixels.software
    return exif


def _jpeg(page: Page) -> bytes:
    # Subsampled colours would smear letters and single rows of tones.
    image = _image(page).convert("RGB")
    exif = _exif(page)
    return _saved(image, format="JPEG", quality=_JPEG_QUALITY, subsampling=0, exif=exif)


def _webp(page: Page) -> bytes:
    image = _image(page).convert("RGB")
    return _saved(image, format="WEBP", lossless=True, quality=30, method=2, exif=_exif(page))


def _pgm(page: Page) -> bytes:
    """Encode the plots' levels with 16 bits; a comment describes them."""
    levels = page.raw_levels.reshape(-1, page.raw_levels.shape[2])
    is_there = np.isfinite(levels)
    heard = levels[is_there]
    if "levels" in page.pixels.options or heard.size == 0:
        lo, hi = page.levels
    else:
        lo, hi = float(heard.min()), float(heard.max())
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


def _svg(page: Page) -> bytes:
    from spectrod.formats.picture.vector import VectorSheet  # noqa: PLC0415

    theme = THEMES[page.theme]
    layout = page.layout
    sheet = VectorSheet(layout.width, layout.height, theme, palette(page.colormap, theme))
    draw(page, sheet)
    return sheet.svg(page.title, page.pixels.to_json())


def _pdf(page: Page) -> bytes:
    # Optional; its import takes longer than everything else.
    from spectrod.formats.picture.pdf import About, PdfSheet  # noqa: PLC0415

    if not page.is_bare:
        report_missing((page.title, *page.names))
    theme, pixels, layout = THEMES[page.theme], page.pixels, page.layout
    with PdfSheet(layout.width, layout.height, theme, palette(page.colormap, theme)) as sheet:
        draw(page, sheet)
        return sheet.pdf(About(page.title, pixels.software, pixels.begin_utc_ns, pixels.to_json()))


def _saved(image: Image.Image, **settings: object) -> bytes:
    out = io.BytesIO()
    image.save(out, **settings)  # type: ignore[arg-type]
    return out.getvalue()


_ENCODERS: dict[str, Callable[[Page], bytes]] = {
    ".png": _png,
    ".jpg": _jpeg,
    ".jpeg": _jpeg,
    ".webp": _webp,
    ".pgm": _pgm,
    ".svg": _svg,
    ".pdf": _pdf,
}

SUFFIXES = tuple(_ENCODERS)


def encode(page: Page, suffix: str) -> bytes:
    """Encode a page in the format of a suffix, one of ``SUFFIXES`` in any case.

    Every file contains a description of its pixels: a PNG in its text entry "spectrod", an SVG in
    ``metadata``, a PDF in its XMP, JPEG and WebP in EXIF's ImageDescription, a PGM in a comment.
    """
    return _ENCODERS[suffix.lower()](page)


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
    if suffix not in _ENCODERS:
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
