"""Levels in the newest message of each topic, as they are kept for replay."""

from collections.abc import Iterator, Sequence

from spectrod.daemon.monitoring.snapshot import ProductLevel
from spectrod.daemon.publisher.sent_messages import History
from spectrod.lib.errors import WireError
from spectrod.wire.interval_levels import Meter
from spectrod.wire.schema import Frame, LevelsFrame, decode

TOPICS_MAX = 512
"""Topics whose newest message is read for one exposition."""


def product_levels(history: History) -> list[ProductLevel]:
    """Return the levels in the newest message of each topic, of ``TOPICS_MAX`` at most.

    The level of a spectrum is that of all its bins together, and that of sound levels each
    quantity. Bands and values that are no power (complex, two-sided) have none.
    """
    found: list[ProductLevel] = []
    for topic in sorted(history.topics())[:TOPICS_MAX]:
        newest = history.newest(topic)
        if newest is not None:
            found += _levels(topic, newest.parts)
    return found


def _levels(topic: str, parts: Sequence[bytes]) -> Iterator[ProductLevel]:
    _, source, channel, product, *_ = topic.split("/")
    try:
        frame = decode(parts)
    except WireError:
        return
    if isinstance(frame, LevelsFrame):
        named = zip(frame.header.quantities, frame.header.units, frame.values.tolist(), strict=True)
        for quantity, unit, value in named:
            yield ProductLevel(source, channel, product, quantity, unit, value)
    elif isinstance(frame, Frame) and frame.header.enbw_hz:
        levels = Meter(frame).levels()
        level_db = float(levels.mean[0])
        yield ProductLevel(source, channel, product, "broadband", levels.unit, level_db)
