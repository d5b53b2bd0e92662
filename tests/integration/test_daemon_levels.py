"""Sound levels of a running daemon: topics, demand, settings, and the same bits as a file."""

import json
import threading
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
from metered import load

from spectrod.client import LevelsFrame, subscribe
from spectrod.daemon.daemon import Daemon
from spectrod.lib.errors import ConfigError
from spectrod.measure.levels import LevelMeter

FS = 8000


def daemon_of(tmp_path, source, levels):
    return Daemon(load(tmp_path, source, levels))


@pytest.mark.slow
def test_live_levels_are_those_of_the_file(tmp_path):
    """A paced source gives the same bits as the meter at full speed, with flags and times."""
    x = np.random.default_rng(3).uniform(-0.3, 0.3, (2, 3 * FS)).astype(np.float32)
    soundfile.write(tmp_path / "a.wav", x.T, FS, subtype="FLOAT")
    names = ["LAeq", "LAFmax", "true_peak"]
    (tmp_path / "mic.toml").write_text(
        'reference = "20 uPa"\nfull_scale_db = 120\nfull_scale = "rms"'
    )
    daemon = daemon_of(
        tmp_path,
        f'uri = "{tmp_path}/a.wav"\npace = "realtime"\nloop = true\n'
        f'channel_names = ["left", "right"]\ncalibration = "{tmp_path}/mic.toml"',
        f'[levels.meter]\nquantities = {json.dumps(names)}\ninterval_s = 0.5\nalign = "start"',
    )
    daemon.start()
    try:
        frames = {}
        for frame in subscribe(daemon.publisher.endpoints[0], "levels/mic/", timeout_s=60):
            frames.setdefault(frame.channel, []).append(frame)
            if len(frames.get("right", [])) == 3:
                (stats,) = daemon.stats()
                break
        assert stats.products[-1] == stats.computed[-1] == "meter"
    finally:
        daemon.stop()
    first = frames["left"][0]
    assert isinstance(first, LevelsFrame)
    assert first.topic == "levels/mic/left/meter/"
    assert first.header.quantities == tuple(names)
    assert first.header.units == ("dB SPL", "dB SPL", "dBTP")
    assert first.header.ref == "0 dB = 20 uPa"
    assert first["LAFmax"] == first.values[1]
    with pytest.raises(KeyError, match="LAFmin"):
        first["LAFmin"]
    # The meter starts with the first sample that was wanted.
    begin = first.header.sample_index
    meter = LevelMeter(
        FS, 2, quantities=names, interval_s=0.5, first_sample=begin, full_scale_db=120.0
    )
    looped = np.concatenate([x] * 20, axis=1)
    rows = meter.feed(looped[:, begin : begin + 3 * FS])
    for k, channel in enumerate(("left", "right")):
        for frame, row in zip(frames[channel], rows, strict=False):
            assert frame.missed == 0
            assert frame.header.sample_index == row.first_sample
            assert (frame.header.n_samples, frame.header.due_samples) == (row.n_samples, FS // 2)
            np.testing.assert_array_equal(frame.values, row.values[:, k])
    assert "settling" in first.header.flags


def test_all_whole_intervals_of_a_file_that_ends(tmp_path):
    """Three seconds of a file are three messages of a second, though no chunk ends with them."""
    x = np.random.default_rng(3).uniform(-0.3, 0.3, 3 * FS).astype(np.float32)
    soundfile.write(tmp_path / "a.wav", x, FS, subtype="FLOAT")
    daemon = daemon_of(
        tmp_path, f'uri = "{tmp_path}/a.wav"', '[levels.meter]\nalign = "start"\ninterval_s = 1.0'
    )
    firsts, has_all = [], threading.Event()

    def submit(_encoder, row, _t_mono_ns):
        firsts.append(row.first_sample)
        if len(firsts) == 3:
            has_all.set()

    (meter,) = daemon.runners[0].meters
    meter.attach(SimpleNamespace(take_row=lambda _row, _about: None))
    meter._submit = submit
    daemon.start()
    try:
        assert has_all.wait(60.0)
    finally:
        daemon.stop()
    assert firsts == [0, FS, 2 * FS]


@pytest.mark.slow
def test_levels_are_measured_on_demand_and_changed_by_reload(tmp_path):
    """Without a subscriber nothing is measured; a change adds, changes and removes levels."""
    tone = 'uri = "signal:sine,1000,-20"\nsamplerate = 8000'
    daemon = daemon_of(tmp_path, tone, "")
    daemon.start()
    endpoint = daemon.publisher.endpoints[0]
    try:
        assert "levels/mic/0/slow/" not in daemon.runners[0].topics()
        daemon.reconfigure(load(tmp_path, tone, "[levels.slow]\ninterval_s = 0.2"))
        assert "levels/mic/0/slow/" in daemon.runners[0].topics()
        (stats,) = daemon.stats()
        assert "slow" in stats.products
        assert "slow" not in stats.computed
        for frame in subscribe(endpoint, "levels/mic/0/slow/", timeout_s=60):
            if "partial" not in frame.header.flags and "settling" not in frame.header.flags:
                break
        assert frame["LAeq"] == pytest.approx(-20.0, abs=0.05)
        assert frame.header.units == ("dBFS", "dBFS")
        assert frame.header.t_utc_ns % 200_000_000 < 20_000_000
        daemon.reconfigure(
            load(tmp_path, tone, '[levels.slow]\nquantities = ["LCeq"]\ninterval_s = 0.1')
        )
        for frame in subscribe(endpoint, "levels/", timeout_s=60):
            if frame.header.quantities == ("LCeq",):
                break
        daemon.reconfigure(load(tmp_path, tone, ""))
        assert "levels/mic/0/slow/" not in daemon.runners[0].topics()
    finally:
        daemon.stop()


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ('[levels.a]\nquantities = ["LAQ"]', r"levels.a: quantity='LAQ': must be a level such as"),
        (
            "[levels.a]\ninterval_s = 0.001",
            r"levels.a: interval_s=0.001: must be 0.01 s to 366 days",
        ),
        ('[levels.a]\nquantities = ["Lday"]', r"levels.a: time_zone: Lday needs the time zone"),
        ('[levels.a]\nsources = ["roof"]', r"levels.a: sources='roof': is no source's name"),
        ("[levels.dbfs]", r"levels.dbfs: is the name of a product of the same source"),
        (
            '[levels.a]\nquantity = "LAeq"',
            r"levels.a.quantity: unknown key; .*quantities",
        ),
        (
            "[levels.a]\nchannel_weights = [1, 0]",
            r"channel_weights: no quantity is a loudness, such",
        ),
        (
            '[levels.a]\nquantities = ["LUFS_I"]\nchannel_weights = [1, 11]',
            r"levels.a: channel_weights=11: must be 0 to 10",
        ),
        (
            '[levels.a]\nquantities = ["LUFS_I"]\nchannel_weights = [1, nan]',
            r"levels.a: channel_weights=nan: must be 0 to 10",
        ),
        ('[levels.a]\nbands = "mel:40"', r"levels.a: bands='mel:40': must be octave, third-octave"),
        (
            "[levels.a]\nbands='octave/24'\nband_quantities=['LZeq', 'LZE', 'LZF', 'LZF9', 'LZS']",
            r"levels.a: 12\d\d values: a message has at most 1024; choose fewer bands",
        ),
        (
            "[levels.a]\nlower_limit_db = inf",
            r"levels.a: lower_limit_db=inf: must be a finite level",
        ),
        ('[levels.a]\nalign = "noon"', r"levels.a.align='noon': must be one of start, utc, local"),
    ],
)
def test_wrong_settings(tmp_path, levels, message):
    """Each wrong key of sound levels is one error with the table's name."""
    with pytest.raises(ConfigError, match=message):
        load(tmp_path, 'uri = "signal:sine,1000,-20"', levels)


