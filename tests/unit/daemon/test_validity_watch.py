"""The daemon's warning that a calibration is not valid."""

import logging

import numpy as np

from spectrod.daemon.validity_watch import ValidityWatch
from spectrod.dsp.calibration import ChannelCalibration, Validity, parse_reference
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch

SECOND_NS = 10**9


def batch(seconds):
    """Return rows of a second that begin at these times, calibrated until second 5."""
    calibration = ChannelCalibration(
        parse_reference("1 uPa"), 170.0, cal_id="H1", validity=Validity(None, 5 * SECOND_NS)
    )
    spec = SpectrumSpec(100.0, 1, win_length=100, hop=100, nfft=100, calibration=(calibration,))
    times = np.array(seconds, np.int64) * SECOND_NS
    values = np.zeros((len(seconds), 1, spec.n_values), np.float32)
    return SpectrumBatch(values, times, times, times, spec, "numpy")


def test_the_end_of_a_validity_is_one_warning(caplog):
    """The first rows beyond it are named, and no later ones."""
    caplog.set_level(logging.WARNING)
    watch = ValidityWatch("pond")
    for seconds in ([], [3, 4]):
        watch.write(batch(seconds))
    assert caplog.records == []
    for seconds in ([5], [6]):
        watch.write(batch(seconds))
    (line,) = (record.message for record in caplog.records)
    assert line.startswith(
        "pond: signal 0: calibration H1 is valid until 1970-01-01T00:00:05Z, and"
    )
