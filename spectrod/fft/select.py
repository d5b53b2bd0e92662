"""The choice among the kernel families, for one transform on one device."""

from spectrod.fft.bluestein import BluesteinFamily
from spectrod.fft.choice import build_best
from spectrod.fft.local import LOCAL
from spectrod.fft.multipass import MULTIPASS
from spectrod.fft.realhalf import RealFamily
from spectrod.fft.simd import SIMD
from spectrod.fft.stage import Stage, TransformFamily, TransformSpec
from spectrod.lib.errors import ConfigError, DeviceError
from spectrod.opencl.context import Context
from spectrod.opencl.devices import DeviceInfo

_CPU_FIRST = (SIMD.name,)


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
    check_precision(context.device, spec)
    stage: Stage | None = build_best(
        lambda: families(context.device).values(),
        spec,
        context.device,
        lambda family, params: family.build(context, spec, params),
    )
    if stage is None:
        raise ConfigError(f"n={spec.n}: too long for a length with a prime factor above 13")
    return stage


def check_precision(device: DeviceInfo, spec: TransformSpec) -> None:
    """Raise DeviceError if a device has no double precision and the transform is in it."""
    if spec.precision == "double" and not device.has_fp64:
        raise DeviceError(
            f"{device.label} has no double precision: "
            "give it float32 or complex64, or choose another device"
        )


_FAMILIES: tuple[TransformFamily, ...] = (
    LOCAL,
    MULTIPASS,
    RealFamily(make_stage),
    BluesteinFamily(make_stage),
    SIMD,
)
FAMILIES: dict[str, TransformFamily] = {family.name: family for family in _FAMILIES}
"""By name, in the order of preference of GPUs."""


def families(device: DeviceInfo) -> dict[str, TransformFamily]:
    """All families by name, the one that a device prefers untuned first."""
    first = _CPU_FIRST if device.kind == "cpu" else ()
    return {name: FAMILIES[name] for name in dict.fromkeys([*first, *FAMILIES])}
