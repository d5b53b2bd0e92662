"""Packages that a format needs and an installation may lack."""

from importlib import import_module
from typing import Any

from spectrod.errors import UnavailableError


def need(package: str, extra: str) -> Any:
    """Import a package that an extra of ours brings.

    Raises
    ------
    UnavailableError
        If it is not installed, with what to install.
    """
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise UnavailableError(
            f"{package} is not installed: needs: pip install 'spectrod[{extra}]'"
        ) from None
