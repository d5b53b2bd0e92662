"""Recovery of the files that an earlier daemon left unfinished in the folder of a recording."""

import logging
from collections.abc import Collection
from pathlib import Path

from spectrod.lib.errors import SpectrodError
from spectrod.lib.output_formats import load, recorded_format
from spectrod.recording.recording_folder import RecordingFolder
from spectrod.recording.reporter import Reporter

_log = logging.getLogger(__name__)


class Recovery:
    """Completes unfinished files, or removes those without content, and reports each.

    Parameters
    ----------
    recording : str
        Name of the recording.
    folder : RecordingFolder
        Its folder.
    reporter : Reporter
        Reports what happens.
    """

    def __init__(self, recording: str, folder: RecordingFolder, reporter: Reporter) -> None:
        self._recording, self._folder, self._reporter = recording, folder, reporter
        self._others: set[str] = set()

    def run(self, writing: Collection[str]) -> None:
        """Recover all in the locked folder, but the files with these names, which are written."""
        try:
            parts, others = self._folder.unfinished()
        except SpectrodError as error:
            self._reporter.warn("record.failed", str(error))
            return
        for part in parts:
            if part.name not in writing:
                self._recover(part)
        self._report_others({*others} - {*writing})

    def _recover(self, part: Path) -> None:
        try:
            recover = load(recorded_format(part.with_suffix("").suffix).recovery)
            text = recover(part, self._folder.claimed).summary
        except SpectrodError as error:
            self._reporter.warn("record.unrecovered", f"{part.name}: is left unchanged: {error}")
        except Exception as error:  # noqa: BLE001
            # Last line of defence: recording must start, whatever a file contains.
            _log.exception("recording %s: cannot recover %s", self._recording, part)
            text = f"is left unchanged: {error!r}; please report this"
            self._reporter.warn("record.unrecovered", f"{part.name}: {text}")
        else:
            self._reporter.warn("record.recovered", f"{part.name}: was not finished; {text}")

    def _report_others(self, names: set[str]) -> None:
        """Report files once that look unfinished but were not written by this recording."""
        new, self._others = names - self._others, names
        if new:
            rule = "is left unchanged: this recording did not write it"
            self._reporter.warn("record.unrecovered", f"{first_of(new)}: {rule}")


def first_of(names: Collection[str]) -> str:
    """Return the first of several names, and how many more there are."""
    return min(names) if len(names) == 1 else f"{min(names)} and {len(names) - 1} more"
