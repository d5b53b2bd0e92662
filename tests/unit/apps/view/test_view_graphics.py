"""The waterfall as pixels: questions to the terminal, kitty's protocol, sixels."""

import base64
import io
import re

import numpy as np
import pytest
from PIL import Image

from spectrod.apps.view.area import Area
from spectrod.apps.view.axes import LevelRange, frequency_axis
from spectrod.apps.view.canvas import Canvas
from spectrod.apps.view.colour import N_SHADES, Style, shades
from spectrod.apps.view.display import Display
from spectrod.apps.view.graphics import Graphics, Probe
from spectrod.apps.view.history import HistoryRow
from spectrod.apps.view.pixels import PixelWaterfall
from spectrod.apps.view.sixel import encode_sixels
from spectrod.apps.view.waterfall import draw_pixels

KITTY_OK, CELL = b"\x1b_Gi=31;OK\x1b\\", b"\x1b[6;20;9t"
SIXEL_DA, PLAIN_DA = b"\x1b[?62;4;22c", b"\x1b[?62;22c"
KITTY, SIXEL = Graphics("kitty", 4, 8), Graphics("sixel", 4, 8)
SHOWN = LevelRange(-63.0, 0.0)
COLUMNS, LINES = 10, 5


def asked(*replies, term="xterm", window=None, late_s=0.0):
    probe = Probe({"TERM": term}, 100.0)
    questions = [probe.question(), *(probe.hear(reply, 100.0 + late_s) for reply in replies)]
    return questions, probe.graphics(window)


@pytest.mark.parametrize(
    ("replies", "window", "graphics"),
    [
        ([PLAIN_DA, KITTY_OK, CELL, PLAIN_DA], None, Graphics("kitty", 9, 20)),
        ([PLAIN_DA, KITTY_OK, PLAIN_DA], None, Graphics("kitty", 10, 20)),
        ([SIXEL_DA, KITTY_OK, CELL, SIXEL_DA], None, Graphics("kitty", 9, 20)),
        ([SIXEL_DA, CELL, SIXEL_DA], None, Graphics("sixel", 9, 20)),
        ([SIXEL_DA, SIXEL_DA], (8, 16), Graphics("sixel", 8, 16)),
        ([SIXEL_DA, SIXEL_DA], None, None),
        ([SIXEL_DA, b"\x1b[6;9999;9999t", SIXEL_DA], None, None),
        ([PLAIN_DA, KITTY_OK, b"\x1b[6;9999;0t", PLAIN_DA], None, Graphics("kitty", 4, 64)),
        ([PLAIN_DA, CELL, PLAIN_DA], None, None),
        ([PLAIN_DA, KITTY_OK], None, None),
        ([b"\x1b[?4c", b"\x1b[?4c"], (8, 16), None),
        ([], (8, 16), None),
    ],
)
def test_graphics_are_those_that_the_terminal_answers(replies, window, graphics):
    """Kitty's answer comes before sixels; sixels need a size of characters within bounds."""
    assert asked(*replies, window=window)[1] == graphics


def test_only_a_terminal_that_answers_is_asked_more():
    """The question in kitty's protocol follows the first answer, once; the console gets none."""
    questions, _ = asked()
    assert questions == ["\x1b[c"]
    questions, _ = asked(PLAIN_DA, KITTY_OK, CELL, PLAIN_DA, PLAIN_DA)
    assert ["a=q" in question for question in questions] == [False, True, *[False] * 4]
    questions, graphics = asked(b"\x1b[?6c", term="linux")
    assert (questions, graphics) == (["\x1b[c", ""], None)


def test_late_answers_are_ignored():
    """An answer after the limit asks nothing more and starts no graphics."""
    assert asked(PLAIN_DA, KITTY_OK, PLAIN_DA, late_s=2.1) == (["\x1b[c", "", "", ""], None)


AXIS = frequency_axis(48000.0, 64, 4 * COLUMNS, 0, (0.0, 1.0), 0.0, "linear")
"""One axis: rows are drawn again on another one."""


def make_picture(n_rows, n_kept=1000, graphics=KITTY, generation=0):
    """Make a waterfall whose row k has a level of minus (k mod 60) dB in all bins."""
    numbers = range(n_rows - 1, max(-1, n_rows - 1 - n_kept), -1)
    history = [HistoryRow(float(k), np.full(33, -float(k % 60))) for k in numbers]
    area = Area(2, 7, LINES, COLUMNS)
    return PixelWaterfall(area, graphics, AXIS, SHOWN, history, n_rows, generation)


