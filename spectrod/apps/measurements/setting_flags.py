"""Flags of the settings of measurements, which the notes of their types describe."""

import argparse
from collections.abc import Collection, Mapping
from itertools import groupby
from typing import Any

import msgspec
from msgspec.structs import FieldInfo

from spectrod.cli.options import default_text, flag_of, help_text
from spectrod.config.values import setting_of
from spectrod.lib.errors import ConfigError
from spectrod.measure.measurement_config import MeasurementConfig

_NO_FLAGS = ("name", "sources")
"""Settings of a daemon, which has several products of several sources."""


def add_settings(
    parser: argparse.ArgumentParser,
    settings: MeasurementConfig,
    helps: Mapping[str, str] | None = None,
    of_mean: Collection[str] | None = None,
) -> None:
    """Add the flags of the settings of a kind of measurement.

    Parameters
    ----------
    parser : ArgumentParser
    settings : MeasurementConfig
        Has the defaults.
    helps : mapping of str to str, optional
        Help texts in the place of those that the settings have.
    of_mean : collection of str, optional
        Settings that count without ``--interval`` too, which then is optional.
    """
    groups: dict[str, argparse._ActionsContainer] = {"": parser}
    for name, fields in _flags(type(settings)).items():
        key, abouts = fields[0].name, [flag_of(field.name, field.type)[1] for field in fields]
        about = abouts[0]
        defaults = (default_text(one.name, getattr(settings, one.name)) for one in fields)
        about["help"] = help_text((helps or {}).get(key, about["help"]), " ".join(defaults))
        if len(fields) > 1:
            about |= {"nargs": len(fields), "metavar": tuple(one["metavar"] for one in abouts)}
        title = about.pop("group", "")
        if of_mean is not None and key not in of_mean:
            title = "intervals"
        if title not in groups:
            groups[title] = parser.add_argument_group(title)
        groups[title].add_argument(name, dest=_dest(key), **about)


def given_settings(args: argparse.Namespace, kind: type[MeasurementConfig]) -> dict[str, Any]:
    """Return the settings that flags give.

    Raises
    ------
    ConfigError
        If a value is none of its setting.
    """
    given: dict[str, Any] = {}
    for name, fields in _flags(kind).items():
        value = getattr(args, _dest(fields[0].name))
        if value is None:
            continue
        for field, one in zip(fields, value if len(fields) > 1 else [value], strict=True):
            is_text = isinstance(one, str)
            given[field.name] = setting_of(name, field.name, field.type, one) if is_text else one
    return given


def mean_settings(
    args: argparse.Namespace, kind: type[MeasurementConfig], of_mean: Collection[str]
) -> dict[str, Any]:
    """Return the settings that flags give, if ``--interval`` is not given.

    Raises
    ------
    ConfigError
        If a value is none of its setting, or a flag is one of intervals.
    """
    given = given_settings(args, kind)
    for name, fields in _flags(kind).items():
        if fields[0].name in given.keys() - of_mean:
            value = getattr(args, _dest(fields[0].name))
            raise ConfigError(f"{name} {value}: must be with --interval")
    for name, value in (("--start-time", args.start_time), ("--csv", args.csv)):
        if value is not None:
            raise ConfigError(f"{name} {value}: must be with --interval")
    return given


def band_of(given: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return the band that flags give [Hz]; None without one."""
    return (given["low_hz"], given["high_hz"]) if "low_hz" in given else None


def has_interval(args: argparse.Namespace) -> bool:
    """Return whether ``--interval`` is given."""
    return getattr(args, _dest("interval_s")) is not None


def _flags(kind: type[MeasurementConfig]) -> dict[str, list[FieldInfo]]:
    """Return the settings of each flag."""
    fields = [field for field in msgspec.structs.fields(kind) if field.name not in _NO_FLAGS]
    of_flags = groupby(fields, lambda field: flag_of(field.name, field.type)[0][0])
    return {name: list(group) for name, group in of_flags}


def _dest(key: str) -> str:
    return f"measurement.{key}"  # the analysis has keys of the same names
