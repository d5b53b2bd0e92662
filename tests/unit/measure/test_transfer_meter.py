"""Transfer functions of intervals: the command's values, gaps, averages, delays, bounds."""

from dataclasses import replace

import numpy as np
import pytest

from spectrod.dsp.interval_flags import IntervalFlag
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.errors import ConfigError
from spectrod.measure.measurement_config import MeasuredSignals
from spectrod.measure.transfer.cross_spectra import measure_transfer
from spectrod.measure.transfer.transfer_config import TransferConfig
from spectrod.measure.transfer.transfer_meter import TransferSettings, transfer_meter
from spectrod.measure.transfer.transfer_quantities import SPECTRA_UNITS, UNITS, spectrum_of

FS = 8000.0
N = 4000
"""Samples of an interval."""


def samples(n, seed=1):
    """Return noise, two delayed copies of it with noise, and silence, (4, n) float32."""
    rng = np.random.default_rng(seed)
    x = 0.2 * rng.standard_normal(n + 100)
    late, early = x[100 - 7 : n + 93], 0.5 * x[100 - 23 : n + 77]
    noise = 0.02 * rng.standard_normal((2, n))
    return np.stack([x[100:], late + noise[0], early + noise[1], np.zeros(n)]).astype(np.float32)


def meter_of(channels=4, first_sample=0, calibrations=None, **settings):
    """Return a meter of frames of 255 samples in intervals of 0.5 s."""
    table = {"interval_s": N / FS, "align": "start", "win_length": 255, "hop": 100}
    table |= {"quantities": tuple(UNITS), "spectra": tuple(SPECTRA_UNITS)}
    config = TransferConfig("room", **table | settings)
    names = [str(one) for one in range(channels)]
    known = calibrations or (None,) * channels
    return config.bind(MeasuredSignals("", FS, tuple(names), tuple(known))).open(first_sample)


def assert_same(rows, others):
    """Check that rows are the same to the bit."""
    assert len(rows) == len(others)
    for one, other in zip(rows, others, strict=True):
        assert one.first_sample == other.first_sample
        assert one.values.tobytes() == other.values.tobytes()
        for table, expected in zip(one.tables, other.tables, strict=True):
            assert table.tobytes() == expected.tobytes()


def test_a_meter_prints_as_one_line():
    """Rate, channels, quantities and interval are there."""
    meter = meter_of(quantities=("delay", "averages"))
    text = f"{FS:.6g} Hz, 4 channels, delay, averages each {N / FS:.6g} s>"
    assert repr(meter) == f"<TransferIntervalMeter: {text}"


