"""A simulated chain reads 94.00 dB SPL in every place where a level appears."""

import csv
import itertools
import json
import logging
import os
import re
from dataclasses import replace

import h5py
import numpy as np
import pytest
import soundfile

from spectrod import Stft, spectrogram
from spectrod.analysis.numpy_engine import NumpyEngine
from spectrod.analysis.stream import FrameStream
from spectrod.cli import main
from spectrod.client import subscribe
from spectrod.config import config
from spectrod.daemon.control.controlled import ControlledDaemon
from spectrod.daemon.daemon import build_daemon
from spectrod.dsp.blocks import Block
from spectrod.dsp.calibration import ChannelCalibration, Response, load_calibration, parse_reference
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.formats.description import Description
from spectrod.formats.picture.pixelmap import read_levels
from spectrod.lib.errors import ConfigError
from spectrod.recording.inputs import open_recording
from spectrod.recording.remote import DaemonReader
from spectrod.wire import endpoint_discovery

FS = 48_000
MIC = 'reference = "20 uPa"\nsensitivity = "50 mV/Pa"\ngain_db = 20\nfull_scale_v = 2.0\n'
SERIAL = 'serial = "A1"\n'
STEP = "[response]\ntable = [[20, 0], [1999, 0], [2000, -6], [20000, -6]]\n"
RMS_FS = 20e-6 * 10 ** (94 / 20) / 4.0
"""94 dB SPL through 50 mV/Pa, 20 dB and 2 V, which make digital 1.0 4 Pa."""
ANALYSIS = ["--win-length", "4800", "--nfft", "4800", "--hop", "4800", "--window", "flattop"]
DBFS_OF_94 = 20 * np.log10(RMS_FS * np.sqrt(2))


def sine(frequency_hz=1000.0, seconds=0.5, rms=RMS_FS):
    n = np.arange(round(seconds * FS))
    return (np.sqrt(2) * rms * np.sin(2 * np.pi * frequency_hz * n / FS)).astype(np.float32)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Make a folder with a calibration file and a sound file the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mic.toml").write_text(MIC + SERIAL)
    soundfile.write("x.wav", sine(), FS, "FLOAT")
    return tmp_path


@pytest.mark.parametrize("bands", ["", "third-octave"])
def test_levels_and_powers_in_python(folder, bands):
    """Levels, mean squares and bands are of the same pressure, in both interfaces."""
    given = {"win_length": 4800, "nfft": 4800, "hop": 4800, "window": "hann", "bands": bands}
    common = {"engine": "numpy", "calibration": "mic.toml"}
    level = spectrogram(sine(), FS, scaling="dbfs", **given, **common)
    assert level.unit == "dB SPL"
    assert level.values.max() == pytest.approx(94.0, abs=0.01)
    power = spectrogram(sine(), FS, scaling="spectrum", **given, **common)
    assert power.unit == "Pa^2"
    assert power.values.max() == pytest.approx((20e-6) ** 2 * 10**9.4, rel=1e-3)
    density = spectrogram(sine(), FS, scaling="density", **given, **common)
    assert density.unit == "Pa^2/Hz"
    width_hz = 15.0 if not bands else density.spec.band_table.width[level.values[:, 0].argmax()]
    assert density.values.max() * width_hz == pytest.approx(power.values.max(), rel=1e-3)
    if bands:
        assert level.broadband[0] == pytest.approx(94.0, abs=0.01)
        assert density.spec.scale.broadband_unit == "Pa^2"
    with Stft(FS, scaling="dbfs", **given, **common) as stft:
        rows = [batch.values for batch in [*stft.push(sine()), *stft.finish()]]
    assert np.array_equal(np.concatenate(rows)[:, 0], level.values.T)


