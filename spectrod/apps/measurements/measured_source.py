"""Sources of the commands that measure some seconds of samples: ``tones`` and ``transfer``."""

import argparse

import msgspec

from spectrod.cli import options
from spectrod.cli.sample_range import SampleRange, sample_range
from spectrod.config import config
from spectrod.config.config import Config
from spectrod.daemon.service import configure_logging
from spectrod.lib.errors import ConfigError
from spectrod.source.base import SelectableSource
from spectrod.source.open_source import Source, open_source

DURATION_DEFAULT = "5"
"""Duration of sources whose length is unknown, if none is given [s]."""

FRAME_DEFAULT = 1 << 15
_FRAME_MIN = 64


def add_source(parser: argparse.ArgumentParser) -> None:
    """Add the flags of the source, and the part of it that is measured."""
    parser.add_argument(
        "--duration",
        metavar="TIME",
        help=f"stop after {options.TIME} (to the end; {DURATION_DEFAULT} s if that is unknown)",
    )
    parser.add_argument(
        "--start", metavar="WHEN", help=f"start position in a recording: {options.WHEN}"
    )
    options.add_source(parser, pace="full")
    options.add_config(parser)
    parser.add_argument("--log-level", metavar="LEVEL", default="warning", help="(%(default)s)")


def open_measured(args: argparse.Namespace) -> tuple[Source, SampleRange, Config]:
    """Open the source of the flags; return it with the range of its samples and the settings.

    Raises
    ------
    SpectrodError
        If a flag is wrong or the source cannot be opened.
    """
    settings = config.load(args.config, options.flags(args))
    configure_logging(settings.log.level, settings.log.style)
    pace = settings.source.pace if args.pace else "full"
    source = open_source(msgspec.structs.replace(settings.source, loop=bool(args.loop)), pace)
    if args.start is not None and source.is_live:
        raise ConfigError(f"--start {args.start}: {args.source} is live, it starts now")
    if args.duration is None and source.n_samples is None:
        args.duration = DURATION_DEFAULT
    span = sample_range(args, source)
    if isinstance(source, SelectableSource):
        source.start_at(span.first)
    return source, span, settings


def frame_length(requested: int | None, span: SampleRange, longest: int = FRAME_DEFAULT) -> int:
    """Return the requested frame length, or a power of two that fits into the samples."""
    if requested is not None:
        return requested
    n = longest if span.n_samples is None else min(longest, span.n_samples)
    return int(max(_FRAME_MIN, 1 << (max(1, n).bit_length() - 1)))
