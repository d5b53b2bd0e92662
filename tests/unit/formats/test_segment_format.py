"""The segment format of docs/formats.md against files written by the program."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from spectrod.formats.segment.frame import HEAD_BYTES
from spectrod.formats.segment.header import Place
from spectrod.formats.segment.segment_writer import SegmentWriter

sys.path.insert(0, str(Path(__file__).parents[2] / "segments"))
from segment_rows import describe, make_batch, make_spec, rows_of

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs/formats.md").read_text().partition("## Segments")[2].partition("\n## ")[0]


def hex_dump(data):
    lines = []
    for first in range(0, len(data), 16):
        part = data[first : first + 16]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        lines.append(f"{first:04x}  {part.hex(' '):<47}  {text}")
    return "\n".join(lines)


@pytest.fixture
def example(tmp_path):
    """Write the page's example; return its path, its rows, and the record's offset."""
    spec = make_spec()
    batch = make_batch(spec, 2, 3, gap_samples=7, discontinuity=True)
    batch.values[:] = np.arange(27, dtype=np.float32).reshape(3, 1, 9) / 4
    made = SegmentWriter(tmp_path / "a.spd", describe(spec), place=Place(0x0123456789ABCDEF))
    begin = made.size_bytes
    made.write(batch)
    end = made.size_bytes
    made.finish()
    record = end - HEAD_BYTES - 3 * (24 + 36)
    assert record - begin == HEAD_BYTES + len("numpy")
    return made.path, batch, slice(record, end)


def test_the_dump_is_that_of_a_record(example):
    """The page's hex dump equals the record, byte for byte, at the documented offset."""
    path, _, record = example
    (dump,) = re.findall(r"```\n(0000 .*?)\n```", TEXT, re.DOTALL)
    assert hex_dump(path.read_bytes()[record]) == dump
    assert f"from its offset {record.start} in" in TEXT


def test_the_reader_of_the_page_reads(example):
    """The example reader on the page reads the file."""
    path, batch, _ = example
    (program,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    names = {}
    exec(program, names)  # noqa: S102 - it is ours
    about, rows = names["read"](path)
    found = [(values.tobytes(), *map(int, times)) for *times, values in zip(*rows, strict=True)]
    assert found == [row[:4] for row in rows_of([batch])]
    assert (about["unit"], about["row_samples"]) == ("FS^2/Hz", 10)


def test_every_field_of_the_header_is_explained(example):
    """Every field of the file's header is explained on the page."""
    path, _, _ = example
    (program,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    names = {}
    exec(program, names)  # noqa: S102 - it is ours
    about = next(names["read"](path))
    for name in (*about, *about["spec"]):
        assert f"`{name}`" in TEXT, name
