"""What CF and ISO 18405 call the levels of a file of measurements."""

from collections.abc import Sequence

from spectrod.dsp.calibration import ChannelCalibration
from spectrod.dsp.calibration.level_reference import Reference
from spectrod.lib.errors import ConfigError
from spectrod.measure.levels.level_quantities import LevelQuantity, parse_quantity
from spectrod.measure.measurement import Quantity

_METHODS = {"eq": "mean (of power)", "max": "maximum", "min": "minimum", "last": "point"}
_TERMS = {
    "exposure": "sound exposure level",
    "peak_level": "zero-to-peak sound pressure level",
}
_PRESSURE_LEVEL = "sound pressure level"


def level_terms(
    quantity: Quantity, calibrations: Sequence[ChannelCalibration | None]
) -> dict[str, str]:
    """Return the names of an unweighted level that is calibrated; empty for all else.

    Parameters
    ----------
    quantity : Quantity
        A value of all frequencies, not of a band.
    calibrations : sequence of (ChannelCalibration or None)
        Of the channels that have it.

    Returns
    -------
    attributes : dict of str
        ``long_name`` with the term of ISO 18405, of levels re 1 uPa; and of sound pressure levels
        re 20 uPa or 1 uPa ``standard_name``, ``units`` in the notation of UDUNITS and, but for
        percentiles, ``cell_methods`` of CF 1.11. References that differ between channels have none.
    """
    reference, level = _common_reference(calibrations), _unweighted(quantity.name)
    if reference is None or level is None or not reference.cf_level:
        return {}
    found = {}
    if not reference.is_air:
        term = _TERMS.get(level.kind, _PRESSURE_LEVEL)
        unit = reference.exposure_level_unit if level.kind == "exposure" else reference.level_unit
        found["long_name"] = f"{term} {level.name} in {unit}"
    if level.kind in _TERMS:
        return found
    found["standard_name"] = reference.cf_level
    found["units"] = f"0.1 lg(re {reference.udunits_power})"
    if level.kind in _METHODS:
        found["cell_methods"] = f"time: {_METHODS[level.kind]}"
    return found


def _common_reference(calibrations: Sequence[ChannelCalibration | None]) -> Reference | None:
    references = {None if one is None else one.reference for one in calibrations}
    return references.pop() if len(references) == 1 else None


def _unweighted(name: str) -> LevelQuantity | None:
    """Return the level of a name; None if it is weighted, or no level of sound pressure."""
    # By its name: a recorded file has no more of its quantities.
    try:
        level = parse_quantity(name)
    except ConfigError:
        return None
    is_level = level.unit in ("level", "exposure") and level.weighting == "Z"
    return level if is_level else None
