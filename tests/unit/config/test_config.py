"""Configuration: layers, precedence, and the text of every error."""

import re
import tomllib
from fractions import Fraction
from pathlib import Path

import pytest

from spectrod.config import config, config_files
from spectrod.config.config import Config
from spectrod.lib.errors import ConfigError


@pytest.fixture(autouse=True)
def _no_system_configuration(monkeypatch, tmp_path):
    monkeypatch.setattr(config_files, "SYSTEM_FILE", tmp_path / "absent.toml")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in list(config.os.environ):
        if name.startswith("SPECTROD_"):
            monkeypatch.delenv(name)


def file(tmp_path, text):
    path = tmp_path / "spectrod.toml"
    path.write_text(text, "utf-8")
    return str(path)


def test_defaults_are_those_of_the_default_file(tmp_path):
    """The commented default file holds every key with its built-in value."""
    path = file(tmp_path, config.default_toml())
    assert config.load(path) == Config() == config.load()
    written = tomllib.loads(config.default_toml())
    assert {s: list(v) for s, v in written.items()} == {
        s: list(v) for s, v in tomllib.loads(config.to_toml(Config())).items()
    }


def test_later_layers_win(tmp_path, monkeypatch):
    """Flags override the environment, which overrides the file, which overrides the defaults."""
    path = file(tmp_path, "[analysis]\nhop = 1\nwin_length = 128\nwindow = 'flattop'\n")
    monkeypatch.setenv("SPECTROD_ANALYSIS_HOP", "2")
    monkeypatch.setenv("SPECTROD_ANALYSIS_WIN_LENGTH", "256")
    loaded = config.load(path, {"analysis": {"hop": 3, "nfft": None}})
    assert loaded.analysis == config.AnalysisConfig("flattop", 256, 3)


def test_times_and_rates_outside_a_file_may_have_units(tmp_path, monkeypatch):
    """Environment variables and flags accept the same units as the rest of the command line."""
    monkeypatch.setenv("SPECTROD_ANALYSIS_AVERAGING_S", "125ms")
    monkeypatch.setenv("SPECTROD_ANALYSIS_WIN_LENGTH", "2^14")
    monkeypatch.setenv("SPECTROD_CONTROL_REQUESTS_PER_S", "5")
    flags = {
        "source": {"samplerate": "44.1k", "block_ms": "0.02s", "latency_ms": "5"},
        "analysis": {"rate_hz": "1/60"},
    }
    settings = config.load(file(tmp_path, ""), flags)
    source, analysis = settings.source, settings.analysis
    assert (source.samplerate, source.block_ms, source.latency_ms) == (44100, 20.0, 5.0)
    assert (analysis.averaging_s, analysis.rate_hz) == (0.125, 1 / 60)
    assert analysis.win_length == 16384
    assert settings.control.requests_per_s == 5.0


@pytest.mark.parametrize(
    ("section", "key", "text", "rule"),
    [
        ("source", "samplerate", "44.1 parsec", "must be a frequency: 4000, 4k, 4kHz"),
        ("analysis", "averaging_s", "1 week", "must be a time: 90, 1.5h"),
        ("analysis", "hop", "1k", "must be a whole number"),
    ],
)
def test_bad_units(section, key, text, rule):
    """An error about a unit names the key, the value and the valid forms."""
    with pytest.raises(ConfigError, match=re.escape(f"{section}.{key}={text!r}: {rule}")):
        config.load(None, {section: {key: text}})


def test_environment_names_file_and_lists(tmp_path, monkeypatch):
    """SPECTROD_CONFIG names the file; commas separate lists; unrelated variables are ignored."""
    monkeypatch.setenv("SPECTROD_CONFIG", file(tmp_path, "[source]\nname = 'mic'\n"))
    monkeypatch.setenv("SPECTROD_PUBLISH_ENDPOINTS", "tcp://127.0.0.1:1, ipc:///run/x,")
    monkeypatch.setenv("SPECTROD_SOMETHING_ELSE", "1")
    monkeypatch.setenv("SPECTROD_SOURCE", "1")
    loaded = config.load()
    assert loaded.source.name == "mic"
    assert loaded.publish.endpoints == ("tcp://127.0.0.1:1", "ipc:///run/x")


