"""Named values of intervals, as texts for pages, at most ten a second of each topic."""

from typing import Any

from spectrod.lib.text import printable
from spectrod.wire.schema import IntervalFrame, TonesFrame, TransferFrame

_NAME_MAX = 80


def values_fields(topic_id: int, frame: IntervalFrame) -> dict[str, Any]:
    """Return the fields of a ``values`` text."""
    h = frame.header
    fields = {
        "topic_id": topic_id,
        "t_ms": h.t_utc_ns / 1e6,
        "interval_s": h.interval_s,
        "names": _printable(h.quantities),
        "units": _printable(h.units),
        "values": frame.values.tolist(),
        "flags": _printable(h.flags),
    }
    if isinstance(frame, TonesFrame):
        more = {"columns": _printable(frame.header.columns), "tracks": frame.tracks.tolist()}
        return fields | more
    if isinstance(frame, TransferFrame):
        return fields | {"reference": printable(frame.header.reference, _NAME_MAX)}
    return fields


class NewestValues:
    """The newest message of each topic since ``take``: whoever is faster than that loses some."""

    def __init__(self) -> None:
        self._frames: dict[int, IntervalFrame] = {}

    def put(self, topic_id: int, frame: IntervalFrame) -> None:
        """Add a message in place of an earlier one of its topic."""
        self._frames[topic_id] = frame

    def take(self) -> dict[int, IntervalFrame]:
        """Return the messages by topic, and forget them."""
        frames, self._frames = self._frames, {}
        return frames


def _printable(texts: tuple[str, ...]) -> list[str]:
    return [printable(text, _NAME_MAX) for text in texts]
