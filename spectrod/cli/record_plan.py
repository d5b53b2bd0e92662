"""Plan of ``spectrod record``: the outputs by their names, and how to make them."""

import argparse
import logging
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import spectrod
from spectrod.cli.data_options import add_data, profile_paths, require_content
from spectrod.cli.interrupts import interrupts_held
from spectrod.cli.long_term import add_view
from spectrod.cli.periods import Period
from spectrod.cli.record_files import OutputFiles, RowFiles
from spectrod.cli.times import parse_seconds
from spectrod.dsp.blocks import Block
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import NS_PER_S
from spectrod.formats.description import Description
from spectrod.formats.longterm.presets import View
from spectrod.formats.picture.painter import Painter, Transpose
from spectrod.formats.picture.picture_settings import PictureOptions, check_width
from spectrod.formats.picture.plan import PicturePlan
from spectrod.lib.errors import ConfigError, SpectrodError
from spectrod.lib.output_formats import Content, format_of, listed
from spectrod.lib.time_zones import find_zone
from spectrod.recording.output_plan import (
    Plan,
    check_outputs,
    make_folders,
    make_rows,
    make_samples,
)

_log = logging.getLogger(__name__)

_TILE_PX = 8000


@dataclass(frozen=True, slots=True)
class Asked:
    """Values of the flags for the number and the names of the files.

    Attributes
    ----------
    paths : tuple of str
        Path of each output, or a pattern of ``strftime`` with periods.
    period : Period or None
        Periods that have a file each; None for a single file.
    seconds_per_pixel : float
        Scale of pictures whose width follows from their duration; 0 for others.
    view : {"spectrogram", "ltsa", "spd"}
        Kind of picture.
    """

    paths: tuple[str, ...]
    period: Period | None
    seconds_per_pixel: float
    view: View = "spectrogram"

    @property
    def contents(self) -> frozenset[Content]:
        """Contents of the outputs."""
        return frozenset(format_of(path).content for path in self.paths)

    def file_samples(self, fs: float, n_samples: int | None) -> int | None:
        """Return the samples per channel of a file, of a source of n_samples; None if unknown."""
        n_period = round(self.period.length_ns * fs / NS_PER_S) if self.period else None
        return min((n for n in (n_period, n_samples) if n is not None), default=None)


def add_outputs(parser: argparse.ArgumentParser) -> None:
    """Add the flags that ``asked`` reads."""
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        action="append",
        required=True,
        help=f"its suffix selects the format: {listed('picture', 'rows', 'samples')}; may be "
        "repeated; - (a PNG) and FORMAT:- are standard output",
    )
    parser.add_argument(
        "--every",
        metavar="TIME",
        help="a file for each 10min, 1h, 1d, ... of UTC or --time-zone; needs --name",
    )
    parser.add_argument(
        "--name",
        dest="pattern",
        metavar="PATTERN",
        help="name of each file in the folder OUT, as '%%Y%%m%%dT%%H%%M%%SZ.png' with --every, or "
        "'{stem}.png' with the names of several sources",
    )
    parser.add_argument(
        "--each", action="store_true", help="record each sound file of a folder to its own outputs"
    )
    parser.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="processes for several sources (one for each processor, at most 8)",
    )
    add_data(parser)
    group = parser.add_argument_group("pictures and sound")
    group.add_argument(
        "--time-per-pixel",
        metavar="S",
        help="width follows from the length; pictures after the first are OUT-0002.png, ...",
    )
    group.add_argument(
        "--tile", type=int, metavar="PX", help=f"most pixels across one of these ({_TILE_PX})"
    )
    group.add_argument(
        "--pool",
        choices=("mean", "max", "min"),
        help="what a pixel shows of the frames that fall into it (mean)",
    )
    add_view(group)
    group.add_argument(
        "--subtype", default="", metavar="T", help=f"of {listed('samples')}: s16 s24 s32 f32"
    )


def asked(args: argparse.Namespace) -> Asked:
    """Read the flags.

    Raises
    ------
    ConfigError
        With the flag, its value and the rule, if a rule is violated.
    """
    paths = tuple(profile_paths(args, args.output))
    if args.pattern is not None:
        paths = tuple(str(Path(folder) / args.pattern) for folder in paths)
    found = Asked(paths, _period(args), _seconds_per_pixel(args), args.view)
    if args.subtype:
        require_content(f"--subtype {args.subtype}", "samples", paths)
    _check_zone(args, found)
    # A source with a NUL is not a path; the reader reports it.
    _check_names(found, None if "\0" in args.source else Path(args.source))
    return found


def _period(args: argparse.Namespace) -> Period | None:
    if args.every is None:
        if args.pattern is not None:
            raise ConfigError(f"--name {args.pattern}: needs --every, or {{stem}}")
        return None
    period_ns = round(parse_seconds("--every", args.every) * NS_PER_S)
    if period_ns < NS_PER_S:
        raise ConfigError(f"--every {args.every}: must be at least 1 s")
    if args.profile:
        raise ConfigError(
            f"--every {args.every}: must be without --profile, which makes daily files"
        )
    zone = find_zone(args.time_zone) if args.time_zone else None
    try:
        return Period(period_ns, zone)
    except ConfigError as error:
        raise error.of(f"--every {args.every}") from error