def test_system_file_is_read_where_there_is_one(tmp_path, monkeypatch):
    """Without a name, the system's file is read if it exists."""
    path = Path(file(tmp_path, "[log]\nlevel='debug'"))
    monkeypatch.setattr(config_files, "SYSTEM_FILE", path)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert config.load().log.level == "debug"


def test_round_trip_through_toml(tmp_path):
    """A configuration that is written as TOML reads back the same."""
    changed = config.load(None, {"source": {"uri": 'q"uo\\te'}, "publish": {"insecure": True}})
    assert config.load(file(tmp_path, config.to_toml(changed))) == changed


def test_odd_texts_survive_toml(tmp_path):
    """Control characters are escaped in TOML, and text that TOML cannot hold is refused."""
    odd = config.load(None, {"source": {"uri": "a\x7f\x01\t漢.wav"}})
    assert config.load(file(tmp_path, config.to_toml(odd))) == odd
    other_bytes = config.load(None, {"source": {"uri": "\udcff.wav"}})
    with pytest.raises(ConfigError, match=r"^source\.uri='\\udcff\.wav': must be UTF-8"):
        config.to_toml(other_bytes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[analysis]\nhop = 0", "hop=0: must be at least 1 sample"),
        ("[source]\nname = 'a b'", "name='a b': must be 1 to 64 of A-Z a-z 0-9 . _ -"),
        ("[publish]\nendpoints = ['carrier-pigeon']", "endpoint='carrier-pigeon': must be tcp://"),
        ("[publish]\nendpoints = ['tcp://0.0.0.0:1']", "endpoint='tcp://0.0.0.0:1': anyone on the"),
        ("[publish]\nraw32 = ['tcp://127.0.0.1:1']", "raw32='tcp://127.0.0.1:1': must be an"),
        (
            "[publish]\nraw32 = ['tcp://0.0.0.0:1 spec/a/0/dbfs/']",
            "endpoint='tcp://0.0.0.0:1': anyone on the",
        ),
    ],
)
def test_a_file_is_checked_by_itself(tmp_path, monkeypatch, text, message):
    """An error in a file is reported even if the environment overrides the value."""
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
        (
            "[analysis]\nhop = '5'",
            "analysis.hop='5': must be a whole number, not a string; did you mean 5?",
        ),
        ("[engine]\nengine = 'fpga'", "engine.engine='fpga': must be one of auto, opencl, numpy"),
        ("[engine]\nengine = 1", "engine.engine=1: must be one of auto, opencl, numpy"),
        (
            "[publish]\nendpoints = []",
            "publish.endpoints=[]: must be an array of strings, at least 1",
        ),
        (
            "[source]\nchannels = 4097",
            "source.channels=4097: must be a whole number from 0 to 4096",
        ),
        ("[analysis", "not valid TOML: "),
    ],
)
def test_bad_files_are_one_clear_error(tmp_path, text, message):
    """An error in a file names the file, the key, the value and the rule."""
    path = file(tmp_path, text)
    place = rf"^{re.escape(path)}:\d:\d+: "
    with pytest.raises(ConfigError, match=place + re.escape(message)) as caught:
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
    """A configuration file that was named must exist."""
    with pytest.raises(ConfigError, match=r"^/absent\.toml: No such file or directory$"):
        config.load("/absent.toml")
    with pytest.raises(ConfigError, match=r"^\.: is a folder; must be a file$"):
        config.load("")


def test_environment_errors_name_the_layer(monkeypatch):
    """An error in a variable names the environment."""
    monkeypatch.setenv("SPECTROD_ANALYSIS_HOP", "many")
    with pytest.raises(
        ConfigError, match=r"^environment: analysis\.hop='many': must be a whole number$"
    ):
        config.load()


# ---- several sources

TWO = """
[analysis]
hop = 512

[sources.roof]
uri = "soundcard:usb=1-1.2"
channels = 4
select = [2, 0]
channel_names = ["north", "south"]

[sources."pond.left"]
uri = "signal:sine,1000,-20"
iq = true
analysis = { win_length = 65536, window = "flattop" }
"""


