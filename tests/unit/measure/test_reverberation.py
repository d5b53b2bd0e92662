"""Reverberation times: of decays of known rate, in noise, in bands, and of sweeps in a room."""

import numpy as np
import pytest

from spectrod.lib.errors import ConfigError
from spectrod.measure.transfer.reverberation import octave_edges, reverberation
from spectrod.measure.transfer.sweep import Sweep
from spectrod.measure.transfer.sweep_response import measure_sweep

FS = 16_000
LN_60_DB = np.log(1e3)


def room(time_s, n, noise_db=-np.inf, lead=0, seed=1):
    """Return noise that decays by 60 dB in a time, in noise of a level re its begin."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(n) * np.exp(-LN_60_DB * np.arange(n) / FS / time_s)
    x = np.concatenate([np.zeros(lead), x])
    return x + 10.0 ** (noise_db / 20.0) * rng.standard_normal(len(x))


def deviation(time_s, range_db, band_width_hz):
    """Return three relative standard deviations of a time.

    A fit over D dB averages about ``B T D / 60`` independent values of band-limited noise, and the
    slope of a line through them is twelve times less certain than their mean, of 4.34 dB each.
    """
    n = band_width_hz * time_s * range_db / 60.0
    return 3.0 * np.sqrt(12.0 / n) * 4.34 / range_db


@pytest.mark.parametrize("time_s", [0.3, 0.8, 2.0])
@pytest.mark.parametrize("noise_db", [-100.0, -70.0, -50.0])
@pytest.mark.parametrize("n_more", [0, 1])
def test_a_decay_has_its_time(time_s, noise_db, n_more):
    """All ranges give the time of the decay, and the noise is found, whatever the length."""
    found = reverberation(room(time_s, int(1.5 * time_s * FS) + n_more, noise_db, lead=500), FS)
    for name, range_db in (("EDT", 10.0), ("T20", 20.0), ("T30", 30.0)):
        tolerance = deviation(time_s, range_db, FS / 2)
        assert found.times_s[name] == pytest.approx(time_s, rel=tolerance)
    if noise_db > -80.0:
        assert found.noise_db == pytest.approx(noise_db, abs=1.5)
    assert found.decay_db[0] == 0.0
    assert len(found.t) == len(found.decay_db)


def test_noise_would_bend_the_decay_without_the_knee():
    """Plain backward integration to the end reads a longer time; ours does not."""
    x = room(0.5, 2 * FS, -38.0)
    energy = np.cumsum(np.square(x)[::-1])[::-1]
    decay_db = 10.0 * np.log10(energy / energy[0])
    fitted = (decay_db <= -5.0) & (decay_db >= -25.0)
    plain_s = -60.0 / np.polyfit(np.arange(len(x))[fitted] / FS, decay_db[fitted], 1)[0]
    tolerance = deviation(0.5, 20.0, FS / 2)
    assert plain_s > 0.5 * (1.0 + 2.0 * tolerance)
    assert reverberation(x, FS).times_s["T20"] == pytest.approx(0.5, rel=tolerance)


@pytest.mark.parametrize(
    ("noise_db", "known"),
    [(-60.0, {"EDT", "T20", "T30"}), (-40.0, {"EDT", "T20"}), (-27.0, {"EDT"}), (-8.0, set())],
)
def test_times_near_the_noise_are_not_measured(noise_db, known):
    """Noise must be 10 dB below the end of a range; else the time is NaN."""
    found = reverberation(room(0.5, FS, noise_db), FS)
    assert {name for name, one in found.times_s.items() if np.isfinite(one)} == known


def test_each_octave_has_its_own_time():
    """Decays of 0.4 s at 500 Hz and 1.2 s at 4 kHz are told apart."""
    x = np.zeros(2 * FS)
    times = {500.0: 0.4, 4000.0: 1.2}
    for seed, (middle_hz, time_s) in enumerate(times.items()):
        low, high = octave_edges(middle_hz)
        spectrum = np.fft.rfft(np.random.default_rng(seed).standard_normal(len(x)))
        f = np.fft.rfftfreq(len(x), 1.0 / FS)
        spectrum[(f < low) | (f > high)] = 0.0
        decay = np.exp(-LN_60_DB * np.arange(len(x)) / FS / time_s)
        x += np.fft.irfft(spectrum, len(x)) * decay
    for middle_hz, time_s in times.items():
        band = octave_edges(middle_hz)
        found = reverberation(x, FS, band)
        assert found.band_hz == band
        tolerance = deviation(time_s, 20.0, band[1] - band[0])
        assert found.times_s["T20"] == pytest.approx(time_s, rel=tolerance)


def test_a_time_that_is_shorter_than_the_filter_rings_is_not_measured():
    """The product of band width and time must be 16 (ISO 3382-1); a click has no time there."""
    x = np.zeros(4000)
    x[100] = 1.0
    found = reverberation(x, FS, octave_edges(125.0))
    assert all(np.isnan(one) for one in found.times_s.values())


def test_octaves_are_those_of_iec_61260():
    """Edges are at powers of ten, three tenths of a decade apart."""
    np.testing.assert_allclose(octave_edges(63.0), (44.668, 89.125), rtol=1e-4)
    np.testing.assert_allclose(octave_edges(1000.0), (707.946, 1412.54), rtol=1e-4)


@pytest.mark.parametrize(
    ("impulse", "band_hz", "rule"),
    [
        (np.ones(63), None, r"impulse of shape \(63,\): must be one of 64 or more"),
        (np.zeros(100), None, "impulse: must be finite and not silent"),
        (np.full(100, np.nan), None, "impulse: must be finite and not silent"),
        (np.ones(100), (4000.0, 8000.0), "band_hz=4000,8000: must be within 0 and 8000 Hz"),
    ],
)
def test_what_has_no_decay_is_refused(impulse, band_hz, rule):
    """One error names the rule."""
    with pytest.raises(ConfigError, match=rule):
        reverberation(impulse, FS, band_hz)


def test_a_sweep_in_a_room_gives_its_reverberation():
    """The times of the room come back from a recording of a sweep in noise."""
    sweep = Sweep(FS, 50.0, 7000.0, 2.0)
    impulse = room(0.4, FS)
    played = np.concatenate([np.zeros(1000), 0.5 * sweep.samples, np.zeros(FS)])
    nfft = 1 << 17
    recorded = np.fft.irfft(np.fft.rfft(played, nfft) * np.fft.rfft(impulse, nfft), nfft)
    recorded = recorded[: len(played)] + 1e-3 * np.random.default_rng(2).standard_normal(
        len(played)
    )
    found = measure_sweep(sweep, recorded).reverberation()
    assert found[0].band_hz is None
    assert [round(np.sqrt(np.prod(one.band_hz))) for one in found[1:]] == [
        126, 251, 501, 1000, 1995, 3981,
    ]  # fmt: skip
    assert found[0].times_s["T30"] == pytest.approx(0.4, rel=deviation(0.4, 30.0, 6950.0))
    low, high = found[4].band_hz
    assert found[4].times_s["T20"] == pytest.approx(0.4, rel=deviation(0.4, 20.0, high - low))
