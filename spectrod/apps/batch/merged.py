"""What ``merge`` makes of all units of a job together: a Zarr store, and pyramids."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from spectrod.apps.batch.job import Job
from spectrod.apps.batch.pyramids import pyramid_problems, write_pyramids
from spectrod.apps.batch.results import HISTORY_FOLDER, STORE_FOLDER
from spectrod.apps.batch.run import UnitStatus
from spectrod.apps.batch.series import series_of
from spectrod.apps.batch.staging import merging
from spectrod.apps.batch.store import Merged, store_problems, write_store

_WRITERS = {"zarr": write_store, "pyramid": write_pyramids}


def write_merged(job: Job, statuses: Sequence[UnitStatus]) -> Iterator[Merged]:
    """Write what ``job.merged`` names, or what has changed in it, and yield what each is made of.

    Raises
    ------
    BusyError
        If another process merges.
    ConfigError
        If a deployment has too many units.
    StorageError
        See ``write_store`` and ``write_pyramids``.
    UnavailableError
        If zarr is not installed.
    """
    if not job.merged:
        return
    series = list(series_of(job, statuses))
    with merging(Path(job.output)):
        for name in job.merged:
            yield _WRITERS[name](job, series)


def left_over(job: Job) -> list[Path]:
    """Return the folders of earlier merges that ``job.merged`` no longer names."""
    folders = {"zarr": STORE_FOLDER, "pyramid": HISTORY_FOLDER}
    unnamed = [folder for name, folder in folders.items() if name not in job.merged]
    return [path for folder in unnamed if (path := Path(job.output) / folder).exists()]


def merged_problems(job: Job, statuses: Sequence[UnitStatus]) -> Iterator[str]:
    """Yield what of ``job.merged`` is there and differs from the results of the units."""
    series = list(series_of(job, statuses)) if job.merged else []
    if "zarr" in job.merged:
        yield from store_problems(job, series)
    if "pyramid" in job.merged:
        yield from pyramid_problems(job, series)
