"""Settings: the configuration file, and changes that a peer requests."""

import codecs
import json
import os
import random
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from fuzzing import Scratch, Target, nested
from mutation import ODD_VALUES, havoc, mutate_json, mutate_text

from spectrod.config import config, config_files
from spectrod.config.config import Config
from spectrod.daemon.change_journal import Journal
from spectrod.daemon.control.changed_settings import LiveSettings
from spectrod.lib.errors import ConfigError, NotFoundError
from spectrod.lib.events import EventLog

_SCRATCH = Scratch()
_PLACE = re.compile(r"c\.toml:(\d+):(\d+): (?!is UTF-16)")
_DEPTH = 12  # deeper values need not have positions

_KEYS = [
    f"{section.name}.{key.name}".encode()
    for section in msgspec.structs.fields(Config)
    if isinstance(section.default, msgspec.Struct)
    for key in msgspec.structs.fields(section.type)
]
_WORDS = (
    *(b"[sources.a]", b"[sources.b.analysis]", b"[products.x]", b"[recordings.r]", b"[source]"),
    *(
        b'uri = "-"',
        b'uri = "a.wav"',
        b"sources = ['a']",
        b"[[a]]",
        b"[triggers.t]",
        b"{a = 1}",
        b"[1, 2]",
        b"true",
    ),
    *(b'endpoints = ["tcp://*:0"]', b'"tcp://[::1]:5556"', b'"ipc://@a"', b'"tcp://1.2.3:70000"'),
    *(
        b"raw32 = ['tcp://127.0.0.1:5558 spec/mic/0/dbfs/']",
        b"1979-05-27T07:32:00Z",
        b"inf",
        b"nan",
    ),
    *(b"schedule = ['Mo-Fr 08:00-24:00']", b"triggers = ['level']", b"file_name = '%Y%j%%'", b'"'),
    *(b"1e400", b"-0", b"0x7fffffffffffffff", b"9223372036854775808", b"'''", b"\\u0000", b"\x7f"),
    *(b"channels = 3", b"select = [0, 2]", b"channel_names = ['a', 'b']", b"iq = true", b"\xff"),
    *(b'bands = "mel:40"', b'bands = "octave/3"', b'averaging = "mean"', b"rate_hz = 1e-9", b"= "),
    *_KEYS,
)


def check_config(data: bytes) -> None:
    """Check a file and load it; what is written is read as the same."""
    path = os.fspath(_SCRATCH.put("input.toml", data))
    try:
        loaded = config.load(path)
    except ConfigError:
        return
    written = config.to_toml(loaded).encode()
    again = config.load(os.fspath(_SCRATCH.put("again.toml", written)))
    assert config.to_toml(again).encode() == written
    assert config.changed_keys(loaded, again) == [] or b"nan" in written
    try:
        config.check_file(path)
    except ConfigError:
        return


def check_toml(data: bytes) -> None:
    """Find the first mistake, or positions: of as many keys as ``tomllib`` has values."""
    if len(data) > config_files.FILE_BYTES_MAX:
        return
    text = data.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace")
    lines = text.replace("\r\n", "\n").split("\n")

    def check_place(line: int, column: int) -> None:
        assert 1 <= line <= len(lines)
        assert 1 <= column <= len(lines[line - 1]) + 1

    try:
        parsed = config_files.parse(Path("c.toml"), data)
    except ConfigError as error:
        if place := _PLACE.match(str(error)):
            check_place(int(place[1]), int(place[2]))
        return
    for position in parsed.positions.values():
        check_place(*position)
    values = tomllib.loads(text)
    assert repr(parsed.data) == repr(values)
    paths = set(_paths(values, ()))
    assert {path for path in paths if len(path) < _DEPTH} == {
        path for path in parsed.positions if len(path) < _DEPTH
    }


