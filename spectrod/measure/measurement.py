"""Measurements: one value of each quantity and channel in each interval of time."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.interval_flags import IntervalFlag
from spectrod.dsp.units import Float64Array
from spectrod.lib.array_values import ArrayValues
from spectrod.lib.errors import ConfigError

QUANTITIES_MAX = 64
"""Maximum number of quantities of a row, beside those in bands."""
MESSAGE_VALUES_MAX = 1024
"""Maximum number of values of a message, those in bands included."""
MESSAGE_NAMES_MAX_BYTES = 60 * 1024
"""Maximum size of the names and units of a message's values, as JSON [bytes]."""
INTERVAL_MIN_S, INTERVAL_MAX_S = 0.01, 366 * 86400.0
"""Shortest and longest interval [s]."""
FRAME_VALUES_MAX = 1 << 24
"""Maximum number of values of a frame of all signals: 128 MiB in float64."""


class Quantity(Protocol):
    """Name and unit of one value of a row."""

    @property
    def name(self) -> str:
        """Its name, unique in a row."""

    @property
    def unit(self) -> str:
        """Its unit; ``level`` and ``exposure`` follow from the channel's calibration."""

    @property
    def is_of_all_channels(self) -> bool:
        """Whether its value is one of all channels together."""


def meter_text(
    meter: object, fs: float, n_signals: int, quantities: Sequence[Quantity], interval_s: float
) -> str:
    """Return one line about a meter, for its ``repr``: rate, signals, quantities, interval."""
    names = ", ".join(one.name for one in quantities)
    channels = f"{n_signals} channel{'' if n_signals == 1 else 's'}"
    return f"<{type(meter).__name__}: {fs:.6g} Hz, {channels}, {names} each {interval_s:.6g} s>"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Measurement(ArrayValues):
    """Values of one interval.

    Attributes
    ----------
    first_sample : int
        Index of the first sample, since the start; missing samples count.
    n_samples, due_samples : int
        Samples per channel that were measured, and that the interval has.
    begin_utc_ns : int or None
        UTC of the first sample [ns]; None without a date.
    duration_s : float
        Measured time [s].
    values : (quantities, channels) float64
        Values in the meter's order of quantities; NaN where there is none. A value of all channels
        together is the same in each.
    flags : (channels,) uint8
        Sums of ``IntervalFlag``.
    n_frames : int
        Frames that the values are of; 0 if they are of samples.
    tables : tuple of (rows, columns) float64
        Further values of each channel, tracks of tones or values of bins; empty without any.
    span_samples : int
        Samples from the first to the last one, with those missing between them; 0: not known.
    """

    first_sample: int
    n_samples: int
    due_samples: int
    begin_utc_ns: int | None
    duration_s: float
    values: Float64Array
    flags: NDArray[np.uint8]
    n_frames: int = 0
    tables: tuple[Float64Array, ...] = ()
    span_samples: int = field(default=0, kw_only=True)

    def __repr__(self) -> str:
        """Return one line: begin, duration, number of values, and flags of any channel."""
        utc = self.begin_utc_ns
        begin = "" if utc is None else f", {np.datetime64(utc, 'ns')}Z"
        n_values, n_channels = self.values.shape
        sizes = f"{n_values} value{'' if n_values == 1 else 's'} of {n_channels} channel"
        sizes += "" if n_channels == 1 else "s"
        raised = IntervalFlag(int(np.bitwise_or.reduce(self.flags, initial=0)))
        flags = "|".join(str(one.name).lower() for one in raised)
        return (
            f"<{type(self).__name__}: sample {self.first_sample}{begin}, {self.duration_s:.6g} s, "
            f"{sizes}{self._further()}{', ' if flags else ''}{flags}>"
        )

    def _further(self) -> str:
        """Return what a kind of rows has beside values, for its ``repr``."""
        return ""

    @property
    def message_values(self) -> Float64Array:
        """The values of a message of each channel, (message's quantities, channels)."""
        return self.values


def check_interval(interval_s: float, win_length: int, fs: float) -> None:
    """Check that an interval holds a frame.

    Parameters
    ----------
    interval_s : float
        Length of the interval [s].
    win_length : int
        Length of a frame [samples].
    fs : float
        Sample rate [Hz].

    Raises
    ------
    ConfigError
        If it does not, or is shorter or longer than intervals may be.
    """
    check_interval_length(interval_s)
    if interval_s * fs < win_length:
        raise ConfigError(
            f"must be at least a frame, win_length={win_length} of "
            f"{win_length / fs:g} s at {fs:g} Hz",
            "win_length",
            interval_s=interval_s,
        )


def check_interval_length(interval_s: float) -> None:
    """Check the length of an interval [s]; raises ConfigError."""
    if not INTERVAL_MIN_S <= interval_s <= INTERVAL_MAX_S:
        raise ConfigError(f"must be {INTERVAL_MIN_S:g} s to 366 days", interval_s=interval_s)


def check_message(quantities: Sequence[Quantity], units: Sequence[str] = ()) -> None:
    """Check that one message can have these values.

    Parameters
    ----------
    quantities : sequence of Quantity
        Those in bands included.
    units : sequence of str
        Unit of each, if known.

    Raises
    ------
    ConfigError
        If there are more than ``MESSAGE_VALUES_MAX``, or their names and units are too long.
    """
    n_values = len(quantities)
    if n_values > MESSAGE_VALUES_MAX:
        raise ConfigError(
            f"{n_values} values: a message has at most {MESSAGE_VALUES_MAX}; choose fewer bands or "
            "quantities"
        )
    texts = [[one.name for one in quantities], list(units)]
    n_bytes = len(json.dumps(texts, ensure_ascii=False).encode())
    if n_bytes > MESSAGE_NAMES_MAX_BYTES:
        raise ConfigError(
            f"{n_values} values: their names and units have {n_bytes} bytes, a message at most "
            f"{MESSAGE_NAMES_MAX_BYTES}; choose fewer bands or quantities, or a shorter unit"
        )


def check_frame_size(n_signals: int, n_bins: int) -> None:
    """Check the number of values of a frame of all signals; raises ConfigError."""
    if n_signals * n_bins > FRAME_VALUES_MAX:
        raise ConfigError(
            f"{n_signals} spectra of {n_bins} bins: must be at most {FRAME_VALUES_MAX} values; "
            "select fewer channels, or a shorter window"
        )
