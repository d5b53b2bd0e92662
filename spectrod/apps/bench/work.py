"""A batch of transforms to measure: its values and its number of operations."""

from dataclasses import dataclass
from math import log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.fft import reference
from spectrod.fft.stage import TransformSpec
from spectrod.lib.errors import InternalError

_CHECKED_LINES = 8
_CHECKED_VALUES = 1 << 14


@dataclass(frozen=True, slots=True)
class Work:
    """A batch of equal transforms.

    Attributes
    ----------
    spec : TransformSpec
        Spec of every line.
    lines : (batch, n_in) array
        Values to transform, on the host.
    """

    spec: TransformSpec
    lines: NDArray[Any]

    @property
    def batch(self) -> int:
        """Number of transforms."""
        return len(self.lines)

    @property
    def flops(self) -> float:
        """Operations by the usual count: 5 n log2(n) per complex transform, half for a real one."""
        halves = 1 if self.spec.kind == "c2c" else 0.5
        return 5.0 * self.spec.n * log2(max(self.spec.n, 2)) * halves * self.batch

    @property
    def n_bytes(self) -> int:
        """Bytes of one read of the input and one write of the output."""
        spec = self.spec
        line = spec.n_in * spec.in_value_bytes + spec.n_out * spec.out_value_bytes
        return self.batch * line

    def strict(self) -> "Work":
        """Return work whose half spectra are those of real values; some libraries require that."""
        if self.spec.kind != "c2r":
            return self
        lines = self.lines.copy()
        lines[:, 0].imag = 0
        if self.spec.n % 2 == 0:
            lines[:, -1].imag = 0
        return Work(self.spec, lines)

    def error(self, result: NDArray[Any]) -> float:
        """Relative L2 error of the first and last lines; NaN for a wrong shape.

        Parameters
        ----------
        result : (batch, n_out) array
            Computed result, without scaling.
        """
        if result.shape != (self.batch, self.spec.n_out):
            return np.nan
        count = min(self.batch, max(_CHECKED_LINES, _CHECKED_VALUES // self.spec.n))
        ends = (slice(count), slice(-count, None))
        # Python's max would drop a NaN.
        return float(np.max([self._error(result, end) for end in ends]))

    def _error(self, result: NDArray[Any], part: slice) -> float:
        expected = reference.transform(self.spec, self.lines[part])
        return reference.relative_l2(result[part], expected)


def require_right(name: str, spec: TransformSpec, error: float, limit: float) -> None:
    """Check that a result is right before it is timed.

    Raises
    ------
    InternalError
        If the error is above the limit, or NaN.
    """
    if not error <= limit:
        raise InternalError(
            f"{name}, n={spec.n} {spec.kind} {spec.precision}: relative L2 error {error:.1e}: "
            f"must be at most {limit:.1e}"
        )
