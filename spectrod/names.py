"""The parts of topics: what sources and channels may be called."""

import re
from collections import Counter
from collections.abc import Sequence

from spectrod.errors import ConfigError

NAME_PATTERN = r"[A-Za-z0-9._-]{1,64}"
_NAME = re.compile(NAME_PATTERN)


def check_name(what: str, name: str) -> str:
    """Return a name that can stand in a topic.

    Raises
    ------
    ConfigError
        If it has other characters than letters, digits, dot, underscore and hyphen, or over 64.
    """
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{what}={name!r}: must be 1 to 64 of A-Z a-z 0-9 . _ -")
    return name


def check_channel_names(names: Sequence[str]) -> None:
    """Refuse names of channels that topics could not carry or tell apart.

    Raises
    ------
    ConfigError
        If one cannot stand in a topic, or two are the same.
    """
    for name in names:
        check_name("channel_names", name)
    for name, count in Counter(names).items():
        if count > 1:
            raise ConfigError(f"channel_names={name!r}: named {count} times, must be once")


def name_channels(names: Sequence[str], n_signals: int) -> tuple[str, ...]:
    """Return the CHANNEL of each signal's topics: its name or, where there are none, its number.

    Raises
    ------
    ConfigError
        If there are names, but not one for each.
    """
    if names and len(names) != n_signals:
        raise ConfigError(
            f"channel_names={','.join(names)}: must be {n_signals}, one for each spectrum, "
            f"not {len(names)}"
        )
    return tuple(names) or tuple(str(k) for k in range(n_signals))
