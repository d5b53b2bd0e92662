"""Queries of ``api/history``: parsed, and bounded before anything is read."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, get_args

from spectrod.apps.web.page_view import PX_MAX
from spectrod.apps.web.slicing import AxisKind
from spectrod.lib.errors import ConfigError

SIZE_MAX: Final = 2048
"""Largest number of columns, and of values of a column."""
VALUES_MAX: Final = 4 << 20
"""Largest number of values of an answer, all layers together."""
LAYERS: Final = ("max", "mean")
LEVEL: Final = "level"
"""Layer that stands alone: the level of all power between the frequencies, a value a column."""
TIME_MAX_MS: Final = 4e12
"""Limit of times, in the year 2096 [ms since 1970]."""
FREQUENCY_MAX_HZ: Final = 1e13
"""Limit of frequencies [Hz]."""
LEVEL_MAX_DB: Final = 1000.0
"""Limit of the levels of a picture [dB]."""
NAME_MAX_CHARS: Final = 1024
STEPS_DB: Final = {"0.01": 1, "0.1": 10}
"""Steps of levels that may be asked for, in steps of codes."""
_NUMBER_MAX_CHARS: Final = 40
_TOPIC_MAX: Final = (1 << 31) - 1
_AXES: Final[tuple[AxisKind, ...]] = get_args(AxisKind)


@dataclass(frozen=True, slots=True)
class TopicRequest:
    """A topic: its number in this server, and its name as the asker knows it, or empty."""

    topic: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class HistoryRequest:
    """A piece of the past. Hashable: equal requests have equal answers.

    Attributes
    ----------
    topic : int
        Number of the topic in this server.
    t0_ms, t1_ms : float
        Span of time [ms since 1970].
    f0_hz, f1_hz : float
        Range of frequencies [Hz].
    width, height : int
        Largest number of columns, and of values of each.
    layers : tuple of str
        Some of ``LAYERS``, in this order of the answer.
    name : str
        Endpoint and topic as the asker knows them, ``ENDPOINT TOPIC``; empty if not given.
    axis : str or None
        Axis of a page on which the range has ``height`` pixels: values are then those of a live
        stream. None: values are equally wide.
    step_codes : int
        Levels are rounded to multiples of this, in steps of codes.
    less : int or None
        Number of a topic whose levels are subtracted; None: none.
    less_name : str
        Its endpoint and topic, as ``name``.
    """

    topic: int
    t0_ms: float
    t1_ms: float
    f0_hz: float
    f1_hz: float
    width: int
    height: int
    layers: tuple[str, ...]
    name: str = ""
    axis: AxisKind | None = None
    step_codes: int = 1
    less: int | None = None
    less_name: str = ""

    @property
    def t0_ns(self) -> int:
        """Begin [ns since 1970]."""
        return round(self.t0_ms * 1e6)

    @property
    def t1_ns(self) -> int:
        """End [ns since 1970], after the begin."""
        return max(self.t0_ns + 1, round(self.t1_ms * 1e6))


def parse_request(query: Mapping[str, str]) -> HistoryRequest:
    """Read a query.

    Parameters
    ----------
    query : mapping of str to str
        Parameters of the address, decoded.

    Raises
    ------
    ConfigError
        If a parameter is missing or breaks a rule; the text has its name, value and rule.
    """
    t0_ms, t1_ms = _span(query, "t0", "t1", TIME_MAX_MS)
    f0_hz, f1_hz = _span(query, "f0", "f1", FREQUENCY_MAX_HZ)
    axis = _axis(query)
    width, height = _size(query, "w"), _size(query, "h", SIZE_MAX if axis is None else PX_MAX)
    layers = _layers(query)
    if width * height * len(layers) > VALUES_MAX:
        asked = f"w={width}, h={height}, {len(layers)} layers"
        raise ConfigError(f"{asked}: must be at most {VALUES_MAX} values")
    name, less_name = _name(query, "name"), _name(query, "less_name")
    topic = _whole(query, "topic", 0, _TOPIC_MAX)
    less = _whole(query, "less", 0, _TOPIC_MAX) if "less" in query else None
    step = query.get("step", "0.01")
    if step not in STEPS_DB:
        raise ConfigError(f"step={_cut(step)}: must be one of {', '.join(STEPS_DB)}")
    found = HistoryRequest(topic, t0_ms, t1_ms, f0_hz, f1_hz, width, height, layers, name)
    return replace(found, axis=axis, step_codes=STEPS_DB[step], less=less, less_name=less_name)


def parse_topic(query: Mapping[str, str]) -> TopicRequest:
    """Read which topic a query is about, ``topic`` and ``name``.

    Raises
    ------
    ConfigError
        If the number is missing, or one breaks a rule.
    """
    return TopicRequest(_whole(query, "topic", 0, _TOPIC_MAX), _name(query, "name"))


def parse_times(query: Mapping[str, str]) -> tuple[int, int]:
    """Read a span of time, ``t0`` and ``t1`` [ms since 1970].

    Returns
    -------
    begin_ns, end_ns : int
        Its ends [ns since 1970].

    Raises
    ------
    ConfigError
        If one is missing or breaks a rule.
    """
    t0_ms, t1_ms = _span(query, "t0", "t1", TIME_MAX_MS)
    return round(t0_ms * 1e6), round(t1_ms * 1e6)


def parse_whole(query: Mapping[str, str], name: str, most: int) -> int:
    """Read a whole number from 0 to ``most``; raises ConfigError."""
    return _whole(query, name, 0, most)


def parse_levels(query: Mapping[str, str]) -> tuple[float, float]:
    """Read the ends of a colour scale, ``lo`` and ``hi`` [dB].

    Raises
    ------
    ConfigError
        If they are missing, or break a rule.
    """
    return _span(query, "lo", "hi", LEVEL_MAX_DB)


def _span(query: Mapping[str, str], low: str, high: str, limit: float) -> tuple[float, float]:
    """Read the ends of a span."""
    ends = []
    for name in (low, high):
        value = _number(query, name)
        if not -limit <= value <= limit:
            raise ConfigError(f"{name}={value:g}: must be {-limit:g} to {limit:g}")
        ends.append(value)
    if not ends[0] < ends[1]:
        raise ConfigError(f"{low}={ends[0]!r}, {high}={ends[1]!r}: {high} must be above {low}")
    return ends[0], ends[1]


def _layers(query: Mapping[str, str]) -> tuple[str, ...]:
    layers = tuple(query.get("layers", "max").split(","))
    is_known = len(set(layers)) == len(layers) and set(layers) <= set(LAYERS)
    if not is_known and layers != (LEVEL,):
        rule = f"must be of {', '.join(LAYERS)}, or {LEVEL} alone"
        raise ConfigError(f"layers={_cut(','.join(layers))}: {rule}")
    return layers


def _name(query: Mapping[str, str], key: str) -> str:
    name = query.get(key, "")
    if len(name) > NAME_MAX_CHARS:
        raise ConfigError(f"{key}={_cut(name)}: must be at most {NAME_MAX_CHARS} characters")
    return name


def _size(query: Mapping[str, str], name: str, most: int = SIZE_MAX) -> int:
    return _whole(query, name, 1, most)


def _axis(query: Mapping[str, str]) -> AxisKind | None:
    """Read the kind of axis; None if it is not given."""
    kind = query.get("axis")
    for known in _AXES:
        if kind == known:
            return known
    if kind is not None:
        raise ConfigError(f"axis={_cut(kind)}: must be one of {', '.join(_AXES)}")
    return None


def _text(query: Mapping[str, str], name: str) -> str:
    text = query.get(name)
    if text is None:
        raise ConfigError(f"{name}: is missing")
    if len(text) > _NUMBER_MAX_CHARS:
        raise ConfigError(f"{name}={_cut(text)}: must be a number of at most 40 characters")
    return text


def _number(query: Mapping[str, str], name: str) -> float:
    text = _text(query, name)
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ConfigError(f"{name}={_cut(text)}: must be a finite number")
    return value


def _whole(query: Mapping[str, str], name: str, least: int, most: int) -> int:
    text = _text(query, name)
    if not (text.isascii() and text.isdigit()) or not least <= int(text) <= most:
        raise ConfigError(f"{name}={_cut(text)}: must be a whole number, {least} to {most}")
    return int(text)


def _cut(text: str) -> str:
    """Return a text from outside as it may stand in a message."""
    shown = text[:_NUMBER_MAX_CHARS] + ("..." if len(text) > _NUMBER_MAX_CHARS else "")
    return ascii(shown)
