"""Triggers: events in rows of spectra, by level, noise floor, mask or tone. Pure."""

from typing import TYPE_CHECKING

if not TYPE_CHECKING:
    from spectrod.lib.submodules import submodules_of

    __getattr__ = submodules_of(__name__)
