"""Characters missing from the usual typefaces: fonts from fontconfig, or a warning."""

import logging
import stat

import numpy as np
import pypdfium2
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from PIL import ImageFont

from spectrod.formats.picture import fonts, lettering
from spectrod.formats.picture.encode import PictureMetadata
from spectrod.formats.picture.lettering import report_missing, text_width, typeset
from spectrod.formats.picture.pdf import PdfSheet
from spectrod.formats.picture.sheet import Sheet
from spectrod.formats.picture.theme import THEMES
from spectrod.formats.picture.vector import VectorSheet

HAN, WHALE, THAI = "\u4e2d", "\U0001f40b", "\u0e17"
"""The first is in the found font, the others are in none."""


def rectangle(left, bottom, right, top):
    pen = TTGlyphPen(None)
    pen.moveTo((left, bottom))
    for point in ((left, top), (right, top), (right, bottom)):
        pen.lineTo(point)
    pen.closePath()
    return pen.glyph()


@pytest.fixture(scope="module")
def font_path(tmp_path_factory):
    """Make a font with one Han character, a filled square that is red if it has colours."""
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder([".notdef", "han"])
    builder.setupCharacterMap({ord(HAN): "han"})
    glyphs = {".notdef": rectangle(0, 0, 300, 500), "han": rectangle(100, 0, 900, 800)}
    builder.setupGlyf(glyphs)
    builder.setupHorizontalMetrics({".notdef": (500, 0), "han": (1000, 100)})
    builder.setupHorizontalHeader(ascent=900, descent=-200)
    builder.setupNameTable({"familyName": "Square", "styleName": "Regular"})
    builder.setupOS2(sTypoAscender=900, usWinAscent=900, usWinDescent=200)
    builder.setupPost()
    builder.setupCOLR({"han": [("han", 0)]})
    builder.setupCPAL([[(0.5, 0.0, 0.0, 1.0)]])
    path = tmp_path_factory.mktemp("fonts") / "square.ttf"
    builder.save(path)
    return path


pytestmark = pytest.mark.usefixtures("no_typefaces")


@pytest.fixture
def fc_match(monkeypatch, tmp_path):
    """Replace the program with a script, and count its runs."""
    log = tmp_path / "asked"
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def install(script):
        program = tmp_path / "fc-match"
        program.write_text(f'#!/bin/sh\necho "$@" >> "{log}"\n{script}\n')
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return lambda: log.read_text().splitlines() if log.exists() else []

    return install


def ink_of(text, size=20):
    sheet = Sheet(200, 60)
    sheet.text((10, 30), text, size)
    return sheet.coverage()


def offer_one_size(monkeypatch):
    """Let fonts be those with coloured bitmaps of 128 px, which have no other size."""
    truetype = ImageFont.truetype

    def of_one_size(font, size, *arguments, **keywords):
        if size != 128 and isinstance(font, str):  # else Pillow's own
            raise OSError("invalid pixel size")
        return truetype(font, size, *arguments, **keywords)

    monkeypatch.setattr(ImageFont, "truetype", of_one_size)


def warnings(caplog):
    return [record.getMessage() for record in caplog.records]


def test_a_font_is_found_for_characters_that_the_usual_ones_lack(fc_match, font_path, caplog):
    """A missing character is drawn with the font from fontconfig, at its width and baseline."""
    asked = fc_match(f"printf '0|{font_path}'")
    with caplog.at_level(logging.WARNING):
        report_missing((f"a{HAN}b",))
        ink = ink_of(HAN)
    assert warnings(caplog) == []
    rows, columns = (np.flatnonzero((ink == 255).any(axis=axis)) for axis in (1, 0))
    assert (columns[0], columns[-1]) == (12, 27)
    assert len(rows) == 16
    letter = np.flatnonzero((ink_of("H") > 128).any(axis=1))
    assert rows[-1] == letter[-1]
    assert text_width(HAN, 20) == 20.0
    assert text_width(f"a{HAN}b", 20) == pytest.approx(20.0 + text_width("a", 20) * 2, abs=2.0)
    assert len(asked()) == 1
    assert asked()[0].endswith("sans-serif:charset=4e2d:color=false")


def test_characters_without_a_font_are_named_in_one_warning(fc_match, font_path, caplog):
    """Characters without a font are drawn as question marks and named once in a warning."""
    fc_match(f"printf '0|{font_path}'")
    title = f"{THAI}{HAN}{WHALE}{THAI}.wav"
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            report_missing((title, f"left {THAI}"))
            assert ink_of(title).any()
    assert warnings(caplog) == [
        f"no font for {THAI} (U+0E17), {WHALE} (U+1F40B): drawn as ?; install a font that has them"
    ]
    assert [run.text for run in typeset(title, 13)] == ["", "?", HAN, "??", ".wav"]


def test_fontconfig_is_asked_once_for_the_characters_of_a_text(fc_match, font_path):
    """A text that is measured many times queries fontconfig once."""
    asked = fc_match(f"printf '0|{font_path}'")
    title = f"{HAN}{THAI}{WHALE}" * 40
    short = lettering.shorten(title, 17, 300.0)
    assert 0.0 < text_width(short, 17) <= 300.0
    assert len(asked()) <= 3


