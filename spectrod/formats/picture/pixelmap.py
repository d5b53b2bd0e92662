"""Description of a picture's pixels, written into the file and read back from it."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from spectrod.dsp.spectrum import SPEC_FIELDS, SpectrumSpec, chosen
from spectrod.dsp.units import Float32Array, Float64Array, Scaling
from spectrod.formats.picture.axes import FrequencyAxis, FrequencyScale
from spectrod.formats.picture.embedded import embedded_text
from spectrod.formats.picture.picture_settings import PictureOptions
from spectrod.formats.picture.pillow import reading
from spectrod.formats.picture.recorded_spans import NO_PAUSES, Pauses, PictureSchedule
from spectrod.lib.errors import ConfigError, InputError
from spectrod.lib.json_text import decode_json

_AVERAGING = ("averaging", "averaging_s", "rate_hz", "align")
_NOT_ASKED = ("output", "averaging_frames", "product", "broadband")
"""Fields of an analysis that follow from others, or from the writer of the file."""
_FORMATS = ("PNG", "PPM")
"""Formats that have levels as numbers, by Pillow's names."""


@dataclass(frozen=True, slots=True)
class Recording:
    """Metadata of the analysed recording.

    Attributes
    ----------
    spec : SpectrumSpec
        Spec of all frames.
    engine : str
        Name of the engine that computed the frames; after a failure also that of its fallback.
    begin_utc_ns : int
        UTC of the first frame's first sample [ns].
    gaps : int
        Discontinuities between frames.
    gap_samples : int
        Samples missing in them.
    software : str
        Name and version for the file.
    schedule : PictureSchedule, optional
        Schedule that explains some of the gaps.
    is_by_period : bool
        Whether columns stand for periods of the schedule.
    row_frames : int
        Most frames that a row is an average of; 0: as many as the spec says.
    """

    spec: SpectrumSpec
    engine: str
    begin_utc_ns: int
    gaps: int
    gap_samples: int
    software: str
    schedule: PictureSchedule | None = None
    is_by_period: bool = False
    row_frames: int = 0

    @property
    def pauses(self) -> Pauses:
        """Gaps that the schedule explains."""
        return self.schedule.pauses if self.schedule else NO_PAUSES

    @property
    def period_s(self) -> float:
        """Period of the schedule that columns stand for; 0 if they stand for their own time [s]."""
        return self.schedule.duty_cycle.period_s if self.schedule and self.is_by_period else 0.0

    def facts(self) -> dict[str, Any]:
        """Return all metadata as plain values, by the names of ``PixelMap``'s fields."""
        spec, known = self.spec, PixelMap.__struct_fields__
        others = [name for name in SPEC_FIELDS if name not in {*known, *_NOT_ASKED}]
        is_asked = spec.rate_hz or spec.averaging == "exponential"  # else the picture averages
        return {
            **{name: getattr(spec, name) for name in SPEC_FIELDS if name in known},
            "enbw_hz": spec.enbw_hz,
            "analysis": chosen(spec, [n for n in others if is_asked or n not in _AVERAGING]),
            "engine": self.engine,
            "begin_utc_ns": self.begin_utc_ns,
            "gaps": self.gaps,
            "gap_samples": self.gap_samples,
            "software": self.software,
            "cal_id": spec.scale.cal_id or msgspec.UNSET,
            "period_s": self.period_s or msgspec.UNSET,
        }


PAGE_PIXELS_MAX = 1 << 27
"""Limit of a picture that is read: plots of 100 million pixels, and the page around them."""

_Place = Annotated[int, msgspec.Meta(ge=0, le=PAGE_PIXELS_MAX)]
_Length = Annotated[int, msgspec.Meta(ge=1, le=PAGE_PIXELS_MAX)]
_Count = Annotated[int, msgspec.Meta(ge=2, le=1 << 16)]


