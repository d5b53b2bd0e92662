"""Every mistake of a configuration file is named at once, at its place."""

import datetime as dt
import os
import random
import re
from pathlib import Path
from typing import Annotated, Literal, get_args, get_origin

import pytest
from msgspec import inspect

from spectrod.cli import main
from spectrod.cli.daemon_rules import daemon_rules, start_rules
from spectrod.config import config, config_files
from spectrod.config.layers import KEYS, NAMED, SECTIONS
from spectrod.config.values import shown
from spectrod.lib.errors import ConfigError, SettingsError

LINE = re.compile(r"spectrod: (?P<file>[^:]+):(?P<line>\d+):(?P<column>\d+): (?P<text>.+)")


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in list(os.environ):
        if name.startswith("SPECTROD_"):
            monkeypatch.delenv(name)


def errors(capsys, text, file="c.toml"):
    """Check a file; return (line, column, text) of each mistake."""
    Path(file).write_bytes(text if isinstance(text, bytes) else text.encode())
    assert main(["config", "check", file]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    found = [LINE.fullmatch(line) for line in captured.err.splitlines()]
    assert all(found), captured.err
    assert {one["file"] for one in found} == {file}
    return [(int(one["line"]), int(one["column"]), one["text"]) for one in found]


# ---- mistakes made from the schema

_TEXTS = {bool: "true", int: "7", float: "7.5", str: "'x y'", list: "[1979-05-27]", dict: "{z = 1}"}


def bare(type_):
    return get_args(type_)[0] if get_origin(type_) is Annotated else type_


def wrong_kind(rng, type_):
    """Return a value, as TOML, of a kind that a type does not accept."""
    origin = get_origin(bare(type_)) or bare(type_)
    kind = {tuple: list, Literal: str}.get(origin, origin)
    accepted = {kind, *([int] if kind is float else [])}
    return _TEXTS[rng.choice([one for one in _TEXTS if one not in accepted])]


def out_of_range(type_):
    """Return a value, as TOML, outside the range of a type; None if it has none."""
    info = inspect.type_info(type_)
    info = info.type if isinstance(info, inspect.Metadata) else info
    if isinstance(info, inspect.LiteralType):
        return "'nothing of these'"
    if isinstance(info, inspect.VarTupleType):
        return "[]" if info.min_length else out_of_range_item(type_)
    low = getattr(info, "ge", None) if getattr(info, "gt", None) is None else info.gt
    if low is not None:
        return str(low - 1)
    return None


def out_of_range_item(type_):
    item = out_of_range(get_args(bare(type_))[0])
    return None if item is None else f"[{item}]"


def misspelt(rng, key, known):
    """Return a key with a letter too many."""
    at = rng.randrange(len(key))
    name = key[:at] + key[at] + key[at:]
    return name if name not in known else f"{key}_"


def mistakes_of_the_schema(rng, n):
    """Return the lines of a file, and the key that each wrong line (from 1) must name."""
    lines, expected = [], {}
    tables = [(section, section, SECTIONS[section]) for section in SECTIONS if section != "source"]
    names = (f"{section}.t{k}" for k in range(1000) for section in NAMED)
    while len(expected) < n:
        if tables:
            header, section, types = tables.pop()
        else:
            header = next(names)
            section = header.partition(".")[0]
            types = KEYS[section]
        lines.append(f"[{header}]")
        for key in rng.sample(list(types), min(4, len(types))):
            kind = rng.choice(["kind", "range", "name"])
            value = out_of_range(types[key])
            if kind == "range" and value is not None:
                lines.append(f"{key} = {value}")
            elif kind == "name":
                lines.append(f"{misspelt(rng, key, types)} = 1")
            else:
                lines.append(f"{key} = {wrong_kind(rng, types[key])}  # and a comment")
            expected[len(lines)] = lines[-1].partition(" ")[0]
    return lines, expected


@pytest.mark.parametrize("seed", range(3))
def test_two_hundred_mistakes_are_named_in_one_run(capsys, seed):
    """Of mistakes of each kind, made from the schema, each is named with its line, and no other."""
    rng = random.Random(seed)  # noqa: S311 - repeatable
    lines, expected = mistakes_of_the_schema(rng, 200)
    lines += ["[analisys]", "hop = 1"]
    expected[len(lines) - 1] = "did you mean analysis?"
    found = errors(capsys, "\n".join(lines))
    by_line = {line: text for line, _, text in found}
    assert by_line.keys() == expected.keys()
    for line, key in expected.items():
        assert key in by_line[line], (lines[line - 1], by_line[line])
    for text in by_line.values():
        assert not re.search(r"Expected `|NoneType|\bstr\b|\bint\b|Traceback", text), text


@pytest.mark.parametrize(
    ("broken", "column", "rule"),
    [
        ("hop = nothing", 7, 'not valid TOML: Invalid value; a string needs quotes: "nothing"'),
        ("hop = 1\nhop = 2", 8, "not valid TOML: Cannot overwrite a value"),
        ("# caf\udce9", 6, "byte 0xe9: must be UTF-8"),
    ],
)
def test_the_first_mistake_of_syntax_is_named_alone(capsys, broken, column, rule):
    """A file that is not TOML has no settings: its first place is named, among other mistakes."""
    rng = random.Random(5)  # noqa: S311 - repeatable
    lines, _ = mistakes_of_the_schema(rng, 200)
    lines = [*lines[:90], "[broken]", broken, *lines[90:], "= 1"]
    text = "\n".join(lines).encode("utf-8", "surrogateescape")
    assert errors(capsys, text) == [(92 + broken.count("\n"), column, rule)]


def test_the_daemon_prints_the_same_list(capfd):
    """``spectrod run`` ends with exactly what ``config check`` prints."""
    rng = random.Random(4)  # noqa: S311 - repeatable
    lines, _ = mistakes_of_the_schema(rng, 20)
    Path("c.toml").write_text("\n".join([*lines, "[source]", "uri = 'http://x'"]))
    assert main(["config", "check", "c.toml"]) == 2
    checked = capfd.readouterr().err
    assert main(["run", "--config", "c.toml"]) == 2
    assert capfd.readouterr().err == checked
    assert "c.toml:" in checked.splitlines()[-1]
    assert "http://x: must be a sound file" in checked.splitlines()[-1]


# ---- rules between keys


def test_every_broken_rule_of_an_analysis_is_named(capsys):
    """Rules of one table are checked for each key, although each check stops at the first."""
    text = "[analysis]\nhop = 0\nwin_length = 1\nnfft = 2048\nwindow = 'hnan'\nbands = 'octvae'\n"
    assert [(line, text.partition(":")[0]) for line, _, text in errors(capsys, text)] == [
        (2, "hop=0"),
        (3, "win_length=1"),
        (5, "window='hnan'"),
        (6, "bands='octvae'"),
    ]


BROKEN = {
    "[source]": [
        *(
            "samplerate = 1e-9",
            "select = [1, 1]",
            "channel_names = ['a', 'a']",
            "time_format = '%Q'",
        ),
        *("channels = 3\niq = true", "format = 'cu8'"),
    ],
    "[source]\nuri = 'signal:white,-20'\n[analysis]": [
        *("hop = 0", "win_length = 1", "nfft = 15", "window = 'hnan'", "window = 'kaiser'"),
        *("bands = 'octvae'", "bands = 'mel:4000'", "bands = 'millidecade'", "align = 'utc'"),
        *("averaging = 'mean'", "averaging = 'L0'", "rate_hz = 100000", "rate_hz = 1e-9"),
    ],
    "[products.p]": ["hop = 0", "window = 'hnan'", "bands = 'octvae'"],
    "[levels.a]": [
        *("interval_s = -1", "lower_limit_db = nan", "bands = 'x'", "band_quantities = ['LZeq']"),
        *("time_zone = 'Mars/X'", "channel_weights = [1.0]", "align = 'local'"),
    ],
    "[source]\nuri = 'signal:white,-20'\n[tones.a]": [
        *("win_length = 1", "window = 'hnan'", "interval_s = 1e9", "low_hz = 50000"),
        *("harmonics = 1000", "high_hz = 90000"),
    ],
    "[features.a]": ["interval_s = 1e9", "spectra = ['x']", "quantities = []"],
    "[transfer.a]": ["averaging_s = 1", "responses = [0]", "spectra = ['x']"],
    "[triggers.t]\nkind = 'band'\nthreshold = -50\nunit = 'dBFS'": [
        *("release_db = -1", "for_s = -1", "hold_off_s = 0", "side = 'below'"),
    ],
    "[recordings.r]": [
        *("file_name = 'x y'", "schedule = ['xx']", "on_s = 5", "samples = 'mp9'", "values = 'x'"),
        *("pre_roll_s = 5", "spectra = false", "must_be_mounted = 'x'", "product = 'nope'"),
    ],
}


@pytest.mark.parametrize(
    ("header", "broken"), [(header, one) for header in BROKEN for one in BROKEN[header]]
)
def test_a_rule_is_named_at_its_key(capsys, header, broken):
    """A rule that a key breaks, of whatever part of the program, is named at the key."""
    line = header.count("\n") + 2
    ((found, column, text),) = errors(capsys, f"{header}\n{broken}\n")
    assert (found, column) == (line, 1), text
    assert re.search(rf"\b{broken.partition(' ')[0]}\b", text), text


def test_a_rule_of_two_keys_is_named_at_one_of_them(capsys):
    """What two keys break together is one mistake, at a key that the file sets."""
    ((line, column, text),) = errors(capsys, "[analysis]\n\n  nfft = 2048\n")
    assert (line, column) == (3, 3)
    assert text == "win_length=4096: must not exceed nfft=2048"


def test_a_trigger_without_a_kind_is_not_opened(capsys):
    """The kind alone is a mistake; the default's rules say nothing of the keys of another."""
    text = "[source]\nuri = 'signal:white,-20'\n[triggers.t]\nkind = 'broadband'\n"
    ((line, column, message),) = errors(capsys, text)
    assert (line, column) == (4, 1)
    assert re.search(r"kind='broadband': must be one of band, bin, mask", message)


def test_mistakes_of_all_tables_are_named(capsys):
    """Sources, products, levels, recordings and endpoints are all checked in one run."""
    text = """[publish]
endpoints = ["tcp://127.0.0.1:1",
    "tcp://0.0.0.0:1",
    "pigeon"]
[sources.a]
uri = "signal:snie,1000,-20"
analysis = { hop = 0 }
[sources.b]
select = [1, 1]
channel_names = ["x/y"]
[products.p]
bands = "octvae"
sources = ["a", "c"]
[levels.l]
interval_s = -1
[recordings.r]
schedule = ["xx"]
pre_roll_s = 5
product = "p"
sources = ["d"]
"""
    found = errors(capsys, text)
    assert [line for line, *_ in found] == [3, 4, 6, 7, 9, 10, 12, 13, 15, 17, 18, 20]
    assert found[3][:2] == (7, 14)
    assert found[7][:2] == (13, 17)


def test_a_mistake_in_a_table_of_several_sources_is_one(capsys):
    """A mistake that sources share is one line, which names them only if others do not have it."""
    text = """
analysis = { window = "none" }
products.x = { hop = 0 }
[sources.a]
uri = "signal:white,-20"
[sources.b]
uri = "signal:white,-20"
[sources.c]
uri = "signal:white,-20"
analysis = { window = "hann", nfft = 3 }
"""
    window, hop, nfft = errors(capsys, text)
    assert window[:2] == (2, 14)
    assert window[2].startswith("sources.a, sources.b: window='none': must be one of ")
    assert hop == (3, 16, "products.x: hop=0: must be at least 1 sample")
    assert nfft[0] == 10
    assert nfft[2].startswith("sources.c: nfft=3: ")


def test_keys_that_are_wrong_by_themselves_make_no_other_mistakes(capsys):
    """The default that stands in for a wrong value is not blamed."""
    text = "[analysis]\nwin_length = 'x'\nnfft = 2048\nhop = 512\n[products.p]\nnfft = 1024\n"
    ((line, _, text),) = errors(capsys, text)
    assert (line, text) == (2, "analysis.win_length='x': must be a whole number, not a string")


def test_a_table_that_is_wrong_is_missed_by_nobody(capsys):
    """What names a source of a broken table is not blamed."""
    text = "[sources]\na = 1\n[products.p]\nsources = ['a']\nhopp = 1\n"
    assert [line for line, *_ in errors(capsys, text)] == [2, 5]


# ---- what was meant


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("[source]\nsamplerate = '48k'", "did you mean 48000?"),
        ("[source]\nblock_ms = '0.02 s'", "did you mean 20?"),
        ("[source]\nname = 5", "did you mean '5'?"),
        ("[source]\niq = 'true'", "did you mean true?"),
        ("[source]\niq = True", "did you mean true?"),
        ("[source]\niq = yes # no", "did you mean true?"),
        ("[source]\nuri = soundcard", 'a string needs quotes: "soundcard"'),
        ("[source]\nblock_ms = 0,5", "did you mean 0.5?"),
        ("[source]\nhop = 5", "did you mean analysis.hop?"),
        ("hop = 5", "did you mean analysis.hop?"),
        ("sourse = 5", "did you mean source?"),
        ("[publish]\nendpoints = 'tcp://127.0.0.1:1'", "did you mean ['tcp://127.0.0.1:1']?"),
        ("[recordings.a]\ntriggers = ['levle']", "did you mean level?"),
    ],
)
def test_the_value_that_was_meant_is_suggested(capsys, text, meant):
    """A mistake that has a probable meaning ends with it."""
    ((_, _, found),) = errors(capsys, text)
    assert found.endswith(f"; {meant}")


