"""Foreign or damaged files: one-line errors in bounded time and memory."""

import json
import os
import struct
import subprocess
import sys
import textwrap
import zlib

import numpy as np
import pytest
import soundfile

from spectrod.apps.image import picture_files as image_files
from spectrod.apps.image.picture_files import read_picture
from spectrod.apps.image.png_files import SIGNATURE
from spectrod.cli import main
from spectrod.config.config import SourceConfig
from spectrod.config.settings import RecordingConfig
from spectrod.dsp.blocks import Block
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.description import Description
from spectrod.formats.origin import read_origin
from spectrod.formats.picture.pixelmap import read_levels, read_pixel_map
from spectrod.formats.segment import frame as frames
from spectrod.formats.segment.frame import HEAD_BYTES, Head, Kind, frame
from spectrod.formats.segment.header import Header, Place, encode_header, padded
from spectrod.formats.segment.segment_reader import SegmentReader
from spectrod.formats.segment.segment_recovery import recover as recover_segment
from spectrod.formats.segment.segment_writer import SegmentWriter
from spectrod.formats.segment.walk import Walk
from spectrod.formats.sound import SoundOptions, SoundWriter, flac_frames, recover
from spectrod.formats.sound.wav_header import HEADER_BYTES
from spectrod.lib.errors import ConfigError, InputError, SpectrodError, StorageError
from spectrod.lib.events import EventLog
from spectrod.recording.configured import ConfiguredRecording, Recorded
from spectrod.source.files.recorded_at import recorded_at
from spectrod.source.files.riff import read_chunks
from spectrod.source.files.wavfile import WavFileSource, plain_layout
from spectrod.source.open_source import open_source

FS = 8000
BEGIN_UTC_NS = 1_777_609_800_123_456_000
SPEC = SpectrumSpec(float(FS), win_length=16, hop=10, nfft=16)
RECORDING = 0x0123456789ABCDEF
MIB = 1 << 20


