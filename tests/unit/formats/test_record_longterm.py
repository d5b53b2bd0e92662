"""Long-term statistics: percentiles, means and densities against NumPy on all levels at once."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.description import Description
from spectrod.formats.longterm.data import Span, read_npz
from spectrod.formats.longterm.longterm_page import compose
from spectrod.formats.longterm.longterm_sink import SpdSink
from spectrod.formats.longterm.longterm_view import (
    Curve,
    column_values,
    curve_sample,
    density_limit,
    draw_curves,
    greatest_of_columns,
    pixel_density,
)
from spectrod.formats.longterm.presets import averaged, frames_for, interval_for, picture_defaults
from spectrod.formats.longterm.statistics import EXCEEDED, LevelStatistics, finest_step
from spectrod.formats.picture.axes import FrequencyAxis
from spectrod.formats.picture.picture_settings import PictureOptions
from spectrod.formats.picture.recorded_spans import Pauses
from spectrod.formats.picture.theme import GAP, N_LEVELS
from spectrod.lib.errors import ConfigError, InputError

BEGIN_NS = 1_777_593_600 * 10**9
SPEC = SpectrumSpec(
    fs=8000.0,
    channels=2,
    win_length=64,
    hop=32,
    nfft=64,
    averaging="mean",
    averaging_frames=250,
)


def levels_of(n_rows, spec=SPEC, seed=1):
    """Make levels of different spread at each frequency, the signals 20 dB apart [dB]."""
    rng = np.random.default_rng(seed)
    spread = np.linspace(0.5, 12.0, spec.n_values)
    offset = -60.0 - 20.0 * np.arange(spec.n_signals)[:, None]
    return rng.normal(0.0, 1.0, (n_rows, spec.n_signals, spec.n_values)) * spread + offset


def batch_of(levels, spec=SPEC, first=0, **settings):
    levels = np.asarray(levels)
    values = 10.0 ** (levels / 10.0)
    if spec.scaling != "density":
        values = levels if spec.scaling == "dbfs" else 0.5 * values
    index = (first + np.arange(len(levels), dtype=np.int64)) * spec.hop * spec.averaging_frames
    t_ns = BEGIN_NS + (index * 1e9 / spec.fs).astype(np.int64)
    return SpectrumBatch(values.astype(np.float32), index, t_ns, t_ns, spec, "numpy", **settings)


def about_of(spec=SPEC):
    return Description(spec, "pier", ("left", "right")[: spec.n_signals], "spectrod 1", "cal-7")


@pytest.mark.parametrize("scaling", ["density", "spectrum", "dbfs"])
@pytest.mark.parametrize("step_db", [0.1, 1.0])
@pytest.mark.parametrize("n_rows", [1, 100, 733])
def test_percentiles_are_those_of_all_levels(scaling, step_db, n_rows):
    """Exceedance levels are within half a class of the exact ones; means and extremes are exact."""
    spec = SpectrumSpec(fs=8000.0, channels=2, win_length=64, nfft=64, scaling=scaling)
    levels = levels_of(n_rows, spec)
    statistics = LevelStatistics(spec, step_db)
    for part in np.array_split(levels, 5):
        statistics.add(batch_of(part, spec))
    assert statistics.n_rows == n_rows
    for percent in (*EXCEEDED, 0.5, 33.3):
        exact = np.percentile(levels, 100.0 - percent, axis=0, method="inverted_cdf")
        assert np.abs(statistics.exceeded(percent) - exact).max() <= step_db / 2.0 + 1e-4
    mean = 10.0 * np.log10(np.mean(10.0 ** (levels / 10.0), axis=0))
    assert np.abs(statistics.mean - mean).max() < 1e-4
    assert np.abs(statistics.least - levels.min(axis=0)).max() < 1e-4
    assert np.abs(statistics.greatest - levels.max(axis=0)).max() < 1e-4


@pytest.mark.parametrize("n_values", [1025, 2048])
def test_percentiles_of_many_values_are_those_of_each(n_values):
    """Percentiles of many values, computed in parts, equal those of each value."""
    spec = SpectrumSpec(fs=8000.0, win_length=2 * n_values - 2, scaling="dbfs")
    levels = levels_of(20, spec)
    statistics = LevelStatistics(spec, 1.0)
    statistics.add(batch_of(levels, spec))
    exact = np.percentile(levels, 90.0, axis=0, method="inverted_cdf")
    assert np.abs(statistics.exceeded(10.0) - exact).max() <= 0.5 + 1e-4


def test_density_is_numpys_histogram():
    """The density of each value equals NumPy's histogram with the same classes and sums to 1."""
    levels = levels_of(500)
    statistics = LevelStatistics(SPEC, 0.5)
    statistics.add(batch_of(levels))
    edges, density = statistics.density()
    assert np.diff(edges) == pytest.approx(0.5)
    assert density.sum(axis=1) * 0.5 == pytest.approx(1.0, abs=1e-6)
    for value in (0, 17, 32):
        expected, _ = np.histogram(levels[:, 1, value], bins=edges, density=True)
        # Levels made of float32 powers may cross a limit by rounding.
        assert np.abs(density[1, :, value] - expected).sum() * 0.5 <= 2.0 / 500.0


