"""Pictures as PDF: the rendered page against the PNG, and texts as text."""

import io
from dataclasses import replace
from importlib import metadata

import numpy as np
import pypdfium2
import pytest
from PIL import Image, ImageFont

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.description import Description
from spectrod.formats.longterm.longterm_sink import SpdSink
from spectrod.formats.picture.encode import check_format, encode
from spectrod.formats.picture.page import Plots, compose
from spectrod.formats.picture.picture_settings import PictureOptions
from spectrod.formats.picture.pixelmap import Recording, read_pixel_map
from spectrod.formats.picture.strips import Envelope
from spectrod.formats.picture.surface import Box
from spectrod.formats.picture.theme import GAP, N_LEVELS
from spectrod.lib.errors import ConfigError, InputError, UnavailableError

SPEC = SpectrumSpec(fs=8000.0, channels=2, win_length=128, hop=64, scaling="spectrum")
WIDTH, HEIGHT = 240, 64
PIXELS_PER_POINT = 96 / 72


def page_of(**options):
    """Make a page of noise of two channels, with a gap in the middle."""
    rng = np.random.default_rng(1)
    entries = rng.integers(0, N_LEVELS, (2, HEIGHT, WIDTH)).astype(np.uint8)
    entries[:, :, 100:120] = GAP
    high = rng.uniform(0.1, 0.4, (2, WIDTH)).astype(np.float32)
    high[:, 100:120] = np.nan
    plots = Plots(
        entries=entries,
        values=entries.astype(np.float32),
        limits=(-90.0, -10.0),
        n_samples=80_000,
        frames_per_pixel=1.5,
        envelope=Envelope(-high, high, high**2 / 3.0),
    )
    about = Recording(SPEC, "numpy", 1_795_211_223 * 10**9, 1, 4000, "spectrod 1.2.3")
    options = {"width": WIDTH, "height": HEIGHT, "title": "Reef <&>"} | options
    return compose(plots, about, PictureOptions(**options))


def drawn(content):
    """Render the only page with another program, at one pixel for each of the plot."""
    document = pypdfium2.PdfDocument(content)
    assert len(document) == 1
    page = document[0]
    image = page.render(scale=PIXELS_PER_POINT).to_pil().convert("RGB")
    text = page.get_textpage().get_text_range()
    document.close()
    return np.asarray(image, np.int16), text


def cut(pixels, box):
    return pixels[box.top : box.bottom, box.left : box.right]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_is_that_of_the_png(theme):
    """The page has the PNG's plots up to rounding, the strips' ink and the texts' places."""
    page = page_of(theme=theme, strips=("waveform", "level"), signals=("left", "right"))
    pdf, text = drawn(encode(page, ".pdf"))
    png = np.asarray(Image.open(io.BytesIO(encode(page, ".png"))).convert("RGB"), np.int16)
    assert pdf.shape == png.shape
    for box in page.layout.plots:
        np.testing.assert_allclose(cut(pdf, box), cut(png, box), atol=2)
    for box in (box for boxes in page.layout.strips for box in boxes):
        is_gap = np.zeros(box.width, bool)
        is_gap[98:122] = True
        difference = np.abs(cut(pdf, box) - cut(png, box))[:, ~is_gap]
        assert (difference > 60).mean() < 0.08
        hatched = cut(pdf, box)[:, 102:118].reshape(-1, 3)
        assert 0.1 < (np.ptp(hatched, axis=1) > 60).mean() < 0.6
    assert np.abs(pdf - png).mean() < 8.0
    for expected in ("Reef <&>", "left", "right", "kHz", "dBFS", "elapsed time [s]", "hann window"):
        assert expected in text


def test_fonts_are_embedded_and_the_same_page_makes_the_same_file():
    """Fonts are embedded, and the date is the recording's, so equal pages give equal files."""
    content = encode(page_of(), ".pdf")
    assert content == encode(page_of(), ".pdf")
    assert b"/FontFile2" in content
    assert b"/Subtype /Type1" not in content
    document = pypdfium2.PdfDocument(content)
    about = document.get_metadata_dict()
    document.close()
    assert about["Title"] == "Reef <&>"
    assert about["Creator"] == "spectrod 1.2.3"
    assert about["CreationDate"].startswith("D:20261120214703")


def test_a_raw_page_is_the_plots_alone(caplog):
    """A raw page has the plots below each other without margins, and embeds no font."""
    page = page_of(raw=True, title="\U0001f40b")
    pdf, text = drawn(encode(page, ".pdf"))
    assert pdf.shape == (2 * HEIGHT, WIDTH, 3)
    png = Image.open(io.BytesIO(encode(page, ".png"))).convert("RGB")
    np.testing.assert_array_equal(pdf, np.asarray(png, np.int16))
    assert text == ""
    assert caplog.records == []


