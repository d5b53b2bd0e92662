"""Measurements of a running daemon, each kind: topics, demand, settings, and the bits of a file."""

from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pytest
import soundfile
from metered import load

from spectrod import client
from spectrod.client import subscribe
from spectrod.daemon.daemon import Daemon
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.errors import ConfigError
from spectrod.measure.features.feature_meter import feature_meter
from spectrod.measure.kinds import KINDS
from spectrod.measure.levels import LevelMeter
from spectrod.measure.measurement_config import MeasuredSignals
from spectrod.measure.tones.tone_meter import tone_meter

FS = 8000
INTERVAL_S = 0.5
N_ROWS = 3
CHANNELS = ("stalls", "desk", "street")
FEATURES = ("centroid", "flux_sd", "ACI_0.4s", "NDSI_500-1000Hz_1000-4000Hz")
FRAMED = SpectrumSpec(FS, 3, "hann", 512, 256)
TONE = 'uri = "signal:sine,1000,-20"\nsamplerate = 8000'
TWO = f"{TONE}\nchannels = 2"


class Case(NamedTuple):
    """What the settings of a kind mean.

    Attributes
    ----------
    keys : mapping of str to object
        Keys of the product that are not those of every kind.
    meter : callable or None
        The documented meter with these settings, from its first sample; else that of the settings.
    check : callable
        Checks the messages of each channel.
    """

    keys: Mapping[str, object] = {}
    meter: Callable[[int], Any] | None = None
    check: Callable[[Mapping[str, list[Any]]], None] = lambda _frames: None


def check_levels(frames):
    first = frames["stalls"][0]
    assert first.header.quantities == ("LAeq", "LAFmax", "true_peak")
    assert first.header.units == ("dB SPL", "dB SPL", "dBTP")
    assert first.header.ref == "0 dB = 20 uPa"
    assert first["LAFmax"] == first.values[1]
    with pytest.raises(KeyError, match="LAFmin"):
        first["LAFmin"]
    assert "settling" in first.header.flags


