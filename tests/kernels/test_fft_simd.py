from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.fft

from spectrod.fft.choice import untuned
from spectrod.fft.simd import SIMD, own_bytes
from spectrod.fft.simd_shape import SimdShape, needs_scratch
from spectrod.fft.stage import Lines, TransformSpec

FIRST, GAP, TAIL, GUARD = 5, 3, 7, 77
REAL = {"single": np.float32, "double": np.float64}
COMPLEX = {"single": np.complex64, "double": np.complex128}
# Relative L2 error in units of the type's epsilon: 2.0e-7 and 6.0e-16.
EPSILONS = {"single": 1.7, "double": 2.7}

C2C, BACK = ("c2c", False), ("c2c", True)
R2C, C2R = ("r2c", False), ("c2r", True)


@pytest.fixture(autouse=True)
def _cpu_only(context):
    if context.device.kind != "cpu":
        pytest.skip("the family is for CPUs")


@dataclass
class Batch:
    """Lines in a buffer with guard values before, between and after them."""

    image: np.ndarray
    buffer: Any
    pitch: int
    shape: tuple[int, int, int]

    @classmethod
    def of(cls, context, values, pitch):
        outer, n, inner = values.shape
        image = np.full(FIRST + outer * pitch + TAIL, GUARD, values.dtype)
        rows = image[FIRST : FIRST + outer * pitch].reshape(outer, pitch)
        rows[:, : n * inner] = values.reshape(outer, -1)
        return cls(image, context.table(image), pitch, values.shape)

    @property
    def lines(self):
        return Lines(self.buffer, self.pitch, FIRST)

    def read(self, context):
        """Fetch the lines, after a check of the guards."""
        outer, n, inner = self.shape
        image = np.empty_like(self.image)
        context.download(image, self.buffer)
        guards = np.ones(image.shape, bool)
        rows = guards[FIRST : FIRST + outer * self.pitch].reshape(outer, self.pitch)
        rows[:, : n * inner] = False
        np.testing.assert_array_equal(image[guards], GUARD)
        return image[FIRST : FIRST + outer * self.pitch].reshape(outer, -1)[:, : n * inner]


def types(spec):
    real, cplx = REAL[spec.precision], COMPLEX[spec.precision]
    return (real if spec.kind == "r2c" else cplx), (real if spec.kind == "c2r" else cplx)


def noise(shape, dtype, seed=5):
    rng = np.random.default_rng(seed)
    values = rng.uniform(-1.0, 1.0, shape)
    if np.issubdtype(dtype, np.complexfloating):
        values = values + 1j * rng.uniform(-1.0, 1.0, shape)
    return values.astype(dtype)


def reference(spec, values):
    """Transform along the middle axis in extended precision."""
    wide = values.astype(np.longdouble if spec.kind == "r2c" else np.clongdouble)
    if spec.kind == "r2c":
        return scipy.fft.rfft(wide, axis=1)
    if spec.kind == "c2r":
        return scipy.fft.irfft(wide, spec.n, axis=1, norm="forward")
    if spec.inverse:
        return scipy.fft.ifft(wide, axis=1, norm="forward")
    return scipy.fft.fft(wide, axis=1)


def assert_right(spec, result, expected):
    expected = expected.reshape(result.shape)
    error = np.linalg.norm((result - expected).ravel()) / np.linalg.norm(expected.ravel())
    assert error <= EPSILONS[spec.precision] * np.finfo(REAL[spec.precision]).eps


