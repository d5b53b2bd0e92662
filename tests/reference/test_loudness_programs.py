"""Loudness, its range and true peak against other programs, on the signals of EBU and on noise."""

import ctypes
from itertools import pairwise

import numpy as np
import pytest
from scipy import signal

from spectrod.measure.levels import LevelMeter

FS = 48000
_MODE_ALL = 0b111111  # M, S, I, range, sample peak, true peak
_STEP_S = 0.01
NAMES = ("LUFS_I", "LRA", "LUFS_Mmax", "LUFS_Smax", "true_peak")
SILENT = -300.0

pytestmark = pytest.mark.extended


@pytest.fixture(scope="module")
def library():
    """Load libebur128, of the Debian package libebur128-1."""
    library = ctypes.CDLL("libebur128.so.1")
    library.ebur128_init.restype = ctypes.c_void_p
    library.ebur128_init.argtypes = [ctypes.c_uint, ctypes.c_ulong, ctypes.c_int]
    return library


def measured_by(library, x, fs):
    """Return the values of NAMES by libebur128, maxima at steps of 10 ms; and S each 100 ms."""
    state = ctypes.c_void_p(library.ebur128_init(len(x), int(fs), _MODE_ALL))
    value = ctypes.c_double()

    def read(name, *arguments):
        function = getattr(library, f"ebur128_{name}")
        assert function(state, *arguments, ctypes.byref(value)) == 0
        return value.value

    frames = np.ascontiguousarray(x.T)
    bounds = np.rint(np.arange(len(frames) / fs / _STEP_S + 1) * _STEP_S * fs).astype(int)
    momentary, short_term = [-np.inf], [-np.inf]
    for first, n_read in pairwise(np.append(bounds[bounds < len(frames)], len(frames)).tolist()):
        part = frames[first:n_read]
        pointer = part.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
        assert library.ebur128_add_frames_double(state, pointer, ctypes.c_size_t(len(part))) == 0
        if n_read >= 0.4 * fs:
            momentary.append(read("loudness_momentary"))
        if n_read >= 3.0 * fs:
            short_term.append(read("loudness_shortterm"))
    peaks = [read("true_peak", ctypes.c_uint(channel)) for channel in range(len(x))]
    found = (
        read("loudness_global"),
        read("loudness_range"),
        max(momentary),
        max(short_term),
        20.0 * np.log10(max(peaks)),
    )
    library.ebur128_destroy(ctypes.byref(state))
    return dict(zip(NAMES, found, strict=True)), short_term[1::10]


def measured(x, fs):
    """Return the values of NAMES by spectrod."""
    meter = LevelMeter(fs, len(x), quantities=NAMES, interval_s=3600.0)
    meter.push(x)
    (row,) = meter.finish()
    values = dict(zip(NAMES, row.values, strict=True))
    return {name: float(value.max()) for name, value in values.items()}


def tone(*parts, fs=FS, channels=2):
    """Make 1 kHz without jumps of phase: pairs of seconds and peak level [dBFS]."""
    gains = [np.full(round(seconds * fs), 10.0 ** (db / 20.0)) for seconds, db in parts]
    gain = np.concatenate(gains)
    x = gain * np.sin(2.0 * np.pi * 1000.0 / fs * np.arange(len(gain)))
    return np.tile(x, (channels, 1))


def surround():
    return np.concatenate([tone((20, db), channels=1) for db in (-28, -28, -24, -30, -30)])


CASES = {
    "3341-1": tone((20, -23)),
    "3341-2": tone((20, -33)),
    "3341-3": tone((10, -36), (60, -23), (10, -36)),
    "3341-4": tone((10, -72), (10, -36), (60, -23), (10, -36), (10, -72)),
    "3341-5": tone((20, -26), (20.1, -20), (20, -26)),
    "3341-6": surround(),
    "3341-9": tone(*[(1.34, -20), (1.66, -30)] * 5),
    "3341-10": tone((0.15 * 7, SILENT), (3, -23), (1, SILENT)),
    "3341-12": tone(*[(0.18, -20), (0.22, -30)] * 25),
    "3341-13": tone((0.02 * 7, SILENT), (0.4, -23), (1, SILENT)),
    "3342-1": tone((20, -20), (20, -30)),
    "3342-2": tone((20, -20), (20, -15)),
    "3342-3": tone((20, -40), (20, -20)),
    "3342-4": tone((20, -50), (20, -35), (20, -20), (20, -35), (20, -50)),
}


