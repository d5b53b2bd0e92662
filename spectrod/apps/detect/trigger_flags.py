"""The trigger that the command line asks for: its own flags, or a table of the configuration."""

import argparse
import re
from pathlib import Path
from typing import Any, get_args

import msgspec
from msgspec import UNSET, UnsetType

from spectrod.cli.options import add_flag, flag_of
from spectrod.config.config import Config
from spectrod.config.values import setting_of
from spectrod.lib.durations import FREQUENCY_RULE, parse_frequency
from spectrod.lib.errors import ConfigError
from spectrod.lib.suggestions import did_you_mean
from spectrod.measure.triggers.mask import SUFFIX, Mask, read_mask
from spectrod.measure.triggers.trigger_config import TriggerConfig, of_stored_sound

NAME = "detect"
"""Name of a trigger that flags describe."""

_NO_FLAGS = ("name", "sources", "product", "f_min_hz", "f_max_hz", "points", "mask")
_FIELDS = [one for one in msgspec.structs.fields(TriggerConfig) if one.name not in _NO_FLAGS]
_DEFAULTS = {"over_floor_db": "10 of a band, 15 of bins", "hold_off_s": 0.0}
_DECIBELS = re.compile(r"\s*dB$")


def add_trigger(parser: argparse.ArgumentParser) -> None:
    """Add the flags of a trigger."""
    group = parser.add_argument_group("trigger")
    group.add_argument("--band", metavar="LO..HI", help="frequencies, as 2k..6k or 2k.. (all)")
    group.add_argument("--mask", metavar="FILE", help=f"threshold of each frequency, {SUFFIX}")
    group.add_argument(
        "--trigger", metavar="NAME", help="table [triggers.NAME] of the configuration"
    )
    for field in _FIELDS:
        default = _DEFAULTS.get(field.name, field.default)
        add_flag(group, field.name, _type_of(field.type), default)


def trigger_of(args: argparse.Namespace, settings: Config) -> tuple[TriggerConfig, Mask | None]:
    """Return the trigger, and the mask if it has one from a file.

    Raises
    ------
    ConfigError
        If a flag is wrong, flags do not fit each other, or there is no such table or mask.
    """
    given = _given(args)
    if args.trigger is None:
        config = msgspec.structs.replace(TriggerConfig(NAME), **_with_defaults(given))
    else:
        config = msgspec.structs.replace(_of_configuration(args.trigger, settings), **given)
    mask = None
    if args.mask is not None:
        mask = _read(Path(args.mask))
    elif config.mask:
        raise ConfigError(
            f"--trigger {args.trigger}: has a learned mask: name its file with --mask"
        )
    config.check()
    return config, mask


def _type_of(type_: Any) -> Any:
    """Return the type of a setting without that of one that is not set."""
    inner = [one for one in get_args(type_) if one is not UnsetType]
    return inner[0] if UnsetType in get_args(type_) else type_


def _given(args: argparse.Namespace) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for field in _FIELDS:
        text = getattr(args, field.name)
        if text is not None:
            type_ = _type_of(field.type)
            flag = flag_of(field.name, type_)[0][0]
            if field.name.endswith("_db"):
                text = _DECIBELS.sub("", text)
            given[field.name] = setting_of(flag, field.name, type_, text)
    if args.band is not None:
        given |= _band(args.band)
    if args.mask is not None:
        given |= {"kind": given.get("kind", "mask"), "mask": Path(args.mask).stem}
    return given


def _with_defaults(given: dict[str, Any]) -> dict[str, Any]:
    if "prominence_db" in given:
        given = {"kind": "tone"} | given
    return of_stored_sound(given)


def _band(text: str) -> dict[str, float]:
    """Parse ``LO..HI``, of which one may be empty."""
    ends = text.split("..")
    found = [parse_frequency(one) if one else UNSET for one in ends]
    if len(ends) != 2 or None in found or not any(ends):
        raise ConfigError(f"--band {text}: must be LO..HI, as 2k..6k; each {FREQUENCY_RULE}")
    keys = zip(("f_min_hz", "f_max_hz"), found, strict=True)
    return {key: value for key, value in keys if isinstance(value, float)}


def _of_configuration(name: str, settings: Config) -> TriggerConfig:
    known = {one.name: one for one in settings.triggers}
    if name not in known:
        listed = ", ".join(known) or "none"
        raise ConfigError(
            f"--trigger {name}: must be a table [triggers.NAME] of the configuration, which has "
            f"{listed}{did_you_mean(name, known)}"
        )
    return known[name]


def _read(path: Path) -> Mask:
    if path.suffix != SUFFIX:
        raise ConfigError(f"--mask {path}: suffix must be {SUFFIX}")
    return read_mask(path.parent, path.stem)
