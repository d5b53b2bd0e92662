"""Sound files as programs write them and as they break: the same samples by each way to read them.

Each file is one of libsndfile's, and libsndfile's own reading of it is the reference. Then a
defect is put into its header or its end. All ways to read it must agree: either all samples come
without a word, or those that are there come with one line.
"""

import os
import re
import struct
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "sounds"))
from sound_headers import CODECS, DEFECTS, FORMS, WITHOUT_CHUNKS, N, end_of, reference

from spectrod.analysis.samples import to_float32
from spectrod.apps.batch.decoder import SoundChunk, decode
from spectrod.config.config import SourceConfig
from spectrod.lib.errors import InputError
from spectrod.source.files.filesamples import FileSamples, plain_format_of
from spectrod.source.files.soundfile import SoundFile
from spectrod.source.files.wavfile import WavFileSource, plain_layout
from spectrod.source.open_source import open_source

_ALL_WAYS = ("PCM_16", "PCM_24", "DOUBLE", *CODECS)
"""Samples that are read as they are, and others that are converted."""


# ---- the ways to read a file


class Read(NamedTuple):
    """Samples that were read, (channels, n), and the lines about what is left out."""

    samples: np.ndarray
    lines: tuple[str, ...]


def alone(path, first=0):
    """Read a file as ``spectrod record`` does."""
    return _read(open_source(SourceConfig(uri=str(path)), "full"), first)


def live(path, first=0):
    """Read a file as ``spectrod run`` does, but for its pace."""
    return _read(open_source(SourceConfig(uri=str(path)), "realtime"), first)


def in_a_folder(path, first=0):
    """Read its folder."""
    return _read(open_source(SourceConfig(uri=str(path.parent)), "full"), first)


def in_a_live_folder(path, first=0):
    """Read its folder as ``spectrod run`` does, but for its pace."""
    return _read(open_source(SourceConfig(uri=str(path.parent)), "realtime"), first)


def by_batch(path, first=0):
    """Read a file as ``spectrod batch`` does."""
    with closing(SoundFile(str(path))) as file:
        damage, fs, channels, n = file.damage, file.fs, file.channels, file.n_samples
        sample_format = plain_format_of(str(path), file)
    file = FileSamples(str(path), sample_format)
    with closing(file):
        file.skip(first)
        runs = [to_float32(run, sample_format or "float32") for _, run in file.runs(n, 300)]
    read = np.concatenate(runs, axis=1) if runs else np.zeros((channels, 0), np.float32)
    if not damage and file.damage:
        damage = file.damage
    elif not damage and not sample_format:
        out = np.zeros((n, channels), np.float32)
        assert decode(SoundChunk(str(path), fs, channels, 0, n, 300), out)
        np.testing.assert_array_equal(out.T[:, first:], read)
    return Read(read, (f"{path}: {damage}",) if damage else ())


WAYS = (alone, live, in_a_folder, in_a_live_folder, by_batch)


def _read(source, first):
    source.start_at(first)
    if isinstance(source, WavFileSource):
        reader = source.open_reader()
        blocks = []
        while (block := reader.read(300)) is not None:
            blocks.append(to_float32(block.samples, reader.layout.sample_format))
        reader.release()
    else:
        sample_format = source.layout.sample_format
        blocks = [to_float32(np.array(one), sample_format) for one in source.blocks(300)]
    assert source.n_samples == first + sum(block.shape[1] for block in blocks)
    return Read(np.concatenate(blocks, axis=1), source.left_out.lines)


def _cases():
    for name, form in FORMS.items():
        for defect, how in DEFECTS.items():
            if form.format == "AU" and defect in WITHOUT_CHUNKS:
                continue
            if form.format == "RF64" and defect == "open size":
                continue  # -1 is the largest size there
            if form.format == "W64" and defect == "samples behind a chunk":
                continue
            yield pytest.param(form, how, id=f"{name}-{defect}")


@pytest.mark.parametrize(("form", "defect"), list(_cases()))
def test_each_way_reads_the_same_samples(tmp_path, form, defect):
    """Alone, live, in folders, by batch and from the middle on, the samples are libsndfile's."""
    for subtype in form.subtypes:
        n_channels = 1 if subtype in CODECS else 3
        path = tmp_path / f"20260501_043000{form.suffix}"
        data = form.make(tmp_path, subtype, n_channels)
        expected = reference(path)
        path.write_bytes(defect.change(form, data))
        for way in WAYS if subtype in _ALL_WAYS else (alone,):
            for first in (0, 301):
                if first and subtype in CODECS:
                    continue
                read = way(path, first)
                at = f"{subtype}, {way.__name__}, from {first}"
                assert len(read.lines) == (0 if defect.is_harmless else 1), (at, read.lines)
                assert all(line.startswith(str(path)) for line in read.lines), at
                # libsndfile reads the padding of a codec's last block as well.
                n_all = (N if subtype in CODECS else expected.shape[1]) - first
                # Bytes that cannot be told from a chunk or from padding may be read as samples.
                assert read.samples.shape[1] >= n_all, at
                of_file = expected[:, first : first + n_all]
                np.testing.assert_array_equal(read.samples[:, :n_all], of_file, at)
                if defect.is_harmless and subtype not in CODECS:
                    assert read.samples.shape[1] <= n_all + 1, at


