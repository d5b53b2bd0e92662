"""All recordings of a daemon: those of its configuration, and files on request."""

import logging
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from spectrod.config.settings import RecordingConfig
from spectrod.daemon import configured_recordings, one_shot_recordings
from spectrod.daemon.change_journal import Journal
from spectrod.daemon.recorder import Recorder, RecordingFeed
from spectrod.daemon.source_runner import SourceRunner
from spectrod.lib.errors import BusyError, NotFoundError, SpectrodError, exists_error
from spectrod.lib.events import EventLog
from spectrod.recording.one_shot import MEMORY_MAX_BYTES, OneShot
from spectrod.wire.requests import StartRecordingParams

_log = logging.getLogger(__name__)

ONE_SHOTS_MAX: Final = 4
"""Maximum of one-shot recordings that run at once."""
START_MAX_S: Final = 5.0
"""Longest wait of a start for the disk [s]."""
STOP_MAX_S: Final = 30.0
"""Longest wait of a stop for files to be written and pictures to be drawn [s]."""
CLOSE_MAX_S: Final = 2.0
"""Longest time that the end of the daemon waits for the disk, for all recordings together [s]."""

_FOLDER = "recordings"
_CHANGE_S = 2.0
_ENDED_KEPT = 20

_Key = tuple[str, str]
"""Name of a configured recording, and its source; empty, and the name of its file, of a one-shot.
"""


