"""Launches of every FFT kernel, few and short: what is run under a simulator that looks for races.

Usage: checked_kernels.py NAME, one of ``CASES``. Fails where the result is wrong.
"""

import sys
from dataclasses import replace
from functools import partial

import numpy as np

from spectrod.analysis.numpy_engine import NumpyPowerPlan
from spectrod.fft.arena import Arena
from spectrod.fft.bluestein import BluesteinFamily
from spectrod.fft.inplace import INPLACE
from spectrod.fft.local import LOCAL, LocalParams
from spectrod.fft.radix2 import RADIX2
from spectrod.fft.reference import error_limit
from spectrod.fft.select import FAMILIES
from spectrod.fft.simd import SIMD
from spectrod.fft.stage import Lines, TransformSpec
from spectrod.fft.stft_plan import StftPowerPlan
from spectrod.fft.transpose import DeviceTranspose
from spectrod.image.filtering import PlaneSpectra
from spectrod.image.radial import RadialFilter, Radius
from spectrod.opencl import program
from spectrod.opencl.context import Context
from spectrod.opencl.devices import list_devices
from spectrod.types import SpectrumSpec

LINES = 5
C2C, R2C, C2R = (TransformSpec(60, kind, kind == "c2r") for kind in ("c2c", "r2c", "c2r"))
SECTIONS = LocalParams((4, 8, 4), 16, 3, split_exchange=True, local_pad=8, sections=2)


def two_passes(context, spec):
    """Make stages that go through scratch memory and back, for what is made of other stages."""
    family = FAMILIES["multipass"]
    return family.build(context, spec, family.choose(spec, context.device))


def transform(family, spec, params, context):
    """Transform lines; as a CPU if need be, which the simulator does not say it is."""
    params = params or family.choose(spec, replace(context.device, kind="cpu"))
    arena = Arena(context, spec.precision, LINES * spec.n, spec.n)
    error = arena.error(family.build(context, spec, params))
    assert error <= error_limit(spec), error


def transpose(options, context):
    """Transpose matrices that no tile divides."""
    values = np.arange(2 * 37 * 21, dtype=np.complex64).reshape(2, 37, 21)
    out = context.table(np.zeros_like(values))
    lines = Lines(out, 37 * 21), Lines(context.table(values), 37 * 21)
    DeviceTranspose(context, 8, **options).launch(*lines, 2, 37, 21)
    found = np.empty((2, 21, 37), np.complex64)
    context.download(found, out)
    np.testing.assert_array_equal(found, values.transpose(0, 2, 1))


def power(context):
    """Take the power spectra of overlapping frames."""
    spec = SpectrumSpec(48e3, 2, "hann", 100, 40, 128)
    samples = np.random.default_rng(1).standard_normal((2, 400)).astype(np.float32)
    found = StftPowerPlan(context, spec, 3).execute(samples, 3)
    expected = NumpyPowerPlan(spec, 3).execute(samples, 3)
    assert np.linalg.norm(found - expected) <= 3e-7 * np.linalg.norm(expected)


def picture(context):
    """Let all of a picture pass, and draw its spectrum."""
    plane = np.random.default_rng(2).random((1, 12, 10), np.float32)
    spectra = PlaneSpectra(context, (12, 10), "single")
    found = spectra.filtered(plane, RadialFilter(outer=Radius(100.0)), 12)
    np.testing.assert_allclose(found, plane, atol=1e-6)
    expected = np.log1p(abs(np.fft.fftshift(np.fft.fft2(plane), axes=(1, 2))))
    np.testing.assert_allclose(spectra.drawn(plane), expected, atol=1e-5)


CASES = {
    "local": partial(transform, LOCAL, C2C, None),
    "local-passes": partial(transform, LOCAL, TransformSpec(64), LocalParams((4, 4, 4), 16, 3)),
    "local-sections": partial(transform, LOCAL, TransformSpec(128), SECTIONS),
    "local-r2c": partial(transform, LOCAL, R2C, None),
    "local-c2r": partial(transform, LOCAL, C2R, None),
    "multipass": partial(transform, FAMILIES["multipass"], TransformSpec(256), None),
    "real": partial(transform, FAMILIES["real"], R2C, None),
    "bluestein": partial(transform, BluesteinFamily(two_passes), TransformSpec(17), None),
    "simd": partial(transform, SIMD, TransformSpec(64), None),
    "simd-r2c": partial(transform, SIMD, TransformSpec(64, "r2c"), None),
    "radix2": partial(transform, RADIX2, TransformSpec(64), None),
    "inplace": partial(transform, INPLACE, C2C, None),
    "transpose": partial(transpose, {"in_registers": False}),
    "transpose-registers": partial(transpose, {"in_registers": True}),
    "transpose-naive": partial(transpose, {"tiled": False}),
    "stft": power,
    "image": picture,
}

if __name__ == "__main__":
    # Its LLVM does not know what becomes of these promises where a function is put in place.
    program.BUILD_OPTIONS = (*program.BUILD_OPTIONS, "-Drestrict=")
    (device,) = (device for device in list_devices() if device.platform == "Oclgrind")
    CASES[sys.argv[1]](Context(device))