@pytest.mark.parametrize("name", FORMS)
def test_files_cut_off_anywhere(tmp_path, name):
    """A file that ends at any place of its header is refused; one that ends later is cut short."""
    form = FORMS[name]
    data = form.make(tmp_path, "PCM_24", 2)
    path = tmp_path / f"20260501_043000{form.suffix}"
    expected = reference(path)
    begin = end_of(form, data) - 6 * N
    for n in (*range(min(begin, 120)), *range(max(120, begin - 30), begin + 6)):
        path.write_bytes(data[:n])
        with pytest.raises(InputError, match=r"20260501_043000.*: ") as caught:
            SoundFile(str(path))
        assert "\n" not in str(caught.value), n
        assert plain_layout(str(path)) is None
    for n in (begin + 6, begin + 11, begin + 3000, begin + 6 * N - 1):
        path.write_bytes(data[:n])
        n_found = (n - begin) // 6
        for way in WAYS:
            read = way(path)
            np.testing.assert_array_equal(read.samples, expected[:, :n_found])
            assert len(read.lines) == 1, (n, way, read.lines)
            assert f"truncated: {6 * N} bytes announced, {n - begin} found" in read.lines[0]


# ---- sizes beyond 4 GiB


def sparse(path, form, n_bytes, size, behind=b""):
    """Write a file of 16-bit samples of which only the first and the last are not 0."""
    data = form.with_size(form.make(path.parent, "PCM_16", 1, 4), size)
    head = data[: len(data) - 8]
    order = "<i2" if form.size[0] == "<" else ">i2"
    first, last = (np.array([value], order).tobytes() for value in (8192, 16384))
    with path.open("wb") as file:
        file.write(head + first)
        file.seek(len(head) + n_bytes - 2)
        file.write(last + behind)


