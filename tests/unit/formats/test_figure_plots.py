"""Figures in Python: those of meters of intervals, of transfer functions and of sweeps."""

import io
import pickle

import numpy as np
import pytest
from PIL import Image

from spectrod import spectrogram
from spectrod.formats.figure.figure_look import FigureLook
from spectrod.formats.figure.plots import plot_intervals, plot_transfer
from spectrod.lib.errors import ConfigError, InputError
from spectrod.measure.levels import LevelMeter
from spectrod.measure.tones.distortion import measure_distortion
from spectrod.measure.tones.peaks import find_peaks
from spectrod.measure.transfer.cross_spectra import measure_transfer
from spectrod.measure.transfer.sweep import Sweep
from spectrod.measure.transfer.sweep_response import measure_sweep

FS = 8000
RNG = np.random.default_rng(1)
X = 0.1 * RNG.standard_normal((2, 2 * FS + 1))


@pytest.mark.parametrize("channels", [1, 2])
def test_levels_of_a_meter(channels):
    """Each channel has a panel with its values, named with those of all intervals, and bars."""
    meter = LevelMeter(FS, channels, quantities=["LAeq", "L90"], bands="octave")
    rows = [*meter.push(X[:channels]), *meter.finish()]
    figure = plot_intervals(meter, rows, FS)
    assert len(figure.axes) == 2 * channels
    assert figure.get_suptitle() == "Sound levels"
    for channel, panel in enumerate(figure.axes[:channels]):
        lines = {line.get_label().split(" ")[0]: line for line in panel.get_lines()}
        assert panel.get_ylabel() == "level [dBFS]"
        np.testing.assert_array_equal(
            lines["LAeq"].get_ydata()[::2], [row.values[0, channel] for row in rows]
        )
        total = meter.summary().values[0, channel]
        assert lines["LAeq"].get_label() == f"LAeq ({total:.1f})"


def test_a_look_is_applied():
    """Size, title and resolution are those that are given; without rows there is an error."""
    meter = LevelMeter(FS, 1, quantities=["rms"])
    rows = [*meter.push(X[:1]), *meter.finish()]
    figure = plot_intervals(meter, rows, FS, look=FigureLook("Pump", 5.0, 4.0, 72))
    assert (figure.get_suptitle(), figure.dpi) == ("Pump", 72)
    assert tuple(figure.get_size_inches()) == (5.0, 4.0)
    with pytest.raises(InputError, match="nothing to draw: no intervals"):
        plot_intervals(meter, [], FS)


def test_times_are_utc_where_rows_have_them():
    """A meter with a date has a clock below, in the zone that is named."""
    meter = LevelMeter(FS, 1, utc_ns=1_777_600_000 * 10**9)
    rows = [*meter.push(X[:1]), *meter.finish()]
    panel = plot_intervals(meter, rows, FS, time_zone="Asia/Tokyo").axes[0]
    assert panel.get_xlabel() == "time, Asia/Tokyo (UTC+09:00), 2026-05-01"
    elapsed = LevelMeter(FS, 1)
    rows = [*elapsed.push(X[:1]), *elapsed.finish()]
    assert "since the first sample" in plot_intervals(elapsed, rows, FS).axes[0].get_xlabel()


def test_a_transfer_function():
    """Magnitude, phase and coherence are the values of the result."""
    found = measure_transfer(X[0], 0.5 * X[0], FS, win_length=256)
    magnitude, phase, coherence = plot_transfer(found).axes
    levels = magnitude.get_lines()[-1].get_ydata()
    np.testing.assert_allclose(levels, 20.0 * np.log10(0.5), atol=1e-9)
    assert (phase.get_ylabel(), coherence.get_ylabel()) == ("phase [deg]", "coherence [1]")
    ours = found.plot(FigureLook("Pump"))
    assert ours.get_suptitle() == "Pump"
    np.testing.assert_array_equal(ours.axes[0].get_lines()[-1].get_ydata(), levels)
    assert repr(found).startswith("<TransferFunction: 129 bins, 0 to 4000 Hz, 124 frames, worth ")
    assert repr(found).endswith(" averages, mean coherence 1>")


def test_a_sweep():
    """The figure has the panels of the command, and the title that is given."""
    sweep = Sweep(FS, 50.0, 3000.0, 1.0)
    recorded = np.concatenate([np.zeros(500), 0.5 * sweep.samples, np.zeros(FS)])
    recorded += 1e-4 * RNG.standard_normal(len(recorded))
    found = measure_sweep(sweep, recorded)
    assert repr(found) == (
        f"<SweepResponse: 50 to {found.band_hz[1]:.6g} Hz, {len(found.frequencies)} bins, "
        "4 harmonics, time 0 at sample 500>"
    )
    figure = found.plot(FigureLook("Room"))
    names = [panel.get_ylabel() for panel in figure.axes]
    assert names == [
        "magnitude [dB]", "phase [deg]", "distortion, 1/12 octave [dB]", "impulse response",
        "decay [dB]",
    ]  # fmt: skip
    assert figure.get_suptitle() == "Room"


