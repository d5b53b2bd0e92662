"""The sound files of a deployment: found, and described by their headers."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np

from spectrod.apps.batch.fingerprint import Fingerprint, fingerprint
from spectrod.apps.batch.job import UNIT_NS, Deployment
from spectrod.apps.batch.plan import (
    FS_MAX,
    FS_MIN,
    MTIME_NS_MAX,
    UTC_NS_MAX,
    FindingKind,
    InputFinding,
)
from spectrod.dsp.blocks import SampleFormat
from spectrod.dsp.units import NS_PER_S
from spectrod.lib.errors import InputError
from spectrod.lib.text import printable
from spectrod.source.base import YEAR_S
from spectrod.source.files.filesamples import plain_format_of
from spectrod.source.files.local_times import Passes, from_zone, tell_passes_apart
from spectrod.source.files.patterns import has_pattern, matching_paths
from spectrod.source.files.recorded_at import (
    RecordedAt,
    recorded_at,
    recorded_at_name,
    why_undated,
)
from spectrod.source.files.recorded_name import OF_NAME
from spectrod.source.files.soundfile import SoundFile
from spectrod.source.files.triggered import find_stretches
from spectrod.source.source_listing import FILES_MAX, SUFFIXES, list_sound_files
from spectrod.source.store.remote_file import small_parts_kept
from spectrod.source.store.store_listing import list_urls
from spectrod.source.store.urls import file_name, is_url

THREADS = 8
"""Files whose headers are read at a time."""
_AT_A_TIME = 1024
YEARS_MAX = 1
"""Longest file: a header that states more is wrong."""
_BEGIN_NS_MIN = UNIT_NS["day"] - UTC_NS_MAX
"""Earliest begin of a file [ns]: its day begins within the times of a plan."""


@dataclass(frozen=True, slots=True)
class ScannedFile:
    """A sound file of a deployment.

    Attributes
    ----------
    path : str
        Absolute.
    print_ : Fingerprint
        Its identity.
    fs : float
        Sample rate [Hz].
    channels : int
        Channels.
    n_samples : int
        Readable samples per channel.
    n_announced : int
        Samples per channel that the header states.
    sample_format : str
        Format of plain samples; empty if they are decoded.
    recorded : RecordedAt
        Start of the recording, corrected by the deployment's time zone and clock offset.
    damage : str
        What is wrong with it; empty for nothing.
    repeat_ns : int
        See ``LocalTime``; 0 if the file states its time zone.
    is_second_pass : bool
        True if it was recorded when its local time came the second time.
    """

    path: str
    print_: Fingerprint
    fs: float
    channels: int
    n_samples: int
    n_announced: int
    sample_format: SampleFormat | Literal[""]
    recorded: RecordedAt
    damage: str = ""
    repeat_ns: int = 0
    is_second_pass: bool = False

    @property
    def begin_utc_ns(self) -> int:
        """UTC of its first sample [ns]."""
        return self.recorded.utc_ns

    @property
    def content(self) -> tuple[int, str]:
        """What copies have in common."""
        return self.print_.size, self.print_.digest

    @property
    def mtime_ns(self) -> int:
        """When it was changed last [ns]."""
        return self.print_.mtime_ns

    def repeated(self) -> "ScannedFile":
        """Return the file as one that was recorded when its local time came the second time."""
        recorded = replace(self.recorded, utc_ns=self.recorded.utc_ns + self.repeat_ns)
        return replace(self, recorded=recorded, is_second_pass=True)

    @property
    def end_utc_ns(self) -> int:
        """UTC after its last readable sample [ns]."""
        return self.recorded.utc_ns + round(self.n_samples / self.fs * NS_PER_S)


def finding(
    deployment: Deployment,
    kind: FindingKind,
    path: str | Path,
    text: str,
    utc_ns: int | None = None,
    duration_s: float = 0.0,
) -> InputFinding:
    """Return a finding about a file of a deployment."""
    return InputFinding(
        kind=kind,
        deployment=deployment.name,
        path=os.fsencode(path).decode(errors="backslashreplace"),
        text=printable(text),
        utc_ns=utc_ns,
        duration_s=round(duration_s, 6),
    )


@dataclass(frozen=True, slots=True)
class InputListing:
    """The sound files of a deployment, of which none was opened.

    Attributes
    ----------
    paths : list of str
        Sorted; a file that several inputs name comes once.
    findings : list of InputFinding
        Folders that could not be searched.
    """

    paths: list[str]
    findings: list[InputFinding]


def scan(
    deployment: Deployment, listing: InputListing | None = None
) -> tuple[list[ScannedFile], list[InputFinding]]:
    """Read the headers of the files of a deployment, several at a time.

    Parameters
    ----------
    deployment : Deployment
    listing : InputListing, optional
        Its files, if they have been listed.

    Returns
    -------
    files : list of ScannedFile
        Those with a start time, sorted by it.
    findings : list of InputFinding
        Those about single files.

    Raises
    ------
    InputError
        See ``list_inputs``.
    UnavailableError
        If a store does not answer.
    """
    listing = listing or list_inputs(deployment)
    findings = list(listing.findings)
    files: list[ScannedFile] = []
    with ThreadPoolExecutor(THREADS, "spectrod-scan") as pool:
        rest = iter(listing.paths)
        while some := list(islice(rest, _AT_A_TIME)):
            for found, about in pool.map(partial(_described, deployment), some):
                files += [found] if found is not None else []
                findings += about
    files.sort(key=lambda file: (file.recorded.utc_ns, file.path))
    files, passes = tell_passes_apart(files)
    findings += [_of_passes(deployment, one) for one in passes]
    return files, findings + list(_of_skipped(deployment, files))


def _of_passes(deployment: Deployment, passes: Passes[ScannedFile]) -> InputFinding:
    """Return the finding about files whose local times come twice."""
    files = [*passes.first, *passes.second]
    day = np.datetime64(files[0].recorded.utc_ns, "ns").astype("datetime64[D]")
    counts = f"{len(passes.first)} taken for the first time, {len(passes.second)} for the second"
    text = (
        f"{files[0].path}: begins when local times of {deployment.time_zone} come twice, on {day}, "
        f"as do {len(files) - 1} other files: {counts}"
    )
    return finding(deployment, "clock", files[0].path, text, files[0].recorded.utc_ns)


def _of_skipped(deployment: Deployment, files: list[ScannedFile]) -> Iterator[InputFinding]:
    """Yield a finding about the files whose local times a change of the clock leaves out."""
    skipped = [file for file in files if file.repeat_ns < 0]
    if skipped:
        text = (
            f"{skipped[0].path}: begins at a local time that {deployment.time_zone} leaves out, as "
            f"do {len(skipped) - 1} other files: its clock was not changed by then"
        )
        start_ns = skipped[0].recorded.utc_ns
        yield finding(deployment, "clock", skipped[0].path, text, start_ns)


# ---- lists


def list_inputs(deployment: Deployment) -> InputListing:
    """List the files of a deployment.

    Raises
    ------
    InputError
        If an input does not exist, has no sound files, or there are more than ``FILES_MAX``.
    UnavailableError
        If a store does not answer.
    """
    found: dict[str, str] = {}
    findings: list[InputFinding] = []
    for text in deployment.inputs:
        has_files = False
        for path in _of_input(deployment, text, findings):
            has_files = True
            found.setdefault(path if is_url(path) else os.path.realpath(path), path)
            if len(found) > FILES_MAX:
                raise InputError(
                    f"deployments.{deployment.name}: has more than {FILES_MAX} sound files"
                )
        if not has_files:
            raise InputError(f"deployments.{deployment.name}: {text}: has no sound files")
    return InputListing(sorted(found.values()), findings)


def _of_input(deployment: Deployment, text: str, findings: list[InputFinding]) -> Iterator[str]:
    if is_url(text):
        yield from list_urls(text, recursive=deployment.recursive)
        return
    if not has_pattern(text) or Path(text).exists():
        yield from _of_path(deployment, text, findings)
        return

    def note_unread(folder: str, text: str) -> None:
        findings.append(finding(deployment, "unreadable", folder, text))

    for path in matching_paths(text, note_unread):
        if Path(path).is_dir():
            yield from _of_path(deployment, path, findings)
        elif Path(path).suffix.lower() in SUFFIXES:
            yield path


def _of_path(deployment: Deployment, path: str, findings: list[InputFinding]) -> Iterator[str]:
    if not Path(path).is_dir():
        try:
            Path(path).stat()
        except OSError as error:
            raise InputError(f"deployments.{deployment.name}: {path}: {error.strerror}") from error
        yield path
        return
    listing = list_sound_files(path, recursive=deployment.recursive)
    findings += [finding(deployment, "unreadable", folder, text) for folder, text in listing.unread]
    yield from map(str, listing.files)


# ---- headers


def _described(deployment: Deployment, path: str) -> tuple[ScannedFile | None, list[InputFinding]]:
    """Read the header of a file; return what is wrong with it, too."""
    try:
        file = _read_header(deployment, path)
    except InputError as error:
        return None, [finding(deployment, "unreadable", path, str(error))]
    except OSError as error:
        return None, [finding(deployment, "unreadable", path, f"{path}: {error.strerror}")]
    if file is None:
        text = f"{path}: its {_places(deployment)} states no start time"
        if deployment.time != "header":
            text += why_undated(path, deployment.time_format)
        return None, [finding(deployment, "undated", path, text)]
    if not _BEGIN_NS_MIN <= file.recorded.utc_ns <= file.end_utc_ns <= UTC_NS_MAX:
        text = f"{path}: its start time, with clock_offset_s, must be from 1685 to 2255"
        return None, [finding(deployment, "undated", path, text)]
    if not file.damage:
        return file, []
    text = f"{path}: {file.damage}: read up to there"
    missing_s = (file.n_announced - file.n_samples) / file.fs
    start_ns = file.recorded.utc_ns
    return file, [finding(deployment, "truncated", path, text, start_ns, missing_s)]


def _check_utf8(path: str) -> None:
    """Check that a plan, which is JSON, can have a path; raises InputError."""
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{path}: its path is not UTF-8: rename it") from error


def _check_bounds(path: str, file: SoundFile, print_: Fingerprint) -> None:
    """Check that a plan can have a file, whose header anybody may have written.

    Raises
    ------
    InputError
        If its rate, its length or its time of change is beyond those of a plan.
    """
    if not FS_MIN <= file.fs <= FS_MAX:
        raise InputError(f"{path}: its rate of {file.fs:g} Hz must be {FS_MIN:g} to {FS_MAX:g} Hz")
    years = file.n_samples / file.fs / YEAR_S
    if years > YEARS_MAX:
        raise InputError(f"{path}: lasts {years:.3g} years: must be at most {YEARS_MAX}")
    if abs(print_.mtime_ns) > MTIME_NS_MAX:
        raise InputError(f"{path}: its time of change is beyond 1677 to 2262: touch it")


def _places(deployment: Deployment) -> str:
    if deployment.time_format:
        return "name"
    return "header or name" if deployment.time == "auto" else deployment.time


def _read_header(deployment: Deployment, path: str) -> ScannedFile | None:
    _check_utf8(path)
    with small_parts_kept():
        return _read_parts(deployment, path)


def _read_parts(deployment: Deployment, path: str) -> ScannedFile | None:
    file = SoundFile(path)
    try:
        recorded = _recorded_at(deployment, path, file)
        if recorded is None:
            return None
        recorded, repeat_ns = _corrected(deployment, recorded)
        print_ = fingerprint(path)
        _check_bounds(path, file, print_)
        stretches = find_stretches(path, file.comment)
        n_samples = stretches.n_samples if stretches else file.n_samples
        return ScannedFile(
            path,
            print_,
            file.fs,
            file.channels,
            n_samples,
            n_samples + file.n_announced - file.n_samples,
            plain_format_of(path, file),
            recorded,
            file.damage,
            repeat_ns,
        )
    finally:
        file.close()


def _recorded_at(deployment: Deployment, path: str, file: SoundFile) -> RecordedAt | None:
    if deployment.time == "name" or deployment.time_format:
        found = recorded_at_name(file_name(path), deployment.time_format)
    else:
        found = recorded_at(path, file.fs, file.comment)
        if deployment.time == "header" and found is not None and found.origin == OF_NAME:
            return None
    return found


def _corrected(deployment: Deployment, recorded: RecordedAt) -> tuple[RecordedAt, int]:
    """Return a time by the deployment's time zone and clock offset; see ``LocalTime``."""
    utc_ns, repeat_ns = recorded.utc_ns, 0
    if deployment.time_zone and not recorded.has_zone:
        utc_ns, repeat_ns = from_zone(utc_ns, deployment.time_zone)
    utc_ns += round(deployment.clock_offset_s * NS_PER_S)
    return replace(recorded, utc_ns=utc_ns), repeat_ns
