"""Flags of the settings of measurements: all of them, their defaults, values and errors."""

import re
from typing import get_args, get_origin

import msgspec
import pytest

from spectrod.apps.measurements.setting_flags import given_settings
from spectrod.cli import main, whole_parser
from spectrod.config import config
from spectrod.lib.errors import ConfigError
from spectrod.measure.kinds import KINDS

PARSER = whole_parser()
COMMANDS = next(action.choices for action in PARSER._actions if action.dest == "command")
OF_A_DAEMON = {"name", "sources"}
"""Settings of several products of several sources; a command measures one of one source."""
SECOND = {"low_hz": "high_hz", "f_min_hz": "f_max_hz"}
"""Settings whose flags take the value of another one as well."""


def settings_of(word):
    """Return the type of each setting of a kind, without its notes."""
    fields = [one for one in msgspec.structs.fields(KINDS[word]) if one.name not in OF_A_DAEMON]
    return {one.name: bare(one.type) for one in fields}


def bare(type_):
    return bare(get_args(type_)[0]) if hasattr(type_, "__metadata__") else type_


def example(type_):
    """Return a value of a type that is in the range of every setting, as text and itself."""
    if get_origin(type_) is tuple:
        text, value = example(bare(get_args(type_)[0]))
        return f"{text},{text}", (value, value)
    found = {int: ("7", 7), float: ("0.5", 0.5), str: ("x", "x")}
    return found.get(type_) or (get_args(type_)[-1], get_args(type_)[-1])


@pytest.mark.parametrize("word", KINDS)
def test_each_setting_of_each_kind_has_a_flag(word):
    """A command takes each setting of its kind of measurement, so a new one appears by itself."""
    settings = {key: example(type_) for key, type_ in settings_of(word).items()}
    words = [word, "a.wav"]
    for action in COMMANDS[word]._actions:
        _, is_setting, key = action.dest.partition("measurement.")
        if is_setting:
            words += [action.option_strings[0], settings[key][0]]
            words += [settings[SECOND[key]][0]] if key in SECOND else []
    given = given_settings(PARSER.parse_args(words), KINDS[word])
    assert given == {key: value for key, (_, value) in settings.items()}


@pytest.mark.parametrize("word", KINDS)
def test_flags_that_are_not_given_leave_the_defaults(word):
    """Without flags, no setting is given."""
    assert given_settings(PARSER.parse_args([word, "a.wav"]), KINDS[word]) == {}


@pytest.mark.parametrize(
    ("word", "texts"),
    [
        ("levels", ["(LAeq,LAFmax)", "00:01:30 (1s)", "band (20 20k)", "bands as well: octave,"]),
        ("features", ["(centroid,spread,rolloff,flatness,entropy,flux)", "samples (4096)"]),
        ("tones", ["NAME (blackmanharris)", "up to 32768; of intervals 8192", "floor (13)"]),
        ("transfer", ["several (1)", "relative_sd (none)", "--averaging {mean,exponential}"]),
    ],
)
def test_help_has_the_defaults_of_the_settings(word, texts, capsys):
    """Defaults, choices and names in help texts are those of the settings."""
    with pytest.raises(SystemExit):
        main([word, "--help-all"])
    found = " ".join(capsys.readouterr().out.split())
    assert [text for text in texts if text not in found] == []


@pytest.mark.parametrize(
    ("word", "flag", "key", "value"),
    [
        ("tones", "--max-tracks", "max_tracks", "0"),
        ("tones", "--threshold", "threshold_db", "300"),
        ("tones", "--band", "low_hz", "-1"),
        ("transfer", "--delay-samples", "delay_samples", "99999"),
        ("features", "--hop", "hop", "-7"),
    ],
)
def test_a_range_has_one_rule_in_a_file_and_as_a_flag(word, flag, key, value, tmp_path):
    """A value out of its range breaks the same rule, in the same words, as one in a file."""
    (tmp_path / "c.toml").write_text(f"[{word}.a]\n{key} = {value}\n")
    with pytest.raises(ConfigError) as in_file:
        config.check_file(str(tmp_path / "c.toml"))
    rule = str(in_file.value).partition(f"{key}={value}: ")[2]
    assert rule.startswith("must be a")
    words = [word, "a.wav", flag, value, *(["1"] if flag == "--band" else [])]
    with pytest.raises(ConfigError, match=rf"^{flag}=.*{value}.*: {re.escape(rule)}$"):
        given_settings(PARSER.parse_args(words), KINDS[word])


def test_lists_and_numbers_as_text():
    """Blanks around names do not count; whole numbers may be powers, frequencies have units."""
    words = ["--quantity", "ACI, NDSI", "--win-length", "2^10", "--band", "100", "3k"]
    given = given_settings(PARSER.parse_args(["features", "a.wav", *words]), KINDS["features"])
    assert given == {
        "quantities": ("ACI", "NDSI"),
        "win_length": 1024,
        "low_hz": 100.0,
        "high_hz": 3000.0,
    }