def expected_shades(n_rows, n_kept=1000):
    """Return the shade of each line of pixels, the newest rows at the top of their strip."""
    picture = make_picture(n_rows)
    per_strip, top = picture.rows_per_strip, picture.position
    column = []
    for number in range(top, top - LINES, -1):
        rows = range((number + 1) * per_strip - 1, number * per_strip - 1, -1)
        column += [
            N_SHADES - 1 - k % 60 if max(0, n_rows - n_kept) <= k < n_rows else 0
            for k in rows
            for _ in range(2)
        ]
    return column


@pytest.mark.parametrize(
    ("n_rows", "n_kept"), [(1, 9), (4, 9), (5, 9), (19, 99), (55, 99), (55, 6)]
)
def test_strips_are_the_waterfall(n_rows, n_kept):
    """Strips below each other have two pixels for each row, the newest on top."""
    picture = make_picture(n_rows, n_kept)
    strips = list(picture.strips())
    pixels = np.concatenate([picture.shades(strip) for strip in strips])
    assert pixels.shape[1] == 4 * COLUMNS
    assert (pixels == pixels[:, :1]).all()
    expected = expected_shades(n_rows, n_kept)[: len(pixels)]
    assert pixels[:, 0].tolist() == expected
    assert sum(strip.n_rows for strip in strips) == min(
        n_rows, n_kept, sum(map(bool, expected)) // 2
    )


class KittyModel:
    """What a terminal shows of kitty's commands: images by their line."""

    _COMMAND = re.compile(r"\x1b\[(\d+);(\d+)H|\x1b_G([^;\x1b]*);?([^\x1b]*)\x1b\\")

    def __init__(self):
        self.images, self.lines = {}, {}
        self.n_sent = 0
        self._keys, self._data = {}, ""

    def feed(self, text):
        at = row = 0
        while at < len(text):
            command = self._COMMAND.match(text, at)
            assert command, repr(text[at : at + 40])
            at = command.end()
            if command[1]:
                row = int(command[1]) - 1
                continue
            keys = dict(pair.split("=") for pair in command[3].split(","))
            assert len(command[4]) <= 4096
            if "a" in keys:
                assert keys["q"] == "2"
                self._keys, self._data = keys, ""
            self._data += command[4]
            if keys.get("m", "0") == "0":
                self._act(self._keys, row)

    def _act(self, keys, row):
        if keys["a"] == "d":
            if keys["d"] == "A":
                self.images, self.lines = {}, {}
            else:
                self.images.pop(keys["i"], None)
                self.lines.pop(keys["i"], None)
            return
        if keys["a"] == "T":
            data = base64.b64decode(self._data, validate=True)
            self.images[keys["i"]] = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
            self.n_sent += 1
        assert keys["i"] in self.images
        self.lines[keys["i"]] = row

    def column(self):
        by_line = sorted((row, self.images[key]) for key, row in self.lines.items())
        rows = [row for row, _ in by_line]
        assert rows == list(range(2, 2 + len(rows)))
        return np.concatenate([image[:, 0] for _, image in by_line]).tolist()


def draw_with(display, picture):
    canvas = Canvas(20, LINES + 3)
    if picture is not None:
        draw_pixels(canvas, picture, 100.0, Style().glyphs)
    return display.paint(canvas)


def test_kitty_shows_the_waterfall_at_every_step():
    """Whatever rows come, the images on the screen are the waterfall; each row is sent once."""
    display, model = Display(Style("24-bit", graphics=KITTY)), KittyModel()
    n_rows, steps = 0, np.random.default_rng(2).integers(0, 9, 60)
    for step in steps:
        n_rows += int(step)
        if not n_rows:
            continue
        model.feed(_kitty_part(draw_with(display, make_picture(n_rows))))
        palette = [list(rgb) for rgb in shades()]
        shown = [palette.index(rgb) for rgb in model.column()]
        assert shown == expected_shades(n_rows)[: len(shown)]
    assert model.n_sent <= 2 * len(steps) + n_rows // 4


def _kitty_part(text):
    """Return kitty's commands with the cursor positions directly before them."""
    return "".join(re.findall(r"(?:\x1b\[\d+;\d+H)?\x1b_G[^\x1b]*\x1b\\", text))


