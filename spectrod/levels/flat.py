"""A level meter whose rows have the values in bands beside the others, for messages."""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from spectrod.errors import ConfigError
from spectrod.interval_values import QUANTITIES_MAX
from spectrod.levels.meter import LevelMeter, LevelRow


class FlatLevelMeter:
    """Measures levels, and names the values in bands: ``LZeq_63Hz``.

    Parameters
    ----------
    meter : LevelMeter

    Attributes
    ----------
    quantities : tuple of LevelQuantity
        Those of the meter; then all bands of the first quantity in bands, of the next, ...

    Raises
    ------
    ConfigError
        If there are more than ``QUANTITIES_MAX``.
    """

    def __init__(self, meter: LevelMeter) -> None:
        self._meter = meter
        self.quantities = (*meter.quantities, *meter.bands.named_quantities)
        if len(self.quantities) > QUANTITIES_MAX:
            raise ConfigError(
                f"bands: {len(meter.bands.filters)} bands make {len(self.quantities)} values; "
                f"a message has at most {QUANTITIES_MAX}: choose fewer bands or quantities"
            )

    def feed(
        self, samples: ArrayLike, missing_samples: int = 0, utc_ns: int | None = None
    ) -> list[LevelRow]:
        """Measure the next samples; see ``LevelMeter.feed``."""
        return [_flat(row) for row in self._meter.feed(samples, missing_samples, utc_ns)]


def _flat(row: LevelRow) -> LevelRow:
    in_bands = row.band_values.reshape(-1, row.values.shape[1])
    return replace(row, values=np.concatenate((row.values, in_bands)))