# ---- files


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[analysis]".encode("utf-16"), "1:1: is UTF-16; must be UTF-8"),
        (b"[source]\nname = 'caf\xe9'", "2:12: byte 0xe9: must be UTF-8"),
        (b"[source]\r\nname = 'x\r\n", "2:10: not valid TOML: "),
        (b"[source]\nname = 'a\0'", "2:10: not valid TOML: "),
        (b"[source]\n[source.name]\n[[source]]", "3:9: not valid TOML: "),
        (b"a = {b = 1}\n[a.c]", "2:5: not valid TOML: Cannot declare ('a', 'c') twice"),
        (b"a = 1\n[a.b]\n[a.b]", "2:5: not valid TOML: Cannot overwrite a value"),
        (b"[a]\nb = true\nb = true", "3:9: not valid TOML: Cannot overwrite a value\n"),
    ],
)
def test_files_that_are_not_toml(capsys, content, message):
    """A wrong encoding, and bad syntax, have places too."""
    Path("c.toml").write_bytes(content)
    assert main(["config", "check", "c.toml"]) == 2
    (line,) = capsys.readouterr().err.splitlines(keepends=True)
    assert line.startswith(f"spectrod: c.toml:{message}")


def test_a_byte_order_mark_is_skipped(capsys):
    """A file with a byte order mark is read, and its mistakes have their places without it."""
    found = errors(capsys, b"\xef\xbb\xbf[analysis]\nhop = 0")
    assert [(line, column) for line, column, _ in found] == [(2, 1)]
    Path("d.toml").write_bytes(b"\xef\xbb\xbf[analysis]\nhop = 512")
    assert main(["config", "check", "d.toml"]) == 0


