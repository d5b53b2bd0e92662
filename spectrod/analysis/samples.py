"""Conversion of users' arrays and bytes to (channels, n) samples of one format."""

import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectrod.analysis.parallel import in_parts
from spectrod.dsp.blocks import SampleFormat
from spectrod.dsp.sample_layout import SampleLayout
from spectrod.dsp.spectrum_rules import CHANNELS_MAX
from spectrod.dsp.units import Float32Array
from spectrod.lib.errors import ConfigError, InputError

# Offset and full scale of integer PCM.
_PCM: dict[str, tuple[float, float]] = {
    "uint8": (128.0, 2.0**7),
    "int8": (0.0, 2.0**7),
    "int16": (0.0, 2.0**15),
    "int32": (0.0, 2.0**31),
}
_NATIVE: dict[str, SampleFormat] = {"int16": "int16", "int32": "int32"}


def native_format(x: NDArray[Any]) -> SampleFormat:
    """Return the sample format in which engines read an array: its own, or else float32."""
    if x.dtype.kind == "f":  # a dtype's name takes 3 us
        return "float32"
    return _NATIVE.get(x.dtype.name, "float32")


def memory_of(samples: NDArray[Any]) -> tuple[NDArray[np.uint8], SampleLayout] | None:
    """Return the memory and layout of contiguous (channels, n) samples; None for others."""
    layout = SampleLayout(native_format(samples), len(samples), not samples.flags.c_contiguous)
    ordered = samples.T if layout.interleaved else samples
    if samples.dtype != layout.dtype or not ordered.flags.c_contiguous:
        return None
    return ordered.reshape(-1).view(np.uint8), layout


def as_samples(
    x: ArrayLike | bytes | bytearray | memoryview,
    channels: int | None = None,
    sample_format: SampleFormat = "float32",
) -> NDArray[Any]:
    """Convert to samples.

    Parameters
    ----------
    x : (n,) or (channels, n) array-like, or bytes
        Real floats in [-1, 1], or integer PCM: uint8, int8, int16, int32. For a format other than
        float32, only integers of that format; int24 as (n, 3) or (channels, n, 3) uint8. Bytes are
        interleaved samples of the format, and so is a memoryview of one dimension.
    channels : int, optional
        Required number of channels; for bytes, their number of channels, 1 if not given.
    sample_format : {"float32", "int16", "int24", "int32"}
        Format of the result.

    Returns
    -------
    samples : (channels, n) float32, int16 or int32, or (channels, n, 3) uint8
        Integers unchanged, or for float32 divided by their full scale [FS]. May share memory with
        x.

    Raises
    ------
    InputError
        If x is empty or masked, or has another shape or dtype.
    """
    if isinstance(x, (bytes, bytearray)) or (isinstance(x, memoryview) and x.ndim == 1):
        return _from_bytes(x, SampleLayout(sample_format, channels or 1, interleaved=True))
    rows = as_rows(x, channels, (3,) if sample_format == "int24" else ())
    return _to_float32(rows) if sample_format == "float32" else _as_is(rows, sample_format)


def as_rows(x: ArrayLike, channels: int | None = None, ends: tuple[int, ...] = ()) -> NDArray[Any]:
    """Check the shape of (n,) or (channels, n) samples; return (channels, n), of any dtype.

    Parameters
    ----------
    x : (n,) or (channels, n) array-like
        Samples.
    channels : int, optional
        Required number of channels.
    ends : tuple of int
        Shape of a sample.

    Raises
    ------
    InputError
        If x has another shape, or is empty or masked.
    """
    array = as_array(x)
    if (
        array.ndim - len(ends) not in (1, 2)
        or array.size == 0
        or array.shape[array.ndim - len(ends) :] != ends
    ):
        shapes = "(n, 3) or (channels, n, 3)" if ends else "(n,) or (channels, n)"
        raise InputError(f"samples of shape {array.shape}: must be {shapes}, n >= 1")
    rows = array if array.ndim - len(ends) == 2 else array[np.newaxis]
    if len(rows) > CHANNELS_MAX:
        raise InputError(
            f"samples of shape {array.shape}: (channels, n) has at most {CHANNELS_MAX} channels; "
            "transpose (n, channels), or give axis=0"
        )
    if channels is not None and len(rows) != channels:
        hint = ""
        if array.shape[-1 - len(ends)] == channels:
            hint = "; transpose (n, channels), or give axis=0"
        raise InputError(f"samples of shape {array.shape}: must have {channels} channels{hint}")
    return rows


def along_time(x: ArrayLike, axis: int, n_ends: int = 0) -> NDArray[Any]:
    """Return samples with time as the second axis if they have two.

    Parameters
    ----------
    x : (n,), (channels, n) or (n, channels) array-like
        Samples.
    axis : int
        Axis of time: 1 or -1 of (channels, n), 0 or -2 of (n, channels). Ignored for an array with
        one axis.
    n_ends : int
        Number of trailing axes of a sample, which do not count.

    Returns
    -------
    array : (n,) or (channels, n)
        A view if x is an array.

    Raises
    ------
    ConfigError
        If axis is none of these values.
    InputError
        If x is masked, or its channels differ in length.
    """
    check_axis(axis)
    array = as_array(x)
    is_swapped = array.ndim - n_ends > 1 and axis in (0, -2)
    return array.swapaxes(0, 1) if is_swapped else array


