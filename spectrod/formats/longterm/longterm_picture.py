"""The picture of level statistics: x is frequency, y is level, colour is density."""

import json
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from spectrod.formats.description import Description, spec_fields
from spectrod.formats.longterm.data import Span
from spectrod.formats.longterm.longterm_drawing import draw
from spectrod.formats.longterm.longterm_page import LongTermPage, compose
from spectrod.formats.longterm.statistics import LevelStatistics
from spectrod.formats.picture.embedded import METADATA_KEY as PICTURE_KEY
from spectrod.formats.picture.embedded import embedded_text
from spectrod.formats.picture.encode import Document, PictureMetadata, encode_document
from spectrod.formats.picture.picture_settings import PictureOptions
from spectrod.formats.picture.theme import N_LEVELS, THEMES, palette
from spectrod.lib.errors import InputError
from spectrod.lib.json_text import decode_json

METADATA_KEY = "spectrod-levels"
"""Name of the PNG text entry that describes the pixels."""

_NOT_REPEATED = ("time_axis", "signals")
"""Options that belong to one recording."""


class StatisticsPicture(msgspec.Struct, frozen=True):
    """What a picture of level statistics says about itself that another one can repeat.

    Attributes
    ----------
    f_scale : str
        Frequency axis.
    f_min_hz, f_max_hz : float
        Its ends [Hz].
    level_min, level_max : float
        Ends of the level axis [dB].
    density_max : float
        End of the colour bar, which spectrograms do not have [1/dB].
    cal_id : str
        Calibration; empty without.
    options : dict
        Options of the picture that are not the defaults; a title is none of them.
    """

    f_scale: str
    f_min_hz: float
    f_max_hz: float
    level_min: float
    level_max: float
    density_max: float
    cal_id: str = ""
    options: dict[str, Any] = {}

    def settings(self) -> dict[str, Any]:
        """Return options of ``PictureOptions`` for another picture with the same axes.

        Raises
        ------
        ConfigError, msgspec.ValidationError
            If they are not valid.
        """
        axes = {
            "f_scale": self.f_scale,
            "f_min": self.f_min_hz,
            "f_max": self.f_max_hz,
            "levels": [self.level_min, self.level_max],
        }
        # Of a later version there may be others; they are left out as unknown.
        names = {one.name for one in fields(PictureOptions)}.difference(_NOT_REPEATED)
        chosen = {name: value for name, value in self.options.items() if name in names}
        valid = msgspec.convert(chosen | axes, PictureOptions)
        return {name: getattr(valid, name) for name in chosen | axes}


def read_statistics_picture(path: Path) -> StatisticsPicture | None:
    """Read what a picture of level statistics says, in any format; None if it is none."""
    for key in (METADATA_KEY, PICTURE_KEY):
        try:
            return decode_json(embedded_text(path, key), StatisticsPicture)
        except (InputError, ValueError):
            continue
    return None


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
    meaning = _meaning(page, statistics, about, options, span)
    document = Document(
        PictureMetadata(page.title, about.software, span.begin_utc_ns, meaning, METADATA_KEY),
        (page.width, page.height),
        partial(draw, page),
        page.names,
        theme,
        palette(options.colormap, theme),
    )
    return encode_document(document, suffix)


def _meaning(
    page: LongTermPage,
    statistics: LevelStatistics,
    about: Description,
    options: PictureOptions,
    span: Span,
) -> str:
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
            **span.fields(),
            "source": about.source,
            "software": about.software,
            "cal_id": about.cal_id,
            "spec": spec_fields(spec),
            "options": options.chosen(),
        }
    )
