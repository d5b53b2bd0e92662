"""What a picture's pixels mean, written into the file and read back from it."""

import os
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from PIL import Image, UnidentifiedImageError

from spectrod.errors import ConfigError, InputError
from spectrod.record.picture.axes import FrequencyAxis, FrequencyScale
from spectrod.types import SpectrumSpec
from spectrod.units import Float32Array, Float64Array, Scaling

METADATA_KEY = "spectrod"
"""Name of the PNG text entry."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What was analysed, besides its power.

    Attributes
    ----------
    spec : SpectrumSpec
        Of all frames.
    engine : str
        What computed them; where one failed, also what went on after it.
    begin_utc_ns : int
        UTC of the first frame's first sample [ns].
    gaps : int
        Discontinuities between frames.
    gap_samples : int
        Samples missing in them.
    software : str
        Name and version to be written into the file.
    """

    spec: SpectrumSpec
    engine: str
    begin_utc_ns: int
    gaps: int
    gap_samples: int
    software: str

    def facts(self) -> dict[str, Any]:
        """Everything as plain values, by the names of ``PixelMap``'s fields."""
        spec = self.spec
        return {
            "fs": spec.fs,
            "channels": spec.channels,
            "window": spec.window,
            "win_length": spec.win_length,
            "hop": spec.hop,
            "nfft": spec.nfft,
            "scaling": spec.scaling,
            "enbw_hz": spec.enbw_hz,
            "iq": spec.iq,
            "weighting": spec.weighting,
            "bands": spec.bands,
            "engine": self.engine,
            "begin_utc_ns": self.begin_utc_ns,
            "gaps": self.gaps,
            "gap_samples": self.gap_samples,
            "software": self.software,
        }


class PixelMap(msgspec.Struct, frozen=True, kw_only=True):
    """How to read a picture, as JSON in its PNG text entry "spectrod".

    A pixel of a plot whose palette index i is below ``n_levels`` has the level
    ``level_min + i * (level_max - level_min) / (n_levels - 1)``; the first and the last index also
    stand for everything beyond. Other indices: no samples. Pixel column x of a plot is at the time
    ``(x + 0.5) / width * duration_s`` after the first sample, whose UTC is ``begin_utc_ns``; row y,
    from the top, is at the fraction ``1 - (y + 0.5) / height`` of the frequency axis.
    """

    plots: tuple[tuple[int, int, int, int], ...]
    """Left, top, width and height of each channel's plot [px]."""
    f_scale: FrequencyScale
    f_min_hz: float
    f_max_hz: float
    duration_s: float
    level_min: float
    level_max: float
    level_unit: str
    n_levels: int
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
    weighting: str = "Z"
    bands: str = ""
    options: dict[str, Any] = msgspec.field(default_factory=dict)
    """What was asked of the picture where it differs from the defaults, by the names of
    ``PictureOptions``."""
    v: int = 1

    def to_json(self) -> str:
        """Encode for the file."""
        return msgspec.json.encode(self).decode()


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """One channel's plot, read back from a picture.

    Attributes
    ----------
    level : (rows, columns) float32
        In ``pixels.level_unit``, row 0 lowest in frequency; NaN where there are no samples.
    f : (rows,) float64
        Centre of each row [Hz].
    t : (columns,) float64
        Centre of each column since the first sample [s].
    pixels : PixelMap
        Everything that the file says of itself.
    """

    level: Float32Array
    f: Float64Array
    t: Float64Array
    pixels: PixelMap


def _open(path: str | os.PathLike[str]) -> tuple[Image.Image, PixelMap]:
    try:
        with Image.open(path) as image:
            image.load()
            text = image.info.get(METADATA_KEY)
    except (UnidentifiedImageError, SyntaxError) as error:
        raise InputError(f"{os.fspath(path)}: not a readable picture") from error
    except OSError as error:
        raise InputError(f"{os.fspath(path)}: {error.strerror or error}") from error
    if image.mode != "P" or not isinstance(text, str):
        raise InputError(f"{os.fspath(path)}: not a spectrogram of spectrod")
    try:
        return image, msgspec.json.decode(text, type=PixelMap)
    except msgspec.DecodeError as error:
        raise InputError(f"{os.fspath(path)}: damaged description: {error}") from error


def read_levels(path: str | os.PathLike[str], channel: int = 0) -> Levels:
    """Read levels back from a picture's pixels.

    Parameters
    ----------
    path : path-like
        A PNG that spectrod made and that nothing has recoloured or resized.
    channel : int
        From 0.

    Returns
    -------
    levels : Levels
        To within half a step of the palette: (level_max - level_min) / 478.

    Raises
    ------
    InputError
        If the file cannot be read or is not such a picture.
    ConfigError
        If it has no such channel.
    """
    image, pixels = _open(path)
    if not 0 <= channel < len(pixels.plots):
        raise ConfigError(f"channel={channel}: {os.fspath(path)} has 0 to {len(pixels.plots) - 1}")
    left, top, width, height = pixels.plots[channel]
    entries = np.asarray(image)[top : top + height, left : left + width][::-1]
    step = (pixels.level_max - pixels.level_min) / (pixels.n_levels - 1)
    level = np.where(entries < pixels.n_levels, pixels.level_min + step * entries, np.nan)
    axis = FrequencyAxis(pixels.f_scale, pixels.f_min_hz, pixels.f_max_hz)
    t = (np.arange(width) + 0.5) / width * pixels.duration_s
    return Levels(level.astype(np.float32), axis.centres(height), t, pixels)
