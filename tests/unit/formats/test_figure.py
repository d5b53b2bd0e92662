"""Figures of measurements: lines are the values, gaps stay gaps, and files are whole."""

import io
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pypdfium2
import pytest
from PIL import Image

from spectrod.formats.figure.drawing import LINES_MAX, figure_style
from spectrod.formats.figure.figure_look import DPI, WIDTH_IN
from spectrod.formats.figure.interval_cells import CELLS_MAX, IntervalCells
from spectrod.formats.figure.measurement_figure import MeasurementFigureWriter, panels_of
from spectrod.formats.values.measurement_description import MeasurementDescription
from spectrod.lib.errors import ConfigError, StorageError, UnavailableError
from spectrod.measure.features.feature_quantities import parse_feature
from spectrod.measure.levels.level_quantities import parse_quantity
from spectrod.measure.levels.octave_levels import band_levels
from spectrod.measure.measurement import Measurement

S_NS = 10**9
FS = 8000.0
BEGIN_NS = 1_777_593_600 * S_NS  # 2026-05-01T00:00:00Z
DAYS = BEGIN_NS / (86400 * S_NS)


def describe(names=("LAeq", "L90"), channels=("0",), parse=parse_quantity, **more):
    quantities = tuple(map(parse, names))
    asked = {"has_utc": True, "time_zone": ""} | more
    return MeasurementDescription(
        "a.wav", channels, quantities, (None,) * len(channels), FS, 1.0, "utc",
        software="spectrod 1.2.3", **asked,
    )  # fmt: skip


def row(second, values, duration_s=1.0):
    values = np.asarray(values, np.float64)
    n = round(duration_s * FS)
    flags = np.zeros(values.shape[1], np.uint8)
    begin_ns = BEGIN_NS + round(second * S_NS)
    return Measurement(round(second * FS), n, int(FS), begin_ns, duration_s, values, flags)


def figure_of(path, about, rows, total=None):
    writer = MeasurementFigureWriter(path, about)
    for one in rows:
        writer.write(one)
    if total is not None:
        writer.write_total(total)
    with figure_style():
        figure = writer.figure()
    writer.abort()
    return figure


def test_lines_are_the_values_and_break_at_gaps(tmp_path):
    """A line has each value from the begin to the end of its interval, and nothing in a gap."""
    about = describe()
    rows = [
        row(0.0, [[50.0], [40.0]]),
        row(1.0, [[51.0], [-np.inf]], duration_s=0.5),
        row(5.0, [[52.0], [np.nan]]),
        row(6.0, [[53.0], [43.0]]),
    ]
    (panel,) = figure_of(tmp_path / "a.png", about, rows).axes
    equivalent, exceeded = panel.get_lines()
    x, y = equivalent.get_data()
    nan = np.nan
    np.testing.assert_array_equal(y, [50.0, 50.0, 51.0, 51.0, nan, 52.0, 52.0, 53.0, 53.0])
    seconds = (x - DAYS) * 86400
    # Days since 1970 in float64 are exact to 2e4 * 2^-53 days, 0.2 us.
    np.testing.assert_allclose(seconds, [0, 1, 1, 1.5, nan, 5, 6, 6, 7], atol=1e-6)
    np.testing.assert_array_equal(
        exceeded.get_ydata(), [40.0, 40.0, nan, nan, nan, nan, nan, 43.0, 43.0]
    )
    assert panel.get_ylabel() == "level [dBFS]"
    assert panel.get_xlabel() == "time, UTC, 2026-05-01"
    assert [one.get_text() for one in panel.get_legend().get_texts()] == ["LAeq", "L90"]
    assert equivalent.get_color() != exceeded.get_color()
    assert equivalent.get_linestyle() != exceeded.get_linestyle()


def scheduled(minute, recordings, value, n_minutes=15):
    """An interval with the first recordings of its minutes, of 5 s each."""
    found = row(60 * minute, [[value]], 5.0 * recordings)
    span_s = 60 * (recordings - 1) + 5
    return replace(found, due_samples=round(60 * n_minutes * FS), span_samples=round(span_s * FS))


