"""Names of levels by CF and ISO 18405."""

import pytest

from spectrod.dsp.level_reference import parse_reference
from spectrod.dsp.level_terms import level_terms
from spectrod.lib.errors import ConfigError
from spectrod.measure.levels.level_quantities import parse_quantity

AIR, WATER, VOLT = map(parse_reference, ("20 uPa", "1 uPa", "1 V"))
IN_WATER = {
    "standard_name": "sound_pressure_level_in_water",
    "units": "0.1 lg(re 1 uPa2)",
}


def test_levels_in_water_have_the_terms_of_iso_18405():
    """Pressure levels have CF's name, exposure and peak levels the term alone."""
    found = {name: level_terms(name, [WATER] * 2) for name in ("LZeq", "LZF10")}
    long_name = "sound pressure level LZeq in dB re 1 uPa"
    method = {"cell_methods": "time: mean (of power)"}
    assert found["LZeq"] == IN_WATER | method | {"long_name": long_name}
    assert found["LZF10"] == IN_WATER | {"long_name": long_name.replace("LZeq", "LZF10")}
    assert level_terms("LZE", [WATER]) == {
        "long_name": "sound exposure level LZE in dB re (1 uPa)^2 s"
    }
    assert level_terms("LZpeak", [WATER]) == {
        "long_name": "zero-to-peak sound pressure level LZpeak in dB re 1 uPa"
    }


@pytest.mark.parametrize(
    ("name", "references"),
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
        ("LZeq", []),
    ],
)
def test_other_values_have_none(name, references):
    """Weighted levels, values of samples, other references and mixed ones have no such name."""
    assert level_terms(name, references) == {}


@pytest.mark.parametrize("name", ["LZFmax10", "LZF0", "LZ", "LZeqx", "LZeq\n", "x" * 10_000])
def test_names_of_no_quantity_have_none(name):
    """They may come from a peer; the names are those that a setting may have."""
    assert level_terms(name, [AIR]) == {}
    with pytest.raises(ConfigError, match="quantity="):
        parse_quantity(name)