def _paths(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield (*path, key)
        if isinstance(item, dict | list):
            yield from _paths(item, (*path, key))


class _Daemon:
    """Accepts any valid settings; see ``changed_settings.Reconfigurable``."""

    def __init__(self, settings: Config) -> None:
        self.runners = settings.all_sources

    def reconfigure(self, settings: Config) -> None:
        self.runners = settings.all_sources


def _start() -> Config:
    lines = [
        '[source]\nuri = "signal:pink,-20"\nname = "tone"',
        "[products.fine]\nnfft = 8192",
        '[recordings.r]\nproduct = "fine"',
    ]
    return config.load(os.fspath(_SCRATCH.put("start.toml", "\n".join(lines).encode())))


_LOADED = _start()


def check_settings(data: bytes) -> None:
    """Change keys of a running daemon by a request, add sources, and read the result."""
    try:
        changes = msgspec.json.decode(data, type=dict)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return
    live = LiveSettings(_Daemon(_LOADED), _LOADED, lambda: _LOADED, Journal(EventLog()))
    for change in (lambda: live.set(changes, "a"), lambda: live.add_source("b", changes, "a")):
        try:
            change()
        except (ConfigError, NotFoundError):
            continue
    msgspec.json.encode(live.get())
    config.to_toml(live.current)


def config_seeds() -> list[bytes]:
    """Take the default file, and small files of each kind of table."""
    named = b'[sources.a]\nuri = "signal:pink,-20"\nchannels = 2\n[sources.b]\nuri = "-"\n'
    named += b"[sources.b.analysis]\nhop = 100\n[products.x]\nsources = ['a']\nbands = 'octave/3'\n"
    recordings = b"[source]\nname = 'm'\n[recordings.r]\nsamples = 'wav'\nkeep_days = 7\n"
    recordings += b"schedule = ['Mo-Fr 08:00-12:00']\ntriggers = ['level']\npre_roll_s = 5\n"
    publish = b"[publish]\nendpoints = ['tcp://127.0.0.1:5556', 'ipc:///run/s.ipc']\n"
    return [config.default_toml().encode(), named, recordings, publish, b""]


def settings_seeds() -> list[bytes]:
    """Make changes of keys and of whole tables."""
    table = {"uri": "signal:white,-20", "analysis": {"hop": 100}}
    changes = (
        {"analysis.hop": 512, "analysis.window": "hann"},
        {"analysis.bands": "octave/3", "source.channels": "1", "log.level": "debug"},
        {"products.fine": None, "recordings.r": None},
        {"products.x": {"nfft": 64}, 'recordings."a.b"': {"samples": "wav"}},
        {"source.name": "b", "sources.c": table},
        table,
        {"recordings.r.keep_mb": 5, "recordings.r.file_name": "%Y", "source.uri": "soundcard:x"},
    )
    return [json.dumps(change).encode() for change in changes]


def mutate_config(data: bytes, rng: random.Random) -> bytes:
    """Change lines, words and values of the TOML."""
    if rng.random() < 0.1:
        return havoc(data, rng)
    if rng.random() < 0.4:
        lines = data.split(b"\n")
        at = rng.randrange(len(lines))
        key, equals, _ = lines[at].partition(b"= ")
        value = json.dumps(rng.choice(ODD_VALUES)).encode("utf-8", "replace")
        lines[at] = key + equals + value if equals else value + b" = 1"
        return b"\n".join(lines)
    return mutate_text(data, rng, _WORDS)


def mutate_settings(data: bytes, rng: random.Random) -> bytes:
    """Change values, and name other keys."""
    if rng.random() < 0.8:
        return mutate_json(data, rng)
    key, value = rng.choice(_KEYS).decode(), rng.choice(ODD_VALUES)
    try:
        changes = json.loads(data)
        return json.dumps({**changes, key: value}).encode()
    except (TypeError, ValueError, RecursionError):
        return data


def _nested_toml() -> Iterator[bytes]:
    yield from nested(b"[analysis]\nhop = ")
    yield b"[a" + b".a" * 400_000 + b"]"
    yield b"a" + b".a" * 400_000 + b" = 1"


def _nested_json() -> Iterator[bytes]:
    for n in (100, 900, 20_000):
        yield b'{"analysis.hop": ' + b"[" * n + b"]" * n + b"}"
        yield b'{"recordings.r.attributes": ' + b'{"a":' * n + b"1" + b"}" * n + b"}"


TARGETS = {
    "toml": Target(check_toml, config_seeds, mutate_config, max_bytes=4096),
    "config": Target(check_config, config_seeds, mutate_config, max_bytes=4096, large=_nested_toml),
    "settings": Target(
        check_settings, settings_seeds, mutate_settings, max_bytes=4096, large=_nested_json
    ),
}
