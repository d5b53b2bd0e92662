"""``spectrod record``: records samples or spectra from any source to files."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from spectrod.cli import options
from spectrod.cli.interrupts import signals_as_interrupts
from spectrod.cli.picture_options import add_picture, repeat
from spectrod.cli.record_plan import add_outputs
from spectrod.cli.standard_output import standard_output
from spectrod.daemon.service import configure_logging
from spectrod.lib.errors import ConfigError
from spectrod.lib.output_formats import format_named, readable_suffixes
from spectrod.source.kinds import forms

if TYPE_CHECKING:
    from spectrod.analysis.engine_pool import KeptEngines
    from spectrod.config.config import Config

_ENDPOINTS = ("tcp://", "ipc://")
_PRELOAD_MIN_BYTES = 12 << 20
"""Two minutes of 16 bits: NumPy analyses shorter files."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "source",
        metavar="SRC",
        nargs="+",
        help=f"{forms()}; a recording of spectra ({' '.join(readable_suffixes())}); or a daemon's "
        "tcp:// or ipc://; of several files, each is recorded to outputs of its own",
    )
    add_outputs(parser)
    options.add_range(parser)
    add_picture(parser)
    options.add_source(parser, pace="full")
    options.add_iq(parser)
    options.add_analysis(
        parser, win_length="about 43 ms", hop="a frame a pixel, at most half a window"
    )
    options.add_engine(parser)
    group = parser.add_argument_group("a daemon")
    group.add_argument(
        "--topic", metavar="PREFIX", default="spec/", help="spec/SOURCE/CHANNEL/PRODUCT/ (spec/)"
    )
    options.add_keys(group)
    options.add_config(parser)
    parser.add_argument("--log-level", metavar="LEVEL", default="warning", help="(%(default)s)")


def run(args: argparse.Namespace) -> int:
    """Record to the end of the source or of the duration, or until Ctrl-C."""
    if _is_for_many(args):
        from spectrod.cli.record_many import record_many  # noqa: PLC0415

        return record_many(args, record)
    args.source = args.source[0]
    if args.jobs is not None:
        raise ConfigError(f"--jobs {args.jobs}: is for several sources, or --each")
    with signals_as_interrupts(), standard_output(args):
        return record(args)


def record(args: argparse.Namespace, kept: "KeptEngines | None" = None) -> int:
    """Record one source, with an engine that is kept for others, or one of its own."""
    # Import only the modules that this kind of source needs.
    if args.source.startswith(_ENDPOINTS) or _is_stored(args.source):
        from spectrod.cli.record_rows import record_rows  # noqa: PLC0415

        options.refuse_flags_of_samples(args)
        repeat(args)
        configure_logging(args.log_level)
        return record_rows(args)
    repeat(args)
    from spectrod.analysis.engine import preload_drivers  # noqa: PLC0415

    settings = _settings(args)
    if not _is_small(args.source):
        preload_drivers(settings.engine.engine)
    from spectrod.cli.record_samples import record_samples  # noqa: PLC0415 - beside the drivers

    return record_samples(args, settings, kept)


def _settings(args: argparse.Namespace) -> "Config":
    """Return the configuration; of one of many files, that of the first, with its own name.

    No rule of the configuration depends on the name of a file.
    """
    first: Config | None = getattr(args, "settings_of_first", None)
    if first is None or args.like is not None:  # which sets flags
        from spectrod.config import config  # noqa: PLC0415

        return config.load(args.config, options.flags(args))
    return replace(first, source=replace(first.source, uri=args.source))


def _is_for_many(args: argparse.Namespace) -> bool:
    """Return whether each of several sources has outputs of its own."""
    names = (*args.output, args.pattern or "")
    return len(args.source) > 1 or args.each or any("{stem}" in name for name in names)


def _is_small(source: str) -> bool:
    """Return True for a file that NumPy probably analyses before drivers are loaded."""
    try:
        return Path(source).stat().st_size < _PRELOAD_MIN_BYTES
    except (OSError, ValueError):  # no file
        return False


def _is_stored(source: str) -> bool:
    """Return True if a source is a recording of spectra, or a folder of them."""
    if ":" in source or "\0" in source:
        return False
    found = format_named(Path(source).suffix)
    if found is not None and found.content == "samples":
        return False
    from spectrod.recording.inputs import is_recording  # noqa: PLC0415

    return is_recording(Path(source))
