"""Sound files: round trips, times, and validity at every moment."""

import errno
import os
import struct
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import soundfile

from spectrod.cli import main
from spectrod.dsp.blocks import Block
from spectrod.formats.directory import Directory
from spectrod.formats.sound import SoundOptions, SoundWriter, recover, recover_or_remove
from spectrod.formats.sound.notes import Gaps
from spectrod.formats.sound.wav_header import HEADER_BYTES, RF64_FROM
from spectrod.lib.errors import ConfigError, EmptyRecordingError, InputError, StorageError
from spectrod.source.files.recorded_at import recorded_at
from spectrod.source.files.riff import read_chunks
from spectrod.source.files.soundfile import SoundFile

FS = 8000
BEGIN_UTC_NS = 1_777_609_800_123_456_000
FORMS = [(".wav", "s16"), (".wav", "s24"), (".wav", "s32"), (".wav", "f32")]
FORMS += [(".flac", "s16"), (".flac", "s24")]
BITS = {"s16": 16, "s24": 24, "s32": 24, "f32": 24}


def block_of(samples, index=0, **settings):
    t_ns = BEGIN_UTC_NS + index * 10**9 // FS
    return Block(np.asarray(samples, np.float32), index, t_ns, t_ns, **settings)


def integers_of(bits, channels, n, seed=1):
    """Make samples that are integers of a given depth, including the largest and the smallest."""
    top = 2 ** (bits - 1)
    found = np.random.default_rng(seed).integers(-top, top, (channels, n))
    found[:, 0], found[:, -1] = -top, top - 1
    return (found / top).astype(np.float32)


def samples_in(path):
    return soundfile.read(path, dtype="float32", always_2d=True)[0].T


def gaps_in(path):
    text = read_chunks(os.fspath(path), (b"guan",))[b"guan"].decode().strip()
    return dict(line.split(": ", 1) for line in text.splitlines())


@pytest.mark.parametrize(("suffix", "subtype"), FORMS)
@pytest.mark.parametrize("channels", [1, 2, 3])
def test_integers_come_back_bit_for_bit(tmp_path, suffix, subtype, channels):
    """Samples that are integers of the file's depth are unchanged by a round trip."""
    path = tmp_path / f"x{suffix}"
    samples = integers_of(BITS[subtype], channels, 9001)
    writer = SoundWriter(path, FS, channels, subtype)
    writer.write(block_of(samples[:, :4000]))
    writer.write(block_of(samples[:, 4000:], 4000))
    assert list(tmp_path.iterdir()) == [tmp_path / f"x{suffix}.part"]
    writer.finish()
    assert list(tmp_path.iterdir()) == [path]
    assert (writer.n_samples, writer.clipped_samples, writer.gaps) == (9001, 0, 0)
    assert np.array_equal(samples_in(path), samples)
    source = SoundFile(os.fspath(path))
    assert (source.fs, source.channels, source.n_samples) == (FS, channels, 9001)
    source.close()


@pytest.mark.parametrize("subtype", ["s16", "s24", "f32"])
@pytest.mark.parametrize("channels", [1, 2, 5])
def test_other_programs_read_it(tmp_path, subtype, channels):
    """SoX reads the same samples without warnings about known parts of the format."""
    path, raw = tmp_path / "x.wav", tmp_path / "x.raw"
    samples = integers_of(BITS[subtype], channels, 501)
    writer = SoundWriter(path, FS, channels, subtype)
    writer.write(block_of(samples))
    writer.finish()
    command = ["sox", path, "-t", "raw", "-e", "float", "-b", "32", raw]
    done = subprocess.run(command, capture_output=True, check=True)
    # For float files SoX wants an extension that only compressed formats need, from any writer.
    is_extensible_float = subtype == "f32" and channels > 2
    assert (b"missing extended part of fmt" in done.stderr) == is_extensible_float
    assert done.stderr.count(b"WARN") == is_extensible_float
    found = np.frombuffer(raw.read_bytes(), "<f4").reshape(-1, channels).T
    assert np.array_equal(found, samples)


