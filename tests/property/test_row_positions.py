"""Positions of rows for any cuts, gaps and changes of demand, compared with all frames."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from spectrod.analysis.row_positions import FrameRun, RowPositions
from spectrod.dsp.spectrum import SpectrumSpec

FS = 1e6
SPECS = [
    SpectrumSpec(FS, win_length=16, hop=5),
    SpectrumSpec(FS, win_length=9, hop=40),
    SpectrumSpec(FS, win_length=16, hop=8, averaging="mean", averaging_frames=3),
    SpectrumSpec(FS, win_length=8, hop=11, averaging="max", averaging_frames=4),
    SpectrumSpec(FS, win_length=16, hop=7, averaging="exponential", averaging_s=1e-4),
    SpectrumSpec(FS, win_length=16, hop=7, rate_hz=31_234.0),
    SpectrumSpec(FS, win_length=16, hop=7, averaging="mean", rate_hz=17_321.0),
    SpectrumSpec(FS, win_length=16, hop=9, averaging="max", rate_hz=71_000.0),
]
STEPS = st.lists(
    st.tuples(st.integers(1, 200), st.sampled_from([0, 0, 0, 7, 90]), st.booleans()), min_size=1
)
"""Samples that arrive, samples lost before them, and whether rows are wanted from them on."""


@dataclass
class Stretch:
    """Samples without a gap, at positions [begin, end), and the runs of their frames."""

    begin: int
    lost: int = 0
    end: int = 0
    runs: list[FrameRun] = field(default_factory=list)


def take_due(positions, stretch, n_max):
    positions.skip_unwanted()
    while positions.n_due:
        stretch.runs.append(positions.take(min(positions.n_due, n_max)))


def take_tail(positions, stretch):
    positions.skip_unwanted()
    for n_frames, is_cut in positions.split_tail():
        stretch.runs.append(positions.take(n_frames, is_cut=is_cut))


def placed(spec, steps, n_max, *, heeds_demand=True):
    """Run the steps; return the positions and all stretches, the last one finished."""
    positions = RowPositions(spec)
    stretches = [Stretch(0)]
    for n_samples, lost, is_wanted in steps:
        if lost:
            take_tail(positions, stretches[-1])
            assert positions.interrupt(lost) == 0  # the tail has finished the average
            stretches.append(Stretch(positions.end, lost))
        if heeds_demand and is_wanted != positions.is_wanted:
            positions.want(is_wanted=is_wanted)
        positions.end += n_samples
        stretches[-1].end = positions.end
        take_due(positions, stretches[-1], n_max)
    take_tail(positions, stretches[-1])
    return positions, stretches


@given(spec=st.sampled_from(SPECS), steps=STEPS, n_max=st.integers(1, 9))
def test_every_frame_is_computed_or_skipped_once_and_in_its_place(spec, steps, n_max):
    """Each row is computed or skipped as a whole, at the place that all rows would give it."""
    positions, stretches = placed(spec, steps, n_max)
    grid, unreported = spec.grid, 0  # skipped rows of earlier stretches
    for stretch in stretches:
        frame = n_rows = 0
        for run in stretch.runs:
            n_skipped, unreported = run.missing.skipped_rows - unreported, 0
            if n_skipped:
                frame = (frame // grid.frames + n_skipped) * grid.frames
                n_rows += n_skipped
            row, done = divmod(frame, grid.frames)
            assert run.first == stretch.begin + grid.place(frame)
            assert (run.done, run.phase) == (done, grid.phase_of(row))
            frame += run.n_frames
            n_rows += (
                -(-(done + run.n_frames) // grid.frames)
                if run.is_cut
                else ((done + run.n_frames) // grid.frames)
            )
        n_all = grid.count(stretch.end - stretch.begin)
        assert frame <= n_all
        unreported += -(-n_all // grid.frames) - n_rows
    positions.interrupt(0)  # counts a skipped row that is not complete
    assert positions.missing.skipped_rows == unreported


@given(spec=st.sampled_from(SPECS), steps=STEPS, n_max=st.integers(1, 9))
def test_every_gap_is_reported_once_by_the_next_frames(spec, steps, n_max):
    """The first run after gaps reports their samples, and no other run reports any."""
    positions, stretches = placed(spec, steps, n_max)
    waiting = None
    for stretch in stretches:
        if stretch.lost:
            waiting = (waiting or 0) + stretch.lost
        for run in stretch.runs:
            assert run.missing.gap_samples == waiting
            waiting = None
    assert positions.missing.gap_samples == waiting


@given(spec=st.sampled_from(SPECS), steps=STEPS, n_max=st.integers(1, 9))
def test_with_demand_for_all_rows_each_frame_is_computed(spec, steps, n_max):
    """All frames are computed in order, and the samples after the last of a stretch counted."""
    positions, stretches = placed(spec, steps, n_max, heeds_demand=False)
    grid, n_left_out = spec.grid, 0
    for stretch in stretches:
        length = stretch.end - stretch.begin
        n_all = grid.count(length)
        assert sum(run.n_frames for run in stretch.runs) == n_all
        assert not any(run.missing.skipped_rows for run in stretch.runs)
        covered = grid.place(n_all - 1) + grid.win_length if n_all else 0
        n_left_out += max(0, length - max(covered, grid.place(n_all)))
    assert positions.left_out_samples == n_left_out