class Recordings:
    """Runs the recordings of the configuration, and the one-shot recordings that peers ask for.

    Call ``update`` whenever the configuration or the sources have changed: unchanged configured
    recordings continue without a break, changed ones end and restart in new files.

    At most four one-shot recordings run at a time. Their pictures use at most 512 MB together,
    whatever their length; each may queue 32 MB more for its disk. Any thread may call. Only a
    recording's own thread waits for its disk, from the first access to the folder to the end. While
    a disk hangs, ``status`` returns at once; a file that hangs counts as one of the four.

    Parameters
    ----------
    state : Path
        Folder of all one-shot recordings; created with mode 0750 if missing. Configured recordings
        that name no folder go to recordings/NAME/SOURCE in it.
    events : EventLog
        The daemon's events.
    """

    def __init__(self, state: Path, events: EventLog) -> None:
        self._state, self._events, self._journal = state, events, Journal(events)
        self._running: dict[_Key, Recorder[Any]] = {}
        self._waiting: list[dict[str, Any]] = []
        self._ended: deque[dict[str, Any]] = deque(maxlen=_ENDED_KEPT)
        # Held only briefly: status requests wait for it, so its holder never waits for the disk.
        self._lock = threading.Lock()
        self._changing = threading.Lock()
        self._is_closed = False

    def status(self) -> dict[str, list[dict[str, Any]]]:
        """Return the status of each recording in built-in types.

        Returns
        -------
        status : dict
            ``recordings``: one-shot recordings, finished ones first; ``recorders``: configured
            recordings.
        """
        with self._lock:
            ended, shots, configured = list(self._ended), self._one_shots(), self._configured()
        return {
            "recordings": ended + [one_shot_recordings.status_of(one) for one in shots],
            "recorders": [one.status() for one in configured.values()] + self._waiting,
        }

    def close(self) -> None:
        """Finish all files; call it while the pipelines still exist. Idempotent."""
        with self._changing:
            self._is_closed = True
            with self._lock:
                running = dict(self._running)
            self._end(running, CLOSE_MAX_S)

    def _end(self, several: Mapping[_Key, Recorder[Any]], timeout_s: float) -> None:
        for one in several.values():
            one.end()
        for one in _wait(several.values(), timeout_s):
            _log.error(
                "recording %s: the disk does not respond; stopping without it; unfinished files of "
                "configured recordings are recovered at the next start",
                one.name,
            )
        with self._lock:
            for key in several:
                self._running.pop(key, None)

    # ---- configured recordings

    def update(self, runners: Iterable[SourceRunner], configs: Sequence[RecordingConfig]) -> None:
        """Run the wanted recordings, and end those that are not wanted or whose source has ended.

        Parameters
        ----------
        runners : iterable of SourceRunner
            The sources.
        configs : sequence of RecordingConfig
            The configured recordings.
        """
        with self._changing:
            if self._is_closed:
                return
            with self._lock:
                shots, running = self._one_shots(), self._configured()
            for one in shots:
                if one.feed.pipeline.finished:
                    one.end()
            found, self._waiting = configured_recordings.find_all(configs, tuple(runners))
            wanted = {(config.name, feed.runner.name): (config, feed) for config, feed in found}
            gone = {
                key: one
                for key, one in running.items()
                if (one.recording.config, one.feed) != wanted.get(key)
            }
            # NB: end old recordings before new ones start, which may use the same folder.
            self._end(gone, _CHANGE_S)
            for key, (config, feed) in wanted.items():
                if key in gone or key not in running:
                    self._start_configured(key, config, feed)

    def _start_configured(self, key: _Key, config: RecordingConfig, feed: RecordingFeed) -> None:
        try:
            one = configured_recordings.make(config, feed, self._state / _FOLDER, self._events)
            one.attach()
            one.start()
        except SpectrodError as error:  # the analysis has changed again meanwhile
            waiting = configured_recordings.waiting_status(config, feed.runner.name, error)
            self._waiting = [*self._waiting, waiting]
            return
        with self._lock:
            self._running[key] = one

    def trigger(self, name: str, source: str) -> list[str]:
        """Record around the present time; return RECORDING/SOURCE of each recording that does.

        Parameters
        ----------
        name : str
            Name of a recording with triggers; empty for all of them.
        source : str
            Name of a source; empty for all.

        Raises
        ------
        NotFoundError
            If no such recording has triggers.
        """
        now_ns = time.time_ns()
        with self._lock:
            configured = self._configured()
        can = {key: one for key, one in configured.items() if one.recording.config.triggers}
        found = {
            key: one for key, one in can.items() if name in ("", key[0]) and source in ("", key[1])
        }
        if not found:
            known = ", ".join(f"{key[0]} of {key[1]}" for key in can) or "none"
            raise NotFoundError(
                f"recording={name!r}, source={source!r}: no such recording has triggers; "
                f"there are: {known}"
            )
        for one in found.values():
            one.recording.trigger(now_ns, now_ns, "asked for")
        return [f"{key[0]}/{key[1]}" for key in found]

    def _configured(self) -> dict[_Key, Recorder[Any]]:
        return {key: one for key, one in self._running.items() if key[0]}

    # ---- one-shot recordings

    @property
    def n_one_shots(self) -> int:
        """Number of files on request that are being written."""
        with self._lock:
            return len(self._one_shots())

    def start(self, runner: SourceRunner, params: StartRecordingParams, who: str) -> dict[str, Any]:
        """Start to record a picture, a file of spectra or a file of sound.

        Parameters
        ----------
        runner : SourceRunner
            The source.
        params : StartRecordingParams
            The suffix of the name selects one of the formats that ``output_formats`` marks; a
            picture for an unknown suffix and for an empty name.
        who : str
            Peer that requested it.

        Returns
        -------
        status : dict
            Its status.

        Raises
        ------
        BusyError
            If the maximum number or memory of recordings is in use, or the disk has not answered
            for 5 s; nothing is recorded then, and a file created later is removed.
        ConfigError
            If the format cannot hold the product.
        NotFoundError
            If there is no such product.
        StorageError
            If the file exists already, or cannot be created.
        UnavailableError
            If the source is absent or has ended, or the system provides no thread.
        """
        one = one_shot_recordings.make(runner, params, self._state, who, self._note_end)
        with self._lock:
            self._check_room(one)
            self._running["", one.name] = one
        try:
            one.start()
        except BaseException:
            with self._lock:
                del self._running["", one.name]
            raise
        if not one.has_started.wait(START_MAX_S):
            one.end()
            raise BusyError(
                f"{one.name}: the disk has not answered for {START_MAX_S:g} s: nothing is recorded"
            )
        if one.failure:
            raise one.failure
        try:
            one.attach()
        except SpectrodError:
            one.end()
            one.wait(START_MAX_S)
            raise
        if one.feed.pipeline.finished:  # ``update`` may have come before the recording
            one.end()
        self._journal.note("record.start", one.name, source=runner.name, who=who)
        return one_shot_recordings.status_of(one)

    def stop(self, name: str, who: str) -> list[dict[str, Any]]:
        """Stop one-shot recordings and wait until their files are written.

        Parameters
        ----------
        name : str
            Name of the recording; empty: all.
        who : str
            Peer that requested it.

        Returns
        -------
        statuses : list of dict
            Their status.

        Raises
        ------
        BusyError
            If it takes longer than 30 s; the files are written as soon as possible.
        NotFoundError
            If no running recording has that name.
        """
        with self._lock:
            running = self._one_shots()
        selected = [one for one in running if name in ("", one.name, Path(one.name).stem)]
        if not selected:
            known = ", ".join(one.name for one in running) or "none"
            raise NotFoundError(f"recording={name!r}: does not run; there are: {known}")
        for one in selected:
            one.recording.who = who
            one.end()
        for one in _wait(selected, STOP_MAX_S):
            raise BusyError(f"{one.name}: is still being written")
        return [one_shot_recordings.status_of(one) for one in selected]

    def _one_shots(self) -> list[Recorder[Any]]:
        """Return those that record; others wait for a file to be opened, or removed."""
        return [one for key, one in self._running.items() if not key[0] and one.was_attached]

    def _check_room(self, new: Recorder[OneShot[Any]]) -> None:
        """Check that one more recording may run; the caller holds the lock."""
        running = [one.recording for key, one in self._running.items() if not key[0]]
        if len(running) >= ONE_SHOTS_MAX:
            raise BusyError(f"recordings: {ONE_SHOTS_MAX} run already; stop one first")
        if ("", new.name) in self._running:
            raise exists_error(new.name)
        needed_bytes = new.recording.memory_bytes
        left_bytes = MEMORY_MAX_BYTES - sum(one.memory_bytes for one in running)
        if needed_bytes > left_bytes:
            raise BusyError(
                f"recordings: {needed_bytes >> 20} MB are needed, and {left_bytes >> 20} left "
                "by those that run; stop one first"
            )

    def _note_end(self, one: Recorder[OneShot[Any]]) -> None:
        """Record the result of a one-shot recording; called by its thread."""
        status = one_shot_recordings.status_of(one)
        with self._lock:
            self._running.pop(("", one.name), None)
            if not one.was_attached:
                return
            self._ended.append(status)
        state, source, who = status["state"], status["source"], status["who"]
        unit = "samples" if one.feed.samples else "rows"
        text = f"{status['name']}: {state}, {status[unit]} {unit}"
        text += f": {status['error']}" if status["error"] else ""
        has_failed = state == "failed"
        if has_failed:
            _log.error("%s: recording %s", source, text)
        self._journal.note("record.stop", text, source=source, who=who, log=not has_failed)


def _wait(several: Iterable[Recorder[Any]], timeout_s: float) -> list[Recorder[Any]]:
    """Wait for recorders to end; return those that are still running."""
    deadline_s = time.monotonic() + timeout_s
    return [one for one in several if not one.wait(max(0.0, deadline_s - time.monotonic()))]