def test_samples_beyond_integers_are_clipped_and_counted(tmp_path):
    """Full scale, larger values and NaN are counted; the rest is rounded to the nearest."""
    path = tmp_path / "x.wav"
    values = np.array([[1.0, -1.0, 1.5, -2.0, np.nan, np.inf, 0.4 / 32768, -0.6 / 32768]])
    writer = SoundWriter(path, FS, 1, "s16")
    writer.write(block_of(values))
    writer.finish()
    assert writer.clipped_samples == 5
    expected = np.array([32767, -32768, 32767, -32768, 0, 32767, 0, -1]) / 32768
    assert np.array_equal(samples_in(path)[0], expected.astype(np.float32))


def test_floats_stay_as_they_are(tmp_path):
    """A float file keeps values beyond full scale and NaN unchanged."""
    path = tmp_path / "x.wav"
    values = np.array([[1.5, -2.0, np.nan, 1e-30]], np.float32)
    writer = SoundWriter(path, FS, 1)
    writer.write(block_of(values))
    writer.finish()
    assert np.array_equal(samples_in(path), values, equal_nan=True)


@pytest.mark.parametrize(("suffix", "precision_ns"), [(".wav", 1000), (".flac", 1000)])
def test_the_time_of_the_first_sample_comes_back(tmp_path, suffix, precision_ns):
    """Our readers find the start time in a file, to the microsecond and with its time zone."""
    path = tmp_path / f"x{suffix}"
    writer = SoundWriter(path, FS, 1, "s16", SoundOptions(source="deck", software="spectrod 9"))
    writer.write(block_of(np.zeros((1, 100))))
    writer.finish()
    with soundfile.SoundFile(path) as file:
        found = recorded_at(os.fspath(path), FS, file.comment)
    assert found is not None
    assert abs(found.utc_ns - BEGIN_UTC_NS) < precision_ns
    assert found.has_zone


def test_broadcast_programs_find_the_time(tmp_path):
    """The bext chunk has date, time of day and the sample's number since midnight."""
    path = tmp_path / "x.wav"
    writer = SoundWriter(path, FS, 1, "s16", SoundOptions(source="deck"))
    writer.write(block_of(np.zeros((1, 100))))
    writer.finish()
    bext = read_chunks(os.fspath(path), (b"bext",))[b"bext"]
    assert bext[:5] == b"deck\0"
    assert bext[320:338] == b"2026-05-0104:30:00"
    since_midnight_s = (4 * 60 + 30) * 60 + 0.123456
    assert struct.unpack_from("<QH", bext, 338) == (round(since_midnight_s * FS), 1)
    assert bext[602:].startswith(b"A=PCM,F=8000,W=16,M=mono,T=spectrod")


@pytest.mark.parametrize(("suffix", "subtype"), FORMS)
def test_gaps_become_silence_and_are_listed(tmp_path, suffix, subtype):
    """A gap is filled with silence and listed, so sample indices stay those of the source."""
    path = tmp_path / f"x{suffix}"
    samples = integers_of(16, 2, 300)
    writer = SoundWriter(path, FS, 2, subtype)
    writer.write(block_of(samples[:, :101], 1000, lost_samples=7, discontinuity=True))
    writer.write(block_of(samples[:, 101:200], 1101 + 70001, discontinuity=True))
    writer.write(block_of(samples[:, 200:], 1200 + 70001, discontinuity=True))
    writer.finish()
    assert (writer.gaps, writer.gap_samples, writer.n_samples) == (2, 70001, 70301)
    found = samples_in(path)
    assert np.array_equal(found[:, :101], samples[:, :101])
    assert not found[:, 101 : 101 + 70001].any()
    assert np.array_equal(found[:, 101 + 70001 :], samples[:, 101:])
    if suffix == ".wav":
        notes = gaps_in(path)
        assert notes["spectrod|Gaps"] == "101+70001 70201+0"
        assert notes["spectrod|Missing Samples"] == "70001"
        assert float(notes["Length"]) == pytest.approx(70301 / FS, abs=1e-6)
    else:
        with soundfile.SoundFile(path) as file:
            text = "Gaps: 2, 70001 samples missing (first+count): 101+70001 70201+0"
            assert text in file.comment


