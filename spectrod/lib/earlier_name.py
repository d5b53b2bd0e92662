"""Names of methods that have changed: the earlier one stays valid for a release, and warns."""

import warnings
from collections.abc import Callable
from typing import Any


def earlier_name(old: str, new: str) -> Callable[..., Any]:
    """Return a method that warns, and calls the one that it is now.

    Parameters
    ----------
    old, new : str
        Names of the method: the documented one of the release before, and that of now.
    """

    def call(self: object, *args: object, **keywords: object) -> Any:
        owner = type(self).__name__
        warnings.warn(f"{owner}.{old} is {owner}.{new} now", DeprecationWarning, stacklevel=2)
        return getattr(self, new)(*args, **keywords)

    call.__name__, call.__doc__ = old, f"Call ``{new}``: its earlier name."
    return call