def test_each_source_has_its_keys_and_its_analysis(tmp_path):
    """A source inherits absent keys from [analysis] and the defaults; its name is its table's."""
    roof, pond = config.load(file(tmp_path, TWO)).all_sources
    assert (roof.name, roof.uri, roof.select) == ("roof", "soundcard:usb=1-1.2", (2, 0))
    assert roof.analysis == config.AnalysisConfig(hop=512)
    assert (pond.name, pond.iq, pond.block_ms) == ("pond.left", True, 10.0)
    assert pond.analysis == config.AnalysisConfig("flattop", 65536, 512)


def test_a_single_source_is_all_of_them():
    """A single [source] appears in the list of sources like a table of several."""
    loaded = config.load(None, {"source": {"name": "mic"}, "analysis": {"hop": 7}})
    (only,) = loaded.all_sources
    assert (only.name, only.uri, only.analysis.hop) == ("mic", "auto", 7)


def test_several_sources_survive_toml(tmp_path):
    """Several sources, with dots in their names, survive a round trip through TOML."""
    loaded = config.load(file(tmp_path, TWO))
    text = config.to_toml(loaded)
    assert config.load(file(tmp_path, text)) == loaded
    assert "[source]" not in text
    assert '[sources."pond.left".analysis]' in text


def test_later_layers_change_the_analysis_of_those_that_have_none_of_their_own(
    tmp_path, monkeypatch
):
    """A later layer's analysis applies to sources except where they set the key themselves."""
    monkeypatch.setenv("SPECTROD_ANALYSIS_WIN_LENGTH", "256")
    loaded = config.load(file(tmp_path, TWO), {"analysis": {"hop": 64}})
    assert [source.analysis.win_length for source in loaded.sources] == [256, 65536]
    assert [source.analysis.hop for source in loaded.sources] == [64, 64]


@pytest.mark.parametrize("layer", ["command line", "environment"])
def test_a_source_that_a_later_layer_names_replaces_them_all(tmp_path, monkeypatch, layer):
    """A source on the command line replaces all sources of the file, and a message says so."""
    flags, notes = {}, []
    if layer == "environment":
        monkeypatch.setenv("SPECTROD_SOURCE_URI", "-")
        monkeypatch.setenv("SPECTROD_SOURCE_SELECT", "1, 0")
    else:
        flags = {"source": {"uri": "-", "select": ["1", "0"], "name": None}}
    loaded = config.load(file(tmp_path, TWO), flags, notes.append)
    (only,) = loaded.all_sources
    assert (only.uri, only.select, only.analysis.hop) == ("-", (1, 0), 512)
    assert notes == [
        f"{layer}: source.uri='-' replaces [sources.roof], [sources.\"pond.left\"] of the file"
    ]


def test_keys_of_a_source_go_with_it(tmp_path, monkeypatch):
    """Keys of the file's source do not apply to another source on the command line."""
    path = file(tmp_path, "[source]\nuri = 'soundcard'\nsamplerate = 96000\nname = 'roof'")
    loaded = config.load(path, {"source": {"uri": "x.wav", "channels": "1"}})
    assert loaded.source == config.SourceConfig(uri="x.wav", channels=1)
    assert config.load(path, {"source": {"channels": "1"}}).source.samplerate == 96000
    monkeypatch.setenv("SPECTROD_SOURCE_SAMPLERATE", "8000")
    assert config.load(None, {"source": {"uri": "-"}}).source.samplerate == 8000


