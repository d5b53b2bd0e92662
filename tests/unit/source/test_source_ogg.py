"""Ogg files are read up to their end, over all streams in them, or up to a damaged page."""

import io
import struct
import zlib

import numpy as np
import pytest
import soundfile

from spectrod.config.config import SourceConfig
from spectrod.source.files import ogg
from spectrod.source.files.ogg import find_ogg
from spectrod.source.files.soundfile import SoundFile
from spectrod.source.open_source import open_source

N = {"VORBIS": 100_000, "OPUS": 200_000}


def encoded(subtype, fs=48000, channels=1, n=None, seed=5):
    samples = 0.1 * np.random.default_rng(seed).standard_normal((n or N[subtype], channels))
    file = io.BytesIO()
    soundfile.write(file, samples, fs, format="OGG", subtype=subtype)
    return file.getvalue()


def pages_of(data):
    """Split a file into its pages."""
    found, at = [], 0
    while at < len(data):
        end = at + 27 + data[at + 26] + sum(data[at + 27 : at + 27 + data[at + 26]])
        found.append(data[at:end])
        at = end
    return found


def page(flags, position, stream, number, body=b"x"):
    """Make a page, its checksum computed bit by bit."""
    head = b"OggS\0" + struct.pack("<BqIII", flags, position, stream, number, 0)
    data = head + bytes((1, len(body))) + body
    crc = 0
    for byte in data:
        crc ^= byte << 24
        for _ in range(8):
            crc = (crc << 1 ^ (0x04C11DB7 if crc & 0x80000000 else 0)) & 0xFFFFFFFF
    return data[:22] + struct.pack("<I", crc) + data[26:]


def read(path, data):
    """Write a file; return its samples, its damage and its length."""
    path.write_bytes(data)
    file = SoundFile(str(path))
    memory = np.empty((700_000, file.channels), np.float32)
    n = file.read(memory)
    found = memory[:n].copy(), file.damage, file.n_samples
    file.close()
    return found


@pytest.fixture(params=N)
def subtype(request):
    return request.param


def found_in(data):
    return find_ogg(io.BytesIO(data), len(data))


def test_a_whole_file_is_one_stream(subtype):
    """All pages of libsndfile's encoders are whole, and belong to one stream."""
    data = encoded(subtype)
    found = found_in(data)
    assert (found.links, found.damage) == (((0, len(data)),), "")


@pytest.mark.parametrize("share", [0.5, 0.95])
def test_a_file_that_is_cut_is_damaged(tmp_path, subtype, share, collect):
    """A file that ends within a page is read up to that page, and named."""
    data = encoded(subtype)
    cut = data[: int(share * len(data))]
    samples, damage, n_samples = read(tmp_path / "x.ogg", cut)
    whole, *_ = read(tmp_path / "y.ogg", data)
    assert damage.startswith("truncated: its last page has ")
    assert 0.1 * len(whole) < len(samples) == n_samples < len(whole)
    n_same = n_samples - 2000  # the last packets end a stream that goes on
    np.testing.assert_array_equal(samples[:n_same], whole[:n_same])
    source = open_source(SourceConfig(uri=str(tmp_path / "x.ogg")), "full")
    collect(source)
    assert source.left_out.n_files == 1


@pytest.mark.parametrize("change", ["flip", "zeros", "lost"])
def test_a_damaged_page_ends_the_samples(tmp_path, subtype, change):
    """After a page that is damaged or lost, times are unknown: nothing after it is read."""
    pages = pages_of(encoded(subtype))
    k = len(pages) // 2
    if change == "flip":
        pages[k] = pages[k][:200] + bytes((pages[k][200] ^ 4,)) + pages[k][201:]
        message = "has a wrong checksum"
    elif change == "zeros":
        pages[k] = bytes(len(pages[k]))
        message = "no page begins at byte"
    else:
        del pages[k]
        message = "pages are missing before byte"
    samples, damage, n_samples = read(tmp_path / "x.ogg", b"".join(pages))
    assert damage.startswith("damaged: ")
    assert message in damage
    (end,) = struct.unpack_from("<q", pages[k - 1], 6)
    assert 0 <= end - n_samples < 1000  # Opus begins with some that are not used
    assert len(samples) == n_samples


