"""Few, short launches of every kernel, for a simulator that detects races.

Usage: checked_kernels.py NAME, one of ``CASES``. Fails where the result is wrong.
"""

import math
import sys
from dataclasses import replace
from functools import partial

import numpy as np

from spectrod.analysis.stft import stft_general
from spectrod.analysis.stft.stft_general import GENERAL, GeneralParams
from spectrod.analysis.stft.stft_local import LOCAL as LOCAL_STFT
from spectrod.analysis.stft.stft_local import StftLocalShape
from spectrod.analysis.stft.stft_multipass import MULTIPASS_STFT
from spectrod.analysis.stft.stft_reference import ReferenceStft
from spectrod.analysis.stft.stft_stage import (
    Average,
    BandRows,
    Samples,
    StftLaunch,
    StftSpec,
    StftTables,
)
from spectrod.apps.bench.inplace import INPLACE
from spectrod.apps.bench.naive_transpose import NaiveTranspose
from spectrod.apps.bench.radix2 import RADIX2
from spectrod.apps.image.filtering import PlaneSpectra
from spectrod.apps.image.radial import RadialFilter, Radius
from spectrod.fft.arena import Arena
from spectrod.fft.bluestein import BluesteinFamily
from spectrod.fft.choice import untuned
from spectrod.fft.local import LOCAL, LocalShape
from spectrod.fft.multipass import MULTIPASS, MultipassParams
from spectrod.fft.reference import error_limit
from spectrod.fft.select import FAMILIES
from spectrod.fft.simd import SIMD
from spectrod.fft.stage import Lines, TransformSpec
from spectrod.fft.transpose import DeviceTranspose
from spectrod.opencl import binaries, program
from spectrod.opencl.context import Context
from spectrod.opencl.devices import list_devices
from spectrod.opencl.notice import NOTICE

LINES = 5
C2C, R2C, C2R = (TransformSpec(60, kind, kind == "c2r") for kind in ("c2c", "r2c", "c2r"))
WALK = StftLocalShape(
    LocalShape((4, 4), 2, 2, local_pad=4, mirrored=True), held=True, ahead=True, buffers=2, run=2
)
COLUMNS = LocalShape((4, 4), 4, 4, split_exchange=True, lines_first=True)
PAIRS = MultipassParams((COLUMNS, LocalShape((2, 4), 2, 4, local_pad=2, lines_last=True)))
PAIRS_BACK = MultipassParams((COLUMNS, LocalShape((4, 2), 2, 4, local_pad=4, lines_last=True)))
SECTIONS = LocalShape((4, 8, 4), 16, 3, split_exchange=True, local_pad=8, sections=2)


def replace_passes(params):
    """Transform pairs of bins through local memory."""
    return replace(params, passes=replace(params.passes, mirrored=False))


def two_passes(context, spec):
    """Make stages through scratch memory and back, for stages that consist of others."""
    family = FAMILIES["multipass"]
    return family.build(context, spec, untuned(family, spec, context.device))


def transform(family, spec, params, context):
    """Transform lines, if needed as on a CPU, which the simulator does not report."""
    params = params or untuned(family, spec, replace(context.device, kind="cpu"))
    arena = Arena(context, spec.precision, LINES * spec.n, spec.n)
    error = arena.error(family.build(context, spec, params))
    assert error <= error_limit(spec), error


def transpose(options, context):
    """Transpose matrices that no tile divides."""
    check_transpose(DeviceTranspose(context, 8, **options), context)


def naive_transpose(context):
    """Transpose without tiles."""
    check_transpose(NaiveTranspose(context), context)


def check_transpose(transposing, context):
    """Compare a transpose of matrices that no tile divides with NumPy's."""
    values = np.arange(2 * 37 * 21, dtype=np.complex64).reshape(2, 37, 21)
    out = context.table(np.zeros_like(values))
    lines = Lines(out, 37 * 21), Lines(context.table(values), 37 * 21)
    transposing.launch(*lines, 2, 37, 21)
    found = np.empty((2, 21, 37), np.complex64)
    context.download(found, out)
    np.testing.assert_array_equal(found, values.transpose(0, 2, 1))