@pytest.mark.parametrize("suffix", [".wav", ".flac"])
def test_a_killed_program_leaves_no_silence_that_is_not_listed(tmp_path, suffix):
    """Gaps are listed at once, so a killed program leaves no unlisted silence."""
    writer = SoundWriter(tmp_path / f"x{suffix}", FS, 1, "s16")
    writer.write(block_of(integers_of(16, 1, 100)))
    writer.write(block_of(integers_of(16, 1, 8192), 150))
    part = tmp_path / f"y{suffix}.part"
    part.write_bytes(writer.part.read_bytes())
    path = recover(part).path
    if suffix == ".wav":
        assert gaps_in(path)["spectrod|Gaps"] == "100+50"
    else:
        with soundfile.SoundFile(path) as file:
            assert "Gaps: 1, 50 samples missing (first+count): 100+50" in file.comment


def test_the_list_of_gaps_is_bounded():
    """The list of gaps is bounded; further gaps are counted, and the file says so."""
    gaps = Gaps(room=100)
    for n in range(50):
        gaps.add(1000 + n, 5)
    assert (gaps.count, gaps.samples, gaps.is_full) == (50, 250, True)
    assert len(gaps.text()) <= 100
    assert gaps.text() == " ".join([*(f"{1000 + n}+5" for n in range(6)), "and 44 more"])


def test_gaps_that_follow_on_each_other_are_one():
    """Consecutive gaps, as on a full disk, are one gap, listed or not."""
    gaps = Gaps(room=70)
    for first, n_missing in ((10, 5), (15, 5), (20, 1), (30, 0), (40, 7), (47, 3)):
        gaps.add(first, n_missing)
    assert (gaps.count, gaps.samples, gaps.text()) == (3, 21, "10+11 30+0 and 1 more")


@pytest.mark.parametrize("suffix", [".wav", ".flac"])
@pytest.mark.parametrize("letter", ["é", "\N{GRINNING FACE}", "\udcff"])
def test_a_file_with_more_gaps_than_it_lists_is_whole(tmp_path, suffix, letter):
    """With more gaps than fit in the list, the file stays valid and asks for a new one."""
    path = tmp_path / f"x{suffix}"
    long_texts = SoundOptions(source=letter * 300, software=letter * 300)
    writer = SoundWriter(path, FS, 1, "s16", long_texts)
    for n in range(700):
        block = block_of(np.full((1, 1), 0.5), 2 * n)
        if not writer.fits(block):
            break
        writer.write(block)
    assert n < 690
    writer.write(block)
    writer.finish()
    found = samples_in(path)[0]
    assert np.array_equal(np.flatnonzero(found), 2 * np.arange(n + 1))
    assert writer.gaps == n


def test_a_new_file_is_asked_for_after_a_long_gap(tmp_path):
    """A gap above the limit is not filled with silence but asks for a new file."""
    writer = SoundWriter(tmp_path / "x.wav", FS, 1, options=SoundOptions(gap_max_s=1.0))
    block = block_of(np.zeros((1, 10)))
    assert writer.fits(block)
    writer.write(block)
    assert writer.fits(block_of(np.zeros((1, 10)), 10 + FS))
    assert not writer.fits(block_of(np.zeros((1, 10)), 11 + FS))
    assert not writer.fits(block_of(np.zeros((1, 10)), 9))
    assert not writer.fits(block_of(np.zeros((2, 10)), 10))
    writer.abort()
    writer.abort()
    assert list(tmp_path.iterdir()) == [tmp_path / "x.wav.part"]


