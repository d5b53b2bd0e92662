"""Sensitivities as data sheets state them: ``50 mV/Pa``, ``-165 dB re 1 V/uPa``, ``100 mV/g``."""

import math
import re

from spectrod.dsp.level_reference import PREFIXES, split_unit
from spectrod.lib.errors import ConfigError

SENSITIVITY_MIN, SENSITIVITY_MAX = 1e-9, 1e6
"""Bounds on a sensitivity [V per base unit]: -240 dB re 1 V/uPa is 1e-6 V/Pa."""

DB_PER_MICRO_MAX = -80.0
"""Highest level of a sensitivity per micro-unit [dB]: anything above has lost its sign."""

DB_PER_UNIT_MAX = 40.0
"""Highest level of a sensitivity per unit [dB re 1 V/Pa]."""

GRAVITY_M_S2 = 9.80665
"""Standard acceleration of free fall [m/s2] (ISO 80000-3)."""

_NUMBER = r"[+-]?(?:\d{1,12}(?:\.\d{0,12})?|\.\d{1,12})(?:[eE][+-]?\d{1,3})?"
_LINEAR = re.compile(rf"({_NUMBER})\s*([numk]?)V/\(?([A-Za-z/0-9^]+)\)?", re.ASCII)
_LEVEL = re.compile(rf"({_NUMBER})\s*dB\s*(?:re\s*)?1?\s*V/\(?([A-Za-z/0-9^]+)\)?", re.ASCII)
_MICRO = str.maketrans({"µ": "u", "μ": "u", "²": "2", "\N{MINUS SIGN}": "-"})
_EXAMPLES = "50 mV/Pa, -165 dB re 1 V/uPa, -26 dB re 1 V/Pa, 100 mV/g, 10 mV/(m/s2), 1 V/V"


def parse_sensitivity(text: str) -> tuple[float, str]:
    """Parse a sensitivity.

    Parameters
    ----------
    text : str
        A ratio such as ``50 mV/Pa``, or a level such as ``-165 dB re 1 V/uPa``.

    Returns
    -------
    sensitivity : float
        Volts per base unit, such as V/Pa.
    unit : str
        The base unit, such as ``Pa``.

    Raises
    ------
    ConfigError
        If it is neither, its unit is not known, or it is out of bounds.
    """
    plain = text.strip().translate(_MICRO)
    if match := _LEVEL.fullmatch(plain):
        return _from_level(text, float(match[1]), match[2])
    match = _LINEAR.fullmatch(plain)
    per = _per(match[3]) if match else None
    if match is None or per is None:
        raise ConfigError(f"sensitivity={text!r}: must be a number with a unit: {_EXAMPLES}")
    scale, unit = per
    return _checked(text, float(match[1]) * PREFIXES.get(match[2], 1.0) / scale, unit)


def _from_level(text: str, level_db: float, per_text: str) -> tuple[float, str]:
    per = _per(per_text)
    if per is None:
        raise ConfigError(f"sensitivity={text!r}: must be a number with a unit: {_EXAMPLES}")
    scale, unit = per
    limit = DB_PER_MICRO_MAX if scale <= PREFIXES["u"] else DB_PER_UNIT_MAX
    if not level_db <= limit:
        hint = "; has it lost its sign?" if level_db > 0 else ""
        raise ConfigError(
            f"sensitivity={text!r}: must be at most {limit:g} dB re 1 V/{per_text}{hint}"
        )
    return _checked(text, 10.0 ** (level_db / 20.0) / scale, unit)


def _per(unit: str) -> tuple[float, str] | None:
    return (GRAVITY_M_S2, "m/s2") if unit == "g" else split_unit(unit)


def _checked(text: str, sensitivity: float, unit: str) -> tuple[float, str]:
    if not (math.isfinite(sensitivity) and SENSITIVITY_MIN <= sensitivity <= SENSITIVITY_MAX):
        raise ConfigError(
            f"sensitivity={text!r}: {sensitivity:.4g} V/{unit}: must be {SENSITIVITY_MIN:g} to "
            f"{SENSITIVITY_MAX:g} V/{unit}"
        )
    return sensitivity, unit
