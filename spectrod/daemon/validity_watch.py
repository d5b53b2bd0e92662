"""Watches whether rows are of the time for which their calibration is valid."""

import logging

from spectrod.dsp.calibration import outside_validity
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.units import NS_PER_S

_log = logging.getLogger(__name__)


class ValidityWatch:
    """A sink of rows that warns once, at the first rows for which a calibration is not valid.

    Parameters
    ----------
    source : str
        Name of the source.
    """

    def __init__(self, source: str) -> None:
        self._source, self._is_over = source, False

    def write(self, batch: SpectrumBatch) -> None:
        """Look at the times of a batch."""
        if self._is_over or not batch.n_frames:
            return
        end_ns = batch.last_utc_ns + round(batch.spec.row_s * NS_PER_S)
        if text := outside_validity(batch.spec.calibration, batch.begin_utc_ns, end_ns):
            self._is_over = True
            _log.warning("%s: %s", self._source, text)
