"""How stored numbers stand for samples."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectrod.config.config import PcmFormat
from spectrod.dsp.blocks import SampleFormat
from spectrod.dsp.units import Float32Array


class Coding(NamedTuple):
    """Conversion of stored numbers to samples, ``(number - offset) / full_scale`` [FS].

    Attributes
    ----------
    dtype : str
        Type of a number in memory. NumPy lacks "s24" and "s24be", three bytes, little-endian and
        big-endian, and "ulaw" and "alaw", a byte each.
    offset : float
        Number that represents 0.
    full_scale : float
        Difference between the numbers of 1.0 and 0.
    """

    dtype: str
    offset: float = 0.0
    full_scale: float = 1.0

    @property
    def n_bytes(self) -> int:
        """Bytes of a number."""
        return _BYTES_OF[self.dtype] if self.dtype in _BYTES_OF else np.dtype(self.dtype).itemsize


_BYTES_OF = {"s24": 3, "s24be": 3, "ulaw": 1, "alaw": 1}

U8_IQ_MIDDLE = 127.5
"""Middle of the codes 0 to 255: 0 V of RTL-SDR receivers. WAV files use 128."""

CODINGS: dict[PcmFormat, Coding] = {
    "u8": Coding("u1", 2.0**7, 2.0**7),
    "s8": Coding("i1", 0.0, 2.0**7),
    "s16le": Coding("<i2", 0.0, 2.0**15),
    "s24le": Coding("s24", 0.0, 2.0**31),
    "s32le": Coding("<i4", 0.0, 2.0**31),
    "f32le": Coding("<f4"),
    "f64le": Coding("<f8"),
    "cu8": Coding("u1", U8_IQ_MIDDLE, 2.0**7),
    "cs8": Coding("i1", 0.0, 2.0**7),
    "cs16": Coding("<i2", 0.0, 2.0**15),
    "cs32": Coding("<i4", 0.0, 2.0**31),
    "cf32": Coding("<f4"),
    "cf64": Coding("<f8"),
}
NATIVE_FORMATS: dict[PcmFormat, SampleFormat] = {
    "s16le": "int16",
    "s24le": "int24",
    "s32le": "int32",
    "f32le": "float32",
}
"""Formats that kernels read without conversion."""


def decode(data: bytes, coding: Coding) -> Float32Array:
    """Convert numbers to float32.

    Parameters
    ----------
    data : bytes
        Complete numbers.
    coding : Coding
        Their coding.

    Returns
    -------
    samples : (n,) float32
        Integers minus the offset, divided by full scale, so in [-1, 1]; floats unchanged [FS].
    """
    read = _NUMBERS.get(coding.dtype)
    numbers: NDArray[Any] = read(data) if read else np.frombuffer(data, coding.dtype)
    if numbers.dtype.kind == "f":
        with np.errstate(over="ignore"):  # callers find an overflow as an infinity
            return numbers.astype(np.float32)
    # float32 has too few digits for an offset of 2^31.
    is_wide = coding.offset >= 2.0**24
    values: NDArray[np.floating] = numbers.astype(np.float64 if is_wide else np.float32)
    if coding.offset:
        values -= coding.offset
    values *= 1.0 / coding.full_scale
    return values.astype(np.float32, copy=False)


def _widen_s24(data: bytes) -> NDArray[np.int32]:
    """Widen three bytes to the upper ones of an int32: same sign, same fraction of full scale."""
    wide = np.zeros((len(data) // 3, 4), np.uint8)
    wide[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
    return wide.view("<i4")[:, 0]


def _widen_s24be(data: bytes) -> NDArray[np.int32]:
    """Widen three big-endian bytes as ``_widen_s24`` does."""
    return _widen_s24(np.frombuffer(data, np.uint8).reshape(-1, 3)[:, ::-1].tobytes())


def _expand_ulaw(data: bytes) -> NDArray[np.int16]:
    """Expand mu-law bytes to 16 bits, of which the lowest two are 0.

    References
    ----------
    .. [1] ITU-T G.711 (1988), table 2: 14 bits, segments of 16 steps from 33 on.
    """
    code = ~np.frombuffer(data, np.uint8)
    exponent, mantissa = (code >> 4 & 7).astype(np.int32), (code & 15).astype(np.int32)
    size = ((2 * mantissa + 33) << exponent) - 33
    return (4 * np.where(code & 0x80, -size, size)).astype(np.int16)


def _expand_alaw(data: bytes) -> NDArray[np.int16]:
    """Expand A-law bytes to 16 bits, of which the lowest three are 0.

    References
    ----------
    .. [1] ITU-T G.711 (1988), table 1: 13 bits, segments of 16 steps; even bits are inverted.
    """
    code = np.frombuffer(data, np.uint8) ^ 0x55
    exponent, mantissa = (code >> 4 & 7).astype(np.int32), (code & 15).astype(np.int32)
    size = np.where(exponent, (2 * mantissa + 33) << np.maximum(exponent, 1) - 1, 2 * mantissa + 1)
    return (8 * np.where(code & 0x80, size, -size)).astype(np.int16)


_NUMBERS: dict[str, Callable[[bytes], NDArray[Any]]] = {
    "s24": _widen_s24,
    "s24be": _widen_s24be,
    "ulaw": _expand_ulaw,
    "alaw": _expand_alaw,
}
