import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spectrod.formats.segment.segment_reader import SegmentReader
from spectrod.formats.segment.segment_recovery import recover
from spectrod.formats.segment.segment_writer import SegmentWriter
from spectrod.lib.errors import SpectrodError

sys.path.insert(0, str(Path(__file__).parents[1] / "segments"))
from segment_rows import describe, make_batch, make_spec, rows_of, shifted

SPEC = make_spec()
ONE_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@st.composite
def sequences(draw):
    """Generate consecutive batches of any length, with gaps, skips, cuts and other engines."""
    spec = make_spec(channels=draw(st.integers(1, 3)), nfft=draw(st.sampled_from([16, 17, 31])))
    batches, row, offset = [], 0, 0
    for _ in range(draw(st.integers(0, 6))):
        n_rows = draw(st.integers(0, 5))
        gap = draw(st.sampled_from([0, 0, 1, 12345]))
        skipped = draw(st.sampled_from([0, 0, 3]))
        row, offset = row + skipped, offset + gap
        batch = make_batch(
            spec,
            row,
            n_rows,
            draw(st.integers(0, 9)),
            engine=draw(st.sampled_from(["numpy", "opencl:Ü"])),
            gap_samples=gap,
            discontinuity=bool(gap),
            skipped_rows=skipped,
        )
        batches.append(shifted(batch, offset))
        row += n_rows
        if draw(st.integers(0, 4)) == 0:
            batches.append(shifted(make_batch(spec, row, 1, cut_frames=1), offset))
            row += 1
    return spec, batches


@pytest.mark.slow
@ONE_FOLDER
@given(sequences(), st.integers(0, 8), st.booleans())
def test_any_rows_come_back(tmp_path_factory, sequence, n_first, is_recovered):
    """Any batches survive in one segment or two, finished or recovered."""
    spec, batches = sequence
    folder = tmp_path_factory.mktemp("segments")
    place = None
    for name, part in [("b", batches[:n_first]), ("a", batches[n_first:])]:
        made = SegmentWriter(folder / f"{name}.spd", describe(spec), place=place)
        for batch in part:
            made.write(batch)
        if is_recovered or not made.n_frames:
            made.abort()
        else:
            made.finish()
        if made.part.exists():
            recover(made.part)
        place = made.next_place
    if place.first_row:
        assert rows_of(SegmentReader(folder).batches()) == rows_of(batches)


def written(folder):
    """Make a small segment; return its rows, and the offset after each record of rows."""
    batches = [
        make_batch(SPEC, 0, 1),
        make_batch(SPEC, 1, 2),
        shifted(make_batch(SPEC, 3, 1, gap_samples=9, discontinuity=True, engine="other"), 9),
        shifted(make_batch(SPEC, 4, 1), 9),
    ]
    made = SegmentWriter(folder / "a.spd", describe(SPEC))
    ends = []
    for batch in batches:
        made.write(batch)
        ends.append(made.size_bytes)
    made.finish()
    return made.path, batches, ends


@pytest.mark.slow
def test_a_file_cut_anywhere_has_all_rows_before(tmp_path):
    """A file cut at any length has all complete records and nothing else."""
    path, batches, ends = written(tmp_path)
    content = path.read_bytes()
    begin = len(content) - len(content[4096:]) + 4000
    part = tmp_path / "b.spd.part"
    for length in [*range(0, begin, 97), *range(begin, len(content))]:
        part.write_bytes(content[:length])
        n_whole = sum(end <= length for end in ends)
        if length < 4096:
            with pytest.raises(SpectrodError, match=r"b\.spd\.part: must be a segment"):
                SegmentReader(part)
            continue
        assert rows_of(SegmentReader(part).batches()) == rows_of(batches[:n_whole])
        recovered = recover(part)
        assert recovered.rows == sum(batch.n_frames for batch in batches[:n_whole])
        if n_whole:
            assert rows_of(SegmentReader(recovered.path).batches()) == rows_of(batches[:n_whole])
        if recovered.path:
            recovered.path.unlink()


