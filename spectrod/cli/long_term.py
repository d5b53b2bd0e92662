"""The flag that selects a view of long recordings, and the settings that follow from it."""

import argparse
from collections.abc import Sequence

import msgspec

from spectrod.config.config import AnalysisConfig
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_rules import NFFT_MAX
from spectrod.formats.longterm.longterm_sink import samples_needed
from spectrod.formats.longterm.presets import VIEWS, LongTermFrames, frames_for, picture_defaults
from spectrod.lib.errors import ConfigError
from spectrod.lib.output_formats import suffixes
from spectrod.source.base import SelectableSource, StreamFile
from spectrod.source.files.pauses import find_gaps, longest_sound_s
from spectrod.source.open_source import Source

_SPD_BINS_MAX = 1 << 17
"""Maximum of bins of a spectral probability density with an automatic window: each has a
histogram."""


def add_view(group: argparse._ActionsContainer) -> None:
    """Add the flag that selects the view of pictures; ``apply_view`` uses it."""
    known = suffixes(lambda one: one.holds_levels)
    group.add_argument(
        "--view",
        choices=VIEWS,
        default=VIEWS[0],
        help="the long-term average of densities, or how often each level occurs, with its "
        f"percentiles: {' '.join(known)} (spectrogram)",
    )


def check_time_axis(args: argparse.Namespace, *, has_utc: bool) -> None:
    """Refuse an axis of the wall clock if UTC is unknown; raises ConfigError."""
    if not has_utc and (flag := clock_flag(args)):
        raise ConfigError(f"{flag}: {args.source} has no start time")


def clock_flag(args: argparse.Namespace) -> str:
    """Return the flag that asks for a time axis of the wall clock; empty without one."""
    if args.time_zone:
        return f"--time-zone {args.time_zone}"
    return "--time-axis utc" if args.time_axis == "utc" else ""


def apply_view(args: argparse.Namespace, *, has_utc: bool, is_iq: bool) -> None:
    """Set the defaults of a view's pictures where no flag is given."""
    theme = args.theme or "light"
    defaults = picture_defaults(args.view, theme, has_utc=has_utc, is_iq=is_iq)
    for name, value in defaults.items():
        if getattr(args, name) is None:
            setattr(args, name, value)


def long_term(
    args: argparse.Namespace,
    analysis: AnalysisConfig,
    source: Source,
    n_samples: int | None,
) -> tuple[AnalysisConfig, LongTermFrames]:
    """Return unpadded frames for a long-term view, and densities, unless flags set them."""
    win_length = analysis.win_length if args.win_length else 0
    is_unset = analysis.averaging == "none"
    hop = analysis.hop if args.hop else 0
    longest = NFFT_MAX
    if args.view == "spd":
        longest = _SPD_BINS_MAX if source.is_iq else 2 * _SPD_BINS_MAX
    frames = frames_for(
        source.fs,
        n_samples,
        win_length,
        hop,
        rate_hz=analysis.rate_hz,
        win_length_max=longest,
        sound_s=_recording_s(source),
    )
    chosen = msgspec.structs.replace(
        analysis,
        win_length=frames.win_length,
        hop=frames.hop,
        nfft=analysis.nfft if args.nfft else frames.win_length,
        scaling=analysis.scaling if args.scaling else "density",
        averaging="mean" if analysis.rate_hz and is_unset else analysis.averaging,
    )
    return chosen, frames


def check_rows(args: argparse.Namespace, spec: SpectrumSpec, source: Source) -> None:
    """Refuse rows of level statistics that no recording of a folder is long enough for.

    Raises
    ------
    ConfigError
        With a rate of rows that fits.
    """
    files = _files(source)
    if args.view != "spd" or not files:
        return
    longest_s, needed_s = longest_sound_s(files, source.fs), samples_needed(spec) / source.fs
    if needed_s > longest_s >= spec.win_length / source.fs:
        given = "--view spd" if args.rate_hz is None else f"--rate-hz {args.rate_hz}"
        # Wherever rows begin, one of half the length lies in a recording.
        rule = f"a row needs {needed_s:.4g} s of sound in a row, and there are {longest_s:.4g} s"
        raise ConfigError(f"{given}: {rule}: give --rate-hz {2.0 / longest_s:.3g}")


def _recording_s(source: Source) -> float:
    """Return the length of the recordings of a folder's schedule; 0 without one [s]."""
    cycle, _ = find_gaps(_files(source), source.fs)
    return 0.0 if cycle is None else cycle.on_s


def _files(source: Source) -> Sequence[StreamFile]:
    return source.files if isinstance(source, SelectableSource) else ()
