"""Cursors and bands of unpooled values."""

import sys
from pathlib import Path

import numpy as np
import pytest

from spectrod.apps.web.client import PageClient
from spectrod.apps.web.limits import Limits
from spectrod.apps.web.measure import band_fields, cursor_fields, measured_fields
from spectrod.apps.web.page_rows import RowMaker
from spectrod.apps.web.page_view import MeasureWish, StreamWish, View

sys.path.insert(0, str(Path(__file__).parents[3] / "web"))
from web_rows import TOPIC, band_frame, frame, make_rows

FS, NFFT = 48000.0, 1024
BIN_HZ = FS / NFFT
EDGES = np.array([[10.0, 20.0, 40.0], [20.0, 40.0, 80.0]])


def hann_row(hertz, level, **fields):
    """Return a row with a tone, as a Hann window shows it, and what is constant of it."""
    n = np.arange(NFFT)
    window = 0.5 - 0.5 * np.cos(2.0 * np.pi * n / NFFT)
    tone = 10.0 ** (level / 20.0) * np.cos(2.0 * np.pi * hertz / FS * n + 0.3)
    power = 2.0 * np.abs(np.fft.rfft(window * tone)) ** 2 / window.sum() ** 2
    enbw_hz = FS * (window**2).sum() / window.sum() ** 2
    if fields.get("unit") == "FS^2/Hz":
        values = power / enbw_hz
    else:
        values = 10.0 * np.log10(np.maximum(power, 1e-20) / 0.5)
    (row,) = make_rows(frame(values, 0, enbw_hz=enbw_hz, **fields))
    return row


@pytest.mark.parametrize("unit", ["dBFS", "FS^2/Hz"])
@pytest.mark.parametrize("offset", [0.0, 0.3, 0.5])
def test_a_band_around_a_tone_has_its_level(unit, offset):
    """However the window spreads a tone over bins, the band's power is the tone's, in dBFS."""
    row = hann_row((100 + offset) * BIN_HZ, -20.0, unit=unit)
    band = band_fields(row.levels, row.facts, 80 * BIN_HZ, 120 * BIN_HZ)
    assert band["level"] == pytest.approx(-20.0, abs=0.01)
    assert band["unit"] == "dBFS"


@pytest.mark.parametrize(("f0", "f1", "share"), [(10.0, 11.0, 1.0), (10.25, 10.5, 0.25)])
def test_a_bin_counts_with_its_share(f0, f1, share):
    """Half a bin in the range is half its power; ends need not be at bins."""
    levels = np.full(33, -40.0)
    (row,) = make_rows(frame(levels, 0, enbw_hz=1.5 * 750.0))
    band = band_fields(row.levels, row.facts, f0 * 750.0, f1 * 750.0)
    expected = -40.0 + 10.0 * np.log10(share / 1.5)
    assert band["level"] == pytest.approx(expected, abs=1e-4)


def test_all_bins_together_have_the_whole_power():
    """From 0 Hz to the Nyquist frequency the end bins count in full: Parseval's theorem."""
    rng = np.random.default_rng(1)
    samples = rng.standard_normal(64)
    power = np.abs(np.fft.rfft(samples)) ** 2 / 64**2
    power[1:-1] *= 2.0
    (row,) = make_rows(frame(power / 750.0, 0, unit="FS^2/Hz", enbw_hz=750.0))
    band = band_fields(row.levels, row.facts, 0.0, 24000.0)
    expected = 10.0 * np.log10(np.mean(samples**2) / 0.5)
    assert band["level"] == pytest.approx(expected, abs=1e-4)


def test_bands_of_a_topic_are_added_by_their_width_in_the_range():
    """Two whole bands and half a third of equal power are 2.5 times it; no data adds nothing."""
    row = RowMaker(TOPIC).make(band_frame([-10.0, -10.0, -10.0], unit="dB SPL"), EDGES)
    band = band_fields(row.levels, row.facts, 10.0, 60.0)
    assert band == {
        "f0": 10.0,
        "f1": 60.0,
        "unit": "dB SPL",
        "level": pytest.approx(-10.0 + 10.0 * np.log10(2.5), abs=1e-5),
    }
    row = RowMaker(TOPIC).make(band_frame([-10.0, np.nan, -10.0], unit="dB SPL"), EDGES)
    band = band_fields(row.levels, row.facts, 10.0, 60.0)
    assert band["level"] == pytest.approx(-10.0 + 10.0 * np.log10(1.5), abs=1e-5)


@pytest.mark.parametrize(
    ("unit", "level_unit", "zero_db"),
    [("dB re (1 uPa)^2/Hz", "dB re (1 uPa)^2", 1.0), ("FS^2/Hz", "dBFS", 0.5)],
)
def test_densities_of_bands_are_added_by_their_widths(unit, level_unit, zero_db):
    """Bands of 10, 20 and half of 40 Hz of equal density have the power of 50 Hz."""
    values = [-10.0] * 3 if unit.startswith("dB") else [0.1] * 3
    row = RowMaker(TOPIC).make(band_frame(values, unit=unit), EDGES)
    band = band_fields(row.levels, row.facts, 10.0, 60.0)
    assert band["unit"] == level_unit
    assert band["level"] == pytest.approx(10.0 * np.log10(0.1 * 50.0 / zero_db), abs=1e-5)


def test_a_band_beside_the_spectrum_has_no_power():
    """Its level is minus infinity, which a text says as null."""
    (row,) = make_rows(frame(np.full(33, -40.0), 0))
    assert band_fields(row.levels, row.facts, 30e3, 31e3)["level"] == -np.inf


