"""Names of columns and variables of measurements, in files, in memory and of messages."""

import re
from collections.abc import Sequence
from typing import Final

TIME: Final = "time"
"""UTC of an interval's first sample."""
DURATION: Final = "duration_s"
"""Measured time."""
FLAGS_NAME: Final = "flags"
"""Names of an interval's flags of a channel, with ``FLAGS_BETWEEN`` between them."""
FLAGS_BETWEEN: Final = "|"
EFFORT_ATTRIBUTES: Final = {
    "long_name": "duration of the measured samples",
    "units": "s",
    "coverage_content_type": "qualityInformation",
}
"""Attributes of a variable of measured times, by CF 1.11."""


def of_channels(channels: Sequence[str], name: str) -> list[str]:
    """Return the names of a value's columns; of several channels, they end with ``@CHANNEL``."""
    if len(channels) == 1:
        return [name]
    return [f"{name}@{channel}" for channel in channels]


def variable_name(quantity: str) -> str:
    """Return a name of letters, digits and underscores, as CF recommends."""
    return re.sub(r"\W", "_", quantity, flags=re.ASCII)


def value_attributes(quantity: str, unit: str) -> dict[str, str]:
    """Return the attributes of a variable of a quantity, by CF 1.11."""
    return {
        "long_name": f"{quantity} in {unit}",
        # Channels may have several references: spectrod_unit has them.
        "units": "1",
        "spectrod_unit": unit,
        "coverage_content_type": "physicalMeasurement",
    }