def stft(family, spec, params, context):
    """Transform overlapping frames to rows, and averages across launches."""
    rng = np.random.default_rng(1)
    count = np.array([3, spec.n_bins - 10])
    bands = BandRows(np.array([0, 9]), count, rng.uniform(size=count.sum()))
    tables = StftTables(np.hanning(spec.win_length), bands=bands, smoothing=0.5)
    params = params or untuned(family, spec, context.device)
    stage = family.build(context, spec, tables, params)
    samples = rng.standard_normal((2 * spec.parts, 640)).astype(np.float32)
    buffer, state = context.table(samples), context.allocate(8 * max(1, spec.state_values))
    scratch_bytes = stage.scratch_bytes(5, 2)
    scratch = context.allocate(scratch_bytes) if scratch_bytes else None
    reference, average, found = ReferenceStft(spec, tables), None, []
    for launch in range(2):
        if spec.averaging != "none":
            average = Average(state, 3, 5 * launch % 3, primed=launch > 0)
        rows = np.empty((average.rows(5) if average else 5, 2, spec.n_values), np.float32)
        out, place = context.table(rows), Samples(buffer, 640, 200 * launch)
        stage.launch(out, StftLaunch(place, 40, 5, 2, average), scratch)
        context.download(rows, out)
        found.append(rows)
    expected = reference.rows(samples, 0, 40, 10, reference.average(3))
    found = np.concatenate(found)
    assert np.linalg.norm(found - expected) <= 3e-7 * np.linalg.norm(expected)


def bands_of_many(context):
    """Sum bands as GPUs do, whatever device the simulator reports."""
    stft_general._band_items = lambda *_: 16
    stft(GENERAL, StftSpec(20, 20, n_bands=2, averaging="mean"), GeneralParams(1 << 14), context)


def picture(context):
    """Filter a picture with no effect, and draw its spectrum."""
    plane = np.random.default_rng(2).random((1, 12, 10), np.float32)
    spectra = PlaneSpectra(context, (12, 10), "single")
    found = spectra.filtered(plane, RadialFilter(outer=Radius(100.0)), 12)
    np.testing.assert_allclose(found, plane, atol=1e-6)
    expected = np.log1p(abs(np.fft.fftshift(np.fft.fft2(plane), axes=(1, 2))))
    np.testing.assert_allclose(spectra.drawn(plane), expected, atol=1e-5)


CASES = {
    "local": partial(transform, LOCAL, C2C, None),
    "local-passes": partial(transform, LOCAL, TransformSpec(64), LocalShape((4, 4, 4), 16, 3)),
    "local-sections": partial(transform, LOCAL, TransformSpec(128), SECTIONS),
    "local-r2c": partial(transform, LOCAL, R2C, None),
    "local-c2r": partial(transform, LOCAL, C2R, None),
    "multipass": partial(transform, FAMILIES["multipass"], TransformSpec(256), None),
    "multipass-r2c": partial(transform, MULTIPASS, TransformSpec(256, "r2c"), PAIRS),
    "multipass-c2r": partial(
        transform, MULTIPASS, TransformSpec(256, "c2r", inverse=True), PAIRS_BACK
    ),
    "real": partial(transform, FAMILIES["real"], R2C, None),
    "bluestein": partial(transform, BluesteinFamily(two_passes), TransformSpec(17), None),
    "simd": partial(transform, SIMD, TransformSpec(64), None),
    "simd-r2c": partial(transform, SIMD, TransformSpec(64, "r2c"), None),
    "radix2": partial(transform, RADIX2, TransformSpec(64), None),
    "inplace": partial(transform, INPLACE, C2C, None),
    "transpose": partial(transpose, {"in_registers": False}),
    "transpose-registers": partial(transpose, {"in_registers": True}),
    "transpose-naive": naive_transpose,
    "stft-general": partial(stft, GENERAL, StftSpec(20, 18), GeneralParams(2000)),
    "stft-endless": partial(stft, GENERAL, StftSpec(20, 18, averaging="exponential"), None),
    "stft-bands": bands_of_many,
    "stft-multipass": partial(stft, MULTIPASS_STFT, StftSpec(256, 250), PAIRS),
    "stft-local": partial(stft, LOCAL_STFT, StftSpec(32, 32), WALK),
    "stft-local-bands": partial(
        stft, LOCAL_STFT, StftSpec(32, 30, n_bands=2, averaging="exponential"), WALK
    ),
    "stft-local-whole": partial(
        stft, LOCAL_STFT, StftSpec(32, 30, averaging="mean"), replace_passes(WALK)
    ),
    "image": picture,
}

if __name__ == "__main__":
    NOTICE.after_s = math.inf  # on a slow machine it would count as a report of the simulator
    # Its LLVM does not know what becomes of these promises where a function is put in place.
    program.BUILD_OPTIONS = binaries.BUILD_OPTIONS = (*program.BUILD_OPTIONS, "-Drestrict=")
    (device,) = (device for device in list_devices() if device.platform == "Oclgrind")
    CASES[sys.argv[1]](Context(device))
