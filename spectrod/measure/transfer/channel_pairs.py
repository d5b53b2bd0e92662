"""Samples that a measurement of two channels is given."""

import numpy as np
from numpy.typing import ArrayLike

from spectrod.dsp.units import Float64Array
from spectrod.lib.errors import InputError


def as_samples(name: str, given: ArrayLike) -> Float64Array:
    """Return finite floating-point samples (n,) as float64.

    Parameters
    ----------
    name : str
        What they are, for the error.
    given : (n,) array-like
        Samples [FS].

    Raises
    ------
    InputError
        If the shape or the type is wrong, or a sample is not finite. Integers are refused: nothing
        says what their full scale is.
    """
    samples = np.asarray(given)
    if samples.ndim != 1 or samples.dtype.kind != "f":
        raise InputError(
            f"{name} of shape {samples.shape}, {samples.dtype}: must be (n,) real floating-point "
            "numbers, 1.0 at full scale"
        )
    if not np.isfinite(samples).all():
        raise InputError(f"{name}: must be finite")
    return samples.astype(np.float64, copy=False)


def as_pair(reference: ArrayLike, response: ArrayLike) -> tuple[Float64Array, Float64Array]:
    """Return the samples of both channels, of one length; see ``as_samples``."""
    x, y = as_samples("reference", reference), as_samples("response", response)
    if len(x) != len(y):
        raise InputError(f"channels of {len(x)} and {len(y)} samples: must have one length")
    return x, y
