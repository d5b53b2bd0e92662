"""The measurement of a calibrator's tone, and the update of a calibration file."""

import datetime as dt
import math
import tomllib

import numpy as np
import pytest

from spectrod.apps.measurements.calibration_update import Calibrated, to_toml, updated
from spectrod.apps.measurements.calibrator import measure_tone
from spectrod.apps.measurements.steady_tone import find_steady
from spectrod.dsp.calibration import load_calibration
from spectrod.lib.errors import ConfigError, InputError

FS = 48_000


def sine(frequency_hz=1000.0, level_dbfs=-9.0, seconds=3.1, fs=FS, phase=0.3):
    t = np.arange(round(seconds * fs)) / fs
    return 10 ** (level_dbfs / 20) * np.sin(2 * np.pi * frequency_hz * t + phase)


def noise(rms, seconds=3.1, seed=1):
    return np.random.default_rng(seed).normal(0.0, rms, round(seconds * FS))


@pytest.mark.parametrize("fs", [8000, 44_100, 48_000])
@pytest.mark.parametrize("frequency_hz", [31.5, 250.0, 997.3, 1000.0, 1013.7, 3400.1])
def test_level_and_frequency_are_exact(fs, frequency_hz):
    """A tone anywhere between two bins has its level to 0.001 dB and its frequency to 1e-5."""
    found = measure_tone(sine(frequency_hz, -12.34, fs=fs), fs, frequency_hz * 1.005)
    assert found.level_dbfs == pytest.approx(-12.34, abs=1e-3)
    assert found.frequency_hz == pytest.approx(frequency_hz, rel=1e-5)
    assert found.fluctuation_db < 0.02
    assert found.thd_n < 2e-4
    assert found.uncertainty_db < 1e-3


@pytest.mark.parametrize("frequency_hz", [125.0, 250.0, 251.2, 997.3])
@pytest.mark.parametrize("distortion", [0.001, 0.01])
def test_distortion_of_tones_between_two_bins(frequency_hz, distortion):
    """No leakage of the tone counts as distortion, wherever between two bins it lies."""
    harmonic = sine(2.0 * frequency_hz, -9.0 + 20.0 * math.log10(distortion))
    found = measure_tone(sine(frequency_hz) + harmonic, FS, frequency_hz)
    assert found.thd_n == pytest.approx(distortion, abs=1e-4)


def test_noise_distortion_and_offset_do_not_change_the_level():
    """The level is of the tone alone; distortion and noise are measured."""
    x = sine() + sine(2000, -9 - 40) + noise(0.01 * math.sqrt(0.5) * 10 ** (-9 / 20)) + 0.01
    found = measure_tone(x, FS, 1000.0)
    assert found.level_dbfs == pytest.approx(-9.0, abs=2e-3)
    # 1 % of the second harmonic and 1 % of noise, of which 20/24 lie below 20 kHz
    assert found.thd_n == pytest.approx(math.hypot(0.01, 0.01 * math.sqrt(20 / 24)), rel=0.05)
    assert 0.0 < found.uncertainty_db < 2e-3


def test_uncertainty_covers_the_error():
    """Over repeated noisy measurements the standard uncertainty is the scatter of the level."""
    rms = 0.04 * math.sqrt(0.5) * 10 ** (-9 / 20)
    found = [measure_tone(sine() + noise(rms, seed=seed), FS, 1000.0) for seed in range(30)]
    scatter = np.std([one.level_dbfs for one in found], ddof=1)
    assert np.mean([one.uncertainty_db for one in found]) == pytest.approx(scatter, rel=0.35)
    assert found[0].expanded_uncertainty_db(0.4) == pytest.approx(0.4, abs=1e-3)


def modulated(depth_db):
    t = np.arange(round(3.1 * FS)) / FS
    return sine() * 10 ** (depth_db / 20 * np.sin(2 * np.pi * 0.5 * t))


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.zeros(4 * FS), "silent: the strongest tone has -inf dBFS: must have -90 dBFS"),
        (sine(level_dbfs=-95.0), "silent: the strongest tone has -95.0 dBFS"),
        (sine(level_dbfs=0.0), "clipped: the peak is 0.9993 FS: must be below 0.999"),
        (sine(1021.0), "off frequency: the strongest tone is at 1021.0 Hz: must be within 2%"),
        (sine(level_dbfs=-20) + sine(250), "off frequency: the strongest tone is at 250.0 Hz"),
        (modulated(0.3), r"unstable: the level fluctuates by 0\.\d+ dB \(F\): must be at most 0.1"),
        (sine() + noise(0.03), r"impure: distortion and noise are \d+\.\d%: must be at most 5%"),
        (sine() + sine(3000, -30), "impure: distortion and noise are 8.9%"),
        (sine(seconds=2.9), "2.9 s: must be at least 3 s"),
        (np.full(4 * FS, np.nan), "clipped"),
    ],
)
def test_refused_tones(x, message):
    """A tone that cannot calibrate is refused with the reason, the number and the limit."""
    with pytest.raises(InputError, match=message):
        measure_tone(x, FS, 1000.0)


@pytest.mark.parametrize("frequency_hz", [9.0, 0.451 * FS, -1000.0, math.nan])
def test_frequencies_that_cannot_be_measured(frequency_hz):
    """A stated frequency at or above Nyquist is refused, also one below 10 Hz."""
    with pytest.raises(InputError, match="must be 10 to 21600 Hz at a sample rate of 48000 Hz"):
        measure_tone(sine(), FS, frequency_hz)


