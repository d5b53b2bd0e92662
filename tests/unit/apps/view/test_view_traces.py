"""Bars, lines and the waterfall on a canvas."""

import numpy as np
import pytest

from spectrod.apps.view.area import Area
from spectrod.apps.view.axes import LevelRange, frequency_axis
from spectrod.apps.view.canvas import Canvas
from spectrod.apps.view.colour import BEHIND, N_SHADES, Style, line_colour, shade
from spectrod.apps.view.glyphs import ASCII, CONSOLE, UNICODE, glyphs_for
from spectrod.apps.view.history import BYTES_MAX, ROWS_MAX, HistoryRow, RowHistory
from spectrod.apps.view.traces import Trace, draw_bars, draw_marks, draw_traces, uses_dots
from spectrod.apps.view.waterfall import WaterfallRows, draw_waterfall

FS, NFFT = 48000.0, 64
AXIS = frequency_axis(FS, NFFT, 32, 0, (0.0, 1.0), 0.0, "linear")
SHOWN = LevelRange(-40.0, 0.0)
AREA = Area(0, 0, 4, 16)
COLOUR = Style("24-bit")


def trace(level_db, pen=1, mark="*"):
    levels = np.broadcast_to(np.asarray(level_db, float), NFFT // 2 + 1)
    return Trace("x", levels, pen, mark)


def dots_of(canvas):
    """Return the dots of braille patterns, shape (4 * lines, 2 * columns)."""
    bits = np.where(canvas.codes >= 0x2800, canvas.codes & 0xFF, 0)
    places = [[0, 3], [1, 4], [2, 5], [6, 7]]
    rows = [[bits >> n & 1 for n in pair] for pair in places]
    height, width = canvas.codes.shape
    return np.array(rows).transpose(2, 0, 3, 1).reshape(4 * height, 2 * width)


@pytest.mark.parametrize("level_db", [-39.9, -31.0, -20.1, -9.0, -0.1, 5.0])
def test_a_flat_line_has_one_dot_in_each_column(level_db):
    """A line of one level has a dot in each column, at its height within a sixteenth."""
    canvas = Canvas(16, 4)
    draw_traces(canvas, AREA, [trace(level_db)], AXIS, SHOWN)
    dots = dots_of(canvas)
    assert (dots.sum(axis=0) == 1).all()
    row = int(np.flatnonzero(dots[:, 0])[0])
    assert row == min(15, max(0, 15 - int((min(level_db, -0.1) + 40.0) / 40.0 * 16)))


def test_lines_are_connected():
    """Between neighbouring columns a line has no vertical hole."""
    rng = np.random.default_rng(5)
    canvas = Canvas(16, 4)
    draw_traces(canvas, AREA, [trace(rng.uniform(-39.0, 0.0, NFFT // 2 + 1))], AXIS, SHOWN)
    dots = dots_of(canvas)
    for left, right in zip(dots.T[:-1], dots.T[1:], strict=True):
        one, other = np.flatnonzero(left), np.flatnonzero(right)
        assert len(one) == one[-1] - one[0] + 1
        assert one[0] - 1 <= other[-1]
        assert other[0] - 1 <= one[-1]


def test_below_the_range_there_is_no_line():
    """Levels at or below the bottom of the picture draw nothing."""
    canvas = Canvas(16, 4)
    draw_traces(canvas, AREA, [trace(-40.0), trace(-200.0)], AXIS, SHOWN)
    assert not canvas.lines(Style())
    canvas = Canvas(32, 4)
    draw_marks(canvas, Area(0, 0, 4, 32), [trace(-40.0)], AXIS, SHOWN)
    assert not canvas.lines(Style())


def test_the_last_line_is_on_top_and_bars_stay_behind():
    """Where lines meet both keep their dots, in the colour of the last; a bar is behind them."""
    canvas = Canvas(16, 4)
    draw_bars(canvas, AREA, np.zeros(16), SHOWN, COLOUR)
    bar = int(canvas.pens[1, 0])
    red, blue = line_colour(0), line_colour(1)
    draw_traces(canvas, AREA, [trace(-12.0, red), trace(-16.0, blue)], AXIS, SHOWN)
    assert (canvas.pens[1] == blue + BEHIND * bar).all()
    assert (dots_of(canvas)[4:8].sum(axis=0) == 2).all()


def test_lines_of_characters_are_told_apart_without_colours():
    """Without colours each of several lines has its own character."""
    lines = [trace(-5.0, 1, "1"), trace(-25.0, 2, "2")]
    assert not uses_dots(lines, Style("none"))
    assert not uses_dots(lines, Style("24-bit", ASCII))
    assert uses_dots(lines, COLOUR)
    assert uses_dots(lines[:1], Style("none"))
    canvas = Canvas(32, 4)
    draw_marks(canvas, Area(0, 0, 4, 32), lines, AXIS, SHOWN)
    assert canvas.lines(Style()) == ["1" * 32, "", "2" * 32]


@pytest.mark.parametrize(
    ("environment", "encoding", "glyphs"),
    [
        ({"LANG": "en_US.UTF-8"}, "utf-8", UNICODE),
        ({"LC_ALL": "C.utf8", "LANG": "C"}, "utf-8", UNICODE),
        ({"LC_CTYPE": "de_DE.UTF-8"}, "utf-8", UNICODE),
        ({"LANG": "en_US.UTF-8", "TERM": "linux"}, "utf-8", CONSOLE),
        ({"LC_ALL": "C", "LANG": "en_US.UTF-8"}, "utf-8", ASCII),
        ({"LANG": "de_DE.ISO-8859-1"}, "utf-8", ASCII),
        ({}, "utf-8", ASCII),
        ({"LANG": "en_US.UTF-8"}, "latin-1", ASCII),
        ({"LANG": "en_US.UTF-8"}, None, ASCII),
    ],
)
def test_characters_follow_the_locale(environment, encoding, glyphs):
    """LC_ALL, LC_CTYPE and LANG choose the characters in this order, and the encoding bounds them.

    Every set is of single characters that the output can encode.
    """
    chosen = glyphs_for(environment, encoding)
    assert chosen is glyphs
    text = chosen.bars + chosen.vertical + chosen.corner + chosen.horizontal + chosen.tick
    assert len(chosen.bars) == 9
    assert len(text) == 13
    assert text.encode(encoding or "ascii")


def fall(n_rows, style, n_total=None, height=5):
    """Draw rows of rising levels, the newest the loudest, and return the canvas."""
    history = [HistoryRow(10.0 - k, np.full(33, -float(k))) for k in range(n_rows)]
    canvas = Canvas(40, height)
    rows = WaterfallRows(history, n_rows if n_total is None else n_total, 10.0)
    draw_waterfall(canvas, Area(0, 8, height, 32), rows, AXIS, LevelRange(-63.0, 0.0), style)
    return canvas


def test_rows_keep_their_half_while_they_move():
    """An odd number of rows leaves the upper half of the first line empty."""
    even, odd = fall(4, COLOUR), fall(4, COLOUR, 5)
    assert even.pens[0, 8] == shade(63) + BEHIND * shade(62)
    assert odd.pens[0, 8] == shade(0) + BEHIND * shade(63)
    assert odd.pens[1, 8] == shade(62) + BEHIND * shade(61)
    assert (even.scrolled.position, odd.scrolled.position) == (2, 3)


@pytest.mark.parametrize("style", [Style("none"), Style("none", ASCII), Style("256", ASCII)])
def test_without_halves_a_line_is_a_row(style):
    """Without colours or half blocks each line shows one row, as characters or as colours."""
    canvas = fall(4, style)
    assert canvas.scrolled.position == 4
    if style.has_colour:
        assert canvas.pens[:4, 8].tolist() == [BEHIND * shade(63 - k) for k in range(4)]
    else:
        assert canvas.lines(style)[0][8:] == "@" * 32
    assert not canvas.pens[4].any()


def test_ages_are_short():
    """Ages have at most six characters, up to days."""
    for age_s, text in ((0.0, "0.0s"), (99.9, "99.9s"), (100.0, "1.7m"), (1e5, "27.8h")):
        canvas = Canvas(40, 2)
        rows = WaterfallRows([HistoryRow(10.0 - age_s, np.zeros(33))], 1, 10.0)
        draw_waterfall(canvas, Area(0, 8, 2, 32), rows, AXIS, SHOWN, Style())
        assert canvas.lines(Style())[0][:7].strip() == text


def test_rows_of_a_period_become_their_maximum():
    """Rows within a period are one row of the waterfall: the highest level of each bin."""
    history = RowHistory()
    for k in range(10):
        levels = np.full(4, -50.0)
        levels[k % 4] = -float(k)
        history.push(levels, 100.0 + 0.02 * k, 0.1)
    assert len(history.rows) == history.n_rows == 2
    assert history.rows[0].levels.tolist() == [-4.0, -1.0, -2.0, -3.0]


def test_the_rhythm_is_kept():
    """A row comes after each period on average, whatever the times of the messages."""
    history = RowHistory()
    for k in range(1000):
        history.push(np.zeros(4), 5.0 + 0.023 * k, 0.1)
    assert history.n_rows == pytest.approx(230, abs=2)
    history.push(np.zeros(4), 1000.0, 0.1)
    history.push(np.zeros(4), 1000.01, 0.1)
    assert history.n_rows <= 233


@pytest.mark.parametrize("n_bins", [33, 2**20 + 1])
def test_the_memory_of_rows_is_bounded(n_bins):
    """At most 1024 rows are kept, in at most 64 MiB."""
    history = RowHistory()
    row = np.zeros(n_bins)
    for k in range(ROWS_MAX + 10 if n_bins < 100 else 20):
        history.push(row, float(k), 0.1)
    assert sum(one.levels.nbytes for one in history.rows) <= BYTES_MAX
    assert len(history.rows) == (ROWS_MAX if n_bins < 100 else 15)


def test_rows_are_reduced_once():
    """A row's columns are computed once for an axis, and again for another one."""
    row = HistoryRow(0.0, np.arange(33.0))
    columns = row.columns(AXIS)
    assert row.columns(AXIS) is columns
    other = frequency_axis(FS, NFFT, 16, 0, (0.0, 1.0), 0.0, "linear")
    assert len(row.columns(other)) == 16


def test_shades_cover_the_range():
    """The top of the range has the last shade, its bottom the first."""
    assert fall(1, Style("256", ASCII)).pens[0, 8] == BEHIND * shade(N_SHADES - 1)