@pytest.mark.slow
@ONE_FOLDER
@given(st.data())
def test_damage_never_makes_a_wrong_row(tmp_path_factory, data):
    """With any bytes changed, rows that are read are right, and those of other records stay."""
    folder = tmp_path_factory.mktemp("segments")
    path, batches, ends = written(folder)
    content = bytearray(path.read_bytes())
    whole = rows_of(batches)
    places = data.draw(
        st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=3)
        | st.lists(st.integers(8000, ends[-1]), min_size=1, max_size=3)
    )
    for place in places:
        content[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    is_header = [any(p // 4096 == k for p in places) for k in (0, 1)]
    try:
        found = list(SegmentReader(path).batches())
    except SpectrodError:
        assert all(is_header)
        return
    rows = rows_of(found)
    times = {row[2] for row in whole}
    truth = {row[2]: row for row in whole}
    assert {row[2] for row in rows} <= times
    for row in rows:
        assert row[:4] == truth[row[2]][:4]
        assert row[4] in (truth[row[2]][4], "unknown")
    begins = [8192, *ends]
    for batch, begin, end in zip(batches, begins, ends, strict=False):
        if not any(begin <= place < end for place in places):
            assert set(batch.t_mono_ns.tolist()) <= {row[2] for row in rows}
    missing = len(whole) - len(rows)
    assert sum(batch.gap_samples for batch in found[1:]) >= (9 if len(rows) == len(whole) else 0)
    is_end_left = bool(rows) and rows[-1][2] == whole[-1][2]
    is_begin_left = bool(rows) and rows[0][2] == whole[0][2]
    if missing and is_end_left and is_begin_left:
        assert any(batch.discontinuity for batch in found[1:])


@pytest.mark.slow
@ONE_FOLDER
@given(st.integers(1, 11), st.sets(st.integers(0, 40)), st.integers(0, 1 << 17))
def test_a_power_failure_costs_only_unsynchronised_rows(
    tmp_path_factory, n_synced, lost_blocks, length
):
    """After a power failure synced rows are read, though later blocks are zero or missing."""
    folder = tmp_path_factory.mktemp("segments")
    spec = make_spec(nfft=2048)
    batches = [make_batch(spec, row, 1) for row in range(12)]
    made = SegmentWriter(folder / "a.spd", describe(spec), fsync_s=1e9)
    ends = []
    for number, batch in enumerate(batches):
        made.write(batch)
        ends.append(made.size_bytes)
        if number == n_synced - 1:
            made.flush()
    made.abort()
    content, synced = bytearray(made.part.read_bytes()), ends[n_synced - 1]
    for block in lost_blocks:
        first, stop = max(synced, 4096 * block), 4096 * (block + 1)
        content[first:stop] = bytes(len(content[first:stop]))
    made.part.write_bytes(content[: max(synced, length)])
    rows, whole = rows_of(SegmentReader(made.part).batches()), rows_of(batches)
    assert rows[:n_synced] == whole[:n_synced]
    assert [row[:4] for row in rows] == [row[:4] for row in whole if row[2] in {r[2] for r in rows}]
    assert recover(made.part).rows == len(rows)
    assert rows_of(SegmentReader(made.path).batches()) == rows


@pytest.mark.slow
@given(st.binary(max_size=300), st.integers(0, 3))
def test_arbitrary_bytes_behind_a_header_are_no_rows(tmp_path_factory, junk, n_rows):
    """Arbitrary bytes after the last record make neither a record nor an exception."""
    folder = tmp_path_factory.mktemp("segments")
    made = SegmentWriter(folder / "a.spd", describe(SPEC))
    batch = make_batch(SPEC, 0, n_rows)
    made.write(batch)
    kept = made.part.read_bytes()
    made.abort()
    made.part.write_bytes(kept + junk)
    assert rows_of(SegmentReader(made.part).batches()) == rows_of([batch])
    assert np.array_equal(
        [row.n_frames for row in SegmentReader(made.part).batches(stop_row=2)],
        [min(2, n_rows)] if n_rows else [],
    )


def test_the_same_time_twice_is_read_twice(tmp_path):
    """Rows are distinguished by number, so a clock that stands still repeats none."""
    made = SegmentWriter(tmp_path / "a.spd", describe(SPEC))
    first = make_batch(SPEC, 0, 2)
    second = replace(make_batch(SPEC, 2, 2), t_utc_ns=first.t_utc_ns)
    for batch in (first, second):
        made.write(batch)
    made.finish()
    assert rows_of(SegmentReader(made.path).batches()) == rows_of([first, second])