def test_what_is_no_file(capsys, monkeypatch):
    """A folder, a file of 1 GB and a file that is not there are one line each."""
    Path("folder").mkdir()
    with Path("large.toml").open("wb") as file:
        file.truncate(1 << 30)
    for name, text in (
        ("folder", "is a folder; must be a file"),
        ("large.toml", "must have at most 262144 bytes"),
        ("absent.toml", "No such file or directory"),
    ):
        assert main(["config", "check", name]) == 2
        assert capsys.readouterr().err == f"spectrod: {name}: {text}\n"


def test_an_unreadable_file_names_the_user(monkeypatch):
    """The user who may not read the file is named."""

    def denied(*_, **__):
        raise PermissionError(13, "Permission denied")

    Path("c.toml").touch()
    monkeypatch.setattr(config_files, "read_regular", denied)
    with pytest.raises(ConfigError, match=r"^c\.toml: Permission denied; must be readable by the "):
        config.check_file("c.toml")


def test_more_mistakes_than_are_listed_are_counted():
    """At most 1000 mistakes are listed, and the text of the error has 20."""
    Path("c.toml").write_text("[analysis]\n" + "".join(f"x{k} = 1\n" for k in range(1200)))
    with pytest.raises(SettingsError, match=r"; and 981 more$") as caught:
        config.check_file("c.toml")
    assert len(caught.value.lines) == 1001
    assert caught.value.lines[-1] == "200 more mistakes"