@pytest.fixture
def dejavu():
    """Return the file of DejaVu Sans."""
    try:
        return ImageFont.truetype("DejaVuSans.ttf", 20).path
    except OSError:
        pytest.skip("DejaVu Sans is not installed")


def test_typefaces_that_are_found_are_embedded_too(dejavu, no_typefaces, monkeypatch):
    """Text beyond Latin-1 is text as well and embeds the typeface that has it."""
    fc_match = no_typefaces / "fc-match"
    fc_match.write_text(f"#!/bin/sh\nprintf '0|{dejavu}'\n")
    fc_match.chmod(0o700)
    monkeypatch.setenv("PATH", str(no_typefaces))
    pdf, text = drawn(encode(page_of(title="Рыба в море"), ".pdf"))
    assert "Рыба в море" in text
    line = pdf[18:30, 40:200].min(axis=2)
    assert (line < 100).mean() > 0.05


@pytest.mark.usefixtures("dejavu")
@pytest.mark.parametrize("title", ["مرحبا", "e\u0301"])
def test_texts_that_must_be_shaped_are_drawn_by_pillow(title):
    """Right-to-left text and combining marks are embedded as pictures from the PNG."""
    page = page_of(title=title)
    pdf, text = drawn(encode(page, ".pdf"))
    png = np.asarray(Image.open(io.BytesIO(encode(page, ".png"))).convert("RGB"), np.int16)
    assert title not in text
    area = Box(page.layout.plots[0].left, 12, 100, 24)
    ink = [255 - cut(pixels, area).min(axis=2) for pixels in (pdf, png)]
    assert ink[0].sum() == pytest.approx(ink[1].sum(), rel=0.4)
    centres = [(one.sum(axis=0) * np.arange(100)).sum() / one.sum() for one in ink]
    assert centres[0] == pytest.approx(centres[1], abs=1.0)


@pytest.mark.usefixtures("without_freetype")
def test_letters_of_a_bitmap_font_are_pictures():
    """Without FreeType there is no font to embed, so letters are pictures."""
    pdf, text = drawn(encode(page_of(), ".pdf"))
    assert text.strip() == ""
    assert (pdf[12:36, 40:100].min(axis=2) < 128).any()


def test_level_statistics_are_drawn_as_pdf(tmp_path):
    """Level statistics are drawn as PDF with the description of their pixels."""
    spec = SpectrumSpec(8000.0, win_length=64, hop=64, scaling="density")
    path = tmp_path / "x.pdf"
    sink = SpdSink(path, Description(spec, "a", ("a",), "spectrod"), PictureOptions(title="Pier"))
    index = np.arange(9, dtype=np.int64) * 64
    values = np.full((9, 1, spec.n_bins), 1e-9, np.float32)
    sink.write(SpectrumBatch(values, index, index * 125_000, index * 125_000, spec, "numpy"))
    sink.finish()
    _, text = drawn(path.read_bytes())
    assert "Pier" in text
    assert "L50" in text
    assert b'"step_db"' in path.read_bytes()


def test_without_its_library_a_pdf_is_refused_at_once(monkeypatch, tmp_path):
    """Without the optional library, PDF is refused before recording, with what to install."""

    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", missing)
    text = r"\.pdf: fpdf2 is not installed: pip install 'spectrod\[pdf\]'"
    with pytest.raises(UnavailableError, match=text):
        check_format(".pdf", PictureOptions(), SPEC)
    about = Description(replace(SPEC, scaling="density"), "a", ("a", "b"), "spectrod")
    with pytest.raises(UnavailableError, match=text):
        SpdSink(tmp_path / "x.pdf", about, PictureOptions())
    check_format(".png", PictureOptions(), SPEC)


def test_a_page_longer_than_readers_show_is_refused():
    """A page longer than 200 inches, the limit of readers, is refused."""
    many = replace(SPEC, channels=60)
    with pytest.raises(ConfigError, match=r"and \.pdf has at most 19200"):
        check_format(".pdf", PictureOptions(width=200, height=400), many)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"%PDF-1.7\n%%EOF", "not a spectrogram of spectrod"),
        (b"%PDF-<spectrod:picture>{}", "not a spectrogram of spectrod"),
        (b"%PDF-<spectrod:picture>{</spectrod:picture>", "damaged description"),
        (b"%PDF-<spectrod:picture>" + b" " * (1 << 20) + b"{}</spectrod:picture>", "not a spec"),
    ],
)
def test_other_documents_are_no_pictures_of_spectrod(tmp_path, content, text):
    """Other PDFs are refused after a read of at most their last MiB."""
    path = tmp_path / "x.pdf"
    path.write_bytes(content)
    with pytest.raises(InputError, match=text):
        read_pixel_map(path)
