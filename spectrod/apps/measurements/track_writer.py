"""Tracks of tones as files of events: a row for each track, or for each interval of it."""

import logging
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from spectrod.apps.measurements.measured_source import MeasuredSource
from spectrod.dsp.blocks import duration_ns
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.formats.event_files import event_file
from spectrod.formats.event_reading import FILE_EVENTS_MAX
from spectrod.formats.values.measurement_description import MeasurementDescription
from spectrod.formats.whole_files import WholeFileWriter
from spectrod.lib.text import printable
from spectrod.measure.measurement import Measurement
from spectrod.measure.tones.tone_quantities import TRACK_COLUMNS
from spectrod.measure.triggers.detection import Detection, FilePlaces
from spectrod.measure.triggers.trigger import TriggerEvent
from spectrod.source.base import SelectableSource, StreamFile
from spectrod.source.continuous_ranges import ContinuousRanges

_COLUMNS = list(TRACK_COLUMNS)
_IDENTITY, _FREQUENCY, _LEVEL = (_COLUMNS.index(one) for one in ("id", "frequency", "level"))

_log = logging.getLogger(__name__)


class _Stretch(NamedTuple):
    """Samples [begin, stop) of an interval without a gap, and the number of their range."""

    begin: int
    stop: int
    number: int
    begin_utc_ns: int


@dataclass(slots=True)
class _Track:
    """A track, as far as no gap interrupts it, with its loudest interval."""

    signal: int
    identity: int
    number: int
    begin: int
    stop: int
    begin_utc_ns: int
    low_hz: float
    high_hz: float
    frequency_hz: float
    level: float
    peak_utc_ns: int

    def add(self, stretch: _Stretch, frequency_hz: float, level: float) -> None:
        """Add an interval."""
        self.stop = stretch.stop
        self.low_hz, self.high_hz = min(self.low_hz, frequency_hz), max(self.high_hz, frequency_hz)
        if level > self.level:
            self.level, self.frequency_hz = level, frequency_hz
            self.peak_utc_ns = stretch.begin_utc_ns


class TrackWriter(WholeFileWriter):
    """Writes the tracks of the rows of tones to a file of events.

    A track goes on over gaps between files; what is written does not, so that the time in all files
    and UTC are both right: each stretch has an event of the same name. At most ``FILE_EVENTS_MAX``
    are written.

    Parameters
    ----------
    path : Path
        The file; the end of its name is the format, see ``event_file``.
    measured : MeasuredSource
        The source, of which the rows are.
    about : MeasurementDescription
        Description of the rows.
    spec : SpectrumSpec
        Definition of the frames; half a bin is added to the band of a track on both sides, so that
        programs have a box to show.
    has_points : bool
        Whether each interval of a track is an event of its own.

    Raises
    ------
    ConfigError, StorageError, UnavailableError
        If no such file can be made.
    """

    def __init__(
        self,
        path: Path,
        measured: MeasuredSource,
        about: MeasurementDescription,
        spec: SpectrumSpec,
        *,
        has_points: bool = False,
    ) -> None:
        super().__init__(path)
        self._about, self._spec, self._has_points = about, spec, has_points
        self._first = measured.span.first
        source, n_samples = measured.source, measured.span.n_samples
        files = source.files if isinstance(source, SelectableSource) else ()
        whole = StreamFile(measured.name, 0, source.n_samples or 0)
        self._places = FilePlaces(files or (whole,), source.fs, 0.0)
        self._ranges = None
        if files and n_samples is not None:
            self._ranges = ContinuousRanges.of(source, self._first, n_samples)
        self._present: dict[tuple[int, int], _Track] = {}
        self._found: list[_Track] = []
        self._is_full = False
        with self._aborted_if_it_fails():
            self._add = self._stack.enter_context(event_file(path, about.zone))

    @property
    def count_text(self) -> str:
        """How many events the file has."""
        n, end = len(self._found), "" if len(self._found) == 1 else "s"
        return f"{n} interval{end} of tracks" if self._has_points else f"{n} track{end}"

    def write(self, row: Measurement) -> None:
        """Take the tracks of a row."""
        for stretch in self._stretches(row):
            for signal, table in enumerate(row.tables):
                for peak in table.tolist():
                    key = signal, int(peak[_IDENTITY])
                    self._take(key, stretch, peak[_FREQUENCY], peak[_LEVEL])

    def write_total(self, row: Measurement) -> None:
        """Do nothing: tracks have no values of all intervals together."""

    def finish(self) -> None:
        """Write the events in the order of their begins, and complete the file."""
        self._found.sort(key=lambda one: (one.begin, one.signal, one.identity))
        with self._aborted_if_it_fails():
            for one in self._found:
                self._add(self._detection(one))
            self._stack.close()

    def _stretches(self, row: Measurement) -> Iterator[_Stretch]:
        """Yield the parts of an interval that lie in files."""
        begin = self._first + row.first_sample
        stop = begin + (row.span_samples or row.n_samples)
        utc_ns = row.begin_utc_ns or 0
        if self._ranges is None:
            yield _Stretch(begin, stop, 0, utc_ns)
            return
        begins, ends = self._ranges.begins, self._ranges.ends
        for k in range(bisect_right(ends, begin), len(ends)):
            if begins[k] >= stop:
                return
            first = max(begin, begins[k])
            since_ns = duration_ns(first - begin, self._spec.fs)
            yield _Stretch(first, min(stop, ends[k]), k, utc_ns + since_ns)

    def _take(
        self, key: tuple[int, int], stretch: _Stretch, frequency_hz: float, level: float
    ) -> None:
        before = self._present.get(key)
        if before is not None and before.number == stretch.number and not self._has_points:
            before.add(stretch, frequency_hz, level)
        elif len(self._found) < FILE_EVENTS_MAX:
            one = _Track(
                *key,
                number=stretch.number,
                begin=stretch.begin,
                stop=stretch.stop,
                begin_utc_ns=stretch.begin_utc_ns,
                low_hz=frequency_hz,
                high_hz=frequency_hz,
                frequency_hz=frequency_hz,
                level=level,
                peak_utc_ns=stretch.begin_utc_ns,
            )
            self._present[key] = one
            self._found.append(one)
        elif not self._is_full:
            self._is_full = True
            rule = f"a file has at most {FILE_EVENTS_MAX} events: later ones are left out"
            _log.warning("%s: %s", printable(self.path), rule)

    def _detection(self, one: _Track) -> Detection:
        spec, about = self._spec, self._about
        half_hz = spec.delta_f / 2.0
        low_hz = one.low_hz - half_hz
        n_samples = one.stop - one.begin
        event = TriggerEvent(
            name=f"tone {one.identity}",
            kind="track",
            state="ended",
            reason="released",
            product="tones",
            channel=about.channels[one.signal],
            f_min_hz=low_hz if spec.iq else max(0.0, low_hz),
            f_max_hz=one.high_hz + half_hz,
            frequency_hz=one.frequency_hz,
            level=one.level,
            threshold=None,
            floor=None,
            unit=about.units[one.signal],
            begin_utc_ns=one.begin_utc_ns,
            end_utc_ns=one.begin_utc_ns + duration_ns(n_samples - 1, spec.fs),
            peak_utc_ns=one.peak_utc_ns,
            duration_s=n_samples / spec.fs,
        )
        places, channel = self._places.at(one.begin), one.signal + 1
        return Detection(
            event, one.begin, n_samples, *places, about.has_utc, channel=channel, fs=spec.fs
        )