# ---- warnings


def test_missing_sources_and_folders_are_warnings(capsys):
    """A source and a folder that are not there are warnings with their places."""
    Path("plain").touch()
    Path("c.toml").write_text(
        "[sources.a]\nuri = 'none.wav'\n[sources.b]\nuri = 'pcm:none'\ncalibration = 'mic.toml'\n"
        "[sources.c]\nuri = 'plain'\n[recordings.r]\nfolder = 'plain/x'\n"
    )
    assert main(["config", "check", "c.toml"]) == 0
    captured = capsys.readouterr()
    assert captured.out == "c.toml: right\n"
    assert captured.err.splitlines() == [
        "spectrod: warning: c.toml:2:1: sources.a: none.wav: No such file or directory",
        "spectrod: warning: c.toml:4:1: sources.b: pcm:none: No such file or directory",
        "spectrod: warning: c.toml:5:1: sources.b: calibration mic.toml: there is no such file",
        "spectrod: warning: c.toml:9:1: recordings.r.folder='plain/x': plain is not a folder",
    ]


def test_calibrations_are_read_at_the_start_and_named_with_their_place():
    """A daemon that begins says at which key a calibration is missing or malformed."""
    Path("x.toml").write_text("x = 1\n")
    Path("c.toml").write_text(
        "[sources.a]\nuri = 'none.wav'\n  calibration = 'mic.toml'\n"
        "[sources.b]\nuri = 'pcm:none'\ncalibration = 'x.toml'\n"
    )
    with pytest.raises(SettingsError) as caught:
        config.load("c.toml", rules=start_rules)
    missing, malformed = caught.value.lines
    assert missing == "c.toml:3:3: sources.a: calibration mic.toml: there is no such file"
    assert malformed.startswith("c.toml:6:1: sources.b: calibration x.toml: ")
    config.load("c.toml", rules=daemon_rules)  # a reload leaves running sources alone


