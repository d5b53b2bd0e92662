"""Names of the columns of measurements, in files, tables in memory and tables of messages."""

from collections.abc import Sequence
from typing import Final

TIME: Final = "time"
"""UTC of an interval's first sample."""
DURATION: Final = "duration_s"
"""Measured time."""
FLAGS_NAME: Final = "flags"
"""Names of an interval's flags of a channel, with ``FLAGS_BETWEEN`` between them."""
FLAGS_BETWEEN: Final = "|"


def of_channels(channels: Sequence[str], name: str) -> list[str]:
    """Return the names of a value's columns; of several channels, they end with ``@CHANNEL``."""
    if len(channels) == 1:
        return [name]
    return [f"{name}@{channel}" for channel in channels]