def test_a_key_of_one_source_fits_none_of_several(tmp_path):
    """A flag for a key of one source is refused with several sources unless it names a source."""
    message = (
        r"^command line: source\.name: belongs to a single source, and the file has "
        r'\[sources\.roof\], \[sources\."pond\.left"\]; set it there, or name a source here'
    )
    with pytest.raises(ConfigError, match=message):
        config.load(file(tmp_path, TWO), {"source": {"name": "mic", "uri": None}})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[source]\nuri='-'\n[sources.a]", "[source] and [sources.a]: must be one or the other"),
        ("[sources]\na = 1", "sources.a: unknown key; a source is a table, [sources.NAME]"),
        ("sources = 1", "sources: unknown key; keys stand in [source], [analysis],"),
        ("[sources.'a b']", "name of a source='a b': must be 1 to 64 of A-Z a-z 0-9 . _ -"),
        ("[sources.a]\nname = 'b'", "sources.a.name: unknown key; [sources.a] knows uri, "),
        ("[sources.a]\nurl = '-'", "sources.a.url: unknown key; [sources.a] knows uri, sampler"),
        ("[sources.a]\niq = 1", "sources.a.iq=1: must be true or false, not a whole number"),
        ("[sources.a]\nanalysis = 1", "sources.a.analysis=1: must be a table"),
        ("[sources.a.analysis]\nhup = 1", "sources.a.analysis.hup: unknown key; [sources.a.ana"),
        ("[sources.a.analysis]\nhop = 0", "sources.a: hop=0: must be at least 1 sample"),
        ("[sources.a]\nselect = [1, 1]", "sources.a: select=1,1: must name each channel once"),
        ("[source]\nchannels=2\nselect=[0,2]", "select=0,2: must be below channels=2"),
        ("[source]\nselect = [-1]", "source.select[0]=-1: must be a whole number from 0 to 4095"),
        ("[source]\nchannels = 3\niq = true", "channels=3: must be even, I and Q in turn"),
        (
            "[source]\nformat = 'cu9'",
            "must be one of u8, s8, s16le, s24le, s32le, f32le, f64le, cu8, cs8, cs16, cs32, cf32,",
        ),
        ("[source]\nformat = 'cu9'", "source.format='cu9'"),
        ("[source]\nformat = 'cu8'", "format='cu8': must be of raw samples, - or pcm:PATH"),
        (
            "[source]\nuri = '-'\nformat = 'cs16'\nchannels = 3",
            "channels=3: must be even with format='cs16', whose I and Q count as a channel each",
        ),
        ("[source]\nchannel_names = ['a/b']", "channel_names='a/b': must be 1 to 64 of A-Z"),
        ("[source]\nchannel_names = ['a', 'a']", "channel_names='a': named 2 times, must be once"),
        (
            "[source]\nchannels = 3\nchannel_names = ['a', 'b']",
            "channel_names=a,b: must be 3, one for each spectrum, not 2",
        ),
        (
            "[source]\nselect = [0, 1]\niq = true\nchannel_names = ['a', 'b']",
            "channel_names=a,b: must be 1, one for each spectrum, not 2",
        ),
        (
            "[sources.a]\nuri = '-'\n[sources.b]\nuri = '-'",
            "uri='-': standard input can be read by one source only",
        ),
    ],
)
def test_bad_sources_are_one_clear_error(tmp_path, text, message):
    """An error about sources names the source, the key, the value and the rule."""
    with pytest.raises(ConfigError, match=re.escape(message)) as caught:
        config.load(file(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_names_are_counted_when_the_source_is_known():
    """Channel names are counted once the source is open and its channels are known."""
    source = config.SourceTable(channel_names=("a", "b"), iq=True)
    assert source.specs(48000.0, 4)[0].n_signals == 2
    with pytest.raises(ConfigError, match=r"^channel_names=a,b: must be 3, one for each"):
        source.specs(48000.0, 6)


def test_changes_of_sources_are_named(tmp_path):
    """Changes of sources are reported by key, and tables that only one side has by name."""
    old = config.load(file(tmp_path, TWO))
    text = TWO.replace("65536", "32768").replace("channels = 4", "channels = 8")
    new = config.load(file(tmp_path, text + "[sources.shed]\nuri = '-'\n"))
    assert config.changed_keys(old, new) == [
        "sources.roof.channels",
        'sources."pond.left".analysis.win_length',
        "sources.shed",
    ]
    assert config.changed_keys(new, old)[-1] == "sources.shed"
    assert config.changed_keys(old, Config()) == [
        "analysis.hop",
        "sources.roof",
        'sources."pond.left"',
        "source",
    ]


@pytest.mark.parametrize(
    ("key", "live"),
    [
        ("log.level", True),
        ("log.style", False),
        ("analysis.hop", True),
        ("source.uri", True),
        ("source", True),
        ("sources.roof.analysis.hop", True),
        ('sources."x.analysis".uri', True),
        ("sources.roof", True),
        ("products.levels", True),
        ("products.levels.bands", True),
        ("publish.on_demand", True),
        ("publish.endpoints", False),
        ("security.require", False),
        ("engine.engine", False),
    ],
)
def test_sources_products_and_the_log_level_are_live(key, live):
    """Keys of sources, products and the log level apply at once; endpoints and engines do not."""
    assert config.is_live(key) == live


# ---- several products

PRODUCTS = """
[analysis]
hop = 512

[products.levels]
bands = "third-octave"
weighting = "A"
averaging = "mean"
rate_hz = 10

[products."fine.res"]
win_length = 8191
nfft = 8191
sources = ["pond"]

[sources.roof]
uri = "signal:sine,1000,-20"
analysis = { win_length = 2048 }

[sources.pond]
uri = "signal:sine,1000,-20"
analysis = { scaling = "density" }
"""


def test_products_inherit_from_the_analysis_of_each_source(tmp_path):
    """Products, the main one first, inherit absent keys from the analysis of their source."""
    roof, pond = config.load(file(tmp_path, PRODUCTS)).all_sources
    main, levels = roof.specs(48000.0, 2)
    assert (main.product, main.win_length, main.bands) == ("dbfs", 2048, "")
    assert (levels.product, levels.win_length, levels.scaling) == ("levels", 2048, "dbfs")
    assert (levels.bands, levels.weighting, levels.averaging) == ("third-octave", "A", "mean")
    main, levels, fine = pond.specs(48000.0, 1)
    assert [spec.product for spec in (main, levels, fine)] == ["density", "levels", "fine.res"]
    assert (levels.win_length, levels.scaling) == (4096, "density")
    assert (fine.win_length, fine.nfft, fine.hop) == (8191, 8191, 512)


@pytest.mark.parametrize(
    ("source", "settings", "unchecked"),
    [
        ('uri = "reef.wav"', "", ('bands = "millidecade"', "rate_hz = 1")),
        ('uri = "soundcard"', "", ('bands = "millidecade"', "rate_hz = 1")),
        ('uri = "reef.wav"\nsamplerate = 32000', "", ()),
        ('uri = "signal:white,-20"\nsamplerate = 16000', "", ()),
        (
            'uri = "reef.wav"',
            "[products.slow]\nbands = ''\nrate_hz = 0.5\n",
            ('bands = "millidecade"', "rate_hz = 1", "products.slow: rate_hz = 0.5"),
        ),
    ],
)
def test_only_a_known_sample_rate_is_checked_against(tmp_path, source, settings, unchecked):
    """Bands and rates are checked only against known sample rates, and open checks are listed."""
    text = (
        "[analysis]\nwin_length = 32000\nbands = 'millidecade'\naveraging = 'mean'\nrate_hz = 1\n"
    )
    (table,) = config.load(file(tmp_path, f"[source]\n{source}\n{text}{settings}")).all_sources
    assert table.unchecked == unchecked


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bands='millidecades'", "bands='millidecades': must be octave"),
        ("bands='mel:0'", "bands='mel:0': '0' must be a whole number"),
        ("averaging='mean'", "averaging='mean': needs rate_hz"),
        ("win_length=512\nnfft=256\nrate_hz=1", "win_length=512: must not exceed nfft=256"),
    ],
)
def test_rules_that_hold_at_any_sample_rate_are_checked_without_it(tmp_path, text, message):
    """Rules that do not depend on the sample rate are checked before the source is opened."""
    with pytest.raises(ConfigError, match=message):
        config.load(file(tmp_path, f"[source]\nuri = 'reef.wav'\n[analysis]\n{text}\n"))


