"""Conversion of complex arrays and integer pairs to real channels, I and Q alternating."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectrod.analysis.samples import as_array
from spectrod.dsp.units import Float32Array
from spectrod.lib.errors import InputError

_UINT8_MIDDLE, _UINT8_FULL_SCALE = 127.5, 2.0**7
"""Format of RTL-SDR receivers; see ``spectrod.source.files.pcm``."""


def as_channels(x: ArrayLike, *, iq: bool, channels: int | None = None) -> Any:
    """Return I/Q samples as real channels, I and Q alternating; other samples unchanged.

    Parameters
    ----------
    x : (n,) or (signals, n) complex, or any real array-like
        Contiguous complex64 samples of one signal are not copied.
    iq : bool
        Whether they are I/Q samples.
    channels : int, optional
        Required number of real channels.

    Returns
    -------
    samples : (2 signals, n) float32 or float64, or the input
        Unsigned bytes of I and Q are converted to float32, with their middle at 127.5 [FS].

    Raises
    ------
    InputError
        If complex samples are masked, not I/Q, or have another number of signals.
    """
    if isinstance(x, (bytes, bytearray, memoryview)):
        return x
    array = as_array(x)
    if array.dtype.kind == "c":
        return _pairs(array, iq=iq, channels=channels)
    if iq and array.dtype == np.uint8:
        return _from_uint8(array)
    return array


def _pairs(array: NDArray[Any], *, iq: bool, channels: int | None) -> NDArray[Any]:
    if not iq:
        raise InputError(f"samples of dtype {array.dtype}: complex samples need iq=True")
    if array.ndim not in (1, 2) or array.size == 0:
        raise InputError(
            f"samples of shape {array.shape}: must be (n,) or (signals, n) complex numbers, n >= 1"
        )
    signals = array[np.newaxis] if array.ndim == 1 else array
    if channels is not None and 2 * len(signals) != channels:
        raise InputError(
            f"samples of shape {array.shape}: must have {channels // 2} complex signals, "
            f"channels={channels}"
        )
    if signals.dtype not in (np.complex64, np.complex128):  # longer ones, or of another byte order
        signals = signals.astype(np.complex128)
    n_signals, n = signals.shape
    real = np.float32 if signals.dtype == np.complex64 else np.float64
    parts = np.ascontiguousarray(signals).view(real).reshape(n_signals, n, 2)
    # One signal stays interleaved in place; with several, each I and each Q becomes a row.
    return parts.swapaxes(1, 2).reshape(2 * n_signals, n)


def _from_uint8(array: NDArray[np.uint8]) -> Float32Array:
    values = array.astype(np.float32)
    values -= np.float32(_UINT8_MIDDLE)
    values *= np.float32(1.0 / _UINT8_FULL_SCALE)
    return values
