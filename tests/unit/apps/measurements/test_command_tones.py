"""The commands ``tones`` and ``transfer``: values of the library, files, wrong arguments."""

import csv
import json
from pathlib import Path

import h5netcdf
import numpy as np
import pytest
import soundfile

from spectrod.cli import main
from spectrod.measure.measurement_config import MeasuredSignals
from spectrod.measure.tones.tones_config import TonesConfig
from spectrod.measure.transfer.cross_spectra import measure_transfer
from spectrod.measure.transfer.transfer_config import TRANSFER_DEFAULT, TransferConfig

FS = 48000
MICROPHONE = """
reference = "20 uPa"
sensitivity = "50 mV/Pa"
gain_db = 20.0
full_scale_v = 2.0
"""


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def write(name, *channels, fs=FS):
    soundfile.write(name, np.array(channels).T, fs, subtype="FLOAT")


def sines(*parts, n=60_000):
    t = np.arange(n) / FS
    return sum(a * np.sin(2.0 * np.pi * f * t) for f, a in parts)


def tones(capsys, *arguments):
    """Run the command and return its JSON."""
    assert main(["tones", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def noise(n=60_000, seed=1):
    return np.random.default_rng(seed).standard_normal(n)


def test_tones_and_distortion_of_each_channel(capsys):
    """Each channel has its tones, the strongest first, its distortion, and its clipped samples."""
    a = sines((997.3, 0.5), (1994.6, 0.005)) + 1e-4 * noise()
    b = np.clip(sines((440.0, 2.0)), -1.0, 1.0)
    write("a.wav", a, b)
    first, second = tones(capsys, "a.wav")["channels"]
    assert first["unit"] == "dBFS"
    found = [one["frequency_hz"] for one in first["peaks"]]
    np.testing.assert_allclose(found, [997.3, 1994.6], atol=1e-3)
    np.testing.assert_allclose(
        [one["level_db"] for one in first["peaks"]], [-6.0206, -46.0206], atol=0.01
    )
    assert first["distortion"]["thd_db"] == pytest.approx(-40.0, abs=0.01)
    assert first["distortion"]["snr_db"] == pytest.approx(70.97, abs=0.1)
    assert first["clipped_samples"] == 0
    assert second["clipped_samples"] > 30_000
    assert second["distortion"]["thd_db"] > -20.0


def test_text_names_everything(capsys):
    """The text has a heading, tones, bandwidth and distortion for each channel."""
    write("a.wav", sines((997.3, 0.5), (1994.6, 0.005)) + 1e-4 * noise())
    assert main(["tones", "a.wav", "--harmonics", "3", "--band", "20", "20k"]) == 0
    text = capsys.readouterr().out
    for part in (
        "a.wav (WAV, FLOAT): 48000 Hz, mean of 2 frames of 32768 samples, blackmanharris",
        "channel 0, levels in dBFS",
        "997.3000",
        "99 % of the power: ",
        "fundamental 997.3000 Hz, -6.021 dBFS; distortion and noise from 20.5078 to 19999.5 Hz",
        "THD -40.00 dB (1.00",
        "harmonic 2: 1994.60 Hz, -46.0",
    ):
        assert part in text, part
    assert "harmonic 4" not in text


def test_intermodulation(capsys):
    """--imd measures the products of the two strongest tones."""
    x = sines((19000.3, 0.4), (20000.1, 0.4))
    write("a.wav", x + 0.01 * x**2)
    found = tones(capsys, "a.wav", "--imd", "ccif")["channels"][0]["intermodulation"]
    assert found["rss"] == pytest.approx(0.002, rel=0.01)
    assert main(["tones", "a.wav", "--imd", "ccif"]) == 0
    assert "IMD ccif, 19000.3 and 20000.1 Hz, re the sum of both" in capsys.readouterr().out


def test_power_of_channels(capsys):
    """--channel gives the power of a channel, and with a spacing that of the adjacent ones."""
    write("a.wav", sines((1000.0, 0.5), (1100.0, 0.05), (4000.0, 0.005)))
    given = ["--channel", "1050,300", "--channel", "4k,1k,3k"]
    first, second = tones(capsys, "a.wav", *given)["channels"][0]["channel_powers"]
    assert (first["low_hz"], first["high_hz"], "spacing_hz" in first) == (900.0, 1200.0, False)
    assert first["level_db"] == pytest.approx(-6.0206 + 10.0 * np.log10(1.01), abs=0.001)
    assert second["level_db"] == pytest.approx(-46.0206, abs=0.001)
    assert second["lower_db"] == pytest.approx(40.0 + 10.0 * np.log10(1.01), abs=0.001)
    assert second["upper_db"] < -80.0
    assert main(["tones", "a.wav", "--channel", "4k,1k,3k"]) == 0
    text = capsys.readouterr().out
    assert (
        "\nchannel 3500 to 4500 Hz: -46.021 dBFS, adjacent ones 3000 Hz apart: lower 40.04" in text
    )


def test_power_of_channels_of_iq(capsys):
    """Channels of I/Q are in the receiver's frequencies, also below the middle."""
    n = np.arange(60_000)
    x = 0.5 * np.exp(-2j * np.pi * 5000.0 / FS * n) + 0.05 * np.exp(2j * np.pi * 5000.0 / FS * n)
    write("a.wav", x.real, x.imag)
    given = ["--iq", "--center-frequency", "433.92M", "--channel", "433.915M,4k,10k"]
    (found,) = tones(capsys, "a.wav", *given)["channels"][0]["channel_powers"]
    assert found["level_db"] == pytest.approx(-6.0206, abs=0.001)
    assert found["upper_db"] == pytest.approx(-20.0, abs=0.001)
    (found,) = tones(capsys, "a.wav", "--iq", "--channel=-5k,4k")["channels"][0]["channel_powers"]
    assert found["level_db"] == pytest.approx(-6.0206, abs=0.001)


def test_levels_have_the_unit_of_the_calibration(capsys, tmp_path):
    """With a calibration the levels are in dB SPL."""
    (tmp_path / "mic.toml").write_text(MICROPHONE)
    write("a.wav", sines((1000.0, 0.354393)))
    found = tones(capsys, "a.wav", "--calibration", "mic.toml")["channels"][0]
    assert found["unit"] == "dB SPL"
    assert found["peaks"][0]["level_db"] == pytest.approx(94.0, abs=0.01)


def test_iq_has_tones_and_no_distortion(capsys):
    """I/Q has tones of both signs; its distortion is not measured, with the reason."""
    n = np.arange(60_000)
    x = 0.5 * np.exp(-2j * np.pi * 5000.5 / FS * n)
    write("a.wav", x.real, x.imag)
    found = tones(capsys, "a.wav", "--iq", "--center-frequency", "1M")["channels"]
    assert len(found) == 1
    assert found[0]["peaks"][0]["frequency_hz"] == pytest.approx(1e6 - 5000.5, abs=1e-3)
    assert found[0]["distortion"] is None
    assert "iq=True" in found[0]["not_measured"]


def test_signals_have_a_default_duration(capsys):
    """A source without an end is measured for 5 s."""
    found = tones(capsys, "signal:sine,1000,-20", "--rate", "8000", "--win-length", "4096")
    assert found["frames"] == (5 * 8000 - 2048) // 2048
    assert found["channels"][0]["peaks"][0]["level_db"] == pytest.approx(-20.0, abs=1e-3)


def test_silence_has_no_tones(capsys):
    """Silence is no error; without a flag for the distortion the reason is printed."""
    write("a.wav", np.zeros(5000))
    assert main(["tones", "a.wav"]) == 0
    text = capsys.readouterr().out
    assert "no tones above the noise floor" in text
    assert "distortion: not measured: no tone found" in text


def test_transfer_is_corrected_by_the_frequency_responses(capsys, tmp_path):
    """A channel that reads 6 dB high above 1 kHz has a transfer function of 0 dB everywhere."""
    flat = MICROPHONE + "[channels.1.response]\nat_hz = 0\n"
    (tmp_path / "mic.toml").write_text(
        flat + "table = [[100, 0], [900, 0], [1100, 6], [20000, 6]]\n"
    )
    x = 0.1 * noise()
    spectrum, f = np.fft.rfft(x), np.fft.rfftfreq(len(x), 1.0 / FS)
    level_db = np.interp(np.log(np.maximum(f, 1.0)), np.log([900.0, 1100.0]), [0.0, 6.0])
    write("b.wav", x, np.fft.irfft(spectrum * 10.0 ** (level_db / 20.0), len(x)))
    assert main(["transfer", "b.wav", "--calibration", "mic.toml"]) == 0
    found = capsys.readouterr()
    assert found.err == ""
    about, rows = read_csv(found.out)
    assert about["response_calibrated_hz"].strip() == "100 to 20000"
    assert "reference_calibrated_hz" not in about
    for row in rows:
        f_hz = float(row["frequency_hz"])
        if 100.0 <= f_hz <= 20000.0:
            # A Hann window of 4096 samples is 23 Hz wide at half its height.
            near = 0.2 if 850.0 < f_hz < 1150.0 else 0.02
            assert float(row["h1_db"]) == pytest.approx(0.0, abs=near), f_hz
        elif f_hz > 20020.0:
            assert float(row["h1_db"]) == pytest.approx(6.0, abs=0.02)


@pytest.mark.parametrize("kind", ["smpte", "ccif"])
def test_harmonics_of_one_tone_are_no_pair_of_tones(capsys, kind):
    """--imd on a tone with harmonics is one error, not the intermodulation of its harmonics."""
    write("a.wav", sines((997.3, 0.5), (1994.6, 0.005)) + 1e-4 * noise())
    assert main(["tones", "a.wav", "--imd", kind]) == 2
    found = capsys.readouterr()
    assert f"Hz with 40.0 dB between them, are not those of {kind}: f2 must be" in found.err
    assert (found.err.count("\n"), found.out) == (1, "")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--harmonics", "2"], "no tone found: none is 13 dB above the noise floor"),
        (["--fundamental", "1k"], "no tone found near 1000 Hz"),
        (["--band", "30k", "40k"], "band_hz=(30000, 40000): has no bin"),
        (["--harmonics", "1"], "harmonics=1: must be 2 to 100"),
        (["--imd", "smpte"], "0 tones found: intermodulation needs two"),
        (["--channel", "1k"], "'1k': must be HZ,WIDTH or HZ,WIDTH,SPACING, such as 433.92M,25k"),
        (["--channel", "1k,x"], "'x': must be a frequency"),
        (["--channel", "1k,0"], "channel of 1000 to 1000 Hz: must be ascending and within 0 to"),
        (["--channel", "1k,4k"], "channel of -1000 to 3000 Hz: must be ascending"),
        (["--channel", "1k,200,100"], "bandwidth_hz=200: must be above 0 and at most spacing_hz"),
        (["--channel", "1k,1k,1k"], "channel of -500 to 500 Hz: must be ascending"),
        (["--peaks", "2000"], "max_peaks=2000: must be 1 to 1024"),
        (["--win-length", "8192"], "a.wav (WAV, FLOAT): too short: must be 8192 samples or more"),
        (["--win-length", "2^21"], "win_length=2097152: must be 2 to 1048576"),
        (["--window", "hanning"], "did you mean hann?"),
        (["--start", "1:00"], "--start 1:00: "),
        (["--quantity", "THD"], "--quantity THD: must be with --interval"),
        (["--max-tracks", "5"], "--max-tracks 5: must be with --interval"),
        (["-o", "t.nc"], "t.nc: must end in .csv, .png, .svg or .pdf, or --interval must"),
        (["--interval", "1s", "--json"], "--json: must be without --interval"),
        (["--interval", "1s", "--imd", "ccif"], "--imd: must be without --interval"),
        (["--interval", "1s", "--quantity", "thd"], "quantity='thd': must be one of"),
        (["--interval", "10ms"], "interval_s=0.01: must be at least a frame, win_length=8192"),
    ],
)
def test_bad_arguments_of_tones(arguments, text, capsys):
    """Each wrong argument, and what cannot be measured, is one line."""
    write("a.wav", np.zeros(5000))
    assert main(["tones", "a.wav", *arguments]) == 2
    error = capsys.readouterr().err
    assert text in error
    assert error.count("\n") == 1