@pytest.mark.parametrize(
    ("text", "dbfs", "expected"),
    [
        # GeoSpectrum M8Q-01-16-v2, a converter of 2 V, and a pistonphone of 160 dB re 1 uPa.
        ('sensitivity = "-165 dB re 1 V/uPa"\nfull_scale_v = 2.0\n', -8.01, 160.0),
        # SoundTrap ST400 User Guide, September 2021, 3.8: -70 dB are 103.0 dB re 1 uPa.
        ('full_scale_db = 176.0\nfull_scale = "rms"\n', -70.0, 102.99),
    ],
)
def test_published_hydrophones(folder, text, dbfs, expected):
    """Levels behind hydrophones are those of their data sheets and manuals."""
    (folder / "water.toml").write_text('reference = "1 uPa"\n' + text)
    found = spectrogram(
        sine(250.0, rms=10 ** (dbfs / 20) / np.sqrt(2)), FS, win_length=4800, nfft=4800,
        window="flattop", scaling="dbfs", engine="numpy", calibration="water.toml",
    )  # fmt: skip
    assert found.unit == "dB re 1 uPa"
    assert found.values.max() == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("bands", ["cqt:12", "reassigned"])
def test_transforms_are_calibrated(folder, bands):
    """A constant-Q transform and reassigned power have the sensitivity and the response."""
    (folder / "step.toml").write_text(MIC + STEP)
    given = {"win_length": 4096, "hop": 1024, "bands": bands, "scaling": "dbfs"}
    for name, f_hz, expected in (("mic.toml", 880.0, 94.0), ("step.toml", 4698.636, 100.0)):
        found = spectrogram(sine(f_hz), FS, calibration=name, **given)
        assert found.unit == "dB SPL"
        assert found.values.max() == pytest.approx(expected, abs=0.01)
        assert found.broadband[0] == pytest.approx(expected, abs=0.01)


@pytest.mark.opencl
@pytest.mark.slow
def test_devices_apply_what_numpy_applies(folder):
    """A device has NumPy's levels: two responses of bands, and two sensitivities."""
    curve = STEP.replace("[", "[channels.1.", 1).replace("-6", "9")
    two = MIC + STEP + '[channels.1]\nsensitivity = "5 mV/Pa"\n' + curve
    (folder / "two.toml").write_text(two)
    x = np.random.default_rng(3).normal(0.0, 0.1, (2, 8192)).astype(np.float32)
    given = {"win_length": 512, "scaling": "dbfs", "calibration": "two.toml", "bands": "octave"}
    device, numpy = (
        spectrogram(x, FS, engine=engine, **given).values for engine in ("opencl", "numpy")
    )
    np.testing.assert_allclose(device, numpy, atol=2e-3)
    # The band of 8 kHz lies wholly on the upper side of both steps, 15 dB together.
    assert (numpy[1] - numpy[0])[-2].mean() == pytest.approx(20.0 - 15.0, abs=1.0)


def test_a_response_with_a_step_reads_flat_after_correction(folder):
    """Tones on both sides of a step of 6 dB have the level that they had before it."""
    (folder / "step.toml").write_text(MIC + STEP)
    x = sine(1000) + sine(4000, rms=RMS_FS * 10 ** (-6 / 20))
    for window, bands in (("flattop", ""), ("hann", "third-octave")):
        found = spectrogram(
            x,
            FS,
            win_length=4800,
            nfft=4800,
            window=window,
            bands=bands,
            scaling="dbfs",
            engine="numpy",
            calibration="step.toml",
        )
        at = [np.abs(found.f - f_hz).argmin() for f_hz in (1000, 4000)]
        assert found.values[at, 0] == pytest.approx([94.0, 94.0], abs=0.01)


def test_a_response_is_not_extrapolated(folder):
    """Bins outside the table have the stated sensitivity alone."""
    (folder / "narrow.toml").write_text(MIC + "[response]\ntable = [[900, 10], [1100, 10]]")
    (folder / "raw.toml").write_text(MIC + "[response]\ntable = [[900, 10], [1100, 10]]\nat_hz = 0")
    for name, correction_db in (("narrow.toml", 0.0), ("raw.toml", -10.0)):
        for f_hz, expected in ((1000, 94.0 + correction_db), (5000, 94.0)):
            found = spectrogram(
                sine(f_hz),
                FS,
                win_length=4800,
                nfft=4800,
                scaling="dbfs",
                engine="numpy",
                calibration=name,
            )
            assert found.values.max() == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("output", ["power", "complex"])
