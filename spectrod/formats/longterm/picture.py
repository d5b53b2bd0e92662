"""The picture of level statistics: x is frequency, y is level, colour is density."""

import dataclasses
import io
import json

from PIL import Image, PngImagePlugin

from spectrod.formats.description import Description, spec_fields
from spectrod.formats.longterm.data import Span
from spectrod.formats.longterm.drawing import draw
from spectrod.formats.longterm.page import Page, compose
from spectrod.formats.longterm.statistics import LevelStatistics
from spectrod.formats.picture.lettering import report_missing
from spectrod.formats.picture.options import PictureOptions
from spectrod.formats.picture.sheet import Sheet
from spectrod.formats.picture.theme import N_LEVELS, THEMES, palette
from spectrod.formats.picture.vector import VectorSheet
from spectrod.text import printable

METADATA_KEY = "spectrod-levels"
"""Name of the PNG text entry that describes the pixels."""


def draw_spd(
    statistics: LevelStatistics,
    about: Description,
    options: PictureOptions,
    span: Span,
    *,
    suffix: str,
) -> bytes:
    """Draw the spectral probability density with exceedance levels and the mean.

    Parameters
    ----------
    statistics : LevelStatistics
        Statistics of at least one row.
    about : Description
        Description of the rows.
    options : PictureOptions
        Picture options, see ``SpdSink``.
    span : Span
        Time span of the rows.
    suffix : str
        .png, .jpg, .jpeg, .webp, .svg or .pdf.

    Returns
    -------
    content : bytes
        Content of the file.
    """
    page = compose(statistics, about, options, span)
    theme = THEMES[options.theme]
    colours = palette(options.colormap, theme)
    meaning = _meaning(page, statistics, about, span)
    if suffix == ".svg":
        sheet = VectorSheet(page.width, page.height, theme, colours)
        draw(page, sheet)
        return sheet.svg(page.title, meaning)
    report_missing((page.title, *page.names))
    if suffix == ".pdf":
        # An optional package, whose import takes longer than everything else.
        from spectrod.formats.picture.pdf import About, PdfSheet  # noqa: PLC0415

        with PdfSheet(page.width, page.height, theme, colours) as document:
            draw(page, document)
            return document.pdf(About(page.title, about.software, span.begin_utc_ns, meaning))
    pixels = Sheet(page.width, page.height)
    draw(page, pixels)
    image = Image.fromarray(pixels.entries())
    image.putpalette(colours)
    return _encoded(image, suffix, page.title, meaning)


def _meaning(page: Page, statistics: LevelStatistics, about: Description, span: Span) -> str:
    """Describe the pixels: column x of a plot is at the fraction (x + 0.5) / width of the axis."""
    spec = about.spec
    return json.dumps(
        {
            "v": 1,
            "plots": [[box.left, box.top, box.width, box.height] for box in page.plots],
            "f_scale": page.f_axis.scale,
            "f_min_hz": page.f_axis.lo_hz,
            "f_max_hz": page.f_axis.hi_hz,
            "level_min": page.limits[0],
            "level_max": page.limits[1],
            "level_unit": page.level_labels.title,
            "density_max": page.bar_limit,
            "n_levels": N_LEVELS,
            "n_rows": statistics.n_rows,
            "step_db": statistics.step_db,
            **dataclasses.asdict(span),
            "source": about.source,
            "software": about.software,
            "cal_id": about.cal_id,
            "spec": spec_fields(spec),
        }
    )


def _encoded(image: Image.Image, suffix: str, title: str, meaning: str) -> bytes:
    out = io.BytesIO()
    if suffix == ".png":
        info = PngImagePlugin.PngInfo()
        if title:
            info.add_text("Title", printable(title))
        info.add_text(METADATA_KEY, meaning)
        image.save(out, format="PNG", pnginfo=info)
        return out.getvalue()
    exif = Image.Exif()
    exif[0x010E] = meaning  # ImageDescription
    rgb = image.convert("RGB")
    if suffix == ".webp":
        rgb.save(out, format="WEBP", lossless=True, exif=exif)
    else:
        # Subsampled colours would smear letters and thin lines.
        rgb.save(out, format="JPEG", quality=92, subsampling=0, exif=exif)
    return out.getvalue()
