import math

import pytest

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.formats.picture.render import PictureOptions
from spectrod.lib.errors import ConfigError

SPEC = SpectrumSpec(fs=48000.0)


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ({"width": 199}, r"width=199: must be 200 to 8000 pixels, from 1 on .* \(raw\)"),
        ({"width": 0, "raw": True}, "width=0: must be 200 to 8000 pixels, from 1 on"),
        ({"width": 8001, "raw": True}, "width=8001: must be 200 to 8000 pixels"),
        ({"height": -1, "raw": True}, r"height=-1: must be 0 \(automatic\) or 50 to 8000"),
        ({"height": 8001, "raw": True}, r"height=8001: must be 0 \(automatic\) or 50 to 8000"),
        ({"width": 8001}, "width=8001: must be"),
        ({"height": 49}, r"height=49: must be 0 .* 50 to 8000 pixels, from 1 on .* \(raw\)"),
        ({"f_scale": "cent"}, "f_scale='cent': must be one of linear, log, mel, octave, bark, erb"),
        ({"time_axis": "local"}, "time_axis='local': must be one of elapsed, utc"),
        ({"theme": "pink"}, "theme='pink': must be one of light, dark"),
        ({"levels": (-20.0, -80.0)}, "levels=-20,-80: must be two numbers of dB, lower first"),
        ({"levels": (-20.0, -20.0)}, "levels=-20,-20"),
        ({"levels": (-math.inf, 0.0)}, "levels=-inf,0"),
        ({"levels": (math.nan, 0.0)}, "levels=nan,0"),
        ({"levels": (0.0, math.nan)}, "levels=0,nan"),
        ({"levels": (-1e300, 0.0)}, r"levels=-1e\+300,0: .* within -1000 to 1000"),
        ({"levels": (0.0, 1e-9)}, "levels=0,1e-09: must be .* 0.01 or more apart"),
        ({"colormap": "jet"}, "colormap='jet'"),
        ({"channels_as": "pages"}, "channels_as='pages': must be one of rows, files"),
        ({"percentiles": (5.0, 101.0)}, "percentiles=5,101: must be .* within 0 to 100"),
        ({"percentiles": (50.0, 50.0)}, "percentiles=50,50: must be two .* lower first"),
        ({"percentiles": (math.nan, 50.0)}, "percentiles=nan,50"),
        ({"dynamic_range_db": 0.5}, "dynamic_range_db=0.5: must be 1 to 300 dB"),
        ({"dynamic_range_db": math.nan}, "dynamic_range_db=nan: must be"),
        (
            {"dynamic_range_db": 60.0, "levels": (-60.0, 0.0)},
            "dynamic_range_db=60.0: not together with levels",
        ),
        (
            {"percentiles": (1.0, 99.0), "levels": (-60.0, 0.0)},
            "percentiles=.*: not together with levels",
        ),
        ({"strips": ("sonogram",)}, "strips=sonogram: must be waveform and level, or one of"),
        ({"strips": ("level", "level")}, "strips=level,level: must be"),
        ({"strips": ("level",), "raw": True}, "strips=level: a raw picture has none"),
    ],
)
def test_bad_options_name_value_and_rule(setting, text):
    """Each broken rule is one error with the option, its value and the rule."""
    with pytest.raises(ConfigError, match=text):
        PictureOptions(**setting)


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ({"f_max": 24001.0}, "f_max=24001: must be 0.024 to 24000 Hz"),
        ({"f_max": 0.0}, "f_max=0: must be"),
        ({"f_max": 1e-300}, "f_max=1e-300: must be"),
        ({"f_max": math.nan}, "f_max=nan: must be"),
        ({"f_min": -1.0}, "f_min=-1: must be at least 0 and 0.024 Hz below f_max"),
        ({"f_min": math.nan}, "f_min=nan: must be"),
        ({"f_min": 23999.999}, "f_min=23999.999: must be at least 0 and 0.024 Hz below f_max"),
        ({"f_min": 500.0, "f_max": 500.0}, r"f_min=500: must be .* below f_max \(500 Hz\)"),
        ({"f_min": 0.0, "f_scale": "log"}, "f_min=0: must be at least 0.024 Hz on a log"),
        ({"f_min": 1e-300, "f_scale": "log"}, "f_min=1e-300: must be at least 0.024 Hz on a log"),
        ({"f_min": 0.0, "f_scale": "octave"}, "f_min=0: must be at least 0.024 Hz on a log"),
    ],
)
def test_bad_frequencies_name_value_and_rule(setting, text):
    """Frequency limits are checked against each other and the sample rate."""
    with pytest.raises(ConfigError, match=text):
        PictureOptions(**setting).frequency_axis(SPEC)