def run(context, spec, params, values, scale=1.0):
    """Transform out of place; the guards of both buffers and the source are unchanged."""
    outer, _, inner = values.shape
    _, out_type = types(spec)
    stage = SIMD.build(context, spec, params)
    source = Batch.of(context, values, spec.n_in * inner + GAP)
    nothing = np.full((outer, spec.n_out, inner), GUARD, out_type)
    out = Batch.of(context, nothing, spec.n_out * inner + GAP)
    scratch_bytes = stage.scratch_bytes(outer, inner)
    scratch = context.allocate(scratch_bytes) if scratch_bytes else None
    stage.launch(out.lines, source.lines, outer, inner, scale, scratch)
    result = out.read(context).reshape(outer, spec.n_out, inner)
    np.testing.assert_array_equal(source.read(context), values.reshape(outer, -1))
    return result


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("transform", [C2C, BACK, R2C, C2R])
@pytest.mark.parametrize("n", [2, 26, 100, 256, 1000, 2048])
@pytest.mark.slow
def test_the_untuned_choice_is_right(context, n, transform, precision):
    """Every kind, direction and precision, scaled, in an odd batch, is within the error limit."""
    spec = TransformSpec(n, *transform, precision)
    values = noise((19, spec.n_in, 1), types(spec)[0])
    params = untuned(SIMD, spec, context.device)
    result = run(context, spec, params, values, scale=0.5)
    assert_right(spec, result, reference(spec, values) / 2)


@pytest.mark.parametrize(
    ("n", "transform", "precision", "params"),
    [
        (4, C2C, "single", SimdShape(2, (2,), columns=True)),
        (10, C2C, "single", SimdShape(2, (5,), columns=True, staged=False)),
        (24, C2C, "single", SimdShape(4, (6,), columns=True)),
        (24, C2C, "double", SimdShape(2, (3, 4), columns=True)),
        (24, C2C, "double", SimdShape(4, (6,), columns=True)),
        (72, C2C, "single", SimdShape(8, (3, 3), columns=True)),
        (256, BACK, "single", SimdShape(16, (16,), columns=True)),
        (256, BACK, "single", SimdShape(8, (2, 16), columns=True)),
        (256, BACK, "double", SimdShape(8, (2, 2, 2, 2, 2), columns=True, staged=False)),
        (256, BACK, "double", SimdShape(4, (4, 4, 4), columns=True, staged=False)),
        (336, C2C, "single", SimdShape(16, (3, 7), columns=True)),
        (336, R2C, "single", SimdShape(8, (3, 7), columns=True, staged=False)),
        (336, C2R, "single", SimdShape(8, (3, 7), columns=True, staged=False)),
        (40, R2C, "double", SimdShape(4, (5,), columns=True)),
        (40, C2R, "double", SimdShape(4, (5,), columns=True)),
        (15, C2C, "single", SimdShape(16, (3, 5), columns=False)),
        (15, C2C, "single", SimdShape(8, (3, 5), columns=False)),
        (30, R2C, "single", SimdShape(2, (15,), columns=False)),
        (30, C2R, "double", SimdShape(8, (5, 3), columns=False)),
        (30, C2R, "double", SimdShape(4, (5, 3), columns=False)),
        (720, C2C, "single", SimdShape(8, (2, 3, 2, 3, 4, 5), columns=False)),
        (858, C2C, "single", SimdShape(4, (6, 11, 13), columns=False)),
    ],
)
@pytest.mark.slow
def test_every_shape_is_right(context, skip_unless_fits_register, n, transform, precision, params):
    """Lanes as columns and as lines of each width are right, also if the last block overlaps."""
    spec = TransformSpec(n, *transform, precision)
    skip_unless_fits_register(params.lanes * spec.real_bytes)
    values = noise((19, spec.n_in, 1), types(spec)[0])
    assert_right(spec, run(context, spec, params, values), reference(spec, values))


@pytest.mark.parametrize(
    ("n", "transform", "precision"),
    [
        (3**8 * 5, C2C, "single"),
        (1 << 18, C2C, "single"),
        (1 << 17, BACK, "double"),
        (1 << 18, R2C, "single"),
        (1 << 18, C2R, "single"),
    ],
)
@pytest.mark.slow
def test_lines_too_long_for_private_memory_are_right(context, n, transform, precision):
    """Lines beyond a mebibyte, which a work-item holds in the scratch buffer, are right."""
    spec = TransformSpec(n, *transform, precision)
    params = untuned(SIMD, spec, context.device)
    assert needs_scratch(own_bytes(params, spec))
    values = noise((3, spec.n_in, 1), types(spec)[0])
    assert_right(spec, run(context, spec, params, values), reference(spec, values))