def test_silence_and_levels_beyond_the_classes_are_counted():
    """Zero power and levels beyond the histogram count in its end classes."""
    levels = np.array([-np.inf, -300.0, 0.0, 200.0])[:, None, None] * np.ones((2, 33))
    statistics = LevelStatistics(SPEC)
    statistics.add(batch_of(levels))
    assert statistics.counts.sum(axis=1).min() == 4
    assert statistics.exceeded(90.0) == pytest.approx(-249.95)
    assert statistics.exceeded(1.0) == pytest.approx(149.95)
    assert statistics.least.max() == -np.inf
    assert statistics.greatest == pytest.approx(200.0, abs=1e-3)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_power_that_is_not_finite_is_refused(tmp_path, value):
    """A batch with power that is infinite or NaN is refused as a whole."""
    sink = SpdSink(tmp_path / "x.png", about_of(), PictureOptions())
    sink.write(batch_of(levels_of(3)))
    batch = batch_of(levels_of(3))
    batch.values[1, 1, 5] = value
    with pytest.raises(InputError, match=r"x\.png: a power is beyond all numbers"):
        sink.write(batch)
    assert sink.n_frames == 3


def test_parts_add_up():
    """The statistics of two halves add up to those of the whole."""
    levels = levels_of(301)
    whole, first, second = (LevelStatistics(SPEC) for _ in range(3))
    whole.add(batch_of(levels))
    first.add(batch_of(levels[:100]))
    second.add(batch_of(levels[100:]))
    first.merge(second)
    assert np.array_equal(first.counts, whole.counts)
    assert first.n_rows == whole.n_rows
    assert first.mean == pytest.approx(whole.mean, abs=1e-9)
    assert np.array_equal(first.least, whole.least)
    assert np.array_equal(first.greatest, whole.greatest)


def test_statistics_that_differ_are_not_added():
    """Adding statistics of other spectra or classes, or with bad numbers, is refused by name."""
    statistics = LevelStatistics(SPEC, 0.5)
    other = SpectrumSpec(fs=8000.0, channels=2, win_length=64, hop=32, nfft=64)
    with pytest.raises(ConfigError, match="the analysis has changed"):
        statistics.add(batch_of(levels_of(3, other), other))
    with pytest.raises(ConfigError, match="statistics of different spectra"):
        statistics.merge(LevelStatistics(other, 0.5))
    with pytest.raises(ConfigError, match=r"step_db=1: must be 0\.5 to be added"):
        statistics.merge(LevelStatistics(SPEC, 1.0))
    with pytest.raises(ConfigError, match=r"step_db=0\.3: must be one of 0\.1"):
        LevelStatistics(SPEC, 0.3)
    with pytest.raises(ConfigError, match="percent=100: must be between 0 and 100"):
        statistics.exceeded(100.0)
    with pytest.raises(ConfigError, match="levels are of power"):
        LevelStatistics(SpectrumSpec(fs=8000.0, output="complex"))


@pytest.mark.parametrize(
    ("n_values", "step_db"), [(15000, 0.1), (15001, 0.2), (24001, 0.2), (150000, 1.0)]
)
def test_memory_is_bounded_whatever_the_spectra(n_values, step_db):
    """More values get wider classes, so memory stays bounded."""
    assert finest_step(n_values) == step_db