@pytest.mark.parametrize("suffix", [".wav", ".flac"])
def test_an_aborted_recording_can_be_recovered(tmp_path, suffix, capsys):
    """An aborted recording keeps its samples, and the command line makes a file of them."""
    path, samples = tmp_path / f"x{suffix}", integers_of(16, 1, 3 * 4096)
    for is_copy in (True, False):
        writer = SoundWriter(path, FS, 1, "s16", SoundOptions(is_copy=is_copy))
        writer.write(block_of(samples))
        writer.abort()
        assert list(tmp_path.iterdir()) == ([] if is_copy else [writer.part])
    assert main(["convert", f"{path}.part", f"{path}.wav"]) == 2
    assert f"{path}.wav: must be {path}, which x{suffix}.part becomes" in capsys.readouterr().err
    assert main(["convert", f"{path}.part", str(path)]) == 0
    assert np.array_equal(samples_in(path), samples)


@pytest.mark.parametrize("suffix", [".wav", ".flac"])
def test_a_file_without_samples_is_not_converted(tmp_path, suffix, capsys):
    """A file that ended before its first sample stays; the daemon alone removes its own."""
    writer = SoundWriter(tmp_path / f"x{suffix}", FS, 1, "s16")
    writer.write(block_of(integers_of(16, 1, 4095)))
    part = tmp_path / f"y{suffix}.part"
    part.write_bytes(writer.part.read_bytes()[:4096])
    writer.abort()
    before = part.read_bytes()
    assert main(["convert", str(part), str(tmp_path / f"y{suffix}")]) == 2
    assert capsys.readouterr().err == f"spectrod: {part}: holds no samples\n"
    assert part.read_bytes() == before
    assert recover_or_remove(part).path is None
    assert not part.exists()


def test_damaged_blocks_are_not_taken_for_an_empty_file(tmp_path):
    """Where more than one block follows the metadata, a file without an intact one stays."""
    writer = SoundWriter(tmp_path / "x.flac", FS, 1, "s16")
    writer.write(block_of(integers_of(16, 1, 3 * 4096)))
    part = tmp_path / "y.flac.part"
    content = writer.part.read_bytes()
    begin = content.index(b"\xff\xf8")
    for n_bytes, error in ((len(content) - begin, InputError), (4096, EmptyRecordingError)):
        part.write_bytes(content[:begin] + bytes(n_bytes))
        with pytest.raises(error, match=r"holds no samples$") as caught:
            recover(part)
        assert type(caught.value) is error
    writer.abort()


@pytest.mark.parametrize("is_copy", [True, False])
def test_a_copy_that_cannot_be_finished_leaves_nothing(tmp_path, is_copy, monkeypatch):
    """A copy that cannot be finished is removed; a recording keeps its samples for recovery."""

    def fail(*_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    writer = SoundWriter(tmp_path / "x.wav", FS, 1, "s16", SoundOptions(is_copy=is_copy))
    writer.write(block_of(integers_of(16, 1, 30)))
    monkeypatch.setattr(Directory, "publish", fail)
    with pytest.raises(StorageError, match=r"x\.wav: Input/output error"):
        writer.finish()
    assert writer.part.exists() != is_copy


@pytest.mark.parametrize(
    ("block", "text"),
    [
        (block_of(np.zeros((2, 3)), 10), "a block of 2 channels; the file has 1"),
        (block_of(np.zeros((1, 3)), 5), "sample 5 comes after sample 9"),
        (block_of(np.zeros((1, 3)), 10 + FS * 86401), "more than a day of silence"),
    ],
)
def test_blocks_that_cannot_follow_are_refused(tmp_path, block, text):
    """A block that does not fit the stream is an error, and earlier samples stay."""
    path = tmp_path / "x.wav"
    writer = SoundWriter(path, FS, 1)
    writer.write(block_of(np.full((1, 10), 0.25)))
    with pytest.raises(InputError, match=text):
        writer.write(block)
    writer.finish()
    assert np.array_equal(samples_in(path), np.full((1, 10), 0.25, np.float32))


@pytest.mark.parametrize(
    ("name", "fs", "channels", "subtype", "text"),
    [
        ("x.ogg", FS, 1, "", r"\.ogg: a sound file's suffix must be \.wav or \.flac"),
        ("x.flac", FS, 1, "f32", r"subtype='f32': a \.flac file has s24, s16"),
        ("x.wav", FS, 1, "u8", "subtype='u8': must be one of f32, s16, s24, s32"),
        ("x.flac", FS, 9, "", r"channels=9: a \.flac file has 1 to 8"),
        ("x.flac", 1_000_000, 1, "", r"fs=1000000: a \.flac file has at most 655350 Hz"),
        ("x.wav", FS, 20000, "", r"channels=20000: too many for a \.wav file"),
        ("x.wav", 10**9, 2, "", "more bytes a second than"),
        ("x.wav", 44100.5, 1, "", "must be a whole number of Hz"),
        ("x.wav", FS, 0, "", "channels=0: must be at least 1"),
    ],
)
def test_settings_that_no_file_can_hold_are_refused_at_once(
    tmp_path, name, fs, channels, subtype, text
):
    """Settings that no file can hold are refused with the value and the rule before recording."""
    with pytest.raises(ConfigError, match=text):
        SoundWriter(tmp_path / name, fs, channels, subtype)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "value"), [("fsync_s", 0.0), ("gap_max_s", -1.0)])
