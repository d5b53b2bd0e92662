"""What passes between the stages: blocks of samples, the analysis that is asked for, spectra."""

from dataclasses import dataclass, field
from operator import index

import numpy as np
from numpy.typing import NDArray

from spectrod.errors import ConfigError
from spectrod.units import REFERENCES, SCALINGS, UNITS, Float32Array, Float64Array, Scaling
from spectrod.windows import Window, get_window

Int64Array = NDArray[np.int64]

NFFT_MIN, NFFT_MAX = 64, 8192
CHANNELS_MAX = 64
HOP_MAX = (1 << 31) - 1


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Consecutive samples on their way from a source to the analysis.

    Attributes
    ----------
    samples : (channels, n) float32
        n >= 1 samples in [-1, 1] [FS].
    sample_index : int
        Absolute index of the first sample since the source started; lost samples count.
    t_mono_ns, t_utc_ns : int
        Monotonic clock and UTC at the first sample [ns].
    discontinuity : bool
        True if this block does not follow directly on the one before.
    lost_samples : int
        How many samples are missing directly before this block, as far as is known.
    """

    samples: Float32Array
    sample_index: int
    t_mono_ns: int
    t_utc_ns: int
    discontinuity: bool = False
    lost_samples: int = 0

    @property
    def n_samples(self) -> int:
        """Samples in each channel."""
        return int(self.samples.shape[1])


@dataclass(frozen=True, slots=True)
class SpectrumSpec:
    """Everything that says what a spectrum means; validated when it is made.

    Attributes
    ----------
    fs : float
        Sample rate, > 0 [Hz].
    channels : int
        1 to ``CHANNELS_MAX``.
    window : str
        Name, see ``spectrod.windows``.
    win_length : int
        Samples under the window, 2 to nfft.
    hop : int
        Samples from one frame to the next, 1 to ``HOP_MAX``; may exceed win_length.
    nfft : int
        Transform length, a power of two from ``NFFT_MIN`` to ``NFFT_MAX``; 0 stands for the
        smallest allowed that holds the window. Frames are zero-padded to it.
    scaling : {"density", "spectrum", "dbfs"}
        One-sided PSD [FS^2/Hz], mean square of a sine at its bin [FS^2], or its level [dBFS].

    Raises
    ------
    ConfigError
        With the name, the value and the rule, if one is broken.
    """

    fs: float
    channels: int = 1
    window: str = "hann"
    win_length: int = 4096
    hop: int = 1024
    nfft: int = 0
    scaling: Scaling = "density"
    taper: Window = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("channels", "win_length", "hop", "nfft"):
            object.__setattr__(self, name, _whole(name, getattr(self, name)))
        object.__setattr__(self, "fs", _positive_hz(self.fs))
        if not 1 <= self.channels <= CHANNELS_MAX:
            raise ConfigError(f"channels={self.channels}: must be 1 to {CHANNELS_MAX}")
        if not 2 <= self.win_length <= NFFT_MAX:
            raise ConfigError(f"win_length={self.win_length}: must be 2 to {NFFT_MAX}")
        if self.hop < 1:
            raise ConfigError(f"hop={self.hop}: must be at least 1 sample")
        if self.hop > HOP_MAX:
            raise ConfigError(f"hop={self.hop}: must be at most {HOP_MAX} samples")
        if self.nfft == 0:
            object.__setattr__(self, "nfft", max(NFFT_MIN, _next_power_of_two(self.win_length)))
        if not NFFT_MIN <= self.nfft <= NFFT_MAX or self.nfft & (self.nfft - 1):
            raise ConfigError(f"nfft={self.nfft}: must be a power of two, {NFFT_MIN} to {NFFT_MAX}")
        if self.win_length > self.nfft:
            raise ConfigError(f"win_length={self.win_length}: must not exceed nfft={self.nfft}")
        if self.scaling not in SCALINGS:
            raise ConfigError(f"scaling={self.scaling!r}: must be one of {', '.join(SCALINGS)}")
        object.__setattr__(self, "taper", get_window(self.window, self.win_length))

    @property
    def n_bins(self) -> int:
        """Bins from 0 Hz to the Nyquist frequency, both included."""
        return self.nfft // 2 + 1

    @property
    def delta_f(self) -> float:
        """Bin width [Hz]."""
        return self.fs / self.nfft

    @property
    def frequencies(self) -> Float64Array:
        """Centre of each bin, shape (n_bins,) [Hz]."""
        return np.arange(self.n_bins, dtype=np.float64) * self.delta_f

    @property
    def enbw_hz(self) -> float:
        """Equivalent noise bandwidth of the window [Hz]."""
        return self.taper.enbw_hz(self.fs)

    @property
    def unit(self) -> str:
        """Unit of the values."""
        return UNITS[self.scaling]

    @property
    def reference(self) -> str:
        """What the unit refers to."""
        return REFERENCES[self.scaling]

    @property
    def power_scale(self) -> float:
        """Factor from ``|X|^2`` of the windowed frame to linear power, before one-sided doubling.

        1 / (fs S2) for a density, 1 / S1^2 for a spectrum (Heinzel et al. 2002, eq. 23 and 24).
        """
        if self.scaling == "density":
            return 1.0 / (self.fs * self.taper.s2)
        return 1.0 / self.taper.s1**2

    def n_frames(self, n_samples: int) -> int:
        """Whole frames in n_samples consecutive samples."""
        return max(0, (n_samples - self.win_length) // self.hop + 1)


@dataclass(frozen=True, slots=True, eq=False)
class SpectrumBatch:
    """Spectra of consecutive frames; a batch never spans a gap.

    Attributes
    ----------
    values : (frames, channels, bins) float32
        In ``spec.unit``.
    sample_index : (frames,) int64
        Absolute index of each frame's first sample.
    t_mono_ns, t_utc_ns : (frames,) int64
        Monotonic clock and UTC of each frame's first sample [ns].
    spec : SpectrumSpec
        What the values mean.
    engine : str
        What computed them, for example ``"opencl:PoCL/AMD EPYC"`` or ``"numpy"``.
    gap_samples : int
        Samples missing between the frame before and the first of these; 0 if none.
    discontinuity : bool
        True if the first frame does not follow on the one before.
    """

    values: Float32Array
    sample_index: Int64Array
    t_mono_ns: Int64Array
    t_utc_ns: Int64Array
    spec: SpectrumSpec
    engine: str
    gap_samples: int = 0
    discontinuity: bool = False

    @property
    def n_frames(self) -> int:
        """Frames in this batch."""
        return int(self.values.shape[0])


def _whole(name: str, value: object) -> int:
    """Any integer type as int: NumPy's must not reach messages, which know int alone."""
    try:
        return index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ConfigError(f"{name}={value!r}: must be a whole number") from None


def _positive_hz(fs: float) -> float:
    try:
        value = float(fs)
    except (TypeError, ValueError, OverflowError):
        value = np.nan
    if not (np.isfinite(value) and value > 0.0):
        raise ConfigError(f"fs={fs}: must be a positive number of Hz")
    return value


def _next_power_of_two(n: int) -> int:
    return 1 << (n - 1).bit_length()