def test_more_values_than_memory_holds_are_refused():
    """Too many values, or too fine classes for them, are refused with the limit and a way out."""
    with pytest.raises(ConfigError, match="of at most 150000 values of all signals together"):
        finest_step(150001)
    many = SpectrumSpec(fs=8000.0, win_length=65536)
    with pytest.raises(ConfigError, match=r"step_db=0\.1: must be at least 0\.5 for this number"):
        LevelStatistics(many, 0.1)


def test_no_rows_have_no_levels():
    """Without rows there is neither a mean nor a percentile."""
    statistics = LevelStatistics(SPEC)
    assert np.isnan(statistics.mean).all()
    assert np.isnan(statistics.exceeded(50.0)).all()
    assert statistics.occupied() == (0, 0)


def test_numbers_come_back(tmp_path):
    """An NPZ file restores all counts, and counting continues from them."""
    levels = levels_of(120)
    sink = SpdSink(tmp_path / "x.npz", about_of(), PictureOptions())
    sink.write(batch_of(levels[:50]))
    assert list(tmp_path.iterdir()) == []
    sink.write(batch_of(levels[50:], first=60, discontinuity=True, gap_samples=80000))
    assert sink.n_frames == 120
    sink.finish()
    whole = LevelStatistics(SPEC)
    whole.add(batch_of(levels))
    found = read_npz(tmp_path / "x.npz")
    assert np.array_equal(found.counts, whole.counts)
    assert found.mean == pytest.approx(whole.mean, abs=1e-9)
    assert found.exceeded(5.0) == pytest.approx(whole.exceeded(5.0))
    with np.load(tmp_path / "x.npz") as arrays:
        about = json.loads(str(arrays["description"]))
        assert np.array_equal(arrays["f"], SPEC.frequencies)
        assert arrays["exceeded"][3] == pytest.approx(whole.exceeded(50.0))
        assert arrays["density"].shape[1] == len(arrays["level_edges"]) - 1
    assert about["unit"] == "dB re FS^2/Hz"
    assert (about["gaps"], about["gap_samples"], about["n_rows"]) == (1, 80000, 120)
    assert (about["row_s"], about["cal_id"], about["signals"]) == (1.0, "cal-7", ["left", "right"])
    assert about["begin_utc_ns"] == BEGIN_NS
    assert about["end_utc_ns"] == BEGIN_NS + 130 * 10**9 + 4 * 10**6
    found.merge(whole)
    assert found.n_rows == 240


def test_a_table_for_spreadsheets(tmp_path):
    """The CSV file has a line per signal and frequency with the usual levels."""
    sink = SpdSink(tmp_path / "x.csv", about_of(), PictureOptions())
    levels = levels_of(200)
    sink.write(batch_of(levels))
    sink.finish()
    lines = (tmp_path / "x.csv").read_text().splitlines()
    assert '# unit: "dB re FS^2/Hz"' in lines
    table = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    assert len(table) == 2 * 33
    line = table[33 + 10]
    assert (line["signal"], float(line["frequency_hz"])) == ("right", 1250.0)
    exact = np.percentile(levels[:, 1, 10], 95.0, method="inverted_cdf")
    assert abs(float(line["L5"]) - exact) <= 0.06
    assert float(line["max"]) == pytest.approx(levels[:, 1, 10].max(), abs=0.006)


@pytest.mark.parametrize("content", [b"", b"no zip", b"PK\x03\x04 broken"])
def test_other_files_are_no_statistics(tmp_path, content):
    """A file that is not statistics is an error of one line."""
    path = tmp_path / "x.npz"
    path.write_bytes(content)
    with pytest.raises(InputError, match="no level statistics of spectrod"):
        read_npz(path)
    np.savez(path, f=np.zeros(3))
    with pytest.raises(InputError, match="no level statistics of spectrod"):
        read_npz(path)
    with pytest.raises(InputError, match="No such file"):
        read_npz(tmp_path / "y.npz")