def test_a_rate_without_a_filter_is_an_error(tmp_path):
    """Levels that the source's rate does not allow are an error when it is opened."""
    with pytest.raises(ConfigError, match="fs=500: the weighting A needs a sample rate"):
        daemon_of(tmp_path, 'uri = "signal:sine,100,-20"\nsamplerate = 500', "[levels.a]")


@pytest.mark.slow
def test_live_weights_and_lower_limit_are_those_of_the_command(tmp_path):
    """Weights of the loudness and the lower limit apply to a live source, for each channel."""
    t = np.arange(2 * FS) / FS
    x = np.sin(2.0 * np.pi * 997.0 * t) * np.array([[0.1], [0.01], [0.1]])
    soundfile.write(tmp_path / "a.wav", x.T, FS, subtype="FLOAT")
    daemon = daemon_of(
        tmp_path,
        f'uri = "{tmp_path}/a.wav"\npace = "realtime"\nloop = true',
        '[levels.meter]\nquantities = ["LZeq", "LUFS_M"]\ninterval_s = 0.5\n'
        "channel_weights = [1, 1, 0]\nlower_limit_db = -30",
    )
    daemon.start()
    found = {}
    try:
        for frame in subscribe(daemon.publisher.endpoints[0], "levels/", timeout_s=60):
            if "settling" not in frame.header.flags:
                found[frame.channel] = frame
            if len(found) == 3:
                break
    finally:
        daemon.stop()
    # A sine of 997 Hz reads its level in dBFS less 3.01 LU; the third channel has weight 0.
    expected = 10.0 * np.log10(0.1**2 + 0.01**2) - 3.01
    for frame in found.values():
        assert frame["LUFS_M"] == pytest.approx(expected, abs=0.05)
    assert ["under_range" in found[name].header.flags for name in "012"] == [False, True, False]


