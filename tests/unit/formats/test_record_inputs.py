import sys
from pathlib import Path

import pytest

from spectrod.formats.segment.segment_writer import SegmentWriter
from spectrod.lib.errors import InputError
from spectrod.recording.inputs import batches_between, is_recording, open_recording, span_utc_ns

sys.path.insert(0, str(Path(__file__).parents[2] / "segments"))
from segment_rows import BEGIN_UTC_NS, describe, make_batch, make_spec, rows_of

SPEC = make_spec()
ROW_NS = 1_250_000


class Reader:
    """A recording of another format, with three batches, the second after a gap."""

    description = describe(SPEC)

    def __init__(self):
        self.stored = [
            make_batch(SPEC, 0, 4),
            make_batch(SPEC, 6, 3, gap_samples=20, discontinuity=True),
            make_batch(SPEC, 9, 1, engine="b"),
        ]

    def batches(self):
        yield from self.stored

    def close(self):
        pass


@pytest.mark.parametrize(
    ("start", "stop", "rows"),
    [
        (None, None, range(8)),
        (None, 7, range(5)),
        (2, 3, [2]),
        (4, None, range(4, 8)),
        (5, 6, []),
        (7, 10, range(5, 8)),
        (10, 12, []),
    ],
)
def test_other_formats_are_cut_by_time(start, stop, rows):
    """Other formats are cut between start and stop, and a part does not start with a gap."""
    times = [None if row is None else BEGIN_UTC_NS + row * ROW_NS for row in (start, stop)]
    parts = list(batches_between(Reader(), *times))
    whole = rows_of(Reader().stored)
    found = rows_of(parts)
    assert [row[:5] for row in found] == [whole[row][:5] for row in rows]
    if parts and start is not None:
        assert (parts[0].gap_samples, parts[0].discontinuity) == (0, False)
        assert [row[5:] for row in found[1:]] == [whole[row][5:] for row in rows][1:]


def test_recordings_are_known_by_their_names(tmp_path):
    """Finished and unfinished segments, exports and folders with a segment are recognised."""
    for name in ("a.spd", "A.SPD.part", "a.nc", "a.zarr", "a.csv"):
        assert is_recording(tmp_path / name), name
    for name in ("a.wav", "a.part", "a.spd.damaged", "none"):
        assert not is_recording(tmp_path / name), name
    assert not is_recording(tmp_path)
    (tmp_path / "a.spd.part").touch()
    assert is_recording(tmp_path)


def test_a_file_of_another_format_is_refused(tmp_path):
    """Other files are refused with the list of readable formats."""
    with pytest.raises(InputError, match=r"a\.wav: must be a recording of spectra \(\.spd, \.spd"):
        open_recording(tmp_path / "a.wav")


def test_the_span_is_known_where_that_costs_little(tmp_path):
    """The time span of segments is known without reading all rows; of other formats it is not."""
    made = SegmentWriter(tmp_path / "a.spd", describe(SPEC))
    reader = open_recording(made.part)
    begin, end = span_utc_ns(reader)
    assert begin == end
    made.write(make_batch(SPEC, 0, 5))
    made.finish()
    assert span_utc_ns(open_recording(made.path)) == (BEGIN_UTC_NS, BEGIN_UTC_NS + 5 * ROW_NS)
    assert span_utc_ns(Reader()) is None
