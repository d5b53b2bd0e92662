"""Triggers of spectra: detectors, noise floor, masks, and the rules of their configuration."""

import os
import re
from dataclasses import replace

import numpy as np
import pytest

from spectrod import Stft
from spectrod.cli import main
from spectrod.config import config
from spectrod.daemon.control.mask_learner import MaskLearner
from spectrod.dsp.calibration import calibration_of
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.lib.errors import ConfigError, InputError
from spectrod.measure.noise_floor import independent_values
from spectrod.measure.triggers.adaptive_floor import NoiseFloor, quantile_over_mean_db
from spectrod.measure.triggers.detectors import open_detector
from spectrod.measure.triggers.mask import FILE_MAX_BYTES, LearnedFrom, Mask, analysis_of, mask_toml
from spectrod.measure.triggers.mask import read_mask as read
from spectrod.measure.triggers.trigger import Trigger
from spectrod.measure.triggers.trigger_config import TriggerConfig

FS = 8000
T0_NS = 1_700_000_000_000_000_000
HANN_SPAN_S = 0.064
"""Length of the windows: begin and end are known to one."""


def batches_of(samples, **parameters):
    """Analyse (channels, n) or (n,) samples at FS."""
    samples = np.atleast_2d(np.asarray(samples, np.float32))
    options = {"win_length": 512, "hop": 128, "scaling": "dbfs", **parameters}
    with Stft(FS, channels=len(samples), engine="numpy", **options) as stft:
        return [*stft.push(samples), *stft.finish()]


def burst(seconds=6.0, first_s=2.0, last_s=4.0, f_hz=1003.7, level_dbfs=-20.0, seed=1):
    """White noise of -57 dBFS, with a tone in the middle."""
    t = np.arange(round(seconds * FS)) / FS
    x = 1e-3 * np.random.default_rng(seed).standard_normal(len(t))
    is_on = (t >= first_s) & (t < last_s)
    return x + is_on * 10 ** (level_dbfs / 20) * np.sin(2 * np.pi * f_hz * t)


def events_of(batches, channels=("0",), mask=None, **keys):
    trigger = Trigger(TriggerConfig("t", **keys), batches[0].spec, channels, mask)
    found = [event for batch in batches for event in trigger.push(batch)]
    return found + trigger.end("stopped")


def seconds_of(event, batches):
    start_ns = int(batches[0].t_utc_ns[0])
    return (event.begin_utc_ns - start_ns) / 1e9, (event.end_utc_ns - start_ns) / 1e9


KINDS = [
    {"kind": "band", "f_min_hz": 900.0, "f_max_hz": 1100.0, "threshold": -30.0, "unit": "dBFS"},
    {"kind": "band", "f_min_hz": 900.0, "f_max_hz": 1100.0, "over_floor_db": 10.0, "floor_s": 6.0},
    {"kind": "bin", "over_floor_db": 25.0, "floor_s": 6.0},
    {"kind": "bin", "threshold": -40.0, "unit": "dBFS"},
    {"kind": "mask", "points": ((100.0, -40.0), (4000.0, -40.0)), "unit": "dBFS"},
    {"kind": "tone", "f_min_hz": 980.0, "f_max_hz": 1030.0, "prominence_db": 25.0},
]


