"""Sends finished files to a bucket, and removes those that are there."""

import os
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Protocol

from spectrod.apps.upload.finished_files import (
    FileVersion,
    list_finished,
    open_finished,
    remove_finished,
)
from spectrod.dsp.units import NS_PER_S
from spectrod.lib.errors import storage_error
from spectrod.lib.text import printable
from spectrod.source.store.bucket_errors import answers
from spectrod.source.store.store_listing import list_sizes, size_of
from spectrod.source.store.stores import Ask, answer, store_of
from spectrod.source.store.uploads import (
    PART_BYTES,
    LocalFileError,
    abort_unfinished,
    digest_of,
    is_same,
    send,
)

REFUSALS_MAX = 3
"""Files that a bucket refuses one after the other before it counts as refusing all."""
NEW_S = 60.0
"""How much older than the look before a file may be that counts as new [s]: it gets its name some
time after its last change."""
REMOVED_AGE_S = 60.0
"""Least time since a file was changed for its removal [s]: other programs may still write it."""
PART_S = 600.0
"""Longest time of a request that sends bytes [s]: parts arrive at 14 kB/s and more."""
KEY_BYTES_MAX = 1024
"""Longest name of an object in UTF-8, as S3 and Google have it [bytes]."""


class UploadReport(Protocol):
    """What an upload reports while it goes on."""

    def sent(self, name: str, size: int) -> None:
        """Report that a file is in the bucket."""
        ...

    def removed(self, name: str) -> None:
        """Report that a file that is in the bucket was removed here."""
        ...

    def complain(self, text: str) -> None:
        """Report a fault, once for each."""
        ...


