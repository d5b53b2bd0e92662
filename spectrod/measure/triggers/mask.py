"""Masks: a level at each frequency, by points; learned masks in files."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import Float64Array
from spectrod.lib.errors import ConfigError
from spectrod.lib.regular_files import read_regular
from spectrod.lib.text import reason_of
from spectrod.measure.triggers.trigger_config import (
    LEARNED_POINTS_MAX,
    check_mask_name,
    check_points,
)

SUFFIX = ".toml"
FILE_MAX_BYTES = 1 << 19
"""Largest file of a learned mask [bytes]."""

ANALYSIS_KEYS = (
    *("fs", "window", "win_length", "nfft", "scaling", "weighting", "bands"),
    *("averaging", "averaging_frames", "averaging_s"),
)
"""Fields of a spec that decide on the levels of noise in its values."""


class LearnedFrom(msgspec.Struct, frozen=True):
    """Where a learned mask comes from."""

    source: str
    product: str
    begin_utc_ns: int
    duration_s: float
    rows: int
    missing_samples: int
    percentile: float
    margin_db: float


class Mask(msgspec.Struct, frozen=True):
    """A level at each frequency, linear in level over the logarithm of frequency between points.

    Beyond its first and last point it says nothing.

    Attributes
    ----------
    points : tuple of (float, float)
        Frequency [Hz] and level.
    unit : str
        Unit of the levels.
    learned : LearnedFrom, optional
        Where a learned mask comes from.
    analysis : mapping
        Of a learned mask, the values of ``ANALYSIS_KEYS``.
    """

    points: tuple[tuple[float, float], ...]
    unit: str
    learned: LearnedFrom | None = None
    analysis: dict[str, float | int | str] = {}

    def at(self, f_hz: Float64Array) -> Float64Array:
        """Return the level at frequencies within the points, (n,) float64."""
        hz, level = np.array(self.points).T
        return np.asarray(np.interp(np.log(f_hz), np.log(hz), level))

    def covers(self, f_hz: Float64Array) -> NDArray[np.bool_]:
        """Return whether frequencies lie within the points, shape (n,)."""
        # A learned point has nine digits.
        slack = 1e-8
        first, last = self.points[0][0] * (1 - slack), self.points[-1][0] * (1 + slack)
        return np.asarray((f_hz >= first) & (f_hz <= last))

    def check_analysis(self, name: str, spec: SpectrumSpec) -> None:
        """Check that a learned mask is of this analysis.

        Raises
        ------
        ConfigError
            If levels of noise differ from those of the analysis that was learned.
        """
        for key, learned in self.analysis.items():
            now = getattr(spec, key, None)
            if now != learned:
                raise ConfigError(
                    f"was learned with {key}={learned!r}: the product "
                    f"{spec.product} must have it, and has {now!r}; learn the mask again",
                    mask=name,
                )


def analysis_of(spec: SpectrumSpec) -> dict[str, float | int | str]:
    """Return the part of a spec that a learned mask is bound to."""
    return {key: getattr(spec, key) for key in ANALYSIS_KEYS}


def mask_path(folder: Path, name: str) -> Path:
    """Return the path of a learned mask; raises ConfigError for a name that is not valid."""
    return folder / f"{check_mask_name(name)}{SUFFIX}"


def read_mask(folder: Path, name: str) -> Mask:
    """Read a learned mask.

    Raises
    ------
    ConfigError
        If there is none, or the file breaks a rule: a regular file of at most 512 KiB, no link,
        with 2 to 16384 points of ascending frequencies.
    """
    path = mask_path(folder, name)
    data = _read(path, name)
    try:
        tables = tomllib.loads(data.decode())
        mask = msgspec.convert(tables, Mask)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: {error}", mask=name) from error
    except (ValueError, RecursionError) as error:  # no UTF-8, bad TOML, integers of 4300 digits
        raise ConfigError(f"{path}: not valid TOML: {reason_of(error)}", mask=name) from error
    try:
        check_points(mask.points, LEARNED_POINTS_MAX)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}", mask=name) from error
    return mask


def _read(path: Path, name: str) -> bytes:
    try:
        return read_regular(path, FILE_MAX_BYTES, follow=False)
    except FileNotFoundError:
        raise ConfigError(
            f"{path} does not exist; spectrod ctl learn makes it", mask=name
        ) from None
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}", mask=name) from error


def mask_toml(mask: Mask) -> str:
    """Write a learned mask as TOML that ``read_mask`` reads."""
    lines = [
        "# A mask that spectrod ctl learn has made: [frequency in Hz, level in unit].",
        f"unit = {_text(mask.unit)}",
        "points = [",
        *(f"  [{f_hz:.9g}, {level:.2f}]," for f_hz, level in _floats(mask.points)),
        "]",
    ]
    tables: Mapping[str, Mapping[str, Any]] = {
        "learned": msgspec.to_builtins(mask.learned) or {},
        "analysis": mask.analysis,
    }
    for table, values in tables.items():
        if values:
            lines += ["", f"[{table}]", *(f"{key} = {_text(one)}" for key, one in values.items())]
    return "\n".join([*lines, ""])


def _floats(points: Sequence[tuple[float, float]]) -> Sequence[tuple[float, float]]:
    return [(float(f_hz), float(level)) for f_hz, level in points]


def _text(value: float | str) -> str:
    """Write a number or a name as JSON does, which is TOML too."""
    return msgspec.json.encode(value).decode()
