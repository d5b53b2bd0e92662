"""Durations and frequencies as people write them: ``90``, ``1.5h``, ``1:02:03``, ``4kHz``."""

import math
import re
from collections.abc import Mapping
from decimal import Decimal, DecimalException, localcontext
from typing import Final

TIME_RULE: Final = "must be a time: 90, 1.5h, 10min, 500ms, 1h30m or 01:30:00"
"""Rule of ``parse_time``, for errors."""
TIME_FORMS: Final = "90 (seconds), 500ms, 10min, 1.5h, 00:01:30"
"""What ``parse_time`` takes, for help texts."""
FREQUENCY_RULE: Final = "must be a frequency: 4000, 4k, 4kHz, 0.5MHz or, of slow rates, 1/60"
"""Rule of ``parse_frequency``, for errors."""

TEXT_MAX: Final = 100
"""Longest text of a quantity [characters]."""

_NUMBER: Final = r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?"
_SIGNED: Final = re.compile(r"([+-]?)(.*)", re.DOTALL)
_PART: Final = re.compile(rf"({_NUMBER})\s*([^\W\d]*)\s*")
_CLOCK: Final = re.compile(r"(?:(\d+):)?(\d+):(\d\d(?:\.\d*)?)")
_RATIO: Final = re.compile(r"(\d+)\s*/\s*(\d+)\s*(?:Hz)?")

_SECONDS: Final[Mapping[str, Decimal]] = {
    unit: Decimal(seconds)
    for units, seconds in (
        ("us µs μs", "0.000001"),
        ("ms msec", "0.001"),
        ("s sec second seconds", "1"),
        ("m min minute minutes", "60"),
        ("h hr hour hours", "3600"),
        ("d day days", "86400"),
    )
    for unit in units.split()
}
# A lower-case m would mean milli.
_HERTZ: Final[Mapping[str, Decimal]] = {
    unit: Decimal(hertz)
    for units, hertz in (
        ("Hz hz HZ", "1"),
        ("k K kHz khz KHz KHZ", "1000"),
        ("M MHz MHZ", "1000000"),
        ("G GHz GHZ", "1000000000"),
    )
    for unit in units.split()
}


def parse_time(text: str, unit: str = "s") -> float | None:
    """Parse a duration.

    Parameters
    ----------
    text : str
        A number with a unit (us, ms, s, min or m, h, d), several such (``1h30m``), or a clock time
        (``MM:SS``, ``H:MM:SS``, optionally with a fraction of a second). An optional sign precedes
        it.
    unit : str
        Unit of a number without a unit, and of the result.

    Returns
    -------
    time : float or None
        None if the text is not a duration, or is beyond the range of a float.
    """
    sign, rest = _split_sign(text)
    seconds = _clock_s(rest)
    if seconds is None:
        seconds = _sum(rest, _SECONDS, unit)
    return _as_float(sign, seconds, _SECONDS[unit])


def parse_frequency(text: str) -> float | None:
    """Parse a frequency or a rate [Hz].

    Parameters
    ----------
    text : str
        A number with an optional sign and an optional k, kHz, MHz, ...; or a ratio of whole
        numbers, such as ``1/60`` for once per minute.

    Returns
    -------
    frequency : float or None
        None if the text is not a frequency, or is beyond the range of a float [Hz].
    """
    sign, rest = _split_sign(text)
    if match := _RATIO.fullmatch(rest):
        numerator, denominator = int(match[1]), int(match[2])
        if denominator == 0:
            return None
        return _as_float(sign, Decimal(numerator), Decimal(denominator))
    if len(_PART.findall(rest)) != 1:
        return None
    return _as_float(sign, _sum(rest, _HERTZ, "Hz"), Decimal(1))


def format_frequency(hertz: float) -> str:
    """Format a frequency with a suitable unit, such as ``2.048 MHz`` or ``44.1 kHz``."""
    for scale, unit in ((1e9, "GHz"), (1e6, "MHz"), (1e3, "kHz")):
        if abs(hertz) >= scale:
            return f"{hertz / scale:.12g} {unit}"
    return f"{hertz:.12g} Hz"


def _split_sign(text: str) -> tuple[str, str]:
    match = _SIGNED.fullmatch(text.strip()[: TEXT_MAX + 1])
    assert match is not None  # the expression matches any text
    # Longer texts are not quantities.
    return match[1], match[2] if len(match[2]) < TEXT_MAX else ""


def _clock_s(text: str) -> Decimal | None:
    match = _CLOCK.fullmatch(text)
    if match is None:
        return None
    hours, minutes, seconds = match[1], match[2], Decimal(match[3])
    if seconds >= 60 or (hours is not None and int(minutes) >= 60):
        return None
    return int(hours or 0) * 3600 + int(minutes) * 60 + seconds


def _sum(text: str, scales: Mapping[str, Decimal], unit: str) -> Decimal | None:
    """Add numbers with units; a number without a unit must be the only one."""
    total, place, n_parts, has_bare = Decimal(0), 0, 0, False
    while place < len(text):
        match = _PART.match(text, place)
        if match is None or (match[2] and match[2] not in scales):
            return None
        total += Decimal(match[1]) * scales[match[2] or unit]
        has_bare |= not match[2]
        place, n_parts = match.end(), n_parts + 1
    return None if n_parts == 0 or (n_parts > 1 and has_bare) else total


def _as_float(sign: str, value: Decimal | None, scale: Decimal) -> float | None:
    if value is None:
        return None
    with localcontext() as context:
        context.prec = TEXT_MAX
        try:
            number = float(value / scale)
        except (DecimalException, OverflowError):
            return None
    if not math.isfinite(number):
        return None
    return -number if sign == "-" else number
