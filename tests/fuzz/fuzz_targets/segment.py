"""Segments (.spd): records, their headers and index, reading and recovery."""

import random
import struct
import sys
import tempfile
import zlib
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from fuzzing import Scratch, Target
from mutation import ODD_INTEGERS, havoc, mutate_json

from spectrod.dsp.conditions import Condition
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.formats.segment.segment_reader import SegmentReader
from spectrod.formats.segment.segment_recovery import recover
from spectrod.formats.segment.segment_table import SegmentTable
from spectrod.formats.segment.segment_writer import SegmentWriter
from spectrod.lib.errors import InputError, StorageError

sys.path.insert(0, str(Path(__file__).parents[2] / "segments"))
from segment_rows import BEGIN_UTC_NS, describe, make_batch, make_spec

_MAGIC = b"SPD\x01"
_HEAD = struct.Struct("<4sIBBHIQQQqQQII")
_HEAD_BYTES = _HEAD.size + 4
_FIELDS = (8, 8, 16, 32, 64, 64, 64, 64, 64, 64, 32)
"""Bits of kind, flags, engine, rows, recording, seq, row, time, gap, skipped rows, cut frames."""

_TIME = 7
_ROW_MIN_BYTES = 24
_SCRATCH = Scratch()


def check_read(data: bytes) -> None:
    """Read all rows, those from a number on, those of a time, and backwards; no more than fit."""
    path = _SCRATCH.put("input.spd", data)
    with suppress(InputError, StorageError):
        _read(SegmentReader(path), len(data))
    with suppress(InputError, StorageError):
        _read_backwards(SegmentTable(path), len(data))


def _read(reader: SegmentReader, n_bytes: int) -> None:
    begin_ns, end_ns = reader.span_utc_ns()
    assert isinstance(begin_ns, int)
    assert isinstance(end_ns, int)
    n_rows = 0
    for batch in reader.batches():
        assert batch.values.shape[1:] == (batch.spec.n_signals, batch.spec.n_values)
        n_rows += batch.n_frames
    assert n_rows * _ROW_MIN_BYTES <= n_bytes
    assert reader.damaged_bytes <= n_bytes
    n_some = sum(batch.n_frames for batch in reader.batches(start_row=2, stop_row=5))
    assert n_some <= n_rows
    for _ in reader.batches(start_utc_ns=BEGIN_UTC_NS + 10**6):
        pass


def _read_backwards(table: SegmentTable, n_bytes: int) -> None:
    assert len(table) * _ROW_MIN_BYTES <= n_bytes
    n_rows = 0
    for places, batch, rows in table.read(np.arange(len(table))[::-1]):
        n_rows += len(rows)
        assert places.stop == n_rows
        assert rows.max() < batch.n_frames
    assert n_rows == len(table)


def check_recovery(data: bytes) -> None:
    """Recover a segment that a killed program left; kept rows are read in that number."""
    _SCRATCH.clear("input.spd", "input.spd.part", "input.spd.part.damaged")
    part = _SCRATCH.create("input.spd.part", data)
    try:
        recovered = recover(part)
    except (InputError, StorageError):
        assert part.read_bytes() == data
        return
    assert not part.exists()
    assert recovered.rows >= 0
    assert 0 <= recovered.cut_bytes <= len(data)
    if recovered.path is None:
        return
    if recovered.path.suffix == ".damaged":
        assert recovered.path.read_bytes() == data
        return
    kept = recovered.path.read_bytes()
    assert kept[: len(data) - recovered.cut_bytes] == data[: len(data) - recovered.cut_bytes]
    try:
        _read(SegmentReader(recovered.path), len(kept))
    except (InputError, StorageError):
        return


def seeds() -> list[bytes]:
    """Make segments of several analyses, finished ones; all are short."""
    made = [_finished(make_spec()), _finished(make_spec(channels=2, nfft=17))]
    made.append(_finished(make_spec(bands="octave", fs=48000.0, win_length=64, nfft=64)))
    return [*made, _finished(make_spec(output="complex", scaling="spectrum"))]


