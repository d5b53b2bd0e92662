import numpy as np
import pytest

from spectrod.apps.view.frame_levels import level_unit, levels_db
from spectrod.apps.view.status import peak_text
from spectrod.dsp.peak import find_peak
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import power_to_dbfs
from spectrod.wire.schema import Frame, SpectrumHeader

FS = 48000.0


def analyse(samples, spec):
    """Make the frame that a daemon would send for win_length samples."""
    spectrum = np.fft.rfft(samples * spec.taper.samples, spec.nfft)
    power = np.abs(spectrum) ** 2 * spec.power_scale
    power[1:-1] *= 2.0
    values = power.astype(np.float32)
    if spec.scaling == "dbfs":
        values = power_to_dbfs(values)
    header = SpectrumHeader(
        seq=0,
        epoch=1,
        t_utc_ns=0,
        t_mono_ns=0,
        sample_index=0,
        fs=spec.fs,
        win_length=spec.win_length,
        nfft=spec.nfft,
        hop=spec.hop,
        window=spec.window,
        enbw_hz=spec.enbw_hz,
        shape=(spec.n_bins,),
        unit=spec.scale.unit,
        ref=spec.scale.reference,
        engine="numpy",
    )
    return Frame("spec/mic/0/dbfs/", header, values)


def sine(frequency_hz, n, amplitude=0.1):
    return amplitude * np.sin(2.0 * np.pi * frequency_hz * np.arange(n) / FS)


@pytest.mark.parametrize("win_length", [4096, 3001])
@pytest.mark.parametrize(
    "window", ["rectangular", "hann", "hamming", "blackmanharris", "flattop", "kaiser:8.6"]
)
@pytest.mark.parametrize("offset_bins", [0.0, 0.25, 0.5, -0.49])
def test_a_tone_between_bins_is_read_right(window, win_length, offset_bins):
    """A tone between bins is read within 0.05 Hz and 0.02 dB, for every window and padding."""
    spec = SpectrumSpec(FS, window=window, win_length=win_length, scaling="dbfs")
    frequency_hz = (85 + offset_bins) * spec.delta_f
    frame = analyse(sine(frequency_hz, win_length), spec)
    peak = find_peak(levels_db(frame), frame.header)
    assert peak.is_interpolated
    assert peak.frequency_hz == pytest.approx(frequency_hz, abs=0.05)
    assert peak.level_db == pytest.approx(-20.0, abs=0.02)


def test_linear_values_are_read_in_decibels():
    """A spectrum in FS^2 shows a sine's mean square in dB re FS^2."""
    spec = SpectrumSpec(FS, win_length=4096, scaling="spectrum")
    frame = analyse(sine(100 * spec.delta_f, 4096), spec)
    peak = find_peak(levels_db(frame), frame.header)
    assert peak.level_db == pytest.approx(10.0 * np.log10(0.1**2 / 2.0), abs=0.01)
    assert level_unit(frame.header) == "dB re FS^2"


@pytest.mark.parametrize("k", [0, 1, 2047, 2048])
def test_at_the_ends_the_bin_is_shown(k):
    """Beside DC and Nyquist the bin is shown without interpolation, and the text says so."""
    spec = SpectrumSpec(FS, win_length=4096, scaling="dbfs")
    frame = analyse(np.zeros(4096), spec)
    levels = np.full(spec.n_bins, -90.0)
    levels[k] = -3.0
    peak = find_peak(levels, frame.header)
    assert (peak.frequency_hz, peak.level_db) == (k * spec.delta_f, -3.0)
    assert peak_text(peak, frame.header) == f"{k * spec.delta_f:.1f} Hz (bin) -3.0 dBFS"


@pytest.mark.parametrize(("window", "win_length"), [("unheard-of", 4096), ("hann", 10**15)])
def test_a_window_that_cannot_be_is_not_computed(window, win_length):
    """An impossible window in a header costs no memory and leaves the read-out."""
    spec = SpectrumSpec(FS, win_length=4096, scaling="dbfs")
    frame = analyse(sine(100 * spec.delta_f, 4096), spec)
    parts = {name: getattr(frame.header, name) for name in frame.header.__struct_fields__}
    header = SpectrumHeader(**parts | {"window": window, "win_length": win_length})
    peak = find_peak(levels_db(frame), header)
    assert not peak.is_interpolated
    assert peak.frequency_hz == 100 * spec.delta_f


@pytest.mark.parametrize("scaling", ["dbfs", "spectrum"])
def test_levels_are_finite_whatever_a_message_says(scaling):
    """Values that no level has are levels from -200 to 1000 dB, whose power is finite."""
    spec = SpectrumSpec(FS, win_length=64, scaling=scaling)
    frame = analyse(np.zeros(64), spec)
    values = np.zeros(spec.n_bins, np.float32)
    values[:6] = np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45
    levels = levels_db(Frame(frame.topic, frame.header, values))
    assert (levels >= -200.0).all()
    assert (levels <= 1000.0).all()
    assert levels[1] == 1000.0


def test_silence_and_nan_have_no_peak():
    """Silence and NaN have no peak."""
    spec = SpectrumSpec(FS, win_length=64, scaling="dbfs")
    frame = analyse(np.zeros(64), spec)
    assert find_peak(levels_db(frame), frame.header) is None
    assert peak_text(None, frame.header) == "silence"
    nothing = Frame(frame.topic, frame.header, np.full(spec.n_bins, np.nan, np.float32))
    assert find_peak(levels_db(nothing), nothing.header) is None
