"""Events of a daemon's triggers in files. A module of its own, as files of events load NumPy."""

import argparse
import math
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from spectrod.cli.interrupts import interrupts_held, signals_as_interrupts
from spectrod.client.control import Control
from spectrod.dsp.units import NS_PER_S
from spectrod.formats.event_files import event_file, format_of
from spectrod.formats.event_reading import FILE_EVENTS_MAX
from spectrod.lib.errors import ConfigError, InputError, SpectrodError, WireError
from spectrod.lib.names import is_name
from spectrod.lib.text import printable
from spectrod.measure.triggers.detection import Detection
from spectrod.measure.triggers.trigger import TriggerEvent
from spectrod.recording.output_plan import check_outputs, make_folders
from spectrod.source.files.dated_files import DatedFiles
from spectrod.wire.headers import FS_MAX_HZ, FS_MIN_HZ, TriggerFacts

PERIOD_S = 60.0
"""Shortest time from one writing of the files to the next [s]."""
_REST = 20
"""Times as long as a writing took nothing is written after it."""
_UNIT_CHARS_MAX = 64
_TIME_MAX_S = 7_258_118_400.0
"""The begin of 2200, up to which files of events are read [s since 1970]."""


class _HeardEvent(NamedTuple):
    """The end of an event as a daemon tells it, with the number of its channel from 1 on."""

    event: TriggerEvent
    channel: int
    fs: float


def write_events(
    control: Control, args: argparse.Namespace, groups: Iterable[Sequence[Mapping[str, Any]]]
) -> int:
    """Write the events of triggers that have ended to files; return the exit code.

    While events come the files are written at most once in ``PERIOD_S``, whole each time, so that a
    kill costs little. What an interrupt or an error of the daemon ends is written before that is
    raised.

    Parameters
    ----------
    control : Control
        The daemon.
    args : Namespace
        Arguments of ``spectrod ctl events``.
    groups : iterable of sequence of mapping
        Events of all kinds, as the daemon sends them; a group is empty where none has come.

    Raises
    ------
    ConfigError
        If the name of a file is of no format, or the recordings may be of several sources.
    InputError
        If none of the recordings says when it begins.
    StorageError, UnavailableError
        If a file cannot be written, or its format needs a package.
    WireError
        If an event is not as the protocol says.
    """
    paths = [Path(one) for one in args.output]
    if not paths:
        raise ConfigError(f"--recordings {args.recordings}: must be with -o FILE")
    for path in paths:
        format_of(path)
    check_outputs(args.output, Path(args.recordings) if args.recordings else None)
    if args.recordings:
        _check_recordings(control, args)
    files = _EventFiles(paths, args.recordings)
    signals = _Signals(control)
    ending: BaseException | None = None
    with signals_as_interrupts():
        try:
            for events in groups:
                for event in events:
                    files.heard += signals.heard(event)
                if len(files.heard) >= FILE_EVENTS_MAX:
                    del files.heard[FILE_EVENTS_MAX:]
                    print(f"a file has at most {FILE_EVENTS_MAX} events", file=sys.stderr)
                    break
                files.write_if_due()
        except (KeyboardInterrupt, SpectrodError) as error:
            if not files.heard:
                raise
            ending = error
        with interrupts_held():
            files.write()
            files.report()
    if ending is not None:
        raise ending
    return 0


def _check_recordings(control: Control, args: argparse.Namespace) -> None:
    """Check that there are recordings, and that events of one source alone are placed in them.

    Where events are followed, the first recording may come later.
    """
    if not args.follow and not Path(args.recordings).exists():
        raise InputError(f"{printable(args.recordings)}: no such file or folder")
    names = [str(one["name"]) for one in control.call("status")["sources"]]
    if not args.source and len(names) > 1:
        listed = printable(", ".join(names))
        raise ConfigError(f"--recordings {args.recordings}: name its --source, one of {listed}")


