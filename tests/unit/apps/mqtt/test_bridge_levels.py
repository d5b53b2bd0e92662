import itertools
from dataclasses import replace

import msgspec
import numpy as np
import pytest

import spectrod
from spectrod.wire.headers import BandsHeader, SpectrumHeader
from spectrod.wire.interval_levels import Meter
from spectrod.wire.schema import BandFrame, Frame

N_SAMPLES = 1 << 16
COUNTS = {"seq": 0, "epoch": 0, "t_utc_ns": 0, "t_mono_ns": 0, "sample_index": 0}


def frames_of(samples, window, win_length, scaling):
    got = spectrod.spectrogram(
        samples, 48_000, window=window, win_length=win_length, scaling=scaling
    )
    spec = got.spec
    header = SpectrumHeader(
        **COUNTS,
        fs=spec.fs,
        win_length=spec.win_length,
        nfft=spec.nfft,
        hop=spec.hop,
        window=window,
        enbw_hz=spec.enbw_hz,
        shape=(spec.n_bins,),
        unit=got.unit,
        ref="",
        engine="",
    )
    return [Frame("spec/a/0/x/", header, row.astype(np.float32)) for row in got.values.T]


def meter_of(frames):
    meter = Meter(frames[0])
    for frame in frames[1:]:
        assert meter.fits(frame)
        meter.add(frame)
    return meter


@pytest.fixture(scope="module")
def signals():
    rng = np.random.default_rng(11)
    noise = rng.standard_normal(N_SAMPLES)
    noise *= 0.1 / np.sqrt(2.0 * np.mean(noise**2))
    tone = 0.1 * np.sin(2 * np.pi * 0.0123456789 * np.arange(N_SAMPLES))
    return {"noise": noise, "tone": tone}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["noise", "tone"])
@pytest.mark.parametrize("scaling", ["dbfs", "spectrum", "density"])
def test_a_level_is_that_of_the_samples(signals, kind, scaling):
    """Levels of noise and of a tone between bins are right for any window, length and scaling."""
    for window, win_length in itertools.product(("hann", "flattop", "rectangular"), (1024, 2047)):
        levels = meter_of(frames_of(signals[kind], window, win_length, scaling)).levels()
        assert levels.unit == "dBFS"
        assert abs(levels.mean[0] + 20.0) < 0.05, (window, win_length)
        assert levels.highest[0] >= levels.mean[0]


@pytest.mark.parametrize(
    ("reference", "unit", "name"),
    [("20 uPa", "Pa^2", "dB SPL"), ("1 uPa", "uPa^2", "dB re 1 uPa"), ("1 V", "V^2", "dBV"),
     ("0.01 m/s2", "(m/s2)^2", "dB re 0.01 m/s2")],
)  # fmt: skip
@pytest.mark.parametrize("density", ["", "/Hz"])
def test_calibrated_levels_are_re_the_reference_of_the_calibration(reference, unit, name, density):
    """Levels of spectra and bands have the reference of levels in files, as 20 uPa and not 1 Pa."""
    value = float(reference.split()[0]) * (20e-6 / 20 if reference == "20 uPa" else 1.0)
    ref = f"0 dB = {reference}, a band's mean square"
    spectrum = frames_of(np.full(4096, 0.5), "hann", 1024, "density" if density else "spectrum")[0]
    given = replace(spectrum, header=msgspec.structs.replace(
        spectrum.header, unit=unit + density, ref=ref))  # fmt: skip
    levels = Meter(given).levels()
    assert levels.unit == name
    plain = Meter(spectrum).levels().mean[0] - 3.0103
    assert levels.mean[0] == pytest.approx(plain - 20.0 * np.log10(value), abs=1e-3)
    (bands,) = bands_of([[4e-10, 1.0]])
    given = replace(bands, header=msgspec.structs.replace(
        bands.header, unit=unit + density, ref=ref))  # fmt: skip
    levels = Meter(given).levels()
    assert levels.unit == (f"dB re ({reference})^2/Hz" if density else name)
    assert levels.mean[1] == pytest.approx(-20.0 * np.log10(value), abs=1e-9)


