"""Pictures: PNG and PNM as ``spectrod image`` reads them, and the description in our own."""

import io
import json
import random
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress

import msgspec
import numpy as np
from fuzzing import LARGE_BYTES, Scratch, Target, nested
from mutation import ODD_INTEGERS, havoc, mutate_json, mutate_text
from PIL import Image, PngImagePlugin

from spectrod.apps.image import png_files, pnm
from spectrod.apps.image.image_picture import Picture
from spectrod.apps.image.picture_files import read_picture
from spectrod.formats.longterm.longterm_picture import read_statistics_picture
from spectrod.formats.picture.pixelmap import PixelMap, options_of, read_levels, read_pixel_map
from spectrod.lib.errors import ConfigError, InputError

_SCRATCH = Scratch()
_CHUNK_NAMES = (b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"iCCP", b"tEXt", b"zTXt", b"iTXt")
_PNM_WORDS = (
    *(b"P2", b"P3", b"P5", b"P6", b"0", b"1", b"2", b"255", b"256", b"65535", b"65536", b"-1"),
    *(
        b"999999999",
        b"9999999999",
        b"00000000001",
        b"# c",
        b"#",
        b"\r",
        b" ",
        b"\t",
        b"\x0b",
        b"+1",
    ),
)


def check(data: bytes) -> None:
    """Read a picture; written and read again it is the same."""
    path = _SCRATCH.put("input.png", data)
    try:
        picture = read_picture(path)
    except InputError:
        return
    rows, columns = picture.shape
    assert rows >= 1
    assert columns >= 1
    assert picture.planes.max() <= picture.maxval
    if picture.alpha is None:
        _check_same(picture, pnm.decode(pnm.encode(picture)))
    if not (picture.is_colour and picture.maxval > 255) and picture.maxval in (255, 65535):
        _check_same(picture, png_files.decode(png_files.encode(picture)))


def _check_same(picture: Picture, again: Picture) -> None:
    assert again.maxval == picture.maxval
    assert np.array_equal(again.planes, picture.planes)


def png_seeds() -> list[bytes]:
    """Make a PNG of each kind that can be read, with interlaced and palette ones."""
    ramp = np.arange(35, dtype=np.uint8).reshape(5, 7)
    images = [
        Image.fromarray(ramp),
        Image.fromarray(ramp.astype(np.uint16) * 257),
        Image.fromarray(np.stack([ramp] * 3, axis=-1)),
        Image.fromarray(np.stack([ramp] * 4, axis=-1)),
        Image.fromarray(ramp).convert("P"),
        Image.fromarray(ramp).convert("1"),
    ]
    made = []
    for image in images:
        out = io.BytesIO()
        image.save(out, "PNG")
        made.append(out.getvalue())
    return made


def pnm_seeds() -> list[bytes]:
    """Make each kind, plain and raw, of 8 and 16 bits."""
    ramp = np.arange(12, dtype=np.uint16)
    text = b" ".join(b"%d" % value for value in ramp)
    return [
        b"P2\n4 3\n255\n" + text,
        b"P3\n2 2\n15 # comment\n" + text,
        b"P5\n# comment\n4 3\n255\n" + ramp.astype(np.uint8).tobytes(),
        b"P5 4 3 65535 " + ramp.astype(">u2").tobytes(),
        b"P6\n2 2\n255\n" + ramp.astype(np.uint8).tobytes(),
    ]


def mutate_png(data: bytes, rng: random.Random) -> bytes:
    """Change chunks, with right checksums."""
    chunks = _png_chunks(data)
    if not chunks or rng.random() < 0.1:
        return havoc(data, rng)
    at = rng.randrange(len(chunks))
    name, content = chunks[at]
    match rng.randrange(7):
        case 0:
            chunks[at] = rng.choice(_CHUNK_NAMES), content
        case 1:
            chunks.insert(rng.randrange(len(chunks) + 1), (rng.choice(_CHUNK_NAMES), content))
        case 2 if len(chunks) > 1:
            del chunks[at]
        case 3:
            chunks[0] = chunks[0][0], _other_header(chunks[0][1], rng)
        case 4 if name == b"IDAT":
            chunks[at] = name, _other_pixels(content, rng)
        case _:
            chunks[at] = name, havoc(content, rng)
    return png_files.SIGNATURE + b"".join(_packed(*chunk) for chunk in chunks)