def read_csv(text):
    """Return the comments and the rows."""
    lines = text.splitlines()
    about = dict(one[2:].split(": ", 1) for one in lines if one.startswith("#"))
    return about, list(csv.DictReader(one for one in lines if not one.startswith("#")))


@pytest.mark.parametrize("length", ["4096", "16384"])
def test_tones_under_a_frequency_response(length, capsys, tmp_path):
    """A steep response shifts no frequency beyond its uncertainty, and levels have it there."""
    (tmp_path / "steep.txt").write_text("20 0\n50 0\n200 12\n3000 12\n")
    (tmp_path / "c.toml").write_text(
        'reference = "20 uPa"\nfull_scale_db = 100\nfull_scale = "sine"\n'
        '[response]\nfile = "steep.txt"\nat_hz = 0\n'
    )
    rng = np.random.default_rng(3)
    t = np.arange(4 * FS) / FS
    write("t.wav", 0.1 * np.sin(2 * np.pi * 101.3 * t) + 1e-4 * rng.standard_normal(len(t)))
    arguments = ["--calibration", "c.toml", "--win-length", length, "--json"]
    assert main(["tones", "t.wav", *arguments]) == 0
    (peak, *_) = json.loads(capsys.readouterr().out)["channels"][0]["peaks"]
    assert abs(peak["frequency_hz"] - 101.3) < 5 * peak["frequency_sd_hz"]
    expected_db = 80.0 - 12.0 * np.log(101.3 / 50) / np.log(4)
    assert abs(peak["level_db"] - expected_db) < 0.01