@pytest.mark.parametrize("ref", ["", "0 dB = 5 furlongs, x", "0 dB = " + "9" * 999, "0 dB = 1 V"])
def test_an_unknown_reference_is_that_of_the_unit(ref):
    """A hostile or foreign reference, or one of another unit, changes no level."""
    (bands,) = bands_of([[1.0]])
    header = msgspec.structs.replace(bands.header, unit="Pa^2", ref=ref)
    levels = Meter(replace(bands, header=header)).levels()
    assert (levels.unit, levels.mean[0]) == ("dB re Pa^2", 0.0)


def test_means_are_of_power_and_the_highest_is_one_frames():
    """Means are of power, so levels of 0 and -10 dB in turn average to -2.6 dB, not -5."""
    frames = bands_of([[0.0, -30.0], [-10.0, -20.0]])
    levels = meter_of(frames).levels()
    np.testing.assert_allclose(levels.mean, [-2.596, -22.596], atol=1e-3)
    np.testing.assert_allclose(levels.highest, [0.0, -20.0], atol=1e-9)
    assert (levels.frames, levels.unit) == (2, "dBFS")


def bands_of(rows, unit="dBFS"):
    header = BandsHeader(
        **COUNTS,
        fs=48_000.0,
        win_length=64,
        nfft=64,
        hop=32,
        window="hann",
        enbw_hz=1125.0,
        shape=(len(rows[0]),),
        unit=unit,
        ref="",
        engine="",
        bands="octave",
        n_bands=len(rows[0]),
    )
    return [BandFrame("bands/a/0/x/", header, np.array(row, np.float32)) for row in rows]


@pytest.mark.parametrize(
    ("unit", "expected_unit", "expected"),
    [("FS^2", "dBFS", 0.0), ("FS^2/Hz", "dB re FS^2/Hz", -3.0103), ("dBSPL", "dBSPL", 0.5)],
)
def test_units_of_power_become_levels_and_levels_stay(unit, expected_unit, expected):
    """A mean square of 1/2 becomes 0 dBFS, and values that are levels stay unchanged."""
    levels = Meter(bands_of([[0.5]], unit)[0]).levels()
    assert levels.unit == expected_unit
    assert abs(levels.mean[0] - expected) < 1e-4


def test_silence_has_the_floors_level_and_nan_stays():
    """Silence has the level of the floor instead of minus infinity, and NaN stays NaN."""
    levels = Meter(bands_of([[0.0, np.nan]], "FS^2")[0]).levels()
    assert levels.mean[0] == -200.0
    assert np.isnan(levels.mean[1])
    assert np.isnan(levels.highest[1])


def test_a_shorter_row_counts_by_its_frames():
    """A mean of one of four frames has a quarter of the weight of a whole row."""
    first = frames_of(np.tile([0.4, -0.4], 256), "hann", 64, "spectrum")[0]
    header = msgspec.structs.replace(first.header, averaging="mean", averaging_frames=4)
    cut = msgspec.structs.replace(header, cut_frames=1)
    whole, short = replace(first, header=header), replace(first, header=cut)
    (mean,) = meter_of([whole, replace(short, values=first.values * 6)]).levels().mean
    (alone,) = meter_of([whole]).levels().mean
    assert mean - alone == pytest.approx(10 * np.log10((4 + 6) / 5), abs=1e-5)


def test_losses_add_up():
    """Missed messages, gaps and restarts are summed over all frames."""
    first, second = bands_of([[0.0], [0.0]])
    gap = msgspec.structs.replace(second.header, gap_samples=7)
    meter = Meter(replace(first, missed=2))
    meter.add(replace(second, header=gap, missed=3, restarted=True))
    levels = meter.levels()
    assert (levels.missed, levels.gap_samples, levels.restarts) == (5, 7, 1)


@pytest.mark.parametrize("field", ["unit", "fs", "nfft", "hop", "weighting", "averaging"])
def test_frames_of_another_analysis_do_not_fit(field):
    """Frames of another analysis cannot be added to a level."""
    (frame,) = bands_of([[0.0]])
    new = {
        "unit": "FS^2",
        "fs": 1.0,
        "nfft": 128,
        "hop": 7,
        "weighting": "A",
        "averaging": "max",
    }[field]
    other = replace(frame, header=msgspec.structs.replace(frame.header, **{field: new}))
    assert Meter(frame).fits(frame)
    assert not Meter(frame).fits(other)
    assert not Meter(frame).fits(bands_of([[0.0, 0.0]])[0])