def programme(fs, channels, seed, seconds=30):
    """Make noise whose level changes every second, with a pause below both gates."""
    rng = np.random.default_rng(seed)
    n = round(seconds * fs)
    shaped = signal.lfilter([1.0], [1.0, -0.95], rng.standard_normal((channels, n)))
    levels = rng.uniform(-45.0, -15.0, seconds + 1)
    levels[10:14] = -90.0
    gain = 10.0 ** (np.interp(np.arange(n) / fs, np.arange(seconds + 1), levels) / 20.0)
    return 0.2 * gain * shaped


def range_of(short_term):
    """Return the loudness range of short-term values, by EBU Tech 3342."""
    values = np.array([one for one in short_term if one >= -70.0])
    gate = 10.0 * np.log10(np.mean(10.0 ** (values / 10.0))) - 20.0
    values = np.sort(values[values >= gate])
    low, high = (values[int((len(values) - 1) * p / 100.0 + 0.5)] for p in (10.0, 95.0))
    return high - low


def check(library, x, fs, names, tolerance):
    expected, _ = measured_by(library, x, fs)
    found = measured(x, fs)
    for name in names:
        assert found[name] == pytest.approx(expected[name], abs=tolerance), name


@pytest.mark.parametrize("case", CASES)
def test_signals_of_ebu(library, case):
    """On the test signals of EBU, values differ by less than 0.02 LU."""
    x = CASES[case]
    names = set(NAMES)
    if x.shape[1] < 10 * FS:
        names -= {"LRA"}  # see test_noise
    if x.shape[1] < 3 * FS:
        names -= {"LUFS_Smax"}
    check(library, x, FS, sorted(names), 0.02)


@pytest.mark.parametrize(("fs", "channels"), [(44100, 1), (48000, 2), (96000, 1), (22050, 2)])
def test_noise(library, fs, channels):
    """On gated noise of changing level, values differ by less than 0.02 LU, true peaks by 0.1 dB.

    libebur128 computes the range from a value of short-term loudness each second, EBU Tech 3342
    asks for ten: so the range of its own short-term values is compared.
    """
    x = programme(fs, channels, seed=channels)
    expected, short_term = measured_by(library, x, fs)
    expected["LRA"] = range_of(short_term)
    found = measured(x, fs)
    for name in NAMES:
        tolerance = 0.1 if name == "true_peak" else 0.02
        assert found[name] == pytest.approx(expected[name], abs=tolerance), name


def check_pyloudnorm(x, fs):
    """Compare the integrated loudness of (channels, n) samples with pyloudnorm's.

    Its filters "DeMan" are those of BS.1770; the high-pass of its default ones has a gain of 1,
    where that of BS.1770 has 0.04 dB more.
    """
    pyloudnorm = pytest.importorskip("pyloudnorm", reason="is of the group reference")
    found = measured(x, fs)["LUFS_I"]
    for filters, tolerance in (("DeMan", 0.002), ("K-weighting", 0.15)):
        expected = pyloudnorm.Meter(fs, filter_class=filters).integrated_loudness(x.T)
        assert found == pytest.approx(expected, abs=tolerance), filters


@pytest.mark.parametrize("case", [name for name in CASES if CASES[name].shape[1] > 10 * FS])
def test_signals_of_ebu_by_pyloudnorm(case):
    """On the test signals of EBU, pyloudnorm reads the same integrated loudness."""
    check_pyloudnorm(CASES[case], FS)


@pytest.mark.parametrize(("fs", "channels"), [(44100, 1), (48000, 2), (96000, 1), (22050, 2)])
def test_noise_by_pyloudnorm(fs, channels):
    """On gated noise of changing level, pyloudnorm reads the same at any rate."""
    check_pyloudnorm(programme(fs, channels, seed=channels), fs)
