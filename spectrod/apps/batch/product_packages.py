"""Packages that the products of a job need, and that may not be installed."""

from importlib.util import find_spec

from spectrod.apps.batch.job import Job
from spectrod.lib.optional_packages import missing_text

_NETCDF = ("h5py", "h5netcdf")
_PARQUET = ("arro3",)


def missing_for_units(job: Job) -> list[str]:
    """Return a line for each package that units need and that is not installed here."""
    is_netcdf = bool({"millidecade", "spectra"} & set(job.products))
    is_netcdf |= "levels" in job.products and job.levels_format == "nc"
    is_parquet = "levels" in job.products and job.levels_format == "parquet"
    missing = [missing_text(name, "netcdf") for name in _missing(_NETCDF if is_netcdf else ())]
    of_parquet = _missing(_PARQUET if is_parquet else ())
    return missing + [missing_text(name, "parquet") for name in of_parquet]


def missing_for_merge(job: Job) -> list[str]:
    """Return a line for each package that ``merge`` needs and that is not installed here."""
    needed = ("zarr",) if "zarr" in job.merged else ()
    return [missing_text(name, "zarr") for name in _missing(needed)]


def _missing(packages: tuple[str, ...]) -> list[str]:
    return [name for name in packages if find_spec(name) is None]