def test_transfer_is_that_of_the_library(capsys):
    """The rows are those of measure_transfer, and the comments say how many averages they are."""
    x = 0.2 * noise()
    y = 0.5 * x + 0.01 * noise(seed=2)
    write("b.wav", y, x)
    arguments = ["transfer", "b.wav", "--reference", "1", "--response", "0"]
    assert main(arguments) == 0
    about, rows = read_csv(capsys.readouterr().out)
    x, y = x.astype(np.float32), y.astype(np.float32)
    found = measure_transfer(x, y, FS, win_length=4096)
    assert len(rows) == len(found.frequencies)
    for key, expected in (
        ("frequency_hz", found.frequencies),
        ("h1_db", 20.0 * np.log10(np.abs(found.h1))),
        ("h2_phase_deg", np.degrees(np.angle(found.h2))),
        ("coherence", found.coherence),
        ("response_density", found.gyy),
    ):
        np.testing.assert_allclose([float(row[key]) for row in rows], expected, rtol=1e-7)
    assert (about["frames"], about["reference"], about["unit"]) == ("28", "1", "FS")
    assert main([*arguments, "-o", "t.csv"]) == 0
    assert read_csv(Path("t.csv").read_text("utf-8")) == (about, rows)


def test_delay_is_measured_and_removed(capsys):
    """--delay states the delay of the response; without it the phase is flat."""
    x = 0.2 * noise()
    write("b.wav", x, 0.5 * np.roll(x, 371))
    assert main(["transfer", "b.wav", "--delay"]) == 0
    about, rows = read_csv(capsys.readouterr().out)
    assert float(about["delay_samples"]) == pytest.approx(371.0, abs=0.01)
    assert about["removed_delay_samples"] == "371"
    phase = [float(row["h1_phase_deg"]) for row in rows[1:-1]]
    assert np.abs(phase).max() < 5.0
    assert float(about["level_difference_db"]) == pytest.approx(-6.02, abs=0.1)


