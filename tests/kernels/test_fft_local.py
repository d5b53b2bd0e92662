"""Every form of the local-memory kernel: exchanges, gaps, twiddles, pairs, columns."""

import numpy as np
import pytest

from spectrod.fft import reference
from spectrod.fft.local import LOCAL, LocalShape
from spectrod.fft.multipass import MULTIPASS, MultipassParams
from spectrod.fft.stage import Lines, TransformSpec
from spectrod.opencl.context import Context

OUTER = 3


@pytest.fixture(scope="module")
def context(opencl_device, no_cache):
    context = Context(opencl_device, cache=no_cache)
    yield context
    context.close()


def error(context, family, spec, params, inner=1):
    """Return the relative L2 error of a few random lines, NaN if values were not written."""
    rng = np.random.default_rng(spec.n)
    source = rng.uniform(-1, 1, (OUTER, inner, spec.n_in, 2)).astype(
        np.float32 if spec.precision == "single" else np.float64
    )
    lines = source[..., 0] if spec.kind == "r2c" else source.view(reference.in_dtype(spec))[..., 0]
    expected = reference.transform(spec, np.ascontiguousarray(lines).reshape(-1, spec.n_in))
    found = np.full((OUTER, spec.n_out, inner), np.nan, reference.out_dtype(spec))
    stage = family.build(context, spec, params)
    out, into = context.table(found), context.table(lines.swapaxes(1, 2))
    n_bytes = stage.scratch_bytes(OUTER, inner)
    scratch = context.allocate(n_bytes) if n_bytes else None
    places = Lines(out, spec.n_out * inner), Lines(into, spec.n_in * inner)
    stage.launch(*places, OUTER, inner, 1.0, scratch)
    context.download(found, out)
    return reference.relative_l2(found.swapaxes(1, 2).reshape(-1, spec.n_out), expected)


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize(
    "params",
    [
        LocalShape((8, 8), 8),
        LocalShape((8, 8), 4, 3, split_exchange=True, local_pad=8),
        LocalShape((4, 4, 4), 16, 2, local_pad=7, paired_twiddles=True),
        LocalShape((32, 2), 2, sections=2, paired_twiddles=True, fused=True),
        LocalShape((16, 8, 4), 16, 3, local_pad=16, paired_twiddles=True, fused=True),
        LocalShape((5, 8, 2), 10, fused=True),
        LocalShape((16, 12, 10), 120, local_pad=16, sections=2),
        LocalShape((15, 16, 8), 128, split_exchange=True, paired_twiddles=True),
        LocalShape((13, 11, 7), 91, paired_twiddles=True),
        LocalShape((9, 6, 3, 2), 50, 2),
    ],
    ids=str,
)
def test_every_form_is_as_exact(context, params, precision):
    """Exchanges, sections, padding, idle items and twiddles change only the rounding."""
    for inverse in (False, True):
        spec = TransformSpec(params.length, "c2c", inverse, precision)
        assert error(context, LOCAL, spec, params) <= reference.error_limit(spec)


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize(
    ("kind", "params"),
    [
        ("r2c", LocalShape((8, 8), 4, 3, mirrored=True)),
        ("r2c", LocalShape((5, 3, 4), 30, local_pad=4, split_exchange=True)),
        ("r2c", LocalShape((32, 16), 16, local_pad=32, mirrored=True, paired_twiddles=True)),
        ("r2c", LocalShape((7, 3, 6), 13)),
        ("r2c", LocalShape((8, 4, 16), 16, 2, mirrored=True, paired_twiddles=True, fused=True)),
        ("c2r", LocalShape((8, 8, 4), 32, paired_twiddles=True, fused=True)),
        ("c2r", LocalShape((8, 8), 4, 3, mirrored=True, split_exchange=True)),
        ("c2r", LocalShape((4, 5, 3), 30, local_pad=4)),
        ("c2r", LocalShape((16, 32), 16, local_pad=16, mirrored=True)),
        ("c2r", LocalShape((7, 3, 6), 13, split_exchange=True)),
    ],
    ids=str,
)
def test_pairs_of_bins_are_right_with_and_without_an_exchange(context, kind, params, precision):
    """Real transforms agree with the reference with and without an exchange of pairs."""
    spec = TransformSpec(2 * params.length, kind, kind == "c2r", precision)
    for inner in (1, 5):
        assert error(context, LOCAL, spec, params, inner) <= reference.error_limit(spec)


