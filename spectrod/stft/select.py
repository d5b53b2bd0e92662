"""The choice among the families that compute spectra."""

from collections.abc import Iterator

from spectrod.opencl.context import Context
from spectrod.opencl.devices import DeviceInfo
from spectrod.stft.stage import StftFamily, StftSpec, StftStage, StftTables


def all_families() -> Iterator[StftFamily]:
    """Yield every family, the one that suits best first; the last computes everything.

    Each is imported when those before it did not do: together they cost a short command more time
    than its spectra.
    """
    from spectrod.stft.simd import SIMD  # noqa: PLC0415

    yield SIMD
    from spectrod.stft.local import LOCAL  # noqa: PLC0415

    yield LOCAL
    from spectrod.stft.general import GENERAL  # noqa: PLC0415

    yield GENERAL


def families(spec: StftSpec, device: DeviceInfo) -> Iterator[StftFamily]:
    """Yield those that compute this on this device, the best first."""
    return (family for family in all_families() if family.supports(spec, device))


def make_stft_stage(context: Context, spec: StftSpec, tables: StftTables) -> StftStage:
    """Compile the best stage there is.

    Raises
    ------
    DeviceError
        If the device has not got the memory.
    KernelBuildError
        If its kernel does not compile.
    """
    return next(families(spec, context.device)).build(context, spec, tables)
