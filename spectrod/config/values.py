"""Rules of single settings, and values, in TOML's terms."""

import datetime as dt
import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
from msgspec import inspect

from spectrod.lib.durations import FREQUENCY_RULE, TIME_RULE, parse_frequency, parse_time
from spectrod.lib.errors import ConfigError, SettingsError
from spectrod.lib.suggestions import did_you_mean

_FREQUENCY_KEY = re.compile(r"_hz$|^samplerate$")
_TIME_KEY = re.compile(r"(?<!_per)_(s|ms)$")
_SHOWN_MAX = 80
"""Longest text of a value in an error [characters]."""
_NESTED_MAX = 4
"""Deepest nesting of a value that an error shows."""

_POWER = re.compile(r"(\d{1,4})\^(\d{1,2})")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def broken_rules(
    key: str, value: Any, type_: Any, *, is_toml: bool
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield what is wrong with a value that msgspec refuses.

    Parameters
    ----------
    key : str
        The last part of its name, which tells units.
    value : object
        From TOML, JSON or text.
    type_ : type
        Type of the key in its struct, with its rules.
    is_toml : bool
        Whether its type counts as well: text outside a file has none.

    Yields
    ------
    path : tuple
        Of the item or key inside the value; () for the value itself.
    rule : str
        ``[0]=VALUE: RULE``, without the key before it.
    """
    info = _info(type_)
    inside: Iterator[tuple[str | int, Any]] = iter(())
    item_type: Any = None
    if isinstance(info, inspect.VarTupleType) and isinstance(value, list):
        inside, item_type = iter(enumerate(value)), get_args(_bare(type_))[0]
    elif isinstance(info, inspect.DictType) and isinstance(value, dict):
        inside, item_type = iter(value.items()), get_args(_bare(type_))[1]
    found = False
    for name, item in inside:
        try:
            msgspec.convert(item, item_type, strict=is_toml)
        except msgspec.ValidationError:
            found = True
            place = f"[{name}]" if isinstance(name, int) else f".{name}"
            yield (name,), f"{place}={_rule(key, item, item_type, is_toml=is_toml)}"
    if not found:
        yield (), f"={_rule(key, value, type_, is_toml=is_toml)}"


def _rule(key: str, value: Any, type_: Any, *, is_toml: bool) -> str:
    bare = _bare(type_)
    text = f"{shown(value)}: must be {_described(type_)}"
    if get_origin(bare) is Literal:
        return text + did_you_mean(str(value), get_args(bare))
    if is_toml and not _has_kind(value, bare):
        return f"{text}, not {_kind(value)}{_meant(key, value, type_)}"
    return text


def _described(type_: Any) -> str:
    """Describe the values of a type, after "must be"."""
    info = _info(type_)
    bare = _bare(type_)
    if isinstance(info, inspect.IntType | inspect.FloatType):
        kind = "a whole number" if isinstance(info, inspect.IntType) else "a number"
        return kind + _range(info)
    if isinstance(info, inspect.LiteralType):
        return f"one of {', '.join(map(str, filter(None, get_args(bare))))}"
    return _described_nested(info, bare)


def _described_nested(info: inspect.Type, bare: Any) -> str:
    if isinstance(info, inspect.VarTupleType):
        counts = {"at least": info.min_length, "at most": info.max_length}
        bounds = [f", {words} {n}" for words, n in counts.items() if n]
        return f"an array of {_plural(get_args(bare)[0])}{''.join(bounds)}"
    if isinstance(info, inspect.TupleType):
        return f"an array of {len(info.item_types)} {_plural(get_args(bare)[0])}"
    if isinstance(info, inspect.DictType):
        return f"a table of {_plural(get_args(bare)[1])}"
    if isinstance(info, inspect.DateTimeType):
        return "a date and time with a zone, as 2026-05-01T04:30:00Z"
    if isinstance(info, inspect.StrType) and info.max_length is not None:
        return f"a string of at most {info.max_length} characters"
    return "true or false" if bare is bool else "a string"


def _plural(type_: Any) -> str:
    text = _described(type_)
    if text.startswith("one of "):
        return text.removeprefix("one of ")
    return re.sub(r"^an? (whole number|number|string|array)", r"\1s", text)


def _range(info: inspect.IntType | inspect.FloatType) -> str:
    if info.ge is not None and info.le is not None:
        return f" from {info.ge:g} to {_number(info.le)}"
    if info.ge is not None and info.lt is not None and isinstance(info, inspect.IntType):
        return f" from {info.ge} to {info.lt - 1}"
    bounds = {">=": info.ge, ">": info.gt, "<=": info.le, "<": info.lt}
    texts = [f"{sign} {_number(bound)}" for sign, bound in bounds.items() if bound is not None]
    return f" {' and '.join(texts)}" if texts else ""


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:g}"


def _info(type_: Any) -> inspect.Type:
    info = inspect.type_info(type_)
    return info.type if isinstance(info, inspect.Metadata) else info


def _bare(type_: Any) -> Any:
    """Return a type without its rules."""
    return get_args(type_)[0] if get_origin(type_) is Annotated else type_


_KINDS: dict[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number with a fraction",
    str: "a string",
    list: "an array",
    tuple: "an array",
    dict: "a table",
    dt.datetime: "a date and time",
    dt.date: "a date",
    dt.time: "a time",
    type(None): "nothing",
}


def _kind(value: Any) -> str:
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return "infinity"
    if isinstance(value, float) and value != value:  # noqa: PLR0124 - not a number
        return "nan"
    return _KINDS.get(type(value), "another value")


def _has_kind(value: Any, bare: Any) -> bool:
    """Return whether a value is of the kind of a type, so that only its range is wrong."""
    origin = get_origin(bare) or bare
    if isinstance(value, bool) or origin is bool:
        return isinstance(value, bool) and origin is bool
    if origin is float:
        return isinstance(value, int | float)
    if origin is tuple:
        return isinstance(value, list | tuple)
    return isinstance(value, origin) if isinstance(origin, type) else True


def _meant(key: str, value: Any, type_: Any) -> str:
    """Suggest the value that was probably meant by one of another kind."""
    candidates: list[Any] = [[value]]
    if isinstance(value, str):
        candidates[:0] = [_quantity(key, value), _loose(value, type_)]
    elif isinstance(value, int | float):
        candidates[:0] = [str(value)]
    for candidate in candidates:
        if candidate is None or isinstance(value, bool) or len(shown(value)) > _SHOWN_MAX / 2:
            continue
        try:
            msgspec.convert(candidate, type_, strict=True)
        except msgspec.ValidationError:
            continue
        return f"; did you mean {shown(candidate)}?"
    return ""


def _quantity(key: str, text: str) -> float | None:
    number = None
    if _FREQUENCY_KEY.search(key):
        number = parse_frequency(text)
    elif match := _TIME_KEY.search(key):
        number = parse_time(text, match[1])
    return int(number) if number is not None and number.is_integer() else number


def _loose(text: str, type_: Any) -> Any:
    try:
        return msgspec.convert(text.strip(), type_, strict=False)
    except msgspec.ValidationError:
        return None


def from_text(name: str, key: str, type_: Any, text: str) -> Any:
    """Read a value as text outside a file has it.

    Lists have commas, ranges are ``LO..HI``, times and rates may have units, and whole numbers may
    be powers, ``2^12``.

    Parameters
    ----------
    name : str
        Of the value, for errors.
    key : str
        The last part of its name, which tells units.
    type_ : type
        Type of the key in its struct.
    text : str
        The value.

    Raises
    ------
    ConfigError
        If a range, a time or a frequency is not written as one.
    """
    bare = _bare(type_)
    if get_args(bare) == (float, float):
        return _range_of(name, key, text)
    if get_origin(bare) is tuple:
        return [item for part in text.split(",") if (item := part.strip())]
    if bare not in (int, float):
        return text
    if _FREQUENCY_KEY.search(key):
        number, rule = parse_frequency(text), FREQUENCY_RULE
    elif match := _TIME_KEY.search(key):
        number, rule = parse_time(text, match[1]), TIME_RULE
    elif bare is int and (power := _POWER.fullmatch(text)):
        return int(power[1]) ** int(power[2])
    else:
        return text
    if number is None:
        raise ConfigError(f"{name}={text!r}: {rule}")
    return int(number) if bare is int and number.is_integer() else number


def _range_of(name: str, key: str, text: str) -> list[Any]:
    """Read two numbers, ``LO..HI`` or ``LO,HI``; parameters and errors as of ``from_text``."""
    parts = text.split(".." if ".." in text else ",")
    if len(parts) != 2:
        raise ConfigError(f"{name}={text!r}: must be LO..HI, as 0.3..0.7")
    return [from_text(name, key, float, part) for part in parts]


def setting_of(name: str, key: str, type_: Any, text: str) -> Any:
    """Return the value that a text outside a file stands for; parameters as of ``from_text``.

    Raises
    ------
    ConfigError
        If it has no such value, or the value is out of the range of its type.
    """
    value = from_text(name, key, type_, text)
    try:
        return msgspec.convert(value, type_, strict=False)
    except msgspec.ValidationError:
        rules = broken_rules(key, value, type_, is_toml=False)
        raise SettingsError([f"{name}{rule}" for _, rule in rules]) from None


def shown(value: Any) -> str:
    """Return a value as TOML writes it, cut to 80 characters; None is ``null``."""
    text = _shown(value, 0)
    return text if len(text) <= _SHOWN_MAX else f"{text[: _SHOWN_MAX - 3]}..."


def _shown(value: Any, depth: int) -> str:
    if isinstance(value, list | tuple | dict):
        return _shown_nested(value, depth)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return repr(value[: _SHOWN_MAX + 1])
    if isinstance(value, int) and value.bit_length() > 4 * _SHOWN_MAX:
        return "..."  # Python refuses to write very long ones
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    return "null" if value is None else repr(value)


def _shown_nested(value: Any, depth: int) -> str:
    if depth == _NESTED_MAX and value:
        return "..."
    if not isinstance(value, dict):
        return f"[{', '.join(_shown(item, depth + 1) for item in value[:_SHOWN_MAX])}]"
    first = list(value.items())[:_SHOWN_MAX]
    pairs = (f"{_shown_key(key)} = {_shown(item, depth + 1)}" for key, item in first)
    return f"{{ {', '.join(pairs)} }}" if value else "{}"


def _shown_key(key: Any) -> str:
    return str(key) if _BARE_KEY.fullmatch(str(key)) else repr(key)
