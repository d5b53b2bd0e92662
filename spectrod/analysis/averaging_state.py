"""State of the averages: which frames make which rows."""

from spectrod.dsp.spectrum import SpectrumSpec


class AveragingState:
    """Counts frames and rows: one frame per row, or a number of frames per average.

    Parameters
    ----------
    spec : SpectrumSpec
        Spec with the number of frames.

    Attributes
    ----------
    frames : int
        Frames per row.
    done : int
        Frames in the unfinished row.
    primed : bool
        Whether the next row depends on earlier frames.
    """

    def __init__(self, spec: SpectrumSpec) -> None:
        self._whole = self.frames = spec.averaging_frames
        self._is_exponential = spec.averaging == "exponential"
        self.restart()

    def restart(self) -> None:
        """Restart the average."""
        self.done = 0
        self.primed = False

    def cut(self, n_frames: int) -> None:
        """Finish the unfinished row with the next frames, whether it is whole or not."""
        self.frames = self.done + n_frames

    def take(self, n_frames: int) -> int:
        """Count frames; return the number of rows that they finish."""
        n_rows, self.done = divmod(self.done + n_frames, self.frames)
        self.frames = self._whole
        self.primed = self._is_exponential or self.done > 0
        return n_rows
