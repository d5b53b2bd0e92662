import base64
import io
import json
import re
import struct
import zlib
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from PIL import Image

from spectrod.cli.picture_options import like
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.formats.picture.encode import SUFFIXES, check_format, encode
from spectrod.formats.picture.page import Plots, compose
from spectrod.formats.picture.picture_settings import PictureOptions
from spectrod.formats.picture.pixelmap import Recording, options_of, read_levels, read_pixel_map
from spectrod.formats.picture.strips import Envelope
from spectrod.formats.picture.theme import GAP, N_LEVELS
from spectrod.lib.errors import ConfigError, InputError, UnavailableError

SVG = "{http://www.w3.org/2000/svg}"
STRIPS = ("waveform", "level")


def plots_of(channels=1, height=64, width=201):
    """Make plots of noise between two levels, with a gap in the middle."""
    rng = np.random.default_rng(channels)
    levels = rng.uniform(-90.0, -10.0, (channels, height, width)).astype(np.float32)
    entries = np.rint((levels + 90.0) * ((N_LEVELS - 1) / 80.0)).astype(np.uint8)
    levels[:, :, 100:110] = np.nan
    entries[:, :, 100:110] = GAP
    high = rng.uniform(0.0, 0.4, (channels, width)).astype(np.float32)
    high[:, 100:110] = np.nan
    return Plots(
        entries=entries,
        values=levels,
        limits=(-90.0, -10.0),
        n_samples=80_000,
        frames_per_pixel=1.5,
        envelope=Envelope(-high, high, high**2 / 3.0),
    )


def page_of(channels=1, **options):
    spec = SpectrumSpec(fs=8000.0, channels=channels, win_length=128, hop=64, scaling="spectrum")
    about = Recording(spec, "numpy", 1_795_211_223 * 10**9, 1, 4000, "spectrod 1.2.3")
    options = {"width": 201, "height": 64, "title": "Grüße <&> \udcff.wav"} | options
    return compose(plots_of(channels), about, PictureOptions(**options))


def opened(content):
    image = Image.open(io.BytesIO(content))
    image.load()
    return image


def placed(tmp_path, page, suffix):
    path = tmp_path / f"x{suffix}"
    path.write_bytes(encode(page, suffix))
    return path


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_format_describes_its_pixels(tmp_path, suffix, raw):
    """The description, with the chosen options, is read back from each format."""
    page = page_of(2, raw=raw, f_scale="mel", colormap="magma_r", signals=("left", "right"))
    path = placed(tmp_path, page, suffix.upper())
    read = json.loads(read_pixel_map(path).to_json())
    written = json.loads(page.pixels.to_json())
    own = {"plots", "level_min", "level_max", "n_levels"} if suffix == ".pgm" else set()
    assert {name for name in written if read[name] != written[name]} <= own
    options = options_of(read_pixel_map(path), path)
    assert (options.f_scale, options.colormap, options.raw) == ("mel", "magma_r", raw)
    assert options.signals == ("left", "right")
    assert options.title == ""


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".webp"])
@pytest.mark.parametrize("strips", [(), STRIPS])
@pytest.mark.parametrize("channels", [1, 3])
def test_pages_are_as_large_as_their_layout(suffix, strips, channels):
    """A page has the chosen size in every pixel format."""
    page = page_of(channels, strips=strips)
    image = opened(encode(page, suffix))
    assert image.size == (page.layout.width, page.layout.height)


def test_a_lossless_page_is_the_same_page():
    """WebP has exactly the colours of PNG, and JPEG approximates them."""
    page = page_of(strips=STRIPS, theme="dark")
    png, webp, jpeg = (
        np.asarray(opened(encode(page, suffix)).convert("RGB"), np.int16)
        for suffix in (".png", ".webp", ".jpg")
    )
    np.testing.assert_array_equal(png, webp)
    assert np.abs(png - jpeg).mean() < 8.0


@pytest.mark.parametrize("channels", [1, 2])
def test_raw_pictures_are_their_plots(tmp_path, channels):
    """A raw picture is width x height per channel, and every pixel is an entry for data."""
    page = page_of(channels, raw=True)
    path = placed(tmp_path, page, ".png")
    with Image.open(path) as image:
        assert image.size == (201, 64 * channels)
        np.testing.assert_array_equal(np.asarray(image), page.entries.reshape(-1, 201))
    read = read_levels(path, channel=channels - 1)
    expected = plots_of(channels).values[-1, ::-1]
    np.testing.assert_allclose(read.level, expected, atol=80.0 / 478 + 1e-3)