def test_intervals_of_a_schedule_last_until_the_next(tmp_path):
    """Lines are as long as the intervals, not as their sound; whole ones that miss are gaps."""
    rows = [scheduled(0, 15, 50.0), scheduled(15, 15, 51.0), scheduled(45, 15, 52.0)]
    rows.append(scheduled(60, 3, 53.0))
    about = replace(describe(("LAeq",)), interval_s=900.0)
    (panel,) = figure_of(tmp_path / "a.png", about, rows).axes
    x, y = panel.get_lines()[0].get_data()
    nan = np.nan
    minutes = [0, 15, 15, 29 + 5 / 60, nan, 45, 60, 60, 62 + 5 / 60]
    np.testing.assert_allclose((x - DAYS) * 1440, minutes, atol=1e-7)
    np.testing.assert_array_equal(y, [50.0, 50.0, 51.0, 51.0, nan, 52.0, 52.0, 53.0, 53.0])
    assert panel.get_xlim()[1] == x[-1]


def test_a_loss_between_intervals_without_pauses_is_a_gap(tmp_path):
    """A loss of 10 of 15 minutes across a bound stays as long as it is."""
    rows = [row(0, [[50.0]], 900.0), row(900, [[51.0]], 600.0), row(2100, [[52.0]], 600.0)]
    rows = [replace(one, span_samples=one.n_samples) for one in rows]
    about = replace(describe(("LAeq",)), interval_s=900.0)
    (panel,) = figure_of(tmp_path / "a.png", about, rows).axes
    x = panel.get_lines()[0].get_xdata()
    np.testing.assert_allclose((x - DAYS) * 1440, [0, 15, 15, 25, np.nan, 35, 45], atol=1e-7)


def test_intervals_of_a_schedule_are_joined_where_cells_are_made():
    """The interval before one is lengthened also if the figure was asked for between them."""
    cells = IntervalCells(1, 0.01 * S_NS)
    for k in range(CELLS_MAX + 2):
        cells.add(10 * k * S_NS, (10 * k + 7) * S_NS, np.ones(1), 4 * S_NS)
    assert (cells.cells().gaps_ns == 0).all()
    cells.add(10 * (k + 1) * S_NS, (10 * k + 17) * S_NS, np.ones(1), 4 * S_NS)
    assert (cells.cells().gaps_ns == 0).all()
    assert cells.cells().end_ns[-1] == (10 * k + 17) * S_NS


def test_the_value_of_all_intervals_stands_beside_a_level(tmp_path):
    """The total is in the legend of levels, and not if there is one interval alone."""
    about, rows = describe(), [row(0, [[50.0], [40.0]]), row(1, [[60.0], [40.0]])]
    total = row(0, [[57.404], [-np.inf]], 2.0)
    for several, expected in ((rows, ["LAeq (57.4)", "L90"]), (rows[:1], ["LAeq", "L90"])):
        (panel,) = figure_of(tmp_path / "a.png", about, several, total).axes
        assert [one.get_text() for one in panel.get_legend().get_texts()] == expected


def test_panels_have_the_values_of_one_axis():
    """Levels share a panel for each channel, loudnesses one; others have their own."""
    about = describe(("LAeq", "LUFS_M", "true_peak", "L90", "LUFS_S"), ("left", "right"))
    found = [
        (one.title, one.axis, [(line.quantity, line.channel, line.name) for line in one.lines])
        for one in panels_of(about)
    ]
    assert found == [
        ("channel left", "level [dBFS]", [(0, 0, "LAeq"), (3, 0, "L90")]),
        ("channel right", "level [dBFS]", [(0, 1, "LAeq"), (3, 1, "L90")]),
        ("", "loudness [LUFS]", [(1, 0, "LUFS_M"), (4, 0, "LUFS_S")]),
        ("true_peak", "[dBTP]", [(2, 0, "channel left"), (2, 1, "channel right")]),
    ]