def test_options_are_checked(name, value):
    """An impossible interval is refused by name."""
    with pytest.raises(ConfigError, match=name):
        SoundOptions(**{name: value})


def test_a_file_without_samples_is_not_made(tmp_path):
    """Without samples there is an error and no file."""
    writer = SoundWriter(tmp_path / "x.wav", FS, 1)
    with pytest.raises(InputError, match="no samples to write"):
        writer.finish()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", [".wav", ".flac"])
def test_an_unfinished_file_is_not_written_over(tmp_path, suffix):
    """Another writer's file, unfinished or in use, is not overwritten."""
    path, part = tmp_path / f"x{suffix}", tmp_path / f"x{suffix}.part"
    reason = "is left of a recording that broke off; spectrod convert"
    writer = SoundWriter(path, FS, 1)
    part.write_bytes(b"precious")
    with pytest.raises(StorageError, match=reason):
        writer.write(block_of(np.zeros((1, 10))))
    writer.abort()
    with pytest.raises(StorageError, match=reason):
        SoundWriter(path, FS, 1)
    assert part.read_bytes() == b"precious"


@pytest.mark.parametrize("subtype", ["s16", "s24", "f32"])
def test_a_wav_file_is_valid_at_every_moment(tmp_path, subtype):
    """After each block the WAV file reads as at its latest sync or later."""
    path, now_s = tmp_path / "x.wav", 0.0
    samples = integers_of(16, 1, 1010)
    writer = SoundWriter(path, FS, 1, subtype, SoundOptions(fsync_s=5.0), clock=lambda: now_s)
    synced = 0
    for n in range(10):
        now_s += 2.0
        writer.write(block_of(samples[:, n * 101 : (n + 1) * 101], n * 101))
        if n and n % 3 == 0:
            synced = (n + 1) * 101
        # Of an odd number of bytes the last sample waits for the next sync.
        synced -= synced % 2 if subtype == "s24" else 0
        copy = tmp_path / "copy.wav"
        copy.write_bytes(writer.part.read_bytes())
        found = samples_in(copy)
        assert np.array_equal(found, samples[:, :synced])
        if synced:
            source = SoundFile(os.fspath(copy))
            assert source.n_samples == synced
            source.close()
    writer.finish()
    assert np.array_equal(samples_in(path), samples)