@pytest.mark.parametrize(
    "keys", KINDS, ids=lambda keys: "-".join(map(str, list(keys.values())[:2]))
)
@pytest.mark.parametrize("scaling", ["dbfs", "density", "spectrum"])
def test_a_tone_is_one_event_of_every_kind(keys, scaling):
    """A tone of two seconds in noise is one event, with its times to a window and its level."""
    if scaling == "density" and keys.get("unit") and keys["kind"] != "band":
        density_db = 10 * np.log10(0.5 / (1.5 * FS / 512))  # of a full-scale sine at its bin
        keys = keys | {"unit": "dB re FS^2/Hz"}
        if "threshold" in keys:
            keys |= {"threshold": keys["threshold"] + density_db}
        else:
            keys |= {"points": tuple((f, level + density_db) for f, level in keys["points"])}
    batches = batches_of(burst(), scaling=scaling)
    begun, ended = events_of(batches, **keys)
    assert (begun.state, ended.state, ended.reason) == ("begun", "ended", "released")
    first_s, last_s = seconds_of(ended, batches)
    assert abs(first_s - 2.0) <= HANN_SPAN_S
    assert abs(last_s - 4.0) <= HANN_SPAN_S
    assert ended.duration_s == pytest.approx(last_s - first_s, abs=2 / FS)
    assert ended.threshold <= ended.level
    if scaling != "density" or keys["kind"] in ("band", "tone"):
        # A tone between two bins of a Hann window is at most 1.42 dB low in its bin.
        off_db = 0.1 if keys["kind"] in ("band", "tone") else 1.5
        assert -20.0 - off_db <= ended.level <= -20.0 + 0.1
    if keys["kind"] != "band":
        off_hz = 0.5 if keys["kind"] == "tone" else FS / 512
        assert ended.frequency_hz == pytest.approx(1003.7, abs=off_hz)
    assert (ended.floor is not None) == ("over_floor_db" in keys or keys["kind"] == "tone")


def test_a_missing_tone_is_an_event_after_its_time():
    """A tone that stops is missing after for_s; the event ends when it comes back."""
    samples = burst(8.0, 0.0, 3.0)
    samples[5 * FS :] += burst(3.0, 0.0, 3.0)
    batches = batches_of(samples)
    keys = {"f_min_hz": 980.0, "f_max_hz": 1030.0, "prominence_db": 20.0}
    begun, ended = events_of(batches, kind="tone-missing", for_s=1.0, **keys)
    first_s, last_s = seconds_of(ended, batches)
    assert abs(first_s - 3.0) <= HANN_SPAN_S
    assert abs(last_s - 5.0) <= HANN_SPAN_S
    assert begun.duration_s == pytest.approx(1.0, abs=128 / FS)
    assert events_of(batches, kind="tone-missing", for_s=2.5, **keys) == []


def test_a_tone_beside_the_range_is_none():
    """The slope of a tone outside the range is no tone in it."""
    batches = batches_of(burst(f_hz=1003.7))
    for low, high in ((1015.0, 1100.0), (900.0, 990.0)):
        assert (
            events_of(batches, kind="tone", f_min_hz=low, f_max_hz=high, prominence_db=20.0) == []
        )


@pytest.mark.parametrize("bands", ["", "third-octave"])
@pytest.mark.parametrize("scaling", ["dbfs", "density"])
def test_a_band_of_white_noise_has_its_share_of_the_level(bands, scaling):
    """Half of the band of white noise has half of its power, in bins and in bands, to 0.1 dB."""
    noise = np.random.default_rng(3).standard_normal(60 * FS) * 0.1
    spec_keys = {"averaging": "mean", "rate_hz": 0.1, "bands": bands, "scaling": scaling}
    batches = batches_of(noise, **spec_keys)
    lower, upper = 1000.0, 2000.0
    keys = {"kind": "band", "f_min_hz": lower, "f_max_hz": upper, "threshold": -90.0}
    _, ended = events_of(batches, unit="dBFS", **keys)
    expected = 10 * np.log10(0.01 / 0.5 * (upper - lower) / (FS / 2))
    # The standard deviation of a mean over 10 s in 1 kHz is 10 / ln 10 / sqrt(10^4) = 0.04 dB.
    assert ended.level == pytest.approx(expected, abs=0.2)


@pytest.mark.parametrize("n", [1.0, 2.0, 5.0, 100.0])
def test_the_bias_of_the_floor_is_that_of_gamma_distributions(n):
    """The formula of the 20 % quantile agrees with samples of a gamma distribution."""
    sample = np.random.default_rng(7).gamma(n, 1.0 / n, 400_000)
    expected = 10 * np.log10(np.quantile(sample, 0.2))
    assert quantile_over_mean_db(n) == pytest.approx(expected, abs=0.06)