@pytest.mark.parametrize(
    ("hertz", "bin_hz"), [(750.0, 750.0), (1124.0, 750.0), (1126.0, 1500.0), (-5, 0.0), (1e9, 24e3)]
)
def test_a_cursor_reads_the_nearest_bin(hertz, bin_hz):
    """Its level is that of the bin, whose frequency it says."""
    (row,) = make_rows(frame(np.arange(33) - 100.0, 0))
    cursor = cursor_fields(row.levels, row.facts.axis, hertz)
    assert cursor == {"hz": hertz, "bin_hz": bin_hz, "level": -100.0 + bin_hz / 750.0}


def test_a_cursor_reads_the_band_that_it_is_in():
    """A band's frequency is the middle of its edges on a logarithmic axis."""
    row = RowMaker(TOPIC).make(band_frame([-10.0, -20.0, -30.0]), EDGES)
    cursor = cursor_fields(row.levels, row.facts.axis, 35.0)
    assert cursor == {"hz": 35.0, "bin_hz": pytest.approx(800.0**0.5), "level": -20.0}


def noisy_row(*tones, **fields):
    """Return a row with tones (Hz, dB) and noise far below them."""
    rng = np.random.default_rng(2)
    power = sum(10.0 ** (hann_row(*tone).levels.astype(np.float64) / 10.0) for tone in tones)
    power = power + 1e-11 * rng.exponential(size=NFFT // 2 + 1)
    enbw = {"enbw_hz": 1.5 * BIN_HZ}
    (row,) = make_rows(frame(10.0 * np.log10(power), 0, **(enbw | fields)))
    return row


def test_peaks_are_interpolated_the_strongest_first():
    """Tones between bins have their frequency and level; noise is no peak."""
    tones = [(5003.7, -40.0), (1000.0, -20.0), (12345.6, -60.0)]
    peaks = noisy_row(*tones).peaks(10)
    expected = sorted(tones, key=lambda tone: -tone[1])
    assert [peak["hz"] for peak in peaks] == pytest.approx([hz for hz, _ in expected], abs=0.2)
    levels = [peak["level"] for peak in peaks]
    assert levels == pytest.approx([level for _, level in expected], abs=0.03)
    assert {peak["hz_error"] for peak in peaks} == {None}


def test_as_many_peaks_as_a_page_wants():
    """Who wants fewer gets the strongest; the row finds them once."""
    row = noisy_row((5003.7, -40.0), (1000.0, -20.0), (12345.6, -60.0))
    assert [len(row.peaks(count)) for count in (2, 1, 3, 0)] == [2, 1, 3, 0]
    assert row.peaks(1)[0]["hz"] == pytest.approx(1000.0, abs=0.2)


def test_a_peak_under_an_unknown_window_is_that_of_its_bin():
    """Its error is half a bin, and it says so."""
    (peak,) = noisy_row((5003.7, -40.0), window="of tomorrow").peaks(5)
    assert abs(peak["hz"] - 5003.7) <= peak["hz_error"] == BIN_HZ / 2.0


def test_bands_have_peaks_too():
    """The peak of bands is in the middle of its band, within half of it."""
    edges = np.vstack([10.0 * 2.0 ** np.arange(9), 20.0 * 2.0 ** np.arange(9)])
    levels = np.full(9, -80.0)
    levels[4] = -20.0
    row = RowMaker(TOPIC).make(band_frame(levels), edges)
    (peak,) = row.peaks(5)
    assert peak == {"hz": pytest.approx(320.0 * 0.5**0.5), "level": -20.0, "hz_error": 80.0}


def test_spectra_without_data_have_no_peaks():
    """NaN and silence are no peaks, and neither are the two ends."""
    levels = np.full(33, np.nan)
    levels[::2] = -np.inf
    assert make_rows(frame(levels, 0))[0].peaks(5) == []
    assert make_rows(frame([-10.0, -20.0], 0))[0].peaks(5) == []


def stream_with(measure, **fields):
    client = PageClient(Limits())
    asked = {"id": 5, "topic_id": 3, "f0": 0.0, "f1": 24e3, "px": 10}
    wish = StreamWish(**asked, measure=measure, **fields)
    client.set_view(View(generation=1, streams=(wish,)), {TOPIC.id: TOPIC})
    return client, client.streams[5]


def test_the_newest_row_is_measured_once():
    """Between two rows nothing is measured again, and without a wish nothing ever."""
    client, stream = stream_with(MeasureWish(cursors=(750.0,)))
    assert measured_fields(stream) is None
    for row in make_rows(frame(np.full(33, -40.0), 7), frame(np.full(33, -41.0), 8)):
        client.push(TOPIC.id, row)
    found = measured_fields(stream)
    assert (found["id"], found["seq"], found["cursors"][0]["level"]) == (5, 8, -41.0)
    assert measured_fields(stream) is None
    client, stream = stream_with(None)
    client.push(TOPIC.id, make_rows(frame(np.full(33, -40.0), 7))[0])
    assert measured_fields(stream) is None


def test_a_hold_is_measured_where_a_page_shows_it():
    """The cursor of a maximum reads the maximum, not the newest row."""
    client, stream = stream_with(MeasureWish(cursors=(750.0,)), of="max")
    for row in make_rows(frame(np.full(33, -40.0), 7), frame(np.full(33, -41.0), 8)):
        client.push(TOPIC.id, row)
    assert measured_fields(stream)["cursors"][0]["level"] == pytest.approx(-40.0)
