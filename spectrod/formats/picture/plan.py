"""How an output that is a picture is made."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spectrod.formats.picture.options import PictureOptions
    from spectrod.formats.picture.painter import Painter, Transpose


@dataclass(frozen=True, slots=True)
class PicturePlan:
    """How pictures are made.

    Attributes
    ----------
    options : PictureOptions
        What they look like.
    paint : Painter or callable
        See ``PictureSink``.
    seconds_per_pixel : float
        Of a picture whose width follows from its length; 0 for one of ``options.width``.
    view : {"spectrogram", "ltsa", "spd"}
        What they show; of "spd", numbers are of levels too, see ``SpdSink``.
    origin_sample : int or None
        From which sample on elapsed time counts; None: from the first that is drawn.
    """

    options: "PictureOptions"
    paint: "Painter | Transpose"
    seconds_per_pixel: float = 0.0
    view: str = "spectrogram"
    origin_sample: int | None = None