@pytest.mark.parametrize("nfft_parity", [255, 256])
def test_values_are_those_of_the_command(nfft_parity):
    """Each interval has the transfer functions of its own samples, of all responses."""
    x = samples(2 * N)
    rows = meter_of(win_length=nfft_parity).push(x)
    assert [row.n_frames for row in rows] == [(N - nfft_parity) // 100 + 1] * 2
    part = x[:, N:]
    for k in range(2):
        found = measure_transfer(part[0], part[1 + k], FS, win_length=nfft_parity, hop=100)
        for values, name in zip(rows[1].tables[k], SPECTRA_UNITS, strict=True):
            # Sums are in another order: of groups of 32 frames.
            np.testing.assert_allclose(values, spectrum_of(found, name)[1:], rtol=1e-8, atol=1e-9)
        values = dict(zip(UNITS, rows[1].values[:, k], strict=True))
        assert values["delay"] * FS == pytest.approx((7, 23)[k], abs=0.05)
        assert values["delay_peak"] > 0.8
        assert values["level_difference"] == pytest.approx(found.level_difference_db(), abs=1e-9)
        assert values["mean_coherence"] == pytest.approx(found.mean_coherence(), abs=1e-9)
        assert values["averages"] == found.n_averages
        assert values["significant_coherence"] == found.significant_coherence


@pytest.mark.parametrize("averaging_s", [0.0, 0.3])
def test_results_do_not_depend_on_the_cut_into_blocks(averaging_s):
    """Any blocks give the same bits, also with a delay removed and an exponential average."""
    x = samples(3 * N)
    settings = {"averaging": "exponential", "averaging_s": averaging_s} if averaging_s else {}
    settings |= {"responses": (1, 2), "delay_samples": -31}
    whole = meter_of(**settings).push(x)
    meter, rows, first = meter_of(**settings), [], 0
    for size in (1, 30, 3_969, 5_000, 17, 2_983):
        rows += meter.push(x[:, first : first + size])
        first += size
    assert first == 3 * N
    assert len(whole) == 2  # the last 31 samples of the reference wait
    assert_same(rows, whole)


def test_an_exponential_average_goes_on_over_intervals():
    """So do its frames; its averages grow up to those of its time constant, and a mean's do not."""
    x = samples(12 * N)
    settings = {"quantities": ("averages",), "spectra": (), "responses": (1,)}
    rows = meter_of(averaging="exponential", averaging_s=0.5, **settings).push(x)
    assert sum(row.n_frames for row in rows) == (12 * N - 255) // 100 + 1
    found = [float(row.values[0, 0]) for row in rows]
    assert found == sorted(found)
    decay = np.exp(-100 / FS / 0.5)
    worth = measure_transfer(x[0], x[1], FS, win_length=255, hop=100)
    bound = (1 + decay) / (1 - decay) * worth.n_averages / worth.n_frames
    assert found[-1] == pytest.approx(bound, rel=0.01)
    means = [float(row.values[0, 0]) for row in meter_of(**settings).push(x)]
    assert len(set(means)) == 1
    assert rows[0].tables == ()


@pytest.mark.parametrize("averaging_s", [0.0, 10.0])
def test_a_gap_ends_the_averages(averaging_s):
    """After a gap the averages are those of a meter that begins there, delays removed."""
    x = samples(4 * N)
    settings = {"averaging": "exponential", "averaging_s": averaging_s} if averaging_s else {}
    settings |= {"responses": (1, 2), "delay_samples": 7}
    meter = meter_of(**settings)
    before = meter.push(x[:, : N + 1000])
    rows = meter.push(x[:, N + 1500 :], missing_samples=500)
    late = meter_of(first_sample=N + 1500, **settings).push(x[:, N + 1500 :])
    assert [row.first_sample for row in before] == [0]
    assert rows[0].flags.tolist() == [IntervalFlag.GAP | IntervalFlag.PARTIAL] * 2
    assert rows[0].n_samples == N - 500 - 7
    assert_same(rows[1:], late[1:])
    for one, other in zip(rows[0].tables, late[0].tables, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_values_before_a_gap_are_kept_until_frames_follow():
    """An interval that a gap ends has the values of the samples before it."""
    x = samples(2 * N)
    meter = meter_of(responses=(1,))
    meter.push(x[:, :3000])
    (row,) = meter.push(x[:, :10], missing_samples=N)
    found = measure_transfer(x[0, :3000], x[1, :3000], FS, win_length=255, hop=100)
    assert row.values[list(UNITS).index("averages"), 0] == found.n_averages
    (last,) = meter.finish()
    assert np.isnan(last.values).all()
    assert np.isnan(last.tables[0]).all()


def test_a_removed_delay_counts_in_the_delay():
    """A delay longer than the frames is found if most of it is removed."""
    x = samples(2 * N)
    shifted = np.stack([x[0, 600:], x[1, : 2 * N - 600]])
    settings = {"quantities": ("delay", "mean_coherence"), "spectra": ()}
    (row,) = meter_of(2, delay_samples=600, **settings).push(shifted, 0, 5_000_000_000)
    assert row.begin_utc_ns == 5_000_000_000
    assert row.values[0, 0] * FS == pytest.approx(607.0, abs=0.05)
    assert row.values[1, 0] > 0.95
    (without,) = meter_of(2, **settings).push(shifted)[:1]
    assert without.values[1, 0] < 0.2


@pytest.mark.parametrize("win_length", [255, 256])
@pytest.mark.parametrize("delay", [100, -80])
def test_delays_of_a_large_part_of_the_frame_are_found(win_length, delay):
    """It is found where it lowers the coherence, and with noise of the signal's level."""
    rng = np.random.default_rng(6)
    x, noise = 0.1 * rng.standard_normal((2, 8 * N + 200))
    pair = np.stack([x[100:-100], (np.roll(x, delay) + noise)[100:-100]])
    settings = {"quantities": ("delay", "mean_coherence"), "spectra": (), "interval_s": 4.0}
    (row,) = meter_of(2, win_length=win_length, **settings).push(pair)
    assert row.values[0, 0] * FS == pytest.approx(delay, abs=0.05)
    assert row.values[1, 0] < 0.25


@pytest.mark.parametrize(
    ("top", "limits"),
    [(1.0, (0.01, 0.01, 0.04)), (0.5, (0.01, 0.06, 0.3)), (0.2, (0.01, 0.1, 0.6))],
)
def test_delays_of_a_limited_band(top, limits):
    """Without noise the error grows with the delay's share of the frame: 2 %, a quarter, 0.49.

    A second of frames of 1024 samples at 48 kHz, with noise up to a part of fs/2.
    """
    n, length = 48000, 1024
    rng = np.random.default_rng(8)
    for share, limit in zip((0.02, 0.25, 0.49), limits, strict=True):
        for sign in (1, -1):
            true = sign * (share * length + 0.3)
            spectrum = np.fft.rfft(rng.standard_normal(4 * n))
            spectrum[round(top * len(spectrum)) :] = 0.0
            turns = np.exp(-2j * np.pi * np.fft.rfftfreq(4 * n) * true)
            pair = 0.1 * np.fft.irfft([spectrum, spectrum * turns], 4 * n)[:, n : 2 * n]
            settings = {"quantities": ("delay",), "spectra": (), "interval_s": n / FS}
            (row,) = meter_of(2, win_length=length, hop=length // 2, **settings).push(pair)
            assert row.values[0, 0] * FS == pytest.approx(true, abs=limit)


def test_flags_are_those_of_both_channels():
    """A reference at full scale marks all its responses; silence has no values."""
    x = samples(N)
    x[0, 5], x[2, 7] = 1.0, -1.0
    (row,) = meter_of().push(x)
    assert row.flags.tolist() == [IntervalFlag.OVERLOAD] * 3
    (row,) = meter_of(reference=1).push(x)
    assert row.flags.tolist() == [IntervalFlag.OVERLOAD, IntervalFlag.OVERLOAD, 0]
    silent = dict(zip(UNITS, row.values[:, 2], strict=True))
    assert np.isnan([silent["delay"], silent["delay_peak"], silent["mean_coherence"]]).all()
    assert silent["level_difference"] == -np.inf


def test_the_band_counts_for_all_values():
    """Values of bins are those of the band."""
    x = samples(N)
    (row,) = meter_of(low_hz=500.0, high_hz=1500.0, responses=(2,)).push(x)
    found = measure_transfer(x[0], x[2], FS, win_length=255, hop=100)
    chosen = (found.frequencies >= 500.0) & (found.frequencies <= 1500.0)
    np.testing.assert_allclose(row.tables[0][0], found.coherence[chosen], rtol=1e-9)
    values = dict(zip(UNITS, row.values[:, 0], strict=True))
    expected = found.level_difference_db((500.0, 1500.0))
    assert values["level_difference"] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("channels", "settings", "rule"),
    [
        (1, {}, "sources: a source of 1 channel has no transfer functions; name sources of two"),
        (4, {"reference": 4}, "reference=4: must be a channel from 0 to 3 of the source"),
        (4, {"responses": (1, 9)}, "responses=9: must be a channel from 0 to 3 of the source"),
        (4, {"responses": (0,)}, "responses=0: must be another channel than reference"),
        (4, {"responses": (2, 2)}, "responses=2: is given twice"),
        (66, {}, "responses: 65 channels: must be at most 64"),
        (99, {"responses": tuple(range(1, 67))}, "responses: 66 channels: must be at most 64"),
        (4, {"interval_s": 0.04}, r"interval_s=0.04: must hold two frames, 0.044375 s: the"),
        (4, {"interval_s": 0.03}, r"interval_s=0.03: must be at least a frame, win_length=255"),
        (4, {"averaging": "exponential"}, "averaging_s=0: must be above 0 with averaging='expon"),
        (4, {"averaging_s": 1.0}, "averaging_s=1: must be above 0 with .* and 0 with 'mean'"),
        (
            4,
            {"averaging": "exponential", "averaging_s": 0.01},
            "averaging_s=0.01: must be at least hop=100 of 0.0125 s",
        ),
        (4, {"quantities": ("lag",)}, "quantity='lag': must be one of delay, delay_peak"),
        (4, {"quantities": ()}, "quantities: 0 names; must be 1 to 64"),
        (4, {"quantities": ("delay",) * 2}, "quantities: delay is given twice"),
        (4, {"spectra": ("h3",)}, r"spectra='h3': must be one of coherence, h1"),
        (4, {"spectra": ("h1", "h2", "h2")}, "spectra: h2 is given twice"),
        (4, {"low_hz": 1.0, "high_hz": 2.0}, r"band_hz=\(1, 2\): has no bin"),
        (
            2,
            {"win_length": 1 << 20, "interval_s": 1000.0},
            "1 responses, win_length=1048576: 3145728 values of bins; must be at most 1048576",
        ),
    ],
)
def test_wrong_settings(channels, settings, rule):
    """Each wrong setting is one error that names it and the rule."""
    with pytest.raises(ConfigError, match=rule):
        meter_of(channels, **settings)


def test_a_meter_without_a_configuration():
    """In Python a spec and the channels suffice; those that do not fit are refused."""
    x = samples(2 * N)
    spec = SpectrumSpec(FS, 2, win_length=255, hop=100)
    settings = TransferSettings((0, 2), 4, tuple(UNITS), tuple(SPECTRA_UNITS))
    rows = transfer_meter(spec, settings, interval_s=N / FS).push(x)
    assert_same(rows, meter_of(responses=(2,)).push(x))
    for channels in ((0,), (0, 4), (-1, 1), (0, 1, 2)):
        wrong = replace(settings, channels=channels)
        with pytest.raises(ConfigError, match=r"channels=.*: must be 2 numbers, .* n_channels=4"):
            transfer_meter(spec, wrong, interval_s=N / FS)
    iq = SpectrumSpec(FS, 2, win_length=255, hop=100, iq=True)
    with pytest.raises(ConfigError, match="spec: must be of two or more real channels"):
        transfer_meter(iq, settings, interval_s=N / FS)


def test_iq_has_no_transfer_functions():
    """Pairs of I and Q are refused."""
    with pytest.raises(ConfigError, match="sources: I/Q samples have no transfer functions"):
        TransferConfig("a").bind(MeasuredSignals("", FS, ("0",), (None,), is_iq=True))
