"""File formats of recordings: pictures, segments, exports, sound, and their common parts."""

from typing import TYPE_CHECKING

if not TYPE_CHECKING:
    from spectrod.submodules import submodules_of

    __getattr__ = submodules_of(__name__)
