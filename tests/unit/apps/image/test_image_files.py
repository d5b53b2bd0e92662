"""Pictures in files: round trips, and errors for invalid files."""

import io
from struct import pack
from zlib import compress, crc32

import numpy as np
import pytest
from PIL import Image

from spectrod.apps.image.image_picture import Picture, to_pixels
from spectrod.apps.image.picture_files import check_output, read_picture, write_picture
from spectrod.apps.image.png_files import SIGNATURE
from spectrod.lib.errors import ConfigError, InputError, StorageError


def random_picture(channels, maxval, *, alpha=False):
    rng = np.random.default_rng(2)
    dtype = np.uint8 if maxval <= 255 else np.uint16
    planes = rng.integers(0, maxval, (channels, 5, 7), dtype, endpoint=True)
    planes[0, 0, :2] = 0, maxval
    return Picture(planes, maxval, rng.integers(0, 256, (5, 7), np.uint8) if alpha else None)


def assert_same(a, b):
    assert a.maxval == b.maxval
    assert a.planes.dtype == b.planes.dtype
    np.testing.assert_array_equal(a.planes, b.planes)
    assert (a.alpha is None) == (b.alpha is None)
    if a.alpha is not None:
        np.testing.assert_array_equal(a.alpha, b.alpha)


@pytest.mark.parametrize(
    ("name", "channels", "maxval"),
    [
        ("x.pgm", 1, 255),
        ("x.pgm", 1, 1),
        ("x.pnm", 1, 1023),
        ("x.PGM", 1, 65535),
        ("x.ppm", 3, 255),
        ("x.ppm", 3, 65535),
        ("x.png", 1, 255),
        ("x.png", 1, 65535),
        ("x.png", 3, 255),
    ],
)
def test_written_and_read(tmp_path, name, channels, maxval):
    """Every pixel and the maximum value survive writing and reading."""
    picture = random_picture(channels, maxval)
    write_picture(tmp_path / name, picture)
    assert_same(read_picture(tmp_path / name), picture)


@pytest.mark.parametrize("channels", [1, 3])
def test_alpha_is_kept(tmp_path, channels):
    """A PNG's alpha channel survives with grey and with colour."""
    picture = random_picture(channels, 255, alpha=True)
    write_picture(tmp_path / "x.png", picture)
    assert_same(read_picture(tmp_path / "x.png"), picture)


@pytest.mark.parametrize(("maxval", "top"), [(100, 255), (1023, 65535)])
def test_png_stretches_other_maxvals(tmp_path, maxval, top):
    """A PNG of a picture with another maximum value has the same brightness."""
    picture = random_picture(1, maxval)
    write_picture(tmp_path / "x.png", picture)
    result = read_picture(tmp_path / "x.png")
    assert result.maxval == top
    np.testing.assert_allclose(result.planes / top, picture.planes / maxval, atol=0.5 / top)


def test_plain_files(tmp_path):
    """Plain PGM and PPM files can be read, with comments in all allowed places."""
    (tmp_path / "x").write_bytes(b"P2 # grey\n3#w\n2\n# max\n300\n0 1 2 # row\n300 4\n5")
    picture = read_picture(tmp_path / "x")
    assert picture.maxval == 300
    np.testing.assert_array_equal(picture.planes, [[[0, 1, 2], [300, 4, 5]]])
    (tmp_path / "x").write_bytes(b"P3 1 2 255 1 2 3 4 5 6\n")
    expected = [[[1], [4]], [[2], [5]], [[3], [6]]]
    np.testing.assert_array_equal(read_picture(tmp_path / "x").planes, expected)
    (tmp_path / "x").write_bytes(b"P6 1 2 255# a raster follows\n\1\2\3\4\5\6")
    np.testing.assert_array_equal(read_picture(tmp_path / "x").planes, expected)


