"""Configuration: layers, precedence, every error's text."""

import re
import tomllib

import pytest

from spectrod import config
from spectrod.config import Config
from spectrod.errors import ConfigError


@pytest.fixture(autouse=True)
def _no_system_configuration(monkeypatch, tmp_path):
    monkeypatch.setattr(config, "SYSTEM_FILE", tmp_path / "absent.toml")
    for name in list(config.os.environ):
        if name.startswith("SPECTROD_"):
            monkeypatch.delenv(name)


def file(tmp_path, text):
    path = tmp_path / "spectrod.toml"
    path.write_text(text, "utf-8")
    return str(path)


def test_defaults_are_what_the_default_file_says(tmp_path):
    """The commented default file holds every key, at its built-in value."""
    path = file(tmp_path, config.default_toml())
    assert config.load(path) == Config() == config.load()
    written = tomllib.loads(config.default_toml())
    assert {s: list(v) for s, v in written.items()} == {
        s: list(v) for s, v in tomllib.loads(config.to_toml(Config())).items()
    }


def test_later_layers_win(tmp_path, monkeypatch):
    """Flags beat the environment, the environment beats the file, the file beats defaults."""
    path = file(tmp_path, "[analysis]\nhop = 1\nwin_length = 128\nwindow = 'flattop'\n")
    monkeypatch.setenv("SPECTROD_ANALYSIS_HOP", "2")
    monkeypatch.setenv("SPECTROD_ANALYSIS_WIN_LENGTH", "256")
    loaded = config.load(path, {"analysis": {"hop": 3, "nfft": None}})
    assert loaded.analysis == config.AnalysisConfig("flattop", 256, 3)


def test_environment_names_file_and_lists(tmp_path, monkeypatch):
    """SPECTROD_CONFIG names the file; lists are separated by commas; other names are left alone."""
    monkeypatch.setenv("SPECTROD_CONFIG", file(tmp_path, "[source]\nname = 'mic'\n"))
    monkeypatch.setenv("SPECTROD_PUBLISH_ENDPOINTS", "tcp://127.0.0.1:1, ipc:///run/x,")
    monkeypatch.setenv("SPECTROD_SOMETHING_ELSE", "1")
    loaded = config.load()
    assert loaded.source.name == "mic"
    assert loaded.publish.endpoints == ("tcp://127.0.0.1:1", "ipc:///run/x")


def test_system_file_is_read_where_there_is_one(tmp_path, monkeypatch):
    """Without a name the system's file is used."""
    monkeypatch.setattr(config, "SYSTEM_FILE", config.Path(file(tmp_path, "[log]\nlevel='debug'")))
    assert config.load().log.level == "debug"


def test_round_trip_through_toml(tmp_path):
    """What is written reads back the same."""
    changed = config.load(None, {"source": {"name": 'q"uo\\te'}, "publish": {"insecure": True}})
    assert config.load(file(tmp_path, config.to_toml(changed))) == changed


def test_odd_texts_survive_toml(tmp_path):
    """Control characters are escaped as TOML wants it; what no TOML can hold is refused."""
    odd = config.load(None, {"source": {"uri": "a\x7f\x01\t漢.wav"}})
    assert config.load(file(tmp_path, config.to_toml(odd))) == odd
    other_bytes = config.load(None, {"source": {"uri": "\udcff.wav"}})
    with pytest.raises(ConfigError, match=r"^source\.uri='\\udcff\.wav': must be UTF-8"):
        config.to_toml(other_bytes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[analysis]\nhop = 0", "hop=0: must be at least 1 sample"),
        ("[publish]\nendpoints = ['carrier-pigeon']", "endpoint='carrier-pigeon': must be tcp://"),
        ("[publish]\nendpoints = ['tcp://0.0.0.0:1']", "endpoint='tcp://0.0.0.0:1': anyone on the"),
    ],
)
def test_a_file_is_checked_by_itself(tmp_path, monkeypatch, text, message):
    """What the environment would override is wrong in the file all the same."""
    monkeypatch.setenv("SPECTROD_ANALYSIS_HOP", "512")
    monkeypatch.setenv("SPECTROD_PUBLISH_ENDPOINTS", "tcp://127.0.0.1:1")
    monkeypatch.setenv("SPECTROD_LOG_LEVEL", "wrong, but not the file's fault")
    config.check_file(file(tmp_path, config.default_toml()))
    with pytest.raises(ConfigError, match=re.escape(message)):
        config.check_file(file(tmp_path, text))


def test_changed_keys_are_named():
    """The difference of two configurations is a list of section.key."""
    new = config.load(None, {"analysis": {"hop": 7}, "log": {"level": "debug"}})
    assert config.changed_keys(Config(), new) == ["analysis.hop", "log.level"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[analysis]\nhopp = 1",
            "analysis.hopp: unknown key; [analysis] knows window, win_length,",
        ),
        ("[analisys]\nhop = 1", "[analisys]: unknown section; known: [source], [analysis],"),
        ("hop = 1", "hop: unknown key; keys stand in [source], [analysis],"),
        ("[analysis]\nhop = '5'", "analysis.hop='5': Expected `int`, got `str`"),
        ("[engine]\nengine = 'fpga'", "engine.engine='fpga': must be one of auto, opencl, numpy"),
        ("[engine]\nengine = 1", "engine.engine=1: must be one of auto, opencl, numpy"),
        ("[publish]\nendpoints = []", "publish.endpoints=[]: Expected `array` of length >= 1"),
        ("[source]\nchannels = 4097", "source.channels=4097: Expected `int` <= 4096"),
        ("[analysis", "not valid TOML: "),
    ],
)
def test_bad_files_are_one_clear_error(tmp_path, text, message):
    """An error names the file, the key, the value and the rule."""
    path = file(tmp_path, text)
    with pytest.raises(ConfigError, match=re.escape(f"{path}: {message}")) as caught:
        config.load(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("hop", 0, "hop=0: must be at least 1 sample"),
        ("win_length", 1, "win_length=1: must be 2 to 1048576"),
        ("nfft", 15, "nfft=15: must be 16 to 1048576"),
        ("nfft", 2048, "win_length=4096: must not exceed nfft=2048"),
        ("window", "hnan", "window='hnan': must be one of rectangular, hann,"),
        ("window", "kaiser", "window='kaiser': kaiser needs its beta, 0 to 700, as in kaiser:8.6"),
        ("scaling", "db", "command line: analysis.scaling='db': must be one of "),
    ],
)
def test_analysis_rules(key, value, message):
    """A setting that breaks a rule of the analysis is refused before anything starts."""
    with pytest.raises(ConfigError, match=re.escape(message)):
        config.load(None, {"analysis": {key: value}})


def test_missing_file():
    """A configuration that was named must exist."""
    with pytest.raises(ConfigError, match=r"^/absent\.toml: No such file or directory$"):
        config.load("/absent.toml")
    with pytest.raises(ConfigError, match="Is a directory"):
        config.load("")


def test_environment_errors_name_the_layer(monkeypatch):
    """A bad variable is an error of the environment."""
    monkeypatch.setenv("SPECTROD_ANALYSIS_HOP", "many")
    with pytest.raises(ConfigError, match=r"^environment: analysis\.hop='many': Expected `int`"):
        config.load()