@pytest.mark.parametrize("kind", ["r2c", "c2r"])
def test_real_lines_may_start_at_odd_places(context, kind):
    """Reals whose pairs lie at odd places are right, and no other value is written."""
    params = LocalShape((4, 4), 4, 2, paired_twiddles=True, fused=True)
    spec = TransformSpec(32, kind, kind == "c2r")
    stage = LOCAL.build(context, spec, params)
    rng = np.random.default_rng(6)
    real = rng.standard_normal(1 + 2 * 35).astype(np.float32)
    bins = rng.standard_normal((2, 17, 2)).astype(np.float32).view(np.complex64)[..., 0]
    places = [slice(1, 33), slice(36, 68)]
    lines, spectra = Lines(context.table(real), 35, 1), Lines(context.table(bins), 17)
    if kind == "r2c":
        expected = reference.transform(spec, np.stack([real[place] for place in places]))
        stage.launch(spectra, lines, 2, 1, 1.0)
        found = np.empty_like(bins)
        context.download(found, spectra.buffer)
    else:
        expected = reference.transform(spec, bins)
        stage.launch(lines, spectra, 2, 1, 1.0)
        after = np.empty_like(real)
        context.download(after, lines.buffer)
        found = np.stack([after[place] for place in places])
        rest = np.setdiff1d(np.arange(len(real)), np.r_[places[0], places[1]])
        np.testing.assert_array_equal(after[rest], real[rest])
    assert reference.relative_l2(found, expected) <= reference.error_limit(spec)


@pytest.mark.parametrize("slice_bytes", [1, 1 << 28])
@pytest.mark.parametrize("lengths", [((8, 4), (5, 3)), ((6,), (5,), (4,)), ((16,), (3,))], ids=str)
def test_passes_over_global_memory_are_right_in_slices_of_any_size(context, lengths, slice_bytes):
    """Two and three passes agree with the reference, for one line and for all lines at once."""
    passes = tuple(
        LocalShape(radices, max(1, radices[-1]), 4, lines_first=True) for radices in lengths
    )
    params = MultipassParams(passes, slice_bytes)
    for inverse, precision in ((False, "single"), (True, "double")):
        spec = TransformSpec(params.length, "c2c", inverse, precision)
        assert error(context, MULTIPASS, spec, params) <= reference.error_limit(spec)


PAIRED = LocalShape((2, 4), 2, 4, split_exchange=True, local_pad=2, lines_last=True)


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize(
    ("kind", "passes"),
    [
        ("r2c", (LocalShape((4, 3), 3, 4, lines_first=True), PAIRED)),
        ("r2c", (*(LocalShape((r,), 1, 4, lines_first=True) for r in (6, 5)), PAIRED)),
        ("c2r", (LocalShape((4, 2), 2, 4, lines_first=True), LocalShape((3, 2), 2, 3))),
        ("c2r", (LocalShape((8, 2), 2, 2, lines_first=True), *(LocalShape((4,), 1, 2),) * 2)),
    ],
    ids=str,
)
def test_bins_of_long_real_lines_are_right(context, kind, passes, precision):
    """The pass that holds pairs of lines agrees with the reference, also line by line."""
    params = MultipassParams(passes, slice_bytes=1 if precision == "single" else 1 << 28)
    spec = TransformSpec(2 * params.length, kind, kind == "c2r", precision)
    assert error(context, MULTIPASS, spec, params) <= reference.error_limit(spec)


@pytest.mark.parametrize("kind", ["r2c", "c2r"])
def test_long_real_lines_may_start_at_odd_places(context, kind):
    """Real lines that do not start where a complex value may are copied, and nothing else is."""
    passes = (LocalShape((4, 2), 2, 4, lines_first=True), LocalShape((2, 4), 2, 4))
    spec = TransformSpec(128, kind, kind == "c2r")
    stage = MULTIPASS.build(context, spec, MultipassParams(passes))
    rng = np.random.default_rng(5)
    real = np.full(1 + 2 * 131, np.float32(-7.5))
    lines = [slice(1, 129), slice(132, 260)]
    bins = rng.standard_normal((2, 65, 2)).astype(np.float32).view(np.complex64)[..., 0]
    if kind == "r2c":
        for line in lines:
            real[line] = rng.standard_normal(128)
        expected = reference.transform(spec, np.stack([real[line] for line in lines]))
        out, source = Lines(context.table(bins), 65), Lines(context.table(real), 131, 1)
    else:
        expected = reference.transform(spec, bins)
        out, source = Lines(context.table(real), 131, 1), Lines(context.table(bins), 65)
    scratch = context.allocate(stage.scratch_bytes(2, 1))
    stage.launch(out, source, 2, 1, 1.0, scratch)
    found = bins if kind == "r2c" else real
    context.download(found, out.buffer)
    if kind == "c2r":
        assert real[0] == real[129] == real[-1] == -7.5
        found = np.stack([real[line] for line in lines])
    assert reference.relative_l2(found, expected) <= reference.error_limit(spec)
