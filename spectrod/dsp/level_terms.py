"""What CF and ISO 18405 call levels of sound pressure, in files, in memory and of messages."""

import re
from collections.abc import Collection
from typing import Final

from spectrod.dsp.level_reference import Reference

LEVEL_NAME: Final = re.compile(
    r"L(?P<weighting>[ACZ])"
    r"(?:(?P<sum>eq|E|peak)|(?P<time>[FSI])(?P<extreme>max|min)?(?P<percent>\d{1,2}(?:\.\d{1,3})?)?)"
)
"""Names of levels with a weighting; of an extreme and a percentage there is one at most."""
_METHODS = {"eq": "mean (of power)", "max": "maximum", "min": "minimum", "last": "point"}
_TERMS = {"E": "sound exposure level", "peak": "zero-to-peak sound pressure level"}
_PRESSURE_LEVEL = "sound pressure level"


def level_terms(name: str, references: Collection[Reference | None]) -> dict[str, str]:
    """Return the names of an unweighted level that is calibrated; empty for all else.

    Parameters
    ----------
    name : str
        Of a quantity of all frequencies, not of a band, such as ``LZeq``.
    references : collection of (Reference or None)
        Of the channels that have it; None of one without calibration.

    Returns
    -------
    attributes : dict of str
        ``long_name`` with the term of ISO 18405, of levels re 1 uPa; and of sound pressure levels
        re 20 uPa or 1 uPa ``standard_name``, ``units`` in the notation of UDUNITS and, but for
        percentiles, ``cell_methods`` of CF 1.11. References that differ between channels have none.
    """
    reference, kind = _common(references), _unweighted(name)
    if reference is None or not kind or not reference.cf_level:
        return {}
    found = {}
    if not reference.is_air:
        unit = reference.exposure_level_unit if kind == "E" else reference.level_unit
        found["long_name"] = f"{_TERMS.get(kind, _PRESSURE_LEVEL)} {name} in {unit}"
    if kind in _TERMS:
        return found
    found["standard_name"] = reference.cf_level
    found["units"] = f"0.1 lg(re {reference.udunits_power})"
    if kind in _METHODS:
        found["cell_methods"] = f"time: {_METHODS[kind]}"
    return found


def _common(references: Collection[Reference | None]) -> Reference | None:
    found = set(references)
    return found.pop() if len(found) == 1 else None


def _unweighted(name: str) -> str:
    """Return what an unweighted level is of; empty for all else."""
    # By its name: messages and recorded files have no more of their quantities.
    match = LEVEL_NAME.fullmatch(name)
    if match is None or match["weighting"] != "Z":
        return ""
    if match["percent"]:
        return "" if match["extreme"] or not float(match["percent"]) else "percentile"
    return match["sum"] or match["extreme"] or "last"
