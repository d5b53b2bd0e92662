"""Names of the features of an interval, and what each of them needs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from spectrod.lib.errors import ConfigError
from spectrod.lib.suggestions import did_you_mean
from spectrod.measure.quantity_names import parse_names

Statistic = Literal["mean", "sd", "min", "max"]

SHAPES = {
    "centroid": "Hz",
    "spread": "Hz",
    "rolloff": "Hz",
    "flatness": "1",
    "crest": "1",
    "entropy": "1",
    "flux": "1",
}
"""Features of single frames, and their units."""

SPECTRA = {"kurtosis": "1"}
"""Values of each bin that a row can have beside its features, and their units."""

KURTOSES = {"SK_mean": "1", "SK_max": "1", "SK_frequency": "Hz"}
"""Mean and maximum over bins of the spectral kurtosis, and where the maximum is."""

_SHAPE = re.compile(rf"({'|'.join(SHAPES)})(?:_(sd|min|max))?")
_NUMBER = r"(\d{1,7}(?:\.\d{1,3})?)"
_COMPLEXITY = re.compile(rf"ACI(?:_{_NUMBER}s)?")
_SOUNDSCAPE = re.compile(rf"NDSI(?:_{_NUMBER}-{_NUMBER}Hz_{_NUMBER}-{_NUMBER}Hz)?")
_DIVERSITY = re.compile(rf"ADI(?:_0-{_NUMBER}Hz_{_NUMBER}Hz_-{_NUMBER}dB)?")
_EXAMPLES = (*SHAPES, *KURTOSES, "ACI", "NDSI", "ADI")

FORMS = (
    f"{', '.join(SHAPES)}, alone or with _sd, _min or _max over the frames; "
    f"{', '.join(KURTOSES)}; ACI or ACI_5s, NDSI or NDSI_1000-2000Hz_2000-8000Hz, ADI or "
    "ADI_0-10000Hz_1000Hz_-50dB"
)
"""The names, for help texts."""


@dataclass(frozen=True, slots=True)
class FeatureQuantity:
    """One named feature of an interval.

    Attributes
    ----------
    name : str
        Its name with all parameters, such as ``centroid`` or ``ACI_5s``.
    kind : {"shape", "SK", "ACI", "NDSI", "ADI"}
        What is computed.
    unit : str
        ``Hz`` or ``1``.
    statistic : {"mean", "sd", "min", "max"}
        Of a shape, over the frames of the interval.
    parameters : tuple of float
        Of an ACI the length of a block [s], of an NDSI the edges of the two bands [Hz], of an ADI
        the upper end and the width of the bands [Hz] and the threshold [dB].
    """

    name: str
    kind: Literal["shape", "SK", "ACI", "NDSI", "ADI"]
    unit: str = "1"
    statistic: Statistic = "mean"
    parameters: tuple[float, ...] = ()

    @property
    def is_of_all_channels(self) -> bool:
        """Whether its value is one of all channels together."""
        return False

    @property
    def shape(self) -> str:
        """The feature of a single frame, such as ``centroid``; empty for an index."""
        return self.name.partition("_")[0] if self.kind == "shape" else ""


def parse_feature(name: str) -> FeatureQuantity:
    """Return the quantity of a name; an index without parameters has the published ones.

    Raises
    ------
    ConfigError
        If there is none.
    """
    if match := _SHAPE.fullmatch(name):
        statistic: Statistic = match[2] or "mean"  # type: ignore[assignment]  # of the expression
        return FeatureQuantity(name, "shape", SHAPES[match[1]], statistic)
    if name in KURTOSES:
        return FeatureQuantity(name, "SK", KURTOSES[name])
    if match := _COMPLEXITY.fullmatch(name):
        block_s = float(match[1] or 5.0)
        return FeatureQuantity(f"ACI_{block_s:.10g}s", "ACI", parameters=(block_s,))
    if match := _SOUNDSCAPE.fullmatch(name):
        a, b, c, d = map(float, match.groups()) if match[1] else (1e3, 2e3, 2e3, 8e3)
        return FeatureQuantity(
            f"NDSI_{a:.10g}-{b:.10g}Hz_{c:.10g}-{d:.10g}Hz", "NDSI", parameters=(a, b, c, d)
        )
    if match := _DIVERSITY.fullmatch(name):
        top, width, below = map(float, match.groups()) if match[1] else (1e4, 1e3, 50.0)
        text = f"ADI_0-{top:.10g}Hz_{width:.10g}Hz_{-below:.10g}dB"
        return FeatureQuantity(text, "ADI", parameters=(top, width, -below))
    raise ConfigError(
        f"feature={name!r}: must be a feature such as centroid, flatness_sd, ACI, NDSI, ADI"
        f"{did_you_mean(name, _EXAMPLES)}"
    )


def parse_features(names: Sequence[str], interval_s: float) -> tuple[FeatureQuantity, ...]:
    """Return the features of an interval, in the given order.

    Parameters
    ----------
    names : sequence of str
        1 to ``QUANTITIES_MAX`` different names.
    interval_s : float
        Length of the interval [s].

    Raises
    ------
    ConfigError
        If a name is unknown or given twice, or the interval is too short for a feature.
    """
    quantities = parse_names(names, interval_s, parse_feature)
    for quantity in quantities:
        if quantity.kind == "ACI" and interval_s < quantity.parameters[0]:
            raise ConfigError(
                f"{quantity.name} needs at least its block, {quantity.parameters[0]:g} s",
                interval_s=interval_s,
            )
    return quantities