def test_a_file_becomes_rf64_where_it_outgrows_32_bits(tmp_path):
    """A RIFF file becomes RF64 in place where it outgrows 32 bits, with all sizes right."""
    path = tmp_path / "x.wav"
    samples = integers_of(16, 2, 1001)
    writer = SoundWriter(path, 48000, 2, "s16")
    writer.write(block_of(samples))
    # Holes in the file keep four gigabytes off the disk.
    below = (RF64_FROM - HEADER_BYTES) // 4 - 1
    writer.write(block_of(samples[:, :1], below - 1))
    writer.flush()
    with writer.part.open("rb") as part:
        assert part.read(16)[0:4] == b"RIFF"
    assert soundfile.info(os.fspath(writer.part)).frames == below
    writer.write(block_of(samples, below))
    writer.flush()
    with writer.part.open("rb") as part:
        head = part.read(48)
    assert (head[:8], head[12:16]) == (b"RF64\xff\xff\xff\xff", b"ds64")
    n = below + 1001
    assert struct.unpack_from("<QQQ", head, 20) == (HEADER_BYTES - 8 + 4 * n, 4 * n, n)
    writer.finish()
    source = SoundFile(os.fspath(path))
    assert (source.n_samples, source.format) == (n, "RF64, PCM_16")
    source.close()
    with soundfile.SoundFile(path) as file:
        assert np.array_equal(file.read(1001, dtype="float32").T, samples)
        file.seek(below)
        assert np.array_equal(file.read(dtype="float32").T, samples)
    assert recorded_at(os.fspath(path)).utc_ns == BEGIN_UTC_NS