class PixelMap(msgspec.Struct, frozen=True, kw_only=True):
    """Metadata to read a picture, as JSON in it: see ``spectrod.formats.picture.embedded``.

    A pixel of a plot whose palette index i (in a PGM: its value less one) is below ``n_levels`` has
    the level ``level_min + i * (level_max - level_min) / (n_levels - 1)``; the first and the last
    index also stand for levels beyond. Other indices mean that samples are missing. Pixel column x
    of a plot is at the time ``(x + 0.5) / width * duration_s`` after the first sample, whose UTC is
    ``begin_utc_ns``; row y, from the top, is at the fraction ``1 - (y + 0.5) / height`` of the
    frequency axis.
    """

    plots: tuple[tuple[_Place, _Place, _Length, _Length], ...]
    """Left, top, width and height of each channel's plot [px]."""
    f_scale: FrequencyScale
    f_min_hz: float
    f_max_hz: float
    duration_s: float
    level_min: float
    level_max: float
    level_unit: str
    n_levels: _Count
    fs: float
    channels: int
    window: str
    win_length: int
    hop: int
    nfft: int
    scaling: Scaling
    enbw_hz: float
    engine: str
    begin_utc_ns: int
    gaps: int
    gap_samples: int
    software: str
    iq: bool = False
    center_frequency_hz: float = 0.0
    weighting: str = "Z"
    bands: str = ""
    analysis: dict[str, Any] = msgspec.field(default_factory=dict)
    """Other given parameters of the analysis that differ from the defaults, by the names of
    ``SpectrumSpec``."""
    options: dict[str, Any] = msgspec.field(default_factory=dict)
    """Options of the picture that differ from the defaults, by the names of ``PictureOptions``."""
    cal_id: str | msgspec.UnsetType = msgspec.UNSET
    """Identity of the calibration; absent without one."""
    period_s: float | msgspec.UnsetType = msgspec.UNSET
    """Period of the recorder's schedule, if columns are shorter than its pauses: a column has the
    level of the recording of the period that its centre lies in [s]."""
    v: int = 1

    def to_json(self) -> str:
        """Encode as JSON."""
        return msgspec.json.encode(self).decode()


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """One channel's plot, read back from a picture.

    Attributes
    ----------
    level : (rows, columns) float32
        Levels in ``pixels.level_unit``, row 0 lowest in frequency; NaN where samples are missing.
    f : (rows,) float64
        Centre of each row [Hz].
    t : (columns,) float64
        Centre of each column since the first sample [s].
    pixels : PixelMap
        All metadata of the file.
    """

    level: Float32Array
    f: Float64Array
    t: Float64Array
    pixels: PixelMap


def read_pixel_map(path: str | os.PathLike[str]) -> PixelMap:
    """Read the metadata of a picture, in any format.

    Raises
    ------
    InputError
        If the file cannot be read, or is not a spectrogram of spectrod.
    """
    path = Path(path)
    try:
        return decode_json(embedded_text(path), PixelMap)
    except ValueError as error:
        raise InputError(f"{path}: damaged description: {error}") from error


def options_of(pixels: PixelMap, path: Path) -> PictureOptions:
    """Return the options with which a picture was made, except its title.

    Raises
    ------
    InputError
        If they are not valid; the text begins with the path.
    """
    try:
        return msgspec.convert(pixels.options, PictureOptions)
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: damaged description: {error}") from error


def _indices(path: Path, pixels: PixelMap, channel: int) -> NDArray[np.int64]:
    """Return the index of each pixel of a plot, shape (height, width); ``n_levels`` if missing."""
    left, top, width, height = pixels.plots[channel]
    unidentified = f"{path}: must be a PNG or a PGM, which have levels as numbers"
    with reading(unidentified, f"{path}: "), Image.open(path, formats=_FORMATS) as image:
        _check_page(path, image.size, (left + width, top + height))
        image.load()
    if image.format != "PPM" and image.mode != "P":
        raise InputError(unidentified)
    values = np.asarray(image)[top : top + height, left : left + width].astype(np.int64)
    return np.where(values > 0, values - 1, pixels.n_levels) if image.format == "PPM" else values


def _check_page(path: Path, size: tuple[int, int], end: tuple[int, int]) -> None:
    """Raise InputError if a page is too large, or does not contain a whole plot."""
    if size[0] * size[1] > PAGE_PIXELS_MAX:
        raise InputError(
            f"{path}: {size[0]} x {size[1]} pixels: must be at most {PAGE_PIXELS_MAX} together"
        )
    if end[0] > size[0] or end[1] > size[1]:
        raise InputError(
            f"{path}: damaged description: a plot ends at {end[0]}, {end[1]}, beyond the page"
        )


def read_levels(path: str | os.PathLike[str], channel: int = 0) -> Levels:
    """Read levels back from a picture's pixels.

    Parameters
    ----------
    path : path-like
        A PNG or a PGM of spectrod, not recoloured or resized since.
    channel : int
        Index from 0.

    Returns
    -------
    levels : Levels
        Levels within half a step: (level_max - level_min) / (n_levels - 1) / 2, which is 1/478 of
        the colour map of a PNG.

    Raises
    ------
    InputError
        If the file cannot be read or is not such a picture.
    ConfigError
        If it has no such channel.
    """
    path = Path(path)
    pixels = read_pixel_map(path)
    if not 0 <= channel < len(pixels.plots):
        raise ConfigError(f"channel={channel}: {path} has 0 to {len(pixels.plots) - 1}")
    _, _, width, height = pixels.plots[channel]
    indices = _indices(path, pixels, channel)[::-1]
    step = (pixels.level_max - pixels.level_min) / (pixels.n_levels - 1)
    level = np.where(indices < pixels.n_levels, pixels.level_min + step * indices, np.nan)
    axis = FrequencyAxis(pixels.f_scale, pixels.f_min_hz, pixels.f_max_hz)
    t = (np.arange(width) + 0.5) / width * pixels.duration_s
    return Levels(level.astype(np.float32), axis.centres(height), t, pixels)