def test_products_survive_toml(tmp_path):
    """TOML stores only the keys that a product sets, so that it continues to inherit."""
    loaded = config.load(file(tmp_path, PRODUCTS))
    text = config.to_toml(loaded)
    assert config.load(file(tmp_path, text)) == loaded
    written = tomllib.loads(text)["products"]["levels"]
    assert list(written) == ["sources", "weighting", "bands", "averaging", "rate_hz"]


@pytest.mark.parametrize("fs", [8000.0, 44100.0, 48000.0])
@pytest.mark.parametrize("rate_hz", [0.3, 7, 15.0])
def test_the_rate_is_that_of_messages(fs, rate_hz):
    """Messages come exactly at the configured rate, with frames between skipped or averaged."""
    few = config.AnalysisConfig(hop=512, rate_hz=rate_hz).spec(fs, 1)
    mean = config.AnalysisConfig(hop=512, rate_hz=rate_hz, averaging="mean").spec(fs, 1)
    step = Fraction(fs) / Fraction(str(rate_hz))
    assert few.row_step == mean.row_step == step
    assert (few.hop, few.averaging_frames) == (int(step), 1)
    n = (int(step) - 4096) // 512 + 1 if step >= 4096 else -(-int(step) // 512)
    assert (mean.hop, mean.averaging_frames) == (512, n)


