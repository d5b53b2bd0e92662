"""Settings of recordings: what is accepted, and the error of what is not."""

import contextlib
import re
import tomllib

import pytest

from spectrod.config import config
from spectrod.config.settings import RecordingConfig
from spectrod.lib.errors import ConfigError

TOML = """
[sources.pond]
uri = "signal:sine,1000,-20"

[sources.roof]
uri = "signal:sine,1000,-20"

[products.levels]
sources = ["roof"]
bands = "octave"
averaging = "mean"
rate_hz = 1.0

[recordings.night]
sources = ["roof"]
product = "levels"
schedule = ["Mon-Fri 22:00-04:00"]
triggers = ["level", "control"]
pre_roll_s = 5
attributes = { title = "Roof", "a b" = "\\u007f \\"x\\"" }
"""


def load(tmp_path, text, **flags):
    file = tmp_path / "c.toml"
    file.write_text(text)
    return config.load(str(file), flags)


def test_recordings_survive_toml_and_name_their_changes(tmp_path):
    """Recordings survive TOML, and each changed key is listed as live."""
    loaded = load(tmp_path, TOML)
    (night,) = loaded.recordings
    assert (night.name, night.pre_roll_s, night.attributes["title"]) == ("night", 5.0, "Roof")
    assert night.attributes["a b"] == '\x7f "x"'
    assert load(tmp_path, config.to_toml(loaded)) == loaded
    changes = {"recordings.night.keep_days": "30", "recordings.all": {"samples": "flac"}}
    new = config.with_changes(loaded, changes, "set")
    assert [one.name for one in new.recordings] == ["night", "all"]
    assert config.changed_keys(loaded, new) == ["recordings.night.keep_days", "recordings.all"]
    assert all(config.is_live(key) for key in config.changed_keys(loaded, new))
    assert config.with_changes(new, {"recordings.night": None}, "set").recordings[0].name == "all"


def test_every_key_is_described_where_the_defaults_are():
    """Every key is documented beside the defaults with its default value."""
    text = config.default_toml().partition("# [recordings.night]")[2].partition("[engine]")[0]
    night = RecordingConfig("night")
    for key in RecordingConfig.__struct_fields__[1:]:
        (line,) = [one for one in text.splitlines() if one.startswith(f"# {key} = ")]
        if key not in ("sources", "attributes"):
            value = load_value(line.removeprefix("# "))
            assert value == getattr(night, key) or list(value) == list(getattr(night, key))


def load_value(line):
    (value,) = tomllib.loads(line).values()
    return value


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            "sources = ['x']",
            "recordings.a: sources='x': is no source's name; there are: pond, roof",
        ),
        (
            "product = 'levels'",
            "recordings.a: product='levels': pond has no such product; there are: dbfs",
        ),
        ("fsync_s = 0", "recordings.a.fsync_s=0: must be a number from 0.1 to 3600"),
        ("when_full = 'x'", "recordings.a.when_full='x': must be one of stop, delete"),
        ("must_be_mounted = 'srv'", "must_be_mounted='srv': must be an absolute path without .."),
        (
            "folder = '/srv/../x'\nmust_be_mounted = '/srv/..'",
            "must_be_mounted='/srv/..': must be an absolute path without ..",
        ),
        (
            "folder = '/srv/recordings'\nmust_be_mounted = '/mnt'",
            "must_be_mounted='/mnt': must be folder='/srv/recordings', or a folder above it",
        ),
        (
            "must_be_mounted = '/var/lib'",
            "must_be_mounted='/var/lib': must be folder='', or a folder above it",
        ),
        ("sample = 'wav'", "recordings.a.sample: unknown key; [recordings.a] knows sources, "),
        ("file_name = 'a/b'", "recordings.a: file_name='a/b': makes 'a/b'; must make 1 to 100 of "),
        ("file_name = '.x'", "file_name='.x'"),
        ("file_name = ''", "file_name=''"),
        ('file_name = "a\\u0000b"', "file_name='a\\x00b': makes 'a\\x00b'; must make 1 to 100 of"),
        ("file_name = '%_I%y'", "file_name='%_I%y': makes '%_I00'; must make 1 to 100 of A-Z a-z "),
        ("file_name = '%e'", "the first a letter or digit, with no codes but %A %B %C %F %G %H "),
        (
            "spectra = false",
            "spectra=false: must be true where neither samples nor pyramid is; true",
        ),
        (
            "values = 'meter'",
            "values='meter': must be csv or nc, a form of files; product names what they hold",
        ),
        ("pre_roll_s = 1", "recordings.a: pre_roll_s=1: must be 0 without triggers"),
        ("post_roll_s = 1.5", "recordings.a: post_roll_s=1.5: must be 0 without triggers"),
        ("on_s = 1", "recordings.a: on_s=1, off_s=0: must both be 0, or neither"),
        ("schedule = ['x']", "recordings.a: schedule='x': must be HH:MM-HH:MM in UTC"),
    ],
)
def test_bad_recordings_are_one_clear_error(tmp_path, keys, message):
    """An error names the table, the key, the value and the rule."""
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, TOML + f"\n[recordings.a]\n{keys}\n")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


