"""Settings of a running daemon: get, set, reload, and added or removed sources."""

import logging
from types import SimpleNamespace
from typing import Annotated, Union, get_args, get_origin

import msgspec
import pytest

from spectrod.config import config
from spectrod.config.config import (
    AnalysisConfig,
    Config,
    ControlConfig,
    FeaturesConfig,
    LevelsConfig,
    ProductConfig,
    RecordingConfig,
    SecurityConfig,
    SourceConfig,
    SourceTable,
    TonesConfig,
    TransferConfig,
)
from spectrod.config.settings import path_keys
from spectrod.daemon.change_journal import Journal
from spectrod.daemon.control.changed_settings import LiveSettings
from spectrod.lib.errors import ConfigError, DeviceError, NotFoundError
from spectrod.lib.events import EventLog
from spectrod.measure.triggers.trigger_config import TriggerConfig


class RunningDaemon:
    """The daemon's interface to settings, which records each call."""

    def __init__(self, refusal=None):
        self.asked, self.refusal = [], refusal
        self.runners = [SimpleNamespace(name="signal")]

    def reconfigure(self, settings):
        if self.refusal:
            raise self.refusal
        self.asked.append(settings)


@pytest.fixture(autouse=True)
def log_level():
    """Restore the root logger's level after the test."""
    root = logging.getLogger()
    before = root.level
    yield lambda: root.level
    root.setLevel(before)


def live(settings=None, load=None, refusal=None, **options):
    """Make the settings of a recording daemon; return both."""
    settings = settings or Config()
    daemon, events = RunningDaemon(refusal), EventLog()
    load = load or (lambda: settings)
    return LiveSettings(daemon, settings, load, Journal(events), **options), daemon, events


OTHER_VALUES = {
    "source.uri": "-",
    "source.name": "roof",
    "source.samplerate": 44100,
    "source.channels": 2,
    "source.select": (1, 0),
    "source.channel_names": ("a", "b"),
    "source.calibration": "mic.toml",
    "source.iq": True,
    "source.center_frequency_hz": 433.92e6,
    "source.format": "u8",
    "source.block_ms": 20.0,
    "source.latency_ms": 50.0,
    "source.exclusive": True,
    "source.pace": "full",
    "source.loop": True,
    "source.recursive": True,
    "source.time_format": "%Y%m%d%H",
    "source.files_zone": "Asia/Tokyo",
    "source.strict": True,
    "source.time_zone": "Asia/Tokyo",
    "source.platform": "mooring",
    "source.instrument": "SoundTrap",
    "source.latitude": 54.5,
    "source.longitude": 8.25,
    "source.depth_m": 12.0,
    "source.height_m": 1.5,
    "analysis.window": "flattop",
    "analysis.win_length": 512,
    "analysis.hop": 77,
    "analysis.nfft": 8192,
    "analysis.scaling": "density",
    "analysis.weighting": "A",
    "analysis.bands": "third-octave",
    "analysis.averaging": "exponential",
    "analysis.averaging_s": 1.0,
    "analysis.rate_hz": 10.0,
    "analysis.align": "utc",
    "engine.engine": "numpy",
    "engine.device": "x",
    "publish.endpoints": ("tcp://127.0.0.1:1",),
    "publish.insecure": True,
    "publish.queue_frames": 1,
    "publish.high_water_mark": 1,
    "publish.on_demand": False,
    "publish.replay_mb": 1.0,
    "publish.raw32": ("tcp://127.0.0.1:2 spec/a/0/dbfs/",),
    "control.endpoints": (),
    "control.requests_per_s": 1.0,
    "control.state_folder": "/x",
    "security.server_key": "/k",
    "security.client_keys": "/c",
    "security.require": "always",
    "security.max_connections": 77,
    "http.listen": "127.0.0.1:9733",
    "http.insecure": True,
    "http.hosts": ("roof",),
    "log.level": "debug",
    "log.style": "json",
}
LIVE = {key for key in OTHER_VALUES if key.startswith(("source.", "analysis."))}
LIVE |= {"log.level", "publish.on_demand"}


def changed(settings, key):
    section, name = key.split(".")
    part = msgspec.structs.replace(getattr(settings, section), **{name: OTHER_VALUES[key]})
    return msgspec.structs.replace(settings, **{section: part})