@pytest.mark.parametrize("f_scale", ["linear", "log"])
def test_each_column_shows_the_values_in_it(f_scale):
    """Every value in range is in a column, and a tone's column is at its frequency."""
    axis = FrequencyAxis(f_scale, 100.0, 4000.0)
    first, stop = column_values(axis, 777, SPEC)
    assert (stop > first).all()
    shown = {n for lo, hi in zip(first, stop, strict=True) for n in range(lo, hi)}
    in_range = np.flatnonzero((SPEC.frequencies >= 100.0) & (SPEC.frequencies < 4000.0))
    assert shown >= set(in_range.tolist())
    column = int(axis.fraction(2000.0) * 777)
    assert first[column] <= 16 < stop[column]


def test_pixels_are_the_density():
    """A column over all levels sums to 1 at any pixel height, with levels in their rows."""
    statistics = LevelStatistics(SPEC, 0.5)
    statistics.add(batch_of(np.full((10, 2, 33), -60.25)))
    columns = column_values(FrequencyAxis("linear", 0.0, 4000.0), 33, SPEC)
    for height in (64, 101):
        density = pixel_density(statistics, columns, (-80.0, -40.0), height)
        assert density.sum(axis=1) * (40.0 / height) == pytest.approx(1.0, abs=1e-5)
        centres = -40.0 - (np.arange(height) + 0.5) * (40.0 / height)
        assert np.abs(centres[density[0, :, 5] > 0.0] + 60.25).max() <= 0.25 + 40.0 / height
    assert density_limit(np.array([0.0, 0.031, 0.032])) == 0.05


@pytest.mark.parametrize("f_scale", ["linear", "log"])
@pytest.mark.parametrize("width", [200, 333, 2000])
def test_a_tone_keeps_its_level_at_any_width(tmp_path, f_scale, width):
    """Lines and the automatic axis reach a tone's level, however many bins share its column."""
    spec = SpectrumSpec(
        fs=48000.0,
        channels=1,
        win_length=4800,
        hop=2400,
        nfft=4800,
        averaging="mean",
        averaging_frames=20,
    )
    levels = np.random.default_rng(3).normal(-75.0, 1.0, (200, 1, spec.n_values))
    levels[:, 0, 100] = -27.75  # 1 kHz
    statistics = LevelStatistics(spec, 0.5)
    statistics.add(batch_of(levels, spec))
    options = PictureOptions(width=width, height=200, f_scale=f_scale, f_min=20.0)
    page = compose(statistics, about_of(spec), options, Span(BEGIN_NS, BEGIN_NS, 0, 0))
    column = int(page.f_axis.fraction(1000.0) * width)
    for curve in page.curves[0]:
        assert curve.level[column] == pytest.approx(-27.75, abs=1e-4)
        assert curve.level.max() == pytest.approx(-27.75, abs=1e-4)
    assert page.limits == (-90.0, -20.0)
    drawn = page.entries[0, :, column]
    centres = page.limits[1] - (np.arange(200) + 0.5) * 70.0 / 200
    assert np.abs(centres[drawn >= GAP - 1] + 27.75).min() <= 70.0 / 200


@pytest.mark.parametrize(("n_silent", "lowest"), [(1, -90.0), (9, -160.0)])
def test_the_axis_covers_all_levels_but_those_of_single_rows(n_silent, lowest):
    """The automatic axis covers quiet rows but no rare outlier and not all digital silence."""
    levels = np.random.default_rng(4).normal(-75.0, 1.0, (2000, 2, 33))
    levels[:n_silent] = -300.0
    # With its margin not at the edge of a step, which the processor's rounding would decide.
    levels[:, :, 7] = -22.0
    statistics = LevelStatistics(SPEC, 0.5)
    statistics.add(batch_of(levels))
    options = PictureOptions(width=240, height=120)
    page = compose(statistics, about_of(), options, Span(BEGIN_NS, BEGIN_NS, 0, 0))
    assert page.limits == (lowest, -10.0)