def tones(n_signals=1):
    """Return rows of a tone with two harmonics, in two rows of each signal."""
    t = np.arange(2 * FS) / FS
    x = 0.5 * np.sin(2.0 * np.pi * 500.0 * t) + 5e-3 * np.sin(2.0 * np.pi * 1000.0 * t)
    x += 1e-3 * np.sin(2.0 * np.pi * 1500.0 * t)
    x = x + 1e-5 * RNG.standard_normal((n_signals, 2 * FS))
    found = spectrogram(
        x, FS, window="blackmanharris", win_length=FS, hop=FS, engine="float64", scaling="dbfs"
    )
    return np.moveaxis(found.values, -1, 0), found.spec


def test_a_distortion():
    """Orders are marked at their levels, alone or upon the spectrum, below the figures."""
    (row, _), spec = tones()
    found = measure_distortion(row[0], spec, harmonics=3)
    assert repr(found).startswith("<Distortion: 500 Hz at -6.021 dBFS, THD -39.8")
    assert repr(found).endswith(" dB, 2 harmonics>")
    (alone,) = found.plot(FigureLook("Amplifier")).axes
    (upon,) = found.plot(values=row[0], spec=spec).axes
    for panel in (alone, upon):
        marks = {text.get_text(): text.xy for text in panel.texts}
        assert set(marks) == {"1", "2", "3"}
        np.testing.assert_allclose(marks["3"], (1500.0, 20.0 * np.log10(1e-3)), rtol=1e-3)
        assert panel.get_title("left").startswith("fundamental 500.0000 Hz")
    assert alone.figure.get_suptitle() == "Amplifier"
    lowest, highest = upon.get_ylim()
    assert lowest < -100.0 < highest


def test_peaks_of_several_signals():
    """Each signal has a panel, also one without a peak; a figure without any is empty."""
    rows, spec = tones(2)
    peaks = find_peaks(rows, spec)
    figure = peaks.plot(values=rows, spec=spec)
    assert [panel.get_title("left") for panel in figure.axes] == ["channel 0", "channel 1"]
    assert [text.get_text() for text in figure.axes[1].texts] == ["500", "1k", "1.5k"]
    one = peaks.of(0, 0)
    assert len(one.plot().axes) == 1
    assert len(one.plot(values=rows, spec=spec).axes[1].texts) == 0
    none = one.where(np.zeros(len(one), bool))
    assert len(none.plot().axes[0].texts) == 0


def test_rows_of_tones_are_checked():
    """Rows need their spec, as many signals as the tones, and one row at least."""
    rows, spec = tones(2)
    peaks = find_peaks(rows, spec)
    with pytest.raises(ConfigError, match="values, spec: must be given together, or neither"):
        peaks.plot(values=rows)
    with pytest.raises(InputError, match="values of 1 signals: tones are of 2"):
        peaks.plot(values=rows[:, :1], spec=spec)
    with pytest.raises(InputError, match="values: must have a row"):
        peaks.plot(values=rows[:0], spec=spec)


def test_a_notebook_shows_a_figure():
    """A cell that ends with a figure has a picture of it, 100 pixels an inch."""
    found = measure_transfer(X[0], 0.5 * X[0], FS, win_length=256)
    figure = found.plot(FigureLook("Pump", 5.0, 4.0, 72))
    with Image.open(io.BytesIO(figure._repr_png_())) as picture:
        assert (picture.format, picture.size) == ("PNG", (500, 400))


def test_figures_can_be_pickled():
    """Another process gets the figure whole, with the picture of a notebook."""
    meter = LevelMeter(FS, 1, bands="octave", utc_ns=1_777_600_000 * 10**9)
    rows = [*meter.push(X[:1]), *meter.finish()]
    transfer = measure_transfer(X[0], 0.5 * X[0], FS, win_length=256)
    for figure in (plot_intervals(meter, rows, FS), plot_transfer(transfer)):
        again = pickle.loads(pickle.dumps(figure))  # noqa: S301 - made here
        labels, expected = ([one.get_ylabel() for one in of.axes] for of in (again, figure))
        assert labels == expected
        assert again._repr_png_.args[0] is again
