"""Modules of a package as its attributes, loaded on first use."""

from collections.abc import Callable
from importlib import import_module
from types import ModuleType


def submodules_of(package: str) -> Callable[[str], ModuleType]:
    """Return the ``__getattr__`` of a package whose modules need no import of their own.

    Parameters
    ----------
    package : str
        Its full name.
    """

    def load(name: str) -> ModuleType:
        full = f"{package}.{name}"
        if not name.startswith("_"):
            try:
                return import_module(full)
            except ModuleNotFoundError as error:
                if error.name != full:
                    raise
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load