# ---- values


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        ([1, "a", {"b": 1.5}], "[1, 'a', { b = 1.5 }]"),
        ({"a b": None}, "{ 'a b' = null }"),
        (dt.date(1979, 5, 27), "1979-05-27"),
        ([[[[[1]]]]], "[[[[...]]]]"),
        pytest.param(10**5000, "...", id="long"),
        ("x" * 5000, "'" + "x" * 76 + "..."),
        ({}, "{}"),
    ],
)
def test_values_are_shown_as_toml_writes_them(value, text):
    """An error shows a value in TOML's terms, in at most 80 characters."""
    assert shown(value) == text
    assert len(shown(value)) <= 80


# ---- what a reload needs


def test_a_quiet_check_says_nothing(capsys):
    """With --quiet the exit code is all."""
    Path("c.toml").write_text("[analysis]\nhop = 0\n")
    assert main(["config", "check", "--quiet", "c.toml"]) == 2
    Path("c.toml").write_text("[source]\nuri = 'none.wav'\n")
    assert main(["config", "check", "-q", "c.toml"]) == 0
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""


def test_keys_of_clients_are_read_if_asked_for(capsys):
    """With --client-keys a file that is no key is a mistake, at the setting of its folder."""
    Path("clients").mkdir()
    Path("clients/ann.pub").write_text("nonsense")
    Path("c.toml").write_text("[security]\nserver_key = 'none.key'\nclient_keys = 'clients'\n")
    assert main(["config", "check", "c.toml"]) == 0
    capsys.readouterr()
    assert main(["config", "check", "--client-keys", "c.toml"]) == 2
    assert re.match(r"spectrod: c\.toml:3:1: clients/ann\.pub: ", capsys.readouterr().err)
    Path("clients/ann.pub").unlink()
    assert main(["config", "check", "--client-keys", "c.toml"]) == 0