def test_features_have_a_panel_each(tmp_path):
    """The panels have the features' names and units; only the last one has labels of times."""
    about = describe(("centroid", "flatness"), ("a", "b"), parse_feature, title="Spectral features")
    rows = [row(k, [[100.0 + k, 200.0 + k], [0.1 * k, 0.2 * k]]) for k in range(3)]
    figure = figure_of(tmp_path / "a.png", about, rows)
    centroid, flatness = figure.axes
    assert figure.get_suptitle() == "Spectral features of a.wav"
    assert [one.get_title("left") for one in figure.axes] == ["centroid", "flatness"]
    assert [one.get_ylabel() for one in figure.axes] == ["[Hz]", "[1]"]
    assert [one.get_xlabel() for one in figure.axes] == ["", "time, UTC, 2026-05-01"]
    np.testing.assert_array_equal(
        centroid.get_lines()[1].get_ydata(), np.repeat([200.0, 201.0, 202.0], 2)
    )
    np.testing.assert_array_equal(
        flatness.get_lines()[0].get_ydata(), np.repeat([0.0, 0.1, 0.2], 2)
    )


def test_times_are_local_or_elapsed(tmp_path):
    """The zone is written on the axis and rules its ticks; without a date times are elapsed."""
    rows = [row(3600 * k, [[50.0 + k]], 3600.0) for k in range(4)]
    (panel,) = figure_of(
        tmp_path / "a.png", describe(("LAeq",), time_zone="Asia/Kolkata"), rows
    ).axes
    assert panel.get_xlabel() == "time, Asia/Kolkata (UTC+05:30), 2026-05-01; grey: 23 to 7 h"
    labels = panel.xaxis.get_major_formatter().format_ticks(panel.xaxis.get_majorticklocs())
    assert "06:00" in labels  # 00:30 UTC
    (panel,) = figure_of(tmp_path / "a.png", describe(("LAeq",), has_utc=False), rows).axes
    assert panel.get_xlabel() == "time since the first sample [h]"
    np.testing.assert_allclose(panel.get_lines()[0].get_xdata(), [0, 1, 1, 2, 2, 3, 3, 4])


