"""What every kind of measurement has in common: settings, signals, and meters bound to them."""

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Protocol

import numpy as np
from msgspec import Struct, StructMeta
from numpy.typing import ArrayLike

from spectrod.dsp.calibration import ChannelCalibration
from spectrod.dsp.units import Float64Array
from spectrod.lib.durations import TIME_FORMS
from spectrod.lib.flag import flag
from spectrod.measure.intervals import LEVEL_ALIGNS, LevelAlign
from spectrod.measure.measurement import Measurement, Quantity

if TYPE_CHECKING:
    from spectrod.measure.levels.octave_levels import BandLevels

Interval = Annotated[float, flag("TIME", f"{TIME_FORMS} (%(default)s)", name="interval")]
"""Length of an interval [s]."""
IntervalAlign = Annotated[
    LevelAlign,
    flag(
        "",
        "intervals count from the start, in UTC, or from local midnight (utc with a date)",
        choices=LEVEL_ALIGNS,
    ),
]
"""Where intervals begin."""
TimeZone = Annotated[
    str,
    flag(
        "ZONE",
        "of times and local days: Europe/Berlin, or local: this machine's (UTC)",
    ),
]
"""Time zone of times, of local intervals and of Lden: see ``find_zone``; empty: UTC."""


class IntervalMeter(Protocol):
    """Measures samples: a measurement for each interval."""

    @property
    def quantities(self) -> Sequence[Quantity]:
        """The values of each row."""

    @property
    def interval_s(self) -> float:
        """Length of an interval [s]."""

    @property
    def align(self) -> str:
        """Bounds of intervals: ``start``, ``utc`` or ``local``."""

    @property
    def message_quantities(self) -> Sequence[Quantity]:
        """The values of each message."""

    def push(
        self, samples: ArrayLike, missing_samples: int | None = 0, utc_ns: int | None = None
    ) -> Sequence[Measurement]:
        """Measure the next samples; return the intervals that are complete."""

    def finish(self) -> Sequence[Measurement]:
        """Return the row of the unfinished interval."""


Cuts = Literal["gaps", "intervals", "nowhere"]
"""Where a recording can be cut so that rows do not depend on what was before: at gaps that no
interval spans, as filters start again there; at all bounds of intervals; nowhere."""

OpenMeter = Callable[[int], IntervalMeter]
"""Makes a meter from the index of its first sample."""


@dataclass(frozen=True, slots=True)
class MeasuredSignals:
    """The signals of a source, as meters see them.

    Attributes
    ----------
    source : str
        Description of the source.
    fs : float
        Sample rate [Hz].
    channels : tuple of str
        Name of each signal.
    calibrations : tuple of (ChannelCalibration or None)
        Calibration of each signal.
    is_iq : bool
        Whether each signal is a pair of channels, I and Q.
    center_frequency_hz : float
        Frequency that 0 Hz of I/Q samples stands for [Hz].
    speakers : tuple of str
        Position of each channel's loudspeaker; empty if unknown.
    has_utc : bool
        Whether the time of the samples is known.
    """

    source: str
    fs: float
    channels: tuple[str, ...]
    calibrations: tuple[ChannelCalibration | None, ...]
    is_iq: bool = False
    center_frequency_hz: float = 0.0
    speakers: tuple[str, ...] = ()
    has_utc: bool = True


@dataclass(frozen=True, slots=True)
class MeasurementFacts:
    """What files say about all measurements of a product, beside quantities and signals.

    Attributes
    ----------
    title : str
        What the values are.
    attributes : mapping of str to (str or float)
        Further attributes, such as those of the frames.
    spectra : mapping of str to str
        Unit of each kind of values of bins, which rows have in their ``tables``.
    frequencies : (n_bins,) float64
        Frequency of each bin [Hz]; empty without such values.
    bands : BandLevels, optional
        Fractional octaves and the quantities in them, of kinds that have such.
    time_zone : str
        Name of the time zone of times and of the parts of the day; empty: UTC.
    notes : tuple of str
        Statements about all values.
    has_days : bool
        Whether local days have rows beside those of shorter intervals.
    """

    title: str
    attributes: Mapping[str, str | float] = field(default_factory=dict)
    spectra: Mapping[str, str] = field(default_factory=dict)
    frequencies: Float64Array = field(default_factory=lambda: np.empty(0))
    bands: "BandLevels | None" = None
    time_zone: str = ""
    notes: tuple[str, ...] = ()
    has_days: bool = False


@dataclass(frozen=True, slots=True)
class BoundMeter:
    """What measures the signals of a source.

    Attributes
    ----------
    signals : MeasuredSignals
        Those that rows are of: the responses, of transfer functions.
    open : callable
        Makes a meter.
    facts : MeasurementFacts
    header_fields : mapping of str to object
        Fields of the messages' headers that are the same in all of them.
    columns : sequence of Quantity
        Columns of the tracks of each message; empty without tracks.
    """

    signals: MeasuredSignals
    open: OpenMeter
    facts: MeasurementFacts
    header_fields: Mapping[str, object] = field(default_factory=dict)
    columns: Sequence[Quantity] = ()


class _AbstractStructMeta(StructMeta, ABCMeta):
    """Metaclass of structs that have abstract methods."""


class MeasurementConfig(Struct, metaclass=_AbstractStructMeta, frozen=True):
    """Settings of one product of measurements; ``default.toml`` describes each key.

    Each key is a flag of the kind's command as well, which the notes of its type describe.
    """

    title: ClassVar[str]
    """What the values are, for persons."""
    depends_on_fs: ClassVar[bool] = True
    """Whether some sample rates may not fit."""
    depends_on_channels: ClassVar[bool] = False
    """Whether some numbers of channels may not fit."""
    takes_iq: ClassVar[bool] = True
    """Whether samples may be pairs of I and Q, or whether their sources have no such product."""

    name: str
    """The PRODUCT of its topics."""
    sources: tuple[str, ...] = ()
    """Which are measured; none named: all."""

    @property
    def cuts(self) -> Cuts:
        """Where a recording can be cut and measured in parts."""
        return "nowhere"

    @abstractmethod
    def check(
        self, fs: float | None = None, channels: int | None = None, *, iq: bool = False
    ) -> None:
        """Check what can be checked without the source.

        Parameters
        ----------
        fs : float or None
            Sample rate [Hz]; None if it is not known: what depends on it is not checked.
        channels : int or None
            Number of channels; None if it is not known.
        iq : bool
            Whether each two of them are I and Q.

        Raises
        ------
        ConfigError
            If a rule is broken.
        """

    @abstractmethod
    def bind(self, signals: MeasuredSignals) -> BoundMeter:
        """Bind to the signals of a source; raises ConfigError if they do not fit."""
