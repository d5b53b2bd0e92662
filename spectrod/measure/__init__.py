"""Values of intervals from samples or rows: levels, tones, features, transfer, triggers.

``kinds`` is the table of them. The room knows ``dsp`` and the frames of ``analysis``; no files,
sources or messages, and of the configuration its own settings alone.
"""

from typing import TYPE_CHECKING

if not TYPE_CHECKING:
    from spectrod.lib.submodules import submodules_of

    __getattr__ = submodules_of(__name__)
