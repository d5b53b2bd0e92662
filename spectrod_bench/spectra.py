"""What is measured of spectra: a signal, what is to become of it, and what is right."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.errors import ConfigError, InternalError
from spectrod.fft.reference import relative_l2
from spectrod.sample_layout import SAMPLE_BYTES
from spectrod.stft.reference import ReferenceStft
from spectrod.stft.stage import FULL_SCALE, StftSpec, StftTables
from spectrod.stft.tables import kernel_spec
from spectrod.types import SampleFormat, SpectrumSpec
from spectrod.units import level_to_power

FS = 48_000.0
"""Sample rate of all that is measured [Hz]."""

FORMATS: dict[SampleFormat, np.dtype[Any]] = {
    "float32": np.dtype(np.float32),
    "int16": np.dtype(np.int16),
    "int32": np.dtype(np.int32),
}
"""Those that an array of samples can have."""

PEER_LIMIT = 1e-5
"""Largest relative L2 error of a peer in float32 [1]; a wrong result is off by far more."""

_LIMIT, _LIMIT_DB = 3e-7, 0.001
_CHECKED_VALUES = 1 << 16
_RMS = 0.025


def product_settings(product: str) -> dict[str, Any]:
    """Find the settings of a ``SpectrumSpec`` that make a product.

    Parameters
    ----------
    product : str
        ``"power"``, ``"db"``, or the name of bands: ``"third-octave"``, ``"mel:64"``, ...
    """
    known: dict[str, dict[str, Any]] = {"power": {}, "db": {"scaling": "dbfs"}}
    return known.get(product, {"bands": product})


def make_spec(n: int, hop: int, channels: int, product: str) -> SpectrumSpec:
    """Describe frames of n samples under a Hann window, without padding.

    Raises
    ------
    ConfigError
        If there is no such spectrum.
    """
    return SpectrumSpec(
        FS, channels, "hann", win_length=n, hop=hop, nfft=n, **product_settings(product)
    )


@dataclass(frozen=True, eq=False)
class Spectra:
    """A signal and the spectra of its frames.

    Attributes
    ----------
    spec : SpectrumSpec
        Of the spectra.
    product : str
        As ``product_settings`` takes it.
    sample_format : {"float32", "int16", "int32"}
        Of the samples.
    samples : (channels, n) array
        Noise of 0.025 FS, seeded; C-contiguous.
    """

    spec: SpectrumSpec
    product: str
    sample_format: SampleFormat
    samples: NDArray[Any]

    @classmethod
    def of_noise(
        cls, spec: SpectrumSpec, product: str, sample_format: SampleFormat, n_samples: int
    ) -> "Spectra":
        """Make the signal.

        Parameters
        ----------
        spec, product, sample_format
            See the attributes.
        n_samples : int
            Of all channels together.

        Raises
        ------
        ConfigError
            If that is less than a frame.
        """
        n = n_samples // spec.channels
        if n < spec.win_length:
            raise ConfigError(
                f"samples={n_samples}: must be at least {spec.channels * spec.win_length}, "
                f"a frame of {spec.channels} channels"
            )
        return cls(spec, product, sample_format, _noise((spec.channels, n), sample_format))

    @property
    def n_frames(self) -> int:
        """Frames of the signal."""
        return self.spec.n_frames(self.samples.shape[1])

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of the result: frames, channels, values."""
        return self.n_frames, self.spec.channels, self.spec.n_values

    @property
    def out_bytes(self) -> int:
        """Bytes of the result."""
        return 4 * int(np.prod(self.shape))

    @property
    def full_scale(self) -> float:
        """What a sample of 1 FS is in the format."""
        return FULL_SCALE[self.sample_format]

    @property
    def is_db(self) -> bool:
        """Whether the result is in decibels."""
        return self.spec.scaling == "dbfs"

    @cached_property
    def kernel_spec(self) -> tuple[StftSpec, StftTables]:
        """What a stage computes, and with which numbers."""
        return kernel_spec(self.spec, self.sample_format)

    @property
    def limit(self) -> float:
        """Largest error that a right result may have [1]."""
        return 10.0 ** (_LIMIT_DB / 10.0) - 1.0 if self.is_db else _LIMIT

    def error(self, result: NDArray[Any]) -> float:
        """Relative L2 error of the power of the first and of the last frames; NaN if wrong in kind.

        Parameters
        ----------
        result : (frames, channels, values) array
            Of the whole signal.
        """
        if result.shape != self.shape:
            return np.nan
        count = min(self.n_frames, max(1, _CHECKED_VALUES // self.spec.nfft))
        parts = ((0, result[:count]), (self.n_frames - count, result[-count:]))
        # Python's max would lose a NaN.
        return float(np.max([self._error(first, rows) for first, rows in parts]))

    def _error(self, first: int, rows: NDArray[Any]) -> float:
        reference = ReferenceStft(*self.kernel_spec)
        expected = reference.rows(self.samples, first * self.spec.hop, self.spec.hop, len(rows))
        return relative_l2(self._power(rows), self._power(expected))

    def _power(self, rows: NDArray[Any]) -> NDArray[Any]:
        power: NDArray[Any] = rows.astype(np.float64)
        return level_to_power(power) if self.is_db else power


def require_right(name: str, spectra: Spectra, error: float) -> None:
    """Let no wrong result of ours be timed.

    Raises
    ------
    InternalError
        If the error is above the limit, or NaN.
    """
    if not error <= spectra.limit:
        raise InternalError(
            f"{name}, n={spectra.spec.nfft} hop={spectra.spec.hop} {spectra.product}: relative L2 "
            f"error {error:.1e}: must be at most {spectra.limit:.1e}"
        )


def _noise(shape: tuple[int, int], sample_format: SampleFormat) -> NDArray[Any]:
    samples = np.random.default_rng(0).standard_normal(shape, np.float32)
    samples *= _RMS
    dtype = FORMATS[sample_format]
    if dtype.kind == "f":
        return samples
    limit = 2.0 ** (8 * SAMPLE_BYTES[sample_format] - 1) - 1
    return np.rint(samples.astype(np.float64) * limit).astype(dtype)
