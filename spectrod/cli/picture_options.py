"""Flags of the appearance of pictures, for every command that draws one."""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import msgspec

from spectrod.cli.numbers import frequency
from spectrod.cli.options import add_flag
from spectrod.config.settings import AnalysisConfig
from spectrod.dsp.constant_q import is_constant_q
from spectrod.dsp.spectrum_rules import check_averaging
from spectrod.formats.description import Description
from spectrod.formats.picture.picture_settings import PictureOptions
from spectrod.formats.picture.pixelmap import options_of, read_pixel_map
from spectrod.lib.errors import ConfigError, InputError
from spectrod.lib.time_zones import zone_name

_ALTERNATIVES = (
    ("levels", "dynamic_range_db", "percentiles"),
    ("raw", "strips"),
    ("time_axis", "time_zone"),
)
"""Groups of flags: a given one overrides what an old picture set for the others."""

_PAIRS = {"levels": "dB, as in --levels -100,-20", "percentiles": "percent, as in 5,99.9"}
_LISTS = ("strips", "signals")
_FLAGS = (
    *("width", "height", "f_scale", "f_min", "f_max", "levels", "dynamic_range_db", "percentiles"),
    *("colormap", "time_axis", "time_zone", "strips", "theme", "title", "signals"),
    *("channels_as", "raw"),
)
"""In the order of the help."""
_PARSED: Mapping[str, Callable[[str], Any]] = {"PX": int, "HZ": frequency, "DB": float}
"""How values are read, by what stands for them."""


def add_picture(parser: argparse.ArgumentParser) -> None:
    """Add the flags, named as in ``PictureOptions``; a flag that is not given is None."""
    group = parser.add_argument_group("picture")
    group.add_argument(
        "--like",
        metavar="OLD",
        help="use the settings of that picture made by spectrod; other flags override them",
    )
    options = {field.name: field for field in fields(PictureOptions)}
    for name in _FLAGS:
        add_flag(group, name, options[name].type, options[name].default, _PARSED)


def picture_options(
    args: argparse.Namespace, *, has_samples: bool = True, title: str = ""
) -> PictureOptions:
    """Convert the given flags to options.

    Parameters
    ----------
    args : Namespace
        Has ``source``, whose name is the default title.
    has_samples : bool
        True if the source has samples, not only spectra.
    title : str
        Title if no flag gives one; empty: the name of the source.

    Returns
    -------
    options : PictureOptions
        Options; those that are not given have their defaults.

    Raises
    ------
    ConfigError
        With the flag, its value and the rule, if a rule is violated.
    """
    check_time_zone(args)
    given = {field.name: getattr(args, field.name, None) for field in fields(PictureOptions)}
    for name, unit in _PAIRS.items():
        given[name] = _pair(name, given[name], unit)
    for name in _LISTS:
        given[name] = _list(given[name])
    # By its own name: the picture may be repeated on a machine of another zone.
    given["time_zone"] = zone_name(given["time_zone"] or "")
    if given["title"] is None:
        given["title"] = title or Path(args.source).name
    if given["f_scale"] is None and is_constant_q(getattr(args, "bands", None) or ""):
        given["f_scale"] = "log"
    options = PictureOptions(**{key: value for key, value in given.items() if value is not None})
    if "waveform" in options.strips and not has_samples:
        raise ConfigError(f"strips=waveform: {args.source} has no samples, only spectra")
    return options


def check_time_zone(args: argparse.Namespace) -> None:
    """Refuse a time zone of elapsed times; raises ConfigError."""
    if args.time_zone and args.time_axis == "elapsed":
        raise ConfigError(f"--time-zone {args.time_zone}: must be without --time-axis elapsed")


def with_names(
    look: PictureOptions, description: Description
) -> tuple[PictureOptions, Description]:
    """Apply the given names of channels to pictures and data, or else those of the recording.

    Raises
    ------
    ConfigError
        If the numbers of names and channels differ.
    """
    n_signals = description.spec.n_signals
    if look.signals:
        return look, replace(description, signals=look.names(n_signals))
    if n_signals > 1:
        look = replace(look, signals=description.signals)
    return look, description


def repeat(args: argparse.Namespace) -> None:
    """Set the flags stored in the ``--like`` picture, where no flag is given.

    Parameters
    ----------
    args : argparse.Namespace
        Has the flags of ``add_picture``, and possibly others.

    Raises
    ------
    InputError
        If the file cannot be read, or is not a picture made by spectrod.
    """
    if args.like is None:
        return
    given = {name for name, value in vars(args).items() if value is not None}
    for names in _ALTERNATIVES:
        if given & set(names):
            given |= set(names)
    for name, value in like(Path(args.like)).items():
        if hasattr(args, name) and name not in given:
            setattr(args, name, value)


def like(path: Path) -> dict[str, Any]:
    """Read the settings of a picture, except its source and its time.

    Returns
    -------
    settings : dict
        Settings of the analysis and of ``PictureOptions``, by the names of the flags; of a picture
        of level statistics its axes and its look.

    Raises
    ------
    InputError
        If the file cannot be read, or is not a picture made by spectrod.
    """
    from spectrod.formats.longterm.longterm_picture import read_statistics_picture  # noqa: PLC0415

    # Loads Pillow's drawing, which no other option needs.
    statistics = read_statistics_picture(path)
    if statistics is not None:
        try:
            return statistics.settings()
        except (ConfigError, msgspec.ValidationError) as error:
            raise InputError(f"{path}: damaged description: {error}") from error
    pixels = read_pixel_map(path)
    parameters = AnalysisConfig.__struct_fields__
    settings = {
        name: getattr(pixels, name) for name in ("iq", *parameters) if hasattr(pixels, name)
    }
    others = {name: pixels.analysis[name] for name in parameters if name in pixels.analysis}
    try:
        check_averaging(msgspec.convert(others, AnalysisConfig).averaging)
    except (ConfigError, msgspec.ValidationError) as error:
        raise InputError(f"{path}: damaged description: {error}") from error
    options = options_of(pixels, path)
    chosen = {name: getattr(options, name) for name in options.chosen()}
    # UTC is the default of what has a time, and no other recording has it.
    chosen.pop("time_axis", None)
    clock = {} if options.has_clock else {"time_axis": options.time_axis}
    return settings | others | clock | chosen


def _pair(name: str, given: Any, unit: str) -> tuple[float, float] | None:
    if not isinstance(given, str):
        return given  # type: ignore[no-any-return]  # None, or from an old picture
    try:
        low, high = (float(part) for part in given.split(","))
    except ValueError:
        raise ConfigError(f"--{name}={given}: must be two numbers of {unit}") from None
    return low, high


def _list(given: Any) -> Any:
    return tuple(given.split(",")) if isinstance(given, str) else given
