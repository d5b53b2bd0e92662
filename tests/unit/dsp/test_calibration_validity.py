"""Dates of calibrations: in files, beside samples, in what is written."""

import datetime as dt
from dataclasses import replace

import pytest

from spectrod.dsp.calibration import (
    ChannelCalibration,
    Validity,
    common_validity,
    load_calibration,
    outside_validity,
    parse_reference,
)
from spectrod.dsp.calibration.validity import parse_validity

DAY_NS = 86_400 * 10**9
MIC = 'reference = "1 uPa"\nfull_scale_db = 170\nfull_scale = "rms"\nserial = "H1"\n'


def ns(text):
    """Return the time of a text with a zone [ns]."""
    return round(dt.datetime.fromisoformat(text).timestamp()) * 10**9


@pytest.mark.parametrize(
    ("valid_from", "valid_until", "begin", "end"),
    [
        ("2026-05-01", "2026-12-31", "2026-05-01T00:00Z", "2027-01-01T00:00Z"),
        ("2026-05-01", "2026-05-01", "2026-05-01T00:00Z", "2026-05-02T00:00Z"),
        ("2026-05-01T02:00:00+02:00", "2026-05-01T00:00:01Z", "2026-05-01T00:00Z", None),
        ("1970-01-01", "2199-12-31", "1970-01-01T00:00Z", "2200-01-01T00:00Z"),
    ],
)
def test_a_date_is_a_whole_day_of_utc(tmp_path, valid_from, valid_until, begin, end):
    """The last day is included; times have the zone that they state."""
    path = tmp_path / "mic.toml"
    path.write_text(f"{MIC}valid_from = {valid_from}\nvalid_until = {valid_until}\n")
    found = load_calibration(path).base.validity
    assert found == Validity(ns(begin), ns(end) if end else ns(begin) + 10**9)


def test_a_channel_may_have_dates_of_its_own(tmp_path):
    """Keys of a channel replace those of the file."""
    path = tmp_path / "mic.toml"
    path.write_text(f"{MIC}valid_from = 2026-05-01\n[channels.1]\nvalid_from = 2026-06-01\n")
    one, other = load_calibration(path).channels(2)
    assert common_validity((one, None, other)) == Validity(ns("2026-06-01T00:00Z"))
    assert one.validity == Validity(ns("2026-05-01T00:00Z"))
    assert one.cal_id == other.cal_id


def test_a_span_is_covered_with_its_begin_and_its_end():
    """A span from the first time to the second is covered, and nothing beyond; None is no bound."""
    both = Validity(DAY_NS, 2 * DAY_NS)
    assert both.covers(DAY_NS, 2 * DAY_NS)
    assert not both.covers(DAY_NS - 1, DAY_NS)
    assert not both.covers(DAY_NS, 2 * DAY_NS + 1)
    assert Validity().covers(-DAY_NS, DAY_NS)
    assert (Validity().is_stated, Validity(None, 0).is_stated) == (False, True)


def test_the_text_names_signal_calibration_dates_and_samples():
    """One line for the first signal outside; none where all are covered."""
    valid = parse_validity(dt.date(2026, 5, 1), dt.date(2026, 5, 31))
    one = ChannelCalibration(parse_reference("1 uPa"), 170.0, cal_id="H1-aa", validity=valid)
    begin = ns("2026-05-31T23:00Z")
    assert outside_validity((None, one), begin, begin + 3600 * 10**9) == ""
    assert outside_validity((None, one, one), begin, begin + 7200 * 10**9) == (
        "signal 1: calibration H1-aa is valid from 2026-05-01T00:00:00Z until "
        "2026-06-01T00:00:00Z, and samples are of 2026-05-31T23:00:00Z to 2026-06-01T01:00:00Z: "
        "levels beyond are questionable"
    )
    assert outside_validity((replace(one, validity=Validity()),), 0, 1) == ""