KILLED = """
    import os, signal, sys
    import numpy as np
    from spectrod.formats.sound import SoundOptions, SoundWriter
    from spectrod.dsp.blocks import Block

    path, subtype = sys.argv[1:]
    rng = np.random.default_rng(7)
    samples = (rng.integers(-32768, 32768, (2, 30011)) / 32768).astype(np.float32)
    writer = SoundWriter(path, 8000, 2, subtype, SoundOptions(fsync_s=1e9))
    for begin in range(0, 30011, 1000):
        writer.write(Block(samples[:, begin : begin + 1000], begin, 0, 10**18))
        if begin == 20000:
            writer.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("suffix", "subtype"), FORMS)
def test_a_killed_program_leaves_its_written_samples(tmp_path, suffix, subtype):
    """After SIGKILL a WAV has all complete samples and a FLAC all complete blocks."""
    path = tmp_path / f"x{suffix}"
    command = [sys.executable, "-c", textwrap.dedent(KILLED), path, subtype]
    assert subprocess.run(command, check=False).returncode == -9
    samples = np.random.default_rng(7).integers(-32768, 32768, (2, 30011)) / 32768
    if suffix == ".wav":
        copy = tmp_path / "copy.wav"
        copy.write_bytes((tmp_path / "x.wav.part").read_bytes())
        assert np.array_equal(samples_in(copy), samples[:, :21000].astype(np.float32))
        copy.unlink()
    recovered = recover(tmp_path / f"x{suffix}.part")
    whole = 30011 if suffix == ".wav" else 30011 // 4096 * 4096
    assert (recovered.path, recovered.n_samples, recovered.cut_bytes) == (path, whole, 0)
    assert list(tmp_path.iterdir()) == [path]
    assert np.array_equal(samples_in(path), samples[:, :whole].astype(np.float32))
    source = SoundFile(os.fspath(path))
    assert source.n_samples == whole
    source.close()


@pytest.mark.parametrize("subtype", ["s16", "s24"])
def test_a_torn_wav_file_is_cut_to_whole_samples(tmp_path, subtype):
    """Recovery of a WAV cut at any byte keeps the complete samples and corrects the header."""
    samples = integers_of(16, 2, 20)
    writer = SoundWriter(tmp_path / "x.wav", FS, 2, subtype)
    writer.write(block_of(samples))
    content = writer.part.read_bytes()
    frame_bytes = 4 if subtype == "s16" else 6
    for missing in range(1, 3 * frame_bytes):
        part = tmp_path / "y.wav.part"
        part.write_bytes(content[:-missing])
        n = 20 - -(-missing // frame_bytes)
        recovered = recover(part)
        assert recovered.n_samples == n
        assert np.array_equal(samples_in(recovered.path), samples[:, :n])
        assert float(gaps_in(recovered.path)["Length"]) == n / FS
        recovered.path.unlink()


def test_after_a_power_failure_only_the_header_is_believed(tmp_path):
    """After a power failure, recovery cuts a file to the length that the header confirms."""
    samples = integers_of(16, 1, 30)
    writer = SoundWriter(tmp_path / "x.wav", FS, 1, "s16")
    writer.write(block_of(samples[:, :21]))
    writer.flush()
    writer.write(block_of(samples[:, 21:], 21))
    content = writer.part.read_bytes()
    at = content.index(b"spectrod|Boot: ") + 15
    part = tmp_path / "y.wav.part"
    part.write_bytes(content[:at] + b"00000000" + content[at + 8 :])
    recovered = recover(part)
    assert (recovered.n_samples, recovered.cut_bytes) == (21, 18)
    assert np.array_equal(samples_in(recovered.path), samples[:, :21])


@pytest.mark.parametrize(("n_cut", "n_blocks"), [(1, 5), (2, 5), (1000, 4), (9000, 3)])
def test_a_torn_flac_file_is_cut_to_whole_blocks(tmp_path, n_cut, n_blocks):
    """Recovery cuts a FLAC at the first incomplete or corrupt block."""
    samples = integers_of(16, 1, 5 * 4096 + 100)
    writer = SoundWriter(tmp_path / "x.flac", FS, 1, "s16")
    writer.write(block_of(samples))
    writer.finish()
    content = (tmp_path / "x.flac").read_bytes()
    (tmp_path / "y.flac.part").write_bytes(content[:-n_cut])
    recovered = recover(tmp_path / "y.flac.part")
    n = recovered.n_samples
    assert n == n_blocks * 4096
    assert np.array_equal(samples_in(recovered.path), samples[:, :n])
    # Bits that have changed in the last block are found by its checksum.
    (tmp_path / "z.flac.part").write_bytes(content[:-50] + bytes(48) + content[-2:])
    assert recover(tmp_path / "z.flac.part").n_samples == 5 * 4096


def test_foreign_files_are_not_recovered(tmp_path):
    """Recovery refuses other files and occupied names with the reason, and changes nothing."""
    for name in ("x.wav.part", "x.flac.part"):
        (tmp_path / name).write_bytes(bytes(5000))
        with pytest.raises(InputError, match=f"{name}: not a"):
            recover(tmp_path / name)
        assert (tmp_path / name).read_bytes() == bytes(5000)
    with pytest.raises(InputError, match=r"must be a sound file's \.part"):
        recover(tmp_path / "x.wav")
    (tmp_path / "x.wav").touch()
    with pytest.raises(StorageError, match="already exists"):
        recover(tmp_path / "x.wav.part")
    (tmp_path / "x.wav.part").unlink()
    with pytest.raises(StorageError, match=r"x\.wav\.part: No such file"):
        recover(tmp_path / "x.wav.part")


def test_a_disk_that_is_full_from_the_first_byte_on_has_no_file_left(tmp_path, monkeypatch):
    """A disk that is full at the first byte leaves no file, so retries leave no empty ones."""

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        writer = SoundWriter(tmp_path / "x.wav", FS, 1)
        with pytest.raises(StorageError, match="No space left on device"):
            writer.write(block_of(np.zeros((1, 100))))
        with pytest.raises(InputError, match="no samples to write"):
            writer.finish()
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_one_error_and_the_wav_continues(tmp_path, monkeypatch):
    """A full disk is one error and a gap, and the WAV continues when there is space."""
    path = tmp_path / "x.wav"
    writer = SoundWriter(path, FS, 1, "s16")
    samples = integers_of(16, 1, 300)
    writer.write(block_of(samples[:, :100]))
    real = os.pwrite

    def full(fd, data, offset):
        if offset < HEADER_BYTES + 230:
            return real(fd, data[:30], offset)
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(StorageError, match="No space left on device"):
        writer.write(block_of(samples[:, 100:200], 100))
    monkeypatch.setattr(os, "pwrite", real)
    writer.write(block_of(samples[:, 200:], 200))
    writer.finish()
    samples[:, 100:200] = 0.0
    assert np.array_equal(samples_in(path), samples)
    assert (writer.gaps, writer.gap_samples) == (1, 100)


@pytest.mark.parametrize("n_kept", [0, 100])
def test_data_that_the_disk_lost_are_not_published(tmp_path, monkeypatch, n_kept):
    """After fdatasync fails, the file ends where it was confirmed and accepts no more."""
    path, samples = tmp_path / "x.wav", integers_of(16, 1, 300)
    writer = SoundWriter(path, FS, 1, "s16")
    writer.write(block_of(samples[:, :100]))
    if n_kept:
        writer.flush()
    writer.write(block_of(samples[:, 100:200], 100))

    def refuse(_fd):
        raise OSError(5, os.strerror(5))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", refuse)
        with pytest.raises(StorageError, match="Input/output error"):
            writer.flush()
    with pytest.raises(StorageError, match="has lost written data"):
        writer.write(block_of(samples[:, 200:], 200))
    if n_kept:
        writer.finish()
        assert np.array_equal(samples_in(path), samples[:, :100])
    else:
        with pytest.raises(StorageError, match="has lost written data"):
            writer.finish()
        assert not path.exists()


FULL = """
    import resource, signal, sys
    import numpy as np
    from spectrod.lib.errors import StorageError
    from spectrod.formats.sound import SoundWriter
    from spectrod.dsp.blocks import Block

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    rng = np.random.default_rng(7)
    samples = (rng.integers(-32768, 32768, (1, 100_000)) / 32768).astype(np.float32)
    writer = SoundWriter(sys.argv[1], 8000, 1, "s16")
    for begin in range(0, 100_000, 1000):
        try:
            writer.write(Block(samples[:, begin : begin + 1000], begin, 0, 10**18))
        except StorageError as error:
            print(error)
    writer.finish()
