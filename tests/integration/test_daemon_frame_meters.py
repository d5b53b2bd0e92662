"""Features and tones of a running daemon: topics, demand, settings, and the same bits as a file."""

import numpy as np
import pytest
import soundfile
from metered import load

from spectrod.client import FeaturesFrame, TonesFrame, subscribe
from spectrod.daemon.daemon import Daemon
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.errors import ConfigError
from spectrod.measure.features.feature_meter import feature_meter
from spectrod.measure.tones.tone_meter import tone_meter

FS = 8000
NAMES = ("centroid", "flux_sd", "ACI_0.4s", "NDSI_500-1000Hz_1000-4000Hz")


@pytest.mark.slow
def test_live_features_are_those_of_the_file(tmp_path):
    """A paced source gives the same bits as the meter at full speed, on demand only."""
    x = np.random.default_rng(3).uniform(-0.3, 0.3, (2, 3 * FS)).astype(np.float32)
    soundfile.write(tmp_path / "a.wav", x.T, FS, subtype="FLOAT")
    settings = load(
        tmp_path,
        f'uri = "{tmp_path}/a.wav"\npace = "realtime"\nloop = true\n'
        'channel_names = ["left", "right"]',
        f'[features.shape]\nquantities = {list(NAMES)}\ninterval_s = 0.5\nalign = "start"\n'
        "win_length = 512\nlow_hz = 100\nhigh_hz = 3000\nspectra = ['kurtosis']",
    )
    daemon = Daemon(settings)
    daemon.start()
    try:
        (stats,) = daemon.stats()
        assert "shape" in stats.products
        assert "shape" not in stats.computed
        frames = {}
        for frame in subscribe(daemon.publisher.endpoints[0], "features/mic/", timeout_s=60):
            frames.setdefault(frame.channel, []).append(frame)
            if len(frames.get("right", [])) == 3:
                (stats,) = daemon.stats()
                break
        assert "shape" in stats.computed
    finally:
        daemon.stop()
    first, second = frames["left"][:2]
    assert isinstance(first, FeaturesFrame)
    assert first.topic == "features/mic/left/shape/"
    assert first.header.quantities == NAMES
    assert first.header.units == ("Hz", "1", "1", "1")
    assert first.header.band_hz == (100.0, 3000.0)
    assert (second.header.n_frames, second.header.flags) == ((FS // 2 - 512) // 256 + 1, ())
    begin = first.header.sample_index
    spec = SpectrumSpec(FS, 2, win_length=512, hop=256)
    meter = feature_meter(
        spec,
        NAMES,
        interval_s=0.5,
        band_hz=(100.0, 3000.0),
        first_sample=begin,
        spectra=("kurtosis",),
    )
    looped = np.concatenate([x] * 20, axis=1)
    rows = meter.feed(looped[:, begin : begin + 3 * FS])
    for k, channel in enumerate(("left", "right")):
        for frame, row in zip(frames[channel], rows, strict=False):
            assert frame.missed == 0
            assert frame.header.sample_index == row.first_sample
            np.testing.assert_array_equal(frame.values, row.values[:, k])
            np.testing.assert_array_equal(frame.spectra, row.tables[k])
            assert frame.f[0] == 109.375


@pytest.mark.slow
def test_features_are_added_and_removed_by_reload(tmp_path):
    """A change of the settings adds and removes topics without a restart of the source."""
    tone = 'uri = "signal:sine,1000,-20"\nsamplerate = 8000'
    daemon = Daemon(load(tmp_path, tone, ""))
    daemon.start()
    try:
        daemon.reconfigure(
            load(tmp_path, tone, "[features.fast]\ninterval_s = 0.1\nwin_length = 512")
        )
        assert "features/mic/0/fast/" in daemon.runners[0].topics()
        for frame in subscribe(daemon.publisher.endpoints[0], "features/", timeout_s=60):
            if not frame.header.flags:
                break
        # Nearly all power is in the main lobe of the tone, which is symmetric.
        assert frame["centroid"] == pytest.approx(1000.0, abs=FS / 512)
        daemon.reconfigure(load(tmp_path, tone, ""))
        assert "features/mic/0/fast/" not in daemon.runners[0].topics()
    finally:
        daemon.stop()


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ('quantities = ["centre"]', r"features.a: feature='centre': must be a feature such as"),
        ("interval_s = 0.01", r"features.a: interval_s=0.01: must be at least a frame, win_length"),
        ('quantities = ["ADI"]', r"features.a: top_hz=10000, width_hz=1000: .* fs/2=4000 Hz"),
        ("high_hz = 4001", r"features.a: high_hz=4001: must be at most 4000 Hz, the last bin"),
        ("low_hz = 3000\nhigh_hz = 2000", r"features.a: low_hz=3000: must be below high_hz=2000"),
        ("low_hz = 1000.5\nhigh_hz = 1001", r"features.a: band_hz=\(1000.5, 1001\): has no bin"),
        ("hop = -1", r"features.a.hop=-1: "),
        ("win_length = 2097152", r"features.a: win_length=2097152: must be 2 to 1048576"),
        ('window = "hat"', r"features.a: window='hat': must be one of"),
        ('align = "local"', r"features.a.align='local': must be one of start, utc"),
        ('sources = ["roof"]', r"features.a: sources='roof': is no source's name"),
        ("[features.dbfs]", r"features.dbfs: is the name of a product of the same source"),
        ("[levels.a]", r"features.a: is the name of a product of the same source"),
    ],
)
def test_wrong_settings(tmp_path, features, message):
    """Each wrong key of features is one error with the table's name."""
    source = 'uri = "signal:sine,1000,-20"\nsamplerate = 8000'
    with pytest.raises(ConfigError, match=message):
        load(tmp_path, source, f"[features.a]\n{features}")