@pytest.mark.parametrize("levels", [None, (-80.0, -30.0)])
def test_a_pgm_keeps_levels(levels):
    """Each value of a PGM gives its level to 16 bits by the scale in the comment; gaps are 0."""
    content = encode(page_of(2, levels=levels), ".pgm")
    scale = re.search(rb"value v >= 1: (\S+) \+ \(v - 1\) \* (\S+) dBFS; 0: no samples", content)
    lo, step = map(float, scale.groups())
    values = np.asarray(opened(content)).astype(np.float64)
    expected = plots_of(2).values.reshape(-1, 201)
    assert values.shape == expected.shape
    np.testing.assert_array_equal(values == 0.0, np.isnan(expected))
    if levels is not None:
        assert lo == -90.0  # of the page's colour map
    decoded = np.where(values > 0.0, lo + (values - 1.0) * step, np.nan)
    np.testing.assert_allclose(decoded, expected, atol=0.5 * step + 1e-5)
    assert step < 0.002


@pytest.mark.parametrize("strips", [(), STRIPS])
def test_levels_are_read_back_from_a_pgm(tmp_path, strips):
    """Levels are read back per channel from a PGM, finer than from a PNG and without margins."""
    path = placed(tmp_path, page_of(2, strips=strips), ".pgm")
    for channel in range(2):
        read = read_levels(path, channel)
        expected = plots_of(2).values[channel, ::-1]
        np.testing.assert_allclose(read.level, expected, atol=80.0 / 131068 + 1e-4)


@pytest.mark.parametrize("suffix", [".jpg", ".webp", ".svg"])
def test_levels_are_not_read_from_colours(tmp_path, suffix):
    """Formats that store only colours are refused by name when levels are read."""
    path = placed(tmp_path, page_of(), suffix)
    with pytest.raises(InputError, match=rf"x\{suffix}: must be a PNG or a PGM"):
        read_levels(path)


def test_a_pgm_of_nothing_but_gaps_is_zero():
    """Every value of a PGM without samples marks a gap."""
    plots = plots_of()
    page = replace(page_of(), values=np.full_like(plots.values, np.nan))
    assert not np.asarray(opened(encode(page, ".pgm"))).any()


@pytest.mark.parametrize("channels", [1, 2])
def test_an_svg_has_texts_as_texts_and_plots_as_pixels(channels):
    """In an SVG, axes, title and strips are elements and the plots are unchanged pixels."""
    page = page_of(channels, strips=STRIPS, signals=("left", "right")[:channels])
    root = ET.fromstring(encode(page, ".svg"))  # noqa: S314 - our own
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert texts[0] == r"Grüße <&> \xff.wav"
    assert root.find(f"{SVG}title").text == r"Grüße <&> \xff.wav"
    for axis in (page.frame.f_labels, page.frame.t_labels, page.frame.level_labels):
        assert {tick.label for tick in axis.ticks} < set(texts)
    assert {"waveform", "FS", "peak, RMS", "dBFS"} < set(texts)
    assert ("left" in texts) == (channels == 2)
    images = [
        opened(base64.b64decode(element.get("{http://www.w3.org/1999/xlink}href").split(",")[1]))
        for element in root.iter(f"{SVG}image")
    ]
    for image, entries in zip(images, page.entries, strict=False):
        np.testing.assert_array_equal(np.asarray(image), entries)
    assert len(images) == 2 * channels  # and their bars
    assert len(list(root.iter(f"{SVG}path"))) == 1 + 3 * channels  # hatching; waveform, peak, RMS
    hatched = [e for e in root.iter(f"{SVG}rect") if e.get("fill") == "url(#gap)"]
    assert {e.get("width") for e in hatched} == {"10"}
    assert len(hatched) == 2 * channels


@pytest.mark.parametrize("time_axis", ["elapsed", "utc"])
@pytest.mark.parametrize("n_samples", [3, 80, 80_000, 8 * 10**8])
@pytest.mark.parametrize("strips", [(), STRIPS])
def test_no_text_leaves_its_page_or_covers_another(time_axis, n_samples, strips):
    """Texts stay inside the page and apart at any times, with even margins."""
    spec = SpectrumSpec(fs=8000.0, channels=2, win_length=128, hop=64, scaling="density")
    about = Recording(spec, "numpy", 1_795_211_223 * 10**9 + 1, 1, 4000, "spectrod 1.2.3")
    options = PictureOptions(
        width=201, height=64, title="x" * 300, time_axis=time_axis, strips=strips
    )
    page = compose(replace(plots_of(2), n_samples=n_samples), about, options)
    root = ET.fromstring(encode(page, ".svg"))  # noqa: S314 - our own
    boxes = []
    for text in root.iter(f"{SVG}text"):
        width, size = float(text.get("textLength")), float(text.get("font-size"))
        shift = {"start": 0.0, "middle": 0.5, "end": 1.0}[text.get("text-anchor")]
        left = float(text.get("x")) - shift * width
        bottom = float(text.get("y"))
        boxes.append((left, bottom - 0.71 * size, left + width, bottom, text.text))
    assert all(box[0] >= 4.0 and box[2] <= page.layout.width - 4.0 for box in boxes)
    assert all(box[1] >= 0.0 and box[3] <= page.layout.height - 4.0 for box in boxes)
    for number, a in enumerate(boxes):
        for b in boxes[:number]:
            is_apart = a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
            assert is_apart, (a[4], b[4])