@pytest.mark.parametrize(
    ("scale", "fs", "f_min"),
    [
        ("linear", 48000.0, 0.0),
        ("mel", 48000.0, 0.0),
        ("bark", 48000.0, 0.0),
        ("erb", 44100.0, 0.0),
        ("octave", 48000.0, 20.0),
        ("log", 48000.0, 20.0),
        ("log", 44100.0, 20.0),
        ("log", 8000.0, 2.0),
        ("log", 1.0e6, 500.0),
    ],
)
def test_default_frequencies(scale, fs, f_min):
    """The default axis ends at Nyquist; a logarithmic one starts about three decades below."""
    axis = PictureOptions(f_scale=scale).frequency_axis(SpectrumSpec(fs=fs, win_length=8192))
    assert (axis.lo_hz, axis.hi_hz) == (f_min, fs / 2.0)


def test_two_sided_spectra_have_negative_frequencies():
    """The axis of I/Q signals is linear from minus to plus half the sample rate."""
    spec = SpectrumSpec(fs=8000.0, channels=2, iq=True)
    axis = PictureOptions().frequency_axis(spec)
    assert (axis.lo_hz, axis.hi_hz) == (-4000.0, 4000.0)
    assert PictureOptions(f_min=-500.0, f_max=-100.0).frequency_axis(spec).hi_hz == -100.0
    with pytest.raises(ConfigError, match="f_scale='mel': must be 'linear' of I/Q spectra"):
        PictureOptions(f_scale="mel").frequency_axis(spec)
    with pytest.raises(ConfigError, match=r"f_min=-4001: must be at least -4000 and"):
        PictureOptions(f_min=-4001.0).frequency_axis(spec)


@pytest.mark.parametrize("f_scale", ["linear", "log", "octave"])
def test_bands_fill_their_axis(f_scale):
    """The default axis of bands reaches from the first band's edge to the last band's."""
    spec = SpectrumSpec(fs=48000.0, win_length=8192, bands="third-octave")
    axis = PictureOptions(f_scale=f_scale).frequency_axis(spec)
    assert axis.lo_hz == spec.band_table.lower[0]
    assert axis.hi_hz == spec.band_table.upper[-1]


def test_channels_are_numbered_or_named():
    """Channels have their numbers or names, and there must be as many names as channels."""
    assert PictureOptions().names(3) == ("channel 0", "channel 1", "channel 2")
    assert PictureOptions(signals=("left", "right")).names(2) == ("left", "right")
    with pytest.raises(ConfigError, match="signals=a,b: must be as many names as channels, 1"):
        PictureOptions(signals=("a", "b")).names(1)


def test_a_logarithmic_axis_starts_at_the_first_bin():
    """A logarithmic axis starts at the first bin or above."""
    axis = PictureOptions(f_scale="log").frequency_axis(SpectrumSpec(fs=48000.0, win_length=64))
    assert axis.lo_hz == 750.0


def test_height_depends_on_channels():
    """Several channels share the page's height unless it is given."""
    assert PictureOptions().height_for(1) > PictureOptions().height_for(2)
    assert PictureOptions(height=300).height_for(2) == 300


def test_a_picture_has_a_largest_size():
    """A picture too large for most programs is refused before recording."""
    with pytest.raises(ConfigError, match=r"width=8000, height=8000, channels=2: must not exceed"):
        PictureOptions(width=8000, height=8000).height_for(2)
