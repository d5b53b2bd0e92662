"""Where sound was recorded: numbers among the attributes of ACDD, and coordinates of CF."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from spectrod.formats.export.layout import Variable

_NUMBERS = (
    "geospatial_lat_min", "geospatial_lat_max", "geospatial_lon_min", "geospatial_lon_max",
    "geospatial_vertical_min", "geospatial_vertical_max",
)  # fmt: skip


def with_numbers(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes of which those that ACDD defines as numbers are float64, if they are."""
    found = dict(attributes)
    for name in _NUMBERS:
        number = _number(attributes, name)
        if number is not None:
            found[name] = number
    return found


def _number(attributes: Mapping[str, Any], name: str) -> float | None:
    try:
        number = float(attributes[name])
    except (KeyError, ValueError):
        return None
    return number if np.isfinite(number) else None


def site_variables(attributes: Mapping[str, Any], name: str) -> list[Variable]:
    """Return the coordinates of a time series at one point, by CF 1.11, section 9.

    Parameters
    ----------
    attributes : mapping
        Attributes of the file, see ``Site.attributes``.
    name : str
        Name of the time series.

    Returns
    -------
    variables : list of Variable
        Name, latitude, longitude, and depth or height if known; scalars. Empty if the attributes
        name no single point.
    """
    point = {axis: _point(attributes, axis) for axis in ("lat", "lon", "vertical")}
    if point["lat"] is None or point["lon"] is None:
        return []
    about = {"cf_role": "timeseries_id", "long_name": "name of the site"}
    found = [
        Variable("site", (), "str", about, np.array(name, object)),
        _scalar("latitude", point["lat"], units="degrees_north"),
        _scalar("longitude", point["lon"], units="degrees_east"),
    ]
    if point["vertical"] is not None:
        positive = str(attributes.get("geospatial_vertical_positive", "up"))
        what = "depth" if positive == "down" else "height"
        found.append(_scalar(what, point["vertical"], units="m", positive=positive, axis="Z"))
    return found


def with_site(
    variables: Iterable[Variable], attributes: Mapping[str, Any], name: str
) -> list[Variable]:
    """Return the variables of a recording with the point of its site, coordinates of its values.

    For parameters see ``site_variables``. The name of the series is none of them: CF allows it in
    files of nothing but time series, and gaps are none.
    """
    site = [one for one in site_variables(attributes, name) if "cf_role" not in one.attributes]
    more = [one.name for one in site]
    found = []
    for variable in variables:
        about = variable.attributes
        if site and "coordinates" in about:
            about = about | {"coordinates": " ".join([about["coordinates"], *more])}
        found.append(replace(variable, attributes=about))
    return [*site, *found]


def _point(attributes: Mapping[str, Any], axis: str) -> float | None:
    low, high = (_number(attributes, f"geospatial_{axis}_{end}") for end in ("min", "max"))
    return low if low == high else None


def _scalar(name: str, value: float, **about: str) -> Variable:
    texts = {"standard_name": name, "long_name": name, **about}
    texts["coverage_content_type"] = "coordinate"
    return Variable(name, (), "<f8", texts, np.array(value))