@pytest.mark.parametrize("window", ["hann", "flattop", "rectangular"])
@pytest.mark.parametrize("nfft", [64, 65, 100])
def test_noise_is_worth_half_a_value_where_spectra_are_real(window, nfft):
    """Shapes of the powers of each bin of noise are those of simulated frames, 1/2 at 0 Hz."""
    spec = SpectrumSpec(FS, win_length=64, hop=64, nfft=nfft, window=window)
    n = independent_values(spec)
    assert n[0] == pytest.approx(0.5)
    assert n[len(n) // 2] == pytest.approx(1.0, abs=1e-3)
    assert (n[-1] == pytest.approx(0.5)) == (nfft % 2 == 0)
    noise = np.random.default_rng(1).standard_normal((40_000, 64))
    power = np.abs(np.fft.rfft(noise * spec.taper.samples, nfft)) ** 2
    # The variance of 40000 values of a shape of 1/2 deviates by about 2 %.
    np.testing.assert_allclose(power.mean(axis=0) ** 2 / power.var(axis=0), n, rtol=0.1)


def test_noise_has_no_events_in_any_bin():
    """Noise does not reach 15 dB over its floor at 0 Hz and Nyquist either."""
    batches = batches_of(1e-2 * np.random.default_rng(9).standard_normal(60 * FS))
    assert events_of(batches, kind="bin", over_floor_db=15.0, floor_s=10.0) == []


def test_the_floor_of_noise_is_its_mean_level():
    """The floor of stationary noise is the level of its mean, whatever the sizes of batches."""
    power = np.random.default_rng(5).exponential(1.0, (2000, 1, 33)).astype(np.float32)
    levels = (10 * np.log10(power)).astype(np.float32)
    found = []
    for size in (1, 7, 2000):
        floor = NoiseFloor(1, 33, 0.01, 10.0, quantile_over_mean_db(1.0))
        last = None
        for first in range(0, len(levels), size):
            for _, known in floor.over(levels[first : first + size]):
                last = known if known is not None else last
        found.append(last)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    # A quantile of 128 rows has 0.75 dB of deviation, the mean of 33 bins 0.13 dB.
    assert abs(float(np.mean(found[0]))) < 4 * 0.13


def test_runs_of_the_floor_cover_each_row_once():
    """Each row lies in one run, in order, and the floor is unknown for a quarter of the window."""
    floor = NoiseFloor(1, 3, 0.1, 12.8, 0.0)
    seen, known = [], []
    for size in (1, 5, 40, 2, 100):
        for run, values in floor.over(np.zeros((size, 1, 3), np.float32)):
            seen.append(run.stop - run.start)
            known += [values is not None] * seen[-1]
    assert sum(seen) == 148
    assert known == [False] * 32 + [True] * 116


def test_a_lasting_sound_becomes_the_floor():
    """A sound that lasts over four fifths of the window becomes the floor, and its event ends."""
    batches = batches_of(burst(20.0, 6.0, 18.0))
    # The end of the tone is a click at other frequencies, and another event.
    _, ended, *_ = events_of(batches, kind="bin", over_floor_db=20.0, floor_s=4.0)
    first_s, last_s = seconds_of(ended, batches)
    assert abs(first_s - 6.0) <= HANN_SPAN_S
    # 128 rows, one in two, are kept; four fifths of them, and an eighth until the next update.
    window_s = 128 * 2 * 128 / FS
    assert 0.8 * window_s - HANN_SPAN_S <= last_s - first_s
    assert last_s - first_s <= (0.8 + 0.125) * window_s + HANN_SPAN_S


def test_the_channel_with_the_sound_is_named():
    """The event names the channel that is furthest over the threshold."""
    quiet = burst(level_dbfs=-90.0, seed=2)
    batches = batches_of(np.stack([quiet, burst()]))
    events = events_of(batches, ("west", "east"), **KINDS[0])
    assert {event.channel for event in events} == {"east"}
    assert "channel east" in events[0].text


def test_a_mask_below_finds_a_level_that_is_missing():
    """With side below, the event lasts while a bin lies under the mask."""
    batches = batches_of(burst(6.0, 0.0, 3.0, f_hz=1000.0))
    keys = {"points": ((999.0, -30.0), (1001.0, -30.0)), "unit": "dBFS"}
    begun, _ = events_of(batches, kind="mask", side="below", **keys)
    assert abs(seconds_of(begun, batches)[0] - 3.0) <= HANN_SPAN_S
    assert begun.level < begun.threshold


def test_masks_are_linear_over_the_logarithm_of_frequency():
    """Halfway in logarithm between two points, a mask has the mean of their levels."""
    mask = Mask(((100.0, -20.0), (10_000.0, -60.0)), "dBFS")
    np.testing.assert_allclose(mask.at(np.array([100.0, 1000.0, 10_000.0])), [-20, -40, -60])
    covered = mask.covers(np.array([99.0, 100.0, 10_000.0, 10_001.0]))
    assert covered.tolist() == [False, True, True, False]


def test_an_event_ends_before_a_gap():
    """A gap ends the event with the row before it, and another one begins after it."""
    batches = batches_of(burst(4.0, 0.0, 4.0))
    (whole,) = batches
    half = whole.n_frames // 2
    parts = [whole.between(0, half), whole.between(half, whole.n_frames).after_gap(1)]
    found = events_of(parts, hold_off_s=0.1, **KINDS[3])
    states = [(event.state, event.reason) for event in found]
    # It lasts longer than the hold-off, so it counts from its own begin.
    assert states == [("begun", ""), ("ended", "gap"), ("begun", ""), ("ended", "stopped")]
    assert found[2].begin_utc_ns == int(parts[1].t_utc_ns[0])


def test_batches_of_any_size_make_the_same_events():
    """The events do not depend on how rows are grouped in batches."""
    (whole,) = batches_of(burst())
    sizes = (1, 3, whole.n_frames)
    for keys in KINDS:
        found = []
        for size in sizes:
            parts = [
                whole.between(k, min(k + size, whole.n_frames))
                for k in range(0, whole.n_frames, size)
            ]
            # as_first marks nothing as missing: rows follow each other.
            found.append(events_of(parts, **keys))
        assert found[0] == found[1] == found[2] != []


# ---- rules


@pytest.mark.parametrize(
    ("keys", "rule"),
    [
        (
            {"f_max_hz": 5000.0, "threshold": -3.0, "unit": "dBFS"},
            "f_max_hz=5000: must be 0 to 4000 Hz, the Nyquist frequency",
        ),
        (
            {"f_min_hz": -1.0, "threshold": -3.0, "unit": "dBFS"},
            "f_min_hz=-1: must be 0 to 4000 Hz",
        ),
        (
            {"f_min_hz": 9.0, "f_max_hz": 9.0, "threshold": 0.0, "unit": "dBFS"},
            "f_min_hz=9: must be below f_max_hz=9",
        ),
        ({"threshold": -3.0}, "unit='': must name the unit of threshold"),
        (
            {"threshold": -3.0, "unit": "dB SPL"},
            "that of the product dbfs, of a source without a calibration",
        ),
        ({}, "threshold, over_floor_db: kind='band' must have one of them, and not both"),
        (
            {"threshold": 1.0, "over_floor_db": 1.0, "unit": "dBFS"},
            "must have one of them, and not both",
        ),
        ({"over_floor_db": 10.0, "unit": "dBFS"}, "unit='dBFS': must be '' with over_floor_db"),
        (
            {"over_floor_db": 10.0, "floor_s": 0.2},
            "floor_s=0.2: must be at least 16 rows of the product, 0.256 s",
        ),
        ({"threshold": float("nan"), "unit": "dBFS"}, "threshold=nan: must be -1000 to 1000"),
        (
            {"threshold": 0.0, "unit": "dBFS", "release_db": -3.0},
            "release_db=-3: must be 0 to 200: it lies below the threshold",
        ),
        (
            {"threshold": 0.0, "unit": "dBFS", "hold_off_s": -1.0},
            "hold_off_s=-1: must be 0 to 86400",
        ),
        (
            {"threshold": 0.0, "unit": "dBFS", "for_s": float("inf")},
            "for_s=inf: must be 0 to 86400",
        ),
        (
            {"threshold": 0.0, "unit": "dBFS", "prominence_db": 9.0},
            "prominence_db=9.0: is no key of kind='band'",
        ),
        ({"kind": "tone"}, "prominence_db: must be given for kind='tone'"),
        ({"kind": "tone", "prominence_db": 1.0}, "prominence_db=1: must be 3 to 200"),
        (
            {"kind": "tone", "prominence_db": 9.0, "f_min_hz": 3995.0},
            "a tone needs 1 bins of 15.62 Hz on either side",
        ),
        (
            {"kind": "bin", "f_min_hz": 1.0, "f_max_hz": 2.0, "threshold": 0.0, "unit": "dBFS"},
            "hold no bin or band of the product dbfs",
        ),
        ({"kind": "mask"}, "points, mask: kind='mask' must have one of them, and not both"),
        (
            {"kind": "mask", "points": ((100.0, 1.0),), "unit": "dBFS"},
            "points: 1 points: must be 2 to 1000",
        ),
        (
            {"kind": "mask", "points": ((1.0, 0.0),) * 1001, "unit": "dBFS"},
            "points: 1001 points: must be 2 to 1000",
        ),
        (
            {"kind": "mask", "points": ((200.0, 1.0), (100.0, 1.0)), "unit": "dBFS"},
            "points: number 2, [100, 1]: must be above 200 Hz",
        ),
        (
            {"kind": "mask", "points": ((0.0, 1.0), (100.0, 1.0)), "unit": "dBFS"},
            "points: number 1, [0, 1]: must be above 0 Hz",
        ),
        (
            {"kind": "mask", "points": ((1.0, float("nan")), (2.0, 0.0)), "unit": "dBFS"},
            "points: number 1, [1, nan]: must be a frequency",
        ),
        (
            {"kind": "mask", "points": ((1.0, 0.0), (4001.0, 0.0)), "unit": "dBFS"},
            "the last one, at 4001 Hz: must be at most 4000 Hz",
        ),
        (
            {"kind": "mask", "points": ((1.0, 0.0), (2.0, 0.0)), "unit": "dBFS"},
            "of the product dbfs lies between 1 and 2 Hz",
        ),
        (
            {"kind": "mask", "points": ((1.0, 0.0), (2.0, 0.0))},
            "unit='': must name the unit of points",
        ),
    ],
)
def test_a_broken_rule_is_named_with_its_value(keys, rule):
    """Each broken rule is one error with the key, the value and the rule."""
    spec = SpectrumSpec(FS, win_length=512, hop=128, scaling="dbfs")
    with pytest.raises(ConfigError, match=re.escape(rule)):
        Trigger(TriggerConfig("t", **keys), spec, ("0",))


def test_names_of_recorders_triggers_are_taken():
    """A trigger cannot have the name of one that each recording has."""
    with pytest.raises(ConfigError, match="name='level': is a trigger that each recording has"):
        TriggerConfig("level", threshold=0.0, unit="dBFS").check()


def test_bands_that_overlap_have_no_sum():
    """Mel bands overlap: their sum is refused, and any one of them is not."""
    spec = SpectrumSpec(FS, bands="mel:20", scaling="dbfs")
    keys = {"threshold": 0.0, "unit": "dBFS"}
    with pytest.raises(ConfigError, match="bands='mel:20': overlap"):
        open_detector(TriggerConfig("t", kind="band", **keys), spec, None)
    open_detector(TriggerConfig("t", kind="bin", **keys), spec, None)


def test_the_memory_of_a_floor_is_bounded():
    """A floor of more than 64 MiB is refused."""
    spec = SpectrumSpec(FS, 64, win_length=16384, hop=128, scaling="dbfs")
    with pytest.raises(ConfigError, match=r"524352 values needs 256 MiB: must be at most 64 MiB"):
        open_detector(TriggerConfig("t", kind="bin", over_floor_db=9.0), spec, None)


def test_iq_signals_have_bands_but_no_masks():
    """A band of negative frequencies is examined; a mask over log frequency is refused."""
    spec = SpectrumSpec(FS, 2, iq=True, win_length=512, scaling="dbfs")
    keys = {"threshold": -200.0, "unit": "dBFS"}
    low = open_detector(TriggerConfig("t", f_min_hz=-3000.0, f_max_hz=-1000.0, **keys), spec, None)
    assert low.range_hz == (-3000.0, -1000.0)
    points = {"kind": "mask", "points": ((1.0, 0.0), (2000.0, 0.0)), "unit": "dBFS"}
    with pytest.raises(ConfigError, match="I/Q signals have none"):
        open_detector(TriggerConfig("t", **points), spec, None)


# ---- learned masks


SPEC = SpectrumSpec(FS, win_length=512, hop=128, scaling="dbfs")
LEARNED = Mask(
    ((15.625, -60.25), (4000.0, -70.5)),
    "dBFS",
    LearnedFrom("mic", "dbfs", T0_NS, 60.0, 3750, 0, 99.0, 6.0),
    analysis_of(SPEC),
)


def test_a_learned_mask_is_read_back(tmp_path):
    """A mask that is written as TOML is read back with all of its fields."""
    (tmp_path / "m.toml").write_text(mask_toml(LEARNED))
    assert read(tmp_path, "m") == LEARNED


def test_a_learned_mask_is_bound_to_its_analysis():
    """Rows with another window length than the learned ones are refused."""
    other = replace(SPEC, win_length=256, nfft=512)
    with pytest.raises(ConfigError, match="was learned with win_length=512: the product dbfs must"):
        Trigger(TriggerConfig("t", kind="mask", mask="m"), other, ("0",), LEARNED)


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("../spectrod", "must be 1 to 64 of A-Z a-z 0-9"),
        ("..", "must begin with a letter or digit"),
        (".hidden", "must begin with a letter or digit"),
        ("a/b", "must be 1 to 64 of A-Z a-z 0-9"),
        ("a\0b", "must be 1 to 64 of A-Z a-z 0-9"),
        ("x" * 65, "must be 1 to 64 of A-Z a-z 0-9"),
        ("", "must be 1 to 64 of A-Z a-z 0-9"),
    ],
)
def test_a_name_of_a_mask_leaves_no_folder(tmp_path, name, rule):
    """Names that are no plain file names are refused before any file is opened."""
    with pytest.raises(ConfigError, match=re.escape(rule)):
        read(tmp_path, name)