def _check_zone(args: argparse.Namespace, found: Asked) -> None:
    """Refuse a time zone of data files, whose times are UTC; raises ConfigError."""
    # An old picture's zone is no wish for data files.
    if args.time_zone and args.like is None and not found.period:
        require_content(f"--time-zone {args.time_zone}", "picture", found.paths)


def _seconds_per_pixel(args: argparse.Namespace) -> float:
    if args.tile is not None and args.time_per_pixel is None:
        raise ConfigError(f"--tile {args.tile}: needs --time-per-pixel")
    if args.tile is not None:
        check_width("--tile ", args.tile, raw=bool(args.raw))
    if args.time_per_pixel is None:
        return 0.0
    if args.view == "spd":
        raise ConfigError(f"--time-per-pixel {args.time_per_pixel}: --view spd has no time axis")
    return parse_seconds("--time-per-pixel", args.time_per_pixel)


def _check_names(found: Asked, source: Path | None) -> None:
    check_outputs(list(found.paths), source)
    for path in found.paths:
        format_of(path)
        if found.period:
            found.period.check_names(path)


def _path_at(pattern: str, period: Period | None, begin_utc_ns: int) -> Path:
    """Return the path of the file of a period, or of all."""
    return period.path(pattern, begin_utc_ns) if period else Path(pattern)


def picture_width(found: Asked, options: PictureOptions, tile: int | None) -> PictureOptions:
    """Return options with the width of a tile, if the width follows from the duration."""
    return replace(options, width=tile or _TILE_PX) if found.seconds_per_pixel else options


def picture_samples(found: Asked, width: int, fs: float, n_samples: int | None) -> int | None:
    """Return the number of samples in a picture of full width, if known."""
    if found.seconds_per_pixel:
        return max(1, round(found.seconds_per_pixel * width * fs))
    return found.file_samples(fs, n_samples)


def describe(
    spec: SpectrumSpec,
    source: str,
    signals: tuple[str, ...],
    attributes: dict[str, str] | None = None,
) -> Description:
    """Describe rows that this process computes, with the attributes of their source."""
    about = Description(spec, source, signals, f"spectrod {spectrod.__version__}")
    return replace(about, attributes=attributes or {})


@dataclass(frozen=True, slots=True)
class Outputs:
    """All outputs, by the chunks that they take.

    Attributes
    ----------
    pictures, rows : list of RowFiles
        Pictures, and files of spectra.
    samples : list of OutputFiles
        Files of sound.
    """

    pictures: list[RowFiles]
    rows: list[RowFiles]
    samples: list[OutputFiles[Block]]

    @property
    def all(self) -> list[OutputFiles[Any]]:
        """All outputs."""
        return [*self.pictures, *self.rows, *self.samples]

    def give_up(self, files: OutputFiles[Any], error: SpectrodError) -> None:
        """Abort an output that has failed; log the failure now if there are other outputs."""
        files.give_up(error)
        if len(self.all) > 1:
            _log.error("%s", error)

    def abort(self) -> None:
        """Abort the current files."""
        for files in self.all:
            files.abort()


def make_outputs(found: Asked, plan: Plan, now_utc_ns: int) -> Outputs:
    """Create all outputs and their folders; with periods, try a file of now and remove it.

    Raises
    ------
    SpectrodError
        For the first output that fails; all others are removed then.
    """
    make_folders(found.paths)
    outputs = Outputs([], [], [])
    rows = partial(make_rows, plan=plan)
    samples = partial(make_samples, plan=plan)
    try:
        for path in found.paths:
            name = partial(_path_at, path, found.period)
            content = format_of(path).content
            with interrupts_held():
                if content == "samples":
                    _try(samples, name, found, now_utc_ns)
                    outputs.samples.append(OutputFiles[Block](name, samples, found.period))
                else:
                    _try(rows, name, found, now_utc_ns)
                    into = outputs.pictures if content == "picture" else outputs.rows
                    into.append(RowFiles(name, rows, found.period))
    except BaseException:  # Ctrl-C too
        with interrupts_held():
            outputs.abort()
        raise
    return outputs


def _try(make: partial, name: partial, found: Asked, now_utc_ns: int) -> None:  # type: ignore[type-arg]
    if found.period:
        make(name(found.period.around(now_utc_ns)[0])).abort()


def picture_plan(found: Asked, options: PictureOptions, paint: Painter | Transpose) -> PicturePlan:
    """Return the plan of pictures; raises ConfigError for impossible strips."""
    if found.period and "waveform" in options.strips:
        raise ConfigError("strips=waveform: pictures of --every have none")
    return PicturePlan(options, paint, found.seconds_per_pixel, found.view)