def check_features(frames):
    first, second = frames["stalls"][:2]
    assert first.header.quantities == FEATURES
    assert first.header.units == ("Hz", "1", "1", "1")
    assert first.header.band_hz == (100.0, 3000.0)
    assert (second.header.n_frames, second.header.flags) == ((FS // 2 - 512) // 256 + 1, ())
    assert first.f[0] == 109.375


def check_tones(frames):
    whole = [frame for frame in frames["desk"] if not frame.header.flags]
    assert len({tuple(frame.column("id")) for frame in whole}) == 1
    assert whole[-1]["fundamental"] == pytest.approx(440.0, abs=0.1)


def check_transfer(frames):
    header, last = frames["stalls"][0].header, frames["stalls"][-1]
    assert (header.reference, header.averaging, header.averaging_s) == ("desk", "exponential", 0.5)
    assert header.spectra_units == ("1", "dB", "deg")
    # A seam of the loop is no gap, but lowers the coherence.
    assert last["delay"] == pytest.approx(11 / FS, abs=1e-5)
    assert last["mean_coherence"] > 0.9 > last["significant_coherence"] > 0.05
    assert frames["street"][-1]["mean_coherence"] < 0.2


CASES = {
    "levels": Case(
        {"quantities": ["LAeq", "LAFmax", "true_peak"]},
        lambda begin: LevelMeter(
            *(FS, 3),
            quantities=["LAeq", "LAFmax", "true_peak"],
            interval_s=INTERVAL_S,
            first_sample=begin,
            full_scale_db=120.0,
        ),
        check_levels,
    ),
    "features": Case(
        {"quantities": list(FEATURES), "low_hz": 100, "high_hz": 3000, "spectra": ["kurtosis"]},
        lambda begin: feature_meter(
            *(FRAMED, FEATURES),
            interval_s=INTERVAL_S,
            band_hz=(100.0, 3000.0),
            first_sample=begin,
            spectra=("kurtosis",),
        ),
        check_features,
    ),
    "tones": Case(
        {"quantities": ["fundamental", "SINAD", "tracks"], "window": "hann"},
        lambda begin: tone_meter(
            FRAMED,
            ["fundamental", "SINAD", "tracks"],
            interval_s=INTERVAL_S,
            first_sample=begin,
        ),
        check_tones,
    ),
    "transfer": Case(
        {"reference": 1, "averaging": "exponential", "averaging_s": 0.5, "delay_samples": 5},
        check=check_transfer,
    ),
}
"""What is known of a kind beside its settings."""


def sound():
    """Make three channels: tones and noise, the same 11 samples before and with a tenth of noise.

    The third one is noise alone.
    """
    t = np.arange(N_ROWS * FS) / FS
    tones = 0.1 * np.sin(2 * np.pi * 440.0 * t) + 0.05 * np.sin(2 * np.pi * 1000.0 * t)
    noise = 1e-3 * np.random.default_rng(5).standard_normal((3, len(t)))
    desk = tones + noise[1]
    return np.stack([np.roll(desk, 11) + 0.1 * noise[0], desk, noise[2]]).astype(np.float32)


def keys_of(word, **keys):
    """Return the keys of a product whose frames, if there are, have 512 samples."""
    is_framed = "win_length" in KINDS[word].__struct_fields__
    return ({"win_length": 512} if is_framed else {}) | keys


def table(word, name="a", **keys):
    """Return the section of a product."""
    lines = (f"{key} = {value!r}\n" for key, value in keys_of(word, **keys).items())
    return f"[{word}.{name}]\n{''.join(lines)}"


@pytest.mark.slow
@pytest.mark.parametrize("word", KINDS)
def test_live_values_are_those_of_the_file(tmp_path, word):
    """A paced source gives the bits of the meter at full speed, of wanted products alone."""
    case = CASES.get(word, Case())
    soundfile.write(tmp_path / "a.wav", (x := sound()).T, FS, subtype="FLOAT")
    calibration = tmp_path / "mic.toml"
    calibration.write_text('reference = "20 uPa"\nfull_scale_db = 120\nfull_scale = "rms"')
    source = f'uri = "{tmp_path}/a.wav"\npace = "realtime"\nloop = true\n'
    source += f"channel_names = {list(CHANNELS)}\n"
    if word == "levels":
        source += f'calibration = "{calibration}"'
    keys = {"interval_s": INTERVAL_S, "align": "start"} | case.keys
    daemon = Daemon(load(tmp_path, source, table(word, **keys)))
    config = KINDS[word]("a", **keys_of(word, **keys))
    bound = config.bind(MeasuredSignals("", FS, CHANNELS, (None,) * 3))
    names, frames = bound.signals.channels, {}
    daemon.start()
    try:
        (stats,) = daemon.stats()
        assert "a" in stats.products
        assert "a" not in stats.computed
        for frame in subscribe(daemon.publisher.endpoints[0], f"{word}/mic/", timeout_s=60):
            frames.setdefault(frame.channel, []).append(frame)
            if len(frames.get(names[-1], [])) == N_ROWS:
                (stats,) = daemon.stats()
                break
        assert "a" in stats.computed
    finally:
        daemon.stop()
    assert tuple(frames) == names
    # The meter starts with the first sample that was wanted.
    begin = frames[names[0]][0].header.sample_index
    meter = (case.meter or bound.open)(begin)
    rows = meter.push(np.concatenate([x] * 20, axis=1)[:, begin : begin + N_ROWS * FS])
    for k, name in enumerate(names):
        for frame, row in zip(frames[name], rows, strict=False):
            assert isinstance(frame, getattr(client, f"{word.title()}Frame"))
            assert (frame.topic, frame.missed) == (f"{word}/mic/{name}/a/", 0)
            assert frame.header.sample_index == row.first_sample
            assert frame.header.n_samples == row.n_samples
            assert frame.header.due_samples == INTERVAL_S * FS
            np.testing.assert_array_equal(frame.values, row.message_values[:, k])
            if row.tables:
                found = frame.tracks if word == "tones" else frame.spectra
                np.testing.assert_array_equal(found, row.tables[k])
    case.check(frames)


OF_A_TONE = {"levels": ("LAeq", -20.0, 0.05), "features": ("centroid", 1000.0, FS / 512)}
"""What a tone of 1 kHz and -20 dBFS has: nearly all is in a main lobe, which is symmetric."""
CHANGED = {"levels": {"quantities": ["LCeq"]}}
"""Keys of a product that are changed with its interval."""


@pytest.mark.slow
@pytest.mark.parametrize("word", KINDS)
def test_products_are_added_changed_and_removed_by_reload(tmp_path, word):
    """A change of the settings changes topics without a restart; intervals begin with UTC's."""
    daemon = Daemon(load(tmp_path, TWO, ""))
    daemon.start()
    try:
        before = daemon.runners[0].topics()
        daemon.reconfigure(load(tmp_path, TWO, table(word, interval_s=0.25)))
        added = set(daemon.runners[0].topics()) - set(before)
        assert {one.partition("/")[0] for one in added} == {word}
        for frame in subscribe(daemon.publisher.endpoints[0], f"{word}/", timeout_s=60):
            if not frame.header.flags:
                break
        assert frame.header.t_utc_ns % 250_000_000 < 20_000_000
        if word in OF_A_TONE:
            name, expected, tolerance = OF_A_TONE[word]
            assert frame[name] == pytest.approx(expected, abs=tolerance)
        if word == "levels":
            assert frame.header.units == ("dBFS", "dBFS")
        changed = CHANGED.get(word, {})
        daemon.reconfigure(load(tmp_path, TWO, table(word, interval_s=0.2, **changed)))
        for frame in subscribe(daemon.publisher.endpoints[0], f"{word}/", timeout_s=60):
            if frame.header.interval_s == 0.2:
                break
        if "quantities" in changed:
            assert frame.header.quantities == tuple(changed["quantities"])
        daemon.reconfigure(load(tmp_path, TWO, ""))
        assert set(daemon.runners[0].topics()) == set(before)
    finally:
        daemon.stop()


@pytest.mark.parametrize("word", KINDS)
@pytest.mark.parametrize(
    ("name", "keys", "rule"),
    [
        ("a", {"sources": ["roof"]}, "a: sources='roof': is no source's name"),
        ("dbfs", {}, "dbfs: is the name of a product of the same source"),
        ("a", {"align": "noon"}, r"a.align='noon': must be one of start, utc"),
        ("a", {"quantity": "LAeq"}, "a.quantity: unknown key; .*quantities"),
    ],
)
def test_settings_that_are_wrong_for_every_kind(tmp_path, word, name, keys, rule):
    """A key that breaks a rule is one error with the table's name."""
    with pytest.raises(ConfigError, match=rf"{word}\.{rule}"):
        load(tmp_path, TWO, table(word, name, **{"interval_s": 2} | keys))


@pytest.mark.parametrize(("one", "other"), [*combinations(KINDS, 2)])
def test_products_of_two_kinds_have_different_names(tmp_path, one, other):
    """Topics of a source differ in their product."""
    both = table(one, interval_s=2) + table(other, interval_s=2)
    with pytest.raises(ConfigError, match=rf"{other}\.a: is the name of a product of the same so"):
        load(tmp_path, TWO, both)


ONE = TONE
WHITE = 'uri = "signal:white,-20"\nsamplerate = 8000\nchannels = 2'


@pytest.mark.parametrize(
    ("source", "product", "rule"),
    [
        (ONE, "[levels.a]\ninterval_s = 0.001", "interval_s=0.001: must be 0.01 s to 366 days"),
        (ONE, '[levels.a]\nquantities = ["LAQ"]', "quantity='LAQ': must be a level such as"),
        (ONE, '[levels.a]\nquantities = ["Lday"]', "time_zone: Lday needs the time zone"),
        (
            ONE,
            "[levels.a]\nchannel_weights = [1, 0]",
            "channel_weights.*: no quantity is a loudness, such",
        ),
        (
            ONE,
            '[levels.a]\nquantities = ["LUFS_I"]\nchannel_weights = [1, 11]',
            "channel_weights=11: must be 0 to 10",
        ),
        (
            ONE,
            '[levels.a]\nquantities = ["LUFS_I"]\nchannel_weights = [1, nan]',
            "channel_weights=nan: must be 0 to 10",
        ),
        (ONE, '[levels.a]\nbands = "mel:40"', "bands='mel:40': must be octave, third-octave"),
        (
            ONE,
            "[levels.a]\nbands='octave/24'\nband_quantities=['LZeq', 'LZE', 'LZF', 'LZF9', 'LZS']",
            r"12\d\d values: a message has at most 1024; choose fewer bands",
        ),
        (ONE, "[levels.a]\nlower_limit_db = inf", "lower_limit_db=inf: must be a finite level"),
        (ONE, '[levels.a]\nalign = "noon"', "align='noon': must be one of start, utc, local"),
        (ONE, '[features.a]\nquantities = ["centre"]', "feature='centre': must be a feature such"),
        (
            ONE,
            "[features.a]\ninterval_s = 0.01",
            "interval_s=0.01: must be at least a frame, win_length",
        ),
        (
            ONE,
            '[features.a]\nquantities = ["ADI"]',
            "ADI_0-10000Hz_1000Hz_-50dB: top_hz=10000, width_hz=1000: .* fs/2=4000 Hz",
        ),
        (ONE, "[features.a]\nhigh_hz = 4001", "high_hz=4001: must be at most 4000 Hz, the last"),
        (
            ONE,
            "[features.a]\nlow_hz = 3000\nhigh_hz = 2000",
            "low_hz=3000: must be below high_hz=2000",
        ),
        (
            ONE,
            "[features.a]\nlow_hz = 1000.5\nhigh_hz = 1001",
            r"band_hz=\(1000.5, 1001\): has no bin",
        ),
        (ONE, "[features.a]\nhop = -1", "hop=-1: "),
        (ONE, "[features.a]\nwin_length = 2097152", "win_length=2097152: must be 2 to 1048576"),
        (ONE, '[features.a]\nwindow = "hat"', "window='hat': must be one of"),
        (
            ONE,
            '[features.a]\nalign = "local"',
            "time_zone: align='local' needs the time zone of its",
        ),
        (ONE, '[tones.a]\ntime_zone = "Mars"', "time_zone='Mars': there is no such time zone"),
        (ONE, '[tones.a]\nquantities = ["thd"]', "quantity='thd': must be one of fundamental, lev"),
        (
            ONE,
            "[tones.a]\ninterval_s = 0.5",
            "interval_s=0.5: must be at least a frame, win_length=8192",
        ),
        (
            ONE,
            "[tones.a]\nmax_tracks = 1025\ninterval_s = 2",
            "max_tracks=1025: must be a whole number from 1 to 1024",
        ),
        (
            ONE,
            "[tones.a]\nhigh_hz = 4001\ninterval_s = 2",
            "high_hz=4001: must be at most 4000 Hz, the last bin",
        ),
        (ONE, "[transfer.a]", "sources: a source of 1 channel has no"),
        (f"{WHITE}\nselect = [1]", "[transfer.a]", "sources: a source of 1 channel has no"),
        (f"{WHITE}\niq = true", "[transfer.a]", "sources: I/Q samples have no transfer functions"),
        (
            WHITE,
            "[transfer.a]\nresponses = [2]",
            "responses=2: must be a channel from 0 to 1 of the",
        ),
        (WHITE, "[transfer.a]\nreference = -1", "reference=-1: "),
        (WHITE, '[transfer.a]\nquantities = ["lag"]', "quantity='lag': must be one of delay"),
        (
            WHITE,
            "[transfer.a]\ninterval_s = 0.6",
            "interval_s=0.6: must hold two frames, 0.768 s",
        ),
        (
            WHITE,
            "[transfer.a]\ndelay_samples = 65537",
            "delay_samples=65537: must be a whole number",
        ),
        (WHITE, "[transfer.a]\naveraging = 'max'", "averaging='max': must be one of"),
    ],
)
def test_wrong_settings(tmp_path, source, product, rule):
    """Each wrong key is one error with the table's name, before a source is opened."""
    word = product.partition(".")[0].removeprefix("[")
    with pytest.raises(ConfigError, match=rf"{word}\.a(: |\.){rule}"):
        load(tmp_path, source, product)


@pytest.mark.parametrize(
    ("channels", "is_calibrated", "product", "rule"),
    [
        (
            1,
            False,
            '[features.a]\nquantities = ["NDSI"]\nwin_length = 64',
            r"NDSI_1.*band of 2000 to 8000 Hz: .*fs/2=",
        ),
        (1, False, "[transfer.a]\nwin_length = 64", "sources: a source of 1 channel has no trans"),
        (
            2,
            True,
            "[transfer.a]\nwin_length = 64",
            "0, 1: calibration: both channels must have one unit, not Pa",
        ),
    ],
)
def test_what_only_the_source_knows_is_checked_when_it_is_opened(
    tmp_path, channels, is_calibrated, product, rule
):
    """Rate, channels and units of a file are errors at the start, with the table's name."""
    soundfile.write(tmp_path / "a.wav", np.zeros((FS, channels)), FS)
    (tmp_path / "one.toml").write_text(
        '[channels.0]\nreference = "20 uPa"\nfull_scale_db = 120\nfull_scale = "rms"\n', "utf-8"
    )
    known = f'\ncalibration = "{tmp_path}/one.toml"' if is_calibrated else ""
    settings = load(tmp_path, f'uri = "{tmp_path}/a.wav"{known}', product)
    name = product.partition("]")[0].removeprefix("[")
    assert settings.all_sources[0].unchecked == (name,)
    with pytest.raises(ConfigError, match=f"{name}: {rule}"):
        Daemon(settings)


def test_a_rate_without_a_filter_is_an_error(tmp_path):
    """Levels that the source's rate does not allow are an error when it is opened."""
    with pytest.raises(ConfigError, match="fs=500: the weighting A needs a sample rate"):
        Daemon(load(tmp_path, 'uri = "signal:sine,100,-20"\nsamplerate = 500', "[levels.a]"))
