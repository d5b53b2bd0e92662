"""Import of optional packages, which extras of spectrod install."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from spectrod.lib.errors import UnavailableError


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
