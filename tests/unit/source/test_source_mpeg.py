"""The length of an MPEG audio stream is that of its frames."""

import io
import struct
from pathlib import Path

import numpy as np
import pytest
import soundfile

from spectrod.lib.errors import InputError
from spectrod.source.files import mpeg
from spectrod.source.files.mpeg import find_mpeg, read_header
from spectrod.source.files.soundfile import SoundFile

DATA = Path(__file__).parents[2] / "data"


def mp3(*loudness, fs=44100, channels=1):
    """Encode half a second of noise of each loudness at a variable bit rate."""
    rng = np.random.default_rng(7)
    parts = [level * rng.standard_normal((fs // 2, channels)) for level in loudness]
    file = io.BytesIO()
    soundfile.write(file, np.concatenate(parts), fs, format="MP3", bitrate_mode="VARIABLE")
    return file.getvalue()


def frames_of(data):
    """Split a stream into its frames."""
    found, at = [], 0
    while at < len(data):
        n = read_header(data, at).n_bytes
        found.append(data[at : at + n])
        at += n
    return found


def counted(data):
    file = io.BytesIO(data)
    return find_mpeg(file, 0, len(data))


def decoded(path, data):
    """Write a file; return its samples, its damage and its length."""
    path.write_bytes(data)
    file = SoundFile(str(path))
    memory = np.empty((200_000, file.channels), np.float32)
    n = file.read(memory)
    found = memory[:n].copy(), file.damage, file.n_samples
    file.close()
    return found


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("fffb90c4", (1, 3, 44100, True, 417)),
        ("fffb9264", (1, 3, 44100, False, 418)),
        ("fff38064", (2, 3, 22050, False, 208)),
        ("ffe318c4", (2, 3, 8000, True, 72)),
        ("fffda4c4", (1, 2, 48000, True, 576)),
        ("ffff90c4", (1, 1, 44100, True, 312)),
        ("fff15080", None),  # AAC
        ("fffb00c4", None),  # free bit rate
        ("fffbf0c4", None),
        ("fffb9cc4", None),
        ("ffeb90c4", None),
        ("fffb90", None),
        ("7ffb90c4", None),
    ],
)
def test_frame_headers(head, expected):
    """Version, layer, rate, channels and length of a frame are those of the standard's tables."""
    found = read_header(bytes.fromhex(head))
    assert found == expected
    if found:
        n_samples = {(1, 3): 1152, (2, 3): 576, (1, 2): 1152, (1, 1): 384}
        assert found.n_samples == n_samples[found[:2]]


@pytest.mark.parametrize(("fs", "channels"), [(44100, 1), (48000, 2), (22050, 1), (8000, 1)])
def test_frames_are_counted(fs, channels):
    """The number of frames is that of a stream's first frame, which is then dropped."""
    first, *frames = frames_of(mp3(0.1, 0.001, 0.2, fs=fs, channels=channels))
    assert counted(b"".join([first, *frames])).n_samples == 0
    at = max(first.find(b"Xing"), first.find(b"Info"))
    (n_stated,) = struct.unpack_from(">I", first, at + 8)
    found = counted(b"".join(frames))
    assert found.n_samples == n_stated * read_header(first).n_samples
    assert n_stated == len(frames)
    assert found.damage == ""


@pytest.mark.parametrize("first", [0.2, 0.0], ids=["loud first", "silent first"])
def test_a_variable_bit_rate_is_read_to_its_end(tmp_path, first):
    """All samples of a stream without a stated length are read, whatever its first frame says."""
    _, *frames = frames_of(mp3(first, 0.2 - first, 0.1))
    samples, damage, n_samples = decoded(tmp_path / "x.mp3", b"".join(frames))
    assert (len(samples), damage) == (n_samples, "")
    assert n_samples == len(frames) * 1152
    assert np.sqrt(np.mean(samples[-10_000:-4000] ** 2)) == pytest.approx(0.1, rel=0.1)


def test_tags_and_padding_are_no_damage(tmp_path):
    """Tags before and after a stream, and zeros after it, change neither samples nor length."""
    _, *frames = frames_of(mp3(0.1))
    stream = b"".join(frames)
    bare = decoded(tmp_path / "x.mp3", stream)
    front = b"ID3\4\0\0" + bytes((0, 0, 2, 0)) + b"\xff\xfb\x90\xc4" * 64
    for before, after in (
        (front, b""),
        (front + front, b"TAG" + bytes(125)),
        (b"", b"APETAGEX" + bytes(24) + b"\xff\xfb" * 99),
        (b"", bytes(5000)),
        (b"", bytes(2_000_000) + b"TAG" + bytes(125)),
    ):
        samples, damage, n_samples = decoded(tmp_path / "y.mp3", before + stream + after)
        assert (damage, n_samples) == ("", bare[2])
        np.testing.assert_array_equal(samples, bare[0])


def test_a_capture_begins_within_a_frame(tmp_path):
    """A stream that was joined in the middle is read from its first whole frame on."""
    _, *frames = frames_of(mp3(0.1, 0.2))
    samples, damage, _ = decoded(tmp_path / "x.mp3", frames[3][100:] + b"".join(frames[4:]))
    assert (len(samples), damage) == (1152 * (len(frames) - 4), "")


def test_a_last_frame_that_is_cut_is_damage(tmp_path):
    """A stream that ends within a frame is truncated, and read up to that frame."""
    _, *frames = frames_of(mp3(0.1))
    data = b"".join(frames)[:-30]
    n = len(frames[-1])
    samples, damage, _ = decoded(tmp_path / "x.mp3", data)
    assert damage == f"truncated: its last frame has {n - 30} of {n} bytes"
    assert len(samples) == 1152 * (len(frames) - 1)


@pytest.mark.parametrize("between", [bytes(5000) + b"x", b"\x55" * 400], ids=["zeros", "bytes"])
def test_a_hole_is_damage(tmp_path, between):
    """Other bytes between frames end the samples, since nobody knows how many are missing."""
    _, *frames = frames_of(mp3(0.1, 0.2))
    data = b"".join(frames[:20]) + between + b"".join(frames[25:])
    samples, damage, n_samples = decoded(tmp_path / "x.mp3", data)
    n_bytes = len(between) + len(b"".join(frames[25:]))
    assert len(samples) == n_samples == 20 * 1152
    assert (
        damage == f"damaged: no frame follows its first {n_samples} samples, but {n_bytes} bytes do"
    )


@pytest.mark.parametrize("n_cut", [30, None])
def test_damage_of_a_stream_that_states_its_length(tmp_path, n_cut):
    """A hole, or a last frame that is cut, ends the samples of a stream of a stated length too."""
    first, *frames = frames_of(mp3(0.1, 0.2))
    whole, *_ = decoded(tmp_path / "x.mp3", b"".join([first, *frames]))
    if n_cut:
        data, n_left = b"".join([first, *frames])[:-n_cut], len(frames) - 1
        message = "truncated: its last frame has "
    else:
        data = first + b"".join(frames[:20]) + bytes(4000) + b"x" + b"".join(frames[25:])
        message, n_left = "damaged: no frame follows its first ", 20
    samples, damage, _ = decoded(tmp_path / "y.mp3", data)
    assert damage.startswith(message)
    assert (n_left - 2) * 1152 < len(samples) <= n_left * 1152
    np.testing.assert_array_equal(samples, whole[: len(samples)])


def test_a_change_of_format_is_damage():
    """Frames of another rate, or of another number of channels, do not belong to the stream."""
    _, *frames = frames_of(mp3(0.1))
    for other in (mp3(0.1, fs=48000), mp3(0.1, channels=2)):
        found = counted(b"".join(frames) + other)
        assert found.n_samples == 1152 * len(frames)
        assert found.damage.startswith("damaged: no frame follows")


def test_layer_two_is_counted(tmp_path):
    """The frames of an MP2 file are counted, which has no place for their number."""
    data = (DATA / "noise.mp2").read_bytes()
    assert counted(data).n_samples == len(data) // 216 * 1152
    samples, damage, _ = decoded(tmp_path / "x.mp2", data)
    assert (len(samples), damage) == (23_040, "")


def test_streams_without_two_frames_are_none():
    """Noise, an AAC stream and a single frame with bytes after it are no MPEG audio."""
    noise = np.random.default_rng(1).bytes(200_000)
    assert counted(b"\xff\xf1" + noise) is None
    _, frame, *_ = frames_of(mp3(0.1))
    assert counted(frame + b"x") is None
    assert counted(frame).n_samples == 1152
    assert counted(b"") is None


def test_the_count_is_bounded(monkeypatch, tmp_path):
    """A stream of more frames than the limit is left to libsndfile's estimate."""
    _, *frames = frames_of(mp3(0.1))
    monkeypatch.setattr(mpeg, "FRAMES_MAX", len(frames))
    assert counted(b"".join(frames)).n_samples == 1152 * len(frames)
    monkeypatch.setattr(mpeg, "FRAMES_MAX", len(frames) - 1)
    assert counted(b"".join(frames)) is None
    samples, *_ = decoded(tmp_path / "x.mp3", b"".join(frames))
    assert len(samples) > 1152


def test_a_tag_of_any_length_is_skipped_or_refused(tmp_path):
    """A tag that claims more than the file has is no sound file, without a long search."""
    (tmp_path / "x.mp3").write_bytes(b"ID3\4\0\0\x7f\x7f\x7f\x7f" + bytes(1000))
    with pytest.raises(InputError, match=r"x\.mp3: not a sound file"):
        SoundFile(str(tmp_path / "x.mp3"))