@pytest.mark.parametrize("n", [1, 12, 256])
@pytest.mark.parametrize("transform", [C2C, BACK])
@pytest.mark.slow
def test_interleaved_lines_are_right(context, n, transform):
    """Lines along another axis than the last are right: fewer than the lanes, as many, or more."""
    spec = TransformSpec(n, *transform)
    params = untuned(SIMD, spec, context.device)
    for inner in (2, 8, 33):
        values = noise((3, n, inner), np.complex64)
        assert_right(spec, run(context, spec, params, values), reference(spec, values))


@pytest.mark.parametrize("n", [12, 256])
@pytest.mark.parametrize("transform", [C2C, R2C, C2R])
@pytest.mark.slow
def test_in_place_is_the_same_as_out_of_place(context, n, transform):
    """Lines with equal start and pitch in bytes are transformed in place."""
    spec = TransformSpec(n, *transform)
    params = untuned(SIMD, spec, context.device)
    in_type, out_type = types(spec)
    values = noise((19, spec.n_in, 1), in_type)
    pitch_bytes = 8 * (n // 2 + 1 if spec.kind != "c2c" else n) + 8
    stored = np.zeros((19, pitch_bytes // values.itemsize), in_type)
    stored[:, : spec.n_in] = values[:, :, 0]
    buffer = context.table(stored)
    pitches = (pitch_bytes // np.dtype(t).itemsize for t in (out_type, in_type))
    out, source = (Lines(buffer, pitch) for pitch in pitches)
    stage = SIMD.build(context, spec, params)
    assert stage.scratch_bytes(19, 1) == 0
    stage.launch(out, source, 19, 1, 1.0)
    context.download(stored, buffer)
    result = stored.view(out_type)[:, : spec.n_out, None]
    np.testing.assert_array_equal(result, run(context, spec, params, values))


@pytest.mark.parametrize("inner", [1, 19])
@pytest.mark.parametrize("n", [12, 256])
@pytest.mark.slow
def test_nan_stays_in_its_line(context, n, inner):
    """A line with one NaN is all NaN; others, in the same vectors, are unchanged."""
    spec = TransformSpec(n)
    params = untuned(SIMD, spec, context.device)
    values = noise((19 if inner == 1 else 1, n, inner), np.complex64)
    clean = np.moveaxis(run(context, spec, params, values), 1, 2).reshape(19, n)
    values[(3, 1, 0) if inner == 1 else (0, 1, 3)] = np.nan
    result = np.moveaxis(run(context, spec, params, values), 1, 2).reshape(19, n)
    assert np.isnan(result[3]).all()
    others = np.arange(19) != 3
    np.testing.assert_array_equal(result[others], clean[others])


@pytest.mark.parametrize("n", [12, 256])
@pytest.mark.slow
def test_imaginary_parts_of_real_bins_are_not_read(context, n):
    """Of bins 0 and n / 2 of a half spectrum only the real parts are read."""
    spec = TransformSpec(n, *C2R)
    params = untuned(SIMD, spec, context.device)
    values = noise((3, n // 2 + 1, 1), np.complex64)
    values[:, [0, -1]] = values[:, [0, -1]].real
    expected = run(context, spec, params, values)
    values.imag[:, [0, -1]] = np.nan
    np.testing.assert_array_equal(run(context, spec, params, values), expected)


@pytest.mark.parametrize("outer", [1, 2, 7, 8, 9])
def test_any_batch_is_right(context, outer):
    """Batches of fewer lines than lanes, as many, and one more are right."""
    spec = TransformSpec(12)
    values = noise((outer, 12, 1), np.complex64)
    result = run(context, spec, untuned(SIMD, spec, context.device), values)
    assert_right(spec, result, reference(spec, values))