class _Signals:
    """Tells the channels and the sample rates of a daemon's sources, each once it is needed."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._known: dict[str, tuple[float, tuple[str, ...]]] = {}

    def heard(self, event: Mapping[str, Any]) -> list[_HeardEvent]:
        """Return the event of a trigger that has ended; nothing of other events."""
        given = event.get("trigger")  # older daemons do not send it
        if given is None or event["kind"] != "trigger.ended":
            return []
        try:
            facts = _checked(msgspec.convert(given, TriggerFacts))
        except ValueError as error:
            raise WireError(f"event {event['number']}: {printable(str(error))}") from error
        source = str(event["source"])
        fs, names = self._known.get(source, (0.0, ()))
        channel = _number_of(facts.channel, names) if fs else 0
        if not channel:  # not asked yet, or it was named after that
            fs, names = self._known[source] = self._asked(source)
            channel = _number_of(facts.channel, names) if fs else 0
        if not channel:
            what = printable(f"{event['number']}: channel {facts.channel} of {source}")
            print(f"event {what} is not there any more: left out", file=sys.stderr)
            return []
        return [_HeardEvent(TriggerEvent(**msgspec.structs.asdict(facts)), channel, fs)]

    def _asked(self, source: str) -> tuple[float, tuple[str, ...]]:
        """Return sample rate [Hz] and names of the channels, which without names are numbers.

        The rate of a source that is gone is 0.
        """
        status = self._control.call("status")["sources"]
        rates = [float(one["fs"]) for one in status if one["name"] == source]
        if not rates or not FS_MIN_HZ <= rates[0] <= FS_MAX_HZ:
            return 0.0, ()
        settings = self._control.call("get")
        table = settings.get("sources", {}).get(source) or settings["source"]
        return rates[0], tuple(map(str, table["channel_names"]))


def _checked(facts: TriggerFacts) -> TriggerFacts:
    """Check what a file of events could not hold; raises ValueError."""
    numbers = (facts.f_min_hz, facts.f_max_hz, facts.level, facts.threshold, facts.duration_s)
    optional = (facts.frequency_hz or 0.0, facts.floor or 0.0)
    if not all(map(math.isfinite, (*numbers, *optional))):
        raise ValueError("numbers must be finite")
    if facts.f_max_hz < facts.f_min_hz:
        raise ValueError(f"f_max_hz={facts.f_max_hz:g}: must be at least {facts.f_min_hz:g}")
    if facts.begin_utc_ns < 0 or _end_s(facts) >= _TIME_MAX_S:
        raise ValueError(f"begin_utc_ns={facts.begin_utc_ns}: must be of 1970 to 2199, and its end")
    if not is_name(facts.name):
        raise ValueError(f"name={facts.name!r}: must be that of a trigger")
    if facts.unit != printable(facts.unit, _UNIT_CHARS_MAX):
        rule = f"must be one line of at most {_UNIT_CHARS_MAX} characters"
        raise ValueError(f"unit={printable(facts.unit, _UNIT_CHARS_MAX)!r}: {rule}")
    return facts


def _end_s(facts: TriggerFacts) -> float:
    return facts.begin_utc_ns / NS_PER_S + facts.duration_s


def _number_of(channel: str, names: Sequence[str]) -> int:
    """Return the number of a channel from 1 on; 0 if there is none of this name."""
    if names:
        return names.index(channel) + 1 if channel in names else 0
    return int(channel) + 1 if channel.isdecimal() and len(channel) < 5 else 0


class _EventFiles:
    """The files, with all events so far.

    Parameters
    ----------
    paths : sequence of Path
    recordings : str or None
        Sound in which the events are marked.

    Attributes
    ----------
    heard : list of _HeardEvent
        In the order of their ends.
    """

    def __init__(self, paths: Sequence[Path], recordings: str | None) -> None:
        self._paths, self._recordings = paths, recordings
        self.heard: list[_HeardEvent] = []
        self._n_heard = self._n_written = 0
        self._due_s = time.monotonic() + PERIOD_S
        self._said: set[str] = set()

    def write_if_due(self) -> None:
        """Write the files if there are other events, and some time has passed."""
        if len(self.heard) == self._n_heard or time.monotonic() < self._due_s:
            return
        try:
            with interrupts_held():
                self.write()
        except InputError:  # no recording is complete yet
            self._due_s = time.monotonic() + PERIOD_S

    def write(self) -> None:
        """Write the files, those that are there again."""
        begin_s = time.monotonic()
        make_folders(map(str, self._paths))
        events = self._placed()
        for path in self._paths:
            with event_file(path) as write:
                for one in events:
                    write(one)
        self._n_heard, self._n_written = len(self.heard), len(events)
        end_s = time.monotonic()
        self._due_s = end_s + max(PERIOD_S, _REST * (end_s - begin_s))

    def report(self) -> None:
        """Print how many events the files have, and how many others there were."""
        for path in self._paths:
            n = self._n_written
            print(f"# {printable(path)}: {n} event{'' if n == 1 else 's'}")
        if n_others := self._n_heard - self._n_written:
            what = "1 event begins" if n_others == 1 else f"{n_others} events begin"
            print(
                f"{what} in no file of {printable(self._recordings or '')}: left out",
                file=sys.stderr,
            )

    def _placed(self) -> list[Detection]:
        """Return the events in order, those that begin in a recording if they are marked there."""
        ordered = sorted(self.heard, key=lambda one: one.event.begin_utc_ns)
        if self._recordings is None:
            return [_without_file(one, ordered[0].event.begin_utc_ns) for one in ordered]
        files = DatedFiles(Path(self._recordings))
        for line in files.left_out:
            if line not in self._said:
                print(line, file=sys.stderr)
        self._said = set(files.left_out)
        return [one for one in (_in_file(one, files) for one in ordered) if one is not None]


def _without_file(one: _HeardEvent, zero_ns: int) -> Detection:
    """Return an event with times from that of the first one on."""
    begin_s = (one.event.begin_utc_ns - zero_ns) / NS_PER_S
    return _detection(one, "", begin_s, begin_s, one.fs)


def _in_file(one: _HeardEvent, files: DatedFiles) -> Detection | None:
    place = files.at(one.event.begin_utc_ns)
    if place is None:
        return None
    begin_s = place.sample / place.fs
    return _detection(one, place.path, begin_s, place.before_s + begin_s, place.fs)


def _detection(
    one: _HeardEvent, file: str, begin_s: float, joined_s: float, fs: float
) -> Detection:
    first, n_samples = round(joined_s * fs), round(one.event.duration_s * fs)
    places = (file, begin_s, joined_s)
    return Detection(one.event, first, n_samples, *places, has_utc=True, channel=one.channel, fs=fs)
