"""The choice among kernel families, of transforms as of spectra: what was tuned, else the first."""

import logging
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from spectrod.fft import wisdom
from spectrod.fft.stage import Family, Params, Spec, load_params
from spectrod.lib.errors import ConfigError, DeviceError
from spectrod.opencl.devices import DeviceInfo

S = TypeVar("S", bound=Spec)
F = TypeVar("F", bound=Family[Any])
T = TypeVar("T")

_log = logging.getLogger(__name__)


def untuned(family: Family[S], spec: S, device: DeviceInfo) -> Params:
    """Return the parameters that a family prefers without measurements.

    Raises
    ------
    DeviceError
        If the family does not compute this on the device.
    """
    params = _first(family, spec, device)
    if params is None:
        n, kind, _ = spec.key
        raise DeviceError(f"n={n}: no {family.name} kernel for {kind} on {device.label}")
    return params


def build_best(
    families: Callable[[], Iterable[F]],
    spec: Spec,
    device: DeviceInfo,
    build: Callable[[F, Params], T],
) -> T | None:
    """Build the saved winner of the tuner, else the first choice of the first family that has one.

    Parameters
    ----------
    families : callable
        Returns them in the order of preference.
    spec : Spec
        What is to be computed.
    device : DeviceInfo
        Where.
    build : callable
        Compiles a family's stage with its parameters.

    Returns
    -------
    stage : T or None
        None if no family computes this. Saved parameters that break a rule, which a file edited by
        hand may hold, are passed over with a warning; those that leave this spec no room on the
        device, without.
    """
    saved = wisdom.lookup(device, spec)
    family = next((f for f in families() if f.name == saved[0]), None) if saved else None
    if saved and family:
        try:
            return build(family, load_params(family.params_type, saved[1]))
        except ConfigError as error:
            _log.warning("the tuned parameters of n=%d are ignored: %s", spec.key[0], error)
        except DeviceError as error:
            _log.debug("the tuned parameters of n=%d do not fit: %s", spec.key[0], error)
    for family in families():
        params = _first(family, spec, device)
        if params is not None:
            return build(family, params)
    return None


def _first(family: Family[Any], spec: Any, device: DeviceInfo) -> Params | None:
    if not family.supports(spec, device):
        return None
    return next(iter(family.candidates(spec, device)), None)
