"""Long-term views: the levels of a long recording, and how often they occur."""

from typing import TYPE_CHECKING

if not TYPE_CHECKING:
    from spectrod.lib.submodules import submodules_of

    __getattr__ = submodules_of(__name__)
