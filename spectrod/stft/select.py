"""The choice among the families that compute spectra."""

from collections.abc import Sequence

from spectrod.opencl.context import Context
from spectrod.opencl.devices import DeviceInfo
from spectrod.stft.general import GENERAL
from spectrod.stft.local import LOCAL
from spectrod.stft.simd import SIMD
from spectrod.stft.stage import StftFamily, StftSpec, StftStage, StftTables

FAMILIES: Sequence[StftFamily] = (SIMD, LOCAL, GENERAL)
"""The one that suits best first. The last computes everything."""


def families(spec: StftSpec, device: DeviceInfo) -> list[StftFamily]:
    """Those that compute this on this device, the best first."""
    return [family for family in FAMILIES if family.supports(spec, device)]


def make_stft_stage(context: Context, spec: StftSpec, tables: StftTables) -> StftStage:
    """Compile the best stage there is.

    Raises
    ------
    DeviceError
        If the device has not got the memory.
    KernelBuildError
        If its kernel does not compile.
    """
    return families(spec, context.device)[0].build(context, spec, tables)
