"""The baselines: radix-2 Stockham, any radices in place, the naive transpose."""

from dataclasses import replace

import numpy as np
import pytest

from spectrod.apps.bench.inplace import INPLACE, InplaceParams, mirrored_radices, reversed_digits
from spectrod.apps.bench.naive_transpose import NaiveTranspose
from spectrod.apps.bench.radix2 import RADIX2, TWIDDLE_MODES, Radix2Params
from spectrod.fft.choice import untuned
from spectrod.fft.reference import error_limit, in_dtype, relative_l2, transform
from spectrod.fft.stage import Lines, TransformSpec, load_params
from spectrod.lib.errors import ConfigError, DeviceError

POWERS = [(2, ""), (4, "ID"), (8, ""), (64, "I"), (512, "ID"), (4096, ""), (1 << 15, "D")]
SMOOTH = [(2, ""), (3, "I"), (5, "D"), (6, ""), (7, "ID"), (8, "I"), (49, ""), (128, "D")]
SMOOTH += [(210, "ID"), (360, ""), (2187, "D"), (4096, "I"), (6000, ""), (1 << 15, "ID")]
FIRST, GAP = 3, 5
GUARD = 777.0 - 777.0j


def random_lines(spec, outer, inner, seed=5):
    """Make uniform complex (outer, n, inner) in the spec's precision."""
    rng = np.random.default_rng(seed)
    shape = outer, spec.n, inner
    return (rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)).astype(in_dtype(spec))


def expected(spec, x):
    """Transform along the middle axis in higher precision."""
    lines = np.moveaxis(x, 1, 2)
    flat = transform(spec, lines.reshape(-1, spec.n))
    return np.moveaxis(flat.reshape(lines.shape), 2, 1)


def guarded(x):
    """Make a buffer's content with the lines of x and guards before, between and after them."""
    whole = np.full((x.shape[0], x[0].size + GAP), GUARD, x.dtype)
    whole[:, : x[0].size] = x.reshape(len(x), -1)
    return np.concatenate([np.full(FIRST, GUARD, x.dtype), whole.ravel()])


def unguarded(whole, shape):
    """Return the lines of a buffer's content, after a check of the guards."""
    np.testing.assert_array_equal(whole[:FIRST], GUARD)
    rows = whole[FIRST:].reshape(shape[0], -1)
    np.testing.assert_array_equal(rows[:, -GAP:], GUARD)
    return rows[:, :-GAP].reshape(shape)


def run(context, stage, x, scale=1.0, *, in_place=False):
    """Transform x between guards, and check that the source is unchanged."""
    outer, _, inner = x.shape
    source = Lines(context.table(guarded(x)), x[0].size + GAP, FIRST)
    out = source
    if not in_place:
        out = Lines(context.table(guarded(np.zeros_like(x))), x[0].size + GAP, FIRST)
    n_scratch = stage.scratch_bytes(outer, inner)
    scratch = context.allocate(n_scratch) if n_scratch else None
    events = stage.launch(out, source, outer, inner, scale, scratch)
    assert len(events) >= 1
    whole = guarded(x)
    if not in_place:
        context.download(whole, source.buffer)
        np.testing.assert_array_equal(whole, guarded(x))
    context.download(whole, out.buffer)
    return unguarded(whole, x.shape)


def check(context, family, spec, params, *, inner=1, limit=1.0):
    """Compare with the reference, out of place and in place, which give the same bits."""
    outer = 3 if spec.n > 1000 else 33
    stage = family.build(context, spec, params)
    x = random_lines(spec, outer, inner)
    result = run(context, stage, x, scale=0.25)
    assert relative_l2(4 * result, expected(spec, x)) <= limit * error_limit(spec)
    np.testing.assert_array_equal(run(context, stage, x, scale=0.25, in_place=True), result)


def some_spec(context, n, kind):
    """Make a spec of length n, inverse (I) and in double precision (D) if available."""
    is_double = "D" in kind and context.device.has_fp64
    return TransformSpec(n, "c2c", "I" in kind, "double" if is_double else "single")


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 31, 33), (70, 1, 65), (2, 100, 257)])
def test_the_naive_transpose_is_exact(context, shape):
    """The naive transpose moves each value of each matrix to its place, in any shape."""
    batch, rows, columns = shape
    x = np.arange(2 * batch * rows * columns, dtype=np.float32).view(np.complex64).reshape(shape)
    out = context.table(np.zeros(x.size, np.complex64))
    source = context.table(x)
    lines = Lines(out, rows * columns), Lines(source, rows * columns)
    NaiveTranspose(context).launch(*lines, batch, rows, columns)
    result = np.empty((batch, columns, rows), np.complex64)
    context.download(result, out)
    np.testing.assert_array_equal(result, x.transpose(0, 2, 1))


