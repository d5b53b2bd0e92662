"""The samples of an event and around it, read from its source once more."""

from collections.abc import Generator

from spectrod.dsp.blocks import Block, RangeTrimmer
from spectrod.measure.triggers.detection import Detection
from spectrod.source.base import SelectableSource
from spectrod.source.open_source import Source

_READ_SAMPLES = 1 << 16


class Excerpt:
    """The samples of an event, with a margin on both sides as far as there are any.

    Parameters
    ----------
    one : Detection
        The event.
    margin_s : float
        Margin [s].
    source : Source
        Its source, opened again and not started.

    Attributes
    ----------
    source : Source
        As given.
    first, stop : int
        Its first sample, and the one after its last where the source is long enough.
    """

    def __init__(self, one: Detection, margin_s: float, source: Source) -> None:
        margin = round(margin_s * source.fs)
        self.source = source
        self.first = max(0, one.first - margin)
        self.stop = one.first + one.n_samples + margin

    def blocks(self, around: int = 0) -> Generator[Block]:
        """Start the source, yield its samples in the source's format, and stop it; once.

        Parameters
        ----------
        around : int
            Samples before and after the excerpt that are yielded too, as far as there are any.

        Raises
        ------
        InputError
            If the source cannot be read any more.
        """
        first = max(0, self.first - around)
        source, trimmer = self.source, RangeTrimmer(first, self.stop + around - first)
        if isinstance(source, SelectableSource):
            source.start_at(first)
        reader = source.open_reader()
        try:
            source.start(reader)
            while not reader.exhausted and trimmer.left != 0:
                block = reader.read(_READ_SAMPLES)
                kept = None if block is None else trimmer.trim(block)
                if kept is not None:
                    yield kept
            if source.failure is not None:
                raise source.failure
        finally:
            source.stop()
            reader.close()
            reader.release()