# ---- reload


@pytest.mark.parametrize("key", OTHER_VALUES)
def test_each_key_is_applied_or_needs_a_restart(key, log_level):
    """Each changed key is applied once, or stays listed as pending until a restart."""
    new = changed(Config(), key)
    settings, daemon, _ = live(load=lambda: new)
    if key in LIVE:
        assert settings.reload() == [f"applied {key}"]
        assert settings.reload() == ["nothing has changed"]
        assert daemon.asked == [new, new]
    else:
        assert settings.reload() == settings.reload() == [f"{key} needs a restart"]
        assert daemon.asked == [Config(), Config()]
    assert log_level() == (logging.DEBUG if key == "log.level" else logging.INFO)


def test_every_key_of_the_configuration_is_looked_at():
    """The test above covers every key of the configuration."""
    everything = Config()
    for key in OTHER_VALUES:
        everything = changed(everything, key)
    assert config.changed_keys(Config(), everything) == list(OTHER_VALUES)
    values = [getattr(everything, one.name) for one in msgspec.structs.fields(Config)]
    tables = [one for one in values if isinstance(one, msgspec.Struct)]
    assert len(OTHER_VALUES) == sum(len(msgspec.structs.fields(one)) for one in tables)


def table(name, hop=1024, uri="signal:sine,1000,-20"):
    return SourceTable(uri=uri, name=name, analysis=AnalysisConfig(hop=hop))


def test_sources_come_go_and_change_by_a_reload():
    """A reload adds, removes and changes sources in one call to the daemon."""
    old = Config(sources=(table("mic"), table("pond"), table("roof.left")))
    new = Config(
        sources=(table("shed"), table("pond", hop=77), table("roof.left", hop=88, uri="-"))
    )
    settings, daemon, _ = live(old, lambda: new)
    assert settings.reload() == [
        "applied sources.mic",
        "applied sources.pond.analysis.hop",
        'applied sources."roof.left".uri',
        'applied sources."roof.left".analysis.hop',
        "applied sources.shed",
    ]
    assert daemon.asked == [new]


def test_a_reload_that_the_engine_refuses_changes_nothing(log_level):
    """A reload that the engine refuses changes nothing, and can be retried."""
    new = changed(changed(Config(), "analysis.hop"), "log.level")
    settings, _, events = live(load=lambda: new, refusal=DeviceError("too small"))
    before = log_level()
    for _ in range(2):
        with pytest.raises(DeviceError, match="too small"):
            settings.reload()
    assert log_level() == before
    assert settings.current == Config()
    assert events.since() == []


def test_the_file_overrides_earlier_changes():
    """A reload undoes and reports changes made by set, except those that the file contains, too."""
    settings, daemon, _ = live()
    settings.set({"analysis.hop": 77, "log.level": "error"}, "ann")
    assert settings.set_keys == ("analysis.hop", "log.level")
    assert settings.reload() == [
        "applied analysis.hop (the file wins over set)",
        "applied log.level (the file wins over set)",
    ]
    assert settings.set_keys == ()
    assert daemon.asked[-1] == Config()


def test_listed_changes_are_the_differences_from_the_file():
    """The list of changes holds only differences from the file, without those that were undone."""
    settings, _, _ = live(Config(analysis=AnalysisConfig(hop=77)))
    settings.set({"analysis.hop": 5, "products.slow": {"rate_hz": 1.0}}, "ann")
    assert settings.set_keys == ("analysis.hop", "products.slow")
    settings.set({"analysis.hop": 77, "products.slow": None}, "ann")
    assert settings.set_keys == ()
    settings.add_source("b", {"uri": "signal:white,-20"}, "ann")
    assert settings.set_keys == ("sources.b",)
    assert "applied sources.b (the file wins over set)" in settings.reload()
    settings.add_source("b", {"uri": "signal:white,-20"}, "ann")
    settings.remove_source("b", "ann")
    assert settings.set_keys == ()
    settings, _, _ = live(Config(source=SourceConfig(name="mic")))
    settings.set({"sources.b": {"uri": "signal:white,-20"}}, "ann")
    settings.add_source("c", {"uri": "signal:white,-30"}, "ann")
    assert {"sources.b", "sources.c"} <= set(settings.set_keys)