@pytest.mark.parametrize("n_values", [1, 2, 32, 33])
def test_the_largest_of_each_column(n_values):
    """The largest value of each column is NumPy's maximum over its span, both ends included."""
    values = np.random.default_rng(n_values).normal(size=(2, n_values))
    first = np.array([0, 0, n_values // 2, n_values - 1])
    stop = np.maximum(np.array([1, n_values, n_values, n_values]), first + 1)
    found = greatest_of_columns(values, (first, stop))
    for column, (begin, end) in enumerate(zip(first, stop, strict=True)):
        assert (found[:, column] == values[:, begin:end].max(axis=1)).all()


def test_each_kind_of_line_looks_different():
    """L1 and L99, L5 and L95, L50 and the mean differ in dashes or colour; samples show them."""
    statistics = LevelStatistics(SPEC, 0.5)
    statistics.add(batch_of(levels_of(50)))
    options = PictureOptions(width=200, height=120)
    page = compose(statistics, about_of(), options, Span(BEGIN_NS, BEGIN_NS, 0, 0))
    samples = {one.name: curve_sample(one).tobytes() for one in page.curves[0]}
    assert samples["L1"] == samples["L99"]
    assert samples["L5"] == samples["L95"]
    assert len(set(samples.values())) == 4
    assert samples["mean"] == bytes([GAP] * len(samples["mean"]))


@pytest.mark.parametrize("n_columns", [99, 100])
def test_dashes_are_as_long_as_stated(n_columns):
    """A line of dashes has so many pixels of ink, then so many of paper, to its end."""
    curve = Curve("L5", np.full(n_columns, -50.0), 7, 3)
    entries = draw_curves(np.zeros((41, n_columns), np.uint8), [curve], (-60.0, -40.0))
    is_ink = entries[20] == GAP - 1
    assert is_ink.tolist() == [k % 10 < 7 for k in range(n_columns)]
    assert (entries[20][~is_ink] == N_LEVELS).all()


@pytest.mark.parametrize("suffix", [".png", ".svg", ".jpg", ".webp"])
def test_the_picture_has_a_description(tmp_path, suffix):
    """Each format has the plot's size and its description; a PNG's pixels are the densities."""
    options = PictureOptions(
        width=240, height=120, f_scale="log", f_min=100.0, time_axis="utc", title="Pier"
    )
    sink = SpdSink(tmp_path / f"x{suffix}", about_of(), options)
    sink.write(batch_of(levels_of(400)))
    sink.finish()
    if suffix == ".svg":
        text = (tmp_path / "x.svg").read_text()
        for label in ("Pier", "L50", "mean", "dB re FS^2/Hz", "share of rows per dB"):
            assert label in text
        assert "2026-05-01 00:00:00" in text
        return
    with Image.open(tmp_path / f"x{suffix}") as image:
        image.load()
        stored = image.info.get("spectrod-levels") or image.getexif()[0x010E]
        entries = np.asarray(image)
    about = json.loads(stored)
    assert (about["f_scale"], about["f_min_hz"], about["n_rows"]) == ("log", 100.0, 400)
    if suffix == ".png":
        left, top, width, height = about["plots"][1]
        assert (width, height) == (240, 120)
        plot = entries[top : top + height, left : left + width]
        level = about["level_max"] - (np.arange(height) + 0.5) / height * (
            about["level_max"] - about["level_min"]
        )
        axis = FrequencyAxis("log", 100.0, 4000.0)
        first, stop = column_values(axis, width, SPEC)
        for column in (120, 180, 237):
            # The paper-coloured edges of lines may cover the outermost ones.
            coloured = level[plot[:, column] < about["n_levels"]]
            shown = levels_of(400)[:, 1, first[column] : stop[column]]
            pixel_db = level[0] - level[1]
            assert shown.min() - pixel_db <= coloured.min() <= np.percentile(shown, 5.0)
            assert np.percentile(shown, 95.0) <= coloured.max() <= shown.max() + pixel_db


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        ("x.pgm", {}, r"suffix must be one of \.png"),
        ("x.png", {"f_max": 5000.0}, "f_max=5000: must be"),
        ("x.png", {"raw": True}, r"x\.png: raw: a picture of level statistics has axes"),
    ],
)
def test_an_impossible_picture_is_refused_at_once(tmp_path, name, options, text):
    """An invalid suffix or axis is refused before recording."""
    with pytest.raises(ConfigError, match=text):
        SpdSink(tmp_path / name, about_of(), PictureOptions(**options))


def test_nothing_counted_is_no_file(tmp_path):
    """Without a row there is an error and no file."""
    sink = SpdSink(tmp_path / "x.png", about_of(), PictureOptions())
    with pytest.raises(InputError, match="nothing to count: fewer than 4032 samples"):
        sink.finish()
    assert list(tmp_path.iterdir()) == []


