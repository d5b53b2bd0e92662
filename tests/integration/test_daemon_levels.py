"""Sound levels of a running daemon: what other kinds of measurements do not have."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
from metered import load

from spectrod.client import MessageTable, subscribe
from spectrod.daemon.daemon import Daemon
from spectrod.measure.levels import LevelMeter

FS = 8000


def daemon_of(tmp_path, source, levels):
    return Daemon(load(tmp_path, source, levels))


def test_all_whole_intervals_of_a_file_that_ends(tmp_path):
    """Three seconds of a file are three messages of a second, though no chunk ends with them."""
    x = np.random.default_rng(3).uniform(-0.3, 0.3, 3 * FS).astype(np.float32)
    soundfile.write(tmp_path / "a.wav", x, FS, subtype="FLOAT")
    daemon = daemon_of(
        tmp_path, f'uri = "{tmp_path}/a.wav"', '[levels.meter]\nalign = "start"\ninterval_s = 1.0'
    )
    firsts, has_all = [], threading.Event()

    def write_row(_encoder, row, _t_mono_ns):
        firsts.append(row.first_sample)
        if len(firsts) == 3:
            has_all.set()

    (meter,) = daemon.runners[0].meters
    meter.attach(SimpleNamespace(write=lambda _row: None))
    meter._write_row = write_row
    daemon.start()
    try:
        assert has_all.wait(60.0)
    finally:
        daemon.stop()
    assert firsts == [0, FS, 2 * FS]


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
def test_messages_are_a_table(tmp_path):
    """Messages of two channels, as they come, are rows of intervals with a column for each."""
    x = np.random.default_rng(7).uniform(-0.3, 0.3, (2, 2 * FS)) * np.array([[1.0], [0.1]])
    soundfile.write(tmp_path / "a.wav", x.T, FS, subtype="FLOAT")
    daemon = daemon_of(
        tmp_path,
        f'uri = "{tmp_path}/a.wav"\npace = "realtime"\nloop = true',
        '[levels.meter]\nquantities = ["LZeq"]\ninterval_s = 0.25',
    )
    daemon.start()
    messages = []
    try:
        for frame in subscribe(daemon.publisher.endpoints[0], "levels/", timeout_s=60):
            messages.append(frame)
            if len(messages) == 8:
                break
    finally:
        daemon.stop()
    table = MessageTable(messages).to_arrow()
    names = ["time", "duration_s", "flags@0", "flags@1", "LZeq@0", "LZeq@1"]
    assert table.column_names == names
    of_channels = [table.column(name).to_pylist() for name in names[-2:]]
    for k, cells in enumerate(of_channels):
        due = [one["LZeq"] for one in messages if one.channel == str(k)]
        assert [cell for cell in cells if cell is not None] == due
    differences = [a - b for a, b in zip(*of_channels, strict=True) if None not in (a, b)]
    assert len(differences) >= 3
    assert differences == pytest.approx([20.0] * len(differences), abs=1.0)


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
        rows = meter.push(looped[:, begin : begin + 2 * FS])
        names = [one.name for one in meter.message_quantities]
        for frame, row in zip(found[name], rows, strict=False):
            assert len(frame.values) == n_values
            assert list(frame.header.quantities) == names
            np.testing.assert_array_equal(frame.values, row.message_values[:, 0])
            np.testing.assert_array_equal(frame.values[2:], row.band_values[0, :, 0])
