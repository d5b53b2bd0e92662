"""FLAC files whose header does not state their length are read to their last whole frame."""

import io

import numpy as np
import pytest
import soundfile

from spectrod.config.config import SourceConfig
from spectrod.formats.sound.flac_frames import _aligned_crc16, _crc8
from spectrod.lib.errors import InputError
from spectrod.source.files import flac_length
from spectrod.source.files.flac_length import find_flac
from spectrod.source.files.soundfile import SoundFile
from spectrod.source.open_source import open_source

FS = 8000
BLOCK = 4096
TOTAL = (1 << 36) - 1


def flac(n, channels=1, subtype="PCM_16", seed=3):
    """Encode noise; return the file and its samples."""
    samples = np.random.default_rng(seed).uniform(-0.5, 0.5, (n, channels))
    file = io.BytesIO()
    soundfile.write(file, samples, FS, format="FLAC", subtype=subtype)
    data = file.getvalue()
    return data, soundfile.read(io.BytesIO(data), dtype="float32", always_2d=True)[0]


def with_length(data, n):
    """State another length in the header, and no checksum."""
    sums = int.from_bytes(data[18:26], "big") & ~TOTAL | n
    return data[:18] + sums.to_bytes(8, "big") + bytes(16) + data[42:]


def split(data, channels=1):
    """Return the header of a file and its frames, found by their numbers."""
    at = data.index(b"\xff\xf8", 42)
    places, number = [], 0
    while at >= 0:
        head = data[at : at + 4] + utf8(number)
        if not data.startswith(head, at):
            break
        places.append(at)
        number += 1
        at = data.find(data[at : at + 2], at + 1)
        while at >= 0 and not data.startswith(utf8(number), at + 4):
            at = data.find(b"\xff\xf8", at + 1)
    return data[: places[0]], [
        data[a:b] for a, b in zip(places, [*places[1:], len(data)], strict=True)
    ]


def utf8(number):
    return chr(number).encode() if number < 0xD800 else b""


def renumbered(frame, number, sync=None):
    """Give a frame another number, or another form of number, and right checksums."""
    old = 1 if frame[4] < 0x80 else 8 - (frame[4] ^ 0xFF).bit_length()
    n_size = {6: 1, 7: 2}.get(frame[2] >> 4, 0)
    end = 4 + old + n_size
    head = (sync or frame[:2]) + frame[2:4] + utf8(number) + frame[4 + old : end]
    return with_crc16(head + bytes((_crc8(head),)) + frame[end + 1 : -2])


def with_crc16(data):
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ (0x8005 if crc & 0x8000 else 0)) & 0xFFFF
    return data + crc.to_bytes(2, "big")


def read(path, data, block=70_000, first=0):
    """Write a file; return its samples from one on, its damage and its length."""
    path.write_bytes(data)
    file = SoundFile(str(path))
    memory = np.empty((block, file.channels), np.float32)
    found = [np.empty((0, file.channels))]
    file.skip(first)
    while n := file.read(memory):
        found.append(memory[:n].copy())
    result = np.concatenate(found), file.damage, file.n_samples
    file.close()
    return result


