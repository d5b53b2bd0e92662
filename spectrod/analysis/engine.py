"""The interface that every engine implements, and the choice among them."""

from typing import Protocol

from spectrod.types import SpectrumSpec
from spectrod.units import Float32Array


class PowerPlan(Protocol):
    """Window, transform and square frames of one shape; made once, executed often, one thread."""

    def execute(self, samples: Float32Array, n_frames: int) -> Float32Array:
        """Compute the one-sided power of overlapping frames.

        Parameters
        ----------
        samples : (channels, n) float32
            C-contiguous, n >= (n_frames - 1) * hop + win_length; frame p starts at p * hop [FS].
        n_frames : int
            1 to the plan's max_frames.

        Returns
        -------
        power : (n_frames, channels, n_bins) float32
            ``spec.power_scale * |X|^2``, doubled but at DC and Nyquist; linear also where
            spec.scaling is "dbfs". A new array.
        """


class Engine(Protocol):
    """What computes: an OpenCL device or NumPy in float64."""

    name: str
    """``"numpy"``, or ``"opencl:PLATFORM/DEVICE"``; it goes into every message."""

    def plan_power(self, spec: SpectrumSpec, max_frames: int) -> PowerPlan:
        """Prepare for frames as ``spec`` says, up to max_frames in one call."""

    def transpose(self, matrix: Float32Array) -> Float32Array:
        """Transpose a C-contiguous (rows, columns) float32 matrix into a new one."""

    def close(self) -> None:
        """Release the device."""
