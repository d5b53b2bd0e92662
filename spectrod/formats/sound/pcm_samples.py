"""Conversion of samples to integers and bytes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.units import Float32Array
from spectrod.formats.sound.sound_options import Subtype

SAMPLE_BYTES: dict[Subtype, int] = {"s16": 2, "s24": 3, "s32": 4, "f32": 4}


def to_integers(samples: Float32Array, bits: int) -> tuple[NDArray[np.int32], int]:
    """Convert samples to integers of this number of bits.

    Rounds to the nearest, ties to even, without dither: samples from integers of the same width
    must be restored exactly, and the noise of a converter already acts as dither.

    Parameters
    ----------
    samples : (...) float32
        Samples [FS].
    bits : int
        Bits per integer: 16, 24 or 32.

    Returns
    -------
    integers : (...) int32
        Integers from ``-2^(bits-1)`` to ``2^(bits-1) - 1``; NaN becomes 0.
    n_clipped : int
        Number of samples beyond these limits, or NaN.
    """
    full_scale = 2.0 ** (bits - 1)
    # float32 holds every integer of up to 24 bits exactly; more bits need float64.
    wide = samples.astype(np.float64) if bits > 24 else samples
    scaled = np.rint(wide * wide.dtype.type(full_scale))
    # Comparisons with NaN are False, so it counts as clipped.
    is_within = (scaled >= -full_scale) & (scaled <= full_scale - 1.0)
    n_clipped = int(scaled.size - np.count_nonzero(is_within))
    if n_clipped:
        scaled = np.nan_to_num(scaled, nan=0.0, posinf=np.inf, neginf=-np.inf)
        scaled = np.clip(scaled, -full_scale, full_scale - 1.0)
    return scaled.astype(np.int32), n_clipped


def to_bytes(samples: Float32Array, subtype: Subtype) -> tuple[bytes, int]:
    """Encode interleaved samples, little-endian.

    Parameters
    ----------
    samples : (n, channels) float32
        Samples [FS].
    subtype : {"s16", "s24", "s32", "f32"}
        Sample format; f32 stores samples unchanged, also beyond full scale.

    Returns
    -------
    data : bytes
        ``SAMPLE_BYTES`` per sample.
    n_clipped : int
        See ``to_integers``.
    """
    if subtype == "f32":
        return samples.astype("<f4").tobytes(), 0
    bits = 8 * SAMPLE_BYTES[subtype]
    integers, n_clipped = to_integers(samples, bits)
    if subtype == "s24":
        octets = integers.astype("<i4", order="C").view(np.uint8).reshape(-1, 4)
        return octets[:, :3].tobytes(), n_clipped
    dtype: Any = f"<i{SAMPLE_BYTES[subtype]}"
    return integers.astype(dtype).tobytes(), n_clipped