@pytest.mark.parametrize("n_bytes", [5_000_000_000, 2**32, 2**32 + 44, 9_000_000_002])
@pytest.mark.parametrize(
    ("name", "with_chunk"),
    [("WAV", False), ("WAV", True), ("AIFF", False), ("AIFF", True), ("AU", False)],
)
def test_a_size_that_has_wrapped_around(tmp_path, caplog, name, n_bytes, with_chunk):
    """A 32-bit size that has wrapped around is found by what follows, and said in one line."""
    form = FORMS[name]
    path = tmp_path / f"20260501_043000{form.suffix}"
    sparse(path, form, n_bytes, n_bytes % 2**32, form.chunk_of(bytes(500)) if with_chunk else b"")
    with closing(SoundFile(str(path))) as file:
        assert (file.n_samples, file.damage) == (n_bytes // 2, "")
        assert f"the file has {n_bytes}: 4 GiB wrapped around" in file.note
        out = np.zeros((100, 1), np.float32)
        file.seek(n_bytes // 2 - 2)
        assert file.read(out) == 2
        assert out[:2, 0].tolist() == [0.0, 0.5]
        file.seek(0)
        assert file.read(out) == 100
        assert out[:2, 0].tolist() == [0.25, 0.0]
    for uri in (path, path.parent):
        caplog.clear()
        source = open_source(SourceConfig(uri=str(uri)), "full")
        assert (source.n_samples, source.left_out.lines) == (n_bytes // 2, ())
        assert caplog.text.count("wrapped around") == 1


@pytest.mark.parametrize("n_bytes", [3_000_000_000, 5_000_000_000])
@pytest.mark.parametrize("name", ["WAV", "RF64", "BW64", "W64", "AIFF", "AU", "CAF"])
def test_large_files_of_unknown_length(tmp_path, name, n_bytes):
    """A size that is open or 0 in a file of gigabytes means all bytes up to its end."""
    form = FORMS[name]
    path = tmp_path / f"20260501_043000{form.suffix}"
    for size in (form.open_size, 0):
        if form.format == "RF64" and size:
            continue
        sparse(path, form, n_bytes, size)
        with closing(SoundFile(str(path))) as file:
            assert file.n_samples == n_bytes // 2
            assert bool(file.damage) == (size == 0)
            file.seek(file.n_samples - 1)
            out = np.zeros((9, 1), np.float32)
            assert (file.read(out), out[0, 0]) == (1, 0.5)


def test_a_codec_of_more_than_4_gib(tmp_path):
    """Coded samples that the header for libsndfile cannot state are said to be left out."""
    form = FORMS["AIFF"]
    data = form.with_size(form.make(tmp_path, "GSM610", 1), form.open_size)
    path = tmp_path / f"20260501_043000{form.suffix}"
    path.write_bytes(data)
    os.truncate(path, 5_000_000_000)
    with closing(SoundFile(str(path))) as file:
        assert re.fullmatch(r"\d+ bytes of coded samples: more than 4294836224 .*", file.damage)


@pytest.mark.parametrize("size", [2_200_000_000, 3_000_000_000, 4_200_000_000, 0xFFFFFE16])
@pytest.mark.parametrize("name", ["WAV", "AIFF", "AU"])
def test_a_truncated_file_of_gigabytes_is_one(tmp_path, name, size):
    """A file of 1 MB whose header announces gigabytes is truncated, unless the size is a mark."""
    form = FORMS[name]
    path = tmp_path / f"20260501_043000{form.suffix}"
    sparse(path, form, 1_000_000, size)
    with closing(SoundFile(str(path))) as file:
        assert file.damage == f"truncated: {size} bytes announced, 1000000 found"
        assert file.n_announced == size // 2


@pytest.mark.parametrize("form_size", [0x7FFFF024, 0xFFFFFFFF, 0x7FFFFFFF, 0x80000024])
def test_marks_of_an_unknown_length(tmp_path, form_size):
    """The sizes that SoX, arecord, FFmpeg and others write to pipes are no truncation."""
    form = FORMS["WAV"]
    data = form.make(tmp_path, "PCM_24", 3)
    size = 0xFFFFFFFF if form_size == 0xFFFFFFFF else (form_size - 36) // 9 * 9
    data = data[:4] + struct.pack("<I", form_size) + form.with_size(data, size)[8:]
    path = tmp_path / "20260501_043000.wav"
    path.write_bytes(data)
    with closing(SoundFile(str(path))) as file:
        assert (file.n_samples, file.damage) == (N, "")


# ---- rates


@pytest.mark.parametrize(
    ("fs", "bits"), [(44099.5, 0x400EAC43800000000000), (0.25, 0x3FFD8000000000000000)]
)
def test_rates_need_not_be_whole(tmp_path, fs, bits):
    """AIFF and CAF files may state a fraction of a hertz, and it counts."""
    aiff = FORMS["AIFF"].make(tmp_path, "PCM_16", 1)
    at = aiff.index(b"COMM") + 16
    (tmp_path / "x.aiff").write_bytes(aiff[:at] + bits.to_bytes(10, "big") + aiff[at + 10 :])
    caf = FORMS["CAF"].make(tmp_path, "PCM_16", 1)
    (tmp_path / "x.caf").write_bytes(caf[:20] + struct.pack(">d", fs) + caf[28:])
    for name in ("x.aiff", "x.caf"):
        assert open_source(SourceConfig(uri=str(tmp_path / name)), "full").fs == fs


@pytest.mark.parametrize("bits", [0, 0x7FFF << 64, 0xFFFF << 64, 0xC00EAC44 << 48, 1, 0x7FFE << 64])
def test_impossible_rates_are_refused(tmp_path, bits):
    """A rate of 0, below 0, infinite or beyond 10 GHz is one error."""
    aiff = FORMS["AIFF"].make(tmp_path, "PCM_16", 1)
    at = aiff.index(b"COMM") + 16
    (tmp_path / "x.aiff").write_bytes(aiff[:at] + bits.to_bytes(10, "big") + aiff[at + 10 :])
    with pytest.raises(InputError, match=r"x\.aiff: has a sample rate of .* Hz: must be 0\.001 to"):
        SoundFile(str(tmp_path / "x.aiff"))


@pytest.mark.parametrize("name", ["x.au", "x.gsm", "x.vox", "x.wav"])
def test_a_suffix_makes_no_sound_file(tmp_path, name):
    """A file that is nothing known is refused, whatever its suffix says."""
    (tmp_path / name).write_bytes(np.random.default_rng(3).bytes(5000).replace(b"\xff", b"\0"))
    with pytest.raises(InputError, match=rf"{name}: not a sound file"):
        SoundFile(str(tmp_path / name))


def test_hostile_tails_take_little_time(tmp_path):
    """A tail full of names of chunks is followed in few places."""
    form = FORMS["WAV"]
    data = form.with_size(form.make(tmp_path, "PCM_16", 1), 0)
    path = tmp_path / "x.wav"
    path.write_bytes(data[: form.begin(data)] + b"LIST\0\0\0\0" * 8000 + b"x")
    begin_s = time.process_time()
    with closing(SoundFile(str(path))) as file:
        assert file.damage
    assert time.process_time() - begin_s < 1.0
