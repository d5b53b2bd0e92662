"""The quantities of a row by their names."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from spectrod.lib.errors import ConfigError
from spectrod.lib.suggestions import did_you_mean
from spectrod.measure.measurement import QUANTITIES_MAX, Quantity, check_interval_length

_Q = TypeVar("_Q", bound=Quantity)


@dataclass(frozen=True, slots=True)
class ChannelQuantity:
    """One value of each channel.

    Attributes
    ----------
    name : str
        Its name, such as ``SINAD``.
    unit : str
        Its unit; ``level`` follows from the channel's calibration.
    """

    name: str
    unit: str

    @property
    def is_of_all_channels(self) -> bool:
        """Whether its value is one of all channels together."""
        return False


def parse_names(
    names: Sequence[str], interval_s: float, parse: Callable[[str], _Q]
) -> tuple[_Q, ...]:
    """Return the quantities of a row, in the order of their names.

    Parameters
    ----------
    names : sequence of str
        1 to ``QUANTITIES_MAX`` names of different quantities.
    interval_s : float
        Length of the interval [s].
    parse : callable
        Returns the quantity of a name; raises ConfigError if there is none.

    Raises
    ------
    ConfigError
        If there are too few or too many names, one is unknown, two are of one quantity, or no
        interval may have this length.
    """
    if not 1 <= len(names) <= QUANTITIES_MAX:
        raise ConfigError(f"{len(names)} names; must be 1 to {QUANTITIES_MAX}", quantities=...)
    check_interval_length(interval_s)
    quantities = tuple(map(parse, names))
    _check_distinct("quantities", (one.name for one in quantities))
    return quantities


def known_quantities(
    names: Sequence[str], interval_s: float, units: Mapping[str, str]
) -> tuple[ChannelQuantity, ...]:
    """Return the quantities of names in a table of units; see ``parse_names``."""

    def parse(name: str) -> ChannelQuantity:
        _check_known("quantity", name, units)
        return ChannelQuantity(name, units[name])

    return parse_names(names, interval_s, parse)


def check_spectra(names: Sequence[str], known: Collection[str]) -> None:
    """Check names of values of bins; raises ConfigError for an unknown or repeated one."""
    for name in names:
        _check_known("spectra", name, known)
    _check_distinct("spectra", names)


def _check_known(key: str, name: str, known: Collection[str]) -> None:
    if name not in known:
        rule = f"must be one of {', '.join(known)}{did_you_mean(name, known)}"
        raise ConfigError(f"{key}={name!r}: {rule}", key)


def _check_distinct(key: str, names: Iterable[str]) -> None:
    for name, n in Counter(names).items():
        if n > 1:
            raise ConfigError(f"{key}: {name} is given twice", key)
