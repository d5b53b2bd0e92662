"""Transfer functions of a running daemon: topics, demand, settings, and the same bits as a file."""

import numpy as np
import pytest
import soundfile
from metered import load

from spectrod.client import TransferFrame, subscribe
from spectrod.daemon.daemon import Daemon
from spectrod.lib.errors import ConfigError
from spectrod.measure.measurement import MeasuredSignals
from spectrod.measure.transfer.transfer_config import TransferConfig

FS = 8000
TABLE = {
    "reference": 1,
    "averaging": "exponential",
    "averaging_s": 0.5,
    "interval_s": 0.25,
    "align": "start",
    "win_length": 512,
    "delay_samples": 5,
}


@pytest.mark.slow
def test_live_transfer_functions_are_those_of_the_file(tmp_path):
    """A paced source gives the same bits as the meter at full speed, on demand only."""
    rng = np.random.default_rng(5)
    x = np.zeros((3, 3 * FS))
    x[1] = 0.2 * rng.standard_normal(3 * FS)
    x[0] = np.roll(x[1], 11) + 0.02 * rng.standard_normal(3 * FS)
    x[2] = 0.1 * rng.standard_normal(3 * FS)
    x = x.astype(np.float32)
    soundfile.write(tmp_path / "a.wav", x.T, FS, subtype="FLOAT")
    keys = "\n".join(f"{key} = {value!r}" for key, value in TABLE.items())
    settings = load(
        tmp_path,
        f'uri = "{tmp_path}/a.wav"\npace = "realtime"\nloop = true\n'
        'channel_names = ["stalls", "desk", "street"]',
        f"[transfer.room]\n{keys}",
    )
    assert settings.all_sources[0].unchecked == ("transfer.room",)
    daemon = Daemon(settings)
    daemon.start()
    try:
        (stats,) = daemon.stats()
        assert "room" in stats.products
        assert "room" not in stats.computed
        frames = {}
        for frame in subscribe(daemon.publisher.endpoints[0], "transfer/mic/", timeout_s=60):
            frames.setdefault(frame.channel, []).append(frame)
            if len(frames.get("street", [])) == 4:
                break
    finally:
        daemon.stop()
    assert list(frames) == ["stalls", "street"]
    first, last = frames["stalls"][0], frames["stalls"][-1]
    assert isinstance(first, TransferFrame)
    header = first.header
    assert (header.reference, header.averaging, header.averaging_s) == ("desk", "exponential", 0.5)
    assert header.spectra_units == ("1", "dB", "deg")
    begin = header.sample_index
    config = TransferConfig("room", **TABLE)
    meter = config.bind(MeasuredSignals("", FS, ("0", "1", "2"), (None,) * 3)).open(begin)
    looped = np.concatenate([x] * 20, axis=1)
    rows = meter.feed(looped[:, begin : begin + 3 * FS])
    for k, channel in enumerate(("stalls", "street")):
        for frame, row in zip(frames[channel], rows, strict=False):
            assert frame.missed == 0
            assert frame.header.sample_index == row.first_sample
            np.testing.assert_array_equal(frame.values, row.values[:, k])
            np.testing.assert_array_equal(frame.spectra, row.tables[k])
    # A seam of the loop is no gap, but lowers the coherence.
    assert last["delay"] == pytest.approx(11 / FS, abs=1e-5)
    assert last["mean_coherence"] > 0.9 > last["significant_coherence"] > 0.05
    assert frames["street"][-1]["mean_coherence"] < 0.2


TWO = 'uri = "signal:white,-20"\nsamplerate = 8000\nchannels = 2'


@pytest.mark.parametrize(
    ("source", "table", "rule"),
    [
        (TWO.replace("channels = 2", ""), "", r"transfer.a: sources: a source of 1 channel has no"),
        (f"{TWO}\nselect = [1]", "", r"transfer.a: sources: a source of 1 channel has no"),
        (f"{TWO}\niq = true", "", r"transfer.a: sources: I/Q samples have no transfer functions"),
        (TWO, "responses = [2]", r"transfer.a: responses=2: must be a channel from 0 to 1 of the"),
        (TWO, "reference = -1", r"transfer.a.reference=-1: "),
        (TWO, 'quantities = ["lag"]', r"transfer.a: quantity='lag': must be one of delay"),
        (TWO, "interval_s = 0.6", r"transfer.a: interval_s=0.6: must hold two frames, 0.768 s"),
        (TWO, "delay_samples = 65537", r"transfer.a.delay_samples=65537: must be a whole number"),
        (TWO, "averaging = 'max'", r"transfer.a.averaging='max': must be one of"),
        (TWO, "[tones.a]\ninterval_s = 2", r"transfer.a: is the name of a product of the same so"),
    ],
)
def test_wrong_settings(tmp_path, source, table, rule):
    """Each wrong key is one error with the table's name, before a source is opened."""
    with pytest.raises(ConfigError, match=rule):
        load(tmp_path, source, f"[transfer.a]\n{table}")


@pytest.mark.parametrize(
    ("channels", "calibration", "rule"),
    [
        (1, "", r"transfer.a: sources: a source of 1 channel has no transfer functions"),
        (2, "one.toml", r"transfer.a: 0, 1: calibration: both channels must have one unit, not Pa"),
    ],
)
def test_what_only_the_source_knows_is_checked_when_it_is_opened(
    tmp_path, channels, calibration, rule
):
    """Channels and units of a file are errors at the start, with the table's name."""
    soundfile.write(tmp_path / "a.wav", np.zeros((FS, channels)), FS)
    (tmp_path / "one.toml").write_text(
        '[channels.0]\nreference = "20 uPa"\nfull_scale_db = 120\nfull_scale = "rms"\n', "utf-8"
    )
    known = f'\ncalibration = "{tmp_path}/{calibration}"' if calibration else ""
    settings = load(tmp_path, f'uri = "{tmp_path}/a.wav"{known}', "[transfer.a]\nwin_length = 64")
    with pytest.raises(ConfigError, match=rule):
        Daemon(settings)