def test_delay_of_a_band(capsys):
    """--band chooses what counts in the delay, alone and in intervals."""
    n = len(noise())
    low, high = 0.1 * noise(), 0.1 * noise(seed=2)
    place = np.fft.rfftfreq(n)
    low = np.fft.irfft(np.fft.rfft(low) * (place < 0.125), n)
    high = np.fft.irfft(np.fft.rfft(high) * (place > 0.25), n)
    write("b.wav", low + high, np.roll(low, 20) + np.roll(high, 90))
    for band, expected in ((["20", str(FS / 8)], 20.0), ([str(FS / 4), str(FS / 2)], 90.0)):
        assert main(["transfer", "b.wav", "--delay", "--band", *band]) == 0
        about, _ = read_csv(capsys.readouterr().out)
        assert float(about["delay_samples"]) == pytest.approx(expected, abs=0.01)
        intervals = ["--interval", "1s", "--quantity", "delay", "-o", "t.csv"]
        assert main(["transfer", "b.wav", "--band", *band, *intervals]) == 0
        _, rows = read_csv(Path("t.csv").read_text("utf-8"))
        delays = [float(one) for row in rows for key, one in row.items() if "delay" in key]
        assert np.array(delays) * FS == pytest.approx(expected, abs=0.1)


def test_transfer_in_the_unit_of_the_calibration(capsys, tmp_path):
    """Sensitivities of both channels apply; channels of different units are refused."""
    (tmp_path / "mic.toml").write_text(MICROPHONE + "[channels.1]\ngain_db = 0.0\n")
    (tmp_path / "one.toml").write_text(f"[channels.0]{MICROPHONE}")
    x = 0.2 * noise()
    write("b.wav", x, x)
    assert main(["transfer", "b.wav", "--calibration", "mic.toml"]) == 0
    about, rows = read_csv(capsys.readouterr().out)
    assert about["unit"] == "Pa"
    assert float(rows[10]["h1_db"]) == pytest.approx(20.0, abs=0.01)
    assert main(["transfer", "b.wav", "--calibration", "one.toml"]) == 2
    assert "both channels must have one unit, not Pa, FS" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--response", "2"], "responses=2: must be a channel from 0 to 1 of the source"),
        (["--response", "0,2"], "responses=0: must be another channel than reference"),
        (["--response", "1,3"], "responses=3: must be a channel from 0 to 1 of the source"),
        (["--reference", "-1"], "--reference='-1': must be a whole number >= 0"),
        (["--reference", "1"], "responses=1: must be another channel than reference"),
        (["--win-length", "4096"], "1 frames of 4096 samples: coherence needs 2 or more"),
        (["--delay"], "delay: no frequency has power in both channels"),
        (["-o", "t.txt"], "t.txt: must end in .csv"),
        (["-o", "t.nc"], "t.nc: must end in .csv, .png, .svg or .pdf, or --interval must be given"),
        (["--spectra", "h1"], "--spectra h1: must be with --interval"),
        (["--align", "start"], "--align start: must be with --interval"),
        (["--averaging", "exponential"], "--averaging exponential: must be with --interval"),
        (["--start-time", "2026-01-01"], "--start-time 2026-01-01: must be with --interval"),
        (["--interval", "1s", "--averaging-s", "1"], "averaging_s=1: must be above 0 with"),
        (["--delay", "--band", "4k", "100"], "band_hz=(4000, 100): must be two ascending"),
        (["--interval", "1s", "--delay"], "--delay: must be without --interval"),
        (["--interval", "1s", "--response", "2"], "responses=2: must be a channel from 0 to 1"),
        (["--interval", "1s", "--quantity", "lag"], "quantity='lag': must be one of delay, "),
        (["--interval", "1ms"], "interval_s=0.001: must be 0.01 s to 366 days"),
        (["--interval", "1s", "--spectra", "h1", "-o", "t.csv"], "t.csv: h1 has a value for each"),
        (["-o", "b.wav"], "b.wav: must end in .csv"),
    ],
)
def test_bad_arguments_of_transfer(arguments, text, capsys, tmp_path):
    """Each wrong argument, and what cannot be measured, is one line, and no file is left."""
    write("b.wav", np.zeros(5000), np.zeros(5000))
    assert main(["transfer", "b.wav", *arguments]) == 2
    error = capsys.readouterr().err
    assert text in error
    assert error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["b.wav"]