@pytest.mark.parametrize(
    ("averaging", "n_frames", "pool", "expected"),
    [
        ("none", 1, "mean", ["column: mean of 40 frames"]),
        ("mean", 8, "mean", ["column: mean of 40 frames"]),
        ("max", 8, "max", ["column: max of 40 frames"]),
        ("max", 8, "mean", ["row: max of 8 frames", "column: mean of 5 rows"]),
        ("max", 40, "mean", ["row: max of 40 frames"]),
        ("mean", 40, "mean", ["column: mean of 40 frames"]),
        ("mean", 41, "mean", ["row: mean of 41 frames"]),
        ("mean", 200, "mean", ["row: mean of 200 frames"]),
        (
            *("exponential", 4, "mean"),
            ["exponential average of 0.125 s", "column: mean of 10 rows"],
        ),
    ],
)  # fmt: skip
def test_the_footer_describes_a_column(averaging, n_frames, pool, expected):
    """The footer states averages of averages only if they differ from one average."""
    spec = SpectrumSpec(fs=8000.0, averaging=averaging, averaging_frames=n_frames)
    about = Recording(spec, "numpy", 0, 0, 0, "spectrod 1.2.3")
    options = PictureOptions(width=201, height=64, pool=pool)
    assert averages_stated(about, options, 40.0) == expected


def test_the_footer_does_not_mention_single_frames():
    """If each frame fills columns, the footer mentions no average."""
    about = Recording(SpectrumSpec(fs=8000.0), "numpy", 0, 0, 0, "spectrod 1.2.3")
    options = PictureOptions(width=201, height=64)
    assert averages_stated(about, options, 0.99) == averages_stated(about, options, 1.0) == []


def averages_stated(about, options, frames_per_pixel):
    """Return the parts of a page's footer about averages."""
    page = compose(replace(plots_of(), frames_per_pixel=frames_per_pixel), about, options)
    pieces = [piece for line in page.layout.footer for piece in line.split("  ·  ")]
    return [piece for piece in pieces if piece.startswith(("row:", "column:", "exponential"))]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_strips_are_drawn_where_their_values_are(theme):
    """The ink of a waveform covers its extremes, and gaps are hatched."""
    page = page_of(strips=("waveform",), theme=theme)
    entries = np.asarray(opened(encode(page, ".png")))
    (box,) = page.layout.strips[0]
    strip = entries[box.top : box.bottom, box.left : box.right]
    limits = page.strips[0].limits
    assert limits == (-0.5, 0.5)
    high = plots_of().envelope.high[0]
    column = int(np.nanargmax(high))
    is_ink = strip[:, column] != N_LEVELS
    assert is_ink.sum() == pytest.approx(2.0 * high[column] * (box.height - 1), abs=2.0)
    assert (strip[:, 100:110] == GAP).any(axis=0).all()
    assert set(np.unique(strip[:, 100:110])) == {GAP, N_LEVELS}
    assert not (strip[:, :100] == GAP).any()


def test_unfit_formats_are_refused_before_anything_is_recorded():
    """An unknown suffix, or a format too small for the page, is refused before recording."""
    spec = SpectrumSpec(fs=8000.0, channels=16)
    tall = PictureOptions(height=1200)
    check_format(".png", tall, spec)
    check_format(".webp", replace(tall, channels_as="files"), spec)
    with pytest.raises(
        ConfigError,
        match=r"channels=16: a page may get \d+ .* \.webp has at most",
    ):
        check_format(".webp", tall, spec)
    with pytest.raises(ConfigError, match=r"\.gif: a picture's suffix must be one of \.png, \.jpg"):
        check_format(".gif", tall, spec)


