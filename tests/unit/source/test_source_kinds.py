"""The table of source kinds, which all parts of the program use."""

import logging
from types import SimpleNamespace

import pytest

from spectrod.apps.setup.config_check import checks
from spectrod.config.config import Config, EngineConfig, PublishConfig, SourceConfig, SourceTable
from spectrod.daemon.change_journal import Journal
from spectrod.daemon.control.changed_settings import LiveSettings
from spectrod.daemon.daemon import build_daemon
from spectrod.lib.errors import ConfigError, UnavailableError
from spectrod.lib.events import EventLog
from spectrod.source import kinds
from spectrod.source.kinds import FILES, KINDS, SourceKind, find_kind, forms
from spectrod.source.open_source import check_uri, open_source
from spectrod.source.signal import SignalSource


@pytest.mark.parametrize(
    ("uri", "form", "argument"),
    [
        ("-", "-", ""),
        ("-:x", FILES.form, "-:x"),
        ("auto", "auto", ""),
        ("auto:x", FILES.form, "auto:x"),
        ("pcm:", "pcm:PATH", ""),
        ("pcm:/a:b", "pcm:PATH", "/a:b"),
        ("signal:sine,1000,-20", "signal:KIND,...", "sine,1000,-20"),
        ("soundcard", "soundcard[:NAME]", ""),
        ("soundcard:a\nb", "soundcard[:NAME]", "a\nb"),
        ("soundcardx", FILES.form, "soundcardx"),
        ("x/auto", FILES.form, "x/auto"),
        ("", FILES.form, ""),
    ],
)
def test_a_uri_has_one_kind(uri, form, argument):
    """The prefix, alone or before a colon, selects the kind; other text is a path."""
    kind, rest = find_kind(uri)
    assert (kind.form, rest) == (form, argument)


def test_only_kinds_without_paths_are_safe_over_control():
    """Peers may add sound cards and test signals, but no kind that opens a file."""
    assert forms(safe_only=True) == "signal:KIND,..., soundcard[:NAME] or auto"
    assert [kind.prefix for kind in KINDS if kind.may_be_absent] == ["pcm", "soundcard"]


class Jack:
    """A new kind of source that sets every field of the table."""

    def __init__(self):
        self.is_there = False
        self.kind = SourceKind(
            "jack:CLIENT",
            self.open,
            self.check,
            inspect=lambda client: f"jack {client}: is not opened",
            absent_name=lambda client: f"jack-{client}",
            is_safe_over_control=True,
        )

    def open(self, settings, client, pace):
        if not self.is_there:
            raise UnavailableError(f"jack {client}: not there")
        return SignalSource("sine,1000,-20", 48000.0, settings.channels or 2, pace)

    def check(self, _settings, client):
        if not client:
            raise ConfigError("jack:: must be jack:CLIENT")


@pytest.fixture
def jack(monkeypatch):
    """Add a kind to the table."""
    added = Jack()
    monkeypatch.setattr(kinds, "KINDS", (*KINDS, added.kind))
    return added


def test_a_new_kind_is_one_entry_of_the_table(jack):
    """A new record in the table gives a source that opens, is checked and appears in help."""
    jack.is_there = True
    assert open_source(SourceConfig(uri="jack:radio", channels=3), "full").channels == 3
    with pytest.raises(ConfigError, match="must be jack:CLIENT"):
        check_uri(SourceConfig(uri="jack:"))
    with pytest.raises(ConfigError, match=r"http://x: must be a sound file, .* or jack:CLIENT"):
        open_source(SourceConfig(uri="http://x"))
    first = next(checks(Config(source=SourceConfig(uri="jack:radio"))))
    assert first() == "source: jack radio: is not opened"


def test_a_new_kind_that_may_be_absent_is_waited_for(jack):
    """A new kind that may be absent is waited for, and the daemon has its name from the table."""
    config = Config(
        source=SourceConfig(uri="jack:radio"),
        publish=PublishConfig(endpoints=("tcp://127.0.0.1:*",)),
        engine=EngineConfig("numpy"),
    )
    daemon = build_daemon(config)
    try:
        (stats,) = daemon.stats()
        assert (stats.name, stats.state) == ("jack-radio", "waiting")
        assert stats.capture.waiting_for == "jack radio: not there"
    finally:
        daemon.stop()


@pytest.fixture
def _log_level():
    """Restore the root logger's level, which a change of the settings sets."""
    root = logging.getLogger()
    before = root.level
    yield
    root.setLevel(before)


@pytest.mark.usefixtures("_log_level")
@pytest.mark.parametrize("is_safe", [True, False])
def test_peers_may_add_a_new_kind_only_if_it_is_safe(jack, monkeypatch, is_safe):
    """The control socket lets peers add a new kind only if the table marks it as safe."""
    if not is_safe:
        monkeypatch.setattr(kinds, "KINDS", (*KINDS, SourceKind("jack:CLIENT", jack.open)))
    asked = []
    daemon = SimpleNamespace(runners=[SimpleNamespace(name="mic")], reconfigure=asked.append)
    config = Config(sources=(SourceTable(uri="soundcard", name="mic"),))
    settings = LiveSettings(daemon, config, lambda: config, Journal(EventLog()))
    if is_safe:
        settings.add_source("new", {"uri": "jack:radio"}, "ann")
        assert asked[-1].sources[1].uri == "jack:radio"
    else:
        rule = r"uri='jack:radio': no file paths from peers .* must be signal:KIND"
        with pytest.raises(ConfigError, match=rule):
            settings.add_source("new", {"uri": "jack:radio"}, "eve")
        assert asked == []
