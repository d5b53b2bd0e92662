"""Where sound was recorded, and with what: keys of deployments, ACDD attributes, CF coordinates."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from msgspec import Meta, Struct

from spectrod.formats.export.layout import Variable
from spectrod.lib.errors import ConfigError

DEPTH_MAX_M, HEIGHT_MAX_M = 12_000.0, 100_000.0
NAME_CHARS_MAX = 200
SITE_KEYS: dict[str, Any] = {
    "latitude": Annotated[float, Meta(ge=-90, le=90)],
    "longitude": Annotated[float, Meta(ge=-180, le=180)],
    "depth_m": Annotated[float, Meta(ge=0, le=DEPTH_MAX_M)],
    "height_m": Annotated[float, Meta(ge=0, le=HEIGHT_MAX_M)],
    "platform": Annotated[str, Meta(max_length=NAME_CHARS_MAX)],
    "instrument": Annotated[str, Meta(max_length=NAME_CHARS_MAX)],
}
"""Types of the keys of a site in a file."""

_NUMBERS = (
    "geospatial_lat_min", "geospatial_lat_max", "geospatial_lon_min", "geospatial_lon_max",
    "geospatial_vertical_min", "geospatial_vertical_max",
)  # fmt: skip


class Site(Struct, frozen=True):
    """A place of a recorder.

    Attributes
    ----------
    latitude, longitude : float or None
        WGS 84, north and east are positive [degrees]; None: unknown.
    depth_m, height_m : float or None
        Below the water's surface, or above the ground [m]; at most one of them.
    platform, instrument : str
        What carries the recorder, and what recorded; empty: unknown.
    """

    latitude: float | None = None
    longitude: float | None = None
    depth_m: float | None = None
    height_m: float | None = None
    platform: str = ""
    instrument: str = ""

    def check(self) -> None:
        """Check the rules between the keys.

        Raises
        ------
        ConfigError
            If latitude or longitude is missing, or there are a depth and a height.
        """
        for key, other in (("latitude", "longitude"), ("longitude", "latitude")):
            if getattr(self, other) is None and getattr(self, key) is not None:
                raise ConfigError(f"{key}={getattr(self, key):g}: needs {other}", key)
        if self.depth_m is not None and self.height_m is not None:
            raise ConfigError(
                f"depth_m={self.depth_m:g}: must not be beside height_m={self.height_m:g}",
                "depth_m",
            )

    @property
    def attributes(self) -> dict[str, str]:
        """The site as attributes of ACDD 1.3: those that are known."""
        found = {"platform": self.platform, "instrument": self.instrument}
        if self.latitude is not None and self.longitude is not None:
            found |= _extent("lat", self.latitude, "degrees_north")
            found |= _extent("lon", self.longitude, "degrees_east")
        for value, positive in ((self.depth_m, "down"), (self.height_m, "up")):
            if value is not None:
                found |= _extent("vertical", value, "m")
                found["geospatial_vertical_positive"] = positive
        return {name: text for name, text in found.items() if text}


def _extent(axis: str, value: float, units: str) -> dict[str, str]:
    name = f"geospatial_{axis}"
    return {f"{name}_min": f"{value:.12g}", f"{name}_max": f"{value:.12g}", f"{name}_units": units}


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


def _point(attributes: Mapping[str, Any], axis: str) -> float | None:
    low, high = (_number(attributes, f"geospatial_{axis}_{end}") for end in ("min", "max"))
    return low if low == high else None


def _scalar(name: str, value: float, **about: str) -> Variable:
    texts = {"standard_name": name, "long_name": name, **about}
    texts["coverage_content_type"] = "coordinate"
    return Variable(name, (), "<f8", texts, np.array(value))
