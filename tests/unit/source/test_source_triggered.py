"""Recordings from which AudioMoth left out what did not reach its trigger: times stay true."""

import struct
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from spectrod.apps.batch.decoder import SoundChunk, decode
from spectrod.apps.batch.planner import plan_job
from spectrod.apps.batch.unit_samples import UnitSamples
from spectrod.config.config import SourceConfig
from spectrod.lib.errors import InputError
from spectrod.source.files.filesamples import FileSamples
from spectrod.source.files.triggered import _READ_BLOCKS, find_stretches, is_triggered
from spectrod.source.open_source import open_source

sys.path.insert(0, str(Path(__file__).parents[2] / "archives"))

from small_archives import job_of

FS = 8000
BLOCK = 256
AMPLITUDE = "Amplitude threshold was 512 with 1s minimum trigger duration."
FREQUENCY = (
    "Frequency trigger (8.0kHz and window length of 16 samples) threshold was 1% with 1s minimum "
    "trigger duration."
)


def comment(trigger=AMPLITUDE):
    return (
        "Recorded at 04:00:00 01/05/2026 (UTC) by AudioMoth 249BC3055C0300C4 at medium gain while "
        f"battery was 4.2V and temperature was 12.3C. {trigger}"
    )


def sound(n, seed=1):
    """Make n samples without a zero."""
    return np.random.default_rng(seed).integers(100, 9999, n).astype("<i2")


def number(n_blocks):
    """Make the block that stands for so many."""
    block = np.zeros(BLOCK, "<i2")
    block[:32] = [1 if n_blocks >> bit & 1 else -1 for bit in range(32)]
    return block


def wav(samples, *, text=None, header_bytes=488, channels=1, bits=16):
    """Make a WAV file whose samples begin at a given byte, as AudioMoth's at 488."""
    text = (comment() if text is None else text).encode()
    content = text.ljust(header_bytes - 64, b"\0")
    step = channels * bits // 8
    data = samples.tobytes()
    body = b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, channels, FS, FS * step, step, bits)
    body += b"LIST" + struct.pack("<I", len(content) + 12) + b"INFOICMT"
    body += struct.pack("<I", len(content)) + content + b"data" + struct.pack("<I", len(data))
    assert len(body) + 8 == header_bytes
    return b"RIFF" + struct.pack("<I", len(body) + len(data)) + body + data