"""


@pytest.mark.slow
def test_a_full_disk_leaves_a_whole_flac(tmp_path):
    """A full disk ends a FLAC with the system's reason, and finish leaves complete blocks."""
    path = tmp_path / "x.flac"
    command = [sys.executable, "-c", textwrap.dedent(FULL), path]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stderr == ""
    first, *others = done.stdout.splitlines()
    assert first == f"{path}: File too large"
    assert set(others) == {f"{path}: an earlier write has failed"}
    found = samples_in(path)
    samples = np.random.default_rng(7).integers(-32768, 32768, (1, 100_000)) / 32768
    assert found.shape[1] in range(8 * 4096, 12 * 4096 + 1, 4096)
    assert np.array_equal(found, samples[:, : found.shape[1]].astype(np.float32))


LAST_BLOCK = """
    import resource, sys
    import numpy as np
    from spectrod.lib.errors import StorageError
    from spectrod.formats.sound import SoundWriter
    from spectrod.dsp.blocks import Block

    n_samples = int(sys.argv[2])
    samples = np.random.default_rng(7).integers(-32768, 32768, (1, n_samples)) / 32768
    writer = SoundWriter(sys.argv[1], 8000, 1, "s16")
    writer.write(Block(samples.astype(np.float32), 0, 0, 10**18))
    limit = writer.size_bytes + 100
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    try:
        writer.finish()
    except StorageError as error:
        print(error)
    print(writer.cut_length)
"""


@pytest.mark.slow
def test_a_flac_file_without_room_for_its_last_block_is_not_called_whole(tmp_path):
    """A FLAC without room for its last block fails with the reason and can be recovered."""
    path = tmp_path / "x.flac"
    command = [sys.executable, "-c", textwrap.dedent(LAST_BLOCK), path, "9000"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (f"{path}: File too large\n{9000 - 8192}\n", "")
    assert [one.name for one in tmp_path.iterdir()] == ["x.flac.part"]
    assert recover(tmp_path / "x.flac.part").n_samples == 8192
    samples = np.random.default_rng(7).integers(-32768, 32768, (1, 9000)) / 32768
    assert np.array_equal(samples_in(path), samples[:, :8192].astype(np.float32))


@pytest.mark.slow
def test_a_flac_file_that_loses_all_of_its_samples_is_not_left(tmp_path):
    """A FLAC whose only samples were held back for a block leaves no unfinished file."""
    path = tmp_path / "x.flac"
    command = [sys.executable, "-c", textwrap.dedent(LAST_BLOCK), path, "1000"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (f"{path}: File too large\n1000\n", "")
    assert list(tmp_path.iterdir()) == []
