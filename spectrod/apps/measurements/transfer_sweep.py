"""``spectrod transfer --sweep``: responses and distortion from a recording of a sweep."""

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spectrod.apps.measurements.delay_removal import MEASURED, delay_in_samples
from spectrod.apps.measurements.figure_flags import figure_look
from spectrod.apps.measurements.measured_source import MeasuredSource
from spectrod.apps.measurements.response_output import write_response
from spectrod.apps.measurements.sample_blocks import read_blocks, report_left_out
from spectrod.cli.numbers import count
from spectrod.dsp.blocks import Block
from spectrod.dsp.units import dbfs_to_amplitude
from spectrod.formats.figure.reverberation_text import (
    reverberation_comments,
    reverberation_lines,
)
from spectrod.formats.figure.transfer_figure import (
    SWEEP_REFERENCE,
    SweepImpulse,
    sweep_columns,
    sweep_impulse,
)
from spectrod.formats.sound.sound_options import SoundOptions
from spectrod.formats.sound.sound_writer import SoundWriter
from spectrod.lib.durations import FREQUENCY_RULE, TIME_RULE, parse_frequency, parse_time
from spectrod.lib.errors import ConfigError, InputError
from spectrod.measure.transfer.calibrated import common_unit, power_factors
from spectrod.measure.transfer.reverberation import Reverberation
from spectrod.measure.transfer.sweep import HARMONICS_MAX, SAMPLES_MAX, Sweep
from spectrod.measure.transfer.sweep_response import (
    HARMONICS_DEFAULT,
    LENGTH_DEFAULT,
    SweepResponse,
    measure_sweep,
)

if TYPE_CHECKING:
    from spectrod.dsp.units import Float64Array

_FORM = "FROM_HZ,TO_HZ,SECONDS or FROM_HZ,TO_HZ,SECONDS,LEVEL_DBFS, as 20,20k,10,-6"
_LEVEL_MIN_DB, _LEVEL_MAX_DB = -200.0, 20.0
_NO_FLAGS = {"window": "--window", "low_hz": "--band"}


@dataclass(frozen=True, slots=True)
class PlayedSweep:
    """What ``--sweep`` says, for any sample rate.

    Attributes
    ----------
    low_hz, high_hz : float
        First and last frequency [Hz].
    duration_s : float
        Length [s].
    level_dbfs : float
        Level of the sweep re a full-scale sine [dB].
    """

    low_hz: float
    high_hz: float
    duration_s: float
    level_dbfs: float = 0.0

    def __str__(self) -> str:
        """Return what files say."""
        return (
            f"{self.low_hz:g} to {self.high_hz:g} Hz in {self.duration_s:g} s, "
            f"{self.level_dbfs:g} dBFS"
        )


def add_sweep(parser: argparse.ArgumentParser) -> None:
    """Add the flags of sweeps."""
    group = parser.add_argument_group("sweep")
    group.add_argument(
        "--sweep",
        metavar="FROM,TO,S[,DBFS]",
        help="the recording is of an exponential sweep, as 20,20k,10,-6: that of "
        "signal:sweep,20,20000,10,-6 (level: 0). The response is channel 1 re channel 0, or of a "
        "recording of one channel re the sweep; --win-length is that of the impulse response "
        f"(up to {LENGTH_DEFAULT})",
    )
    group.add_argument(
        "--harmonics",
        metavar="N",
        type=count,
        help=f"highest order of the distortion, 1: none (up to {HARMONICS_MAX}; "
        f"{HARMONICS_DEFAULT})",
    )
    group.add_argument(
        "--impulse-response", metavar="OUT", help="write the impulse response to a .wav"
    )


def refuse_without_sweep(args: argparse.Namespace) -> None:
    """Check that no flag of sweeps is given; raises ConfigError."""
    for flag, value in (
        ("--harmonics", args.harmonics),
        ("--impulse-response", args.impulse_response),
    ):
        if value is not None:
            raise ConfigError(f"{flag} {value}: must be with --sweep")


def parse_sweep(text: str) -> PlayedSweep:
    """Parse the value of ``--sweep``; raises ConfigError."""
    parts = text.split(",")
    if not 3 <= len(parts) <= 4:
        raise ConfigError(f"--sweep {text}: must be {_FORM}")
    low, high = (parse_frequency(one) for one in parts[:2])
    seconds = parse_time(parts[2])
    if low is None or high is None:
        raise ConfigError(f"--sweep {text}: {FREQUENCY_RULE}")
    if seconds is None:
        raise ConfigError(f"--sweep {text}: {TIME_RULE}")
    return PlayedSweep(low, high, seconds, _level(text, parts[3]) if parts[3:] else 0.0)


def _level(text: str, level: str) -> float:
    try:
        level_dbfs = float(level)
    except ValueError:
        level_dbfs = math.nan
    if not _LEVEL_MIN_DB <= level_dbfs <= _LEVEL_MAX_DB:
        rule = f"must be {_LEVEL_MIN_DB:g} to {_LEVEL_MAX_DB:g} dBFS"
        raise ConfigError(f"--sweep {text}: level {level}: {rule}")
    return level_dbfs


