"""Tools that know no sound: errors, texts, durations, threads, queues, files, processes.

It imports nothing of spectrod.
"""

from typing import TYPE_CHECKING

if not TYPE_CHECKING:
    from spectrod.lib.submodules import submodules_of

    __getattr__ = submodules_of(__name__)
