"""Where a recorder is, and what it is: keys of settings, and the attributes of ACDD of it."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from spectrod.lib.errors import ConfigError

DEPTH_MAX_M, HEIGHT_MAX_M = 12_000.0, 100_000.0
SITE_CHARS_MAX = 200
"""Longest name of a platform and of an instrument [characters]."""
Latitude = Annotated[float, Meta(ge=-90, le=90)]
Longitude = Annotated[float, Meta(ge=-180, le=180)]
Depth = Annotated[float, Meta(ge=0, le=DEPTH_MAX_M)]
Height = Annotated[float, Meta(ge=0, le=HEIGHT_MAX_M)]
SiteName = Annotated[str, Meta(max_length=SITE_CHARS_MAX)]
SITE_KEYS: dict[str, Any] = {
    "latitude": Latitude,
    "longitude": Longitude,
    "depth_m": Depth,
    "height_m": Height,
    "platform": SiteName,
    "instrument": SiteName,
}
"""Types of the keys of a site in a file."""


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
