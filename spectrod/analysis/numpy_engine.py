"""The reference engine: NumPy in float64, for tests and for machines without OpenCL."""

from typing import Any

import numpy as np

from spectrod.errors import ConfigError
from spectrod.fft.stft_frames import check_frames
from spectrod.types import SpectrumSpec
from spectrod.units import Float32Array, Float64Array

_CHUNK_VALUES = 1 << 20  # float64 values in one step: 8 MiB of frames and as much of spectra


class NumpyPowerPlan:
    """Window, transform and square in float64, in steps of bounded memory; round once at the end.

    Implements ``spectrod.analysis.engine.PowerPlan``.
    """

    def __init__(self, spec: SpectrumSpec, max_frames: int) -> None:
        if max_frames < 1:
            raise ConfigError(f"max_frames={max_frames}: must be at least 1")
        self._spec = spec
        self._max_frames = max_frames
        self._scale = _one_sided_scale(spec)
        self._chunk_frames = max(1, _CHUNK_VALUES // (spec.nfft * spec.channels))

    def execute(self, samples: Float32Array, n_frames: int) -> Float32Array:
        """Compute the one-sided power of overlapping frames, as ``PowerPlan.execute`` says.

        Raises
        ------
        InternalError
            If the samples do not fit the plan.
        """
        spec = self._spec
        span = check_frames(spec, samples, n_frames, self._max_frames)
        windows = np.lib.stride_tricks.sliding_window_view(samples[:, :span], spec.win_length, 1)
        frames = windows[:, :: spec.hop].transpose(1, 0, 2)
        power = np.empty((n_frames, spec.channels, spec.n_bins), np.float32)
        # A frame that is not finite makes a spectrum that is not; that is no news to warn of.
        with np.errstate(invalid="ignore", over="ignore"):
            for first in range(0, n_frames, self._chunk_frames):
                chunk = slice(first, first + self._chunk_frames)
                power[chunk] = self._power(frames[chunk])
        return power

    def _power(self, frames: Any) -> Float64Array:
        """(frames, channels, win_length) float32 to (frames, channels, n_bins) float64."""
        spectra = np.fft.rfft(frames * self._spec.taper.samples, self._spec.nfft)
        power: Float64Array = (spectra.real**2 + spectra.imag**2) * self._scale
        return power


class NumpyEngine:
    """Implements ``spectrod.analysis.engine.Engine`` without any device."""

    name = "numpy"

    def plan_power(self, spec: SpectrumSpec, max_frames: int) -> NumpyPowerPlan:
        """Prepare for frames as ``spec`` says, up to max_frames in one call."""
        return NumpyPowerPlan(spec, max_frames)

    def transpose(self, matrix: Float32Array) -> Float32Array:
        """Transpose a C-contiguous (rows, columns) float32 matrix into a new one."""
        return np.array(matrix.T, order="C")

    def close(self) -> None:
        """Do nothing: there is no device."""


def _one_sided_scale(spec: SpectrumSpec) -> Float64Array:
    """Factor from squared magnitude to power for each bin: twice but at DC and Nyquist."""
    scale = np.full(spec.n_bins, 2.0 * spec.power_scale)
    scale[[0, -1]] = spec.power_scale
    return scale
