"""Texts of a page: what it shows, what it has drawn. Nothing of a page is believed unchecked."""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta as Rule

from spectrod.apps.web.limits import Limits
from spectrod.apps.web.slicing import AxisKind
from spectrod.dsp.ballistics import BALLISTICS_MAX_S, DECAY_MAX_DB_S, Ballistics
from spectrod.lib.errors import ConfigError
from spectrod.lib.text import printable, reason_of

STREAM_ID_MAX: Final = 255
PX_MAX: Final = 4096
"""Pixels of a stream's axis."""
CURSORS_MAX: Final = 8
BANDS_MAX: Final = 8
PEAKS_MAX: Final = 50
TOPICS_MAX: Final = 4096
"""Topics that are known, of all endpoints."""

_ROWS_S_MIN = 0.01
_HZ_MAX = 2e12
_INT_MAX = (1 << 53) - 1

_Hertz = Annotated[float, Rule(ge=-_HZ_MAX, le=_HZ_MAX)]
_Number = Annotated[int, Rule(ge=0, le=_INT_MAX)]
_Band = tuple[_Hertz, _Hertz]
_Seconds = Annotated[float, Rule(ge=0.0, le=BALLISTICS_MAX_S)]


class MeasureWish(msgspec.Struct, frozen=True):
    """What is measured of a stream's newest row."""

    cursors: Annotated[tuple[_Hertz, ...], Rule(max_length=CURSORS_MAX)] = ()
    """Frequencies [Hz]."""
    bands: Annotated[tuple[_Band, ...], Rule(max_length=BANDS_MAX)] = ()
    """Ranges whose power is summed [Hz]."""
    peaks: Annotated[int, Rule(ge=0, le=PEAKS_MAX)] = 0
    """Number of the strongest peaks."""


class StreamWish(msgspec.Struct, frozen=True):
    """A stream of rows; the fields are those of ``docs/web-protocol.md``."""

    id: Annotated[int, Rule(ge=0, le=STREAM_ID_MAX)]
    topic_id: _Number
    f0: _Hertz
    f1: _Hertz
    px: Annotated[int, Rule(ge=1, le=PX_MAX)]
    axis: AxisKind = "linear"
    of: Literal["rows", "max", "min", "mean"] = "rows"
    stat: Literal["max", "mean"] = "max"
    rows_s: Annotated[float, Rule(ge=_ROWS_S_MIN)] = 50.0
    bits: Literal[8, 16] = 8
    measure: MeasureWish | None = None
    decay_db_s: Annotated[float, Rule(ge=0.0, le=DECAY_MAX_DB_S)] = 0.0
    hold_s: _Seconds = 0.0
    time_constant_s: _Seconds = 0.0

    @property
    def ballistics(self) -> Ballistics:
        """Ballistics of its hold; what does not concern it is 0."""
        if self.of == "mean":
            return Ballistics(time_constant_s=self.time_constant_s)
        return Ballistics(self.decay_db_s, self.hold_s if self.decay_db_s else 0.0)


class View(msgspec.Struct, frozen=True, tag_field="op", tag="view"):
    """All that a page shows; a later one replaces it."""

    generation: _Number
    visible: bool = True
    streams: Annotated[tuple[StreamWish, ...], Rule(max_length=STREAM_ID_MAX + 1)] = ()
    values: Annotated[tuple[_Number, ...], Rule(max_length=TOPICS_MAX)] | None = None


class Acknowledgement(msgspec.Struct, frozen=True, tag_field="op", tag="ack"):
    """The number of the newest binary message that was drawn."""

    message: Annotated[int, Rule(ge=0, lt=1 << 32)]


class HoldReset(msgspec.Struct, frozen=True, tag_field="op", tag="reset"):
    """The holds of a topic begin again."""

    topic_id: _Number


PageText = View | Acknowledgement | HoldReset

_decoder = msgspec.json.Decoder(PageText)


def parse_text(text: str | bytes, limits: Limits) -> PageText:
    """Parse a text of a page.

    Raises
    ------
    ConfigError
        If it is too long, no JSON, or breaks a rule; the text names the value and the rule.
    """
    if len(text) > limits.message_bytes:
        raise ConfigError(f"text of {len(text)} bytes: must have at most {limits.message_bytes}")
    try:
        found: PageText = _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ConfigError(printable(f"text: {reason_of(error)}", 300)) from None
    if isinstance(found, View):
        _check_view(found, limits)
    return found


def _check_view(view: View, limits: Limits) -> None:
    if len(view.streams) > limits.streams:
        raise ConfigError(f"{len(view.streams)} streams: must be at most {limits.streams}")
    ids = [wish.id for wish in view.streams]
    if len(set(ids)) < len(ids):
        raise ConfigError(f"streams: ids {ids} must differ")
    for wish in view.streams:
        bands = wish.measure.bands if wish.measure else ()
        for f0, f1 in ((wish.f0, wish.f1), *bands):
            if not f0 < f1:
                raise ConfigError(f"stream {wish.id}: f0={f0:g}, f1={f1:g}: f0 must be below f1")
