"""Optional packages: which extra of spectrod installs them, and their import."""

from collections.abc import Collection, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from spectrod.lib.errors import UnavailableError

PACKAGES: Final[Mapping[str, tuple[str, ...]]] = {
    "netcdf": ("h5py", "h5netcdf"),
    "parquet": ("arro3",),
    "zarr": ("zarr",),
    "pdf": ("fpdf",),
    "plot": ("matplotlib",),
    "xarray": ("xarray",),
    "fast": ("isal",),
    "web": ("starlette", "uvicorn", "websockets", "segno"),
    "mqtt": ("paho",),
    "dask": ("dask", "distributed", "cryptography"),
    "cloud": ("aiohttp", "fsspec", "gcsfs", "s3fs"),
}
"""What is imported of each extra of spectrod, but for that of the benchmarks' peers."""


def need(package: str, extra: str) -> Any:
    """Import a package that one of spectrod's extras installs.

    Raises
    ------
    UnavailableError
        If it is not installed; the text says what to install.
    """
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise UnavailableError(missing_text(package, extra)) from None


def need_elsewhere(package: str, extra: str) -> None:
    """Check that a package is installed that another process imports; see ``need`` for errors."""
    if find_spec(package) is None:
        raise UnavailableError(missing_text(package, extra))


def missing_text(packages: str, extras: str) -> str:
    """Say that a package is missing, or several, parted by commas, and what installs them."""
    verb = "are" if "," in packages else "is"
    return f"{packages} {verb} not installed: needs: pip install 'spectrod[{extras}]'"


def missing_packages(extras: Collection[str]) -> str:
    """Return a line about the packages of some extras that are not installed.

    Parameters
    ----------
    extras : collection of str
        Names of ``PACKAGES``.

    Returns
    -------
    text : str
        Names each package, and one command that installs all; empty if none is missing.
    """
    missing = {
        name: extra
        for extra, names in PACKAGES.items()
        for name in names
        if extra in extras and find_spec(name) is None
    }
    if not missing:
        return ""
    return missing_text(", ".join(missing), ",".join(dict.fromkeys(missing.values())))
