"""The kinds of measurements: the one table of them.

A kind's settings say all that differs between kinds: what is checked, which meter measures, what
messages and files say. Its word is the section of the configuration, the first word of its topics
(``wire.headers.MEASUREMENTS`` has the headers) and what users call it.
"""

from collections.abc import Mapping
from typing import Final

from spectrod.measure.features.features_config import FeaturesConfig
from spectrod.measure.levels.levels_config import LevelsConfig
from spectrod.measure.measurement_config import MeasurementConfig
from spectrod.measure.tones.tones_config import TonesConfig
from spectrod.measure.transfer.transfer_config import TransferConfig

KINDS: Final[Mapping[str, type[MeasurementConfig]]] = {
    "levels": LevelsConfig,
    "features": FeaturesConfig,
    "tones": TonesConfig,
    "transfer": TransferConfig,
}
"""Settings of each kind, by its word."""
