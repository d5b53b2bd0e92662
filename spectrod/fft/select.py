"""The choice among the kernel families, for one transform on one device."""

import logging
from typing import Any

from spectrod.errors import ConfigError, DeviceError
from spectrod.fft import wisdom
from spectrod.fft.bluestein import BluesteinFamily
from spectrod.fft.local import LOCAL
from spectrod.fft.multipass import MULTIPASS
from spectrod.fft.realhalf import RealFamily
from spectrod.fft.simd import SIMD
from spectrod.fft.stage import Family, Params, Stage, TransformSpec
from spectrod.opencl.context import Context
from spectrod.opencl.devices import DeviceInfo

_CPU_FIRST = (SIMD.name,)

_log = logging.getLogger(__name__)


def make_stage(context: Context, spec: TransformSpec) -> Stage:
    """Compile the best known stage for a transform.

    A saved result of the tuner comes first; then, of the families that can do it, the first in
    the device's order of preference.

    Raises
    ------
    ConfigError
        If no family can do it: above half of ``LENGTH_MAX`` only smooth lengths are.
    DeviceError
        If the device lacks what is needed, double precision for one.
    KernelBuildError
        If a kernel does not compile.
    """
    if spec.precision == "double" and not context.device.has_fp64:
        raise DeviceError(
            f"{context.device.label} has no double precision: "
            "give it float32 or complex64, or choose another device"
        )
    tuned = _tuned(spec, context.device)
    if tuned is not None:
        try:
            return tuned[0].build(context, spec, tuned[1])
        except (ConfigError, DeviceError) as error:  # the file may be edited, or of a larger device
            _log.warning("the tuned parameters of n=%d are ignored: %s", spec.n, error)
    family, params = _untuned(spec, context.device)
    return family.build(context, spec, params)


# Each family takes its own parameters only, which the type Family does not express.
_FAMILIES: tuple[Any, ...] = (
    LOCAL,
    MULTIPASS,
    RealFamily(make_stage),
    BluesteinFamily(make_stage),
    SIMD,
)
FAMILIES: dict[str, Family] = {family.name: family for family in _FAMILIES}
"""By name, in the order of preference of GPUs."""


def families(device: DeviceInfo) -> dict[str, Family]:
    """All families by name, the one that a device prefers untuned first."""
    first = _CPU_FIRST if device.kind == "cpu" else ()
    return {name: FAMILIES[name] for name in dict.fromkeys([*first, *FAMILIES])}


def _tuned(spec: TransformSpec, device: DeviceInfo) -> tuple[Family, Params] | None:
    name, values = wisdom.lookup(device, spec) or ("", {})
    family = FAMILIES.get(name)
    if family is None:
        return None
    try:
        return family, family.load(values)
    except ConfigError as error:  # the file may be edited by hand
        _log.warning("the tuned parameters of n=%d are ignored: %s", spec.n, error)
        return None


def _untuned(spec: TransformSpec, device: DeviceInfo) -> tuple[Family, Params]:
    for family in families(device).values():
        if family.supports(spec, device):
            return family, family.choose(spec, device)
    raise ConfigError(f"n={spec.n}: too long for a length with a prime factor above 13")