def _other_header(header: bytes, rng: random.Random) -> bytes:
    changed = bytearray(header.ljust(13, b"\0"))
    if rng.random() < 0.4:
        size = rng.choice((1, 2, 5, 7, 8, 100, 2000, *ODD_INTEGERS)) & 0xFFFFFFFF
        struct.pack_into(">I", changed, rng.choice((0, 4)), size)
    else:
        changed[rng.randrange(8, 13)] = rng.choice((0, 1, 2, 3, 4, 6, 8, 16, 32, 255))
    return bytes(changed)


def _other_pixels(content: bytes, rng: random.Random) -> bytes:
    try:
        pixels = zlib.decompressobj().decompress(content, 1 << 16)
    except zlib.error:
        return havoc(content, rng)
    return zlib.compress(havoc(pixels, rng), 1)


def _png_chunks(data: bytes) -> list[tuple[bytes, bytes]]:
    chunks, place = [], len(png_files.SIGNATURE)
    while place + 8 <= len(data) and len(chunks) < 64:
        size, name = struct.unpack_from(">I4s", data, place)
        chunks.append((name, data[place + 8 : place + 8 + size]))
        place += 12 + size
    return chunks


def _packed(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + _crc(name + content)


def _crc(data: bytes) -> bytes:
    return struct.pack(">I", zlib.crc32(data))


def repair_png(data: bytes) -> bytes:
    """Correct the lengths and checksums of chunks."""
    if not data.startswith(png_files.SIGNATURE):
        return data
    return png_files.SIGNATURE + b"".join(_packed(*chunk) for chunk in _png_chunks(data))


def mutate_pnm(data: bytes, rng: random.Random) -> bytes:
    """Change words and numbers of the header, and bytes."""
    return havoc(data, rng) if rng.random() < 0.3 else mutate_text(data, rng, _PNM_WORDS)


# ---- descriptions in our pictures

_PIXELS = PixelMap(
    plots=((1, 1, 6, 4),),
    f_scale="linear",
    f_min_hz=0.0,
    f_max_hz=4000.0,
    duration_s=1.5,
    level_min=-90.0,
    level_max=0.0,
    level_unit="dBFS",
    n_levels=240,
    fs=8000.0,
    channels=1,
    window="hann",
    win_length=16,
    hop=10,
    nfft=16,
    scaling="dbfs",
    enbw_hz=750.0,
    engine="numpy",
    begin_utc_ns=1_777_609_800_123_456_000,
    gaps=0,
    gap_samples=0,
    software="spectrod 1.2.3",
    options={"width": 640, "f_scale": "log"},
)
_JSON = _PIXELS.to_json().encode()
_FORMS = (b"png", b"pgm", b"svg", b"pdf", b"webp", b"jpeg")
_EXIF_MAX_BYTES = 60_000
_MARK = b"\xffJSON\xff"
"""Stands in an input where the description stood in the file."""


def check_pixel_map(data: bytes) -> None:
    """Read the description, the options, and the levels of up to two channels."""
    text, _, form = data.partition(_MARK)
    if form in (b"webp", b"jpeg") and len(text) > _EXIF_MAX_BYTES:
        return
    path = _SCRATCH.put("input.picture", _with_text(text, form))
    try:
        pixels = read_pixel_map(path)
        options_of(pixels, path)
    except InputError:
        return
    for channel in (0, 1):
        try:
            levels = read_levels(path, channel)
        except (ConfigError, InputError):
            continue
        assert levels.level.shape == (len(levels.f), len(levels.t))


def _with_text(text: bytes, form: bytes) -> bytes:
    """Make the file of an input: text and format, or bytes unchanged."""
    match form:
        case b"png" | b"webp" | b"jpeg":
            return _pixels_with(text.decode("utf-8", "replace"), form.decode())
        case b"pgm":
            pixels = bytes(range(70)) * 2
            return b"P5\n# spectrod: " + text + b"\n10 7\n65535\n" + pixels
        case b"svg":
            return (
                b'<?xml version="1.0"?><svg><metadata id="spectrod">' + text + b"</metadata></svg>"
            )
        case b"pdf":
            return b"%PDF-1.6\n<spectrod:picture>" + text + b"</spectrod:picture>\n%%EOF\n"
        case _:
            return text


def _pixels_with(text: str, form: str) -> bytes:
    image = Image.fromarray(np.arange(70, dtype=np.uint8).reshape(7, 10))
    image.putpalette(bytes(range(256)) * 3)
    out = io.BytesIO()
    if form == "png":
        info = PngImagePlugin.PngInfo()
        info.add_itxt("spectrod", text)
        image.save(out, "PNG", pnginfo=info)
    else:
        exif = Image.Exif()
        exif[0x010E] = text
        image.convert("RGB").save(out, form.upper(), exif=exif)
    return out.getvalue()


def pixel_map_seeds() -> list[bytes]:
    """Make the description in each format, and whole files."""
    made = [_JSON + _MARK + form for form in _FORMS]
    return made + [_with_text(_JSON, form) for form in (b"png", b"webp", b"pgm")]


def mutate_pixel_map(data: bytes, rng: random.Random) -> bytes:
    """Change the description, or bytes of a file."""
    text, mark, form = data.partition(_MARK)
    if not mark:
        return havoc(data, rng)
    if rng.random() < 0.1:
        return _with_text(text, form)
    if rng.random() < 0.05:
        form = rng.choice(_FORMS)
    changed = havoc(text, rng) if rng.random() < 0.1 else mutate_json(text, rng)
    return changed + mark + form


def _png_bombs(
    sides: Sequence[int] = (1000, 13_300), extra: tuple[bytes, bytes] | None = None
) -> Iterator[bytes]:
    """Make pictures of many pixels in few bytes, of each kind: some valid, some refused."""
    for depth, kind, n_bits in (
        (1, 0, 1),
        (8, 0, 8),
        (16, 0, 16),
        (8, 2, 24),
        (8, 3, 8),
        (8, 6, 32),
    ):
        for side in sides:
            packed, compressor = b"", zlib.compressobj(1)
            row = bytes(1 + side * n_bits // 8)
            for _ in range(side):
                packed += compressor.compress(row)
            packed += compressor.flush()
            if len(packed) > LARGE_BYTES:
                break
            header = struct.pack(">IIBBBBB", side, side, depth, kind, 0, 0, 0)
            chunks = [(b"IHDR", header), (b"PLTE", bytes(768)), (b"IDAT", packed), (b"IEND", b"")]
            if kind in (0, 6):
                del chunks[1]
            if extra is not None:
                chunks.insert(1, extra)
            yield png_files.SIGNATURE + b"".join(_packed(*chunk) for chunk in chunks)


# ---- descriptions in pictures of level statistics


def check_statistics(data: bytes) -> None:
    """Read what a picture says of its axes, and the options of another one with the same."""
    path = _SCRATCH.put("input.png", _pixels_with(data.decode("utf-8", "replace"), "png"))
    found = read_statistics_picture(path)
    if found is None:
        return
    with suppress(ConfigError, msgspec.ValidationError):
        found.settings()


def statistics_seeds() -> list[bytes]:
    """Make a description with options and one without."""
    axes = {"f_scale": "log", "f_min_hz": 10, "f_max_hz": 2e4, "level_min": -120, "level_max": 0}
    plain = axes | {"density_max": 0.2, "options": {}}
    chosen = plain | {"cal_id": "a", "options": {"width": 640, "colormap": "magma"}}
    return [json.dumps(one).encode() for one in (plain, chosen)]


def mutate_statistics(data: bytes, rng: random.Random) -> bytes:
    """Change the description."""
    return havoc(data, rng) if rng.random() < 0.2 else mutate_json(data, rng)


def _pixel_map_bombs() -> Iterator[bytes]:
    yield from _png_bombs((1000,), (b"tEXt", b"spectrod\0" + _JSON))
    for deep in nested():
        yield deep + _MARK + b"pgm"
        yield _JSON.replace(b'"options":', b'"options":' + deep, 1) + _MARK + b"png"


def _large_pnms() -> Iterator[bytes]:
    """Make plain and raw pictures of 1 MB, with the shortest numbers possible."""
    for kind, channels in ((b"P2", 1), (b"P3", 3)):
        n = (LARGE_BYTES - 100) // (2 * channels)
        yield kind + b"\n%d 1\n9\n" % n + b"1 " * (n * channels)
        yield kind + b"\n1 %d\n9\n" % n + b"1\n" * (n * channels)
    for kind, channels in ((b"P5", 1), (b"P6", 3)):
        n = (LARGE_BYTES - 100) // channels
        yield kind + b"\n%d 1\n255\n" % n + bytes(n * channels)
    yield b"P2\n1 1\n9\n" + b"#\n" * (LARGE_BYTES // 2) + b"1"
    yield b"P2" + b"#\n" * (LARGE_BYTES // 2) + b"1 1 9 1"


TARGETS = {
    "png": Target(check, png_seeds, mutate_png, repair_png, 4096, _png_bombs),
    "pnm": Target(check, pnm_seeds, mutate_pnm, max_bytes=1024, large=_large_pnms),
    "statistics_picture": Target(check_statistics, statistics_seeds, mutate_statistics),
    "pixel_map": Target(check_pixel_map, pixel_map_seeds, mutate_pixel_map, large=_pixel_map_bombs),
}