def test_transfer_of_iq_and_to_a_new_folder(capsys):
    """Pairs of I and Q have no transfer function, and a folder that is missing is made."""
    Path("b.cs8").write_bytes(bytes(1000))
    assert main(["transfer", "pcm:b.cs8", "--rate", "8000"]) == 2
    assert "I/Q samples have no transfer functions" in capsys.readouterr().err
    write("b.wav", noise(5000), noise(5000))
    assert main(["transfer", "b.wav", "-o", "missing/t.csv"]) == 0
    assert Path("missing/t.csv").read_text()


def test_transfer_of_intervals(capsys):
    """Rows of intervals are those of the meter, in a table, a CSV file and NetCDF."""
    x = 0.2 * noise()
    y = 0.5 * np.roll(x, 7) + 0.01 * noise(seed=2)
    write("b.wav", y, x)
    arguments = ["transfer", "b.wav", "--reference", "1", "--response", "0", "--interval", "500ms"]
    arguments += ["--win-length", "1024"]
    assert main([*arguments, "--quantity", "delay,level_difference"]) == 0
    table = capsys.readouterr().out.splitlines()
    assert table[0] == "# b.wav (WAV, FLOAT); transfer functions"
    assert main([*arguments, "-o", "t.csv"]) == 0
    assert main([*arguments, "-o", "t.nc", "--spectra", "coherence,h1_phase"]) == 0
    config = TransferConfig(
        "t", reference=1, responses=(0,), interval_s=0.5, align="start", win_length=1024,
        spectra=("coherence", "h1_phase"),
    )  # fmt: skip
    meter = config.bind(MeasuredSignals("", FS, ("0", "1"), (None, None))).open(0)
    samples = soundfile.read("b.wav", dtype="float32", always_2d=True)[0].T
    rows = [*meter.push(samples), *meter.finish()]
    about, found = read_csv(Path("t.csv").read_text("utf-8"))
    assert (about["reference_channel"], about["responses"]) == ("1", '"0"')
    assert len(table) == 2 + len(rows) == 2 + len(found)
    with h5netcdf.File("t.nc") as file:
        for n, name in enumerate(TRANSFER_DEFAULT):
            expected = [row.values[n, 0] for row in rows]
            np.testing.assert_array_equal([float(row[name]) for row in found], expected)
            np.testing.assert_array_equal(file[name][:, 0], expected)
        np.testing.assert_array_equal(file["h1_phase"][0, 0], rows[0].tables[0][1])
        assert file["h1_phase"].attrs["units"] == "degree"
        assert file["frequency"][0] == FS / 1024
    assert rows[0].values[0, 0] * FS == pytest.approx(7.0, abs=0.05)