@pytest.mark.parametrize("n", [2 * CELLS_MAX, 3 * CELLS_MAX, 40_001])
def test_many_intervals_keep_extremes_and_gaps(n):
    """However many intervals there are, cells are few, and peaks, NaN and a long gap stay."""
    rng = np.random.default_rng(3)
    values = rng.uniform(40.0, 60.0, (n, 2))
    values[n // 3, 0], values[n // 2, 0] = 99.0, 1.0
    values[:, 1] = np.nan
    cells = IntervalCells(2, 0.01 * S_NS)
    gap_s = n // 10
    for k, one in enumerate(values):
        begin_s = k + (gap_s if k >= n // 4 else 0)
        cells.add(begin_s * S_NS, (begin_s + 1) * S_NS, one)
    found = cells.cells()
    n_cells = len(found.begin_ns)
    assert CELLS_MAX // 4 < n_cells <= 2 * CELLS_MAX
    assert (found.begin_ns[0], found.end_ns[-1]) == (0, (n + gap_s) * S_NS)
    assert (np.max(found.highest[:, 0]), np.min(found.lowest[:, 0])) == (99.0, 1.0)
    assert np.isnan(found.highest[:, 1]).all()
    # Each cell has the extremes of exactly its intervals.
    begins = np.arange(n) + np.where(np.arange(n) >= n // 4, gap_s, 0)
    starts = np.searchsorted(begins * S_NS, found.begin_ns)
    np.testing.assert_array_equal(found.highest[:, 0], np.maximum.reduceat(values[:, 0], starts))
    np.testing.assert_array_equal(found.lowest[:, 0], np.minimum.reduceat(values[:, 0], starts))
    # No cell bridges the gap.
    longest_s = (n + gap_s) / CELLS_MAX
    assert (found.end_ns - found.begin_ns).max() <= (2 * longest_s + 1) * S_NS
    times_ns, line = cells.line(0)
    breaks = np.flatnonzero(np.isnan(line))
    assert len(breaks) == 1
    assert times_ns[breaks[0] - 1] == n // 4 * S_NS
    assert times_ns[breaks[0] + 1] == (n // 4 + gap_s) * S_NS


def test_the_hour_that_comes_twice_has_two_ticks(tmp_path):
    """Berlin's 02:00 of 2026-10-25 is on the axis twice, an hour apart, with both offsets."""
    first = 177 * 86_400 - 3600  # 2026-10-24T23:00Z
    rows = [row(first + 3600 * k, [[50.0 + k]], 3600.0) for k in range(5)]
    about = describe(("LAeq",), time_zone="Europe/Berlin")
    (panel,) = figure_of(tmp_path / "a.png", about, rows).axes
    labels = [text.get_text() for text in panel.get_xticklabels()]
    places_h = [24.0 * (x - DAYS) - first / 3600 for x in panel.xaxis.get_majorticklocs()]
    at = dict(zip(np.round(places_h, 6), labels, strict=True))
    assert [at[1.0], at[2.0], at[3.0]] == ["02:00", "02:00", "03:00"]
    assert panel.get_xlabel().startswith("time, Europe/Berlin (UTC+02:00, UTC+01:00), 2026-10-25")


def test_short_intervals_between_gaps_are_dots(tmp_path):
    """55 s of each ten minutes over days are seen; long and connected intervals have no dots."""
    rows = [row(600 * k, [[40.0 + k % 5]], 55.0) for k in range(300)]
    rows += [row(180_000 + 55 * k, [[50.0]], 55.0) for k in range(2)]
    rows.append(row(200_000, [[45.0]], 40_000.0))
    (panel,) = figure_of(tmp_path / "a.png", describe(("LAeq",), time_zone="Asia/Tokyo"), rows).axes
    (line,) = panel.get_lines()
    np.testing.assert_array_equal(line.get_markevery(), 3 * np.arange(300))
    np.testing.assert_array_equal(
        line.get_ydata()[line.get_markevery()], [40.0 + k % 5 for k in range(300)]
    )
    # 00:00 and 66:40 UTC are 9 hours later there.
    assert (
        panel.get_xlabel()
        == "time, Asia/Tokyo (UTC+09:00), 2026-05-01 to 2026-05-04; grey: 23 to 7 h"
    )


def test_nights_of_a_local_time_are_grey(tmp_path):
    """Nights are 23 to 7 h local time, 7 h long when clocks go forward; UTC has no nights."""
    # 2026-03-28T12:00Z; Berlin's clocks go forward at 01:00 UTC of the 29th.
    rows = [row(3600 * k - 2_894_400, [[50.0 + k]], 3600.0) for k in range(48)]
    zones = {"": [], "Europe/Berlin": [[10.0, 17.0], [33.0, 41.0]]}
    for zone, expected_h in zones.items():
        about = describe(("LAeq", "crest"), time_zone=zone)
        rows_of_both = [replace(one, values=np.repeat(one.values, 2, axis=0)) for one in rows]
        for panel in figure_of(tmp_path / "a.png", about, rows_of_both).axes:
            # A polygon before matplotlib 3.9, a rectangle since.
            found = [
                one.get_patch_transform().transform_path(one.get_path()).get_extents().intervalx
                for one in panel.patches
            ]
            hours = [[(x - DAYS + 33.5) * 24 for x in span] for span in found]
            np.testing.assert_allclose(np.reshape(hours, (-1, 2)), np.reshape(expected_h, (-1, 2)))
    months = [row(86_400 * k, [[50.0]], 86_400.0) for k in range(63)]
    about = describe(("LAeq",), time_zone="Europe/Berlin")
    assert not figure_of(tmp_path / "a.png", about, months).axes[0].patches


def test_parts_of_the_day_are_drawn_where_they_are(tmp_path):
    """Lday lasts from 7 to 19 h local time, Lnight from 23 to 7 h, Lden all day."""
    midnight = 177 * 86_400 - 2 * 3600  # 2026-10-25 in Berlin, a day of 25 hours
    rows = [row(midnight, [[55.0], [52.0], [50.0], [45.0]], 90_000.0)]
    about = describe(("Lden", "Lday", "Levening", "Lnight"), time_zone="Europe/Berlin")
    (panel,) = figure_of(tmp_path / "a.png", about, rows).axes
    spans = {}
    for line in panel.get_lines():
        hours = np.round(24.0 * (line.get_xdata() - DAYS) - midnight / 3600.0, 6)
        spans[line.get_label()] = hours[np.isfinite(hours)].tolist()
        assert len(set(line.get_ydata()[np.isfinite(line.get_ydata())])) == 1
    # The clock goes back at 3 h, so that 7 h is eight hours after midnight.
    assert spans == {
        "Lden": [0.0, 25.0],
        "Lday": [8.0, 20.0],
        "Levening": [20.0, 24.0],
        "Lnight": [0.0, 8.0, 24.0, 25.0],
    }


def test_levels_that_hardly_change_are_a_flat_line(tmp_path):
    """An axis of levels has at least 1 dB; one of other values follows them."""
    rows = [row(k, [[50.0 + 1e-4 * k]]) for k in range(3)]
    (levels,) = figure_of(tmp_path / "a.png", describe(("LAeq",)), rows).axes
    (rms,) = figure_of(tmp_path / "a.png", describe(("rms",)), rows).axes
    low, high = levels.get_ylim()
    np.testing.assert_allclose([high - low, (high + low) / 2], [1.0, 50.0001])
    assert np.diff(rms.get_ylim()) < 1e-3


def banded(channels=1, names=("LZeq", "LZF90")):
    from spectrod.measure.levels import LevelMeter  # noqa: PLC0415

    meter = LevelMeter(
        FS, channels, quantities=["LAeq"], interval_s=1.0, bands="octave", band_quantities=names
    )
    x = np.random.default_rng(1).normal(0.0, 0.1, (channels, int(2.5 * FS)))
    rows = [*meter.push(x), *meter.finish()]
    bands = band_levels("octave", names, FS, 1.0)
    about = describe(("LAeq",), tuple("ab"[:channels]), bands=bands, has_utc=False)
    return about, rows, meter.summary()


def test_bars_are_the_levels_of_all_intervals_in_bands(tmp_path):
    """Below the history, bars have the first quantity in bands and marks the others."""
    about, rows, total = banded(channels=2)
    figure = figure_of(tmp_path / "a.png", about, rows, total)
    assert len(figure.axes) == 4
    for channel, panel in enumerate(figure.axes[2:]):
        tops = [bar.get_y() + bar.get_height() for bar in panel.patches]
        np.testing.assert_allclose(tops, total.band_values[0, :, channel])
        (marks,) = panel.collections
        heights = [segment[0][1] for segment in marks.get_segments()]
        np.testing.assert_allclose(heights, total.band_values[1, :, channel])
        assert [one.get_text() for one in panel.get_xticklabels()] == [
            "31.5", "63", "125", "250", "500", "1k", "2k",
        ]  # fmt: skip
        assert panel.get_title("left") == f"all intervals, channel {'ab'[channel]}"
        assert panel.get_xlabel() == "nominal mid-band frequency [Hz]"
        assert panel.get_ylabel() == "level [dBFS]"


def test_one_interval_with_bands_is_bars_alone(tmp_path):
    """A history of one interval shows nothing that the bars do not."""
    about, rows, _ = banded(names=("LZeq",))
    (panel,) = figure_of(tmp_path / "a.png", about, rows[:1]).axes
    tops = [bar.get_y() + bar.get_height() for bar in panel.patches]
    np.testing.assert_allclose(tops, rows[0].band_values[0, :, 0])


def test_silence_has_axes_and_no_bars(tmp_path):
    """Levels of minus infinity are left out; nothing else fails."""
    about, rows, total = banded(names=("LZeq",))
    total.band_values[:] = -np.inf
    panel = figure_of(tmp_path / "a.png", about, rows, total).axes[-1]
    assert all(np.isnan(bar.get_height()) for bar in panel.patches)
    silent = [row(k, [[-np.inf]]) for k in range(3)]
    (panel,) = figure_of(tmp_path / "a.png", describe(("LAeq",)), silent).axes
    assert np.isnan(panel.get_lines()[0].get_ydata()).all()


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_files_open_and_are_the_same_each_time(tmp_path, suffix):
    """Files have the figure's size, text that can be searched, and the same bytes again."""
    about = describe(("LAeq",), ("_m$ic$",))
    contents = []
    for name in ("a", "b"):
        path = tmp_path / f"{name}{suffix}"
        writer = MeasurementFigureWriter(path, about)
        for k in range(3):
            writer.write(row(k, [[50.0 + k]]))
        writer.finish()
        contents.append(path.read_bytes())
    assert contents[0] == contents[1]
    assert sorted(one.name for one in tmp_path.iterdir()) == [f"a{suffix}", f"b{suffix}"]
    height_in = 3.5
    if suffix == ".png":
        image = Image.open(io.BytesIO(contents[0]))
        image.load()
        assert image.size == (WIDTH_IN * DPI, height_in * DPI)
    elif suffix == ".svg":
        root = ET.fromstring(contents[0])  # noqa: S314 - our own file
        assert root.get("viewBox") == f"0 0 {72 * WIDTH_IN:g} {72 * height_in:g}"
        assert "level [dBFS]" in [one.text for one in root.iter() if one.tag.endswith("text")]
    else:
        page = pypdfium2.PdfDocument(contents[0])[0]
        assert page.get_size() == (72 * WIDTH_IN, 72 * height_in)
        assert "level [dBFS]" in page.get_textpage().get_text_range()


def test_names_are_text_and_no_formulas(tmp_path):
    """Dollar signs, underscores and characters without a glyph in names break nothing."""
    channels = ("_m$ic$", "\u9727")
    about = describe(("true_peak",), channels)
    path = tmp_path / "a.svg"
    writer = MeasurementFigureWriter(path, about)
    for k in range(2):
        writer.write(row(k, [[-3.0, -4.0]]))
    writer.finish()
    root = ET.fromstring(path.read_bytes())  # noqa: S314 - our own file
    texts = [one.text for one in root.iter() if one.tag.endswith("text")]
    assert "channel _m$ic$" in texts
    assert "channel \u9727" in texts


def test_a_users_style_changes_nothing(tmp_path):
    """What matplotlibrc says does not count, and stays as it was."""
    with mpl.rc_context({"lines.linewidth": 7.0}):
        (panel,) = figure_of(tmp_path / "a.png", describe(("LAeq",)), [row(0, [[50.0]])]).axes
        assert panel.get_lines()[0].get_linewidth() < 2.0
        assert mpl.rcParams["lines.linewidth"] == 7.0


@pytest.mark.parametrize(
    ("about", "rule"),
    [
        (describe(()), "a figure needs a quantity"),
        (
            describe(("true_peak",), tuple(map(str, range(LINES_MAX + 1)))),
            "15 lines: a figure has at most 14; choose fewer quantities or channels",
        ),
        (
            describe(("LAeq",), tuple(map(str, range(25)))),
            "25 panels: a figure has at most 24; choose fewer quantities or channels",
        ),
        (
            describe(("LAeq",), tuple(map(str, range(13))), bands=banded()[0].bands),
            "26 panels: a figure has at most 24",
        ),
    ],
)
def test_what_no_figure_can_show_is_one_error(tmp_path, about, rule):
    """It is refused before anything is measured, and no file is left."""
    with pytest.raises(ConfigError, match=rule):
        MeasurementFigureWriter(tmp_path / "a.png", about)
    assert not list(tmp_path.iterdir())


def test_a_failing_write_leaves_no_file(monkeypatch, tmp_path):
    """A full disk is one error that names the file."""
    path = tmp_path / "a.png"
    path.write_bytes(b"before")
    writer = MeasurementFigureWriter(path, describe(("LAeq",)))
    writer.write(row(0, [[50.0]]))

    def fail(*_arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("spectrod.formats.figure.measurement_figure.save", fail)
    with pytest.raises(StorageError, match=r"a\.png: No space left on device"):
        writer.finish()
    assert [one.name for one in tmp_path.iterdir()] == ["a.png"]
    assert path.read_bytes() == b"before"


def test_a_missing_library_is_named(monkeypatch, tmp_path):
    """Without matplotlib, one error says what to install, before anything is measured."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UnavailableError, match=r"pip install 'spectrod\[plot\]'"):
        MeasurementFigureWriter(tmp_path / "a.png", describe())
    assert not list(tmp_path.iterdir())
