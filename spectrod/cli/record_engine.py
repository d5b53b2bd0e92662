"""The engine that ``spectrod record`` computes the spectra of a stored source with."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from spectrod.analysis.engine import Engine, open_engine
from spectrod.analysis.engine_pool import OpenEngine
from spectrod.analysis.numpy_engine import NumpyEngine, numpy_duration_s
from spectrod.bands import is_host_only
from spectrod.config import EngineConfig
from spectrod.errors import NotCompiledError
from spectrod.sample_layout import SampleLayout
from spectrod.types import SpectrumSpec

_OPEN_S = 0.3
"""Time that a device and its compiled kernels take to open [s]."""
_COMPILE_S = 4.0
"""Time that kernels take to compile at least [s]."""


@dataclass(frozen=True, slots=True)
class StoredEngine:
    """Choice of the engine that computes the whole of a stored source.

    With "auto" and no device named, NumPy computes what takes it no longer than to open a device.
    If it takes no longer than to compile kernels that are not in the cache, NumPy computes it too,
    and another process compiles the kernels for the next time. NumPy computes constant-Q
    transforms and reassignment, whatever is requested.

    Attributes
    ----------
    specs : sequence of SpectrumSpec
        What to compute.
    layout : SampleLayout
        Layout of the samples.
    n_samples : int, optional
        Number of samples per channel; None if unknown.
    old_engine : str
        Engine of the recording that is repeated, which is used again; "" for none.
    open_with : callable, optional
        Opens engines that are used for several sources; by default ``open_engine``.
    """

    specs: Sequence[SpectrumSpec]
    layout: SampleLayout
    n_samples: int | None
    old_engine: str = ""
    open_with: OpenEngine | None = None

    def open(self, requested: EngineConfig) -> Engine:
        """Open the engine.

        Raises
        ------
        ConfigError, DeviceError
            As ``open_engine``.
        """
        if all(is_host_only(spec.bands) for spec in self.specs):
            return NumpyEngine()
        kind, device = requested.engine, requested.device
        if kind != "auto" or device:
            return self._open(kind, device)
        n = math.inf if self.n_samples is None else self.n_samples
        numpy_s = sum(numpy_duration_s(spec, n) for spec in self.specs)
        if numpy_s <= _OPEN_S or (numpy_s <= _COMPILE_S and self.old_engine == NumpyEngine.name):
            return NumpyEngine()
        if numpy_s > _COMPILE_S or self.old_engine:
            return self._open("auto", "")
        return self._open_compiled()

    @property
    def _open(self) -> OpenEngine:
        return self.open_with or open_engine

    def _open_compiled(self) -> Engine:
        """Open the device if its kernels are in the cache, else NumPy while they are compiled."""
        # Imported here: short sources need none of it.
        from spectrod.analysis.warm_up import (  # noqa: PLC0415
            CompilerJob,
            is_compiled,
            leave_compiling,
        )

        try:
            opened = self.open_with("auto", "") if self.open_with else open_engine(compiles=False)
        except NotCompiledError:
            pass
        else:
            if opened.name == NumpyEngine.name or is_compiled(opened, self.specs, self.layout):
                return opened
            opened.close()
        leave_compiling(CompilerJob.of(self.specs, self.layout, is_alone=True))
        return NumpyEngine()
