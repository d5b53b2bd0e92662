"""Colour maps of pictures: perceptually uniform ones, grey, turbo, and their reverses."""

from functools import cache, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spectrod.lib.errors import ConfigError
from spectrod.lib.suggestions import did_you_mean

Uint8Array = NDArray[np.uint8]

_REVERSED = "_r"


@cache
def _tables() -> dict[str, Uint8Array]:
    """Read the maps: a line with the name, then lines with the entries in hexadecimal."""
    text = Path(__file__).with_name("colormaps.txt").read_text(encoding="ascii")
    entries: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        if len(line) < 96:
            name = line
            entries[name] = ""
        else:
            entries[name] += line
    tables = {
        name: np.frombuffer(bytes.fromhex(digits), np.uint8).reshape(-1, 3)
        for name, digits in entries.items()
    }
    tables["grey"] = np.repeat(np.arange(256, dtype=np.uint8)[:, np.newaxis], 3, axis=1)
    return tables


def colormap_names() -> tuple[str, ...]:
    """Return the names for ``colormap``; each may have the suffix ``_r`` to reverse it."""
    return tuple(_tables())


@lru_cache(maxsize=32)
def colormap(name: str, n_entries: int) -> Uint8Array:
    """Return a table of colours, lowest level first.

    Parameters
    ----------
    name : str
        One of ``colormap_names()``; with the suffix ``_r`` it is reversed.
    n_entries : int
        Number of colours, >= 2; interpolated from 256, with both ends kept.

    Returns
    -------
    table : (n_entries, 3) uint8
        sRGB colours, read-only.

    Raises
    ------
    ConfigError
        If the name is unknown.
    """
    table = _tables().get(name.removesuffix(_REVERSED))
    if table is None:
        rule = f"must be one of {', '.join(colormap_names())}, or one followed by _r"
        suggestion = did_you_mean(name, colormap_names())
        raise ConfigError(f"colormap={name!r}: {rule}{suggestion}")
    if name.endswith(_REVERSED):
        table = table[::-1]
    where = np.linspace(0.0, len(table) - 1.0, n_entries)
    channels = [np.interp(where, np.arange(len(table)), channel) for channel in table.T]
    colours = np.asarray(np.rint(np.stack(channels, axis=1)), np.uint8)
    colours.flags.writeable = False
    return colours
