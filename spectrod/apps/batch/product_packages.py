"""Packages that the products of a job need, and that may not be installed."""

from importlib.util import find_spec

from spectrod.apps.batch.job import Job
from spectrod.lib.errors import UnavailableError
from spectrod.lib.optional_packages import missing_text

_PACKAGES = {
    "netcdf": ("h5py", "h5netcdf"),
    "parquet": ("arro3",),
    "zarr": ("zarr",),
}
"""What is imported of each extra of spectrod."""


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
    missing = {
        name: extra
        for extra, names in _PACKAGES.items()
        for name in names
        if extra in extras and find_spec(name) is None
    }
    return (
        missing_text(", ".join(missing), ",".join(dict.fromkeys(missing.values())))
        if missing
        else ""
    )


def need_packages(job: Job, *, for_units: bool = True, for_merge: bool = True) -> None:
    """Raise UnavailableError with the line of ``missing_packages``, if there is one."""
    if text := missing_packages(job, for_units=for_units, for_merge=for_merge):
        raise UnavailableError(text)


def _of_units(job: Job) -> set[str]:
    """Return the extras that the files of units need."""
    of_format = {"csv": set[str](), "nc": {"netcdf"}, "parquet": {"parquet"}}
    found = {"netcdf"} if {"millidecade", "spectra"} & set(job.products) else set[str]()
    return found.union(*(of_format[one] for one in job.table_formats.values()))