def test_features_of_a_source_whose_rate_is_not_known_are_checked_when_it_is_opened(tmp_path):
    """What depends on the rate of a file is an error at the start, with the table's name."""
    soundfile.write(tmp_path / "a.wav", np.zeros(FS), FS)
    settings = load(
        tmp_path,
        f'uri = "{tmp_path}/a.wav"',
        '[features.a]\nquantities = ["NDSI"]\nwin_length = 64',
    )
    assert settings.all_sources[0].unchecked == ("features.a",)
    with pytest.raises(ConfigError, match=r"features.a: NDSI_1.*band of 2000 to 8000 Hz: .*fs/2="):
        Daemon(settings)


@pytest.mark.slow
def test_live_tones_are_those_of_the_file(tmp_path):
    """A paced source gives the bits of the meter at full speed; tracks keep their identity."""
    t = np.arange(2 * FS) / FS
    x = 0.1 * np.sin(2 * np.pi * 440.0 * t) + 0.05 * np.sin(2 * np.pi * 1000.0 * t)
    x = (x + 1e-3 * np.random.default_rng(9).normal(size=2 * FS)).astype(np.float32)
    soundfile.write(tmp_path / "a.wav", x, FS, subtype="FLOAT")
    names = ["fundamental", "SINAD", "tracks"]
    settings = load(
        tmp_path,
        f'uri = "{tmp_path}/a.wav"\npace = "realtime"\nloop = true',
        f'[tones.hum]\nquantities = {names}\ninterval_s = 0.25\nalign = "start"\n'
        'win_length = 1024\nwindow = "hann"',
    )
    daemon = Daemon(settings)
    daemon.start()
    try:
        frames = []
        for frame in subscribe(daemon.publisher.endpoints[0], "tones/mic/0/hum/", timeout_s=60):
            frames.append(frame)
            if len(frames) == 4:
                break
    finally:
        daemon.stop()
    assert isinstance(frames[0], TonesFrame)
    begin = frames[0].header.sample_index
    spec = SpectrumSpec(FS, 1, "hann", 1024, 512)
    meter = tone_meter(spec, names, interval_s=0.25, first_sample=begin)
    looped = np.concatenate([x] * 30)[np.newaxis]
    rows = meter.feed(looped[:, begin : begin + 2 * FS])
    for frame, row in zip(frames, rows, strict=False):
        assert frame.header.sample_index == row.first_sample
        np.testing.assert_array_equal(frame.values, row.values[:, 0])
        np.testing.assert_array_equal(frame.tracks, row.tables[0])
    whole = [frame for frame in frames if not frame.header.flags]
    assert len({tuple(frame.column("id")) for frame in whole}) == 1
    assert whole[-1]["fundamental"] == pytest.approx(440.0, abs=0.1)


@pytest.mark.parametrize(
    ("tones", "message"),
    [
        (
            'quantities = ["thd"]',
            r"tones.a: quantity='thd': must be one of fundamental, level",
        ),
        ("interval_s = 0.5", r"tones.a: interval_s=0.5: must be at least a frame, win_length=8192"),
        (
            "max_tracks = 1025\ninterval_s = 2",
            r"tones.a.max_tracks=1025: must be a whole number from 1 to 1024",
        ),
        (
            "high_hz = 4001\ninterval_s = 2",
            r"tones.a: high_hz=4001: must be at most 4000 Hz, the last bin",
        ),
        ("interval_s = 2\n[features.a]", r"tones.a: is the name of a product of the same source"),
    ],
)
def test_wrong_settings_of_tones(tmp_path, tones, message):
    """Each wrong key of tones is one error with the table's name."""
    source = 'uri = "signal:sine,1000,-20"\nsamplerate = 8000'
    with pytest.raises(ConfigError, match=message):
        load(tmp_path, source, f"[tones.a]\n{tones}")
