"""SciPy's FFTs on an OpenCL device: ``scipy.fft.set_backend(spectrod.fft.scipy_backend)``.

A backend of SciPy's uarray protocol, for what this engine computes: transforms along one axis or
two, in single and double precision. The rest is left to the next backend, in the end SciPy's own:
other functions, more axes, long double, and arguments that break a rule, so that the error is
SciPy's; and all calls in a process that was forked off after a device was opened. A device that is
not there or that fails is an error.
"""

import os
from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any

import numpy as np

from spectrod.fft import api, plan2d
from spectrod.fft.runtime import DEVICES
from spectrod.lib.errors import ConfigError

__ua_domain__ = "numpy.scipy.fft"

_SINGLE: dict[str, Callable[..., Any]] = {
    "fft": api.fft,
    "ifft": api.ifft,
    "rfft": api.rfft,
    "irfft": api.irfft,
    "hfft": api.hfft,
    "ihfft": api.ihfft,
}
_DOUBLE: dict[str, Callable[..., Any]] = {
    "fft": plan2d.fft2,
    "ifft": plan2d.ifft2,
    "rfft": plan2d.rfft2,
    "irfft": plan2d.irfft2,
}


def __ua_function__(  # noqa: N807 - the protocol's name
    method: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """Compute what SciPy's function of that name would; NotImplemented if that is not ours."""
    name = method.__name__.rstrip("2n")
    if name not in _SINGLE or DEVICES.is_forked:
        return NotImplemented
    given = signature(method).bind(*args, **kwargs)
    given.apply_defaults()
    try:
        return _computed(name, **given.arguments)
    except ConfigError:
        return NotImplemented


def _computed(name: str, x: Any, norm: Any, workers: Any, plan: Any, **place: Any) -> Any:
    """Transform along one axis (n, axis) or several (s, axes).

    There are always as many workers as the device has, and nothing is gained by overwriting x.
    """
    if plan is not None or not _is_count(workers):
        return NotImplemented
    if "axis" in place:
        return _SINGLE[name](x, place["n"], place["axis"], norm)
    s, axes = _several(place["s"]), _several(place["axes"])
    if axes is None:
        axes = range(-(np.ndim(x) if s is None else len(s)), 0)
    if s is not None and len(s) != len(axes):
        return NotImplemented
    if len(axes) == 1:
        n = None if s is None or s[0] == -1 else s[0]
        return _SINGLE[name](x, n, axes[0], norm)
    return _DOUBLE[name](x, s, axes, norm) if len(axes) == 2 and name in _DOUBLE else NotImplemented


def _several(given: Any) -> Sequence[Any] | None:
    """Lengths or axes, for which SciPy takes a single number as well."""
    return given if given is None or np.ndim(given) else (given,)


def _is_count(workers: Any) -> bool:
    """Whether SciPy would take it for a number of workers."""
    cores = os.cpu_count() or 1
    return workers is None or (isinstance(workers, int) and workers != 0 and workers >= -cores)