def test_a_rate_that_the_hop_forbids_names_a_hop_that_fits():
    """Rows are at least one hop apart; the error for a higher rate names a hop that fits."""
    with pytest.raises(ConfigError, match=r"rate_hz=60: rows of 800 samples have no frame of hop="):
        config.AnalysisConfig(rate_hz=60, averaging="mean").spec(48000.0, 1)
    spec = config.AnalysisConfig(rate_hz=60, averaging="mean", hop=800).spec(48000.0, 1)
    assert (spec.averaging_frames, spec.row_step) == (1, 800)


def test_align_is_a_key_of_every_analysis(tmp_path):
    """The key align is in the main analysis and in products, which inherit it; it needs a rate."""
    text = "[analysis]\nrate_hz = 1\nalign = 'utc'\n[products.all]\nrate_hz = 0\nalign = 'start'\n"
    text += "[products.same]\n[source]\nuri = 'signal:white,-20'\n"
    (source,) = config.load(file(tmp_path, text)).all_sources
    assert [spec.align for spec in source.specs(48000.0, 1)] == ["utc", "start", "utc"]
    with pytest.raises(ConfigError, match="align='utc': needs rate_hz"):
        config.load(file(tmp_path, "[analysis]\nalign = 'utc'\n"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[analysis]\naveraging='mean'", "averaging='mean': needs rate_hz, the rows a second"),
        (
            "[source]\nsamplerate=48000\n[analysis]\nrate_hz=1e-300",
            "rate_hz=1e-300: must be at least",
        ),
        ("[analysis]\nrate_hz=nan", "analysis.rate_hz=nan: must be a number from 0 to 1000000"),
        ("[analysis]\nbands='deep'", "bands='deep': must be octave, third-octave, octave/B"),
        ("[analysis]\nweighting='B'", "analysis.weighting='B': must be one of Z, A, C"),
        ("[products.a]\nsourses=[]", "products.a.sourses: unknown key; [products.a] knows sources"),
        ("[products]\na = 1", "products.a: unknown key; a product is a table, [products.NAME]"),
        ("products = 1", "products: unknown key; keys stand in [source], [analysis],"),
        ("[products.'a b']", "name of a product='a b': must be 1 to 64 of A-Z a-z 0-9 . _ -"),
        ("[products.a]\nhop=0", "products.a: hop=0: must be at least 1 sample"),
        ("[products.dbfs]", "products.dbfs: is the name of the main analysis; must be another"),
        (
            "[products.a]\nsources=['x']",
            "products.a: sources='x': is no source's name; there are: none with a name",
        ),
        (
            "[products.a]\nsources=['x']\n[sources.b]",
            "products.a: sources='x': is no source's name; there are: b",
        ),
        (
            "[sources.b]\niq=true\n[products.a]\nbands='octave'",
            "sources.b: products.a: bands='octave': I/Q signals have none",
        ),
    ],
)
def test_bad_products_are_one_clear_error(tmp_path, text, message):
    """An error about products names the product, the key, the value and the rule."""
    with pytest.raises(ConfigError, match=re.escape(message)) as caught:
        config.load(file(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_products_of_sources_that_are_replaced_go_with_them(tmp_path):
    """Products of replaced sources are dropped, and those of all sources apply to the new one."""
    notes = []
    path = file(tmp_path, PRODUCTS)
    loaded = config.load(path, {"source": {"uri": "-"}}, notes.append)
    assert [product.name for product in loaded.all_sources[0].products] == ["levels"]
    assert notes[1:] == ['command line: [products."fine.res"] of the file goes with them']


def test_changes_of_products_are_named(tmp_path):
    """A key that only one of two products sets counts as changed."""
    old = config.load(file(tmp_path, PRODUCTS))
    new = config.load(file(tmp_path, PRODUCTS.replace('weighting = "A"', "hop = 256")))
    assert config.changed_keys(old, new) == ["products.levels.weighting", "products.levels.hop"]


# ---- changes of single keys


def test_changes_hold_by_the_rules_of_a_file(tmp_path):
    """Changes use the names of changed_keys and the rules of a file; text is read as in a flag."""
    old = config.load(file(tmp_path, PRODUCTS))
    changes = {
        "sources.pond.analysis.hop": "256",
        'products."fine.res".nfft': 16384,
        "products.levels": None,
        "sources.shed": {"uri": "-", "analysis": {"hop": 64}},
        "publish.raw32": "a, b",
    }
    new = config.with_changes(old, changes, "set")
    assert set(config.changed_keys(old, new)) == {*changes, "sources.shed"}
    assert new.sources[1].analysis.hop == 256
    assert new.sources[2].analysis == config.AnalysisConfig(hop=64)
    assert config.with_changes(old, {}, "set") == old


def test_a_single_source_that_has_a_name_can_have_others_beside():
    """A single named source stays unchanged when another is added."""
    old = config.load(None, {"source": {"uri": "-", "name": "mic"}, "analysis": {"hop": 7}})
    new = config.with_changes(old, {"sources.b": {"uri": "x.wav"}}, "set")
    assert [source.name for source in new.sources] == ["mic", "b"]
    assert new.all_sources[0] == old.all_sources[0]
    assert new.sources[1].analysis.hop == 7


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"analysis.hup": 1}, "set: analysis.hup: unknown key; [analysis] knows window"),
        ({"analysis.hop": "x"}, "set: analysis.hop='x': must be a whole number"),
        ({"analysis.hop": 0}, "hop=0: must be at least 1 sample"),
        ({"hop": 1}, "set: hop: unknown key; must belong to an existing table"),
        ({"": 1}, "set: : unknown key; must belong to an existing table"),
        (
            {"analysis.hop.x": 1},
            "set: analysis.hop.x: unknown key; must belong to an existing table",
        ),
        ({"sources.roof": {}}, "set: source.name='': must be set before there can be others"),
        (
            {"sources.roof.uri": "-"},
            "set: sources.roof.uri: unknown key; must belong to an existing table",
        ),
        ({"products.a": None}, "set: products.a: does not exist, so it cannot be removed"),
        (
            {"source.name": "a", "sources.b": {}, "sources.a": None, "sources.b.x": 1},
            "set: sources.b.x: unknown key; [sources.b] knows uri",
        ),
        (
            {"source.name": "a", "sources.a": None},
            "set: sources.a: is the last source; there must be one",
        ),
    ],
)
def test_bad_changes_are_one_clear_error(changes, message):
    """A misspelt change creates nothing, and the last source cannot be removed."""
    with pytest.raises(ConfigError, match=re.escape(message)):
        config.with_changes(Config(), changes, "set")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[analysis]\nhop = " + "[" * 100_000, "arrays too deep"),
        ("[analysis]\nhop = " + "{a = " * 50_000, "arrays too deep"),
        ("[analysis]\nhop = " + "9" * 5000, "not valid TOML"),
        ("#" * (1 << 18) + "\n", "must have at most 262144 bytes"),
        ("a" + ".a" * (1 << 18), "must have at most 262144 bytes"),
        ("a" + ".a" * 100_000, "a key must have at most 100 parts"),
        ('"a"' + '."a"' * 60_000, "a key must have at most 100 parts"),
        ("x" * 200_000, "not valid TOML"),
        ("[" + "x . " * 60_000, "a key must have at most 100 parts"),
        ("".join(f"a = {'[' * 18}\n" for _ in range(11_000)), "not valid TOML"),
    ],
)
def test_a_file_that_would_take_much_time_or_stack_is_refused(tmp_path, text, message):
    """A file that would take too much time or stack in Python's TOML parser is refused."""
    path = tmp_path / "c.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        config.load(str(path))


def test_a_device_without_end_is_refused():
    """An endless device is refused unread."""
    with pytest.raises(ConfigError, match="/dev/zero: must be a regular file"):
        config.load("/dev/zero")
