"""Signals and spectra to measure, and the limits of correct results."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.analysis.stft.stft_reference import ReferenceStft
from spectrod.analysis.stft.stft_stage import FULL_SCALE, StftSpec, StftTables
from spectrod.analysis.stft.stft_tables import kernel_spec
from spectrod.dsp.blocks import SampleFormat
from spectrod.dsp.sample_layout import SAMPLE_BYTES
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import level_to_power
from spectrod.fft.reference import relative_l2
from spectrod.lib.errors import ConfigError, InternalError

FS = 48_000.0
"""Sample rate of all measurements [Hz]."""

FORMATS: dict[SampleFormat, np.dtype[Any]] = {
    "float32": np.dtype(np.float32),
    "int16": np.dtype(np.int16),
    "int32": np.dtype(np.int32),
}
"""Formats that an array of samples can have."""

PEER_LIMIT = 1e-5
"""Largest relative L2 error of a peer in float32 [1]; a wrong result exceeds it by far."""

_LIMIT, _LIMIT_DB = 3e-7, 0.001
_CHECKED_VALUES = 1 << 16
_RMS = 0.025


def product_settings(product: str) -> dict[str, Any]:
    """Return the settings of a ``SpectrumSpec`` for a product.

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
        If the spectrum is invalid.
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
        Spec of the spectra.
    product : str
        Product, as in ``product_settings``.
    sample_format : {"float32", "int16", "int32"}
        Format of the samples.
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
        """Create the signal.

        Parameters
        ----------
        spec, product, sample_format
            See the attributes.
        n_samples : int
            Samples of all channels together.

        Raises
        ------
        ConfigError
            If the samples are fewer than a frame.
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
        """Shape of the result: frames, channels, values."""
        return self.n_frames, self.spec.channels, self.spec.n_values

    @property
    def out_bytes(self) -> int:
        """Bytes of the result."""
        return 4 * int(np.prod(self.shape))

    @property
    def full_scale(self) -> float:
        """Value of 1 FS in the format."""
        return FULL_SCALE[self.sample_format]

    @property
    def is_db(self) -> bool:
        """True if the result is in decibels."""
        return self.spec.scaling == "dbfs"

    @cached_property
    def kernel_spec(self) -> tuple[StftSpec, StftTables]:
        """Spec and tables of a stage."""
        return kernel_spec(self.spec, self.sample_format)

    @property
    def limit(self) -> float:
        """Largest error of a correct result [1]."""
        return 10.0 ** (_LIMIT_DB / 10.0) - 1.0 if self.is_db else _LIMIT

    def error(self, result: NDArray[Any]) -> float:
        """Relative L2 error of the power of the first and last frames; NaN for a wrong shape.

        Parameters
        ----------
        result : (frames, channels, values) array
            Result for the whole signal.
        """
        if result.shape != self.shape:
            return np.nan
        count = min(self.n_frames, max(1, _CHECKED_VALUES // self.spec.nfft))
        parts = ((0, result[:count]), (self.n_frames - count, result[-count:]))
        # Python's max would drop a NaN.
        return float(np.max([self._error(first, rows) for first, rows in parts]))

    def _error(self, first: int, rows: NDArray[Any]) -> float:
        reference = ReferenceStft(*self.kernel_spec)
        expected = reference.rows(self.samples, first * self.spec.hop, self.spec.hop, len(rows))
        return relative_l2(self._power(rows), self._power(expected))

    def _power(self, rows: NDArray[Any]) -> NDArray[Any]:
        power: NDArray[Any] = rows.astype(np.float64)
        return level_to_power(power) if self.is_db else power


def require_right(name: str, spectra: Spectra, error: float) -> None:
    """Check that spectrod's result is right before it is timed.

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
