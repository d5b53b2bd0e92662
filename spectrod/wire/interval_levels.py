"""Levels of an interval, from its frames."""

from dataclasses import dataclass

import numpy as np

from spectrod.dsp.level_reference import squared, stated_reference
from spectrod.dsp.units import (
    FLOOR_DBFS,
    FULL_SCALE_SINE_FS2,
    Float64Array,
    level_to_power,
    power_to_level,
)
from spectrod.wire.headers import BandsHeader, SpectrumHeader
from spectrod.wire.schema import BandFrame, Frame

_DENSITY = "/Hz"
_METER_BYTES = 2000  # the object, and the header of the last frame


@dataclass(frozen=True, slots=True, eq=False)
class TopicLevels:
    """Levels and counters of one topic in an interval.

    Attributes
    ----------
    header : SpectrumHeader or BandsHeader
        Header of the last frame.
    unit : str
        Unit of the levels: that of the values if they are levels, else ``dBFS`` for FS^2, that of
        the reference of a calibration, as ``dB SPL``, or ``dB re UNIT``.
    mean, highest : (n,) float64
        Level of the mean power (Leq), and of the highest power of a single frame: one value for a
        spectrum, one per band for bands [unit].
    frames, missed, gap_samples, restarts : int
        Received frames; lost messages of the topic; samples missing between frames; restarts of the
        daemon.
    """

    header: SpectrumHeader | BandsHeader
    unit: str
    mean: Float64Array
    highest: Float64Array
    frames: int
    missed: int
    gap_samples: int
    restarts: int


class Meter:
    """Accumulates the frames of one topic in two rows. Used by one thread.

    Parameters
    ----------
    first : Frame or BandFrame
        First frame of the interval; counted.
    """

    def __init__(self, first: Frame | BandFrame) -> None:
        power, share = _power(first), _share(first)
        self._sum, self._highest = power * share, power
        self._shares = share
        self._last = first
        self._frames = 1
        self._missed = first.missed
        self._gap_samples = first.header.gap_samples
        self._restarts = int(first.restarted)

    @property
    def size_bytes(self) -> int:
        """Memory of the rows and the last frame [bytes]."""
        return 2 * self._sum.nbytes + self._last.values.nbytes + _METER_BYTES

    def fits(self, frame: Frame | BandFrame) -> bool:
        """Return whether a frame measures the same as those before it and may be added."""
        return _meaning(frame) == _meaning(self._last)

    def add(self, frame: Frame | BandFrame) -> None:
        """Add a frame; it must fit."""
        power, share = _power(frame), _share(frame)
        self._sum = self._sum + power * share
        self._shares += share
        self._highest = np.maximum(self._highest, power)
        self._last = frame
        self._frames += 1
        self._missed += frame.missed
        self._gap_samples += frame.header.gap_samples
        self._restarts += frame.restarted

    def levels(self) -> TopicLevels:
        """Return the levels so far."""
        name, zero = _zero_db(self._last)
        return TopicLevels(
            self._last.header,
            name,
            power_to_level(self._sum / self._shares, zero, FLOOR_DBFS),
            power_to_level(self._highest, zero, FLOOR_DBFS),
            self._frames,
            self._missed,
            self._gap_samples,
            self._restarts,
        )


def _meaning(frame: Frame | BandFrame) -> tuple[object, ...]:
    h = frame.header
    time_s = (h.fs, h.nfft, h.hop)  # frames of different durations have no common mean
    return h.unit, time_s, h.enbw_hz, h.weighting, h.averaging, len(frame.values)


def _share(frame: Frame | BandFrame) -> float:
    """Return the share of a whole row's frames that a row has: less than 1 if it was cut."""
    h = frame.header
    return h.cut_frames / h.averaging_frames if h.cut_frames else 1.0


def _power_unit(frame: Frame | BandFrame) -> str:
    """Return the unit of ``_power``; for levels, the unit of the level."""
    unit = frame.header.unit
    return unit.removesuffix(_DENSITY) if isinstance(frame, Frame) else unit


def _power(frame: Frame | BandFrame) -> Float64Array:
    """Return the power of each band, or of all bins of a spectrum together, shape (n,).

    Notes
    -----
    A window spreads a component's power over as many bins as its noise bandwidth has, so their sum
    is divided by that; a density is multiplied by the bin width instead. Both give the mean square,
    whatever the window and the length: Parseval's theorem.

    References
    ----------
    .. [1] G. Heinzel et al., "Spectrum and spectral density estimation by the DFT", 2002, sec. 9.
    """
    h, values = frame.header, frame.values.astype(np.float64)
    if h.unit.startswith("dB"):
        values = level_to_power(values)
    if isinstance(frame, BandFrame):
        return values
    bin_hz = h.fs / h.nfft
    per_bin = bin_hz if h.unit.endswith(_DENSITY) else bin_hz / h.enbw_hz
    return np.atleast_1d(values.sum() * per_bin)


def _zero_db(frame: Frame | BandFrame) -> tuple[str, float]:
    """Return the unit of the levels of ``_power``, and the power of their 0 dB.

    Calibrated ones are re the reference of the calibration, as levels of files are.
    """
    unit = _power_unit(frame)
    if unit == "FS^2":
        return "dBFS", FULL_SCALE_SINE_FS2
    if unit.startswith("dB"):
        return unit, 1.0
    reference = stated_reference(frame.header.ref)
    if reference is None or squared(reference.unit) != unit.removesuffix(_DENSITY):
        return f"dB re {unit}", 1.0
    is_density = unit.endswith(_DENSITY)
    name = reference.density_level_unit if is_density else reference.level_unit
    return name, reference.value**2
