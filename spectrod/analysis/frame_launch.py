"""A launch of frames: what a plan is given."""

from dataclasses import dataclass

from spectrod.analysis.sample_buffer import SampleBuffer


@dataclass(frozen=True, slots=True, eq=False)
class FrameLaunch:
    """Frames that are computed together, and the rows that they are of.

    Attributes
    ----------
    place : int
        Index in the buffer's data of the first frame's first sample; all samples of the frames are
        valid and remain until the rows are collected.
    n_frames : int
        1 to the plan's max_frames.
    row_frames : int
        Frames per row.
    done : int
        Frames that the first row has of earlier launches, 0 to row_frames - 1.
    primed : bool
        Whether the first row depends on earlier launches; if not, an average restarts.
    phase : int
        Phase of the first row, see ``spectrod.dsp.row_grid.RowGrid``.
    source : SampleBuffer, optional
        Other buffer of the same engine and layout with the frames' samples.
    """

    place: int
    n_frames: int
    row_frames: int = 1
    done: int = 0
    primed: bool = False
    phase: int = 0
    source: SampleBuffer | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows that the frames finish."""
        return (self.done + self.n_frames) // self.row_frames