@pytest.mark.parametrize(("who", "logged"), [("ann", 1), ("SIGHUP", 0)])
def test_a_reload_is_an_event_and_a_line_of_the_log(who, logged, caplog):
    """A reload is an event and a log line; for a signal only the service logs the lines."""
    caplog.set_level(logging.INFO)
    settings, _, events = live()
    settings.reload(who)
    (event,) = events.since()
    assert (event.kind, event.text, event.who) == ("control.reload", "nothing has changed", who)
    assert len(caplog.records) == logged


def test_a_reload_reads_the_keys_too(caplog):
    """A reload reads the keys last; an error about them says that the settings are applied."""
    caplog.set_level(logging.INFO)
    settings, _, _ = live(reload_keys=lambda: ["key ann: revoked"])
    assert settings.reload() == ["key ann: revoked"]

    def wrong():
        raise ConfigError("ann.pub: not a key's file")

    new = changed(Config(), "analysis.hop")
    settings, _, events = live(load=lambda: new, reload_keys=wrong)
    with pytest.raises(ConfigError, match="settings applied, keys as they were: ann"):
        settings.reload()
    assert settings.current == new
    (event,) = events.since()
    assert event.text == "applied analysis.hop; keys as they were: ann.pub: not a key's file"
    assert [record.message for record in caplog.records] == [
        f"control.reload: {event.text} (by SIGHUP)"
    ]


def test_wrong_keys_refuse_a_reload_as_a_whole():
    """With a wrong key the settings stay as they are, and the last load has failed."""

    def wrong():
        raise ConfigError("ann.pub: not a key's file")

    new = changed(Config(), "analysis.hop")
    settings, _, events = live(load=lambda: new, check_keys=wrong)
    before = settings.last_load
    with pytest.raises(ConfigError, match=r"^ann\.pub: not a key's file$"):
        settings.reload()
    assert settings.current == Config()
    assert list(events.since()) == []
    assert not settings.last_load.is_ok
    assert settings.last_load.error == "ann.pub: not a key's file"
    assert settings.last_load.ok_utc_ns == before.ok_utc_ns


# ---- set


def test_a_change_is_applied_logged_and_an_event(caplog):
    """Each changed key gives one log line and one event with peer, key, old and new value."""
    caplog.set_level(logging.INFO)
    settings, daemon, events = live()
    lines = ['analysis.window: "hann" -> "flattop"', "analysis.hop: 1024 -> 77"]
    assert settings.set({"analysis.hop": "77", "analysis.window": "flattop"}, "ann") == lines
    expected = Config(analysis=AnalysisConfig(hop=77, window="flattop"))
    assert daemon.asked == [expected]
    assert settings.current == expected
    assert [(e.kind, e.text, e.who) for e in events.since()] == [
        ("control.set", line, "ann") for line in lines
    ]
    assert [record.message for record in caplog.records] == [
        f"control.set: {line} (by ann)" for line in lines
    ]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"analysis.hop": 0}, "hop=0: must be"),
        ({"analysis.hop": "many"}, "set: analysis.hop='many': must be a whole number"),
        ({"analysis.hops": 1}, "set: analysis.hops: unknown key"),
        ({"analyses.hop": 1}, "set: analyses.hop: unknown key"),
        ({"hop": 1}, "set: hop: unknown key"),
        ({"": 1}, "set: : unknown key"),
        ({"analysis.hop": {"a": 1}}, "set: analysis.hop={ a = 1 }: must be a whole number"),
        ({"analysis.hop": [[[]]]}, "set: analysis.hop=[[[]]]: must be a whole number"),
        ({"analysis.hop": 10**30}, "hop=1000000000000000000000000000000: must be"),
        ({"publish.endpoints": ["tcp://*:1"]}, "publish.endpoints: needs a restart: change it in"),
        ({"control.state_folder": "/"}, "control.state_folder: needs a restart"),
        ({"products.x.hop": 1}, "set: products.x.hop: unknown key"),
        ({"products.a/b": {"hop": 1}}, "name of a product='a/b': must be 1 to 64"),
        ({"products.x": None}, "set: products.x: does not exist, so it cannot be removed"),
        ({"source.name": 5, "sources.b": {}}, "set: source.name=5: must be set before there"),
        ({"source.name": None, "sources.b": {}}, "set: source.name='': must be set before there"),
        ({"source.name": {}, "sources.b": {}}, "set: source.name={}: must be set before there"),
    ],
)
def test_a_change_that_breaks_a_rule_is_refused_whole(changes, text):
    """If one change of a request breaks a rule, none of the request is applied."""
    settings, daemon, events = live()
    with pytest.raises(ConfigError) as refused:
        settings.set({"analysis.window": "flattop", **changes}, "ann")
    assert text in str(refused.value)
    assert "\n" not in str(refused.value)
    assert (daemon.asked, events.since(), settings.current) == ([], [], Config())


