"""Files: pictures, segments, pyramids, exports, sound, values, datasets, their common parts.

It knows ``dsp`` and ``measure``; a writer is given rows or samples and opens no source.
"""

from typing import TYPE_CHECKING

if not TYPE_CHECKING:
    from spectrod.lib.submodules import submodules_of

    __getattr__ = submodules_of(__name__)
