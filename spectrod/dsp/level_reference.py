"""Reference values of levels: 20 uPa in air, 1 uPa in water, 1 V, 1 m/s2 and others."""

import math
import re
from dataclasses import dataclass

from spectrod.lib.errors import ConfigError

PREFIXES = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3}
"""Decimal prefixes of units."""

BASE_UNITS = ("Pa", "V", "A", "m/s2", "m/s", "m", "N")
"""Units that references and sensitivities may have, in the notation of UDUNITS."""

VALUE_MIN, VALUE_MAX = 1e-15, 1e6
"""Bounds on a reference value [base unit]."""

_TEXT = re.compile(r"([0-9.eE+-]{1,30})\s*([A-Za-zµμ/0-9^²]{1,16})", re.ASCII | re.DOTALL)
_STATED = re.compile(r"0 dB = ([^,]{1,40})(?:,.*)?", re.DOTALL)
_MICRO = str.maketrans({"µ": "u", "μ": "u", "²": "2"})
_EXAMPLES = "20 uPa, 1 uPa, 1 V, 1 m/s2, 5e-8 m/s"
_AIR_PA = 20e-6
_WATER_PA = 1e-6

SPL_UNIT = "dB SPL"
"""Unit of levels re 20 uPa."""


def split_unit(text: str) -> tuple[float, str] | None:
    """Split a unit into the factor of its prefix and its base unit; None if it is not known."""
    unit = text.translate(_MICRO).replace("^", "")
    if unit in BASE_UNITS:
        return 1.0, unit
    scale = PREFIXES.get(unit[:1])
    return (scale, unit[1:]) if scale and unit[1:] in BASE_UNITS else None


def squared(unit: str) -> str:
    """Return the square of a unit, such as ``Pa^2`` or ``(m/s2)^2``."""
    return f"({unit})^2" if "/" in unit else f"{unit}^2"


@dataclass(frozen=True, slots=True)
class Reference:
    """A quantity whose level is 0 dB.

    Attributes
    ----------
    value : float
        Root mean square of 0 dB, in ``unit``.
    unit : str
        Unit of linear results, such as ``Pa``, ``uPa``, ``V``, ``m/s2``.
    """

    value: float
    unit: str

    @property
    def base_unit(self) -> str:
        """Unit without its prefix, such as ``Pa``."""
        return self._split[1]

    @property
    def base_value(self) -> float:
        """Root mean square of 0 dB [base unit]."""
        return self.value * self._split[0]

    @property
    def _split(self) -> tuple[float, str]:
        split = split_unit(self.unit)
        assert split is not None  # parse_reference has checked it
        return split

    @property
    def name(self) -> str:
        """Value and unit, such as ``20 uPa``; ``parse_reference`` reads it."""
        if self.is_air:
            return "20 uPa"
        return f"{self.value:.12g} {self.unit}"

    @property
    def is_air(self) -> bool:
        """Whether it is 20 uPa, the reference of sound pressure levels in gases (ISO 1683)."""
        return self.unit == "Pa" and math.isclose(self.value, _AIR_PA, rel_tol=1e-9)

    @property
    def cf_level(self) -> str:
        """CF's standard name of a sound pressure level with this reference; empty if none has."""
        if self.is_air:
            return "sound_pressure_level_in_air"
        is_water = self.base_unit == "Pa" and math.isclose(self.base_value, _WATER_PA, rel_tol=1e-9)
        return "sound_pressure_level_in_water" if is_water else ""

    @property
    def level_unit(self) -> str:
        """Unit of levels: ``dB SPL`` re 20 uPa, ``dBV`` re 1 V, otherwise ``dB re VALUE UNIT``."""
        if self.is_air:
            return SPL_UNIT
        return "dBV" if (self.value, self.unit) == (1.0, "V") else f"dB re {self.name}"

    @property
    def udunits_squared(self) -> str:
        """Square of ``unit`` in the notation of UDUNITS, such as ``Pa2`` and ``m2 s-4``."""
        above, _, below = self.unit.partition("/")
        return f"{above}2 s-{2 * int(below[1:] or 1)}" if below else f"{above}2"

    @property
    def udunits_power(self) -> str:
        """Power of 0 dB in the notation of UDUNITS, such as ``4e-10 Pa2``."""
        return f"{self.value**2:.12g} {self.udunits_squared}"

    @property
    def density_level_unit(self) -> str:
        """Unit of levels of densities, such as ``dB re (20 uPa)^2/Hz``."""
        return f"dB re ({self.name})^2/Hz"

    @property
    def exposure_level_unit(self) -> str:
        """Unit of levels of exposures, such as ``dB re (20 uPa)^2 s``."""
        return f"dB re ({self.name})^2 s"


def stated_reference(ref: str) -> Reference | None:
    """Return the reference of 0 dB that a message states.

    Parameters
    ----------
    ref : str
        As ``0 dB = 20 uPa`` or ``0 dB = 20 uPa, one-sided``; it may come from anybody.

    Returns
    -------
    reference : Reference or None
        None without one that ``parse_reference`` knows.
    """
    found = _STATED.fullmatch(ref)
    if found is None:
        return None
    try:
        return parse_reference(found[1])
    except ConfigError:
        return None


def parse_reference(text: str) -> Reference:
    """Parse a reference value with its unit.

    Parameters
    ----------
    text : str
        Such as ``20 uPa``. The unit of linear results is that of the text if the value is 1, and
        otherwise the unit without its prefix: ``uPa`` of ``1 uPa``, ``Pa`` of ``20 uPa``.

    Raises
    ------
    ConfigError
        If it is not a value with a known unit, or is out of bounds.
    """
    match = _TEXT.fullmatch(text.strip().translate(_MICRO))
    split = split_unit(match[2]) if match else None
    try:
        value = float(match[1]) if match else math.nan
    except ValueError:
        value = math.nan
    if match is None or split is None or not math.isfinite(value):
        raise ConfigError(f"reference={text!r}: must be a value with a unit: {_EXAMPLES}")
    scale, base = split
    if not VALUE_MIN <= value * scale <= VALUE_MAX:
        raise ConfigError(f"reference={text!r}: must be {VALUE_MIN:g} to {VALUE_MAX:g} {base}")
    if value == 1.0:
        return Reference(1.0, match[2].replace("^", ""))
    # Rounded, since 20 * 1e-6 is not the float nearest to 20e-6.
    return Reference(float(f"{value * scale:.15g}"), base)
