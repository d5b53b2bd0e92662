"""The engine that ``spectrod record`` computes the spectra of a stored source with."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from spectrod.analysis.engine import Engine, EngineKind, open_engine
from spectrod.analysis.engine_pool import KeptEngines
from spectrod.analysis.numpy_engine import NumpyEngine, numpy_duration_s
from spectrod.analysis.stft.stft_stage import StftSpec
from spectrod.analysis.stft.stft_tables import kernel_spec
from spectrod.config.config import EngineConfig
from spectrod.dsp.bands import is_host_only
from spectrod.dsp.sample_layout import SampleLayout
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.errors import NotCompiledError

_OPEN_S = 0.3
"""Time that a device and its compiled kernels take to open [s]."""
_COMPILE_S = 4.0
"""Time that kernels take to compile at least [s]."""
_OPEN_MANY_S = 2.0
"""The same where several processes open it at a time, and each needs memory for it [s]."""
_LAUNCH_S = 10e-3
"""Time that a device takes for a source, however short it is [s]."""


@dataclass(frozen=True, slots=True)
class StoredEngine:
    """Choice of the engine that computes the whole of a stored source.

    With "auto" and no device named, NumPy computes what takes it no longer than to open a device.
    If it takes no longer than to compile kernels that are not in the cache, NumPy computes it too,
    and another process compiles the kernels for the next time. NumPy computes constant-Q
    transforms and reassignment, whatever is requested.

    A process that records many sources opens a device once, so it counts the time of all, as if
    each were as long as this one. Then it uses the same engine for all that need the same kernels.

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
    kept : KeptEngines, optional
        Engines that are used for several sources, whose spectra count together; by default the
        source has its own engine.
    """

    specs: Sequence[SpectrumSpec]
    layout: SampleLayout
    n_samples: int | None
    old_engine: str = ""
    kept: KeptEngines | None = None

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
        if numpy_s > _COMPILE_S:
            return self._open("auto", "")
        if self.old_engine == NumpyEngine.name or not self._is_worth_opening(numpy_s):
            return NumpyEngine()
        if self.old_engine:
            return self._open("auto", "")
        return self._open_compiled()

    def _is_worth_opening(self, numpy_s: float) -> bool:
        """Return whether NumPy takes longer than a device, for all its sources together."""
        if numpy_s > _OPEN_S or self.kept is None:
            return numpy_s > _OPEN_S
        return numpy_s > _LAUNCH_S and numpy_s * self.kept.n_sources > _OPEN_MANY_S

    def _open(self, kind: EngineKind, device: str, *, compiles: bool = True) -> Engine:
        opens = self.kept.open if self.kept else open_engine
        return opens(kind, device, compiles=compiles)

    def _open_compiled(self) -> Engine:
        """Open the device if its kernels are in the cache, else NumPy while they are compiled."""
        if self.kept is None:
            return self._find_compiled() or NumpyEngine()
        # Sources with the same kernels get the same engine, although these may come meanwhile.
        kernels = self._kernels()
        found = self._find_compiled() if kernels not in self.kept.uses_device else None
        if self.kept.uses_device.setdefault(kernels, found is not None):
            return found or self._open("auto", "")
        return NumpyEngine()

    def _kernels(self) -> tuple[StftSpec, ...]:
        layout = self.layout
        return tuple(
            kernel_spec(spec, layout.sample_format, interleaved=layout.interleaved)[0]
            for spec in self.specs
            if not is_host_only(spec.bands)
        )

    def _find_compiled(self) -> Engine | None:
        """Open the device if its kernels are in the cache, else start to compile them."""
        # Imported here: short sources need none of it.
        from spectrod.analysis.warm_up import (  # noqa: PLC0415
            CompilerJob,
            is_compiled,
            leave_compiling,
        )

        try:
            opened = self._open("auto", "", compiles=False)
        except NotCompiledError:
            pass
        else:
            if opened.name == NumpyEngine.name or is_compiled(opened, self.specs, self.layout):
                return opened
            opened.close()
        leave_compiling(CompilerJob.of(self.specs, self.layout, is_alone=True))
        return None