def test_streams_that_follow_each_other_are_read(tmp_path, subtype):
    """Joined streams of one rate are one recording: each is decoded from its own beginning."""
    one, two = (encoded(subtype, n=N[subtype] // k, seed=k) for k in (2, 3))
    parts = [read(tmp_path / "x.ogg", part)[0] for part in (one, two, one, one)]
    samples, damage, n_samples = read(tmp_path / "x.ogg", one + two + one + one)
    expected = np.concatenate(parts)
    assert (damage, n_samples) == ("", len(expected))
    np.testing.assert_array_equal(samples, expected)
    for block in (441, 30_000):
        file = SoundFile(str(tmp_path / "x.ogg"))
        memory = np.empty((block, 1), np.float32)
        file.skip(N[subtype] // 2 + 5)
        found = []
        while n := file.read(memory):
            found.append(memory[:n].copy())
        np.testing.assert_array_equal(np.concatenate(found), expected[N[subtype] // 2 + 5 :])
        file.rewind()
        assert file.read(memory) == block
        np.testing.assert_array_equal(memory, expected[:block])
        file.close()


@pytest.mark.parametrize(("fs", "channels"), [(44100, 1), (48000, 2)])
def test_a_stream_of_another_format_ends_the_samples(tmp_path, fs, channels):
    """A stream of another rate, or with other channels, is named, and not read."""
    one = encoded("VORBIS", n=50_000)
    other = encoded("VORBIS", fs, channels, n=50_000)
    samples, damage, _ = read(tmp_path / "x.ogg", one + other + one)
    assert damage == f"after sample 50000 it has a stream of {fs} Hz x {channels}"
    assert len(samples) == 50_000


def test_a_stream_of_another_coding_ends_the_samples(tmp_path):
    """A stream that libsndfile does not decode is named, and not read."""
    one = encoded("VORBIS", n=50_000)
    other = page(2, 0, 9, 0, b"Speex   ") + page(0, 500, 9, 1)
    samples, damage, _ = read(tmp_path / "x.ogg", one + other)
    assert damage == "after sample 50000 it has a stream of another coding"
    assert len(samples) == 50_000


def test_damage_in_a_later_stream_ends_the_samples(tmp_path):
    """Of joined streams of which the second one is cut, the readable samples are read."""
    one = encoded("VORBIS", n=50_000)
    samples, damage, n_samples = read(tmp_path / "x.ogg", one + one[:-100])
    assert damage.startswith("truncated: its last page has ")
    assert 50_000 < len(samples) == n_samples < 100_000


@pytest.mark.parametrize("tail", [b"TAG" + bytes(125), bytes(999)], ids=["tag", "zeros"])
def test_tags_after_the_last_page_are_no_damage(tmp_path, tail):
    """What some programs write after an Ogg file is not missed."""
    samples, damage, _ = read(tmp_path / "x.ogg", encoded("VORBIS", n=50_000) + tail)
    assert (len(samples), damage) == (50_000, "")


def test_a_stream_that_was_joined_late_is_whole():
    """Pages may be missing between the headers of a stream and its first samples."""
    begin = page(2, 0, 7, 0) + page(0, 0, 7, 1)
    assert found_in(begin + page(0, 900, 7, 41) + page(0, 990, 7, 42)).damage == ""
    found = found_in(begin + page(0, 900, 7, 41) + page(0, 990, 7, 43))
    assert found.damage.startswith("damaged: pages are missing before byte ")


def test_streams_that_begin_together_are_one_link():
    """Interleaved streams belong together; the next one begins after their pages."""
    together = page(2, 0, 1, 0) + page(2, 0, 2, 0) + page(0, 5, 1, 1) + page(4, 5, 2, 1)
    found = found_in(together + together)
    assert found.links == ((0, len(together)), (len(together), 2 * len(together)))


def test_the_numbers_of_streams_are_bounded():
    """Neither a great number of streams in turn nor one of interleaved streams is kept."""
    one = page(2, 0, 1, 0) + page(4, 5, 1, 1)
    found = found_in(one * (ogg.LINKS_MAX + 1))
    assert len(found.links) == ogg.LINKS_MAX
    assert found.damage == f"more than {ogg.LINKS_MAX} streams follow each other"
    begins = b"".join(page(2, 0, k, 0) for k in range(300))
    numbered = b"".join(page(0, 5, k, 7 * i) for i in range(2) for k in range(100, 200))
    assert found_in(begins + numbered).damage.startswith("damaged: pages are missing")


def test_the_checksum_is_that_of_the_standard():
    """The checksum is taken from zlib's, over reversed bits, for pages of all lengths."""
    for n in (0, 1, 100, 255):
        data = page(2, 0, 3, 0, bytes(range(n)))
        assert found_in(data).damage == ""
        broken = data[:22] + struct.pack("<I", zlib.crc32(data)) + data[26:]
        assert "wrong checksum" in found_in(broken).damage


def test_the_end_tells_whether_all_pages_must_be_checked(subtype):
    """A file of a store is read in full only if its end is not that of its first stream."""
    one, two = encoded(subtype), encoded(subtype, n=9000, seed=2)

    def is_whole(data):
        return ogg.ends_whole(io.BytesIO(data), len(data))

    assert is_whole(one)
    assert not any(map(is_whole, (one[:-1], one + b"x", one + two, b"OggS", one[:27])))
    flipped = bytearray(one)
    flipped[-5] ^= 1
    assert not is_whole(bytes(flipped))
