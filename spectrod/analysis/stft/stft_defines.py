"""What the kernels of all families call the fields of a ``StftSpec``."""

from spectrod.analysis.stft.stft_stage import StftSpec
from spectrod.dsp.blocks import SampleFormat
from spectrod.dsp.spectrum_rules import Averaging
from spectrod.fft.defines import KernelDefines

_FORMATS: dict[SampleFormat, int] = {"int16": 16, "int24": 24, "int32": 32, "float32": 0}
_AVERAGINGS: dict[Averaging, int] = {"none": 0, "mean": 1, "max": 2, "min": 3, "exponential": 4}


def sample_defines(spec: StftSpec) -> KernelDefines:
    """Return what a kernel needs that loads single samples."""
    return KernelDefines(
        format=_FORMATS[spec.sample_format], aligned=False, iq=spec.iq, placed=spec.placed
    )


def product_defines(spec: StftSpec) -> KernelDefines:
    """Return what a kernel needs that makes results of spectra."""
    return KernelDefines(
        iq=spec.iq,
        weighted=spec.weighted,
        averaging=_AVERAGINGS[spec.averaging],
        decibels=spec.decibels,
    )


def stft_defines(spec: StftSpec) -> KernelDefines:
    """Return what a kernel needs that makes results of samples."""
    return (
        sample_defines(spec)
        | product_defines(spec)
        | KernelDefines(
            win_length=spec.win_length,
            interleaved=spec.interleaved,
            complex_out=spec.output == "complex",
            n_bands=spec.n_bands,
        )
    )
