"""The macros that the host defines for the FFT and STFT kernels."""

import re
from dataclasses import fields
from types import SimpleNamespace

import numpy as np
import pytest

from spectrod.analysis.stft.stft_general import GENERAL
from spectrod.analysis.stft.stft_local import LOCAL as STFT_LOCAL
from spectrod.analysis.stft.stft_multipass import MULTIPASS_STFT
from spectrod.analysis.stft.stft_simd import SIMD as STFT_SIMD
from spectrod.analysis.stft.stft_stage import BandRows, StftSpec, StftTables
from spectrod.fft.defines import KernelDefines
from spectrod.fft.linekernels import move_kernel
from spectrod.fft.local import LOCAL
from spectrod.fft.multipass import MULTIPASS
from spectrod.fft.simd import SIMD
from spectrod.fft.stage import TransformSpec
from spectrod.opencl.devices import DeviceInfo
from spectrod.opencl.source import program_source

RADICES = {"N_PASSES", "RADIX_LAST", *(f"RADIX_{i}" for i in range(1, 7))}
NAMES = {field.name.upper() for field in fields(KernelDefines)} - {"RADICES"} | RADICES
# Macros with a default in common.clh.
OPTIONAL = {"DOUBLE", "LANES"}
BANDS = BandRows(np.array([0, 3]), np.array([3, 30]), np.ones(33))


class Compiler:
    """A context that records the requested programs and compiles none."""

    def __init__(self, kind):
        self.device = DeviceInfo(
            "P",
            "D",
            (0, 0),
            kind,
            "1",
            8,
            1024,
            1 << 16,
            1 << 33,
            1 << 31,
            has_fp64=True,
            handle=None,
        )
        self.programs = []

    def kernel(self, file, _, defines):
        self.programs.append((file, defines))
        return SimpleNamespace(set_arg=lambda *_: None)

    def table(self, values):
        return values


def programs_of(kind, build):
    compiler = Compiler(kind)
    build(compiler)
    assert compiler.programs
    return compiler.programs


def first(family, spec, *tables):
    """Build a family's first choice."""

    def build(compiler):
        params = next(iter(family.candidates(spec, compiler.device)))
        family.build(compiler, spec, *tables, params)

    return build


def stft(family, **settings):
    spec = StftSpec(1024, 1000, **settings)
    weights = np.ones(spec.n_bins) if spec.weighted else None
    return first(family, spec, StftTables(np.ones(1000), weights, BANDS if spec.n_bands else None))


def mentioned(file):
    """Find the macros that a program's files read and do not define themselves."""
    text = re.sub(r"//.*", "", program_source(file, ()))
    own = set(re.findall(r"#define (\w+)", text))
    return set(re.findall(r"\b[A-Z][A-Z_0-9]*\b", text)) & NAMES - own


def test_defines_are_the_fields_in_their_order():
    """A field is a define in capitals, a flag is 0 or 1, and radices are one line each."""
    defines = KernelDefines(n=32, columns=False, radices=(4, 8), mirrored=True)
    radices = [("N_PASSES", 2), ("RADIX_1", 4), ("RADIX_2", 8)]
    ones = [(f"RADIX_{i}", 1) for i in range(3, 7)]
    last = [("RADIX_LAST", 8), ("MIRRORED", 1)]
    assert defines.pairs() == (("N", 32), ("COLUMNS", 0), *radices, *ones, *last)


@pytest.mark.parametrize(("double", "pairs"), [(None, ()), (False, ()), (True, (("DOUBLE", 1),))])
def test_single_precision_has_no_define(double, pairs):
    """Single precision has no define, since kernels only ask whether DOUBLE is defined."""
    assert KernelDefines(double=double).pairs() == pairs


def test_joined_defines_keep_values_of_both():
    """Values of the right operand win if present, and zero counts as a value."""
    both = KernelDefines(n=4, iq=True, n_bands=3) | KernelDefines(n=8, iq=False)
    assert both == KernelDefines(n=8, iq=False, n_bands=3)


@pytest.mark.parametrize(
    ("kind", "build"),
    [
        ("gpu", first(LOCAL, TransformSpec(1024, "r2c", precision="double"))),
        ("gpu", first(MULTIPASS, TransformSpec(1 << 17))),
        ("cpu", first(SIMD, TransformSpec(1024))),
        ("cpu", first(SIMD, TransformSpec(30, "c2r", inverse=True))),
        ("cpu", lambda context: move_kernel(context, "single", "rc")),
        ("gpu", first(MULTIPASS, TransformSpec(1 << 17, "r2c"))),
        ("gpu", stft(MULTIPASS_STFT, weighted=True)),
        ("gpu", stft(MULTIPASS_STFT, averaging="mean", n_bands=2)),
        ("gpu", stft(MULTIPASS_STFT, iq=True)),
        ("gpu", stft(STFT_LOCAL, n_bands=2, averaging="mean")),
        ("cpu", stft(STFT_SIMD, weighted=True, averaging="exponential")),
        ("cpu", stft(GENERAL, n_bands=2, iq=True)),
        ("gpu", stft(GENERAL, averaging="max", placed=True)),
    ],
)
def test_programs_have_the_defines_that_their_files_name(kind, build):
    """Every program defines all macros that its files read, since a missing one would read as 0."""
    for file, defines in programs_of(kind, build):
        names = {name for name, _ in defines}
        assert names - OPTIONAL == mentioned(file) - OPTIONAL, file


def test_every_define_is_read_by_a_kernel():
    """Every macro is read by some kernel."""
    files = "fft_local.cl fft_simd.cl fft_move.cl stft_local.cl stft_simd.cl stft_frames.cl "
    files += "stft_bands.cl stft_products.cl stft_multipass_first.cl stft_multipass_last.cl"
    assert set().union(*map(mentioned, files.split())) == NAMES
