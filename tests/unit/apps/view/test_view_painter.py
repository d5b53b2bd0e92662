"""Pictures on a terminal: a model of it shows exactly what was drawn."""

import numpy as np
import pytest

from spectrod.apps.view.canvas import Canvas, Scrolled
from spectrod.apps.view.colour import BEHIND, REVERSE, Style, line_colour, shade
from spectrod.apps.view.glyphs import ASCII
from spectrod.apps.view.painter import TerminalPainter

COLUMNS, ROWS = 40, 12
AREA = Scrolled(4, 10, 0)
STYLES = [Style("24-bit"), Style("256"), Style("none"), Style("none", ASCII)]


def random_canvas(rng, before, position):
    """Make a picture like the one before: some other text, and an area that has moved."""
    canvas = Canvas(COLUMNS, ROWS)
    canvas.codes[:], canvas.pens[:] = before.codes, before.pens
    for _ in range(rng.integers(4)):
        row, column = rng.integers(ROWS), rng.integers(COLUMNS)
        pens = [0, shade(3), line_colour(2), shade(1) + BEHIND * shade(63), REVERSE, BEHIND * 4]
        canvas.text(row, column, "".join(rng.choice(list("ab c#"), 6)), int(rng.choice(pens)))
    canvas.scrolled = Scrolled(AREA.first, AREA.last, position)
    return canvas


def shown_by(model, style, canvas):
    """Return what a terminal shows after a single picture."""
    screen = model(COLUMNS, ROWS)
    screen.feed(TerminalPainter(style).paint(canvas).encode())
    return screen.cells


@pytest.mark.parametrize("style", STYLES)
def test_differences_show_the_whole_picture(screen_model, style):
    """After any pictures the characters are those of the last one, whatever was scrolled."""
    rng = np.random.default_rng(7)
    screen, painter = screen_model(COLUMNS, ROWS), TerminalPainter(style)
    canvas, position = Canvas(COLUMNS, ROWS), 0
    for k in range(300):
        n_lines = int(rng.integers(9)) if k % 3 == 0 else 0
        position += n_lines
        canvas = random_canvas(rng, canvas, position)
        if 0 < n_lines < AREA.last - AREA.first:
            for array in (canvas.codes, canvas.pens):
                moved = array[AREA.first : AREA.last - n_lines].copy()
                array[AREA.first + n_lines : AREA.last] = moved
        if k % 50 == 49:
            painter.forget()
        screen.feed(painter.paint(canvas).encode())
        expected = ["".join(map(chr, row)).rstrip() for row in canvas.codes]
        assert screen.lines() == expected
        assert not screen.overflowed


def test_differences_show_the_same_colours(screen_model):
    """Pens after many differences are those of the picture drawn at once."""
    rng = np.random.default_rng(3)
    style = Style("256")
    screen, painter = screen_model(COLUMNS, ROWS), TerminalPainter(style)
    canvas = Canvas(COLUMNS, ROWS)
    for position in range(60):
        canvas = random_canvas(rng, canvas, position)
        screen.feed(painter.paint(canvas).encode())
    last = Canvas(COLUMNS, ROWS)
    last.codes[:], last.pens[:] = canvas.codes, canvas.pens
    once = shown_by(screen_model, style, last)
    for row in range(ROWS):
        for column in range(COLUMNS):
            pen = int(canvas.pens[row, column])
            for cells in (screen.cells, once):
                assert state_of(cells[row][column][1]) == state_of(style.switch(0, pen)[2:-1])


def state_of(pen):
    """Return foreground, background and reverse after sequences of 256 colours."""
    state = {"front": "39", "back": "49", "reverse": "27"}
    parameters = iter(one for one in pen.split(";") if one)
    for one in parameters:
        if one == "0":
            state = {"front": "39", "back": "49", "reverse": "27"}
        elif one in ("38", "48"):
            assert next(parameters) == "5"
            state["front" if one == "38" else "back"] = next(parameters)
        else:
            state[{"3": "front", "4": "back"}.get(one[0], "reverse")] = one
    return state


def test_a_scrolled_picture_costs_little():
    """A waterfall that moves by a line costs less than a fifth of drawing it."""
    rng = np.random.default_rng(1)
    pens = rng.integers(1, 64, (100, 200)) + BEHIND * rng.integers(1, 64, (100, 200))
    painter, sizes = TerminalPainter(Style("24-bit")), []
    for position in (20, 21):
        canvas = Canvas(200, 60)
        canvas.codes[20:50] = ord("▀")
        canvas.pens[20:50] = pens[50 - position : 80 - position]
        canvas.scrolled = Scrolled(20, 50, position)
        sizes.append(len(painter.paint(canvas)))
    assert 5 * sizes[1] < sizes[0]


def test_nothing_is_written_for_the_same_picture():
    """A picture that is shown already costs nothing, and all of it after it was forgotten."""
    painter = TerminalPainter(Style("24-bit"))
    canvas = Canvas(20, 5).texts(["hello"])
    first = painter.paint(canvas)
    assert "hello" in first
    assert painter.paint(Canvas(20, 5).texts(["hello"])) == ""
    painter.forget()
    assert painter.paint(Canvas(20, 5).texts(["hello"])) == first
    assert "hello" in painter.paint(Canvas(21, 5).texts(["hello"]))


def test_text_is_cut_at_the_edges():
    """Text beyond the last column or line is left out."""
    canvas = Canvas(4, 2)
    canvas.text(0, 2, "abcd")
    canvas.text(0, 9, "x")
    canvas.text(5, 0, "x")
    assert canvas.lines(Style()) == ["  ab"]


@pytest.mark.parametrize("cut", range(1, len("\x1b[38;5;17m─".encode())))
def test_the_model_drops_what_is_cancelled(screen_model, cut):
    """CAN in the middle of a character or of a sequence leaves what was shown."""
    screen = screen_model(4, 1)
    screen.feed(b"ab" + "\x1b[38;5;17m─".encode()[:cut])
    screen.feed(b"\x18\x1b[0mc")
    assert screen.lines() == ["abc"]