class Uploader:
    """Sends the files of a folder that a bucket lacks, or has with another size.

    Each ``look`` lists the folder. The bucket is listed at the first one, and when older files have
    come, as with a disk; else, new files are not there, and those that were sent are. One thread.

    Parameters
    ----------
    folder : Path
        The folder.
    address : str
        Bucket and folder, without ``/`` at the end.
    report : UploadReport
    ask : callable
        Makes the requests.
    tick : callable
        Called while local files are read for long.
    removed_after_s : float, optional
        Remove files that are there and were changed longer ago than this [s].

    Attributes
    ----------
    n_sent, sent_bytes : int
        Files sent so far, and their sizes.
    n_there, n_unfinished : int
        Files at the last look that were in the bucket, and that were not finished.
    n_left_out : int
        Files and folders that the last look left out, and files that could not be read or were
        deleted before they were sent.
    n_removed, n_failed : int
        Files that were removed here, and those that the bucket refused at the last look.

    Raises
    ------
    UnavailableError
        If the libraries of the extra ``cloud`` are not installed.
    """

    def __init__(
        self,
        folder: Path,
        address: str,
        report: UploadReport,
        *,
        ask: Ask = answer,
        tick: Callable[[], object] = lambda: None,
        removed_after_s: float | None = None,
    ) -> None:
        store_of(address)
        self._folder, self._address, self._report = folder, address, report
        self._ask, self._tick = ask, tick
        self._removed_after_s = removed_after_s
        self._known: set[str] | None = None
        self._looked_ns = 0
        self._there: dict[str, int] = {}
        self._proved: dict[str, tuple[FileVersion, str]] = {}
        self._n_unproved = 0
        self._failed: set[str] = set()
        self._complaints: dict[str, str] = {}
        self._stuck: dict[str, int | None] = {}
        self._stuck_now: set[str] = set()
        self._waiting: set[str] = set()
        self._current: BinaryIO | None = None
        self._is_refusing = False
        self.n_sent = self._whole_bytes = self.n_there = self.n_unfinished = 0
        self.n_left_out = self.n_removed = self.n_failed = 0

    @property
    def has_listed(self) -> bool:
        """Whether the bucket has answered with a list of its files."""
        return self._known is not None

    @property
    def n_waiting(self) -> int:
        """Number of finished files that are not in the bucket yet."""
        return len(self._waiting)

    @property
    def sent_bytes(self) -> int:
        """Bytes sent so far, those of a file in progress included."""
        return self._whole_bytes + (self._current.tell() if self._current else 0)

    def look(self) -> None:
        """Remove what is there and may be removed, then send the rest, each likewise.

        Raises
        ------
        InputError
            If the folder cannot be read, or has too much in it.
        StorageError
            If the bucket does not answer, or has refused three files one after the other.
        """
        looked_ns = time.time_ns()
        found = list_finished(self._folder)
        complaints = dict(found.left_out)
        files = {}
        in_order = sorted(found.files.items(), key=lambda one: (one[1].mtime_ns, one[0]))
        for name, file in in_order:
            if rule := self._rule_of_name(name):
                complaints[name] = rule
            else:
                files[name] = file
        self.n_left_out = found.n_left_out + len(found.files) - len(files)
        self._keep_only(files, complaints)
        for name, reason in complaints.items():
            self._complain(name, reason)
        self.n_unfinished, self.n_failed = found.n_unfinished, 0
        with answers():
            self._learn(files)
            self._looked_ns = looked_ns
            due = [name for name, file in files.items() if self._there.get(name) != file.size]
            due.sort(key=self._failed.__contains__)
            self.n_there, self._waiting = len(files) - len(due), set(due)
            self._abort_unfinished(files, due)
            self._stuck_now.clear()
            self._n_unproved = 0
            for name, file in files.items():
                if name not in self._waiting:
                    self._remove_old(name, file)
            self._send_all(due)

    # ---- what there is

    def _rule_of_name(self, name: str) -> str:
        if not name.isprintable():
            return "must have a name of printable characters in UTF-8, to be one of the bucket"
        bucket = self._address.partition("://")[2].partition("/")[2]
        if len(f"{bucket}/{name}".encode()) > KEY_BYTES_MAX:
            return f"must have at most {KEY_BYTES_MAX} bytes in its name with that of the folder"
        return ""

    def _keep_only(self, files: Mapping[str, FileVersion], complaints: Collection[str]) -> None:
        """Forget files that are no longer there; report those that were never sent."""
        if vanished := self._waiting - files.keys() - set(complaints):
            self._report_vanished(vanished)
        self._complaints = {
            name: text
            for name, text in self._complaints.items()
            if name in files or name in complaints
        }
        self._there = {name: size for name, size in self._there.items() if name in files}
        self._proved = {name: one for name, one in self._proved.items() if name in files}
        self._failed &= files.keys()

    def _report_vanished(self, names: set[str]) -> None:
        others = f" and {len(names) - 1} more" if len(names) > 1 else ""
        self._report.complain(
            f"{printable(min(names))}{others}: deleted before it was sent, as by a rule of its "
            "recording"
        )

    def _learn(self, files: Mapping[str, FileVersion]) -> None:
        """List the bucket, if it is not known which of the files it has."""
        new = files.keys() - (self._known or ())
        new_ns = self._looked_ns - round(NEW_S * NS_PER_S)
        if self._known is None or any(files[name].mtime_ns < new_ns for name in new):
            self._there |= list_sizes(self._address, new, ask=self._ask)
        self._known = set(files)

    def _abort_unfinished(self, files: Mapping[str, FileVersion], due: Collection[str]) -> None:
        """Remove what killed uploads have left, where the bucket lets them be listed."""
        large = {self._url(name) for name in due if files[name].size > PART_BYTES}
        if large and (not self.n_sent or self._failed):
            with answers(), suppress(OSError):
                abort_unfinished(large, ask=self._ask)

    # ---- sending

    def _send_all(self, due: Collection[str]) -> None:
        n_in_row, n_taken = 0, 0
        refusal: OSError | None = None
        for name in due:
            try:
                is_done = self._sent_whole(name)
            except OSError as error:
                refusal, n_in_row = error, n_in_row + 1
                self._note_refusal(name, error)
                if n_in_row == REFUSALS_MAX:
                    break
                continue
            n_in_row = 0
            if is_done:
                n_taken += 1
                self._note_taken(name)
                if (proved := self._proved.get(name)) is not None:
                    self._remove_old(name, proved[0])
        if refusal is not None and (n_in_row == REFUSALS_MAX or not n_taken):
            self._is_refusing = True
            raise storage_error(self._address, refusal) from refusal

    def _sent_whole(self, name: str) -> bool:
        """Send a file, and return whether it is there; an OSError is the bucket's."""
        url = self._url(name)
        try:
            file = open_finished(self._folder, name)
        except FileNotFoundError:
            self._waiting.discard(name)
            self._report_vanished({name})
            self.n_left_out += 1
            return False
        except OSError as error:
            return self._leave(name, error)
        with file:
            version = FileVersion.of(_status(file))
            # The answer to an upload that seemed to fail may have been lost.
            is_there = name in self._failed and size_of(url, ask=self._ask) == version.size
            if not is_there:
                self._current = file
                try:
                    digest = send(url, file, ask=self._ask, part_s=PART_S)
                except LocalFileError as error:
                    self._failed.add(name)
                    return self._leave(name, error)
                finally:
                    self._current = None
                self._proved[name] = version, digest
        self._there[name] = version.size
        self.n_sent += 1
        self._whole_bytes += version.size
        self._report.sent(name, version.size)
        return True

    def _leave(self, name: str, error: OSError) -> bool:
        self._complain(name, error.strerror or str(error))
        self.n_left_out += 1
        return False

    def _note_refusal(self, name: str, error: OSError) -> None:
        self.n_failed += 1
        if name not in self._failed and not self._is_refusing:
            self._report.complain(str(storage_error(printable(self._url(name)), error)))
        self._failed.add(name)

    def _note_taken(self, name: str) -> None:
        self._failed.discard(name)
        self._complaints.pop(name, None)
        self._waiting.discard(name)
        self._is_refusing = False

    # ---- removing

    def _remove_old(self, name: str, file: FileVersion) -> None:
        """Remove a file that is there, if it is old enough and its folder lets it be removed."""
        place = name.rpartition("/")[0]
        if self._removed_after_s is None or place in self._stuck_now:
            return
        if self._n_unproved == REFUSALS_MAX:
            return
        age_ns = round(max(self._removed_after_s, REMOVED_AGE_S) * NS_PER_S)
        if file.mtime_ns >= time.time_ns() - age_ns:
            return
        try:
            with answers():
                is_safe = self._is_safe(name, file)
        except OSError as error:  # what is not sent yet must not wait for this
            self._n_unproved += 1
            self._note_stuck(self._url(name), error, "cannot be compared, so it stays here")
            return
        if is_safe and not self._remove(name, file):
            self._stuck_now.add(place)

    def _is_safe(self, name: str, file: FileVersion) -> bool:
        """Return whether the bucket has all of a file, as it says now."""
        url = self._url(name)
        try:
            digest = digest_of(url, ask=self._ask)
        except FileNotFoundError:
            return self._forget(name)
        is_proved = bool(digest) and self._proved.get(name) == (file, digest)
        if not is_proved and not self._prove(name, file, digest):
            return False
        return size_of(url, ask=self._ask) == file.size or self._forget(name)

    def _remove(self, name: str, file: FileVersion) -> bool:
        """Remove a file if it is still this version; return False if its folder forbids it."""
        try:
            is_removed = remove_finished(self._folder, name, file)
        except OSError as error:
            self._note_stuck(
                str((self._folder / name).parent), error, "files in it cannot be removed"
            )
            return False
        if is_removed:
            self.n_removed += 1
            self._report.removed(name)
        return True

    def _note_stuck(self, place: str, error: OSError, text: str) -> None:
        if self._stuck.get(place) != error.errno:
            self._stuck[place] = error.errno
            self._report.complain(f"{printable(place)}: {text}: {error.strerror}")

    def _prove(self, name: str, file: FileVersion, digest: str) -> bool:
        """Return whether a file that an earlier run found or sent is the bucket's."""
        if name in self._complaints:
            return False
        try:
            local = open_finished(self._folder, name)
        except OSError as error:
            self._complain(name, error.strerror or str(error))
            return False
        with local:
            if FileVersion.of(_status(local)) != file:
                return False
            try:
                is_proved = is_same(digest, local, on_part=self._tick)
            except LocalFileError as error:
                self._complain(name, error.strerror or str(error))
                return False
        if is_proved:
            self._proved[name] = file, digest
        else:
            rule = "stays: the bucket has a file of its name and size, not known to be the same"
            self._complain(name, rule)
        return is_proved

    def _forget(self, name: str) -> bool:
        """Send a file at the next look that the bucket has lost; return False."""
        self._there.pop(name, None)
        self._proved.pop(name, None)
        self.n_failed += 1
        self._report.complain(f"{printable(self._url(name))}: the bucket no longer has it")
        return False

    def _complain(self, name: str, reason: str) -> None:
        if self._complaints.get(name) != reason:
            self._complaints[name] = reason
            self._report.complain(f"{printable(self._folder / name)}: {reason}")

    def _url(self, name: str) -> str:
        return f"{self._address}/{name}"


def _status(file: BinaryIO) -> os.stat_result:
    return os.fstat(file.fileno())
