"""Fourier transforms on OpenCL devices: NumPy's functions, plans, and SciPy's backend.

Importing this package is cheap and opens no device; the names below load what they need when they
are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from spectrod.lib.submodules import submodules_of

if TYPE_CHECKING:
    from numpy.fft import fftfreq, fftshift, ifftshift, rfftfreq

    from spectrod.fft import backend as scipy_backend
    from spectrod.fft.api import fft, hfft, ifft, ihfft, irfft, plan, rfft
    from spectrod.fft.lengths import next_fast_len
    from spectrod.fft.plan2d import fft2, ifft2, irfft2, rfft2
    from spectrod.fft.runtime import use_device

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "next_fast_len",
    "plan",
    "rfft",
    "rfft2",
    "rfftfreq",
    "scipy_backend",
    "use_device",
]

_HOMES = {
    "spectrod.fft.api": ("fft", "hfft", "ifft", "ihfft", "irfft", "plan", "rfft"),
    "spectrod.fft.lengths": ("next_fast_len",),
    "spectrod.fft.plan2d": ("fft2", "ifft2", "irfft2", "rfft2"),
    "spectrod.fft.runtime": ("use_device",),
    "numpy.fft": ("fftfreq", "fftshift", "ifftshift", "rfftfreq"),
}


def __getattr__(name: str) -> Any:
    if name == "scipy_backend":
        return import_module("spectrod.fft.backend")
    for home, names in _HOMES.items():
        if name in names:
            found = globals()[name] = getattr(import_module(home), name)
            return found
    return submodules_of(__name__)(name)


def __dir__() -> list[str]:
    return __all__
