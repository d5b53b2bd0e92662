"""Whatever users hold samples in, as (channels, n) float32."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectrod.errors import InputError
from spectrod.types import CHANNELS_MAX
from spectrod.units import Float32Array

# Offset and full scale of integer PCM.
_PCM: dict[str, tuple[float, float]] = {
    "uint8": (128.0, 2.0**7),
    "int8": (0.0, 2.0**7),
    "int16": (0.0, 2.0**15),
    "int32": (0.0, 2.0**31),
}


def as_samples(x: ArrayLike, channels: int | None = None) -> Float32Array:
    """Convert to samples.

    Parameters
    ----------
    x : (n,) or (channels, n) array-like
        Real floats in [-1, 1], or integer PCM: uint8, int8, int16, int32.
    channels : int, optional
        Number of channels that there must be.

    Returns
    -------
    samples : (channels, n) float32
        Integers divided by their full scale [FS]. May share memory with x.

    Raises
    ------
    InputError
        If x is empty, or its shape or dtype is none of these.
    """
    array = np.asarray(x)
    if array.ndim not in (1, 2) or array.size == 0:
        raise InputError(f"samples of shape {array.shape}: must be (n,) or (channels, n), n >= 1")
    rows = np.atleast_2d(array)
    if len(rows) > CHANNELS_MAX:
        raise InputError(
            f"samples of shape {array.shape}: (channels, n) has at most {CHANNELS_MAX} channels; "
            "transpose (n, channels)"
        )
    if channels is not None and len(rows) != channels:
        raise InputError(f"samples of shape {array.shape}: must have {channels} channels")
    return _to_float32(rows)


def _to_float32(array: NDArray[np.generic]) -> Float32Array:
    if array.dtype.kind == "f":
        with np.errstate(over="ignore"):  # what overflows is found as an infinity
            return array.astype(np.float32, copy=False)
    if array.dtype.name not in _PCM:
        raise InputError(
            f"samples of dtype {array.dtype}: must be real floats or one of {', '.join(_PCM)}"
        )
    offset, full_scale = _PCM[array.dtype.name]
    return (array.astype(np.float32) - np.float32(offset)) * np.float32(1.0 / full_scale)


def require_finite(samples: Float32Array, sample_index: int = 0) -> None:
    """Raise InputError for the first NaN or infinity among (channels, n) samples."""
    if is_finite(samples):
        return
    channel, n = np.unravel_index(np.argmin(np.isfinite(samples)), samples.shape)
    raise InputError(
        f"sample {sample_index + int(n)} of channel {channel} is {samples[channel, n]}: "
        "must be finite"
    )


def is_finite(samples: Float32Array) -> bool:
    """Say whether all samples are finite."""
    # A sum is finite only if its terms are, costs one pass and no memory; the reverse can fail for
    # huge finite terms, so a suspicion is looked into.
    with np.errstate(over="ignore", invalid="ignore"):
        total = samples.sum(dtype=np.float32)
    return bool(np.isfinite(total)) or bool(np.isfinite(samples).all())