def test_hostile_files_are_no_masks(tmp_path):
    """Links, FIFOs, folders, large files and other TOML are one error each, and nothing blocks."""
    (tmp_path / "target.toml").write_text(mask_toml(LEARNED))
    (tmp_path / "link.toml").symlink_to(tmp_path / "target.toml")
    os.mkfifo(tmp_path / "fifo.toml")
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "large.toml").write_bytes(b"#" * (FILE_MAX_BYTES + 1))
    (tmp_path / "binary.toml").write_bytes(b"\xff\x00")
    (tmp_path / "deep.toml").write_text("a = " + "[" * 5000)
    (tmp_path / "digits.toml").write_text("points = " + "9" * 5000)
    (tmp_path / "other.toml").write_text("points = 3\nunit = 'dBFS'\n")
    (tmp_path / "falling.toml").write_text("points = [[2, 0], [1, 0]]\nunit = 'dBFS'\n")
    rules = {
        "missing": "does not exist; spectrod ctl learn makes it",
        "link": "Too many levels of symbolic links",
        "fifo": "must be a regular file",
        "folder": "is a folder; must be a file",
        "large": f"must have at most {FILE_MAX_BYTES} bytes",
        "binary": "not valid TOML",
        "digits": "not valid TOML",
        "deep": "not valid TOML",
        "other": "Expected `array`",
        "falling": "number 2, [1, 0]: must be above 2 Hz",
    }
    for name, rule in rules.items():
        with pytest.raises(ConfigError, match=re.escape(rule)):
            read(tmp_path, name)


