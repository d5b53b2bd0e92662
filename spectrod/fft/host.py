"""Transforms that NumPy computes on the host, and the rule for when a device takes over.

The rule counts values and reads no clock and no cache, so equal calls give equal bits.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.fft.argument_checks import real_type
from spectrod.fft.stage import TransformSpec
from spectrod.opencl.context import Context

SMALL_VALUES = 1 << 12
"""Values of a call for which launching on a device takes longer than NumPy's transform."""
PAYING_VALUES = 1 << 26
"""Values after which a device has saved about the time that its kernels take to compile."""
_SHAPES_MAX = 1 << 12


class HostShare:
    """Decides which calls the host computes, by their sizes and those of earlier calls alone.

    Small calls stay on the host for good. Others of a shape stay there until the values of all of
    them, the present call included, are ``paying`` at least. Any number of threads.

    Parameters
    ----------
    small, paying : int
        Values of a call that counts as small; values after which a device pays.
    shapes_max : int
        Shapes that are remembered; those used least recently count from 0 again.
    """

    def __init__(
        self,
        small: int = SMALL_VALUES,
        paying: int = PAYING_VALUES,
        shapes_max: int = _SHAPES_MAX,
    ) -> None:
        self._small, self._paying, self._shapes_max = small, paying, shapes_max
        self._values: OrderedDict[Hashable, int] = OrderedDict()
        self._lock = Lock()

    def takes(self, shape: Hashable, n_values: int) -> bool:
        """Count a call of n_values values, and return whether the host computes it."""
        if n_values <= self._small:
            return True
        with self._lock:
            total = self._values.pop(shape, 0) + n_values
            self._values[shape] = total
            if len(self._values) > self._shapes_max:
                self._values.popitem(last=False)
        return total < self._paying


class HostTransform:
    """NumPy's transform of lines, with the interface of ``LineTransform`` for arrays of the host.

    NumPy before 2.0 computes single precision in double.

    Parameters
    ----------
    context : Context
        The device that larger calls go to.
    spec : TransformSpec
        What to compute.
    """

    def __init__(self, context: Context, spec: TransformSpec) -> None:
        self.context = context
        self.spec = spec

    def run(self, out: NDArray[Any], source: NDArray[Any], scale: float) -> None:
        """Transform from one array to another, or to itself.

        Parameters
        ----------
        out, source : (outer, n_out or n_in, inner)
            C-contiguous, of the precision's types.
        scale : float
            Factor of the result.
        """
        out[...] = _unscaled(self.spec)(source, self.spec.n, axis=1)
        if scale != 1.0:
            # As reals: a complex product makes a NaN of an infinite part's other part.
            reals = out.view(real_type(self.spec.precision))
            reals *= scale

    def run_in_place(self, rows: NDArray[Any], inner: int, scale: float) -> None:
        """Overwrite lines of a complex transform.

        Parameters
        ----------
        rows : (outer, n * inner) array
            C-contiguous.
        inner : int
            Lines a row.
        scale : float
            Factor of the result.
        """
        lines = rows.reshape(len(rows), self.spec.n, inner)
        self.run(lines, lines, scale)


def _unscaled(spec: TransformSpec) -> Callable[..., NDArray[Any]]:
    """Return NumPy's function for a spec, of which inverse transforms are not divided by n."""
    if spec.kind == "r2c":
        return np.fft.rfft
    if spec.kind == "c2r":
        return lambda a, n, axis: np.fft.irfft(a, n, axis, norm="forward")
    if spec.inverse:
        return lambda a, n, axis: np.fft.ifft(a, n, axis, norm="forward")
    return np.fft.fft