@pytest.mark.parametrize(
    "uri", ["/etc/passwd", "x.wav", "-", "pcm:/dev/sda", "pcm:", "file:///x", "", "soundcardx", "~"]
)
def test_a_peer_cannot_name_a_file(uri):
    """A peer can name a file neither in a new source nor in an existing one."""
    settings, daemon, _ = live(Config(sources=(table("mic"),)))
    for attempt in (
        lambda: settings.set({"sources.mic.uri": uri}, "eve"),
        lambda: settings.set({"sources.new": {"uri": uri}}, "eve"),
        lambda: settings.add_source("new", {"uri": uri}, "eve"),
    ):
        with pytest.raises(ConfigError, match="no file paths from peers outside the state folder"):
            attempt()
    assert [asked.sources for asked in daemon.asked if asked.sources != (table("mic"),)] == []


NAMED_TABLES = {
    "products": ProductConfig("a"),
    "levels": LevelsConfig("b"),
    "features": FeaturesConfig("c"),
    "tones": TonesConfig("d"),
    "triggers": TriggerConfig("e", threshold=0.0, unit="dBFS"),
    "recordings": RecordingConfig("f"),
}


def text_keys():
    """Yield the prefix, the name and a path as value of each key that is text or has texts."""
    tables = {f"{section}.{one.name}": type(one) for section, one in NAMED_TABLES.items()}
    tables |= {"source": SourceConfig, "sources.mic": SourceConfig, "transfer.g": TransferConfig}
    tables |= {
        key.name: key.type
        for key in msgspec.structs.fields(Config)
        if isinstance(key.type, type) and issubclass(key.type, msgspec.Struct)
    }
    for prefix, table in tables.items():
        for key in msgspec.structs.fields(table):
            is_of_table = key.name == "name" and "." in prefix
            texts = {str: "/etc/passwd", tuple: ["/etc/passwd"], dict: {"a": "/etc/passwd"}}
            of = key.type
            while get_origin(of) is Annotated or get_origin(of) is Union:
                of = get_args(of)[0]
            kind = get_origin(of) or of
            if kind in texts and not is_of_table and (kind is str or str in get_args(of)):
                yield prefix, key.name, texts[kind]


HARMLESS = {
    "recordings.f.attributes",
    *(
        f"{source}.{key}"
        for source in ("source", "sources.mic")
        for key in ("platform", "instrument")
    ),
}
"""Texts that are written into files and nothing else."""


@pytest.mark.parametrize(("prefix", "key", "value"), list(text_keys()))
def test_no_text_of_the_configuration_lets_a_peer_name_a_file(prefix, key, value):
    """Each text of every table, set to a path by a peer, is refused before anything is opened."""
    sources = (table("mic"),) if prefix.startswith("sources.") else ()
    tables = {section: (one,) for section, one in NAMED_TABLES.items()}
    if prefix.startswith("transfer"):
        tables["transfer"] = (TransferConfig("g"),)
    channels = 2 if "transfer" in tables else 1
    source = SourceConfig(name="mic", uri="signal:white,-20", channels=channels)
    before = Config(source=source, sources=sources, **tables)
    settings, daemon, _ = live(before)
    changes = {f"{prefix}.{key}": value}
    if f"{prefix}.{key}" in HARMLESS:
        settings.set(changes, "eve")
        return
    with pytest.raises(ConfigError, match=r"/etc/passwd|needs a restart"):
        settings.set(changes, "eve")
    assert (daemon.asked, settings.current) == ([], before)