@pytest.mark.parametrize("suffix", [".jpg", ".jpeg", ".webp"])
def test_a_format_that_pillow_lacks_is_refused_at_once(monkeypatch, suffix):
    """A format missing from Pillow, as JPEG or WebP may be, is refused before recording."""
    monkeypatch.setattr("PIL.features.check", lambda _: False)
    spec = SpectrumSpec(fs=8000.0)
    with pytest.raises(UnavailableError, match=rf"\{suffix}: the installed Pillow cannot write it"):
        check_format(suffix, PictureOptions(), spec)
    check_format(".png", PictureOptions(), spec)


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("x.png", b"", "not a readable picture"),
        ("x.svg", b"<?xml version='1.0'?><svg/>", "not a spectrogram of spectrod"),
        ("x.pgm", b"P5\n1 1\n255\n\0", "not a spectrogram of spectrod"),
        ("x.pgm", b'P5\n# spectrod: {"v": 1\n1 1\n255\n\0', "damaged description"),
        ("x.svg", b'<?xml?><metadata id="spectrod">{}</metadata>', "damaged description"),
    ],
)
def test_a_foreign_picture_is_not_repeated(tmp_path, name, content, text):
    """A picture without a description, or with a damaged one, is an input error with its name."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=rf"{re.escape(name)}: {text}"):
        read_pixel_map(tmp_path / name)


def test_pictures_of_others_and_missing_ones_are_named(tmp_path):
    """A camera's JPEG with EXIF is refused by name, and so is a missing file."""
    exif = Image.Exif()
    exif[0x010E] = "holiday"
    Image.new("RGB", (8, 8)).save(tmp_path / "x.jpg", exif=exif)
    with pytest.raises(InputError, match=r"x\.jpg: not a spectrogram of spectrod"):
        read_pixel_map(tmp_path / "x.jpg")
    with pytest.raises(InputError, match=r"y\.jpg: No such file or directory"):
        read_pixel_map(tmp_path / "y.jpg")


def chunk(kind, content):
    size, check = len(content), zlib.crc32(kind + content)
    return struct.pack(">I", size) + kind + content + struct.pack(">I", check)


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".webp", ".svg", ".pgm"])
def test_damage_is_an_error_of_one_line(tmp_path, suffix):
    """A picture with any byte lost or changed is read or refused with one line."""
    content = encode(page_of(height=50, width=200), suffix)
    path = tmp_path / f"x{suffix}"
    rng = np.random.default_rng(7)
    refusals = []
    for _ in range(60):
        damaged = bytearray(content[: int(rng.integers(1, len(content)))])
        damaged[int(rng.integers(len(damaged)))] = int(rng.integers(256))
        damaged[int(rng.integers(min(500, len(damaged))))] = int(rng.integers(256))
        path.write_bytes(damaged)
        try:
            options_of(read_pixel_map(path), path)
        except InputError as error:
            refusals.append(str(error))
    assert all(text.startswith(f"{path}: ") and "\n" not in text for text in refusals)
    assert refusals


def test_texts_that_would_fill_the_memory_are_refused(tmp_path):
    """A PNG of a few kB whose text unpacks to 10 MB is refused."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    text = chunk(b"zTXt", b"spectrod\0\0" + zlib.compress(b" " * 10**7))
    pixels = chunk(b"IDAT", zlib.compress(b"\0\0"))
    path = tmp_path / "x.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + header + text + pixels + chunk(b"IEND", b""))
    with pytest.raises(InputError, match=r"x\.png: "):
        read_pixel_map(path)


@pytest.mark.parametrize("analysis", [{"rate_hz": "often"}, {"align": 7}, {"averaging": "median"}])
def test_damaged_parameters_are_refused(tmp_path, analysis):
    """Parameters that no analysis can have are an input error and reach no flag."""
    pixels = json.loads(page_of(raw=True).pixels.to_json()) | {"analysis": analysis}
    path = tmp_path / "x.pgm"
    path.write_bytes(b"P5\n# spectrod: " + json.dumps(pixels).encode() + b"\n1 1\n255\n\0")
    with pytest.raises(InputError, match=r"x\.pgm: damaged description: "):
        like(path)


@pytest.mark.parametrize("options", [{"width": "wide"}, {"width": 1}, {"f_scale": "cent"}])
def test_damaged_options_are_refused(tmp_path, options):
    """Options of any type that no picture can have are an input error."""
    page = page_of(raw=True)
    pixels = json.loads(page.pixels.to_json()) | {"options": options}
    path = tmp_path / "x.pgm"
    path.write_bytes(b"P5\n# spectrod: " + json.dumps(pixels).encode() + b"\n1 1\n255\n\0")
    with pytest.raises(InputError, match=r"x\.pgm: damaged description: "):
        options_of(read_pixel_map(path), path)


@pytest.mark.parametrize("strips", [(), STRIPS])
def test_a_kept_frame_takes_nothing_from_earlier_pictures(strips):
    """A page has the same file, whatever was drawn before in the same frame, or without it."""
    titles = ("one", "a longer title", "")
    pages = [page_of(2, title=title, strips=strips) for title in (*titles, *reversed(titles))]
    pages.append(page_of(2, title="one", f_scale="mel", strips=strips))
    kept = [encode(page, ".png") for page in pages]
    assert kept[:3] == kept[5:2:-1]
    assert [encode(page, ".png", kept_pixels_max=0) for page in pages] == kept
    assert len(set(kept)) == len(titles) + 1