def _finished(spec: SpectrumSpec) -> bytes:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "a.spd"
        writer = SegmentWriter(path, describe(spec))
        writer.write(make_batch(spec, 0, 3))
        writer.write(make_batch(spec, 3, 1, engine="opencl:x"))
        writer.write(make_batch(spec, 5, 2, engine="opencl:x", skipped_rows=1))
        last = make_batch(spec, 20, 2, gap_samples=130, discontinuity=True)
        found = np.full((2, spec.n_signals), Condition.CHECKED | Condition.GAP, np.uint8)
        writer.write(replace(last, conditions=found))
        writer.finish()
        return path.read_bytes()


# ---- mutated records: a header's fields, and a payload with its real length


@dataclass(frozen=True, slots=True)
class _Record:
    fields: tuple[int, ...]
    payload: bytes
    said_bytes: int | None = None
    """Length in the header, if it is not the payload's."""

    def packed(self) -> bytes:
        size = len(self.payload) if self.said_bytes is None else self.said_bytes
        head = _HEAD.pack(_MAGIC, size, *self.fields, zlib.crc32(self.payload))
        return head + struct.pack("<I", zlib.crc32(head)) + self.payload


def _records(data: bytes) -> list[_Record]:
    """Read consecutive records, with or without right checksums."""
    found, place = [], 0
    while len(found) < 64 and data[place : place + 4] == _MAGIC:
        if place + _HEAD_BYTES > len(data):
            break
        _, size, *fields, _ = _HEAD.unpack_from(data, place)
        begin = place + _HEAD_BYTES
        payload = data[begin : begin + size]
        found.append(_Record(tuple(fields), payload, None if len(payload) == size else size))
        place = begin + len(payload)
    return found


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Change a record, mostly with right checksums: its header, its payload, its place."""
    records = _records(data)
    if not records or rng.random() < 0.15:
        return havoc(data, rng)
    at = rng.randrange(len(records))
    one = records[at]
    match rng.randrange(8):
        case 0 | 1:
            records[at] = replace(one, fields=_other_fields(one.fields, rng))
        case 2:
            records[at] = replace(one, said_bytes=rng.choice(ODD_INTEGERS) & 0xFFFFFFFF)
        case 3 | 4:
            records = _with_other_payload(records, at, rng)
        case 5:
            records.insert(rng.randrange(len(records) + 1), one)
        case 6:
            del records[at]
        case _:
            records[at] = replace(one, payload=havoc(one.payload, rng))
    return b"".join(record.packed() for record in records)


def _other_fields(fields: tuple[int, ...], rng: random.Random) -> tuple[int, ...]:
    which = rng.randrange(len(_FIELDS))
    number = rng.choice(ODD_INTEGERS) if rng.random() < 0.5 else fields[which] + rng.choice((-1, 1))
    number &= (1 << _FIELDS[which]) - 1
    if which == _TIME:  # the only signed one
        number -= (number >> 63) << 64
    return (*fields[:which], number, *fields[which + 1 :])


def _with_other_payload(records: list[_Record], at: int, rng: random.Random) -> list[_Record]:
    """Change the JSON of a header (of both) or of an index, bytes of other payloads."""
    one = records[at]
    if one.payload[:1] != b"{":
        changed = havoc(one.payload, rng)
    elif one.payload[-1:] == b"\0":  # an index ends with its length
        text = mutate_json(one.payload[:-8], rng)
        changed = text + (len(text) + 8).to_bytes(8, "little")
    else:
        changed = mutate_json(one.payload, rng)
    return [
        replace(record, payload=changed) if record.payload == one.payload else record
        for record in records
    ]


def repair(data: bytes) -> bytes:
    """Correct the checksums of all consecutive records."""
    records = _records(data)
    packed = b"".join(record.packed() for record in records)
    return packed + data[len(packed) :]


TARGETS = {
    "segment": Target(check_read, seeds, mutate, repair, 32768),
    "segment_recovery": Target(check_recovery, seeds, mutate, repair, 32768),
}