# ---- the configuration


BASE = '[source]\nuri = "signal:sine,1000,-20"\nname = "tone"\nsamplerate = 48000\n'
HUM = '[triggers.hum]\nthreshold = -30\nunit = "dBFS"\n'


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (HUM.replace("threshold", "treshold"), "triggers.hum.treshold: unknown key"),
        (HUM + "kind = 'bnd'\n", "triggers.hum.kind='bnd': must be one of band, bin, mask, tone"),
        (HUM + "product = 'x'\n", "triggers.hum: product='x': tone has no such product"),
        (HUM + "f_max_hz = 30000\n", "triggers.hum: f_max_hz=30000: must be 0 to 24000 Hz"),
        (HUM.replace("dBFS", "dB SPL"), "triggers.hum: unit='dB SPL': must be 'dBFS'"),
        (HUM + "sources = ['roof']\n", "triggers.hum: sources='roof': is no source's name"),
        (
            HUM + "[recordings.r]\ntriggers = ['hmu']\n",
            "of a table [triggers.NAME] of its sources; there are: hum",
        ),
        (
            "".join(HUM.replace("hum", f"t{k}") for k in range(65)),
            "triggers: 65: must be at most 64",
        ),
    ],
)
def test_a_configuration_names_what_is_wrong(tmp_path, text, rule):
    """``config check`` names the table, the key, the value and the rule."""
    file = tmp_path / "spectrod.toml"
    file.write_text(BASE + text)
    with pytest.raises(ConfigError, match=re.escape(rule)):
        config.check_file(os.fspath(file))