def check_axis(axis: int) -> None:
    """Raise ConfigError if an axis is none of those of ``along_time``."""
    if axis not in (0, 1, -1, -2):
        rule = "must be 0 or -2 of (n, channels), 1 or -1 of (channels, n)"
        raise ConfigError(f"axis={axis!r}: {rule}")


def of_full_scale(x: ArrayLike, full_scale: float | None) -> NDArray[Any]:
    """Divide samples by the number that represents digital full scale.

    Parameters
    ----------
    x : array-like
        Integers of any kind, floats or complex numbers.
    full_scale : float or None
        Number that becomes 1.0, > 0. None returns x itself.

    Returns
    -------
    array : float32 or complex
        Real samples divided in float64 and rounded once [FS]. Nothing is subtracted, not even from
        unsigned integers.

    Raises
    ------
    ConfigError
        If full_scale is not a positive number.
    InputError
        If x has elements of another kind, is masked, or its channels differ in length.
    """
    array = as_array(x)
    if full_scale is None:
        return array
    divisor = checked_full_scale(full_scale)
    if array.dtype.kind not in "iufc":
        raise InputError(f"samples of dtype {array.dtype}: must be integers, floats or complex")
    with np.errstate(over="ignore"):  # overflow becomes infinity, which is found later
        if array.dtype.kind == "c":
            return array / divisor
        divided = np.empty_like(array, np.float32)
        np.divide(array, divisor, out=divided, dtype=np.float64, casting="unsafe")
    return divided


def checked_full_scale(full_scale: float) -> float:
    """Return a full scale as a float; raises ConfigError if it is not a positive number."""
    kinds = (int, float, np.integer, np.floating)
    is_number = isinstance(full_scale, kinds) and not isinstance(full_scale, bool)
    if not (is_number and 0.0 < full_scale < np.inf):
        raise ConfigError(f"full_scale={full_scale!r}: must be a positive number")
    return float(full_scale)


def as_array(x: ArrayLike) -> NDArray[Any]:
    """Make an array of samples; raises InputError for a file's name, masks and unequal channels.

    Shape and dtype are not checked.
    """
    if isinstance(x, str | os.PathLike):
        raise InputError(
            f"samples: must be an array, not the name {str(x)[:80]!r}; soundfile.read(NAME) "
            "returns those of a file, several channels for axis=0, and its sample rate"
        )
    if isinstance(x, np.ma.MaskedArray) and np.any(x.mask):  # the mask would be lost
        raise InputError(f"{np.sum(x.mask)} samples are masked: there must be none")
    try:
        return np.asarray(x)
    except ValueError as error:
        raise InputError(
            "samples: must be (n,) or (channels, n) numbers, the same n for all channels"
        ) from error


def _from_bytes(data: bytes | bytearray | memoryview, layout: SampleLayout) -> NDArray[Any]:
    values = np.ascontiguousarray(memoryview(data))
    if values.dtype.itemsize > 1:
        values = _as_is(values, layout.sample_format)
    memory = values.view(np.uint8)
    n, rest = divmod(len(memory), layout.step_bytes)
    if n == 0 or rest:
        raise InputError(
            f"{len(memory)} bytes: must be a whole number, 1 or more, of {layout.step_bytes}-byte "
            f"samples ({layout.channels} channels, {layout.sample_format})"
        )
    return layout.arranged(memory, n)


def _as_is(array: NDArray[Any], sample_format: SampleFormat) -> NDArray[Any]:
    dtype = SampleLayout(sample_format).dtype
    if array.dtype.newbyteorder("<") != dtype:
        raise InputError(
            f"samples of dtype {array.dtype}: must be {dtype.name} for sample_format "
            f"{sample_format!r}"
        )
    return array.astype(dtype, copy=False)


def _to_float32(array: NDArray[Any]) -> Float32Array:
    if array.dtype == np.float32:
        return array
    if array.dtype.kind == "f":
        with np.errstate(over="ignore"):  # overflow becomes infinity, which is found later
            return array.astype(np.float32, copy=False)
    if array.dtype.name not in _PCM:
        other = "; for other integers give full_scale, the number that stands for 1.0"
        raise InputError(
            f"samples of dtype {array.dtype}: must be real floats or one of {', '.join(_PCM)}"
            + (other if array.dtype.kind in "iu" else "")
        )
    offset, full_scale = _PCM[array.dtype.name]
    return (array.astype(np.float32) - np.float32(offset)) * np.float32(1.0 / full_scale)


def to_float32(samples: NDArray[Any], sample_format: SampleFormat) -> Float32Array:
    """Convert (channels, n) samples of a format, int24 as (channels, n, 3) uint8, to float32 [FS].

    Float32 samples are returned unchanged.
    """
    if sample_format == "int24":
        # The upper three bytes of 32 bits: same sign, same share of full scale.
        wide = np.zeros((*samples.shape[:2], 4), np.uint8)
        wide[:, :, 1:] = samples
        samples = wide.view("<i4")[:, :, 0]
    return _to_float32(samples)


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
    """Return whether all samples are finite."""

    def is_finite_part(part: slice) -> bool:
        # A sum is finite only if its terms are, and costs one pass and no memory. Huge finite terms
        # can overflow too, so an infinite sum is checked element by element.
        with np.errstate(over="ignore", invalid="ignore"):
            total = samples[:, part].sum(dtype=np.float32)
        return bool(np.isfinite(total)) or bool(np.isfinite(samples[:, part]).all())

    return all(in_parts(is_finite_part, samples.shape[1], samples.nbytes))