def test_kitty_images_end_with_the_waterfall():
    """Without a waterfall, as under the help, and with rows of another channel, images go."""
    display, model = Display(Style("24-bit", graphics=KITTY)), KittyModel()
    model.feed(_kitty_part(draw_with(display, make_picture(30))))
    assert model.lines
    model.feed(_kitty_part(draw_with(display, None)))
    assert not model.images
    model.feed(_kitty_part(draw_with(display, make_picture(30))))
    model.feed(_kitty_part(draw_with(display, make_picture(31, 1, generation=1))))
    assert len(model.lines) == 1
    model.feed(display.farewell)
    assert not model.images


def decode_sixels(text):
    """Return the pixels of a device control string, -1 where none is set."""
    match = re.fullmatch(r'\x1bP0;1;0q"1;1;(\d+);(\d+)(.*)\x1b\\', text, re.DOTALL)
    width, height = int(match[1]), int(match[2])
    pixels = np.full((height + 6, width), -1)
    x = top = colour = 0
    for token in re.finditer(r"#(\d+)(;2;\d+;\d+;\d+)?|!(\d+)([?-~])|([?-~])|([$-])", match[3]):
        if token[1]:
            colour = int(token[1])
        elif token[6]:
            x, top = 0, top + (6 if token[6] == "-" else 0)
        else:
            bits, n = ord(token[4] or token[5]) - 63, int(token[3] or 1)
            for k in range(6):
                if bits >> k & 1:
                    pixels[top + k, x : x + n] = colour
            x += n
    assert (pixels[height:] == -1).all()
    return pixels[:height]


@pytest.mark.parametrize("shape", [(1, 1), (6, 7), (20, 33), (17, 300)])
def test_sixels_are_the_shades(shape):
    """Decoded sixels are the shades, for heights that are no multiple of six, and for runs."""
    rng = np.random.default_rng(4)
    noise = rng.integers(0, N_SHADES, shape).astype(np.uint8)
    runs = np.repeat(noise[:, ::5], 5, axis=1)[:, : shape[1]]
    for indices in (noise, runs, np.zeros(shape, np.uint8)):
        np.testing.assert_array_equal(decode_sixels(encode_sixels(indices)), indices)


def test_sixels_move_with_the_text():
    """New rows send their strip alone; when a line is full the terminal moves the others."""
    display = Display(Style("24-bit", graphics=SIXEL))
    assert draw_with(display, make_picture(20, graphics=SIXEL)).count("\x1bP") == LINES
    text = draw_with(display, make_picture(21, graphics=SIXEL))
    assert (text.count("\x1bP"), text.count("\x1bM")) == (1, 1)
    text = draw_with(display, make_picture(22, graphics=SIXEL))
    assert (text.count("\x1bP"), text.count("\x1bM")) == (1, 0)
    assert draw_with(display, make_picture(22, graphics=SIXEL)).count("\x1bP") == 0
    text = draw_with(display, make_picture(22 + 4 * LINES, graphics=SIXEL))
    assert (text.count("\x1bP"), text.count("\x1bM")) == (LINES, 0)


def test_sixels_are_erased_with_the_waterfall():
    """Where sixels were the screen is erased: under the help, and for another channel's rows."""
    display = Display(Style("24-bit", graphics=SIXEL))
    draw_with(display, make_picture(20, graphics=SIXEL))
    assert "\x1b[2J" in draw_with(display, None)
    assert "\x1b[2J" not in draw_with(display, None)
    draw_with(display, make_picture(20, graphics=SIXEL))
    text = draw_with(display, make_picture(21, 1, SIXEL, generation=1))
    assert "\x1b[2J" in text
    assert text.count("\x1bP") == 1


def test_wide_sixels_are_tiles():
    """No image of sixels is wider than 800 pixels."""
    picture = make_picture(4, graphics=SIXEL)
    axis = frequency_axis(48000.0, 64, 4 * 500, 0, (0.0, 1.0), 0.0, "linear")
    wide = PixelWaterfall(Area(2, 7, LINES, 500), SIXEL, axis, SHOWN, picture.history, 4)
    text = draw_with(Display(Style("24-bit", graphics=SIXEL)), wide)
    assert [int(width) for width in re.findall(r'"1;1;(\d+);8', text)] == [800, 800, 400]
