"""``spectrod batch init``: from a folder of recordings to a JOB.toml that runs."""

from itertools import chain, count
from pathlib import Path

from spectrod.apps.batch.command_text import LISTED_MAX, hours
from spectrod.apps.batch.job import Job
from spectrod.apps.batch.job_draft import JobDraft, notes, summary
from spectrod.apps.batch.job_file import read_job
from spectrod.apps.batch.product_packages import missing_packages
from spectrod.apps.batch.survey import SurveyedDeployment, free_name, survey
from spectrod.formats.whole_files import is_there, whole_file
from spectrod.lib.errors import ConfigError
from spectrod.lib.text import printable
from spectrod.lib.time_format import check_time_format
from spectrod.lib.time_zones import find_zone, zone_name
from spectrod.recording.output_plan import make_folders
from spectrod.source.store.urls import is_url


def init(
    folder: str, path: Path, *, files_zone: str = "", time_format: str = "", time_zone: str = ""
) -> None:
    """Look at a folder, write the job of it, and print what was found.

    Parameters
    ----------
    folder : str
        Of recordings, at any depth.
    path : Path
        The job's file, which must not exist.
    files_zone : str
        Zone of times of files that state none, see ``find_zone``.
    time_format : str
        See ``Deployment``.
    time_zone : str
        Zone of the times in tables and pictures.

    Raises
    ------
    ConfigError
        If the file exists, the folder is in a store, or the zone or the format is none.
    InputError
        See ``survey``.
    StorageError
        If the file cannot be written.
    """
    if is_there(path):
        raise ConfigError(f"{path}: is there: init replaces no file; -o names another one")
    if is_url(folder):
        raise ConfigError(f"{folder}: must be a folder of this machine: write the job by hand")
    check_time_format(time_format)
    where = Path(folder).absolute().resolve()
    name = free_name(where.name, set())
    shown_zone = zone_name(time_zone)
    zone = find_zone(files_zone, "files_zone").key if files_zone else ""
    found = survey(where, name, time_zone=zone, time_format=time_format)
    make_folders([str(path)])
    job = _write(path, JobDraft(name, where, _free_output(path), found, shown_zone))
    _print(path, found, job)


def _free_output(path: Path) -> Path:
    """Return a folder of results that nothing has: ``results`` of JOB.toml, else of its name."""
    name = "results" if path.stem.lower() == "job" else f"{path.stem}-results"
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    folders = (path.absolute().with_name(one) for one in names)
    return next(one for one in folders if not is_there(one))


def _write(path: Path, draft: JobDraft) -> Job:
    with whole_file(path, replaces=False) as part:
        part.write_text(draft.text(), "utf-8")
        return read_job(part)


def _print(path: Path, found: list[SurveyedDeployment], job: Job) -> None:
    for one in found[:LISTED_MAX]:
        print(f"{one.deployment.name}: {summary(one)}")
        for line in notes(one, LISTED_MAX):
            print(f"  {line}")
    if len(found) > LISTED_MAX:
        print(f"and {len(found) - LISTED_MAX} more deployments, which the job has")
    n_units = sum(len(one.units) for one in found)
    cost_s = sum(unit.cost_s for one in found for unit in one.units)
    print(f"{printable(path)}: units of a day: {n_units}, about {hours(cost_s)} of processor time")
    if missing := missing_packages(job):
        print(missing)
    print(f"next: spectrod batch run {printable(path)}")
