"""Levels and their references.

0 dBFS is a full-scale *sine* (AES17, IEC 61606): amplitude 1, mean square 1/2. A level in dBFS is
therefore ``10 log10(mean square / (1/2))``, and a full-scale square wave reads +3.01 dBFS.
"""

from typing import Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

Float32Array = NDArray[np.float32]
Float64Array = NDArray[np.float64]
Int64Array = NDArray[np.int64]
Float = TypeVar("Float", bound=np.floating[Any])

NS_PER_S = 1_000_000_000
"""Nanoseconds in a second."""

Scaling = Literal["density", "spectrum", "dbfs"]
SCALINGS: tuple[Scaling, ...] = get_args(Scaling)

FULL_SCALE_SINE_FS2 = 0.5
"""Mean square of a full-scale sine [FS^2]."""

FULL_SCALE = 1.0 - 2.0**-15
"""Lowest level that counts as full scale: the largest value of 16-bit samples [FS]."""

FLOOR_DBFS = -200.0
"""Lowest reported level: the logarithm of digital silence is infinite [dBFS]."""

UNITS: dict[Scaling, str] = {"density": "FS^2/Hz", "spectrum": "FS^2", "dbfs": "dBFS"}
REFERENCES: dict[Scaling, str] = {
    "density": "FS = digital full scale (1.0), one-sided",
    "spectrum": "FS = digital full scale (1.0), a sine's mean square at its bin",
    "dbfs": "0 dBFS = full-scale sine",
}


def power_to_dbfs(power: Float32Array) -> Float32Array:
    """Convert mean squares to levels.

    Parameters
    ----------
    power : (...) float32
        Mean square, >= 0 [FS^2].

    Returns
    -------
    level : (...) float32
        ``10 log10(power / 0.5)``, at least ``FLOOR_DBFS`` [dBFS]. NaN stays NaN.

    References
    ----------
    .. [1] AES17-2020, 3.12: the full-scale level is that of a full-scale sine.
    """
    return power_to_level(power, FULL_SCALE_SINE_FS2, FLOOR_DBFS)


def power_to_level(
    power: NDArray[Float], reference: float = 1.0, floor_db: float = -np.inf
) -> NDArray[Float]:
    """Convert powers to levels.

    Parameters
    ----------
    power : (...) float32 or float64
        Powers, at least 0.
    reference : float
        Power of 0 dB.
    floor_db : float
        Lowest level, also for a power of 0 [dB].

    Returns
    -------
    level : (...) of the same dtype
        ``10 log10(power / reference)`` [dB]. NaN stays NaN.
    """
    kind = power.dtype.type
    with np.errstate(divide="ignore"):  # silence is minus infinity before the floor is applied
        level: NDArray[Float] = np.asarray(np.log10(power, dtype=power.dtype))
    level *= kind(10.0)
    level -= kind(10.0 * np.log10(reference))
    np.maximum(level, kind(floor_db), out=level)
    return level


def level_to_power(level: NDArray[Float], reference: float = 1.0) -> NDArray[Float]:
    """Convert levels [dB] to powers, (...) of the same dtype; the inverse of ``power_to_level``."""
    kind = level.dtype.type
    power: NDArray[Float] = np.asarray(np.power(kind(10.0), level / kind(10.0)))
    power *= kind(reference)
    return power


def dbfs_to_amplitude(level_dbfs: float) -> float:
    """Return the peak amplitude [FS] of a sine of the given level [dBFS]."""
    return float(10.0 ** (level_dbfs / 20.0))
