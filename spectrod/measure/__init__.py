"""Values of intervals from samples or rows: levels, tones, features, transfer, triggers.

It knows ``dsp`` and the frames of ``analysis``; no files, settings, sources or messages.
"""

from typing import TYPE_CHECKING

if not TYPE_CHECKING:
    from spectrod.lib.submodules import submodules_of

    __getattr__ = submodules_of(__name__)
