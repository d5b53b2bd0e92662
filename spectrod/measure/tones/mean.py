"""The mean of many rows, in float64, for measurements over seconds of a stream."""

from dataclasses import replace

import numpy as np

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.units import Float64Array
from spectrod.lib.errors import ConfigError, InputError

VALUES_MAX = 1 << 24
"""Maximum number of values of all signals, 128 MiB."""


class MeanRow:
    """Averages the rows of batches in bounded memory.

    Parameters
    ----------
    spec : SpectrumSpec
        Definition of the rows: linear powers without averaging.

    Attributes
    ----------
    n_rows : int
        Rows so far.

    Raises
    ------
    ConfigError
        If a row of all signals has more than ``VALUES_MAX`` values.
    """

    def __init__(self, spec: SpectrumSpec) -> None:
        if spec.n_signals * spec.n_values > VALUES_MAX:
            raise ConfigError(
                f"{spec.n_signals} spectra of {spec.n_values} values: must be at most {VALUES_MAX} "
                "values; select fewer channels, or a shorter window"
            )
        self._spec = spec
        self._sum = np.zeros((spec.n_signals, spec.n_values))
        self.n_rows = 0

    def push(self, batch: SpectrumBatch) -> None:
        """Add the rows of a batch."""
        self._sum += batch.values.sum(axis=0, dtype=np.float64)
        self.n_rows += batch.n_frames

    def result(self) -> tuple[Float64Array, SpectrumSpec]:
        """Return the mean, (signals, values), and its definition.

        Raises
        ------
        InputError
            If there are no rows.
        """
        if self.n_rows == 0:
            raise InputError(f"too short: must be {self._spec.win_length} samples or more, a frame")
        mean = self._sum / self.n_rows
        if self.n_rows == 1:
            return mean, self._spec
        return mean, replace(self._spec, averaging="mean", averaging_frames=self.n_rows)