def test_triggers_are_written_and_read_back(tmp_path):
    """A configuration with each key of triggers is written as TOML that reads back to the same."""
    points = "[triggers.m]\nkind = 'mask'\npoints = [[100, -60.5], [20000, -70]]\nunit = 'dBFS'\n"
    file = tmp_path / "spectrod.toml"
    file.write_text(BASE + HUM + points + "[recordings.r]\ntriggers = ['hum', 'level']\n")
    found = config.load(os.fspath(file))
    file.write_text(config.to_toml(found))
    assert config.load(os.fspath(file)) == found
    assert [one.name for one in found.all_sources[0].triggers] == ["hum", "m"]
    changed = config.with_changes(found, {"triggers.hum.f_min_hz": "1.2k"}, "set")
    assert changed.triggers[0].f_min_hz == 1200.0
    assert config.changed_keys(found, changed) == ["triggers.hum.f_min_hz"]
    assert config.is_live("triggers.hum.f_min_hz")


def test_an_unknown_rate_leaves_frequencies_unchecked(tmp_path):
    """A range above the Nyquist frequency of the usual rate is right for a card of any rate."""
    file = tmp_path / "spectrod.toml"
    file.write_text('[source]\nuri = "soundcard"\n' + HUM + "f_max_hz = 90000\n")
    assert config.check_file(os.fspath(file)).triggers[0].f_max_hz == 90000.0


