"""Sources of the commands that measure."""

import argparse
from dataclasses import dataclass, field

import msgspec

from spectrod.cli import options
from spectrod.cli.calibration_dates import warn_of_validity
from spectrod.cli.sample_range import SampleRange, sample_range
from spectrod.cli.times import parse_utc_ns, zone_of_times
from spectrod.config import config
from spectrod.daemon.service import configure_logging
from spectrod.dsp.blocks import duration_ns
from spectrod.dsp.calibration import ChannelCalibration
from spectrod.lib.durations import TIME_FORMS
from spectrod.lib.errors import ConfigError
from spectrod.lib.names import name_channels
from spectrod.lib.site import Site
from spectrod.measure.intervals import LevelAlign
from spectrod.measure.measurement_config import MeasuredSignals
from spectrod.source.base import SelectableSource
from spectrod.source.open_source import Source, open_source

DURATION_DEFAULT = "5"
"""Duration of the mean of a source whose length is unknown, if none is given [s]."""

FRAME_DEFAULT = 1 << 15
_FRAME_MIN = 64


def add_source(parser: argparse.ArgumentParser) -> None:
    """Add the source's settings and the configuration."""
    options.add_source(parser, pace="full")
    options.add_config(parser)
    parser.add_argument("--log-level", metavar="LEVEL", default="warning", help="(%(default)s)")


def add_mean_range(parser: argparse.ArgumentParser) -> None:
    """Add the flags of the part of a source whose mean is measured."""
    parser.add_argument(
        "--duration",
        metavar="TIME",
        help=f"stop after {TIME_FORMS} (to the end; {DURATION_DEFAULT} s if that is unknown)",
    )
    parser.add_argument(
        "--start", metavar="WHEN", help=f"start position in a recording: {options.WHEN}"
    )
    options.add_stop(parser)
    parser.add_argument(
        "--start-time",
        metavar="ISO8601",
        help="UTC of the first sample, by which intervals are aligned (from the file's header or "
        "name)",
    )


@dataclass(frozen=True, slots=True)
class MeasuredSource:
    """An open source, and what measurements of it need.

    Attributes
    ----------
    name : str
        What the command line names.
    source : Source
    span : SampleRange
        Samples to measure.
    names : tuple of str
        Names of the signals.
    calibrations : tuple of (ChannelCalibration or None)
        Calibration of each signal.
    has_utc : bool
        Whether the time of the samples is known.
    files_zone : str
        Time zone in which files state local times; empty without.
    site : Site
        Where the source is, as the configuration has it.
    """

    name: str
    source: Source
    span: SampleRange
    names: tuple[str, ...]
    calibrations: tuple[ChannelCalibration | None, ...]
    has_utc: bool
    files_zone: str = ""
    site: Site = field(default_factory=Site)

    @property
    def signals(self) -> MeasuredSignals:
        """The signals, as measurements see them."""
        source = self.source
        return MeasuredSignals(
            source.description,
            source.fs,
            self.names,
            self.calibrations,
            source.is_iq,
            source.center_frequency_hz,
            tuple(source.speakers),
            self.has_utc,
        )

    def utc_ns(self, index: int) -> int | None:
        """Return the UTC of a sample of a recording [ns]; None if it is not known."""
        begin_ns = self.source.start_utc_ns
        return None if begin_ns is None else begin_ns + duration_ns(index, self.source.fs)

    def align(self, given: LevelAlign | None) -> LevelAlign:
        """Return the bounds of intervals, UTC by default where it is known.

        Raises
        ------
        ConfigError
            If the time of the samples is needed and not known.
        """
        align: LevelAlign = given or ("utc" if self.has_utc else "start")
        if align != "start" and not self.has_utc:
            raise ConfigError(f"--align {align}: {self.name} has no start time; give --start-time")
        return align

    def check_zone(self, time_zone: str | None) -> None:
        """Check that there are times that a time zone counts for; raises ConfigError."""
        if time_zone and not self.has_utc:
            rule = f"{self.name} has no start time; give --start-time"
            raise ConfigError(f"--time-zone {time_zone}: {rule}")


def open_measured(args: argparse.Namespace, *, is_mean: bool = False) -> MeasuredSource:
    """Open the source of the command line.

    Parameters
    ----------
    args : argparse.Namespace
    is_mean : bool
        Whether to measure the mean of some seconds, which a live source has from now on.

    Raises
    ------
    SpectrodError
        If a flag is wrong or the source cannot be opened.
    """
    settings = config.load(args.config, options.flags(args))
    configure_logging(settings.log.level, settings.log.style)
    pace = settings.source.pace if args.pace else "full"
    source = open_source(msgspec.structs.replace(settings.source, loop=bool(args.loop)), pace)
    if args.start_time is not None:
        if source.is_live:
            raise ConfigError(
                f"--start-time {args.start_time}: {args.source} starts when it is opened"
            )
        source.start_utc_ns = parse_utc_ns("--start-time", args.start_time, zone_of_times(args))
    if is_mean and args.start is not None and source.is_live:
        raise ConfigError(f"--start {args.start}: {args.source} is live, it starts now")
    if is_mean and args.duration is None and args.stop is None and source.n_samples is None:
        args.duration = DURATION_DEFAULT
    span = sample_range(args, source)
    if isinstance(source, SelectableSource):
        source.start_at(span.first)
    n_signals = source.channels // 2 if source.is_iq else source.channels
    calibrations = settings.source.calibrations(n_signals) or (None,) * n_signals
    # Samples of a pipe or a test signal have the present time.
    has_utc = source.n_samples is None or source.start_utc_ns is not None
    warn_of_validity(args.source, source, span, calibrations, has_utc=has_utc)
    return MeasuredSource(
        args.source,
        source,
        span,
        name_channels(settings.source.channel_names, n_signals),
        calibrations,
        has_utc,
        settings.source.files_zone,
        settings.source.site,
    )


def frame_length(requested: int | None, span: SampleRange, longest: int = FRAME_DEFAULT) -> int:
    """Return the requested frame length, or a power of two that fits into the samples."""
    if requested is not None:
        return requested
    n = longest if span.n_samples is None else min(longest, span.n_samples)
    return int(max(_FRAME_MIN, 1 << (max(1, n).bit_length() - 1)))
