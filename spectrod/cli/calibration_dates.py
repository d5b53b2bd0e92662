"""What the log says of samples beside the dates of their calibration."""

import logging
import time
from collections.abc import Sequence

from spectrod.cli.sample_range import SampleRange
from spectrod.dsp.blocks import duration_ns
from spectrod.dsp.calibration import ChannelCalibration, common_validity, outside_validity
from spectrod.source.open_source import Source

_log = logging.getLogger(__name__)


def warn_of_validity(
    name: str,
    source: Source,
    span: SampleRange,
    calibrations: Sequence[ChannelCalibration | None],
    *,
    has_utc: bool,
) -> None:
    """Warn once if samples are not of the time for which a calibration is valid.

    Parameters
    ----------
    name : str
        What the command line names.
    source : Source
        The opened source.
    span : SampleRange
        Samples that are read; without an end its first one counts.
    calibrations : sequence of (ChannelCalibration or None)
        Of each signal; may be empty.
    has_utc : bool
        Whether the time of the samples is known; those of a live source or a pipe are of now.
    """
    validity = common_validity(calibrations)
    if not validity.is_stated:
        return
    if not has_utc:
        text = "%s has no start time: it is not known whether its calibration, %s, holds"
        _log.warning(text, name, validity.text)
        return
    begin_ns = time.time_ns() if source.start_utc_ns is None else source.start_utc_ns
    begin_ns += duration_ns(span.first, source.fs)
    end_ns = begin_ns + duration_ns(span.n_samples or 0, source.fs)
    if text := outside_validity(calibrations, begin_ns, end_ns):
        _log.warning("%s: %s", name, text)