def test_pillow_agrees(tmp_path):
    """Pillow reads the same pixels from raw files."""
    picture = random_picture(3, 255)
    write_picture(tmp_path / "x.ppm", picture)
    pixels = np.asarray(Image.open(tmp_path / "x.ppm"))
    np.testing.assert_array_equal(pixels, np.moveaxis(picture.planes, 0, 2))


def png_of(image, **options):
    buffer = io.BytesIO()
    image.save(buffer, "PNG", **options)
    return buffer.getvalue()


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA"])
def test_png_kinds(tmp_path, mode):
    """Bitmaps are read as grey, palettes as colour, and any transparency as alpha."""
    colours = Image.fromarray(np.moveaxis(random_picture(3, 255).planes, 0, 2), "RGB")
    image = colours.convert(mode)
    (tmp_path / "x.png").write_bytes(png_of(image))
    picture = read_picture(tmp_path / "x.png")
    assert len(picture.planes) == (1 if mode in ("1", "L", "LA") else 3)
    assert (picture.alpha is not None) == mode.endswith("A")
    expected = np.asarray(image.convert("L" if len(picture.planes) == 1 else "RGB"))
    np.testing.assert_array_equal(np.squeeze(np.moveaxis(picture.planes, 0, 2)), expected)


def test_transparent_palette(tmp_path):
    """A palette's transparent entry becomes alpha."""
    image = Image.fromarray(np.array([[0, 1]], np.uint8), "P")
    image.putpalette([10, 20, 30, 40, 50, 60])
    (tmp_path / "x.png").write_bytes(png_of(image, transparency=0))
    picture = read_picture(tmp_path / "x.png")
    np.testing.assert_array_equal(picture.alpha, [[0, 255]])
    np.testing.assert_array_equal(picture.planes[:, 0, 1], [40, 50, 60])


def png_chunks(size, bits, transparent=b""):
    """Build a grey PNG by hand, since Pillow cannot write this kind."""

    def chunk(name, data):
        return pack(">I", len(data)) + name + data + pack(">I", crc32(name + data))

    header = chunk(b"IHDR", pack(">IIBBBBB", *size, bits, 0, 0, 0, 0))
    extra = chunk(b"tRNS", transparent) if transparent else b""
    pixels = chunk(b"IDAT", compress(bytes(8)))
    return SIGNATURE + header + extra + pixels + chunk(b"IEND", b"")


GREY = png_of(Image.fromarray(np.arange(4096, dtype=np.uint8).reshape(64, 64)))
BAD_CONTENT = {
    "empty": (b"", "not a picture: must be a PGM, PPM or PNG file"),
    "text": (b"Portable", "not a picture: must be"),
    "bitmap": (b"P4 8 1\n\0", "must be P2, P3, P5 or P6 with width, height and maxval"),
    "header": (b"P5 8 x 255\n", "must be P2, P3, P5 or P6 with"),
    "no pixels": (b"P5 0 1 255\n", "width=0, height=1, maxval=255: must be from 1 on"),
    "maxval": (b"P5 1 1 65536\n\0\0", "maxval=65536: must be from 1 on, maxval to 65535"),
    "raw cut": (b"P5 2 2 255\n\0\0\0", "truncated: 3 of 4 values"),
    "wide cut": (b"P5 2 1 256\n\0\0\0", "truncated: 1 of 2 values"),
    "plain cut": (b"P2 2 2 255\n1 2 3", "truncated: 3 of 4 values"),
    "plain word": (b"P2 2 1 255\n1 -2", "'-2': must be a number of 1 to 9 digits"),
    "plain long": (b"P2 2 1 255\n1 " + b"9" * 5000, "must be a number of 1 to 9 digits"),
    "plain high": (b"P2 2 1 9\n1 10", "a value of 10: must be at most the maxval 9"),
    "raw high": (b"P5 2 1 9\n\x01\x0a", "a value of 10: must be at most the maxval 9"),
    "png cut": (GREY[:-40], "not a PNG that can be read: "),
    "png header": (GREY[:20], "not a PNG that can be read: "),
    "png start": (GREY[:8], "not a PNG that can be read: its header is damaged"),
    "png width": (png_chunks((0, 5), 8), "not a PNG that can be read: its header is damaged"),
    "png wide grey": (png_chunks((1, 1), 16, b"\0\1"), "16 bits of grey with transparency: write"),
    "png colour": (GREY[:24] + b"\x10\x02" + GREY[26:], "16 bits a colour: only grey may have"),
}