def test_several_responses_are_for_intervals(capsys):
    """Rows of intervals may have several responses; one row for each frequency is of one."""
    x = 0.2 * noise()
    write("b.wav", x, 0.5 * x, 0.25 * x)
    arguments = ["transfer", "b.wav", "--response", "1,2"]
    assert main([*arguments, "--interval", "1s", "--quantity", "level_difference"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[2:]]
    assert [row[2] for row in rows] == ["1", "2", "1", "2"]
    np.testing.assert_allclose([float(row[3]) for row in rows[:2]], [-6.02, -12.04])
    assert main(arguments) == 2
    assert "responses: 2 channels: must be with --interval" in capsys.readouterr().err


def test_exponential_averages_and_delays_of_intervals():
    """Settings of intervals are those of a daemon's table: averages, the hop and the delay."""
    x = 0.2 * noise()
    write("b.wav", x, 0.5 * np.roll(x, 40))
    flags = ["--averaging", "exponential", "--averaging-s", "500ms", "--delay-samples", "40"]
    flags += ["--hop", "512", "--align", "start", "--interval", "250ms", "-o", "t.csv"]
    assert main(["transfer", "b.wav", *flags]) == 0
    config = TransferConfig(
        "t", averaging="exponential", averaging_s=0.5, delay_samples=40, hop=512,
        align="start", interval_s=0.25,
    )  # fmt: skip
    meter = config.bind(MeasuredSignals("", FS, ("0", "1"), (None, None))).open(0)
    samples = soundfile.read("b.wav", dtype="float32", always_2d=True)[0].T
    rows = [*meter.push(samples), *meter.finish()]
    about, found = read_csv(Path("t.csv").read_text("utf-8"))
    assert about["hop"] == "512"
    assert [float(one["delay"]) for one in found] == [row.values[0, 0] for row in rows]


def test_tones_of_intervals(capsys):
    """With --interval the figures are those of the meter, in a table, a CSV file and NetCDF."""
    write("a.wav", sines((997.3, 0.5), (1994.6, 0.005)) + 1e-4 * noise())
    names = ("fundamental", "THD", "tracks")
    arguments = ["tones", "a.wav", "--interval", "500ms", "--quantity", ",".join(names)]
    assert main(arguments) == 0
    table = capsys.readouterr().out.splitlines()
    assert table[1].split()[4:] == [*names, "flags"]
    assert main([*arguments, "-o", "t.csv", "-o", "t.nc", "--threshold", "60"]) == 0
    settings = TonesConfig("t", interval_s=0.5, align="start", quantities=names, threshold_db=60.0)
    meter = settings.bind(MeasuredSignals("", FS, ("0",), (None,))).open(0)
    samples = soundfile.read("a.wav", dtype="float32", always_2d=True)[0].T
    rows = [*meter.push(samples), *meter.finish()]
    about, found = read_csv(Path("t.csv").read_text("utf-8"))
    assert (about["win_length"], about["window"]) == ("8192", '"blackmanharris"')
    assert len(found) == len(rows) == len(table) - 2 == 3
    with h5netcdf.File("t.nc") as file:
        for n, name in enumerate(names):
            expected = [row.values[n, 0] for row in rows]
            np.testing.assert_array_equal([float(row[name] or "nan") for row in found], expected)
            np.testing.assert_array_equal(file[name][:, 0], expected)
    assert rows[0].values[0, 0] == pytest.approx(997.3, abs=0.01)
    assert rows[0].values[1, 0] == pytest.approx(-40.0, abs=0.05)


@pytest.mark.parametrize("flags", [[], ["--delay"]])
def test_transfer_does_not_span_gaps(flags, capsys):
    """Frames of a folder lie within its files, also while the delay is not yet known."""
    Path("night").mkdir()
    for minute in range(2):
        write(f"night/20260101T00{minute:02}00Z.wav", noise(3000), noise(3000), fs=8000)
    assert main(["transfer", "night", "--win-length", "1024", *flags]) == 0
    about, _ = read_csv(capsys.readouterr().out)
    assert about["frames"] == "8"
