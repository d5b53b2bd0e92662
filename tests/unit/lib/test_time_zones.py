"""Time zones by name, the machine's own zone, and offsets."""

import datetime as dt
from zoneinfo import ZoneInfo

import pytest

from spectrod.lib import time_zones
from spectrod.lib.errors import ConfigError
from spectrod.lib.time_zones import (
    find_zone,
    is_known_zone,
    offset_s,
    offset_text,
    shown_zone,
    unknown_zone,
    zone_attribute,
    zone_name,
)

NS = 10**9


@pytest.mark.parametrize(
    ("name", "key"), [("", "UTC"), ("UTC", "UTC"), ("Asia/Kathmandu", "Asia/Kathmandu")]
)
def test_zones_by_name(name, key):
    """A zone has its name of the database; no name is UTC."""
    assert find_zone(name).key == key
    assert zone_name(name) == (key if name else "")


@pytest.mark.parametrize("name", ["Mars", "Europe", "../etc/passwd", "/etc/localtime", "a" * 5000])
def test_unknown_zones_are_refused(name):
    """What is no zone of the database is one error: folders and other files too."""
    with pytest.raises(ConfigError, match="there is no such time zone on this machine") as caught:
        find_zone(name)
    assert caught.value.keys == ("time_zone",)


@pytest.mark.parametrize(
    "name",
    [
        *("Mars", "Europe", "", "../UTC", "/etc/localtime", "a" * 65, "local"),
        *("a\0b", "\ud800", "\x1b[1m"),
    ],
)
def test_zones_that_others_state_may_be_unknown(name):
    """Whatever a file or a peer says is known or not; "local" is where it was written."""
    assert not is_known_zone(name)
    said = unknown_zone(name)
    assert said.endswith("': there is no such time zone on this machine; it is ignored")
    assert len(said) < 150
    assert said.isprintable()


def test_a_zone_that_is_known_is_an_attribute(monkeypatch):
    """Recordings name the zone of the database, and say nothing without one."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert is_known_zone("Asia/Tokyo")
    assert zone_attribute("local") == zone_attribute("Asia/Tokyo") == {"time_zone": "Asia/Tokyo"}
    assert zone_attribute("") == {}
    with pytest.raises(ConfigError, match="time_zone='Mars': there is no such time zone"):
        zone_attribute("Mars")


@pytest.mark.parametrize(
    ("given", "key"),
    [("Europe/Berlin", "Europe/Berlin"), (":Asia/Tokyo", "Asia/Tokyo"), ("", "UTC")],
)
def test_the_environment_names_the_local_zone(monkeypatch, given, key):
    """$TZ counts before the machine's own zone; empty it is UTC."""
    monkeypatch.setenv("TZ", given)
    assert zone_name("local") == key


def test_a_rule_in_the_environment_is_no_name(monkeypatch):
    """A zone of POSIX has no name that files could give."""
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    with pytest.raises(ConfigError, match=r"time_zone='CET-1CEST,.*': there is no such time zone"):
        find_zone("local")


def test_the_machine_names_its_zone_by_a_link(monkeypatch, tmp_path):
    """The link to the database has the name; without a file the zone is UTC."""
    monkeypatch.delenv("TZ", raising=False)
    place = tmp_path / "zoneinfo" / "Europe" / "Berlin"
    place.parent.mkdir(parents=True)
    place.touch()
    link = tmp_path / "localtime"
    monkeypatch.setattr(time_zones, "_LOCALTIME", link)
    assert zone_name("local") == "UTC"
    link.symlink_to(place)
    assert zone_name("local") == "Europe/Berlin"


def test_a_copy_names_no_zone(monkeypatch, tmp_path):
    """A file that links nowhere has no name, and the error says what to do."""
    monkeypatch.delenv("TZ", raising=False)
    copy = tmp_path / "localtime"
    copy.touch()
    monkeypatch.setattr(time_zones, "_LOCALTIME", copy)
    with pytest.raises(ConfigError, match=r"does not name a zone; give one, as Europe/Berlin"):
        find_zone("local")


@pytest.mark.parametrize(
    ("zone", "text"),
    [
        ("UTC", "+00:00"),
        ("Europe/Berlin", "+02:00"),
        ("Asia/Kathmandu", "+05:45"),
        ("America/St_Johns", "-02:30"),
        ("Pacific/Marquesas", "-09:30"),
    ],
)
def test_offsets(zone, text):
    """Offsets are those of the date, and their text is that of ISO 8601."""
    summer = dt.datetime(2026, 7, 1, tzinfo=dt.UTC)
    utc_ns = round(summer.timestamp()) * NS + 999_999_999
    seconds = offset_s(utc_ns, ZoneInfo(zone))
    assert offset_text(seconds) == text == summer.astimezone(ZoneInfo(zone)).isoformat()[-6:]


def test_offsets_before_there_were_zones_have_seconds():
    """Local mean time of Berlin is 53 min 28 s before UTC."""
    utc_ns = round(dt.datetime(1880, 1, 1, tzinfo=dt.UTC).timestamp()) * NS
    assert offset_text(offset_s(utc_ns, ZoneInfo("Europe/Berlin"))) == "+00:53:28"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Etc/GMT-2", "UTC+02:00"),
        ("Etc/GMT+11", "UTC-11:00"),
        ("Etc/GMT", "Etc/GMT"),
        ("Europe/Berlin", "Europe/Berlin"),
        ("", ""),
    ],
)
def test_zones_as_people_read_them(name, shown):
    """The sign of Etc/GMT-2 is that of the west, which nobody expects."""
    assert shown_zone(name) == shown
