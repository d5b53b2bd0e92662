"""The encoder of PNG files, read by Pillow and chunk by chunk."""

import io
import struct
import sys
import zlib

import numpy as np
import pytest
from PIL import Image

from spectrod.formats.picture.png import encode_png

COLOURS = bytes(range(256)) * 3
SIGNATURE_BYTES = 8


def entries_of(shape, seed=3):
    return np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8)


def chunks_of(content):
    """Return kind and content of each chunk; check length and checksum."""
    chunks, at = [], SIGNATURE_BYTES
    while at < len(content):
        (length,) = struct.unpack_from(">I", content, at)
        kind, data = content[at + 4 : at + 8], content[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", content, at + 8 + length) == (zlib.crc32(kind + data),)
        chunks.append((kind, data))
        at += 12 + length
    return chunks


@pytest.fixture(params=["isal", "zlib"])
def compressor(request, monkeypatch):
    """Each of the two libraries that may compress."""
    if request.param == "zlib":
        monkeypatch.setitem(sys.modules, "isal", None)
    else:
        pytest.importorskip("isal", reason="isal is not installed")
    return request.param


@pytest.mark.parametrize("shape", [(1, 1), (3, 4), (513, 7), (64, 801)])
@pytest.mark.parametrize("block_bytes", [1, 1000, 1 << 20])
def test_pillow_reads_the_same_entries(shape, block_bytes, compressor):
    """Pillow reads size, entries and colours, whatever the library and the size of blocks."""
    entries = entries_of(shape)
    content = encode_png(entries, COLOURS, [], block_bytes=block_bytes)
    image = Image.open(io.BytesIO(content))
    assert (image.format, image.mode) == ("PNG", "P")
    np.testing.assert_array_equal(np.asarray(image), entries)
    assert bytes(image.getpalette()) == COLOURS


def test_entries_need_not_be_contiguous(compressor):
    """A flipped view of every second column is encoded as it reads."""
    entries = entries_of((31, 60))[::-1, ::2]
    image = Image.open(io.BytesIO(encode_png(entries, COLOURS, [])))
    np.testing.assert_array_equal(np.asarray(image), entries)


def test_chunks_are_in_order_with_checksums():
    """The header is first, then colours and texts, then one chunk of pixels and the end."""
    content = encode_png(entries_of((5, 6)), COLOURS, [("Title", "Grün"), ("spectrod", "日本")])
    chunks = chunks_of(content)
    kinds = [kind for kind, _ in chunks]
    assert kinds == [b"IHDR", b"PLTE", b"tEXt", b"iTXt", b"IDAT", b"IEND"]
    assert chunks[2][1] == b"Title\0Gr\xfcn"
    assert chunks[3][1] == b"spectrod\0\0\0\0\0" + "日本".encode()


@pytest.mark.parametrize("text", ["plain", "Grün", "日本\N{SNOWMAN}"])
def test_pillow_reads_the_same_texts(text):
    """Texts survive, in Latin-1 or in any script."""
    image = Image.open(io.BytesIO(encode_png(entries_of((2, 2)), COLOURS, [("Title", text)])))
    assert image.info["Title"] == text


def test_the_same_picture_makes_the_same_file(compressor):
    """Two encodings of the same entries have the same bytes."""
    entries = entries_of((100, 100))
    assert encode_png(entries, COLOURS, []) == encode_png(entries, COLOURS, [])