@pytest.mark.parametrize("kind", BAD_CONTENT)
def test_bad_content(tmp_path, kind):
    """A file that is not a picture is one error with the path and the reason."""
    content, message = BAD_CONTENT[kind]
    (tmp_path / "x.png").write_bytes(content)
    with pytest.raises(InputError, match=r"x.png: ") as caught:
        read_picture(tmp_path / "x.png")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_pictures_too_large_for_pillow(tmp_path, monkeypatch):
    """A picture beyond Pillow's limit is an error, and one of half that size gives no warning."""
    (tmp_path / "x.png").write_bytes(GREY)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 64 * 64 - 1)
    assert read_picture(tmp_path / "x.png").shape == (64, 64)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    with pytest.raises(InputError, match=r"not a PNG that can be read: .* pixels"):
        read_picture(tmp_path / "x.png")


def test_missing_file(tmp_path):
    """A missing file is an error with the system's reason."""
    with pytest.raises(InputError, match=r"x.png: No such file or directory"):
        read_picture(tmp_path / "x.png")


@pytest.mark.parametrize(
    ("name", "picture", "message"),
    [
        ("x.jpg", random_picture(1, 9), "a picture's suffix must be one of .pgm, .ppm, .pnm, .png"),
        ("x", random_picture(1, 9), "a picture's suffix must be one of"),
        ("x.pgm", random_picture(3, 9), "grey is for .pgm, colour for .ppm, both for .pnm and"),
        ("x.ppm", random_picture(1, 9), "grey is for .pgm, colour for .ppm, both for .pnm and"),
        ("x.pgm", random_picture(1, 255, alpha=True), "PGM has no alpha: write a .png"),
        ("x.png", random_picture(3, 256), "a PNG has at most 8 bits a colour here: write a .ppm"),
    ],
)
def test_formats_that_cannot_hold_it(tmp_path, name, picture, message):
    """A format that cannot store the picture unchanged is refused, and nothing is written."""
    for write in (check_output, write_picture):
        with pytest.raises(ConfigError, match=message):
            write(tmp_path / name, picture)
    assert list(tmp_path.iterdir()) == []


def test_no_such_folder(tmp_path):
    """A missing folder is a StorageError."""
    with pytest.raises(StorageError, match="No such file or directory"):
        write_picture(tmp_path / "no" / "x.png", random_picture(1, 255))


@pytest.mark.parametrize(
    ("tone", "expected"),
    [("keep", [0, 0, 3, 255]), ("centre", [28, 127, 130, 255]), ("stretch", [0, 63, 65, 255])],
)
def test_tones(tone, expected):
    """Levels are kept, moved to mid-grey or stretched, then rounded and clipped."""
    planes = np.array([[[-100.0, -1.0, 2.5, 300.0]]])
    expected = [0, 0, 2, 255] if tone == "keep" else expected
    np.testing.assert_array_equal(to_pixels(planes, 255, tone)[0, 0], expected)


def test_flat_planes_stretch_to_black():
    """A flat plane, which has no range to stretch, becomes black and not NaN."""
    np.testing.assert_array_equal(to_pixels(np.full((1, 2, 2), 7.0), 65535, "stretch"), 0)


def test_unknown_tone():
    """An unknown tone is refused."""
    with pytest.raises(ConfigError, match="tone='sepia': must be one of keep, centre, stretch"):
        to_pixels(np.zeros((1, 1, 1)), 255, "sepia")