def test_a_warning_names_a_few_characters_and_counts_the_others(fc_match, caplog):
    """A warning names a few characters and counts the rest, so it stays one short line."""
    fc_match("exit 1")
    report_missing(("".join(map(chr, range(0x4E00, 0x4E00 + 300))),))
    assert "(U+4E13) and 280 more: drawn as ?" in warnings(caplog)[0]
    assert len(warnings(caplog)) == 1


@pytest.mark.parametrize(
    "script", ["exit 1", "true", "echo nonsense", "printf '0|/no/such/font'", "printf '7|FONT'"]
)
def test_a_reply_that_names_no_usable_font_is_no_font(fc_match, font_path, script):
    """An invalid reply of fontconfig counts as no font, and the text is still drawn."""
    fc_match(script.replace("FONT", str(font_path)))
    assert [run.text for run in typeset(f"x{HAN}", 13)] == ["x", "?"]


def test_a_program_that_does_not_reply_is_given_up(fc_match, monkeypatch, caplog):
    """A program that does not reply is killed and not queried again for the same characters."""
    monkeypatch.setattr(fonts, "FC_MATCH_TIMEOUT_S", 0.05)
    asked = fc_match("exec sleep 60")
    for _ in range(3):
        assert [run.text for run in typeset(HAN, 13)] == ["", "?"]
    assert len(asked()) <= 2
    assert "fonts cannot be looked for" in warnings(caplog)[0]


def test_the_warning_names_a_missing_fontconfig(monkeypatch, caplog):
    """Without fontconfig, an optional program, the warning says so."""
    monkeypatch.setenv("PATH", "")
    report_missing((HAN,))
    assert warnings(caplog) == [
        f"no font for {HAN} (U+4E2D): drawn as ?; install a font that has them, and fontconfig"
    ]


def test_few_characters_are_remembered(fc_match, monkeypatch):
    """A bounded number of characters is remembered."""
    fc_match("exit 1")
    monkeypatch.setattr(fonts, "KNOWN_MAX", 5)
    for first in range(0x4E00, 0x4E40, 4):
        typeset("".join(map(chr, range(first, first + 4))), 13)
        assert len(lettering._finder._known) <= 5


def test_coloured_pictures_are_scaled_and_drawn_in_ink(fc_match, font_path, monkeypatch):
    """Colour bitmap glyphs are scaled to the text and drawn in ink by their darkness."""
    fc_match(f"printf '0|{font_path}'")
    offer_one_size(monkeypatch)
    ink = ink_of(HAN)
    columns = np.flatnonzero((ink > 128).any(axis=0))
    assert text_width(HAN, 20) == 20.0
    assert (columns[0], columns[-1]) == (12, 27)
    # Of the red, 0.5 of full, the luminance is 0.299 * 0.5.
    assert np.median(ink[ink > 128]) == pytest.approx(255 * (1.0 - 0.1495), abs=3)


def test_coloured_pictures_have_their_colours_in_a_pdf(fc_match, font_path, monkeypatch):
    """Colour glyphs keep their colours in a PDF, which has no palette."""
    fc_match(f"printf '0|{font_path}'")
    offer_one_size(monkeypatch)
    with PdfSheet(100, 60, THEMES["dark"], bytes(768)) as sheet:
        sheet.text((10, 30), HAN, 20)
        content = sheet.pdf(PictureMetadata("", "", 0, "{}"))
    document = pypdfium2.PdfDocument(content)
    pixels = np.asarray(document[0].render(scale=96 / 72).to_pil().convert("RGB"), np.int16)
    document.close()
    is_red = (pixels[:, :, 0] > 115) & (pixels[:, :, 1] < 20)
    rows, columns = (np.flatnonzero(is_red.any(axis=axis)) for axis in (1, 0))
    assert (columns[0], columns[-1]) == (pytest.approx(12, abs=1), pytest.approx(27, abs=1))
    assert len(rows) == pytest.approx(16, abs=1)


def test_variation_selectors_are_no_characters_of_their_own(fc_match):
    """Variation selectors are not drawn, so a heart with one is a plain heart."""
    fc_match("exit 1")
    assert "".join(run.text for run in typeset("a\ufe0fb\U000e0100", 13)) == "ab"


def test_an_svg_keeps_characters_that_its_viewer_may_have(fc_match, font_path):
    """In an SVG only texts measured here get a width, so viewers do not squeeze the others."""
    fc_match(f"printf '0|{font_path}'")
    sheet = VectorSheet(300, 100, THEMES["light"], bytes(768))
    for title in (f"{HAN}x", f"{WHALE}x"):
        sheet.text((10, 20), title, 20)
    measured, unknown = sheet._elements
    assert f">{HAN}x</text>" in measured
    assert f'textLength="{text_width(f"{HAN}x", 20):.1f}"' in measured
    assert f">{WHALE}x</text>" in unknown
    assert "textLength" not in unknown
