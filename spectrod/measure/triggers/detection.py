"""Events of a recording, with their places in its files."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple, Protocol

from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.units import NS_PER_S
from spectrod.measure.triggers.look_ahead import LookAhead
from spectrod.measure.triggers.trigger import MeasuredRows, TriggerEvent


@dataclass(frozen=True, slots=True)
class Detection:
    """An event of a recording.

    Attributes
    ----------
    event : TriggerEvent
        Its end, with the numbers of the value furthest over the threshold.
    first, n_samples : int
        Its first sample in the stream of the source, and its length.
    file : str
        The file in which it begins.
    begin_s : float
        From the begin of that file [s].
    joined_s : float
        From the begin of all files, one after the other without what is missing between them [s].
    has_utc : bool
        Whether the times of the event are UTC.
    channel : int
        Number of the channel, from 1 on.
    fs : float
        Sample rate [Hz].
    """

    event: TriggerEvent
    first: int
    n_samples: int
    file: str
    begin_s: float
    joined_s: float
    has_utc: bool
    channel: int
    fs: float

    @property
    def duration_s(self) -> float:
        """Length [s]."""
        return self.event.duration_s

    @property
    def end_utc_ns(self) -> int:
        """UTC after its last sample [ns since 1970]."""
        return self.event.begin_utc_ns + round(self.duration_s * NS_PER_S)

    @property
    def over_floor_db(self) -> float | None:
        """Level over the noise floor; None without one [dB]."""
        return None if self.event.floor is None else self.event.level - self.event.floor


class PlacedFile(Protocol):
    """A file of a stream, as ``spectrod.source.base.StreamFile``."""

    @property
    def path(self) -> str:
        """Its path."""

    @property
    def first(self) -> int:
        """Index in the stream of its sample 0."""

    @property
    def n_samples(self) -> int:
        """Samples per channel."""


class _Signal(NamedTuple):
    """A signal in memory, in place of a file."""

    path: str = ""
    first: int = 0
    n_samples: int = 0


_SIGNAL = _Signal()


class FilePlaces:
    """Where samples of a stream are in its files, and in all files of several sources.

    Parameters
    ----------
    files : sequence of PlacedFile
        At least one, in the order of the stream.
    fs : float
        Sample rate [Hz].
    before_s : float
        Length of the files of earlier sources [s].
    """

    def __init__(self, files: Sequence[PlacedFile], fs: float, before_s: float) -> None:
        self._files, self._fs, self._before_s = files, fs, before_s
        self._firsts = [one.first for one in files]
        self._joined = list(accumulate((one.n_samples for one in files), initial=0))

    @property
    def after_s(self) -> float:
        """Length of all files so far [s]."""
        return self._before_s + self._joined[-1] / self._fs

    def at(self, index: int) -> tuple[str, float, float]:
        """Return file, time in it, and time in all files of a sample of the stream [s]."""
        k = max(0, bisect_right(self._firsts, index) - 1)
        one = self._files[k]
        in_file = index - one.first
        joined_s = self._before_s + (self._joined[k] + in_file) / self._fs
        return one.path, in_file / self._fs, joined_s


class PlacedEvents:
    """Finds the events of the rows of a source, and their places in its files.

    Parameters
    ----------
    finder : LookAhead
        A new one.
    places : FilePlaces
    channels : sequence of str
        Name of each signal.
    has_utc : bool
        Whether the times of rows are UTC.
    """

    def __init__(
        self, finder: LookAhead, places: FilePlaces, channels: Sequence[str], *, has_utc: bool
    ) -> None:
        self._finder, self._places, self._has_utc = finder, places, has_utc
        self._channels = tuple(channels)
        self._anchor: tuple[int, int] | None = None

    def push(self, batch: SpectrumBatch) -> list[Detection]:
        """Take the next rows; return the events that have ended."""
        return self.push_measured(self._finder.measure(batch))

    def push_measured(self, rows: MeasuredRows) -> list[Detection]:
        """Take the next rows that the finder has measured; see ``push``."""
        if self._anchor is None and rows.n_rows:
            self._anchor = int(rows.sample_index[0]), int(rows.t_utc_ns[0])
        return self._placed(self._finder.push_measured(rows))

    def finish(self) -> list[Detection]:
        """Return the events of the rows that wait, and the one that lasts to the end."""
        return self._placed(self._finder.finish())

    def _placed(self, events: Iterable[TriggerEvent]) -> list[Detection]:
        return [self._detection(event) for event in events if event.state == "ended"]

    def _detection(self, event: TriggerEvent) -> Detection:
        assert self._anchor is not None
        index, utc_ns = self._anchor
        fs = self._finder.fs
        first = index + round((event.begin_utc_ns - utc_ns) * fs / NS_PER_S)
        n_samples = round(event.duration_s * fs)
        channel = self._channels.index(event.channel) + 1
        place = self._places.at(first)
        return Detection(event, first, n_samples, *place, self._has_utc, channel, fs)


def detections(
    batches: Iterable[SpectrumBatch],
    finder: LookAhead,
    places: FilePlaces | None = None,
    channels: Sequence[str] = ("0",),
    *,
    has_utc: bool = False,
) -> Iterator[Detection]:
    """Yield the events of the rows of a source, each once it has ended.

    Parameters
    ----------
    batches : iterable of SpectrumBatch
        All rows.
    finder : LookAhead
        A new one.
    places : FilePlaces, optional
        Where samples are in files; by default the rows are those of a signal in memory: ``file`` is
        empty, and times count from its sample 0.
    channels : sequence of str
        Name of each signal, as the trigger has them.
    has_utc : bool
        Whether the times of rows are UTC.
    """
    places = places or FilePlaces([_SIGNAL], finder.fs, 0.0)
    events = PlacedEvents(finder, places, channels, has_utc=has_utc)
    for batch in batches:
        yield from events.push(batch)
    yield from events.finish()