def test_every_path_of_the_configuration_is_marked():
    """The keys that hold paths are marked as such, and a key of that kind cannot be forgotten."""
    of = {kind: path_keys(kind) for kind in (SourceConfig, RecordingConfig, ControlConfig)}
    assert of == {
        SourceConfig: ("uri", "calibration"),
        RecordingConfig: ("folder", "must_be_mounted"),
        ControlConfig: ("state_folder",),
    }
    assert path_keys(SecurityConfig) == ("server_key", "client_keys")


@pytest.mark.parametrize(
    "calibration", ["/etc/passwd", "other.toml", "~root/x", "/proc/self/environ", "", "-"]
)
def test_a_peer_changes_no_calibration(calibration):
    """A peer neither gives a source a calibration nor takes it away, however it goes about it."""
    mic = msgspec.structs.replace(table("mic"), calibration="mic.toml")
    settings, daemon, _ = live(Config(sources=(mic, table("pond"))))
    of_new = {"uri": "signal:white,-20", "calibration": calibration}
    attempts = [
        {"sources.mic.calibration": calibration},
        {"sources.*.calibration": calibration},
        {"sources.mic": of_new},
    ]
    if calibration:
        attempts += [{"sources.new": of_new}, {"sources.pond.calibration": calibration}]
        with pytest.raises(ConfigError, match=r"sources\.new\.calibration='.*': peers change no"):
            settings.add_source("new", of_new, "eve")
    for changes in attempts:
        with pytest.raises(ConfigError, match="peers change no paths; change it in the file"):
            settings.set(changes, "eve")
    assert daemon.asked == []


def test_a_source_keeps_its_paths_where_others_of_its_keys_change():
    """Peers rename a single source, add others and change its analysis; its paths stay."""
    source = SourceConfig(name="mic", uri="/x.wav", calibration="mic.toml")
    settings, _, _ = live(Config(source=source))
    settings.set({"source.name": "roof"}, "ann")
    settings.set({"sources.b": {"uri": "signal:white,-20"}}, "ann")
    settings.set({"sources.roof.analysis.hop": 77}, "ann")
    roof, b = settings.current.sources
    assert (roof.uri, roof.calibration, roof.analysis.hop) == ("/x.wav", "mic.toml", 77)
    assert (b.uri, b.calibration) == ("signal:white,-20", "")


def test_peers_can_change_the_analysis_of_a_configured_file():
    """Peers can change the analysis of a file that the operator configured."""
    settings, daemon, _ = live(Config(sources=(table("wav", uri="/x.wav"),)))
    settings.set({"sources.wav.analysis.hop": 77}, "ann")
    assert daemon.asked == [Config(sources=(table("wav", hop=77, uri="/x.wav"),))]


@pytest.mark.parametrize(
    "changes",
    [
        {"recordings.disk.keep_mb": 0.0001},
        {"recordings.disk.keep_days": 0.0001},
        {"recordings.disk.min_free_mb": 1e9, "recordings.disk.when_full": "delete"},
        {"recordings.disk.file_name": "x"},
        {"recordings.disk.folder": ""},
        {"recordings.disk.rotate_s": 1},
        {"recordings.disk": {"keep_mb": 0.0001}},
        {"recordings.disk": None},
    ],
)
def test_a_peer_changes_no_recording_outside_the_state_folder(changes):
    """A peer cannot change a recording outside the state folder, whose retention deletes files."""
    outside = RecordingConfig("disk", folder="/srv/recordings")
    settings, daemon, events = live(Config(recordings=(outside, RecordingConfig("here"))))
    text = r"recordings\.disk: peers change no recording .* \(/srv/recordings\), .* in the file"
    with pytest.raises(ConfigError, match=text):
        settings.set({"recordings.here.keep_days": 1.0, **changes}, "eve")
    assert (daemon.asked, events.since()) == ([], [])
    settings.set({"recordings.here.keep_days": 1.0}, "ann")
    assert daemon.asked[-1].recordings == (outside, RecordingConfig("here", keep_days=1.0))


