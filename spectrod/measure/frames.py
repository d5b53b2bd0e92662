"""Frames of samples for meters, computed by NumPy in float64."""

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spectrod.analysis.numpy_engine import NumpyEngine
from spectrod.analysis.stream import FrameStream
from spectrod.dsp.blocks import Block
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import Float32Array
from spectrod.measure.frame_spectra import Complex128Array, FrameTransform


class FrameSource(Protocol):
    """Computes the frames of a stream of samples."""

    @property
    def dtype(self) -> type[np.generic]:
        """Element type of the frames."""

    @property
    def is_continuous(self) -> bool:
        """Whether frames span the bounds of intervals, and count in the one in which they end."""

    def push(self, block: Block) -> Iterable[NDArray[Any]]:
        """Yield the frames that are complete, (frames, signals, bins)."""


class PowerFrames:
    """Densities of frames, rounded to float32 as the rows of engines are.

    Parameters
    ----------
    spec : SpectrumSpec
        Definition of the frames, without averaging.
    """

    dtype = np.float32
    is_continuous = False

    def __init__(self, spec: SpectrumSpec) -> None:
        self._stream = FrameStream(spec, NumpyEngine())

    def push(self, block: Block) -> Iterator[Float32Array]:
        """Yield the frames that are complete; see ``FrameSource``."""
        return (batch.values for batch in self._stream.push(block))


class ComplexFrames:
    """Complex spectra of frames in float64, not normalised.

    Parameters
    ----------
    spec : SpectrumSpec
        Definition of the frames.
    is_continuous : bool
        See ``FrameSource``.
    """

    dtype = np.complex128

    def __init__(self, spec: SpectrumSpec, *, is_continuous: bool = False) -> None:
        self.is_continuous = is_continuous
        self._spectra = FrameTransform(spec)

    def push(self, block: Block) -> Iterator[Complex128Array]:
        """Yield the frames that are complete; see ``FrameSource``."""
        if block.discontinuity:
            self._spectra.restart()
        return self._spectra.push(block.samples.astype(np.float64))
