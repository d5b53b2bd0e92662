"""spectrod: a streaming audio spectrum analyzer daemon.

Importing this package is fast and opens no device; the names below load their modules on first
use. ``docs/house.md`` is the plan of its rooms.
"""

import sys
import warnings
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from spectrod import client, fft
    from spectrod.analysis.spectrogram import Spectrogram, spectrogram
    from spectrod.analysis.streaming_stft import Stft

__all__ = ["Spectrogram", "Stft", "__version__", "client", "fft", "spectrogram"]

__version__ = "0.1.0"

_HOMES = {
    "Spectrogram": "spectrod.analysis.spectrogram",
    "Stft": "spectrod.analysis.streaming_stft",
    "spectrogram": "spectrod.analysis.spectrogram",
}

_MOVED = {
    "errors": "lib.errors",
    "features": "measure.features",
    "levels": "measure.levels",
    "meters": "",
    "meters.features": "measure.features.feature_meter",
    "meters.tones": "measure.tones.tone_meter",
    "meters.transfer": "measure.transfer.transfer_meter",
    "tones": "measure.tones",
    "tones.tracker": "measure.tones.tone_tracker",
    "triggers": "measure.triggers",
    "triggers.config": "measure.triggers.trigger_config",
    "two_channel": "measure.transfer",
    "two_channel.transfer": "measure.transfer.cross_spectra",
}
"""Documented modules that had another name in 0.1.0, which stays valid for a release.

Empty: a package of which only modules are left.
"""


class _Moved:
    """Imports a module by the name that it had, and warns: both names are the same module."""

    def find_spec(self, name: str, *_args: object) -> ModuleSpec | None:
        old = name.removeprefix(f"{__name__}.")
        package, _, module = old.partition(".")
        if old == name or package not in _MOVED:
            return None
        new = _MOVED[old] if old in _MOVED else f"{_MOVED[package]}.{module}"
        # Cast, since the protocol of loaders still has a method that no importer calls any more.
        return ModuleSpec(name, cast("Any", self), loader_state=new, is_package=not new)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        if not spec.loader_state:
            return None
        module = import_module(f"{__name__}.{spec.loader_state}")
        warnings.warn(f"{spec.name} is {module.__name__} now", DeprecationWarning, stacklevel=2)
        # The import system replaces the module's own specification by this one.
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None and module.__spec__.loader_state:
            module.__spec__ = module.__spec__.loader_state


# First, or the paths of a package that has moved would find its modules a second time.
sys.meta_path.insert(0, _Moved())


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        found = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return found
    # As ``submodules_of`` does, which small processes and the client's package do not have.
    module = f"{__name__}.{name}"
    if not name.startswith("_"):
        try:
            return import_module(module)
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
