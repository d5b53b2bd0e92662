"""The choice among the families that compute spectra."""

from collections.abc import Iterator
from typing import Any, Protocol

from spectrod.analysis.stft.stft_stage import StftSpec, StftStage, StftTables
from spectrod.fft.choice import build_best
from spectrod.fft.stage import Family
from spectrod.opencl.context import Context
from spectrod.opencl.devices import DeviceInfo


class StftFamily(Family[StftSpec], Protocol):
    """A way of computing spectra."""

    def build(self, context: Context, spec: StftSpec, tables: StftTables, params: Any) -> StftStage:
        """Compile.

        Raises
        ------
        ConfigError
            If the parameters are not of this spec.
        DeviceError
            If the device cannot run them, or has no memory for the tables.
        KernelBuildError
            If a kernel does not compile.
        """
        ...


def all_families() -> Iterator[StftFamily]:
    """Yield every family, the one that suits best first; the last computes everything.

    Each is imported when those before it did not do: together they cost a short command more time
    than its spectra.
    """
    from spectrod.analysis.stft.stft_simd import SIMD  # noqa: PLC0415

    yield SIMD
    from spectrod.analysis.stft.stft_local import LOCAL  # noqa: PLC0415

    yield LOCAL
    from spectrod.analysis.stft.stft_multipass import MULTIPASS_STFT  # noqa: PLC0415

    yield MULTIPASS_STFT
    from spectrod.analysis.stft.stft_general import GENERAL  # noqa: PLC0415

    yield GENERAL


def families(spec: StftSpec, device: DeviceInfo) -> Iterator[StftFamily]:
    """Yield those that compute this on this device, the best first."""
    return (family for family in all_families() if family.supports(spec, device))


def make_stft_stage(context: Context, spec: StftSpec, tables: StftTables) -> StftStage:
    """Compile the best known stage: a saved result of the tuner comes first.

    Raises
    ------
    DeviceError
        If the device has not got the memory.
    KernelBuildError
        If its kernel does not compile.
    """
    stage: StftStage | None = build_best(
        all_families,
        spec,
        context.device,
        lambda family, params: family.build(context, spec, tables, params),
    )
    assert stage is not None  # the last family computes everything
    return stage