def test_averages_cut_short_do_not_count(tmp_path):
    """A row of less than half the usual length does not count, as its levels spread more."""
    sink = SpdSink(tmp_path / "x.csv", about_of(), PictureOptions())
    sink.write(batch_of(levels_of(1), cut_frames=124))
    assert sink.n_frames == 0
    sink.write(batch_of(levels_of(1), cut_frames=125))
    assert sink.n_frames == 1


@pytest.mark.parametrize(
    ("duration_s", "interval_s"),
    [(None, 1.0), (1.0, 1.0), (399.0, 1.0), (400.0, 2.0), (3600.0, 15.0), (12000.0, 60.0)],
)
def test_the_length_of_rows_follows_from_the_view(duration_s, interval_s):
    """A recording has at least 200 rows, of at most a minute unless they were below a second."""
    assert interval_for(duration_s) == interval_s


def test_a_day_is_cut_into_minutes_of_one_hertz():
    """Long recordings get rows of a minute, bins of 1 Hz and 120 windows per row."""
    assert frames_for(2.4e6, None, win_length_max=1000).win_length == 1000
    frames = frames_for(48000.0, 86400 * 48000)
    assert (frames.win_length, frames.hop, frames.averaging_frames) == (48000, 24000, 120)


@pytest.mark.parametrize("fs", [500.0, 11025.0, 44100.0, 384000.0])
@pytest.mark.parametrize("n_samples", [None, 1000, 10**9])
def test_every_rate_has_frames(fs, n_samples):
    """Every sample rate gives valid frames, and windows that were chosen stay."""
    frames = frames_for(fs, n_samples)
    spec = SpectrumSpec(fs=fs, win_length=frames.win_length, hop=frames.hop)
    assert averaged(spec, frames).averaging_frames == frames.averaging_frames
    row_s = frames.averaging_frames * frames.hop / fs
    assert row_s == pytest.approx(interval_for(None if n_samples is None else n_samples / fs), 0.1)
    chosen = frames_for(fs, n_samples, win_length=100, hop=30)
    assert (chosen.win_length, chosen.hop) == (100, 30)
    own = SpectrumSpec(fs=fs, averaging="max", averaging_frames=5)
    assert averaged(own, frames) == own


@pytest.mark.parametrize(
    ("sound_s", "expected"),
    [
        (5.0, (4000, 2000, 19)),
        (7.3, (5840, 2920, 19)),
        (55.0, (8000, 4000, 109)),
        (600.0, (8000, 4000, 120)),
        (0.05, (800, 400, 1)),
    ],
)
def test_rows_fit_the_recordings_of_a_schedule(sound_s, expected):
    """All windows of a row lie in a recording that is shorter than the usual row."""
    fs, four_hours = 8000.0, 4 * 3600 * 8000
    frames = frames_for(fs, four_hours, sound_s=sound_s)
    assert (frames.win_length, frames.hop, frames.averaging_frames) == expected
    span = frames.win_length + (frames.averaging_frames - 1) * frames.hop
    assert expected == (800, 400, 1) or span <= min(sound_s, 60.5) * fs
    asked = frames_for(fs, four_hours, rate_hz=1 / 60, sound_s=sound_s)
    assert asked == frames_for(fs, four_hours, rate_hz=1 / 60)


def test_views_have_valid_defaults():
    """Each view's defaults are valid picture options, and zero density looks like paper."""
    assert picture_defaults("spectrogram", "light", has_utc=True) == {"time_axis": "utc"}
    assert picture_defaults("spectrogram", "light", has_utc=False) == {}
    assert PictureOptions(**picture_defaults("ltsa", "light", has_utc=True)).time_axis == "utc"
    assert picture_defaults("ltsa", "light", has_utc=False) == {}
    assert picture_defaults("spd", "light", has_utc=True)["f_scale"] == "log"
    assert "f_scale" not in picture_defaults("spd", "light", has_utc=True, is_iq=True)
    for theme in ("light", "dark"):
        options = PictureOptions(theme=theme, **picture_defaults("spd", theme, has_utc=True))
        assert (options.f_scale, options.time_axis) == ("log", "utc")