def run_limited(extra_mib, code, *arguments):
    """Run Python code with a limit of memory beyond that of its imports."""
    head = """
    import resource, sys
    from spectrod.lib.errors import SpectrodError
    def limit(mib):
        n_pages = int(open("/proc/self/statm").read().split()[0])
        n_bytes = n_pages * resource.getpagesize() + (mib << 20)
        resource.setrlimit(resource.RLIMIT_AS, (n_bytes, n_bytes))
    """
    script = textwrap.dedent(head) + textwrap.dedent(code).replace("LIMIT", f"limit({extra_mib})")
    return subprocess.run(
        [sys.executable, "-c", script, *map(os.fspath, arguments)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


# ---- unfinished sound files


def write_part(folder, name, n_samples=9001, subtype="s16", channels=1):
    """Make a killed program's unfinished file; return its path."""
    name = f"x{name}" if name.startswith(".") else name
    options = SoundOptions(source="pond", recording="night")
    writer = SoundWriter(folder / name, FS, channels, subtype, options)
    rng = np.random.default_rng(7)
    samples = rng.integers(-(2**15), 2**15, (channels, n_samples)) / 2**15
    writer.write(Block(samples.astype(np.float32), 0, BEGIN_UTC_NS, BEGIN_UTC_NS))
    writer.flush()
    writer.abort()
    return folder / f"{name}.part"


def damaged(content, offset, new):
    return content[:offset] + new + content[offset + len(new) :]


WAV_DAMAGE = {
    "channels": (58, b"\0\0"),
    "more channels": (58, b"\2\0"),
    "fs": (60, bytes(4)),
    "another fs": (60, struct.pack("<I", 8001)),
    "frame size": (68, b"\0\0"),
    "another frame size": (68, b"\4\0"),
    "bits": (70, b"\x18\0"),
    "size of fmt": (52, b"\xff\xff\xff\xff"),
    "name of fmt": (48, b"fmT "),
}


@pytest.mark.parametrize("what", WAV_DAMAGE)
def test_a_wav_part_with_a_damaged_format_stays_as_it_is(tmp_path, what):
    """A wrong byte in the format, which changes the meaning of all samples, leaves the file."""
    part = write_part(tmp_path, ".wav")
    content = damaged(part.read_bytes(), *WAV_DAMAGE[what])
    part.write_bytes(content)
    with pytest.raises(InputError, match=r"x\.wav\.part: not an unfinished WAV file of spectrod"):
        recover(part)
    assert part.read_bytes() == content
    assert list(tmp_path.iterdir()) == [part]


@pytest.mark.parametrize("new", [b"\nLengtH: ", b"\nLength:X"])
def test_a_wav_part_without_a_length_in_its_notes_stays_as_it_is(tmp_path, new):
    """A part is not cut before its header is known to be completable."""
    part = write_part(tmp_path, ".wav")
    content = part.read_bytes()
    content = damaged(content, content.index(b"\nLength: "), new) + b"\1"
    part.write_bytes(content)
    with pytest.raises(InputError, match="no line starts with Length"):
        recover(part)
    assert part.read_bytes() == content


def test_a_wav_part_whose_notes_have_no_room_stays_as_it_is(tmp_path):
    """A header longer than its page would overwrite samples, so the part stays unchanged."""
    part = write_part(tmp_path, ".wav", n_samples=1_234_567)
    content = part.read_bytes()
    begin = content.index(b"\nLength: ") + 9
    end = content.index(b"\n", begin)
    filled = b"0".ljust(1, b" ") + b"\n" + b"x" * (HEADER_BYTES - 8 - begin - 2)
    content = damaged(content, begin, filled)
    assert end - begin > 1
    part.write_bytes(content)
    with pytest.raises(InputError, match="no room for the length"):
        recover(part)
    assert part.read_bytes() == content


@pytest.mark.parametrize(("offset", "new"), [(4, b"\1"), (HEADER_BYTES - 4, b"\1"), (0, b"RF64")])
def test_sizes_that_contradict_each_other_cut_nothing(tmp_path, offset, new):
    """After a power failure only an undamaged header decides how much is kept."""
    part = write_part(tmp_path, ".wav")
    content = part.read_bytes()
    content = content.replace(b"spectrod|Boot: ", b"spectrod|Bott: ")  # as of an earlier boot
    part.write_bytes(damaged(content, offset, new))
    with pytest.raises(InputError, match="sizes contradict each other"):
        recover(part)
    assert part.read_bytes() == damaged(content, offset, new)
    part.write_bytes(content)
    assert recover(part).n_samples == 9001


@pytest.mark.parametrize("seed", range(8))
def test_random_damage_of_a_sound_part_is_one_error_or_harmless(tmp_path, seed):
    """Random damage to a sound part gives one error at most, and a refused file is unchanged."""
    rng = np.random.default_rng(seed)
    for suffix in (".wav", ".flac"):
        part = write_part(tmp_path, suffix, 4096 + seed)
        whole = part.read_bytes()
        for _ in range(40):
            content = bytearray(whole)
            for _ in range(rng.integers(1, 4)):
                limit = len(content) if rng.integers(2) else min(len(content), 700)
                content[rng.integers(limit)] = rng.integers(256)
            del content[rng.integers(1, len(content) + 1) :]
            part.write_bytes(content)
            try:
                path = recover(part).path
            except (InputError, StorageError):
                assert part.read_bytes() == content
            else:
                assert soundfile.info(path).frames >= 1
                path.unlink()


def flac_with(body, channels=1, fs=48000):
    """Make a FLAC file in spectrod's form whose blocks are arbitrary bytes."""
    sums = fs << 44 | (channels - 1) << 41 | 15 << 36
    info = struct.pack(">HH6xQ16x", 4096, 4096, sums)
    return b"fLaC" + struct.pack(">I", 0x80000000 | len(info)) + info + body


def flac_head(number):
    """Make a frame header with a right checksum: 4096 samples, 48 kHz, mono, 16 bits."""
    head = bytes([0xFF, 0xF8, 0xCA, 0x08, number])
    return head + bytes([flac_frames._crc8(head)])


HOSTILE_FLAC = {
    "syncs": b"\xff\xf8" * (MIB // 2),
    "headers": flac_head(5) * (MIB // 6),
    "headers and zeros": (flac_head(5) + bytes(3)) * (MIB // 9),
    "almost headers": (flac_head(5)[:-1] + b"\0") * (MIB // 6),
    "zeros": bytes(MIB),
    "noise": np.random.default_rng(3).bytes(MIB),
}


@pytest.mark.slow
@pytest.mark.timeout(30)
@pytest.mark.parametrize("kind", HOSTILE_FLAC)
def test_flac_recovery_takes_linear_time(tmp_path, monkeypatch, kind):
    """Recovery of a megabyte of any content as FLAC takes bounded time (60 kB once hung)."""
    checked = []
    read_head = flac_frames.read_head
    monkeypatch.setattr(
        flac_frames, "read_head", lambda *of: checked.append(None) or read_head(*of)
    )
    part = tmp_path / "x.flac.part"
    for channels in (1, 8):
        content = flac_with(HOSTILE_FLAC[kind], channels)
        part.write_bytes(content)
        try:
            path = recover(part).path
        except InputError:
            assert part.read_bytes() == content
        else:
            path.unlink()
        assert len(checked) <= flac_frames._HEADS_MAX
        checked.clear()


def test_a_flac_part_that_claims_more_than_it_holds_stays_as_it_is(tmp_path):
    """A FLAC block number is rejected if the blocks before it do not fit into the file."""
    number = 0x7F
    head = flac_head(number)
    body = head + bytes(4)
    # The checksum of a block that is right in itself.
    crc = 0
    for byte in body:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ (0x8005 if crc & 0x8000 else 0)) & 0xFFFF
    content = flac_with(body + crc.to_bytes(2, "big"))
    (tmp_path / "x.flac.part").write_bytes(content)
    with pytest.raises(InputError, match="claims 524288 samples: more than have room"):
        recover(tmp_path / "x.flac.part")
    assert (tmp_path / "x.flac.part").read_bytes() == content


@pytest.mark.slow
@pytest.mark.parametrize("channels", [1, 2, 8])
def test_torn_silence_is_recovered_to_the_last_block(tmp_path, channels):
    """Recovery finds the last of thousands of blocks of silence with 15 bytes each."""
    writer = SoundWriter(tmp_path / "x.flac", FS, channels, "s24")
    writer.write(Block(np.zeros((channels, 4096 * 300 + 100), np.float32), 0, 0, BEGIN_UTC_NS))
    writer.finish()
    content = (tmp_path / "x.flac").read_bytes()
    (tmp_path / "x.flac").unlink()
    for n_cut, n_blocks_min in ((1, 300), (3, 300), (40, 297)):
        (tmp_path / "x.flac.part").write_bytes(content[:-n_cut])
        recovered = recover(tmp_path / "x.flac.part")
        n_blocks, rest = divmod(recovered.n_samples, 4096)
        assert n_blocks_min <= n_blocks <= 300
        assert rest == 0
        assert len(soundfile.read(recovered.path)[0]) == recovered.n_samples
        recovered.path.unlink()


# ---- segments


def header_record(spec=SPEC, seq=0, file_name="", **more):
    signals = tuple(f"ch{n}" for n in range(spec.n_signals))
    about = Description(spec, "pond", signals, "spectrod", recording="night", **more)
    header = Header(about, Place(RECORDING), BEGIN_UTC_NS, 0, file_name)
    payload = padded(encode_header(header))
    return frame(Head(Kind.HEADER, RECORDING, seq, 0), payload)


def rows_record(seq, row=0, n_rows=1, index=None, spec=SPEC, t_utc_ns=BEGIN_UTC_NS):
    first = row % 2**40 * spec.hop if index is None else index
    indices = first if isinstance(first, list) else first + spec.hop * np.arange(n_rows)
    times = np.zeros((3, n_rows), "<i8")
    times[0] = indices
    times[2] = t_utc_ns
    values = np.zeros((n_rows, spec.n_signals, spec.n_values), "<f4")
    return frame(
        Head(Kind.ROWS, RECORDING, seq, row, n_rows, t_utc_ns),
        times.tobytes() + values.tobytes(),
    )


def lone_head(kind, seq, n_bytes, crc=0, rows=0):
    """Make a record header whose payload is elsewhere or missing."""
    packed = frames._HEAD.pack(
        frames.MAGIC, n_bytes, kind, 0, 0, rows, RECORDING, seq, 0, 0, 0, 0, 0, crc
    )
    return packed + struct.pack("<I", zlib.crc32(packed))


@pytest.mark.parametrize("number", [2**63, 2**64 - 1])
@pytest.mark.parametrize("which", ["seq", "row"])
def test_numbers_that_nobody_counts_to_are_damage(tmp_path, number, which):
    """Record numbers near the maximum count as damage, as the closing record needs one more."""
    last = rows_record(number, 1) if which == "seq" else rows_record(3, number)
    part = tmp_path / "x.spd.part"
    part.write_bytes(header_record() + rows_record(2) + last)
    recovered = recover_segment(part)
    assert (recovered.rows, recovered.cut_bytes) == (1, len(last))
    assert sum(batch.n_frames for batch in SegmentReader(recovered.path).batches()) == 1


def test_claimed_rows_that_do_not_exist_are_not_recovered(tmp_path):
    """A record that claims other rows than it holds is not recovered."""
    part = tmp_path / "x.spd.part"
    content = header_record() + rows_record(2)
    content += frame(Head(Kind.ROWS, RECORDING, 3, 1, 4_000_000_000), b"")
    part.write_bytes(content)
    with pytest.raises(StorageError, match="0 bytes: must be 4000000000 rows of 60"):
        recover_segment(part)
    assert part.read_bytes() == content


@pytest.mark.parametrize("content", [b"not a segment", b"x" * 8192])
def test_a_small_file_that_is_no_segment_is_not_deleted(tmp_path, content):
    """Recovery deletes only what is the start of a segment, not other small files."""
    part = tmp_path / "x.spd.part"
    part.write_bytes(content)
    assert recover_segment(part).path.read_bytes() == content


@pytest.mark.parametrize("content", [b"", bytes(4096), header_record()[:1000]])
def test_a_segment_that_ended_in_its_header_is_removed(tmp_path, content):
    """A segment that ends within its header had no rows and is removed."""
    part = tmp_path / "x.spd.part"
    part.write_bytes(content)
    assert recover_segment(part).path is None
    assert list(tmp_path.iterdir()) == []


SPARSE = {"unknown": 77, "rows": Kind.ROWS, "engine": Kind.ENGINE, "close": Kind.CLOSE}


@pytest.mark.slow
@pytest.mark.parametrize("which", SPARSE)
def test_a_record_of_4_gb_takes_no_memory(tmp_path, which):
    """A record header that claims 4 GB in a sparse file of 16 kB allocates no such memory."""
    kind = SPARSE[which]
    n_bytes = 2**32 - 1
    begin = header_record() + rows_record(2)
    path = tmp_path / "x.spd.part"
    with path.open("wb") as file:
        file.write(begin + lone_head(kind, 3, n_bytes))
        file.seek(n_bytes, os.SEEK_CUR)
        file.write(rows_record(4, 1, 2))
    code = """
    from pathlib import Path
    from spectrod.formats.segment.segment_reader import SegmentReader
    from spectrod.formats.segment.segment_recovery import recover
    LIMIT
    part = Path(sys.argv[1])
    print(sum(one.n_frames for one in SegmentReader(part).batches()))
    print(recover(part).rows)
    """
    done = run_limited(48, code, path)
    assert done.stdout == "3\n3\n", done.stderr[-500:]


@pytest.mark.slow
def test_recovery_checks_large_records_piece_by_piece(tmp_path):
    """Recovery checks a row of 64 MB without holding it in memory."""
    spec = SpectrumSpec(float(FS), 32, win_length=16, hop=10, nfft=1 << 20)
    n_bytes = 24 + 4 * spec.n_signals * spec.n_values
    zeros, crc = bytes(MIB), 0
    for first in range(0, n_bytes, MIB):
        crc = zlib.crc32(zeros[: n_bytes - first], crc)
    path = tmp_path / "x.spd.part"
    with path.open("wb") as file:
        file.write(header_record(spec) + lone_head(Kind.ROWS, 2, n_bytes, crc, rows=1))
        file.truncate(file.tell() + n_bytes)
    code = """
    from pathlib import Path
    from spectrod.formats.segment.segment_recovery import recover
    LIMIT
    print(recover(Path(sys.argv[1])).rows)
    """
    done = run_limited(40, code, path)
    assert done.stdout == "1\n", done.stderr[-500:]


@pytest.mark.slow
def test_holes_are_not_searched(tmp_path):
    """A hole of a terabyte after a damaged header is skipped at once."""
    path = tmp_path / "x.spd.part"
    with path.open("wb") as file:
        file.write(header_record() + rows_record(2))
        file.seek(1 << 40)
        file.write(rows_record(3, 1, 2))
    assert recover_segment(path).rows == 3


class CountedFile:
    """A binary file that counts the bytes that are read."""

    def __init__(self, file):
        self.fileno, self.seek, self._read = file.fileno, file.seek, file.read
        self.n_read = 0

    def read(self, n_bytes):
        data = self._read(n_bytes)
        self.n_read += len(data)
        return data


def test_records_that_follow_closely_on_damage_cost_no_more_than_others(tmp_path):
    """Each record found by search costs no read of a megabyte when records are close together."""
    path = tmp_path / "x.spd"
    n = 300
    records = (rows_record(2 + k, k) for k in range(n))
    path.write_bytes(header_record() + b"".join(b"\0" + one for one in records))
    with path.open("rb") as file:
        counted = CountedFile(file)
        assert sum(record.head.kind == Kind.ROWS for record in Walk(counted)) == n
    assert counted.n_read < 40 * path.stat().st_size
    assert sum(batch.n_frames for batch in SegmentReader(path).batches()) == n


# From Python 3.12 on, C code may recurse far deeper than Python code.
DEEP = "[" * 100_000 + "]" * 100_000

BAD_HEADERS = {
    "fs": ('"fs": 8000.0', '"fs": 1e-300', "fs=1e-300: must be 0.001 to 1e\\+10 Hz"),
    "fs far": ('"fs": 8000.0', '"fs": 1e300', "fs=1e\\+300: must be"),
    "row": ('"hop": 10,', '"hop": 2147483647,', "a row of 2.14748e\\+09 s"),
    "signals": ('["ch0"]', "[]", "names of 0 signals: must be 1"),
    "recording": ('"0123456789abcdef"', '"-123456789abcdef"', "recording"),
    "first row": ('"first_row": 0', '"first_row": -1', "first_row"),
    "time": (f'"created_utc_ns": {BEGIN_UTC_NS}', '"created_utc_ns": 1e300', "created_utc_ns"),
    "window": ('"window": "hann"', '"window": ["kaiser", 8.6]', "window"),
    "deep": ('"settings": {}', '"settings": {"a":' + DEEP + "}", "nested too deep"),
}


@pytest.mark.parametrize("which", BAD_HEADERS)
def test_a_header_with_impossible_numbers_is_one_error(tmp_path, which):
    """Times and frequencies in a header must give results in range, else there is one error."""
    old, new, text = BAD_HEADERS[which]
    spec = SpectrumSpec(1.0, win_length=16, hop=10, nfft=16) if which == "row" else SPEC
    record = header_record(spec)
    payload = record[HEAD_BYTES:].rstrip()
    assert old.encode() in payload
    payload = padded(payload.replace(old.encode(), new.encode()))
    content = frame(Head(Kind.HEADER, RECORDING, 0, 0), payload) + rows_record(2)
    for name in ("x.spd", "x.spd.part"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(StorageError, match=f"(?i){text}"):
            SegmentReader(tmp_path / name)
    (tmp_path / "x.spd").unlink()
    with pytest.raises(StorageError):
        recover_segment(tmp_path / "x.spd.part")
    assert (tmp_path / "x.spd.part").read_bytes() == content


def test_a_writer_makes_no_header_that_readers_refuse(tmp_path):
    """Settings of more than 16 MiB, which readers refuse, are an error before a file exists."""
    about = Description(SPEC, "pond", ("0",), "spectrod", settings={"a": "x" * (16 * MIB)})
    with pytest.raises(ConfigError, match=r"x\.spd: settings and attributes of 16781236 bytes"):
        SegmentWriter(tmp_path / "x.spd", about)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("index", [[-1], [2**62], [2**63 - 1], [10, 0], [7, 7]])
def test_sample_indices_that_nobody_counts_are_one_error(tmp_path, index):
    """Sample indices that overflow 64 bits or go back are one error."""
    (tmp_path / "x.spd").write_bytes(header_record() + rows_record(2, 0, len(index), index))
    with pytest.raises(StorageError, match=r"x\.spd: record at 4096: sample_index of .*must go up"):
        list(SegmentReader(tmp_path / "x.spd").batches())


@pytest.mark.parametrize("t_utc_ns", [-(2**63), 2**63 - 1, 2**63 - 1_250_000])
def test_times_that_do_not_fit_64_bits_are_one_error(tmp_path, t_utc_ns):
    """A row's time whose end overflows 64 bits is one error."""
    (tmp_path / "x.spd").write_bytes(header_record() + rows_record(2, t_utc_ns=t_utc_ns))
    with pytest.raises(StorageError, match=r"x\.spd: record at 4096: t_utc_ns of .*must be"):
        list(SegmentReader(tmp_path / "x.spd").batches())


def test_a_recording_of_three_centuries_is_one_error(tmp_path):
    """A recording too long for 64 bits of nanoseconds is one error."""
    index = round(293 * 365.25 * 86400) * FS
    (tmp_path / "x.spd").write_bytes(header_record() + rows_record(2, index=index))
    with pytest.raises(StorageError, match=r"x\.spd: ends 293 years after the first sample"):
        list(SegmentReader(tmp_path / "x.spd").batches())


def test_an_index_that_goes_back_is_counted_on_by_utc(tmp_path):
    """After an index that goes back, rows are placed by UTC, and a picture can be drawn."""
    records = (
        rows_record(2, 0, index=0),
        rows_record(3, 1, index=0, t_utc_ns=BEGIN_UTC_NS + 10**9),
    )
    (tmp_path / "x.spd").write_bytes(header_record() + b"".join(records))
    batches = list(SegmentReader(tmp_path / "x.spd").batches())
    assert [batch.sample_index.tolist() for batch in batches] == [[0], [FS]]
    assert [batch.gap_samples for batch in batches] == [0, FS - SPEC.hop]
    assert main(["convert", str(tmp_path / "x.spd"), str(tmp_path / "x.png")]) == 0


@pytest.mark.parametrize("seed", range(6))
def test_random_damage_of_a_segment_is_one_error_or_a_gap(tmp_path, seed):
    """Random damage to a segment, even with right checksums, gives one error or a gap."""
    rng = np.random.default_rng(seed)
    words = [0, 1, 2, 2**16 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1]
    for trial in range(60):
        records = [header_record(), rows_record(2)]
        for seq in range(3, 6):
            fields = [int(words[rng.integers(len(words))]) for _ in range(9)]
            kind = [1, 2, 2, 3, 4, 99][rng.integers(6)]
            payload = [b"", rng.bytes(60), rng.bytes(8), rows_record(0)[HEAD_BYTES:]][
                rng.integers(4)
            ]
            head = Head(
                kind,
                RECORDING,
                seq if rng.integers(4) else fields[0],
                fields[1],
                1 if rng.integers(2) else fields[2] % 2**32,
                fields[3] % 2**63,
                fields[4],
                fields[5],
                fields[6] % 256,
                fields[7] % 2**16,
                fields[8] % 2**32,
            )
            records.append(frame(head, payload))
        part = tmp_path / f"{trial}.spd.part"
        content = b"".join(records)
        part.write_bytes(content)
        try:
            for reader in (SegmentReader(part), SegmentReader(tmp_path)):
                reader.span_utc_ns()
                list(reader.batches(start_utc_ns=1, stop_utc_ns=2**63))
                list(reader.batches())
        except SpectrodError:
            pass
        try:
            recover_segment(part)
        except SpectrodError:
            assert part.read_bytes() == content
        for one in tmp_path.iterdir():
            one.unlink()


# ---- sound files as sources


def chunk(name, content, size=None):
    size = len(content) if size is None else size
    return struct.pack("<4sI", name, size) + content + bytes(len(content) % 2)


def wav_file(path, *chunks, form=b"RIFF", fs=FS, n_samples=5000, data_size=None):
    """Write 16-bit mono silence after any chunks."""
    format_ = chunk(b"fmt ", struct.pack("<HHIIHH", 1, 1, fs, 2 * fs, 2, 16))
    body = b"".join((*chunks, format_, chunk(b"data", bytes(2 * n_samples), data_size)))
    size = 0xFFFFFFFF if form == b"RF64" else 4 + len(body)
    path.write_bytes(form + struct.pack("<I", size) + b"WAVE" + body)
    return path


def ds64(data_size, n_samples=5000, riff_size=10_060):
    return chunk(b"ds64", struct.pack("<QQQI", riff_size, data_size, n_samples, 0))


def opened(path, pace="full", **settings):
    return open_source(SourceConfig(uri=os.fspath(path), **settings), pace)


def samples_of(source, n_max):
    """Yield the samples of a source that is a thread, or of one that the analysis reads itself."""
    if not isinstance(source, WavFileSource):
        yield from source.blocks(n_max)
        return
    reader = source.open_reader()
    try:
        while (block := reader.read(n_max)) is not None:
            yield block.samples
    finally:
        reader.release()


@pytest.mark.parametrize("size", [20_000, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1])
@pytest.mark.parametrize("pace", ["full", "realtime"])
def test_an_rf64_size_beyond_any_file_is_one_error(tmp_path, size, pace):
    """An RF64 size beyond any file is one error, and a smaller wrong one is a truncation.

    Where truncation is no error and libsndfile opens the file, the existing samples are read.
    """
    path = wav_file(tmp_path / "x.wav", ds64(size, size // 2), form=b"RF64", data_size=2**32 - 1)
    assert plain_layout(os.fspath(path)) is None
    assert recorded_at(os.fspath(path)) is None
    with pytest.raises(InputError, match=r"x\.wav: "):
        list(samples_of(opened(path, pace, strict=True), 100_000))
    if size > 2**63:
        return
    source = opened(path, pace)
    assert sum(block.shape[1] for block in samples_of(source, 100_000)) == source.n_samples == 5000
    assert source.left_out.n_files == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", [b"ds64", b"fmt ", b"bext", b"guan", b"LIST"])
def test_a_chunk_longer_than_its_file_is_not_allocated(tmp_path, name):
    """A ds64 chunk of 4 GB in a sparse file of 8 kB allocates no such memory."""
    path = tmp_path / "x.wav"
    n_bytes = 2**32 - 3
    with path.open("wb") as file:
        file.write(b"RF64" + struct.pack("<I", 2**32 - 1) + b"WAVE")
        file.write(struct.pack("<4sI", name, n_bytes) + struct.pack("<QQQ", 9, 10_000, 5000))
        file.truncate(8 + 12 + n_bytes)
    code = """
    import os
    from spectrod.source.open_source import open_source
    from spectrod.config.config import SourceConfig
    from spectrod.source.files.recorded_at import recorded_at
    from spectrod.source.files.wavfile import WavFileSource, plain_layout, _comment
    from spectrod.source.files.soundfile import SoundFile
    LIMIT
    print(recorded_at(sys.argv[1]), plain_layout(sys.argv[1]), repr(_comment(sys.argv[1])))
    try:
        SoundFile(sys.argv[1])
    except SpectrodError:
        print("refused")
    """
    done = run_limited(32, code, path)
    assert done.stdout == "None None ''\nrefused\n", done.stderr[-500:]


def test_lists_of_all_kinds_are_not_collected(tmp_path):
    """Only the first list of texts in a WAV file is read, and others are skipped."""
    lists = [chunk(b"LIST", b"%04d" % k + bytes(1 << 19)) for k in range(20)]
    texts = [chunk(b"LIST", b"INFO" + chunk(b"ICMT", text)) for text in (b"first", b"second")]
    path = wav_file(tmp_path / "x.wav", *lists, *texts)
    found = read_chunks(os.fspath(path), (b"LISTINFO",))
    assert list(found) == [b"LISTINFO"]
    assert b"first" in found[b"LISTINFO"]


IMPOSSIBLE_TIMES = [
    chunk(b"guan", b"Timestamp: 0001-01-01T00:00:00+23:59\n"),
    chunk(b"guan", b"Timestamp: 9999-12-31T23:59:59-23:59\n"),
    chunk(b"guan", b"Timestamp: 9999-12-31T23:59:59.999999-00:01\n"),
    chunk(b"guan", b"Timestamp: 1899-12-31T23:59:59Z\n"),
    chunk(b"guan", b"Timestamp: 2200-01-01T00:00:00Z\n"),
    chunk(b"guan", b"Timestamp: 2026-01-01T00:00:00+99:99\n"),
    chunk(b"guan", b"Timestamp: 2026-13-01T00:00:00\n"),
    chunk(b"guan", b"Timestamp: " + b"T00:" * 100 + b" \n"),
    chunk(b"bext", bytes(320) + b"9999-99-99" + b"99:99:99" + bytes(264)),
    chunk(b"bext", bytes(320) + b"2200-01-01" + b"00:00:00" + b"\xff" * 8 + bytes(256)),
    chunk(b"LIST", b"INFO" + chunk(b"ICMT", b"Recorded at 00:00:00 01/01/0001 (UTC+14) ")),
    chunk(b"LIST", b"INFO" + chunk(b"ICMT", b"Recorded at 23:59:59 31/12/9999 (UTC-99:99)")),
    chunk(b"LIST", b"INFO" + chunk(b"ICMT", b"Recorded at 99:99:99 99/99/9999 (UTC)   ")),
]


@pytest.mark.parametrize("header", IMPOSSIBLE_TIMES, ids=range(len(IMPOSSIBLE_TIMES)))
@pytest.mark.parametrize("pace", ["full", "realtime"])
def test_an_impossible_time_is_ignored(tmp_path, caplog, header, pace):
    """An impossible time is ignored with a warning, and the name's time counts."""
    source = opened(wav_file(tmp_path / "x.wav", header), pace)
    assert source.start_utc_ns is None
    assert "x.wav: " in caplog.text
    assert "must be a time from 1900 to 2199: it is ignored" in caplog.text
    source = opened(wav_file(tmp_path / "x_20260501_043000Z.wav", header), pace)
    assert source.start_utc_ns == 1_777_609_800 * 10**9
    assert sum(block.shape[1] for block in samples_of(source, 1000)) == 5000


@pytest.mark.parametrize("header", IMPOSSIBLE_TIMES, ids=range(len(IMPOSSIBLE_TIMES)))
def test_a_time_that_cannot_be_does_not_spoil_a_folder(tmp_path, header):
    """In a folder an impossible time is replaced by the name's, else the file is skipped."""
    wav_file(tmp_path / "20260501_043000.wav")
    wav_file(tmp_path / "20260501_043003.wav", header)
    source = opened(tmp_path)
    assert (source.start_utc_ns, source.n_samples) == (1_777_609_800 * 10**9, 3 * FS + 5000)
    wav_file(tmp_path / "other.wav", header)
    with pytest.raises(InputError, match=r"other\.wav: has no start time"):
        opened(tmp_path, strict=True)
    source = opened(tmp_path)
    assert (source.n_samples, source.left_out.n_files) == (3 * FS + 5000, 1)


def test_a_folder_of_three_centuries_is_one_error(tmp_path):
    """A folder whose times exceed 64 bits of nanoseconds is one error."""
    for year in (1900, 2199):
        wav_file(tmp_path / f"{year}0101_000000.wav")
    with pytest.raises(InputError, match="lasts 299 years: must be at most 60"):
        opened(tmp_path)


def test_a_file_of_a_century_is_one_error(tmp_path):
    """A sparse file of a century, at one sample per second, is one error."""
    path = wav_file(tmp_path / "x.wav", fs=1, n_samples=0, data_size=2**32 - 2**16)
    with path.open("r+b") as file:
        file.truncate(44 + 2**32)
    with pytest.raises(InputError, match="lasts 68 years: must be at most 60"):
        opened(path)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("n_channels", [4097, 32_767])
def test_a_file_of_many_channels_is_one_error(tmp_path, n_channels):
    """A file with too many channels is refused before the slow selection of channels."""
    fields = struct.pack("<HHIIHH", 1, n_channels, FS, 0, 2 * n_channels, 16)
    body = b"WAVE" + chunk(b"fmt ", fields) + chunk(b"data", bytes(20 * n_channels))
    (tmp_path / "x.wav").write_bytes(b"RIFF" + struct.pack("<I", len(body)) + body)
    with pytest.raises(InputError, match=f"has {n_channels} channels: must be at most 4096"):
        opened(tmp_path / "x.wav")


@pytest.mark.slow
def test_data_after_a_coded_stream_are_not_read_to_the_end(tmp_path):
    """Sixteen gigabytes of zeros after an MP3 are not read into memory to be counted."""
    path = tmp_path / "x.mp3"
    noise = np.random.default_rng(1).standard_normal(20_000) * 0.1
    soundfile.write(path, noise, 16_000, format="MP3")
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.truncate(size + (1 << 34))
    code = """
    from spectrod.source.open_source import open_source
    from spectrod.config.config import SourceConfig
    source = open_source(SourceConfig(uri=sys.argv[1]), "full")
    blocks = source.blocks(1024)
    next(blocks)
    LIMIT
    for block in blocks:
        pass
    print(source.left_out.lines)
    """
    done = run_limited(64, code, path)
    assert "no frame follows its first" in done.stdout, done.stderr[-500:]
    assert f"but {1 << 34} bytes do" in done.stdout


@pytest.mark.slow
@pytest.mark.timeout(15)
def test_the_origin_of_a_flac_file_is_found_in_linear_time(tmp_path):
    """The origin of a FLAC file is found in linear time, so it cannot delay the recorder."""
    begin = b"Recorded at 00:00:00.0 01/01/2020 (UTC) by "
    for n, body in enumerate((begin * 1500, (begin + b" from " + b"x" * 30) * 800) * 20):
        path = tmp_path / f"{n}.flac"
        path.write_bytes(b"fLaC" + body)
        with path.open("rb") as file:
            assert read_origin(file.fileno(), ".flac") is None


HOSTILE_TEXTS = {
    "times": b"Timestamp: " + b"T00:" * (MIB // 4 - 9) + b" x\n",
    "keys": b"Timestamp:\n" * (MIB // 11),
    "blanks": b"Timestamp: " + b" " * (MIB - 20),
    "lines": b"Timestamp:" + b"\n" * (MIB - 20),
}


@pytest.mark.slow
@pytest.mark.timeout(20)
@pytest.mark.parametrize("which", HOSTILE_TEXTS)
def test_notes_are_read_in_linear_time(tmp_path, which):
    """A megabyte of GUANO is read in linear time."""
    path = wav_file(tmp_path / "x.wav", chunk(b"guan", HOSTILE_TEXTS[which]))
    assert recorded_at(os.fspath(path)) is None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_random_damage_of_a_wav_source_is_one_error_or_harmless(tmp_path, seed):
    """Random damage to a WAV source gives one error at most."""
    rng = np.random.default_rng(seed)
    chunks = (
        ds64(10_000),
        IMPOSSIBLE_TIMES[seed],
        chunk(b"bext", bytes(320) + b"2026-05-01" + b"04:30:00" + bytes(264)),
        chunk(b"LIST", b"INFO" + chunk(b"ICMT", b"Recorded at 04:30:00 01/05/2026 (UTC)")),
    )
    path = wav_file(tmp_path / "x.wav", *chunks, form=b"RF64", data_size=2**32 - 1)
    whole, found = path.read_bytes(), set()
    for _ in range(150):
        content = bytearray(whole)
        for _ in range(rng.integers(1, 5)):
            at = rng.integers(len(whole) - 10_000)
            size = rng.choice([1, 2, 4, 8])
            word = int(rng.choice([0, 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1]))
            content[at : at + size] = word.to_bytes(8, "little")[:size]
        path.write_bytes(content)
        for pace in ("full", "realtime"):
            try:
                source = opened(path, pace)
                for block in samples_of(source, 4096):
                    assert block.shape[0] == source.channels
            except SpectrodError as error:
                found.add("\n" in str(error))
    assert found == {False}


# ---- pictures


def png_chunk(name, content):
    return (
        struct.pack(">I", len(content))
        + name
        + content
        + struct.pack(">I", zlib.crc32(name + content))
    )


def png_file(path, columns, rows, *more, depth=8, colour_type=0, pixels=b""):
    """Write a PNG that claims any size."""
    header = png_chunk(b"IHDR", struct.pack(">IIBBBBB", columns, rows, depth, colour_type, 0, 0, 0))
    body = b"".join((*more, png_chunk(b"IDAT", zlib.compress(pixels, 9)), png_chunk(b"IEND", b"")))
    path.write_bytes(SIGNATURE + header + body)
    return path


@pytest.mark.slow
def test_a_picture_of_too_many_pixels_is_refused_before_it_is_decoded(tmp_path):
    """A PNG of 21 kB with 13300 x 13300 bits is refused before it takes 6 GB."""
    side = 13_300
    path = png_file(
        tmp_path / "x.png", side, side, depth=1, pixels=bytes(side * (1 + -(-side // 8)))
    )
    code = """
    from pathlib import Path
    from spectrod.apps.image.picture_files import read_picture
    LIMIT
    for path in sys.argv[1:]:
        try:
            read_picture(Path(path))
        except SpectrodError as error:
            print(error)
    """
    paths = [path]
    for name, header in (("p5", b"P5 13300 13300 255\n"), ("p2", b"P2 99999999 1 9\n1 ")):
        paths.append(tmp_path / name)
        paths[-1].write_bytes(header)
    done = run_limited(16, code, *paths)
    rule = "must be at most 67108864"
    assert done.stdout.splitlines() == [
        f"{paths[0]}: 13300 x 13300 = 176890000 pixels: {rule}",
        f"{paths[1]}: 13300 x 13300 = 176890000 pixels: {rule}",
        f"{paths[2]}: 99999999 x 1 = 99999999 pixels: {rule}",
    ], done.stderr[-500:]


@pytest.mark.parametrize("colour_type", [0, 2])
def test_a_png_with_impossible_pixels_is_refused(tmp_path, colour_type):
    """A PNG that claims more pixels than deflate can make of its bytes is refused."""
    path = png_file(tmp_path / "x.png", 8000, 8000, colour_type=colour_type, pixels=bytes(100))
    with pytest.raises(InputError, match=r"truncated: 8000 x 8000 pixels do not fit \d\d bytes"):
        read_picture(path)


@pytest.mark.parametrize("size", [(9000, 9000), (8, 9)])
def test_a_png_has_one_header(tmp_path, size):
    """A PNG with two headers is refused, as Pillow uses the last, whose size was not checked."""
    second = png_chunk(b"IHDR", struct.pack(">IIBBBBB", *size, 8, 0, 0, 0, 0))
    path = png_file(tmp_path / "x.png", 8, 8, second, pixels=bytes(72))
    with pytest.raises(InputError, match="not a PNG that can be read: has two headers"):
        read_picture(path)


@pytest.mark.parametrize("is_pipe", [False, True])
def test_a_picture_of_too_many_bytes_is_refused(tmp_path, monkeypatch, is_pipe):
    """A picture file above the limit is not read, and a pipe only to the limit."""
    monkeypatch.setattr(image_files, "FILE_BYTES_MAX", 3 * MIB)
    path = tmp_path / "x.pgm"
    if is_pipe:
        os.mkfifo(path)
        program = "import sys; open(sys.argv[1], 'wb').write(b'P5 1 1 255\\n' + bytes(9 << 20))"
        writer = subprocess.Popen([sys.executable, "-c", program, path], stderr=subprocess.DEVNULL)
    else:
        with path.open("wb") as file:
            file.truncate(1 << 40)
    with pytest.raises(InputError, match=f"more than {3 * MIB} bytes: too long for a picture"):
        read_picture(path)
    if is_pipe:
        assert writer.wait(60) != 0


BAD_CHUNKS = {
    "iCCP": b"name",
    "acTL": b"\0\0\0\0\0\0\0\0",
    "eXIf": b"II*",
    "zTXt": b"spectrod\0\0" + zlib.compress(bytes(9 * MIB)),
    "tRNS": b"",
    "cHRM": b"1",
    "pHYs": b"1",
    "fcTL": b"1",
}


@pytest.mark.parametrize("name", BAD_CHUNKS)
@pytest.mark.parametrize("read", [read_picture, read_pixel_map, read_levels])
def test_damaged_chunks_of_a_png_are_one_error_or_left_out(tmp_path, name, read):
    """Damaged PNG chunks give one error or are ignored, without exceptions of Pillow."""
    bad = png_chunk(name.encode(), BAD_CHUNKS[name])
    path = png_file(tmp_path / "x.png", 2, 2, bad, pixels=bytes(6))
    try:
        assert read(path).shape == (2, 2)
    except InputError as error:
        text = str(error)
    else:
        text = f"{path}: "
    assert text.startswith(f"{path}: ")
    assert "\n" not in text


def picture_with(path, *, is_international=False, **changes):
    """Write a PNG with a modified description of itself."""
    about = {
        "plots": [[0, 0, 2, 2]],
        "f_scale": "linear",
        "f_min_hz": 0.0,
        "f_max_hz": 4000.0,
        "duration_s": 1.0,
        "level_min": -100.0,
        "level_max": 0.0,
        "level_unit": "dB",
        "n_levels": 240,
        "fs": 8000.0,
        "channels": 1,
        "window": "hann",
        "win_length": 16,
        "hop": 16,
        "nfft": 16,
        "scaling": "density",
        "enbw_hz": 1.0,
        "engine": "numpy",
        "begin_utc_ns": 0,
        "gaps": 0,
        "gap_samples": 0,
        "software": "spectrod",
    }
    text = json.dumps(about | changes).replace('"DEEP"', DEEP)
    chunk = png_chunk(b"tEXt", b"spectrod\0" + text.encode())
    if is_international:
        chunk = png_chunk(b"iTXt", b"spectrod\0\0\0\0\0" + text.encode())
    palette = png_chunk(b"PLTE", bytes(768))
    return png_file(path, 2, 2, palette, chunk, colour_type=3, pixels=bytes(6))


def test_the_picture_of_the_next_tests_is_right(tmp_path):
    """The picture used by the next tests is valid, so their errors have other causes."""
    for is_international in (False, True):
        path = picture_with(tmp_path / "x.png", is_international=is_international)
        assert read_levels(path).level.tolist() == [[-100.0, -100.0], [-100.0, -100.0]]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"n_levels": 1}, "damaged description: .*n_levels"),
        ({"n_levels": 0}, "damaged description: .*n_levels"),
        ({"plots": [[0, 0, 10**9, 10**9]]}, "damaged description: .*plots"),
        ({"plots": [[0, 0, 2, 100_000_000]]}, "a plot ends at 2, 100000000, beyond the page"),
        ({"plots": [[1, 1, 2, 2]]}, "a plot ends at 3, 3, beyond the page"),
        ({"plots": [[-1, 0, 2, 2]]}, "damaged description: .*plots"),
        ({"plots": [[0, 0, 0, 2]]}, "damaged description: .*plots"),
        ({"options": {"a": "DEEP"}}, "damaged description"),
    ],
)
def test_the_description_in_a_picture_is_checked(tmp_path, changes, text):
    """The numbers in a picture's description are checked, as they decide the work."""
    path = picture_with(tmp_path / "x.png", **changes)
    with pytest.raises(InputError, match=rf"x\.png: .*{text}"):
        read_levels(path)


@pytest.mark.slow
@pytest.mark.timeout(20)
@pytest.mark.parametrize("unit", [b'<metadata id="spectrod">', b"# spectrod: ", b"\n"])
def test_texts_in_pictures_are_found_in_linear_time(tmp_path, unit):
    """Texts in pictures are found in linear time, also in an SVG with repeated metadata."""
    for begin in (b"<?xml", b"P5\n"):
        path = tmp_path / "x"
        path.write_bytes(begin + unit * (MIB // len(unit)))
        with pytest.raises(InputError):
            read_pixel_map(path)


@pytest.mark.slow
def test_a_plain_picture_takes_memory_by_its_pixels(tmp_path):
    """A plain picture of two million numbers takes memory by pixels, not by Python objects."""
    path = tmp_path / "x.pgm"
    path.write_bytes(b"P2 2000 1000 9999\n" + b"123\n" * 2_000_000)
    code = """
    from pathlib import Path
    from spectrod.apps.image.picture_files import read_picture
    LIMIT
    planes = read_picture(Path(sys.argv[1])).planes
    print(planes.shape, planes.min(), planes.max())
    """
    done = run_limited(60, code, path)
    assert done.stdout == "(1, 1000, 2000) 123 123\n", done.stderr[-500:]


# ---- the recorder


def recording_in(folder, events):
    config = RecordingConfig("night", min_free_mb=0.0, rotate_s=0, samples="wav")
    about = Recorded("pond", ("0",), float(FS), "spectrod test", dict)
    return ConfiguredRecording(config, about, folder, events)


def test_no_part_keeps_a_recording_from_starting(tmp_path):
    """Damaged parts of each kind are kept and reported once, and recording continues."""
    left = {}
    for damage, place in WAV_DAMAGE.items():
        part = write_part(tmp_path, f"{damage}.wav")
        left[part.name] = damaged(part.read_bytes(), *place)
        part.write_bytes(left[part.name])
    comment = (
        b"Recorded at 04:30:00.1 01/05/2026 (UTC) by x from pond. Recording night, file a.flac. "
    )
    left["a.flac.part"] = flac_with(comment + HOSTILE_FLAC["headers"][:60_000])
    left["b.spd.part"] = header_record(file_name="b.spd") + frame(
        Head(Kind.ROWS, RECORDING, 3, 2**64 - 9, 99), bytes(60)
    )
    left["c.spd.part"] = header_record(file_name="c.spd") + frame(
        Head(Kind.ROWS, RECORDING, 3, 9, 99), bytes(60)
    )
    for name, content in left.items():
        (tmp_path / name).write_bytes(content)
    events = EventLog()
    recording = recording_in(tmp_path, events)
    recording.start()
    times = np.arange(3, dtype=np.int64)
    values = np.zeros((3, 1, SPEC.n_values), np.float32)
    recording.write(SpectrumBatch(values, times * 10, times, times + BEGIN_UTC_NS, SPEC, "numpy"))
    recording.finish()
    assert [one for one in events.since() if one.kind == "record.begun"]
    unrecovered = [one.text for one in events.since() if one.kind == "record.unrecovered"]
    # Each claims to be of this recording, or it would be ignored.
    assert not any("this recording did not write it" in text for text in unrecovered)
    assert len(unrecovered) == len(left) - 1
    left["b.spd.part.damaged"] = left.pop("b.spd.part")
    for name, content in left.items():
        assert (tmp_path / name).read_bytes() == content, name
    (made,) = tmp_path.glob("*.spd")
    assert sum(batch.n_frames for batch in SegmentReader(made).batches()) == 3


def test_a_fault_of_recovery_itself_does_not_keep_a_recording_from_starting(
    tmp_path, monkeypatch, caplog
):
    """If a parser fails in recovery, the file stays, the log reports a bug, recording starts."""
    about = Description(SPEC, "pond", ("0",), "spectrod", recording="night")
    writer = SegmentWriter(tmp_path / "x.spd", about)
    times = np.arange(1, dtype=np.int64)
    values = np.zeros((1, 1, SPEC.n_values), np.float32)
    writer.write(SpectrumBatch(values, times, times, times + BEGIN_UTC_NS, SPEC, "numpy"))
    writer.abort()
    content = (tmp_path / "x.spd.part").read_bytes()

    def fail(*_):
        raise ZeroDivisionError("of a parser")

    monkeypatch.setattr("spectrod.formats.segment.segment_recovery.recover", fail)
    events = EventLog()
    recording = recording_in(tmp_path, events)
    recording.start()
    recording.finish()
    (reported,) = [one.text for one in events.since() if one.kind == "record.unrecovered"]
    assert "x.spd.part: is left unchanged: ZeroDivisionError('of a parser')" in reported
    assert "please report this" in reported
    assert "cannot recover" in caplog.text
    assert (tmp_path / "x.spd.part").read_bytes() == content