def run_sweep(
    args: argparse.Namespace, measured: MeasuredSource, given: dict[str, Any], chosen: Sequence[int]
) -> int:
    """Measure the sweep, and write one row for each frequency, and the impulse response.

    Parameters
    ----------
    args : Namespace
    measured : MeasuredSource
    given : dict
        Settings that flags give.
    chosen : sequence of int
        Channel of the reference, if there is one, and of the response.

    Raises
    ------
    SpectrodError
        If an argument or the recording breaks a rule, or a file cannot be written.
    """
    played, source = parse_sweep(args.sweep), measured.source
    for key in _NO_FLAGS.keys() & given.keys():
        raise ConfigError(f"{_NO_FLAGS[key]}: must be without --sweep")
    sweep = Sweep(source.fs, played.low_hz, played.high_hz, played.duration_s)
    is_timed = args.delay not in (None, MEASURED)
    known = [measured.calibrations[n] for n in chosen]
    unit = common_unit(known)
    try:
        channels = _read(measured, chosen)
        found = measure_sweep(
            sweep,
            channels[-1],
            channels[0] if len(chosen) > 1 else None,
            delay_samples=delay_in_samples(args.delay, source.fs) if is_timed else None,
            length=given.get("win_length", LENGTH_DEFAULT),
            harmonics=args.harmonics or HARMONICS_DEFAULT,
        )
    except InputError as error:
        raise InputError(f"{source.description}: {error}") from error
    x_factors = np.full(len(found.frequencies), dbfs_to_amplitude(played.level_dbfs) ** 2)
    if len(chosen) > 1:
        x_factors = power_factors(known[0], found.frequencies)
    found = found.scaled(x_factors, power_factors(known[-1], found.frequencies))
    about = {
        "source": source.description,
        "reference": measured.names[chosen[0]] if len(chosen) > 1 else SWEEP_REFERENCE,
        "response": measured.names[chosen[-1]],
        "sweep": str(played),
        "unit": "1" if len(chosen) > 1 or unit == "FS" else f"{unit}/FS",
    }
    decays = found.reverberation()
    _write(args, measured, found, about | _times(found) | reverberation_comments(decays), decays)
    if args.output:
        for line in reverberation_lines(decays):
            print(line)
    if args.delay is None:
        print(_time_note(found), file=sys.stderr)
    return report_left_out(source)


def _read(measured: MeasuredSource, chosen: Sequence[int]) -> "Float64Array":
    """Return the samples of the chosen channels, (channels, n)."""
    kept: list[Float64Array] = []
    n = 0
    for block in read_blocks(measured.source, measured.span):
        if kept and (block.lost_samples or block.discontinuity):
            raise InputError(f"gap after {n / measured.source.fs:g} s: a sweep must have none")
        kept.append(block.samples[list(chosen)].astype(np.float64))
        n += block.n_samples
        if n > SAMPLES_MAX:
            limit_s = SAMPLES_MAX / measured.source.fs
            raise InputError(f"more than {limit_s:.1f} s: choose the sweep by --start, --duration")
    return np.concatenate(kept, axis=1) if kept else np.empty((len(chosen), 0))


def _times(found: SweepResponse) -> dict[str, Any]:
    about: dict[str, Any] = {"time_0_s": f"{found.begin / found.fs:.9g}"}
    if found.delay_samples is not None:
        about |= {
            "delay_s": f"{found.delay_samples / found.fs:.9g}",
            "delay_samples": found.delay_samples,
        }
    return about


def _time_note(found: SweepResponse) -> str:
    if found.delay_samples is None:
        return (
            f"time 0: the sweep begins at {found.begin / found.fs:.6g} s, by the peak of the "
            "impulse response; --delay TIME names another place"
        )
    return (
        f"delay: {1e3 * found.delay_samples / found.fs:.4f} ms ({found.delay_samples} samples), "
        "removed; --delay 0 keeps it"
    )


def _write(
    args: argparse.Namespace,
    measured: MeasuredSource,
    found: SweepResponse,
    about: dict[str, Any],
    decays: Sequence[Reverberation],
) -> None:
    impulse = sweep_impulse(found, decays)
    if args.impulse_response is not None:
        _write_impulse_response(Path(args.impulse_response), measured, impulse)
        about["impulse_response_time_0_samples"] = impulse.n_lead
    columns = sweep_columns(found)
    write_response(args.output, about, columns, figure_look(args, args.output), impulse)


def _write_impulse_response(path: Path, measured: MeasuredSource, found: SweepImpulse) -> None:
    samples = found.samples.astype(np.float32)[np.newaxis]
    options = SoundOptions(source=measured.source.description, is_copy=True, has_utc=False)
    writer = SoundWriter(path, found.fs, 1, "f32", options)
    try:
        writer.write(Block(samples, 0, 0, 0))
        writer.finish()
    finally:
        writer.abort()