def test_a_peer_makes_no_recording_outside_the_state_folder():
    """A peer can neither create a recording outside the state folder nor move one there."""
    settings, daemon, _ = live(Config(recordings=(RecordingConfig("here"),)))
    for changes in ({"recordings.new": {"folder": "/x"}}, {"recordings.here.folder": "/x"}):
        with pytest.raises(ConfigError, match=r"folder='/x': no folders from peers outside the"):
            settings.set(changes, "eve")
    assert daemon.asked == []


def test_a_line_of_the_log_is_one_line_whatever_a_peer_sends(caplog):
    """A log line stays one line: control characters are escaped and long texts are cut."""
    caplog.set_level(logging.INFO)
    settings, _, events = live()
    settings.set({"source.uri": "signal:\n<3>forged\x1b[2J" + "x" * 5000}, "eve")
    [record] = caplog.records
    assert record.message.isprintable()
    assert len(record.message) < 700
    assert events.since()[0].text.isprintable()


# ---- sources


def two_sources(**products):
    settings = Config(sources=(table("pond"), table("roof", hop=256)), **products)
    return settings, *live(settings)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"analysis.window": "hanning"}, "analysis: window='hanning': must be one of rectangular"),
        ({"analysis.hop": "0"}, "analysis: hop=0: must be at least 1 sample"),
        ({"analysis.averaging": "mean"}, "analysis: averaging='mean': needs rate_hz"),
        ({"sources.*.analysis.hop": "0"}, "sources.pond: hop=0: must be at least 1 sample"),
        ({"sources.*.hopp": "1"}, "sources.pond.hopp: unknown key"),
        ({"sources.*.": "1"}, "set: sources.*.: must be sources.*.KEY"),
        ({"sources.*": {}}, "sources.*: unknown key|name of a source='\\*'"),
    ],
)
def test_a_default_for_later_sources_is_checked(changes, text):
    """A default for later sources is checked when it is set, like the analysis of one source."""
    before, settings, daemon, _ = two_sources()
    with pytest.raises(ConfigError, match=text):
        settings.set(changes, "test")
    assert settings.current == before
    assert daemon.asked == []


def test_a_file_may_leave_parts_of_the_analysis_to_each_source():
    """Incomplete defaults in a file are valid; only a change that needs the whole is refused."""
    settings = Config(
        analysis=AnalysisConfig(averaging="mean"),
        sources=tuple(
            SourceTable(
                uri="signal:sine,1000,-20",
                name=name,
                analysis=AnalysisConfig(averaging="mean", rate_hz=1.0),
            )
            for name in ("pond", "roof")
        ),
    )
    in_force, *_ = live(settings)
    assert in_force.set({"sources.pond.analysis.hop": "512"}, "test") == [
        "sources.pond.analysis.hop: 1024 -> 512"
    ]


def test_a_change_of_defaults_lists_unaffected_sources():
    """The reply to a change of defaults lists running sources that keep their analysis."""
    _, settings, daemon, events = two_sources()
    change, note = settings.set({"analysis.hop": "512"}, "test")
    assert change == "analysis.hop: 1024 -> 512"
    assert note == (
        "note: analysis.hop is for sources that are added later; pond, roof keep theirs "
        "(sources.*.analysis.hop changes those of all)"
    )
    assert [source.analysis.hop for source in daemon.asked[-1].sources] == [1024, 256]
    assert [event.text for event in events.since(0)] == ["analysis.hop: 1024 -> 512"]


def test_a_change_reaches_all_sources():
    """The key sources.*.KEY sets KEY of every source, null resets it, and a later key overrides."""
    _, settings, daemon, _ = two_sources()
    lines = settings.set({"sources.*.analysis.hop": "512"}, "test")
    assert lines == [
        "sources.pond.analysis.hop: 1024 -> 512",
        "sources.roof.analysis.hop: 256 -> 512",
    ]
    settings.set({"sources.*.analysis.hop": 128, "sources.roof.analysis.hop": 64}, "test")
    assert [source.analysis.hop for source in daemon.asked[-1].sources] == [128, 64]
    settings.set({"sources.*.analysis.hop": None}, "test")
    assert [source.analysis.hop for source in daemon.asked[-1].sources] == [1024, 1024]
    settings.set({"sources.*.block_ms": "20ms"}, "test")
    assert [source.block_ms for source in daemon.asked[-1].sources] == [20.0, 20.0]


