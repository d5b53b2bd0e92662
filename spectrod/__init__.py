"""spectrod: a streaming audio spectrum analyzer daemon.

Importing this package is fast and opens no device; the names below load their modules on first
use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
