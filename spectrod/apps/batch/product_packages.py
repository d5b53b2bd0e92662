"""Packages that the products of a job need, and that may not be installed."""

from spectrod.apps.batch.job import Job
from spectrod.lib import optional_packages
from spectrod.lib.errors import UnavailableError
from spectrod.lib.output_formats import value_format


def missing_packages(job: Job, *, for_units: bool = True, for_merge: bool = True) -> str:
    """Return a line about all packages that a job needs and that are not installed here.

    Parameters
    ----------
    job : Job
    for_units : bool
        Count what computing units needs.
    for_merge : bool
        Count what ``merge`` needs.

    Returns
    -------
    text : str
        Names each package, and one command that installs all; empty if none is missing.
    """
    extras = set[str]()
    if for_units:
        extras |= _of_units(job)
    if for_merge and job.merged:
        extras |= {"netcdf"} | ({"zarr"} & set(job.merged))
    return optional_packages.missing_packages(extras)


def need_packages(job: Job, *, for_units: bool = True, for_merge: bool = True) -> None:
    """Raise UnavailableError with the line of ``missing_packages``, if there is one."""
    if text := missing_packages(job, for_units=for_units, for_merge=for_merge):
        raise UnavailableError(text)


def _of_units(job: Job) -> set[str]:
    """Return the extras that the files of units need."""
    found = {"netcdf"} if {"millidecade", "spectra"} & set(job.products) else set[str]()
    tables = (value_format(f".{suffix}") for suffix in job.table_formats.values())
    return found | {one.extra for one in tables if one.extra}
