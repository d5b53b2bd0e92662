"""Files of any times and lengths: each sample has one place or is reported."""

from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from spectrod.source.files.placing import TOLERANCE_S, Member, place
from spectrod.source.files.recorded_at import RecordedAt

FS = 10.0
FILES = st.lists(
    st.tuples(st.integers(0, 2000), st.integers(1, 300), st.integers(0, 100)), min_size=1
)
"""Start [0.1 s], existing samples, and samples that only the header announces."""


def members(files, *, dated=True):
    def recorded(tenths):
        return RecordedAt(tenths * 10**8, "its name", has_zone=True) if dated else None

    return [
        Member(Path(f"{number}.wav"), FS, 1, n, n + n_more, recorded(tenths))
        for number, (tenths, n, n_more) in enumerate(sorted(files))
    ]


def placed(files):
    """Place files; return them, and the message about each skipped one by path."""
    notes = {}

    def note(path, problem, consequence):
        assert path not in notes
        assert problem.startswith(f"{path}: begins ")
        notes[path] = consequence

    return place(members(files), note), notes


@given(FILES)
def test_every_sample_has_one_place_or_is_named(files):
    """Files are contiguous or separated by gaps, and samples outside the stream are reported."""
    found, notes = placed(files)
    assert (found[0].begin, found[0].first) == (0, 0)
    for before, after in pairwise(found):
        assert before.begin < before.end <= after.begin
    kept = {member.path: member for member in found}
    for member in members(files):
        if member.path not in kept:
            assert notes[member.path] == "left out"
        else:
            n_cut = kept[member.path].first
            assert 0 <= n_cut < member.n_samples
            assert (n_cut > 0) == (member.path in notes)
    n_read = sum(member.end - member.begin for member in found)
    n_missing = sum(after.begin - before.end for before, after in pairwise(found))
    assert n_read + n_missing == found[-1].end


@given(FILES)
def test_gaps_end_at_the_stated_times(files):
    """After a gap, except one of a truncated file, a sample's index is its time."""
    found, _ = placed(files)
    for before, after in pairwise(found):
        is_announced = after.begin == before.origin + before.n_announced
        if after.begin > before.end + 1 and not is_announced:
            assert after.origin == round((after.t_ns - found[0].t_ns) * 1e-9 * FS)


@given(FILES)
def test_a_file_without_overlap_is_complete(files):
    """A file that overlaps no other one loses no sample."""
    last_s = max((tenths + n) / 10 for tenths, n, _ in files) + 300 + TOLERANCE_S
    found, notes = placed([*files, (round(last_s * 10), 50, 0)])
    assert (found[-1].first, found[-1].n_samples) == (0, 50)
    assert found[-1].path not in notes


@given(FILES)
def test_files_without_times_are_joined(files):
    """Without times there are neither gaps nor overlaps."""
    found = place(members(files, dated=False), lambda *_: None)
    assert [(one.begin, one.first) for one in found[1:]] == [(one.end, 0) for one in found[:-1]]
