"""What a folder of recordings has: its recorders, their times, rates, schedules and oddities."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, count, islice
from pathlib import Path

from msgspec import structs

from spectrod.apps.batch.cutting import units_of
from spectrod.apps.batch.job import (
    DEPLOYMENTS_MAX,
    INPUTS_MAX,
    Deployment,
    Job,
    ProductName,
)
from spectrod.apps.batch.plan import InputFinding, Unit
from spectrod.apps.batch.results import RESERVED_NAMES
from spectrod.apps.batch.scan import InputListing, ScannedFile, finding, list_inputs, scan
from spectrod.apps.batch.time_lines import TimedFile, likely_inputs, time_lines
from spectrod.dsp.calibration import calibration_of
from spectrod.lib.errors import ConfigError, InputError
from spectrod.source.files.recorded_name import OF_NAME
from spectrod.source.source_listing import list_sound_files

PRODUCTS: tuple[ProductName, ...] = ("millidecade", "levels", "picture", "flags")
"""What is computed of a season."""
CALIBRATIONS_MAX = 100
"""Most files beside the recordings that are tried as calibrations."""
_NAME_CHARS_MAX = 40
_NOT_OF_NAMES = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class SurveyedDeployment:
    """The files of one recorder.

    Attributes
    ----------
    deployment : Deployment
        What a job says of them.
    files : list of ScannedFile
        Those that state a time, by time.
    n_files : int
        All of them.
    findings : list of InputFinding
        What is odd about them, and their schedule.
    units : list of Unit
        What a job of days makes of them.
    calibrations : list of Path
        Calibration files beside them that fit; one alone is theirs.
    """

    deployment: Deployment
    files: list[ScannedFile]
    n_files: int
    units: list[Unit] = field(default_factory=list)
    findings: list[InputFinding] = field(default_factory=list)
    calibrations: list[Path] = field(default_factory=list)

    @property
    def sound_s(self) -> float:
        """Duration of all files [s]."""
        return sum(file.n_samples / file.fs for file in self.files)

    @property
    def end_utc_ns(self) -> int:
        """UTC after the last sample [ns]; there must be a file."""
        return max(file.end_utc_ns for file in self.files)

    @property
    def layouts(self) -> list[tuple[tuple[float, int], int]]:
        """Rates [Hz] and channels, with the number of files of each, the most common first."""
        return Counter((file.fs, file.channels) for file in self.files).most_common()

    @property
    def formats(self) -> str:
        """Suffixes of the files."""
        found = Counter(Path(file.path).suffix[1:].upper() for file in self.files)
        return ", ".join(name for name, _ in found.most_common())

    @property
    def origins(self) -> str:
        """Where the times of the files are stated."""
        found = Counter(file.recorded.origin for file in self.files)
        return ", ".join(name for name, _ in found.most_common()).replace(OF_NAME, "names")

    @property
    def n_without_zone(self) -> int:
        """Number of files whose times state no time zone."""
        return sum(not file.recorded.has_zone for file in self.files)


def survey(
    folder: Path, name: str, *, time_zone: str = "", time_format: str = ""
) -> list[SurveyedDeployment]:
    """Look at a folder of recordings, at any depth: read the headers of all files.

    Parameters
    ----------
    folder : Path
        Absolute.
    name : str
        Of the deployment, if there is one alone.
    time_zone, time_format : str
        See ``Deployment``.

    Returns
    -------
    found : list of SurveyedDeployment
        By name; see ``time_lines``.

    Raises
    ------
    InputError
        If the folder cannot be read, has no sound files, none of them states a time, or they are of
        more recorders than a job has.
    """
    listing = list_sound_files(str(folder), recursive=True)
    paths = [str(path) for path in listing.files]
    if not paths:
        raise InputError(f"{folder}: has no sound files, and its subfolders have none")
    whole = Deployment(
        name=name, inputs=(str(folder),), time_zone=time_zone, time_format=time_format
    )
    unread = [finding(whole, "unreadable", path, text) for path, text in listing.unread]
    files, findings = scan(whole, InputListing(paths, unread))
    if not files:
        first = next(one.text for one in findings)
        hint = "" if time_format else "; --time-format says how names state times"
        raise InputError(
            f"{folder}: none of its {len(paths)} sound files can be put on a time line, as "
            f"{first}{hint}"
        )
    return list(_deployments(folder, whole, paths, files, findings))


def _deployments(
    folder: Path,
    whole: Deployment,
    paths: Sequence[str],
    files: Sequence[ScannedFile],
    findings: Sequence[InputFinding],
) -> Iterator[SurveyedDeployment]:
    """Yield the deployments that files are of."""
    scanned = {file.path: file for file in files}
    about: dict[str, list[InputFinding]] = {}
    for one in findings:
        about.setdefault(one.path, []).append(one)
    groups = time_lines(folder, [_span(path, scanned.get(path)) for path in paths])
    if len(groups) > DEPLOYMENTS_MAX:
        raise InputError(
            f"{folder}: has files of {len(groups)} recorders, by their folders, names and times: "
            f"must be at most {DEPLOYMENTS_MAX}: name one of its folders"
        )
    names: set[str] = set()
    for label, spans in groups.items():
        name = free_name(label if len(groups) > 1 and label else whole.name, names)
        own = [scanned[str(one.path)] for one in spans if str(one.path) in scanned]
        inputs, recursive = (
            ([str(folder)], True) if len(groups) == 1 else _inputs(folder, whole, spans)
        )
        deployment = _replaced(whole, name, inputs, recursive=recursive)
        of_files = [text for one in spans for text in about.get(str(one.path), ())]
        yield _surveyed(folder, deployment, own, len(spans), of_files)


def _span(path: str, file: ScannedFile | None) -> TimedFile:
    if file is None:
        return TimedFile(Path(path))
    return TimedFile(Path(path), file.recorded.utc_ns, file.end_utc_ns)


def _inputs(folder: Path, whole: Deployment, spans: Sequence[TimedFile]) -> tuple[list[str], bool]:
    """Return the shortest inputs that stand for some files and no others, and ``recursive``.

    Of files without a time, the folder that they have in common: a job does not use them.

    Raises
    ------
    InputError
        If only the files themselves do, and a job cannot have as many inputs.
    """
    own = {str(span.path) for span in spans}
    for inputs, recursive in likely_inputs(folder, spans):
        if all(span.begin_ns is None for span in spans):
            return inputs, recursive
        if len(inputs) > INPUTS_MAX:
            continue
        try:
            found = list_inputs(_replaced(whole, whole.name, inputs, recursive=recursive))
        except InputError:  # a pattern that nothing matches
            continue
        if set(found.paths) == own:
            return inputs, recursive
    raise InputError(
        f"{spans[0].path} and {len(own) - 1} other files seem to be of one recorder, and lie among "
        "those of others: move each recorder's into a folder of its own"
    )


def _replaced(
    deployment: Deployment, name: str, inputs: Sequence[str], *, recursive: bool
) -> Deployment:
    return structs.replace(deployment, name=name, inputs=tuple(inputs), recursive=recursive)


def free_name(text: str, taken: set[str]) -> str:
    """Return a name that jobs and deployments can have, like a text, and add it to those taken."""
    name = _NOT_OF_NAMES.sub("-", text).strip("-")[:_NAME_CHARS_MAX] or "recordings"
    if name in RESERVED_NAMES:
        name = f"{name}-1"
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    found = next(one for one in names if one not in taken)
    taken.add(found)
    return found


def _surveyed(
    folder: Path,
    deployment: Deployment,
    files: list[ScannedFile],
    n_files: int,
    findings: list[InputFinding],
) -> SurveyedDeployment:
    job = Job(name="survey", output="", deployments=(deployment,), products=PRODUCTS)
    units, more = units_of(job, deployment, files)
    found = SurveyedDeployment(deployment, files, n_files, units, [*findings, *more])
    if files:
        found.calibrations.extend(_calibrations(folder, deployment, files[0].channels))
    return found


def _calibrations(folder: Path, deployment: Deployment, channels: int) -> Iterator[Path]:
    """Yield the calibrations beside the files of a deployment, those that are theirs alone first.

    If one is the only one of its folder, or has the deployment's name, no others follow it.
    """
    own = Path(deployment.inputs[0])
    own = own if own.is_dir() else own.parent
    for place in dict.fromkeys((own, folder)):
        if not place.is_dir():
            continue
        fitting = [path for path in _tables_in(place) if _fits(path, channels)]
        named = [path for path in fitting if path.stem.lower() == deployment.name.lower()]
        if found := named[:1] or fitting:
            yield from found
            return


def _tables_in(folder: Path) -> list[Path]:
    try:
        return sorted(islice(folder.glob("*.toml"), CALIBRATIONS_MAX))
    except OSError:
        return []


def _fits(path: Path, channels: int) -> bool:
    try:
        str(path).encode()  # a job is UTF-8
        return bool(calibration_of(path, channels))
    except (ConfigError, UnicodeEncodeError):
        return False
