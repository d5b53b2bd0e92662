import pytest

from spectrod.formats.picture import lettering
from spectrod.formats.picture.axes import Axis, Tick
from spectrod.formats.picture.lettering import shorten, text_width, wrap
from spectrod.formats.picture.page_layout import Margins, arrange, bare, fitting, page_limits
from spectrod.formats.picture.sheet import Sheet
from spectrod.formats.picture.surface import Box


def test_short_texts_stay():
    """A text that fits stays unchanged."""
    assert shorten("speech.wav", 13, 500.0) == "speech.wav"


def test_long_texts_keep_both_ends():
    """A shortened file name fits and keeps its start and its suffix."""
    short = shorten("a" * 200 + ".wav", 13, 200.0)
    assert short.startswith("aaa")
    assert short.endswith(".wav")
    assert "…" in short
    assert text_width(short, 13) <= 200.0


def test_wrapped_lines_fit_and_lose_nothing():
    """Wrapped lines fit and contain all pieces in order."""
    pieces = ["hann window", "hop 1024", "bin width 11.72 Hz", "ENBW 17.58 Hz"]
    lines = wrap(pieces, 12, 180.0)
    assert len(lines) > 1
    assert all(text_width(line, 12) <= 180.0 for line in lines)
    assert [piece.strip() for line in lines for piece in line.split("·")] == pieces


def test_long_texts_are_shortened_at_once(monkeypatch):
    """The number of measurements depends on the room and not on the length of the text."""
    measured = []

    def width_of(text, size):
        measured.append(text)
        return 5.0 * len(text)

    monkeypatch.setattr(lettering, "text_width", width_of)
    assert shorten("x" * 100_000, 17, 100.0) == "x" * 10 + "…" + "x" * 9
    assert len(measured) <= 101


@pytest.mark.parametrize("align", [0.0, 0.5, 1.0])
def test_text_stands_where_it_is_anchored(align):
    """Text starts, is centred or ends at its anchor, with digits centred vertically."""
    sheet = Sheet(200, 60)
    sheet.text((100, 30), "1000", 20, align=align)
    ink = sheet.coverage() > 128
    columns, rows = ink.any(axis=0).nonzero()[0], ink.any(axis=1).nonzero()[0]
    width = text_width("1000", 20)
    assert columns[0] >= 100 - align * width - 1.0
    assert columns[-1] <= 100 + (1.0 - align) * width + 1.0
    assert (rows[0] + rows[-1]) / 2.0 == pytest.approx(30.0, abs=1.5)


@pytest.mark.usefixtures("no_typefaces")
def test_characters_without_a_glyph_are_replaced(monkeypatch):
    """A character without a glyph becomes a question mark, and control characters are escaped."""
    monkeypatch.setenv("PATH", "")
    runs = lettering.typeset("Grün\n", 13)
    assert [(run.text, run.missing) for run in runs] == [("Gr", ""), ("?", "ü"), (r"n\n", "")]


@pytest.mark.usefixtures("without_freetype")
def test_bitmap_letters_serve_without_freetype():
    """Without FreeType texts are still drawn and measured."""
    sheet = Sheet(200, 40)
    sheet.text((10, 20), "24 kHz ü", 13)
    assert sheet.coverage().any()
    assert text_width("24 kHz", 13) > 0.0


def axis_of(*labels):
    return Axis(tuple(Tick(float(n), label) for n, label in enumerate(labels)), "title")


def test_the_first_axis_without_collisions_is_taken():
    """The first candidate whose labels keep their distance is chosen."""
    crowded, roomy = axis_of("long label", "long label", "long label"), axis_of("a", "b")
    chosen = fitting([crowded, roomy], lambda v: v * 20.0, len, spacing=12.0)
    assert chosen is roomy


def test_one_label_is_worse_than_two():
    """One label gives no scale, so it is used only if no candidate fits two."""
    single, double = axis_of("a"), axis_of("a", "b")
    assert fitting([single, double], lambda v: v * 20.0, len, spacing=12.0) is double
    assert fitting([single, double], lambda v: v * 2.0, len, spacing=12.0) is single


def test_no_axis_fits():
    """If no candidate fits, the axis keeps its title without ticks."""
    crowded = axis_of("long label", "long label")
    assert fitting([crowded], lambda v: v * 2.0, len, spacing=12.0) == Axis((), "title")


def overlaps(a: Box, b: Box) -> bool:
    return a.left < b.right and b.left < a.right and a.top < b.bottom and b.top < a.bottom


def margins_of(**changes):
    texts = {
        "left": ("kHz", "0", "10.000"),
        "bar": ("-100", "-20"),
        "right": ("dBFS", "waveform"),
        "overhang": 0,
        "footer": ("x" * 30,) * 4,
        "has_title": True,
    }
    return Margins(**(texts | changes))


@pytest.mark.parametrize("strips", [(), ("waveform",), ("level", "waveform")])
@pytest.mark.parametrize("channels", [1, 2, 5])
@pytest.mark.parametrize("size", [(200, 50), (1000, 512)])
def test_parts_do_not_overlap_and_stay_on_the_page(channels, size, strips):
    """Plots, strips, bars and footer do not overlap and stay on a page of bounded size."""
    page = arrange(size, channels, strips, margins_of())
    along = [box for boxes in page.strips for box in boxes]
    boxes = [*page.plots, *along, *page.bars]
    pairs = [(a, b) for n, a in enumerate(boxes) for b in boxes[n + 1 :]]
    assert not any(overlaps(a, b) for a, b in pairs)
    assert all((box.width, box.height) == size for box in page.plots)
    assert all((box.left, box.width) == (page.plots[0].left, size[0]) for box in along)
    assert len(along) == channels * len(strips)
    assert len(page.bars) == (channels if strips else 1)
    assert page.bars[0].right < page.width
    assert page.footer_y > page.bottom
    assert page.footer_y + 17 * (len(page.footer) - 1) < page.height
    largest = page_limits(size, channels, len(strips))
    assert page.width <= largest[0]
    assert page.height <= largest[1]


def test_the_waveform_is_above_and_the_level_below():
    """The waveform is above and the level below, whatever the order of the options."""
    page = arrange((300, 100), 1, ("level", "waveform"), margins_of())
    level, waveform = page.strips[0]
    assert waveform.bottom < page.plots[0].top < page.plots[0].bottom < level.top
    assert page.top(0) == waveform.top
    assert page.bottom == level.bottom


def test_a_long_first_time_label_makes_room_for_itself():
    """The margin grows with a first time label that extends beyond the plot."""
    assert arrange((300, 100), 1, (), margins_of(overhang=90)).plots[0].left == 108


def test_bare_plots_have_no_margins():
    """A raw picture has the size of its plots, which touch."""
    page = bare((300, 100), 3)
    assert (page.width, page.height) == (300, 300)
    assert [box.top for box in page.plots] == [0, 100, 200]