def test_empty_batches_change_nothing():
    """A batch without rows is no gap and no event."""
    (whole,) = batches_of(burst(2.0, 0.0, 2.0))
    empty = whole.between(0, 0)
    assert isinstance(empty, SpectrumBatch)
    found = events_of([empty, whole.between(0, 5), empty, whole.between(5, 9)], **KINDS[3])
    assert [event.state for event in found] == ["begun", "ended"]


def test_the_unit_of_a_calibrated_source_is_its_own(tmp_path):
    """With a calibration thresholds are in its unit, and one in dBFS is an error."""
    file = tmp_path / "mic.toml"
    file.write_text('reference = "20 uPa"\nfull_scale_db = 120\nfull_scale = "sine"\n')
    spec = replace(SPEC, calibration=calibration_of(file, 1))
    keys = {"threshold": 80.0, "f_min_hz": 900.0, "f_max_hz": 1100.0}
    Trigger(TriggerConfig("t", unit="dB SPL", **keys), spec, ("0",))
    with pytest.raises(
        ConfigError, match=r"unit='dBFS': must be 'dB SPL', that of the product dbfs$"
    ):
        Trigger(TriggerConfig("t", unit="dBFS", **keys), spec, ("0",))
    with pytest.raises(ConfigError, match=r"mask='m': unit='dBFS': must be 'dB SPL'"):
        Trigger(TriggerConfig("t", kind="mask", mask="m"), spec, ("0",), LEARNED)