@pytest.mark.parametrize(("n", "kind"), POWERS)
@pytest.mark.slow
def test_radix2_is_right(context, n, kind):
    """Powers of two are within the limits, in place and out of place, with guards unchanged."""
    spec = some_spec(context, n, kind)
    check(context, RADIX2, spec, untuned(RADIX2, spec, context.device))


@pytest.mark.parametrize("mode", TWIDDLE_MODES)
@pytest.mark.parametrize("vector", [1, 2, 4])
@pytest.mark.slow
def test_radix2_variants_are_right(context, mode, vector):
    """Each twiddle mode with each vector computes the transform; only the table is accurate."""
    spec = TransformSpec(256, inverse=vector == 2)
    # The spec allows native functions any error; those of our devices have this one.
    limit = 1.0 if mode == "table" else 4.0
    check(context, RADIX2, spec, Radix2Params(mode, vector, 16), limit=limit)


@pytest.mark.parametrize("n", [8, 16])
@pytest.mark.parametrize("vector", [2, 4])
def test_radix2_vectors_of_short_transforms_are_right(context, n, vector):
    """Lanes that span several short transforms of a pass are written to their places."""
    check(context, RADIX2, TransformSpec(n), Radix2Params("table", vector, 1))


@pytest.mark.parametrize(("n", "kind"), SMOOTH)
@pytest.mark.slow
def test_inplace_is_right(context, n, kind):
    """Smooth lengths are within the limits, in place and out of place, with guards unchanged."""
    spec = some_spec(context, n, kind)
    check(context, INPLACE, spec, untuned(INPLACE, spec, context.device))


@pytest.mark.parametrize("inner", [2, 3, 100])
@pytest.mark.parametrize("n", [6, 210])
@pytest.mark.slow
def test_inplace_columns_are_right(context, n, inner):
    """Lines along the middle axis are transformed in place."""
    spec = TransformSpec(n)
    check(context, INPLACE, spec, untuned(INPLACE, spec, context.device), inner=inner)


@pytest.mark.slow
def test_inplace_rows_go_in_several_launches(context, monkeypatch):
    """Rows beyond the number of groups in a dimension are all transformed."""
    monkeypatch.setattr("spectrod.apps.bench.inplace._GROUPS_MAX", 3)
    check(context, INPLACE, TransformSpec(60), InplaceParams((5, 3, 4), 8), inner=5)


@pytest.mark.parametrize("radices", [(3, 2), (2, 3, 4, 5), (16, 8), (7, 2, 2, 2)])
@pytest.mark.slow
def test_inplace_any_order_of_radices_is_right(context, radices):
    """Radices that are no palindrome give long cycles and the right transform."""
    check(context, INPLACE, TransformSpec(int(np.prod(radices))), InplaceParams(radices))


@pytest.mark.parametrize("family", [RADIX2, INPLACE])
@pytest.mark.slow
def test_nan_stays_in_its_line(context, family):
    """A line with a NaN is NaN; its neighbours keep every bit."""
    spec = TransformSpec(64)
    stage = family.build(context, spec, untuned(family, spec, context.device))
    x = random_lines(spec, 5, 1)
    clean = run(context, stage, x)
    x[2, 17] = np.nan
    result = run(context, stage, x)
    assert np.isnan(result[2]).all()
    np.testing.assert_array_equal(np.delete(result, 2, 0), np.delete(clean, 2, 0))


@pytest.mark.parametrize("family", [RADIX2, INPLACE])
def test_candidates_are_legal_and_survive_a_file(context, family):
    """The first candidate is the untuned choice; all are distinct, and load as they were saved."""
    spec = TransformSpec(512)
    candidates = list(family.candidates(spec, context.device))
    assert candidates[0] == untuned(family, spec, context.device)
    assert len(set(candidates)) == len(candidates) > 3
    for params in candidates:
        params.check(spec, context.device)
        values = {name: getattr(params, name) for name in params.__slots__}
        assert load_params(family.params_type, values) == params


def test_candidates_fit_small_devices(context):
    """No group exceeds the device's limit, and no vector the transform."""
    small = replace(context.device, max_work_group_size=8)
    spec = TransformSpec(4)
    for family in (RADIX2, INPLACE):
        for params in family.candidates(spec, small):
            params.check(spec, small)