@pytest.mark.parametrize("n", [1, BLOCK - 1, BLOCK, 5 * BLOCK + 17, 11 * BLOCK])
@pytest.mark.parametrize(("channels", "subtype"), [(1, "PCM_16"), (2, "PCM_24"), (8, "PCM_16")])
def test_a_file_of_unknown_length_is_read_to_its_end(tmp_path, n, channels, subtype):
    """All samples are read, also in small blocks and from any sample on, without a line."""
    data, expected = flac(n, channels, subtype)
    data = with_length(data, 0)
    for block, first in ((70_000, 0), (441, 0), (5000, n // 2)):
        samples, damage, n_samples = read(tmp_path / "x.flac", data, block, first)
        assert (damage, n_samples) == ("", n)
        np.testing.assert_array_equal(samples, expected[first:])


@pytest.mark.parametrize("stated", [0, 100 * BLOCK], ids=["unknown", "that of all"])
def test_a_segment_has_numbers_of_those_before(tmp_path, stated):
    """A segment whose frames count from the first one on has the samples of its own frames."""
    data, expected = flac(6 * BLOCK + 99)
    header, frames = split(data)
    assert len(frames) == 7
    numbered = [renumbered(frame, 90 + k) for k, frame in enumerate(frames)]
    segment = with_length(header, stated) + b"".join(numbered)
    for block, first in ((70_000, 0), (441, 0), (5000, 10_007)):
        samples, damage, n_samples = read(tmp_path / "x.flac", segment, block, first)
        assert (damage, n_samples) == ("", 6 * BLOCK + 99)
        np.testing.assert_array_equal(samples, expected[first:])
    file = SoundFile(str(tmp_path / "x.flac"))
    assert not file.seeks_exactly
    file.close()


def test_blocks_of_varying_length(tmp_path):
    """Frames that state their first sample are counted by it."""
    data, expected = flac(3 * BLOCK + 99)
    header, frames = split(data)
    varying = [renumbered(frame, k * BLOCK, b"\xff\xf9") for k, frame in enumerate(frames)]
    samples, damage, _ = read(tmp_path / "x.flac", with_length(header, 0) + b"".join(varying))
    assert damage == ""
    np.testing.assert_array_equal(samples, expected)


def test_segments_of_a_folder_are_one_stream(tmp_path, collect):
    """A folder of segments gives all their samples, joined by their names."""
    whole = []
    for k in range(3):
        data, expected = flac(2 * BLOCK, seed=k)
        header, frames = split(data)
        numbered = [renumbered(frame, 2 * k + i) for i, frame in enumerate(frames)]
        (tmp_path / f"{k}.flac").write_bytes(with_length(header, 0) + b"".join(numbered))
        whole.append(expected)
    source = open_source(SourceConfig(uri=str(tmp_path)), "full")
    ((_, samples, *_),) = collect(source)
    np.testing.assert_array_equal(samples, np.concatenate(whole).T)
    assert source.left_out.n_files == 0


@pytest.mark.parametrize("n_cut", [1, 2, 3, 900, 8200, 8900])
def test_a_cut_file_is_damaged(tmp_path, n_cut):
    """A file of unknown length that ends within a frame is read up to it, and named."""
    data, expected = flac(5 * BLOCK)
    header, frames = split(data)
    cut = b"".join(frames)[:-n_cut]
    n_whole = next(k for k in range(5) if len(b"".join(frames[: k + 1])) > len(cut))
    samples, damage, _ = read(tmp_path / "x.flac", with_length(header, 0) + cut)
    n_left = len(cut) - len(b"".join(frames[:n_whole]))
    assert damage == f"truncated: its last {n_left} bytes are no whole frame"
    np.testing.assert_array_equal(samples, expected[: n_whole * BLOCK])


@pytest.mark.parametrize("n_more", [1, 2, 3, 5])
def test_a_cut_header_hides_no_frame(tmp_path, n_more):
    """A frame is whole although the header after it is cut."""
    data, expected = flac(3 * BLOCK)
    header, frames = split(data)
    begun = with_length(header, 0) + b"".join(frames[:2]) + frames[2][:n_more]
    samples, damage, _ = read(tmp_path / "x.flac", begun)
    assert damage == f"truncated: its last {n_more} bytes are no whole frame"
    np.testing.assert_array_equal(samples, expected[: 2 * BLOCK])


def test_zeros_after_the_last_frame(tmp_path):
    """Of a file that a power failure left with zeros at its end, all frames are read."""
    data, expected = flac(3 * BLOCK + 5)
    samples, damage, _ = read(tmp_path / "x.flac", with_length(data, 0) + bytes(3_000_000))
    assert damage == "truncated: its last 3000000 bytes are no whole frame"
    np.testing.assert_array_equal(samples, expected)


def test_tags_around_the_file(tmp_path):
    """Tags of ID3 before and after a file of unknown length are no damage."""
    data, expected = flac(3 * BLOCK + 5)
    tagged = b"ID3\4\0\0\0\0\2\0" + bytes(256) + with_length(data, 0) + b"TAG" + bytes(125)
    samples, damage, _ = read(tmp_path / "x.flac", tagged)
    assert damage == ""
    np.testing.assert_array_equal(samples, expected)


def test_a_file_of_known_length_is_left_alone():
    """Nothing is searched for in a file whose header states its length."""
    data, _ = flac(3 * BLOCK)
    assert find_flac(io.BytesIO(data), len(data)) is None


def test_a_cut_file_of_known_length_is_damaged(tmp_path, collect):
    """A FLAC file of known length that is cut anywhere is read up to there, and named."""
    data, expected = flac(5 * BLOCK)
    header, frames = split(data)
    for cut in (data[:-1], data[: len(data) // 2], header + b"".join(frames[:3])):
        samples, damage, _ = read(tmp_path / "x.flac", cut)
        assert damage.startswith(("truncated: ", "damaged: "))
        np.testing.assert_array_equal(samples[:BLOCK], expected[:BLOCK])
        source = open_source(SourceConfig(uri=str(tmp_path / "x.flac")), "full")
        collect(source)
        assert source.left_out.n_files == 1


def test_a_damaged_frame_ends_the_samples(tmp_path):
    """A frame in the middle of a file of unknown length that is damaged is found by its decoder."""
    data, expected = flac(5 * BLOCK)
    header, frames = split(data)
    frames[2] = frames[2][:100] + bytes((frames[2][100] ^ 1,)) + frames[2][101:]
    samples, damage, _ = read(tmp_path / "x.flac", with_length(header, 0) + b"".join(frames))
    assert damage.startswith(("truncated: ", "damaged: "))
    np.testing.assert_array_equal(samples[: 2 * BLOCK], expected[: 2 * BLOCK])


def test_joined_files_are_damage(tmp_path, collect):
    """What follows the samples that a header states is not left out without a line."""
    data, expected = flac(5 * BLOCK)
    samples, damage, _ = read(tmp_path / "x.flac", data + data)
    assert damage.startswith(f"{5 * BLOCK} samples announced, but ")
    np.testing.assert_array_equal(samples, expected)
    samples, damage, _ = read(tmp_path / "x.flac", data + b"TAG" + bytes(125))
    assert damage == ""


def test_the_search_is_bounded(tmp_path, monkeypatch):
    """Where the last frame is too far from the end, one line says so."""
    data, _ = flac(2 * BLOCK)
    path = tmp_path / "x.flac"
    monkeypatch.setattr(flac_length, "TAIL_BYTES_MAX", 1 << 20)
    path.write_bytes(with_length(data, 0) + b"x" * (1 << 20))
    with pytest.raises(InputError, match=r"x\.flac: its header leaves its length open, and no who"):
        SoundFile(str(path))


def test_a_file_without_a_frame_is_refused(tmp_path):
    """A header alone, as of a program that was killed at once, is no sound file."""
    data, _ = flac(2 * BLOCK)
    path = tmp_path / "x.flac"
    path.write_bytes(with_length(split(data)[0], 0))
    with pytest.raises(InputError, match=r"x\.flac: "):
        SoundFile(str(path))


def test_a_number_that_has_no_room_is_refused():
    """A last frame that claims more samples than the file has room for is not believed."""
    data, _ = flac(3 * BLOCK)
    header, frames = split(data)
    claims = with_length(header, 0) + b"".join([*frames[:2], renumbered(frames[2], 50_000)])
    assert find_flac(io.BytesIO(claims), len(claims)) is None


def test_the_metadata_are_bounded():
    """A file of metadata alone, or of too many blocks, is none."""
    data, _ = flac(BLOCK)
    blocks = b"\1\0\0\0" * 200
    for wrong in (data[:42], data[:41], b"fLaC", data[:4] + b"\0" + data[5:42] + blocks):
        assert find_flac(io.BytesIO(wrong), len(wrong)) is None


def test_the_checksum_of_the_tests_is_that_of_the_code():
    """Frames made here are whole by the aligned sums of the code."""
    data, _ = flac(BLOCK)
    _, (frame,) = split(data)
    again = renumbered(frame, 0)
    assert again == frame
    sums = _aligned_crc16(frame)
    assert sums[0] == sums[-1]