# ---- learning


@pytest.mark.parametrize("scaling", ["dbfs", "density", "spectrum"])
def test_a_mask_is_the_highest_percentile_of_all_channels_and_its_margin(scaling):
    """Of channels of different level, the mask is the louder one's percentile, to a class."""
    noise = np.random.default_rng(4).standard_normal((2, 20 * FS)) * np.array([[0.01], [0.1]])
    batches = batches_of(noise, scaling=scaling)
    spec = batches[0].spec
    learner = MaskLearner(spec, 10.0, 90.0, 3.0)
    for batch in batches:
        learner.push(batch)
    assert learner.is_complete
    assert learner.rows == 10 * FS // 128
    mask = learner.mask("mic")
    values = np.concatenate([batch.values for batch in batches])[: learner.rows, 1, 1:]
    levels = spec.scale.to_level(np.sort(values, axis=0)[int(np.ceil(0.9 * learner.rows)) - 1])
    np.testing.assert_allclose([level for _, level in mask.points], levels + 3.0, atol=0.06)
    assert mask.points[0][0] == FS / 512  # none at 0 Hz
    assert (mask.unit, mask.learned.rows) == (spec.scale.level_unit, learner.rows)


def test_missing_time_counts_and_is_bounded():
    """Up to 5 % of the time may be missing and counts as time; more is refused with its share."""
    (whole,) = batches_of(np.random.default_rng(4).standard_normal(4 * FS) * 0.1)
    (head, tail) = whole.between(0, 100), whole.between(100, whole.n_frames)
    learner = MaskLearner(SPEC, 3.0, 90.0, 0.0)
    learner.push(head)
    learner.push(tail.after_gap(int(0.05 * 3 * FS)))
    assert learner.is_complete
    assert learner.rows == int(np.ceil(0.95 * 3 * FS / 128))
    other = MaskLearner(SPEC, 3.0, 90.0, 0.0)
    other.push(head)
    rule = r"0\.15[0-9]* s are missing, 5\.0[0-9]* % of the time: must be at most 5 %"
    with pytest.raises(InputError, match=rule):
        other.push(tail.after_gap(int(0.0505 * 3 * FS)))


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"iq": True, "channels": 2}, "product='dbfs': of I/Q samples"),
        ({"win_length": 65536}, "32768 values above 0 Hz: a mask has at most 16384 points"),
        ({"channels": 70}, "17990 values need 274 MiB: must be at most 256 MiB"),
        ({"rate_hz": 1.0}, "duration_s=3: has 3 rows: percentile=90 needs at least 10, 10 s"),
    ],
)
def test_what_cannot_be_learned_is_refused(changes, rule):
    """Two-sided, long and many rows, and too few of them, are refused with the number."""
    spec = replace(SPEC, nfft=0, **changes)
    with pytest.raises(ConfigError, match=re.escape(rule)):
        MaskLearner(spec, 3.0, 90.0, 0.0)


def test_a_deep_check_reads_the_masks(tmp_path, capsys):
    """``config check --deep`` names a mask that is missing, and opens triggers at the real rate."""
    file = tmp_path / "spectrod.toml"
    state = f'[control]\nstate_folder = "{tmp_path}"\n'
    mask = '[triggers.m]\nkind = "mask"\nmask = "nix"\n'
    file.write_text(BASE.replace("48000", "8000") + state + mask)
    assert main(["config", "check", os.fspath(file)]) == 0
    assert main(["config", "check", "--deep", os.fspath(file)]) == 2
    assert "mask='nix'" in capsys.readouterr().err
    (tmp_path / "masks").mkdir()
    (tmp_path / "masks" / "nix.toml").write_text(mask_toml(Mask(LEARNED.points, "dBFS")))
    assert main(["config", "check", "--deep", os.fspath(file)]) == 0
    assert "triggers: m" in capsys.readouterr().out
