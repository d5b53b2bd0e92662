"""Names of levels by CF and ISO 18405."""

import pytest

from spectrod.dsp.calibration import ChannelCalibration
from spectrod.dsp.calibration.level_reference import parse_reference
from spectrod.formats.values.level_terms import level_terms
from spectrod.measure.levels.level_quantities import parse_quantity

AIR, WATER, VOLT = (
    ChannelCalibration(parse_reference(text), 120.0) for text in ("20 uPa", "1 uPa", "1 V")
)
IN_WATER = {
    "standard_name": "sound_pressure_level_in_water",
    "units": "0.1 lg(re 1 uPa2)",
}


def test_levels_in_water_have_the_terms_of_iso_18405():
    """Pressure levels have CF's name, exposure and peak levels the term alone."""
    found = {name: level_terms(parse_quantity(name), [WATER] * 2) for name in ("LZeq", "LZF10")}
    long_name = "sound pressure level LZeq in dB re 1 uPa"
    method = {"cell_methods": "time: mean (of power)"}
    assert found["LZeq"] == IN_WATER | method | {"long_name": long_name}
    assert found["LZF10"] == IN_WATER | {"long_name": long_name.replace("LZeq", "LZF10")}
    assert level_terms(parse_quantity("LZE"), [WATER]) == {
        "long_name": "sound exposure level LZE in dB re (1 uPa)^2 s"
    }
    assert level_terms(parse_quantity("LZpeak"), [WATER]) == {
        "long_name": "zero-to-peak sound pressure level LZpeak in dB re 1 uPa"
    }


@pytest.mark.parametrize(
    ("name", "calibrations"),
    [
        ("LAeq", [AIR]),
        ("L10", [WATER]),
        ("rms", [AIR]),
        ("LUFS_I", [AIR]),
        ("LZpeak", [AIR]),
        ("LZeq", [None]),
        ("LZeq", [VOLT]),
        ("LZeq", [AIR, WATER]),
        ("LZeq", [AIR, None]),
    ],
)
def test_other_values_have_none(name, calibrations):
    """Weighted levels, values of samples, other references and mixed ones have no such name."""
    assert level_terms(parse_quantity(name), calibrations) == {}