_STRFTIME = "".join(chr(code) for code in range(33, 127))
_FLAGS = ("", "_", "-", "0", "^", "#", "E", "O", "5", "_9")


@pytest.mark.slow
@pytest.mark.parametrize("flag", _FLAGS)
def test_a_pattern_that_is_taken_makes_a_safe_name_at_any_time(flag):
    """An accepted pattern never gives a space, slash, colon or leading dot at any time."""
    safe = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")
    accepted = []
    for code in _STRFTIME:
        recording = RecordingConfig("a", file_name=f"x%{flag}{code}")
        with contextlib.suppress(ConfigError):
            recording.check()
            accepted.append(code)
    # All hours and days of a year, and all years in the range of 64 bits of nanoseconds.
    times_s = [*range(0, 366 * 86400, 3599), *range(-9 * 10**9, 9 * 10**9, 10**7 + 7)]
    for code in accepted:
        recording = RecordingConfig("a", file_name=f"x%{flag}{code}")
        assert all(safe.fullmatch(recording.file_stem(time_s * 10**9)) for time_s in times_s), code
    assert len(accepted) == (0 if flag else 26)


@pytest.mark.parametrize(
    ("file_name", "is_taken"),
    [("%A" * 11, True), ("%A" * 11 + "x", True), ("%A" * 11 + "xx", False), ("%z", False)],
)
def test_the_longest_name_counts(file_name, is_taken):
    """The limit applies to the longest name of a pattern, whose length depends on the day."""
    recording = RecordingConfig("a", file_name=file_name)
    if is_taken:
        recording.check()
    else:
        with pytest.raises(ConfigError, match="must make 1 to 100 of A-Z a-z 0-9"):
            recording.check()


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ('[recordings.".."]', "recordings: name='..': must not be dots alone, since recordings"),
        ('[recordings."."]', "recordings: name='.': must not be dots alone"),
        ("[recordings.Night]", "recordings: names 'night' and 'Night': must differ in more than"),
        ('[recordings."night."]', "recordings: names 'night' and 'night.': must differ in more"),
        ('[sources."..."]\nuri = "signal:sine,1000,-20"', "sources: name='...': must not be dots"),
        ('[sources.POND]\nuri = "signal:sine,1000,-20"', "sources: names 'pond' and 'POND': must"),
    ],
)
def test_two_recordings_or_sources_never_have_one_folder(tmp_path, tables, message):
    """Folders of recordings and sources differ, also on FAT, and ``..`` is refused."""
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, f"{TOML}\n{tables}\n")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_names_of_sources_without_recordings_are_only_for_topics(tmp_path):
    """Names of sources without recordings may differ in case alone."""
    text = "\n".join(f'[sources."{name}"]\nuri = "signal:white,-20"' for name in ("a", "A", ".."))
    assert [one.name for one in load(tmp_path, text).all_sources] == ["a", "A", ".."]


def test_recordings_of_sources_that_are_replaced_go_with_them(tmp_path):
    """A source on the command line gets only recordings that apply to all sources."""
    notes = []
    file = tmp_path / "c.toml"
    file.write_text(TOML + "\n[recordings.all]\n")
    loaded = config.load(str(file), {"source": {"uri": "signal:white,-20"}}, notes.append)
    assert [one.name for one in loaded.recordings] == ["all"]
    assert "command line: [recordings.night] of the file goes with them" in notes