@pytest.mark.slow
def test_live_bands_have_a_value_each(tmp_path):
    """Levels in bands are named values of the messages: those of the band of a tone are its."""
    daemon = daemon_of(
        tmp_path,
        'uri = "signal:sine,1000,-20"\nsamplerate = 8000',
        '[levels.meter]\nbands = "octave"\nband_quantities = ["LZeq", "LZFmax"]\n'
        "f_min_hz = 500\nf_max_hz = 2000\ninterval_s = 0.5",
    )
    daemon.start()
    try:
        for frame in subscribe(daemon.publisher.endpoints[0], "levels/", timeout_s=60):
            if "settling" not in frame.header.flags:
                break
    finally:
        daemon.stop()
    bands = ("500Hz", "1kHz", "2kHz")
    in_bands = tuple(f"{name}_{band}" for name in ("LZeq", "LZFmax") for band in bands)
    assert frame.header.quantities == ("LAeq", "LAFmax", *in_bands)
    assert frame.header.units == ("dBFS",) * 8
    for name in ("LZeq", "LZFmax"):
        assert frame[f"{name}_1kHz"] == pytest.approx(-20.0, abs=0.05)
        assert frame[f"{name}_500Hz"] < -50.0


@pytest.mark.slow
def test_live_bands_of_a_24th_octave_are_those_of_the_file(tmp_path):
    """Messages of more than 64 values, in 1/12 and 1/24 octaves, have the bits of the meter."""
    x = np.random.default_rng(5).uniform(-0.3, 0.3, (1, 2 * FS)).astype(np.float32)
    soundfile.write(tmp_path / "a.wav", x.T, FS, subtype="FLOAT")
    fractions = {"twelfths": "octave/12", "finest": "octave/24"}
    daemon = daemon_of(
        tmp_path,
        f'uri = "{tmp_path}/a.wav"\npace = "realtime"\nloop = true',
        "".join(
            f'[levels.{name}]\nbands = "{bands}"\ninterval_s = 0.25\nalign = "start"\n'
            for name, bands in fractions.items()
        ),
    )
    daemon.start()
    found = {name: [] for name in fractions}
    try:
        for frame in subscribe(daemon.publisher.endpoints[0], "levels/", timeout_s=60):
            found[frame.product].append(frame)
            if min(map(len, found.values())) == 2:
                break
    finally:
        daemon.stop()
    looped = np.concatenate([x] * 20, axis=1)
    for (name, bands), n_values in zip(fractions.items(), (93, 184), strict=True):
        begin = found[name][0].header.sample_index
        meter = LevelMeter(FS, 1, interval_s=0.25, first_sample=begin, bands=bands)
        rows = meter.feed(looped[:, begin : begin + 2 * FS])
        names = [one.name for one in meter.message_quantities]
        for frame, row in zip(found[name], rows, strict=False):
            assert len(frame.values) == n_values
            assert list(frame.header.quantities) == names
            np.testing.assert_array_equal(frame.values, row.message_values[:, 0])
            np.testing.assert_array_equal(frame.values[2:], row.band_values[0, :, 0])
