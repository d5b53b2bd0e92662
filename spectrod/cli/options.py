"""Options shared by several commands, and their conversion to configuration."""

import argparse
from collections.abc import Callable, Mapping
from typing import Any, get_args

import msgspec

from spectrod.config.settings import AnalysisConfig, IqFormat, RealFormat
from spectrod.lib.durations import TIME_FORMS
from spectrod.lib.errors import ConfigError

_OF_SOURCE = (
    "name",
    "samplerate",
    "channels",
    "select",
    "calibration",
    "iq",
    "format",
    "pace",
    "loop",
    "recursive",
    "time_format",
    "strict",
)
_OF_CARD = ("block_ms", "latency_ms", "exclusive")
_OF_ANALYSIS = AnalysisConfig.__struct_fields__


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
    "12.5 or 1:02:03 from the beginning, -30 from the end, or UTC as 2026-05-01T04:30:00Z, T04:30"
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
    parser.add_argument(
        "--start-time",
        metavar="ISO8601",
        help="UTC of the first sample, as 2026-05-01T04:30:00Z (from the file's header or name)",
    )


def add_source(parser: argparse.ArgumentParser, pace: str = "realtime") -> None:
    """Add the flags of a source; one default, as text, depends on the command."""
    group = parser.add_argument_group("source")
    group.add_argument(
        "--samplerate",
        "--rate",  # the name of before, which stays
        metavar="HZ",
        help="sample rate, where the source leaves it open",
    )
    group.add_argument("--channels", metavar="N", help="channels, where the source leaves it open")
    group.add_argument(
        "--format",
        metavar="FMT",
        help=f"raw samples: {' '.join(get_args(RealFormat))} (s16le), or pairs of I and Q: "
        f"{' '.join(get_args(IqFormat))}",
    )
    group.add_argument(
        "--select", metavar="N,N,...", help="only these channels, in this order, numbers from 0"
    )
    group.add_argument(
        "--calibration", metavar="FILE", help="calibration file (TOML): results in dB SPL, Pa, ..."
    )
    group.add_argument(
        "--pace", metavar="PACE", help=f"of files and signals: realtime or full ({pace})"
    )
    _add_switch(group, "--loop", "play files again and again")
    _add_switch(group, "--recursive", "include the subfolders of a folder")
    group.add_argument(
        "--time-format",
        metavar="FORMAT",
        help="start time in names of files, as %%y%%m%%d-%%H%%M%%S (else forms of recorders)",
    )
    _add_switch(group, "--strict", "stop at the first file that cannot be read in full")
    group.add_argument("--block-ms", metavar="MS", help="block length of a sound card")
    group.add_argument(
        "--latency-ms",
        metavar="MS",
        help="requested latency of a sound card; 0: the lowest safe",
    )
    _add_switch(group, "--exclusive", "keep other programs from the sound card, where possible")


def add_iq(parser: argparse.ArgumentParser) -> None:
    """Add the flags for two-sided spectra of pairs of channels."""
    _add_switch(
        parser, "--iq", "each pair of channels is I and Q of one signal; raw samples: 2 channels"
    )
    parser.add_argument(
        "--center-frequency",
        metavar="HZ",
        help="the receiver's frequency at 0 Hz of I/Q samples, as 433.92M",
    )


def _add_switch(parser: argparse._ActionsContainer, name: str, help_: str) -> None:
    parser.add_argument(name, action="store_true", default=None, help=help_)


def add_analysis(
    parser: argparse.ArgumentParser, win_length: str = "4096", hop: str = "1024"
) -> None:
    """Add a flag for each key of ``[analysis]``; two defaults, as text, depend on the command."""
    group = parser.add_argument_group("analysis")
    defaults = {"win_length": f" ({win_length})", "hop": f" ({hop})"}
    for key in msgspec.structs.fields(AnalysisConfig):
        add_flag(group, key.name, key.type, defaults.get(key.name, ""))


def add_flag(
    parser: argparse._ActionsContainer,
    key: str,
    type_: Any,
    default: str = "",
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
    default : str
        Added to the help.
    parsed : mapping of str to callable, optional
        Reads a value, by its metavar; others stay text.
    """
    name, about = flag_of(key, type_)
    about["help"] += default
    if parsed and about.get("metavar") in parsed:
        about["type"] = parsed[about["metavar"]]
    parser.add_argument(name, dest=key, **about)


def flag_of(key: str, type_: Any) -> tuple[str, dict[str, Any]]:
    """Return the name of a setting's flag, and the keywords that add it to a parser."""
    about: dict[str, Any] = {"help": "see spectrod config default", "metavar": "VALUE"}
    for note in getattr(type_, "__metadata__", ()):
        if isinstance(note, msgspec.Meta) and note.description is not None:
            about = {"help": note.description, **(note.extra or {})}
    if get_args(type_)[:1] == (bool,):
        about |= {"action": argparse.BooleanOptionalAction, "default": None}
    return "--" + about.pop("name", key.replace("_", "-")), about


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Add the flags that select the engine."""
    group = parser.add_argument_group("engine")
    group.add_argument("--engine", metavar="KIND", help="auto, opencl or numpy")
    group.add_argument("--device", metavar="NAME", help="OpenCL device, see spectrod devices")


def flags(args: argparse.Namespace) -> Mapping[str, Mapping[str, Any]]:
    """Return the options as the configuration's last layer; a flag that is not given is None."""

    def given(name: str) -> Any:
        return getattr(args, name, None)

    return {
        "source": {
            "uri": given("source"),
            "center_frequency_hz": given("center_frequency"),
            **{key: given(key) for key in (*_OF_SOURCE, *_OF_CARD)},
        },
        "analysis": {key: given(key) for key in _OF_ANALYSIS},
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
    for name in ("center_frequency", *_OF_SOURCE, *_OF_CARD, *_OF_ANALYSIS, "start_time"):
        value = getattr(args, name, None)
        if value is not None:
            flag, _ = flag_of(name, None)
            text = flag if value is True else f"{flag} {value}"
            raise ConfigError(f"{text}: is for samples, and {args.source} has spectra")