def test_all_sources_may_be_one():
    """For a single [source], sources.*.KEY is its own key and the reply needs no note."""
    settings, daemon, _ = live(Config(source=SourceConfig(uri="signal:sine,1000,-20")))
    changes = {"sources.*.analysis.hop": "512", "sources.*.block_ms": 20}
    assert settings.set(changes, "test") == [
        "source.block_ms: 10.0 -> 20.0",
        "analysis.hop: 1024 -> 512",
    ]
    assert daemon.asked[-1].analysis.hop == 512


def test_products_are_listed_with_their_sources():
    """Settings list each product with the names of its sources."""
    _, settings, *_ = two_sources()
    lines = settings.set({"products.slow": {"rate_hz": 1.0}}, "test")
    assert lines[-1] == "note: products.slow is of pond, roof"
    lines = settings.set({"products.slow.sources": ["roof"]}, "test")
    assert lines[-1] == "note: products.slow is of roof"
    assert not any(line.startswith("note") for line in settings.set({"products.slow": None}, "x"))


def test_a_source_is_added_beside_a_single_one():
    """A source added beside a single one turns that one into a table named as in its topics."""
    settings, daemon, events = live(Config(analysis=AnalysisConfig(hop=77)))
    assert settings.add_source("b", {"uri": "signal:white,-20", "channels": 2}, "ann") == [
        'sources.b: none -> {"uri":"signal:white,-20","channels":2,"analysis":{"hop":77}}'
    ]
    one, other = daemon.asked[-1].all_sources
    assert (one.name, one.uri, one.analysis.hop) == ("signal", "auto", 77)
    assert (other.name, other.uri, other.analysis.hop) == ("b", "signal:white,-20", 77)
    assert [event.kind for event in events.since()] == ["source.add"]
    assert settings.remove_source("b", "ann") == [
        'sources.b: {"uri":"signal:white,-20","channels":2,"analysis":{"hop":77}} -> none'
    ]
    assert [source.name for source in daemon.asked[-1].all_sources] == ["signal"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("mic", "source='mic': already exists"),
        ("a/b", "name of a source='a/b': must be 1 to 64"),
        ('a"b', "name of a source='a\"b': must be 1 to 64"),
        ("", "name of a source='': must be 1 to 64"),
    ],
)
def test_a_source_needs_a_name_of_its_own(name, text):
    """An added source needs an unused name that is valid in topics."""
    settings, _, _ = live(Config(sources=(table("mic"), table("pond"))))
    with pytest.raises(ConfigError) as refused:
        settings.add_source(name, {"uri": "signal:white,-20"}, "ann")
    assert str(refused.value).startswith(text)


def test_the_last_source_stays():
    """The last source cannot be removed, because a daemon without sources would end."""
    settings, _, _ = live(Config(sources=(table("mic"), table("roof.left"))))
    with pytest.raises(NotFoundError, match="source='x': does not exist; there"):
        settings.remove_source("x", "ann")
    settings.remove_source("roof.left", "ann")
    with pytest.raises(ConfigError, match="source='mic': is the last one"):
        settings.remove_source("mic", "ann")


def test_a_single_source_goes_by_the_name_of_its_topics():
    """A single source without a configured name is addressed by the name in its topics."""
    settings, _, _ = live()
    with pytest.raises(ConfigError, match="source='signal': is the last one"):
        settings.remove_source("signal", "ann")
    with pytest.raises(NotFoundError, match="source='x': does not exist; there are: signal"):
        settings.remove_source("x", "ann")


# ---- get


def test_settings_are_read_as_the_file_would_name_them():
    """Settings can be read whole, by table or by key; names with a dot are quoted."""
    settings, _, _ = live(Config(sources=(table("mic"), table("roof.left", hop=88))))
    everything = settings.get()
    assert everything["analysis"]["hop"] == 1024
    assert settings.get("sources") == everything["sources"]
    assert settings.get('sources."roof.left".analysis.hop') == 88
    assert settings.get("log.level") == "info"
    for key in ("x", "analysis.x", "analysis.hop.x", "sources.roof.left"):
        with pytest.raises(NotFoundError, match="unknown key; there are \\[analysis\\], "):
            settings.get(key)
