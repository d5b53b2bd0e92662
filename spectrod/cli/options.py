"""Options shared by several commands, and their conversion to configuration."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

import msgspec
from msgspec.structs import FieldInfo

from spectrod.config.settings import AnalysisConfig, SourceConfig
from spectrod.lib.durations import TIME_FORMS
from spectrod.lib.errors import ConfigError

_OTHER_FLAGS = ("uri", "name", "channel_names", "time_zone")
"""Keys of ``[source]`` for which commands have arguments of their own, or none: ``--time-zone`` is
the zone of what a command writes."""
_OF_SOURCE = [key for key in msgspec.structs.fields(SourceConfig) if key.name not in _OTHER_FLAGS]
_OF_IQ = ("iq", "center_frequency_hz")
_OF_ANALYSIS = msgspec.structs.fields(AnalysisConfig)


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add --config."""
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="configuration file (TOML); by default $SPECTROD_CONFIG, or as root "
        "/etc/spectrod/spectrod.toml and else ~/.config/spectrod/spectrod.toml",
    )


def add_keys(parser: argparse._ActionsContainer) -> None:
    """Add the flags to connect to an endpoint that requires keys."""
    parser.add_argument(
        "--server-key", metavar="KEY", help="the daemon's public key, its file or its 40 characters"
    )
    parser.add_argument(
        "--key", metavar="FILE", help="secret key of this client (spectrod keys new)"
    )


WHEN = (
    "12.5 or 1:02:03 from the beginning, -30 from the end, or UTC as 2026-05-01T04:30:00Z, T04:30 "
    "(without Z beside --time-zone: local)"
)
"""The forms of a position in a recording, for help texts."""


def add_range(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose a range of samples, and their time."""
    parser.add_argument("--duration", metavar="TIME", help=f"stop after {TIME_FORMS}")
    parser.add_argument(
        "--start",
        metavar="WHEN",
        help=f"start position in a recording: {WHEN}; of a live source, the UTC to wait "
        "for, as 04:30",
    )
    add_stop(parser)
    parser.add_argument(
        "--start-time",
        metavar="ISO8601",
        help="UTC of the first sample, as 2026-05-01T04:30:00Z (from the file's header or name)",
    )


def add_stop(parser: argparse.ArgumentParser) -> None:
    """Add --stop."""
    parser.add_argument(
        "--stop", metavar="WHEN", help="of a recording: only before this, given as --start is"
    )


def add_source(parser: argparse.ArgumentParser, pace: str = "realtime") -> None:
    """Add a flag for each key of ``[source]`` but those of I/Q; pace's default is the command's."""
    keys = [key for key in _OF_SOURCE if key.name not in _OF_IQ]
    _add_flags(parser.add_argument_group("source"), keys, {"pace": pace})


def add_iq(parser: argparse.ArgumentParser) -> None:
    """Add the flags for two-sided spectra of pairs of channels."""
    _add_flags(parser, [key for key in _OF_SOURCE if key.name in _OF_IQ], {})


def add_analysis(
    parser: argparse.ArgumentParser, win_length: str = "4096", hop: str = "1024"
) -> None:
    """Add a flag for each key of ``[analysis]``; two defaults, as text, depend on the command."""
    defaults = {"win_length": win_length, "hop": hop}
    _add_flags(parser.add_argument_group("analysis"), _OF_ANALYSIS, defaults)


def _add_flags(
    parser: argparse._ActionsContainer, keys: Sequence[FieldInfo], defaults: Mapping[str, str]
) -> None:
    for key in keys:
        add_flag(parser, key.name, key.type, defaults.get(key.name, key.default))


def add_flag(
    parser: argparse._ActionsContainer,
    key: str,
    type_: Any,
    default: object = None,
    parsed: Mapping[str, Callable[[str], Any]] | None = None,
) -> None:
    """Add the flag of a setting, as the notes of its type describe it (``lib.flag``).

    Parameters
    ----------
    parser : ArgumentParser or group
    key : str
        Name of the setting.
    type_ : type
        Its type, with notes.
    default : object
        Its default, or a text, for the help.
    parsed : mapping of str to callable, optional
        Reads a value, by its metavar; others stay text.
    """
    names, about = flag_of(key, type_)
    about["help"] = help_text(about["help"], default_text(key, default))
    if parsed and about.get("metavar") in parsed:
        about["type"] = parsed[about["metavar"]]
    parser.add_argument(*names, dest=key, **about)


def flag_of(key: str, type_: Any) -> tuple[list[str], dict[str, Any]]:
    """Return the names of a setting's flag, and the keywords that add it to a parser."""
    about: dict[str, Any] = {"help": "see spectrod config default", "metavar": "VALUE"}
    for note in getattr(type_, "__metadata__", ()):
        if isinstance(note, msgspec.Meta) and note.description is not None:
            about = {"help": note.description, **(note.extra or {})}
    if get_args(type_)[:1] == (bool,):
        about |= {"action": argparse.BooleanOptionalAction, "default": None}
    names = (about.pop("name", key.replace("_", "-")), *about.pop("aliases", ()))
    return [f"--{name}" for name in names], about


def help_text(text: str, default: str) -> str:
    """Return a help text of ``lib.flag`` as argparse takes it."""
    return text.replace("%(default)s", default).replace("%", "%%")


def default_text(key: str, value: object) -> str:
    """Return the default of a setting as its flag takes it: ``125ms``, ``20k``, ``LAeq,LAFmax``."""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    if not isinstance(value, float):
        return str(value)
    if key.endswith("_hz") and value and value % 1000.0 == 0.0:
        return f"{value / 1000.0:g}k"
    if key.endswith("_s"):
        return f"{value:g}s" if value >= 1.0 or not value else f"{1000.0 * value:g}ms"
    return f"{value:g}"


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Add the flags that select the engine."""
    group = parser.add_argument_group("engine")
    group.add_argument("--engine", metavar="KIND", help="auto, opencl, numpy or float64")
    group.add_argument("--device", metavar="NAME", help="OpenCL device, see spectrod devices")


def flags(args: argparse.Namespace) -> Mapping[str, Mapping[str, Any]]:
    """Return the options as the configuration's last layer; a flag that is not given is None."""

    def given(name: str) -> Any:
        return getattr(args, name, None)

    return {
        "source": {
            "uri": given("source"),
            "name": given("name"),
            **{key.name: given(key.name) for key in _OF_SOURCE},
        },
        "analysis": {key.name: given(key.name) for key in _OF_ANALYSIS},
        "engine": {"engine": given("engine"), "device": given("device")},
        "publish": {"endpoints": given("publish"), "insecure": given("insecure")},
        "log": {"level": given("log_level")},
    }


def refuse_flags_of_samples(args: argparse.Namespace) -> None:
    """Check that no flag requires samples, for a source of spectra.

    Raises
    ------
    ConfigError
        For the first such flag.
    """
    types = {key.name: key.type for key in (*_OF_SOURCE, *_OF_ANALYSIS)} | {"start_time": str}
    for name, type_ in types.items():
        value = getattr(args, name, None)
        if value is not None:
            flag = flag_of(name, type_)[0][0]
            text = flag if value is True else f"{flag} {value}"
            raise ConfigError(f"{text}: is for samples, and {args.source} has spectra")
