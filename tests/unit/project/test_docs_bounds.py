"""Each bound that the pages on measurement state has a test."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
BOUND = re.compile(r"within (?:its resolution of )?[+-]{0,2}\d")

REFERENCE, UNIT = "tests/reference/", "tests/unit/"
TWO = f"{REFERENCE}test_two_channel_reference.py"
TONES = f"{REFERENCE}test_tones_reference.py"
PEAKS = f"{UNIT}measure/test_tones_peaks.py"
METER = f"{REFERENCE}test_level_meter.py"
FILTERS = f"{REFERENCE}test_level_filters.py"
LOUDNESS = f"{REFERENCE}test_loudness.py"
PROGRAMS = f"{REFERENCE}test_loudness_programs.py"
PERCENTILES = f"{UNIT}analysis/test_percentiles.py"

MEASUREMENT = {
    "not within 2 % of `--frequency`": (
        f"{UNIT}apps/measurements/test_calibrator.py::test_refused_tones"
    ),
    "within 1 dB of the noise": f"{PEAKS}::test_floor_beside_a_tone_is_the_noise",
    "confirm them within 25 %": (
        f"{UNIT}measure/test_tone_meter.py::test_stated_deviations_are_those_of_repeated_measurements"
    ),
    "SINAD 39.547 dB within 0.05 dB": f"{TONES}::test_sine_with_harmonics_and_noise",
    "below fs/2 within 1e-5": f"{TONES}::test_wave_shapes",
    "effective bits within 0.04": f"{TONES}::test_ideal_quantiser",
    "both are within 20 dB": f"{TONES}::test_intermodulation_that_cannot_be_measured",
    "both are within 6 dB": f"{TONES}::test_intermodulation_that_cannot_be_measured",
    "NumPy's moments within 1e-9": (
        f"{UNIT}measure/test_features.py::test_spectral_kurtosis_is_the_ratio_of_moments"
    ),
    "`coherence` within 1e-12": f"{TWO}::test_scipy",
    "Without noise it is within 0.01 samples": f"{TWO}::test_delay_of_a_limited_band",
    "below f2: within 0.01 dB": f"{TWO}::test_gain_of_a_wire",
    "at 48 kHz) within 0.01 samples": (
        f"{UNIT}measure/test_transfer_meter.py::test_delays_of_a_limited_band"
    ),
    "the same values within 1e-8": (
        f"{UNIT}measure/test_transfer_meter.py::test_values_are_those_of_the_command"
    ),
    "(4.37 f / kHz + 1) within 0.5 %": (
        f"{UNIT}dsp/test_bands.py::test_erb_bands_are_1_wide_on_the_erb_rate_scale"
    ),
    "had not settled within 0.1 dB": (
        f"{UNIT}measure/test_octave_bank.py::test_a_sine_settles_in_the_stated_time"
    ),
    "read the same within 0.04 dB": (f"{REFERENCE}test_phonometry.py::test_levels_are_phonometrys"),
    "middle of a class, within 0.05 dB": f"{PERCENTILES}::test_long_rows_are_within_half_a_class",
    "its density within 0.3 dB": f"{PERCENTILES}::test_the_floor_is_that_of_the_noise",
}

LEVELS = {
    "the correction is within 0.05 dB": (
        f"{UNIT}measure/test_equalizer.py::test_the_gain_is_the_inverse_of_the_response_where_it_is_known"
    ),
    "for 6 dB within 1 Hz": (
        f"{UNIT}measure/test_equalizer.py::test_a_table_that_is_too_steep_states_its_error"
    ),
    "within 0.01 dB of the curve": f"{FILTERS}::test_table_3",
    "768 kHz within 0.002 dB": f"{FILTERS}::test_any_rate",
    "white noise is within 0.01 dB": f"{METER}::test_weighted_white_noise_is_that_of_the_curve",
    "maximum and exposure within 0.2 dB": f"{FILTERS}::test_table_4",
    "within 0.1 dB of 10 lg": f"{FILTERS}::test_impulse_weighting",
    "within 0.15 dB of its table": f"{FILTERS}::test_impulse_weighting",
    "all at 48 kHz, within 0.15 dB": f"{METER}::test_peak_c_between_samples",
    "all within 0.1 LU": f"{LOUDNESS}::test_3341_case_10",
    "all within +0.1 and -0.3 dB": f"{LOUDNESS}::test_3341_cases_15_to_19",
    "all within 1 LU": f"{LOUDNESS}::test_3342_cases_1_to_4",
    "within 0.002 LU": f"{PROGRAMS}::test_noise_by_pyloudnorm",
    "within 0.02 LU and 0.1 dB": f"{PROGRAMS}::test_noise",
    "an hour | within 0.01 dB": f"{METER}::test_an_hour_against_scipy",
    "the same within 0.001 LU": f"{LOUDNESS}::test_silence_after_a_programme",
    "each second within 0.5 LU": f"{LOUDNESS}::test_silence_after_a_programme",
}
BY_HAND = {"its resolution of 0.1": "another program, compared once by hand, as the page says"}


@pytest.mark.parametrize(
    ("page", "bounds"), [("measurement.md", MEASUREMENT), ("levels.md", LEVELS)]
)
def test_each_stated_bound_has_a_test(page, bounds):
    """Every "within N" of the page is in the table, and every row of the table is on the page."""
    text = " ".join((ROOT / "docs" / page).read_text("utf-8").split())
    known = {**bounds, **(BY_HAND if page == "levels.md" else {})}
    assert [one for one in known if one not in text] == []
    spans = [
        (found.start(), found.end())
        for phrase in known
        for found in re.finditer(re.escape(phrase), text)
    ]
    missing = [
        text[max(0, found.start() - 60) : found.end() + 30]
        for found in BOUND.finditer(text)
        if not any(first < found.end() and found.start() < stop for first, stop in spans)
    ]
    assert missing == []


@pytest.mark.parametrize("name", sorted({*MEASUREMENT.values(), *LEVELS.values()}))
def test_the_tests_exist(name):
    """Each test that is named is there."""
    path, function = name.split("::")
    assert f"\ndef {function}(" in (ROOT / path).read_text("utf-8")