def recording(header_bytes=488, *, edge=40_000):
    """Make samples with two stretches left out; return them, and pairs of index and samples."""
    n_first = (-header_bytes % 512) // 2 + 80 * BLOCK
    parts = [sound(n_first, 1), sound(3 * BLOCK, 2), sound(edge // BLOCK * BLOCK + 7, 3)]
    stored = [parts[0], number(1000), number(2), parts[1], number(5), parts[2]]
    second = n_first + 1002 * BLOCK
    third = second + 3 * BLOCK + 5 * BLOCK
    kept = [(0, parts[0]), (second, parts[1]), (third, parts[2])]
    return np.concatenate(stored), kept, third + len(parts[2])


def put(folder, samples, name="20260501_040000T.WAV", **more):
    path = folder / name
    path.write_bytes(wav(samples, **more))
    return path


def joined(chunks):
    """Join (index, samples) that follow each other."""
    found = []
    for index, samples in chunks:
        if found and found[-1][0] + len(found[-1][1]) == index:
            found[-1] = found[-1][0], np.concatenate([found[-1][1], samples])
        else:
            found.append((index, samples))
    return found


def assert_kept(found, kept, scale=1.0):
    """Check pairs of index and samples."""
    assert [index for index, _ in found] == [index for index, _ in kept]
    for (_, samples), (_, expected) in zip(found, kept, strict=True):
        np.testing.assert_array_equal(samples, expected / scale)


@pytest.mark.parametrize("header_bytes", [488, 512, 490, 510])
@pytest.mark.parametrize("pace", ["full", "realtime"])
def test_what_was_left_out_is_missing(tmp_path, collect, header_bytes, pace):
    """Alone, what follows a stretch that was left out has its true index, wherever data begin."""
    stored, kept, n_samples = recording(header_bytes)
    path = put(tmp_path, stored, header_bytes=header_bytes)
    source = open_source(SourceConfig(uri=str(path)), pace)
    source.pace = "full"
    assert source.n_samples == n_samples
    found = [(index, samples[0]) for index, samples, *_ in collect(source)]
    assert_kept(joined(found), kept, 32768.0)
    assert source.left_out.n_files == 0


def test_in_a_folder_the_next_file_has_its_place(tmp_path, collect):
    """In a folder, what was left out is a gap, and the next file is no overlap."""
    stored, kept, n_samples = recording()
    put(tmp_path, stored)
    seconds = n_samples // FS + 1
    later = sound(5000, 9)
    text = comment().replace("04:00:00", f"04:{seconds // 60:02}:{seconds % 60:02}")
    put(tmp_path, later, "20260501_041000.WAV", text=text)
    source = open_source(SourceConfig(uri=str(tmp_path)), "full")
    found = [(index, samples[0]) for index, samples, *_ in collect(source)]
    assert_kept(joined(found)[:2], kept[:2], 32768.0)
    assert source.left_out.n_files == 0
    assert found[-1][0] + len(found[-1][1]) == n_samples + 5000


@pytest.mark.parametrize("other", ["", "flac"])
def test_an_archive_has_gaps_where_something_was_left_out(tmp_path, other):
    """A unit of an archive has what was kept at its time, and no finding, decoded or as it is."""
    folder = tmp_path / "site"
    folder.mkdir()
    stored, kept, n_samples = recording()
    put(folder, stored)
    if other:
        soundfile.write(folder / "20260501_050000.flac", np.full(FS, 0.25), FS)
    (unit,) = plan_job(job_of(tmp_path, folder)).units
    assert unit.pieces[0].n_samples == n_samples
    reader = UnitSamples(unit)
    full_scale = 32768.0 if other else 1.0
    found = joined((block.sample_index, block.samples[0].copy()) for block in reader.blocks())
    assert_kept(found[:3], kept, full_scale)
    assert reader.problems == []
    assert len(found) == 3 + bool(other)


def test_a_loop_repeats_what_is_missing(tmp_path, collect):
    """In a loop, the stretches come again with the same distances."""
    stored, kept, n_samples = recording()
    source = open_source(SourceConfig(uri=str(put(tmp_path, stored)), loop=True), "full")
    n_kept = sum(len(samples) for _, samples in kept)
    found = joined((i, s[0]) for i, s, *_ in collect(source, n_samples=2 * n_kept))
    starts = [found[0][0]] + [index for index, _ in found[1:]]
    assert starts[:4] == [0, kept[1][0], kept[2][0], n_samples + kept[1][0]]


@pytest.mark.parametrize("sample_format", ["int16", ""])
@pytest.mark.parametrize("begin", [0, 5, 30_000, 277_600, 279_000])
@pytest.mark.parametrize("n_max", [100, 1 << 18])
def test_any_part_has_the_same_indices(tmp_path, sample_format, begin, n_max):
    """A part of a recording, as it is or decoded, has the samples that were kept of it."""
    stored, kept, n_samples = recording()
    path = put(tmp_path, stored)
    end = n_samples - 100
    file = FileSamples(str(path), sample_format)
    assert (file.n_samples, file.has_gaps) == (n_samples, True)
    file.skip(begin)
    found = joined((index, samples[0].copy()) for index, samples in file.runs(end, n_max))
    file.close()
    expected = []
    for index, samples in kept:
        part = samples[max(0, begin - index) : max(0, end - index)]
        if len(part):
            expected.append((max(begin, index), part))
    assert_kept(found, expected, 1.0 if sample_format else 32768.0)


def test_zeros_at_both_ends_were_left_out(tmp_path):
    """In the first and the last 32 KiB of a file zeros stand for what was left out, not between."""
    zeros = np.zeros(2 * BLOCK, "<i2")
    lead = np.zeros(12 + 3 * BLOCK, "<i2")
    long = sound(120 * BLOCK)
    stored = np.concatenate([lead, long, zeros, long, zeros, sound(7), np.zeros(BLOCK, "<i2")])
    found = find_stretches(str(put(tmp_path, stored)))
    assert found.n_samples == len(stored)
    assert found.first.tolist()[0] == len(lead)
    assert int(found.length.sum()) == len(stored) - len(lead) - 2 * BLOCK - 7
    assert find_stretches(str(put(tmp_path, np.concatenate([long, zeros, long])))) is None


@pytest.mark.parametrize("n_before", [_READ_BLOCKS - 1, _READ_BLOCKS, _READ_BLOCKS + 1])
def test_stretches_across_reads(tmp_path, n_before):
    """The scan of a long file does not depend on where it is read in parts."""
    stored = np.concatenate([sound(12 + n_before * BLOCK), number(77), sound(200 * BLOCK)])
    found = find_stretches(str(put(tmp_path, stored)))
    index = 12 + n_before * BLOCK
    assert found.n_samples == index + (77 + 200) * BLOCK
    runs = joined(
        (first, np.arange(at, at + n)) for first, at, n in found.pieces(0, found.n_samples)
    )
    assert [first for first, _ in runs] == [0, index + 77 * BLOCK]
    assert runs[1][1][0] == index + BLOCK


def test_sound_that_looks_like_a_number_is_kept(tmp_path):
    """Blocks that differ from the form, are not aligned, or have the number 0 are sound."""
    near = [number(3) for _ in range(4)]
    near[0][31] = 2
    near[1][0] = 0
    near[2][255] = 1
    shifted = np.concatenate([sound(9), number(3), sound(BLOCK - 9)])
    stored = np.concatenate([sound(12 + 90 * BLOCK), *near[:3], number(0), shifted, sound(99)])
    path = put(tmp_path, stored)
    assert find_stretches(str(path)) is None


@pytest.mark.parametrize("trigger", [AMPLITUDE, FREQUENCY])
def test_comments_of_recordings_with_a_trigger(trigger):
    """The comments of both triggers are known; others are not."""
    assert is_triggered(comment(trigger))
    assert not is_triggered(comment("High-pass filter with frequency of 1.0kHz applied."))
    assert not is_triggered(trigger)
    assert not is_triggered("x" * 5000 + comment(trigger))


def test_other_files_are_not_scanned(tmp_path):
    """Files without the comment, of two channels or of other numbers, have no such blocks."""
    stored, *_ = recording()
    assert find_stretches(str(put(tmp_path, stored, text=comment("")))) is None
    assert find_stretches(str(put(tmp_path, stored[: len(stored) // 2 * 2], channels=2))) is None
    assert find_stretches(str(put(tmp_path, stored, bits=8))) is None
    assert find_stretches(str(tmp_path)) is None
    assert find_stretches(str(tmp_path / "none.wav")) is None
    (tmp_path / "x.wav").write_bytes(b"RIFF")
    assert find_stretches(str(tmp_path / "x.wav")) is None


def test_a_decoder_beside_leaves_such_files(tmp_path):
    """A process that decodes parts of files does not take them for whole ones."""
    path = put(tmp_path, recording()[0])
    out = np.empty((100, 1), np.float32)
    assert not decode(SoundChunk(str(path), float(FS), 1, 0, 100, 100), out)


def test_a_file_that_is_cut_is_read_up_to_its_end(tmp_path, collect):
    """Of a file that is cut, what it has keeps its indices, and one line names it."""
    stored, kept, _ = recording()
    path = put(tmp_path, stored)
    path.write_bytes(path.read_bytes()[:-20_001])
    source = open_source(SourceConfig(uri=str(path)), "full")
    found = joined((index, samples[0]) for index, samples, *_ in collect(source))
    assert [index for index, _ in found] == [index for index, _ in kept]
    assert len(found[-1][1]) == len(kept[-1][1]) - 10_001
    assert source.left_out.n_files == 1


@pytest.mark.parametrize("n", [1, 20])
def test_impossible_numbers_are_refused(tmp_path, n):
    """Stretches of years, which a damaged block may claim, are one error, without their memory."""
    stored = np.concatenate([sound(12 + 90 * BLOCK), *[number(2**32 - 1)] * n, sound(99)])
    path = put(tmp_path, stored)
    for uri in (path, tmp_path):
        with pytest.raises(InputError, match=r"T\.WAV: lasts .* years: must be at most 1"):
            open_source(SourceConfig(uri=str(uri)), "full")


def test_a_file_of_nothing_is_refused(tmp_path):
    """A recording of which everything was left out holds no samples."""
    path = put(tmp_path, np.concatenate([np.zeros(12, "<i2"), *[number(9)] * 300]))
    with pytest.raises(InputError, match=r"T\.WAV: holds no samples: its recorder left all of th"):
        open_source(SourceConfig(uri=str(path)), "full")
