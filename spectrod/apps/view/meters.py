"""Lines of measurements: newest values, held peaks and flags."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby, islice

from spectrod.apps.view.status import plain
from spectrod.client.bounded_dict import BoundedDict
from spectrod.wire.headers import MEASUREMENTS
from spectrod.wire.schema import IntervalFrame, TransferFrame

LINES_MAX = 3
"""Maximum number of lines of a channel: levels first, then by name."""
VALUES_MAX = 16
"""Maximum number of values of a line: the first ones; those in bands come last in a message."""

_UNITS = {"1": "", "s": "ms"}
"""Units that are shown otherwise: delays are milliseconds."""
_HELD = re.compile(r"peak|true_peak|L[ACZ]peak")
_TOPICS_MAX = 1024
_BYTES_MAX = 16 << 20
_KEPT_INTERVALS = 3.0
_KEPT_MIN_S = 3.0


@dataclass(slots=True)
class _TopicMeter:
    """The newest message of a topic, and the highest values since the last reset."""

    frame: IntervalFrame
    heard_s: float
    held: dict[str, float] = field(default_factory=dict)

    def is_like(self, frame: IntervalFrame) -> bool:
        """Return whether a message has the same quantities, units and start of the daemon."""
        one, other = self.frame.header, frame.header
        keys = [(h.epoch, h.quantities, h.units, h.cal_id) for h in (one, other)]
        return keys[0] == keys[1]

    def hear(self, frame: IntervalFrame, now_s: float) -> None:
        self.frame, self.heard_s = frame, now_s
        for name in filter(_HELD.fullmatch, frame.header.quantities):
            self.held[name] = max(frame[name], self.held.get(name, -math.inf))

    def is_current(self, now_s: float) -> bool:
        """Return whether the next message is not overdue by two intervals."""
        kept_s = max(_KEPT_MIN_S, _KEPT_INTERVALS * self.frame.header.interval_s)
        return now_s - self.heard_s <= kept_s

    def text(self) -> str:
        flags = ",".join(plain(name) for name in self.frame.header.flags)
        n_more = len(self.frame.values) - VALUES_MAX
        more = f"and {n_more} more" if n_more > 0 else ""
        return "  ".join(filter(None, (self._name(), *self._values(), more, flags)))

    def _name(self) -> str:
        """Return the product; of a transfer function also the channel of its reference."""
        name = plain(self.frame.product)
        if isinstance(self.frame, TransferFrame):
            return f"{name} re {plain(self.frame.header.reference)}"
        return name

    def _values(self) -> Iterator[str]:
        """Yield the values; the unit follows the last one that has it."""
        h = self.frame.header
        values = zip(h.quantities, h.units, self.frame.values.tolist(), strict=True)
        shown = islice(values, VALUES_MAX)
        for unit, group in groupby(shown, key=lambda one: one[1]):
            texts = [
                f"{plain(name)} {_number(value, unit)}{self._held_text(name, unit)}"
                for name, _, value in group
            ]
            yield f"{'  '.join(texts)} {_UNITS.get(unit, plain(unit))}".rstrip()

    def _held_text(self, name: str, unit: str) -> str:
        return f" (max {_number(self.held[name], unit)})" if name in self.held else ""


class Meters:
    """The measurements of all channels."""

    def __init__(self) -> None:
        self._meters: BoundedDict[_TopicMeter] = BoundedDict(_TOPICS_MAX, _BYTES_MAX)

    def hear(self, frame: IntervalFrame, now_s: float) -> None:
        """Take a message that was received at a time of the caller's clock [s]."""
        meter = self._meters.get(frame.topic)
        if meter is None or not meter.is_like(frame):
            meter = _TopicMeter(frame, now_s)
        meter.hear(frame, now_s)
        h = frame.header
        size_bytes = frame.values.nbytes + sum(map(len, (*h.quantities, *h.units, *h.flags)))
        self._meters.put(frame.topic, meter, size_bytes)

    def reset(self) -> None:
        """Forget the held peaks."""
        for meter in self._meters.values():
            meter.held.clear()

    def lines(self, channel: str, now_s: float) -> list[str]:
        """Return a line for each product of SOURCE/CHANNEL that still comes."""
        mine = [
            meter
            for meter in self._meters.values()
            if f"{meter.frame.source}/{meter.frame.channel}" == channel and meter.is_current(now_s)
        ]
        mine.sort(key=lambda meter: (_place(meter.frame), meter.frame.product))
        return [meter.text() for meter in mine[:LINES_MAX]]


def _place(frame: IntervalFrame) -> int:
    """Return the place of the kind of a measurement among the kinds."""
    return tuple(MEASUREMENTS.values()).index(type(frame.header))


def _number(value: float, unit: str) -> str:
    if math.isnan(value):
        return "-"
    if unit in _UNITS:
        return f"{value * 1e3:.4g}" if unit == "s" else f"{value:.4g}"
    return f"{value:.3g}" if unit == "FS" else f"{value:.1f}"
