"""Which rows come of which frames: where an average over frames stands."""

from spectrod.types import SpectrumSpec


class RowCount:
    """Frames to rows of results: one to one, or so many to an average.

    Parameters
    ----------
    spec : SpectrumSpec
        Says how many.

    Attributes
    ----------
    frames : int
        Frames a row.
    done : int
        Frames that the unfinished row has already.
    primed : bool
        Whether what comes next depends on frames before it.
    """

    def __init__(self, spec: SpectrumSpec) -> None:
        self._whole = self.frames = spec.averaging_frames
        self._goes_on = spec.averaging == "exponential"
        self.restart()

    def restart(self) -> None:
        """Begin anew."""
        self.done = 0
        self.primed = False

    def cut(self, n_frames: int) -> None:
        """Let the frames that are taken next finish the unfinished row, whole or not."""
        self.frames = self.done + n_frames

    def take(self, n_frames: int) -> int:
        """Count frames, and return how many rows they finish."""
        n_rows, self.done = divmod(self.done + n_frames, self.frames)
        self.frames = self._whole
        self.primed = self._goes_on or self.done > 0
        return n_rows
