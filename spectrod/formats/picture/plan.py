"""Plan of picture outputs."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spectrod.formats.picture.painter import Painter, Transpose
    from spectrod.formats.picture.picture_settings import PictureOptions


@dataclass(frozen=True, slots=True)
class PicturePlan:
    """Plan of picture outputs.

    Attributes
    ----------
    options : PictureOptions
        Options of the pictures.
    paint : Painter or callable
        See ``PictureSink``.
    seconds_per_pixel : float
        Time per pixel of a picture whose width follows from its length; 0 for ``options.width``.
    view : {"spectrogram", "ltsa", "spd"}
        View of the pictures; "spd" makes data files of levels too, see ``SpdSink``.
    origin_sample : int or None
        Sample at which elapsed time is 0; None for the first one that is drawn.
    """

    options: "PictureOptions"
    paint: "Painter | Transpose"
    seconds_per_pixel: float = 0.0
    view: str = "spectrogram"
    origin_sample: int | None = None