def result(reads_dbfs=-9.0103, **others):
    day = dt.date(2026, 11, 22)
    given = {"reference": "20 uPa", "level_db": 94.0, "frequency_hz": 250.0} | others
    return Calibrated(**given, reads_dbfs=reads_dbfs, uncertainty_db=0.4, date=day)


def test_a_new_file_and_its_update(tmp_path):
    """A new file states the level; an update keeps the other keys and reports the change."""
    path = tmp_path / "mic.toml"
    first = updated(path, result(serial="A1"))
    assert first.change_db is None
    assert first.calibration.full_scale_db == pytest.approx(106.0206, abs=1e-4)
    path.write_text(
        first.text + 'notes = "on \\"top\\"\\u007f"\n[response]\ntable = [[20, -1], [1000, 0.5]]\n'
        "[channels.left]\nlevel_db = 94\nreads_dbfs = -12\n"
    )
    second = updated(path, result(-9.2))
    assert second.change_db == pytest.approx(0.1897, abs=1e-4)
    assert second.last == dt.date(2026, 11, 22)
    path.write_text(second.text)
    tables = tomllib.loads(second.text)
    assert (tables["notes"], tables["serial"]) == ('on "top"\x7f', "A1")
    assert tables["response"] == {"table": [[20, -1], [1000, 0.5]], "at_hz": 250.0}
    assert tables["channels"]["left"]["reads_dbfs"] == -12
    base = load_calibration(path).base
    assert base.response.at(np.array([250.0]))[0] == pytest.approx(0.0, abs=1e-12)


def test_the_table_of_a_channel_is_updated(tmp_path):
    """With a channel its table takes the result, and replaces another way to state the level."""
    path = tmp_path / "mic.toml"
    path.write_text(
        'reference = "20 uPa"\nsensitivity = "50 mV/Pa"\ngain_db = 20\nfull_scale_v = 2\n'
    )
    found = updated(path, result(-9.2), "left")
    assert found.change_db == pytest.approx(0.1897, abs=1e-4)
    path.write_text(found.text)
    both = load_calibration(path).channels(2, ("left", "right"))
    assert [one.full_scale_db for one in both] == pytest.approx([106.2103, 106.0206], abs=1e-4)
    path.write_text(updated(path, result(-9.2)).text)
    assert "sensitivity" not in path.read_text()


def test_refused_updates(tmp_path):
    """A change of more than 0.5 dB and another serial number need force; a wrong file none."""
    path = tmp_path / "mic.toml"
    path.write_text(updated(path, result(serial="A1")).text)
    changed = r"has changed by -0\.59 dB since 2026-11-22: must be within 0\.5 dB"
    with pytest.raises(ConfigError, match=changed):
        updated(path, result(-9.6))
    assert updated(path, result(-9.6), force=True).change_db == pytest.approx(0.5897, abs=1e-4)
    with pytest.raises(ConfigError, match="is of serial='A1': must be 'B2', or --force"):
        updated(path, result(serial="B2"))
    assert updated(path, result(-3.0, reference="1 uPa")).change_db is None
    path.write_text("reference = ")
    with pytest.raises(ConfigError, match="is no TOML"):
        updated(path, result(), force=True)


def test_texts_of_files_are_escaped():
    """Any text in a calibration file is written so that TOML reads it back."""
    tables = {
        "a": "\x00\x1f\x7f\"'\\\n\u20ac",
        "b c": {"d": [1, 2.5, [True]]},
        "e": dt.date(2026, 1, 2),
    }
    assert tomllib.loads(to_toml(tables)) == tables
    empty = {"channels": {"left": {}, "right": {"response": {}}}}
    assert tomllib.loads(to_toml(empty)) == empty


# ---- the steadiest stretch


def parts(samples, n):
    return [samples[k : k + n] for k in range(0, len(samples), n)]


@pytest.mark.parametrize("n_part", [1000, 12_001, 1 << 20])
def test_the_steadiest_stretch_is_found(n_part):
    """It is after the noise, the clipping and the tone that wavers, however the blocks are cut."""
    wavering = sine(seconds=4.0) * (1 + 0.02 * np.sin(np.arange(4 * FS) / FS * 9))
    signal = np.concatenate(
        (noise(0.3, 3.0), wavering, sine(seconds=5.0), np.full(FS, 1.0), sine(seconds=2.0))
    )
    first = find_steady(parts(signal, n_part), FS, 1010.0, 3 * FS)
    assert 7 * FS <= first <= 9 * FS
    assert first % (FS // 4) == 0


@pytest.mark.parametrize(
    "signal",
    [
        noise(0.1, 9.0),
        sine(1100.0, seconds=9.0),
        sine(level_dbfs=0.0, seconds=9.0),
        np.zeros(9 * FS),
    ],
    ids=["noise", "another tone", "clipped", "silence"],
)
def test_without_the_tone_nothing_is_steady(signal):
    """Noise, another frequency, clipped samples and silence have no such stretch."""
    assert find_steady(parts(signal, 5000), FS, 1000.0, 3 * FS) is None


def test_a_stretch_longer_than_the_recording_is_none():
    """A recording that is too short has no stretch."""
    assert find_steady([sine(seconds=2.9)], FS, 1000.0, 3 * FS) is None