@pytest.mark.parametrize("scaling", ["dbfs", "density", "spectrum"])
@pytest.mark.parametrize("averaging", ["none", "mean"])
def test_channels_differ(folder, scaling, output, averaging):
    """Each of several channels has the values that it has alone, and silence keeps the floor."""
    if output == "complex" and (scaling == "dbfs" or averaging != "none"):
        return
    curve = "[channels.{}.response]\ntable = [[20, 0], [1499, 0], [1500, 3], [20000, 3]]\n"
    volts = 'reference = "1 V"\nsensitivity = "1 V/V"\nfull_scale_v = 2\n'
    (folder / "both.toml").write_text(
        f"[channels.0]\n{MIC}{curve.format(0)}[channels.1]\n{volts}[channels.3]\n{MIC}"
    )
    rng = np.random.default_rng(4)
    x = rng.normal(0.0, 0.1, (4, FS // 4)).astype(np.float32)
    x[3] = 0.0
    given = {"win_length": 512, "scaling": scaling, "output": output, "averaging": averaging}
    given["averaging_frames"] = 1 if averaging == "none" else 3
    together = spectrogram(x, FS, engine="numpy", calibration="both.toml", **given)
    assert together.spec.scale.cal_ids[2] == ""
    alone = ("mic0.toml", "volts.toml", None, "mic.toml")
    (folder / "mic0.toml").write_text(MIC + curve.replace("channels.{}.", ""))
    (folder / "volts.toml").write_text(volts)
    for channel, name in enumerate(alone):
        found = spectrogram(x[channel], FS, engine="numpy", calibration=name, **given)
        assert together.spec.scale.units[channel] == found.unit
        np.testing.assert_allclose(together.values[channel], found.values, rtol=3e-6, atol=2e-5)


@pytest.mark.parametrize("bands", ["third-octave", "mel:13"])
@pytest.mark.parametrize("scaling", ["dbfs", "density", "spectrum"])
@pytest.mark.parametrize("averaging", ["none", "mean", "max", "exponential"])
def test_bands_of_channels_with_different_responses(folder, scaling, bands, averaging):
    """Each channel has the bands and the broadband value that it has alone, in both interfaces."""
    alone = ("mic.toml", "step.toml", None, "other.toml")
    (folder / "step.toml").write_text(MIC + STEP)
    other = MIC.replace("20 uPa", "1 Pa") + STEP.replace("-6", "3")
    (folder / "other.toml").write_text(other)
    texts = {0: MIC, 1: MIC + STEP, 3: other}
    (folder / "all.toml").write_text(
        "".join(
            f"[channels.{k}]\n" + text.replace("[response]", f"[channels.{k}.response]")
            for k, text in texts.items()
        )
    )
    x = np.random.default_rng(5).normal(0.0, 0.1, (4, FS // 4)).astype(np.float32)
    given = {"win_length": 2048, "hop": 512, "bands": bands, "averaging": averaging}
    given |= {"averaging_frames": 1 if averaging == "none" else 3, "scaling": scaling}
    together = spectrogram(x, FS, engine="numpy", calibration="all.toml", **given)
    assert len(together.spec.scale.responses) == 3
    for channel, name in enumerate(alone):
        found = spectrogram(x[channel], FS, engine="numpy", calibration=name, **given)
        assert together.spec.scale.units[channel] == found.unit
        for one, expected in (
            (together.values[channel], found.values),
            (together.broadband[channel], found.broadband),
        ):
            np.testing.assert_allclose(one, expected, rtol=3e-6, atol=2e-5)
    with Stft(FS, channels=4, engine="numpy", calibration="all.toml", **given) as stft:
        rows = [
            batch.values
            for n in range(0, x.shape[1], 1234)
            for batch in stft.push(x[:, n : n + 1234])
        ]
        rows += [batch.values for batch in stft.finish()]
    np.testing.assert_array_equal(np.concatenate(rows).transpose(1, 2, 0), together.values)


@pytest.mark.parametrize("averaging", ["none", "mean", "exponential"])
def test_averages_continue_on_another_engine(averaging):
    """Bands of several responses go on with the averages of the engine before."""
    curves = [Response((20.0, 2000.0), (0.0, level_db)) for level_db in (0.0, 4.0, -3.0)]
    several = tuple(replace(calibration("1 V")[0], response=curve) for curve in curves)
    spec = SpectrumSpec(
        FS,
        3,
        win_length=512,
        hop=100,
        bands="octave",
        scaling="spectrum",
        averaging=averaging,
        averaging_frames=1 if averaging == "none" else 7,
        calibration=several,
    )
    x = np.random.default_rng(6).normal(0.0, 0.1, (3, 20_000)).astype(np.float32)
    found = []
    for moves_at in (-1, 9):
        engines = iter([None] * moves_at + [NumpyEngine()] if moves_at > 0 else [])
        stream = FrameStream(spec, NumpyEngine(), next_engine=lambda: next(engines, None))  # noqa: B023
        batches = [
            batch
            for n in range(0, x.shape[1], 777)
            for batch in stream.push(Block(x[:, n : n + 777], n, 0, 0, fs=FS))
        ]
        batches += stream.finish()
        found.append(np.concatenate([batch.values for batch in batches]))
    np.testing.assert_array_equal(*found)


def test_the_number_of_responses_of_bands_is_bounded():
    """Bands of channels with very many responses are refused with the number."""
    curves = [Response((20.0, 2000.0), (0.0, 0.01 * k)) for k in range(65)]
    several = tuple(replace(calibration("1 V")[0], response=curve) for curve in curves)
    with pytest.raises(
        ConfigError, match="channels with 65 frequency responses: must be at most 64"
    ):
        SpectrumSpec(FS, 65, bands="octave", calibration=several)
    assert SpectrumSpec(FS, 65, calibration=several).scale.common_response is None


def test_units_of_other_references():
    """Each reference has its units in levels, mean squares and densities."""
    expected = {
        "1 uPa": ("dB re 1 uPa", "uPa^2", "uPa^2/Hz", "dB re (1 uPa)^2/Hz"),
        "1 V": ("dBV", "V^2", "V^2/Hz", "dB re (1 V)^2/Hz"),
        "1 m/s2": ("dB re 1 m/s2", "(m/s2)^2", "(m/s2)^2/Hz", "dB re (1 m/s2)^2/Hz"),
    }
    for name, units in expected.items():
        spec = SpectrumSpec(FS, calibration=calibration(name))
        specs = [
            SpectrumSpec(FS, scaling=scaling, calibration=spec.calibration)
            for scaling in ("dbfs", "spectrum", "density")
        ]
        assert (*(one.scale.unit for one in specs), specs[2].scale.level_unit) == units
        assert all(one.scale.reference.startswith(f"0 dB = {name}") for one in specs)


def calibration(reference):
    return (ChannelCalibration(parse_reference(reference), 100.0, None, "x"),)


def test_files_and_pictures(folder):
    """NetCDF, CSV, NPZ, the recording and a picture's pixels have the level and the unit."""
    outputs = ["a.nc", "a.csv", "a.spd", "a.png", "a.npz"]
    flags = itertools.chain.from_iterable(("-o", name) for name in outputs)
    look = ["--levels=93.9,94.1", "--width", "200", "--height", "200"]
    command = ["record", "x.wav", "--calibration", "mic.toml", "--engine", "numpy"]
    assert main([*command, *flags, *ANALYSIS, *look, "--scaling", "dbfs"]) == 0
    cal_id = load_calibration("mic.toml").base.cal_id
    with h5py.File("a.nc") as file:
        level = file["level"]
        assert np.max(level) == pytest.approx(94.0, abs=0.01)
        assert level.attrs["units"] == "0.1 lg(re 4e-10 Pa2)"
        assert level.attrs["spectrod_unit"] == "dB SPL"
        assert level.attrs["reference_level"] == "0 dB = 20 uPa"
        assert file.attrs["calibration"] == level.attrs["calibration"] == cal_id
    lines = (folder / "a.csv").read_text().splitlines(keepends=True)
    assert '# unit: "dB SPL"\n' in lines
    table = list(csv.reader(line for line in lines if not line.startswith("#")))
    values = [float(value) for value in table[1][-2401:]]
    assert max(values) == pytest.approx(94.0, abs=0.01)
    for name in ("a.spd", "a.npz"):
        reader = open_recording(folder / name)
        (batch,) = itertools.islice(reader.batches(), 1)
        reader.close()
        assert batch.values.max() == pytest.approx(94.0, abs=0.01)
        assert (batch.spec.scale.unit, reader.description.cal_id) == ("dB SPL", cal_id)
        assert batch.spec.scale.reference == "0 dB = 20 uPa"
    picture = read_levels("a.png")
    assert np.nanmax(picture.level) == pytest.approx(94.0, abs=0.01)
    assert (picture.pixels.level_unit, picture.pixels.cal_id) == ("dB SPL", cal_id)


def test_a_picture_like_one_of_another_calibration_says_so(folder, capsys):
    """A picture made like a calibrated one, without its calibration, has a warning."""
    command = ["record", "x.wav", "--engine", "numpy", "--width", "200", "--height", "60"]
    assert main([*command, "--calibration", "mic.toml", "-o", "a.png"]) == 0
    assert "its calibration" not in capsys.readouterr().err
    like = ["record", "x.wav", "--engine", "numpy", "--like", "a.png"]
    assert main([*like, "-o", "b.png"]) == 0
    assert ", this picture's is none (--calibration)" in capsys.readouterr().err
    assert main([*like, "--calibration", "mic.toml", "-o", "c.png"]) == 0
    assert "its calibration" not in capsys.readouterr().err


def test_a_recording_is_converted_in_its_unit(folder):
    """A picture and an export of a calibrated recording have its unit."""
    command = ["record", "x.wav", "--calibration", "mic.toml", "--engine", "numpy", *ANALYSIS]
    assert main([*command, "-o", "a.spd", "--scaling", "density"]) == 0
    assert main(["convert", "a.spd", "b.nc"]) == main(["convert", "a.spd", "b.png"]) == 0
    with h5py.File("b.nc") as file:
        assert file["psd"].attrs["units"] == "Pa2 Hz-1"
        assert np.max(file["psd"]) * 10 == pytest.approx(1.00475 / 3.77, rel=0.01)
    assert read_levels("b.png").pixels.level_unit == "dB re (20 uPa)^2/Hz"


def test_without_a_calibration_nothing_says_spl(folder):
    """Uncalibrated files say that they are of digital full scale."""
    assert main(["record", "x.wav", "-o", "a.csv", "-o", "a.spd", *ANALYSIS]) == 0
    text = (folder / "a.csv").read_text() + (folder / "a.spd").read_bytes().decode("latin-1")
    assert "SPL" not in text
    assert '"calibration"' not in text


def test_files_of_channels_with_different_units_are_refused(folder, capsys):
    """A file has one unit: a calibrated channel beside one without is an error without a file."""
    soundfile.write("y.wav", np.stack([sine(), sine()], 1), FS, "FLOAT")
    (folder / "one.toml").write_text("[channels.0]\n" + MIC)
    command = ["record", "y.wav", "--calibration", "one.toml", "-o", "a.csv", *ANALYSIS]
    assert main(command) == 2
    assert (
        "channels have the units dB SPL, dBFS: a recording has one unit" in capsys.readouterr().err
    )
    assert not (folder / "a.csv").exists()
    assert main([*command, "--select", "0"]) == 0
    with pytest.raises(ConfigError, match="dB SPL, dBFS"):
        Description(
            SpectrumSpec(
                FS, 2, scaling="dbfs", calibration=load_calibration("one.toml").channels(2)
            ),
            "x",
            ("a", "b"),
            "",
        )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('reference = "20 uPa"', "must be exactly one of sensitivity, full_scale_db, level_db"),
        (MIC + "[channels.9]", "channels.9: there is no such channel"),
    ],
)
def test_wrong_calibration_files_end_a_command(folder, capsys, text, message):
    """A wrong file is one line and leaves no output."""
    (folder / "wrong.toml").write_text(text)
    assert main(["record", "x.wav", "--calibration", "wrong.toml", "-o", "a.csv"]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
    assert not (folder / "a.csv").exists()


@pytest.mark.slow
def test_messages_status_and_recordings_of_a_daemon(folder, monkeypatch, capsys):
    """Each channel's messages have its own unit; status names it; subscribers can record it."""
    monkeypatch.setenv("RUNTIME_DIRECTORY", "run")
    monkeypatch.setenv("STATE_DIRECTORY", "state")
    monkeypatch.setattr(endpoint_discovery, "SYSTEM_FOLDER", folder / "system")
    level = logging.getLogger().level
    (folder / "c.toml").write_text(
        "[channels.left]\n" + MIC + SERIAL + "[channels.left.response]\ntable=[[20,0],[20000,0]]"
    )
    flags = {
        "source": {
            "uri": f"signal:sine,1000,{DBFS_OF_94:.6f}",
            "name": "tone",
            "channels": 2,
            "channel_names": ("left", "right"),
            "calibration": "c.toml",
        },
        "analysis": {"win_length": 4800, "nfft": 4800, "hop": 4800, "window": "flattop"},
        "engine": {"engine": "numpy"},
        "publish": {"endpoints": ["tcp://127.0.0.1:*"]},
    }

    def load():
        return config.load(os.devnull, flags)

    daemon = ControlledDaemon(build_daemon(load()), load(), load)
    try:
        daemon.start()
        (endpoint,) = daemon._daemon.publisher.endpoints
        with subscribe(endpoint, "spec/tone/") as frames:
            found = {}
            while len(found) < 2:
                frame = frames.receive(30.0)
                found[frame.channel] = frame
        left, right = found["left"], found["right"]
        assert left.values.max() == pytest.approx(94.0, abs=0.01)
        assert (left.header.unit, left.header.ref) == ("dB SPL", "0 dB = 20 uPa")
        assert left.header.cal_id == load_calibration("c.toml").by_channel["left"].cal_id
        assert right.values.max() == pytest.approx(DBFS_OF_94, abs=0.01)
        assert (right.header.unit, right.header.cal_id) == ("dBFS", None)
        with (
            subscribe(endpoint, "spec/tone/") as frames,
            pytest.raises(ConfigError, match="dB SPL, dBFS"),
        ):
            DaemonReader(frames, "spec/tone/")
        reader = DaemonReader(subscribe(endpoint, "spec/tone/left/"), "spec/tone/left/")
        assert reader.description.spec.scale.unit == "dB SPL"
        assert reader.description.cal_id == left.header.cal_id
        reader.close()
        capsys.readouterr()
        assert main(["ctl", "status"]) == 0
        assert f"calibration {left.header.cal_id}: dB SPL,dBFS\n" in capsys.readouterr().out
        assert main(["ctl", "status", "--json"]) == 0
        (source,) = json.loads(capsys.readouterr().out)["sources"]
        assert (source["unit"], source["cal_id"]) == ("dB SPL,dBFS", left.header.cal_id)
    finally:
        daemon.stop()
        logging.getLogger().setLevel(level)


@pytest.mark.slow
def test_ctl_shows_the_level_of_the_chain(folder, monkeypatch, capsys):
    """``ctl replay`` and ``ctl metrics`` have 94.00 dB SPL of spectra, bands and sound levels."""
    monkeypatch.setenv("RUNTIME_DIRECTORY", "run")
    monkeypatch.setenv("STATE_DIRECTORY", "state")
    monkeypatch.setattr(endpoint_discovery, "SYSTEM_FOLDER", folder / "system")
    log_level = logging.getLogger().level
    flags = {
        "source": {
            "uri": f"signal:sine,1000,{DBFS_OF_94:.6f}",
            "name": "tone",
            "calibration": "mic.toml",
        },
        "analysis": {"win_length": 4800, "nfft": 4800, "hop": 4800, "window": "flattop"},
        "products": {"thirds": {"bands": "third-octave"}},
        "levels": {"meter": {"quantities": ["LAeq", "LAFmax", "LZeq"], "interval_s": 0.5}},
        "engine": {"engine": "numpy"},
        "publish": {"endpoints": ["tcp://127.0.0.1:*"]},
    }

    def load():
        return config.load(os.devnull, flags)

    def ctl(*arguments):
        assert main(["ctl", *arguments]) == 0
        return capsys.readouterr().out

    daemon = ControlledDaemon(build_daemon(load()), load(), load)
    try:
        daemon.start()
        (endpoint,) = daemon._daemon.publisher.endpoints
        topics = {
            f"{kind}/tone/0/{name}/"
            for kind, name in (("spec", "dbfs"), ("bands", "thirds"), ("levels", "meter"))
        }
        with subscribe(endpoint, "") as frames:
            waiting = set(topics)
            while waiting:
                frame = frames.receive(60.0)
                # F settles within 0.01 dB in 0.8 s, and a level is nothing before.
                if frame.topic != "levels/tone/0/meter/" or "settling" not in frame.header.flags:
                    waiting.discard(frame.topic)
            replayed = {topic: ctl("replay", topic, "0").splitlines()[-1] for topic in topics}
            text = ctl("metrics", "--format", "prometheus")
    finally:
        daemon.stop()
        logging.getLogger().setLevel(log_level)
    for topic, quantities in (
        ("spec/tone/0/dbfs/", ["largest"]),
        ("bands/tone/0/thirds/", ["largest"]),
        ("levels/tone/0/meter/", ["LAeq", "LAFmax", "LZeq"]),
    ):
        found = re.findall(r"(\w+) ([\d.-]+) dB SPL", replayed[topic])
        assert [name for name, _ in found] == quantities
        np.testing.assert_allclose([float(level) for _, level in found], 94.0, atol=0.01)
    assert replayed["spec/tone/0/dbfs/"].endswith(" at 1000.0 Hz")
    pattern = r'spectrod_product_level_db\{.*quantity="(\w+)",unit="dB SPL"\} ([\d.]+)'
    levels = dict(re.findall(pattern, text))
    assert set(levels) == {"broadband", "LAeq", "LAFmax", "LZeq"}
    np.testing.assert_allclose([float(level) for level in levels.values()], 94.0, atol=0.01)


def test_only_a_deep_check_reads_the_calibration_file(folder, capsys):
    """A configuration is right by itself; ``--deep`` reads the file and names what is wrong."""
    text = '[sources.mic]\nuri = "x.wav"\ncalibration = "{}"\n'
    (folder / "c.toml").write_text(text.format("none.toml"))
    assert main(["config", "check", "c.toml"]) == 0
    assert main(["config", "check", "c.toml", "--deep"]) == 2
    said = capsys.readouterr()
    assert "sources.mic: none.toml: there is no such file" in said.out + said.err
    (folder / "c.toml").write_text(text.format("mic.toml"))
    main(["config", "check", "c.toml", "--deep"])
    said = capsys.readouterr()
    assert "sources.mic: calibration mic.toml: can be read" in said.out + said.err


@pytest.mark.slow
def test_a_calibration_is_changed_while_a_daemon_runs(folder, monkeypatch, capsys):
    """By a reload: a wrong file changes nothing, a right one the unit of messages. By no peer."""
    monkeypatch.setenv("RUNTIME_DIRECTORY", "run")
    monkeypatch.setenv("STATE_DIRECTORY", "state")
    monkeypatch.setattr(endpoint_discovery, "SYSTEM_FOLDER", folder / "system")
    level = logging.getLogger().level
    flags = {
        "source": {"uri": "signal:sine,1000,-20", "name": "tone"},
        "engine": {"engine": "numpy"},
        "publish": {"endpoints": ["tcp://127.0.0.1:*"]},
    }

    def load():
        return config.load(os.devnull, flags)

    daemon = ControlledDaemon(build_daemon(load()), load(), load)
    try:
        daemon.start()
        (endpoint,) = daemon._daemon.publisher.endpoints
        (folder / "wrong.toml").write_text('reference = "20 uPa"\n')
        flags["source"]["calibration"] = "wrong.toml"
        assert main(["ctl", "reload"]) != 0
        assert "wrong.toml: no level of full scale" in capsys.readouterr().err
        assert daemon.stats()[0].unit == "dBFS"
        assert main(["ctl", "set", "source.calibration=mic.toml"]) != 0
        assert "source.calibration='mic.toml': peers change no paths" in capsys.readouterr().err
        flags["source"]["calibration"] = "mic.toml"
        assert main(["ctl", "reload"]) == 0
        with subscribe(endpoint, "spec/tone/") as frames:
            until = (frames.receive(30.0) for _ in range(10_000))
            frame = next(frame for frame in until if frame.header.unit != "dBFS")
        assert frame.header.unit == "dB SPL"
        assert daemon.stats()[0].cal_id == frame.header.cal_id
    finally:
        daemon.stop()
        logging.getLogger().setLevel(level)