@pytest.mark.parametrize(("time_axis", "has_date"), [("utc", True), ("elapsed", False)])
def test_the_footer_has_a_date_only_if_known(time_axis, has_date):
    """A recording without a time has no date in the footer, instead of the time of reading."""
    statistics = LevelStatistics(SPEC)
    statistics.add(batch_of(levels_of(9)))
    options = PictureOptions(width=900, height=100, time_axis=time_axis)
    page = compose(statistics, about_of(), options, Span(BEGIN_NS, BEGIN_NS + 9 * 10**9))
    times = "2026-05-01 00:00:00 to 2026-05-01 00:00:09 UTC"
    assert (times in " ".join(page.footer)) == has_date
    assert "9 means, 1 s apart" in page.footer[0]


def test_pauses_of_a_schedule_are_no_gaps(tmp_path):
    """Footer and data of a recorder that sleeps count its pauses apart from what is lost."""
    sink = SpdSink(tmp_path / "x.npz", about_of(), PictureOptions())
    for k in (0, 1, 2, 3, 5, 6):
        missing = 8000 * (58 if k != 5 else 118)
        batch = batch_of(levels_of(2), first=60 * k)
        sink.write(replace(batch, discontinuity=k > 0, gap_samples=missing if k else 0))
    sink.finish()
    with np.load(tmp_path / "x.npz") as arrays:
        about = json.loads(str(arrays["description"]))
    assert (about["gaps"], about["gap_samples"]) == (5, 8000 * (4 * 58 + 118))
    pauses = Pauses(**about["pauses"])
    assert pauses == Pauses(4, 4 * 58.0, 60.0)
    statistics = LevelStatistics(SPEC)
    statistics.add(batch_of(levels_of(9)))
    span = Span(BEGIN_NS, BEGIN_NS, 5, about["gap_samples"], pauses)
    page = compose(statistics, about_of(), PictureOptions(width=900, height=100), span)
    text = "4 pauses of a schedule of 60 s \u00b7 gaps: 1, 118 s missing"
    assert text in " ".join(" ".join(page.footer).split())


def test_levels_that_never_occurred_have_no_density():
    """Pixels without a counted class, in any value of their column, have zero density."""
    statistics = LevelStatistics(SPEC)
    levels = np.round(levels_of(57), 0) + 0.05
    statistics.add(batch_of(levels))
    columns = column_values(FrequencyAxis("log", 100.0, 4000.0), 20, SPEC)
    limits, height = (-130.0, -20.0), 313
    density = pixel_density(statistics, columns, limits, height)
    row_db = (limits[1] - limits[0]) / height
    centres = limits[1] - (np.arange(height) + 0.5) * row_db
    for column in (0, 11, 19):
        present = np.unique(levels[:, 0, columns[0][column] : columns[1][column]])
        distance = np.abs(centres[:, None] - present).min(axis=1)
        is_far = distance > row_db / 2.0 + 0.051 + 0.1
        assert not density[0, is_far, column].any()
        assert (density[0, distance < row_db / 2.0, column] > 0.0).all()


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("counts", np.zeros((2, 4001, 33), np.uint32)),
        ("counts", np.zeros((2, 4, 33))),
        ("least", np.zeros((2, 34), np.float32)),
        ("rows", np.array([-1])),
        ("rows", np.array([1 << 32])),
        ("first_class", np.array([-1])),
        ("first_class", np.array([4000])),
        ("mean_power", np.full((2, 33), np.nan)),
        ("description", np.array("{" * 100_000)),
        ("description", np.zeros(1 << 24, "i1")),
        ("description", np.array("\0" * (1 << 22))),
    ],
)
def test_arrays_that_do_not_fit_are_refused(tmp_path, name, array):
    """Arrays that do not fit are refused before they are unpacked to a much larger size."""
    sink = SpdSink(tmp_path / "x.npz", about_of(), PictureOptions())
    sink.write(batch_of(levels_of(5)))
    sink.finish()
    with np.load(tmp_path / "x.npz") as arrays:
        changed = dict(arrays) | {name: array}
    np.savez_compressed(tmp_path / "y.npz", **changed)
    with pytest.raises(InputError, match="no level statistics of spectrod"):
        read_npz(tmp_path / "y.npz")
