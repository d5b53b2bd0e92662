"""Where sources are: keys of their tables, and the attributes of recordings of them."""

import re

import pytest

from spectrod.config import config
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.errors import SettingsError
from spectrod.lib.site import Site
from spectrod.recording.configured import recorded_of

SITE = "latitude = -54.5\nlongitude = 8\ndepth_m = 12.5\nplatform = 'mooring'\n"


def load(tmp_path, text):
    path = tmp_path / "spectrod.toml"
    path.write_text(text, "utf-8")
    return config.load(str(path))


@pytest.mark.parametrize("section", ["source", "sources.pond"])
def test_a_source_has_a_site(tmp_path, section):
    """A source alone and one of several have the keys of deployments, which TOML carries on."""
    loaded = load(tmp_path, f"[{section}]\nuri = 'signal:pink'\n{SITE}")
    (source,) = loaded.all_sources
    assert source.site == Site(-54.5, 8.0, 12.5, None, "mooring")
    assert load(tmp_path, config.to_toml(loaded)) == loaded


def test_a_source_that_says_nothing_has_no_attributes(tmp_path):
    """Without keys there is no place, and none in TOML."""
    loaded = load(tmp_path, "")
    assert loaded.source.site.attributes == {}
    assert "latitude" not in config.to_toml(loaded)


@pytest.mark.parametrize("section", ["source", "sources.pond"])
def test_a_source_has_a_time_zone(tmp_path, section):
    """A source alone and one of several have it, which TOML carries on; without it none."""
    loaded = load(tmp_path, f"[{section}]\nuri = 'signal:pink'\ntime_zone = 'Asia/Kolkata'\n")
    (source,) = loaded.all_sources
    assert source.time_zone == "Asia/Kolkata"
    assert load(tmp_path, config.to_toml(loaded)) == loaded
    assert not load(tmp_path, "").source.time_zone


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("time_zone = 'Mars/Base'", "time_zone='Mars/Base': there is no such time zone on this"),
        ("time_zone = '../UTC'", "time_zone='../UTC': there is no such time zone on this machine"),
        (f"time_zone = '{'x' * 65}'", "x': must be a string of at most 64 characters"),
        ("time_zone = 2", "source.time_zone=2: must be a string of at most 64 characters, not"),
        ("latitude = inf", "source.latitude=inf: must be a number from -90 to 90"),
        ("longitude = nan", "source.longitude=nan: must be a number from -180 to 180"),
        ("latitude = 90.5", "source.latitude=90.5: must be a number from -90 to 90"),
        ("depth_m = -1", "source.depth_m=-1: must be a number from 0 to 12000"),
        ("height_m = '1'", "source.height_m='1': must be a number from 0 to 100000, not a string"),
        (f"platform = '{'x' * 201}'", "x...: must be a string of at most 200 characters"),
        ("latitude = 3", "latitude=3: needs longitude"),
        ("longitude = 3", "longitude=3: needs latitude"),
        ("depth_m = 1\nheight_m = 2", "depth_m=1: must not be beside height_m=2"),
    ],
)
def test_sites_and_zones_that_cannot_be_are_one_error(tmp_path, keys, message):
    """Each names the place in the file, the value and the rule."""
    with pytest.raises(SettingsError, match=re.escape(message)) as caught:
        load(tmp_path, f"[source]\n{keys}\n")
    assert str(caught.value).count("\n") == 0
    assert "spectrod.toml:2:1: " in str(caught.value)


def test_recordings_have_the_site_of_their_source(tmp_path):
    """The source's place replaces what the recording says of the same name, as in batch."""
    (table,) = load(tmp_path, f"[source]\nname = 'pond'\n{SITE}").all_sources
    recorded = recorded_of("pond", lambda: table, SpectrumSpec(48_000.0, 1))
    about = recorded.describe(recorded.spec, {"platform": "ship", "title": "Pond"}, "night")
    assert about.attributes == {"title": "Pond", **table.site.attributes}
    assert about.attributes["platform"] == "mooring"
    assert about.attributes["geospatial_lat_min"] == "-54.5"


def test_recordings_have_the_time_zone_of_their_source(tmp_path, monkeypatch):
    """Its name in the database, which is read elsewhere; a source without one states none."""
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    spec = SpectrumSpec(48_000.0, 1)
    for said, stated in (("local", "Asia/Kolkata"), ("Pacific/Apia", "Pacific/Apia"), ("", None)):
        (table,) = load(tmp_path, f"[source]\nname = 'pond'\ntime_zone = '{said}'\n").all_sources
        about = recorded_of("pond", lambda one=table: one, spec).describe(spec)
        assert about.attributes.get("time_zone") == stated
        assert len(about.attributes) == (stated is not None)
