"""Rules for names: of sources, channels and products, the parts of topics; and of time zones."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeVar

from spectrod.lib.errors import ConfigError, NoProductError

NAME_PATTERN = r"[A-Za-z0-9._-]{1,64}"
ZONE_MAX_CHARS = 64
"""Length of the name of a time zone that a file or a message states [characters]."""
_NAME = re.compile(NAME_PATTERN)
_Product = TypeVar("_Product")


def check_name(what: str, name: str) -> str:
    """Return a name if it is valid in a topic.

    Raises
    ------
    ConfigError
        If it has other characters than letters, digits, dot, underscore and hyphen, or over 64.
    """
    if not is_name(name):
        raise ConfigError(f"{what}={name!r}: must be 1 to 64 of A-Z a-z 0-9 . _ -", what)
    return name


def is_name(name: str) -> bool:
    """Return whether a name is valid in a topic, see ``check_name``."""
    return _NAME.fullmatch(name) is not None


def check_channel_names(names: Sequence[str]) -> None:
    """Check that names of channels are valid in topics and unique.

    Raises
    ------
    ConfigError
        If a name is not valid in a topic, or two are equal.
    """
    for name in names:
        check_name("channel_names", name)
    for name, count in Counter(names).items():
        if count > 1:
            raise ConfigError(f"named {count} times, must be once", channel_names=name)


def name_channels(names: Sequence[str], n_signals: int) -> tuple[str, ...]:
    """Return the CHANNEL of each signal's topics: its name or, without names, its number.

    Raises
    ------
    ConfigError
        If the number of names is not zero and not that of the signals.
    """
    if names and len(names) != n_signals:
        raise ConfigError(
            f"channel_names={','.join(names)}: must be {n_signals}, one for each spectrum, "
            f"not {len(names)}",
            "channel_names",
        )
    return tuple(names) or tuple(str(k) for k in range(n_signals))


def find_product(
    product: str, products: Mapping[str, _Product], owner: str | None = ""
) -> _Product:
    """Return a product by its name; an empty name is the first one.

    Parameters
    ----------
    product : str
    products : mapping of str to object
        What there is, by name.
    owner : str or None
        Name of the source for the error; empty: a source without a name, None: several sources.

    Raises
    ------
    NoProductError
        If there is no such product.
    """
    if not product and products:
        return next(iter(products.values()))
    if product not in products:
        lacks = f"{owner or 'the source'} has no such product"
        if owner is None:
            lacks = "no source has it"
        known = ", ".join(products) or "none yet"
        raise NoProductError(f"{lacks}; there are: {known}", product=product)
    return products[product]