@pytest.mark.parametrize(
    ("spec", "supported"),
    [
        (TransformSpec(1), ""),
        (TransformSpec(2), "radix2 inplace"),
        (TransformSpec(12), "inplace"),
        (TransformSpec(22), ""),
        (TransformSpec(1 << 26), "radix2 inplace"),
        (TransformSpec(16, "r2c"), ""),
        (TransformSpec(16, precision="double"), ""),
    ],
)
def test_families_refuse_what_they_do_not_support(context, spec, supported):
    """A family refuses lengths, kinds and precisions outside its range with a reason."""
    device = replace(context.device, has_fp64=False)
    for family in (RADIX2, INPLACE):
        is_supported = family.name in supported.split()
        assert family.supports(spec, device) == is_supported
        if not is_supported:
            with pytest.raises(
                ConfigError, match=f"^n={spec.n}, kind={spec.kind}, {spec.precision}: "
            ):
                list(family.candidates(spec, device))


BAD_PARAMS = [
    (Radix2Params, {"twiddles": "cordic"}, r"twiddles='cordic': must be one of \('table',"),
    (Radix2Params, {"vector": 3}, "vector=3: must be 1, 2 or 4"),
    (Radix2Params, {"group_items": 0}, "group_items=0: must be at least 1"),
    (InplaceParams, {"radices": ()}, r"radices=\(\): must be one or more of \(2, 3, 4"),
    (InplaceParams, {"radices": (6,)}, r"radices=\(6,\): must be one or more of"),
    (InplaceParams, {"radices": (2,), "group_items": 0}, "group_items=0: must be at least 1"),
]


@pytest.mark.parametrize(("kind", "values", "message"), BAD_PARAMS)
def test_bad_parameters(kind, values, message):
    """A parameter that breaks a rule is refused with its value and the rule."""
    with pytest.raises(ConfigError, match=message):
        kind(**values)


@pytest.mark.parametrize(
    ("family", "spec", "params", "message"),
    [
        (RADIX2, TransformSpec(4), Radix2Params(vector=4), r"vector=4: must be at most n / 2 = 2"),
        (
            RADIX2,
            TransformSpec(4, precision="double"),
            Radix2Params("native"),
            "twiddles='native': must be another in double precision",
        ),
        (INPLACE, TransformSpec(4), InplaceParams((2,)), r"radices=\(2,\): their product must be"),
    ],
)
def test_parameters_of_another_transform(context, family, spec, params, message):
    """Parameters of another transform are refused before compilation."""
    monstrous = replace(context.device, has_fp64=True)
    with pytest.raises(ConfigError, match=message):
        params.check(spec, monstrous)
    if spec.precision == "single":
        with pytest.raises(ConfigError, match=message):
            family.build(context, spec, params)


@pytest.mark.parametrize("params", [Radix2Params(group_items=99), InplaceParams((4,), 99)])
def test_groups_that_the_device_lacks(context, params):
    """A work-group above the device's limit is refused with the limit."""
    small = replace(context.device, max_work_group_size=64)
    with pytest.raises(DeviceError, match=r"group_items=99: .* has at most 64"):
        params.check(TransformSpec(4), small)


@pytest.mark.parametrize("family", [RADIX2, INPLACE])
def test_files_with_other_names_are_refused(family):
    """Values of another family or version are refused with the right names."""
    with pytest.raises(ConfigError, match=r"\['speed'\]: must be \['group_items', "):
        load_params(family.params_type, {"speed": 1})


@pytest.mark.parametrize("largest", [2, 4, 8, 16])
def test_mirrored_radices_make_short_cycles(largest):
    """Radices multiply to n; no cycle exceeds twice the part between the mirrored ones."""
    lengths = [n for n in range(2, 700) if mirrored_radices(n, largest)]
    assert lengths == [n for n in range(2, 700) if 210**9 % n == 0]
    for n in lengths:
        radices = mirrored_radices(n, largest)
        assert int(np.prod(radices)) == n
        differ = [a != b for a, b in zip(radices, reversed(radices), strict=True)]
        mirrored = differ.index(True) if any(differ) else len(radices)
        middle = radices[mirrored : len(radices) - mirrored]
        assert longest_cycle(radices) <= 2 * np.prod(middle, dtype=int)


def longest_cycle(radices):
    """Follow all places at once until each returns."""
    table = reversed_digits(radices, 0)
    start = np.arange(len(table) - 1)
    places, away, length = table[1:], np.ones(len(start), bool), 0
    while away.any():
        away &= places != start
        places, length = table[1:][places], length + 1
    return length


@pytest.mark.parametrize("low_stages", range(4))
def test_two_tables_add_up_to_the_reversal(low_stages):
    """The two tables reverse the digits of a place, however it is split."""
    radices = (2, 3, 5)
    low = int(np.prod(radices[:low_stages]))
    table = reversed_digits(radices, low_stages)
    places = np.arange(30)
    digits = places % 2, places // 2 % 3, places // 6
    expected_places = (digits[0] * 3 + digits[1]) * 5 + digits[2]
    np.testing.assert_array_equal(table[places % low] + table[low + places // low], expected_places)
